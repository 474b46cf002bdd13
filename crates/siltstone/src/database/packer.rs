//! Rows made into pages, from decoded rows and from rows as they stand in the row cache.
//!
//! ```text
//! stream ──pop_flat──► Straight ───┐
//!        └──pop─────► Fragment ────┴──► PackedRows
//! ```
//!
//! Both ways give the same bytes. The first one copies values from the cache into the page and makes nothing else: it can
//! where columns are selected in the order in which rows have them. Columns of many cells and counters, whose values are
//! made of several cells or of a part of one, go the second way, as does a row with deletions of such columns.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use model::flat::FlatRow;
use model::{
    Bytes, Cell, Column, CqlType, Direction, Fragment, FragmentReader, LiveRows, LiveVisitor, Next,
    PartitionKey, PartitionStart, Position, Row, Schema, Slice, select,
};
use smallvec::SmallVec;
use storage::cover::Wanted;
use storage::row_cache::Known;
use storage::{ReadRequest, Table, Tokens};

use super::resume::Resume;
use super::rows::PackedRows;
use super::select::Selection;
use super::shape::{Place, Shape};
use super::worker::ShardTable;
use crate::Result;

/// After so many fragments others may go on.
const TURN: u32 = 512;

/// The order of the first regular column; there are less clustering columns than this.
const FIRST_REGULAR: u32 = 1 << 16;

/// Said of rows that the row cache has put there itself.
const WHOLE: &str = "the row cache has whole rows";

/// Makes rows of fragments until the page is full.
pub(super) struct Packer {
    shape: Arc<Shape>,
    schema: Rc<Schema>,
    selection: Selection,
    is_static_compact: bool,
    /// Whether rows need not be decoded.
    takes_flat: bool,
    pub(super) with_static_only: bool,
    pub(super) direction: Direction,
    live: LiveRows,
    packed: PackedRows,
    key: Option<PartitionKey>,
    key_parts: Vec<Bytes>,
    /// How many columns of the partition key are selected first.
    key_places: usize,
    /// With how many bytes the last row begins that all of its partition begin with; 0 if it is of another one.
    head: usize,
    static_row: Option<Row>,
    has_rows: bool,
    /// Partitions up to this one are left out.
    behind: Option<PartitionKey>,
    /// Whether the partition at hand is behind it.
    is_behind: bool,
}

/// How far a turn has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The page is full, or the stream at its end.
    All,
    /// The stream has to be filled.
    AtHand,
    /// So much that others may go on.
    Turn,
}

/// Puts a row into the page while it is visited.
struct Straight<'p> {
    packed: &'p mut PackedRows,
    /// Those that are left.
    places: &'p [Place],
    key_parts: &'p [Bytes],
    static_row: Option<&'p Row>,
    schema: &'p Schema,
    /// How many clustering columns were seen.
    clustering: u32,
}

impl Packer {
    /// With an empty page, for what is live at `now`, in seconds.
    pub(super) fn new(shape: Arc<Shape>, schema: Rc<Schema>, selection: Selection, now: i64) -> Packer {
        let is_static_compact = shape.clustering_len() < shape.model().clustering.len();
        let is_of_key = |place: &&Place| matches!(place, Place::PartitionKey(_));
        Packer {
            takes_flat: !is_static_compact && are_straight(&selection.places, &schema),
            key_places: selection.places.iter().take_while(is_of_key).count(),
            head: 0,
            is_static_compact,
            with_static_only: is_static_compact,
            direction: Direction::Forward,
            schema,
            shape,
            selection,
            live: LiveRows::new(now),
            packed: PackedRows::default(),
            key: None,
            key_parts: Vec::new(),
            static_row: None,
            has_rows: false,
            behind: None,
            is_behind: true,
        }
    }

    pub(super) async fn slice(&mut self, table: &ShardTable, key: PartitionKey, slice: Slice) -> Result<()> {
        let mut stream = table.table.read(&self.request(key, slice)).await?;
        self.take_all(&mut stream).await
    }

    pub(super) fn request(&self, key: PartitionKey, slice: Slice) -> ReadRequest {
        ReadRequest {
            direction: self.direction,
            static_row: self.wants_static_row(),
            wanted: self.wanted(),
            limit: (self.selection.rows < usize::MAX).then_some(self.selection.rows as u64),
            ..ReadRequest::new(key, slice)
        }
    }

    /// Takes the row that a slice is of by itself, or that there is none, if memory knows. Whether it does.
    pub(super) fn take_known(&mut self, table: &Table, key: &PartitionKey, slice: &Slice) -> bool {
        if self.wants_static_row() {
            return false;
        }
        let Some(row) = self.schema.row_of(slice) else { return false };
        let row: SmallVec<[&[u8]; 4]> = row.values.iter().flatten().map(|value| &**value).collect();
        match table.known_row(key, &row) {
            Known::Unknown => false,
            Known::Absent => true,
            Known::Row(row) => {
                let (key, deletion) = (key.clone(), row.partition_deletion());
                let mut place = Fragment::PartitionStart(PartitionStart { key, deletion });
                self.take(&mut place);
                self.take_kept(row.flat(), &mut place);
                true
            }
        }
    }

