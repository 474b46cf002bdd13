//! The state of a shard: its store, unless it only reads, and its part of each table.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use model::flat::{Habit, Outline};
use model::{PartitionKey, Token};
use runtime::{Cache, Shard, Signal};
use storage::admission::Admission;
use storage::commit_log::{EarlierLog, OnCorruption, Replayed, TableId};
use storage::transaction::Committed;
use storage::{Context, Definition, Generations, Part, Store, StoreOptions, Table, Tokens};

use super::locks::Locks;
use super::pending::Pending;
use super::shape::Shape;
use super::upkeep::Changed;
use crate::{Error, Result};

/// After so many questions that were answered without a wait, others go on.
pub(super) const ANSWERS_A_TURN: u64 = 64;

/// A shard from within.
pub(super) struct Worker {
    pub(super) shard: Shard,
    has_failed: Cell<bool>,
    answered: Cell<u64>,
    engine: OnceCell<Engine>,
    tables: RefCell<Tables>,
    /// The key of the last row that memory knew, for the next one.
    pub(super) spare_key: Cell<Option<PartitionKey>>,
}

/// The tables of a shard, in the order of their numbers: they come and go seldom, and each look asks for one.
#[derive(Default)]
struct Tables(Vec<Rc<ShardTable>>);

/// What the tables of a shard share.
struct Engine {
    context: Context,
    admission: Admission,
    tokens: Tokens,
    /// None where nothing is written.
    store: Option<Store>,
}

/// A table of a shard.
pub(super) struct ShardTable {
    pub(super) id: TableId,
    pub(super) table: Table,
    shape: RefCell<Arc<Shape>>,
    gate: Gate,
    /// Who reads before it writes.
    pub(super) locks: Locks,
    /// SSTables that were split, until every shard has adopted what they became: whoever tries again goes on with these.
    pub(super) split: RefCell<Option<(Changed, Committed)>>,
    /// How its rows stand.
    pub(super) habit: Rc<Habit<Outline>>,
}

/// How a shard is opened.
#[derive(Clone, Debug)]
pub(super) struct EngineOptions {
    pub(super) store: StoreOptions,
    pub(super) tokens: Tokens,
    /// The folder of the shard's log; none where nothing is written.
    pub(super) log: Option<PathBuf>,
}

/// The data file of an SSTable, its first and its last token.
pub(super) type Look = (PathBuf, [Token; 2]);

/// What was seen.
pub(super) type Known = HashMap<PathBuf, [Token; 2]>;

/// How a shard is told of a table.
#[derive(Clone, Debug)]
pub(super) struct TableSpec {
    pub(super) id: TableId,
    pub(super) folder: PathBuf,
    pub(super) shape: Arc<Shape>,
    pub(super) generations: Generations,
    pub(super) version: sstable::Version,
    pub(super) column_index_size: u32,
    /// Whether its schema is known: for how long tombstones are to be kept, and how it is compacted.
    pub(super) has_schema: bool,
}

impl Worker {
    pub(super) fn new(shard: Shard) -> Worker {
        let tables = RefCell::default();
        let (has_failed, answered, spare_key) = (Cell::new(false), Cell::new(0), Cell::default());
        Worker { shard, has_failed, answered, engine: OnceCell::new(), tables, spare_key }
    }

    /// An answer that needed no wait. Nobody would go on beside a loop of such: now and then others do first.
    #[inline]
    pub(super) fn in_turn<T>(&self, answer: Result<T>) -> Pending<T> {
        if self.is_turn_over() { Pending::after_others(answer) } else { Pending::answered(answer) }
    }

    /// A question is answered without a wait; whether it is time to let others go on.
    pub(super) fn is_turn_over(&self) -> bool {
        self.answered.update(|count| count + 1);
        self.answered.get().is_multiple_of(ANSWERS_A_TURN)
    }

