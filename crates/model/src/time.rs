//! When data was written, deleted and expires.
//!
//! Timestamps are microseconds since the epoch, given by the writer; they alone decide who wins.
//! Local times are seconds since the epoch on the server that wrote: they decide when a tombstone
//! may be purged and when an expiring cell dies.

use std::cmp::{Ordering, Reverse};

/// A local deletion time that never comes.
pub const NO_DELETION_TIME: i64 = i64::MAX;
/// The timestamp of what was never written.
pub const NO_TIMESTAMP: i64 = i64::MIN;
/// The TTL of a row marker that is dead (ScyllaDB writes it with the local deletion time of a tombstone).
pub const EXPIRED_LIVENESS_TTL: u32 = i32::MAX as u32;

/// A deletion: of a partition, a range, a row or a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct DeletionTime {
    /// All data with this timestamp or an older one is deleted. Microseconds.
    pub marked_for_delete_at: i64,
    /// When the deletion was made, on the server's clock. Seconds.
    pub local_deletion_time: i64,
}

impl DeletionTime {
    /// The deletion that deletes nothing.
    pub const LIVE: DeletionTime =
        DeletionTime { marked_for_delete_at: NO_TIMESTAMP, local_deletion_time: NO_DELETION_TIME };

    /// Whether this deletes nothing.
    pub fn is_live(&self) -> bool {
        *self == DeletionTime::LIVE
    }

    /// Whether data of this timestamp is deleted.
    pub fn deletes(&self, timestamp: i64) -> bool {
        timestamp <= self.marked_for_delete_at && !self.is_live()
    }

    /// Whether this deletes all that `other` does: the later timestamp, then the later local time.
    pub fn supersedes(&self, other: &DeletionTime) -> bool {
        self > other
    }
}

impl PartialOrd for DeletionTime {
    fn partial_cmp(&self, other: &DeletionTime) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DeletionTime {
    /// The greater one wins a merge. [`DeletionTime::LIVE`] is the least.
    fn cmp(&self, other: &DeletionTime) -> Ordering {
        let local = |d: &DeletionTime| if d.is_live() { i64::MIN } else { d.local_deletion_time };
        (self.marked_for_delete_at, local(self)).cmp(&(other.marked_for_delete_at, local(other)))
    }
}

/// The row marker: that a row was inserted, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Liveness {
    /// Microseconds; [`NO_TIMESTAMP`] where the row has no marker.
    pub timestamp: i64,
    /// Seconds to live; 0 where it does not expire, [`EXPIRED_LIVENESS_TTL`] where it is dead.
    pub ttl: u32,
    /// When it expires, in seconds; [`NO_DELETION_TIME`] where it does not.
    pub local_expiration_time: i64,
}

impl Liveness {
    /// No marker: the row exists by its cells alone.
    pub const NONE: Liveness =
        Liveness { timestamp: NO_TIMESTAMP, ttl: 0, local_expiration_time: NO_DELETION_TIME };

    /// Whether the row has no marker.
    pub fn is_none(&self) -> bool {
        self.timestamp == NO_TIMESTAMP
    }

    /// Whether the marker has a time to live.
    pub fn is_expiring(&self) -> bool {
        self.ttl != 0
    }

    /// Whether this marker wins a merge with `other`: the later timestamp; of equal ones a dead marker, then
    /// an expiring one, then the one that expires later, then the smaller TTL.
    pub fn supersedes(&self, other: &Liveness) -> bool {
        let precedence = |m: &Liveness| {
            let dead = m.ttl == EXPIRED_LIVENESS_TTL;
            (m.timestamp, dead, m.is_expiring(), m.local_expiration_time, Reverse(m.ttl))
        };
        precedence(self) > precedence(other)
    }

    /// Whether the marker makes its row exist at `now`, in seconds.
    pub fn is_live(&self, now: i64) -> bool {
        !self.is_none()
            && self.ttl != EXPIRED_LIVENESS_TTL
            && (self.ttl == 0 || now < self.local_expiration_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_deletion_deletes_nothing_and_loses_to_all() {
        let oldest = DeletionTime { marked_for_delete_at: i64::MIN, local_deletion_time: 0 };
        assert!(!DeletionTime::LIVE.deletes(i64::MIN));
        assert!(oldest.deletes(i64::MIN));
        assert!(oldest.supersedes(&DeletionTime::LIVE));
    }

    #[test]
    fn a_marker_expires_at_its_time() {
        let marker = Liveness { timestamp: 1, ttl: 10, local_expiration_time: 110 };
        assert!(marker.is_live(109));
        assert!(!marker.is_live(110));
        assert!(!Liveness::NONE.is_live(0));
    }
}
