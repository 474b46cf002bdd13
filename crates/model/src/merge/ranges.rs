//! The range tombstones of all sources as one sequence: at each place the greatest open one counts.

use smallvec::SmallVec;

use crate::DeletionTime;

/// The range deletions that are open in the sources, and the one in force in the merge.
#[derive(Debug)]
pub(super) struct OpenRanges {
    /// Each with its source, in no order: there may be thousands of sources, of which few have any.
    open: SmallVec<[(u32, DeletionTime); 2]>,
    /// Greater than the deletion of the partition, or live.
    in_force: DeletionTime,
}

impl OpenRanges {
    pub(super) fn new() -> OpenRanges {
        OpenRanges { open: SmallVec::new(), in_force: DeletionTime::LIVE }
    }

    /// At the start of a partition nothing is open, even if a source broke off inside of a range.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.in_force = DeletionTime::LIVE;
    }

    /// The deletion that the merge has announced last.
    pub(super) fn in_force(&self) -> DeletionTime {
        self.in_force
    }

    /// The deletion of a source changes.
    pub(super) fn set(&mut self, source: u32, deletion: DeletionTime) {
        self.open.retain(|(other, _)| *other != source);
        if !deletion.is_live() {
            self.open.push((source, deletion));
        }
    }

    /// The deletion now in force, if it is another one than before. What the deletion of the partition
    /// covers is not in force.
    pub(super) fn advance(&mut self, partition: DeletionTime) -> Option<DeletionTime> {
        let greatest = self.open.iter().map(|(_, deletion)| *deletion).max().unwrap_or(DeletionTime::LIVE);
        let in_force = if greatest.supersedes(&partition) { greatest } else { DeletionTime::LIVE };
        if in_force == self.in_force {
            return None;
        }
        self.in_force = in_force;
        Some(in_force)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
    }

    #[test]
    fn the_greatest_open_one_is_in_force() {
        let mut ranges = OpenRanges::new();
        let mut step = |source, to, partition| {
            ranges.set(source, to);
            ranges.advance(partition)
        };
        let live = DeletionTime::LIVE;
        assert_eq!(step(0, deletion(5), live), Some(deletion(5)));
        assert_eq!(step(1, deletion(3), live), None);
        assert_eq!(step(0, live, live), Some(deletion(3)));
        assert_eq!(step(0, deletion(3), live), None);
        assert_eq!(step(1, live, live), None);
        assert_eq!(step(0, live, live), Some(live));
        assert_eq!(step(0, deletion(4), deletion(4)), None);
        assert_eq!(step(1, deletion(6), deletion(4)), Some(deletion(6)));
        assert_eq!(step(1, live, deletion(4)), Some(live));
    }
}
