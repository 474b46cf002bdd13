//! Counts of what was asked of the operating system, by class: exact, so that figures repeat on any machine.

use std::cell::Cell;
use std::ops::{Add, AddAssign};

/// What a read or write is for, as a small number chosen by the caller: data, index, filter and so on.
///
/// Statistics are kept by class; nothing else depends on it. Class 0 is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct IoClass(u8);

impl IoClass {
    /// How many classes there are.
    pub const COUNT: usize = 16;

    /// The class with this number.
    ///
    /// # Panics
    /// If `number` is [`IoClass::COUNT`] or more; in a constant, this is an error of compilation.
    pub const fn new(number: u8) -> Self {
        assert!((number as usize) < Self::COUNT, "there are 16 classes of I/O, numbered from 0");
        Self(number)
    }

    /// The number the class was made with.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// Requests that went to the operating system, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoCount {
    /// Reads or writes that went to the operating system; each continuation of a short one counts again.
    pub requests: u64,
    /// Bytes asked for; of reads, after rounding outwards to the alignment of direct I/O.
    pub bytes: u64,
}

impl IoCount {
    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { requests: self.requests - earlier.requests, bytes: self.bytes - earlier.bytes }
    }
}

impl AddAssign for IoCount {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

impl Add for IoCount {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// A snapshot of the I/O of one shard, by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoStats {
    reads: Counts,
    writes: Counts,
    syncs: u64,
    dropped: u64,
}

type Counts = [IoCount; IoClass::COUNT];

impl IoStats {
    /// The reads of one class.
    pub fn class(&self, class: IoClass) -> IoCount {
        self.reads[usize::from(class.0)]
    }

    /// The reads of all classes together.
    pub fn total(&self) -> IoCount {
        sum(&self.reads)
    }

    /// The writes of one class.
    pub fn writes(&self, class: IoClass) -> IoCount {
        self.writes[usize::from(class.0)]
    }

    /// The writes of all classes together.
    pub fn total_writes(&self) -> IoCount {
        sum(&self.writes)
    }

    /// How often a file or a folder was to be made durable.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Reads [ahead](crate::Ahead) that went to the operating system, and whose bytes nobody took.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What was added since `earlier`, a snapshot of the same shard.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: std::array::from_fn(|class| self.reads[class].since(&earlier.reads[class])),
            writes: std::array::from_fn(|class| self.writes[class].since(&earlier.writes[class])),
            syncs: self.syncs - earlier.syncs,
            dropped: self.dropped - earlier.dropped,
        }
    }
}

fn sum(counts: &Counts) -> IoCount {
    counts.iter().fold(IoCount::default(), |sum, count| sum + *count)
}

/// The running counts of one shard, shared by its disk and all its files.
#[derive(Debug, Default)]
pub(crate) struct IoCounters {
    reads: [Cell<IoCount>; IoClass::COUNT],
    writes: [Cell<IoCount>; IoClass::COUNT],
    syncs: Cell<u64>,
    dropped: Cell<u64>,
}

impl IoCounters {
    pub(crate) fn record_read(&self, class: IoClass, bytes: usize) {
        record(&self.reads[usize::from(class.0)], bytes);
    }

    pub(crate) fn record_write(&self, class: IoClass, bytes: usize) {
        record(&self.writes[usize::from(class.0)], bytes);
    }

    pub(crate) fn record_sync(&self) {
        self.syncs.update(|count| count + 1);
    }

    pub(crate) fn record_dropped(&self) {
        self.dropped.update(|count| count + 1);
    }

    pub(crate) fn snapshot(&self) -> IoStats {
        IoStats {
            reads: std::array::from_fn(|class| self.reads[class].get()),
            writes: std::array::from_fn(|class| self.writes[class].get()),
            syncs: self.syncs.get(),
            dropped: self.dropped.get(),
        }
    }
}

fn record(count: &Cell<IoCount>, bytes: usize) {
    count.update(|count| count + IoCount { requests: 1, bytes: bytes as u64 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_counted_apart_and_subtracted() {
        let counters = IoCounters::default();
        counters.record_read(IoClass::new(1), 512);
        let before = counters.snapshot();
        counters.record_read(IoClass::new(1), 4096);
        counters.record_read(IoClass::new(15), 7);
        let now = counters.snapshot();
        assert_eq!(now.class(IoClass::new(1)), IoCount { requests: 2, bytes: 4608 });
        assert_eq!(now.total(), IoCount { requests: 3, bytes: 4615 });
        assert_eq!(now.since(&before).class(IoClass::new(1)), IoCount { requests: 1, bytes: 4096 });
        assert_eq!(now.since(&before).total(), IoCount { requests: 2, bytes: 4103 });
    }

    #[test]
    fn writes_and_syncs_are_counted_apart_from_reads() {
        let counters = IoCounters::default();
        counters.record_write(IoClass::new(1), 100);
        counters.record_sync();
        let before = counters.snapshot();
        counters.record_write(IoClass::new(1), 10);
        counters.record_write(IoClass::new(2), 1);
        counters.record_sync();
        let now = counters.snapshot();
        assert_eq!(now.writes(IoClass::new(1)), IoCount { requests: 2, bytes: 110 });
        assert_eq!(now.total_writes(), IoCount { requests: 3, bytes: 111 });
        assert_eq!(now.since(&before).total_writes(), IoCount { requests: 2, bytes: 11 });
        assert_eq!((now.syncs(), now.since(&before).syncs()), (2, 1));
        assert_eq!(now.total(), IoCount::default());
    }

    #[test]
    #[should_panic(expected = "16 classes")]
    fn a_class_beyond_the_last_is_refused() {
        IoClass::new(16);
    }
}
