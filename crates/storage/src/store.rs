//! The tables of one shard, with what they share: the commit log, the memory for memtables, and who may read.
//!
//! ```text
//! write ──► commit log ──► memtable ──► answered
//!             │               └─ too much memory, or too long a log ──► flush ──► mark in the log ──► segments removed
//!             └─ after a crash: recover ──► memtables ──► flush
//! ```
//!
//! # What is replayed
//! A flush is followed by a *mark* in the log: this table is in SSTables up to here. What a mark covers is not replayed,
//! and only what it covers is removed. A new SSTable is not compacted before its mark is durable: a compaction may forget
//! a deletion together with what it deleted, and a replay of the latter alone would bring it back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{Bytes, PartitionKey, flat};
use runtime::{Cache, Disk, Shard, Signal, Task};

use crate::admission::{Admission, AdmissionOptions};
use crate::commit_log::{self, CommitLog, CommitLogOptions, LogPosition, OnCorruption, Replayed, TableId};
use crate::compactor::{CompactionOptions, CompactionStats, Compactor};
use crate::definition::Definition;
use crate::rewrite::Control;
use crate::table::{Context, Generations, Table};
use crate::{Error, Result};

/// How the tables of a shard share what there is.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Bytes for all that is cached. Default 128 MiB.
    pub cache: usize,
    /// Bytes that memtables may take before the largest is flushed. Default 64 MiB. Writes wait at twice as many.
    pub memtables: usize,
    /// Who may read.
    pub admission: AdmissionOptions,
    /// How the commit log is kept.
    pub log: CommitLogOptions,
    /// How compactions are run.
    pub compaction: CompactionOptions,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            cache: 128 << 20,
            memtables: 64 << 20,
            admission: AdmissionOptions::default(),
            log: CommitLogOptions::default(),
            compaction: CompactionOptions::default(),
        }
    }
}

/// The tables of one shard.
#[derive(Clone)]
pub struct Store(Rc<Inner>);

struct Inner {
    context: Context,
    options: StoreOptions,
    log: CommitLog,
    admission: Admission,
    tables: RefCell<BTreeMap<TableId, Table>>,
    /// Memory may have become free, or is needed.
    memory: Signal,
    /// The first error of a flush that nobody waited for: writes fail with it.
    failed: RefCell<Option<Error>>,
    compactor: Compactor,
    /// What goes on by itself.
    tasks: RefCell<Vec<Task<()>>>,
}

impl Store {
    /// A store without tables, whose log is in `folder`. What an earlier log there has is not touched: see
    /// [`Store::recover`].
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn open(shard: &Shard, folder: &Path, options: StoreOptions) -> Result<Store> {
        let log = CommitLog::open(shard.disk(), shard.clock(), folder, options.log).await?;
        let context = Context {
            disk: shard.disk().clone(),
            clock: shard.clock().clone(),
            cache: Cache::new(options.cache),
        };
        let options_of_compaction = options.compaction;
        let store = Store(Rc::new(Inner {
            admission: Admission::new(options.admission),
            context,
            options,
            log,
            tables: RefCell::default(),
            memory: Signal::new(),
            failed: RefCell::default(),
            compactor: Compactor::new(options_of_compaction),
            tasks: RefCell::default(),
        }));
        store.0.tasks.borrow_mut().push(runtime::spawn(store.clone().flush_by_need()));
        Ok(store)
    }

