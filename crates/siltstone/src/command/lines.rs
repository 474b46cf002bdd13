//! Lines on the standard output, of which somebody may read only the first.

use std::io::{self, Write as _};

use siltstone::Result;

/// Prints, until whoever reads has seen enough: what a command does beside printing goes on.
pub(super) struct Lines {
    is_read: bool,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines { is_read: true }
    }

    /// Prints a line.
    ///
    /// # Errors
    /// If it cannot be written, but for a pipe that is closed.
    pub(super) fn say(&mut self, line: &str) -> Result<()> {
        self.print(&format!("{line}\n"))
    }

    /// Prints text as it is.
    ///
    /// # Errors
    /// As of [`Lines::say`].
    pub(super) fn print(&mut self, text: &str) -> Result<()> {
        if !self.is_read {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_read = false;
                Ok(())
            }
            written => Ok(written?),
        }
    }
}

/// Prints the one line of a command.
///
/// # Errors
/// As of [`Lines::say`].
pub(super) fn say(line: &str) -> Result<()> {
    Lines::new().say(line)
}
