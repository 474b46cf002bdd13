//! What is read: groups of cases. Most are a number of stretches of rows.

use std::ops::Range;

use clap::ValueEnum;

use super::dataset::{Dataset, clustering_key};

/// How many rows are read before others are skipped.
const READS: [u32; 2] = [1, 64];

/// How many rows are skipped.
const SKIPS: [u32; 8] = [1, 8, 16, 32, 64, 256, 1024, 4096];

/// How many rows a slice has.
const SLICES: [u32; 4] = [1, 32, 256, 4096];

/// How many rows are picked from all of a partition.
const PICKS: [u32; 5] = [1, 2, 4, 8, 16];

/// Cases that are printed in one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Group {
    /// All rows of the large partition, but those that are skipped.
    LargePartitionSkips,
    /// A slice, by a reader of the partition that is told where to go on.
    LargePartitionSlicing,
    /// A slice, by a reader that is made for it.
    LargePartitionSlicingClusteringKeys,
    /// A slice, by a read of the table that the SSTable is of.
    LargePartitionSlicingSingleKeyReader,
    /// Single rows far from each other.
    LargePartitionSelectFewRows,
    /// Keys that are not there.
    LargePartitionSelectMissingRows,
    /// A reader of the rows from the middle on, that is told where to go on.
    LargePartitionForwarding,
    /// Ranges of clustering keys one after the other, through the row cache.
    LargePartitionSingleKeySlice,
    /// All small partitions, but those that are skipped.
    SmallPartitionSkips,
    /// A range of small partitions.
    SmallPartitionSlicing,
}

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// One reader, which is told to go on at each stretch.
    Forwarding,
    /// A reader for each stretch.
    Slice,
    /// A read of the table for each stretch.
    Table,
}

/// Stretches of rows, all of one length and at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretches {
    /// The first row of the first one.
    pub first: u32,
    /// Rows of each. What is behind the last row of the dataset is not there.
    pub len: u32,
    /// From the first row of one to that of the next.
    pub step: u32,
    /// How many.
    pub count: u32,
}

/// Rows from one to another, both of them included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowRange {
    /// The first; `None` where it begins before all.
    pub first: Option<u32>,
    /// The last, whether it is there or not; `None` where it ends behind all.
    pub last: Option<u32>,
}

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Stretches of rows.
    Rows(By, Stretches),
    /// The absent keys right before those rows.
    Absent(By, Stretches),
    /// The rows from the middle on, by a reader that is told to go on to what is before them, around the first of them, and
    /// behind all.
    Restricted {
        /// Whether it comes to the partition with all others that there are. Else it is of the one partition.
        is_scan: bool,
    },
    /// A range of rows, by one read of the table.
    Range {
        /// Which rows.
        rows: RowRange,
        /// Whether the cases before have read all of it.
        is_known: bool,
    },
}

/// Something that is read and measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// What it is called: names and values of the first columns.
    pub labels: Vec<(&'static str, String)>,
    /// What is done.
    pub work: Work,
}

impl Stretches {
    /// One stretch.
    pub fn one(first: u32, len: u32) -> Stretches {
        Stretches { first, len, step: 0, count: 1 }
    }

    /// The stretches among so many rows, as far as they begin there.
    pub fn among(self, rows: u32) -> impl Iterator<Item = Range<u32>> {
        let first = move |number: u32| u64::from(self.first) + u64::from(number) * u64::from(self.step);
        let starts = (0..self.count).map(first).take_while(move |&first| first < u64::from(rows));
        starts.map(move |first| first as u32..(first + u64::from(self.len)).min(u64::from(rows)) as u32)
    }

    /// How many rows they have together.
    pub fn rows(self, rows: u32) -> u64 {
        self.among(rows).map(|stretch| stretch.len() as u64).sum()
    }
}

impl RowRange {
    /// How many there are, among so many.
    pub fn rows(self, rows: u32) -> u64 {
        let end = self.last.map_or(rows, |last| rows.min(last.saturating_add(1)));
        u64::from(end.saturating_sub(self.first.unwrap_or(0)))
    }

    /// The range of their clustering keys, as it is written.
    fn name(self) -> String {
        let key = |row: u32| clustering_key(row).to_string();
        match (self.first, self.last) {
            (Some(first), Some(last)) if first == last => format!("[{}]", key(first)),
            (first, last) => {
                let first = first.map_or("(-inf".to_owned(), |first| format!("[{}", key(first)));
                let last = last.map_or("+inf)".to_owned(), |last| format!("{}]", key(last)));
                format!("{first}, {last}")
            }
        }
    }
}

impl Case {
    /// How many rows it must find, among so many.
    pub fn expected(&self, rows: u32) -> u64 {
        match self.work {
            Work::Rows(_, stretches) => stretches.rows(rows),
            Work::Absent(..) => 0,
            Work::Restricted { .. } => {
                RowRange { first: Some(rows / 2), last: Some(rows / 2 + 1) }.rows(rows)
            }
            Work::Range { rows: range, .. } => range.rows(rows),
        }
    }

