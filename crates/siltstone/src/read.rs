//! Slices of one partition, from one SSTable or merged from several.

use std::io::Write;
use std::ops::Range;
use std::rc::Rc;

use model::merge::{Direction, Mapped, Merge, MergeError, UnifiedSchema};
use model::{DeletionTime, Fragment, FragmentReader, LiveRows, Next, PartitionKey, Position, Schema, Slice};
use runtime::{Disk, IoClass, IoStats};
use sstable::cache::cached_file::PageStats;
use sstable::component::{DATA_IO, FENCES_IO, FILTER_IO, INDEX_IO, METADATA_IO, SUMMARY_IO};
use sstable::data::reader::DataReader;
use sstable::parts::usage::Usage;
use sstable::{PartitionReader, ReadOptions, SSTable};

use crate::error::{Error, Result};
use crate::fragment_json::{Counters, Detail, FragmentJson};
use crate::json::{JsonWriter, Layout};
use crate::keys;

/// The SSTables of one table, seen as one.
#[derive(Debug)]
pub struct Tables {
    tables: Vec<Rc<SSTable>>,
    unified: UnifiedSchema,
    schema: Rc<Schema>,
}

/// Reads a partition: straight from the one SSTable that has it, or merged.
#[derive(Debug)]
pub enum Rows {
    /// As it stands in the one SSTable.
    One(Box<Mapped<PartitionReader>>),
    /// What several SSTables say together.
    Merged(Box<Merge<Mapped<PartitionReader>>>),
}

impl Tables {
    /// These SSTables as one table.
    ///
    /// # Errors
    /// If there are none, or if they are not of one table: their keys or columns do not go together.
    pub fn new(tables: Vec<Rc<SSTable>>) -> Result<Tables> {
        let Some(first) = tables.first() else {
            return Err(Error::Usage("there is no SSTable to read".to_owned()));
        };
        let schemas: Vec<&Schema> = tables.iter().map(|table| &**table.schema()).collect();
        let path = first.data().file.path();
        let unified = UnifiedSchema::of(&schemas).map_err(|error| {
            let other = || Error::file(path, format!("it cannot be merged with the others: {error}"));
            unmergeable(&tables).unwrap_or_else(other)
        })?;
        let schema = Rc::new(unified.schema.clone());
        Ok(Tables { tables, unified, schema })
    }

    /// The columns of all.
    pub fn schema(&self) -> &Rc<Schema> {
        &self.schema
    }

    /// The SSTables, in the order in which they were given.
    pub fn tables(&self) -> &[Rc<SSTable>] {
        &self.tables
    }

    /// All partitions of all SSTables, in order, as one stream.
    pub fn scan(&self) -> Merge<Mapped<DataReader>> {
        self.merge(self.tables.iter().map(|table| table.scan()))
    }

    /// The partitions of a range of each SSTable's data, in order, as one stream.
    ///
    /// # Errors
    /// A range that is not within the data.
    pub fn scan_ranges(&self, ranges: &[Range<u64>]) -> Result<Merge<Mapped<DataReader>>> {
        let readers =
            self.tables.iter().zip(ranges).map(|(table, range)| table.scan_range(range.clone(), u64::MAX));
        let readers = readers.collect::<sstable::Result<Vec<_>>>()?;
        Ok(self.merge(readers.into_iter()))
    }

    fn merge(&self, readers: impl Iterator<Item = DataReader>) -> Merge<Mapped<DataReader>> {
        let maps = self.unified.maps.iter().cloned();
        let readers = readers.zip(maps).map(|(reader, map)| Mapped::new(reader, map));
        Merge::new(&self.schema, Direction::Forward, readers.collect())
    }

    /// A partition key of this table, from its serialized bytes.
    pub fn key(&self, bytes: model::Bytes) -> PartitionKey {
        self.tables[0].key(bytes)
    }

