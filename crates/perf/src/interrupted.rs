//! Ctrl-C: the run comes to an end, tells what it has found by then, and takes away what it wrote for itself.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use nix::sys::signal::{SigSet, Signal};
use siltstone::{Error, Result};

/// What comes so soon behind the first interrupt is the same one: who ends other programs, as `timeout` does, asks the process and then its group.
const SAME: Duration = Duration::from_millis(500);

/// The signal that came; 0 as long as none did.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// From here on the first interrupt asks the run to end, and the second ends the process. To be called before there are other threads: those that
/// come later leave these signals to the one that waits for them.
pub fn listen() {
    let ignored = ignored();
    let is_heard = |signal: &Signal| ignored & 1 << (*signal as u32 - 1) == 0;
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().filter(is_heard).collect();
    // Where that is refused, signals do what they do by themselves.
    if signals.thread_block().is_err() {
        return;
    }
    let wait = move || {
        let mut first: Option<Instant> = None;
        while let Ok(signal) = signals.wait() {
            match first {
                Some(first) if first.elapsed() < SAME => continue,
                Some(_) => process::exit(i32::from(exit_code_of(signal as i32))),
                None => first = Some(Instant::now()),
            }
            SIGNAL.store(signal as i32, Ordering::Relaxed);
            // Whoever reads that may be gone by the same interrupt.
            _ = writeln!(
                io::stderr(),
                "interrupted: the run comes to its end; another interrupt ends it at once"
            );
        }
    };
    if thread::Builder::new().name("interrupts".to_owned()).spawn(wait).is_err() {
        _ = signals.thread_unblock();
    }
}

/// The exit code of a run that was interrupted, as shells tell it; `None` of any other.
pub fn exit_code() -> Option<u8> {
    let signal = SIGNAL.load(Ordering::Relaxed);
    (signal != 0).then(|| exit_code_of(signal))
}

/// Whether the run is to end.
pub(crate) fn is_interrupted() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// That the run is to go on.
///
/// # Errors
/// If it is not.
pub(crate) fn check() -> Result<()> {
    if is_interrupted() { Err(Error::Closed("interrupted".to_owned())) } else { Ok(()) }
}

/// The signals that whoever started the process has it ignore, a bit each: of what runs in the background of a script.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn exit_code_of(signal: i32) -> u8 {
    128 + signal as u8
}