    /// Something has panicked: nothing here is to be relied on any more.
    pub(super) fn fail(&self) {
        self.has_failed.set(true);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// Opens the log, if there is to be one.
    pub(super) async fn open(&self, options: EngineOptions) -> Result<()> {
        let EngineOptions { store, tokens, log } = options;
        let engine = match log {
            Some(folder) => {
                let store = Store::open(&self.shard, &folder, store).await?;
                let (context, admission) = (store.context().clone(), store.admission().clone());
                Engine { context, admission, tokens, store: Some(store) }
            }
            None => {
                let (disk, clock) = (self.shard.disk().clone(), self.shard.clock().clone());
                let context = Context::new(disk, clock, Cache::new(store.cache));
                Engine { context, admission: Admission::new(store.admission), tokens, store: None }
            }
        };
        let opened = self.engine.set(engine);
        opened.map_err(|_| Error::Usage("the shard is open already".to_owned()))
    }

    /// Where the partitions of a share of a table's SSTables are, if these are many: the share of the shard of a number, of so many.
    pub(super) async fn look_at(&self, spec: &TableSpec, share: (usize, usize)) -> Result<Vec<Look>> {
        Ok(storage::table::look(self.context()?, &spec.folder, &definition(spec)?, share).await?)
    }

    pub(super) async fn add_table(&self, spec: TableSpec, known: Arc<Known>) -> Result<()> {
        let definition = definition(&spec)?;
        let engine = self.engine()?;
        let part = Part { tokens: engine.tokens, known };
        let TableSpec { id, folder, shape, generations, .. } = spec;
        let table = match &engine.store {
            Some(store) => store.add_part(&folder, definition, &generations, &part).await?,
            None => Table::open_part(&engine.context, &folder, definition, &generations, &part).await?,
        };
        let table = ShardTable {
            id,
            table,
            shape: RefCell::new(shape),
            gate: Gate::default(),
            locks: Locks::default(),
            split: RefCell::default(),
            habit: Rc::default(),
        };
        self.tables.borrow_mut().insert(Rc::new(table));
        Ok(())
    }

    /// Forgets a table, once no write to it is under way. If that fails its log may not say so.
    pub(super) async fn remove_table(&self, id: TableId) -> Result<()> {
        let table = self.table(id);
        if let Ok(table) = &table {
            table.gate.close().await;
        }
        self.tables.borrow_mut().remove(id);
        let forgotten = match &self.engine()?.store {
            Some(store) => store.remove_table(id).await,
            None => Ok(()),
        };
        // Who comes to the gate learns that the table is gone.
        if let Ok(table) = &table {
            table.gate.open();
        }
        Ok(forgotten?)
    }

    pub(super) fn table(&self, id: TableId) -> Result<Rc<ShardTable>> {
        let found = self.look_at_table(id, Rc::clone);
        found.ok_or_else(|| Error::Usage("there is no such table any more".to_owned()))
    }

    /// What is seen of a table, if it is there.
    #[inline]
    pub(super) fn look_at_table<R>(&self, id: TableId, look: impl FnOnce(&Rc<ShardTable>) -> R) -> Option<R> {
        self.tables.borrow().get(id).map(look)
    }

    pub(super) fn tables(&self) -> Vec<Rc<ShardTable>> {
        self.tables.borrow().0.clone()
    }

    /// The store; an error where nothing is written.
    pub(super) fn store(&self) -> Result<&Store> {
        let store = self.engine()?.store.as_ref();
        store.ok_or_else(|| Error::Usage("the database is open for reading only".to_owned()))
    }

    pub(super) fn context(&self) -> Result<&Context> {
        Ok(&self.engine()?.context)
    }

    pub(super) fn admission(&self) -> Result<&Admission> {
        Ok(&self.engine()?.admission)
    }

    /// Applies what these logs have of this shard's partitions, and flushes it if anything is written. What each of them has.
    pub(super) async fn recover(
        &self,
        logs: &[EarlierLog],
        on_corruption: OnCorruption,
    ) -> Result<Vec<Replayed>> {
        let engine = self.engine()?;
        let mine = |key: &PartitionKey| engine.tokens.contain(key.token);
        if let Some(store) = &engine.store {
            return Ok(store.recover(logs, mine, on_corruption).await?);
        }
        let mut all = Vec::new();
        for log in logs {
            let apply = async |id, record: &[u8]| match self.table(id) {
                Ok(table) => table.table.apply_replayed(record, mine),
                Err(_) => Ok(()),
            };
            all.push(storage::store::replay(&engine.context.disk, log, on_corruption, apply).await?);
        }
        Ok(all)
    }

    /// Writes a mutation that was encoded for a version of the table; `None` if the table has another one by now, or is about to: who
    /// waits for that would keep the shard from being told.
    pub(super) async fn write(&self, id: TableId, version: u64, record: Vec<u8>) -> Result<Option<()>> {
        let (store, table) = (self.store()?, self.table(id)?);
        let Some(_inside) = table.gate.enter()? else { return Ok(None) };
        self.table(id)?;
        if table.shape().version != version {
            return Ok(None);
        }
        store.write(id, record).await?;
        Ok(Some(()))
    }

    pub(super) async fn flush(&self, id: TableId) -> Result<()> {
        Ok(self.store()?.flush(&self.table(id)?.table).await?)
    }

    /// Lets no write begin, and waits for those that are under way.
    pub(super) async fn block_writes(&self, id: TableId) -> Result<()> {
        self.table(id)?.gate.close().await;
        Ok(())
    }

    /// The same, and flushes: the log then has nothing of the table that a replay would need.
    pub(super) async fn block_writes_and_flush(&self, id: TableId) -> Result<()> {
        self.block_writes(id).await?;
        self.flush(id).await
    }

    /// That the log takes writes, and all is durable that is in it.
    pub(super) async fn sync_log(&self) -> Result<()> {
        self.store()?.log().sync().await?;
        Ok(())
    }

    /// Whether a table can become this one.
    pub(super) fn check_table(&self, spec: &TableSpec) -> Result<()> {
        Ok(self.table(spec.id)?.table.check_definition(&definition(spec)?)?)
    }

    /// From here on the table is this one, to which no write is under way.
    pub(super) async fn change_table(&self, spec: &TableSpec) -> Result<()> {
        let table = self.table(spec.id)?;
        self.store()?.set_definition(&table.table, definition(spec)?).await?;
        *table.shape.borrow_mut() = spec.shape.clone();
        Ok(())
    }

    /// Lets writes begin again, if it is settled what the table is; otherwise none will.
    pub(super) fn end_change(&self, id: TableId, is_settled: bool) -> Result<()> {
        let table = self.table(id)?;
        match is_settled {
            true => table.gate.open(),
            false => table.gate.shut(),
        }
        Ok(())
    }

    /// Compactions go on by themselves from now on.
    pub(super) fn begin_compactions(&self) -> Result<()> {
        self.store()?.begin_compactions();
        Ok(())
    }

    /// Makes the log durable and stops what goes on by itself.
    pub(super) async fn close(&self) -> Result<()> {
        match self.engine.get().and_then(|engine| engine.store.as_ref()) {
            Some(store) => Ok(store.close().await?),
            None => Ok(()),
        }
    }

    fn engine(&self) -> Result<&Engine> {
        self.engine.get().ok_or_else(|| Error::Closed("the shard is not open".to_owned()))
    }
}

impl Tables {
    #[inline]
    fn get(&self, id: TableId) -> Option<&Rc<ShardTable>> {
        self.0.get(self.place(id).ok()?)
    }

