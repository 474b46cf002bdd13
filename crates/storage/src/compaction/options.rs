//! The options of a table's compaction, with Cassandra's names and defaults.
//!
//! ```text
//! WITH compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS'}
//! ```
//!
//! What is not known is an error. What is known and not done as the options say is told in [`Compaction::notes`].

use std::fmt::Display;
use std::str::FromStr;

use crate::{Error, Result};

/// How the SSTables of a table are merged.
#[derive(Clone, PartialEq, Debug)]
pub struct Compaction {
    /// Whether anything is done by itself (`enabled`, true).
    pub enabled: bool,
    /// From how many SSTables on it is worth while (`min_threshold`, 4).
    pub min_threshold: usize,
    /// How many SSTables one job may have (`max_threshold`, 32).
    pub max_threshold: usize,
    /// Whether tombstones stay as long as they are not repaired (`only_purge_repaired_tombstones`, false).
    pub only_purge_repaired_tombstones: bool,
    /// When an SSTable is written anew for its tombstones alone.
    pub tombstones: TombstoneRule,
    /// What decides.
    pub strategy: Strategy,
    /// What is not done as the options say, each a sentence to be told.
    pub notes: Vec<String>,
}

/// When an SSTable is written anew for its tombstones alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TombstoneRule {
    /// Whether it is at all. In time windows, only where one of the three options is given.
    pub enabled: bool,
    /// The share of droppable cells from which on it is worth while (`tombstone_threshold`, 0.2).
    pub threshold: f64,
    /// How old it must be, in seconds (`tombstone_compaction_interval`, one day).
    pub interval_seconds: i64,
    /// Whether it does not matter what other SSTables have (`unchecked_tombstone_compaction`, false).
    pub unchecked: bool,
}

/// What decides about merges.
#[derive(Clone, PartialEq, Debug)]
pub enum Strategy {
    /// `SizeTieredCompactionStrategy`, the default.
    SizeTiered(SizeTiered),
    /// `LeveledCompactionStrategy`.
    Leveled(Leveled),
    /// `TimeWindowCompactionStrategy`.
    TimeWindow(TimeWindow),
}

/// What are SSTables of about the same size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SizeTiered {
    /// The share of a bucket's mean above which one belongs to it (`bucket_low`, 0.5).
    pub bucket_low: f64,
    /// The share of a bucket's mean below which one belongs to it (`bucket_high`, 1.5).
    pub bucket_high: f64,
    /// All below so many bytes belong together (`min_sstable_size`, 50 MiB).
    pub min_sstable_size: u64,
}

/// How large levels are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leveled {
    /// How many bytes an SSTable has (`sstable_size_in_mb`, 160).
    pub sstable_bytes: u64,
    /// How many times as large a level is as the one before (`fanout_size`, 10).
    pub fanout: u32,
    /// Whether an SSTable that overlaps nothing changes its level without being written anew (`single_sstable_uplevel`,
    /// false).
    pub single_sstable_uplevel: bool,
    /// How new SSTables are merged by size.
    pub tiers: SizeTiered,
}

/// How long a window is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimeWindow {
    /// Its length in seconds (`compaction_window_unit`, `compaction_window_size`: 1 day).
    pub window_seconds: i64,
    /// The unit of timestamps, by how many of them are a second (`timestamp_resolution`, a million).
    pub timestamps_per_second: i64,
    /// Whether what has expired goes even if it deletes something elsewhere (`unsafe_aggressive_sstable_expiration`,
    /// false).
    pub ignore_overlaps: bool,
    /// How SSTables of the newest window are merged by size.
    pub tiers: SizeTiered,
}

/// Strategies that there are elsewhere: of Cassandra 5, of ScyllaDB, and of Cassandra up to 3.
const ELSEWHERE: [&str; 3] =
    ["UnifiedCompactionStrategy", "IncrementalCompactionStrategy", "DateTieredCompactionStrategy"];

impl Default for Compaction {
    /// Cassandra's, where a table has no options.
    fn default() -> Compaction {
        Compaction::parse([]).expect("every option has a default")
    }
}

