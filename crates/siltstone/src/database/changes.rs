//! Tables made, altered and dropped.
//!
//! What a table is stands in its `schema.cql`: the statement that made it, and each that altered it since, which is also
//! how Cassandra writes down columns that were dropped. That file is what counts after a crash, so that each change takes
//! place when it is replaced:
//!
//! ```text
//! alter   block writes ► flush on all shards, marked in their logs ► schema.cql ► new columns on all shards ► writes go on
//! drop    block writes ► a file `dropped` ► forget it on all shards ► remove its files, that one last
//! ```
//!
//! The log numbers columns as they were when it was written. Nothing of before is replayed once the table is altered.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use storage::commit_log::TableId;

use super::folder::{self, SCHEMA};
use super::shape::{Shape, full_name};
use super::worker::{TableSpec, Worker};
use super::{Inner, TableState, definition};
use crate::table_schema::{Alteration, TableSchema};
use crate::{Error, Result};

/// What statements are called in messages.
const STATEMENT: &str = "statement";

/// Makes a table.
pub(super) async fn create(inner: &Arc<Inner>, cql: &str) -> Result<Arc<TableState>> {
    let _turn = inner.changes.take().await;
    inner.check_writable()?;
    let schema = TableSchema::parse(Path::new(STATEMENT), cql, None)?;
    let name = full_name(&schema);
    if inner.states().iter().any(|state| state.shape().name() == name) {
        return Err(Error::Usage(format!("there is a table {name} already")));
    }
    let id = folder::id_of(&schema).unwrap_or_else(|| TableId(folder::random_uuid()));
    let path = inner.layout.of_new_table(&schema, id)?;
    inner.check(id, &schema)?;
    let text = format!("{};\n", cql.trim().trim_end_matches(';'));
    let state = Arc::new(TableState::new(id, path, Arc::new(Shape::new(schema, 0)), Some(text.clone())));
    inner.write_schema(&state, text).await?;
    let spec = inner.spec(&state, state.shape());
    inner.each(async |worker, spec: TableSpec| worker.add_table(spec).await, &spec).await?;
    inner.tables.write().unwrap_or_else(PoisonError::into_inner).insert(name, state.clone());
    Ok(state)
}

/// Alters a table.
pub(super) async fn alter(inner: &Arc<Inner>, cql: &str) -> Result<()> {
    let _turn = inner.changes.take().await;
    inner.check_writable()?;
    let alteration = Alteration::parse(Path::new(STATEMENT), cql)?;
    let state = inner.find(&alteration.table)?;
    let _upkeep = state.upkeep.take().await;
    let before = state.shape();
    let text = state.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let text =
        text.ok_or_else(|| Error::file(&state.folder, format!("there is no {SCHEMA} to be altered")))?;
    let text = format!("{text}{};\n", alteration.text_at(inner.stamps.micros()));
    let mut schema = TableSchema::parse(Path::new(STATEMENT), &text, None)?;
    schema.keyspace = before.schema.keyspace.clone();
    check_dropped(&before, &schema)?;
    inner.check(state.id, &schema)?;
    let shape = Arc::new(Shape::new(schema, before.version + 1));
    check_key(&before, &shape)?;
    let spec = inner.spec(&state, shape.clone());
    let changed = change(inner, &state, text, &spec).await;
    if changed.is_ok() {
        *state.shape.write().unwrap_or_else(PoisonError::into_inner) = shape;
    }
    let unblocked = inner.each(async |worker, id| worker.unblock_writes(id), &state.id).await;
    changed.and(unblocked.map(drop))
}

async fn change(inner: &Inner, state: &Arc<TableState>, text: String, spec: &TableSpec) -> Result<()> {
    inner.each(async |worker, id| worker.block_writes(id).await, &state.id).await?;
    inner.write_schema(state, text.clone()).await?;
    *state.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    inner.each(async |worker, spec: TableSpec| worker.change_table(&spec).await, spec).await.map(drop)
}

/// Drops a table.
pub(super) async fn drop_table(inner: &Arc<Inner>, name: &str) -> Result<()> {
    let _turn = inner.changes.take().await;
    inner.check_writable()?;
    let state = inner.find(name)?;
    let _upkeep = state.upkeep.take().await;
    if let Err(error) = begin_removal(inner, &state).await {
        drop(inner.each(async |worker, id| worker.unblock_writes(id), &state.id).await);
        return Err(error);
    }
    state.is_dropped.store(true, Ordering::Release);
    let full_name = state.shape().name();
    inner.tables.write().unwrap_or_else(PoisonError::into_inner).remove(&full_name);
    inner.each(async |worker, id| worker.remove_table(id).await, &state.id).await?;
    let folder = state.folder.clone();
    let remove = async move |worker: Rc<Worker>| folder::remove_table(worker.shard.disk(), &folder).await;
    inner.shards[0].call(remove).await
}

/// Nothing is written any more, and the folder is one that will go.
async fn begin_removal(inner: &Inner, state: &TableState) -> Result<()> {
    // What is flushed is marked in the log: another table of that id is not to find it there.
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
        let checked = self.limits.check_table(&schema.schema, &definition.write);
        checked.map_err(|what| Error::Usage(format!("{}: {what}", schema.table)))
    }

    /// Writes what a table is, in its folder, durably.
    async fn write_schema(&self, state: &Arc<TableState>, text: String) -> Result<()> {
        let folder = state.folder.clone();
        let write = async move |worker: Rc<Worker>| {
            let disk = worker.shard.disk();
            folder::make(disk, &folder).await?;
            folder::write_text(disk, &folder.join(SCHEMA), &text).await
        };
        self.shards[0].call(write).await
    }

    /// Does the same on all shards at once.
    pub(super) async fn each<A: Clone + Send + 'static, T: Send + 'static>(
        &self,
        work: impl AsyncFn(Rc<Worker>, A) -> Result<T> + Copy + Send + 'static,
        argument: &A,
    ) -> Result<Vec<T>> {
        let calls = self.shards.iter().map(|shard| {
            let argument = argument.clone();
            shard.call(async move |worker| work(worker, argument).await)
        });
        runtime::join_all(calls).await.into_iter().collect()
    }
}
