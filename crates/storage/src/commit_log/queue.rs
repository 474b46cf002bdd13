//! Bytes on their way to the disk: where they will stand, and when they are due.
//!
//! ```text
//!            durable            written              end
//! ───────────────┴──── file ───────┴─── chunks ───────┤   appends go here
//!                                   └ one segment each ┘
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use super::format::{Binding, HEADER_LEN, MARK_LEN, RECORD_OVERHEAD, Record};
use super::{LogPosition, SyncMode, TableId};

/// How many bytes may wait for the disk before appends do. The disk gains nothing by more at once.
const MAX_QUEUED: usize = 1 << 20;

/// How many bytes are written at once where syncs are periodic.
const WRITE_LEN: usize = 256 << 10;

/// How long bytes wait for others to be written with, where syncs are periodic: what a process that is killed may lose.
const WRITE_DELAY: Duration = Duration::from_millis(10);

/// The largest buffer that is kept to be filled again, in bytes.
const MAX_SPARE: usize = 1 << 20;

/// Records that go to the disk in one write, with room for their mark before them.
pub(super) struct Chunk {
    /// The segment they go to.
    pub(super) segment: u64,
    /// Where they begin there.
    pub(super) start: u64,
    /// The mark, which is still zeros, and the records.
    pub(super) bytes: Vec<u8>,
}

impl Chunk {
    /// Where they end.
    pub(super) fn end(&self) -> LogPosition {
        LogPosition { segment: self.segment, offset: self.start + self.bytes.len() as u64 }
    }
}

/// What the disk has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Take what waits.
    Write,
    /// That, and make all durable.
    Sync,
}

/// When there is something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// At once.
    Now(Step),
    /// At this time, unless something comes before.
    At(Duration),
    /// When something comes.
    Never,
}

/// Invariants:
/// 1. Chunks are in the order of their positions, and end at `end`; at most the last one is of `end`'s segment.
/// 2. `durable ≤ end`. What lies between is in `chunks` or was handed out.
/// 3. `queued` is the bytes of `chunks` and of what was handed out and is not yet written.
pub(super) struct Queue {
    sync: SyncMode,
    segment_size: u64,
    salt: u64,
    binding: Binding,
    chunks: VecDeque<Chunk>,
    spare: Vec<u8>,
    queued: usize,
    end: LogPosition,
    durable: LogPosition,
    /// Up to here somebody waits for it to be durable, whatever the mode.
    wanted: LogPosition,
    /// When the first byte that is in `chunks` came.
    queued_since: Option<Duration>,
    /// When the first record came that no sync includes that has begun.
    unsynced_since: Option<Duration>,
    /// The same for the sync that is under way.
    syncing_since: Option<Duration>,
}

impl Queue {
    /// At the start of a segment. Times are those of [`runtime::monotonic`].
    pub(super) fn new(sync: SyncMode, segment_size: u64, segment: u64, salt: u64) -> Queue {
        let end = LogPosition { segment, offset: HEADER_LEN as u64 };
        Queue {
            sync,
            segment_size,
            salt,
            binding: Binding::new(segment, salt),
            chunks: VecDeque::new(),
            spare: Vec::new(),
            queued: 0,
            end,
            durable: end,
            wanted: LogPosition::default(),
            queued_since: None,
            unsynced_since: None,
            syncing_since: None,
        }
    }

    /// Where the log ends, with what is still on its way.
    pub(super) fn end(&self) -> LogPosition {
        self.end
    }

    /// Up to where a power cut leaves all as it is.
    pub(super) fn durable(&self) -> LogPosition {
        self.durable
    }

    /// Whether a record may come now: not too many bytes wait for the disk, and no record for longer than it may.
    pub(super) fn admits(&self, now: Duration) -> bool {
        let oldest = self.syncing_since.or(self.unsynced_since);
        let is_overdue = match self.sync {
            SyncMode::Periodic { period } => oldest.is_some_and(|since| now >= since.saturating_add(period)),
            SyncMode::Batch => false,
        };
        self.queued < MAX_QUEUED && !is_overdue
    }

