//! Real SSTables are sound; and what is done to one is found and named.

use std::path::{Path, PathBuf};

use runtime::{Cache, Shard, ShardOptions, SimOptions};
use siltstone_sstable::component::{Component, Descriptor};
use siltstone_sstable::verify::{Problem, Report, verify};
use siltstone_sstable::{OpenOptions, Result};

/// 4 KiB chunks, several hundred partitions.
const CHUNKS: &str = "oa/small/sstables/comp_lz4_4k/oa-1-big-Data.db";
/// A large partition with index blocks, not compressed.
const BLOCKS: &str = "me/large/sstables/large_none/me-1-big-Data.db";

async fn verified(shard: &Shard, path: &Path) -> Result<Report> {
    let options = OpenOptions::new(Cache::new(8 << 20));
    verify(shard.disk(), path, &options, |done, total| assert!(done <= total)).await
}

#[test]
fn real_sstables_are_sound() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        let mut wrong = Vec::new();
        for fixture in testkit::fixtures::all() {
            match verified(&shard, &fixture.data).await {
                Ok(report) => wrong.extend(report.problems.listed().iter().map(ToString::to_string)),
                // Sound, but nothing that is read here.
                Err(error) if error.to_string().contains("RandomPartitioner") => {}
                Err(error) => wrong.push(error.to_string()),
            }
        }
        assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
    })
    .unwrap();
}

/// Verifies a copy of a fixture in which a component was changed, or taken away.
fn verified_after(name: &str, component: Component, change: impl Fn(&mut Vec<u8>) -> bool + Send) -> Report {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cassandra").join(name);
        let changed = Descriptor::parse(&data).unwrap().path_of(&component);
        let disk = shard.disk().as_simulated().unwrap();
        for file in std::fs::read_dir(data.parent().unwrap()).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            if path != changed || change(&mut bytes) {
                disk.add_file(path, bytes);
            }
        }
        verified(&shard, &data).await.unwrap()
    })
    .unwrap()
}

fn flip(at: usize) -> impl Fn(&mut Vec<u8>) -> bool + Send {
    move |bytes| {
        bytes[at] ^= 0x20;
        true
    }
}

fn names(problems: &[Problem]) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    problems.iter().map(|problem| name(&problem.path)).collect()
}

#[test]
fn behind_a_damaged_chunk_the_pass_goes_on() {
    let sound = verified_after(CHUNKS, Component::Data, |_| true);
    let report = verified_after(CHUNKS, Component::Data, flip(100_000));
    assert_eq!(names(report.problems.listed()), ["oa-1-big-Data.db", "oa-1-big-Digest.crc32"]);
    let at = report.problems.listed()[0].offset.unwrap();
    assert!(at.is_multiple_of(4096) && at > 100_000, "{at} is where a chunk begins, uncompressed");
    assert!(report.unread_partitions < 20);
    assert_eq!(report.partitions + report.unread_partitions, sound.partitions);
    assert!(report.rows + 200 > sound.rows && report.rows < sound.rows);
}

#[test]
fn every_damaged_stretch_of_plain_data_is_named() {
    let report = verified_after(BLOCKS, Component::Data, |bytes| {
        [10_000, 300_000, 900_000].into_iter().for_each(|at| bytes[at] ^= 0x01);
        true
    });
    let offsets: Vec<u64> = report.problems.listed().iter().filter_map(|problem| problem.offset).collect();
    for stretch in [0, 300_000 / 65_536 * 65_536, 900_000 / 65_536 * 65_536] {
        assert!(offsets.contains(&stretch), "{stretch} is among {offsets:?}");
    }
}

#[test]
fn the_index_of_a_large_partition_is_compared_with_its_rows() {
    let len = verified_after(BLOCKS, Component::Index, |_| true).problems.listed().len();
    assert_eq!(len, 0);
    for at in (40..6000).step_by(313) {
        let report = verified_after(BLOCKS, Component::Index, flip(at));
        let all_of_index = names(report.problems.listed()).iter().all(|name| name == "me-1-big-Index.db");
        assert!(!report.is_sound() && all_of_index, "{at}: {:?}", report.problems.listed());
    }
}

#[test]
fn what_may_be_missing_is_a_note() {
    for component in
        [Component::Crc, Component::Digest, Component::Filter, Component::Summary, Component::Toc]
    {
        let report = verified_after(BLOCKS, component.clone(), |_| false);
        assert!(report.is_sound(), "{component}: {:?}", report.problems.listed());
        assert_eq!(names(report.notes.listed()), [format!("me-1-big-{component}")]);
    }
}

#[test]
fn what_may_not_be_missing_is_a_problem() {
    for component in [Component::Data, Component::Index, Component::Statistics, Component::CompressionInfo] {
        let report = verified_after(CHUNKS, component.clone(), |_| false);
        let problems = names(report.problems.listed());
        assert!(problems.contains(&format!("oa-1-big-{component}")), "{component}: {problems:?}");
    }
}