    pub(super) async fn scan(
        &mut self,
        table: &ShardTable,
        tokens: Tokens,
        behind: Option<PartitionKey>,
    ) -> Result<()> {
        let mut stream = match &behind {
            Some(key) if tokens.contain(key.token) => table.table.scan_behind(key, tokens.last).await?,
            _ => table.table.scan(tokens.after, tokens.last).await?,
        };
        self.behind = behind;
        self.take_all(&mut stream).await
    }

    /// Takes what comes until the page is full.
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

    /// Takes what comes until the page is full, the stream has no more at hand, or others are to go on.
    pub(super) fn take_some<R: FragmentReader<Error = storage::Error>>(
        &mut self,
        stream: &mut R,
        place: &mut Fragment,
    ) -> Result<Taken> {
        let mut left = TURN;
        while left > 0 {
            if self.takes_flat {
                stream.pop_flat(&mut |row| {
                    left -= 1;
                    !self.take_flat(row, place) && left > 0
                });
            }
            if !self.is_full() && left > 0 {
                match stream.pop(place)? {
                    Next::Fragment => self.take(place),
                    Next::Fill => return Ok(Taken::AtHand),
                    Next::End => return Ok(Taken::All),
                }
                left -= 1;
            }
            if self.is_full() {
                return Ok(Taken::All);
            }
        }
        Ok(Taken::Turn)
    }

    pub(super) fn is_full(&self) -> bool {
        let PackedRows { starts, bytes, .. } = &self.packed;
        starts.len() >= self.selection.rows || bytes.len() >= self.selection.bytes
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

    /// Takes a row that is not decoded; where it has to be, that is done in `place`. Whether the page is full.
    #[inline]
    fn take_flat(&mut self, row: FlatRow<'_>, place: &mut Fragment) -> bool {
        if !self.is_behind {
            return false;
        }
        let head = self.begin_alike();
        let Packer { selection, packed, key_parts, static_row, schema, .. } = self;
        let (places, static_row) = (&selection.places[self.key_places..], static_row.as_ref());
        let mut straight = Straight { packed, places, key_parts, static_row, schema, clustering: 0 };
        match self.live.show(row, &mut straight).expect(WHOLE) {
            Some(true) => straight.finish(),
            Some(false) => {
                self.packed.take_back();
                return false;
            }
            None => {
                self.packed.take_back();
                row.decode(place).expect(WHOLE);
                self.take(place);
                return self.is_full();
            }
        }
        (self.has_rows, self.head) = (true, head);
        let is_full = self.is_full();
        if is_full && self.selection.wants_next {
            row.decode(place).expect(WHOLE);
            let Fragment::Row(row) = place else { unreachable!("it was decoded") };
            self.packed.next = Some(self.behind(Some(row)).to_bytes());
        }
        is_full
    }

    /// Begins a row with what the last one begins with, if that is of the same partition. How many bytes that are.
    #[inline]
    fn begin_alike(&mut self) -> usize {
        let Packer { packed, selection, .. } = self;
        if self.head != 0 {
            packed.begin_alike(self.head, selection.rows);
            return self.head;
        }
        let key = self.key.as_ref().expect("rows stand in partitions");
        packed.begin(key.token, selection.rows);
        for place in &selection.places[..self.key_places] {
            put_of_partition(*place, &self.key_parts, None, &self.schema, packed);
        }
        packed.begun()
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
                self.key_parts = key_parts(&start.key.bytes, self.shape.key_types());
                (self.key, self.static_row, self.has_rows) = (Some(start.key.clone()), None, false);
                self.head = 0;
            }
            Fragment::PartitionEnd
                if !self.has_rows && self.with_static_only && self.static_row.is_some() =>
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
            Fragment::StaticRow(row) => self.static_row = Some(row.clone()),
            _ => {}
        }
    }

    fn pack(&mut self, row: Option<&Row>) {
        self.has_rows = true;
        let key = self.key.as_ref().expect("rows stand in partitions");
        self.packed.begin(key.token, self.selection.rows);
        for place in self.selection.places.iter() {
            match *place {
                Place::Clustering(at) => {
                    let value = row.and_then(|row| row.clustering.values.get(at)?.as_ref());
                    self.packed.push(value.map(|value| &**value));
                }
                Place::Regular(at) => {
                    let value = value_of(row, &self.schema.regulars, at);
                    self.packed.push(value.as_deref());
                }
                of_partition => {
                    let (packed, static_row) = (&mut self.packed, self.static_row.as_ref());
                    put_of_partition(of_partition, &self.key_parts, static_row, &self.schema, packed);
                }
            }
        }
        if self.is_full() && self.selection.wants_next {
            self.packed.next = Some(self.behind(row).to_bytes());
        }
    }

    /// The place behind a row, or behind the partition.
    fn behind(&self, row: Option<&Row>) -> Resume {
        let key = self.key.as_ref().expect("rows stand in partitions");
        let position = row.map(|row| match self.direction {
            Direction::Forward => Position::after(row.clustering.clone()),
            Direction::Reverse => Position::before(row.clustering.clone()),
        });
        Resume::at(key, position.as_ref())
    }

    pub(super) fn finish(self) -> PackedRows {
        self.packed
    }

    fn wants_static_row(&self) -> bool {
        let is_static = |place: &Place| matches!(place, Place::Static(_));
        let is_selected = || self.selection.places.iter().any(is_static);
        !self.schema.statics.is_empty() && (self.with_static_only || is_selected())
    }

    /// The columns that are looked at.
    fn wanted(&self) -> Wanted {
        if self.selection.is_all {
            return Wanted::default();
        }
        let of = |take: fn(&Place) -> Option<u16>| {
            let mut columns: Vec<u16> = self.selection.places.iter().filter_map(take).collect();
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

impl<'a> LiveVisitor<'a> for Straight<'_> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.put(self.clustering, value);
        self.clustering += 1;
    }

    #[inline]
    fn cell(&mut self, column: u16, value: &'a [u8]) {
        self.put(FIRST_REGULAR + u32::from(column), Some(value));
    }
}

