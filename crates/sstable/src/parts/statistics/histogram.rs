//! Two kinds of histogram: of sizes, in steps of a fifth, and of the times at which tombstones expire.
//!
//! ```text
//! sizes       u32 n, then n × {i64 offset of the bucket BEFORE (of the first: its own), i64 count}
//! drop times  u32 most bins, u32 n, then n × bin
//! bin         m*, n*: f64 seconds, i64 count    oa+: i64 seconds, i32 count
//! ```
//!
//! A bucket counts the values above the previous bucket's offset, up to its own. The last one has no
//! offset: it counts what is above all.

use crate::Version;
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;

/// The greatest local deletion time, in seconds, in files where it is an unsigned number.
pub(super) const MAX_DELETION_TIME: i64 = u32::MAX as i64 - 2;
/// The same in older files.
pub(super) const MAX_LEGACY_DELETION_TIME: i64 = i32::MAX as i64 - 1;

/// How many values there are of which size.
///
/// Invariant: there is one bucket more than offsets, or there are none of both.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// The greatest value that each bucket but the last counts.
    pub offsets: Box<[u64]>,
    /// How many values each bucket counts. The last one counts those above all offsets.
    pub buckets: Box<[u64]>,
}

impl Histogram {
    /// What this holds in memory beside itself, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.offsets) + size_of_val(&*self.buckets)
    }

    /// Of nothing yet, in that many steps of a fifth from 1 on.
    pub fn with_steps(steps: usize) -> Histogram {
        let next = |offset: &u64| Some(((*offset as f64 * 1.2).round() as u64).max(offset + 1));
        let offsets = std::iter::successors(Some(1), next).take(steps).collect();
        Histogram { offsets, buckets: vec![0; steps + 1].into_boxed_slice() }
    }

    /// Counts a value; in which bucket.
    ///
    /// # Panics
    /// If there are no buckets.
    pub fn add(&mut self, value: u64) -> usize {
        let bucket = self.offsets.partition_point(|&offset| offset < value);
        self.buckets[bucket] += 1;
        bucket
    }

    pub(super) fn decode(cursor: &mut Cursor) -> Decoded<Histogram> {
        let start = cursor.clone();
        let count = cursor.count(16)?;
        if count == 1 {
            return start.invalid("a histogram of one bucket has no offsets");
        }
        let mut offsets = Vec::with_capacity(count.saturating_sub(1));
        let mut buckets = Vec::with_capacity(count);
        for bucket in 0..count {
            let offset = cursor.u64()?;
            // The first bucket's own offset stands there twice: before it and before the second.
            if bucket != 1 {
                offsets.push(offset);
            }
            buckets.push(cursor.u64()?);
        }
        Ok(Histogram { offsets: offsets.into_boxed_slice(), buckets: buckets.into_boxed_slice() })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.put_u32(self.buckets.len() as u32);
        let before = self.offsets.iter().take(1).chain(&self.offsets);
        for (&offset, &count) in before.zip(&self.buckets) {
            bytes.put_u64(offset);
            bytes.put_u64(count);
        }
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// How many values are above the greatest offset.
    pub fn overflow(&self) -> u64 {
        self.buckets.last().copied().unwrap_or(0)
    }

    /// The mean, every value taken as its bucket's offset; those above all offsets are left out. `None`
    /// where there are no values.
    pub fn mean(&self) -> Option<f64> {
        let (mut values, mut sum) = (0.0, 0.0);
        for (&offset, &count) in self.offsets.iter().zip(&self.buckets) {
            values += count as f64;
            sum += count as f64 * offset as f64;
        }
        (values > 0.0).then(|| sum / values)
    }

    /// The offset of the bucket in which that share of the values, from 0 to 1, is reached; those above
    /// all offsets are left out. 0 where there are no values.
    pub fn percentile(&self, share: f64) -> u64 {
        let within = self.count().saturating_sub(self.overflow());
        let wanted = (within as f64 * share.clamp(0.0, 1.0)).ceil() as u64;
        let mut reached = 0u64;
        for (&offset, &count) in self.offsets.iter().zip(&self.buckets) {
            reached = reached.saturating_add(count);
            if wanted > 0 && reached >= wanted {
                return offset;
            }
        }
        0
    }

    /// The least value there can be.
    pub fn min(&self) -> u64 {
        match self.buckets.iter().position(|&count| count > 0) {
            None | Some(0) => 0,
            Some(bucket) => self.offsets[bucket - 1].saturating_add(1),
        }
    }

    /// The greatest value there can be; `u64::MAX` where values are above all offsets.
    pub fn max(&self) -> u64 {
        match self.buckets.iter().rposition(|&count| count > 0) {
            None => 0,
            Some(bucket) => self.offsets.get(bucket).copied().unwrap_or(u64::MAX),
        }
    }
}

