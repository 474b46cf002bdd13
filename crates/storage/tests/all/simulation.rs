//! A store on a simulated disk, through crashes and all that a disk does: what is read is what was written.
//!
//! Everything comes from a seed, which is told when a run fails. `SILTSTONE_SEED=7` runs one, and tells what happens;
//! `SILTSTONE_SEEDS=10000` runs so many from 0 on.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use runtime::{SimOptions, run_simulated};
use testkit::generate::random::Random;

mod checks;
mod ledger;
mod plan;
mod session;
mod tasks;
mod world;

use plan::Plan;

/// Seeds that are run unless others are asked for.
const SEEDS: u64 = 300;

/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn simulate(seed: u64, is_told: bool) -> u64 {
    let _told = Told::new(seed);
    let mut random = Random::new(seed);
    let plan = Plan::of(&mut random);
    if is_told {
        println!("{plan:#?}");
    }
    let options = SimOptions { seed, ..plan.disk.clone() };
    let run = run_simulated(options, async |shard| world::run(&plan, &shard, random, is_told).await);
    run.unwrap_or_else(|error| panic!("{error}"))
}

/// Tells how to run a seed again if that panics or hangs.
struct Told {
    seed: u64,
    _is_alive: mpsc::Sender<()>,
}

impl Told {
    fn new(seed: u64) -> Told {
        let (is_alive, end) = mpsc::channel();
        thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("a simulation hangs: {}", again(seed));
                std::process::abort();
            }
        });
        Told { seed, _is_alive: is_alive }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("a simulation failed: {}", again(self.seed));
        }
    }
}

fn again(seed: u64) -> String {
    format!("SILTSTONE_SEED={seed} cargo test -p siltstone-storage --test all simulation::what_is_read")
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

#[test]
fn what_is_read_is_what_was_written() {
    if let Some(seed) = number_of("SILTSTONE_SEED") {
        simulate(seed, true);
        return;
    }
    let failed = Mutex::new(Vec::new());
    let (next, seeds) = (AtomicU64::new(0), number_of("SILTSTONE_SEEDS").unwrap_or(SEEDS));
    let workers = thread::available_parallelism().unwrap().get();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds)
                {
                    if catch_unwind(|| simulate(seed, false)).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "these of {seeds} seeds failed: {failed:?}");
}

#[test]
fn a_seed_gives_one_run() {
    for seed in 0..20 {
        assert_eq!(simulate(seed, false), simulate(seed, false), "seed {seed}");
    }
}
