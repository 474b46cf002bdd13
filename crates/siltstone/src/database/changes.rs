//! Tables made, altered and dropped.
//!
//! What a table is stands in its `schema.cql`: the statement that made it, and each that altered it since, which is also
//! how Cassandra writes down columns that were dropped. That file is what counts after a crash, so that each change takes
//! place when it is replaced:
//!
//! ```text
//! alter   block writes ► flush on all shards, marked in their logs ► schema.cql ► new columns on all shards ► writes go on
//! drop    block writes ► a file `dropped` ► forget it on all shards, marked in their logs ► remove its files, that one last
//! ```
//!
//! The log numbers columns as they were when it was written. Nothing of before is replayed once the table is altered. Of a table that is
//! dropped nothing is flushed, for which there may be no room. Once there is a file `dropped` nothing of the table is replayed, whatever the
//! logs say; that file goes when no log has the table any more.
//!
//! If a step fails, those before it are taken back. Where that fails as well, nobody knows what the next open will find: the table is read
//! as before, and takes no more writes until then.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use sstable::data::row::Family;
use sstable::writer::Limits;
use storage::commit_log::TableId;

use super::folder::{self, SCHEMA};
use super::shape::{Shape, full_name};
use super::worker::{TableSpec, Worker};
use super::{Inner, TableState, definition};
use crate::table_options::unknown_compressor;
use crate::table_schema::{Alteration, TableSchema};
use crate::{Error, Result};

/// What statements are called in messages.
const STATEMENT: &str = "statement";

/// Makes a table.
pub(super) async fn create(inner: &Arc<Inner>, cql: &str) -> Result<Arc<TableState>> {
    let _turn = inner.changes.take().await;
    inner.check_writable()?;
    let text = TableSchema::statements_of(Path::new(STATEMENT), cql, None)?;
    // What is wrong is told by its place in what was given; what is written down is what counts.
    TableSchema::parse(Path::new(STATEMENT), cql, None)?;
    let schema = TableSchema::parse(Path::new(STATEMENT), &text, None)?;
    let name = full_name(&schema);
    if let Some(there) = inner.states().into_iter().find(|state| state.shape().name() == name) {
        return match TableSchema::may_be_there(Path::new(STATEMENT), &text)? {
            true => Ok(there),
            false => Err(Error::Usage(format!("there is a table {name} already"))),
        };
    }
    let id = folder::id_of(&schema).unwrap_or_else(|| TableId(folder::random_uuid()));
    if let Some(other) = inner.states().iter().find(|state| state.id == id) {
        return Err(Error::Usage(format!("{} has that id already", other.shape().name())));
    }
    let path = inner.layout.of_new_table(&schema, id)?;
    inner.check(id, &schema)?;
    let state = Arc::new(TableState::new(id, path, Arc::new(Shape::new(schema, 0)), Some(text.clone())));
    if let Err(error) = make(inner, &state, text).await {
        unmake(inner, &state).await;
        return Err(error);
    }
    inner.tables.write().unwrap_or_else(PoisonError::into_inner).insert(name, state.clone());
    Ok(state)
}

async fn make(inner: &Inner, state: &TableState, text: String) -> Result<()> {
    // A table of that id may have been dropped, and not all of it may have gone.
    let folder = state.folder.clone();
    // A log that has failed may not say that it was dropped, and says now that it has failed.
    inner.each(async |worker, ()| worker.sync_log().await, &()).await?;
    let end = async move |worker: Rc<Worker>| folder::end_removal(worker.shard.disk(), &folder).await;
    inner.shards[0].call(end).await?;
    inner.write_schema(state, text).await?;
    let spec = inner.spec(state, state.shape());
    let add = async |worker: Rc<Worker>, spec: TableSpec| worker.add_table(spec, Arc::default()).await;
    inner.each(add, &spec).await.map(drop)
}

/// Takes back what of a new table is there. The error of what failed before says more than what fails here.
async fn unmake(inner: &Inner, state: &TableState) {
    drop(inner.each(async |worker, id| worker.remove_table(id).await, &state.id).await);
    let folder = state.folder.clone();
    let remove = async move |worker: Rc<Worker>| folder::remove_schema(worker.shard.disk(), &folder).await;
    drop(inner.shards[0].call(remove).await);
}

