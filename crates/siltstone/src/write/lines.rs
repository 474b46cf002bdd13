//! The lines of all inputs, one after the other, with the numbers by which errors name them.

use std::io::BufRead;
use std::path::PathBuf;
use std::rc::Rc;
use std::vec;

use model::Schema;

use super::Input;
use crate::error::{Error, Result};
use crate::json_rows::{JsonRows, Piece};
use crate::sorted_rows::Unpaired;
use crate::text_lines::{LONGEST_LINE, read_line, too_long, without_mark};

/// Progress is worth telling every so many bytes.
const PROGRESS_STEP: u64 = 1 << 20;

/// Reads pieces from all inputs. Their lines are numbered from 1 through all of them.
pub(super) struct Lines {
    inputs: vec::IntoIter<Input>,
    schema: Rc<Schema>,
    default_timestamp: Option<i64>,
    /// The inputs that were begun, each with how many lines were before it.
    begun: Vec<(u64, PathBuf)>,
    current: Option<(Box<dyn BufRead>, JsonRows)>,
    buffer: Vec<u8>,
    /// How many lines were read.
    line: u64,
    bytes: u64,
    told: u64,
}

impl Lines {
    /// At the start of the first input.
    pub(super) fn new(inputs: Vec<Input>, schema: &Rc<Schema>, default_timestamp: Option<i64>) -> Lines {
        Lines {
            inputs: inputs.into_iter(),
            schema: schema.clone(),
            default_timestamp,
            begun: Vec::new(),
            current: None,
            buffer: Vec::new(),
            line: 0,
            bytes: 0,
            told: 0,
        }
    }

    /// What the next line that is not blank says; `None` behind the last one.
    ///
    /// # Errors
    /// What is wrong with a line, or cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Piece>> {
        while self.read_line()? {
            let (_, rows) = self.current.as_mut().expect("a line was read from it");
            let Ok(text) = std::str::from_utf8(self.buffer.trim_ascii_end()) else {
                return Err(self.error(self.line, "it is not UTF-8".to_owned()));
            };
            let is_first = self.begun.last().is_some_and(|(before, _)| self.line == before + 1);
            if let Some(piece) = rows.parse_line(if is_first { without_mark(text) } else { text })? {
                return Ok(Some(Piece { line: self.line, ..piece }));
            }
        }
        Ok(None)
    }

    /// How many bytes were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether so much was read since this was asked last that it is worth telling.
    pub(super) fn has_come_far(&mut self) -> bool {
        let is_far = self.bytes - self.told >= PROGRESS_STEP;
        if is_far {
            self.told = self.bytes;
        }
        is_far
    }

    /// That something is wrong with a line.
    pub(super) fn error(&self, line: u64, what: String) -> Error {
        let (before, path) =
            self.begun.iter().rfind(|(before, _)| *before < line).expect("the line was read");
        Error::Text { path: path.clone(), place: (line - before).to_string(), what }
    }

    /// That a range tombstone is not whole. Where there were runs, it may be that ends of others were taken for its own.
    pub(super) fn unpaired(&self, unpaired: Unpaired, has_runs: bool) -> Error {
        let order =
            "; where there is more than fits into memory, those of a partition must stay in their order";
        self.error(unpaired.line, format!("{unpaired}{}", if has_runs { order } else { "" }))
    }

    /// That there was nothing to read.
    pub(super) fn empty(&self) -> Error {
        match self.begun.first() {
            Some((_, path)) => Error::file(path, "there are no rows in it"),
            None => Error::Usage("there is no file of rows to read".to_owned()),
        }
    }

    /// Reads a line into the buffer; whether there was one.
    fn read_line(&mut self) -> Result<bool> {
        loop {
            if self.current.is_none() && !self.begin_input() {
                return Ok(false);
            }
            let (input, _) = self.current.as_mut().expect("one was begun");
            let len = read_line(input, &mut self.buffer).map_err(|error| self.unreadable(&error))?;
            if len == 0 {
                self.current = None;
                continue;
            }
            self.bytes += len;
            self.line += 1;
            if len > LONGEST_LINE {
                return Err(self.error(self.line, too_long()));
            }
            return Ok(true);
        }
    }

    fn begin_input(&mut self) -> bool {
        let Some(Input { path, lines }) = self.inputs.next() else { return false };
        let rows = JsonRows::new(&path, self.schema.clone(), self.default_timestamp);
        self.begun.push((self.line, path));
        self.current = Some((lines, rows));
        true
    }

    fn unreadable(&self, error: &std::io::Error) -> Error {
        let (_, path) = self.begun.last().expect("it was begun");
        Error::file(path, format!("it cannot be read: {error}"))
    }
}
