//! All of an SSTable as JSON, while it is read.
//!
//! Memory stays small however large the file is: one request's worth of data and one buffer of text.

use std::io::Write;
use std::rc::Rc;

use model::{
    DeletionTime, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, RangeTombstoneChange, Row,
};
use sstable::SSTable;
use sstable::data::reader::DataReader;

use crate::error::{Error, Result, ValueError};
use crate::fragment_json::{Detail, FragmentJson};
use crate::json::{JsonWriter, Layout};

/// How an SSTable is dumped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// One JSON array of partitions, as Cassandra 5.0's `sstabledump` prints it.
    #[default]
    Cassandra,
    /// A JSON object for each row or tombstone, on a line of its own. It tells all that a file holds, see
    /// [`crate::fragment_json::Detail::Exact`].
    JsonLines,
}

/// Dumps one SSTable.
///
/// ```no_run
/// # async fn example(disk: &runtime::Disk) -> Result<(), siltstone::Error> {
/// use siltstone::dump::{Dump, Format};
/// let options = sstable::OpenOptions::new(runtime::Cache::new(1 << 20));
/// let table = sstable::SSTable::open(disk, "backup/me-1-big-Data.db".as_ref(), &options).await?;
/// let mut dump = Dump::new(&table, Format::JsonLines, siltstone::now());
/// dump.all(&mut std::io::stdout().lock(), &mut |_| {}).await
/// # }
/// ```
#[derive(Debug)]
pub struct Dump {
    table: Rc<SSTable>,
    format: Format,
    fragments: FragmentJson,
    json: JsonWriter,
    /// Where the last fragment that was written ends in the data.
    position: u64,
    partition: Partition,
    /// Whether fragments are only followed, because another share of the dump has them.
    is_muted: bool,
    /// The SSTable's name in quotes, where each line is to have it.
    name: Option<String>,
}

/// A part of a dump, for one of several that dump the same SSTable at the same time: of the stretches of the
/// data, counted from 0, those whose number leaves `remainder` when divided by `of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Below `of`.
    pub remainder: u64,
    /// How many shares there are.
    pub of: u64,
    /// Bytes of data in a stretch. A fragment belongs to the stretch in which it begins.
    pub stretch: u64,
}

impl Share {
    fn has(&self, stretch: u64) -> bool {
        stretch % self.of == self.remainder
    }
}

/// What is known of the partition at hand.
#[derive(Debug)]
struct Partition {
    /// Its key as JSON, for each line.
    key: String,
    /// The key's bytes as JSON, where the key does not tell them.
    key_bytes: Option<String>,
    position: u64,
    /// The range tombstone in force.
    open: DeletionTime,
    has_lines: bool,
}

impl Dump {
    /// A dump of this SSTable. `now`, in seconds since the epoch, decides what is said to have expired.
    pub fn new(table: &Rc<SSTable>, format: Format, now: i64) -> Dump {
        let layout = match format {
            Format::Cassandra => Layout::Pretty,
            Format::JsonLines => Layout::Line,
        };
        let mut fragments = FragmentJson::new(table.schema().clone(), now);
        if format == Format::JsonLines {
            fragments.print_detail(Detail::Exact);
        }
        Dump {
            table: table.clone(),
            format,
            fragments,
            json: JsonWriter::new(layout),
            position: 0,
            partition: Partition {
                key: String::new(),
                key_bytes: None,
                position: 0,
                open: DeletionTime::LIVE,
                has_lines: false,
            },
            is_muted: false,
            name: None,
        }
    }

    /// Has each line name the SSTable, for dumps of several; [`Format::Cassandra`] has no place for that.
    pub fn name_sstable(&mut self) {
        self.name = Some(format!("\"{}\"", self.table.descriptor()));
    }

    /// Dumps a share: follows everything, but writes only the stretches that belong to it. `send` is given the
    /// text of each of them in order, be it empty, and says whether more is wanted.
    ///
    /// # Errors
    /// What cannot be read; what was read before has been sent.
    pub async fn share(&mut self, share: Share, send: &mut dyn FnMut(String) -> bool) -> Result<()> {
        let mut stretch = 0;
        self.is_muted = !share.has(stretch);
        self.begin();
        let read = self.share_partitions(share, &mut stretch, send).await;
        let last = self.table.data().file.len() / share.stretch;
        if read.is_ok() && self.go_to(share, &mut stretch, last, send) {
            self.close();
        }
        if share.has(stretch) {
            send(self.json.take());
        }
        read
    }

