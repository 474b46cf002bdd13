//! Faults come as often as asked for, and the same from the same seed.

use super::*;
use crate::stats::IoClass;
use crate::{Cache, CacheKey, IoError, Shard, SingleFlight, join_all, run_simulated, spawn};

const CLASS: IoClass = IoClass::new(0);

fn all_faults(seed: u64) -> SimOptions {
    SimOptions {
        seed,
        short_read_chance: 0.3,
        io_error_chance: 0.1,
        corruption_chance: 0.1,
        max_delay: 20,
        alignment: 64,
        ..SimOptions::default()
    }
}

/// The number of a read, and what it returned.
type Ended = (u64, Option<Vec<u8>>);

/// 50 concurrent reads in the order in which they ended, and the counters.
fn trace(sim: SimOptions) -> (Vec<Ended>, SimCounters) {
    run_simulated(sim, async |shard| {
        let disk = shard.disk().as_simulated().unwrap().clone();
        disk.add_file("/a", (0..100_000_u32).map(|at| at as u8).collect());
        let file = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
        let ended = Rc::new(RefCell::new(Vec::new()));
        let tasks = (0..50).map(|number| {
            let (file, ended) = (file.clone(), Rc::clone(&ended));
            spawn(async move {
                let window = file.read_exact_at(number * 1500, 1000).await;
                ended.borrow_mut().push((number, window.ok().map(|window| window.to_vec())));
            })
        });
        join_all(tasks).await;
        (ended.take(), disk.counters())
    })
    .unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        assert_eq!(trace(all_faults(seed)), trace(all_faults(seed)));
    }
    assert_ne!(trace(all_faults(1)), trace(all_faults(2)));
}

#[test]
fn a_perfect_disk_keeps_the_order_and_a_slow_one_does_not() {
    let order = |sim| trace(sim).0.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert!(order(SimOptions::default()).is_sorted());
    let slow = |seed| order(SimOptions { seed, max_delay: 100, ..SimOptions::default() });
    assert!(!slow(1).is_sorted());
    assert_ne!(slow(1), slow(2));
}

#[test]
fn faults_come_about_as_often_as_asked_for() {
    let mut sum = SimCounters::default();
    for seed in 0..40 {
        let counters = trace(all_faults(seed)).1;
        sum.requests += counters.requests;
        sum.io_errors += counters.io_errors;
        sum.short_reads += counters.short_reads;
        sum.corruptions += counters.corruptions;
        sum.delayed += counters.delayed;
    }
    let share = |count: u64| count as f64 / sum.requests as f64;
    assert!((0.07..0.13).contains(&share(sum.io_errors)), "{sum:?}");
    assert!((0.07..0.13).contains(&share(sum.corruptions)), "{sum:?}");
    assert!((0.2..0.35).contains(&share(sum.short_reads)), "{sum:?}");
    assert!((0.9..1.0).contains(&share(sum.delayed)), "{sum:?}");
}

#[test]
fn a_corruption_is_one_bit() {
    let sim = SimOptions { seed: 3, corruption_chance: 1.0, ..SimOptions::default() };
    let (reads, counters) = trace(sim);
    for (number, window) in reads {
        let flipped: u32 = window
            .unwrap()
            .iter()
            .zip(number * 1500..)
            .map(|(byte, at)| (byte ^ at as u8).count_ones())
            .sum();
        assert_eq!(flipped, 1);
    }
    assert_eq!((counters.corruptions, counters.requests), (50, 50));
}

#[test]
fn the_content_on_the_disk_is_never_corrupted() {
    let sim = SimOptions { corruption_chance: 1.0, ..SimOptions::default() };
    run_simulated(sim, async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file("/a", vec![0; 100]);
        let file = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
        assert_ne!(*file.read_exact_at(0, 100).await.unwrap(), [0; 100]);
        disk.set_options(SimOptions::default());
        assert_eq!(*file.read_exact_at(0, 100).await.unwrap(), [0; 100]);
    })
    .unwrap();
}

