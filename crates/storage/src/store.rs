//! The tables of one shard, with what they share: the commit log, the memory for memtables, and the admission of reads.
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
//!
//! A mark covers nothing from before its own log was opened: while an earlier log is being replayed, nobody knows how much of it is in
//! SSTables. So nothing is compacted until the replay is done and the earlier log is removed.
//!
//! ```text
//! mark   u8 0xff, u64 first segment it covers, u64 segment and u64 offset up to which it does, big-endian      25 bytes
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::{Bytes, PartitionKey, flat};
use runtime::{Cache, Disk, Shard, Signal, Task};

use crate::admission::{Admission, AdmissionOptions};
use crate::commit_log::{
    CommitLog, CommitLogOptions, EarlierLog, LogPosition, OnCorruption, Replayed, TableId,
};
use crate::compactor::{CompactionOptions, CompactionStats, Compactor};
use crate::definition::Definition;
use crate::memtable::Checked;
use crate::rewrite::Control;
use crate::table::{Context, Generations, Part, Table};
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

/// What goes on beside reads and writes takes so much, in bytes: one compaction, one flush, and the tail of the log.
const WORK: usize = 16 << 20;

impl StoreOptions {
    /// Bytes of memory that a store takes when all that it may take is in use: caches, memtables twice, as one is
    /// flushed while the next is filled, reads, and 16 MiB of work. What the allocator loses between them is not in it:
    /// about a tenth more.
    pub fn memory(&self) -> usize {
        self.cache + 2 * self.memtables + self.admission.memory + WORK
    }
}

