//! A slice of a partition from its end to its start.
//!
//! Rows can only be decoded forward. The reader takes the index blocks from the last one on, a few at a
//! time, decodes each piece forward and hands its fragments out backwards; so it holds one piece, never
//! the partition. A partition without index blocks is one piece.
//!
//! In a reversed stream a range tombstone change says which deletion is in force *below* its position.
//!
//! Most rows of a piece are only scanned on the way forward, and stay in the bytes of the file until they are handed out.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use model::flat::RowTaker;
use model::{
    DeletionTime, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position, Slice, Weight,
};
use runtime::reuse;

use crate::big::entry::Promoted;
use crate::big::promoted_cursor::{Found, PromotedCursor, Within};
use crate::component::Component;
use crate::data::passed::Passed;
use crate::data::reader::{Blocks, Data, DataReader, Guess, Pace};
use crate::data::row::{Lead, RowCodec, RowHabit, Source};
use crate::data::usual_rows::{Upcoming, UsualRows};
use crate::sstable::{ReadOptions, SSTable};
use crate::{Error, Result};

/// So many blocks are a piece at the most, as far as one request holds them.
const MOST_BLOCKS: u32 = 64;
/// Said of rows that this reader has looked at before.
const SEEN: &str = "a row is read again as it was read at first";

/// Reads a slice backwards.
#[derive(Debug)]
pub struct ReverseReader {
    table: Rc<SSTable>,
    slice: Slice,
    /// What is handed out before the rows of the piece at hand.
    ready: VecDeque<Fragment>,
    piece: Piece,
    /// What is handed out behind them.
    closing: VecDeque<Fragment>,
    left: Left,
    /// How many bytes of rows the next piece is to have.
    wanted: u64,
    /// Where in the last block the rows seem to end, before the first piece.
    exit: Option<Within>,
    /// Whether the first piece is to have all that is wanted, as long as that is not known.
    is_guess: bool,
    /// Of which kind.
    guess: Guess,
    /// The tombstone in force below the last fragment; `None` before the first piece.
    open: Option<DeletionTime>,
    /// What the pieces so far begin with: the next one is before it.
    lowest: Passed,
    /// The most bytes of data that one request brings in.
    read_buffer: u64,
}

/// The rows and range tombstones of a piece that are left, ascending.
#[derive(Debug, Default)]
struct Piece {
    items: Vec<Item>,
    /// The bytes that the usual rows stand in, as they were read.
    buffers: Vec<Rc<Vec<u8>>>,
}

#[derive(Debug)]
enum Item {
    /// In a box: most items are the others, which are small.
    Fragment(Box<Fragment>),
    /// A usual row, where it begins in the buffer of this number.
    Usual { buffer: u32, at: u32 },
}

/// Where a large partition is: its head in the data, its promoted index, and the blocks that are wanted.
#[derive(Debug)]
pub(crate) struct PlaceOfBlocks {
    pub(crate) head: Range<u64>,
    pub(crate) promoted: Promoted,
    pub(crate) found: Found,
}

/// The usual rows of a piece, from the last one on.
struct Last<'p> {
    items: &'p mut Vec<Item>,
    buffers: &'p [Rc<Vec<u8>>],
}

/// Where the rows of a piece seem to end, in bytes from the partition's start.
struct Exit {
    at: u64,
    /// How many bytes more are to be read in front of them.
    slack: u64,
    /// Up to where the first request goes.
    end: u64,
}

/// Where a piece is.
struct PlaceOfPiece {
    /// The number of its first block.
    first: u32,
    /// In bytes from the partition's start.
    bytes: Range<u64>,
    /// Up to where the first request goes.
    request_end: u64,
}

/// What is still to be read.
#[derive(Debug)]
enum Left {
    /// All of a partition without index blocks.
    Partition { key: PartitionKey, range: Range<u64>, with_static: bool },
    /// Blocks, the last one first; before them the head of the partition, if it is wanted.
    Blocks {
        head: Option<(PartitionKey, Range<u64>)>,
        partition: u64,
        promoted: Promoted,
        numbers: Range<u32>,
        /// Where the piece begins that was read before, in bytes from the partition's start.
        above: Option<u64>,
        open: DeletionTime,
    },
    /// Nothing.
    Nothing,
    /// That was being found out when the future which did was given up.
    Unknown,
}

