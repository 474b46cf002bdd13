//! Ctrl-C: the run comes to an end, tells what it has found by then, and takes away what it wrote for itself.

use std::process;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use siltstone::{Error, Result};

/// The signal that came; 0 as long as none did.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// From here on the first interrupt asks the run to end, and the second ends the process. To be called before there are other threads: those that
/// come later leave these signals to the one that waits for them.
pub fn listen() {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    // Where that is refused, signals do what they do by themselves.
    if signals.thread_block().is_err() {
        return;
    }
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            if SIGNAL.swap(signal as i32, Ordering::Relaxed) != 0 {
                process::exit(i32::from(exit_code_of(signal as i32)));
            }
            eprintln!("interrupted: the run comes to its end; another interrupt ends it at once");
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

fn exit_code_of(signal: i32) -> u8 {
    128 + signal as u8
}
