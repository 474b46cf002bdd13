//! What holds nothing but tombstones, or so many of them that it is worth while to write it anew.

use model::Token;

use super::facts::{Generation, SSTableFacts, View};
use super::options::{Compaction, Strategy};

/// Below so many partitions it cannot be told how many lie outside of others.
const INFORMATIVE_PARTITIONS: u64 = 2 * 128;

/// Those of `candidates` that can be removed unread. All in them has expired so long ago that it may be forgotten, and
/// they delete nothing: whatever else holds anything that may live is newer than all of them.
///
/// Candidates that do not go themselves count as such, and so does what lies between the same tokens as one of them, and
/// what is in the memtables.
pub(super) fn fully_expired(
    compaction: &Compaction,
    view: &View<'_>,
    candidates: &[&SSTableFacts],
) -> Vec<Generation> {
    let is_repaired = |sstable: &&SSTableFacts| sstable.repaired_at != 0;
    if compaction.only_purge_repaired_tombstones && !candidates.iter().all(is_repaired) {
        return Vec::new();
    }
    let has_expired = |sstable: &SSTableFacts| sstable.max_local_deletion_time < view.gc_before;
    let expired = candidates.iter().filter(|sstable| has_expired(sstable));
    if ignores_overlaps(compaction) {
        return expired.map(|sstable| sstable.generation.clone()).collect();
    }
    let spans = Spans::of(candidates);
    let of_others = view.all.iter().filter(|other| !has_expired(other) && spans.overlap(other));
    let least = of_others.map(|other| other.min_timestamp).chain(view.memtable_min_timestamp).min();
    let is_older = |sstable: &&&SSTableFacts| least.is_none_or(|least| sstable.max_timestamp < least);
    expired.filter(is_older).map(|sstable| sstable.generation.clone()).collect()
}

/// Whether it is worth while to write an SSTable anew without its tombstones: so many of its cells are droppable that
/// lie outside of all others. Not before it is as old as the options say, or it would be written again and again for
/// tombstones that stay.
pub(super) fn is_worth(compaction: &Compaction, view: &View<'_>, sstable: &SSTableFacts) -> bool {
    let rule = &compaction.tombstones;
    let age = view.now.saturating_mul(1000).saturating_sub(sstable.written_at);
    if !rule.enabled || age < rule.interval_seconds.saturating_mul(1000) {
        return false;
    }
    let ratio = sstable.droppable_ratio(view.gc_before);
    if ratio <= rule.threshold {
        return false;
    }
    let overlaps = |other: &&SSTableFacts| other.generation != sstable.generation && other.overlaps(sstable);
    let others: Vec<&SSTableFacts> = view.all.iter().filter(overlaps).collect();
    if rule.unchecked || others.is_empty() || !fully_expired(compaction, view, &[sstable]).is_empty() {
        return true;
    }
    sstable.partitions > INFORMATIVE_PARTITIONS && ratio * share_outside(sstable, &others) > rule.threshold
}

/// From which tokens to which some SSTables reach, in their order; what overlaps is one. There may be thousands of SSTables, and each is
/// compared with all.
struct Spans(Vec<(Token, Token)>);

impl Spans {
    fn of(sstables: &[&SSTableFacts]) -> Spans {
        let mut all: Vec<(Token, Token)> =
            sstables.iter().map(|sstable| (sstable.first_token, sstable.last_token)).collect();
        all.sort_unstable();
        all.dedup_by(|(first, last), (_, before)| {
            let overlaps = *first <= *before;
            if overlaps {
                *before = (*before).max(*last);
            }
            overlaps
        });
        Spans(all)
    }

    /// Whether any of them [overlaps](SSTableFacts::overlaps) this one.
    fn overlap(&self, sstable: &SSTableFacts) -> bool {
        let next = self.0.partition_point(|(_, last)| *last < sstable.first_token);
        self.0.get(next).is_some_and(|(first, last)| sstable.is_within(*first, *last))
    }
}

fn ignores_overlaps(compaction: &Compaction) -> bool {
    matches!(&compaction.strategy, Strategy::TimeWindow(windows) if windows.ignore_overlaps)
}

