//! The folder of a database: that of Cassandra's data, and our own files beside.
//!
//! ```text
//! data/<keyspace>/<table>-<32 digits>/me-7-big-Data.db …     the SSTables of a table, and its id
//!                                     schema.cql             what the table is
//! commitlog/shard-0/ …                                       what is in no SSTable yet
//! host_id                                                    who counts, as a UUID
//! lock                                                       locked as long as the database is open
//! ```
//!
//! Of the folder of one table, what is ours is in `.siltstone/` inside of it; of one that lies in a database, it is the database's. What is in a log in
//! such a folder, from before there was the database, is replayed by that.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use model::hex::{parse_hex, to_hex};
use model::key::murmur3;
use model::merge::UnifiedSchema;
use model::{CqlType, Schema};
use runtime::{Cache, Disk, IoClass};
use sstable::{OpenOptions, SSTable};
use storage::commit_log::{EarlierLog, OnCorruption, TableId};

use super::Options;
use crate::paths;
use crate::table_schema::{FolderName, TableOptions, TableSchema, Wanted};
use crate::{Error, Result};

/// The file that says what a table is.
pub(super) const SCHEMA: &str = paths::SCHEMA;

/// What is ours in the folder of a table that was opened by it.
const OWN: &str = ".siltstone";

/// The file that tells who counts, and the one that is locked.
const HOST_ID: &str = "host_id";
const LOCK: &str = "lock";

/// What is in a table's folder while it is dropped.
pub(super) const DROPPED: &str = "dropped";

/// Reads and writes of schemas.
const SCHEMA_IO: IoClass = IoClass::new(9);

/// Where the files of a database are.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// What is ours: log, lock, id.
    pub(super) own: PathBuf,
    pub(super) tables: Tables,
    /// Whether the logs are of these tables as they are: not where a table has other columns here than in its database.
    has_logs: bool,
}

/// Where the tables are.
#[derive(Clone, Debug)]
pub(super) enum Tables {
    /// In the folders of keyspaces in this one: all of them, or those that are called so.
    All(PathBuf, Option<String>),
    /// There is one, of these columns if they are not to be found out.
    One(PathBuf, Option<Box<TableSchema>>),
}

/// A table that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) id: TableId,
    pub(super) folder: PathBuf,
    pub(super) schema: TableSchema,
    /// Its schema.cql, if it has one.
    pub(super) text: Option<String>,
}

/// What is there of tables.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub(super) found: Vec<Found>,
    /// Those that were dropped, with the folders that are not gone yet.
    pub(super) dropped: Vec<(TableId, PathBuf)>,
}

/// What a folder has.
enum Holding {
    Table(Box<Found>),
    Dropped(TableId),
    Nothing,
}

impl Layout {
    pub(super) fn of_database(folder: &Path) -> Layout {
        Layout { own: folder.to_path_buf(), tables: Tables::All(folder.join("data"), None), has_logs: true }
    }

    /// One table of a database, to be read.
    pub(super) fn of_table_of(folder: &Path, table: &str) -> Layout {
        let tables = Tables::All(folder.join("data"), Some(table.to_owned()));
        Layout { own: folder.to_path_buf(), tables, has_logs: true }
    }

    /// The folder of one table. Where it lies in a database, what was written last is in the logs of that, which are of all tables: it is
    /// only read then, and with other columns than the database has not even those.
    pub(super) fn of_table(folder: &Path, schema: Option<TableSchema>, read_only: bool) -> Result<Layout> {
        let around = database_around(folder);
        if let (Some(database), false) = (&around, read_only) {
            let database = database.display();
            return Err(Error::file(
                folder,
                format!("it is a table of the database in {database}: open that to write to it"),
            ));
        }
        let has_logs = around.is_none() || schema.is_none();
        if let (Some(database), false) = (&around, has_logs) {
            tracing::warn!(database = %database.display(), "what is in the log of the database is not read: the columns were given");
        }
        let own = around.unwrap_or_else(|| folder.join(OWN));
        Ok(Layout { own, tables: Tables::One(folder.to_path_buf(), schema.map(Box::new)), has_logs })
    }

