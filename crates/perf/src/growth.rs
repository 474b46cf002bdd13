//! How the cost of a row grows: with the rows of its partition, with the partitions of its table, with the SSTables.
//!
//! ```text
//! rows         one partition in one SSTable, read by clustering keys
//! partitions   partitions of one row in one SSTable, read by partition keys
//! sstables     1,000 partitions of one row each in every SSTable, whose tokens do not overlap: as leveled compaction leaves them
//! overlapping  the same, each with tokens of the whole ring: as size-tiered compaction leaves them, and many flushes
//! stretches    one partition, of which each SSTable has a stretch of 1,000 rows: as rows come that are written in their order
//! expiring     the same of rows that all expire one day
//! slices       the same rows, of which 100 are read from any of them on, as by `LIMIT 100`: no other end is told
//! ```
//!
//! A row is read *cold* right after all was opened with empty caches, and *warm* once many others have been read. Data is
//! never cached, nor are rows. What opening costs is told apart.

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};
use model::{
    Bytes, Clustering, DeletionTime, Fragment, Liveness, PartitionKey, PartitionStart, Position, Schema,
    Slice,
};
use runtime::{Cache, Disk, IoStats, Shard};
use serde_json::{Value, json};
use siltstone::{Error, Result};
use sstable::component::{Component, Descriptor};
use sstable::parts::statistics::EncodingStats;
use sstable::{SSTableWriter, Version, WriteOptions};
use storage::commit_log::TableId;
use storage::{Caching, Context, Definition, Generations, ReadRequest, Table};

use crate::arguments::{Format, Machine, Printing, VERSION as PROGRAM, bytes};
use crate::fences;
use crate::int_rows;
use crate::interrupted;
use crate::numbers::rounded;
use crate::random::Random;
use crate::room;

/// Microseconds since the epoch, of all rows.
const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// Seconds that rows live which expire, and the second since the epoch in which they do.
const EXPIRY: (u32, i64) = (10_000_000, 2_000_000_000);

/// Bytes of a value.
const VALUE: usize = 8;

/// The largest datasets: rows or partitions, and SSTables.
const MOST_ROWS: u32 = 200_000_000;
const MOST_SSTABLES: u32 = 100_000;

/// Partitions of each of several SSTables.
const PARTITIONS: u32 = 1000;

/// Rows of a partition that each of several SSTables has.
const STRETCH: u32 = 1000;

/// Rows of a slice.
const SLICE: u32 = 100;

/// So many cold reads are counted, each with everything opened anew.
const COLD: u32 = 20;

/// Behind each of the first reads what was begun beside them may go on, as it may where reads wait.
const SETTLING: u32 = 4000;

/// What is in a folder once its dataset is whole.
const WHOLE: &str = "whole";

/// What stands there: another number as soon as anything of the rows or of how they are written is another, so that what is there of
/// before is not measured.
const LAYOUT: &str = "1";

/// The version that is written.
const VERSION: Version = Version::Me;

/// What one row costs, cold and warm, by the size of what it is in; along slices, 100 rows.
///
/// Columns are requests / KiB: cold, of a read right after all was opened with empty caches, the mean of 20; warm, of one of --operations
/// reads behind as many others; opening, of opening all SSTables. fences are told as the SSTables have them: small ones have none.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf growth --along rows --sizes 10000,100000,1000000
  siltstone perf growth --along overlapping --sizes 1,10,100,1000 --output-format json

Exit codes: 0 if all went well, 1 for rows that were not found, bad data and I/O errors, 2 for wrong arguments,
130 or 143 for an interrupt.")]
pub struct Growth {
    /// What grows.
    #[arg(long, value_enum, default_value = "rows", value_name = "WHAT")]
    along: Along,

    /// Its sizes. Of rows or partitions at most 200,000,000, by default 10000,100000,1000000; of SSTables at most 100,000, by default
    /// 1,10,100,1000.
    #[arg(long, value_delimiter = ',', value_name = "N,N,…",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ROWS)))]
    sizes: Vec<u32>,

