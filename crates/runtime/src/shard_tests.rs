//! Starting, ending and failing of shards.

use std::path::Path;

use rustix::thread::sched_getaffinity;

use super::*;
use crate::{IoClass, spawn, yield_now};

#[test]
fn what_main_returns_is_handed_back() {
    let outside = [1, 2, 3];
    let sum = run(ShardOptions::default(), async |_| outside.iter().sum::<i32>()).unwrap();
    assert_eq!(sum, 6);
    assert_eq!(run_simulated(SimOptions::default(), async |_| outside.len()).unwrap(), 3);
}

#[test]
fn a_shard_has_a_thread_of_its_own() {
    let here = thread::current().id();
    let there = run(ShardOptions::default(), async |_| thread::current().id()).unwrap();
    assert_ne!(here, there);
}

#[test]
fn the_polling_driver_can_be_chosen() {
    let options = ShardOptions { io_uring: false, ..ShardOptions::default() };
    assert!(!run(options, async |shard| shard.uses_io_uring()).unwrap());
}

#[test]
fn kernels_that_lack_a_part_of_io_uring_go_without() {
    let without = ["5.6.0", "5.10.0-28-amd64", "5.12.19", "4.19"];
    let with = ["5.13.0-1", "5.15.167.4-microsoft-standard-WSL2", "6.1.0", "10.0", "unknown"];
    assert!(!without.iter().any(|release| has_all_of_io_uring(release)));
    assert!(with.iter().all(|release| has_all_of_io_uring(release)));
}

#[test]
fn a_shard_is_pinned_to_its_cpu() {
    let allowed = sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).rfind(|cpu| allowed.is_set(*cpu)).unwrap();
    let options = ShardOptions { cpu: Some(cpu), ..ShardOptions::default() };
    let pinned = run(options, async |_| sched_getaffinity(None).unwrap()).unwrap();
    assert!(pinned.is_set(cpu) && pinned.count() == 1);
    let free = run(ShardOptions::default(), async |_| sched_getaffinity(None).unwrap()).unwrap();
    assert_eq!(free, allowed);
}

#[test]
fn a_cpu_that_is_not_there_is_an_error() {
    for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
        let options = ShardOptions { cpu: Some(cpu), ..ShardOptions::default() };
        let error = run(options, async |_| ()).unwrap_err();
        assert_eq!(error.to_string(), format!("pinning a shard to CPU {cpu}"));
    }
}

/// The words of the panic that `body` ends in.
fn panic_of(body: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
    panic.downcast_ref::<&str>().map(|words| (*words).to_owned()).unwrap_or_default()
}

#[test]
fn panics_reach_the_starter() {
    async fn main(_: Shard) {
        yield_now().await;
        panic!("by intent");
    }
    async fn task(_: Shard) {
        spawn(async { panic!("in a task") }).await
    }
    assert_eq!(panic_of(|| run(ShardOptions::default(), main).unwrap()), "by intent");
    assert_eq!(panic_of(|| run(ShardOptions::default(), task).unwrap()), "in a task");
    assert_eq!(panic_of(|| run_simulated(SimOptions::default(), main).unwrap()), "by intent");
    assert_eq!(panic_of(|| run_simulated(SimOptions::default(), task).unwrap()), "in a task");
    // And the thread can simulate again.
    run_simulated(SimOptions::default(), async |_| ()).unwrap();
}

#[test]
fn a_deadlock_is_an_error_and_names_the_seed() {
    let sim = SimOptions { seed: 42, ..SimOptions::default() };
    let error = run_simulated(sim, async |_| std::future::pending::<()>().await).unwrap_err();
    assert!(matches!(error, RuntimeError::Deadlock { seed: 42 }));
}

#[test]
fn simulated_shards_do_not_nest() {
    let inner = run_simulated(SimOptions::default(), async |_| {
        run_simulated(SimOptions::default(), async |_| ()).unwrap_err()
    });
    assert!(matches!(inner.unwrap(), RuntimeError::Nested));
}

#[test]
fn a_shard_may_end_with_reads_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    let main = async |shard: Shard| {
        let path: &Path = if shard.disk().as_simulated().is_some() { Path::new("/a") } else { &path };
        let file = shard.disk().open(path, IoClass::default()).await.unwrap();
        for number in 0..50 {
            let file = file.clone();
            spawn(async move { drop(file.read_exact_at(number * 1000, 1 << 19).await) }).detach();
        }
        // No more than some of them have a turn before this goes on.
        while shard.disk().stats().total().requests < 50 {
            yield_now().await;
        }
    };
    run(ShardOptions::default(), main).unwrap();
    run(ShardOptions { io_uring: false, ..ShardOptions::default() }, main).unwrap();
    let simulated = run_simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, async |shard| {
        shard.disk().as_simulated().unwrap().add_file("/a", vec![7; 1 << 20]);
        main(shard).await;
    });
    simulated.unwrap();
}