    /// The folder of a shard's log.
    pub(super) fn log(&self, shard: usize) -> PathBuf {
        self.own.join("commitlog").join(format!("shard-{shard}"))
    }

    /// The logs of all shards that there ever were, and of tables that were written to by their folders: all of the records in such a log are that
    /// table's, whatever its id was.
    ///
    /// # Errors
    /// If there is such a log, and nothing tells of which columns its rows are.
    pub(super) async fn logs(
        &self,
        disk: &Disk,
        Inventory { found, dropped }: &Inventory,
        on_corruption: OnCorruption,
    ) -> Result<Vec<EarlierLog>> {
        if !self.has_logs {
            return Ok(Vec::new());
        }
        let is_of_database = !matches!(&self.tables, Tables::One(folder, _) if self.own == folder.join(OWN));
        let of_database = if is_of_database { logs_in(disk, &self.own)? } else { Vec::new() };
        // Where another table has that id, the logs have been told of the drop.
        let is_gone = |id: &TableId| !found.iter().any(|table| table.id == *id);
        let gone: Vec<_> = dropped.iter().map(|(id, _)| *id).filter(is_gone).collect();
        let mut logs: Vec<_> = of_database.into_iter().map(|log| log.without(gone.clone())).collect();
        for table in found {
            if table.text.is_none() && !self.gives_schema() {
                refuse_logs(disk, &table.folder, on_corruption).await?;
            }
            let own = logs_in(disk, &table.folder.join(OWN))?;
            logs.extend(own.into_iter().map(|log| log.of_table(table.id)));
        }
        Ok(logs)
    }

    /// The folder of a new table.
    pub(super) fn of_new_table(&self, schema: &TableSchema, id: TableId) -> Result<PathBuf> {
        match (&self.tables, &schema.keyspace) {
            (Tables::One(folder, _), _) => Err(Error::file(folder, "it is the folder of one table")),
            (Tables::All(..), None) => {
                Err(Error::Usage(format!("{}: the keyspace is missing, as in ks.{0}", schema.table)))
            }
            (Tables::All(data, _), Some(keyspace)) => {
                check_name(keyspace)?;
                if is_system(keyspace) {
                    let what = format!("the keyspace {keyspace} is of servers: tables of it are passed over");
                    return Err(Error::Usage(what));
                }
                check_name(&schema.table)?;
                Ok(data.join(keyspace).join(format!("{}-{}", schema.table, to_hex(&id.0))))
            }
        }
    }

    /// Whether a table may have no schema.cql although its columns were given.
    pub(super) fn gives_schema(&self) -> bool {
        matches!(&self.tables, Tables::One(_, Some(_)))
    }

    /// Locks the database against other processes, as long as the file is open. Who only reads lets other readers in,
    /// and goes without a lock where none can be made.
    pub(super) fn lock(&self, read_only: bool) -> Result<Vec<Locked>> {
        let path = self.own.join(LOCK);
        if !read_only {
            make_own(&self.own).map_err(|error| Error::file(&self.own, error.to_string()))?;
        }
        let opened = match read_only {
            true => File::open(&path),
            false => File::options().create(true).truncate(false).write(true).open(&path),
        };
        let file = match opened {
            Ok(file) => file,
            Err(_) if read_only => return Ok(Vec::new()),
            Err(error) => return Err(Error::file(&path, error.to_string())),
        };
        let what =
            if matches!(self.tables, Tables::One(..)) { "table, or its database," } else { "database" };
        let mut locks = vec![Locked::new(file, &path, read_only, what)?];
        if let (Tables::All(data, _), false) = (&self.tables, read_only) {
            locks.extend(locks_of_tables(data)?);
        }
        Ok(locks)
    }