/// How long after a flush that failed, as for want of room on the disk, the next is tried.
const FLUSH_AGAIN_AFTER: Duration = Duration::from_secs(5);

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
    /// The error of a flush that nobody waited for: writes fail with it, until a flush goes well.
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
        let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(options.cache));
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
        store.0.tasks.borrow_mut().push(runtime::spawn_vital(store.clone().flush_by_need()));
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
        self.add_part(folder, definition, generations, &Part::default()).await
    }

    /// The same of a part of the ring.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    pub async fn add_part(
        &self,
        folder: &Path,
        definition: Definition,
        generations: &Generations,
        part: &Part,
    ) -> Result<Table> {
        let id = definition.id;
        let table = Table::open_part(&self.0.context, folder, definition, generations, part).await?;
        self.0.tables.borrow_mut().insert(id, table.clone());
        Ok(table)
    }

    /// Forgets a table that nobody writes to, once no flush and no compaction of it is under way: a compaction stops as soon as it can. Its
    /// memtables go, its files stay. What the log has of it is no longer wanted, and the log says so durably.
    ///
    /// # Errors
    /// A log that has failed: the table is forgotten all the same, but a replay may find writes of it.
    pub async fn remove_table(&self, id: TableId) -> Result<()> {
        let removed = self.0.tables.borrow_mut().remove(&id);
        if let Some(table) = &removed {
            table.leave_memtables().await;
            // It may have been the one that could not be flushed.
            self.0.failed.borrow_mut().take_if(|error| may_pass(error));
            self.0.memory.notify();
            self.0.compactor.leave(table).await;
        }
        let marked = self.mark(id, self.0.log.position()).await;
        self.0.log.forget(id);
        marked
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

    /// Writes a mutation, as [`model::flat::put_mutation`] encodes it. When this returns it is durable by the promise of the
    /// log's sync mode, and reads see it. Waits while memtables have too much memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a table that is not there or bytes that are no mutation; a log or a flush that failed.
    /// Unless it is [`Error::Invalid`], the write may be there or not.
    pub async fn write(&self, id: TableId, record: Vec<u8>) -> Result<()> {
        let unknown = || Error::Invalid("there is no such table".to_owned());
        let table = self.table(id).ok_or_else(unknown)?;
        let bytes = Bytes::from(record);
        let checked = Checked::new(&bytes, &table.definition().schema)?;
        self.0.memory.until(|| self.has_room()).await?;
        let apply = |position| {
            table.apply_checked(checked, position);
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
        if flushed.is_ok() {
            self.0.failed.borrow_mut().take_if(|error| may_pass(error));
        }
        self.0.memory.notify();
        self.0.compactor.wake();
        flushed
    }

    /// Begins to compact tables by itself, if the options say so. To be called once what an earlier log had is recovered,
    /// and that log is removed: see the head of this module.
    pub fn begin_compactions(&self) {
        let store = self.clone();
        let task = runtime::spawn_vital(async move { store.0.compactor.run(|| store.tables()).await });
        self.0.tasks.borrow_mut().push(task);
    }

    /// Runs a major compaction of a table. It leaves SSTables that merging would not change for the better (see `apart`), and so may be
    /// several jobs, one after the other. A compaction that is at work on a part of the table is cancelled first; if one already merges all
    /// of it into one SSTable, that one is waited for instead.
    ///
    /// # Errors
    /// What cannot be read or written; [`Error::Cancelled`].
    pub async fn compact(&self, table: &Table) -> Result<()> {
        self.0.compactor.major(table).await
    }

    /// From here on a table is this one, once no flush of it is under way. A compaction of it stops as soon as it can, and is begun
    /// again behind that. See [`Table::set_definition`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if its keys are others.
    pub async fn set_definition(&self, table: &Table, definition: Definition) -> Result<()> {
        let _kept_off = self.0.compactor.keep_off(table).await;
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
        self.0.context.memtable_bytes.get()
    }

    /// Applies what these logs have that is in no SSTable yet, of the partitions that are `mine`, and flushes it; also on
    /// the way, for memory. They stay, and nothing is to be compacted, until all shards have recovered and
    /// [`EarlierLog::remove`] is done. They were found before the logs of now were opened.
    ///
    /// # Errors
    /// Damage that no crash explains, and writes to a table that is not there, if they are not to be salvaged: what is dropped leaves no
    /// such. What the operating system says.
    pub async fn recover(
        &self,
        logs: &[EarlierLog],
        mine: impl Fn(&PartitionKey) -> bool,
        on_corruption: OnCorruption,
    ) -> Result<Vec<Replayed>> {
        let (mut all, unknown) = (Vec::new(), RefCell::new(BTreeMap::<TableId, u64>::new()));
        for log in logs {
            let apply = async |id, record: &[u8]| {
                let Some(table) = self.table(id) else {
                    // One that says nothing is never marked as flushed.
                    if !flat::mutation(&Bytes::from(record)).is_ok_and(|mutation| mutation.is_empty()) {
                        *unknown.borrow_mut().entry(id).or_default() += 1;
                    }
                    return Ok(());
                };
                table.apply_replayed(record, &mine)?;
                self.keep_within_memory().await
            };
            all.push(replay(&self.0.context.disk, log, on_corruption, apply).await?);
        }
        for (TableId(id), records) in unknown.into_inner() {
            let id = u128::from_be_bytes(id);
            if on_corruption == OnCorruption::Stop {
                return Err(Error::Invalid(format!(
                    "the commit log has {records} writes of a table {id:032x} that is not there: its folder is gone, or cannot be looked at. Bring it \
                     back, or have the log salvaged, which leaves them out"
                )));
            }
            tracing::warn!(table = %format_args!("{id:032x}"), records, "what the log has of a table that is not there is left out");
        }
        self.flush_all().await?;
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

    /// Flushes while memtables take too much.
    async fn keep_within_memory(&self) -> Result<()> {
        while let Some(table) = self.largest() {
            self.flush(&table).await?;
        }
        Ok(())
    }

    /// Tells the log what is in SSTables now, durably, and lets go of it.
    async fn mark(&self, id: TableId, up_to: LogPosition) -> Result<()> {
        let mark = Mark { first: self.0.log.first_segment(), up_to };
        self.0.log.append_mark(id, &mark.encode()).await?;
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

    /// Flushes the largest memtable whenever they take too much, and the oldest when the log is too long. What fails is tried again,
    /// unless it cannot go well any more; until then nothing is written.
    async fn flush_by_need(self) {
        loop {
            let next = self.0.memory.until(|| self.largest()).await;
            let Err(error) = self.flush(&next).await else { continue };
            let is_over = !may_pass(&error);
            tracing::warn!(table = %next.folder().display(), %error, is_over, "a flush has failed");
            *self.0.failed.borrow_mut() = Some(error);
            self.0.memory.notify();
            if is_over {
                return;
            }
            runtime::sleep(FLUSH_AGAIN_AFTER).await;
        }
    }

    /// The table to flush next, if one must.
    fn largest(&self) -> Option<Table> {
        if let Some(table) = self.0.log.pressure().iter().find_map(|id| self.table(*id)) {
            return Some(table);
        }
        if self.memtable_bytes() <= self.0.options.memtables {
            return None;
        }
        self.0.tables.borrow().values().max_by_key(|table| table.memtable_bytes()).cloned()
    }
}

/// Whether a flush that failed so may go well the next time.
fn may_pass(error: &Error) -> bool {
    !matches!(error, Error::LogFailed(_) | Error::InDoubt { .. } | Error::Unsettled { .. })
}

/// Hands out what a log of before has that is in no SSTable yet: the table and the mutation, as [`model::flat::put_mutation`]
/// encodes it, in the order of the log. Nothing on the disk changes.
///
/// # Errors
/// Damage that no crash explains, if it is not to be salvaged; what the operating system or `apply` says.
pub async fn replay(
    disk: &Disk,
    log: &EarlierLog,
    on_corruption: OnCorruption,
    mut apply: impl AsyncFnMut(TableId, &[u8]) -> Result<()>,
) -> Result<Replayed> {
    let mut marks = Marks::default();
    let note = async |_, id, record: &[u8]| {
        marks.note(id, record);
        Ok(())
    };
    let mut reader = log.reader(disk, on_corruption);
    reader.replay(note).await?;
    let apply = async |position, id, record: &[u8]| {
        let is_due = Mark::decode(record).is_none() && !marks.cover(id, position) && !log.leaves_out(id);
        if is_due { apply(log.table_of(id), record).await } else { Ok(()) }
    };
    reader.replay(apply).await
}

/// The first byte of a mark; mutations begin with the version of their encoding.
const MARK: u8 = 0xff;

/// The record that a flush leaves in the log: all of a table is in SSTables that is in these segments and not behind
/// `up_to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    /// The segment that the log began with when it was opened.
    first: u64,
    up_to: LogPosition,
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let mut record = vec![MARK];
        for number in [self.first, self.up_to.segment, self.up_to.offset] {
            record.extend_from_slice(&number.to_be_bytes());
        }
        record
    }

    fn decode(record: &[u8]) -> Option<Mark> {
        let (numbers, []) = record.strip_prefix(&[MARK])?.as_chunks::<8>() else { return None };
        let &[first, segment, offset] = <&[[u8; 8]; 3]>::try_from(numbers).ok()?;
        let [first, segment, offset] = [first, segment, offset].map(u64::from_be_bytes);
        Some(Mark { first, up_to: LogPosition { segment, offset } })
    }
}

/// What the marks in a log cover: of each table, up to where from which segment on.
#[derive(Debug, Default)]
struct Marks(BTreeMap<(TableId, u64), LogPosition>);

impl Marks {
    /// Takes notice of a record, if it is a mark.
    fn note(&mut self, id: TableId, record: &[u8]) {
        if let Some(Mark { first, up_to }) = Mark::decode(record) {
            let known = self.0.entry((id, first)).or_default();
            *known = up_to.max(*known);
        }
    }

    fn cover(&self, id: TableId, position: LogPosition) -> bool {
        // The latest that began by then: the earlier ones ended before it began.
        let session = self.0.range((id, 0)..=(id, position.segment)).next_back();
        session.is_some_and(|(_, up_to)| position <= *up_to)
    }
}

#[cfg(test)]
mod tests {
    use model::flat;

    use super::*;

    const A: TableId = TableId([1; 16]);
    const B: TableId = TableId([2; 16]);

    const fn at(segment: u64, offset: u64) -> LogPosition {
        LogPosition { segment, offset }
    }

    #[test]
    fn a_mark_is_read_back_and_nothing_else_is_one() {
        let mark = Mark { first: 5, up_to: at(7, 1 << 40) };
        assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        assert_eq!(Mark::decode(&[flat::VERSION; 25]), None);
        assert_eq!(Mark::decode(&mark.encode()[..24]), None);
        assert_eq!(Mark::decode(&[mark.encode(), vec![0]].concat()), None);
    }

    #[test]
    fn a_mark_covers_only_what_its_own_log_has_of_the_table() {
        let mut marks = Marks::default();
        for (first, up_to) in [(10, at(12, 50)), (20, at(21, 7)), (10, at(11, 0))] {
            marks.note(A, &Mark { first, up_to }.encode());
        }
        marks.note(A, &[flat::VERSION; 25]);
        let covered = [at(10, 0), at(11, 99), at(12, 50), at(20, 0), at(21, 7)];
        let not = [at(9, 1), at(12, 51), at(13, 0), at(19, 1), at(21, 8), at(22, 0)];
        assert!(covered.iter().all(|at| marks.cover(A, *at) && !marks.cover(B, *at)));
        assert!(!not.iter().any(|at| marks.cover(A, *at)));
    }
}
