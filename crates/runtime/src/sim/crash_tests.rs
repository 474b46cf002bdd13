//! What was made durable is there after every power cut, and what was not may be gone.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::task::Poll;

use super::*;
use crate::stats::IoClass;
use crate::{Disk, IoError, NewFile, join_all, run_simulated};

const CLASS: IoClass = IoClass::new(0);

async fn content(disk: &Disk, path: &Path) -> Option<Vec<u8>> {
    let file = disk.open(path, CLASS).await.ok()?;
    Some(file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec())
}

fn expect_power_cut<T>(result: Result<T, IoError>) {
    let error = result.err().unwrap().to_string();
    assert!(error.ends_with(": the power of the simulated disk was cut"), "{error}");
}

/// Puts a new version in the place of the old one, as it should be done.
async fn replace(disk: &Disk, version: u8) -> Result<(), IoError> {
    let [temporary, path] = ["/t/s/tmp", "/t/s/data"].map(Path::new);
    if disk.exists(temporary) {
        disk.remove(temporary).await?;
    }
    let mut file = disk.create(temporary, CLASS).await?;
    file.append(vec![version; 700]).await?;
    file.append(vec![version; 900]).await?;
    file.sync().await?;
    disk.rename(temporary, path).await?;
    disk.sync_dir(Path::new("/t/s")).await
}

/// Writes two versions; how many are durable is noted as soon as it is known.
async fn two_versions(disk: &Disk, durable: &Cell<u8>) -> Result<(), IoError> {
    disk.create_dir_all(Path::new("/t/s")).await?;
    disk.sync_dir(Path::new("/")).await?;
    disk.sync_dir(Path::new("/t")).await?;
    for version in 1..=2 {
        replace(disk, version).await?;
        durable.set(version);
    }
    Ok(())
}

/// The number of the last operation of [`two_versions`].
const LAST: usize = 3 + 2 * 6 - 1;

/// Everything that is found.
type Found = BTreeMap<PathBuf, Vec<u8>>;

/// Cuts the power at an operation of [`two_versions`]: how many versions were durable then, and what is found.
/// `None` if there is no such operation.
fn cut(sim: SimOptions) -> Option<(u8, Found)> {
    run_simulated(sim, async |shard| {
        let (disk, durable) = (shard.disk(), Cell::new(0));
        let result = two_versions(disk, &durable).await;
        let simulated = disk.as_simulated().unwrap();
        if !simulated.has_crashed() {
            result.unwrap();
            return None;
        }
        expect_power_cut(result);
        simulated.restart();
        let mut found = Found::new();
        for path in disk.list(Path::new("/t/s")).unwrap_or_default() {
            let content = content(disk, &path).await.unwrap();
            found.insert(path, content);
        }
        // The disk is as good as new.
        disk.create_dir_all(Path::new("/t/s")).await.unwrap();
        replace(disk, 3).await.unwrap();
        Some((durable.get(), found))
    })
    .unwrap()
}

#[test]
fn a_cut_at_any_operation_leaves_the_old_or_the_new() {
    let (mut versions, mut last, mut cuts, mut partial) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
    for seed in 0..100 {
        let options = |number| SimOptions { seed, crash_at: Some(number), ..SimOptions::default() };
        for (number, (durable, found)) in (0..).map_while(|number| cut(options(number))).enumerate() {
            cuts += 1;
            let version = found.get(Path::new("/t/s/data")).map_or(0, |data| {
                assert!(data.len() == 1600 && data.iter().all(|byte| *byte == data[0]), "{data:?}");
                data[0]
            });
            assert!((durable..=durable + 1).contains(&version), "seed {seed}: {version} for {durable}");
            versions.insert((durable, version));
            last.extend((number == LAST).then_some(version));
            let temporary = found.get(Path::new("/t/s/tmp"));
            partial += usize::from(temporary.is_some_and(|data| data.len() < 1600));
        }
    }
    assert_eq!(cuts, 100 * (LAST + 1));
    assert_eq!(Vec::from_iter(last), [1, 2], "a sync that is cut may have done nothing");
    assert_eq!(Vec::from_iter(versions), [(0, 0), (0, 1), (1, 1), (1, 2)]);
    assert!(partial > 100, "{partial}");
}

#[test]
fn the_same_seed_loses_the_same() {
    let all = |seed| {
        let faults = SimOptions { seed, short_write_chance: 0.5, max_delay: 5, ..SimOptions::default() };
        let cuts = (0..).map_while(|number| cut(SimOptions { crash_at: Some(number), ..faults.clone() }));
        cuts.collect::<Vec<_>>()
    };
    assert!((0..20).all(|seed| all(seed) == all(seed)));
    assert_ne!(all(1), all(2));
}

