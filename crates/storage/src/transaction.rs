//! SSTables take the place of others at once, whatever happens in between.
//!
//! What a flush or a compaction does to the SSTables of a folder is written into a log beside them, before it is
//! done, in the format of Cassandra (see `record`):
//! ```text
//! nb_txn_compaction_3f5a4d70-….log
//!   ADD:[/d/ks/t-1/nb-7-big-,0,0][…]               1. before the first file of a new SSTable is made
//!   REMOVE:[/d/ks/t-1/nb-5-big-,1700000000123,9][…]
//!   REMOVE:[/d/ks/t-1/nb-6-big-,1700000000123,9][…]  2. once the new ones are whole and durable
//!   COMMIT:[,0,0][2613697770]                      3. from here on the old ones are gone
//!                                                  4. their files are removed, and then the log
//! ```
//! Each line is synced before anything else happens. A folder in which there is such a log was left in the middle:
//! [`clean_up()`] then removes what the last line says, the new SSTables or the old ones. Cassandra does the same when
//! it starts, and so each cleans up after the other.
//!
//! | module | idea |
//! |---|---|
//! | `record` | a line of a log, its bytes and its checksum |
//! | `log` | a log as it is found, compared with the files that it is about |
//! | `files` | the files of an SSTable, when they were written, and their removal |
//! | [`mod@clean_up`] | what is done with the logs of a folder before it is used |

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtime::{Clock, Disk, IoClass, NewFile};
use sstable::Version;
use sstable::component::Descriptor;

use crate::{Error, Result};

pub mod clean_up;
mod files;
mod log;
mod record;

pub use clean_up::{CleanedUp, PassedOver, clean_up, is_log, passed_over};

use files::FilesOf;
use record::Record;

/// Reads and writes of transaction logs.
pub const TRANSACTION_IO: IoClass = IoClass::new(8);

/// How many names are tried before it is believed that none is free.
const ATTEMPTS: u64 = 100;

/// What a transaction is for: a part of its log's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionKind {
    /// A memtable becomes an SSTable.
    Flush,
    /// SSTables are merged.
    Compaction,
}

impl TransactionKind {
    fn name(self) -> &'static str {
        match self {
            TransactionKind::Flush => "flush",
            TransactionKind::Compaction => "compaction",
        }
    }
}

/// A change to the SSTables of one folder that is under way.
///
/// If it is dropped, or its process dies, the folder is as [`clean_up()`] leaves it: with the old SSTables and without
/// the new ones. Nothing may add one of its SSTables to the table before [`Transaction::commit`] has ended well.
///
/// Invariants:
/// 1. `records` are what the log holds, each of them durable, and nothing else unless `state` says so.
/// 2. None of them is a COMMIT or an ABORT.
pub struct Transaction {
    disk: Disk,
    /// As it was given.
    dir: PathBuf,
    /// As it stands in the log.
    canonical: String,
    log: NewFile,
    records: Vec<Record>,
    state: LogState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogState {
    Sound,
    /// Its last line may be torn, and nothing may follow.
    Torn,
    /// The same, and that line is COMMIT.
    MaybeCommitted,
}

impl Transaction {
    /// Begins a change to the SSTables in `dir`, new ones of which are of this version.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the log cannot name the folder: its path must be UTF-8 without commas and line breaks.
    /// What the operating system says.
    pub async fn begin(
        disk: &Disk,
        clock: &Clock,
        dir: &Path,
        version: Version,
        kind: TransactionKind,
    ) -> Result<Transaction> {
        // As lists of the folder name it.
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let canonical = log_name_of(disk, dir)?;
        let log = create_log(disk, clock.now(), dir, version, kind).await?;
        disk.sync_dir(dir).await?;
        let (disk, dir, state) = (disk.clone(), dir.to_path_buf(), LogState::Sound);
        Ok(Transaction { disk, dir, canonical, log, records: Vec::new(), state })
    }

    /// Where the log is.
    pub fn log_path(&self) -> &Path {
        self.log.path()
    }

    /// There will be this new SSTable. To be called before the first of its files is made.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it belongs to another folder. What the operating system says: the transaction can then
    /// only be aborted.
    pub async fn add(&mut self, descriptor: &Descriptor) -> Result<()> {
        let record = Record::add(self.name_of(descriptor)?);
        self.append(record).await
    }

    /// These SSTables go, if the transaction is committed. To be called once all new ones are sealed; from then on
    /// none of their files may change.
    ///
    /// # Errors
    /// [`Error::Invalid`] if one belongs to another folder, or has no files. What the operating system says: the
    /// transaction can then only be aborted.
    pub async fn remove<'a>(&mut self, descriptors: impl IntoIterator<Item = &'a Descriptor>) -> Result<()> {
        let listed = self.disk.list(&self.dir)?;
        for descriptor in descriptors {
            let name = self.name_of(descriptor)?;
            let files = FilesOf::among(&self.disk, &listed, record::file_prefix(&name))?;
            if files.is_empty() {
                let path = self.dir.join(name);
                return Err(Error::Invalid(format!("{}: there is no such SSTable", path.display())));
            }
            self.append(Record::remove(name, files.update_time(), files.count())).await?;
        }
        Ok(())
    }

    /// Makes the new SSTables take the place of the old ones, durably. The old ones' files are still there:
    /// [`Committed::remove_old`] is next, once nobody opens them any more.
    ///
    /// # Errors
    /// What the operating system says. The transaction is then aborted; where not even that was possible, the error is
    /// [`Error::InDoubt`].
    pub async fn commit(mut self) -> Result<Committed> {
        let Err(error) = self.append(Record::commit()).await else {
            return Ok(Committed { transaction: self });
        };
        match self.abort().await {
            Err(in_doubt @ Error::InDoubt { .. }) => Err(in_doubt),
            _ => Err(error),
        }
    }

