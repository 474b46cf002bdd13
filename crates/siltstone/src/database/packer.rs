//! Makes the rows of a `SELECT` of what is read: of decoded rows, and of flat rows, which the row cache and most reads of SSTables give.
//!
//! ```text
//! stream ──pop_flat──► FlatRow ───┐
//!        └──pop─────► Fragment ───┴──what is live──► Sink
//! ```
//!
//! Both ways give the same rows. The first passes the values on in place and builds nothing; it needs columns selected in the order in
//! which rows have them. Columns of many cells, and counters, go the second way, because their values are made of several cells or of a
//! part of one; so does a row with deletions of such columns.

use std::rc::Rc;
use std::sync::Arc;

use model::flat::{FlatRow, Habit, Outline, RowTaker};
use model::{
    Clustering, Direction, Fragment, FragmentReader, LiveRows, Next, PartitionKey, PartitionStart, Position,
    Row, Schema, Slice,
};
use smallvec::SmallVec;
use storage::cover::Wanted;
use storage::row_cache::{KeptRow, Known};
use storage::{ReadRequest, Table, Tokens};

use super::resume::Resume;
use super::select::Selection;
use super::shape::{Place, Shape};
use super::sink::{Common, Sink, Stop, are_straight};
use super::slots::Slots;
use super::worker::ShardTable;
use crate::Result;

/// After so many fragments others may go on.
const TURN: usize = 512;

/// After so many rows of a partition a scan asks how large it is.
const LOOK: usize = 256;

/// It leaves one of so many bytes: the rows that are left come as a slice, from the row cache if it has them. What the scan has
/// read ahead by then, a quarter of this at the most, is read twice.
const LARGE: u64 = 4 << 20;

/// Said of rows that were made flat by the row cache or by a reader of SSTables.
const WHOLE: &str = "a flat row is whole";

/// Makes rows of fragments until there are enough.
pub(super) struct Packer<S> {
    shape: Arc<Shape>,
    common: Common,
    is_static_compact: bool,
    /// Whether rows need not be decoded.
    takes_flat: bool,
    pub(super) with_static_only: bool,
    pub(super) direction: Direction,
    live: LiveRows,
    sink: S,
    /// How many rows of the partition at hand were taken.
    rows: usize,
    is_scan: bool,
    /// The partition that a scan may leave, and where.
    large: Option<(PartitionKey, Position)>,
    /// Partitions up to this one are left out.
    behind: Option<PartitionKey>,
    /// Whether the partition at hand is behind it.
    is_behind: bool,
}

/// How far a turn has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// There are enough rows, or the stream is at its end.
    All,
    /// The stream has to be filled.
    AtHand,
    /// So much that others may go on.
    Turn,
}

/// Takes the rows of a turn as they stand.
struct Turn<'t, S> {
    packer: &'t mut Packer<S>,
    place: &'t mut Fragment,
    /// How many there may be yet.
    left: &'t mut usize,
}

impl<S: Sink> RowTaker for Turn<'_, S> {
    #[inline]
    fn row(&mut self, row: FlatRow<'_>) -> bool {
        *self.left -= 1;
        self.packer.take_flat(row, self.place);
        self.goes_on()
    }

    #[inline]
    fn rows<'a>(&mut self, rows: &mut impl Iterator<Item = FlatRow<'a>>) -> bool {
        let mut next = rows.next();
        while let Some(row) = next {
            if !(row.is_usual() && self.packer.takes_usual()) {
                if !self.row(row) {
                    return false;
                }
                next = rows.next();
                continue;
            }
            let (taken, stop) = self.packer.take_usual(row, rows, *self.left);
            *self.left -= taken;
            next = match stop {
                Stop::End => None,
                Stop::Other(row) => Some(row),
                Stop::Last(_) if self.goes_on() => rows.next(),
                Stop::Last(_) => return false,
            };
        }
        true
    }
}

impl<S: Sink> Turn<'_, S> {
    #[inline]
    fn goes_on(&self) -> bool {
        *self.left > 0 && !self.packer.has_enough()
    }
}

impl<S: Sink> Packer<S> {
    /// For what is live at `now`, in seconds, of a table with this habit.
    pub(super) fn new(
        shape: Arc<Shape>,
        schema: Rc<Schema>,
        selection: Selection,
        sink: S,
        (now, habit): (i64, Rc<Habit<Outline>>),
    ) -> Packer<S> {
        let is_static_compact = shape.clustering_len() < shape.model().clustering.len();
        let is_of_key = |place: &&Place| matches!(place, Place::PartitionKey(_));
        let takes_flat = !is_static_compact && are_straight(&selection.places, &schema);
        let common = Common {
            slots: (takes_flat && S::HAS_SLOTS).then(|| Slots::new(&selection.places, &schema)),
            key_places: selection.places.iter().take_while(is_of_key).count(),
            schema,
            selection,
            key: None,
            key_parts: Vec::new(),
            statics: None,
            shared: Vec::new(),
            habit,
        };
        Packer {
            takes_flat,
            shape,
            common,
            is_static_compact,
            with_static_only: is_static_compact,
            direction: Direction::Forward,
            live: LiveRows::new(now),
            sink,
            rows: 0,
            is_scan: false,
            large: None,
            behind: None,
            is_behind: true,
        }
    }