    async fn share_partitions(
        &mut self,
        share: Share,
        stretch: &mut u64,
        send: &mut dyn FnMut(String) -> bool,
    ) -> Result<()> {
        let mut reader = self.table.scan();
        let mut fragment = Fragment::default();
        loop {
            match reader.pop(&mut fragment)? {
                Next::Fragment => {
                    let at = reader.position();
                    if !self.go_to(share, stretch, self.position / share.stretch, send) {
                        return Ok(());
                    }
                    let written = self.fragment(&mut fragment, at);
                    written.map_err(|value| self.corrupt(value))?;
                }
                Next::Fill => reader.fill().await?,
                Next::End => return Ok(()),
            }
        }
    }

    /// Goes on to a stretch, and sends those of the share that are behind.
    #[inline]
    fn go_to(
        &mut self,
        share: Share,
        stretch: &mut u64,
        to: u64,
        send: &mut dyn FnMut(String) -> bool,
    ) -> bool {
        while *stretch < to {
            if share.has(*stretch) && !send(self.json.take()) {
                return false;
            }
            *stretch += 1;
            self.is_muted = !share.has(*stretch);
        }
        true
    }

    /// Writes all partitions. `progress` is told, now and then, how many bytes of data are done.
    ///
    /// # Errors
    /// What cannot be read or written; what was read before is written.
    pub async fn all(&mut self, out: &mut dyn Write, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.begin();
        let reader = self.table.scan();
        let read = self.partitions(reader, out, progress).await;
        self.end(read, out)
    }

    /// Writes the partitions of these keys, in the order of the file. Returns those that are not there.
    ///
    /// # Errors
    /// What cannot be read or written; what was read before is written.
    pub async fn keys(&mut self, keys: &[PartitionKey], out: &mut dyn Write) -> Result<Vec<PartitionKey>> {
        self.begin();
        let mut missing = Vec::new();
        let read = self.each_key(keys, &mut missing, out).await;
        self.end(read, out)?;
        Ok(missing)
    }

    async fn each_key(
        &mut self,
        keys: &[PartitionKey],
        missing: &mut Vec<PartitionKey>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let mut found = Vec::new();
        for key in keys {
            match self.table.scan_partition(key).await? {
                Some(reader) => found.push((reader.position(), reader)),
                None => missing.push(key.clone()),
            }
        }
        found.sort_by_key(|(position, _)| *position);
        found.dedup_by_key(|(position, _)| *position);
        for (_, reader) in found {
            self.partitions(reader, out, &mut |_| {}).await?;
        }
        Ok(())
    }

    async fn partitions(
        &mut self,
        mut reader: DataReader,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let mut fragment = Fragment::default();
        loop {
            match reader.pop(&mut fragment)? {
                Next::Fragment => {
                    let at = reader.position();
                    let written = self.fragment(&mut fragment, at);
                    written.map_err(|value| self.corrupt(value))?;
                    self.json.drain_if_full(out)?;
                }
                Next::Fill => {
                    progress(self.position);
                    reader.fill().await?;
                }
                Next::End => return Ok(()),
            }
        }
    }

    fn corrupt(&self, value: ValueError) -> Error {
        let place = format!("behind offset {}", self.position);
        Error::Value { path: self.table.data().file.path().to_path_buf(), place, value: Box::new(value) }
    }

    fn begin(&mut self) {
        match self.format {
            Format::Cassandra if self.is_muted => self.json.skip_begin(),
            Format::Cassandra => self.json.begin_array(),
            Format::JsonLines => {}
        }
    }

    fn close(&mut self) {
        if self.format == Format::Cassandra && !self.is_muted {
            self.json.end_array();
            self.json.end_line();
        }
    }

    /// Closes the array if all went well, and writes out what there is in any case.
    fn end(&mut self, read: Result<()>, out: &mut dyn Write) -> Result<()> {
        if read.is_ok() {
            self.close();
        }
        let written = self.json.drain(out);
        read.and(written.map_err(Error::from))
    }