impl ReverseReader {
    pub(crate) fn whole(
        table: Rc<SSTable>,
        key: PartitionKey,
        range: Range<u64>,
        slice: Slice,
        options: ReadOptions,
    ) -> ReverseReader {
        let left = Left::Partition { key, range, with_static: options.static_row };
        ReverseReader::new(table, slice, left, options)
    }

    pub(crate) fn blocks(
        table: Rc<SSTable>,
        start: PartitionStart,
        place: PlaceOfBlocks,
        slice: Slice,
        options: ReadOptions,
    ) -> ReverseReader {
        let PlaceOfBlocks { head, promoted, found } = place;
        let partition = head.start;
        let mut reader = ReverseReader::new(table, slice, Left::Nothing, options);
        let head = match options.static_row {
            true => Some((start.key, head)),
            false => {
                reader.ready.push_back(Fragment::PartitionStart(start));
                None
            }
        };
        reader.exit = Some(found.exit);
        let Found { blocks: numbers, open, .. } = found;
        reader.left = Left::Blocks { head, partition, promoted, numbers, above: None, open };
        reader
    }

    fn new(table: Rc<SSTable>, slice: Slice, left: Left, options: ReadOptions) -> ReverseReader {
        let read_buffer = table.read_buffer(options);
        let wanted = options.limit.map_or(u64::MAX, |rows| table.len_of_rows(rows));
        ReverseReader {
            table,
            slice,
            ready: VecDeque::new(),
            piece: Piece::default(),
            closing: VecDeque::new(),
            left,
            wanted,
            exit: None,
            is_guess: options.limit.is_some(),
            guess: if options.is_among_others { Guess::ReverseShare } else { Guess::Reverse },
            open: None,
            lowest: Passed::Nothing,
            read_buffer,
        }
    }

    /// Reads the next piece. An error ends the stream.
    async fn next_piece(&mut self) -> Result<()> {
        let left = std::mem::replace(&mut self.left, Left::Unknown);
        let read = self.piece_of(left).await;
        if read.is_err() {
            self.left = Left::Nothing;
        }
        read
    }

    async fn piece_of(&mut self, left: Left) -> Result<()> {
        match left {
            Left::Nothing => {
                self.left = left;
                Ok(())
            }
            Left::Unknown => panic!("a reader whose future was given up is not read on"),
            Left::Partition { key, range, with_static } => {
                let pace = Pace::steady(self.read_buffer, false);
                let data = self.table.data().clone();
                let piece = DataReader::whole_piece(data, range, pace, self.slice.clone())
                    .expecting(&key)
                    .to_its_end();
                self.take(if with_static { piece } else { piece.without_static_row() }).await?;
                self.finish(DeletionTime::LIVE);
                Ok(())
            }
            Left::Blocks { head, partition, promoted, numbers, above, open } => {
                if let Some((key, head)) = head {
                    self.read_head(&key, head).await?;
                }
                if numbers.is_empty() {
                    self.finish(open);
                    return Ok(());
                }
                let (first, start) = self.read_blocks(partition, &promoted, numbers.clone(), above).await?;
                let (numbers, above) = (numbers.start..first, Some(start));
                self.left = Left::Blocks { head: None, partition, promoted, numbers, above, open };
                Ok(())
            }
        }
    }

    async fn read_head(&mut self, key: &PartitionKey, head: Range<u64>) -> Result<()> {
        let pace = Pace::steady((head.end - head.start).min(self.read_buffer), false);
        let data = self.table.data().clone();
        let mut reader = DataReader::whole_piece(data, head, pace, self.slice.clone()).expecting(key);
        while let Some(fragment) = reader.next().await? {
            self.ready.push_back(fragment);
        }
        Ok(())
    }

