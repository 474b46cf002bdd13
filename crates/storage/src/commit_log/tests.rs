//! What the log does while all goes well: order, durability, group commit, segments, pressure, and times.

use std::rc::Rc;

use runtime::{
    Shard, ShardOptions, SimOptions, join_all, run, run_simulated, sleep, spawn, timeout, yield_now,
};

use super::*;

/// What was appended or replayed: the end, the table, the payload.
pub(super) type Entry = (LogPosition, TableId, Vec<u8>);

pub(super) const A: TableId = TableId([0xA; 16]);
pub(super) const B: TableId = TableId([0xB; 16]);

pub(super) fn batch(segment_size: usize) -> CommitLogOptions {
    CommitLogOptions { sync: SyncMode::Batch, segment_size, ..CommitLogOptions::default() }
}

fn periodic(period: Duration) -> CommitLogOptions {
    CommitLogOptions { sync: SyncMode::Periodic { period }, ..CommitLogOptions::default() }
}

pub(super) async fn open(shard: &Shard, folder: &Path, options: CommitLogOptions) -> Result<CommitLog> {
    CommitLog::open(shard.disk(), shard.clock(), folder, options).await
}

/// All that is found, in its order.
pub(super) async fn replay_all(
    disk: &Disk,
    folder: &Path,
    on_corruption: OnCorruption,
) -> Result<(Vec<Entry>, Replayed)> {
    let mut entries = Vec::new();
    let log = EarlierLog::find(disk, folder)?;
    let replayed = log
        .reader(disk, on_corruption)
        .replay(async |end, table, payload: &[u8]| {
            entries.push((end, table, payload.to_vec()));
            Ok(())
        })
        .await?;
    let bytes: usize = entries.iter().map(|(.., payload)| payload.len()).sum();
    assert_eq!((replayed.records, replayed.bytes), (entries.len() as u64, bytes as u64));
    Ok((entries, replayed))
}

/// The segments in a folder.
pub(super) fn segment_files(disk: &Disk, folder: &Path) -> Vec<PathBuf> {
    EarlierLog::find(disk, folder).unwrap().paths().map(Path::to_path_buf).collect()
}

/// A payload that tells which one it is.
pub(super) fn payload(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at) as u8).collect()
}

fn simulated(main: impl AsyncFnOnce(Shard, &Path)) {
    run_simulated(SimOptions::default(), async |shard| main(shard, Path::new("/log")).await).unwrap();
}

fn everywhere(main: impl AsyncFn(Shard, &Path) + Send + Sync) {
    for io_uring in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let options = ShardOptions { io_uring, ..ShardOptions::default() };
        run(options, async |shard| main(shard, &folder.path().join("a/log")).await).unwrap();
    }
    simulated(&main);
}

#[test]
fn what_is_appended_is_replayed_in_order() {
    everywhere(async |shard, folder| {
        let mut expected = Vec::new();
        for (session, options) in [batch(1000), periodic(Duration::from_secs(10))].into_iter().enumerate() {
            let log = open(&shard, folder, options).await.unwrap();
            let mut last = log.position();
            for number in 0..40 {
                let (table, payload) = ([A, B][number % 2], payload(number + session, number * 7));
                let end = log.append(table, &payload).await.unwrap();
                assert!(end > last && end == log.position());
                assert!(options.sync != SyncMode::Batch || log.durable_position() == end);
                last = end;
                expected.push((end, table, payload));
            }
            log.close().await.unwrap();
            log.close().await.unwrap();
            assert!(matches!(log.append(A, b"late").await, Err(Error::Invalid(_))));
            assert_eq!(log.durable_position(), last);
        }
        assert!(expected.is_sorted());
        for on_corruption in [OnCorruption::Stop, OnCorruption::Salvage] {
            let (found, replayed) = replay_all(shard.disk(), folder, on_corruption).await.unwrap();
            assert!(found == expected);
            assert!(replayed.torn.is_empty() && replayed.damage.is_empty());
            let segments = segment_files(shard.disk(), folder);
            assert!(segments.len() > 5 && segments.is_sorted());
            assert_eq!(shard.disk().list(folder).unwrap(), segments);
        }
    });
}

