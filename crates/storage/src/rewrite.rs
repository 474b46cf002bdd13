//! SSTables merged into new ones, without what may be forgotten: what every compaction does.
//!
//! The new SSTables take the place of the old ones at once, by a [`Transaction`]: in the folder, and in the set that reads
//! begin with. Whatever fails before leaves all as it was. Columns that the table does not know, as those of an older schema, stay.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use model::hex::to_hex;
use model::merge::{ColumnMap, MergeError, with_unknown};
use model::purge::{Purge, PurgeRules};
use model::{Fragment, FragmentReader, PartitionKey, Schema};
use runtime::{Signal, monotonic};
use sstable::component::Descriptor;
use sstable::parts::statistics::EncodingStats;
use sstable::{SSTableWriter, Version, WriteOptions};

use crate::compaction::{Job, Reason};
use crate::definition::Definition;
use crate::outside::Outside;
use crate::sstable_set::Member;
use crate::table::Table;
use crate::transaction::{Transaction, TransactionKind};
use crate::{Error, Result};

mod inputs;

use inputs::read_all;

/// Partitions of more bytes than this are warned of, as Cassandra does from 100 MiB on.
pub const LARGE_PARTITION: u64 = 100 << 20;

/// Partitions of more tombstones than this are warned of.
pub const MANY_TOMBSTONES: u64 = 100_000;

/// So many partitions are remembered of which something was purged; if it is more, it may be any.
const PURGED: usize = 10_000;

/// After so many fragments others may go on.
const TURN: usize = 512;

/// What SSTables are made into.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The SSTables that are merged.
    pub inputs: Vec<Rc<Member>>,
    /// SSTables that go with them, unread.
    pub expired: Vec<Rc<Member>>,
    /// How the new ones are made.
    pub job: Job,
}

impl Rewrite {
    /// Merges these into one.
    pub fn into_one(inputs: Vec<Rc<Member>>) -> Rewrite {
        let generations = inputs.iter().map(|input| input.facts.generation.clone()).collect();
        Rewrite { inputs, expired: Vec::new(), job: Job::merging(generations, Reason::Major) }
    }

    fn gone(&self) -> Vec<Rc<Member>> {
        self.inputs.iter().chain(&self.expired).cloned().collect()
    }
}

/// How a rewrite that is under way is followed and held back. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Control(Rc<State>);

#[derive(Debug, Default)]
struct State {
    is_cancelled: Cell<bool>,
    done: Cell<u64>,
    total: Cell<u64>,
    bytes_per_second: Cell<Option<u64>>,
    /// Somebody wants it to stop, or to hurry.
    changed: Signal,
}

impl Control {
    /// One that holds back to so many bytes of new data a second.
    pub fn throttled(bytes_per_second: Option<u64>) -> Control {
        let control = Control::default();
        control.0.bytes_per_second.set(bytes_per_second);
        control
    }

    /// Lets the rewrite go as fast as it can from now on.
    pub fn hurry(&self) {
        self.0.bytes_per_second.set(None);
        self.0.changed.notify();
    }

    /// Makes the rewrite stop as soon as it can, with [`Error::Cancelled`], and leave all as it was.
    pub fn cancel(&self) {
        self.0.is_cancelled.set(true);
        self.0.changed.notify();
    }

    /// Waits, unless somebody wants it to stop or to hurry.
    async fn hold_back(&self, time: Duration) {
        let State { is_cancelled, bytes_per_second, changed, .. } = &*self.0;
        let is_wanted = || (is_cancelled.get() || bytes_per_second.get().is_none()).then_some(());
        runtime::timeout(time, changed.until(is_wanted)).await;
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it does not.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.is_cancelled.get() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Bytes of uncompressed data that were written, and about how many there will be at the most.
    pub fn progress(&self) -> (u64, u64) {
        (self.0.done.get(), self.0.total.get())
    }
}

impl Table {
    /// Merges SSTables of this table into new ones, and puts these in their place. Nothing is done if there are none.
    /// They are of [`Table::compactable`], and nobody else is at work on them. What the table's version cannot hold, as what expires after
    /// 2038, is written as `oa`; in a table of `oa`, what that cannot hold as `nb`.
    ///
    /// # Errors
    /// What cannot be read or written, and [`Error::Cancelled`]; all is then as it was.
    pub async fn rewrite(&self, rewrite: &Rewrite, control: &Control) -> Result<Vec<Rc<Member>>> {
        if rewrite.gone().is_empty() {
            return Ok(Vec::new());
        }
        let definition = self.definition();
        match self.rewrite_as(definition.version, rewrite, control).await {
            Err(Error::SSTable(sstable::Error::Unfit { what, .. })) if definition.fallback().is_some() => {
                tracing::info!(table = %self.folder().display(), what, "it is merged into the version that holds it");
                self.rewrite_as(definition.fallback().expect("there is one"), rewrite, control).await
            }
            done => done,
        }
    }