    /// Reads the last few of the blocks, which end where those `above` them begin; the number of the first one read, and where it begins.
    async fn read_blocks(
        &mut self,
        partition: u64,
        promoted: &Promoted,
        numbers: Range<u32>,
        above: Option<u64>,
    ) -> Result<(u32, u64)> {
        let table = self.table.clone();
        let cursor = table.index().cursor(&table.data().codec, promoted);
        let last = cursor.extent(numbers.end - 1).await?.reach;
        if above.is_some_and(|above| above != last.end) {
            let what = format!(
                "block {} of the partition at {partition} of the data does not end where the next one begins",
                numbers.end - 1
            );
            let path = table.descriptor().path_of(&Component::Index);
            return Err(Error::corrupt(&path, promoted.blocks.start, what));
        }
        let PlaceOfPiece { first, bytes, request_end } =
            self.place_of_piece(&cursor, numbers.clone(), &last).await?;
        let (open, start) = (cursor.open_before(first).await?, bytes.start);
        let pace = self.pace_of_piece(&bytes, request_end);
        let range = table.part_of_partition(partition, bytes)?;
        let at = range.start;
        let piece = DataReader::piece(table.data().clone(), Blocks { range, open }, pace, self.slice.clone());
        let highest = self.take(piece).await?;
        let Data { file, codec, schema, .. } = &**table.data();
        if !highest.is_before(&self.lowest, codec, schema) {
            let what = "the index block that begins here reaches into the rows of the next one";
            return Err(Error::corrupt(file.path(), at, what));
        }
        if let Some(lowest) = self.piece.lowest(codec).filter(|_| first > numbers.start) {
            self.lowest = lowest;
        }
        Ok((first, start))
    }

    /// As many blocks, the `last` one and those before it, as seem to have what is wanted, as far as one request holds them. The piece behind
    /// it is to have more.
    async fn place_of_piece(
        &mut self,
        cursor: &PromotedCursor<'_>,
        numbers: Range<u32>,
        last: &Range<u64>,
    ) -> Result<PlaceOfPiece> {
        let (mut first, mut start) = (numbers.end - 1, last.start);
        let Exit { at: exit, slack, end: request_end } = self.exit_of_piece(last);
        let wanted = self.wanted.saturating_add(slack);
        while first > numbers.start
            && exit.saturating_sub(start) < wanted
            && numbers.end - first < MOST_BLOCKS
        {
            let before = cursor.extent(first - 1).await?.reach.start;
            if last.end.saturating_sub(before) > self.read_buffer {
                break;
            }
            (first, start) = (first - 1, before);
        }
        // More is wanted than a piece has.
        self.is_guess &= exit.saturating_sub(start) >= wanted;
        let len = last.end.saturating_sub(start);
        self.wanted = if self.is_guess { len / 4 } else { len.saturating_mul(2) };
        Ok(PlaceOfPiece { first, bytes: start..last.end, request_end })
    }

    /// All at once, but for what is behind the end of the first request.
    fn pace_of_piece(&self, bytes: &Range<u64>, request_end: u64) -> Pace {
        let steady = Pace::steady(self.read_buffer, false);
        if request_end >= bytes.end {
            return steady;
        }
        let first = request_end.saturating_sub(bytes.start).clamp(1, self.read_buffer);
        Pace { first, guess: Some(self.guess), ..steady }
    }

    /// Where in its last block the rows of the next piece seem to end.
    fn exit_of_piece(&mut self, last: &Range<u64>) -> Exit {
        let (slack, row) = (&self.table.data().slack, self.table.len_of_rows(1));
        let Some(exit) = self.exit.take() else {
            if std::mem::take(&mut self.is_guess) {
                slack.fell_short(self.guess);
            }
            return Exit { at: last.end, slack: 0, end: last.end };
        };
        match slack.of(self.guess, row) {
            Some(slack) => {
                let at = exit.row(row).end;
                Exit { at, slack, end: at.saturating_add(slack) }
            }
            // The last block may have none of the rows.
            None => Exit { at: last.start, slack: 0, end: last.end },
        }
    }

    /// Decodes a piece forward, to be handed out backwards. What it ends with.
    async fn take(&mut self, mut reader: DataReader) -> Result<Passed> {
        // The buffers of the last one are used again.
        self.piece = Piece::default();
        self.piece = Piece::read(&mut reader, &mut self.ready).await?;
        let at_end = reader.open();
        if self.open.is_none() && !at_end.is_live() {
            self.ready.push_back(Fragment::change(self.slice.end.clone(), at_end));
        }
        let mut above = reader.open_at_entry();
        for item in &mut self.piece.items {
            if let Item::Fragment(fragment) = item
                && let Fragment::RangeTombstone(change) = &mut **fragment
            {
                std::mem::swap(&mut change.deletion, &mut above);
            }
        }
        self.open = Some(reader.open_at_entry());
        Ok(reader.into_passed())
    }

