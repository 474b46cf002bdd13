//! Index.db against the partitions of Data.db, and Summary.db against Index.db: one walk over all three.

use std::cmp::Ordering;
use std::path::PathBuf;

use model::{Bytes, CqlType};

use super::report::Report;
use crate::big::entry::{Entry, EntryScanner};
use crate::index::token_for;
use crate::parts::statistics::Partitioner;
use crate::parts::summary::Summary;

/// The order of the partitions.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) partitioner: Partitioner,
    pub(super) key: CqlType,
}

impl Order {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let token = |key| token_for(self.partitioner, key);
        match self.partitioner {
            Partitioner::Murmur3 => token(a).cmp(&token(b)).then_with(|| a.cmp(b)),
            Partitioner::Local => self.key.compare(a, b),
        }
    }

    /// Whether a partition of one key may come before that of the other.
    pub(super) fn ascends(&self, before: &[u8], after: &[u8]) -> bool {
        self.compare(before, after).is_lt()
    }
}

/// Walks over the entries of Index.db beside the partitions of Data.db.
pub(super) struct IndexCheck {
    path: PathBuf,
    entries: EntryScanner,
    order: Option<Order>,
    samples: Option<SampleCheck>,
    previous: Option<(Bytes, u64)>,
    next: Option<Entry>,
    /// An entry could not be read: what follows it is unknown.
    is_broken: bool,
}

impl IndexCheck {
    /// At the first entry.
    pub(super) async fn new(
        path: PathBuf,
        entries: EntryScanner,
        order: Option<Order>,
        samples: Option<SampleCheck>,
        report: &mut Report,
    ) -> IndexCheck {
        let (previous, next, is_broken) = (None, None, false);
        let mut check = IndexCheck { path, entries, order, samples, previous, next, is_broken };
        check.advance(report).await;
        check
    }

    /// The entry of the partition that begins at `start` of the data and has this key, if there is one.
    pub(super) async fn meet(&mut self, start: u64, key: &[u8], report: &mut Report) -> Option<Entry> {
        while let Some(entry) = self.next.take_if(|entry| entry.data < start) {
            let what = format!("this entry points to {} of the data, where no partition begins", entry.data);
            report.wrong(&self.path, entry.at, what);
            self.advance(report).await;
        }
        let Some(entry) = self.next.take_if(|entry| entry.data == start) else {
            if !self.is_broken {
                let what = format!("the partition at {start} of the data has no entry");
                report.wrong(
                    &self.path,
                    self.next.as_ref().map_or(self.entries.position(), |next| next.at),
                    what,
                );
            }
            return None;
        };
        self.advance(report).await;
        if *entry.key == *key {
            return Some(entry);
        }
        let found = Bytes::from(key);
        report.wrong(
            &self.path,
            entry.at,
            format!("this entry has key {:?}, its partition {found:?}", entry.key),
        );
        None
    }

    /// Where the first partition from `bound` on begins, and how many before it are passed over.
    pub(super) async fn pass_to(&mut self, bound: u64, report: &mut Report) -> (Option<u64>, u64) {
        let mut passed = 0;
        while self.next.take_if(|entry| entry.data < bound).is_some() {
            passed += 1;
            self.advance(report).await;
        }
        (self.next.as_ref().map(|entry| entry.data), passed)
    }

    /// What is left has no partition.
    pub(super) async fn finish(mut self, data_was_read: bool, report: &mut Report) {
        while let Some(entry) = self.next.take() {
            if data_was_read {
                let what =
                    format!("this entry points to {} of the data, where no partition begins", entry.data);
                report.wrong(&self.path, entry.at, what);
            }
            self.advance(report).await;
        }
        if let Some(samples) = self.samples.filter(|_| !self.is_broken) {
            samples.finish(self.previous.as_ref().map(|(key, _)| &**key), report);
        }
    }

    async fn advance(&mut self, report: &mut Report) {
        match self.entries.next().await {
            Ok(Some(entry)) => {
                self.check(&entry, report);
                self.previous = Some((entry.key.clone(), entry.data));
                self.next = Some(entry);
            }
            Ok(None) => {}
            Err(error) => {
                self.is_broken = true;
                report.error(error);
            }
        }
    }

    fn check(&mut self, entry: &Entry, report: &mut Report) {
        if let Some((key, data)) = &self.previous {
            if self.order.as_ref().is_some_and(|order| !order.ascends(key, &entry.key)) {
                report.wrong(&self.path, entry.at, "this entry's key is not after the one before it");
            }
            if *data >= entry.data {
                report.wrong(&self.path, entry.at, "this entry's position is not after the one before it");
            }
        }
        if let Some(samples) = &mut self.samples {
            samples.check(entry, self.previous.is_none(), report);
        }
    }
}

/// Compares Summary.db with the entries of Index.db as they go by.
pub(super) struct SampleCheck {
    path: PathBuf,
    summary: Summary,
    next: usize,
}

impl SampleCheck {
    pub(super) fn new(path: PathBuf, summary: Summary) -> SampleCheck {
        SampleCheck { path, summary, next: 0 }
    }

    fn check(&mut self, entry: &Entry, is_first: bool, report: &mut Report) {
        if is_first {
            self.check_first(entry, report);
        }
        while self.next < self.summary.len() {
            let (key, at) = self.summary.entry(self.next);
            if at > entry.at {
                return;
            }
            if at < entry.at {
                self.wrong(format!("points to {at} of Index.db, where no entry begins"), report);
            } else if key != &*entry.key {
                self.wrong(format!("has another key than the entry at {at} of Index.db"), report);
            }
            self.next += 1;
        }
    }

    /// Keys before the first sample would not be found.
    fn check_first(&self, entry: &Entry, report: &mut Report) {
        if self.summary.is_empty() || self.summary.entry(0).1 != 0 {
            report.wrong_file(&self.path, "the first entry of Index.db is not in the summary");
        }
        if self.summary.first_key() != &*entry.key {
            report.wrong_file(&self.path, "the first key is not that of Index.db");
        }
    }

    fn finish(mut self, last_key: Option<&[u8]>, report: &mut Report) {
        while self.next < self.summary.len() {
            let at = self.summary.entry(self.next).1;
            self.wrong(format!("points to {at} of Index.db, where no entry begins"), report);
            self.next += 1;
        }
        if last_key.is_some_and(|key| key != self.summary.last_key()) {
            report.wrong_file(&self.path, "the last key is not that of Index.db");
        }
    }

    fn wrong(&self, what: String, report: &mut Report) {
        report.wrong_file(&self.path, format!("entry {} {what}", self.next));
    }
}