    /// Makes the folders of the database, durably.
    pub(super) async fn prepare(&self, disk: &Disk, shards: usize) -> Result<()> {
        for shard in 0..shards {
            make(disk, &self.log(shard)).await?;
        }
        match &self.tables {
            Tables::All(data, _) => {
                make(disk, data).await?;
                Ok(storage::transaction::check_path(disk, data)?)
            }
            Tables::One(folder, _) => Ok(storage::transaction::check_path(disk, folder)?),
        }
    }

    /// Who counts: made once, and then the same for ever.
    pub(super) async fn host_id(&self, disk: &Disk) -> Result<[u8; 16]> {
        let path = self.own.join(HOST_ID);
        if disk.exists(&path) {
            let text = read_text(&path)?;
            let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
            return parse_id(&digits).ok_or_else(|| Error::file(&path, "it is no UUID"));
        }
        let id = random_uuid();
        let text = format!("{}\n", CqlType::Uuid.to_text(&id).unwrap_or_default());
        write_text(disk, &path, &text).await?;
        Ok(id)
    }

    /// All tables that are there. What an earlier process has begun and not ended there is ended, if anything may change; but what was
    /// dropped stays as long as its logs do.
    pub(super) async fn find(&self, disk: &Disk, options: &Options) -> Result<Inventory> {
        let Options { read_only, on_corruption, .. } = *options;
        match &self.tables {
            Tables::One(folder, schema) => {
                if !disk.is_dir(folder) {
                    return Err(Error::file(folder, "there is no such folder"));
                }
                match find_table(disk, folder, schema.as_deref(), read_only).await? {
                    Holding::Table(found) => Ok(Inventory { found: vec![*found], dropped: Vec::new() }),
                    Holding::Dropped(_) => {
                        if !read_only {
                            end_removal(disk, folder).await?;
                        }
                        Err(Error::file(folder, "the table in this folder was dropped"))
                    }
                    Holding::Nothing => Err(Error::file(folder, "there is no SSTable in this folder")),
                }
            }
            Tables::All(data, only) => {
                if read_only && !disk.is_dir(data) {
                    let what = paths::instead_of_database(&self.own);
                    let what = what.unwrap_or_else(|| "it has no data/: it is no database".to_owned());
                    return Err(Error::file(&self.own, what));
                }
                let mut folders = folders_of_tables(disk, data)?;
                if let Some(name) = only {
                    folders = called(disk, folders, name)?;
                }
                let mut all = Inventory::default();
                for folder in folders {
                    match find_table(disk, &folder, None, read_only).await? {
                        Holding::Table(found) => {
                            // A link may lead elsewhere.
                            if !read_only {
                                storage::transaction::check_path(disk, &folder)?;
                            }
                            all.found.push(*found);
                        }
                        Holding::Dropped(id) => all.dropped.push((id, folder)),
                        Holding::Nothing => refuse_logs(disk, &folder, on_corruption).await?,
                    }
                }
                Ok(all)
            }
        }
    }
}

/// The database that the folder of a table lies in, if there was one opened there: who counts is told beside its data.
///
/// It may be a database by the way in which the folder is named, and by that in which links lead to it.
fn database_around(folder: &Path) -> Option<PathBuf> {
    let around = |folder: &Path| {
        let data = folder.parent()?.parent().filter(|data| data.ends_with("data"))?;
        data.parent().filter(|database| database.join(HOST_ID).is_file()).map(Path::to_path_buf)
    };
    around(folder).or_else(|| around(&folder.canonicalize().ok()?))
}

/// A file that is locked against other processes as long as this lives.
#[derive(Debug)]
pub(super) struct Locked(File);

impl Locked {
    /// `what` is what nobody else may have open.
    fn new(file: File, path: &Path, is_shared: bool, what: &str) -> Result<Locked> {
        match if is_shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => Ok(Locked(file)),
            Err(TryLockError::WouldBlock) => {
                let own = path.parent().unwrap_or(path);
                Err(Error::file(own, format!("the {what} is open already, in this process or another one")))
            }
            Err(TryLockError::Error(error)) => {
                Err(Error::file(path, format!("it cannot be locked: {error}")))
            }
        }
    }
}

