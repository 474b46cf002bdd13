//! What is written is read again, on real and on simulated disks.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::*;
use crate::stats::IoCount;
use crate::{Disk, Shard, ShardOptions, SimOptions, run, run_simulated, spawn, yield_now};

const CLASS: IoClass = IoClass::new(3);

/// Runs the same on all kinds of disks, in an empty folder.
fn everywhere(main: impl AsyncFn(&Disk, &Path) + Send + Sync) {
    for (io_uring, direct_io) in [(true, true), (true, false), (false, true), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        let options = ShardOptions { io_uring, direct_io, cpu: None };
        run(options, async |shard| main(shard.disk(), folder.path()).await).unwrap();
    }
    let faulty = |seed| SimOptions { seed, short_write_chance: 0.5, max_delay: 5, ..SimOptions::default() };
    for sim in [SimOptions::default(), faulty(1), SimOptions { alignment: 512, ..faulty(2) }] {
        simulated(sim, async |shard| {
            shard.disk().create_dir_all(Path::new("/d")).await.unwrap();
            main(shard.disk(), Path::new("/d")).await;
        });
    }
}

fn simulated<T>(sim: SimOptions, main: impl AsyncFnOnce(Shard) -> T) -> T {
    run_simulated(sim, main).unwrap()
}

async fn content(disk: &Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, CLASS).await.unwrap();
    file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec()
}

async fn write(disk: &Disk, path: &Path, bytes: &[u8]) {
    let mut file = disk.create(path, CLASS).await.unwrap();
    file.append(bytes.to_vec()).await.unwrap();
}

#[test]
fn what_is_appended_is_read_at_once() {
    everywhere(async |disk, dir| {
        let path = dir.join("a");
        let mut file = disk.create(&path, CLASS).await.unwrap();
        let (mut expected, mut buf) = (Vec::new(), Vec::new());
        for (number, len) in [0, 1, 511, 512, 5000, 100_000, 3].into_iter().enumerate() {
            buf.resize(len, number as u8);
            expected.extend_from_slice(&buf);
            let address = buf.as_ptr();
            buf = file.append(buf).await.unwrap();
            assert!(buf.is_empty() && buf.as_ptr() == address, "the buffer comes back");
            assert_eq!((file.len(), file.path()), (expected.len() as u64, path.as_path()));
            assert!(content(disk, &path).await == expected, "after {len} bytes more");
        }
        file.sync().await.unwrap();
        drop(file);
        assert!(content(disk, &path).await == expected);
    });
}

#[test]
fn what_goes_past_the_page_cache_is_read_once_it_was_synced() {
    everywhere(async |disk, dir| {
        let path = dir.join("a");
        let mut file = disk.create_direct(&path, CLASS).await.unwrap();
        let (mut expected, mut buf) = (Vec::new(), Vec::new());
        for (number, len) in [0, 1, 511, 512, 5000, 3_000_000, 100_000, 3, 4096].into_iter().enumerate() {
            buf.resize(len, number as u8);
            expected.extend_from_slice(&buf);
            let address = buf.as_ptr();
            buf = file.append(buf).await.unwrap();
            assert!(buf.is_empty() && buf.as_ptr() == address, "the buffer comes back");
            assert_eq!(file.len(), expected.len() as u64);
            assert!(expected.starts_with(&content(disk, &path).await));
            if number % 3 == 1 {
                file.sync().await.unwrap();
                assert!(content(disk, &path).await == expected, "after {len} bytes more");
            }
        }
        file.sync().await.unwrap();
        drop(file);
        assert!(content(disk, &path).await == expected);
    });
}

#[test]
fn whole_blocks_go_past_the_page_cache_and_the_rest_with_the_sync() {
    let short = SimOptions { short_write_chance: 0.5, ..SimOptions::default() };
    for (sim, requests) in [(SimOptions::default(), 3), (short, 6)] {
        simulated(sim, async |shard| {
            let disk = shard.disk();
            let mut file = disk.create_direct(Path::new("/a"), CLASS).await.unwrap();
            for (len, whole) in [(500, 0), (100, 512), (20_000, 20_480)] {
                file.append(vec![7; len]).await.unwrap();
                assert_eq!(content(disk, Path::new("/a")).await.len(), whole);
            }
            file.append(Vec::new()).await.unwrap();
            file.sync().await.unwrap();
            assert!(content(disk, Path::new("/a")).await == [7; 20_600]);
            let writes = disk.stats().writes(CLASS);
            assert!(writes.requests <= requests && writes.bytes >= 20_600, "{writes:?}");
        });
    }
}

