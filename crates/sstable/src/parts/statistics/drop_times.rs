//! Drop times as they come by: a few bins that lie where most of them are.
//!
//! A time is rounded up to a whole minute and counted. Once there are more times than bins, the two that
//! are nearest to each other become one between them, by weight ("A Streaming Parallel Decision Tree
//! Algorithm", 2010). What comes of it depends on the order in which times come to the bins, and so the
//! spool, in which they are counted before that, is a hash table laid out as Cassandra's.

use super::DropTimes;
use super::histogram::{MAX_DELETION_TIME, MAX_LEGACY_DELETION_TIME, at_most};
use crate::Version;

/// How many bins are kept.
const MAX_BINS: usize = 100;
/// Seconds that are not told apart.
const ROUNDING: i64 = 60;
/// How many different times are counted before they go to the bins.
const SPOOL: usize = 1 << 17;
/// How many cells of the spool are tried for a time.
const PROBES: usize = 100;

/// Collects the drop times of a new SSTable. It holds nothing until the first, and then at most 4 MiB.
#[derive(Clone, Debug)]
pub struct DropTimesBuilder {
    version: Version,
    spool: Spool,
    /// Times and their counts, ascending.
    bins: Vec<(i64, i64)>,
}

impl DropTimesBuilder {
    /// For a file of that version, which says what the greatest time is.
    pub fn new(version: Version) -> DropTimesBuilder {
        DropTimesBuilder { version, spool: Spool::default(), bins: Vec::new() }
    }

    /// Counts a tombstone or expiring cell, by its local deletion time in seconds.
    #[inline]
    pub fn add(&mut self, local_deletion_time: i64) {
        let time = round_up(local_deletion_time, self.greatest());
        if !self.spool.count(time) {
            self.drain();
            let counted = self.spool.count(time);
            assert!(counted, "an empty spool has room for a time");
        }
    }

    /// The bins of the times so far.
    pub fn finish(mut self) -> DropTimes {
        self.drain();
        let max_bins = if self.version.tells_most_bins() { MAX_BINS } else { self.bins.len() };
        let bins = self.bins.into_iter().map(|(time, count)| (time, count as u64)).collect();
        DropTimes { max_bins: max_bins as u32, bins }
    }

    fn greatest(&self) -> i64 {
        if self.version.has_uint_deletion_time() { MAX_DELETION_TIME } else { MAX_LEGACY_DELETION_TIME }
    }

    /// Takes the spool's times to the bins, in the order of its cells.
    fn drain(&mut self) {
        let mut used = std::mem::take(&mut self.spool.used);
        used.sort_unstable();
        for &cell in &used {
            let count = std::mem::take(&mut self.spool.counts[cell as usize]);
            self.add_to_bins(self.spool.times[cell as usize], i64::from(count));
        }
        used.clear();
        self.spool.used = used;
    }

    fn add_to_bins(&mut self, time: i64, count: i64) {
        match self.bins.binary_search_by_key(&time, |bin| bin.0) {
            Ok(at) => self.bins[at].1 = saturated(self.bins[at].1 + count),
            Err(at) => self.bins.insert(at, (time, count)),
        }
        if self.bins.len() > MAX_BINS {
            self.join_nearest();
        }
    }

    /// Makes one bin of the first two of those that are nearest to each other.
    fn join_nearest(&mut self) {
        let distance = |at: &usize| self.bins[at + 1].0 - self.bins[*at].0;
        let at = (0..self.bins.len() - 1).min_by_key(distance).expect("there are more bins than one");
        let ((before, low), (after, high)) = (self.bins[at], self.bins[at + 1]);
        let weighted = before.saturating_mul(low).saturating_add(after.saturating_mul(high));
        let mean = (weighted / (low + high)).clamp(before + 1, after);
        self.bins[at] = (round_up(mean, self.greatest()), saturated(low + high));
        self.bins.remove(at + 1);
    }
}

/// Up to the next whole minute.
#[inline]
fn round_up(time: i64, greatest: i64) -> i64 {
    let past = time % ROUNDING;
    let whole = if past == 0 { time } else { time.saturating_add(ROUNDING - past) };
    at_most(whole, greatest)
}

/// Java counts with 32 bits.
fn saturated(count: i64) -> i64 {
    count.min(i64::from(i32::MAX))
}