#[cfg(test)]
impl Locked {
    /// A file that nobody else knows.
    pub(super) fn of_nobody() -> Locked {
        Locked(tempfile::tempfile().expect("a file is made"))
    }
}

impl Drop for Locked {
    /// Not by closing the file alone: a process that is just being started by this one has it too, until it runs its program, and so long the
    /// lock would stay.
    fn drop(&mut self) {
        // Who cannot unlock it closes it.
        let _ = self.0.unlock();
    }
}

/// Keeps the tables of a database, that were written to by their folders before it was one, from being so any more.
fn locks_of_tables(data: &Path) -> Result<Vec<Locked>> {
    let folders = |folder: &Path| {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        all.filter(|path| path.is_dir() && !is_system(&name_of(path))).collect::<Vec<_>>()
    };
    let mut locks = Vec::new();
    for table in folders(data).iter().flat_map(|keyspace| folders(keyspace)) {
        let path = table.join(OWN).join(LOCK);
        match File::open(&path) {
            Ok(file) => {
                locks.push(Locked::new(file, &path, true, "table")?);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::file(&path, error.to_string())),
        }
    }
    Ok(locks)
}

/// The logs of a database, or of a table that was opened by its folder.
fn logs_in(disk: &Disk, own: &Path) -> Result<Vec<EarlierLog>> {
    let all = list(disk, &own.join("commitlog"))?;
    let is_shard = |path: &PathBuf| name_of(path).starts_with("shard-") && disk.is_dir(path);
    all.into_iter().filter(is_shard).map(|folder| Ok(EarlierLog::find(disk, &folder)?)).collect()
}

/// The folders of all tables.
fn folders_of_tables(disk: &Disk, data: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    // The tables of the server itself are for nobody else.
    for keyspace in folders(disk, data)?.iter().filter(|path| !is_system(&name_of(path))) {
        all.extend(folders(disk, keyspace)?);
    }
    Ok(all)
}

/// Those of a table of this name, by what its schema.cql says, or else by the folder's own.
fn called(disk: &Disk, mut folders: Vec<PathBuf>, name: &str) -> Result<Vec<PathBuf>> {
    let wanted = Wanted { name: Some(name) };
    let mut others = BTreeSet::new();
    folders.retain(|folder| {
        let named = FolderName::of(folder);
        let text = std::fs::read_to_string(folder.join(SCHEMA)).unwrap_or_default();
        let is_view = TableSchema::is_of_view(&text, &named);
        let schema = TableSchema::parse_of_folder(folder, &text, &named, None).ok().filter(|_| !is_view);
        // Where that tells nothing, the folder's own name does.
        let (keyspace, table) =
            schema.map_or((named.keyspace, named.table), |schema| (schema.keyspace, schema.table));
        let is_part = |path: &PathBuf| paths::is_of_table(&name_of(path));
        let is_table = !disk.exists(&folder.join(DROPPED))
            && list(disk, folder).is_ok_and(|all| all.iter().any(is_part));
        let is_it = is_table && wanted.is(keyspace.as_deref(), &table);
        if is_table && !is_it {
            others.insert(keyspace.map_or(table.clone(), |keyspace| format!("{keyspace}.{table}")));
        }
        is_it
    });
    let others = others.into_iter().collect::<Vec<_>>().join(", ");
    match folders.is_empty() {
        false => Ok(folders),
        true if others.is_empty() => Err(Error::Usage(format!("there is no table {name}: there are none"))),
        true => Err(Error::Usage(format!("there is no table {name}, but {others}"))),
    }
}

/// Checks that no rows are in the logs of a folder that has no schema.cql: of which columns they are, only who opened it by the folder has known.
async fn refuse_logs(disk: &Disk, folder: &Path, on_corruption: OnCorruption) -> Result<()> {
    for log in logs_in(disk, &folder.join(OWN))? {
        let mut records = 0_u64;
        let count = async |_, _: &[u8]| {
            records += 1;
            Ok(())
        };
        storage::store::replay(disk, &log, on_corruption, count).await?;
        if records > 0 {
            let what = "there are rows in its log that were written by the folder, and no schema.cql tells its columns: put one there";
            return Err(Error::file(folder, what));
        }
    }
    Ok(())
}

