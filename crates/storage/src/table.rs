//! A table of one shard: writes go into its memtable, and reads merge its memtables, caches and SSTables.
//!
//! ```text
//! apply ──► active memtable ──freeze──► flushing memtables ──SSTableWriter──► SSTable set
//! read  ◄── merge ◄── all of these
//! ```
//!
//! Each change that reads can see, such as freezing a memtable or replacing it by an SSTable, is done between two awaits: no read sees half
//! of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Bytes, Mutation, PartitionKey, Token, flat};
use runtime::{Cache, Clock, Disk, Signal};
use sstable::component::{Component, Descriptor};
use sstable::parts::bloom_pages::FilterPages;
use sstable::writer::remove_leftovers;
use sstable::{OpenOptions, SSTableWriter, Version};

use crate::batches::MOST_AT_ONCE;
use crate::commit_log::LogPosition;
use crate::compaction::Generation;
use crate::definition::Definition;
use crate::memtable::{Checked, Memtable, MemtableReader};
use crate::row_cache::RowCache;
use crate::shared::Tokens;
use crate::single_key::{Adaptive, SingleKeyStats};
use crate::source::{self, MOST_AT_HAND};
use crate::sstable_set::{MapletMemory, Member, SSTableSet, These, Undeleted};
use crate::transaction::{Transaction, TransactionKind};
use crate::{Error, Result, transaction};

use self::denials::Denials;
use self::gathering::Gathering;

mod denials;
mod gathering;
mod opening;
mod reads;

pub use opening::{Part, has_many, look};
pub use reads::{Begun, Caching, Fetched, ReadRequest, Teaching, Unread};

/// What the tables of a shard share.
#[derive(Clone)]
pub struct Context {
    /// The disk.
    pub disk: Disk,
    /// The clock.
    pub clock: Clock,
    /// What is kept of SSTables: pages of their indexes, blocks, and the row cache.
    pub cache: Cache,
    /// Where the pages of their filters are: in the same cache, and some at hand.
    pub filter_pages: FilterPages,
    /// What maplets take of the cache's memory.
    pub maplet_memory: MapletMemory,
    /// Bytes of memory that the memtables of all tables take: each write asks, however many tables there are.
    pub(crate) memtable_bytes: Rc<Cell<usize>>,
}

impl Context {
    /// On this disk and by this clock, with everything that is kept of SSTables in this cache.
    pub fn new(disk: Disk, clock: Clock, cache: Cache) -> Context {
        let (filter_pages, maplet_memory) = (FilterPages::new(&cache), MapletMemory::new(&cache));
        let memtable_bytes = Rc::default();
        Context { disk, clock, cache, filter_pages, maplet_memory, memtable_bytes }
    }
}

/// The numbers of a table's SSTables: each is given once, to whichever shard asks.
#[derive(Clone, Debug, Default)]
pub struct Generations(Arc<AtomicU64>);

/// A table of one shard.
#[derive(Clone)]
pub struct Table(Rc<Inner>);

struct Inner {
    context: Context,
    folder: PathBuf,
    generations: Generations,
    definition: RefCell<Rc<Definition>>,
    memtables: RefCell<Memtables>,
    set: RefCell<Rc<SSTableSet>>,
    gathering: Gathering,
    row_cache: RowCache,
    adaptive: Adaptive,
    denials: Denials,
    is_flushing: Cell<bool>,
    /// A flush has ended.
    flushing: Signal,
    /// SSTables of which the commit log does not know yet.
    unmarked: RefCell<Vec<Rc<Member>>>,
    /// The part of the ring that is read.
    tokens: Cell<Tokens>,
    /// SSTables that are going, or that went or not when that did not come to its end.
    leaving: RefCell<Vec<Rc<Member>>>,
    /// Whether an SSTable of the oldest memtable may be there that is not in the set.
    is_in_doubt: Cell<bool>,
    /// Whether the table goes, and its SSTables are not compacted any more.
    is_left: Cell<bool>,
    /// Whether what its memtables take is among that of all tables.
    is_counted: Cell<bool>,
    /// SSTables that could not be merged, nor what they were merged with: only who asks for it tries that again.
    set_aside: RefCell<BTreeSet<Generation>>,
    /// How many keep compactions off for a while.
    kept_off: Cell<isize>,
}