    /// A slice of one partition; `None` if no SSTable has the partition, or if the slice ends before it begins.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn read(
        &self,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Option<Rows>> {
        if self.schema.compare(&slice.start, &slice.end).is_gt() {
            return Ok(None);
        }
        // All indexes are asked at the same time.
        let reads = self.tables.iter().map(|table| table.read(key, slice, options));
        let mut readers = Vec::new();
        for (reader, map) in runtime::join_all(reads).await.into_iter().zip(&self.unified.maps) {
            if let Some(reader) = reader? {
                readers.push((reader, map.clone()));
            }
        }
        if self.tables.len() == 1 {
            return Ok(readers.pop().map(|(reader, map)| Rows::One(Box::new(Mapped::new(reader, map)))));
        }
        if readers.is_empty() {
            return Ok(None);
        }
        let direction = if options.reverse { Direction::Reverse } else { Direction::Forward };
        let sources = readers.into_iter().map(|(reader, map)| Mapped::new(reader, map)).collect();
        Ok(Some(Rows::Merged(Box::new(Merge::new(&self.schema, direction, sources)))))
    }

    /// How reads of all index files found their pages so far.
    pub fn page_stats(&self) -> PageStats {
        self.tables.iter().map(|table| table.page_stats()).fold(PageStats::default(), PageStats::plus)
    }
}

/// The first two SSTables that do not go together, if it is because of two.
fn unmergeable(tables: &[Rc<SSTable>]) -> Option<Error> {
    for (index, table) in tables.iter().enumerate() {
        for other in &tables[..index] {
            let (a, b) = (other.schema(), table.schema());
            if let Err(error) = UnifiedSchema::of(&[a, b]) {
                let why = difference(a, b, &error);
                return Some(Error::merge(other.data().file.path(), table.data().file.path(), &why));
            }
        }
    }
    None
}

/// Why two schemas do not go together, with the names that CQL has for their types.
fn difference(a: &Schema, b: &Schema, error: &MergeError) -> String {
    match error {
        MergeError::PartitionKey(a, b) => {
            format!("the partition keys differ: {} and {}", keys::expected_key(a), keys::expected_key(b))
        }
        MergeError::Clustering(a, b) => {
            let [a, b] = [a, b].map(|columns| keys::clustering_types(columns).join("; "));
            format!("the clustering columns differ: ({a}) and ({b})")
        }
        MergeError::Column { column, .. } => {
            let of = |schema: &Schema| {
                let columns = schema.statics.iter().chain(&schema.regulars);
                columns
                    .filter(|known| known.name_text() == *column)
                    .map(|known| known.data_type.cql_name())
                    .next()
            };
            match (of(a), of(b)) {
                (Some(a), Some(b)) if a != b => {
                    format!("the column {column} is {a} in one and {b} in the other")
                }
                _ => error.to_string(),
            }
        }
        MergeError::TooManyColumns(_) => error.to_string(),
    }
}

impl FragmentReader for Rows {
    type Error = sstable::Error;

    fn pop(&mut self, place: &mut Fragment) -> sstable::Result<Next> {
        match self {
            Rows::One(reader) => reader.pop(place),
            Rows::Merged(reader) => reader.pop(place),
        }
    }

    async fn fill(&mut self) -> sstable::Result<()> {
        match self {
            Rows::One(reader) => reader.fill().await,
            Rows::Merged(reader) => reader.fill().await,
        }
    }
}

/// What of a partition is wanted, and how it is read.
#[derive(Clone, Debug)]
pub struct Query {
    /// The partition.
    pub key: PartitionKey,
    /// The rows of it.
    pub slice: Slice,
    /// How to read them. The static row is printed only where it is wanted.
    pub options: ReadOptions,
    /// At most so many rows, the static one not counted; all where there is no limit.
    pub limit: Option<u64>,
    /// Whether only what is neither deleted nor expired is wanted.
    pub live: bool,
}