/// How many tombstones and expiring cells become droppable when.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DropTimes {
    /// How many bins the writer would have kept.
    pub max_bins: u32,
    /// Seconds since the epoch, ascending in sound files, with the number of tombstones about there.
    pub bins: Box<[(i64, u64)]>,
}

impl DropTimes {
    pub(super) fn decode(cursor: &mut Cursor, version: Version) -> Decoded<DropTimes> {
        let max_bins = cursor.u32()?;
        let with_integers = version.has_uint_deletion_time();
        let count = cursor.count(if with_integers { 12 } else { 16 })?;
        let bins = (0..count).map(|_| if with_integers { bin(cursor) } else { legacy_bin(cursor) });
        Ok(DropTimes { max_bins, bins: bins.collect::<Result<_, DecodeError>>()? })
    }

    /// Counts above what Java's `int` holds are cut off there, as Cassandra does.
    pub(super) fn encode(&self, bytes: &mut Vec<u8>, version: Version) {
        bytes.put_u32(self.max_bins);
        bytes.put_u32(self.bins.len() as u32);
        for &(seconds, count) in &self.bins {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            if version.has_uint_deletion_time() {
                bytes.put_i64(seconds);
                bytes.put_i32(count);
            } else {
                bytes.put_f64(seconds as f64);
                bytes.put_i64(i64::from(count));
            }
        }
    }

    /// An estimate of how many tombstones there are up to a time, in seconds since the epoch: the bin
    /// before it whole or half, and between two bins a straight line.
    pub fn sum_until(&self, time: i64) -> f64 {
        let after = self.bins.partition_point(|&(point, _)| point <= time);
        let until: f64 = self.bins[..after].iter().map(|&(_, count)| count as f64).sum();
        let (Some(&(before, low)), Some(&(next, high))) =
            (after.checked_sub(1).and_then(|last| self.bins.get(last)), self.bins.get(after))
        else {
            return until;
        };
        let weight = (time as f64 - before as f64) / (next as f64 - before as f64);
        let (low, high) = (low as f64, high as f64);
        let at_time = low + (high - low) * weight;
        until - low / 2.0 + (low + at_time) * weight / 2.0
    }
}

fn bin(cursor: &mut Cursor) -> Decoded<(i64, u64)> {
    let seconds = cursor.i64()?;
    let count = cursor.i32()?;
    Ok((at_most(seconds, MAX_DELETION_TIME), count.max(0) as u64))
}

fn legacy_bin(cursor: &mut Cursor) -> Decoded<(i64, u64)> {
    let seconds = cursor.f64()? as i64;
    let count = cursor.i64()?;
    Ok((at_most(seconds, MAX_LEGACY_DELETION_TIME), count.clamp(0, i64::from(i32::MAX)) as u64))
}

