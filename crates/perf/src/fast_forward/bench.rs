//! Runs a case: opens the SSTable, reads the stretches, counts.

use std::borrow::Cow;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use model::{PartitionKey, Position, Slice};
use runtime::{Cache, Shard};
use siltstone::{Error, Result};
use sstable::parts::usage::Usage;
use sstable::{OpenOptions, ReadOptions, SSTable, Search, Version};
use storage::commit_log::TableId;
use storage::source::MOST_AT_HAND;
use storage::{Context, Definition, Generations, ReadRequest, Table};

use super::cases::{By, Case, RowRange, Stretches, Work};
use super::dataset::{Dataset, Shape, absent, around, clustering, common, from, key, slice};
use super::figures::{Figures, RowLookups, counted};
use crate::arguments::Machine;
use crate::int_rows::count;
use crate::interrupted;

/// How everything is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// How blocks are searched for. Tables have their own way, the binary search.
    pub search: Search,
    /// Whether fences are used where they are. Tables always use them.
    pub fences: bool,
    /// Whether all slices are reads of the table, through its row cache.
    pub row_cache: bool,
    /// Bytes for all that is kept in memory.
    pub cache: usize,
    /// Whether a case begins with what the one before has left there.
    pub keeps_cache: bool,
    /// Whether the first reading of a group begins with what the group before has left there.
    pub is_kept: bool,
    /// How the shard reaches the disk.
    pub machine: Machine,
}

impl Reading {
    /// How blocks are searched for, as the command has it.
    pub fn search_name(&self) -> &'static str {
        match self.search {
            Search::Binary => "binary",
            Search::Scan => "scan",
        }
    }
}

/// The largest row that the row cache must keep, in bytes. It keeps some that are larger.
const KEPT_ROW: u64 = 32 << 10;

/// What a row takes beside its value, at most. Bytes.
const BESIDE_VALUE: u64 = 64;

/// A read may put a quarter of the caches' memory into them; half of that must be kept whatever else is there.
const KEPT_SHARE: u64 = 8;

/// A dataset, open, with what is cached of it.
pub struct Bench {
    shard: Shard,
    shape: Shape,
    reading: Reading,
    cache: Cache,
    /// The keys of the partitions, in the order of the ring.
    keys: Rc<[i32]>,
    sstable: Rc<SSTable>,
    /// The table that it is of, which has opened it. Without fences it is read by itself: tables use them wherever they are.
    table: Option<Table>,
}

