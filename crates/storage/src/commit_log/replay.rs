//! A log of before, read: what a crash leaves is told from damage.
//!
//! A power cut takes only what was not yet durable, so that a flaw has one of two causes:
//!
//! - **damage**, if what is flawed was durable. That is so if a mark, intact, behind it says so; and everywhere in a
//!   segment that is followed by another one of the same session, since a segment is followed only when it is durable.
//! - a **torn tail** otherwise: nothing of it was acknowledged with [`SyncMode::Batch`](super::SyncMode), and with
//!   `Periodic` nothing that was older than the period. There may be one for each session that ended with a crash.

use std::path::{Path, PathBuf};

use runtime::{Disk, Window};

use super::format::{Binding, Flaw, HEADER_LEN, Header, HeaderFlaw, MARK_LEN, Mark, Record, marks};
use super::{COMMIT_LOG_IO, LogPosition, MAX_RECORD, MAX_SEGMENT_SIZE, TableId, segment_number};
use crate::{Error, Result};

/// More bytes than any segment has.
const MAX_FILE: u64 = (MAX_SEGMENT_SIZE + MAX_RECORD + (1 << 20)) as u64;

/// What to do about damage, and writes to a table that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnCorruption {
    /// It is an error; the default. Nothing is lost by that: all files stay as they are.
    #[default]
    Stop,
    /// All records that are intact are replayed, wherever they are, behind torn tails too; the rest is told, and with it what is of tables
    /// that are not there.
    Salvage,
}

/// What was found in a log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// How many records were handed out.
    pub records: u64,
    /// The bytes of their payloads.
    pub bytes: u64,
    /// What crashes left of writes that were never made durable.
    pub torn: Vec<Gap>,
    /// What was durable and is lost; only with [`OnCorruption::Salvage`].
    pub damage: Vec<Gap>,
}

/// Bytes that hold no record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The segment.
    pub path: PathBuf,
    /// Bytes from its start.
    pub offset: u64,
    /// How many bytes; 0 where the file ends too early.
    pub length: u64,
    /// What is wrong there.
    pub what: &'static str,
}

/// The log that was left in a folder: the segments that were there when it was looked for. One that is opened in the
/// same folder later on is no part of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierLog {
    /// With their numbers, from the oldest on.
    segments: Vec<(u64, PathBuf)>,
    /// Of which table all of its records are, whatever they say.
    table: Option<TableId>,
    /// Tables whose records are not wanted any more.
    gone: Vec<TableId>,
}

impl EarlierLog {
    /// Looks for the segments of a folder. One that is not there has none.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be listed.
    pub fn find(disk: &Disk, folder: &Path) -> Result<EarlierLog> {
        if !disk.exists(folder) {
            return Ok(EarlierLog::default());
        }
        let numbered = |path: PathBuf| segment_number(&path).map(|number| (number, path));
        let mut segments: Vec<_> = disk.list(folder)?.into_iter().filter_map(numbered).collect();
        segments.sort_unstable();
        Ok(EarlierLog { segments, ..EarlierLog::default() })
    }

    /// The same, all of whose records are of this table: it was written under another id.
    pub fn of_table(self, table: TableId) -> EarlierLog {
        EarlierLog { table: Some(table), ..self }
    }

    /// The same without the records of these tables: they were dropped, and the log may not say so.
    pub fn without(self, gone: Vec<TableId>) -> EarlierLog {
        EarlierLog { gone, ..self }
    }

    /// Whether a record of this table is not wanted.
    pub(crate) fn leaves_out(&self, id: TableId) -> bool {
        self.gone.contains(&id)
    }

    /// Whose a record is that says so.
    pub(crate) fn table_of(&self, id: TableId) -> TableId {
        self.table.unwrap_or(id)
    }

    /// The segments, from the oldest on.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.segments.iter().map(|(_, path)| path.as_path())
    }

    /// Goes through the segments, once or again and again.
    pub fn reader<'a>(&'a self, disk: &'a Disk, on_corruption: OnCorruption) -> LogReader<'a> {
        LogReader { log: self, disk, on_corruption, followed: Vec::new(), at_hand: None }
    }

    /// Removes the segments for good; once all of their records are in SSTables, or in a log that was opened after the
    /// replay. Best after that was opened, so that the numbers of segments go on. Those that are gone already do no harm.
    ///
    /// The oldest go first, each for good before the next one: a later segment may say what of an earlier one is not
    /// wanted any more.
    ///
    /// # Errors
    /// [`Error::Io`] if one cannot be removed; those before it are gone.
    pub async fn remove(&self, disk: &Disk) -> Result<()> {
        for path in self.paths().filter(|path| disk.exists(path)) {
            disk.remove(path).await?;
            if let Some(folder) = path.parent() {
                disk.sync_dir(folder).await?;
            }
        }
        Ok(())
    }
}

