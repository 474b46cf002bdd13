//! SSTables of one window of time are merged, and not with others: what was written together expires together, and then goes
//! without being read.
//!
//! ```text
//! greatest timestamp ──►  … │ 3 SSTables │ 1 │ 5 SSTables, by size │
//!                            one day: all    │  the newest day      time ──►
//! ```
//!
//! An SSTable belongs to the window of its greatest timestamp. In the newest window SSTables are merged by size, as more
//! are to come; in older ones all of them, so that one is left.

use std::collections::BTreeMap;

use super::facts::{SSTableFacts, View, generations};
use super::options::{Compaction, TimeWindow};
use super::{Job, Reason, droppable, size_tiered};

/// The next job: what has expired, then a window, the newest ones first, then tombstones.
pub(super) fn next(compaction: &Compaction, windows: &TimeWindow, view: &View<'_>) -> Option<Job> {
    let free: Vec<&SSTableFacts> = view.free().collect();
    let expired = droppable::fully_expired(compaction, view, &free);
    if !expired.is_empty() {
        return Some(Job { expired, ..Job::merging(Vec::new(), Reason::Expired) });
    }
    let newest = newest_window(windows, view);
    let mut by_window = by_window(windows, view).into_iter().rev();
    let window = by_window.find_map(|(window, sstables)| {
        let inputs = of_window(compaction, windows, sstables, window >= newest)?;
        Some(Job::merging(generations(&inputs), Reason::Window(window)))
    });
    window.or_else(|| {
        let worth = view.free().filter(|sstable| droppable::is_worth(compaction, view, sstable));
        let smallest = worth.min_by_key(|sstable| sstable.bytes_on_disk)?;
        Some(Job::merging(generations(&[smallest]), Reason::Tombstones))
    })
}

/// How many jobs there are to be done, as Cassandra estimates.
pub(super) fn pending(compaction: &Compaction, windows: &TimeWindow, view: &View<'_>) -> u64 {
    let (newest, max) = (newest_window(windows, view), compaction.max_threshold);
    let jobs = by_window(windows, view).into_iter().map(|(window, sstables)| {
        let count = sstables.len();
        match of_window(compaction, windows, sstables, window >= newest) {
            Some(_) if count.saturating_sub(max) > compaction.min_threshold => {
                1 + (count - max).div_ceil(max) as u64
            }
            Some(_) => 1,
            None => 0,
        }
    });
    jobs.sum()
}

/// What of a window is to be merged.
fn of_window<'a>(
    compaction: &Compaction,
    windows: &TimeWindow,
    mut sstables: Vec<&'a SSTableFacts>,
    is_newest: bool,
) -> Option<Vec<&'a SSTableFacts>> {
    if is_newest {
        let buckets = size_tiered::buckets(&windows.tiers, sstables.into_iter());
        return size_tiered::interesting(compaction, buckets);
    }
    // The smallest ones, if there are too many for one job.
    sstables.sort_by_key(|sstable| sstable.bytes_on_disk);
    sstables.truncate(compaction.max_threshold);
    (sstables.len() >= 2).then_some(sstables)
}

fn by_window<'a>(windows: &TimeWindow, view: &View<'a>) -> BTreeMap<i64, Vec<&'a SSTableFacts>> {
    let mut by_window: BTreeMap<i64, Vec<&SSTableFacts>> = BTreeMap::new();
    for sstable in view.free() {
        by_window.entry(windows.window_of(sstable.max_timestamp)).or_default().push(sstable);
    }
    by_window
}

/// The newest window of all, whether or not somebody is at work on it.
fn newest_window(windows: &TimeWindow, view: &View<'_>) -> i64 {
    let all = view.facts.iter().map(|sstable| windows.window_of(sstable.max_timestamp));
    all.max().unwrap_or(0).max(0)
}