/// The rows between two clusterings, or beginnings of them, both included.
pub fn slice_between(from: Option<model::Clustering>, to: Option<model::Clustering>) -> Slice {
    Slice {
        start: from.map_or_else(Position::start, Position::before),
        end: to.map_or_else(Position::end, Position::after),
    }
}

/// What a query found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Rows, be it only the static one; they are printed.
    Rows,
    /// The partition, but no rows to print.
    NoRows,
    /// No SSTable has the partition.
    NoPartition,
    /// Nothing was looked for: the slice ends before it begins.
    EmptySlice,
}

/// Prints the rows of a query, an object a line, and says what was found.
///
/// A line is that of a dump with [`crate::dump::Format::JsonLines`], but without a position. The deletion of the partition, and range
/// tombstones as far as they are within the slice and up to the last row that is printed, are lines too, unless only what is live is wanted. Of a counter, the total is printed where only what is live is
/// wanted, and what `sstabledump` prints otherwise. `now` is in seconds since the epoch.
///
/// # Errors
/// What cannot be read or written; what was read before is written.
pub async fn print_rows(tables: &Tables, query: &Query, now: i64, out: &mut dyn Write) -> Result<Found> {
    if tables.schema.compare(&query.slice.start, &query.slice.end).is_gt() {
        return Ok(Found::EmptySlice);
    }
    let Some(mut rows) = tables.read(&query.key, &query.slice, query.options).await? else {
        return Ok(Found::NoPartition);
    };
    let mut printer = Printer::new(tables, query, now)?;
    let printed = printer.print(&mut rows, out).await;
    let drained = printer.json.drain(out);
    printed?;
    drained?;
    Ok(if printer.has_rows { Found::Rows } else { Found::NoRows })
}

struct Printer {
    fragments: FragmentJson,
    json: JsonWriter,
    key: String,
    live: Option<LiveRows>,
    left: u64,
    has_rows: bool,
    is_reversed: bool,
    /// The range tombstone that is open where the reader is.
    open: DeletionTime,
    path: std::path::PathBuf,
}

impl Printer {
    fn new(tables: &Tables, query: &Query, now: i64) -> Result<Printer> {
        let path = tables.tables[0].data().file.path().to_path_buf();
        let mut fragments = FragmentJson::new(tables.schema.clone(), now);
        fragments.print_detail(Detail::Exact);
        if query.live {
            fragments.print_counters(Counters::Totals);
        }
        let key = fragments.key_text(&query.key.bytes);
        Ok(Printer {
            key: key.map_err(|value| corrupt(&path, value))?,
            fragments,
            json: JsonWriter::new(Layout::Line),
            live: query.live.then(|| LiveRows::new(now)),
            left: query.limit.unwrap_or(u64::MAX),
            has_rows: false,
            is_reversed: query.options.reverse,
            open: DeletionTime::LIVE,
            path,
        })
    }