    /// Takes the rows of a slice, until there are enough.
    pub(super) async fn slice(&mut self, table: &ShardTable, key: PartitionKey, slice: Slice) -> Result<()> {
        self.is_scan = false;
        let mut stream = table.table.read(&self.request(key, slice)).await?;
        self.take_all(&mut stream).await
    }

    pub(super) fn request(&self, key: PartitionKey, slice: Slice) -> ReadRequest {
        ReadRequest {
            direction: self.direction,
            static_row: self.wants_static_row(),
            wanted: self.wanted(),
            reads_on: S::READS_ON,
            limit: self.limit(),
            ..ReadRequest::new(key, slice)
        }
    }

    /// How many rows are taken at the most, if not all.
    fn limit(&self) -> Option<u64> {
        let rows = self.common.selection.rows;
        (rows < usize::MAX).then_some(rows as u64)
    }

    /// Takes the row that a slice is of by itself, or that there is none, if memory knows. Whether it does.
    pub(super) fn take_known(&mut self, table: &Table, key: &PartitionKey, slice: &Slice) -> bool {
        if self.wants_static_row() {
            return false;
        }
        let Some(row) = self.common.schema.row_of(slice) else { return false };
        let row: SmallVec<[&[u8]; 4]> = row.values.iter().flatten().map(|value| &**value).collect();
        match table.known_row(key.view(), &row) {
            Known::Unknown | Known::OnDisk => return false,
            Known::Absent => {}
            Known::Row(row) => self.take_row(key, &row),
        }
        true
    }

    /// Takes a row where it stands in the cache.
    pub(super) fn take_row(&mut self, key: &PartitionKey, row: &KeptRow) {
        let (key, deletion) = (key.clone(), row.partition_deletion());
        let mut place = Fragment::PartitionStart(PartitionStart { key, deletion });
        self.take(&mut place);
        self.take_kept(row.flat(), &mut place);
    }

    /// Takes the rows of partitions, until there are enough or one is large. Where that one goes on.
    pub(super) async fn scan(
        &mut self,
        table: &ShardTable,
        tokens: Tokens,
        behind: Option<PartitionKey>,
    ) -> Result<Option<(PartitionKey, Position)>> {
        self.is_scan = true;
        let mut stream = match &behind {
            Some(key) if tokens.contain(key.token) => {
                table.table.scan_behind(key, tokens.last, self.limit()).await?
            }
            _ => table.table.scan(tokens.after, tokens.last, self.limit()).await?,
        };
        self.behind = behind;
        loop {
            self.take_all(&mut stream).await?;
            match self.large.take() {
                Some((key, _)) if !self.is_full() && table.table.size_of(&key).await? < LARGE => {}
                large => return Ok(large),
            }
        }
    }

    /// Takes what comes until there are enough rows.
    pub(super) async fn take_all<R: FragmentReader<Error = storage::Error>>(
        &mut self,
        stream: &mut R,
    ) -> Result<()> {
        let mut place = Fragment::default();
        loop {
            match self.take_some(stream, &mut place)? {
                Taken::All => return Ok(()),
                Taken::AtHand => stream.fill().await?,
                Taken::Turn => runtime::yield_now().await,
            }
        }
    }

    /// Takes what comes until there are enough rows, the stream has no more at hand, or others are to go on.
    pub(super) fn take_some<R: FragmentReader<Error = storage::Error>>(
        &mut self,
        stream: &mut R,
        place: &mut Fragment,
    ) -> Result<Taken> {
        let mut left = TURN;
        while left > 0 {
            if self.takes_flat {
                stream.pop_flat(&mut Turn { packer: self, place, left: &mut left });
            }
            if !self.has_enough() && left > 0 {
                match stream.pop(place)? {
                    Next::Fragment => self.take(place),
                    Next::Fill => return Ok(Taken::AtHand),
                    Next::End => return Ok(Taken::All),
                }
                left -= 1;
            }
            if self.has_enough() {
                return Ok(Taken::All);
            }
        }
        Ok(Taken::Turn)
    }

    /// Whether there are enough rows, or this partition is left.
    #[inline]
    fn has_enough(&self) -> bool {
        self.is_full() || self.large.is_some()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.sink.is_full(&self.common.selection)
    }

    /// Takes a row as it stands in the cache, decoded in `place` unless it need not be.
    fn take_kept(&mut self, row: FlatRow<'_>, place: &mut Fragment) {
        if self.takes_flat {
            self.take_flat(row, place);
        } else {
            row.decode(place).expect(WHOLE);
            self.take(place);
        }
    }

