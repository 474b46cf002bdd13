//! Counts of what was asked of the operating system, by class: exact, so that figures repeat on any machine.

use std::cell::Cell;
use std::ops::{Add, AddAssign};

/// What a read is for, as a small number chosen by the caller: data, index, filter and so on.
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
    /// Reads that went to the operating system; each continuation of a short read counts again.
    pub requests: u64,
    /// Bytes asked for, after rounding outwards to the alignment of direct I/O.
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
    reads: [IoCount; IoClass::COUNT],
}

impl IoStats {
    /// The reads of one class.
    pub fn class(&self, class: IoClass) -> IoCount {
        self.reads[usize::from(class.0)]
    }

    /// The reads of all classes together.
    pub fn total(&self) -> IoCount {
        self.reads.iter().fold(IoCount::default(), |sum, count| sum + *count)
    }

    /// What was added since `earlier`, a snapshot of the same shard.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { reads: std::array::from_fn(|class| self.reads[class].since(&earlier.reads[class])) }
    }
}

/// The running counts of one shard, shared by its disk and all its files.
#[derive(Debug, Default)]
pub(crate) struct IoCounters {
    reads: [Cell<IoCount>; IoClass::COUNT],
}

impl IoCounters {
    pub(crate) fn record_read(&self, class: IoClass, bytes: usize) {
        let count = &self.reads[usize::from(class.0)];
        count.set(count.get() + IoCount { requests: 1, bytes: bytes as u64 });
    }

    pub(crate) fn snapshot(&self) -> IoStats {
        IoStats { reads: std::array::from_fn(|class| self.reads[class].get()) }
    }
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
    #[should_panic(expected = "16 classes")]
    fn a_class_beyond_the_last_is_refused() {
        IoClass::new(16);
    }
}
