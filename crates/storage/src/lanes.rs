//! SSTables that follow each other, in lanes: each lane is read one SSTable at a time, and the next one is not asked before.
//!
//! ```text
//! rows ─────────────────────────────────────────►
//! [─── a ───)   [── c ──)      [──── e ────)         lane 1: a, c, e
//!        [─── b ───)   [─── d ───)                   lane 2: b, d
//! ```
//!
//! There are as few lanes as possible: as many as SSTables overlap at one place, and one more for each SSTable that has to be asked first.
//! Rows that were written in time order, and the SSTables of leveled compaction, need few lanes, however many SSTables there are.

use std::collections::VecDeque;
use std::rc::Rc;

use model::{PartitionKey, Schema};

use crate::ends::Ends;
use crate::sstable_set::Member;

/// SSTables of which none begins before the one in front of it has ended.
pub(crate) type Lane = Vec<Rc<Member>>;

/// The lanes of SSTables that all may have a slice of a partition, in the order of rows. One that may delete the partition, unless it came
/// with this version of the set or before, and one whose rows may be anywhere, have a lane of their own: what they say comes first.
pub(crate) fn of_slice(
    key: &PartitionKey,
    members: &[Rc<Member>],
    undeleted: u64,
    schema: &Schema,
) -> Vec<Lane> {
    let ends = |member| {
        let ends = Ends::within(key, member, schema);
        if member.may_delete_partitions(undeleted) { ends.of_keys() } else { ends }
    };
    lanes(members, ends, schema)
}

/// The lanes of SSTables of which all is read, in the order of partitions and their rows. Where one ends in the partition in which the next
/// begins, that does not delete it.
pub(crate) fn of_scan<'a>(members: impl IntoIterator<Item = &'a Rc<Member>>, schema: &Schema) -> Vec<Lane> {
    let ends = |member| {
        let ends = Ends::of(member, schema);
        if member.may_delete_partitions(0) { ends.of_keys() } else { ends }
    };
    lanes(members, ends, schema)
}

fn lanes<'a>(
    members: impl IntoIterator<Item = &'a Rc<Member>>,
    ends: impl Fn(&'a Member) -> Ends<'a>,
    schema: &Schema,
) -> Vec<Lane> {
    let mut members: Vec<_> = members.into_iter().map(|member| (ends(member), member)).collect();
    members.sort_by(|(a, _), (b, _)| a.compare_starts(b, schema));
    let mut lanes: Vec<Lane> = Vec::new();
    // The last member of each lane, and the lane: the first to end at the front, which takes the next member if it ends before that begins.
    let mut open: VecDeque<(u32, u32)> = VecDeque::new();
    for (at, (next, member)) in (0..).zip(&members) {
        let ends = |last: u32| &members[last as usize].0;
        let lane = match open.front() {
            Some(&(last, lane)) if ends(last).is_before(next, schema) => {
                open.pop_front();
                lane
            }
            _ => {
                lanes.push(Lane::new());
                lanes.len() as u32 - 1
            }
        };
        lanes[lane as usize].push((*member).clone());
        let place = open.partition_point(|(last, _)| !ends(*last).is_longer(next, schema));
        open.insert(place, (at, lane));
    }
    lanes
}