/// What table a folder has, if it has one.
async fn find_table(
    disk: &Disk,
    folder: &Path,
    schema: Option<&TableSchema>,
    read_only: bool,
) -> Result<Holding> {
    let (named, id) = (FolderName::of(folder), id_of_name(&name_of(folder)));
    let path = folder.join(SCHEMA);
    if disk.exists(&folder.join(DROPPED)) {
        return Ok(Holding::Dropped(id));
    }
    if !read_only {
        storage::table::clean_folder(disk, folder).await?;
    }
    if let Some(schema) = schema {
        let known = if disk.exists(&path) && !read_only { read_text(&path)? } else { String::new() };
        // What is written stands in the log, and later in a database, as a table of its schema.cql has it.
        let is_other = |known: TableSchema| known.schema != schema.schema;
        if TableSchema::parse_of_folder(&path, &known, &named, None).is_ok_and(is_other) {
            return Err(Error::file(&path, "it tells of other columns than the schema that was given"));
        }
        let id = id_of(schema).unwrap_or(id);
        return Ok(Holding::table(id, folder, schema.clone(), None));
    }
    let text = if disk.exists(&path) { Some(read_text(&path)?) } else { None };
    if let Some(text) = text.filter(|text| !TableSchema::is_of_view(text, &named)) {
        let schema = TableSchema::parse_of_folder(&path, &text, &named, None)?;
        return Ok(Holding::table(id, folder, schema, Some(text)));
    }
    let schemas = headers(disk, folder).await?;
    if schemas.is_empty() {
        return Ok(Holding::Nothing);
    }
    let schema = schema_of_headers(folder, named, &schemas)?;
    Ok(Holding::table(id, folder, schema, None))
}

impl Holding {
    fn table(id: TableId, folder: &Path, schema: TableSchema, text: Option<String>) -> Holding {
        Holding::Table(Box::new(Found { id, folder: folder.to_path_buf(), schema, text }))
    }
}

/// So many SSTables are opened at once to see which columns they have.
const AT_ONCE: usize = 32;

/// The columns that the SSTables of a folder have: mostly the same.
async fn headers(disk: &Disk, folder: &Path) -> Result<Vec<Schema>> {
    let mut files = Vec::new();
    for (path, descriptor) in paths::each_data_file(disk, folder).await {
        match descriptor {
            Ok(_) => files.push(path),
            Err(_) if path == folder => {}
            Err(error) => return Err(error),
        }
    }
    let (options, mut schemas) = (OpenOptions::new(Cache::new(1 << 20)), Vec::<Schema>::new());
    for some in files.chunks(AT_ONCE) {
        let opened = runtime::join_all(some.iter().map(|file| SSTable::open(disk, file, &options))).await;
        for sstable in opened {
            let schema = sstable?.schema().clone();
            if !schemas.contains(&schema) {
                schemas.push((*schema).clone());
            }
        }
    }
    Ok(schemas)
}

/// What is known of a table without its schema: not the names of its keys, which are made up as Cassandra makes them up.
fn schema_of_headers(folder: &Path, named: FolderName, schemas: &[Schema]) -> Result<TableSchema> {
    let all: Vec<&Schema> = schemas.iter().collect();
    let unified = UnifiedSchema::of(&all).map_err(|error| Error::file(folder, error.to_string()))?;
    let schema = unified.schema;
    let columns = schema.statics.iter().chain(&schema.regulars);
    let taken: Vec<String> = columns.map(|column| column.name_text().into_owned()).collect();
    let names = |base: &str, first: usize, count: usize| -> Vec<String> {
        let name = |number| if number == 0 { base.to_owned() } else { format!("{base}{number}") };
        let numbers = (first..).filter(|number| *number != 1 || first == 1);
        numbers.map(name).filter(|name| !taken.contains(name)).take(count).collect()
    };
    let keys = match &schema.partition_key {
        CqlType::Composite(columns) => columns.len(),
        _ => 1,
    };
    Ok(TableSchema {
        keyspace: Some(named.keyspace.unwrap_or_default()),
        table: named.table,
        partition_key: names("key", 0, keys),
        clustering: names("column", 1, schema.clustering.len()),
        is_compact: false,
        dropped: Vec::new(),
        options: TableOptions::default(),
        schema,
    })
}

