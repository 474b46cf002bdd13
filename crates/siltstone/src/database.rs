//! A database to embed: tables in one folder, written and read by several threads.
//!
//! ```text
//! Database ──► Table ──► write, get, slice, scan            futures for any executor, or wait()
//!                          │ by the token of the key
//!              shard 0   shard 1   shard 2 …                one thread each, with a log, memtables and caches of its own
//! ```
//!
//! The folder has the layout of Cassandra's data folder, so that SSTables can be copied in and out.
//!
//! ```
//! use siltstone::database::{Database, Options, Slice, Write};
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let database = Database::open(folder, Options::default()).wait()?;
//! let create = "CREATE TABLE IF NOT EXISTS app.events (user text, at timestamp, what text, PRIMARY KEY (user, at))";
//! let events = database.create_table(create).wait()?;
//! events.write(Write::insert("alice", "2024-01-31T12:00:00Z").set("what", "login")).wait()?;
//!
//! let page = events.slice("alice", Slice::all().reverse().limit(10)).wait()?;
//! assert_eq!(page.rows[0].get_as::<String>("what")?.as_deref(), Some("login"));
//! database.close().wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//!
//! [`Database`] and [`Table`] can be shared among threads, and clones of a table are cheap. Every call returns a [`Pending`], a future for
//! any executor, which needs neither a reactor nor a timer of it. A thread without an executor calls [`Pending::wait`], which may make the
//! disk reads itself and, in a build without optimizations, takes up to 1 MiB of stack. Loops of many small calls are fastest on the
//! shard's own thread: [`Database::run_on`].
//!
//! # When writes are durable
//!
//! A write that has answered is seen by all reads. By default the disk has it within ten seconds, as with Cassandra: a loss of power
//! takes at most those, and a process that is killed the last few milliseconds. [`Database::sync`] waits until all earlier writes are
//! durable. With [`SyncMode::Batch`] a write answers when it is durable:
//!
//! ```
//! use siltstone::database::{CommitLogOptions, Options, SyncMode};
//!
//! let log = CommitLogOptions { sync: SyncMode::Batch, ..CommitLogOptions::default() };
//! let options = Options { log, ..Options::default() };
//! # drop(options);
//! ```
//!
//! # Memory and files
//!
//! [`Options`] bounds what is cached, written and read; [`Options::memory`] adds it up. Each open SSTable is two files or more, and each
//! shard opens those that several shards share: a program with many SSTables calls [`crate::allow_many_files`] when it starts, as systems
//! begin with 1,024 files a process.
//!
//! # Errors, and what to do
//!
//! | error | what it means |
//! |---|---|
//! | [`Error::Usage`] | the call does not fit the table or the database, or the table was dropped: the program is to be changed |
//! | [`Error::Text`] | a statement is wrong; it says where |
//! | [`Error::Closed`] | the database was closed, or a shard has panicked |
//! | [`Error::File`], [`Error::SSTable`], [`Error::Value`] | a file is damaged, missing, locked by another process, or not readable |
//! | [`Error::Storage`] with [`Overloaded`](storage::Error::Overloaded) | too much is asked for at once: try again later, or allow more |
//! | [`Error::Storage`] with [`LogFailed`](storage::Error::LogFailed), [`InDoubt`](storage::Error::InDoubt) or [`Unsettled`](storage::Error::Unsettled) | the disk failed a write: reads go on, but writes only once the database was opened again |
//! | [`Error::Storage`] with [`Io`](storage::Error::Io) | the operating system refused; of a flush that found no room, writes go on once there is some |
//!
//! What happens in the background, such as a compaction that fails or a table option that has no effect, is told by events of the crate
//! `tracing`: without a subscriber nobody sees it.
//!
//! # Which module has which idea
//!
//! | module | idea |
//! |---|---|
//! | `write`, `value`, `read`, `rows`, `typed` | requests, and their results |
//! | `pending` | answers that are not there yet |
//! | `table` | a table's reads and writes |
//! | `opening`, `folder` | from a folder to open shards |
//! | `changes` | how tables are created, altered and dropped |
//! | `upkeep` | flushes, compactions, snapshots |
//! | `point`, `short_key` | a row by its whole key |
//! | `fold`, `sink`, `slots` | rows shown to a function in place, or put into a page |
//! | `many`, `new_rows`, `counters`, `spread` | many rows at once: reads, inserts if absent, counter updates |
//! | `metrics` | counters, in Prometheus' format |
//! | `keys` | keys, and bounds of slices, by the values of their columns |
//! | `encode`, `plain`, `elements`, `stamps` | writes by name into mutations |
//! | `shape`, `definition` | a table by the names of its columns, and as storage knows it |
//! | `ring`, `shards`, `worker`, `select`, `packer`, `resume`, `locks`, `turn`, `change` | which shard does the work, and how |
//! | `question`, `serving`, `spin` | a question to a shard, the shard's own thread, and the wait for the answer |
//! | `borrowing`, `here`, `patience` | an idle shard, borrowed by the calling thread |

