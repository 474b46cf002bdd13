//! Commands: those that have to go well, and what others said.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::Result;

/// From this many bytes on, an output is no message. Java's traces are long.
const LONGEST_MESSAGE: usize = 64 << 10;

/// Runs a command whose output is of interest only if it fails.
///
/// # Errors
/// If it cannot be started or fails; the error has what it wrote, as far as that is not too long to be a message.
pub fn checked(command: &mut Command) -> Result<Output> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(output);
    }
    // Some, Maven among them, say on stdout what went wrong.
    let messages = [&output.stderr, &output.stdout].into_iter().filter(|said| said.len() < LONGEST_MESSAGE);
    let said: String = messages.map(|said| String::from_utf8_lossy(said)).collect();
    Err(format!("{} failed with {}:\n{said}", command.get_program().display(), output.status).into())
}

/// The code that a command ended with.
///
/// # Panics
/// If a signal ended it.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("the command ended by itself")
}

/// What a command printed.
///
/// # Panics
/// If it is not UTF-8.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("the output is text")
}

/// What a command said of errors.
///
/// # Panics
/// If it is not UTF-8.
pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("the errors are text")
}

/// What a command that went well printed as JSON, a line each.
///
/// # Panics
/// If it has failed, or a line is no JSON.
pub fn json_lines(output: &Output) -> Vec<Value> {
    assert_eq!(code(output), 0, "{}", stderr(output));
    stdout(output).lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// What a command says of errors, without what benchmarks say where no file can be read past the page cache, which is the file system's.
///
/// # Panics
/// If it is not UTF-8.
pub fn complaints(output: &Output) -> String {
    let lines = stderr(output).split_inclusive('\n');
    lines.filter(|line| !line.contains("there is no direct I/O here")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_why() {
        let error = checked(Command::new("sh").args(["-c", "echo sorry >&2; echo so; exit 3"])).unwrap_err();
        assert!(error.to_string().ends_with("sorry\nso\n"), "{error}");
        assert!(checked(&mut Command::new("no-such-command")).is_err());
    }
}