/// Which share of an SSTable lies between the tokens of none of these. Tokens are spread evenly; Cassandra counts keys
/// of the summary.
fn share_outside(sstable: &SSTableFacts, others: &[&SSTableFacts]) -> f64 {
    let mut covered: Vec<(i128, i128)> = others
        .iter()
        .map(|other| {
            let first = other.first_token.max(sstable.first_token);
            (i128::from(first), i128::from(other.last_token.min(sstable.last_token)) + 1)
        })
        .collect();
    covered.sort_unstable();
    let (first, end) = (i128::from(sstable.first_token), i128::from(sstable.last_token) + 1);
    let (mut outside, mut reached) = (0, first);
    for (from, to) in covered {
        outside += (from - reached).max(0);
        reached = reached.max(to);
    }
    (outside + end - reached) as f64 / (end - first) as f64
}

#[cfg(test)]
mod tests {
    use model::time::NO_DELETION_TIME;
    use sstable::parts::statistics::DropTimes;

    use super::super::simulation::{NOW, compaction, facts, view};
    use super::super::{Job, Reason};
    use super::*;

    const GC_BEFORE: i64 = NOW - 864_000;

    /// Everything in it is of these timestamps, and dead since a second.
    fn dead(number: u64, timestamps: [i64; 2], since: i64) -> SSTableFacts {
        let [min_timestamp, max_timestamp] = timestamps;
        SSTableFacts { min_timestamp, max_timestamp, max_local_deletion_time: since, ..facts(number) }
    }

    fn expired(all: &[SSTableFacts], candidates: &[usize]) -> Vec<Generation> {
        let candidates: Vec<&SSTableFacts> = candidates.iter().map(|&at| &all[at]).collect();
        fully_expired(&compaction("TimeWindowCompactionStrategy", &[]), &view(all), &candidates)
    }

    #[test]
    fn what_deletes_nothing_goes_unread() {
        let long_ago = GC_BEFORE - 1;
        let all = [
            dead(0, [1, 5], long_ago),
            dead(1, [1, 9], long_ago),
            dead(2, [6, 9], NO_DELETION_TIME),
            dead(3, [1, 1], GC_BEFORE),
        ];
        assert_eq!(expired(&all[..3], &[0]), ["0"], "2 is newer, and what 1 holds is dead too");
        assert_eq!(expired(&all[..3], &[0, 1, 2]), ["0"], "1 may delete of 2");
        assert_eq!(expired(&all[..2], &[0, 1]), ["0", "1"]);
        assert_eq!(expired(&all, &[0]), [""; 0], "3 is not dead for long enough");
        assert_eq!(expired(&all, &[3]), [""; 0]);
    }

    #[test]
    fn what_lies_between_other_tokens_does_not_count() {
        let far = SSTableFacts { first_token: 2000, last_token: 3000, ..dead(1, [1, 1], NO_DELETION_TIME) };
        let near = SSTableFacts { first_token: 0, last_token: 1000, ..dead(0, [5, 5], 0) };
        assert_eq!(expired(&[near.clone(), far.clone()], &[0]), ["0"]);
        // With another candidate there, it does.
        let between = SSTableFacts { first_token: 1500, last_token: 2500, ..dead(2, [5, 5], 0) };
        assert_eq!(expired(&[near, far, between], &[0, 2]), [""; 0]);
    }

    #[test]
    fn memtables_count_and_options_do() {
        let all = [dead(0, [1, 5], 0), dead(1, [1, 9], NO_DELETION_TIME)];
        let plain = compaction("TimeWindowCompactionStrategy", &[]);
        for (least, goes) in [(Some(6), true), (Some(5), false), (None, true)] {
            let view = View { memtable_min_timestamp: least, ..view(&all[..1]) };
            assert_eq!(!fully_expired(&plain, &view, &[&all[0]]).is_empty(), goes, "{least:?}");
        }
        let unsafely = [("unsafe_aggressive_sstable_expiration", "true")];
        let unsafely = compaction("TimeWindowCompactionStrategy", &unsafely);
        assert_eq!(fully_expired(&unsafely, &view(&all), &[&all[0], &all[1]]), ["0"]);
        let repaired =
            compaction("TimeWindowCompactionStrategy", &[("only_purge_repaired_tombstones", "true")]);
        assert_eq!(fully_expired(&repaired, &view(&all[..1]), &[&all[0]]), [""; 0]);
    }