    /// How many rows are read once others have been.
    #[arg(long, default_value = "2000", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    operations: u32,

    /// Whether rows are also read with everything opened anew for each.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    cold: bool,

    /// Whether SSTables are written with fences, or without.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    fences: bool,

    /// Memory for caches.
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = bytes)]
    cache: usize,

    /// Where datasets are, and stay.
    #[arg(long, value_name = "DIR", default_value = "perf-growth")]
    data_directory: PathBuf,

    #[command(flatten)]
    printing: Printing,

    #[command(flatten)]
    machine: Machine,
}

/// What grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Along {
    /// The rows of a partition.
    Rows,
    /// The partitions of an SSTable.
    Partitions,
    /// The SSTables of a table, none of which has tokens that are between those of another.
    Sstables,
    /// The SSTables of a table, each of which may have any token.
    Overlapping,
    /// The SSTables that have rows of one partition, each a stretch of them.
    Stretches,
    /// The same of rows that expire one day.
    Expiring,
    /// The SSTables of stretches, of which 100 rows are read from any row on.
    Slices,
}

/// Requests and bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Cost {
    requests: f64,
    kib: f64,
}

/// What was measured at one size.
#[derive(Clone, PartialEq, Debug)]
struct Point {
    size: u32,
    /// Of opening, all of it.
    opening: Cost,
    /// Of a read with everything opened anew.
    cold: Option<Cost>,
    /// Of one of many reads.
    warm: Cost,
    /// Whether reads went by fences, which small SSTables have none of.
    fences: Value,
}

impl Growth {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// What cannot be read or written; rows that were not found.
    pub fn run(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        if let Some(size) = self.sizes().iter().find(|size| **size > self.along.most()) {
            let what =
                format!("--sizes {size}: along {} there are up to {}", self.along.name(), self.along.most());
            return Err(Error::Usage(what));
        }
        fs::create_dir_all(&self.data_directory)
            .map_err(|error| Error::file(&self.data_directory, error.to_string()))?;
        runtime::run(self.machine.shard(), async |shard| {
            let machine = self.machine.found(&shard, &self.data_directory).await?;
            if self.printing.format == Format::Text {
                writeln!(
                    out,
                    "{:>10}  {:>16}  {:>16}  {:>20}  fences",
                    self.along.name(),
                    "cold",
                    "warm",
                    "opening"
                )?;
            }
            let mut points = Vec::new();
            let measured = self.measure_all(&shard, out, &mut points).await;
            if self.printing.format == Format::Json {
                writeln!(out, "{:#}", self.document(machine, &points, measured.as_ref().err()))?;
            }
            measured
        })?
    }

    /// Measures all sizes, up to the first that cannot be. What was measured is among the points, whatever becomes of the others.
    async fn measure_all(
        &self,
        shard: &Shard,
        out: &mut (dyn Write + Send),
        points: &mut Vec<Point>,
    ) -> Result<()> {
        for &size in self.sizes() {
            let point = match self.measure(shard, size).await {
                Err(_) if interrupted::is_interrupted() => break,
                measured => measured?,
            };
            if self.printing.format == Format::Text {
                writeln!(out, "{}", point.text())?;
            }
            points.push(point);
        }
        Ok(())
    }

    fn sizes(&self) -> &[u32] {
        match (&self.sizes[..], self.along.most()) {
            ([], MOST_SSTABLES) => &[1, 10, 100, 1000],
            ([], _) => &[10_000, 100_000, 1_000_000],
            (sizes, _) => sizes,
        }
    }

