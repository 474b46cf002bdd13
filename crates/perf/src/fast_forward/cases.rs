//! What is read: groups of cases, each a number of stretches of rows.

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
    /// The first row, and then one in the middle.
    LargePartitionForwarding,
    /// One slice, of all sizes, of one key.
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

/// Something that is read and measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// What it is called: names and values of the first columns.
    pub labels: Vec<(&'static str, String)>,
    /// Who reads.
    pub by: By,
    /// What is read.
    pub stretches: Stretches,
    /// Whether the absent keys before the rows are asked for instead of the rows.
    pub absent: bool,
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

impl Case {
    /// How many rows it must find, among so many.
    pub fn expected(&self, rows: u32) -> u64 {
        if self.absent { 0 } else { self.stretches.rows(rows) }
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
            Group::LargePartitionForwarding => "Testing forwarding in a large partition",
            Group::LargePartitionSingleKeySlice => "Testing slices of a large partition, single key",
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

    /// Its cases, among so many rows.
    pub fn cases(self, rows: u32) -> Vec<Case> {
        match self {
            Group::LargePartitionSkips | Group::SmallPartitionSkips => skips(rows),
            Group::LargePartitionSlicing | Group::SmallPartitionSlicing => slices(By::Forwarding, rows),
            Group::LargePartitionSlicingClusteringKeys => slices(By::Slice, rows),
            Group::LargePartitionSlicingSingleKeyReader => slices(By::Table, rows),
            Group::LargePartitionSelectFewRows => few(false, rows),
            Group::LargePartitionSelectMissingRows => few(true, rows),
            Group::LargePartitionForwarding => forwarding(rows),
            Group::LargePartitionSingleKeySlice => single_key(rows),
        }
    }
}

fn case(labels: &[(&'static str, u32)], by: By, stretches: Stretches) -> Case {
    let labels = labels.iter().map(|&(name, value)| (name, value.to_string())).collect();
    Case { labels, by, stretches, absent: false }
}

fn skips(rows: u32) -> Vec<Case> {
    let skip = |read: u32, skip: u32| {
        let (len, step) = if skip == 0 { (rows, rows) } else { (read, read + skip) };
        let stretches = Stretches { first: 0, len, step, count: rows.div_ceil(step.max(1)) };
        case(&[("read", read), ("skip", skip)], By::Forwarding, stretches)
    };
    let with_skips = READS.iter().flat_map(|&read| SKIPS.map(|by| skip(read, by)));
    [skip(1, 0)].into_iter().chain(with_skips).collect()
}

fn slices(by: By, rows: u32) -> Vec<Case> {
    let slice = |offset: u32, read: u32| {
        case(&[("offset", offset), ("read", read)], by, Stretches::one(offset, read))
    };
    [0, rows / 2].iter().flat_map(|&offset| SLICES.map(|read| slice(offset, read))).collect()
}

/// Two neighbours in the middle, one after the other; rows evenly spread; every second row.
fn few(absent: bool, rows: u32) -> Vec<Case> {
    let pick = |stride: u32, stretches: Stretches| Case {
        absent,
        ..case(&[("stride", stride), ("rows", stretches.count)], By::Forwarding, stretches)
    };
    let neighbours = [rows / 2, rows / 2 + 1].map(|row| pick(row, Stretches::one(row, 1)));
    let spread = PICKS.map(|count| {
        let step = (rows / count).max(1);
        pick(step, Stretches { first: 0, len: 1, step, count })
    });
    let second = pick(2, Stretches { first: 0, len: 1, step: 2, count: rows / 2 });
    neighbours.into_iter().chain(spread).chain([second]).collect()
}

fn forwarding(rows: u32) -> Vec<Case> {
    let forward = |read: u32| {
        let stretches = Stretches { first: 0, len: read, step: (rows / 2).max(read), count: 2 };
        case(&[("to", rows / 2), ("read", read)], By::Forwarding, stretches)
    };
    vec![forward(1), forward(32)]
}

fn single_key(rows: u32) -> Vec<Case> {
    let middle = rows / 2;
    let ranges = [0..rows, 0..1, 0..middle.max(1), middle..middle + 1, middle..rows, rows - 1..rows];
    let named = ranges.map(|range| Case {
        labels: vec![("range", format!("[{},{}]", range.start, range.end - 1))],
        ..case(&[], By::Slice, Stretches::one(range.start, range.end - range.start))
    });
    named.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_leave_out_what_they_say() {
        let cases = Group::LargePartitionSkips.cases(1000);
        assert_eq!(cases.len(), 17);
        assert_eq!(cases[0].expected(1000), 1000);
        assert_eq!(cases[1].labels, [("read", "1".to_owned()), ("skip", "1".to_owned())]);
        assert_eq!(cases[1].expected(1000), 500);
        // 64 of 65 rows each time, 15 times, and 25 at the end.
        assert_eq!(cases[9].expected(1000), 15 * 64 + 25);
        let stretches: Vec<Range<u32>> = cases[5].stretches.among(200).collect();
        assert_eq!(stretches, [0..1, 65..66, 130..131, 195..196]);
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
        let rows = |case: &Case| case.stretches.among(1000).flatten().collect::<Vec<u32>>();
        let picks: Vec<Vec<u32>> = cases[..5].iter().map(rows).collect();
        assert_eq!(picks[..3], [[500], [501], [0]]);
        assert_eq!(picks[4], [0, 250, 500, 750]);
        assert_eq!(cases[7].expected(1000), 500);
        assert!(
            Group::LargePartitionSelectMissingRows.cases(1000).iter().all(|case| case.expected(1000) == 0)
        );
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
