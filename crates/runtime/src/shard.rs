//! Starts a shard: one thread, what it runs on, and the future that it runs to its end.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use compio::driver::{DriverType, ProactorBuilder};
use compio::runtime::{Runtime, RuntimeBuilder};
use rustix::system::uname;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::clock::{Clock, SimClock};
use crate::disk::Disk;
use crate::driving::drive;
use crate::error::RuntimeError;
use crate::lending::{Lender, LenderToBe, Loan, loan};
use crate::real::{FEW, RealDisk};
use crate::sim::{self, SimDisk, SimOptions};
use crate::vital::main_caught;

/// So many tasks may be woken by another thread before the shard sees to them. Who borrows the shard and wakes more than these would
/// wait for the shard's thread, which waits for the floor.
const REMOTE_WAKES: usize = 1024;

/// So many tasks have their turn before the driver has one. What they ask of the disk goes to the kernel then: where many requests come
/// back at once, the disk has the first of the next ones while the shard is still at work on the last
/// ([0069](../../../docs/decisions/0069-the-disk-has-its-requests-early.md)).
const TURNS: usize = 16;

/// What a shard's stack may take. Programs that are built without optimization move futures from frame to frame, of which large ones need
/// more than a megabyte; what is not used takes no memory. Bytes.
const STACK: usize = 8 << 20;

/// How a shard on the real machine is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardOptions {
    /// Whether to use io_uring; the default. Where the kernel forbids it or is older than Linux 5.13, and where this is `false`, requests
    /// go to a pool of threads that block, 32 at the most.
    pub io_uring: bool,
    /// Whether to read past the page cache of the operating system where the file system can, and to write what
    /// [`Disk::create_direct`](crate::Disk::create_direct) makes; the default. Other writes go through it in any case.
    pub direct_io: bool,
    /// The CPU to pin the thread to, by its number, best one of [`cpus`]; `None`, the default, leaves it to the operating system.
    pub cpu: Option<usize>,
}

impl Default for ShardOptions {
    fn default() -> Self {
        Self { io_uring: true, direct_io: true, cpu: None }
    }
}

/// What a shard runs on, real or simulated. Clones are the same shard.
#[derive(Clone)]
pub struct Shard {
    disk: Disk,
    clock: Clock,
    io_uring: bool,
}

impl Shard {
    /// The disk of this shard.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The clock of this shard.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether reads go through io_uring: asked for, and allowed by the kernel.
    pub fn uses_io_uring(&self) -> bool {
        self.io_uring
    }
}

/// Runs `main` to its end on a new thread of its own, and returns what it returns.
///
/// Tasks that were spawned and have not ended by then are dropped. If `main` panics, so does this.
///
/// # Errors
/// [`RuntimeError`] if the thread, its pinning or its I/O driver cannot be had; `main` has not run then.
pub fn run<T: Send>(
    options: ShardOptions,
    main: impl AsyncFnOnce(Shard) -> T + Send,
) -> Result<T, RuntimeError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("shard".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, move || {
                let (_, lender) = loan::<()>();
                run_here(&options, &lender, async |shard, _| main(shard).await)
            })
            .map_err(RuntimeError::Thread)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Starts a shard on a new thread of its own, which ends with `main`, and comes back at once, with what the shard lends. Joining
/// the thread gives what `main` returned, or [`RuntimeError`] if the shard could not be had and `main` has not run.
///
/// Tasks that were spawned and have not ended by then are dropped. If `main` panics, joining tells.
///
/// # Errors
/// [`RuntimeError::Thread`] if there is no thread to be had.
pub fn start<L: 'static, T: Send + 'static>(
    options: ShardOptions,
    main: impl AsyncFnOnce(Shard, Lender<L>) -> T + Send + 'static,
) -> Result<(ShardThread<T>, Loan<L>), RuntimeError> {
    let (loan, lender) = loan();
    let named = thread::Builder::new().name("shard".to_owned()).stack_size(STACK);
    let thread = named.spawn(move || run_here(&options, &lender, main)).map_err(RuntimeError::Thread)?;
    Ok((thread, loan))
}

