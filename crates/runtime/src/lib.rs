//! What a shard runs on: one thread, its disk, its memory budget; real or simulated.
//!
//! A *shard* is one thread, pinned to a CPU if [`ShardOptions::cpu`] says so. Everything on it is `!Send` and needs neither locks nor
//! atomics. While it is at rest, another thread may borrow it ([`Loan`]): one atomic decides which thread acts as the shard. [`run`] starts
//! one on the real machine, [`run_simulated`] one whose disk and clock are made of memory and a seed, so that short reads, errors,
//! corruption, power cuts and the order of completions repeat exactly. Both hand the same [`Shard`] to the caller, who cannot tell them
//! apart.
//!
//! ```text
//! run / run_simulated ──► Shard ──► Disk ──► File ──► Window      bytes of one read
//!                           │         │  └─► Ahead                bytes that may not be wanted
//!                           │         └────► NewFile              appended to
//!                           └─────► Clock
//! Loan, Lender   a shard at rest, looked at by other threads
//! waiting, poll_in_place    where one of them waits, it makes the reads of what it looks for
//! Cache          one budget of bytes, for everything a shard keeps
//! SingleFlight   concurrent misses of one thing become one read
//! Signal         what waits for something to change
//! Line           the same of what one after the other can have
//! spawn, join_all, yield_now    several futures at once, on the one thread
//! boxed          a large future, made where it stays
//! spawn_vital    one of them without which the shard is nothing
//! sleep, timeout, monotonic     time that passes, also where the clock stands still
//! offload        work that takes long, on another thread
//! allow_many_files   how many a program may have open
//! buffer, buffer_of, reuse  large buffers that pass through, again and again; kept_bytes of them wait
//! prefetch       memory brought near the CPU before it is looked at
//! ```
//!
//! ```
//! use runtime::{IoClass, SimOptions, run_simulated};
//! use std::path::Path;
//!
//! const DATA: IoClass = IoClass::new(1);
//!
//! let options = SimOptions { seed: 7, short_read_chance: 0.5, max_delay: 10, ..SimOptions::default() };
//! let bytes = run_simulated(options, async |shard| {
//!     shard.disk().as_simulated().expect("simulated").add_file("/t/Data.db", b"sediment".to_vec());
//!     let file = shard.disk().open(Path::new("/t/Data.db"), DATA).await?;
//!     let window = file.read_exact_at(3, 4).await?;
//!     Ok::<_, runtime::IoError>(window.to_vec())
//! });
//! assert_eq!(bytes??, b"imen");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What belongs to a shard does not leave it, which the compiler sees to:
//! ```compile_fail
//! fn is_send<T: Send>() {}
//! is_send::<runtime::File>();
//! ```
//!
//! ```compile_fail
//! fn is_send<T: Send>() {}
//! is_send::<runtime::NewFile>();
//! ```
//!
//! This crate never knows what an SSTable is: an [`IoClass`] and an owner in a [`CacheKey`] are numbers to it.

mod ahead;
mod blocks;
mod buffer;
mod cache;
mod clock;
mod disk;
mod driving;
mod error;
#[cfg(test)]
mod everywhere;
mod file;
mod in_place;
mod lending;
mod line;
mod new_file;
mod offload;
mod open_files;
mod prefetch;
mod real;
mod shard;
mod signal;
mod sim;
mod single_flight;
mod stats;
mod task;
mod timer;
mod vital;

pub use ahead::Ahead;
pub use buffer::{buffer, buffer_of, kept_bytes, reuse};
pub use cache::{Account, Cache, CacheKey, CacheStats, Look, Reserved, Uses};
pub use clock::{Clock, SimClock};
pub use disk::Disk;
pub use error::{DiskAction, IoError, RuntimeError};
pub use file::{File, Window};
pub use in_place::{is_in_place, is_waiting, poll_in_place, took_in_place, waiting};
pub use lending::{Borrowed, Lender, Loan};
pub use line::Line;
pub use new_file::NewFile;
pub use offload::offload;
pub use open_files::allow_many_files;
pub use prefetch::{LINE, ROWS_AHEAD, Whereabouts, prefetch, prefetch_row};
pub use shard::{Shard, ShardOptions, ShardThread, cpus, run, run_simulated, start};
pub use signal::Signal;
pub use sim::{SimCounters, SimDisk, SimOptions};
pub use single_flight::SingleFlight;
pub use stats::{IoClass, IoCount, IoStats};
pub use task::{Task, boxed, join_all, spawn, yield_now};
pub use timer::{monotonic, sleep, timeout};
pub use vital::spawn_vital;
