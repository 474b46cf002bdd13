//! Power cuts at every operation, and disks that fail: what was acknowledged is replayed, and nothing else.

use std::collections::BTreeMap;

use runtime::{Shard, SimOptions, join_all, run_simulated, sleep};

use super::tests::{A, B, Entry, batch, open, payload, replay_all};
use super::*;

const FOLDER: &str = "/data/log";

/// What is known of the records of one session.
#[derive(Default)]
struct Known {
    /// Those that were handed to `append`, by their number.
    tried: RefCell<BTreeMap<usize, (TableId, Vec<u8>)>>,
    /// Those for which `append` returned.
    returned: RefCell<BTreeMap<LogPosition, usize>>,
    /// Up to where it was known that all is durable.
    durable: Cell<LogPosition>,
    /// Up to where table A was flushed.
    flushed: Cell<LogPosition>,
}

/// How a session goes.
#[derive(Clone, Copy)]
struct Session {
    options: CommitLogOptions,
    /// The number of the first record.
    first: usize,
    records: usize,
    /// How many appends are under way at once.
    at_once: usize,
    flushes: bool,
}

const fn session(options: CommitLogOptions, first: usize) -> Session {
    Session { options, first, records: 24, at_once: 4, flushes: false }
}

impl Known {
    /// Opens a log, appends and closes it, or goes until something fails.
    async fn run(&self, shard: &Shard, session: Session) -> Result<()> {
        let log = open(shard, Path::new(FOLDER), session.options).await?;
        self.durable.set(log.durable_position());
        let writers = (0..session.at_once).map(|writer| self.append_some(&log, session, writer));
        let results = join_all(writers).await;
        self.durable.set(log.durable_position());
        results.into_iter().collect::<Result<()>>()?;
        log.close().await?;
        self.durable.set(log.durable_position());
        Ok(())
    }

    async fn append_some(&self, log: &CommitLog, session: Session, writer: usize) -> Result<()> {
        for number in (session.first + writer..session.first + session.records).step_by(session.at_once) {
            let table = if number.is_multiple_of(3) { B } else { A };
            // Distinct for every number, of none to three sectors.
            let mut bytes = payload(number, number * 67 % 1300);
            bytes.extend(number.to_be_bytes());
            self.tried.borrow_mut().insert(number, (table, bytes.clone()));
            let end = log.append(table, &bytes).await?;
            self.returned.borrow_mut().insert(end, number);
            if session.flushes && number.is_multiple_of(5) {
                log.flushed(A, end);
                self.flushed.set(self.flushed.get().max(end));
            }
            if let SyncMode::Periodic { period } = session.options.sync {
                sleep(period / 16).await;
            }
            self.durable.set(log.durable_position());
        }
        Ok(())
    }

    /// Checks what of this session was found: only what was tried, each once; and all that was promised.
    fn check(&self, found: &[Entry], sync: SyncMode) {
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "positions ascend");
        let (tried, returned) = (self.tried.borrow(), self.returned.borrow());
        let mut numbers = BTreeMap::new();
        for (end, table, bytes) in found {
            let number = usize::from_be_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
            let (its_table, its_bytes) =
                tried.get(&number).expect("nothing is found that was never appended");
            assert!(table == its_table && bytes == its_bytes, "record {number} is as it was appended");
            assert!(numbers.insert(number, *end).is_none(), "record {number} is found once");
        }
        for (end, number) in returned.iter() {
            let is_flushed = tried[number].0 == A && *end <= self.flushed.get();
            let is_promised = sync == SyncMode::Batch || *end <= self.durable.get();
            match numbers.get(number) {
                Some(place) => assert_eq!(place, end, "record {number} is where it was said to be"),
                None => assert!(is_flushed || !is_promised, "record {number} is lost"),
            }
        }
        if matches!(sync, SyncMode::Periodic { .. }) && self.flushed.get() == LogPosition::default() {
            assert!(found.iter().map(|(end, ..)| end).eq(returned.keys().take(found.len())), "a prefix");
        }
    }
}