/// Alters a table.
pub(super) async fn alter(inner: &Arc<Inner>, cql: &str) -> Result<()> {
    let _turn = inner.changes.take().await;
    inner.check_writable()?;
    let alteration = Alteration::parse(Path::new(STATEMENT), cql)?;
    if alteration.may_be_missing && !inner.has(&alteration.table) {
        return Ok(());
    }
    let state = inner.find(&alteration.table)?;
    let _upkeep = state.upkeep.take().await;
    let text = state.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let old =
        text.ok_or_else(|| Error::file(&state.folder, format!("there is no {SCHEMA} to be altered")))?;
    let after = || altered(inner, &state, &alteration, &old);
    // What cannot be is refused before a write has to wait; whether all SSTables go with it, before the next open depends on it.
    let (_, shape) = after()?;
    if shape.schema == state.shape().schema {
        return Ok(());
    }
    let spec = inner.spec(&state, shape);
    inner.each(async |worker, spec: TableSpec| worker.check_table(&spec), &spec).await?;
    let change_of_table = state.change.begin();
    let blocked = inner.each(async |worker, id| worker.block_writes_and_flush(id).await, &state.id).await;
    // Columns are dropped behind all that was written to them.
    let (mut changed, mut is_settled) = (blocked.and_then(|_| after()), true);
    if let Ok((text, shape)) = &changed {
        let done = change(inner, &state, text, shape).await;
        is_settled = done.is_ok() || undo(inner, &state, &old).await.is_ok();
        changed = done.and(changed);
    }
    let ended = inner.end_change(&state, is_settled).await;
    change_of_table.end();
    ended.and(changed.map(drop))
}

/// What a table becomes now: its `schema.cql`, and its shape.
fn altered(
    inner: &Inner,
    state: &TableState,
    alteration: &Alteration,
    old: &str,
) -> Result<(String, Arc<Shape>)> {
    let before = state.shape();
    let new = format!("{};\n", alteration.text_at(inner.stamps.micros()));
    let (schema, text) = before.schema.altered(Path::new(STATEMENT), old, &new)?;
    check_dropped(&before, &schema)?;
    check_compressor(&before, &schema)?;
    inner.check(state.id, &schema)?;
    let shape = Arc::new(Shape::new(schema, before.version + 1));
    check_key(&before, &shape)?;
    Ok((text, shape))
}

/// Makes a table what it was, first of all for those who use it.
async fn undo(inner: &Inner, state: &TableState, old: &str) -> Result<()> {
    let spec = inner.spec(state, state.shape());
    let undone =
        inner.each(async |worker, spec: TableSpec| worker.change_table(&spec).await, &spec).await.map(drop);
    inner.write_schema(state, old.to_owned()).await.and(undone)
}

/// Makes a table what the text says.
async fn change(inner: &Inner, state: &TableState, text: &str, shape: &Arc<Shape>) -> Result<()> {
    let spec = inner.spec(state, shape.clone());
    inner.write_schema(state, text.to_owned()).await?;
    inner.each(async |worker, spec: TableSpec| worker.change_table(&spec).await, &spec).await?;
    *state.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    *state.shape.write().unwrap_or_else(PoisonError::into_inner) = shape.clone();
    Ok(())
}

/// Drops a table.
pub(super) async fn drop_table(inner: &Arc<Inner>, name: &str) -> Result<()> {
    let _turn = inner.changes.take().await;
    inner.check_writable()?;
    let state = inner.find(name)?;
    let _upkeep = state.upkeep.take().await;
    let change = state.change.begin();
    let removed = remove(inner, &state).await;
    change.end();
    removed
}

