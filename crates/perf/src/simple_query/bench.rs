//! A store with one table, filled, and the operation that is measured.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use model::{Fragment, FragmentReader, LiveRows, Mutation, Next, Slice, flat};
use runtime::{Shard, Signal};
use serde_json::Value;
use siltstone::{Error, Result};
use sstable::{Version, WriteOptions};
use storage::admission::AdmissionOptions;
use storage::commit_log::TableId;
use storage::compactor::CompactionOptions;
use storage::row_cache::Known;
use storage::{Caching, Definition, Generations, ReadRequest, Store, StoreOptions, Table};

use super::rows::{self, Found};
use crate::defaults::write_options;
use crate::fences;
use crate::interrupted;
use crate::random::Random;
use crate::throughput::Meters;

/// The id of the table.
const TABLE: TableId = TableId([7; 16]);

/// How long it is waited for the log before it is looked again.
const PATIENCE: Duration = Duration::from_millis(1);

/// The first timestamp, in microseconds.
const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// What is done again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A row is read, and compared.
    Read,
    /// A row is written.
    Write,
    /// All columns of a row are deleted.
    Delete,
}

/// What the store is made of, and how it is used.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// What is measured.
    pub mode: Mode,
    /// Whether the columns are counters; what is then written is added.
    pub counters: bool,
    /// How many partitions there are.
    pub partitions: u32,
    /// How many operations are under way at once.
    pub concurrency: u32,
    /// Whether only the first of them is used.
    pub query_single_key: bool,
    /// Whether all is flushed before it is measured.
    pub flush: bool,
    /// Whether reads leave the row cache alone.
    pub bypass_cache: bool,
    /// Whether rows are kept.
    pub row_cache: bool,
    /// Whether pages of indexes are kept.
    pub index_cache: bool,
    /// Bytes of memory for all.
    pub memory: usize,
    /// Bytes of summary for a byte of data.
    pub summary_ratio: f64,
    /// Whether fences are written.
    pub fences: bool,
    /// The version of SSTables.
    pub format: Version,
}

/// The store, with its table.
pub struct Bench {
    setup: Setup,
    shard: Shard,
    store: Store,
    table: Table,
    random: Random,
    timestamp: Cell<i64>,
    /// Partitions of which somebody adds to the counters.
    counting: RefCell<BTreeSet<u32>>,
    counted: Signal,
}

