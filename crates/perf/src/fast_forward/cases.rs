//! What is read: groups of cases. Most are a number of stretches of rows.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::Range;

use clap::ValueEnum;

use super::dataset::Dataset;

/// How many rows are read before others are skipped.
const READS: [u32; 2] = [1, 64];

/// How many rows are skipped.
const SKIPS: [u32; 8] = [1, 8, 16, 32, 64, 256, 1024, 4096];

/// How many rows a slice has.
const SLICES: [u32; 4] = [1, 32, 256, 4096];

/// How many rows are picked from all of a partition.
const PICKS: [u32; 5] = [1, 2, 4, 8, 16];

/// What is read and what is skipped before all is scanned, with what that has left in the row cache.
const GAPS: [(u32, u32); 4] = [(1, 1), (1, 64), (64, 1), (64, 64)];

/// The label of a case that begins with empty caches, where others go on with what it has left.
const BEGINS: &str = "->";

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
    /// Ranges of rows one after the other, through the row cache.
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

/// Rows from one number to another. There need not be rows of these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowRange {
    /// Where it begins.
    pub first: Bound<i64>,
    /// Where it ends.
    pub last: Bound<i64>,
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
        /// A range that a case before has read, if it has all of this one.
        known_by: Option<RowRange>,
    },
}

/// Something that is read and measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// What it is called: names and values of the first columns.
    pub labels: Vec<(&'static str, String)>,
    /// What is done.
    pub work: Work,
    /// Whether it begins with what the case before has left in the caches. It is run once, however long cases are to run: again, it would find
    /// what it has left there itself.
    pub goes_on: bool,
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
        let (first, last) = self.ends();
        (last.saturating_add(1).min(i64::from(rows)) - first.max(0)).max(0).cast_unsigned()
    }

    /// The first and the last one.
    fn ends(self) -> (i64, i64) {
        let first = match self.first {
            Included(first) => first,
            Excluded(before) => before + 1,
            Unbounded => i64::MIN,
        };
        let last = match self.last {
            Included(last) => last,
            Excluded(end) => end - 1,
            Unbounded => i64::MAX,
        };
        (first, last)
    }

    /// Whether it has all of another, which is not empty.
    fn has(self, other: RowRange) -> bool {
        let ((first, last), (other_first, other_last)) = (self.ends(), other.ends());
        first <= other_first && other_last <= last
    }

    /// As it is written.
    pub fn name(self) -> String {
        if let (Included(first), Included(last)) = (self.first, self.last)
            && first == last
        {
            return format!("[{first}]");
        }
        let first = match self.first {
            Included(first) => format!("[{first}"),
            Excluded(before) => format!("({before}"),
            Unbounded => "(-inf".to_owned(),
        };
        let last = match self.last {
            Included(last) => format!("{last}]"),
            Excluded(end) => format!("{end})"),
            Unbounded => "+inf)".to_owned(),
        };
        format!("{first}, {last}")
    }
}