mod borrowing;
mod change;
mod changes;
mod counters;
mod definition;
mod elements;
mod encode;
mod fold;
mod folder;
mod here;
mod keys;
mod locks;
mod many;
mod metrics;
mod new_rows;
mod opening;
mod packer;
mod patience;
mod pending;
mod plain;
mod point;
mod question;
mod read;
mod resume;
mod ring;
mod rows;
mod select;
mod serving;
mod shape;
mod shards;
mod short_key;
mod sink;
mod slots;
mod spin;
mod spread;
mod stamps;
mod table;
mod turn;
mod typed;
mod upkeep;
mod value;
mod worker;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use sstable::writer::Limits;
use storage::admission::AdmissionOptions;
use storage::commit_log::TableId;
use storage::{Generations, StoreOptions};

pub use model::{CqlType, Mutation, Schema, Token};
pub use sstable::Version;
pub use storage::commit_log::{CommitLogOptions, OnCorruption, SyncMode};
pub use storage::compactor::CompactionOptions;

pub use fold::{Folded, RowView};
pub use pending::Pending;
pub use read::{PAGE_BYTES, PAGE_ROWS, Scan, Slice};
pub use rows::{Page, Row};
pub use shape::{ColumnInfo, ColumnKind};
pub use table::Table;
pub use typed::FromCql;
pub use value::{IntoValues, Value, Values};
pub use write::{Batch, Bound, Write};

use change::Change;
use folder::{Layout, Locked};
use ring::Ring;
use shape::Shape;
use shards::ShardHandle;
use short_key::ShortKey;
use stamps::Stamps;
use turn::Turn;