/// Cassandra took times that overflowed for the greatest one, and so does whoever reads them.
pub(super) fn at_most(seconds: i64, greatest: i64) -> i64 {
    if (0..=greatest).contains(&seconds) { seconds } else { greatest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(buckets: &[(u64, u64)]) -> Histogram {
        let count = (buckets.len() as u32).to_be_bytes().to_vec();
        let numbers = buckets.iter().flat_map(|(offset, count)| [offset.to_be_bytes(), count.to_be_bytes()]);
        let bytes: Vec<u8> = count.into_iter().chain(numbers.flatten()).collect();
        let mut cursor = Cursor::new(&bytes);
        let histogram = Histogram::decode(&mut cursor).unwrap();
        assert_eq!(cursor.remaining(), 0);
        let mut again = Vec::new();
        histogram.encode(&mut again);
        assert_eq!(again, bytes);
        histogram
    }

    #[test]
    fn sizes_are_counted_up_to_their_offset() {
        let histogram = sizes(&[(1, 0), (1, 4), (2, 1), (3, 5)]);
        assert_eq!((&histogram.offsets[..], &histogram.buckets[..]), (&[1, 2, 3][..], &[0, 4, 1, 5][..]));
        assert_eq!((histogram.count(), histogram.overflow()), (10, 5));
        assert_eq!(histogram.mean(), Some((4.0 * 2.0 + 3.0) / 5.0));
        assert_eq!([0.0, 0.5, 0.8, 0.81, 1.0].map(|share| histogram.percentile(share)), [0, 2, 2, 3, 3]);
        assert_eq!((histogram.min(), histogram.max()), (2, u64::MAX));
    }

    #[test]
    fn values_are_counted_in_steps_of_a_fifth() {
        let mut histogram = Histogram::with_steps(15);
        assert_eq!(histogram.offsets[..], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29]);
        let buckets = [0, 1, 9, 10, 11, 29, 30, u64::MAX].map(|value| histogram.add(value));
        assert_eq!(buckets, [0, 0, 8, 8, 9, 14, 15, 15]);
        assert_eq!(histogram.buckets[..], [2, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 1, 2]);
        assert_eq!(Histogram::with_steps(155).offsets.last(), Some(&3_520_571_548_412));
        assert_eq!(Histogram::with_steps(118).offsets.last(), Some(&4_139_110_981));
    }

    #[test]
    fn no_sizes_at_all() {
        let histogram = sizes(&[]);
        assert_eq!((histogram.count(), histogram.min(), histogram.max()), (0, 0, 0));
        assert_eq!((histogram.mean(), histogram.percentile(0.5)), (None, 0));
    }

    fn times() -> DropTimes {
        DropTimes { max_bins: 100, bins: [(100, 10), (200, 30)].into() }
    }

    #[test]
    fn drop_times_lie_on_a_line_between_bins() {
        assert_eq!([99, 200, 1000].map(|time| times().sum_until(time)), [0.0, 40.0, 40.0]);
        // Half of the first bin, then the area under the line from 10 to 20.
        assert_eq!(times().sum_until(150), 5.0 + (10.0 + 20.0) * 0.5 / 2.0);
    }

    #[test]
    fn bins_have_two_layouts() {
        let head = [0, 0, 0, 100, 0, 0, 0, 1];
        let legacy = [&head[..], &100f64.to_be_bytes(), &10i64.to_be_bytes()].concat();
        let new = [&head[..], &100i64.to_be_bytes(), &10i32.to_be_bytes()].concat();
        let expected = DropTimes { max_bins: 100, bins: [(100, 10)].into() };
        assert_eq!(DropTimes::decode(&mut Cursor::new(&legacy), Version::Nb), Ok(expected.clone()));
        assert_eq!(DropTimes::decode(&mut Cursor::new(&new), Version::Oa), Ok(expected.clone()));
        for (version, bytes) in [(Version::Mc, legacy), (Version::Oa, new)] {
            let mut again = Vec::new();
            expected.encode(&mut again, version);
            assert_eq!(again, bytes);
        }
        let late = [&head[..], &f64::NEG_INFINITY.to_be_bytes(), &i64::MAX.to_be_bytes()].concat();
        let times = DropTimes::decode(&mut Cursor::new(&late), Version::Me).unwrap();
        assert_eq!(times.bins[..], [(i64::from(i32::MAX) - 1, i32::MAX as u64)]);
    }
}
