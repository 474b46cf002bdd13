//! Fast-forward: what it costs to read slices, and to skip what lies between them.
//!
//! ```text
//! dataset    populate ──► an SSTable and what it was made of
//! group      cases ──► for each: bench (cold, or with what is kept) ──► figures, once an iteration ──► a line
//! ```

pub mod bench;
pub mod cases;
pub mod dataset;
pub mod figures;
pub mod output;
pub mod populate;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};
use runtime::Shard;
use siltstone::{Error, Result};
use sstable::{Search, Version};

use self::bench::{Bench, Reading};
use self::cases::{Case, Group};
use self::dataset::{DESCRIPTION, Dataset, MOST_BLOCK, MOST_BYTES, MOST_ROWS, Shape};
use self::figures::Summary;
use self::output::{Json, Output, Text};
use crate::arguments::{Format, Machine, Printing, seconds, versions};
use crate::{interrupted, room};

/// Slices and skips of a large partition and of many small ones.
///
/// First --populate writes the datasets, then runs without it measure. A case is run again and again until
/// --test-case-duration has passed, and at least once. Each time it is cold: the caches are empty, the SSTable is opened
/// anew, and files are read past the page cache of the operating system. Opening is not counted.
///
/// Columns: time of the median iteration; frags, the rows found, which is checked; frag/s, the median with its absolute
/// deviation, the most and the least. aio and KiB, requests to the disk and what they were for; blocked, how often the read
/// gave the thread back, to wait for the disk or to let others go first; dropped, requests in vain. idx, how often a page of 4 KiB of Index.db was asked for that was
/// cached, and that was not, and how many were waited for, without those of fences and filters, and what these name; c, slices that were in the row cache or not, and stretches of rows that were put into it (c blk,
/// which counts that in the published program too). allocs, allocations of the shard's thread; tasks, how often the shard turned to the read;
/// insns/f, instructions of that thread for each row, by the counters of the processor where it has any; cpu, the share
/// of the time that the thread was on a processor; mem, bytes that the caches have at the end; held, bytes that the
/// thread has then beyond what it had at first, what the caches account for, and buffers for its next requests: below 0 where
/// the caches account for more than they take, as they do by a third for small rows that are kept by themselves. What is not known is -.
///
/// The first two lines of large-partition-select-few-rows and -missing-rows are of one row each, whose number is told as their stride: the
/// published program has it so.
///
/// large-partition-single-key-slice is about what a range of rows, by their numbers, has left in the row cache for the next: there the
/// cache is always on, empty before each case with an arrow, and those without one go on with what it has, and are run once. So are
/// scans behind skips, which --enable-cache adds. Requests for rows that the cache must have are an error: rows of up to 32 KiB, as
/// many as take an eighth of it at the most, as a longer read does not push out all else.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf fast-forward --populate --value-size 2000
  siltstone perf fast-forward --run-tests large-partition-slicing-clustering-keys
  siltstone perf fast-forward --datasets small-part --test-case-duration 0 --output-format json

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments,
130 or 143 for an interrupt.")]
pub struct FastForward {
    /// Write the datasets, in the place of those that were there; of --datasets only these, else of --run-tests those that its groups
    /// read. Nothing is run then unless --run-tests is given.
    #[arg(long)]
    populate: bool,

    /// Rows of each dataset, 1 to a thousand million [default: 1000000]. Without --populate, as the other options of what is written, it is what the datasets that
    /// are there must have.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ROWS)))]
    rows: Option<u32>,

    /// Bytes of the value of each row that is written, 1 to 1048576 [default: 200].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_BYTES)))]
    value_size: Option<u32>,

    /// Where the datasets are, a folder each.
    #[arg(long, value_name = "DIR", default_value = "fast-forward-data")]
    data_directory: PathBuf,

    /// Only these datasets, and the groups that read them. Without it and --run-tests, those that are there.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    datasets: Vec<Dataset>,

    /// Only these groups of cases.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    run_tests: Vec<Group>,

    /// After how much of a partition the index that is written has a new block [default: 64].
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_BLOCK)))]
    column_index_size_in_kb: Option<u32>,

    /// The version that is written [default: me].
    #[arg(long, value_name = "VERSION", value_parser = versions())]
    sstable_format: Option<Version>,

    /// Write compressed data: by LZ4, in chunks of 4 KiB, as the published program did.
    #[arg(long)]
    with_compression: bool,

    /// Whether fences are written, and used [default: true, where they were written]. Reads of a table, which --enable-cache,
    /// single-key-reader and single-key-slice make, use them wherever they are.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    fences: Option<bool>,

    /// How the rows of a large partition are found; reads of a table search by halves.
    #[arg(long, value_enum, default_value = "binary", value_name = "HOW")]
    index_search: SearchArg,

    /// Make every slice a read of the table, through its row cache, as large-partition-single-key-slice always does. Each
    /// stretch between two skips is a read of its own then, and has nothing of what was read for those before but what the caches keep. 32
    /// rows of the large partition are read together. A small partition between two skips is a read of its own too; ranges of them are
    /// scans of the table, which the row cache has no part in.
    #[arg(long)]
    enable_cache: bool,

    /// Begin the first case of a group with what the group before has left in the caches. It is seen in the first iteration alone: with
    /// --test-case-duration 0 there is no other.
    #[arg(long)]
    keep_cache_across_test_groups: bool,

    /// Begin each iteration with what the one before has left in the caches; single-key-slice says of each case with what it begins.
    #[arg(long)]
    keep_cache_across_test_cases: bool,

    /// For how long each case is run, opening included.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    test_case_duration: Duration,

    #[command(flatten)]
    printing: Printing,

    /// Memory for all that is cached, in MiB.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u16).range(1..))]
    cache_mib: u16,

    #[command(flatten)]
    machine: Machine,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SearchArg {
    /// By fences if there are any; else by guesses and halves.
    Binary,
    /// From the first index block on.
    Scan,
}