/// The memtables of a table.
struct Memtables {
    active: Rc<Memtable>,
    /// Those that are on their way into SSTables, the oldest first.
    frozen: Vec<Rc<Memtable>>,
}

/// Brings to its end what was under way in a table's folder when its process ended, ours or Cassandra's. To be done once
/// before shards open it.
///
/// # Errors
/// Those of [`transaction::clean_up()`].
pub async fn clean_folder(disk: &Disk, folder: &Path) -> Result<()> {
    for cleaned in transaction::clean_up(disk, folder).await? {
        tracing::info!(table = %folder.display(), ?cleaned, "a change of SSTables was brought to its end");
    }
    for removed in remove_leftovers(disk, folder).await? {
        tracing::info!(file = %removed.display(), "a file that was never whole was removed");
    }
    Ok(())
}

impl Table {
    /// Opens the table in a folder, with whatever SSTables are there.
    ///
    /// # Errors
    /// SSTables that cannot be read, or are not the table's; what the operating system says.
    pub async fn open(
        context: &Context,
        folder: &Path,
        definition: Definition,
        generations: &Generations,
    ) -> Result<Table> {
        Table::open_part(context, folder, definition, generations, &Part::default()).await
    }

    /// The same of a part of the ring, which is all that the table is asked for: SSTables without partitions of it are closed again, or not
    /// opened at all.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    pub async fn open_part(
        context: &Context,
        folder: &Path,
        definition: Definition,
        generations: &Generations,
        part: &Part,
    ) -> Result<Table> {
        let definition = Rc::new(definition);
        let files = context.disk.list(folder)?;
        // Also of what is none: its files are somebody's.
        files.iter().filter_map(|file| Descriptor::parse(file).ok()).for_each(|name| generations.saw(&name));
        let members = opening::open_all(context, folder, &files, &definition, part).await?;
        warn_of_unknown_columns(folder, &members, &definition);
        let active = Rc::new(Memtable::new(&definition.schema));
        let undeleted = Undeleted::new(&context.cache, &context.disk);
        let table = Table(Rc::new(Inner {
            context: context.clone(),
            folder: folder.to_path_buf(),
            generations: generations.clone(),
            row_cache: RowCache::new(context, &definition.schema),
            adaptive: Adaptive::new(definition.single_key_parallel_scan_threshold),
            denials: Denials::default(),
            definition: RefCell::new(definition),
            memtables: RefCell::new(Memtables { active, frozen: Vec::new() }),
            set: RefCell::new(Rc::new(SSTableSet::new(members, undeleted))),
            gathering: Gathering::default(),
            is_flushing: Cell::new(false),
            flushing: Signal::new(),
            unmarked: RefCell::default(),
            tokens: Cell::new(part.tokens),
            leaving: RefCell::default(),
            is_in_doubt: Cell::new(false),
            is_left: Cell::new(false),
            is_counted: Cell::new(true),
            set_aside: RefCell::default(),
            kept_off: Cell::new(0),
        }));
        table.begin_gathering();
        Ok(table)
    }

    /// What the table is.
    pub fn definition(&self) -> Rc<Definition> {
        self.0.definition.borrow().clone()
    }

    /// The folder of its SSTables.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Its SSTables as they are now.
    pub fn sstables(&self) -> Rc<SSTableSet> {
        self.0.set.borrow().clone()
    }

    /// Writes a mutation to the memtable; `position` is where the commit log has it.
    ///
    /// # Panics
    /// If the rows or ranges of the mutation are out of order.
    pub fn apply(&self, mutation: &Mutation, position: LogPosition) {
        self.apply_checked(Checked::of(mutation, &self.definition().schema), position);
    }

    /// Writes what was looked through.
    pub(crate) fn apply_checked(&self, checked: Checked, position: LogPosition) {
        if !checked.is_empty() {
            let active = &self.0.memtables.borrow().active;
            let before = active.bytes();
            active.apply(checked, position);
            self.0.count_memtables(before, active.bytes());
        }
    }

    /// Writes a mutation of a log of before, as [`model::flat::put_mutation`] encodes it, if its partition is `mine`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for bytes that are no mutation, or one out of order.
    pub fn apply_replayed(&self, record: &[u8], mine: impl Fn(&PartitionKey) -> bool) -> Result<()> {
        let (bytes, schema) = (Bytes::from(record), self.definition().schema.clone());
        let key = flat::mutation_key(&bytes).map_err(|error| Error::Invalid(error.to_string()))?;
        // Each shard goes over all that there is.
        if mine(&key) {
            Checked::check(&bytes, &schema)?;
            self.apply_checked(Checked::new(&bytes, &schema)?, LogPosition::default());
        }
        Ok(())
    }

    /// What the table shares with the others of its shard.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Bytes of memory that memtables take, those that are being flushed included.
    pub fn memtable_bytes(&self) -> usize {
        self.0.memtables.borrow().bytes()
    }

    /// The table is removed: once no flush of it is under way its memtables go, and are not among those of all tables any more.
    pub(crate) async fn leave_memtables(&self) {
        let _turn = self.flushing_turn().await;
        self.0.count_memtables(self.memtable_bytes(), 0);
        self.0.is_counted.set(false);
        let schema = self.definition().schema.clone();
        let mut memtables = self.0.memtables.borrow_mut();
        memtables.active = Rc::new(Memtable::new(&schema));
        memtables.frozen.clear();
    }

    /// Bytes of memory that a slice takes while it is read of a single SSTable, about: who reads a row asks for a permit for so much before the
    /// read begins, as most are in few of the SSTables, and then for what the read [takes](Table::memory_of).
    pub fn least_memory(&self, reads_on: bool) -> usize {
        source::slice_memory(1, self.0.set.borrow().largest_chunk(), reads_on)
    }

    /// Bytes of memory that a read which has begun takes until it is at its end, about, by who [reads on](ReadRequest::reads_on) or does
    /// not: that of the SSTables which may have something of it.
    pub fn memory_of(&self, begun: &Begun<'_>, reads_on: bool) -> usize {
        match begun.sstables() {
            // Those that follow each other are not read at once.
            Some(count) if count > MOST_AT_ONCE => {
                let largest_chunk = self.0.set.borrow().largest_chunk();
                self.slice_memory(reads_on).min(source::slice_memory(count, largest_chunk, reads_on))
            }
            Some(count) => source::slice_memory(count, self.0.set.borrow().largest_chunk(), reads_on),
            None => self.slice_memory(reads_on),
        }
    }

    /// Bytes of memory that any slice of a partition takes while it is read, about, whichever SSTables have it.
    pub fn slice_memory(&self, reads_on: bool) -> usize {
        let set = self.0.set.borrow();
        source::slice_memory(set.depth(&self.definition().schema).slice, set.largest_chunk(), reads_on)
    }

    /// The same for a scan of all partitions.
    pub fn scan_memory(&self) -> usize {
        let set = self.0.set.borrow();
        source::scan_memory(set.depth(&self.definition().schema).scan, set.largest_chunk())
    }

    /// What is kept of the table's rows beside its memtables.
    pub fn row_cache(&self) -> &RowCache {
        &self.0.row_cache
    }

    /// What single-row reads did.
    pub fn single_key_stats(&self) -> SingleKeyStats {
        self.0.adaptive.stats()
    }

    /// Writes what is in the memtable to an SSTable, and waits for it; also for a flush that is under way. `end` tells where
    /// the commit log ends. `mark` is told then up to where it is in SSTables, and whether there are any that were not
    /// marked; until it is done these are not compacted.
    ///
    /// # Errors
    /// What the operating system says; the rows are then still in memory, and flushed again by the next flush. What
    /// `mark` says.
    pub async fn flush(
        &self,
        end: impl FnOnce() -> LogPosition,
        mark: impl AsyncFnOnce(LogPosition, bool) -> Result<()>,
    ) -> Result<()> {
        let _turn = self.flushing_turn().await;
        self.freeze();
        let end = end();
        while let Some(memtable) = self.oldest_frozen() {
            self.flush_memtable(&memtable).await?;
        }
        let is_new = !self.0.unmarked.borrow().is_empty();
        mark(end, is_new).await?;
        self.0.unmarked.borrow_mut().clear();
        Ok(())
    }

    /// Waits until nobody flushes. Nobody else does as long as the turn is held.
    async fn flushing_turn(&self) -> FlushingTurn<'_> {
        let is_free = || (!self.0.is_flushing.replace(true)).then_some(());
        self.0.flushing.until(is_free).await;
        FlushingTurn(&self.0)
    }

    /// What is written from now on goes into a new memtable.
    fn freeze(&self) {
        let schema = self.definition().schema.clone();
        let mut memtables = self.0.memtables.borrow_mut();
        if !memtables.active.is_empty() {
            let frozen = std::mem::replace(&mut memtables.active, Rc::new(Memtable::new(&schema)));
            memtables.frozen.push(frozen);
        }
    }

    fn oldest_frozen(&self) -> Option<Rc<Memtable>> {
        self.0.memtables.borrow().frozen.first().cloned()
    }

    async fn flush_memtable(&self, memtable: &Rc<Memtable>) -> Result<()> {
        if self.0.is_in_doubt.get() {
            return Err(Error::Unsettled { folder: self.0.folder.clone() });
        }
        let definition = self.definition();
        let (member, transaction) = match self.write_memtable(memtable, definition.version).await {
            Err(Error::SSTable(sstable::Error::Unfit { what, .. })) if definition.fallback().is_some() => {
                // Written when the table had another version.
                tracing::info!(table = %self.0.folder.display(), what, "it is flushed into the version that holds it");
                self.write_memtable(memtable, definition.fallback().expect("there is one")).await?
            }
            written => written?,
        };
        self.0.is_in_doubt.set(true);
        let committed = transaction.commit().await;
        self.0.is_in_doubt.set(matches!(committed, Err(Error::InDoubt { .. })));
        let committed = committed?;
        // From here on without a wait: the SSTable takes the memtable's place.
        self.0.unmarked.borrow_mut().push(member.clone());
        self.set_members(&[], &[member]);
        self.0.row_cache.flushed(memtable);
        self.0.memtables.borrow_mut().frozen.retain(|frozen| !Rc::ptr_eq(frozen, memtable));
        self.0.count_memtables(memtable.bytes(), 0);
        // What stays of the transaction's log does no harm.
        drop(committed.remove_old().await);
        Ok(())
    }

    /// Writes what is in a memtable as an SSTable, which is one once the transaction is committed.
    async fn write_memtable(
        &self,
        memtable: &Rc<Memtable>,
        version: Version,
    ) -> Result<(Rc<Member>, Transaction)> {
        let Context { disk, clock, .. } = &self.0.context;
        let kind = TransactionKind::Flush;
        let mut transaction = Transaction::begin(disk, clock, &self.0.folder, version, kind).await?;
        match self.write_rows_of(memtable, version, &mut transaction).await {
            Ok(member) => Ok((member, transaction)),
            Err(error) => {
                // Whatever is left says no more than the error.
                drop(transaction.abort().await);
                Err(error)
            }
        }
    }

    async fn write_rows_of(
        &self,
        memtable: &Rc<Memtable>,
        version: Version,
        transaction: &mut Transaction,
    ) -> Result<Rc<Member>> {
        let descriptor = self.next_descriptor(version);
        transaction.add(&descriptor).await?;
        let options = self.definition().write.clone();
        let (disk, schema) = (&self.0.context.disk, memtable.schema());
        let encoding = memtable.encoding();
        let mut writer = SSTableWriter::create(disk, descriptor.clone(), schema, encoding, options).await?;
        let mut rows = MemtableReader::scan(memtable, None, Token::MAX);
        if let Err(error) = writer.push_all(&mut rows, &mut |_| ()).await {
            // Whatever is left says no more than the error.
            drop(writer.abandon().await);
            return Err(error);
        }
        writer.seal().await?;
        self.open_written(&descriptor).await
    }

    /// SSTables take the place of others.
    pub(crate) fn set_members(&self, gone: &[Rc<Member>], new: &[Rc<Member>]) {
        let set = self.sstables().replaced(gone, new.iter().cloned());
        *self.0.set.borrow_mut() = Rc::new(set);
    }

    /// The SSTables that may be compacted now: all whose rows a replay of the log would not bring back, that are not going
    /// already, and that have no rows of other shards ([`crate::shared`]).
    pub fn compactable(&self) -> Vec<Rc<Member>> {
        let unmarked = self.0.unmarked.borrow();
        let is_free = |member: &&Rc<Member>| {
            self.is_own(member) && !self.is_leaving(member) && !unmarked.iter().any(|other| other.is(member))
        };
        self.sstables().members().iter().filter(is_free).cloned().collect()
    }

    /// Whether an SSTable is about to go, or may be.
    pub(crate) fn is_leaving(&self, member: &Member) -> bool {
        self.0.leaving.borrow().iter().any(|other| other.is(member))
    }

    /// These SSTables are about to go. Unless it is certain that they stay, they are not compacted any more: an attempt
    /// that did not come to its end may turn out to have been one that did, and what was made of them since would be
    /// there beside what was made of them then.
    pub(crate) fn leave(&self, members: &[Rc<Member>]) {
        self.0.leaving.borrow_mut().extend_from_slice(members);
    }

    /// The table goes: its SSTables are not to be compacted any more.
    pub(crate) fn leave_for_good(&self) {
        self.0.is_left.set(true);
    }

    pub(crate) fn is_left(&self) -> bool {
        self.0.is_left.get()
    }

    /// These are not compacted by themselves any more.
    pub(crate) fn set_aside(&self, generations: impl IntoIterator<Item = Generation>) {
        self.0.set_aside.borrow_mut().extend(generations);
    }

    pub(crate) fn is_set_aside(&self, generation: &Generation) -> bool {
        self.0.set_aside.borrow().contains(generation)
    }

    /// One more, or one less, keeps compactions off.
    pub(crate) fn keep_compactions_off(&self, change: isize) {
        self.0.kept_off.update(|count| count + change);
    }

    pub(crate) fn is_kept_off(&self) -> bool {
        self.0.kept_off.get() > 0
    }

    /// Whether both are the same table.
    pub(crate) fn is(&self, other: &Table) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// These SSTables stay after all, or are gone.
    pub(crate) fn stay(&self, members: &[Rc<Member>]) {
        let these = These::of(members);
        self.0.leaving.borrow_mut().retain(|other| !these.have(other));
    }

    /// From here on the table is this one, of the same keys. Rows that were written before have the columns of then, and
    /// are brought to those of now as they are read. Waits for a flush that is under way. No compaction may be, and the
    /// log may have nothing that a replay would need: its columns are those of before.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the keys are others; nothing has changed then.
    pub async fn set_definition(&self, definition: Definition) -> Result<()> {
        let _turn = self.flushing_turn().await;
        let members = self.redefined(&definition)?;
        let set = match definition.caches_indexes {
            true => self.sstables().with_members(members),
            false => self.sstables().by_filters(members),
        };
        *self.0.set.borrow_mut() = Rc::new(set);
        *self.0.definition.borrow_mut() = Rc::new(definition);
        self.0.set_aside.take();
        self.0.row_cache.clear();
        self.freeze();
        self.0.memtables.borrow_mut().active = Rc::new(Memtable::new(&self.definition().schema));
        Ok(())
    }

    /// Whether the table can become this one.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if an SSTable has other keys, or columns of types that this does not hold.
    pub fn check_definition(&self, definition: &Definition) -> Result<()> {
        self.redefined(definition).map(drop)
    }

    /// The SSTables as those of a table that is defined so.
    fn redefined(&self, definition: &Definition) -> Result<Vec<Rc<Member>>> {
        let again = |member: &Rc<Member>| member.redefined(definition).map(Rc::new);
        self.sstables().members().iter().map(again).collect()
    }

    /// The part of the ring that is read.
    pub fn tokens(&self) -> Tokens {
        self.0.tokens.get()
    }

    pub(crate) fn set_tokens(&self, tokens: Tokens, set: SSTableSet) {
        self.0.tokens.set(tokens);
        *self.0.set.borrow_mut() = Rc::new(set);
        self.0.row_cache.clear();
    }

    /// The names of the next new SSTable.
    pub(crate) fn next_descriptor(&self, version: Version) -> Descriptor {
        Descriptor { dir: self.0.folder.clone(), version, generation: self.0.generations.next().to_string() }
    }

    /// Opens an SSTable that was written just now.
    pub(crate) async fn open_written(&self, descriptor: &Descriptor) -> Result<Rc<Member>> {
        let member = self.open_member(descriptor).await?;
        if descriptor.version == self.definition().version {
            member.note_as_defined();
        }
        Ok(member)
    }

    pub(crate) async fn open_member(&self, descriptor: &Descriptor) -> Result<Rc<Member>> {
        let (context, definition) = (&self.0.context, self.definition());
        let (path, options) = (descriptor.path_of(&Component::Data), open_options(context, &definition));
        Member::open(&context.disk, &path, &options, &definition).await
    }

    pub(crate) fn memtables(&self) -> Vec<Rc<Memtable>> {
        let memtables = self.0.memtables.borrow();
        let all = memtables.frozen.iter().chain([&memtables.active]);
        all.filter(|memtable| !memtable.is_empty()).cloned().collect()
    }
}