impl TimeWindow {
    /// Where the window of a timestamp begins, in seconds since the epoch.
    fn window_of(&self, timestamp: i64) -> i64 {
        let seconds = timestamp / self.timestamps_per_second;
        seconds - seconds % self.window_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::super::Generation;
    use super::super::simulation::{compaction, facts, view};
    use super::*;

    const DAY: i64 = 86_400;

    /// SSTables whose greatest timestamps are on these days, in the middle of them.
    fn of_days(days: &[i64]) -> Vec<SSTableFacts> {
        let named = days.iter().enumerate();
        let at = |day: i64| (day * DAY + DAY / 2) * 1_000_000;
        named.map(|(number, &day)| SSTableFacts { max_timestamp: at(day), ..facts(number as u64) }).collect()
    }

    fn twcs(options: &[(&str, &str)]) -> Compaction {
        compaction("TimeWindowCompactionStrategy", options)
    }

    fn inputs(options: &[(&str, &str)], days: &[i64]) -> Vec<Generation> {
        let all = of_days(days);
        twcs(options).next(&view(&all)).map(|job| job.inputs).unwrap_or_default()
    }

    #[test]
    fn old_windows_are_merged_whole_and_the_newest_by_size() {
        assert_eq!(inputs(&[], &[3, 3, 3]), [""; 0]);
        assert_eq!(inputs(&[], &[3, 3, 3, 3]), ["0", "1", "2", "3"]);
        assert_eq!(inputs(&[], &[3, 3, 3, 4]), ["0", "1", "2"]);
        assert_eq!(inputs(&[], &[1, 3, 1, 3, 4]), ["1", "3"], "the newer one first");
        assert_eq!(inputs(&[], &[1, 2, 3]), [""; 0]);
        assert_eq!(inputs(&[("max_threshold", "4")], &[1, 1, 1, 1, 1, 1, 2]).len(), 4);
        let all = of_days(&[1, 3, 1, 3, 4]);
        assert_eq!(twcs(&[]).next(&view(&all)).unwrap().why, Reason::Window(3 * DAY));
    }

    #[test]
    fn windows_are_as_long_as_the_options_say() {
        let days = [("compaction_window_size", "2")];
        assert_eq!(inputs(&days, &[2, 3, 4]), ["0", "1"]);
        let hours = [("compaction_window_unit", "HOURS"), ("compaction_window_size", "48")];
        assert_eq!(inputs(&hours, &[2, 3, 4]), ["0", "1"]);
        let minutes = [("compaction_window_unit", "MINUTES"), ("compaction_window_size", "1440")];
        assert_eq!(inputs(&minutes, &[2, 3, 4]), [""; 0]);
        let milliseconds = [("timestamp_resolution", "MILLISECONDS"), ("compaction_window_size", "1000")];
        assert_eq!(inputs(&milliseconds, &[0, 0, 3]), ["0", "1"], "the third is 3000 days later");
    }

    #[test]
    fn a_window_that_somebody_is_at_work_on_is_the_newest_still() {
        let all = of_days(&[3, 3, 4]);
        let busy = ["2".to_owned()].into();
        let view = View { compacting: &busy, ..view(&all) };
        assert_eq!(twcs(&[]).next(&view).unwrap().inputs, ["0", "1"]);
    }

    #[test]
    fn what_has_expired_goes_first() {
        let mut all = of_days(&[3, 3, 4]);
        all[1].max_local_deletion_time = 0;
        all[1].max_timestamp = -1;
        let job = twcs(&[]).next(&view(&all)).unwrap();
        assert_eq!((job.inputs.len(), job.expired, job.why), (0, vec!["1".into()], Reason::Expired));
        // The strategies that do not look for it find it where they come by.
        let many = [("min_threshold", "2")];
        let job = compaction("SizeTieredCompactionStrategy", &many).next(&view(&all)).unwrap();
        assert_eq!((job.inputs, job.expired), (vec!["0".into(), "2".into()], vec!["1".into()]));
    }

    #[test]
    fn pending_jobs_are_those_of_all_windows() {
        let all = of_days(&[vec![1; 70], vec![2; 2], vec![3; 4], vec![4; 3]].concat());
        assert_eq!(twcs(&[]).pending(&view(&all)), 3 + 1 + 1);
    }
}
