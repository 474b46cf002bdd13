//! A table's reads and writes, each sent to the shards that have its rows.

use std::borrow::Borrow;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{CqlType, Mutation, Schema, Token, flat};
use sstable::writer::Limits;
use storage::Tokens;
use tracing::{Instrument as _, Span, debug_span};

use super::counters::Increments;
use super::encode::{Encoder, Record};
use super::fold::{Fold, Folded, RowView};
use super::point::Point;
use super::read::{PAGE_ROWS, PageOptions};
use super::resume::Resume;
use super::rows::PackedRows;
use super::select::{Answer, FlatSlice, ScanRead, Selection, SliceRead, after};
use super::shape::{Selected, Shape};
use super::sink::Sink;
use super::upkeep;
use super::worker::Worker;
use super::{Batch, ColumnInfo, Inner, IntoValues, Page, Pending, Row, Scan, Slice, TableState, Value};
use crate::{Error, Result};

/// A table of an open database. Clones are the same table.
///
/// A handle stays valid when the table is altered. Once the table is dropped, or the database is closed, its calls return an error.
#[derive(Clone)]
pub struct Table {
    pub(super) inner: Arc<Inner>,
    pub(super) state: Arc<TableState>,
}

impl Table {
    pub(super) fn new(inner: &Arc<Inner>, state: Arc<TableState>) -> Table {
        Table { inner: inner.clone(), state }
    }

    /// A timestamp greater than all that earlier writes were given, in microseconds since 1970.
    pub(crate) fn next_micros(&self) -> i64 {
        self.inner.stamps.micros()
    }

    /// `keyspace.table`, without quotes.
    pub fn name(&self) -> String {
        self.state.shape().name()
    }

    /// The folder of its SSTables.
    pub fn folder(&self) -> &Path {
        &self.state.folder
    }

    /// Its columns, in the order of `SELECT *`.
    pub fn columns(&self) -> Arc<[ColumnInfo]> {
        self.state.shape().columns.clone()
    }

    /// Its columns as files have them. A [`Mutation`] names its columns by this schema.
    pub fn schema(&self) -> Schema {
        self.state.shape().model().clone()
    }