impl Bench {
    /// Opens the dataset in a folder.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn open(
        shard: &Shard,
        dataset: Dataset,
        (shape, folder): (&Shape, &Path),
        reading: Reading,
        keys: Rc<[i32]>,
    ) -> Result<Bench> {
        let cache = Cache::new(reading.cache);
        let (sstable, table) = if reading.fences {
            let context = Context::new(shard.disk().clone(), shard.clock().clone(), cache.clone());
            let definition = Definition::new(TableId([0; 16]), &dataset.schema(), shape.format);
            let definition = Definition { caches_rows: reading.row_cache, ..definition };
            let table = Table::open(&context, folder, definition, &Generations::default()).await?;
            let set = table.sstables();
            let sole = match set.members() {
                [sole] => sole.sstable.clone(),
                others => {
                    let what = format!("there are {} SSTables: a dataset is one", others.len());
                    return Err(Error::file(folder, what));
                }
            };
            (sole, Some(table))
        } else {
            // All but the fences is as a table has it.
            let options =
                OpenOptions { fences: false, read_buffer: MOST_AT_HAND, ..OpenOptions::new(cache.clone()) };
            (SSTable::open(shard.disk(), &shape.data_file(folder), &options).await?, None)
        };
        check_shape(&sstable, shape, folder)?;
        Ok(Bench { shard: shard.clone(), shape: *shape, reading, cache, keys, sstable, table })
    }

    /// How it reads.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// What became of the fences of the SSTable.
    pub fn fences(&self) -> Usage {
        self.sstable.fences_state()
    }

    /// Runs a case once, and checks that it finds the rows that it must, and asks for none that are kept.
    ///
    /// # Errors
    /// What cannot be read; another number of rows than there must be; requests for what the row cache must have.
    pub async fn run(&self, dataset: Dataset, case: &Case) -> Result<Figures> {
        let (index, rows) = (self.sstable.page_stats(), self.row_lookups());
        let in_caches = self.in_caches();
        let (found, figures) = counted(self.shard.disk(), self.read(dataset, case)).await;
        let fragments = found?;
        self.check(case, fragments, figures.requests)?;
        let grown = self.in_caches() - in_caches;
        Ok(Figures {
            fragments,
            index: self.sstable.page_stats().since(index),
            rows: self.row_lookups().since(rows),
            memory: self.cache.used() as u64,
            held: figures.held.map(|held| held - grown),
            ..figures
        })
    }

    fn check(&self, case: &Case, found: u64, requests: u64) -> Result<()> {
        let wrong = |what: String| Err(Error::file(self.sstable.data().file.path(), what));
        let expected = case.expected(self.shape.rows);
        if found != expected {
            return wrong(format!("{found} rows were found instead of {expected}"));
        }
        match case.work {
            Work::Range { rows, known_by: Some(before) } if self.keeps(before) && requests > 0 => {
                let range = rows.name();
                wrong(format!("{requests} requests for the rows {range}, which the row cache has"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the row cache must have these rows once they were read, as nothing else was: it has room for them.
    fn keeps(&self, range: RowRange) -> bool {
        let row = u64::from(self.shape.value_size) + BESIDE_VALUE;
        row <= KEPT_ROW && range.rows(self.shape.rows) * row <= self.reading.cache as u64 / KEPT_SHARE
    }

    async fn read(&self, dataset: Dataset, case: &Case) -> Result<u64> {
        let (by, stretches) = match case.work {
            Work::Restricted { is_scan: true } => return self.scan_restricted().await,
            Work::Restricted { is_scan: false } => return self.restricted(&self.key(0)).await,
            Work::Range { rows, .. } => {
                return self.reads(&self.key(0), [range_slice(rows)].into_iter()).await;
            }
            Work::Rows(by, stretches) | Work::Absent(by, stretches) => (by, stretches),
        };
        let by = if self.reading.row_cache { By::Table } else { by };
        match dataset {
            Dataset::LargePartDs1 => self.read_large(by, self.slices(case, stretches)).await,
            Dataset::SmallPart if by == By::Table => self.partitions(stretches).await,
            Dataset::SmallPart => self.ranges(stretches).await,
        }
    }

    async fn read_large(&self, by: By, slices: impl Iterator<Item = Slice>) -> Result<u64> {
        let key = self.key(0);
        match by {
            By::Forwarding => self.forward(&key, slices).await,
            By::Slice => self.read_slices(&key, slices).await,
            By::Table => self.reads(&key, slices).await,
        }
    }

    /// The rows from the middle on of all partitions that the index has, one after the other.
    async fn scan_restricted(&self) -> Result<u64> {
        let (mut partitions, mut found) = (self.sstable.entries(), 0);
        while let Some(entry) = partitions.next().await? {
            found += self.restricted(&self.sstable.key(entry.key)).await?;
        }
        Ok(found)
    }

    /// The rows from the middle on, as far as they are where the reader is told to go on.
    async fn restricted(&self, key: &PartitionKey) -> Result<u64> {
        let middle = self.shape.rows / 2;
        let within = |range| common(self.sstable.schema(), range, from(middle));
        let slices = around(middle, self.shape.rows).map(within).into_iter();
        match self.reading.row_cache {
            true => self.reads(key, slices).await,
            false => self.forward(key, slices).await,
        }
    }

    /// One reader, told where to go on.
    async fn forward(&self, key: &PartitionKey, mut slices: impl Iterator<Item = Slice>) -> Result<u64> {
        let Some(first) = slices.next() else { return Ok(0) };
        let Some(mut reader) = self.sstable.read_forwarding(key, &first, self.reading.search).await? else {
            return Ok(0);
        };
        let mut found = count(&mut reader, None).await?;
        for slice in slices {
            interrupted::check()?;
            reader.fast_forward_to(&slice);
            found += count(&mut reader, None).await?;
        }
        Ok(found)
    }

    /// A reader for each slice.
    async fn read_slices(&self, key: &PartitionKey, slices: impl Iterator<Item = Slice>) -> Result<u64> {
        let options = ReadOptions { search: self.reading.search, ..ReadOptions::default() };
        let mut found = 0;
        for slice in slices {
            interrupted::check()?;
            if let Some(mut reader) = self.sstable.read(key, &slice, options).await? {
                found += count(&mut reader, None).await?;
            }
        }
        Ok(found)
    }

    /// A read of the table for each slice.
    async fn reads(&self, key: &PartitionKey, slices: impl Iterator<Item = Slice>) -> Result<u64> {
        self.read_all(slices.map(|slice| ReadRequest::new(key.clone(), slice))).await
    }

    async fn read_all(&self, requests: impl Iterator<Item = ReadRequest>) -> Result<u64> {
        let mut requests = requests.map(Cow::Owned);
        let mut found = 0;
        loop {
            interrupted::check()?;
            let together: Vec<Cow<'_, ReadRequest>> = requests.by_ref().take(Table::TOGETHER).collect();
            match &together[..] {
                [] => return Ok(found),
                [alone] => found += count(&mut self.table().read(alone).await?, None).await?,
                _ => {
                    for begun in self.table().begin_all(together).await? {
                        found += count(&mut begun.open().await?, None).await?;
                    }
                }
            }
        }
    }

    /// A range of partitions for each stretch.
    async fn ranges(&self, stretches: Stretches) -> Result<u64> {
        let mut reader = self.sstable.scan_ranges();
        let mut found = 0;
        for stretch in stretches.among(self.shape.rows) {
            interrupted::check()?;
            reader.fast_forward_to(self.range(&stretch).await?)?;
            found += count(&mut reader, None).await?;
        }
        Ok(found)
    }

    /// A scan of the table for each stretch of partitions, and a read for each that is by itself.
    async fn partitions(&self, stretches: Stretches) -> Result<u64> {
        if stretches.len == 1 {
            let numbers = stretches.among(self.shape.rows).flatten();
            return self
                .read_all(numbers.map(|number| ReadRequest::new(self.key(number), Slice::all())))
                .await;
        }
        let mut found = 0;
        for stretch in stretches.among(self.shape.rows) {
            interrupted::check()?;
            let (first, last) = (self.key(stretch.start), self.key(stretch.end - 1));
            let mut scan = self.table().scan(first.token.checked_sub(1), last.token, None).await?;
            found += count(&mut scan, None).await?;
        }
        Ok(found)
    }

    /// Where in the data some partitions are. They are there: no filter has to tell it.
    async fn range(&self, partitions: &Range<u32>) -> Result<Range<u64>> {
        let index = self.sstable.index();
        let missing = || Error::file(self.sstable.data().file.path(), "a partition is missing");
        let first = index.look_up(&self.key(partitions.start)).await?.ok_or_else(missing)?;
        let last = match partitions.len() {
            1 => first.clone(),
            _ => index.look_up(&self.key(partitions.end - 1)).await?.ok_or_else(missing)?,
        };
        Ok(first.start..index.range(&last).await?.end)
    }

    fn table(&self) -> &Table {
        self.table.as_ref().expect("tables are read with fences")
    }

    fn key(&self, number: u32) -> PartitionKey {
        key(self.keys[number as usize])
    }

    fn slices(&self, case: &Case, stretches: Stretches) -> impl Iterator<Item = Slice> {
        let (rows, is_absent) = (self.shape.rows, matches!(case.work, Work::Absent(..)));
        stretches.among(rows).map(move |stretch| match is_absent {
            true => absent(stretch.start),
            false if stretch == (0..rows) => Slice::all(),
            false => slice(&stretch),
        })
    }

    /// What the caches take of their budget, in bytes.
    fn in_caches(&self) -> i64 {
        (self.cache.used() + self.cache.reserved()) as i64
    }

    fn row_lookups(&self) -> RowLookups {
        let Some(table) = &self.table else { return RowLookups::default() };
        let stats = table.row_cache().stats();
        let misses = stats.misses + stats.partial_hits;
        RowLookups { hits: stats.hits, misses, insertions: stats.insertions }
    }
}

fn range_slice(rows: RowRange) -> Slice {
    let start = match rows.first {
        Included(first) => Position::before(clustering(first)),
        Excluded(before) => Position::after(clustering(before)),
        Unbounded => Position::start(),
    };
    let end = match rows.last {
        Included(last) => Position::after(clustering(last)),
        Excluded(end) => Position::before(clustering(end)),
        Unbounded => Position::end(),
    };
    Slice { start, end }
}

/// That an SSTable is of the version and the kind that results will tell of.
///
/// # Errors
/// If it is not: somebody has put another one there.
fn check_shape(sstable: &SSTable, shape: &Shape, folder: &Path) -> Result<()> {
    let told = (shape.format, shape.compression);
    let has = (sstable.version(), sstable.data().file.compression().is_some());
    if told == has {
        return Ok(());
    }
    let of = |(version, is_compressed): (Version, bool)| {
        let which = if is_compressed { "with" } else { "without" };
        format!("{} {which} compression", version.name())
    };
    let what = format!(
        "dataset.json tells of an SSTable of {}, but it is one of {}: --populate writes another one",
        of(told),
        of(has)
    );
    Err(Error::file(folder, what))
}

#[cfg(test)]
mod tests {
    use runtime::ShardOptions;
    use sstable::Version;

    use super::super::cases::Group;
    use super::super::populate::populate;
    use super::*;

    const DATASET: Dataset = Dataset::LargePartDs1;
    const SHAPE: Shape = Shape {
        rows: 100,
        value_size: 10,
        column_index_size_in_kb: 64,
        format: Version::Me,
        compression: false,
        fences: true,
    };

    /// With the row cache or without.
    fn reading(row_cache: bool) -> Reading {
        Reading {
            search: Search::Binary,
            fences: true,
            row_cache,
            cache: 1 << 20,
            keeps_cache: true,
            is_kept: false,
            machine: Machine { io_uring: true, direct_io: true },
        }
    }

    async fn open(shard: &Shard, folder: &Path, reading: Reading) -> Result<Bench> {
        Bench::open(shard, DATASET, (&SHAPE, folder), reading, DATASET.keys(SHAPE.rows).into()).await
    }

    /// Cases of the row cache, one after the other; up to the first that is wrong.
    fn run_cases(row_cache: bool) -> Result<Vec<Figures>> {
        let folder = tempfile::tempdir().unwrap();
        runtime::run(ShardOptions::default(), async |shard| {
            populate(shard.disk(), DATASET, &SHAPE, folder.path()).await?;
            let bench = open(&shard, folder.path(), reading(row_cache)).await?;
            let mut figures = Vec::new();
            for case in Group::LargePartitionSingleKeySlice.cases(SHAPE.rows, true) {
                figures.push(bench.run(DATASET, &case).await?);
            }
            Ok(figures)
        })?
    }

    #[test]
    fn what_was_read_before_must_not_be_asked_for() {
        assert_eq!(run_cases(true).unwrap().len(), 38);
        let error = run_cases(false).unwrap_err().to_string();
        assert!(error.contains("requests for the rows [0, 1], which the row cache has"), "{error}");
    }

    #[test]
    fn a_dataset_is_one_sstable() {
        let folder = tempfile::tempdir().unwrap();
        let error = runtime::run(ShardOptions::default(), async |shard| {
            populate(shard.disk(), DATASET, &SHAPE, folder.path()).await.unwrap();
            for file in std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()) {
                let name = file.file_name().unwrap().to_str().unwrap().replace("me-1-", "me-2-");
                if name.starts_with("me-2-") {
                    std::fs::copy(&file, file.with_file_name(name)).unwrap();
                }
            }
            open(&shard, folder.path(), reading(true)).await.err().unwrap().to_string()
        });
        assert!(error.unwrap().contains("there are 2 SSTables: a dataset is one"));
    }
}