    fn document(&self, machine: Machine, points: &[Point], wrong: Option<&Error>) -> Value {
        json!({
            "version": PROGRAM,
            "along": self.along.name(),
            "operations": self.operations,
            "cold_reads": self.cold_reads(),
            "value_size": VALUE,
            "cache_bytes": self.cache,
            "direct_io": machine.direct_io,
            "io_uring": machine.io_uring,
            "interrupted": interrupted::is_interrupted(),
            "error": wrong.map(|error| error.in_words()),
            "points": points.iter().map(Point::json).collect::<Vec<Value>>(),
        })
    }

    async fn measure(&self, shard: &Shard, size: u32) -> Result<Point> {
        let folder = self.folder(size);
        if !is_whole(&folder) {
            self.populate(shard.disk(), size, &folder).await?;
        }
        let keys = Keys { along: self.along, size, random: Random::new(u64::from(size)) };
        let mut cold = Cost::default();
        for _ in 0..self.cold_reads() {
            interrupted::check()?;
            let table = self.open(shard, &folder).await?;
            let before = shard.disk().stats();
            read(&table, &keys).await?;
            cold.add(&shard.disk().stats().since(&before), COLD);
        }
        let before = shard.disk().stats();
        let table = self.open(shard, &folder).await?;
        let mut opening = Cost::default();
        opening.add(&shard.disk().stats().since(&before), 1);
        for number in 0..self.operations {
            interrupted::check()?;
            read(&table, &keys).await?;
            if number < SETTLING {
                runtime::yield_now().await;
            }
        }
        let mut warm = Cost::default();
        let before = shard.disk().stats();
        for _ in 0..self.operations {
            interrupted::check()?;
            read(&table, &keys).await?;
        }
        warm.add(&shard.disk().stats().since(&before), self.operations);
        let fences = fences::told_of(&table);
        Ok(Point { size, opening, cold: self.cold.then_some(cold), warm, fences })
    }

    /// How many reads are cold.
    fn cold_reads(&self) -> u32 {
        if self.cold { COLD } else { 0 }
    }

    fn folder(&self, size: u32) -> PathBuf {
        let fences = if self.fences { "" } else { "-no-fences" };
        self.data_directory.join(format!("{}-{size}{fences}", self.along.name()))
    }

    async fn open(&self, shard: &Shard, folder: &Path) -> Result<Table> {
        let (disk, clock) = (shard.disk().clone(), shard.clock().clone());
        let context = Context::new(disk, clock, Cache::new(self.cache));
        let definition = Definition::new(TableId([2; 16]), &self.along.schema(), VERSION);
        Ok(Table::open(&context, folder, definition, &Generations::default()).await?)
    }

    async fn populate(&self, disk: &Disk, size: u32, folder: &Path) -> Result<()> {
        let begun = room::begin(folder, WHOLE)?;
        let write = WriteOptions { compression: None, fences: self.fences, ..WriteOptions::new(VERSION) };
        for (some, generation) in self.along.sstables(size).into_iter().zip(1_u32..) {
            let name = format!("{}-{generation}-big-{}", VERSION.name(), Component::Data.name());
            let descriptor = Descriptor::parse(&folder.join(name))?;
            let encoding = EncodingStats { min_timestamp: TIMESTAMP, ..EncodingStats::NONE };
            let schema = self.along.schema();
            let mut writer =
                SSTableWriter::create(disk, descriptor, &schema, encoding, write.clone()).await?;
            for key in some {
                self.along.push(&mut writer, key, self.along.rows(size, generation - 1)).await?;
            }
            writer.seal().await?;
        }
        fs::write(folder.join(WHOLE), LAYOUT).map_err(|error| Error::file(folder, error.to_string()))?;
        begun.end()
    }
}

fn is_whole(folder: &Path) -> bool {
    fs::read_to_string(folder.join(WHOLE)).is_ok_and(|layout| layout == LAYOUT)
}

