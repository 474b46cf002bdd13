//! From a folder to open shards.
//!
//! ```text
//! lock ► start the threads ► find the tables ► each shard: open log and tables ► each: replay all logs, flush ► remove them, and what was dropped
//! ```
//!
//! The shards may have been others when the logs were written, so each of them reads all logs and takes what is its own.
//! The logs of before are removed when all shards have what they took in SSTables. Among them are those of tables that were written to by their folders, before
//! these were in the database.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use runtime::{Disk, ShardOptions};
use sstable::data::row::Family;
use sstable::writer::Limits;
use storage::Generations;
use storage::commit_log::{EarlierLog, Gap, Replayed, TableId};
use storage::table::has_many;

use super::change::Change;
use super::folder::{self, Found, Inventory, Layout, Locked, random};
use super::ring::Ring;
use super::shape::{Shape, full_name};
use super::shards::ShardHandle;
use super::short_key::ShortKey;
use super::stamps::Stamps;
use super::turn::Turn;
use super::worker::{EngineOptions, Known, TableSpec, Worker};
use super::{Inner, Options, TableState, definition};
use crate::table_schema::Wanted;
use crate::{Error, Result};

/// Opens what is in a folder.
pub(super) async fn open(layout: Layout, options: Options) -> Result<Arc<Inner>> {
    let options = Options {
        shards: options.shards.max(1),
        column_index_size: options.column_index_size.max(1),
        ..options
    };
    let locks = Arc::new(layout.lock(options.read_only)?);
    let shards = start(&options, &locks)?;
    let mut inner = Inner {
        ring: Ring::new(options.shards),
        tables: RwLock::default(),
        changes: Turn::new(),
        stamps: Stamps::new(random()),
        limits: Limits::of(options.version, Family::Cassandra),
        host_id: [0; 16],
        ending: Mutex::default(),
        locks: Mutex::new(Some(locks)),
        shards,
        layout,
        options,
    };
    match inner.bring_up().await {
        Ok(()) => Ok(Arc::new(inner)),
        Err(error) => match (error, inner.end()) {
            // Why it is: a thread could not start, or has panicked.
            (Error::Closed(_), Err(why)) => Err(why),
            // Whatever goes wrong now says no more than the error.
            (error, _) => Err(error),
        },
    }
}

/// So many shards open no more SSTables in vain than looks would cost.
const FEW_SHARDS: usize = 2;

/// The threads of a database.
fn start(options: &Options, locks: &Arc<Vec<Locked>>) -> Result<Vec<ShardHandle>> {
    let cpus = if options.pin { runtime::cpus()? } else { Vec::new() };
    let shard = |number: usize| {
        let cpu = cpus.get(number % cpus.len().max(1)).copied();
        let shard = ShardOptions { io_uring: options.io_uring, direct_io: options.direct_io, cpu };
        ShardHandle::start(shard, locks.clone())
    };
    (0..options.shards).map(shard).collect()
}

/// What the first shard finds.
struct Beginning {
    host_id: [u8; 16],
    tables: Inventory,
    /// What is there before any new log is.
    logs: Vec<EarlierLog>,
}

impl Inner {
    async fn bring_up(&mut self) -> Result<()> {
        let (layout, options) = (self.layout.clone(), self.options.clone());
        let begin = async move |worker: Rc<Worker>| begin(worker.shard.disk(), &layout, &options).await;
        let beginning = self.shards[0].call(begin).await?;
        self.host_id = beginning.host_id;
        let mut specs = Vec::new();
        let Inventory { found, dropped } = beginning.tables;
        for found in found {
            specs.push(self.add_found(found)?);
        }
        let engines = self.shards.iter().enumerate().map(|(number, shard)| {
            let engine = self.engine_options(number);
            shard.call(async move |worker| worker.open(engine).await)
        });
        runtime::join_all(engines).await.into_iter().collect::<Result<()>>()?;
        let known = self.look_at(&specs).await?;
        let opened = self.shards.iter().map(|shard| {
            let (specs, known) = (specs.clone(), known.clone());
            let open = async move |worker: Rc<Worker>| {
                for spec in specs {
                    worker.add_table(spec, known.clone()).await?;
                }
                Ok(())
            };
            shard.call(open)
        });
        runtime::join_all(opened).await.into_iter().collect::<Result<()>>()?;
        self.recover(beginning.logs, dropped).await
    }