use crate::table_schema::TableSchema;
use crate::{Error, Result};

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many threads share the tables, at least 1. Default one for each CPU, up to 16: of the memory that is given by default, more would
    /// each have too little. The number may differ each time that the database is opened.
    pub shards: usize,
    /// Whether the database only reads: it refuses writes, and leaves the remains of a crash as they are. Default no. One folder is open
    /// for writing by one program at a time and then by nobody else, or for reading by several.
    pub read_only: bool,
    /// Bytes for everything that is cached, of all shards together. Default 256 MiB.
    pub cache: usize,
    /// Bytes that memtables may take before the largest is flushed, of all shards together. Default 128 MiB.
    pub memtables: usize,
    /// Bytes that running reads may take, of all shards together. Default 128 MiB. A slice counts with the bytes that its page may have, by
    /// default 1 MiB, and up to as many for each SSTable that it reads. Reads beyond that wait, as do those beyond 100 running reads of a
    /// shard. A read fails with [`storage::Error::Overloaded`] if it has waited for 5 s, or if 1000 reads are waiting already.
    pub reads: usize,
    /// When writes are durable, and how large the logs of all shards together may become. Default that of
    /// [`CommitLogOptions`]: within ten seconds, as with Cassandra.
    pub log: CommitLogOptions,
    /// How each shard compacts its SSTables. Default by itself.
    pub compaction: CompactionOptions,
    /// What to do if a log is damaged, or has writes of a table that is missing. Default to stop.
    pub on_corruption: OnCorruption,
    /// The version of new SSTables. Default `me`, which Cassandra from 3.11.11 on and ScyllaDB from 5.1 on read. Tables with vectors have
    /// at least `nb`. [`sstable::writer::limits`] lists what a version cannot hold, such as times after 2038 before `oa`.
    pub version: Version,
    /// Maximum size of an index block in new SSTables, in bytes; a larger row is a block of its own. Default 4 KiB: to find a row of a
    /// large partition one block is read, and a block that stays in memory takes about 8 bytes. Cassandra's and ScyllaDB's default is 64
    /// KiB. Twice as much after each 256 MiB of a partition's index.
    pub column_index_size: u32,
    /// Whether to use io_uring if the kernel has it. Default yes.
    pub io_uring: bool,
    /// Whether SSTables are read and written past the page cache of the operating system. Default yes.
    pub direct_io: bool,
    /// Whether each shard stays on a CPU of its own. Default no.
    pub pin: bool,
}

/// The most shards by default.
const MOST_SHARDS: usize = 16;

impl Default for Options {
    fn default() -> Options {
        Options {
            shards: thread::available_parallelism().map_or(1, usize::from).min(MOST_SHARDS),
            read_only: false,
            cache: 256 << 20,
            memtables: 128 << 20,
            reads: 128 << 20,
            log: CommitLogOptions::default(),
            compaction: CompactionOptions::default(),
            on_corruption: OnCorruption::Stop,
            version: Version::Me,
            column_index_size: 4 << 10,
            io_uring: true,
            direct_io: true,
            pin: false,
        }
    }
}

impl Options {
    /// The most bytes of memory that the database takes; the allocator adds about a tenth. Memtables count twice, because one is filled
    /// while the one before is flushed. Each shard has another 16 MiB for a compaction, a flush and its log.
    ///
    /// Not among them: writes that wait to be carried out, each as large as it was given, up to 1,024 of them a shard; and in a read-only
    /// database the writes of the logs, which are read into memory and not flushed.
    pub fn memory(&self) -> usize {
        self.shards.max(1) * self.of_shard().memory()
    }

    /// The share of each shard.
    pub(crate) fn of_shard(&self) -> StoreOptions {
        let Options { mut log, compaction, .. } = self.clone();
        let shards = self.shards.max(1);
        log.total_size = (log.total_size / shards as u64).max(log.segment_size as u64);
        let admission = AdmissionOptions { memory: self.reads / shards, ..AdmissionOptions::default() };
        let (cache, memtables) = (self.cache / shards, self.memtables / shards);
        StoreOptions { cache, memtables, admission, log, compaction }
    }
}

/// An open database.
///
/// Dropping it closes it: earlier calls are carried out, the logs are made durable, and its tables refuse all later calls. Nothing has to
/// be flushed for that. The thread that drops it waits until that is done; [`Database::close`] does the same without blocking a thread,
/// and returns errors.
///
/// It is for all threads at once: put it into an `Arc`, or hand out its [tables](Table), which are cheap to clone but do not keep it open.
pub struct Database(Arc<Inner>);

/// What all handles of a database share.
struct Inner {
    layout: Layout,
    options: Options,
    ring: Ring,
    shards: Vec<ShardHandle>,
    tables: RwLock<BTreeMap<String, Arc<TableState>>>,
    /// Whoever makes, alters or drops a table.
    changes: Turn,
    stamps: Stamps,
    limits: Limits,
    /// Who counts.
    host_id: [u8; 16],
    /// Held by who waits for the threads to end.
    ending: Mutex<()>,
    /// Held as long as the database is open, and by each of its threads.
    locks: Mutex<Option<Arc<Vec<Locked>>>>,
}