    /// Closes the slice at its start. `between` is what is in force where no block holds any of it.
    fn finish(&mut self, between: DeletionTime) {
        if self.open.is_none() && !between.is_live() {
            self.closing.push_back(Fragment::change(self.slice.end.clone(), between));
        }
        if !self.open.unwrap_or(between).is_live() {
            self.closing.push_back(Fragment::change(self.slice.start.clone(), DeletionTime::LIVE));
        }
        self.closing.push_back(Fragment::PartitionEnd);
        self.left = Left::Nothing;
    }
}

impl Piece {
    /// All that a reader gives, which goes forward; what stands in front of rows goes into `head`.
    async fn read(reader: &mut DataReader, head: &mut VecDeque<Fragment>) -> Result<Piece> {
        let (mut piece, mut place) = (Piece::default(), Fragment::default());
        loop {
            reader.pass_usual_rows(|buffer, at| piece.note(buffer, at));
            match reader.pop(&mut place)? {
                Next::End => return Ok(piece),
                Next::Fill => reader.fill().await?,
                Next::Fragment => match std::mem::take(&mut place) {
                    fragment @ (Fragment::PartitionStart(_) | Fragment::StaticRow(_)) => {
                        head.push_back(fragment)
                    }
                    fragment => piece.items.push(Item::Fragment(Box::new(fragment))),
                },
            }
        }
    }

    /// What it begins with, if it has anything.
    fn lowest(&self, codec: &RowCodec) -> Option<Passed> {
        let fragment = match self.items.first()? {
            &Item::Usual { buffer, at } => {
                let row = &self.buffers[buffer as usize][at as usize + 1..];
                return Some(Passed::row(codec, row));
            }
            Item::Fragment(fragment) => &**fragment,
        };
        match fragment {
            Fragment::Row(row) => {
                Some(Passed::At(Position { prefix: row.clustering.detached(), weight: Weight::At }))
            }
            Fragment::RangeTombstone(change) => Some(Passed::At(change.position.detached())),
            _ => None,
        }
    }

    /// A usual row stands there.
    #[inline]
    fn note(&mut self, buffer: &Rc<Vec<u8>>, at: usize) {
        if self.buffers.last().is_none_or(|last| !Rc::ptr_eq(last, buffer)) {
            self.buffers.push(buffer.clone());
        }
        let at = u32::try_from(at).expect("buffers are addressed by 32 bits");
        self.items.push(Item::Usual { buffer: self.buffers.len() as u32 - 1, at });
    }

    /// Puts the last item into `place`, and forgets it; whether there was one.
    fn pop(&mut self, codec: &RowCodec, place: &mut Fragment) -> bool {
        match self.items.pop() {
            Some(Item::Fragment(fragment)) => *place = *fragment,
            Some(Item::Usual { buffer, at }) => {
                let (owner, at, row) = (&self.buffers[buffer as usize], at as usize, place.as_new_row());
                let source = Source { owner, end: owner.len() };
                let (lead, _) = codec.lead(source, at, &mut row.clustering).expect(SEEN);
                let Lead::Row(lead) = lead else { unreachable!("{SEEN}") };
                codec.row(source, at, &lead, row).expect(SEEN);
            }
            None => return false,
        }
        true
    }

    /// Gives the last rows as long as they are usual ones and `take` wants more.
    fn pop_flat(&mut self, codec: &RowCodec, habit: &RowHabit, take: &mut impl RowTaker) {
        let Piece { items, buffers } = self;
        if !matches!(items.last(), Some(Item::Usual { .. })) {
            return;
        }
        UsualRows::new(codec, Last { items, buffers }, habit).give(take);
    }
}

