//! A bar on stderr for what takes long.

use std::io::{IsTerminal as _, stderr, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// What is done sooner needs no bar.
const PATIENCE: Duration = Duration::from_millis(800);

/// Shows how far a long piece of work is, if somebody looks: stderr is a terminal, and the output does not
/// go to one as well.
pub(super) struct Progress {
    name: String,
    total: u64,
    started: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work of so many bytes; 0 where nobody knows.
    pub(super) fn new(name: &str, total: u64) -> Progress {
        let is_seen = stderr().is_terminal() && !stdout().is_terminal();
        Progress { name: name.to_owned(), total, started: is_seen.then(Instant::now), bar: None }
    }

    /// The same where nothing else goes to the output meanwhile.
    pub(super) fn always(name: &str, total: u64) -> Progress {
        let started = stderr().is_terminal().then(Instant::now);
        Progress { name: name.to_owned(), total, started, bar: None }
    }

    /// So many bytes are done of the work that now has this name.
    pub(super) fn set_named(&mut self, name: &str, done: u64) {
        if self.name != name {
            name.clone_into(&mut self.name);
            self.bar.iter().for_each(|bar| bar.set_prefix(name.to_owned()));
        }
        self.set(done);
    }

    /// So many bytes are done.
    pub(super) fn set(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        } else if self.started.is_some_and(|started| started.elapsed() > PATIENCE) {
            self.bar = Some(self.draw(done));
        }
    }

    /// So many bytes of so many are done.
    pub(super) fn set_of(&mut self, done: u64, total: u64) {
        self.total = total;
        self.set(done);
    }

    fn draw(&self, done: u64) -> ProgressBar {
        let template = match self.total {
            0 => "{prefix} {bytes}, {bytes_per_sec}",
            _ => "{prefix} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(self.total).with_style(style).with_prefix(self.name.clone());
        bar.set_position(done);
        bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