/// Reads a log of before. Takes the memory of one segment.
pub struct LogReader<'a> {
    log: &'a EarlierLog,
    disk: &'a Disk,
    on_corruption: OnCorruption,
    /// Of the first segments, whether a later one of the same session is there.
    followed: Vec<bool>,
    /// The segment that was read last, by its index: most logs have no other one.
    at_hand: Option<(usize, Window)>,
}

impl LogReader<'_> {
    /// Reads all segments, from the oldest on, and hands each record to `apply` with the position behind it, its table and
    /// its payload, in the order in which they were appended. What `apply` returns as an error ends it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a segment that is damaged, unless that is salvaged, and for one of an unknown format in any
    /// case; [`Error::Io`] if a file cannot be read.
    pub async fn replay(
        &mut self,
        mut apply: impl AsyncFnMut(LogPosition, TableId, &[u8]) -> Result<()>,
    ) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        for (index, (number, path)) in self.log.segments.iter().enumerate() {
            let (is_followed, on_corruption) = (self.is_followed(index).await?, self.on_corruption);
            let bytes = self.segment(index).await?;
            let mut walk = Walk::begin(path, *number, bytes, is_followed)?;
            replay_segment(&mut walk, on_corruption, &mut apply, &mut replayed).await?;
        }
        Ok(replayed)
    }

    async fn is_followed(&mut self, index: usize) -> Result<bool> {
        if index == self.followed.len() {
            let segments = &self.log.segments;
            let session_of_next = match segments.get(index + 1) {
                Some((_, next)) => session_of(self.disk, next).await?,
                None => None,
            };
            self.followed.push(session_of_next.is_some_and(|session| session <= segments[index].0));
        }
        Ok(self.followed[index])
    }

    async fn segment(&mut self, index: usize) -> Result<&Window> {
        let bytes = match self.at_hand.take() {
            Some((read, bytes)) if read == index => bytes,
            _ => read(self.disk, &self.log.segments[index].1).await?,
        };
        Ok(&self.at_hand.insert((index, bytes)).1)
    }
}

/// The session of a segment, if its header is intact.
async fn session_of(disk: &Disk, path: &Path) -> Result<Option<u64>> {
    let file = disk.open(path, COMMIT_LOG_IO).await?;
    if file.len() < HEADER_LEN as u64 {
        return Ok(None);
    }
    let head = file.read_exact_at(0, HEADER_LEN).await?;
    Ok(Header::decode(&head).ok().map(|header| header.session))
}

async fn read(disk: &Disk, path: &Path) -> Result<Window> {
    let file = disk.open(path, COMMIT_LOG_IO).await?;
    if file.len() > MAX_FILE {
        return Err(Error::corrupt(path, MAX_FILE, "the file is longer than any segment of a commit log"));
    }
    Ok(file.read_exact_at(0, file.len() as usize).await?)
}

async fn replay_segment(
    walk: &mut Walk<'_>,
    on_corruption: OnCorruption,
    apply: &mut impl AsyncFnMut(LogPosition, TableId, &[u8]) -> Result<()>,
    replayed: &mut Replayed,
) -> Result<()> {
    loop {
        match walk.next() {
            Ok(None) => return Ok(()),
            Ok(Some(record)) => {
                let payload = &walk.bytes[record.payload.clone()];
                let end = LogPosition { segment: walk.number, offset: record.end() as u64 };
                apply(end, record.table, payload).await.map_err(|error| match error {
                    // As when the table has other columns than when it was written.
                    Error::Invalid(what) => Error::corrupt(walk.path, record.payload.start as u64, what),
                    other => other,
                })?;
                replayed.records += 1;
                replayed.bytes += payload.len() as u64;
            }
            Err(flaw) => pass(walk, flaw, on_corruption, replayed)?,
        }
    }
}