    /// Opens a table of this shard.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    pub async fn add_table(
        &self,
        folder: &Path,
        definition: Definition,
        generations: &Generations,
    ) -> Result<Table> {
        let id = definition.id;
        let table = Table::open(&self.0.context, folder, definition, generations).await?;
        self.0.tables.borrow_mut().insert(id, table.clone());
        Ok(table)
    }

    /// Forgets a table. Its files stay; what the log has of it is no longer wanted.
    pub fn remove_table(&self, id: TableId) -> Option<Table> {
        let removed = self.0.tables.borrow_mut().remove(&id);
        self.0.log.flushed(id, self.0.log.position());
        removed
    }

    /// A table by its id.
    pub fn table(&self, id: TableId) -> Option<Table> {
        self.0.tables.borrow().get(&id).cloned()
    }

    /// All tables.
    pub fn tables(&self) -> Vec<Table> {
        self.0.tables.borrow().values().cloned().collect()
    }

    /// Who may read.
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// What the tables share.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The commit log.
    pub fn log(&self) -> &CommitLog {
        &self.0.log
    }

    /// Writes a mutation, as [`flat::put_mutation`] encodes it. When this returns it is durable by the promise of the
    /// log's sync mode, and reads see it. Waits while memtables have too much memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a table that is not there or bytes that are no mutation; a log or a flush that failed.
    /// Unless it is [`Error::Invalid`], the write may be there or not.
    pub async fn write(&self, id: TableId, record: Vec<u8>) -> Result<()> {
        let unknown = || Error::Invalid("there is no such table".to_owned());
        let table = self.table(id).ok_or_else(unknown)?;
        let bytes = Bytes::from(record);
        let mutation = flat::mutation(&bytes).map_err(|error| Error::Invalid(error.to_string()))?;
        if !mutation.is_in_order(&table.definition().schema) {
            return Err(Error::Invalid("the rows of a mutation are out of order".to_owned()));
        }
        self.0.memory.until(|| self.has_room()).await?;
        let apply = |position| {
            table.apply(mutation, bytes.len(), position);
            // Whatever comes of the log, and whether or not somebody waits for it.
            self.flush_if_needed();
        };
        self.0.log.append_with(id, &bytes, apply).await?;
        Ok(())
    }

    /// Flushes a table's memtable and waits for it.
    ///
    /// # Errors
    /// What the operating system says; the rows are then still in memory and in the log.
    pub async fn flush(&self, table: &Table) -> Result<()> {
        let id = table.definition().id;
        let mark = async |up_to, is_new: bool| match is_new || self.0.log.is_held_by(id) {
            true => self.mark(id, up_to).await,
            false => Ok(()),
        };
        let flushed = table.flush(|| self.0.log.position(), mark).await;
        self.0.memory.notify();
        self.0.compactor.wake();
        flushed
    }

    /// Begins to compact tables by itself, if the options say so. To be called once what an earlier log had is recovered,
    /// and that log is removed: see the head of this module.
    pub fn begin_compactions(&self) {
        let store = self.clone();
        let task = runtime::spawn(async move { store.0.compactor.run(|| store.tables()).await });
        self.0.tasks.borrow_mut().push(task);
    }

    /// Merges all SSTables of a table, once no other compaction is under way.
    ///
    /// # Errors
    /// What cannot be read or written; [`Error::Cancelled`].
    pub async fn compact(&self, table: &Table) -> Result<()> {
        self.0.compactor.major(table).await
    }

    /// From here on a table is this one, once no flush and no compaction is under way. See [`Table::set_definition`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if its keys are others.
    pub async fn set_definition(&self, table: &Table, definition: Definition) -> Result<()> {
        let _turn = self.0.compactor.turn().await;
        table.set_definition(definition).await
    }

    /// The compaction that is under way, or the last one: its progress, and a way to cancel it.
    pub fn compaction(&self) -> Control {
        self.0.compactor.control()
    }

    /// What compactions did.
    pub fn compaction_stats(&self) -> CompactionStats {
        self.0.compactor.stats()
    }

    /// Flushes all tables.
    ///
    /// # Errors
    /// Those of [`Store::flush`].
    pub async fn flush_all(&self) -> Result<()> {
        for table in self.tables() {
            self.flush(&table).await?;
        }
        Ok(())
    }

    /// Bytes that all memtables take.
    pub fn memtable_bytes(&self) -> usize {
        self.0.tables.borrow().values().map(Table::memtable_bytes).sum()
    }

    /// Applies what the logs in these folders have that is in no SSTable yet, of the partitions that are `mine`, and
    /// flushes it. The logs stay: once all shards have recovered, [`remove_replayed`](crate::commit_log::remove_replayed) is due. The store's own
    /// log may be in one of the folders, and is no part of what is replayed; logs of other shards that are open are not
    /// told from those of before.
    ///
    /// # Errors
    /// Damage that no crash explains, if it is not to be salvaged; what the operating system says.
    pub async fn recover(
        &self,
        folders: &[PathBuf],
        mine: impl Fn(&PartitionKey) -> bool,
        on_corruption: OnCorruption,
    ) -> Result<Vec<Replayed>> {
        let mut all = Vec::new();
        for folder in folders {
            let table = |id| self.table(id);
            let log = Some(&self.0.log);
            all.push(replay(&self.0.context.disk, log, folder, table, &mine, on_corruption).await?);
        }
        for table in self.tables() {
            // There is no mark for these: their log is removed before anything is compacted.
            table.flush(LogPosition::default, async |_, _| Ok(())).await?;
        }
        Ok(all)
    }

    /// Stops what goes on by itself, flushes nothing, and makes the log durable.
    ///
    /// # Errors
    /// A log that has failed.
    pub async fn close(&self) -> Result<()> {
        drop(self.0.tasks.take());
        self.0.log.close().await
    }

    /// Tells the log what is in SSTables now, durably, and lets go of it.
    async fn mark(&self, id: TableId, up_to: LogPosition) -> Result<()> {
        self.0.log.append(id, &mark_of(up_to)).await?;
        self.0.log.sync().await?;
        self.0.log.flushed(id, up_to);
        Ok(())
    }

    /// Has something flushed, if memtables or the log take too much.
    fn flush_if_needed(&self) {
        let is_long = self.0.log.size() > self.0.options.log.total_size;
        if is_long || self.memtable_bytes() > self.0.options.memtables {
            self.0.memory.notify();
        }
    }

    /// Whether there is memory for another write; `None` to wait.
    fn has_room(&self) -> Option<Result<()>> {
        if let Some(error) = &*self.0.failed.borrow() {
            return Some(Err(error.clone()));
        }
        (self.memtable_bytes() <= 2 * self.0.options.memtables).then_some(Ok(()))
    }

    /// Flushes the largest memtable whenever they take too much, and the oldest when the log is too long.
    async fn flush_by_need(self) {
        loop {
            let next = self.0.memory.until(|| self.largest()).await;
            if let Err(error) = self.flush(&next).await {
                *self.0.failed.borrow_mut() = Some(error);
                self.0.memory.notify();
                return;
            }
        }
    }

    /// The table to flush next, if one must.
    fn largest(&self) -> Option<Table> {
        if let Some(table) = self.0.log.pressure().iter().find_map(|id| self.table(*id)) {
            return Some(table);
        }
        let tables = self.0.tables.borrow();
        let is_needed = self.memtable_bytes() > self.0.options.memtables;
        tables.values().filter(|_| is_needed).max_by_key(|table| table.memtable_bytes()).cloned()
    }
}

