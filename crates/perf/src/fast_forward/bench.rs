//! Runs a case: opens the SSTable, reads the stretches, counts.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use model::Slice;
use runtime::{Cache, Shard};
use siltstone::{Error, Result};
use sstable::cache::cached_file::PageStats;
use sstable::{OpenOptions, ReadOptions, SSTable, Search};
use storage::commit_log::TableId;
use storage::{Context, Definition, Generations, ReadRequest, Table};

use super::cases::{By, Case, Stretches};
use super::dataset::{Dataset, Shape, absent, key, slice};
use super::figures::{Figures, RowLookups, counted};
use crate::int_rows::count;

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

/// A dataset, open, with what is cached of it.
pub struct Bench {
    shard: Shard,
    rows: u32,
    reading: Reading,
    cache: Cache,
    /// The keys of the partitions, in the order of the ring.
    keys: Rc<[i32]>,
    sstable: Rc<SSTable>,
    table: Table,
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
        let context = Context::new(shard.disk().clone(), shard.clock().clone(), cache.clone());
        let definition = Definition::new(TableId([0; 16]), &dataset.schema(), shape.format);
        let definition = Definition { caches_rows: reading.row_cache, ..definition };
        let table = Table::open(&context, folder, definition, &Generations::default()).await?;
        let options = OpenOptions { fences: reading.fences, ..OpenOptions::new(cache.clone()) };
        let sstable = SSTable::open(shard.disk(), &shape.data_file(folder), &options).await?;
        Ok(Bench { shard: shard.clone(), rows: shape.rows, reading, cache, keys, sstable, table })
    }

    /// Runs a case once, and checks that it finds the rows that it must.
    ///
    /// # Errors
    /// What cannot be read; another number of rows than there must be.
    pub async fn run(&self, dataset: Dataset, case: &Case) -> Result<Figures> {
        let (index, rows) = (self.index_lookups(), self.row_lookups());
        let (found, figures) = counted(self.shard.disk(), self.read(dataset, case)).await;
        let (fragments, expected) = (found?, case.expected(self.rows));
        if fragments != expected {
            let path = self.sstable.data().file.path();
            return Err(Error::file(path, format!("{fragments} rows were found instead of {expected}")));
        }
        Ok(Figures {
            fragments,
            index: self.index_lookups().since(index),
            rows: self.row_lookups().since(rows),
            memory: self.cache.used() as u64,
            ..figures
        })
    }

    async fn read(&self, dataset: Dataset, case: &Case) -> Result<u64> {
        let by = if self.reading.row_cache { By::Table } else { case.by };
        match (dataset, by) {
            (Dataset::LargePartDs1, By::Forwarding) => self.forward(case).await,
            (Dataset::LargePartDs1, By::Slice) => self.slices(case).await,
            (Dataset::LargePartDs1, By::Table) => self.reads(case).await,
            (Dataset::SmallPart, By::Table) => self.partitions(case.stretches).await,
            (Dataset::SmallPart, _) => self.ranges(case.stretches).await,
        }
    }

    /// One reader, told where to go on.
    async fn forward(&self, case: &Case) -> Result<u64> {
        let mut slices = case.stretches.among(self.rows).map(|stretch| self.slice(case, &stretch));
        let Some(first) = slices.next() else { return Ok(0) };
        let key = self.key(0);
        let Some(mut reader) = self.sstable.read_forwarding(&key, &first, self.reading.search).await? else {
            return Ok(0);
        };
        let mut found = count(&mut reader).await?;
        for slice in slices {
            reader.fast_forward_to(&slice);
            found += count(&mut reader).await?;
        }
        Ok(found)
    }

    /// A reader for each stretch.
    async fn slices(&self, case: &Case) -> Result<u64> {
        let options = ReadOptions { search: self.reading.search, ..ReadOptions::default() };
        let mut found = 0;
        for stretch in case.stretches.among(self.rows) {
            let slice = self.slice(case, &stretch);
            if let Some(mut reader) = self.sstable.read(&self.key(0), &slice, options).await? {
                found += count(&mut reader).await?;
            }
        }
        Ok(found)
    }

    /// A read of the table for each stretch.
    async fn reads(&self, case: &Case) -> Result<u64> {
        let mut found = 0;
        for stretch in case.stretches.among(self.rows) {
            let request = ReadRequest::new(self.key(0), self.slice(case, &stretch));
            found += count(&mut self.table.read(&request).await?).await?;
        }
        Ok(found)
    }

    /// A range of partitions for each stretch.
    async fn ranges(&self, stretches: Stretches) -> Result<u64> {
        let mut reader = self.sstable.scan_ranges();
        let mut found = 0;
        for stretch in stretches.among(self.rows) {
            reader.fast_forward_to(self.range(&stretch).await?)?;
            found += count(&mut reader).await?;
        }
        Ok(found)
    }

    /// A read of the table for each partition.
    async fn partitions(&self, stretches: Stretches) -> Result<u64> {
        let mut found = 0;
        for number in stretches.among(self.rows).flatten() {
            let request = ReadRequest::new(self.key(number), Slice::all());
            found += count(&mut self.table.read(&request).await?).await?;
        }
        Ok(found)
    }

    /// Where in the data some partitions are.
    async fn range(&self, partitions: &Range<u32>) -> Result<Range<u64>> {
        let index = self.sstable.index();
        let missing = || Error::file(self.sstable.data().file.path(), "a partition is missing");
        let first = index.find(&self.key(partitions.start)).await?.ok_or_else(missing)?;
        let last = match partitions.len() {
            1 => first.clone(),
            _ => index.find(&self.key(partitions.end - 1)).await?.ok_or_else(missing)?,
        };
        Ok(first.start..index.range(&last).await?.end)
    }

    fn key(&self, number: u32) -> model::PartitionKey {
        key(self.keys[number as usize])
    }

    fn slice(&self, case: &Case, rows: &Range<u32>) -> Slice {
        match case.absent {
            true => absent(rows.start),
            false if *rows == (0..self.rows) => Slice::all(),
            false => slice(rows),
        }
    }

    fn index_lookups(&self) -> PageStats {
        let members = self.table.sstables();
        let tables = members.members().iter().map(|member| member.sstable.page_stats());
        tables.chain([self.sstable.page_stats()]).fold(PageStats::default(), PageStats::plus)
    }

    fn row_lookups(&self) -> RowLookups {
        let stats = self.table.row_cache().stats();
        let misses = stats.misses + stats.partial_hits;
        RowLookups { hits: stats.hits, misses, insertions: stats.insertions }
    }
}