impl Along {
    fn name(self) -> &'static str {
        match self {
            Along::Rows => "rows",
            Along::Partitions => "partitions",
            Along::Sstables => "sstables",
            Along::Overlapping => "overlapping",
            Along::Stretches => "stretches",
            Along::Expiring => "expiring",
            Along::Slices => "slices",
        }
    }

    /// The largest size: so many files have to be open at once where it counts SSTables.
    fn most(self) -> u32 {
        match self {
            Along::Rows | Along::Partitions => MOST_ROWS,
            _ => MOST_SSTABLES,
        }
    }

    fn schema(self) -> Rc<Schema> {
        let schema = int_rows::schema();
        match self {
            Along::Rows | Along::Stretches | Along::Expiring | Along::Slices => schema,
            Along::Partitions | Along::Sstables | Along::Overlapping => {
                let Schema { partition_key, regulars, .. } = &*schema;
                Rc::new(Schema::new(partition_key.clone(), Vec::new(), Vec::new(), regulars.clone()))
            }
        }
    }

    /// Whether each SSTable has a stretch of the rows of one partition.
    fn has_stretches(self) -> bool {
        matches!(self, Along::Stretches | Along::Expiring | Along::Slices)
    }

    /// How many partitions a dataset has.
    fn partitions(self, size: u32) -> u32 {
        match self {
            Along::Rows | Along::Stretches | Along::Expiring | Along::Slices => 1,
            Along::Partitions => size,
            Along::Sstables | Along::Overlapping => size * PARTITIONS,
        }
    }

    /// The rows of each partition in an SSTable, if they have clustering keys.
    fn rows(self, size: u32, sstable: u32) -> Option<Range<u32>> {
        match self {
            Along::Rows => Some(0..size),
            Along::Stretches | Along::Expiring | Along::Slices => {
                Some(sstable * STRETCH..(sstable + 1) * STRETCH)
            }
            Along::Partitions | Along::Sstables | Along::Overlapping => None,
        }
    }

    /// The partitions of each SSTable of a dataset, in the order of the ring.
    fn sstables(self, size: u32) -> Vec<Vec<u32>> {
        if self.has_stretches() {
            return vec![vec![0]; size as usize];
        }
        let mut keys: Vec<(i64, u32)> =
            (0..self.partitions(size)).map(|number| (int_rows::key(number).token, number)).collect();
        keys.sort_unstable();
        let files = match self {
            Along::Sstables | Along::Overlapping => size as usize,
            Along::Rows | Along::Partitions => 1,
            // Each has the same partition.
            Along::Stretches | Along::Expiring | Along::Slices => 1,
        };
        let mut sstables = vec![Vec::new(); files];
        for (at, (_, number)) in keys.into_iter().enumerate() {
            // Numbers are anywhere in the ring.
            let file = if self == Along::Overlapping { number } else { at as u32 } / PARTITIONS;
            sstables[file as usize % files].push(number);
        }
        sstables
    }

    /// Writes a partition: these rows, or the one that has no clustering key.
    async fn push(self, writer: &mut SSTableWriter, key: u32, rows: Option<Range<u32>>) -> Result<()> {
        let start = PartitionStart { key: int_rows::key(key), deletion: DeletionTime::LIVE };
        writer.push(&Fragment::PartitionStart(start)).await?;
        for row in rows.clone().unwrap_or(0..1) {
            interrupted::check()?;
            let clustering = rows.as_ref().map_or_else(Clustering::empty, |_| int_rows::clustering(row));
            let value = Bytes::from(vec![row as u8; VALUE]);
            let mut row = int_rows::row(clustering, TIMESTAMP, value);
            if self == Along::Expiring {
                let (ttl, local_deletion_time) = EXPIRY;
                row.liveness = Liveness { ttl, local_expiration_time: local_deletion_time, ..row.liveness };
                row.cells
                    .iter_mut()
                    .for_each(|cell| (cell.ttl, cell.local_deletion_time) = (ttl, local_deletion_time));
            }
            writer.push(&Fragment::Row(row)).await?;
        }
        writer.push(&Fragment::PartitionEnd).await?;
        Ok(())
    }
}

