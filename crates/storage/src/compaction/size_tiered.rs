//! SSTables of about the same size are merged, once there are enough of them.
//!
//! Sorted by size, each joins a bucket if it is within a share of the bucket's mean, or if both are small. Each
//! byte is written once for each tier that it goes through: about log₄ of the data over the size of a flush.
//!
//! Cassandra takes the bucket whose SSTables are read most. Which one that is, is not among the facts: it is the bucket
//! of the smallest SSTables here, from which most files go for the least work.

use super::facts::{SSTableFacts, View, generations};
use super::options::{Compaction, SizeTiered};
use super::{Job, Reason, droppable};

/// The next job.
pub(super) fn next(compaction: &Compaction, tiers: &SizeTiered, view: &View<'_>) -> Option<Job> {
    let bucket = interesting(compaction, buckets(tiers, view.free()));
    let tier = bucket.map(|bucket| Job::merging(generations(&bucket), Reason::SizeTier));
    tier.or_else(|| {
        let worth = view.free().filter(|sstable| droppable::is_worth(compaction, view, sstable));
        let largest = worth.max_by_key(|sstable| sstable.bytes_on_disk)?;
        Some(Job::merging(generations(&[largest]), Reason::Tombstones))
    })
}

/// How many jobs there are to be done, as Cassandra estimates.
pub(super) fn pending(compaction: &Compaction, tiers: &SizeTiered, view: &View<'_>) -> u64 {
    let buckets = buckets(tiers, view.free());
    let enough = buckets.iter().filter(|bucket| bucket.len() >= compaction.min_threshold);
    enough.map(|bucket| bucket.len().div_ceil(compaction.max_threshold) as u64).sum()
}

/// SSTables of similar sizes, each bucket in ascending order, and the buckets too.
pub(super) fn buckets<'a>(
    tiers: &SizeTiered,
    sstables: impl Iterator<Item = &'a SSTableFacts>,
) -> Vec<Vec<&'a SSTableFacts>> {
    let mut sorted: Vec<&SSTableFacts> = sstables.collect();
    sorted.sort_by_key(|sstable| sstable.bytes_on_disk);
    let mut buckets: Vec<Vec<&SSTableFacts>> = Vec::new();
    let mut bytes_of_last = 0.0;
    for sstable in sorted {
        // Sizes ascend, and so the last bucket is the nearest.
        match buckets.last_mut() {
            Some(last) if tiers.joins(sstable.bytes_on_disk, bytes_of_last / last.len() as f64) => {
                last.push(sstable);
            }
            _ => {
                buckets.push(vec![sstable]);
                bytes_of_last = 0.0;
            }
        }
        bytes_of_last += sstable.bytes_on_disk as f64;
    }
    buckets
}

/// The bucket that is worth most, of those that have enough, without what is too much for one job.
pub(super) fn interesting<'a>(
    compaction: &Compaction,
    buckets: Vec<Vec<&'a SSTableFacts>>,
) -> Option<Vec<&'a SSTableFacts>> {
    let enough = buckets.into_iter().filter(|bucket| bucket.len() >= compaction.min_threshold);
    let trimmed = enough.map(|mut bucket| {
        bucket.truncate(compaction.max_threshold);
        bucket
    });
    trimmed.min_by(|a, b| mean_bytes(a).total_cmp(&mean_bytes(b)))
}

impl SizeTiered {
    fn joins(&self, bytes: u64, mean: f64) -> bool {
        let (size, small) = (bytes as f64, self.min_sstable_size as f64);
        (size > mean * self.bucket_low && size < mean * self.bucket_high) || (size < small && mean < small)
    }
}

fn mean_bytes(bucket: &[&SSTableFacts]) -> f64 {
    bucket.iter().map(|sstable| sstable.bytes_on_disk as f64).sum::<f64>() / bucket.len() as f64
}

#[cfg(test)]
mod tests {
    use super::super::options::Strategy;
    use super::super::simulation::{compaction, facts, view};
    use super::*;

    const MB: u64 = 1 << 20;

    /// SSTables of so many MiB, named by their place.
    fn of_sizes(sizes: &[u64]) -> Vec<SSTableFacts> {
        let named = sizes.iter().enumerate();
        named.map(|(at, size)| SSTableFacts { bytes_on_disk: size * MB, ..facts(at as u64) }).collect()
    }

    fn inputs(options: &[(&str, &str)], sizes: &[u64]) -> Vec<String> {
        let all = of_sizes(sizes);
        let job = compaction("SizeTieredCompactionStrategy", options).next(&view(&all));
        job.map(|job| job.inputs).unwrap_or_default()
    }

    fn sizes_of_buckets(sizes: &[u64]) -> Vec<Vec<u64>> {
        let compaction = compaction("SizeTieredCompactionStrategy", &[]);
        let Strategy::SizeTiered(tiers) = &compaction.strategy else { panic!("{compaction:?}") };
        let all = of_sizes(sizes);
        let buckets = buckets(tiers, all.iter());
        buckets
            .iter()
            .map(|bucket| bucket.iter().map(|sstable| sstable.bytes_on_disk / MB).collect())
            .collect()
    }

    #[test]
    fn buckets_are_about_a_mean() {
        assert_eq!(sizes_of_buckets(&[100, 140, 400, 90, 1]), [vec![1], vec![90, 100, 140], vec![400]]);
        // 149 is within half of 100, 150 is not; the mean goes on.
        assert_eq!(sizes_of_buckets(&[100, 149, 186]), [vec![100, 149, 186]]);
        assert_eq!(sizes_of_buckets(&[100, 150]), [vec![100], vec![150]]);
        assert_eq!(sizes_of_buckets(&[1, 49, 2, 30]), [vec![1, 2, 30, 49]], "all are small");
        assert_eq!(sizes_of_buckets(&[]), Vec::<Vec<u64>>::new());
    }

    #[test]
    fn the_smallest_bucket_that_is_full_goes_first() {
        assert_eq!(inputs(&[], &[1, 1, 1]), [""; 0]);
        assert_eq!(inputs(&[], &[200, 200, 1, 200, 1, 200, 1, 1]), ["2", "4", "6", "7"]);
        assert_eq!(inputs(&[("min_threshold", "2")], &[1, 400, 1]), ["0", "2"]);
        assert_eq!(inputs(&[("max_threshold", "5")], &[9, 8, 7, 6, 5, 4]), ["5", "4", "3", "2", "1"]);
        assert_eq!(inputs(&[("min_sstable_size", "0")], &[1, 2, 4, 8]), [""; 0]);
    }

    #[test]
    fn what_is_being_compacted_counts_for_nothing() {
        let all = of_sizes(&[1, 1, 1, 1, 1]);
        let compaction = compaction("SizeTieredCompactionStrategy", &[]);
        let busy = ["0".to_owned(), "1".to_owned()].into();
        let view = View { compacting: &busy, ..view(&all) };
        assert_eq!(compaction.next(&view), None);
        assert_eq!(compaction.pending(&view), 0);
    }

    #[test]
    fn pending_jobs_are_counted_by_their_inputs() {
        let all = of_sizes(&[vec![1; 70], vec![400; 3], vec![2000; 4]].concat());
        let compaction = compaction("SizeTieredCompactionStrategy", &[]);
        assert_eq!(compaction.pending(&view(&all)), 3 + 1);
    }
}