#[test]
fn much_is_made_durable_while_more_comes() {
    everywhere(async |shard, folder| {
        let options = CommitLogOptions { segment_size: 1 << 20, ..periodic(Duration::from_secs(3600)) };
        let log = open(&shard, folder, options).await.unwrap();
        let first = log.position();
        for number in 0..40 {
            log.append(A, &payload(number, 16 << 10)).await.unwrap();
        }
        while log.durable_position() == first {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(log.durable_position().segment, first.segment, "and not as the segment ends");
        log.close().await.unwrap();
    });
}

#[test]
fn a_folder_that_is_not_there_has_nothing_to_replay() {
    simulated(async |shard, folder| {
        let found = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
        assert_eq!(found, (Vec::new(), Replayed::default()));
        EarlierLog::find(shard.disk(), folder).unwrap().remove(shard.disk()).await.unwrap();
    });
}

#[test]
fn an_error_of_who_replays_ends_it() {
    simulated(async |shard, folder| {
        let log = open(&shard, folder, batch(1000)).await.unwrap();
        log.append(A, b"1").await.unwrap();
        log.append(A, b"2").await.unwrap();
        let mut count = 0;
        let earlier = EarlierLog::find(shard.disk(), folder).unwrap();
        let mut reader = earlier.reader(shard.disk(), OnCorruption::Salvage);
        let result = reader.replay(async |_, _, _: &[u8]| {
            count += 1;
            Err(Error::Invalid("no such table".to_owned()))
        });
        let told = result.await.unwrap_err().to_string();
        assert!(told.contains(".log: corrupt at offset ") && told.ends_with(": no such table"), "{told}");
        assert_eq!(count, 1);
    });
}

#[test]
fn one_segment_is_read_once_however_often_it_is_gone_through() {
    simulated(async |shard, folder| {
        let log = open(&shard, folder, batch(1000)).await.unwrap();
        log.append(A, b"1").await.unwrap();
        let earlier = EarlierLog::find(shard.disk(), folder).unwrap();
        let mut reader = earlier.reader(shard.disk(), OnCorruption::Stop);
        let before = shard.disk().stats().class(COMMIT_LOG_IO).requests;
        for _ in 0..2 {
            assert_eq!(reader.replay(async |_, _, _: &[u8]| Ok(())).await.unwrap().records, 1);
        }
        assert_eq!(shard.disk().stats().class(COMMIT_LOG_IO).requests - before, 1);
    });
}

#[test]
fn other_files_are_left_alone() {
    simulated(async |shard, folder| {
        let disk = shard.disk().as_simulated().unwrap();
        let others = ["notes.txt", "commitlog-1.log", "commitlog-+0000000000000000001.log"];
        for name in others {
            disk.add_file(folder.join(name), b"something else".to_vec());
        }
        let log = open(&shard, folder, batch(1000)).await.unwrap();
        log.append(A, b"1").await.unwrap();
        log.close().await.unwrap();
        let (found, _) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
        let earlier = EarlierLog::find(shard.disk(), folder).unwrap();
        assert_eq!((found.len(), earlier.paths().count()), (1, 1));
        earlier.remove(shard.disk()).await.unwrap();
        earlier.remove(shard.disk()).await.unwrap();
        assert_eq!(shard.disk().list(folder).unwrap().len(), 3);
    });
}

#[test]
fn numbers_ascend_though_segments_are_removed() {
    simulated(async |shard, folder| {
        let mut last = LogPosition::default();
        for _ in 0..3 {
            let earlier = EarlierLog::find(shard.disk(), folder).unwrap();
            let log = open(&shard, folder, batch(1000)).await.unwrap();
            assert!(log.position().segment > last.segment);
            earlier.remove(shard.disk()).await.unwrap();
            assert_eq!(segment_files(shard.disk(), folder), [segment_path(folder, log.position().segment)]);
            last = log.append(A, b"1").await.unwrap();
            log.flushed(A, last);
            log.close().await.unwrap();
            // All was flushed, so that nothing is to be replayed; the file that is left keeps the number.
            let (found, _) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
            assert_eq!((found.len(), segment_files(shard.disk(), folder).len()), (0, 1));
            last = log.position();
        }
        assert!(last.segment as u128 > shard.clock().now().as_millis());
    });
}

#[test]
fn appends_that_come_together_share_a_write_and_a_sync() {
    everywhere(async |shard, folder| {
        let log = Rc::new(open(&shard, folder, batch(32 << 20)).await.unwrap());
        let before = shard.disk().stats();
        let tasks = (0..200).map(|number| {
            let log = Rc::clone(&log);
            spawn(async move { log.append(A, &payload(number, 100)).await.unwrap() })
        });
        let ends = join_all(tasks.collect::<Vec<_>>()).await;
        assert!(ends.is_sorted());
        let stats = shard.disk().stats().since(&before);
        assert_eq!((stats.writes(COMMIT_LOG_IO).requests, stats.syncs()), (1, 1));
    });
}

#[test]
fn appends_during_a_sync_share_the_next_one() {
    let options = SimOptions { seed: 1, max_delay: 1000, ..SimOptions::default() };
    run_simulated(options, async |shard| {
        let log = Rc::new(open(&shard, Path::new("/log"), batch(32 << 20)).await.unwrap());
        let before = shard.disk().stats().syncs();
        let tasks = (0..1000).map(|number| {
            let log = Rc::clone(&log);
            spawn(async move {
                sleep(Duration::from_micros(number as u64)).await;
                log.append(A, &payload(number, 10)).await.unwrap();
            })
        });
        join_all(tasks.collect::<Vec<_>>()).await;
        let syncs = shard.disk().stats().syncs() - before;
        assert!((2..30).contains(&syncs), "{syncs}");
        let (found, _) = replay_all(shard.disk(), Path::new("/log"), OnCorruption::Stop).await.unwrap();
        assert_eq!(found.len(), 1000);
    })
    .unwrap();
}

#[test]
fn periodic_appends_do_not_wait_and_are_durable_within_the_period() {
    simulated(async |shard, folder| {
        let period = Duration::from_secs(10);
        let log = open(&shard, folder, periodic(period)).await.unwrap();
        let begin = monotonic();
        let syncs = shard.disk().stats().syncs();
        let end = log.append(A, b"1").await.unwrap();
        assert!(log.durable_position() < end && monotonic() == begin);
        sleep(Duration::from_millis(11)).await;
        // It is in the file, where a process that is killed leaves it, and not durable yet.
        let (found, _) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
        assert_eq!((found.len(), shard.disk().stats().syncs()), (1, syncs));
        sleep(period).await;
        assert_eq!((log.durable_position(), shard.disk().stats().syncs()), (end, syncs + 1));
        // Nothing new, nothing to do.
        sleep(10 * period).await;
        assert_eq!(shard.disk().stats().syncs(), syncs + 1);
        let end = log.append(A, b"2").await.unwrap();
        assert_eq!(log.sync().await.unwrap(), end);
        assert_eq!(log.durable_position(), end);
        assert_eq!(log.sync().await.unwrap(), end);
    });
}

#[test]
fn periodic_appends_to_several_segments_are_durable_within_the_period() {
    simulated(async |shard, folder| {
        let period = Duration::from_secs(10);
        let log =
            open(&shard, folder, CommitLogOptions { segment_size: 1000, ..periodic(period) }).await.unwrap();
        let mut much = log.position();
        for number in 0..5 {
            much = log.append(A, &payload(number, 400)).await.unwrap();
        }
        sleep(period / 100).await;
        let end = log.append(A, b"little").await.unwrap();
        sleep(period / 4).await;
        assert_eq!(log.durable_position(), much, "what is little waits");
        sleep(period).await;
        assert_eq!(log.durable_position(), end);
    });
}

#[test]
fn periodic_appends_wait_for_a_disk_that_does_not_keep_up() {
    let slow = SimOptions { max_delay: 4_000_000, ..SimOptions::default() };
    run_simulated(slow, async |shard| {
        let period = Duration::from_secs(1);
        let log = open(&shard, Path::new("/log"), periodic(period)).await.unwrap();
        let mut waited = 0;
        // When each was appended, and where it ends.
        let mut lagging = std::collections::VecDeque::new();
        for number in 0..100 {
            let before = monotonic();
            let end = log.append(A, &payload(number, 10)).await.unwrap();
            waited += usize::from(monotonic() > before);
            lagging.push_back((monotonic(), end));
            while lagging.front().is_some_and(|(_, end)| *end <= log.durable_position()) {
                lagging.pop_front();
            }
            let oldest = lagging.front().unwrap().0;
            assert!(monotonic() - oldest <= period, "{number}");
            sleep(Duration::from_millis(100)).await;
        }
        assert!((5..90).contains(&waited), "{waited}");
    })
    .unwrap();
}

#[test]
fn too_many_bytes_for_the_disk_make_appends_wait() {
    let slow = SimOptions { max_delay: 1000, ..SimOptions::default() };
    run_simulated(slow, async |shard| {
        let log = open(&shard, Path::new("/log"), periodic(Duration::from_secs(10))).await.unwrap();
        // Sixteen do not fill the queue; the seventeenth is taken, and no other one after it.
        let record = payload(0, (64 << 10) - 100);
        let begin = monotonic();
        for _ in 0..17 {
            log.append(A, &record).await.unwrap();
        }
        assert_eq!(monotonic(), begin);
        assert!(timeout(Duration::ZERO, log.append(A, &record)).await.is_none());
        log.append(A, &record).await.unwrap();
        assert!(monotonic() > begin);
        log.close().await.unwrap();
        let (found, _) = replay_all(shard.disk(), Path::new("/log"), OnCorruption::Stop).await.unwrap();
        assert_eq!(found.len(), 18, "the one that was dropped while it waited is not there");
    })
    .unwrap();
}

#[test]
fn a_record_that_is_longer_than_a_segment_has_one_for_itself() {
    everywhere(async |shard, folder| {
        for options in [batch(1000), CommitLogOptions { segment_size: 1000, ..CommitLogOptions::default() }] {
            let log = open(&shard, folder, options).await.unwrap();
            let mut segments = Vec::new();
            for len in [10, 10_000, 900, 2000, 1, 0] {
                segments.push(log.append(A, &payload(len, len)).await.unwrap().segment);
            }
            let first = segments[0];
            let relative: Vec<_> = segments.iter().map(|segment| segment - first).collect();
            assert_eq!(relative, [0, 1, 2, 3, 4, 4]);
            log.close().await.unwrap();
            let (found, _) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
            assert!(found.iter().all(|(.., bytes)| *bytes == payload(bytes.len(), bytes.len())));
            let earlier = EarlierLog::find(shard.disk(), folder).unwrap();
            assert_eq!((found.len(), earlier.paths().count()), (6, 5));
            earlier.remove(shard.disk()).await.unwrap();
        }
    });
}

#[test]
fn the_longest_record_is_taken_and_no_longer_one() {
    simulated(async |shard, folder| {
        let too_large = CommitLogOptions { segment_size: MAX_SEGMENT_SIZE + 1, ..batch(0) };
        assert!(matches!(open(&shard, folder, too_large).await, Err(Error::Invalid(_))));
        let log = open(&shard, folder, batch(1000)).await.unwrap();
        let longest = vec![7; MAX_RECORD + 1];
        let error = log.append(A, &longest).await.unwrap_err();
        assert!(error.to_string().contains("at most 268435456"), "{error}");
        log.append(A, &longest[1..]).await.unwrap();
        log.append(A, b"more").await.unwrap();
        let mut lens = Vec::new();
        let count = async |_, _, payload: &[u8]| {
            lens.push(payload.len());
            Ok(())
        };
        let earlier = EarlierLog::find(shard.disk(), folder).unwrap();
        earlier.reader(shard.disk(), OnCorruption::Stop).replay(count).await.unwrap();
        assert_eq!(lens, [MAX_RECORD, 4]);
    });
}

#[test]
fn segments_are_removed_once_every_table_has_flushed() {
    everywhere(async |shard, folder| {
        let log = open(&shard, folder, batch(1000)).await.unwrap();
        let first = log.append(B, b"seldom").await.unwrap();
        let mut ends = Vec::new();
        for number in 0..20 {
            ends.push(log.append(A, &payload(number, 300)).await.unwrap());
        }
        let settle = async || {
            for _ in 0..1000 {
                yield_now().await;
                sleep(Duration::from_micros(100)).await;
                if !log.inner.is_removing.get() {
                    return shard.disk().list(folder).unwrap().len();
                }
            }
            panic!("a removal does not end");
        };
        let all = settle().await;
        assert!(all >= 10);
        log.flushed(A, ends[9]);
        let left = settle().await;
        assert!(left < all && left > 2);
        assert!(shard.disk().exists(&segment_path(folder, first.segment)), "B is in there");
        let size = log.size();
        log.flushed(A, log.position());
        assert!(log.size() < size);
        assert_eq!(settle().await, 2);
        log.flushed(B, first);
        assert_eq!(settle().await, 1);
        log.append(A, b"last").await.unwrap();
        log.close().await.unwrap();
        let (found, _) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
        assert_eq!(found.last().unwrap().2, b"last");
        assert!(found.len() < 4 && found.iter().all(|(end, ..)| end.segment == found[0].0.segment));
    });
}

#[test]
fn what_cannot_be_removed_is_tried_again() {
    simulated(async |shard, folder| {
        let log = open(&shard, folder, batch(100)).await.unwrap();
        for number in 0..5 {
            log.append(A, &payload(number, 100)).await.unwrap();
        }
        let disk = shard.disk().as_simulated().unwrap();
        disk.set_options(SimOptions { write_error_chance: 1.0, ..SimOptions::default() });
        let size = log.size();
        log.flushed(A, log.position());
        sleep(Duration::from_millis(1)).await;
        assert_eq!((log.size(), shard.disk().list(folder).unwrap().len()), (size, 5));
        disk.set_options(SimOptions::default());
        log.flushed(B, LogPosition::default());
        sleep(Duration::from_millis(1)).await;
        assert_eq!(shard.disk().list(folder).unwrap().len(), 1);
        log.append(A, b"it goes on").await.unwrap();
    });
}

#[test]
fn a_log_that_is_too_large_names_who_has_to_flush() {
    simulated(async |shard, folder| {
        let options = CommitLogOptions { total_size: 3000, ..batch(1000) };
        let log = Rc::new(open(&shard, folder, options).await.unwrap());
        log.append(B, b"seldom").await.unwrap();
        let flushed = Rc::new(RefCell::new(Vec::new()));
        let (all, of) = (Rc::clone(&flushed), Rc::clone(&log));
        let flusher = spawn(async move {
            loop {
                let (tables, position) = (of.pressed().await, of.position());
                tables.iter().for_each(|table| of.flushed(*table, position));
                assert_eq!(of.pressure(), []);
                all.borrow_mut().push(tables);
            }
        });
        for number in 0..60 {
            log.append(A, &payload(number, 200)).await.unwrap();
            assert!(log.size() < 5000);
        }
        drop(flusher);
        let flushed = flushed.take();
        assert_eq!((&flushed[0], &flushed[1]), (&vec![B, A], &vec![A]));
        assert!(flushed.len() < 10, "no more than needed: {flushed:?}");
    });
}

#[test]
fn a_failure_is_the_end_of_all_appends() {
    for (options, faults) in [
        (batch(1000), SimOptions { write_error_chance: 1.0, ..SimOptions::default() }),
        (periodic(Duration::from_secs(1)), SimOptions { capacity: Some(0), ..SimOptions::default() }),
    ] {
        simulated(async |shard, folder| {
            let log = Rc::new(open(&shard, folder, options).await.unwrap());
            let first = log.append(A, b"1").await.unwrap();
            log.sync().await.unwrap();
            let disk = shard.disk().as_simulated().unwrap();
            disk.set_options(faults.clone());
            let failed = |error: Error| {
                let words = error.to_string();
                assert!(matches!(error, Error::LogFailed(_)), "{words}");
                assert!(words.contains("must be opened again: /log/commitlog-"), "{words}");
            };
            let append = async || {
                let end = log.append(A, b"2").await?;
                assert!(matches!(options.sync, SyncMode::Periodic { .. }));
                log.sync().await.map(|_| end)
            };
            join_all((0..3).map(|_| append()))
                .await
                .into_iter()
                .for_each(|result| failed(result.unwrap_err()));
            disk.set_options(SimOptions::default());
            failed(log.append(A, b"3").await.unwrap_err());
            failed(log.sync().await.unwrap_err());
            failed(log.close().await.unwrap_err());
            assert_eq!(log.durable_position(), first);

            let log = open(&shard, folder, options).await.unwrap();
            log.append(A, b"4").await.unwrap();
            log.close().await.unwrap();
            let (found, replayed) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
            let found: Vec<_> = found.into_iter().map(|(.., payload)| payload).collect();
            assert_eq!((found.first().unwrap(), found.last().unwrap()), (&b"1".to_vec(), &b"4".to_vec()));
            assert_eq!(replayed.damage, []);
        });
    }
}