impl Compaction {
    /// The compaction of a table with these options; without any, by size.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the option, where one is not known, or is not a value of its kind.
    pub fn parse<'a>(options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Compaction> {
        let mut left = Options { left: options.into_iter().collect(), notes: Vec::new() };
        let class = left.take("class").unwrap_or("SizeTieredCompactionStrategy");
        let class = class.rsplit('.').next().unwrap_or_default();
        let strategy = left.strategy(class)?;
        let tombstones = left.tombstones(&strategy)?;
        let compaction = Compaction {
            enabled: left.flag("enabled", true)?,
            min_threshold: left.number("min_threshold", 4)?,
            max_threshold: left.number("max_threshold", 32)?,
            only_purge_repaired_tombstones: left.flag("only_purge_repaired_tombstones", false)?,
            tombstones,
            strategy,
            notes: Vec::new(),
        };
        left.flag("log_all", false)?;
        left.overlapping_tombstones()?;
        left.finish(class)?;
        compaction.check()?;
        Ok(Compaction { notes: left.notes, ..compaction })
    }

    fn check(&self) -> Result<()> {
        let (min, max) = (self.min_threshold, self.max_threshold);
        match () {
            () if min < 2 => {
                Err(invalid(format!("min_threshold = {min}: two SSTables are the least to merge")))
            }
            () if min > max => Err(invalid(format!("min_threshold = {min} is above max_threshold = {max}"))),
            () => Ok(()),
        }
    }
}

/// Options that are not looked at yet.
struct Options<'a> {
    left: Vec<(&'a str, &'a str)>,
    notes: Vec<String>,
}

impl<'a> Options<'a> {
    fn strategy(&mut self, class: &str) -> Result<Strategy> {
        match class {
            "SizeTieredCompactionStrategy" => self.size_tiered().map(Strategy::SizeTiered),
            "LeveledCompactionStrategy" => self.leveled().map(Strategy::Leveled),
            "TimeWindowCompactionStrategy" => self.time_window().map(Strategy::TimeWindow),
            class if ELSEWHERE.contains(&class) => {
                self.notes.push(format!("{class} is not known here: SSTables are merged by size instead"));
                self.size_tiered().map(Strategy::SizeTiered)
            }
            class => Err(invalid(format!("there is no strategy {class:?} that is known here"))),
        }
    }

    fn size_tiered(&mut self) -> Result<SizeTiered> {
        let tiers = SizeTiered {
            bucket_low: self.number("bucket_low", 0.5)?,
            bucket_high: self.number("bucket_high", 1.5)?,
            min_sstable_size: self.number("min_sstable_size", 50 << 20)?,
        };
        let SizeTiered { bucket_low, bucket_high, .. } = tiers;
        if bucket_high > bucket_low {
            return Ok(tiers);
        }
        Err(invalid(format!("bucket_high = {bucket_high} is not above bucket_low = {bucket_low}")))
    }

    fn leveled(&mut self) -> Result<Leveled> {
        let mib: u32 = self.at_least(1, "sstable_size_in_mb", 160)?;
        let fanout = self.at_least(1, "fanout_size", 10)?;
        Ok(Leveled {
            sstable_bytes: u64::from(mib) << 20,
            fanout,
            single_sstable_uplevel: self.flag("single_sstable_uplevel", false)?,
            tiers: self.size_tiered()?,
        })
    }

    fn time_window(&mut self) -> Result<TimeWindow> {
        let units = [("MINUTES", 60), ("HOURS", 3600), ("DAYS", 86_400)];
        let unit = self.one_of("compaction_window_unit", &units, 86_400)?;
        let resolutions = [
            ("SECONDS", 1),
            ("MILLISECONDS", 1000),
            ("MICROSECONDS", 1_000_000),
            ("NANOSECONDS", 1_000_000_000),
        ];
        let timestamps_per_second = self.one_of("timestamp_resolution", &resolutions, 1_000_000)?;
        let size: i32 = self.at_least(1, "compaction_window_size", 1)?;
        // It is looked for whenever something is decided, which costs nothing.
        self.at_least::<i64>(0, "expired_sstable_check_frequency_seconds", 600)?;
        let ignore_overlaps = self.flag("unsafe_aggressive_sstable_expiration", false)?;
        if ignore_overlaps {
            let what = "what expired SSTables have deleted in others may come back";
            self.notes.push(format!("unsafe_aggressive_sstable_expiration is set: {what}"));
        }
        let window_seconds = unit * i64::from(size);
        Ok(TimeWindow { window_seconds, timestamps_per_second, ignore_overlaps, tiers: self.size_tiered()? })
    }

    fn tombstones(&mut self, strategy: &Strategy) -> Result<TombstoneRule> {
        let names =
            ["tombstone_threshold", "tombstone_compaction_interval", "unchecked_tombstone_compaction"];
        let is_wanted = self.left.iter().any(|(name, value)| names.contains(name) && *value != "false");
        Ok(TombstoneRule {
            enabled: is_wanted || !matches!(strategy, Strategy::TimeWindow(_)),
            threshold: self.at_least(0.0, "tombstone_threshold", 0.2)?,
            interval_seconds: self.at_least(0, "tombstone_compaction_interval", 86_400)?,
            unchecked: self.flag("unchecked_tombstone_compaction", false)?,
        })
    }