    /// Puts a table in, in the place of what had its number.
    fn insert(&mut self, table: Rc<ShardTable>) {
        match self.place(table.id) {
            Ok(at) => self.0[at] = table,
            Err(at) => self.0.insert(at, table),
        }
    }

    fn remove(&mut self, id: TableId) {
        if let Ok(at) = self.place(id) {
            self.0.remove(at);
        }
    }

    /// Where a table is, or would be.
    #[inline]
    fn place(&self, id: TableId) -> std::result::Result<usize, usize> {
        self.0.binary_search_by(|table| table.id.cmp(&id))
    }
}

impl ShardTable {
    /// The table as it is now.
    pub(super) fn shape(&self) -> Arc<Shape> {
        self.shape.borrow().clone()
    }

    /// The same, for a look at it.
    pub(super) fn shape_here(&self) -> Ref<'_, Arc<Shape>> {
        self.shape.borrow()
    }
}

/// What storage is to know of a table.
fn definition(spec: &TableSpec) -> Result<Definition> {
    let TableSpec { id, folder, shape, version, column_index_size, has_schema, .. } = spec;
    let mut definition = super::definition::of(*id, folder, &shape.schema, *version)?;
    definition.write.column_index_size = *column_index_size;
    definition.write.fits_blocks = true;
    definition.compaction.enabled &= *has_schema;
    Ok(definition)
}

/// Lets writes through, unless the table is about to change.
#[derive(Default)]
struct Gate {
    is_closed: Cell<bool>,
    /// Whether it stays so.
    is_shut: Cell<bool>,
    inside: Cell<usize>,
    changed: Signal,
}

impl Gate {
    /// `None` while it is closed.
    fn enter(&self) -> Result<Option<Inside<'_>>> {
        if self.is_shut.get() {
            let what = "the table was altered or dropped, or not: that could not be brought to an end, and shows when the database is opened again";
            return Err(Error::Closed(what.to_owned()));
        }
        if self.is_closed.get() {
            return Ok(None);
        }
        self.inside.set(self.inside.get() + 1);
        Ok(Some(Inside(self)))
    }

    /// Lets nobody in, and waits until nobody is inside.
    async fn close(&self) {
        self.is_closed.set(true);
        self.changed.until(|| (self.inside.get() == 0).then_some(())).await;
    }

    /// Lets nobody in any more: who comes gets an error.
    fn shut(&self) {
        self.is_shut.set(true);
    }

    fn open(&self) {
        self.is_closed.set(false);
    }
}

/// A write that is under way.
struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.set(self.0.inside.get() - 1);
        if self.0.is_closed.get() {
            self.0.changed.notify();
        }
    }
}