/// Applies to memtables what the log in a folder has that is in no SSTable yet, of the partitions that are `mine`.
/// `table` tells which tables there are. If there is an open log in that folder, it is `log`, and its own records are left
/// out. Nothing on the disk changes.
///
/// # Errors
/// Damage that no crash explains, if it is not to be salvaged; what the operating system says.
pub async fn replay(
    disk: &Disk,
    log: Option<&CommitLog>,
    folder: &Path,
    table: impl Fn(TableId) -> Option<Table>,
    mine: &impl Fn(&PartitionKey) -> bool,
    on_corruption: OnCorruption,
) -> Result<Replayed> {
    let mut marks: BTreeMap<TableId, LogPosition> = BTreeMap::new();
    let note = async |_, id, record: &[u8]| {
        if let Some(up_to) = mark_in(record) {
            let known = marks.entry(id).or_default();
            *known = up_to.max(*known);
        }
        Ok(())
    };
    match log {
        Some(log) => log.replay_earlier(folder, on_corruption, note).await?,
        None => commit_log::replay(disk, folder, on_corruption, note).await?,
    };
    let apply = async |position, id, record: &[u8]| {
        let is_flushed = marks.get(&id).is_some_and(|up_to| position <= *up_to);
        match table(id).filter(|_| !is_flushed && mark_in(record).is_none()) {
            Some(table) => apply_replayed(&table, record, mine),
            None => Ok(()),
        }
    };
    match log {
        Some(log) => log.replay_earlier(folder, on_corruption, apply).await,
        None => commit_log::replay(disk, folder, on_corruption, apply).await,
    }
}

/// The first byte of a mark; mutations begin with the version of their encoding.
const MARK: u8 = 0xff;

/// The record of a mark: the byte, then segment and offset.
fn mark_of(up_to: LogPosition) -> Vec<u8> {
    let mut record = vec![MARK];
    record.extend_from_slice(&up_to.segment.to_be_bytes());
    record.extend_from_slice(&up_to.offset.to_be_bytes());
    record
}

fn mark_in(record: &[u8]) -> Option<LogPosition> {
    let numbers = record.strip_prefix(&[MARK])?;
    let (segment, rest) = numbers.split_first_chunk::<8>()?;
    let offset = rest.try_into().ok()?;
    Some(LogPosition { segment: u64::from_be_bytes(*segment), offset: u64::from_be_bytes(offset) })
}

fn apply_replayed(table: &Table, record: &[u8], mine: &impl Fn(&PartitionKey) -> bool) -> Result<()> {
    let bytes = Bytes::from(record);
    let mutation = flat::mutation(&bytes).map_err(|error| Error::Invalid(error.to_string()))?;
    if mine(&mutation.key) {
        table.apply(mutation, bytes.len(), LogPosition::default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_nothing_else_is_one() {
        let up_to = LogPosition { segment: 7, offset: 1 << 40 };
        assert_eq!(mark_in(&mark_of(up_to)), Some(up_to));
        assert_eq!(mark_in(&[flat::VERSION; 17]), None);
        assert_eq!(mark_in(&mark_of(up_to)[..16]), None);
    }
}