    fn overlapping_tombstones(&mut self) -> Result<()> {
        let Some(value) = self.take("provide_overlapping_tombstones") else { return Ok(()) };
        match value.to_ascii_uppercase().as_str() {
            "NONE" => {}
            "ROW" | "CELL" => {
                let what = "tombstones of other SSTables are not looked at";
                self.notes.push(format!("provide_overlapping_tombstones = {value}: {what}"));
            }
            _ => return Err(refused("provide_overlapping_tombstones", value, "it is none, row or cell")),
        }
        Ok(())
    }

    /// Nothing may be left; of strategies that are not ours, whatever is.
    fn finish(&mut self, class: &str) -> Result<()> {
        let names: Vec<&str> = self.left.iter().map(|(name, _)| *name).collect();
        match names.first() {
            None => Ok(()),
            Some(_) if ELSEWHERE.contains(&class) => {
                self.notes.push(format!("options of {class} that are not looked at: {}", names.join(", ")));
                Ok(())
            }
            Some(name) => Err(invalid(format!("{name} is not an option of {class}"))),
        }
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.left.iter().position(|option| option.0 == name)?;
        Some(self.left.remove(at).1.trim())
    }

    fn number<T: FromStr<Err: Display>>(&mut self, name: &str, default: T) -> Result<T> {
        let Some(value) = self.take(name) else { return Ok(default) };
        value.parse().map_err(|error: T::Err| refused(name, value, &error.to_string()))
    }

    fn at_least<T: FromStr<Err: Display> + PartialOrd + Display>(
        &mut self,
        least: T,
        name: &str,
        default: T,
    ) -> Result<T> {
        let number = self.number(name, default)?;
        // What cannot be compared is not a number.
        if number >= least {
            Ok(number)
        } else {
            Err(refused(name, &number.to_string(), &format!("it is {least} or more")))
        }
    }

    fn flag(&mut self, name: &str, default: bool) -> Result<bool> {
        match self.take(name) {
            None => Ok(default),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(refused(name, value, "it is true or false")),
        }
    }

    fn one_of(&mut self, name: &str, values: &[(&str, i64)], default: i64) -> Result<i64> {
        let Some(value) = self.take(name) else { return Ok(default) };
        let known = values.iter().find(|(word, _)| *word == value);
        let words: Vec<&str> = values.iter().map(|(word, _)| *word).collect();
        let error = || refused(name, value, &format!("it is one of {}", words.join(", ")));
        known.map(|(_, number)| *number).ok_or_else(error)
    }
}

fn refused(name: &str, value: &str, why: &str) -> Error {
    invalid(format!("{name} = {value}: {why}"))
}

