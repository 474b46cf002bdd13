//! Timestamps that never repeat, and the ids of elements of lists.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// From the beginning of the Gregorian calendar to the Unix epoch, in steps of 100 ns.
const EPOCH: i64 = 0x01b2_1dd2_1381_4000;

/// 2010-01-01 in steps of 100 ns since the Unix epoch: elements that are prepended have times as far before it as others
/// have after it, as with Cassandra.
const REFERENCE: i64 = 12_623_040_000_000_000;

/// The time, told apart for everybody who asks.
#[derive(Debug)]
pub(super) struct Stamps {
    /// Microseconds.
    last: AtomicI64,
    /// In steps of 100 ns.
    last_element: AtomicI64,
    /// Clock sequence and node of time UUIDs.
    node: [u8; 8],
}

impl Stamps {
    /// For a process of this number.
    pub(super) fn new(random: u64) -> Stamps {
        let mut node = random.to_be_bytes();
        node[0] = node[0] & 0x3f | 0x80;
        // A node without a network card has the lowest bit of the first byte set.
        node[2] |= 1;
        Stamps { last: AtomicI64::new(0), last_element: AtomicI64::new(0), node }
    }

    /// Microseconds since 1970, more than ever before.
    pub(super) fn micros(&self) -> i64 {
        later(&self.last, now_nanos() / 1000)
    }

    /// The path of the next element at a list's end.
    pub(super) fn append(&self) -> [u8; 16] {
        self.time_uuid(later(&self.last_element, now_nanos() / 100))
    }

    /// The path of an element before all others, and before the one that was asked for last.
    pub(super) fn prepend(&self) -> [u8; 16] {
        let now = later(&self.last_element, now_nanos() / 100);
        self.time_uuid(REFERENCE - (now - REFERENCE))
    }

    fn time_uuid(&self, ticks: i64) -> [u8; 16] {
        let time = (ticks + EPOCH) as u64;
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&(time as u32).to_be_bytes());
        bytes[4..6].copy_from_slice(&((time >> 32) as u16).to_be_bytes());
        bytes[6..8].copy_from_slice(&((time >> 48) as u16 & 0x0fff | 0x1000).to_be_bytes());
        bytes[8..].copy_from_slice(&self.node);
        bytes
    }
}

/// `now`, or one more than the last time if that is not later.
fn later(last: &AtomicI64, now: i64) -> i64 {
    let next = |last: i64| Some(now.max(last + 1));
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    before.map_or(now, |before| now.max(before + 1))
}

fn now_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use model::CqlType;

    use super::*;

    #[test]
    fn nothing_comes_twice() {
        let stamps = Stamps::new(7);
        let all: Vec<i64> = (0..1000).map(|_| stamps.micros()).collect();
        assert!(all.is_sorted_by(|a, b| a < b));
        let mut ids: Vec<[u8; 16]> = (0..100).map(|_| stamps.prepend()).collect();
        ids.reverse();
        ids.extend((0..100).map(|_| stamps.append()));
        assert!(ids.is_sorted_by(|a, b| CqlType::TimeUuid.compare(a, b).is_lt()));
        assert!(ids.iter().all(|id| CqlType::TimeUuid.validate(id).is_ok()));
    }
}
