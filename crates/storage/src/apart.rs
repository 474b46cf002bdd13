//! SSTables that major compactions leave as they stand, because merging would make nothing of them but larger files.
//!
//! ```text
//! in the order of their rows      ├─────1─────┤├─────2─────┤   ├──3──┤ ├────4────┤
//!                                                                 ├──5──┤    ├──6──┤
//! 1 and 2 are large, and have their rows to themselves            3 to 6 are one job
//! ```
//!
//! A read of a row asks one of them either way, and a slice of a large partition finds those with its rows by bisection
//! ([`crate::sstable_set`]). Rows that are written in their order, by time or sorted, are flushed as a run of such SSTables. To write all
//! of them again would cost as much as the load, and gain next to nothing. RocksDB moves such files too. Scans and slices read them one
//! after the other ([`crate::lanes`]). But each SSTable costs requests when a table is opened, so that never many are left. An SSTable with
//! nothing to merge with, such as the only one of a table, is left whatever its size.
//!
//! An SSTable is left only if nothing is deleted or expires in it, or in another one between the same tokens: a deletion may be purged once
//! all older data is rewritten with it. And it is left only if it was written since the table was opened or last altered, because whoever
//! changes options and compacts the table wants all of it rewritten; for older SSTables it is not known with which options they were
//! written.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::Schema;
use model::time::NO_DELETION_TIME;

use crate::compaction::{Generation, Job};
use crate::ends::Ends;
use crate::sstable_set::Member;

/// Large enough to be left are those of such a part of all: there are no more than so many.
const MOST_LEFT: u64 = 8;

/// A major job in parts, each of which merges what stands between two SSTables that are left, in the order of their rows. Left are those
/// of at least so many bytes on disk that have no row between the first and the last one of any other; and of whatever size where nothing
/// stands beside one that it could be merged with.
pub(crate) fn around_left(job: Job, members: &[Rc<Member>], schema: &Schema, least: u64) -> Vec<Job> {
    if job.max_output_bytes.is_some() {
        return vec![job];
    }
    let rule = Rule::of(members, least);
    let chosen: BTreeSet<&Generation> = job.inputs.iter().collect();
    let is_of_job = |member: &&Rc<Member>| chosen.contains(&member.facts.generation);
    let ends = members.iter().filter(is_of_job).map(|member| (&**member, Ends::of(member, schema)));
    let groups = overlapping(ends.collect(), schema);
    let mut parts: Vec<Vec<&Member>> = vec![Vec::new()];
    for group in &groups {
        match rule.left_of(group) {
            Some(_) => parts.push(Vec::new()),
            None => parts.last_mut().expect("there is one").extend(group.iter().map(|(member, _)| *member)),
        }
    }
    // One by itself would be the same again.
    parts.retain(|part| match &part[..] {
        [] => false,
        [alone] => !rule.is_settled(alone),
        _ => true,
    });
    let inputs = |part: &Vec<&Member>| {
        let part: BTreeSet<&Generation> = part.iter().map(|member| &member.facts.generation).collect();
        job.inputs.iter().filter(|generation| part.contains(generation)).cloned().collect()
    };
    let mut jobs: Vec<Job> =
        parts.iter().map(|part| Job { inputs: inputs(part), expired: Vec::new(), ..job.clone() }).collect();
    match jobs.first_mut() {
        Some(first) => first.expired.clone_from(&job.expired),
        None if job.expired.is_empty() => {}
        None => jobs.push(Job { inputs: Vec::new(), ..job }),
    }
    jobs
}

/// What is left, among these.
struct Rule<'a> {
    /// Bytes on disk.
    large: u64,
    /// Those in which something is deleted or expires.
    deleting: Vec<&'a Member>,
}

impl<'a> Rule<'a> {
    fn of(members: &'a [Rc<Member>], least: u64) -> Rule<'a> {
        let all: u64 = members.iter().map(|member| member.facts.bytes_on_disk).sum();
        let deletes = |member: &&Rc<Member>| {
            let facts = &member.facts;
            !facts.drop_times.bins.is_empty() || facts.min_local_deletion_time != NO_DELETION_TIME
        };
        let deleting = members.iter().filter(deletes).map(|member| &**member).collect();
        Rule { large: least.max(all / MOST_LEFT), deleting }
    }

    /// The SSTable of a group, if it is left.
    fn left_of<'b>(&self, group: &[WithEnds<'b>]) -> Option<&'b Member> {
        match group {
            [(member, _)] if member.facts.bytes_on_disk >= self.large && self.is_settled(member) => {
                Some(*member)
            }
            _ => None,
        }
    }

    /// Whether merging an SSTable with nothing gives the same again, and no deletion waits for it.
    fn is_settled(&self, member: &Member) -> bool {
        let is_beside = |other: &&Member| other.facts.overlaps(&member.facts);
        member.is_as_defined() && member.columns.is_identity() && !self.deleting.iter().any(is_beside)
    }
}

/// An SSTable, and where it ends.
type WithEnds<'a> = (&'a Member, Ends<'a>);

/// Those that overlap, directly or by others between them, in the order of their starts.
fn overlapping<'a>(mut ends: Vec<WithEnds<'a>>, schema: &Schema) -> Vec<Vec<WithEnds<'a>>> {
    ends.sort_by(|(_, a), (_, b)| a.compare_starts(b, schema));
    let mut groups: Vec<Vec<WithEnds<'a>>> = Vec::new();
    // The place in the last group of the one that ends last.
    let mut longest = 0;
    for next in ends {
        match groups.last_mut() {
            Some(group) if !group[longest].1.is_before(&next.1, schema) => {
                if next.1.is_longer(&group[longest].1, schema) {
                    longest = group.len();
                }
                group.push(next);
            }
            _ => {
                longest = 0;
                groups.push(vec![next]);
            }
        }
    }
    groups
}