#[test]
fn an_open_file_stays_as_it_was() {
    run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file("/a", vec![1; 10]);
        let old = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
        disk.add_file("/a", vec![2; 5]);
        let new = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
        disk.remove_file(Path::new("/a"));
        assert!(!shard.disk().exists(Path::new("/a")));
        assert_eq!(*old.read_exact_at(0, 10).await.unwrap(), [1; 10]);
        assert_eq!(*new.read_exact_at(0, 5).await.unwrap(), [2; 5]);
    })
    .unwrap();
}

#[test]
fn a_file_that_is_put_there_has_folders_around_it() {
    run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk();
        for path in ["/ks/t/b", "/ks/t/a", "/ks/t/snapshots/s/a", "/ks/u/a"] {
            disk.as_simulated().unwrap().add_file(path, Vec::new());
        }
        let list = |dir| disk.list(Path::new(dir));
        assert_eq!(list("/ks").unwrap(), ["/ks/t", "/ks/u"].map(PathBuf::from));
        assert_eq!(list("/ks/t").unwrap(), ["/ks/t/a", "/ks/t/b", "/ks/t/snapshots"].map(PathBuf::from));
        assert_eq!(list("/k").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(list("/ks/t/a").unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(disk.is_dir(Path::new("/ks/t")) && disk.exists(Path::new("/ks/t")));
        assert!(!disk.is_dir(Path::new("/ks/t/a")) && disk.exists(Path::new("/ks/t/a")));
        let error = disk.open(Path::new("/ks"), CLASS).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let error = disk.open(Path::new("/v"), CLASS).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    })
    .unwrap();
}

/// A page of 4 KiB, from the cache or by one read for all who miss it at once.
async fn page(
    shard: &Shard,
    file: &crate::File,
    cache: &Cache,
    reads: &SingleFlight<u64, Result<Rc<Vec<u8>>, IoError>>,
    index: u64,
) -> Result<Rc<Vec<u8>>, IoError> {
    let key = CacheKey { owner: file.id(), index };
    if let Some(page) = cache.get(key) {
        return Ok(page);
    }
    let before = shard.disk().stats();
    let read = async || {
        let page = Rc::new(file.read_exact_at(index * 4096, 4096).await?.to_vec());
        cache.insert(key, Rc::clone(&page), 4096);
        assert!(shard.disk().stats().since(&before).total().requests > 0);
        Ok(page)
    };
    reads.run(index, read).await
}

#[test]
fn concurrent_misses_become_one_read() {
    for seed in 0..20 {
        let sim = SimOptions { seed, max_delay: 10, ..SimOptions::default() };
        run_simulated(sim, async |shard| {
            shard.disk().as_simulated().unwrap().add_file("/a", vec![7; 20 * 4096]);
            let file = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
            let (cache, reads) = (Cache::new(1 << 20), SingleFlight::new());
            let calls = (0..100).map(|call| page(&shard, &file, &cache, &reads, call % 20));
            for page in join_all(calls).await {
                assert_eq!(*page.unwrap(), [7; 4096]);
            }
            assert_eq!(shard.disk().stats().total().requests, 20);
            assert_eq!((cache.used(), reads.in_flight()), (20 * (4096 + Cache::PER_VALUE), 0));
        })
        .unwrap();
    }
}

#[test]
fn all_who_wait_share_the_error() {
    let sim = SimOptions { io_error_chance: 1.0, max_delay: 10, ..SimOptions::default() };
    run_simulated(sim, async |shard| {
        shard.disk().as_simulated().unwrap().add_file("/a", vec![7; 4096]);
        let file = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
        let (cache, reads) = (Cache::new(1 << 20), SingleFlight::new());
        let calls = (0..10).map(|_| page(&shard, &file, &cache, &reads, 0));
        assert!(join_all(calls).await.iter().all(Result::is_err));
        assert_eq!((shard.disk().stats().total().requests, cache.used()), (1, 0));
    })
    .unwrap();
}
