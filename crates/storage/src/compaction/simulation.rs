//! Tables of nothing but keys and their sizes: flushed, merged as the strategy says, until nothing is to be done.
//!
//! What is counted is exact: how many SSTables there are, how often a byte was written.

use std::collections::{BTreeMap, BTreeSet};

use model::Token;
use model::time::NO_DELETION_TIME;
use proptest::prelude::*;
use sstable::parts::statistics::DropTimes;

use super::leveled::{HIGHEST_LEVEL, max_bytes_of_level, place};
use super::*;

/// Seconds since the epoch.
pub(super) const NOW: i64 = 1_700_000_000;

const MB: u64 = 1 << 20;

static NONE: BTreeSet<Generation> = BTreeSet::new();

/// The compaction of this class, with ten days of grace.
pub(super) fn compaction(class: &str, options: &[(&str, &str)]) -> Compaction {
    Compaction::parse([("class", class)].into_iter().chain(options.iter().copied())).unwrap()
}

/// A new SSTable of 1 MiB, in which nothing is deleted.
pub(super) fn facts(number: u64) -> SSTableFacts {
    SSTableFacts {
        generation: number.to_string(),
        bytes_on_disk: MB,
        level: 0,
        min_timestamp: 0,
        max_timestamp: 0,
        min_local_deletion_time: NO_DELETION_TIME,
        max_local_deletion_time: NO_DELETION_TIME,
        first_token: -(1 << 62),
        last_token: 1 << 62,
        drop_times: DropTimes::default(),
        cells: 0,
        partitions: 0,
        written_at: NOW * 1000 + number as i64,
        repaired_at: 0,
        pending_repair: None,
    }
}

/// These SSTables, on none of which anybody is at work, with ten days of grace and empty memtables.
pub(super) fn view(all: &[SSTableFacts]) -> View<'_> {
    View::new(all, &NONE, NOW, 864_000, None)
}

/// Keys with the bytes that they need.
type Keys = BTreeMap<Token, u64>;

struct Simulation {
    compaction: Compaction,
    facts: Vec<SSTableFacts>,
    keys: BTreeMap<Generation, Keys>,
    busy: BTreeSet<Generation>,
    now: i64,
    next: u64,
    random: u64,
    flushed: u64,
    written: u64,
    /// Those that went without being read.
    unread: usize,
}

impl Simulation {
    fn new(class: &str, options: &[(&str, &str)], seed: u64) -> Simulation {
        Simulation {
            compaction: compaction(class, options),
            facts: Vec::new(),
            keys: BTreeMap::new(),
            busy: BTreeSet::new(),
            now: NOW,
            next: 0,
            random: seed.wrapping_mul(2).wrapping_add(1),
            flushed: 0,
            written: 0,
            unread: 0,
        }
    }