/// Replays in both ways. What a crash leaves is no damage, and who salvages finds no less.
async fn replay_both(shard: &Shard) -> (Vec<Entry>, Replayed) {
    let replay = async |mode| replay_all(shard.disk(), Path::new(FOLDER), mode).await.unwrap();
    let (found, replayed) = replay(OnCorruption::Stop).await;
    let (salvaged, told) = replay(OnCorruption::Salvage).await;
    assert_eq!((&replayed.damage, &told.damage), (&Vec::new(), &Vec::new()));
    assert!(found.iter().all(|entry| salvaged.binary_search(entry).is_ok()));
    assert!(replayed.torn.len() <= told.torn.len());
    (found, replayed)
}

/// The entries that are not those of before, which have to be there still.
fn newer<'a>(found: &'a [Entry], before: &[Entry]) -> &'a [Entry] {
    let (old, new) = found.split_at(before.len());
    assert!(old == before, "what was found once is found again");
    new
}

/// What a seed does beside cutting the power.
fn faults(seed: u64) -> SimOptions {
    SimOptions {
        seed,
        short_write_chance: [0.0, 0.3][(seed % 2) as usize],
        max_delay: [0, 0, 20, 400][(seed % 4) as usize],
        short_read_chance: 0.1,
        ..SimOptions::default()
    }
}

fn options(sync: SyncMode) -> CommitLogOptions {
    CommitLogOptions { sync, ..batch(2500) }
}

/// Cuts the power at an operation of a session, then at one of the next, and goes on. Whether there was the first.
fn cut(seed: u64, operation: u64, sync: SyncMode, flushes: bool) -> bool {
    run_simulated(faults(seed), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file("/data/another", Vec::new());
        let (mut before, mut cuts) = (Vec::new(), 0);
        // The second session ends a little later than the first did, so that it has a tail of another kind.
        for (round, crash_at) in [operation, operation * 7 % 40].into_iter().enumerate() {
            let crash_at = Some(disk.counters().operations + crash_at);
            disk.set_options(SimOptions { crash_at, ..faults(seed + round as u64) });
            let known = Known::default();
            let session = Session { flushes, ..session(options(sync), round * 100) };
            let result = known.run(&shard, session).await;
            assert_eq!(result.is_err(), disk.has_crashed());
            cuts += u64::from(disk.has_crashed()) << round;
            // Removals of the old log find out that it is gone.
            sleep(Duration::from_secs(1)).await;
            disk.set_options(faults(seed));
            disk.restart();
            let (found, replayed) = replay_both(&shard).await;
            assert!(replayed.torn.len() <= round + 1);
            known.check(newer(&found, &before), sync);
            before = found;
        }
        let earlier = EarlierLog::find(shard.disk(), Path::new(FOLDER)).unwrap();
        let known = Known::default();
        known.run(&shard, session(options(sync), 200)).await.unwrap();
        earlier.remove(shard.disk()).await.unwrap();
        disk.restart();
        let (found, replayed) = replay_both(&shard).await;
        known.check(&found, SyncMode::Batch);
        assert_eq!((found.len(), replayed.torn.len()), (24, 0));
        cuts & 1 == 1
    })
    .unwrap()
}

#[test]
fn what_was_acknowledged_survives_a_cut_at_any_operation() {
    for seed in 0..24 {
        let cuts = (0..).take_while(|&operation| cut(seed, operation, SyncMode::Batch, false)).count();
        assert!(cuts > 50, "{cuts} operations");
    }
}

#[test]
fn what_was_synced_survives_a_cut_at_any_operation() {
    for seed in 0..24 {
        let sync = SyncMode::Periodic { period: Duration::from_millis(if seed < 12 { 8 } else { 200 }) };
        let cuts = (0..).take_while(|&operation| cut(seed, operation, sync, false)).count();
        assert!(cuts > 30, "{cuts} operations");
    }
}