impl Case {
    /// How many rows it must find, among so many.
    pub fn expected(&self, rows: u32) -> u64 {
        match self.work {
            Work::Rows(_, stretches) => stretches.rows(rows),
            Work::Absent(..) => 0,
            Work::Restricted { .. } => rows.saturating_sub(rows / 2).min(2).into(),
            Work::Range { rows: range, .. } => range.rows(rows),
        }
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

    /// Whether its cases are about what the ones before have left in the row cache. Then that is on, and empty where a case does not go on.
    pub fn is_of_row_cache(self) -> bool {
        self == Group::LargePartitionSingleKeySlice
    }

    /// Whether it reads a table, which uses fences wherever they are and searches as it does by itself.
    pub fn is_of_table(self) -> bool {
        matches!(self, Group::LargePartitionSlicingSingleKeyReader | Group::LargePartitionSingleKeySlice)
    }

    /// Its cases, among so many rows; with the row cache there are more.
    pub fn cases(self, rows: u32, row_cache: bool) -> Vec<Case> {
        match self {
            Group::LargePartitionSkips | Group::SmallPartitionSkips if row_cache => skips_in_cache(rows),
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
    Case { labels, work, goes_on: false }
}

fn skips(rows: u32) -> Vec<Case> {
    let with_skips = READS.iter().flat_map(|&read| SKIPS.map(|by| skipping(rows, read, by)));
    [skipping(rows, 1, 0)].into_iter().chain(with_skips).collect()
}

/// The same, and behind them scans of all by what others with gaps have left.
fn skips_in_cache(rows: u32) -> Vec<Case> {
    let scans = GAPS.iter().flat_map(|&(read, skip)| {
        [skipping(rows, read, skip), Case { goes_on: true, ..skipping(rows, 1, 0) }]
    });
    let mut cases: Vec<Case> = skips(rows).into_iter().chain(scans).collect();
    for case in &mut cases {
        case.labels.insert(0, ("case", begins(case.goes_on)));
    }
    cases
}

fn skipping(rows: u32, read: u32, skip: u32) -> Case {
    let (len, step) = if skip == 0 { (rows, rows) } else { (read, read + skip) };
    let stretches = Stretches { first: 0, len, step, count: rows.div_ceil(step.max(1)) };
    case(&[("read", read), ("skip", skip)], Work::Rows(By::Forwarding, stretches))
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
        // A row by itself is a slice, whose end is known.
        let by = if stretches.count == 1 { By::Slice } else { By::Forwarding };
        case(&[("stride", stride), ("rows", stretches.count)], work(by, stretches))
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
    let labels = vec![("pk-scan", yes_or_no(is_scan))];
    Case { labels, work: Work::Restricted { is_scan }, goes_on: false }
}

/// Sequences of ranges that are equal, beside each other, overlap, lie in each other, and have one end or gaps between them.
fn single_key(rows: u32) -> Vec<Case> {
    let rows = i64::from(rows);
    let range = |first, last| RowRange { first, last };
    let to = |first, last| range(Included(first), Included(last));
    let one = |row| to(row, row);
    let up_to = |first, end| range(Included(first), Excluded(end));
    let with_gaps = |all| vec![up_to(10, 20), up_to(30, 40), up_to(60, 70), up_to(90, 100), all];
    let from_100 = range(Included(100), Unbounded);
    let sequences = [
        vec![to(0, 1), to(0, 1)],
        vec![to(0, rows / 2), to(0, rows / 2)],
        vec![to(0, rows), to(0, rows)],
        vec![up_to(1, 100), to(100, 109)],
        vec![to(1, 100), one(100)],
        vec![to(1, 100), to(51, 150)],
        vec![to(1, 100), to(51, 70)],
        vec![to(51, 70), to(41, 80), to(31, 100)],
        vec![up_to(0, 100), one(100)],
        vec![range(Excluded(100), Included(200)), one(100)],
        vec![range(Unbounded, Included(100)), to(10, 20), one(-1)],
        vec![from_100, to(150, 159), one(rows - 1), one(rows + 1)],
        with_gaps(up_to(0, 100)),
        with_gaps(up_to(10, 100)),
    ];
    sequences.iter().flat_map(|sequence| (0..sequence.len()).map(|at| in_sequence(sequence, at))).collect()
}

/// One of a sequence of ranges, which is known if another one before it has all of it.
fn in_sequence(sequence: &[RowRange], at: usize) -> Case {
    let rows = sequence[at];
    let known_by = sequence[..at].iter().copied().find(|before| before.has(rows));
    let (case, known) = (begins(at > 0), yes_or_no(known_by.is_some()));
    Case {
        labels: vec![("case", case), ("range", rows.name()), ("known", known)],
        work: Work::Range { rows, known_by },
        goes_on: at > 0,
    }
}

/// Of a case, whether it begins a sequence, as it is printed.
fn begins(goes_on: bool) -> String {
    if goes_on { "" } else { BEGINS }.to_owned()
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
        let cases = Group::LargePartitionSkips.cases(1000, false);
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
        let cases = Group::LargePartitionSlicing.cases(400, false);
        let found: Vec<u64> = cases.iter().map(|case| case.expected(400)).collect();
        assert_eq!(found, [1, 32, 256, 400, 1, 32, 200, 200]);
    }

    #[test]
    fn few_rows_are_spread() {
        let cases = Group::LargePartitionSelectFewRows.cases(1000, false);
        let rows = |case: &Case| stretches(case, 1000).into_iter().flatten().collect::<Vec<u32>>();
        let picks: Vec<Vec<u32>> = cases[..5].iter().map(rows).collect();
        assert_eq!(picks[..3], [[500], [501], [0]]);
        assert_eq!(picks[4], [0, 250, 500, 750]);
        assert_eq!(cases[7].expected(1000), 500);
        assert!(
            Group::LargePartitionSelectMissingRows
                .cases(1000, false)
                .iter()
                .all(|case| case.expected(1000) == 0)
        );
    }

    #[test]
    fn two_rows_are_around_the_middle() {
        let cases = Group::LargePartitionForwarding.cases(1000, false);
        let labels: Vec<(&str, &str)> =
            cases.iter().map(|case| (case.labels[0].0, &*case.labels[0].1)).collect();
        assert_eq!(labels, [("pk-scan", "yes"), ("pk-scan", "no")]);
        let expected = |rows: u32| cases.iter().map(|case| case.expected(rows)).collect::<Vec<u64>>();
        assert_eq!((expected(1000), expected(2)), (vec![2, 2], vec![1, 1]));
    }

    #[test]
    fn ranges_are_of_the_numbers_of_rows() {
        let cases = Group::LargePartitionSingleKeySlice.cases(1000, true);
        assert_eq!(cases.iter().filter(|case| !case.goes_on).count(), 14);
        let lines: Vec<String> = cases
            .iter()
            .map(|case| format!("{}{} {}", case.labels[0].1, case.labels[1].1, case.expected(1000)))
            .collect();
        assert_eq!(lines.len(), 38);
        assert_eq!(lines[..4], ["->[0, 1] 2", "[0, 1] 2", "->[0, 500] 501", "[0, 500] 501"]);
        assert_eq!(lines[4..8], ["->[0, 1000] 1000", "[0, 1000] 1000", "->[1, 100) 99", "[100, 109] 10"]);
        assert_eq!(
            lines[19..24],
            ["->(100, 200] 100", "[100] 1", "->(-inf, 100] 101", "[10, 20] 11", "[-1] 0"]
        );
        assert_eq!(lines[24..28], ["->[100, +inf) 900", "[150, 159] 10", "[999] 1", "[1001] 0"]);
        let few = RowRange { first: Included(100), last: Unbounded };
        assert_eq!(few.rows(60), 0);
    }

    #[test]
    fn what_is_known_was_read() {
        let cases = Group::LargePartitionSingleKeySlice.cases(1000, true);
        let known = |case: &Case| matches!(case.work, Work::Range { known_by: Some(_), .. });
        let names: Vec<&str> =
            cases.iter().filter(|case| known(case)).map(|case| &*case.labels[1].1).collect();
        let expected = [
            "[0, 1]",
            "[0, 500]",
            "[0, 1000]",
            "[100]",
            "[51, 70]",
            "[10, 20]",
            "[-1]",
            "[150, 159]",
            "[999]",
            "[1001]",
        ];
        assert_eq!(names, expected);
        // Of a partition of few rows the last one comes before the range.
        let few = Group::LargePartitionSingleKeySlice.cases(60, true);
        assert_eq!(few.iter().filter(|case| known(case)).count(), 8);
    }

    #[test]
    fn scans_follow_gaps_where_there_is_a_row_cache() {
        let cases = Group::SmallPartitionSkips.cases(1000, true);
        assert_eq!(cases.len(), 17 + 8);
        let labels: Vec<[&str; 3]> =
            cases[15..21].iter().map(|case| [0, 1, 2].map(|at| &*case.labels[at].1)).collect();
        let expected = [
            ["->", "64", "1024"],
            ["->", "64", "4096"],
            ["->", "1", "1"],
            ["", "1", "0"],
            ["->", "1", "64"],
            ["", "1", "0"],
        ];
        assert_eq!(labels, expected);
        assert_eq!(cases[18].expected(1000), 1000);
    }

    #[test]
    fn every_group_has_cases_whatever_the_rows() {
        for group in Group::value_variants() {
            for rows in [1, 2, 17, 1_000_000] {
                let cases = group.cases(rows, true);
                assert!(!cases.is_empty());
                assert!(cases.iter().all(|case| case.expected(rows) <= u64::from(rows)), "{group:?} {rows}");
            }
        }
    }
}