    fn random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random ^ self.random >> 32
    }

    /// A memtable of so many keys of 1 MiB, anywhere, with data of the last hour.
    fn flush(&mut self, keys: usize, ttl: Option<i64>) {
        let keys: Keys = (0..keys).map(|_| (self.random().rotate_left(32) as i64, MB)).collect();
        self.flushed += keys.values().sum::<u64>();
        let of = SSTableFacts {
            min_timestamp: (self.now - 3600) * 1_000_000,
            max_timestamp: self.now * 1_000_000,
            max_local_deletion_time: ttl.map_or(NO_DELETION_TIME, |ttl| self.now + ttl),
            ..facts(0)
        };
        self.add(of, keys);
    }

    /// A new SSTable of these keys, with all else as it is here.
    fn add(&mut self, of: SSTableFacts, keys: Keys) {
        self.next += 1;
        let sstable = SSTableFacts {
            generation: self.next.to_string(),
            bytes_on_disk: keys.values().sum(),
            first_token: *keys.keys().next().unwrap(),
            last_token: *keys.keys().next_back().unwrap(),
            written_at: self.now * 1000 + self.next as i64,
            ..of
        };
        self.written += sstable.bytes_on_disk;
        self.keys.insert(sstable.generation.clone(), keys);
        self.facts.push(sstable);
    }

    fn view(&self) -> View<'_> {
        View::new(&self.facts, &self.busy, self.now, 0, None)
    }

    fn begin(&mut self) -> Option<Job> {
        let job = self.compaction.next(&self.view())?;
        let inputs: Vec<&Generation> = job.inputs.iter().chain(&job.expired).collect();
        assert!(!inputs.is_empty() && inputs.iter().all(|input| !self.busy.contains(*input)), "{job:?}");
        assert!(job.inputs.len() <= 32 || matches!(job.why, Reason::Level(_)), "{job:?}");
        self.busy.extend(inputs.into_iter().cloned());
        Some(job)
    }

    fn finish(&mut self, job: &Job) {
        let (mut merged, mut of) = (Keys::new(), None::<SSTableFacts>);
        for input in &job.inputs {
            merged.extend(self.keys.remove(input).unwrap());
            let input = self.take(input);
            of = Some(match of {
                None => input,
                Some(of) => SSTableFacts {
                    min_timestamp: of.min_timestamp.min(input.min_timestamp),
                    max_timestamp: of.max_timestamp.max(input.max_timestamp),
                    max_local_deletion_time: of.max_local_deletion_time.max(input.max_local_deletion_time),
                    ..of
                },
            });
        }
        for expired in &job.expired {
            self.keys.remove(expired).unwrap();
            self.take(expired);
            self.unread += 1;
        }
        let (mut finished, mut next) = (Vec::new(), Keys::new());
        for (token, bytes) in merged {
            next.insert(token, bytes);
            let len = next.values().sum::<u64>();
            if job.max_output_bytes.is_some_and(|max| len >= max) {
                let level = job.level_of_next(&finished);
                self.add(SSTableFacts { level, ..of.clone().unwrap() }, std::mem::take(&mut next));
                finished.push(len);
            }
        }
        if !next.is_empty() {
            let level = job.level_of_next(&finished);
            self.add(SSTableFacts { level, ..of.unwrap() }, next);
        }
        self.busy.retain(|busy| !job.inputs.contains(busy) && !job.expired.contains(busy));
        self.assert_levels();
    }

    fn take(&mut self, generation: &Generation) -> SSTableFacts {
        let at = self.facts.iter().position(|sstable| sstable.generation == *generation).unwrap();
        self.facts.remove(at)
    }

    /// No SSTable overlaps another one of its level.
    fn assert_levels(&self) {
        for (level, sstables) in (0..).zip(place(&self.view())) {
            assert!(sstables.iter().all(|sstable| sstable.level == level), "level {level}");
        }
    }

    /// Does one job after the other, until there is none; how many there were.
    fn rest(&mut self) -> usize {
        let mut jobs = 0;
        while let Some(job) = self.begin() {
            self.finish(&job);
            jobs += 1;
            assert!(jobs < 10_000, "it comes to no end: {job:?}");
        }
        // Cassandra's estimate counts what is too much for level 0 even where a single SSTable is all there is.
        let pending = self.compaction.pending(&self.view());
        assert!(pending == 0 || self.bytes_of_level(0) > 0, "{pending}");
        jobs
    }

    fn write_amplification(&self) -> f64 {
        self.written as f64 / self.flushed as f64
    }

    fn bytes_of_level(&self, level: u32) -> u64 {
        self.facts.iter().filter(|sstable| sstable.level == level).map(|sstable| sstable.bytes_on_disk).sum()
    }
}

#[test]
fn by_size_each_byte_is_written_once_a_tier() {
    let mut simulation = Simulation::new("SizeTieredCompactionStrategy", &[("min_sstable_size", "0")], 1);
    for flushes in 1..=1024 {
        simulation.flush(16, None);
        simulation.rest();
        // Three of each tier are left at the most.
        let tiers = f64::from(flushes).log(4.0).floor() as usize + 1;
        assert!(simulation.facts.len() <= 3 * tiers, "{} after {flushes}", simulation.facts.len());
    }
    // All are one in the end, after five merges.
    assert_eq!(simulation.facts.len(), 1);
    assert_eq!(simulation.write_amplification(), 6.0);
}

#[test]
fn levels_hold_what_they_may_and_writes_are_bounded() {
    let options = [("sstable_size_in_mb", "16"), ("fanout_size", "4")];
    let mut simulation = Simulation::new("LeveledCompactionStrategy", &options, 2);
    for _ in 0..600 {
        simulation.flush(24, None);
        simulation.rest();
        assert!(simulation.bytes_of_level(0) <= 64 * MB, "{}", simulation.bytes_of_level(0));
        for level in 1..HIGHEST_LEVEL {
            let max = max_bytes_of_level(level, 4, 16 * MB);
            assert!(simulation.bytes_of_level(level) as f64 <= max as f64 * 1.001, "level {level}");
        }
    }
    let levels = simulation.facts.iter().map(|sstable| sstable.level).max().unwrap();
    assert_eq!(levels, 5, "14400 MiB, of 64, 256, 1024, 4096 and 16384");
    // Per level a byte is written with those that it overlaps: about one more than the fanout, less in levels half full.
    let amplification = simulation.write_amplification();
    assert!((8.0..18.0).contains(&amplification), "{amplification}");
    assert!(simulation.facts.iter().all(|sstable| sstable.bytes_on_disk <= 16 * MB));
}