impl Bench {
    /// A store in an empty folder.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn open(shard: &Shard, folder: &Path, setup: &Setup) -> Result<Bench> {
        let (log, files) = (folder.join("commitlog"), folder.join("cf"));
        for folder in [&log, &files] {
            std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error.to_string()))?;
        }
        let store = Store::open(shard, &log, setup.store_options()).await?;
        let table = store.add_table(&files, setup.definition(), &Generations::default()).await?;
        Ok(Bench {
            setup: setup.clone(),
            shard: shard.clone(),
            store,
            table,
            random: Random::new(1),
            timestamp: Cell::new(TIMESTAMP),
            counting: RefCell::default(),
            counted: Signal::new(),
        })
    }

    /// Writes the partitions. Where memory has not room for them, all are flushed, each time when half of it is full, and
    /// one SSTable is made: every run does and finds the same, however fast the disk is. `tell` is told how many there are.
    ///
    /// # Errors
    /// What cannot be written.
    pub async fn fill(&self, mut tell: impl FnMut(u32)) -> Result<()> {
        for sequence in 0..self.setup.partitions {
            interrupted::check()?;
            tell(sequence);
            match self.setup.counters {
                true => self.count(sequence).await?,
                false => self.write(&rows::update(sequence, self.next_timestamp())).await?,
            }
            if self.store.memtable_bytes() > self.setup.store_options().memtables / 2 {
                self.store.flush(&self.table).await?;
            }
        }
        if self.setup.flush || !self.table.sstables().members().is_empty() {
            self.store.flush(&self.table).await?;
        }
        // Not before the log knows of all SSTables.
        while self.table.compactable().len() < self.table.sstables().members().len() {
            runtime::sleep(PATIENCE).await;
        }
        if self.table.sstables().members().len() > 1 {
            self.store.compact(&self.table).await?;
        }
        Ok(())
    }

    /// From now on SSTables that writes leave are compacted beside them: with little memory there would be thousands. What is only read stays
    /// as it was filled in.
    pub fn begin_compactions(&self) {
        self.store.begin_compactions();
    }

    /// One operation, on a partition by chance.
    ///
    /// # Errors
    /// What cannot be read or written; a row that is not what it must be.
    pub async fn operate(&self) -> Result<()> {
        let sequence = if self.setup.query_single_key { 0 } else { self.random.below(self.setup.partitions) };
        match (self.setup.mode, self.setup.counters) {
            (Mode::Read, _) => self.read_and_check(sequence).await,
            (Mode::Write, true) => self.count(sequence).await,
            (Mode::Write, false) => self.write(&rows::update(sequence, self.next_timestamp())).await,
            (Mode::Delete, _) => {
                let now = self.shard.clock().now_seconds();
                self.write(&rows::deletion(sequence, self.next_timestamp(), now)).await
            }
        }
    }

    /// What is counted.
    pub(crate) fn meters(&self) -> Meters {
        Meters { disk: self.shard.disk().clone(), cache: self.store.context().cache.clone() }
    }

    /// How many SSTables there are, and how many bytes of data they have, uncompressed.
    pub fn sstables(&self) -> (usize, u64) {
        let set = self.table.sstables();
        let bytes = set.members().iter().map(|member| member.sstable.data().file.len());
        (set.members().len(), bytes.sum())
    }

    /// Whether reads of them go by fences.
    pub(crate) fn fences(&self) -> Value {
        fences::told_of(&self.table)
    }

    /// Ends what goes on by itself.
    ///
    /// # Errors
    /// A log that has failed.
    pub async fn close(&self) -> Result<()> {
        Ok(self.store.close().await?)
    }

    async fn read_and_check(&self, sequence: u32) -> Result<()> {
        let is_right = if self.setup.counters { rows::has_counted } else { rows::is_whole };
        match self.read(sequence, is_right).await? {
            Some(true) => Ok(()),
            _ => Err(Error::Closed(format!("partition {sequence} is not what was written"))),
        }
    }

    /// What is said of the row of a partition at a time in seconds, if it is there. Memory is asked first, as whoever reads one
    /// row does.
    async fn read<T>(&self, sequence: u32, look: impl Fn(Found<'_>, i64) -> T) -> Result<Option<T>> {
        let (key, now) = (rows::key(sequence), self.shard.clock().now_seconds());
        if !self.setup.bypass_cache {
            match self.table.known_row(key.view(), &[]) {
                Known::Unknown | Known::OnDisk => {}
                Known::Absent => return Ok(None),
                Known::Row(row) => return Ok(Some(look(Found::Flat(row.flat()), now))),
            }
        }
        let _permit = self.store.admission().admit(self.table.slice_memory(false)).await?;
        let mut request = ReadRequest::new(key, Slice::all());
        request.static_row = false;
        if self.setup.bypass_cache {
            request.caching = Caching::Bypass;
        }
        let mut stream = self.table.read(&request).await?;
        let mut live = LiveRows::new(now);
        let (mut found, mut fragment) = (None, Fragment::default());
        loop {
            stream.pop_flat(&mut |row: flat::FlatRow<'_>| {
                found = Some(look(Found::Flat(row), now));
                true
            });
            match stream.pop(&mut fragment)? {
                Next::Fragment => {}
                Next::Fill => {
                    stream.fill().await?;
                    continue;
                }
                Next::End => return Ok(found),
            }
            if live.keeps(&mut fragment)
                && let Fragment::Row(row) = &fragment
            {
                found = Some(look(Found::Decoded(row), now));
            }
        }
    }

    async fn write(&self, mutation: &Mutation) -> Result<()> {
        let mut record = Vec::with_capacity(256);
        flat::put_mutation(mutation, &mut record);
        Ok(self.store.write(TABLE, record).await?)
    }

    /// Adds to the counters of a partition, which nobody else does meanwhile.
    async fn count(&self, sequence: u32) -> Result<()> {
        self.counted.until(|| self.counting.borrow_mut().insert(sequence).then_some(())).await;
        let done = async {
            let before =
                self.read(sequence, |found: Found<'_>, now| found.cells(now)).await?.unwrap_or_default();
            self.write(&rows::count(sequence, self.next_timestamp(), &before)).await
        };
        let done = done.await;
        self.counting.borrow_mut().remove(&sequence);
        self.counted.notify();
        done
    }

    fn next_timestamp(&self) -> i64 {
        self.timestamp.update(|timestamp| timestamp + 1);
        self.timestamp.get()
    }
}

impl Setup {
    /// Half of the memory is for caches, a third for memtables, of which one may be flushed while another is written, and a
    /// sixth for reads. All that are under way may wait: none is refused for their number.
    fn store_options(&self) -> StoreOptions {
        StoreOptions {
            cache: self.memory / 2,
            memtables: self.memory / 6,
            admission: AdmissionOptions {
                memory: self.memory / 6,
                waiting: self.concurrency as usize,
                ..AdmissionOptions::default()
            },
            compaction: CompactionOptions {
                background: self.mode != Mode::Read,
                bytes_per_second: None,
                ..CompactionOptions::default()
            },
            ..StoreOptions::default()
        }
    }

    fn definition(&self) -> Definition {
        let definition = Definition::new(TABLE, &rows::schema(self.counters), self.format);
        let write = WriteOptions {
            min_index_interval: rows::summary_interval(self.summary_ratio),
            fences: self.fences,
            ..write_options(self.format)
        };
        Definition { write, caches_rows: self.row_cache, caches_indexes: self.index_cache, ..definition }
    }
}