    async fn rewrite_as(
        &self,
        version: Version,
        rewrite: &Rewrite,
        control: &Control,
    ) -> Result<Vec<Rc<Member>>> {
        let (context, gone) = (self.context(), rewrite.gone());
        let kind = TransactionKind::Compaction;
        let mut transaction =
            Transaction::begin(&context.disk, &context.clock, self.folder(), version, kind).await?;
        let purged = RefCell::new(Purged { is_any: !rewrite.expired.is_empty(), ..Purged::default() });
        match Rewriter::new(self, version, rewrite, control).run(&mut transaction, &purged).await {
            Ok(new) => self.replace((&gone, new), &purged.into_inner(), transaction).await,
            Err(error) => {
                // Whatever is left says no more than the error.
                drop(transaction.abort().await);
                Err(error)
            }
        }
    }

    async fn replace(
        &self,
        (gone, new): (&[Rc<Member>], Vec<Rc<Member>>),
        purged: &Purged,
        mut transaction: Transaction,
    ) -> Result<Vec<Rc<Member>>> {
        self.leave(gone);
        if let Err(error) = transaction.remove(gone.iter().map(|member| member.sstable.descriptor())).await {
            if transaction.abort().await.is_ok() {
                self.stay(gone);
            }
            return Err(error);
        }
        match transaction.commit().await {
            Ok(committed) => {
                self.set_members(gone, &new);
                self.row_cache().purged(purged.keys());
                self.stay(gone);
                if let Err(error) = committed.remove_old().await {
                    // They are of no table any more; the next clean-up of the folder tries again.
                    tracing::warn!(table = %self.folder().display(), %error, "SSTables that were merged stay on the disk");
                }
                Ok(new)
            }
            Err(in_doubt @ Error::InDoubt { .. }) => Err(in_doubt),
            Err(error) => {
                self.stay(gone);
                Err(error)
            }
        }
    }

    /// Tells of a partition that makes reads and compactions slow.
    fn warn_of(&self, key: &PartitionKey, bytes: u64, tombstones: u64) {
        let table = self.folder().display();
        if bytes > LARGE_PARTITION {
            tracing::warn!(%table, partition = to_hex(&key.bytes), bytes, "a large partition was compacted");
        }
        if tombstones > MANY_TOMBSTONES {
            tracing::warn!(%table, partition = to_hex(&key.bytes), tombstones, "a partition has many tombstones");
        }
    }
}

/// The partitions of which something may have been purged.
#[derive(Debug, Default)]
struct Purged {
    keys: BTreeSet<PartitionKey>,
    is_any: bool,
}

impl Purged {
    fn note(&mut self, key: &PartitionKey) {
        self.is_any |= self.keys.len() == PURGED;
        if !self.is_any {
            self.keys.insert(key.clone());
        }
    }

    /// `None` if it may be any.
    fn keys(&self) -> Option<&BTreeSet<PartitionKey>> {
        (!self.is_any).then_some(&self.keys)
    }
}

/// Writes the merge of some SSTables.
struct Rewriter<'a> {
    table: &'a Table,
    version: Version,
    rewrite: &'a Rewrite,
    control: &'a Control,
    options: WriteOptions,
    /// The columns of the table, and those of the SSTables that it does not know: what they hold stays.
    schema: Rc<Schema>,
    encoding: EncodingStats,
    writer: Option<SSTableWriter>,
    new: Vec<Descriptor>,
    /// Bytes on disk of the SSTables that are done.
    finished: Vec<u64>,
    /// Their uncompressed bytes.
    before: u64,
    begun: Duration,
    partition: Option<PartitionSoFar>,
}