    /// Writes a batch. After the answer, reads see it, and it is as durable as [`super::Options::log`] promises.
    ///
    /// ```
    /// # use siltstone::database::{Batch, Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))").wait()?;
    /// t.write(Write::insert(1, 2).set("v", "a").ttl(60)).wait()?;
    /// t.write((0..10).map(|c| Write::insert(7, c).set("v", "b")).collect::<Batch>()).wait()?;
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] for unknown columns, values that are not of their types, and read-only databases: nothing is written then, unless the
    /// table was altered meanwhile. [`Error::File`] for a table without a `schema.cql`, which is only read. What the operating system says,
    /// of this write, or of a flush in the background for which there was no room: the writes may be there or not.
    /// [`storage::Error::LogFailed`] until the database is opened again, once a write to its log has failed.
    pub fn write(&self, batch: impl Into<Batch>) -> Pending<()> {
        self.write_kept(batch.into())
    }

    /// The same for a caller that keeps the batch, to say what was wrong in it.
    pub(crate) fn write_kept(&self, batch: impl Borrow<Batch> + Send + Sync + 'static) -> Pending<()> {
        let table = self.clone();
        let span = debug_span!("write", table = self.name(), writes = batch.borrow().len());
        self.pending(span, async move {
            let encode = |shape: &Shape| table.encoder(shape).records(batch.borrow());
            table.write_encoded(encode).await
        })
    }

    /// Writes a mutation as it is. Its columns are numbered as in [`Table::schema`].
    ///
    /// # Errors
    /// [`Error::Usage`] if it does not fit this table, or the table's SSTables could not hold it. What the operating system says.
    pub fn write_mutation(&self, mutation: &Mutation) -> Pending<()> {
        let shape = self.state.shape();
        let record = self.record_of(&shape, mutation.clone());
        let table = self.clone();
        let span = debug_span!("write_mutation", table = self.name());
        self.pending(span, async move {
            let record = record?;
            table
                .write_encoded(|now: &Shape| match now.version == shape.version {
                    true => Ok(vec![record.clone()]),
                    false => Err(Error::Usage(format!("{}: the table was altered meanwhile", now.name()))),
                })
                .await
        })
    }

    /// Adds to counters of a row: to each column its number, which may be negative.
    ///
    /// ```
    /// # use siltstone::database::{Database, Options};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait()?;
    /// let hits = database.create_table("CREATE TABLE ks.hits (page text PRIMARY KEY, n counter)").wait()?;
    /// hits.add("/", (), [("n", 5)]).wait()?;
    /// hits.add("/", (), [("n", -2)]).wait()?;
    /// let row = hits.get("/", ()).wait()?.expect("it was counted");
    /// assert_eq!(row.get_as("n")?, Some(3));
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if they are no counters. What the operating system says: the numbers may then have been added or not. Read the row
    /// before you try again.
    pub fn add(
        &self,
        key: impl IntoValues,
        clustering: impl IntoValues,
        by: impl IntoIterator<Item = (impl Into<String>, i64)>,
    ) -> Pending<()> {
        self.add_many([(key, clustering, by)])
    }

    /// Adds to counters of many rows. Their current values are read together; after that each row is updated separately. A row that is
    /// named twice is added to twice.
    ///
    /// ```
    /// # use siltstone::database::{Database, Options};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 2, ..Options::default() }).wait()?;
    /// let hits = database.create_table("CREATE TABLE ks.hits (page text PRIMARY KEY, n counter)").wait()?;
    /// hits.add_many(["/", "/a", "/"].map(|page| (page, (), [("n", 1)]))).wait()?;
    /// let rows = hits.get_many(["/", "/a"].map(|page| (page, ()))).wait()?;
    /// let counts = rows.iter().flatten().map(|row| row.get_as("n")).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(counts, [Some(2), Some(1)]);
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if some are no counters: nothing is added then, unless the table was altered meanwhile. What the operating system
    /// says: each row may then have been added to or not. Read the rows before you try again.
    pub fn add_many(
        &self,
        all: impl IntoIterator<
            Item = (impl IntoValues, impl IntoValues, impl IntoIterator<Item = (impl Into<String>, i64)>),
        >,
    ) -> Pending<()> {
        let all = all.into_iter().map(|(key, clustering, by)| Increments {
            key: key.into_values(),
            clustering: clustering.into_values(),
            by: by.into_iter().map(|(name, by)| (name.into(), by)).collect(),
        });
        let (all, table): (Vec<_>, _) = (all.collect(), self.clone());
        let span = debug_span!("add", table = self.name(), rows = all.len());
        self.pending(span, async move {
            table.check_writable()?;
            table.count(&all).await
        })
    }

    /// A row by its whole key; the clustering is `()` if the table has no clustering columns. If the shard is idle, the call itself looks
    /// into the row cache and asks the filters. If these have the answer, it is of the moment of the call, not of the first poll.
    ///
    /// # Errors
    /// [`Error::Usage`] for a key that does not fit this table; what cannot be read.
    pub fn get(&self, key: impl IntoValues, clustering: impl IntoValues) -> Pending<Option<Row>> {
        let span = debug_span!("get", table = self.name());
        let point = Point { key: key.into_values(), clustering: clustering.into_values() };
        self.read_point(span, point)
    }

    /// Rows by their whole keys, in the order of the keys. All keys of a shard go there together, the filters of its SSTables are asked for
    /// all of them at once, and rows of one block are one request. So it also serves as `SELECT … WHERE k = ? AND c IN (…)`.
    ///
    /// ```
    /// # use siltstone::database::{Batch, Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 2, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))").wait()?;
    /// t.write((0..10).map(|k| Write::insert(k, 1).set("v", "a")).collect::<Batch>()).wait()?;
    /// let rows = t.get_many([(7, 1), (70, 1), (3, 1)]).wait()?;
    /// assert_eq!(rows.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] for a key that does not fit this table; what cannot be read.
    pub fn get_many(
        &self,
        keys: impl IntoIterator<Item = (impl IntoValues, impl IntoValues)>,
    ) -> Pending<Vec<Option<Row>>> {
        let keys = keys.into_iter().map(|(key, clustering)| (key.into_values(), clustering.into_values()));
        let (keys, table): (Vec<_>, _) = (keys.collect(), self.clone());
        let span = debug_span!("get_many", table = self.name(), keys = keys.len());
        self.pending(span, async move { table.read_many(&keys).await })
    }

    /// Inserts rows if they are absent: `INSERT … IF NOT EXISTS`. Returns for each, in the order of the batch, whether it was inserted.
    /// Each row is checked and inserted separately, also within one partition; the check reads all of them together. Inserted rows get
    /// timestamps newer than any deletion of them; with an explicit timestamp a newer deletion may still hide the row.
    ///
    /// ```
    /// # use siltstone::database::{Batch, Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 2, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.users (name text PRIMARY KEY, mail text)").wait()?;
    /// t.write(Write::insert("ada", ()).set("mail", "a@b")).wait()?;
    /// let new = ["ada", "bob"].map(|name| Write::insert(name, ()).set("mail", "c@d"));
    /// assert_eq!(t.insert_new(new.into_iter().collect::<Batch>()).wait()?, [false, true]);
    /// assert_eq!(t.get("ada", ()).wait()?.expect("she was there").json_of("mail")?, "\"a@b\"");
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] for writes that insert no row, unknown columns, and values that are not of their types: nothing is written then,
    /// unless the table was altered meanwhile. What cannot be read or written: rows may then have been inserted or not.
    pub fn insert_new(&self, batch: impl Into<Batch>) -> Pending<Vec<bool>> {
        let (table, batch) = (self.clone(), batch.into());
        let span = debug_span!("insert_new", table = self.name(), rows = batch.len());
        self.pending(span, async move {
            table.check_writable()?;
            table.insert_absent(&batch).await
        })
    }

    /// The shard that has a partition: see [`super::Database::run_on`].
    ///
    /// # Errors
    /// [`Error::Usage`] for a key that does not fit this table.
    pub fn shard_of(&self, key: impl IntoValues) -> Result<usize> {
        let key = self.state.shape().key(&key.into_values())?;
        Ok(self.inner.ring.shard_of(key.token))
    }

    /// Rows of a partition.
    ///
    /// # Errors
    /// [`Error::Usage`] for a key, bound or column that does not fit this table; what cannot be read.
    pub fn slice(&self, key: impl IntoValues, slice: Slice) -> Pending<Page> {
        let (table, key) = (self.clone(), key.into_values());
        let span = debug_span!("slice", table = self.name());
        self.pending(
            span,
            async move { table.read_slice(|shape| table.slice_read_by(shape, &key, &slice)).await },
        )
    }

    /// Shows the rows of a partition to a function, one by one and in place: for sums, searches, and other uses that need each row only
    /// once. Nothing is copied; only the state leaves the shard.
    ///
    /// It ends with the slice, with the [limit](Slice::limit) of rows, 5000 by default, or when the function breaks off.
    /// [Bytes](Slice::limit_bytes) are no limit.
    ///
    /// The function runs on the thread of the shard. If the shard is idle and the limit is 5000 rows or fewer, the thread that polls the
    /// answer runs it for the first rows or for all: for rows in memory, and with [`Pending::wait`] also for rows from disk. Meanwhile the
    /// shard does nothing else, so the function must neither block nor call the database. If it panics, the shard ends.
    ///
    /// ```
    /// # use siltstone::database::{Batch, Database, Options, Slice, Write};
    /// # use std::ops::ControlFlow;
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 2, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))").wait()?;
    /// t.write((0..100).map(|c| Write::insert(7, c).set("v", 2 * c)).collect::<Batch>()).wait()?;
    /// let sum = t.fold(7, Slice::all().columns(["v"]), 0, |sum, row| {
    ///     let value = row.get("v").and_then(|bytes| bytes.try_into().ok());
    ///     *sum += value.map_or(0, i32::from_be_bytes);
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(sum.wait()?.state, 9900);
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::slice`].
    pub fn fold<A: Send + 'static>(
        &self,
        key: impl IntoValues,
        slice: Slice,
        start: A,
        each: impl FnMut(&mut A, RowView<'_>) -> ControlFlow<()> + Send + 'static,
    ) -> Pending<Folded<A>> {
        let (table, key) = (self.clone(), key.into_values());
        let span = debug_span!("fold", table = self.name());
        self.pending(span, async move {
            let read = |shape: &Shape| table.slice_read_by(shape, &key, &slice);
            let (_, fold) = table.read_into(Fold::new(start, each), read).await?;
            Ok(fold.finish())
        })
    }

    /// Rows of many partitions, in token order. A page may have rows of several shards.
    ///
    /// ```
    /// # use siltstone::database::{Database, Options, Scan, Write};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 2, ..Options::default() }).wait()?;
    /// # let t = database.create_table("CREATE TABLE ks.t (k int PRIMARY KEY, v text)").wait()?;
    /// # t.write((0..10).map(|k| Write::insert(k, ()).set("v", "a")).collect::<siltstone::database::Batch>()).wait()?;
    /// let (mut next, mut rows) = (None, 0);
    /// loop {
    ///     let page = t.scan(Scan::all().columns(["k"]).limit(3).resume(next)).wait()?;
    ///     rows += page.rows.len();
    ///     next = page.next;
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(rows, 10);
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown column; what cannot be read.
    pub fn scan(&self, scan: Scan) -> Pending<Page> {
        let table = self.clone();
        let span = debug_span!("scan", table = self.name());
        self.pending(span, async move {
            let (columns, packed) = table.scan_into(PackedRows::default(), &scan).await?;
            Ok(packed.into_page(&columns))
        })
    }

    /// Shows the rows of many partitions to a function, in token order: [`Table::fold`] for a scan. The function runs on the thread of one
    /// shard after the other. If the table is altered meanwhile, no row is shown twice, and later rows have the new columns.
    ///
    /// ```
    /// # use siltstone::database::{Batch, Database, Options, Scan, Write};
    /// # use std::ops::ControlFlow;
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 2, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int PRIMARY KEY, v text)").wait()?;
    /// t.write((0..100).map(|k| Write::insert(k, ()).set("v", "silt")).collect::<Batch>()).wait()?;
    /// let bytes = t.fold_scan(Scan::all().columns(["v"]).limit(usize::MAX), 0, |bytes, row| {
    ///     *bytes += row.get("v").map_or(0, <[u8]>::len);
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(bytes.wait()?.state, 400);
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::scan`].
    pub fn fold_scan<A: Send + 'static>(
        &self,
        scan: Scan,
        start: A,
        each: impl FnMut(&mut A, RowView<'_>) -> ControlFlow<()> + Send + 'static,
    ) -> Pending<Folded<A>> {
        let table = self.clone();
        let span = debug_span!("fold_scan", table = self.name());
        self.pending(span, async move {
            let (_, fold) = table.scan_into(Fold::new(start, each), &scan).await?;
            Ok(fold.finish())
        })
    }

    /// Flushes the table: all earlier writes are then in SSTables.
    ///
    /// # Errors
    /// What the operating system says; the rows are then still in memory and in the log.
    pub fn flush(&self) -> Pending<()> {
        let table = self.clone();
        let span = debug_span!("flush", table = self.name());
        self.pending(span, async move { upkeep::flush(&table.inner, &table.state).await })
    }

    /// Runs a major compaction: merges the SSTables of each shard, into one, or into levels if the table has leveled compaction. SSTables
    /// that several shards share are split first.
    ///
    /// Two kinds of SSTables are left as they are: those of at least 64 MiB and an eighth of the shard's table whose rows overlap no other
    /// SSTable, so that rows written in their order are not written again; and a single SSTable with nothing to merge with. Both are left
    /// only if they were written since the table was opened or last altered, and nothing in them, or in SSTables with tokens in their
    /// range, is deleted or expires.
    ///
    /// # Errors
    /// What cannot be read or written. What was merged before the error stays merged; no row changes.
    pub fn compact(&self) -> Pending<()> {
        let table = self.clone();
        let span = debug_span!("compact", table = self.name());
        self.pending(span, async move {
            let Table { inner, state } = table;
            inner.to_end(async move |inner| upkeep::compact(&inner, &state).await).await
        })
    }

    /// Flushes the table and makes a snapshot of it as Cassandra does: `snapshots/<name>/` in its folder gets hard links to all files of
    /// all SSTables, and `schema.cql`.
    ///
    /// # Errors
    /// [`Error::Usage`] if a snapshot of that name exists, no folder can have that name, or the database is read-only; what the operating
    /// system says.
    pub fn snapshot(&self, name: &str) -> Pending<std::path::PathBuf> {
        let (table, name) = (self.clone(), name.to_owned());
        let span = debug_span!("snapshot", table = self.name(), name);
        self.pending(span, async move {
            let Table { inner, state } = table;
            inner.to_end(async move |inner| upkeep::snapshot(&inner, &state, &name).await).await
        })
    }

    /// Runs in a span, unless the table was dropped.
    fn pending<T: 'static>(
        &self,
        span: Span,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<T> {
        let table = self.clone();
        let checked = async move {
            table.check_there()?;
            work.await
        };
        Pending::new(checked.instrument(span))
    }

    /// An error if the table was dropped.
    pub(super) fn check_there(&self) -> Result<()> {
        match self.state.is_dropped.load(Ordering::Acquire) {
            true => Err(Error::Usage(format!("the table {} was dropped", self.name()))),
            false => Ok(()),
        }
    }

    /// An error if no write is taken at all, whatever it is.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.check_there()?;
        self.check_writable()
    }

    fn check_writable(&self) -> Result<()> {
        if self.inner.options.read_only {
            return Err(Error::Usage("the database is open for reading only".to_owned()));
        }
        if !self.inner.has_schema(&self.state) {
            return Err(Error::file(
                &self.state.folder,
                "its columns are just those of its SSTables, as it has no schema.cql, or one of a view: it is only read",
            ));
        }
        Ok(())
    }

    fn record_of(&self, shape: &Shape, mutation: Mutation) -> Result<Record> {
        let refused = |what: String| Error::Usage(format!("{}: {what}", shape.name()));
        mutation.check(shape.model()).map_err(refused)?;
        if mutation.key.bytes.is_empty() {
            return Err(refused("a partition key without bytes".to_owned()));
        }
        if mutation.key.token != model::key::token_of(&mutation.key.bytes) {
            return Err(Error::Usage("the token of a mutation is not that of its key".to_owned()));
        }
        self.encoder(shape).check(&mutation)?;
        Ok(Record::of(&mutation))
    }

    /// What SSTables of the table can hold.
    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(super) fn encoder<'a>(&'a self, shape: &'a Shape) -> Encoder<'a> {
        let Inner { stamps, limits, .. } = &*self.inner;
        Encoder { shape, stamps, limits, now: crate::now() }
    }

    /// Writes what is encoded for the table as it is, again if it was altered meanwhile.
    async fn write_encoded(&self, encode: impl Fn(&Shape) -> Result<Vec<Record>>) -> Result<()> {
        self.check_writable()?;
        let mut done: Vec<bool> = Vec::new();
        loop {
            let shape = self.state.shape();
            let records = encode(&shape)?;
            done.resize(records.len(), false);
            let (id, version) = (self.state.id, shape.version);
            let due = records.into_iter().zip(&mut done).filter(|(_, done)| !**done);
            let written = due.map(|(Record { token, bytes }, done)| {
                let shard = self.inner.shard_of(token);
                let write = shard.call(async move |worker| worker.write(id, version, bytes).await);
                async move {
                    *done = write.await?.is_some();
                    Ok(())
                }
            });
            runtime::join_all(written).await.into_iter().collect::<Result<()>>()?;
            if done.iter().all(|done| *done) {
                return Ok(());
            }
            // The partitions are encoded in the same order again.
            self.until_altered().await?;
        }
    }

    /// Reads what `read` makes for the table as it is, again if it was altered meanwhile.
    async fn read_slice(
        &self,
        read: impl Fn(&Shape) -> Result<(Arc<[ColumnInfo]>, SliceRead)>,
    ) -> Result<Page> {
        let (columns, packed) = self.read_into(PackedRows::default(), read).await?;
        Ok(packed.into_page(&columns))
    }

    /// Gives the rows of what `read` makes for the table as it is to a sink.
    async fn read_into<S: Sink + Send + 'static>(
        &self,
        mut sink: S,
        read: impl Fn(&Shape) -> Result<(Arc<[ColumnInfo]>, SliceRead)>,
    ) -> Result<(Arc<[ColumnInfo]>, S)> {
        loop {
            let (columns, read) = read(&self.state.shape())?;
            let shard = self.inner.shard_of(read.token);
            sink.select(&columns);
            // Who asks for more than a page may have something else to do meanwhile.
            let is_long = read.selection.rows > PAGE_ROWS;
            let work = move |worker: &Rc<Worker>| worker.read_slice(read, sink);
            let asked = if is_long { shard.ask_at_length(work) } else { shard.ask(work) };
            match asked.await? {
                Answer::Rows(sink) => return Ok((columns, sink)),
                Answer::Altered(empty) => sink = empty,
            }
            self.until_altered().await?;
        }
    }

    fn slice_read_by(
        &self,
        shape: &Shape,
        key: &[Value],
        slice: &Slice,
    ) -> Result<(Arc<[ColumnInfo]>, SliceRead)> {
        let mut rows = model::Slice { start: shape.start(&slice.from)?, end: shape.end(&slice.to)? };
        let with_static_only = rows.is_all() && slice.page.resume.is_none();
        let resume = slice.page.resume.as_deref().map(Resume::parse).transpose()?;
        if let Some(resume) = &resume {
            let position = resume.position()?;
            match slice.is_reverse {
                true => rows.end = position.unwrap_or_else(model::Position::start),
                false => rows.start = position.unwrap_or_else(model::Position::end),
            }
        }
        let (columns, mut read) = self.slice_read(shape, key, &rows, &slice.page)?;
        if resume.is_some_and(|resume| resume.key != *read.key) {
            return Err(Error::Usage("the position to go on at is of another partition".to_owned()));
        }
        (read.reverse, read.with_static_only) = (slice.is_reverse, with_static_only);
        Ok((columns, read))
    }

    fn slice_read(
        &self,
        shape: &Shape,
        key: &[Value],
        rows: &model::Slice,
        page: &PageOptions,
    ) -> Result<(Arc<[ColumnInfo]>, SliceRead)> {
        let key = shape.key_bytes(key)?;
        let (columns, selection) = self.selection(shape, page)?;
        let (token, with_static_only) = (model::key::token_of(&key), rows.is_all());
        let mut bytes = Vec::new();
        flat::put_slice(rows, &mut bytes);
        let slice = FlatSlice::from_slice(&bytes);
        Ok((columns, SliceRead { selection, token, key, slice, reverse: false, with_static_only }))
    }

    /// Gives the rows of a scan to a sink, shard after shard, until it has enough. Where the table is altered meanwhile, it
    /// goes on with the columns as they are then, or begins again.
    async fn scan_into<S: Sink + Send + 'static>(
        &self,
        mut sink: S,
        scan: &Scan,
    ) -> Result<(Arc<[ColumnInfo]>, S)> {
        let (first, last) = scan.tokens.clone().map_or((Token::MIN, Token::MAX), |range| range.into_inner());
        let tokens = Tokens { after: after(first), last };
        let start = scan.page.resume.as_deref().map(Resume::parse).transpose()?;
        let (mut left, mut resume) = (tokens, start.clone());
        loop {
            let (columns, answer) = self.scan_unaltered(sink, &scan.page, &mut left, resume.as_ref()).await?;
            match answer {
                Answer::Rows(with_rows) => return Ok((columns, with_rows)),
                Answer::Altered(rest) => sink = rest,
            }
            if sink.begins_again() {
                (left, resume) = (tokens, start.clone());
            } else if let Some(next) = sink.take_next() {
                resume = Some(Resume::parse(&next)?);
            }
            self.until_altered().await?;
        }
    }

    /// The same with the columns as they are now, up to where the table is altered; `left` is what of the tokens was not come to.
    async fn scan_unaltered<S: Sink + Send + 'static>(
        &self,
        mut sink: S,
        page: &PageOptions,
        left: &mut Tokens,
        resume: Option<&Resume>,
    ) -> Result<(Arc<[ColumnInfo]>, Answer<S>)> {
        let (columns, selection) = self.selection(&self.state.shape(), page)?;
        sink.select(&columns);
        let from = resume.map(|resume| model::key::token_of(&resume.key));
        for (shard, part) in self.inner.shards.iter().zip(self.inner.ring.parts()) {
            let is_done = from.is_some_and(|from| part.last < from);
            if is_done || part.common(left).is_none() {
                continue;
            }
            let read = ScanRead { selection: selection.clone(), tokens: *left, resume: resume.cloned() };
            match shard.call(async move |worker| worker.read_scan(read, sink).await).await? {
                Answer::Rows(with_rows) => sink = with_rows,
                altered @ Answer::Altered(_) => return Ok((columns, altered)),
            }
            if sink.is_full(&selection) {
                break;
            }
            left.after = Some(part.last);
        }
        Ok((columns, Answer::Rows(sink)))
    }

    pub(super) fn selection(
        &self,
        shape: &Shape,
        page: &PageOptions,
    ) -> Result<(Arc<[ColumnInfo]>, Selection)> {
        let Selected { is_all, columns, places } = shape.select(page.columns.as_deref())?;
        let (table, version) = (self.state.id, shape.version);
        let PageOptions { rows, bytes, now, .. } = *page;
        let wants_next = true;
        Ok((columns, Selection { table, version, places, is_all, rows, bytes, now, wants_next }))
    }

    /// Waits until nobody alters the table.
    ///
    /// # Errors
    /// [`Error::Closed`] if that was cut off.
    pub(super) async fn until_altered(&self) -> Result<()> {
        self.state.change.over().await
    }

    /// The types of the partition key's columns.
    pub fn key_types(&self) -> Vec<CqlType> {
        self.state.shape().key_types().to_vec()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}