    /// Of 1000 cells so many are tombstones of long ago.
    fn with_tombstones(count: u64) -> SSTableFacts {
        let drop_times = DropTimes { max_bins: 100, bins: [(GC_BEFORE - 100, count)].into() };
        let (cells, partitions) = (1000, 1000);
        SSTableFacts { drop_times, cells, partitions, written_at: (NOW - 86_400) * 1000, ..facts(0) }
    }

    fn job(options: &[(&str, &str)], all: &[SSTableFacts]) -> Option<Job> {
        compaction("SizeTieredCompactionStrategy", options).next(&view(all))
    }

    #[test]
    fn many_droppable_tombstones_are_worth_a_job() {
        let expected = Some(Job::merging(vec!["0".into()], Reason::Tombstones));
        assert_eq!(job(&[], &[with_tombstones(201)]), expected);
        assert_eq!(job(&[], &[with_tombstones(200)]), None);
        assert_eq!(job(&[("tombstone_threshold", "0.1")], &[with_tombstones(101)]), expected);
        let younger = SSTableFacts { written_at: (NOW - 86_400) * 1000 + 1, ..with_tombstones(900) };
        assert_eq!(job(&[], std::slice::from_ref(&younger)), None);
        assert_eq!(job(&[("tombstone_compaction_interval", "86399")], &[younger]), expected);
    }

    #[test]
    fn only_tombstones_outside_of_others_are_worth_it() {
        let whole = SSTableFacts { first_token: 0, last_token: 999, ..with_tombstones(400) };
        // So many tokens are also in another one.
        let beside = |tokens: i64| SSTableFacts { first_token: 0, last_token: tokens - 1, ..facts(1) };
        assert!(job(&[], &[whole.clone(), beside(499)]).is_some());
        assert_eq!(job(&[], &[whole.clone(), beside(500)]), None);
        let unchecked = [("unchecked_tombstone_compaction", "true")];
        assert!(job(&unchecked, &[whole.clone(), beside(1000)]).is_some());
        let few = SSTableFacts { partitions: 256, ..whole };
        assert_eq!(job(&[], &[few, beside(1)]), None);
    }

    #[test]
    fn spans_overlap_what_one_of_theirs_overlaps() {
        let part = |first_token, last_token| SSTableFacts { first_token, last_token, ..facts(1) };
        let ranges = || (0..6).flat_map(|first| (first..6).map(move |last| (first, last)));
        let mut overlapping = [0; 2];
        for (a, b) in ranges().flat_map(|a| ranges().map(move |b| (a, b))) {
            let own = [part(a.0, a.1), part(i64::MAX, i64::MAX), part(b.0, b.1)];
            let spans = Spans::of(&own.iter().collect::<Vec<_>>());
            for (first, last) in ranges() {
                let other = part(first, last);
                let expected = own.iter().any(|own| own.overlaps(&other));
                assert_eq!(spans.overlap(&other), expected, "{a:?} {b:?} {first} {last}");
                overlapping[usize::from(expected)] += 1;
            }
        }
        assert!(overlapping.iter().all(|&count| count > 1000), "{overlapping:?}");
        assert!(!Spans::of(&[]).overlap(&part(i64::MIN, i64::MAX)));
    }

    #[test]
    fn shares_outside_are_counted_once() {
        let whole = SSTableFacts { first_token: i64::MIN, last_token: i64::MAX, ..facts(0) };
        let part = |first_token, last_token| SSTableFacts { first_token, last_token, ..facts(1) };
        assert_eq!(share_outside(&whole, &[]), 1.0);
        assert_eq!(share_outside(&whole, &[&part(i64::MIN, -1), &part(i64::MIN, -1)]), 0.5);
        assert_eq!(share_outside(&whole, &[&whole]), 0.0);
        let small = part(0, 9);
        assert_eq!(share_outside(&small, &[&part(-5, 1), &part(0, 3), &part(8, 90)]), 0.4);
    }
}