/// A hash table of times with their counts. It does not grow.
///
/// Invariants, once it has cells:
/// 1. A cell is used if its count is not 0, and then it is listed once.
/// 2. `last` is used, or there is none that is.
#[derive(Clone, Debug, Default)]
struct Spool {
    /// Twice as many as times, of which the upper half takes what does not find room at the end of the lower.
    times: Vec<i64>,
    counts: Vec<u32>,
    used: Vec<u32>,
    /// The cell of the time that came last: mostly it comes again.
    last: usize,
}

impl Spool {
    /// Counts a time. `false` where there is no room: then all has to be taken out first.
    #[inline]
    fn count(&mut self, time: i64) -> bool {
        if self.used.len() > SPOOL {
            return false;
        }
        if !self.used.is_empty() && self.times[self.last] == time {
            self.counts[self.last] = self.counts[self.last].saturating_add(1).min(i32::MAX as u32);
            return true;
        }
        self.find(time)
    }

    fn find(&mut self, time: i64) -> bool {
        if self.times.is_empty() {
            self.times = vec![0; 2 * SPOOL];
            self.counts = vec![0; 2 * SPOOL];
        }
        let home = (time as u64).wrapping_mul(948_701_839) as usize & (SPOOL - 1);
        for cell in home..home + PROBES {
            if self.counts[cell] == 0 {
                self.times[cell] = time;
                self.used.push(cell as u32);
            }
            if self.times[cell] == time {
                self.counts[cell] = self.counts[cell].saturating_add(1).min(i32::MAX as u32);
                self.last = cell;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encode;

    fn collected(version: Version, times: impl IntoIterator<Item = i64>) -> DropTimes {
        let mut builder = DropTimesBuilder::new(version);
        times.into_iter().for_each(|time| builder.add(time));
        builder.finish()
    }

    #[test]
    fn times_are_counted_by_the_minute() {
        let times = collected(Version::Nb, [61, 120, 60, 0, 119, 121]);
        assert_eq!(times.bins[..], [(0, 1), (60, 1), (120, 3), (180, 1)]);
        assert_eq!(times.max_bins, 4);
        assert_eq!(collected(Version::Me, [1]).max_bins, 100);
        assert_eq!(collected(Version::Oa, []), DropTimes::default());
    }

    #[test]
    fn times_that_cannot_be_are_the_greatest() {
        let (old, new) = (i64::from(i32::MAX) - 1, i64::from(u32::MAX) - 2);
        for time in [i64::MAX, i64::MAX - 1, -60, i64::MIN] {
            assert_eq!(collected(Version::Nb, [time, old]).bins[..], [(old, 2)]);
            assert_eq!(collected(Version::Oa, [time]).bins[..], [(new, 1)]);
        }
        assert_eq!(collected(Version::Oa, [old]).bins[..], [(2_147_483_700, 1)]);
    }

    /// Numbers that Java gives as well.
    fn random(count: usize, from: i64, range: i64) -> impl Iterator<Item = i64> {
        let mut state = 1u64;
        (0..count).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from + (state >> 33) as i64 % range
        })
    }

    /// CRC32 of the bins that Cassandra 5.0.5's `StreamingTombstoneHistogramBuilder(100, 100000, 60)` has.
    #[test]
    fn bins_are_cassandras() {
        let day = 86_400;
        for (count, from, range, bins, crc) in [
            (50, 1_700_000_000, 3 * day, 50, 0xc37e_b1a6),
            (500, 1_700_000_000, 40 * day, 100, 0xd604_5768),
            (100_000, 1_700_000_000, 4_000 * day, 100, 0xe669_3fcf),
            // More than the spool has room for.
            (400_000, 0, 4_294_967_294, 100, 0xa407_37d8),
            (3_000, 4_294_947_294, 20_000, 100, 0x4631_97b8),
        ] {
            let times = collected(Version::Oa, random(count, from, range));
            let mut bytes = Vec::new();
            for &(time, count) in &times.bins {
                bytes.put_i64(time);
                bytes.put_u32(count as u32);
            }
            assert_eq!((times.bins.len(), crc32fast::hash(&bytes)), (bins, crc), "{count} times: {times:?}");
        }
    }
}