#[test]
fn nothing_works_without_power_and_what_was_open_never_again() {
    run_simulated(SimOptions { crash_at: Some(4), ..SimOptions::default() }, async |shard| {
        let disk = shard.disk();
        let simulated = disk.as_simulated().unwrap();
        simulated.add_file("/d/a", vec![1; 10]);
        let [a, b, d] = ["/d/a", "/d/b", "/d"].map(Path::new);
        let old = disk.open(a, CLASS).await.unwrap();
        let mut new = disk.create(b, CLASS).await.unwrap();
        new.append(vec![2; 10]).await.unwrap();
        let mut other = disk.create(Path::new("/d/c"), CLASS).await.unwrap();
        let mut idle = disk.create(Path::new("/d/f"), CLASS).await.unwrap();
        assert!(!simulated.has_crashed());
        expect_power_cut(new.sync().await);

        assert!(simulated.has_crashed());
        assert!(disk.exists(a) && disk.exists(Path::new("/x")) && !disk.is_dir(d));
        expect_power_cut(disk.open(a, CLASS).await);
        expect_power_cut(disk.list(d));
        expect_power_cut(old.read_exact_at(0, 10).await);
        expect_power_cut(other.append(vec![3]).await);
        expect_power_cut(disk.create(Path::new("/d/e"), CLASS).await);
        expect_power_cut(disk.remove(a).await);
        assert_eq!(simulated.counters().operations, 5);

        simulated.restart();
        expect_power_cut(old.read_exact_at(0, 10).await);
        expect_power_cut(idle.sync().await);
        assert_eq!(content(disk, a).await.unwrap(), [1; 10]);
        assert!(disk.is_dir(d) && !disk.exists(Path::new("/x")));
    })
    .unwrap();
}

/// The length of `/a`, which has 10 durable bytes, and all files and folders, after a power cut at the
/// operation `change`.
fn interrupted(
    seed: u64,
    change: impl AsyncFnOnce(&Disk, &mut NewFile) -> Result<(), IoError>,
) -> (u64, String) {
    run_simulated(SimOptions { seed, crash_at: Some(4), ..SimOptions::default() }, async |shard| {
        let disk = shard.disk();
        let mut file = disk.create(Path::new("/a"), CLASS).await.unwrap();
        file.append(vec![1; 10]).await.unwrap();
        file.sync().await.unwrap();
        disk.sync_dir(Path::new("/")).await.unwrap();
        expect_power_cut(change(disk, &mut file).await);
        disk.as_simulated().unwrap().restart();
        let files = disk.as_simulated().unwrap().0.files.borrow();
        let len = files.file(Path::new("/a")).map_or(0, |content| content.len());
        let folders = ["/b", "/x", "/x/y", "/x/y/z"].into_iter().filter(|path| disk.exists(Path::new(path)));
        (len, folders.collect::<Vec<_>>().join(" "))
    })
    .unwrap()
}

#[test]
fn the_operation_that_is_cut_is_done_or_not_or_in_part() {
    let appended: Vec<u64> = (0..300)
        .map(|seed| interrupted(seed, async |_, file| file.append(vec![2; 1000]).await.map(drop)).0)
        .collect();
    assert!(appended.iter().all(|len| (10..=1010).contains(len)));
    assert!(appended.contains(&10) && appended.iter().filter(|len| (11..1010).contains(*len)).count() > 20);

    let removed =
        (0..100).map(|seed| interrupted(seed, async |disk, _| disk.remove(Path::new("/a")).await).0);
    assert_eq!(BTreeSet::from_iter(removed), BTreeSet::from([0, 10]));

    let folders = (0..300)
        .map(|seed| interrupted(seed, async |disk, _| disk.create_dir_all(Path::new("/x/y/z")).await).1);
    let all = ["", "/x", "/x /x/y", "/x /x/y /x/y/z"].map(str::to_owned);
    assert_eq!(BTreeSet::from_iter(folders), BTreeSet::from(all));
}

#[test]
fn what_is_under_way_when_the_power_goes_is_not_done_later() {
    for seed in 0..50 {
        let sim = SimOptions { seed, max_delay: 20, crash_at: Some(10), ..SimOptions::default() };
        run_simulated(sim, async |shard| {
            let (disk, simulated) = (shard.disk(), shard.disk().as_simulated().unwrap());
            let write = async |number: u64| {
                let mut file = disk.create(Path::new(&format!("/{number}")), CLASS).await?;
                file.append(vec![1; 10]).await?;
                if simulated.has_crashed() { Ok(()) } else { file.sync().await }
            };
            let ended = join_all((0..8).map(write)).await;
            assert!(ended.iter().filter(|result| result.is_err()).count() > 2);
            assert!(simulated.has_crashed());
            simulated.restart();
            assert!(!simulated.has_crashed());
        })
        .unwrap();
        let sim = SimOptions { seed, max_delay: 20, ..SimOptions::default() };
        run_simulated(sim, async |shard| {
            let (disk, simulated) = (shard.disk(), shard.disk().as_simulated().unwrap());
            // The power goes and comes back while a file is being made.
            let mut create = Box::pin(disk.create(Path::new("/a"), CLASS));
            let begun = poll_fn(|context| Poll::Ready(create.as_mut().poll(context))).await;
            simulated.restart();
            if begun.is_pending() {
                expect_power_cut(create.await);
                assert!(!disk.exists(Path::new("/a")));
            }
        })
        .unwrap();
    }
}