    /// Takes a record; where it ends. It may begin a new segment.
    pub(super) fn push(&mut self, now: Duration, table: TableId, payload: &[u8]) -> LogPosition {
        let mark = if self.has_open_chunk() { 0 } else { MARK_LEN };
        let room = mark + RECORD_OVERHEAD + payload.len() + MARK_LEN;
        if self.end.offset > HEADER_LEN as u64 && self.end.offset + room as u64 > self.segment_size {
            self.next_segment();
        }
        if !self.has_open_chunk() {
            self.begin_chunk();
        }
        let chunk = self.chunks.back_mut().expect("a chunk has begun");
        let before = chunk.bytes.len();
        Record::encode(&mut chunk.bytes, chunk.start, &self.binding, table, payload);
        self.queued += chunk.bytes.len() - before;
        self.end = chunk.end();
        self.queued_since.get_or_insert(now);
        self.unsynced_since.get_or_insert(now);
        self.end
    }

    /// Has all that has come made durable soon; up to where that is.
    pub(super) fn want_all(&mut self) -> LogPosition {
        self.wanted = self.end;
        self.end
    }

    /// When the disk has to do what.
    pub(super) fn due(&self, now: Duration) -> Due {
        let SyncMode::Periodic { period } = self.sync else {
            let is_needed = self.durable < self.end;
            return if is_needed { Due::Now(Step::Sync) } else { Due::Never };
        };
        // Half of the period is for waiting, the other half for the sync itself.
        let sync_at = self.unsynced_since.map(|since| since.saturating_add(period / 2));
        let write_at = self.queued_since.map(|since| since.saturating_add(WRITE_DELAY));
        if self.durable < self.wanted || sync_at.is_some_and(|at| at <= now) {
            return Due::Now(Step::Sync);
        }
        if self.queued >= WRITE_LEN || write_at.is_some_and(|at| at <= now) {
            return Due::Now(Step::Write);
        }
        [sync_at, write_at].into_iter().flatten().min().map_or(Due::Never, Due::At)
    }

    /// Hands all chunks out, to be written in their order.
    pub(super) fn take(&mut self) -> VecDeque<Chunk> {
        self.queued_since = None;
        std::mem::take(&mut self.chunks)
    }

    /// So many bytes that were handed out are written; their buffer comes back.
    pub(super) fn written(&mut self, len: usize, buffer: Vec<u8>) {
        self.queued -= len;
        if buffer.capacity() <= MAX_SPARE {
            self.spare = buffer;
        }
    }

    /// A sync begins, which includes all that was handed out, and nothing that has come since.
    pub(super) fn sync_begins(&mut self) {
        self.syncing_since = self.unsynced_since.take();
        self.unsynced_since = self.queued_since;
    }

    /// The sync has ended well.
    pub(super) fn sync_ended(&mut self) {
        self.syncing_since = None;
    }

    /// All before this position is durable.
    pub(super) fn is_durable(&mut self, position: LogPosition) {
        self.durable = position;
    }

    /// Begins a new segment; where its first chunk begins.
    pub(super) fn next_segment(&mut self) -> LogPosition {
        self.end = LogPosition { segment: self.end.segment + 1, offset: HEADER_LEN as u64 };
        self.binding = Binding::new(self.end.segment, self.salt);
        self.end
    }

    fn has_open_chunk(&self) -> bool {
        self.chunks.back().is_some_and(|chunk| chunk.segment == self.end.segment)
    }

    fn begin_chunk(&mut self) {
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        bytes.resize(MARK_LEN, 0);
        self.queued += MARK_LEN;
        self.chunks.push_back(Chunk { segment: self.end.segment, start: self.end.offset, bytes });
    }
}