/// Begins to remove a table: from here on it is not found any more.
pub(super) async fn begin_removal(disk: &Disk, folder: &Path) -> Result<()> {
    write_text(disk, &folder.join(DROPPED), "").await
}

/// A table is not removed after all.
pub(super) async fn undo_removal(disk: &Disk, folder: &Path) -> Result<()> {
    remove_durably(disk, &folder.join(DROPPED)).await
}

/// Brings to its end what [`begin_removal`] began in a folder, if anything was. The logs of who opened the table by its folder go first.
pub(super) async fn end_removal(disk: &Disk, folder: &Path) -> Result<()> {
    if disk.exists(&folder.join(DROPPED)) {
        for log in logs_in(disk, &folder.join(OWN))? {
            log.remove(disk).await?;
        }
        remove_table(disk, folder).await?;
    }
    Ok(())
}

/// Says durably what table a folder has. Where that is there already it needs no room on the disk.
pub(super) async fn write_schema(disk: &Disk, folder: &Path, text: &str) -> Result<()> {
    let path = folder.join(SCHEMA);
    match read_text(&path).is_ok_and(|known| known == text) {
        true => disk.sync_dir(folder).await.map_err(|error| sstable::Error::from(error).into()),
        false => write_text(disk, &path, text).await,
    }
}

/// Removes what says that the folder has a table, and no other file.
pub(super) async fn remove_schema(disk: &Disk, folder: &Path) -> Result<()> {
    remove_durably(disk, &folder.join(SCHEMA)).await
}

/// Removes a file if it is there. Either way what the folder has is durable then.
async fn remove_durably(disk: &Disk, path: &Path) -> Result<()> {
    if disk.exists(path) {
        disk.remove(path).await.map_err(sstable::Error::from)?;
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    disk.sync_dir(folder).await.map_err(|error| sstable::Error::from(error).into())
}

/// Removes all files of a table, and its folder if nothing is in it, such as snapshots.
pub(super) async fn remove_table(disk: &Disk, folder: &Path) -> Result<()> {
    remove_parts(disk, folder).await?;
    disk.sync_dir(folder).await.map_err(sstable::Error::from)?;
    disk.remove(&folder.join(DROPPED)).await.map_err(sstable::Error::from)?;
    // There may be snapshots, which stay.
    drop(disk.remove_dir(folder).await);
    Ok(())
}

/// Removes the files of a table but for the one that tells that it was dropped.
pub(super) async fn remove_parts(disk: &Disk, folder: &Path) -> Result<()> {
    let marker = folder.join(DROPPED);
    for path in disk.list(folder).map_err(sstable::Error::from)? {
        if path != marker && !disk.is_dir(&path) {
            disk.remove(&path).await.map_err(sstable::Error::from)?;
        }
    }
    Ok(())
}

/// Makes a folder and all that it lies in, durably.
pub(super) async fn make(disk: &Disk, folder: &Path) -> Result<()> {
    crate::convert::prepare_folder(disk, folder).await
}

/// Makes the folder of the lock before there is a shard that could.
fn make_own(own: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = own.ancestors().take_while(|folder| !folder.is_dir()).collect();
    std::fs::create_dir_all(own)?;
    let mut parents = missing.iter().filter_map(|folder| folder.parent());
    parents.try_for_each(|parent| File::open(parent)?.sync_all())
}

/// Writes a file that is there as a whole, or as it was before.
pub(super) async fn write_text(disk: &Disk, path: &Path, text: &str) -> Result<()> {
    let temporary = path.with_extension("new");
    let io = |error| Error::from(sstable::Error::from(error));
    if disk.exists(&temporary) {
        disk.remove(&temporary).await.map_err(io)?;
    }
    let mut file = disk.create(&temporary, SCHEMA_IO).await.map_err(io)?;
    file.append(text.as_bytes().to_vec()).await.map_err(io)?;
    file.sync().await.map_err(io)?;
    drop(file);
    disk.rename(&temporary, path).await.map_err(io)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new("."))).await.map_err(io)
}