/// Files that change at random, and all that a power cut may leave of them.
#[derive(Default)]
struct Model {
    /// What a name may stand for after a power cut: from what is durable to what it is.
    names: BTreeMap<PathBuf, Vec<Option<usize>>>,
    /// All bytes of every file, and how many are synced.
    files: Vec<(Vec<u8>, usize)>,
    /// The files that are being written.
    open: Vec<(usize, NewFile)>,
}

impl Model {
    fn now(&self, path: &Path) -> Option<usize> {
        self.names.get(path).and_then(|states| *states.last().unwrap())
    }

    fn set(&mut self, path: &Path, file: Option<usize>) {
        self.names.entry(path.to_owned()).or_insert_with(|| vec![None]).push(file);
    }

    /// Makes a file that can be told from all others even if it loses what was not synced.
    async fn create(&mut self, disk: &Disk, path: &Path) {
        let Ok(mut new) = disk.create(path, CLASS).await else { return };
        let number = self.files.len();
        new.append(vec![number as u8]).await.unwrap();
        new.sync().await.unwrap();
        self.files.push((vec![number as u8], 1));
        self.open.push((number, new));
        self.set(path, Some(number));
    }

    async fn append(&mut self, random: &mut Random, syncs: bool) {
        if self.open.is_empty() {
            return;
        }
        let at = random.below(self.open.len() as u64) as usize;
        let (number, new) = &mut self.open[at];
        let (bytes, synced) = &mut self.files[*number];
        if syncs {
            new.sync().await.unwrap();
            *synced = bytes.len();
        } else {
            let more = vec![*number as u8; random.below(2000) as usize];
            bytes.extend_from_slice(&more);
            new.append(more).await.unwrap();
        }
    }

    async fn rename(&mut self, disk: &Disk, from: &Path, to: &Path) {
        if disk.rename(from, to).await.is_ok() && from != to {
            let file = self.now(from);
            self.set(to, file);
            self.set(from, None);
        }
    }

    async fn remove(&mut self, disk: &Disk, path: &Path) {
        if disk.remove(path).await.is_ok() {
            self.set(path, None);
        }
    }

    async fn sync_dir(&mut self, disk: &Disk, dir: &Path) {
        disk.sync_dir(dir).await.unwrap();
        for (_, states) in self.names.iter_mut().filter(|(path, _)| path.parent() == Some(dir)) {
            states.drain(..states.len() - 1);
        }
    }

    /// Compares with what is on the disk now; how many files have lost something.
    async fn check(&self, disk: &Disk) -> usize {
        let (mut found, mut damaged) = (BTreeSet::new(), 0);
        for (path, states) in &self.names {
            let content = content(disk, path).await;
            let number = content.as_ref().map(|content| usize::from(content[0]));
            assert!(states.contains(&number), "{}: {number:?} of {states:?}", path.display());
            let Some(content) = content else { continue };
            let (bytes, synced) = &self.files[usize::from(content[0])];
            assert!(content.len() <= bytes.len() && content[..*synced] == bytes[..*synced]);
            damaged += usize::from(content != *bytes);
            found.extend(number);
        }
        for number in 0..self.files.len() {
            let stays = self.names.values().any(|states| states[0] == Some(number));
            let is_there = |states: &Vec<_>| states.last() == Some(&Some(number));
            // Renamed or not: a file that was durable and is there has a name still.
            assert!(
                !stays || found.contains(&number) || !self.names.values().any(is_there),
                "{number} is lost"
            );
        }
        damaged
    }
}

#[test]
fn what_was_made_durable_survives_whatever_was_done() {
    let mut damaged = 0;
    for seed in 0..400 {
        let sim = SimOptions { seed, short_write_chance: 0.2, ..SimOptions::default() };
        damaged += run_simulated(sim, async |shard| {
            let (disk, mut random) = (shard.disk(), Random::new(!seed));
            for dir in ["/d", "/e"] {
                disk.create_dir_all(Path::new(dir)).await.unwrap();
            }
            disk.sync_dir(Path::new("/")).await.unwrap();
            let paths = ["/d/a", "/d/b", "/d/c", "/e/a", "/e/b"].map(Path::new);
            let mut model = Model::default();
            for _ in 0..random.below(80) {
                let [path, other] = [(); 2].map(|()| paths[random.below(5) as usize]);
                match random.below(12) {
                    0..3 => model.create(disk, path).await,
                    3..5 => model.append(&mut random, false).await,
                    5 => model.append(&mut random, true).await,
                    6..9 => model.rename(disk, path, other).await,
                    9 => model.remove(disk, path).await,
                    _ => model.sync_dir(disk, path.parent().unwrap()).await,
                }
            }
            assert_eq!(model.check(disk).await, 0, "nothing is lost without a power cut");
            disk.as_simulated().unwrap().restart();
            model.check(disk).await
        })
        .unwrap();
    }
    assert!(damaged > 50, "{damaged}");
}
