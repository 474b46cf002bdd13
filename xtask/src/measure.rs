//! Times and memory of commands.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::command::checked;

use crate::Result;

/// How often the memory of a running command is looked at.
const PERIOD: Duration = Duration::from_millis(1);

/// That what a benchmark printed was read past the page cache of the operating system, as the pages say: some file systems cannot do that.
///
/// # Errors
/// If it was not, or it does not say so.
pub fn check_direct(printed: &Value) -> Result<()> {
    let mut told = Vec::new();
    find_direct(printed, &mut told);
    match told.iter().all(|is_direct| *is_direct) {
        true if told.is_empty() => Err("a benchmark does not say how it read its files".into()),
        true => Ok(()),
        false => Err("files were read through the page cache: the folder is to be on a file system that can read past it".into()),
    }
}

/// What documents within this one say of it.
fn find_direct(within: &Value, told: &mut Vec<bool>) {
    match within {
        Value::Object(fields) => {
            told.extend(fields.get("direct_io").and_then(Value::as_bool));
            fields.values().for_each(|value| find_direct(value, told));
        }
        Value::Array(values) => values.iter().for_each(|value| find_direct(value, told)),
        _ => {}
    }
}

/// The seconds from starting a command to its end; its output goes to `/dev/null`.
///
/// # Errors
/// If it fails.
pub fn seconds(command: &mut Command) -> Result<f64> {
    command.stdout(Stdio::null());
    let started = Instant::now();
    checked(command)?;
    Ok(started.elapsed().as_secs_f64())
}

/// The largest resident set of a command, in KiB; its output goes to `/dev/null`.
///
/// The kernel keeps the maximum (`VmHWM`) as long as the process runs; it is read again and again until then, so that
/// no more than the last millisecond can be missed. What `wait4` tells instead would include the memory of this
/// process, which the child has until it starts its program.
///
/// # Errors
/// If it fails, or ends before its memory was looked at.
pub fn peak_kib(command: &mut Command) -> Result<u64> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = None;
    let status = loop {
        let seen = fs::read_to_string(&status_file).ok().and_then(|status| high_water_mark(&status));
        peak = seen.max(peak);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(PERIOD);
    };
    if !status.success() {
        return Err(format!("{} failed with {status}", command.get_program().display()).into());
    }
    peak.ok_or_else(|| "the command ended before its memory was looked at".into())
}

fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The value in the middle; of an even number of values, the upper of the two.
///
/// # Panics
/// If there is no value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_page_cache_answered_is_refused() {
        let run = |is_direct: bool| serde_json::json!([{ "direct_io": is_direct, "cases": [] }]);
        assert!(check_direct(&run(true)).is_ok());
        assert!(check_direct(&run(false)).is_err());
        assert!(check_direct(&serde_json::json!({ "runs": [run(true), run(false)] })).is_err());
        assert!(check_direct(&serde_json::json!({ "cases": [] })).is_err());
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 4.0);
    }

    #[test]
    fn memory_is_read_from_the_kernel() {
        assert_eq!(high_water_mark("Name:\tx\nVmHWM:\t    8300 kB\nVmRSS:\t1 kB\n"), Some(8300));
        assert_eq!(high_water_mark("Name:\tx\n"), None);
        assert!(peak_kib(Command::new("sleep").arg("0.1")).unwrap() > 100);
    }
}