    /// Whether it is run once, however long cases are to run: again, it would find what it has left in the caches itself.
    pub fn is_run_once(&self) -> bool {
        matches!(self.work, Work::Range { .. })
    }
}

impl Group {
    /// Its name, as the command has it.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What its table is headed by.
    pub fn title(self) -> &'static str {
        match self {
            Group::LargePartitionSkips => "Testing scanning large partition with skips",
            Group::LargePartitionSlicing => "Testing slicing of large partition",
            Group::LargePartitionSlicingClusteringKeys => {
                "Testing slicing of large partition using clustering keys"
            }
            Group::LargePartitionSlicingSingleKeyReader => {
                "Testing slicing of large partition, single-partition reader"
            }
            Group::LargePartitionSelectFewRows => "Testing selecting few rows from a large partition",
            Group::LargePartitionSelectMissingRows => "Testing selecting missing rows from a large partition",
            Group::LargePartitionForwarding => {
                "Testing forwarding with clustering restriction in a large partition"
            }
            Group::LargePartitionSingleKeySlice => {
                "Testing effectiveness of caching of large partition, single-key slicing reads"
            }
            Group::SmallPartitionSkips => "Testing scanning small partitions with skips",
            Group::SmallPartitionSlicing => "Testing slicing small partitions",
        }
    }

    /// The rows that it reads.
    pub fn dataset(self) -> Dataset {
        match self {
            Group::SmallPartitionSkips | Group::SmallPartitionSlicing => Dataset::SmallPart,
            _ => Dataset::LargePartDs1,
        }
    }

    /// Whether its cases are about what the ones before have left in the row cache. Then that is on and kept from case to
    /// case, and empty at first.
    pub fn is_of_row_cache(self) -> bool {
        self == Group::LargePartitionSingleKeySlice
    }

    /// Whether it reads a table, which uses fences wherever they are and searches as it does by itself.
    pub fn is_of_table(self) -> bool {
        matches!(self, Group::LargePartitionSlicingSingleKeyReader | Group::LargePartitionSingleKeySlice)
    }

    /// Its cases, among so many rows.
    pub fn cases(self, rows: u32) -> Vec<Case> {
        match self {
            Group::LargePartitionSkips | Group::SmallPartitionSkips => skips(rows),
            Group::LargePartitionSlicing | Group::SmallPartitionSlicing => slices(By::Forwarding, rows),
            Group::LargePartitionSlicingClusteringKeys => slices(By::Slice, rows),
            Group::LargePartitionSlicingSingleKeyReader => slices(By::Table, rows),
            Group::LargePartitionSelectFewRows => few(false, rows),
            Group::LargePartitionSelectMissingRows => few(true, rows),
            Group::LargePartitionForwarding => vec![restricted(true), restricted(false)],
            Group::LargePartitionSingleKeySlice => single_key(rows),
        }
    }
}