/// Judges a flaw, and goes on behind it.
fn pass(walk: &mut Walk<'_>, flaw: Flaw, on_corruption: OnCorruption, replayed: &mut Replayed) -> Result<()> {
    let (from, is_damage) = (walk.at, walk.was_durable());
    match on_corruption {
        OnCorruption::Stop if is_damage => return Err(Error::corrupt(walk.path, from as u64, flaw.what)),
        OnCorruption::Stop => walk.give_up(),
        OnCorruption::Salvage => walk.skip(flaw),
    }
    let (path, offset, length) = (walk.path.to_path_buf(), from as u64, (walk.at - from) as u64);
    let gaps = if is_damage { &mut replayed.damage } else { &mut replayed.torn };
    gaps.push(Gap { path, offset, length, what: flaw.what });
    Ok(())
}

/// Goes through a segment, from one record to the next.
struct Walk<'a> {
    path: &'a Path,
    number: u64,
    /// All of the segment.
    bytes: &'a [u8],
    /// Whether there is a later segment of the same session.
    is_followed: bool,
    /// `None` as long as the header is not intact and no mark has told it.
    binding: Option<Binding>,
    at: usize,
    has_ended: bool,
}

impl<'a> Walk<'a> {
    /// At the start, which is behind the header if that is intact.
    fn begin(path: &'a Path, number: u64, bytes: &'a [u8], is_followed: bool) -> Result<Walk<'a>> {
        let (at, binding) = match Header::decode(bytes) {
            Ok(header) if header.segment == number => (HEADER_LEN, Some(Binding::new(number, header.salt))),
            Ok(header) => {
                let what = format!("the file is segment {}, and does not have its name", header.segment);
                return Err(Error::corrupt(path, 12, what));
            }
            Err(HeaderFlaw::UnknownFormat(format)) => {
                return Err(Error::corrupt(path, 8, format!("commit logs of format {format} are not known")));
            }
            Err(HeaderFlaw::Damaged) => (0, None),
        };
        Ok(Walk { path, number, bytes, is_followed, binding, at, has_ended: false })
    }

    /// The next record, and goes behind it; `None` at the end. A flaw leaves it where that begins.
    fn next(&mut self) -> std::result::Result<Option<Record>, Flaw> {
        let Some(binding) = self.binding else {
            return if self.has_ended { Ok(None) } else { Err(Flaw::here("the header is not intact")) };
        };
        while !self.has_ended && self.at < self.bytes.len() {
            let Some(mark) = self.mark_at(self.at) else {
                let record = Record::decode(self.bytes, self.at, &binding)?;
                self.at = record.end();
                return Ok(Some(record));
            };
            self.at += MARK_LEN;
            self.has_ended = mark.is_end;
        }
        match (self.at == self.bytes.len(), self.has_ended || !self.is_followed) {
            (true, true) => Ok(None),
            (true, false) => Err(Flaw::here("the segment ends too early")),
            (false, _) => Err(Flaw::here("bytes behind the end of the segment")),
        }
    }

    /// Whether what begins here was durable once, so that no power cut can have taken it.
    fn was_durable(&self) -> bool {
        // A mark of another binding is a leftover of another file.
        let is_ours = |binding: &Binding| self.binding.is_none_or(|ours| ours == *binding);
        let mut marks = marks(self.bytes, self.at, self.number).filter(|(_, _, binding)| is_ours(binding));
        self.is_followed || self.has_ended || marks.any(|(_, mark, _)| mark.synced > self.at as u64)
    }

    /// Goes to the end.
    fn give_up(&mut self) {
        self.at = self.bytes.len();
        self.has_ended = true;
    }

    /// Goes to what is intact behind a flaw.
    fn skip(&mut self, flaw: Flaw) {
        if self.binding.is_none() {
            self.binding = marks(self.bytes, 0, self.number).next().map(|(_, _, binding)| binding);
            self.at = HEADER_LEN;
        }
        let Some(binding) = self.binding.filter(|_| !self.has_ended && self.at < self.bytes.len()) else {
            return self.give_up();
        };
        let is_intact =
            |at: &usize| self.mark_at(*at).is_some() || Record::decode(self.bytes, *at, &binding).is_ok();
        let first = if is_intact(&self.at) { self.at } else { flaw.next.unwrap_or(self.at + 1) };
        match (first..self.bytes.len()).find(is_intact) {
            Some(at) => self.at = at,
            None => self.give_up(),
        }
    }

    fn mark_at(&self, at: usize) -> Option<Mark> {
        let (mark, binding) = Mark::decode(self.bytes, at, self.number)?;
        (Some(binding) == self.binding).then_some(mark)
    }
}