#[test]
fn what_is_not_flushed_survives_a_cut_at_any_operation() {
    for seed in 0..12 {
        let cuts = (0..).take_while(|&operation| cut_while_flushing(seed, operation)).count();
        assert!(cuts > 50, "{cuts} operations");
    }
}

/// The same for one session in which segments are removed.
fn cut_while_flushing(seed: u64, operation: u64) -> bool {
    run_simulated(faults(seed), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file("/data/another", Vec::new());
        disk.set_options(SimOptions { crash_at: Some(operation), ..faults(seed) });
        let known = Known::default();
        let session = Session { flushes: true, ..session(options(SyncMode::Batch), 0) };
        let result = known.run(&shard, session).await;
        assert!(result.is_ok() || disk.has_crashed());
        let has_crashed = disk.has_crashed();
        sleep(Duration::from_secs(1)).await;
        disk.set_options(faults(seed));
        disk.restart();
        let (found, _) = replay_both(&shard).await;
        known.check(&found, SyncMode::Batch);
        has_crashed
    })
    .unwrap()
}

/// Runs on a disk that fails somewhere, opens the log again, and cuts the power in the end. Whether something failed.
fn fail(faulty: SimOptions, sync: SyncMode) -> bool {
    run_simulated(faults(faulty.seed), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file("/data/another", Vec::new());
        disk.set_options(faulty.clone());
        let known = Known::default();
        let result = known.run(&shard, session(options(sync), 0)).await;
        assert!(matches!(&result, Ok(()) | Err(Error::LogFailed(_) | Error::Io(_))), "{result:?}");
        disk.set_options(faults(faulty.seed));
        let (before, _) = replay_both(&shard).await;
        known.check(&before, sync);
        let again = Known::default();
        again.run(&shard, session(options(sync), 100)).await.unwrap();
        let (found, _) = replay_both(&shard).await;
        again.check(newer(&found, &before), SyncMode::Batch);
        disk.restart();
        let (found, _) = replay_both(&shard).await;
        again.check(&found[found.len() - 24..], SyncMode::Batch);
        known.check(&found[..found.len() - 24], sync);
        result.is_err()
    })
    .unwrap()
}

#[test]
fn what_was_acknowledged_survives_operations_that_fail() {
    let mut failures = 0;
    for seed in 0..400 {
        let faulty = SimOptions { write_error_chance: 0.02, ..faults(seed) };
        let period = Duration::from_millis(10);
        let sync = if seed % 3 == 0 { SyncMode::Periodic { period } } else { SyncMode::Batch };
        failures += usize::from(fail(faulty, sync));
    }
    assert!((100..390).contains(&failures), "{failures} of 400 failed");
}

#[test]
fn what_was_acknowledged_survives_a_full_disk() {
    let mut failures = 0;
    for (seed, capacity) in (0..20_000).step_by(97).enumerate() {
        let faulty = SimOptions { capacity: Some(capacity), ..faults(seed as u64) };
        failures += usize::from(fail(faulty, SyncMode::Batch));
    }
    assert!((100..206).contains(&failures), "{failures} sizes of disk were too small");
}

#[test]
fn a_log_that_is_dropped_is_like_one_that_lost_power() {
    for seed in 0..50 {
        run_simulated(SimOptions { max_delay: 100, ..faults(seed) }, async |shard| {
            let disk = shard.disk().as_simulated().unwrap();
            disk.add_file("/data/another", Vec::new());
            let known = Known::default();
            let running = known.run(&shard, session(options(SyncMode::Batch), 0));
            runtime::timeout(Duration::from_micros(seed * 40), running).await;
            // What was under way ends, into the old segment.
            let again = Known::default();
            again.run(&shard, session(options(SyncMode::Batch), 100)).await.unwrap();
            disk.restart();
            let (found, _) = replay_both(&shard).await;
            let (first, second) = found.split_at(found.len() - 24);
            known.check(first, SyncMode::Batch);
            again.check(second, SyncMode::Batch);
        })
        .unwrap();
    }
}