/// A table as all handles of it share it.
struct TableState {
    id: TableId,
    folder: PathBuf,
    generations: Generations,
    shape: RwLock<Arc<Shape>>,
    /// Its key, which no change of it changes, if that is a short one.
    short_key: Option<ShortKey>,
    /// Its schema.cql; `None` where its columns are just those of its SSTables.
    text: Mutex<Option<String>>,
    /// Whoever changes its SSTables as a whole, or what it is.
    upkeep: Turn,
    /// Whoever changes what it is, while nothing is written to it.
    change: Change,
    is_dropped: AtomicBool,
}

impl Database {
    /// Opens the database in a folder, with all of its tables: those made by [`Database::create_table`], and folders copied from `data/` of
    /// Cassandra or ScyllaDB. If the folder is missing, it is made.
    ///
    /// A copied table takes its columns from `schema.cql` in its folder, which every snapshot contains. Without that file they come from
    /// its SSTables, which do not have the names of the primary key columns; these are then made up: `key`, `column1`. Such a table is
    /// neither written to nor compacted. Tables of the keyspaces `system…` are skipped.
    ///
    /// Give it a copy, never the folder of a running node, unless you open it with [`Options::read_only`]: it would take what the node is
    /// doing for the remains of a crash, remove files, and begin compactions.
    ///
    /// # Errors
    /// A folder that is open elsewhere, unless both only read; damaged files; what the operating system says. A table that cannot be opened is
    /// an error too, for example if its schema has an unknown option, or one of its SSTables an unsupported version. The other tables can
    /// then be read one by one with [`Database::open_table`]; to write to them, move the folder of that table away.
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Pending<Database> {
        let folder = folder.as_ref().to_path_buf();
        Pending::new(async move {
            let folder = absolute(&folder)?;
            opening::open(Layout::of_database(&folder), options).await.map(Database)
        })
    }

    /// Opens one table of a database, for reading only, by its name as [`Database::table`] takes it. No SSTable of another table is opened,
    /// so their number and state do not matter. Nothing is changed, whatever [`Options::read_only`] says, because the logs are those of all
    /// tables.
    ///
    /// ```no_run
    /// use siltstone::database::{Database, Options, Slice};
    ///
    /// let database = Database::open_table("/backup", "app.users", Options::default()).wait()?;
    /// let page = database.table("app.users")?.slice("alice", Slice::all()).wait()?;
    /// # Ok::<(), siltstone::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`]; [`Error::Usage`] if there is no such table.
    pub fn open_table(folder: impl AsRef<Path>, table: &str, options: Options) -> Pending<Database> {
        let (folder, table) = (folder.as_ref().to_path_buf(), table.to_owned());
        Pending::new(async move {
            let (folder, options) = (absolute(&folder)?, Options { read_only: true, ..options });
            opening::open(Layout::of_table_of(&folder, &table), options).await.map(Database)
        })
    }

    /// Opens the folder of one table, such as a copy from a backup. Its columns are those of `schema`, if given, or else those that
    /// [`Database::open`] takes. For writing, its log and other files are put into `.siltstone/` in the folder.
    ///
    /// If the folder lies in a database, it can only be read: its newest writes are in the logs of the database, which are read too. With a
    /// `schema` they are left out, and a warning says so.
    ///
    /// ```no_run
    /// use siltstone::database::{Database, Options, Scan};
    ///
    /// let options = Options { read_only: true, ..Options::default() };
    /// let database = Database::open_table_folder("/backup/users-7b8c", None, options).wait()?;
    /// let users = database.tables().remove(0);
    /// for row in users.scan(Scan::all()).wait()?.rows {
    ///     println!("{}", row.to_json()?);
    /// }
    /// # Ok::<(), siltstone::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`]; a folder without SSTables and without a schema. In a database: a folder that is to be written to, or any
    /// folder while the database is open for writing.
    pub fn open_table_folder(
        folder: impl AsRef<Path>,
        schema: Option<TableSchema>,
        options: Options,
    ) -> Pending<Database> {
        let folder = folder.as_ref().to_path_buf();
        Pending::new(async move {
            let folder = absolute(&folder)?;
            opening::open(Layout::of_table(&folder, schema, options.read_only)?, options).await.map(Database)
        })
    }