fn invalid(what: String) -> Error {
    Error::Invalid(format!("compaction: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(options: &[(&str, &str)]) -> String {
        Compaction::parse(options.iter().copied()).unwrap_err().to_string()
    }

    fn parse(class: &str, options: &[(&str, &str)]) -> Compaction {
        Compaction::parse([("class", class)].into_iter().chain(options.iter().copied())).unwrap()
    }

    #[test]
    fn defaults_are_those_of_cassandra() {
        let plain = Compaction::parse([]).unwrap();
        let tiers = SizeTiered { bucket_low: 0.5, bucket_high: 1.5, min_sstable_size: 52_428_800 };
        let tombstones =
            TombstoneRule { enabled: true, threshold: 0.2, interval_seconds: 86_400, unchecked: false };
        let expected = Compaction {
            enabled: true,
            min_threshold: 4,
            max_threshold: 32,
            only_purge_repaired_tombstones: false,
            tombstones,
            strategy: Strategy::SizeTiered(tiers),
            notes: Vec::new(),
        };
        assert_eq!(plain, expected);
        let leveled = parse("org.apache.cassandra.db.compaction.LeveledCompactionStrategy", &[]);
        let sstable_bytes = 160 << 20;
        let levels = Leveled { sstable_bytes, fanout: 10, single_sstable_uplevel: false, tiers };
        assert_eq!(leveled, Compaction { strategy: Strategy::Leveled(levels), ..expected.clone() });
        let windows = parse("TimeWindowCompactionStrategy", &[]);
        let [window_seconds, timestamps_per_second] = [86_400, 1_000_000];
        let window = TimeWindow { window_seconds, timestamps_per_second, ignore_overlaps: false, tiers };
        let tombstones = TombstoneRule { enabled: false, ..tombstones };
        assert_eq!(windows, Compaction { strategy: Strategy::TimeWindow(window), tombstones, ..expected });
    }

    #[test]
    fn options_are_taken_as_they_are_written() {
        let compaction = parse(
            "TimeWindowCompactionStrategy",
            &[
                ("enabled", "FALSE"),
                ("min_threshold", "2"),
                ("max_threshold", " 64 "),
                ("bucket_low", "0.25"),
                ("compaction_window_unit", "HOURS"),
                ("compaction_window_size", "6"),
                ("timestamp_resolution", "MILLISECONDS"),
                ("expired_sstable_check_frequency_seconds", "0"),
                ("tombstone_threshold", "0.5"),
                ("unchecked_tombstone_compaction", "false"),
                ("only_purge_repaired_tombstones", "true"),
                ("log_all", "true"),
                ("provide_overlapping_tombstones", "none"),
            ],
        );
        assert!(!compaction.enabled && compaction.only_purge_repaired_tombstones);
        assert_eq!((compaction.min_threshold, compaction.max_threshold), (2, 64));
        assert_eq!((compaction.tombstones.enabled, compaction.tombstones.threshold), (true, 0.5));
        let Strategy::TimeWindow(window) = compaction.strategy else { panic!("{compaction:?}") };
        assert_eq!((window.window_seconds, window.timestamps_per_second), (21_600, 1000));
        assert_eq!((window.tiers.bucket_low, compaction.notes.len()), (0.25, 0));
        let off = parse("TimeWindowCompactionStrategy", &[("unchecked_tombstone_compaction", "false")]);
        assert!(!off.tombstones.enabled);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let leveled = ("class", "LeveledCompactionStrategy");
        let windows = ("class", "TimeWindowCompactionStrategy");
        for (options, expected) in [
            (vec![("class", "MyStrategy")], "there is no strategy \"MyStrategy\" that is known here"),
            (vec![("fanout_size", "5")], "fanout_size is not an option of SizeTieredCompactionStrategy"),
            (vec![leveled, ("colour", "5")], "colour is not an option of LeveledCompactionStrategy"),
            (vec![leveled, ("fanout_size", "0")], "fanout_size = 0: it is 1 or more"),
            (
                vec![leveled, ("sstable_size_in_mb", "x")],
                "sstable_size_in_mb = x: invalid digit found in string",
            ),
            (vec![windows, ("compaction_window_unit", "days")], "it is one of MINUTES, HOURS, DAYS"),
            (vec![windows, ("compaction_window_size", "-1")], "compaction_window_size = -1: it is 1 or more"),
            (vec![("min_threshold", "1")], "min_threshold = 1: two SSTables are the least to merge"),
            (vec![("min_threshold", "33")], "min_threshold = 33 is above max_threshold = 32"),
            (vec![("bucket_low", "1.5")], "bucket_high = 1.5 is not above bucket_low = 1.5"),
            (vec![("bucket_high", "NaN")], "bucket_high = NaN is not above bucket_low = 0.5"),
            (vec![("tombstone_threshold", "NaN")], "tombstone_threshold = NaN: it is 0 or more"),
            (vec![("enabled", "yes")], "enabled = yes: it is true or false"),
            (vec![("provide_overlapping_tombstones", "all")], "it is none, row or cell"),
        ] {
            let error = error_of(&options);
            assert!(error.starts_with("compaction: ") && error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn what_is_not_done_as_it_says_is_told() {
        let unified =
            parse("UnifiedCompactionStrategy", &[("scaling_parameters", "T4"), ("min_threshold", "3")]);
        assert_eq!(
            unified.notes,
            [
                "UnifiedCompactionStrategy is not known here: SSTables are merged by size instead",
                "options of UnifiedCompactionStrategy that are not looked at: scaling_parameters",
            ]
        );
        assert_eq!(unified.strategy, Compaction::parse([]).unwrap().strategy);
        assert_eq!(unified.min_threshold, 3);
        assert_eq!(parse("IncrementalCompactionStrategy", &[]).notes.len(), 1);
        let of_before = [("base_time_seconds", "60"), ("max_sstable_age_days", "10")];
        assert_eq!(parse("DateTieredCompactionStrategy", &of_before).notes.len(), 2);
        assert_eq!(
            parse("SizeTieredCompactionStrategy", &[("provide_overlapping_tombstones", "row")]).notes.len(),
            1
        );
        let unsafely = [("unsafe_aggressive_sstable_expiration", "true")];
        assert_eq!(parse("TimeWindowCompactionStrategy", &unsafely).notes.len(), 1);
    }
}
