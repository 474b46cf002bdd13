//! The published cases, and how many SSTables their reads have to touch.

use std::ops::AddAssign;

use clap::ValueEnum;
use storage::single_key::SingleKeyStats;

use super::rows::SSTABLES;

/// How many rows of a partition the case with several keys reads at a time.
pub const IN_KEYS: u32 = 3;

/// How reads go, and how many SSTables they need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Case {
    /// All three SSTables at once, whatever they have.
    Off,
    /// Newest first; the newest one is enough.
    Best,
    /// The same, three rows of a partition at a time.
    In,
    /// Newest first; the first two are needed.
    Mid,
    /// Newest first; all three are needed.
    Worst,
    /// The same by tables that do not know yet how many are needed.
    WorstAtFirst,
    /// All three are needed, and the table finds out that newest first does not pay.
    WorstAdapted,
}

/// What the reads of a case touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Touched {
    /// How many reads.
    pub reads: u64,
    /// Those of them that went newest first.
    pub newest_first: u64,
    /// SSTables that all of them read together.
    pub sstables: u64,
}

impl Case {
    /// Its name, as the command has it.
    pub fn name(self) -> &'static str {
        match self {
            Case::Off => "off",
            Case::Best => "best",
            Case::In => "in",
            Case::Mid => "mid",
            Case::Worst => "worst",
            Case::WorstAtFirst => "worst-at-first",
            Case::WorstAdapted => "worst-adapted",
        }
    }

    /// What stands above its lines.
    pub fn title(self) -> &'static str {
        match self {
            Case::Off => "Optimization turned off (all SSTables read in parallel)",
            Case::Best => "Optimization turned on, best case (1 of 3 SSTables is enough)",
            Case::In => "Optimization turned on, best case, IN query (1 of 3 SSTables is enough)",
            Case::Mid => "Optimization turned on, mid case (2 of 3 SSTables are needed)",
            Case::Worst => "Optimization turned on, worst case (3 of 3 SSTables are needed)",
            Case::WorstAtFirst => {
                "Optimization turned on, worst case, the first reads of a table (3 of 3 SSTables are needed)"
            }
            Case::WorstAdapted => {
                "Optimization adaptive, worst case once adapted (3 of 3 SSTables are needed)"
            }
        }
    }

    /// What the published lines call its query.
    pub fn query(self) -> &'static str {
        if self == Case::In { "simple_in" } else { "simple" }
    }

    /// How many SSTables a read needs that goes newest first.
    pub fn needed(self) -> u32 {
        match self {
            Case::Off | Case::Best | Case::In => 1,
            Case::Mid => 2,
            Case::Worst | Case::WorstAtFirst | Case::WorstAdapted => 3,
        }
    }

    /// The threshold of the table, `single_key_parallel_scan_threshold`.
    pub fn threshold(self) -> f64 {
        match self {
            Case::Off => 0.0,
            Case::Best | Case::In | Case::Mid | Case::Worst | Case::WorstAtFirst => 1.0,
            Case::WorstAdapted => 0.5,
        }
    }

    /// How many rows are read at a time.
    pub fn keys(self) -> u32 {
        if self == Case::In { IN_KEYS } else { 1 }
    }

    /// How many reads a table has before they are measured: by then it has found out how many SSTables are needed.
    pub fn warm_up(self) -> u64 {
        if self == Case::WorstAtFirst { 0 } else { 300 }
    }

    /// After so many reads the next ones are of a table that has just been opened. The first quarter of those of the worst case find out how
    /// many SSTables are needed.
    pub fn reads_of_a_table(self) -> u32 {
        if self == Case::WorstAtFirst { 80 } else { u32::MAX }
    }

    /// How many SSTables a read has to touch, once the table has found out how many are needed.
    pub fn touches(self) -> u32 {
        match self {
            Case::Best | Case::In => 1,
            Case::Mid => 2,
            Case::Off | Case::Worst | Case::WorstAtFirst | Case::WorstAdapted => SSTABLES,
        }
    }

    /// Compares what so many reads touched with what they must have; rows of one partition are one read.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn check(self, reads: u64, touched: &Touched) -> Result<(), String> {
        let newest_first = match self {
            Case::Off => 0..=0,
            Case::Best | Case::In | Case::Mid | Case::Worst | Case::WorstAtFirst => reads..=reads,
            // One in a hundred tries whether it pays again.
            Case::WorstAdapted => reads / 100..=reads / 100 + 1,
        };
        let sstables = reads * u64::from(self.touches());
        let is_right = touched.reads == reads
            && newest_first.contains(&touched.newest_first)
            && touched.sstables == sstables;
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "{touched:?} instead of {reads} reads of {sstables} SSTables, {newest_first:?} newest first"
            )),
        }
    }
}

impl Touched {
    /// By the counters of a table whose rows stand in all of its SSTables.
    pub fn between(before: &SingleKeyStats, now: &SingleKeyStats) -> Touched {
        let reads = now.eligible - before.eligible;
        let newest_first = now.newest_first - before.newest_first;
        let extra = (0..)
            .zip(now.extra_reads.iter().zip(&before.extra_reads))
            .map(|(extra, (now, before))| extra * (now - before));
        let sstables = newest_first + extra.sum::<u64>() + (reads - newest_first) * u64::from(SSTABLES);
        Touched { reads, newest_first, sstables }
    }
}

impl AddAssign for Touched {
    fn add_assign(&mut self, other: Touched) {
        self.reads += other.reads;
        self.newest_first += other.newest_first;
        self.sstables += other.sstables;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_tell_what_was_touched() {
        let before = SingleKeyStats { eligible: 5, newest_first: 5, hits: 5, ..SingleKeyStats::default() };
        let mut now = SingleKeyStats { eligible: 25, newest_first: 15, ..before };
        (now.extra_reads[0], now.extra_reads[2]) = (6, 4);
        let touched = Touched::between(&before, &now);
        assert_eq!(touched, Touched { reads: 20, newest_first: 10, sstables: 6 + 4 * 3 + 10 * 3 });
    }

    #[test]
    fn other_counts_are_refused() {
        let touched = |newest_first, sstables| Touched { reads: 300, newest_first, sstables };
        for (case, newest_first, sstables) in [
            (Case::Off, 0, 900),
            (Case::Best, 300, 300),
            (Case::Mid, 300, 600),
            (Case::Worst, 300, 900),
            (Case::WorstAtFirst, 300, 900),
            (Case::WorstAdapted, 3, 900),
        ] {
            assert_eq!(case.check(300, &touched(newest_first, sstables)), Ok(()), "{case:?}");
            assert!(case.check(300, &touched(newest_first, sstables - 1)).is_err(), "{case:?}");
            assert!(case.check(300, &touched(newest_first + 7, sstables)).is_err(), "{case:?}");
            assert!(case.check(299, &touched(newest_first, sstables)).is_err(), "{case:?}");
        }
        assert_eq!(Case::In.check(300, &touched(300, 300)), Ok(()));
        assert!(Case::In.check(100, &touched(300, 300)).is_err());
    }
}