/// What is counted of the partition that is being written.
struct PartitionSoFar {
    key: PartitionKey,
    start: u64,
    tombstones: u64,
}

impl<'a> Rewriter<'a> {
    fn new(table: &'a Table, version: Version, rewrite: &'a Rewrite, control: &'a Control) -> Rewriter<'a> {
        let mut options = table.definition().write.clone();
        if let Some(input) = rewrite.inputs.first() {
            // Repaired at different times, or all of them not: what is known of all is the first time.
            let repaired_at = rewrite.inputs.iter().map(|input| input.facts.repaired_at).min();
            (options.repaired_at, options.pending_repair) =
                (repaired_at.unwrap_or_default(), input.facts.pending_repair);
        }
        let total = rewrite.inputs.iter().map(|input| input.sstable.data().file.len()).sum();
        control.0.total.set(total);
        Rewriter {
            table,
            version,
            rewrite,
            control,
            options,
            schema: table.definition().schema.clone(),
            encoding: EncodingStats::of_all(
                rewrite.inputs.iter().map(|input| &input.sstable.statistics().stats),
            ),
            writer: None,
            new: Vec::new(),
            finished: Vec::new(),
            before: 0,
            begun: monotonic(),
            partition: None,
        }
    }

    async fn run(
        mut self,
        transaction: &mut Transaction,
        purged: &RefCell<Purged>,
    ) -> Result<Vec<Rc<Member>>> {
        if let Err(error) = self.write_all(transaction, purged).await {
            if let Some(writer) = self.writer.take() {
                // Whatever is left says no more than the error.
                drop(writer.abandon().await);
            }
            return Err(error);
        }
        let mut members = Vec::new();
        for descriptor in &self.new {
            members.push(self.table.open_written(descriptor).await?);
        }
        Ok(members)
    }

    async fn write_all(&mut self, transaction: &mut Transaction, purged: &RefCell<Purged>) -> Result<()> {
        let definition = self.table.definition();
        let columns = self.take_columns(&definition)?;
        let merged = read_all(&self.rewrite.inputs, columns, &self.schema).await?;
        let now = self.table.context().clock.now_seconds();
        let mut rules = PurgeRules::new(now, definition.gc_grace_seconds);
        if definition.compaction.only_purge_repaired_tombstones && self.options.repaired_at == 0 {
            rules.gc_before = i64::MIN;
        }
        // What has expired as a whole deletes nothing that is outside, so it counts as gone.
        let outside = Outside::new(self.table, self.rewrite.gone());
        let may_purge = self.rewrite.inputs.iter().any(|input| may_purge(input, rules.gc_before));
        let merged = outside.awaited_by(merged, may_purge);
        // It is asked where there is something that is old enough.
        let limit = |key: &PartitionKey| {
            purged.borrow_mut().note(key);
            outside.least(key)
        };
        let mut left = Purge::new(merged, rules, limit);
        let (mut turn, mut fragment) = (0, Fragment::default());
        while left.advance(&mut fragment).await? {
            self.push(&fragment, transaction).await?;
            turn += 1;
            if turn < TURN
                && let Some(writer) = &mut self.writer
            {
                turn += writer.push_flat(&mut left, TURN - turn).await?;
            }
            if turn == TURN {
                turn = 0;
                self.take_turns().await?;
            }
        }
        if self.control.0.is_cancelled.get() {
            return Err(Error::Cancelled);
        }
        self.seal().await
    }

    /// Finds the columns of what is written, and how the rows of each SSTable are brought to them.
    fn take_columns(&mut self, definition: &Definition) -> Result<Vec<ColumnMap>> {
        let inputs = &self.rewrite.inputs;
        let schemas: Vec<&Schema> = inputs.iter().map(|input| &**input.sstable.schema()).collect();
        let unfit = |error: MergeError| Error::Invalid(format!("{}: {error}", self.table.folder().display()));
        let is_dropped = |name: &[u8]| definition.dropped_at(name).is_some();
        let Some(wider) = with_unknown(&definition.schema, &schemas, is_dropped).map_err(unfit)? else {
            return Ok(inputs.iter().map(|input| input.columns.clone()).collect());
        };
        let onto =
            |source| ColumnMap::onto(source, &wider, |name| definition.dropped_at(name)).map_err(unfit);
        let maps = schemas.into_iter().map(onto).collect::<Result<_>>()?;
        self.schema = Rc::new(wider);
        Ok(maps)
    }

    async fn push(&mut self, fragment: &Fragment, transaction: &mut Transaction) -> Result<()> {
        if matches!(fragment, Fragment::PartitionStart(_)) {
            self.begin_partition(transaction).await?;
        }
        let writer = self.writer.as_mut().expect("it was made for the partition");
        let before = writer.position();
        writer.push(fragment).await?;
        self.count(fragment, before);
        Ok(())
    }

    /// Goes on to the next SSTable if this one is large enough.
    async fn begin_partition(&mut self, transaction: &mut Transaction) -> Result<()> {
        let is_full = |writer: &SSTableWriter| {
            self.rewrite.job.max_output_bytes.is_some_and(|largest| bytes_on_disk(writer) >= largest)
        };
        if self.writer.as_ref().is_some_and(is_full) {
            self.seal().await?;
        }
        if self.writer.is_none() {
            let descriptor = self.table.next_descriptor(self.version);
            transaction.add(&descriptor).await?;
            self.options.level = self.rewrite.job.level_of_next(&self.finished);
            let (disk, options) = (&self.table.context().disk, self.options.clone());
            let (descriptor_of_it, schema) = (descriptor.clone(), &self.schema);
            self.writer =
                Some(SSTableWriter::create(disk, descriptor_of_it, schema, self.encoding, options).await?);
            self.new.push(descriptor);
        }
        Ok(())
    }

    async fn seal(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.before += writer.position();
            self.finished.push(writer.seal().await?.data_file_len);
        }
        Ok(())
    }