    async fn print(&mut self, rows: &mut Rows, out: &mut dyn Write) -> Result<()> {
        let mut fragment = Fragment::default();
        while self.left > 0 && rows.advance(&mut fragment).await? {
            self.fragment(&mut fragment)?;
            self.json.drain_if_full(out)?;
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: &mut Fragment) -> Result<()> {
        if self.live.as_mut().is_some_and(|live| !live.keeps(fragment)) {
            return Ok(());
        }
        match fragment {
            Fragment::Row(row) => {
                self.left -= u64::from(self.row(row, false)?);
                if self.left == 0 && !self.open.is_live() {
                    // What is told of it goes as far as what is read.
                    let clustering = row.clustering.clone();
                    let end = if self.is_reversed { Position::before } else { Position::after };
                    self.change(&end(clustering), DeletionTime::LIVE)?;
                }
            }
            Fragment::StaticRow(row) => drop(self.row(row, true)?),
            Fragment::PartitionStart(start) => self.deletion(&start.deletion),
            Fragment::RangeTombstone(change) => self.change(&change.position, change.deletion)?,
            Fragment::PartitionEnd => {}
        }
        Ok(())
    }

    /// Prints the deletion of the partition, if there is one that is wanted.
    fn deletion(&mut self, deletion: &DeletionTime) {
        if self.live.is_none() && !deletion.is_live() {
            self.begin("partition");
            self.fragments.write_deletion(deletion, &mut self.json);
            self.end();
        }
    }

    /// Prints that another range tombstone is open behind a position, in the order of the reader.
    fn change(&mut self, position: &Position, deletion: DeletionTime) -> Result<()> {
        let before = std::mem::replace(&mut self.open, deletion);
        if self.live.is_some() || before == deletion {
            return Ok(());
        }
        let is_boundary = !before.is_live() && !deletion.is_live();
        let (closes, opens) = if self.is_reversed { (deletion, before) } else { (before, deletion) };
        self.begin(if is_boundary { "range_tombstone_boundary" } else { "range_tombstone_bound" });
        let written = self.fragments.write_change(position, &closes, &opens, &mut self.json);
        written.map_err(|value| corrupt(&self.path, value))?;
        self.end();
        Ok(())
    }

    /// Prints a row, if there is anything in it; whether there is.
    fn row(&mut self, row: &mut model::Row, is_static: bool) -> Result<bool> {
        row.normalize();
        if row.is_empty() {
            return Ok(false);
        }
        self.has_rows = true;
        self.begin(if is_static { "static_block" } else { "row" });
        let written = self.fragments.write_row(row, is_static, None, &mut self.json);
        written.map_err(|value| corrupt(&self.path, value))?;
        self.end();
        Ok(true)
    }

    fn begin(&mut self, kind: &str) {
        self.json.begin_object();
        self.json.key("type");
        self.json.string(kind);
        self.json.key("key");
        self.json.literal(&self.key);
    }

    fn end(&mut self) {
        self.json.end_object();
        self.json.end_line();
    }
}

fn corrupt(path: &std::path::Path, value: crate::error::ValueError) -> Error {
    let place = "in this SSTable or one merged with it".to_owned();
    Error::Value { path: path.to_path_buf(), place, value: Box::new(value) }
}

/// The files of an SSTable as [`ReadStats`] tells them apart: all that it reads is of one of them.
const CLASSES: [(&str, IoClass); 6] = [
    ("index", INDEX_IO),
    ("data", DATA_IO),
    ("fences", FENCES_IO),
    ("filter", FILTER_IO),
    ("summary", SUMMARY_IO),
    ("metadata", METADATA_IO),
];

/// What a read asked of the operating system, how it found the pages of indexes, and what became of fences.
#[derive(Clone, Debug)]
pub struct ReadStats {
    io: IoStats,
    pages: PageStats,
    fences: Vec<Usage>,
}

impl ReadStats {
    /// All since the start.
    pub fn now(disk: &Disk, tables: &Tables) -> ReadStats {
        let fences = tables.tables.iter().map(|table| table.fences_state()).collect();
        ReadStats { io: disk.stats(), pages: tables.page_stats(), fences }
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &ReadStats) -> ReadStats {
        let (io, pages) = (self.io.since(&earlier.io), self.pages.since(earlier.pages));
        ReadStats { io, pages, fences: self.fences.clone() }
    }

    /// One JSON object on one line.
    pub fn to_json(&self) -> String {
        let mut json = JsonWriter::new(Layout::Line);
        json.begin_object();
        let mut put = |name: &str, value| {
            json.key(name);
            json.integer(value);
        };
        let total = self.io.total();
        put("requests", total.requests);
        put("bytes", total.bytes);
        for (name, class) in CLASSES {
            let part = self.io.class(class);
            put(&format!("{name}_requests"), part.requests);
            put(&format!("{name}_bytes"), part.bytes);
        }
        put("page_hits", self.pages.hits);
        put("page_misses", self.pages.misses);
        json.key("fences");
        json.begin_array();
        self.fences.iter().for_each(|state| json.string(&state.to_string()));
        json.end_array();
        json.end_object();
        json.into_text()
    }
}