#[test]
fn a_full_disk_takes_the_blocks_that_fit() {
    simulated(SimOptions { capacity: Some(2000), ..SimOptions::default() }, async |shard| {
        let mut file = shard.disk().create_direct(Path::new("/a"), CLASS).await.unwrap();
        let error = file.append(vec![2; 5000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(content(shard.disk(), Path::new("/a")).await, [2; 1536]);
    });
}

#[test]
fn a_rest_that_cannot_be_written_is_told_with_its_place() {
    simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        let mut file = shard.disk().create_direct(Path::new("/a"), CLASS).await.unwrap();
        file.append(vec![7; 5000]).await.unwrap();
        disk.set_options(SimOptions { write_error_chance: 1.0, ..SimOptions::default() });
        let error = file.sync().await.unwrap_err().to_string();
        assert_eq!(error, "/a: writing 392 bytes at offset 4608: a simulated failure of the disk");
        disk.set_options(SimOptions::default());
        assert!(file.append(vec![1]).await.is_err() && file.sync().await.is_err());
    });
}

#[test]
fn what_is_open_stays_when_its_name_goes() {
    everywhere(async |disk, dir| {
        let [a, b] = ["a", "b"].map(|name| dir.join(name));
        write(disk, &a, b"old").await;
        let old = disk.open(&a, CLASS).await.unwrap();
        let mut new = disk.create(&b, CLASS).await.unwrap();
        new.append(b"ne".to_vec()).await.unwrap();
        disk.rename(&b, &a).await.unwrap();
        new.append(b"w!".to_vec()).await.unwrap();
        assert_eq!(content(disk, &a).await, b"new!");
        assert_eq!(disk.list(dir).unwrap(), std::slice::from_ref(&a));
        disk.remove(&a).await.unwrap();
        new.append(b"?".to_vec()).await.unwrap();
        new.sync().await.unwrap();
        assert_eq!(*old.read_exact_at(0, 3).await.unwrap(), *b"old");
        assert!(disk.list(dir).unwrap().is_empty());
    });
}

#[test]
fn folders_are_made_listed_and_removed() {
    everywhere(async |disk, dir| {
        let inner = dir.join("b/c");
        disk.create_dir_all(&inner).await.unwrap();
        disk.create_dir_all(&inner).await.unwrap();
        assert!(disk.is_dir(&inner) && disk.exists(&inner));
        assert!(disk.list(&inner).unwrap().is_empty());
        write(disk, &inner.join("a"), b"a").await;
        disk.rename(&inner.join("a"), &dir.join("a")).await.unwrap();
        assert_eq!(disk.list(dir).unwrap(), [dir.join("a"), dir.join("b")]);
        for folder in [&inner, &dir.join("b"), dir] {
            disk.sync_dir(folder).await.unwrap();
        }
        disk.remove_dir(&inner).await.unwrap();
        disk.remove_dir(&dir.join("b")).await.unwrap();
        assert_eq!(disk.list(dir).unwrap(), [dir.join("a")]);
    });
}

#[test]
fn what_cannot_be_done_is_an_error_of_one_kind_everywhere() {
    use io::ErrorKind as Kind;
    everywhere(async |disk, dir| {
        let [file, folder, missing] = ["file", "folder", "missing"].map(|name| dir.join(name));
        let [in_file, in_missing] = [file.join("a"), missing.join("a")];
        write(disk, &file, b"").await;
        disk.create_dir_all(&folder.join("a")).await.unwrap();
        for (path, kind) in [
            (&file, Kind::AlreadyExists),
            (&folder, Kind::AlreadyExists),
            (&in_missing, Kind::NotFound),
            (&in_file, Kind::NotADirectory),
        ] {
            assert_eq!(disk.create(path, CLASS).await.unwrap_err().kind(), kind);
        }
        let kind = |result: Result<(), IoError>| result.unwrap_err().kind();
        assert_eq!(kind(disk.rename(&missing, &file).await), Kind::NotFound);
        assert_eq!(kind(disk.rename(&file, &in_missing).await), Kind::NotFound);
        assert_eq!(kind(disk.rename(&file, &folder).await), Kind::IsADirectory);
        assert_eq!(kind(disk.remove(&missing).await), Kind::NotFound);
        assert_eq!(kind(disk.remove(&folder).await), Kind::IsADirectory);
        assert_eq!(kind(disk.create_dir_all(&file).await), Kind::AlreadyExists);
        assert_eq!(kind(disk.create_dir_all(&in_file).await), Kind::NotADirectory);
        assert_eq!(kind(disk.remove_dir(&missing).await), Kind::NotFound);
        assert_eq!(kind(disk.remove_dir(&file).await), Kind::NotADirectory);
        assert_eq!(kind(disk.remove_dir(&folder).await), Kind::DirectoryNotEmpty);
        assert_eq!(kind(disk.sync_dir(&missing).await), Kind::NotFound);
        assert_eq!(kind(disk.sync_dir(&file).await), Kind::NotADirectory);
        disk.rename(&file, &file).await.unwrap();
        let error = disk.rename(&missing, &file).await.unwrap_err().to_string();
        let (missing, file) = (missing.display(), file.display());
        assert!(error.starts_with(&format!("{missing}: renaming to {file}: ")), "{error}");
    });
}