impl FastForward {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// A dataset that is not there, or cannot be written or read; results that are not what they must be.
    pub fn run(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        let runs = !self.populate || !self.run_tests.is_empty();
        // Before anything is written in the place of what is there.
        if runs && self.groups().is_empty() {
            let what = "none of the chosen groups is of one of the chosen datasets";
            return Err(Error::Usage(what.to_owned()));
        }
        runtime::run(self.machine.shard(), async |shard| {
            if self.populate {
                self.populate(&shard).await?;
            }
            if !runs {
                return Ok(());
            }
            match self.printing.format {
                Format::Text => self.run_all(&shard, &mut Text::new(out)).await,
                Format::Json => self.run_all(&shard, &mut Json::new(out)).await,
            }
        })?
    }

    /// Runs the groups. What those that came to their end found is printed, whatever becomes of the others.
    async fn run_all(&self, shard: &Shard, output: &mut dyn Output) -> Result<()> {
        let groups = self.groups();
        let mut in_use = Vec::new();
        for group in &groups {
            in_use.push(room::read(&group.dataset().folder(&self.data_directory), DESCRIPTION)?);
            self.shape(group.dataset())?;
        }
        let machine = self.machine.found(shard, &self.data_directory).await?;
        let ran = self.run_groups((shard, machine), groups, output).await;
        drop(in_use);
        output.finish(ran.as_ref().err())?;
        ran
    }

    /// What is there of a dataset.
    fn shape(&self, dataset: Dataset) -> Result<Shape> {
        let folder = dataset.folder(&self.data_directory);
        let missing = || Error::file(&folder, "there is no dataset here: --populate writes it");
        let shape = Shape::read(&folder)?.ok_or_else(missing)?;
        match self.difference(&shape) {
            None => Ok(shape),
            Some((option, has)) => {
                let what = format!("{}: the dataset was written with {option} {has}", folder.display());
                Err(Error::Usage(format!("{what}; --populate writes another one")))
            }
        }
    }

    /// What was asked for that a dataset does not have: the option, and what it has.
    fn difference(&self, shape: &Shape) -> Option<(&'static str, String)> {
        let numbers = [
            ("--rows", self.rows, shape.rows),
            ("--value-size", self.value_size, shape.value_size),
            ("--column-index-size-in-kb", self.column_index_size_in_kb, shape.column_index_size_in_kb),
        ];
        let other = numbers.into_iter().find(|(_, wanted, has)| wanted.is_some_and(|wanted| wanted != *has));
        let other = other.map(|(option, _, has)| (option, has.to_string()));
        let is_of_other = self.sstable_format.is_some_and(|wanted| wanted != shape.format);
        let of_other = is_of_other.then(|| ("--sstable-format", shape.format.name().to_owned()));
        let is_plain = self.with_compression && !shape.compression;
        let is_without = self.fences == Some(true) && !shape.fences;
        let other = other.or(of_other).or(is_plain.then(|| ("no", "compression".to_owned())));
        other.or(is_without.then(|| ("--fences", "false".to_owned())))
    }

    async fn populate(&self, shard: &Shard) -> Result<()> {
        let shape = Shape {
            rows: self.rows.unwrap_or(1_000_000),
            value_size: self.value_size.unwrap_or(200),
            column_index_size_in_kb: self.column_index_size_in_kb.unwrap_or(64),
            format: self.sstable_format.unwrap_or(Version::Me),
            compression: self.with_compression,
            fences: self.fences.unwrap_or(true),
        };
        let folder_of = |dataset: Dataset| dataset.folder(&self.data_directory);
        // Before any of them is in the place of one that was there.
        for dataset in self.populated() {
            room::check(&folder_of(dataset), DESCRIPTION)?;
        }
        for dataset in self.populated() {
            let folder = folder_of(dataset);
            let megabytes = u64::from(shape.rows) * u64::from(shape.value_size) / 1_000_000;
            eprintln!("{}: {} rows are written, {megabytes} MB of values", dataset.name(), shape.rows);
            let written = populate::populate(shard.disk(), dataset, &shape, &folder).await?;
            eprintln!("{}: {} rows, {} bytes of data", dataset.name(), shape.rows, written.data_file_len);
        }
        Ok(())
    }