    /// Runs `work` on the thread of a shard, counted from 0. Calls of the work for partitions of that shard need no hop to another thread.
    /// Use it for loops over many small writes, and for reads while other threads keep the shard busy. [`Table::shard_of`] says which shard
    /// has a partition; with one shard, that is every partition.
    ///
    /// The work shares the thread with everything else that the shard does. So it must await, and neither block nor use [`Pending::wait`].
    /// If it panics, the shard ends.
    ///
    /// Once you have polled an answer there, poll it to completion or drop it: other reads may wait for a disk read that only its poller
    /// drives. An answer that was [begun](Pending::begun) proceeds by itself.
    ///
    /// ```
    /// # use siltstone::database::{Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int PRIMARY KEY, v int)").wait()?;
    /// let sum = database.run_on(0, async move || {
    ///     let mut found = 0;
    ///     for k in 0..100 {
    ///         t.write(Write::insert(k, ()).set("v", k)).await?;
    ///         found += usize::from(t.get(k, ()).await?.is_some());
    ///     }
    ///     Ok(found)
    /// });
    /// assert_eq!(sum.wait()?, 100);
    /// # database.close().wait()?;
    /// # Ok::<(), siltstone::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such shard; the error of the work.
    pub fn run_on<T: Send + 'static>(
        &self,
        shard: usize,
        work: impl AsyncFnOnce() -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let inner = self.0.clone();
        Pending::new(async move {
            let count = inner.shards.len();
            let shard = inner.shards.get(shard);
            let shard =
                shard.ok_or_else(|| Error::Usage(format!("there are {count} shards, counted from 0")))?;
            let call = shard.call(async move |_| work().await);
            drop(inner);
            call.await
        })
    }

    /// All tables, by their names.
    pub fn tables(&self) -> Vec<Table> {
        self.0.states().into_iter().map(|state| Table::new(&self.0, state)).collect()
    }

    /// A table by its name, as `keyspace.table`, or without the keyspace if only one keyspace has such a table. Names may be in quotes, as
    /// in CQL.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such table, or several.
    pub fn table(&self, name: &str) -> Result<Table> {
        let state = self.0.find(name)?;
        Ok(Table::new(&self.0, state))
    }

    /// Makes a table of a `CREATE TABLE` statement, with a keyspace in its name: `CREATE TABLE ks.t (…)`. `CREATE TYPE` statements may come
    /// before it; other statements of the text, such as indexes, are not kept. An `ID` among the options becomes the table's id.
    ///
    /// With `IF NOT EXISTS` a table of that name is returned as it is, whatever its columns are: so a program can begin with the statements
    /// of all of its tables.
    ///
    /// # Errors
    /// [`Error::Text`] for text that is no such statement; [`Error::Usage`] if the table exists already and the statement does not allow it,
    /// or if the database is read-only; what the operating system says.
    pub fn create_table(&self, cql: &str) -> Pending<Table> {
        let (inner, cql) = (self.0.clone(), cql.to_owned());
        Pending::new(async move {
            let state = inner.to_end(async move |inner| changes::create(&inner, &cql).await).await?;
            Ok(Table::new(&inner, state))
        })
    }

    /// Adds or drops columns, or changes options: `ALTER TABLE ks.t ADD …`, `DROP …`, `WITH …`. Meanwhile writes to the table wait, and the
    /// table is flushed.
    ///
    /// Values that were written to a column before it was dropped stay gone, even if a column of that name is added later.
    ///
    /// `ALTER TABLE IF EXISTS`, `ADD IF NOT EXISTS` and `DROP IF EXISTS` do nothing where there is nothing to do.
    ///
    /// # Errors
    /// [`Error::Text`] for text that is no such statement; [`Error::Usage`] if there is no such table, or if the database is read-only;
    /// [`Error::File`] if the table has no `schema.cql`; what the operating system says.
    pub fn alter_table(&self, cql: &str) -> Pending<()> {
        let (inner, cql) = (self.0.clone(), cql.to_owned());
        Pending::new(async move { inner.to_end(async move |inner| changes::alter(&inner, &cql).await).await })
    }

    /// Removes a table and all of its files, except its snapshots.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such table, or if the database is read-only; what the operating system says.
    pub fn drop_table(&self, name: &str) -> Pending<()> {
        let (inner, name) = (self.0.clone(), name.to_owned());
        Pending::new(async move {
            inner.to_end(async move |inner| changes::drop_table(&inner, &name).await).await
        })
    }

    /// Makes all earlier writes durable, whatever [`SyncMode`] says. Where that is [`SyncMode::Batch`], they are already.
    ///
    /// ```
    /// # use siltstone::database::{Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int PRIMARY KEY, v int)").wait()?;
    /// for k in 0..1000 {
    ///     t.write(Write::insert(k, ()).set("v", k)).wait()?;
    /// }
    /// database.sync().wait()?; // From here on no loss of power takes them.
    /// # database.close().wait()?;
    /// # Ok::<(), siltstone::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the operating system says: nothing more can be written then until the database is opened again.
    pub fn sync(&self) -> Pending<()> {
        let inner = self.0.clone();
        Pending::new(async move {
            if !inner.options.read_only {
                inner.each(async |worker, ()| worker.sync_log().await, &()).await?;
            }
            Ok(())
        })
    }

    /// Flushes all tables: all earlier writes are then in SSTables.
    ///
    /// # Errors
    /// [`Error::Usage`] if the database is read-only; what the operating system says.
    pub fn flush(&self) -> Pending<()> {
        let inner = self.0.clone();
        Pending::new(async move {
            for state in inner.states() {
                unless_dropped(&state, upkeep::flush(&inner, &state).await)?;
            }
            Ok(())
        })
    }

    /// Compacts all tables, one after the other, as [`Table::compact`] does. Tables without a `schema.cql` are left as they are.
    ///
    /// # Errors
    /// [`Error::Usage`] if the database is read-only; what cannot be read or written: later tables are then not compacted. What was merged
    /// before the error stays merged; no row changes.
    pub fn compact(&self) -> Pending<()> {
        let inner = self.0.clone();
        Pending::new(async move {
            inner.check_writable()?;
            for state in inner.states() {
                if inner.has_schema(&state) {
                    let table = Table::new(&inner, state.clone());
                    unless_dropped(&state, table.compact().await)?;
                }
            }
            Ok(())
        })
    }

    /// Makes a snapshot of all tables, one after the other, as [`Table::snapshot`] does. Returns their folders.
    ///
    /// # Errors
    /// [`Error::Usage`] if the database is read-only; those of [`Table::snapshot`]; snapshots of other tables may have been made.
    pub fn snapshot(&self, name: &str) -> Pending<Vec<PathBuf>> {
        let (tables, name) = (self.tables(), name.to_owned());
        Pending::new(async move {
            let mut folders = Vec::new();
            for table in tables {
                folders.extend(unless_dropped(&table.state, table.snapshot(&name).await)?);
            }
            Ok(folders)
        })
    }

    /// The metrics of the database, in the text format of Prometheus.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn metrics(&self) -> Pending<String> {
        let inner = self.0.clone();
        Pending::new(async move { metrics::text(&inner).await })
    }

    /// Closes the database: carries out all earlier calls, and makes the logs durable. Later calls return [`Error::Closed`], but closing it
    /// again does nothing.
    ///
    /// # Errors
    /// A log that could not be made durable; a shard that has panicked: of several that close it, the first is told. [`Error::Usage`] on a shard of the database, as in
    /// [`Database::run_on`]: the database is closed then too, but its threads end later, as they cannot wait for themselves.
    pub fn close(&self) -> Pending<()> {
        let inner = self.0.clone();
        Pending::new(async move { inner.end_elsewhere().await })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The shards close their logs when their queues end; who wants to know what goes wrong calls `close`.
        drop(self.0.end());
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("folder", &self.0.layout.own).finish_non_exhaustive()
    }
}