#[test]
fn a_bare_name_lies_in_the_current_folder() {
    run(ShardOptions::default(), async |shard| shard.disk().sync_dir(Path::new("")).await.unwrap()).unwrap();
    simulated(SimOptions::default(), async |shard| {
        write(shard.disk(), Path::new("a"), b"a").await;
        shard.disk().sync_dir(Path::new("")).await.unwrap();
        assert_eq!(content(shard.disk(), Path::new("a")).await, b"a");
    });
}

#[test]
fn writes_and_syncs_are_counted() {
    let main = async |disk: &Disk, dir: &Path| {
        let mut file = disk.create(&dir.join("a"), CLASS).await.unwrap();
        file.append(vec![1; 5000]).await.unwrap();
        file.append(Vec::new()).await.unwrap();
        file.append(vec![1; 1]).await.unwrap();
        file.sync().await.unwrap();
        disk.sync_dir(dir).await.unwrap();
        let stats = disk.stats();
        assert_eq!(stats.writes(CLASS), IoCount { requests: 2, bytes: 5001 });
        assert_eq!(
            (stats.syncs(), stats.total_writes(), stats.total()),
            (2, stats.writes(CLASS), IoCount::default())
        );
    };
    let folder = tempfile::tempdir().unwrap();
    run(ShardOptions::default(), async |shard| main(shard.disk(), folder.path()).await).unwrap();
    simulated(SimOptions::default(), async |shard| {
        main(shard.disk(), Path::new("/")).await;
        assert_eq!(shard.disk().as_simulated().unwrap().counters().operations, 5);
    });
}

#[test]
fn each_continuation_of_a_short_write_is_a_request() {
    let sim = SimOptions { short_write_chance: 1.0, ..SimOptions::default() };
    simulated(sim, async |shard| {
        let mut file = shard.disk().create(Path::new("/a"), CLASS).await.unwrap();
        file.append(vec![1]).await.unwrap();
        assert_eq!(shard.disk().stats().writes(CLASS).requests, 1, "one byte is never short");
        file.append(vec![2, 3, 4]).await.unwrap();
        let counters = shard.disk().as_simulated().unwrap().counters();
        let requests = shard.disk().stats().writes(CLASS).requests;
        assert!((3..=4).contains(&requests), "{requests}");
        assert_eq!((counters.short_writes, counters.operations), (requests - 2, requests + 1));
        assert_eq!(content(shard.disk(), Path::new("/a")).await, [1, 2, 3, 4]);
    });
}

#[test]
fn a_full_disk_takes_what_fits_and_says_so() {
    simulated(SimOptions { capacity: Some(1000), ..SimOptions::default() }, async |shard| {
        let disk = shard.disk();
        write(disk, Path::new("/a"), &[1; 600]).await;
        let mut file = disk.create(Path::new("/b"), CLASS).await.unwrap();
        file.append(vec![2; 100]).await.unwrap();
        let error = file.append(vec![3; 500]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("/b: writing 500 bytes at offset 100: "), "{error}");
        assert_eq!((content(disk, Path::new("/b")).await.len(), file.len()), (400, 100));
        // What is removed makes room, but not for a file that is in doubt.
        disk.remove(Path::new("/b")).await.unwrap();
        assert_eq!(file.append(vec![3]).await.unwrap_err().kind(), io::ErrorKind::Other);
        write(disk, Path::new("/c"), &[4; 400]).await;
        assert_eq!(disk.stats().writes(CLASS).bytes, 600 + 100 + 500 + 200 + 400);
    });
}

#[test]
fn a_file_is_given_up_after_an_error() {
    simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        let fail =
            |chance| disk.set_options(SimOptions { write_error_chance: chance, ..SimOptions::default() });
        let mut unsynced = shard.disk().create(Path::new("/a"), CLASS).await.unwrap();
        let mut unwritten = shard.disk().create(Path::new("/b"), CLASS).await.unwrap();
        fail(1.0);
        let error = unsynced.sync().await.unwrap_err();
        assert_eq!(error.to_string(), "/a: syncing: a simulated failure of the disk");
        let error = unwritten.append(vec![1; 20]).await.unwrap_err();
        assert_eq!(error.to_string(), "/b: writing 20 bytes at offset 0: a simulated failure of the disk");
        assert!(shard.disk().create(Path::new("/c"), CLASS).await.is_err());
        assert_eq!(disk.counters().write_errors, 3);
        fail(0.0);
        for file in [&mut unsynced, &mut unwritten] {
            let in_doubt = "an earlier append or sync of the file did not end well";
            assert!(file.append(vec![1]).await.unwrap_err().to_string().ends_with(in_doubt));
            assert!(file.sync().await.unwrap_err().to_string().ends_with(in_doubt));
        }
        assert_eq!(disk.counters().operations, 5, "the disk is not asked any more");
    });
}