    async fn run_groups(
        &self,
        (shard, machine): (&Shard, Machine),
        groups: Vec<Group>,
        output: &mut dyn Output,
    ) -> Result<()> {
        let mut keys = BTreeMap::new();
        let mut kept = BTreeMap::new();
        for group in groups {
            let dataset = group.dataset();
            let (folder, shape) = (dataset.folder(&self.data_directory), self.shape(dataset)?);
            let reading = self.reading(group, machine);
            let keys: &Rc<[i32]> =
                keys.entry(dataset.name()).or_insert_with(|| dataset.keys(shape.rows).into());
            let open = async || Bench::open(shard, dataset, (&shape, &folder), reading, keys.clone()).await;
            let of_before = kept
                .remove(dataset.name())
                .filter(|bench: &Bench| reading.is_kept && *bench.reading() == reading);
            // Open before the first case, as what is told of the group is told by what is open.
            let mut bench = match of_before {
                Some(bench) => bench,
                None => open().await?,
            };
            output.group(group, &shape, &reading, &bench.fences())?;
            for (number, case) in group.cases(shape.rows, reading.row_cache).iter().enumerate() {
                let goes_on = number == 0 || case.goes_on || reading.keeps_cache;
                interrupted::check()?;
                let (summary, last) =
                    self.run_case(dataset, case, Some(bench).filter(|_| goes_on), &open).await?;
                output.case(case, &summary)?;
                bench = last;
            }
            kept.insert(dataset.name(), bench);
        }
        Ok(())
    }

    /// Runs a case until its time is over, at first with what is open already, if there is something. What is open at
    /// the end is handed back.
    async fn run_case(
        &self,
        dataset: Dataset,
        case: &Case,
        mut kept: Option<Bench>,
        open: impl AsyncFn() -> Result<Bench>,
    ) -> Result<(Summary, Bench)> {
        let begin = Instant::now();
        let mut iterations = Vec::new();
        loop {
            let bench = match kept.take() {
                Some(bench) => bench,
                None => open().await?,
            };
            iterations.push(bench.run(dataset, case).await?);
            if case.goes_on || interrupted::is_interrupted() || begin.elapsed() >= self.test_case_duration {
                return Ok((Summary::new(iterations), bench));
            }
            kept = Some(bench).filter(|bench| bench.reading().keeps_cache);
        }
    }

    fn reading(&self, group: Group, machine: Machine) -> Reading {
        let is_of_table = self.enable_cache || group.is_of_table();
        Reading {
            search: match self.index_search {
                SearchArg::Scan if !is_of_table => Search::Scan,
                SearchArg::Binary | SearchArg::Scan => Search::Binary,
            },
            fences: self.fences.unwrap_or(true) || is_of_table,
            row_cache: self.enable_cache || group.is_of_row_cache(),
            cache: usize::from(self.cache_mib) << 20,
            keeps_cache: self.keep_cache_across_test_cases && !group.is_of_row_cache(),
            is_kept: (self.keep_cache_across_test_groups || self.keep_cache_across_test_cases)
                && !group.is_of_row_cache(),
            machine,
        }
    }

    fn datasets(&self) -> Vec<Dataset> {
        chosen(&self.datasets)
    }

    /// The datasets that are written: what nobody has named or reads stays as it is.
    fn populated(&self) -> Vec<Dataset> {
        let mut datasets = self.datasets();
        if self.datasets.is_empty() && !self.run_tests.is_empty() {
            datasets.retain(|dataset| self.run_tests.iter().any(|group| group.dataset() == *dataset));
        }
        datasets
    }

    /// Those that were chosen. Where nothing was, those of the datasets that are there, or all if none is.
    fn groups(&self) -> Vec<Group> {
        let datasets = self.datasets();
        let groups = chosen(&self.run_tests).into_iter();
        let groups: Vec<_> = groups.filter(|group| datasets.contains(&group.dataset())).collect();
        // What cannot be looked at is there, and is told of when it is read.
        let is_there = |group: &&Group| {
            let description = group.dataset().folder(&self.data_directory).join(DESCRIPTION);
            description.try_exists().unwrap_or(true)
        };
        let of_what_is_there: Vec<_> = groups.iter().filter(is_there).copied().collect();
        let is_free = self.datasets.is_empty() && self.run_tests.is_empty();
        if is_free && !of_what_is_there.is_empty() { of_what_is_there } else { groups }
    }
}

/// What was chosen, each once, or all.
fn chosen<T: ValueEnum + Copy + PartialEq>(some: &[T]) -> Vec<T> {
    let mut each = Vec::new();
    for one in if some.is_empty() { T::value_variants() } else { some } {
        if !each.contains(one) {
            each.push(*one);
        }
    }
    each
}