impl Straight<'_> {
    /// Puts the value of a column, if it is selected, behind all that is selected before it.
    #[inline]
    fn put(&mut self, column: u32, value: Option<&[u8]>) {
        while let [place, rest @ ..] = self.places {
            match order_of(*place) {
                Some(next) if next == column => {
                    self.places = rest;
                    return self.packed.push(value);
                }
                Some(next) if next > column => return,
                _ => self.put_without(*place),
            }
            self.places = rest;
        }
    }

    /// Puts what is selected behind the last value.
    #[inline]
    fn finish(mut self) {
        let places = self.places;
        places.iter().for_each(|place| self.put_without(*place));
    }

    /// Puts a column that the row has no value of.
    fn put_without(&mut self, place: Place) {
        put_of_partition(place, self.key_parts, self.static_row, self.schema, self.packed);
    }
}

/// The number of a column of a row's own, in the order in which rows have them; `None` of a partition's.
#[inline]
fn order_of(place: Place) -> Option<u32> {
    match place {
        Place::Clustering(at) => Some(at as u32),
        Place::Regular(at) => Some(FIRST_REGULAR + u32::from(at)),
        Place::PartitionKey(_) | Place::Static(_) => None,
    }
}

/// Whether these columns of rows can be put into a page while a row is visited.
fn are_straight(places: &[Place], schema: &Schema) -> bool {
    let is_one_cell = |place: &Place| {
        let Place::Regular(at) = *place else { return true };
        let data_type = &schema.regulars[usize::from(at)].data_type;
        !data_type.is_multi_cell() && !data_type.is_counter()
    };
    let of_rows = places.iter().filter_map(|place| order_of(*place));
    of_rows.is_sorted_by(|a, b| a < b) && places.iter().all(is_one_cell)
}

/// Puts the value of a column that all rows of a partition have in common; null for one of the row's own.
fn put_of_partition(
    place: Place,
    key_parts: &[Bytes],
    static_row: Option<&Row>,
    schema: &Schema,
    packed: &mut PackedRows,
) {
    match place {
        Place::PartitionKey(at) => packed.push(key_parts.get(at).map(|part| &**part)),
        Place::Static(at) => packed.push(value_of(static_row, &schema.statics, at).as_deref()),
        Place::Clustering(_) | Place::Regular(_) => packed.push(None),
    }
}

/// The value of a column from the live cells of a row.
fn value_of<'a>(row: Option<&'a Row>, columns: &[Column], at: u16) -> Option<Cow<'a, [u8]>> {
    let cells = &row?.cells;
    let first = cells.partition_point(|cell: &Cell| cell.column < at);
    let count = cells[first..].iter().take_while(|cell| cell.column == at).count();
    select::value_of(&columns[usize::from(at)].data_type, &cells[first..first + count])
}

/// The values of the columns of a partition key.
fn key_parts(key: &Bytes, types: &[CqlType]) -> Vec<Bytes> {
    if types.len() == 1 {
        return vec![key.clone()];
    }
    let mut at = 0;
    let next = |_: &CqlType| {
        let len = key.get(at..at + 2).map(|len| usize::from(u16::from_be_bytes([len[0], len[1]])))?;
        let part = (at + 2 + len <= key.len()).then(|| key.slice(at + 2..at + 2 + len));
        at += 2 + len + 1;
        part
    };
    types.iter().map_while(next).collect()
}

#[cfg(test)]
#[path = "packer_tests.rs"]
mod tests;