impl Inner {
    /// The shard of a token.
    fn shard_of(&self, token: model::Token) -> &ShardHandle {
        &self.shards[self.ring.shard_of(token)]
    }

    /// Does what is not to be left half done: on a shard, whether or not somebody still waits for it.
    async fn to_end<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl AsyncFnOnce(Arc<Inner>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.clone();
        self.shards[0].call_to_end(async move |_| work(inner).await).await
    }

    fn states(&self) -> Vec<Arc<TableState>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn find(&self, name: &str) -> Result<Arc<TableState>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = tables.values().filter(|state| state.is_called(name));
        match (found.next(), found.next()) {
            (Some(state), None) => Ok(state.clone()),
            (None, _) => Err(Error::Usage(format!("there is no table {name}{}", list(&tables)))),
            (Some(_), Some(_)) => Err(Error::Usage(format!("{name} may be several{}", list(&tables)))),
        }
    }

    /// Whether there is a table that may be called so.
    fn has(&self, name: &str) -> bool {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.values().any(|state| state.is_called(name))
    }

    /// The same as [`Inner::end`], without a wait on this thread, which may have other futures to poll.
    async fn end_elsewhere(self: Arc<Self>) -> Result<()> {
        if self.shards.iter().any(ShardHandle::is_here) {
            return self.end();
        }
        let (ended, has_ended) = async_channel::bounded(1);
        let inner = self.clone();
        let ends = move || {
            let end = inner.end();
            drop(inner);
            drop(ended.send_blocking(end));
        };
        match thread::Builder::new().name("siltstone-close".to_owned()).spawn(ends) {
            Ok(_) => has_ended.recv().await.unwrap_or_else(|_| self.end()),
            Err(_) => self.end(),
        }
    }

    /// Ends the threads, and gives the folder back.
    fn end(&self) -> Result<()> {
        self.shards.iter().for_each(ShardHandle::close);
        let mut ended = Ok(());
        if self.shards.iter().any(ShardHandle::is_here) {
            // Others may wait for that one. They end by themselves, and hold the lock until then.
            let what = "a database is not waited for on one of its shards: it is closed, and ends by itself";
            ended = Err(Error::Usage(what.to_owned()));
        } else {
            // Whoever comes meanwhile waits too.
            let _ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            for shard in &self.shards {
                ended = ended.and(shard.join());
            }
        }
        drop(self.locks.lock().unwrap_or_else(PoisonError::into_inner).take());
        ended
    }
}

impl TableState {
    /// The table as it is now.
    fn shape(&self) -> Arc<Shape> {
        self.shape.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The tables there are, for messages.
fn list(tables: &BTreeMap<String, Arc<TableState>>) -> String {
    match tables.is_empty() {
        true => ": there are none".to_owned(),
        false => format!(", but {}", tables.keys().cloned().collect::<Vec<_>>().join(", ")),
    }
}

/// What was done with a table; nothing if there is no such table any more: who goes through all tables goes on then.
fn unless_dropped<T>(state: &TableState, done: Result<T>) -> Result<Option<T>> {
    match done {
        Err(_) if state.is_dropped.load(Ordering::Acquire) => Ok(None),
        done => done.map(Some),
    }
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).map_err(|error| Error::file(folder, error.to_string()))
}