impl<'p> Upcoming<'p> for Last<'p> {
    #[inline(always)]
    fn row_bytes(&self) -> Option<&'p [u8]> {
        let Some(&Item::Usual { buffer, at }) = self.items.last() else { return None };
        Some(&self.buffers[buffer as usize][at as usize..])
    }

    #[inline(always)]
    fn pass(&mut self, _: usize) {
        self.items.pop();
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // They point into the buffers.
        self.items.clear();
        for mut buffer in self.buffers.drain(..) {
            // Unless something that was handed out still does.
            if let Some(buffer) = Rc::get_mut(&mut buffer) {
                reuse(std::mem::take(buffer));
            }
        }
    }
}

impl FragmentReader for ReverseReader {
    type Error = Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        if place.pop_from(&mut self.ready) == Next::Fragment
            || self.piece.pop(&self.table.data().codec, place)
        {
            return Ok(Next::Fragment);
        }
        Ok(match (place.pop_from(&mut self.closing), &self.left) {
            (Next::Fragment, _) => Next::Fragment,
            (_, Left::Nothing) => Next::End,
            _ => Next::Fill,
        })
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        if self.ready.is_empty() {
            let Data { codec, habit, .. } = &**self.table.data();
            self.piece.pop_flat(codec, habit, take);
        }
    }

    async fn fill(&mut self) -> Result<()> {
        if self.ready.is_empty() && self.piece.items.is_empty() { self.next_piece().await } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use model::flat::{FlatRow, UsualValues};
    use model::{Column, CqlType, Schema};

    use super::*;
    use crate::Version;
    use crate::data::row::Minima;

    fn codec() -> RowCodec {
        let regulars = vec![Column { name: b"v"[..].into(), data_type: CqlType::Text }];
        let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), regulars);
        RowCodec::new(&schema, Minima { timestamp: 5, local_deletion_time: 0, ttl: 0 }, Version::Oa)
    }

    /// Rows with these numbers as keys, of values so short that nothing behind the last one helps to read it.
    fn piece(codec: &RowCodec, numbers: Range<i32>) -> Piece {
        let (mut bytes, mut place, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for number in numbers {
            let key = number.to_be_bytes();
            let values = UsualValues {
                clustering: [Some(&key[..])].into_iter().collect(),
                timestamp: 6,
                cells: [&b"ok"[..]].into_iter().collect(),
            };
            place.clear();
            starts.push(bytes.len());
            codec.put_prefix_of_values(&values.clustering, &mut place);
            codec.put_values_of_row(&values.row(), &place, 15, &mut bytes);
        }
        let (mut piece, buffer) = (Piece::default(), Rc::new(bytes));
        starts.into_iter().for_each(|at| piece.note(&buffer, at));
        piece
    }

    /// The numbers of all rows, as they are handed out, so many at once by their values.
    fn handed_out(codec: &RowCodec, mut piece: Piece, habit: &RowHabit, at_once: usize) -> Vec<i32> {
        let (mut numbers, mut place) = (Vec::new(), Fragment::default());
        let mut note = |fragment: &Fragment| {
            let Fragment::Row(row) = fragment else { panic!("all are rows") };
            let key = row.clustering.values[0].as_deref().unwrap();
            numbers.push(i32::from_be_bytes(key.try_into().unwrap()));
            assert_eq!(row.liveness.timestamp, 6);
        };
        loop {
            let mut taken = 0;
            piece.pop_flat(codec, habit, &mut |row: FlatRow<'_>| {
                let mut place = Fragment::default();
                row.decode(&mut place).unwrap();
                note(&place);
                taken += 1;
                taken < at_once
            });
            if taken == 0 && !piece.pop(codec, &mut place) {
                return numbers;
            }
            if taken == 0 {
                note(&place);
            }
        }
    }

    #[test]
    fn rows_at_the_end_of_a_buffer_are_handed_out_whatever_is_known_of_how_they_stand() {
        let codec = codec();
        let expected: Vec<i32> = (0..20).rev().collect();
        for at_once in [1, 3, 100] {
            // Of a file of which nothing is known yet, and once more when it is.
            let habit = RowHabit::default();
            for _ in 0..2 {
                assert_eq!(handed_out(&codec, piece(&codec, 0..20), &habit, at_once), expected);
            }
        }
    }
}