async fn remove(inner: &Arc<Inner>, state: &TableState) -> Result<()> {
    if let Err(error) = begin_removal(inner, state).await {
        let folder = state.folder.clone();
        let undo = async move |worker: Rc<Worker>| folder::undo_removal(worker.shard.disk(), &folder).await;
        let is_settled = inner.shards[0].call(undo).await.is_ok();
        drop(inner.end_change(state, is_settled).await);
        return Err(error);
    }
    state.is_dropped.store(true, Ordering::Release);
    let full_name = state.shape().name();
    inner.tables.write().unwrap_or_else(PoisonError::into_inner).remove(&full_name);
    let forgotten = inner.each(async |worker, id| worker.remove_table(id).await, &state.id).await;
    if let Err(error) = &forgotten {
        tracing::warn!(table = full_name, %error, "a log may still have writes of the table, which is dropped: the next open brings that to its end");
    }
    let (folder, is_forgotten) = (state.folder.clone(), forgotten.is_ok());
    let remove = async move |worker: Rc<Worker>| match is_forgotten {
        true => folder::remove_table(worker.shard.disk(), &folder).await,
        false => folder::remove_parts(worker.shard.disk(), &folder).await,
    };
    inner.shards[0].call(remove).await
}

/// Nothing is written any more, and the folder is one that will go.
async fn begin_removal(inner: &Inner, state: &TableState) -> Result<()> {
    inner.each(async |worker, id| worker.block_writes(id).await, &state.id).await?;
    let folder = state.folder.clone();
    let begin = async move |worker: Rc<Worker>| folder::begin_removal(worker.shard.disk(), &folder).await;
    inner.shards[0].call(begin).await
}

/// Only columns that are there can be dropped.
fn check_dropped(before: &Shape, after: &TableSchema) -> Result<()> {
    let new = after.dropped.iter().skip(before.schema.dropped.len());
    for (name, _) in new {
        before.find(name)?;
    }
    Ok(())
}

/// One that is not known here may be that of whoever made the table, but nobody asks for it.
fn check_compressor(before: &Shape, after: &TableSchema) -> Result<()> {
    match unknown_compressor(&after.options) {
        Some(class) if unknown_compressor(&before.schema.options) != Some(class) => {
            Err(Error::Usage(format!("compression: there is no compressor {class:?} that is known here")))
        }
        _ => Ok(()),
    }
}

/// The key stays what it is: SSTables and the names of their rows are made of it.
fn check_key(before: &Shape, after: &Shape) -> Result<()> {
    let key = |shape: &Shape| {
        let schema = shape.model();
        (schema.partition_key.clone(), schema.clustering.clone(), shape.clustering_len())
    };
    match key(before) == key(after) {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "the primary key of {} cannot be altered, nor its order",
            before.name()
        ))),
    }
}

impl Inner {
    pub(super) fn check_writable(&self) -> Result<()> {
        match self.options.read_only {
            true => Err(Error::Usage("the database is open for reading only".to_owned())),
            false => Ok(()),
        }
    }

    /// Whether SSTables of the version that is written can hold a table.
    fn check(&self, id: TableId, schema: &TableSchema) -> Result<()> {
        let definition = definition::of(id, Path::new(STATEMENT), schema, self.options.version)?;
        definition::tell_notes(schema);
        // Of its own version: there are tables that the one of the others cannot hold.
        let limits = Limits::of(definition.version, Family::Cassandra);
        let checked = limits.check_table(&schema.schema, &definition.write);
        checked.map_err(|what| Error::Usage(format!("{}: {what}", schema.table)))
    }

    /// Writes what a table is, in its folder, durably.
    async fn write_schema(&self, state: &TableState, text: String) -> Result<()> {
        let folder = state.folder.clone();
        let write = async move |worker: Rc<Worker>| {
            let disk = worker.shard.disk();
            folder::make(disk, &folder).await?;
            folder::write_schema(disk, &folder, &text).await
        };
        self.shards[0].call(write).await
    }

    /// Lets writes go on, if it is certain what the table is.
    async fn end_change(&self, state: &TableState, is_settled: bool) -> Result<()> {
        let end = async |worker: Rc<Worker>, (id, is_settled)| worker.end_change(id, is_settled);
        self.each(end, &(state.id, is_settled)).await.map(drop)
    }

    /// Does the same on all shards at once, on each to its end.
    pub(super) async fn each<A: Clone + Send + 'static, T: Send + 'static>(
        &self,
        work: impl AsyncFn(Rc<Worker>, A) -> Result<T> + Copy + Send + 'static,
        argument: &A,
    ) -> Result<Vec<T>> {
        let calls = self.shards.iter().map(|shard| {
            let argument = argument.clone();
            shard.call_to_end(async move |worker| work(worker, argument).await)
        });
        runtime::join_all(calls).await.into_iter().collect()
    }
}