fn case(labels: &[(&'static str, u32)], work: Work) -> Case {
    let labels = labels.iter().map(|&(name, value)| (name, value.to_string())).collect();
    Case { labels, work }
}

fn skips(rows: u32) -> Vec<Case> {
    let skip = |read: u32, skip: u32| {
        let (len, step) = if skip == 0 { (rows, rows) } else { (read, read + skip) };
        let stretches = Stretches { first: 0, len, step, count: rows.div_ceil(step.max(1)) };
        case(&[("read", read), ("skip", skip)], Work::Rows(By::Forwarding, stretches))
    };
    let with_skips = READS.iter().flat_map(|&read| SKIPS.map(|by| skip(read, by)));
    [skip(1, 0)].into_iter().chain(with_skips).collect()
}

fn slices(by: By, rows: u32) -> Vec<Case> {
    let slice = |offset: u32, read: u32| {
        case(&[("offset", offset), ("read", read)], Work::Rows(by, Stretches::one(offset, read)))
    };
    [0, rows / 2].iter().flat_map(|&offset| SLICES.map(|read| slice(offset, read))).collect()
}

/// Two neighbours in the middle, one after the other; rows evenly spread; every second row.
fn few(absent: bool, rows: u32) -> Vec<Case> {
    let work = if absent { Work::Absent } else { Work::Rows };
    let pick = |stride: u32, stretches: Stretches| {
        case(&[("stride", stride), ("rows", stretches.count)], work(By::Forwarding, stretches))
    };
    let neighbours = [rows / 2, rows / 2 + 1].map(|row| pick(row, Stretches::one(row, 1)));
    let spread = PICKS.map(|count| {
        let step = (rows / count).max(1);
        pick(step, Stretches { first: 0, len: 1, step, count })
    });
    let second = pick(2, Stretches { first: 0, len: 1, step: 2, count: rows / 2 });
    neighbours.into_iter().chain(spread).chain([second]).collect()
}

fn restricted(is_scan: bool) -> Case {
    Case { labels: vec![("pk-scan", yes_or_no(is_scan))], work: Work::Restricted { is_scan } }
}

/// Ranges that lie in each other, overlap, and have one end and none; each of them again.
fn single_key(rows: u32) -> Vec<Case> {
    let range = |first, last| RowRange { first, last };
    // Of a range that ends behind all, only the last rows: a cache has room for them.
    let last_rows = range(Some(rows.saturating_sub(10)), None);
    let sequence = [
        (range(Some(5), Some(15)), false),
        (range(Some(5), Some(15)), true),
        (range(Some(7), Some(12)), true),
        (range(Some(10), Some(30)), false),
        (range(Some(10), Some(30)), true),
        (range(Some(5), Some(30)), true),
        (range(None, Some(15)), false),
        (range(None, Some(15)), true),
        (last_rows, false),
        (last_rows, true),
        (range(Some(50), Some(50)), false),
        (range(Some(50), Some(50)), true),
        (range(None, None), false),
        (range(None, None), true),
    ];
    let named = sequence.map(|(range, is_known)| Case {
        labels: vec![("range", range.name()), ("known", yes_or_no(is_known))],
        work: Work::Range { rows: range, is_known },
    });
    named.to_vec()
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(case: &Case, rows: u32) -> Vec<Range<u32>> {
        match case.work {
            Work::Rows(_, stretches) | Work::Absent(_, stretches) => stretches.among(rows).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn skips_leave_out_what_they_say() {
        let cases = Group::LargePartitionSkips.cases(1000);
        assert_eq!(cases.len(), 17);
        assert_eq!(cases[0].expected(1000), 1000);
        assert_eq!(cases[1].labels, [("read", "1".to_owned()), ("skip", "1".to_owned())]);
        assert_eq!(cases[1].expected(1000), 500);
        // 64 of 65 rows each time, 15 times, and 25 at the end.
        assert_eq!(cases[9].expected(1000), 15 * 64 + 25);
        assert_eq!(stretches(&cases[5], 200), [0..1, 65..66, 130..131, 195..196]);
    }

    #[test]
    fn slices_begin_at_the_front_and_in_the_middle() {
        let cases = Group::LargePartitionSlicing.cases(400);
        let found: Vec<u64> = cases.iter().map(|case| case.expected(400)).collect();
        assert_eq!(found, [1, 32, 256, 400, 1, 32, 200, 200]);
    }

    #[test]
    fn few_rows_are_spread() {
        let cases = Group::LargePartitionSelectFewRows.cases(1000);
        let rows = |case: &Case| stretches(case, 1000).into_iter().flatten().collect::<Vec<u32>>();
        let picks: Vec<Vec<u32>> = cases[..5].iter().map(rows).collect();
        assert_eq!(picks[..3], [[500], [501], [0]]);
        assert_eq!(picks[4], [0, 250, 500, 750]);
        assert_eq!(cases[7].expected(1000), 500);
        assert!(
            Group::LargePartitionSelectMissingRows.cases(1000).iter().all(|case| case.expected(1000) == 0)
        );
    }

    #[test]
    fn two_rows_are_around_the_middle() {
        let cases = Group::LargePartitionForwarding.cases(1000);
        let labels: Vec<(&str, &str)> =
            cases.iter().map(|case| (case.labels[0].0, &*case.labels[0].1)).collect();
        assert_eq!(labels, [("pk-scan", "yes"), ("pk-scan", "no")]);
        let expected = |rows: u32| cases.iter().map(|case| case.expected(rows)).collect::<Vec<u64>>();
        assert_eq!((expected(1000), expected(2)), (vec![2, 2], vec![1, 1]));
    }

    #[test]
    fn ranges_are_named_by_their_keys() {
        let cases = Group::LargePartitionSingleKeySlice.cases(1000);
        let names: Vec<&str> = cases.iter().map(|case| &*case.labels[0].1).collect();
        assert_eq!(
            [names[0], names[6], names[8], names[10], names[12]],
            ["[11, 31]", "(-inf, 31]", "[1981, +inf)", "[101]", "(-inf, +inf)"]
        );
        let found: Vec<u64> = cases.iter().map(|case| case.expected(1000)).collect();
        assert_eq!(found, [11, 11, 6, 21, 21, 26, 16, 16, 10, 10, 1, 1, 1000, 1000]);
    }

    /// A case is known if and only if those before it have all of its rows, or rather all that is between its ends.
    #[test]
    fn what_is_known_was_read() {
        let mut read: Vec<(i64, i64)> = Vec::new();
        for case in Group::LargePartitionSingleKeySlice.cases(1000) {
            let Work::Range { rows, is_known } = case.work else { panic!("{case:?} is no range") };
            let range = (rows.first.map_or(-1, i64::from), rows.last.map_or(1000, i64::from));
            let has = |row: i64| read.iter().any(|(first, last)| (*first..=*last).contains(&row));
            assert_eq!((range.0..=range.1).all(has), is_known, "{case:?}");
            read.push(range);
        }
    }

    #[test]
    fn every_group_has_cases_whatever_the_rows() {
        for group in Group::value_variants() {
            for rows in [1, 2, 17, 1_000_000] {
                let cases = group.cases(rows);
                assert!(!cases.is_empty());
                assert!(cases.iter().all(|case| case.expected(rows) <= u64::from(rows)), "{group:?} {rows}");
            }
        }
    }
}