    /// Writes a fragment that ends at `at`.
    fn fragment(&mut self, fragment: &mut Fragment, at: u64) -> std::result::Result<(), ValueError> {
        match fragment {
            Fragment::PartitionStart(start) => {
                self.position = at;
                self.start(start)
            }
            Fragment::StaticRow(row) => self.row(row, true, at),
            Fragment::Row(row) => self.row(row, false, at),
            Fragment::RangeTombstone(change) => self.change(change, at),
            Fragment::PartitionEnd => {
                self.finish();
                Ok(())
            }
        }
    }

    fn start(&mut self, start: &PartitionStart) -> std::result::Result<(), ValueError> {
        let partition = &mut self.partition;
        (partition.position, partition.open) = (self.position, DeletionTime::LIVE);
        partition.has_lines = false;
        match self.format {
            Format::Cassandra if self.is_muted => {
                self.json.skip_begin();
                self.json.skip_begin();
            }
            Format::Cassandra => {
                self.json.begin_object();
                self.json.key("table kind");
                let is_index = self.table.descriptor().is_index_table();
                self.json.literal(if is_index { "\"INDEX\"" } else { "\"REGULAR\"" });
                self.json.key("partition");
                self.json.begin_object();
                self.json.key("key");
                self.fragments.write_key(&start.key.bytes, &mut self.json)?;
                self.json.key("position");
                self.json.integer(self.position);
                self.fragments.write_deletion(&start.deletion, &mut self.json);
                self.json.end_object();
                self.json.key("rows");
                self.json.begin_array();
            }
            Format::JsonLines => {
                (partition.key, partition.key_bytes) = self.fragments.exact_key(&start.key.bytes);
                if !start.deletion.is_live() {
                    self.partition.has_lines = true;
                    self.partition_line(&start.deletion);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        match self.format {
            Format::Cassandra if self.is_muted => {
                self.json.skip_end();
                self.json.skip_end();
            }
            Format::Cassandra => {
                self.json.end_array();
                self.json.end_object();
            }
            Format::JsonLines if !self.partition.has_lines => self.partition_line(&DeletionTime::LIVE),
            Format::JsonLines => {}
        }
    }

    fn partition_line(&mut self, deletion: &DeletionTime) {
        if self.is_muted {
            return;
        }
        self.begin_item("partition");
        self.json.key("position");
        self.json.integer(self.partition.position);
        self.fragments.write_deletion(deletion, &mut self.json);
        self.end_item();
    }

    fn row(&mut self, row: &mut Row, is_static: bool, at: u64) -> std::result::Result<(), ValueError> {
        row.normalize();
        if row.is_empty() {
            return Ok(());
        }
        if self.is_muted {
            self.skip_item();
        } else {
            self.begin_item(if is_static { "static_block" } else { "row" });
            self.fragments.write_row(row, is_static, Some(self.position), &mut self.json)?;
            self.end_item();
        }
        self.position = at;
        Ok(())
    }

    fn change(&mut self, change: &RangeTombstoneChange, at: u64) -> std::result::Result<(), ValueError> {
        let closes = std::mem::replace(&mut self.partition.open, change.deletion);
        let is_boundary = !closes.is_live() && !change.deletion.is_live();
        if self.is_muted {
            self.skip_item();
        } else {
            self.begin_item(if is_boundary { "range_tombstone_boundary" } else { "range_tombstone_bound" });
            self.fragments.write_change(&change.position, &closes, &change.deletion, &mut self.json)?;
            self.end_item();
        }
        self.position = at;
        Ok(())
    }

    fn skip_item(&mut self) {
        self.partition.has_lines = true;
        if self.format == Format::Cassandra {
            self.json.skip_value();
        }
    }

    fn begin_item(&mut self, kind: &str) {
        self.json.begin_object();
        self.json.key("type");
        self.json.string(kind);
        if self.format == Format::JsonLines {
            if let Some(name) = &self.name {
                self.json.key("sstable");
                self.json.literal(name);
            }
            self.json.key("key");
            self.json.literal(&self.partition.key);
            if let Some(bytes) = &self.partition.key_bytes {
                self.json.key("key_bytes");
                self.json.literal(bytes);
            }
        }
    }

    fn end_item(&mut self) {
        self.partition.has_lines = true;
        self.json.end_object();
        if self.format == Format::JsonLines {
            self.json.end_line();
        }
    }
}
