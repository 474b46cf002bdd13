//! Every fixture in every version: each fragment is kept, and the result is sound.

use std::path::Path;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::FragmentReader;
use model::merge::{Mapped, UnifiedSchema};
use runtime::{Cache, Disk, Shard, ShardOptions};
use siltstone::convert::{Target, convert};
use siltstone::{Error, Result};
use sstable::component::Component;
use sstable::verify::verify;
use sstable::{OpenOptions, SSTable, Version};
use testkit::fixtures::{self, Fixture};

/// Which fixtures cannot be held by which versions, and what the refusal says.
fn refusal(fixture: &Fixture, version: Version) -> Option<&'static str> {
    let is = |name: &str| fixture.name.contains(name);
    if is("random_partitioner") {
        return Some("only Murmur3Partitioner is read");
    }
    if is("write_regular_and_shadowable_deletion") {
        return Some("Cassandra has one deletion a row");
    }
    (is("/vectors/") && version < Version::Nb).then_some("has no vectors")
}

async fn open(disk: &Disk, data: &Path) -> Result<Rc<SSTable>> {
    Ok(SSTable::open(disk, data, &OpenOptions::new(Cache::new(1 << 20))).await?)
}

/// What is lost or changed by a conversion. Nothing comes between the two but, where the source orders its columns in
/// another way, that order.
async fn difference(a: Rc<SSTable>, b: Rc<SSTable>) -> Result<Option<String>> {
    let unified = UnifiedSchema::of(&[a.schema(), b.schema()]).expect("the tables have the same columns");
    assert_eq!(unified.schema, **b.schema());
    let [mut old, mut new] = [0, 1].map(|side| {
        let table = if side == 0 { &a } else { &b };
        Mapped::new(table.scan(), unified.maps[side].clone())
    });
    loop {
        let (old, new) = (old.next().await?, new.next().await?);
        if old != new {
            return Ok(Some(format!("{old:?} became {new:?}")));
        }
        if old.is_none() {
            return Ok(None);
        }
    }
}

async fn check(shard: &Shard, fixture: &Fixture, version: Version) -> std::result::Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let converted = async {
        let source = open(shard.disk(), &fixture.data).await?;
        let target = Target::new(version);
        let written =
            convert(shard.disk(), vec![source.clone()], &target, dir.path(), &mut |_, _| {}).await?;
        Ok::<_, Error>((source, written))
    };
    let (source, written) = match (converted.await, refusal(fixture, version)) {
        (Ok(both), None) => both,
        (Err(error), Some(why)) if error.to_string().contains(why) => return Ok(()),
        (Err(error), _) => return Err(error.to_string()),
        (Ok(_), Some(_)) => return Err("it is not refused".to_owned()),
    };
    let data = written.descriptor.path_of(&Component::Data);
    let options = OpenOptions::new(Cache::new(1 << 20));
    let report = verify(shard.disk(), &data, &options, |_, _| {}).await.map_err(|error| error.to_string())?;
    if !report.is_sound() {
        return Err(format!("the result is not sound: {:?}", report.problems));
    }
    let result = open(shard.disk(), &data).await.map_err(|error| error.to_string())?;
    match difference(source, result).await.map_err(|error| error.to_string())? {
        Some(difference) => Err(difference),
        None => Ok(()),
    }
}

#[test]
fn every_fragment_is_kept_in_every_version() {
    let fixtures = fixtures::all();
    let work: Vec<(&Fixture, Version)> =
        fixtures.iter().flat_map(|fixture| Version::ALL.map(|version| (fixture, version))).collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || {
        runtime::run(ShardOptions::default(), async |shard| {
            while let Some((fixture, version)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = check(&shard, fixture, *version).await {
                    failures.lock().unwrap().push(format!("{} to {version}: {error}", fixture.name));
                }
            }
        })
        .unwrap();
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(run)));
    });
    let failures = failures.into_inner().unwrap();
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {} failed:\n{shown}", failures.len(), work.len());
}