impl Memtables {
    fn bytes(&self) -> usize {
        self.active.bytes() + self.frozen.iter().map(|memtable| memtable.bytes()).sum::<usize>()
    }
}

impl Inner {
    /// So many bytes of memtables are there now where so many were.
    fn count_memtables(&self, before: usize, now: usize) {
        if self.is_counted.get() {
            self.context.memtable_bytes.update(|all| all + now - before);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.count_memtables(self.memtables.borrow().bytes(), 0);
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.0.folder).finish()
    }
}

/// The right to flush a table, until it is dropped.
struct FlushingTurn<'a>(&'a Inner);

impl Drop for FlushingTurn<'_> {
    fn drop(&mut self) {
        self.0.is_flushing.set(false);
        self.0.flushing.notify();
    }
}

impl Generations {
    /// The next number.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A number that is taken. Behind those that Cassandra reads, which are of 31 bits, nothing is counted on.
    pub fn saw(&self, descriptor: &Descriptor) {
        let number = descriptor.generation.parse().ok().filter(|number| *number < i32::MAX as u64);
        if let Some(number) = number {
            self.0.fetch_max(number, Ordering::Relaxed);
        }
    }
}

/// How SSTables of the table are opened.
fn open_options(context: &Context, definition: &Definition) -> OpenOptions {
    let cache = if definition.caches_indexes { context.cache.clone() } else { Cache::new(0) };
    let filter_pages = context.filter_pages.clone();
    // What is told of a column that was dropped, and came back, says nothing of the one before.
    let table = Some(definition.schema.clone()).filter(|_| definition.dropped.is_empty());
    OpenOptions { filter_pages, read_buffer: MOST_AT_HAND, table, ..OpenOptions::new(cache) }
}

/// Says, once a shard, what of the SSTables is not read, because the table is not known to have it.
fn warn_of_unknown_columns(folder: &Path, members: &[Rc<Member>], definition: &Definition) {
    let unknown: BTreeSet<String> =
        members.iter().flat_map(|member| member.unknown_columns(definition)).collect();
    if !unknown.is_empty() {
        let (table, columns) = (folder.display(), unknown.into_iter().collect::<Vec<_>>().join(", "));
        tracing::warn!(%table, columns, "SSTables have columns that the schema of their table does not have: they are not read");
    }
}