#[test]
fn a_file_is_given_up_after_a_sync_behind_its_appends_that_failed_or_was_dropped() {
    let slow = SimOptions { max_delay: 5, ..SimOptions::default() };
    simulated(slow.clone(), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        let fail = |chance| disk.set_options(SimOptions { write_error_chance: chance, ..slow.clone() });
        let mut failed = shard.disk().create(Path::new("/a"), CLASS).await.unwrap();
        let mut dropped = shard.disk().create(Path::new("/b"), CLASS).await.unwrap();
        let mut never_begun = shard.disk().create(Path::new("/c"), CLASS).await.unwrap();
        fail(1.0);
        let error = failed.sync_behind().await.unwrap_err();
        assert_eq!(error.to_string(), "/a: syncing: a simulated failure of the disk");
        fail(0.0);
        assert!(begin(dropped.sync_behind()).await);
        drop(never_begun.sync_behind());
        for file in [&mut failed, &mut dropped] {
            assert!(file.append(vec![1]).await.is_err());
            assert!(file.sync().await.is_err());
            assert!(file.sync_behind().await.is_err());
        }
        never_begun.append(vec![1]).await.unwrap();
        never_begun.sync().await.unwrap();
    });
}

#[test]
fn a_sync_behind_the_appends_makes_durable_what_was_appended_before_it() {
    let left = |seed| {
        let sim = SimOptions { seed, max_delay: 5, crash_at: Some(5), ..SimOptions::default() };
        simulated(sim, async |shard| {
            let disk = shard.disk();
            let mut file = disk.create(Path::new("/a"), CLASS).await.unwrap();
            disk.sync_dir(Path::new("/")).await.unwrap();
            file.append(vec![1; 1000]).await.unwrap();
            let behind = spawn(file.sync_behind());
            yield_now().await;
            file.append(vec![2; 1000]).await.unwrap();
            assert_eq!(behind.await.unwrap(), 1000);
            assert!(file.append(vec![3; 1000]).await.is_err(), "the power is cut");
            disk.as_simulated().unwrap().restart();
            content(disk, Path::new("/a")).await
        })
    };
    let left: Vec<_> = (0..50).map(left).collect();
    assert!(left.iter().all(|left| left[..1000] == [1; 1000]));
    assert!(left.iter().any(|left| left.len() < 2000), "what came later may be lost");
}

/// Polls a future once; whether it had to wait.
async fn begin(future: impl Future) -> bool {
    let mut future = pin!(future);
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

#[test]
fn an_append_that_is_dropped_is_still_written() {
    const LEN: usize = 300_000;
    let main = async |disk: &Disk, dir: &Path| {
        for round in 0..10 {
            let mut waited = Vec::new();
            for number in 1..9 {
                let path = dir.join(format!("{round}-{number}"));
                let mut file = disk.create(&path, CLASS).await.unwrap();
                if begin(file.append(vec![number; LEN])).await {
                    assert!(file.append(vec![0]).await.is_err(), "nobody knows where the file ends");
                    assert!(file.sync().await.is_err());
                    waited.push((path, number));
                }
            }
            // Memory that was freed too early would be used for these.
            let others: Vec<Vec<u8>> = (0..8).map(|_| vec![0; LEN]).collect();
            for (path, number) in waited {
                for _ in 0..1000 {
                    if disk.open(&path, CLASS).await.unwrap().len() == LEN as u64 {
                        break;
                    }
                    disk.sync_dir(dir).await.unwrap();
                }
                assert!(content(disk, &path).await == vec![number; LEN]);
            }
            drop(others);
        }
    };
    for io_uring in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let options = ShardOptions { io_uring, ..ShardOptions::default() };
        run(options, async |shard| main(shard.disk(), folder.path()).await).unwrap();
    }
    simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, async |shard| {
        main(shard.disk(), Path::new("/")).await;
    });
}

#[test]
fn a_shard_waits_for_appends_that_are_dropped() {
    const LEN: usize = 1 << 20;
    for io_uring in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let options = ShardOptions { io_uring, ..ShardOptions::default() };
        run(options, async |shard| {
            for number in 1..9 {
                let path = folder.path().join(number.to_string());
                let mut file = shard.disk().create(&path, CLASS).await.unwrap();
                spawn(async move { drop(file.append(vec![number; LEN]).await) }).detach();
            }
            yield_now().await;
        })
        .unwrap();
        for number in 1..9_u8 {
            let written = std::fs::read(folder.path().join(number.to_string())).unwrap();
            assert!(written == vec![number; LEN], "{number}: {} bytes", written.len());
        }
    }
}