    /// Takes a row that is not decoded; where it has to be, that is done in `place`.
    #[inline]
    fn take_flat(&mut self, row: FlatRow<'_>, place: &mut Fragment) {
        if !self.is_behind {
            return;
        }
        match self.sink.take_flat(&self.common, &self.live, row).expect(WHOLE) {
            Some(true) => {
                self.rows += 1;
                self.look_behind(|| row.clustering().expect(WHOLE));
            }
            Some(false) => {}
            None => {
                row.decode(place).expect(WHOLE);
                self.take(place);
            }
        }
    }

    /// Whether usual rows are to be taken, all of them as they are.
    #[inline]
    fn takes_usual(&self) -> bool {
        self.is_behind && self.live.all_of_usual_rows()
    }

    /// Takes a usual row and those that follow it, up to so many. How many these were, and why no more.
    #[inline]
    fn take_usual<'a>(
        &mut self,
        first: FlatRow<'a>,
        rows: &mut impl Iterator<Item = FlatRow<'a>>,
        most: usize,
    ) -> (usize, Stop<'a>) {
        // A scan asks behind a certain row how large its partition is.
        let until_asked = if self.is_scan && self.rows < LOOK { LOOK - self.rows } else { usize::MAX };
        let taken = self.sink.take_usual(&self.common, (first, rows), most.min(until_asked));
        let (taken, stop) = taken.expect(WHOLE);
        self.rows += taken;
        if let Stop::Last(row) = stop {
            self.look_behind(|| row.clustering().expect(WHOLE));
        }
        (taken, stop)
    }

    /// What is to be done behind the row that was taken last, which has this clustering key.
    #[inline]
    fn look_behind(&mut self, clustering: impl Fn() -> Clustering) {
        if self.is_full() && self.common.selection.wants_next {
            self.go_on_behind(Some(clustering()));
        }
        if self.is_scan && self.rows == LOOK {
            self.large = Some((self.common.key().clone(), Position::after(clustering())));
        }
    }

    fn take(&mut self, fragment: &mut Fragment) {
        if let (Fragment::PartitionStart(start), Some(behind)) = (&*fragment, &self.behind) {
            self.is_behind = start.key > *behind;
        }
        if !self.is_behind {
            return;
        }
        match fragment {
            Fragment::PartitionStart(start) => {
                self.common.enter(&start.key, self.shape.key_types());
                self.rows = 0;
                self.sink.leave_partition();
            }
            Fragment::PartitionEnd
                if self.rows == 0 && self.with_static_only && self.common.statics.is_some() =>
            {
                self.pack(None);
            }
            _ => {}
        }
        if !self.live.keeps(fragment) {
            return;
        }
        match fragment {
            Fragment::Row(row) if !self.is_static_compact => self.pack(Some(row)),
            Fragment::StaticRow(row) => self.common.enter_static_row(row),
            _ => {}
        }
    }

    fn pack(&mut self, row: Option<&Row>) {
        self.rows += 1;
        self.sink.take(&self.common, row);
        match row {
            Some(row) => self.look_behind(|| row.clustering.clone()),
            None if self.is_full() && self.common.selection.wants_next => self.go_on_behind(None),
            None => {}
        }
    }

    /// Whoever goes on begins behind a row of a partition, or behind all of it.
    pub(super) fn go_on_at(&mut self, key: &PartitionKey, position: Option<&Position>) {
        self.sink.go_on_at(Resume::at(key, position).to_bytes());
    }

    /// Whoever goes on begins behind a row, or behind the partition.
    fn go_on_behind(&mut self, row: Option<Clustering>) {
        let position = row.map(|row| match self.direction {
            Direction::Forward => Position::after(row),
            Direction::Reverse => Position::before(row),
        });
        self.sink.go_on_at(Resume::at(self.common.key(), position.as_ref()).to_bytes());
    }

    /// What has taken the rows.
    pub(super) fn finish(self) -> S {
        self.sink
    }

    fn wants_static_row(&self) -> bool {
        let is_static = |place: &Place| matches!(place, Place::Static(_));
        let is_selected = || self.common.selection.places.iter().any(is_static);
        !self.common.schema.statics.is_empty() && (self.with_static_only || is_selected())
    }

    /// The columns that are looked at.
    fn wanted(&self) -> Wanted {
        if self.common.selection.is_all {
            return Wanted::default();
        }
        let of = |take: fn(&Place) -> Option<u16>| {
            let mut columns: Vec<u16> = self.common.selection.places.iter().filter_map(take).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let regulars = of(|place| if let Place::Regular(at) = place { Some(*at) } else { None });
        let statics = of(|place| if let Place::Static(at) = place { Some(*at) } else { None });
        Wanted {
            regulars: Some(regulars),
            // Whether a static row is there at all is told by all of its columns.
            statics: (!self.with_static_only).then_some(statics),
        }
    }
}

#[cfg(test)]
#[path = "packer_tests.rs"]
mod tests;