    /// Lets others go on, and holds back if this goes too fast.
    async fn take_turns(&mut self) -> Result<()> {
        let done = self.before + self.writer.as_ref().map_or(0, SSTableWriter::position);
        self.control.0.done.set(done);
        runtime::yield_now().await;
        if let Some(bytes) = self.control.0.bytes_per_second.get() {
            let due = self.begun + Duration::from_secs_f64(done as f64 / bytes.max(1) as f64);
            if let Some(early) = due.checked_sub(monotonic()) {
                self.control.hold_back(early).await;
            }
        }
        self.control.check()
    }

    /// Counts what is in the partition, and warns where it is much. `at` is where the fragment begins.
    fn count(&mut self, fragment: &Fragment, at: u64) {
        match fragment {
            Fragment::PartitionStart(start) => {
                let tombstones = u64::from(!start.deletion.is_live());
                self.partition = Some(PartitionSoFar { key: start.key.clone(), start: at, tombstones });
            }
            Fragment::PartitionEnd => {
                if let Some(partition) = self.partition.take() {
                    self.table.warn_of(&partition.key, at - partition.start, partition.tombstones);
                }
            }
            Fragment::RangeTombstone(_) => self.add_tombstones(1),
            Fragment::Row(row) | Fragment::StaticRow(row) => {
                let cells = row.cells.iter().filter(|cell| cell.is_tombstone()).count() as u64;
                let rows = u64::from(!row.row_deletion().is_live());
                self.add_tombstones(cells + rows + row.complex_deletions.len() as u64);
            }
        }
    }

    fn add_tombstones(&mut self, count: u64) {
        self.partition.iter_mut().for_each(|partition| partition.tombstones += count);
    }
}

/// Whether an SSTable may have a tombstone of before that second, or what becomes one: a cell that has expired counts from when it was
/// written on. Where its statistics are wrong, less is purged.
fn may_purge(member: &Member, gc_before: i64) -> bool {
    let stats = &member.sstable.statistics().stats;
    stats.min_local_deletion_time.saturating_sub(i64::from(stats.max_ttl)) < gc_before
}

/// How large Data.db will be, about, if nothing more comes: what is not packed yet is taken to pack as well as the rest.
fn bytes_on_disk(writer: &SSTableWriter) -> u64 {
    let (data, disk) = writer.packed();
    let rest = writer.position() - data;
    disk + if data == 0 { rest } else { (rest as f64 * disk as f64 / data as f64) as u64 }
}