/// Which rows are read: any.
struct Keys {
    along: Along,
    size: u32,
    random: Random,
}

impl Keys {
    fn next(&self) -> (PartitionKey, Slice) {
        match self.along {
            Along::Rows | Along::Stretches | Along::Expiring => {
                let rows = if self.along.has_stretches() { STRETCH } else { 1 };
                let row = int_rows::clustering(self.random.below(self.size * rows));
                (int_rows::key(0), Slice::of_prefix(row))
            }
            Along::Slices => {
                let row = int_rows::clustering(self.random.below(self.size * STRETCH - SLICE));
                (int_rows::key(0), Slice { start: Position::before(row), ..Slice::all() })
            }
            Along::Partitions | Along::Sstables | Along::Overlapping => {
                (int_rows::key(self.random.below(self.along.partitions(self.size))), Slice::all())
            }
        }
    }
}

/// Reads a row that is there, or a slice.
async fn read(table: &Table, keys: &Keys) -> Result<()> {
    let (key, slice) = keys.next();
    let limit = (keys.along == Along::Slices).then_some(u64::from(SLICE));
    let request =
        ReadRequest { static_row: false, caching: Caching::Bypass, limit, ..ReadRequest::new(key, slice) };
    let mut stream = table.read(&request).await?;
    let (wanted, found) = (limit.unwrap_or(1), int_rows::count(&mut stream, limit).await?);
    if found == wanted {
        Ok(())
    } else {
        Err(Error::file(table.folder(), format!("{found} rows were found, not {wanted}")))
    }
}

impl Cost {
    /// Adds a share of what was read.
    fn add(&mut self, io: &IoStats, among: u32) {
        let total = io.total();
        self.requests += total.requests as f64 / f64::from(among);
        self.kib += total.bytes as f64 / 1024.0 / f64::from(among);
    }

    fn json(self) -> Value {
        json!({ "requests": rounded(self.requests, 3), "kib": rounded(self.kib, 2) })
    }

    fn text(self) -> String {
        format!("{:.2} / {:.1}", self.requests, self.kib)
    }
}

impl Point {
    fn text(&self) -> String {
        let cold = self.cold.map_or_else(|| "-".to_owned(), Cost::text);
        let [warm, opening] = [self.warm, self.opening].map(Cost::text);
        let fences = self.fences.as_str().map_or_else(|| self.fences.to_string(), str::to_owned);
        format!("{:>10}  {cold:>16}  {warm:>16}  {opening:>20}  {fences}", self.size)
    }

    fn json(&self) -> Value {
        let (cold, warm, opening) = (self.cold.map(Cost::json), self.warm.json(), self.opening.json());
        json!({ "size": self.size, "fences": self.fences, "cold": cold, "warm": warm, "opening": opening })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sstables_overlap_only_if_they_are_to() {
        for (along, overlaps) in [(Along::Sstables, false), (Along::Overlapping, true)] {
            let sstables = along.sstables(10);
            assert!(sstables.iter().all(|keys| keys.len() == PARTITIONS as usize));
            let ends = |keys: &Vec<u32>| {
                let tokens: Vec<i64> = keys.iter().map(|key| int_rows::key(*key).token).collect();
                assert!(tokens.is_sorted());
                (tokens[0], tokens[tokens.len() - 1])
            };
            let ends: Vec<_> = sstables.iter().map(ends).collect();
            assert!(ends.windows(2).all(|pair| (pair[0].1 > pair[1].0) == overlaps), "{along:?}");
        }
        assert_eq!(Along::Rows.sstables(10), [[0]]);
        assert_eq!(Along::Stretches.sstables(3), [[0], [0], [0]]);
        assert_eq!(
            (0..2).map(|file| Along::Stretches.rows(3, file)).collect::<Vec<_>>(),
            [Some(0..1000), Some(1000..2000)]
        );
        assert_eq!(Along::Partitions.sstables(10)[0].len(), 10);
    }
}