    /// Where the partitions of SSTables are, each of which one shard looks at: then not every shard has to open all of them.
    async fn look_at(&self, specs: &[TableSpec]) -> Result<Arc<Known>> {
        let shards = self.shards.len();
        if shards <= FEW_SHARDS {
            return Ok(Arc::default());
        }
        let all = specs.to_vec();
        let of_many = async move |worker: Rc<Worker>| {
            let has_many = |spec: &TableSpec| has_many(worker.shard.disk(), &spec.folder);
            Ok(all.into_iter().filter(has_many).collect::<Vec<_>>())
        };
        let specs = self.shards[0].call(of_many).await?;
        let looks = self.shards.iter().enumerate().map(|(number, shard)| {
            let specs = specs.clone();
            shard.call(async move |worker| {
                let mut seen = Vec::new();
                for spec in &specs {
                    seen.extend(worker.look_at(spec, (number, shards)).await?);
                }
                Ok(seen)
            })
        });
        let seen = runtime::join_all(looks).await.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(seen.into_iter().flatten().collect()))
    }

    /// Applies what is in the logs of before, on all shards at once, and removes them; then what is left of tables that were dropped.
    async fn recover(&self, logs: Vec<EarlierLog>, dropped: Vec<(TableId, PathBuf)>) -> Result<()> {
        let on_corruption = self.options.on_corruption;
        let recovered = self.shards.iter().map(|shard| {
            let logs = logs.clone();
            shard.call(async move |worker| worker.recover(&logs, on_corruption).await)
        });
        let replayed = runtime::join_all(recovered).await.into_iter().collect::<Result<Vec<_>>>()?;
        // Each shard has read all logs, and found the same.
        replayed.into_iter().next().iter().flatten().for_each(tell_of_gaps);
        if self.options.read_only {
            return Ok(());
        }
        let remove = async move |worker: Rc<Worker>| {
            for log in &logs {
                log.remove(worker.shard.disk()).await?;
            }
            for (_, folder) in &dropped {
                folder::end_removal(worker.shard.disk(), folder).await?;
            }
            Ok(())
        };
        self.shards[0].call(remove).await?;
        let begin = self
            .shards
            .iter()
            .map(|shard| shard.call(async move |worker: Rc<Worker>| worker.begin_compactions()));
        runtime::join_all(begin).await.into_iter().collect()
    }

    fn engine_options(&self, number: usize) -> EngineOptions {
        let log = (!self.options.read_only).then(|| self.layout.log(number));
        EngineOptions { store: self.options.of_shard(), tokens: self.ring.part(number), log }
    }

    /// Notes a table that was found, and says what the shards are to know of it.
    fn add_found(&mut self, found: Found) -> Result<TableSpec> {
        let Found { id, folder, schema, text } = found;
        let shape = Arc::new(Shape::new(schema, 0));
        let state = Arc::new(TableState::new(id, folder, shape, text));
        let spec = self.spec(&state, state.shape());
        let name = full_name(&spec.shape.schema);
        let tables: &mut BTreeMap<_, _> = self
            .tables
            .get_mut()
            .map_err(|_| Error::Closed("the list of tables cannot be used any more".to_owned()))?;
        let is_same = |(known, other): &(&String, &Arc<TableState>)| **known == name || other.id == id;
        if let Some((_, other)) = tables.iter().find(is_same) {
            let of = if other.id == id { "a table of the same id" } else { &name };
            let what = format!("{} is the folder of {of} already", other.folder.display());
            return Err(Error::file(&state.folder, what));
        }
        tables.insert(name, state);
        Ok(spec)
    }

    /// What the shards are to know of a table.
    pub(super) fn spec(&self, state: &TableState, shape: Arc<Shape>) -> TableSpec {
        TableSpec {
            id: state.id,
            folder: state.folder.clone(),
            shape,
            generations: state.generations.clone(),
            version: self.options.version,
            column_index_size: self.options.column_index_size,
            has_schema: self.has_schema(state),
        }
    }

    /// Whether it is known what a table is: by its schema.cql, or by who opened its folder.
    pub(super) fn has_schema(&self, state: &TableState) -> bool {
        self.layout.gives_schema() || state.text.lock().is_ok_and(|text| text.is_some())
    }
}

/// Tells what a log has lost: if the database is to be written to, it is removed next.
fn tell_of_gaps(replayed: &Replayed) {
    for Gap { path, offset, length, what } in &replayed.damage {
        let log = path.display();
        tracing::warn!(%log, offset, length, what, "a part of the log is damaged: the writes in it are lost");
    }
    for Gap { path, offset, length, what } in &replayed.torn {
        let log = path.display();
        tracing::info!(%log, offset, length, what, "what was not yet durable when the database ended is left out");
    }
}

impl TableState {
    pub(super) fn new(id: TableId, folder: PathBuf, shape: Arc<Shape>, text: Option<String>) -> TableState {
        TableState {
            id,
            folder,
            generations: Generations::default(),
            short_key: ShortKey::of(&shape),
            shape: RwLock::new(shape),
            text: Mutex::new(text),
            upkeep: Turn::new(),
            change: Change::default(),
            is_dropped: AtomicBool::new(false),
        }
    }

    /// Whether a name, with or without its keyspace, may be its own.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let shape = self.shape();
        (Wanted { name: Some(name) }).is(shape.schema.keyspace.as_deref(), &shape.schema.table)
    }
}

/// Looks for what is there before any shard opens anything.
async fn begin(disk: &Disk, layout: &Layout, options: &Options) -> Result<Beginning> {
    let Options { read_only, shards, on_corruption, .. } = *options;
    let mut host_id = [0; 16];
    if !read_only {
        layout.prepare(disk, shards).await?;
        host_id = layout.host_id(disk).await?;
    }
    let tables = layout.find(disk, options).await?;
    let logs = layout.logs(disk, &tables, on_corruption).await?;
    if !read_only {
        // They are about what is written.
        tables.found.iter().for_each(|table| definition::tell_notes(&table.schema));
    }
    Ok(Beginning { host_id, tables, logs })
}
