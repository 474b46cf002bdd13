//! A run that is interrupted tells what it found, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whether this process was started so that it ignores a signal, as what runs in the background of a script is: so does what it starts.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 << (signal as u32 - 1) != 0
}

#[test]
fn an_interrupted_run_tells_what_it_found_and_leaves_nothing() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        if is_ignored(signal) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_siltstone-perf"))
            .args(["simple-query", "--partitions", "100", "--duration", "60"])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        assert!(lines.any(|line| line.contains(" tps ")), "a second is over");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // Twice at once, as who ends a process and then its group does: that is one interrupt.
        (0..2).for_each(|_| kill(Pid::from_raw(run.id() as i32), signal).unwrap());
        assert!(lines.any(|line| line.starts_with("median ")));
        assert_eq!(run.wait().unwrap().code(), Some(code));
        let mut said = String::new();
        run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.lines().any(|line| line.starts_with("interrupted: ")), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "what it wrote is gone");
    }
}