    /// Takes everything back: removes what there is of the new SSTables, and the log.
    ///
    /// # Errors
    /// What the operating system says: what could not be removed is removed by [`clean_up()`]. [`Error::InDoubt`] if it
    /// was [`Transaction::commit`] that failed, and what it has written could not be taken back.
    pub async fn abort(mut self) -> Result<()> {
        match self.state {
            // Without that line, as on a disk that is full, it has not happened either.
            LogState::Sound => drop(self.append(Record::abort()).await),
            LogState::Torn => {}
            LogState::MaybeCommitted => self.take_back().await?,
        }
        let added: Vec<_> = self.records.iter().filter(|record| record.is_add()).cloned().collect();
        clean_up::finish(&self.disk, &self.dir, self.log.path(), &added).await.map(drop)
    }

    async fn append(&mut self, record: Record) -> Result<()> {
        if self.records.contains(&record) {
            return Err(Error::Invalid(format!("{record} is in the transaction already")));
        }
        let is_commit = record.is_commit();
        self.state = if is_commit { LogState::MaybeCommitted } else { LogState::Torn };
        self.log.append(format!("{record}\n").into_bytes()).await?;
        self.log.sync().await?;
        self.state = LogState::Sound;
        if !record.is_last() {
            self.records.push(record);
        }
        Ok(())
    }

    /// Makes it certain that a COMMIT is not there which may be.
    async fn take_back(&mut self) -> Result<()> {
        let log = self.log.path();
        let aborted = self.records.iter().cloned().chain([Record::abort()]).collect::<Vec<_>>();
        let replaced = clean_up::replace_log(&self.disk, &self.dir, log, &aborted).await;
        replaced.map_err(|error| Error::InDoubt { log: log.to_path_buf(), error })
    }

    /// How the log names an SSTable.
    fn name_of(&self, descriptor: &Descriptor) -> Result<String> {
        if descriptor.dir != self.dir && self.disk.canonical(&descriptor.dir)? != Path::new(&self.canonical) {
            let (dir, other) = (self.dir.display(), descriptor.dir.display());
            return Err(Error::Invalid(format!(
                "a transaction in {dir} is not about {descriptor} in {other}"
            )));
        }
        Ok(format!("{}/{descriptor}-", self.canonical.trim_end_matches('/')))
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records: Vec<String> = self.records.iter().map(Record::to_string).collect();
        f.debug_struct("Transaction")
            .field("log", &self.log.path())
            .field("records", &records)
            .finish_non_exhaustive()
    }
}

/// A change that is made: the new SSTables are there, and the old ones only as files.
#[derive(Debug)]
#[must_use = "the files of the old SSTables are still there"]
pub struct Committed {
    transaction: Transaction,
}

impl Committed {
    /// Removes the files of the old SSTables, then the log. Who has them open keeps them. What was removed is
    /// returned, without the log.
    ///
    /// # Errors
    /// What the operating system says: what could not be removed is removed by [`clean_up()`].
    pub async fn remove_old(self) -> Result<Vec<PathBuf>> {
        let Transaction { disk, dir, log, records, .. } = self.transaction;
        let removed: Vec<_> = records.into_iter().filter(Record::is_remove).collect();
        clean_up::finish(&disk, &dir, log.path(), &removed).await
    }
}

/// Whether a folder's path can stand in a log of transactions, as those of all tables have to.
///
/// # Errors
/// [`Error::Invalid`] if it cannot; what the operating system says.
pub fn check_path(disk: &Disk, dir: &Path) -> Result<()> {
    log_name_of(disk, dir).map(drop)
}

/// How a log names a folder.
fn log_name_of(disk: &Disk, dir: &Path) -> Result<String> {
    let canonical = disk.canonical(dir)?;
    let name = canonical.to_str().filter(|name| !name.contains([',', '\n', '\r']));
    name.map(str::to_owned).ok_or_else(|| {
        let dir = canonical.display();
        Error::Invalid(format!(
            "{dir}: its path must be UTF-8 without commas and line breaks, to stand in a log"
        ))
    })
}

/// A log of a name that no other one has.
async fn create_log(
    disk: &Disk,
    now: Duration,
    dir: &Path,
    version: Version,
    kind: TransactionKind,
) -> Result<NewFile> {
    let mut attempt = 0;
    loop {
        let id = time_uuid(now, disk.unique_id());
        let path = dir.join(format!("{version}_txn_{}_{id}.log", kind.name()));
        match disk.create(&path, TRANSACTION_IO).await {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1
            }
            created => return Ok(created?),
        }
    }
}

/// A UUID of version 1, as Cassandra wants it: of this time, in steps of 100 ns, and of this process.
fn time_uuid(now: Duration, number: u64) -> String {
    /// From the beginning of the Gregorian calendar to the Unix epoch, in steps of 100 ns.
    const EPOCH: u128 = 0x01b2_1dd2_1381_4000;
    let ticks = (EPOCH + now.as_nanos() / 100) as u64;
    let (low, mid, high) = (ticks as u32, (ticks >> 32) as u16, (ticks >> 48) as u16 & 0x0fff | 0x1000);
    let sequence = number as u16 & 0x3fff | 0x8000;
    // A node without a network card has the lowest bit of the first byte set.
    let node = u64::from(std::process::id()) | 1 << 40;
    format!("{low:08x}-{mid:04x}-{high:04x}-{sequence:04x}-{node:012x}")
}

#[cfg(test)]
mod tests;