/// A UUID of version 4.
pub(super) fn random_uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    for half in bytes.chunks_exact_mut(8) {
        half.copy_from_slice(&random().to_be_bytes());
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// A number that nobody knows before.
pub(super) fn random() -> u64 {
    // The standard library's hash maps are seeded by the operating system.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos()));
    hasher.finish()
}

/// The id that a schema says.
pub(super) fn id_of(schema: &TableSchema) -> Option<TableId> {
    let digits: String = schema.options.text("id")?.chars().filter(|c| *c != '-').collect();
    parse_id(&digits).map(TableId)
}

/// The id of a table by the name of its folder. Where that has none, one is made of it, always the same.
fn id_of_name(folder: &str) -> TableId {
    if let Some((_, digits)) = folder.rsplit_once('-')
        && let Some(id) = parse_id(digits)
    {
        return TableId(id);
    }
    let [high, low] = murmur3(folder.as_bytes());
    TableId((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}

fn parse_id(digits: &str) -> Option<[u8; 16]> {
    parse_hex(digits)?.try_into().ok()
}

/// What names of keyspaces and tables consist of, as with Cassandra: they are names of folders.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !name.is_empty() && name.len() <= 222 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "{name:?} is no name of a keyspace or table: letters, digits and underscores were expected"
        ))),
    }
}

fn is_system(keyspace: &str) -> bool {
    keyspace == "system" || keyspace.starts_with("system_")
}

fn folders(disk: &Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(list(disk, dir)?.into_iter().filter(|path| disk.is_dir(path)).collect())
}

fn list(disk: &Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    match disk.is_dir(dir) {
        true => Ok(disk.list(dir).map_err(sstable::Error::from)?),
        false => Ok(Vec::new()),
    }
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::file(path, format!("it cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a process has it that was started by this one and does not run its program yet.
    #[test]
    fn a_lock_ends_with_its_owner_whoever_else_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        let open = || File::options().create(true).truncate(false).write(true).open(&path).unwrap();
        let lock = || Locked::new(open(), &path, false, "database");
        let file = open();
        let inherited = file.try_clone().unwrap();
        let locked = Locked::new(file, &path, false, "database").unwrap();
        assert!(lock().unwrap_err().to_string().contains("is open already"));
        drop(locked);
        lock().unwrap();
        drop(inherited);
    }

    #[test]
    fn folders_tell_the_id() {
        let id = id_of_name("my-table-5a1c395eb41f11e59f22ba0be0483c18");
        assert_eq!(to_hex(&id.0), "5a1c395eb41f11e59f22ba0be0483c18");
        assert_eq!(id_of_name("coll"), id_of_name("coll"));
    }

    #[test]
    fn keys_without_names_get_some() {
        let column = |name: &str| model::Column { name: name.as_bytes().into(), data_type: CqlType::Int };
        let key = CqlType::Composite(vec![CqlType::Int; 3]);
        let clustering = vec![CqlType::Int; 2];
        let schema = Schema::new(key, clustering, vec![column("key2")], vec![column("column1")]);
        let named = FolderName { keyspace: None, table: "t".to_owned() };
        let schema = schema_of_headers(Path::new("t"), named, &[schema]).unwrap();
        assert_eq!(schema.partition_key, ["key", "key3", "key4"]);
        assert_eq!(schema.clustering, ["column2", "column3"]);
    }

    #[test]
    fn random_ids_are_uuids() {
        let (a, b) = (random_uuid(), random_uuid());
        assert!(a != b && CqlType::Uuid.validate(&a).is_ok());
    }
}