#[test]
fn a_burst_is_merged_by_size_until_the_levels_have_caught_up() {
    let options = [("sstable_size_in_mb", "16"), ("fanout_size", "4")];
    let mut simulation = Simulation::new("LeveledCompactionStrategy", &options, 3);
    for _ in 0..40 {
        simulation.flush(24, None);
        simulation.rest();
    }
    (0..200).for_each(|_| simulation.flush(24, None));
    // Level 1 is too full once; then new ones come first.
    let mut reasons = Vec::new();
    while let Some(job) = simulation.begin() {
        reasons.push(job.why);
        simulation.finish(&job);
    }
    assert!(reasons.contains(&Reason::Backlog), "{reasons:?}");
    assert!(simulation.facts.iter().filter(|sstable| sstable.level == 0).count() < 2);
    assert_eq!(simulation.compaction.pending(&simulation.view()), 0);
}

#[test]
fn windows_are_one_sstable_each_and_go_unread() {
    let mut simulation = Simulation::new("TimeWindowCompactionStrategy", &[("min_sstable_size", "0")], 4);
    const HOUR: i64 = 3600;
    for hour in 0..24 * 20 {
        simulation.now = NOW / 86_400 * 86_400 + hour * HOUR + 1800;
        simulation.flush(16, Some(5 * 24 * HOUR));
        simulation.rest();
        let days = (hour / 24 + 1).min(7) as usize;
        assert!(simulation.facts.len() <= days + 9, "{} after {hour} hours", simulation.facts.len());
    }
    assert!(simulation.unread >= 13, "{} days went unread", simulation.unread);
    let amplification = simulation.write_amplification();
    assert!(amplification <= 4.0, "{amplification}");
}

#[test]
fn a_major_compaction_leaves_one_or_fills_the_levels() {
    let mut simulation = Simulation::new("SizeTieredCompactionStrategy", &[], 5);
    for _ in 0..7 {
        simulation.flush(64, None);
    }
    let jobs = simulation.compaction.major(&simulation.view());
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    simulation.finish(job);
    assert_eq!((simulation.facts.len(), job.why), (1, Reason::Major));

    let options = [("sstable_size_in_mb", "16"), ("fanout_size", "4")];
    let mut simulation = Simulation::new("LeveledCompactionStrategy", &options, 6);
    for _ in 0..50 {
        simulation.flush(24, None);
    }
    let jobs = simulation.compaction.major(&simulation.view());
    simulation.finish(&jobs[0]);
    let sizes: Vec<u64> = (0..5).map(|level| simulation.bytes_of_level(level) / MB).collect();
    // Each level gets one SSTable more than it may have, as in Cassandra.
    assert_eq!(sizes, [0, 80, 272, 848, 0]);
    assert!(simulation.rest() > 0 && simulation.bytes_of_level(0) == 0);
}

#[test]
fn what_is_repaired_is_kept_apart() {
    let mut all: Vec<SSTableFacts> = (0..8).map(facts).collect();
    all.iter_mut().skip(4).for_each(|sstable| sstable.repaired_at = 9);
    all[7].pending_repair = Some([1; 16]);
    let by_size = compaction("SizeTieredCompactionStrategy", &[]);
    assert_eq!(by_size.next(&view(&all)).unwrap().inputs, ["0", "1", "2", "3"]);
    assert_eq!(by_size.next(&view(&all[1..])), None);
    let majors: Vec<_> = by_size.major(&view(&all)).into_iter().map(|job| job.inputs.len()).collect();
    assert_eq!(majors, [4, 3, 1]);
    let off = compaction("SizeTieredCompactionStrategy", &[("enabled", "false")]);
    assert_eq!(off.next(&view(&all)), None);
}

#[test]
fn reasons_are_told() {
    let reasons =
        [Reason::Level(3), Reason::Window(86_400), Reason::Expired].map(|reason| reason.to_string());
    let expected = [
        "level 3 is too full",
        "they are of the time window that begins at second 86400",
        "all in them has expired",
    ];
    assert_eq!(reasons, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Flushes come at any time, and several jobs are under way at once.
    #[test]
    fn any_order_of_jobs_keeps_the_levels(
        class in prop::sample::select(vec!["LeveledCompactionStrategy", "SizeTieredCompactionStrategy"]),
        seed in any::<u64>(), steps in prop::collection::vec((0..4u8, 1..40usize), 1..150),
    ) {
        let options: &[_] = match class {
            "LeveledCompactionStrategy" => &[("sstable_size_in_mb", "8"), ("fanout_size", "3")],
            _ => &[],
        };
        let mut simulation = Simulation::new(class, options, seed);
        let mut jobs: Vec<Job> = Vec::new();
        for (step, size) in steps {
            match step {
                0 => simulation.flush(size, None),
                1 if !jobs.is_empty() => {
                    let job = jobs.swap_remove(size % jobs.len());
                    simulation.finish(&job);
                }
                _ if jobs.len() < 4 => jobs.extend(simulation.begin()),
                _ => {}
            }
        }
        jobs.iter().for_each(|job| simulation.finish(job));
        simulation.rest();
        let keys = simulation.keys.values().map(Keys::len).sum::<usize>() as u64;
        prop_assert_eq!(keys * MB, simulation.flushed, "nothing is lost");
    }
}