/// The thread of a shard.
pub type ShardThread<T> = thread::JoinHandle<Result<T, RuntimeError>>;

fn run_here<L, T>(
    options: &ShardOptions,
    lender: &LenderToBe<L>,
    main: impl AsyncFnOnce(Shard, Lender<L>) -> T,
) -> Result<T, RuntimeError> {
    if let Some(cpu) = options.cpu {
        pin_to(cpu).map_err(|source| RuntimeError::Pin { cpu, source })?;
    }
    let runtime = start_driver(options).map_err(RuntimeError::Driver)?;
    let io_uring = runtime.driver_type().is_iouring();
    let disk = RealDisk::new(options.direct_io, if io_uring { usize::MAX } else { FEW });
    let shard = Shard { disk: Disk::real(disk.clone()), clock: Clock::Real, io_uring };
    let drive = || {
        drive(&runtime, lender.floor(), &disk, async {
            let result = main_caught(async { main(shard, lender.arrive()).await }).await;
            // The kernel may still be at work on the buffers of requests that nobody waits for any more.
            disk.close().await;
            result
        })
    };
    // Where the driver fails, tasks are dropped before the panic goes on: compio leaks what is dropped in one, and who waits for it
    // would wait for ever.
    let result = catch_unwind(AssertUnwindSafe(drive)).unwrap_or_else(Err);
    if result.is_err() && io_uring && disk.has_requests() {
        // The panic has said why. The kernel may write into buffers that would be freed with the driver.
        std::process::abort();
    }
    drop(runtime);
    Ok(result.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// The CPUs that this process may use, as its first thread tells, by their numbers.
///
/// # Errors
/// [`RuntimeError::Cpus`] if the operating system does not tell.
pub fn cpus() -> Result<Vec<usize>, RuntimeError> {
    let process = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
    let allowed = sched_getaffinity(process).map_err(|error| RuntimeError::Cpus(error.into()))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect())
}

fn pin_to(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

fn start_driver(options: &ShardOptions) -> io::Result<Runtime> {
    let mut proactor = ProactorBuilder::new();
    if !options.io_uring || !has_all_of_io_uring(&uname().release().to_string_lossy()) {
        proactor.driver_type(DriverType::Poll);
    }
    // Twice as many as there are requests: a thread that has answered is not free for the next one at once.
    proactor.thread_pool_limit(2 * FEW);
    // Without a driver type, compio takes io_uring and falls back to polling where that cannot be set up.
    RuntimeBuilder::new().with_proactor(proactor).event_interval(TURNS).sync_queue_size(REMOTE_WAKES).build()
}

/// Whether a kernel of this release has of io_uring what compio takes for granted where it finds any: waits with a limit, which
/// came with Linux 5.11, and polls that go on, with 5.13.
fn has_all_of_io_uring(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (5, 13),
        _ => true,
    }
}

/// Runs `main` to its end on this thread, on a simulated disk and clock, and returns what it returns.
///
/// The same options and the same `main` give the same run, down to the order in which its tasks go on, as long as
/// `main` does not look at the real world. Files are put on the disk through
/// [`Disk::as_simulated`](crate::Disk::as_simulated). The seed is printed if `main` panics.
///
/// # Errors
/// [`RuntimeError::Nested`] within another simulated shard; [`RuntimeError::Deadlock`] if all of its futures wait for
/// each other.
///
/// # Panics
/// If `main` or a task panics, or if the options ask for an alignment that is no power of two.
pub fn run_simulated<T>(sim: SimOptions, main: impl AsyncFnOnce(Shard) -> T) -> Result<T, RuntimeError> {
    let seed = sim.seed;
    let clock = SimClock::default();
    let disk = Disk::simulated(SimDisk::new(sim, clock.clone()));
    let shard = Shard { disk, clock: Clock::Simulated(clock), io_uring: false };
    sim::run(seed, async { main(shard).await })
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
