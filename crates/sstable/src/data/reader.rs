//! Rows in the order of the file: whole scans, whole partitions, and slices of one.
//!
//! A [`DataReader`] gets the range of bytes to read, which the index has found, and decodes them into fragments as they are popped. It
//! waits only when the bytes at hand do not hold the next fragment.
//!
//! If a slice begins inside a deleted range, the stream begins with that deletion at the slice's start; if it ends inside one, the stream
//! closes it at the slice's end.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

use model::clustering::{PositionRef, compare_positions};
use model::flat::RowTaker;
use model::{
    Bytes, Clustering, DeletionTime, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position,
    Row, Schema, Slice, Token, Weight,
};

use super::chunk::DataFile;
pub use super::guess::Guess;
use super::guess::Slack;
use super::passed::{Ascending, Passed};
use super::row::{Lead, Marker, Minima, RowCodec, RowHabit, RowLead, Sought, Source, bring_near};
use super::usual_rows::{AtHand, Upcoming, UsualRows};
pub use super::window::Pace;
use super::window::Window;
use crate::decode::DecodeError;
use crate::index::token_for;
use crate::parts::row_filter::Absences;
use crate::parts::statistics::{Partitioner, Statistics};
use crate::{Error, Result, Version};

/// Data.db with all that is needed to understand it.
#[derive(Debug)]
pub struct Data {
    /// The bytes.
    pub file: DataFile,
    /// How rows are coded.
    pub codec: RowCodec,
    /// What the rows hold.
    pub schema: Rc<Schema>,
    /// What puts the partitions in order.
    pub partitioner: Partitioner,
    /// How far guesses where rows end are to be trusted.
    pub(crate) slack: Slack,
    /// How usual rows stand.
    pub(crate) habit: RowHabit,
}

impl Data {
    /// The data of a file with these statistics.
    pub fn new(file: DataFile, statistics: &Statistics, version: Version) -> Data {
        let schema = Rc::new(statistics.header.schema.clone());
        let partitioner = statistics.validation.partitioner;
        let codec = RowCodec::new(&schema, Minima::from(&statistics.header.encoding), version);
        Data { file, codec, schema, partitioner, slack: Slack::default(), habit: RowHabit::default() }
    }

    /// How a row stands to the end of a slice: equal if it is the row where the slice ends, which is the last one then.
    #[inline]
    fn order_at_end(&self, row: &Clustering, slice: &Slice) -> Ordering {
        let end = PositionRef { weight: self.weight_at_end(slice), ..slice.end.as_view() };
        compare_positions(&self.schema.clustering, PositionRef { prefix: row, weight: Weight::At }, end)
    }

    /// The weight of a slice's end: that of its last row where it ends behind that.
    #[inline]
    fn weight_at_end(&self, slice: &Slice) -> Weight {
        let Position { prefix, weight } = &slice.end;
        let is_of_row = !prefix.is_empty() && prefix.len() == self.schema.clustering.len();
        if is_of_row && *weight == Weight::After { Weight::At } else { *weight }
    }

    /// Whether what stands at `at`, as far as it is at hand, may come behind this. Data that is not compressed is not compared with
    /// checksums here, and a key with a wrong bit would hide all that comes behind it from who reads up to a place before that.
    pub(super) fn may_follow(&self, source: Source<'_>, at: usize, item: impl FnOnce() -> Passed) -> bool {
        if self.file.compression().is_some() || at >= source.end {
            return true;
        }
        let next = match self.codec.lead(source, at, &mut Clustering::default()) {
            Ok((Lead::Row(lead), _)) => Passed::row(&self.codec, lead.values(&source, at)),
            Ok((Lead::Marker(marker), _)) => Passed::At(marker.position),
            Ok((Lead::End, _)) | Err(_) => return true,
        };
        item().is_before(&next, &self.codec, &self.schema)
    }

    /// That the last partition is not there.
    pub(crate) fn cut_short(&self) -> Error {
        let what = "it does not end with the last partition that the index tells of: one of the two is cut short, Data.db most likely";
        Error::corrupt(self.file.path(), self.file.len(), what)
    }
}

/// Index blocks of one partition, read without its head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Where they stand in the data.
    pub range: Range<u64>,
    /// The range tombstone that is open at their start.
    pub open: DeletionTime,
}

/// What a reader reads.
#[derive(Debug)]
enum Plan {
    /// Partition after partition, all with tokens between these.
    Scan(RangeInclusive<Token>),
    /// One partition, of which only a slice is wanted.
    Slice(Slice),
    /// A piece of one partition, for whoever reads a partition piece by piece: nothing is added at
    /// the slice's ends, and a tombstone may be open at the end of the piece.
    Piece(Slice),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Head,
    Rows,
    /// The slice was read to its last row.
    Behind,
    Done,
}

/// What was decoded of a partition.
enum Step {
    /// What is not part of the slice, or says nothing.
    Over,
    /// A row of the slice.
    Row,
    /// A row behind which nothing can be in the slice.
    LastRow,
    /// A change within the slice, and what is in force behind it.
    Change(DeletionTime),
    /// The slice ends before it.
    Behind,
}

/// Decodes a range of the data into fragments.
#[derive(Debug)]
pub struct DataReader {
    data: Rc<Data>,
    window: Window,
    plan: Plan,
    state: State,
    /// Decoded, not popped.
    ready: VecDeque<Fragment>,
    /// The key that the index promised.
    expected: Option<PartitionKey>,
    /// Whether the partition ends in the range, and its end was not seen yet.
    is_whole: bool,
    /// Whether there may be more of the slice behind the range.
    is_open_ended: bool,
    /// Whether the static row is part of the stream.
    with_static: bool,
    /// Where to go on once the partition's head is read.
    then: Option<(Blocks, Pace)>,
    /// The range tombstone in force.
    open: DeletionTime,
    /// The one that was in force when the slice was entered.
    open_at_entry: Option<DeletionTime>,
    /// Who wants to know whether there is a row, until that is known.
    absences: Option<Rc<Absences>>,
    /// What was given of a slice last: what follows stands behind it.
    passed: Passed,
    /// The partition that a scan has to end with, where nothing else tells that the data is whole.
    ending: Option<Box<Ending>>,
}

/// The last partition of all, by its key.
#[derive(Debug)]
struct Ending {
    key: Box<[u8]>,
    /// Whether it is the one that was come to.
    is_met: bool,
}

impl DataReader {
    /// All partitions of a range, which begins and ends between two.
    pub fn scan(data: Rc<Data>, range: Range<u64>, pace: Pace) -> DataReader {
        let state = if range.is_empty() { State::Done } else { State::Head };
        DataReader::new(data, range, pace, Plan::Scan(Token::MIN..=Token::MAX), state)
    }

    /// Refuses an end of the data behind any other partition than the one of this key: the rest of the file is gone then.
    pub(crate) fn ending_with(mut self, key: &[u8]) -> DataReader {
        self.ending = Some(Box::new(Ending { key: key.into(), is_met: false }));
        if self.data.file.is_empty() {
            // To be told that it is.
            self.state = State::Head;
        }
        self
    }

    /// Refuses partitions with other tokens than these, between which the index said that all of a scan are.
    pub fn within(mut self, tokens: RangeInclusive<Token>) -> DataReader {
        self.plan = Plan::Scan(tokens);
        self
    }

    /// Brings in about so many bytes with the first request, if its pace would have it bring more.
    pub fn at_first(mut self, bytes: u64) -> DataReader {
        self.window.at_first(bytes);
        self
    }

    /// A slice of the partition that has this range, read from its head on.
    pub fn partition(data: Rc<Data>, range: Range<u64>, pace: Pace, slice: Slice) -> DataReader {
        DataReader::new(data, range, pace, Plan::Slice(slice), State::Head)
    }

    /// A slice of a partition whose head is at `head`: first the head with its static row, then blocks.
    pub fn head_and_blocks(
        data: Rc<Data>,
        head: Range<u64>,
        blocks: Blocks,
        pace: Pace,
        slice: Slice,
    ) -> DataReader {
        let first = (head.end - head.start).min(pace.most);
        let mut reader =
            DataReader::new(data, head, Pace { first, guess: None, ..pace }, Plan::Slice(slice), State::Head);
        reader.then = Some((blocks, pace));
        reader
    }

    /// A slice of a partition of which the index told enough: only blocks are read.
    pub fn blocks(
        data: Rc<Data>,
        start: PartitionStart,
        blocks: Blocks,
        pace: Pace,
        slice: Slice,
    ) -> DataReader {
        let mut reader = DataReader::new(data, blocks.range, pace, Plan::Slice(slice), State::Rows);
        reader.open = blocks.open;
        reader.ready.push_back(Fragment::PartitionStart(start));
        reader
    }

    /// A slice of a partition of which rows before it were looked at: goes on with the bytes at hand.
    pub(super) fn behind(
        data: Rc<Data>,
        window: Window,
        start: PartitionStart,
        open: DeletionTime,
        slice: Slice,
    ) -> DataReader {
        let mut reader = DataReader::with(data, window, Plan::Slice(slice), State::Rows);
        reader.open = open;
        reader.ready.push_back(Fragment::PartitionStart(start));
        reader
    }

    /// One piece of a partition: the slice's fragments in it, without start or end.
    pub fn piece(data: Rc<Data>, blocks: Blocks, pace: Pace, slice: Slice) -> DataReader {
        let mut reader = DataReader::new(data, blocks.range, pace, Plan::Piece(slice), State::Rows);
        reader.open = blocks.open;
        reader
    }

    /// A whole partition as one piece: its head, and the slice's fragments.
    pub fn whole_piece(data: Rc<Data>, range: Range<u64>, pace: Pace, slice: Slice) -> DataReader {
        DataReader::new(data, range, pace, Plan::Piece(slice), State::Head)
    }

    fn new(data: Rc<Data>, range: Range<u64>, pace: Pace, plan: Plan, state: State) -> DataReader {
        let window = Window::new(&data.file, range, pace);
        DataReader::with(data, window, plan, state)
    }

    fn with(data: Rc<Data>, window: Window, plan: Plan, state: State) -> DataReader {
        let (ready, then, open, open_at_entry) = (VecDeque::new(), None, DeletionTime::LIVE, None);
        DataReader {
            data,
            window,
            plan,
            state,
            ready,
            expected: None,
            is_whole: false,
            is_open_ended: false,
            with_static: true,
            then,
            open,
            open_at_entry,
            absences: None,
            passed: Passed::Nothing,
            ending: None,
        }
    }

    /// Refuses another partition than the one of this key, where the index may have pointed astray.
    pub fn expecting(mut self, key: &PartitionKey) -> DataReader {
        self.expected = Some(key.clone());
        self
    }

    /// The partition is said to end in the range, which is read no further: it is an error if the partition goes on behind the range.
    pub fn to_its_end(mut self) -> DataReader {
        self.is_whole = true;
        self
    }

    /// No other range will be read after this one.
    pub fn without_more(mut self) -> DataReader {
        self.window.no_more();
        self
    }

    /// Leaves the static row out, wherever it stands among what is read.
    pub fn without_static_row(mut self) -> DataReader {
        self.with_static = false;
        self
    }

    /// Tells whether there is a row.
    pub(crate) fn noting(mut self, absences: Option<Rc<Absences>>) -> DataReader {
        self.absences = absences;
        self
    }

    /// The key of the partition that begins here, of which nothing has been popped.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub(crate) async fn first_key(&mut self) -> Result<Bytes> {
        loop {
            let (source, at) = self.window.source();
            match self.data.codec.partition_head(source, at) {
                Ok((head, _)) => return Ok(head.key),
                Err(error) => self.window.wants(&self.data.file, error)?,
            }
            self.fill().await?;
        }
    }

    /// The place in the data behind what was decoded last; behind the static row after a partition's start.
    pub fn position(&self) -> u64 {
        self.window.at()
    }

    /// The range tombstone in force behind the last fragment.
    pub fn open(&self) -> DeletionTime {
        self.open
    }

    /// The range tombstone in force where the slice begins, as far as it was read.
    pub fn open_at_entry(&self) -> DeletionTime {
        self.open_at_entry.unwrap_or(self.open)
    }

    /// Goes on with a slice that begins no earlier than the last one ended; what was left of that is dropped. The
    /// stream begins again, with `start` if the partition's head has been read. As long as it is open-ended, the range
    /// may lack rows of the slice: whoever reads is asked to fill where it ends.
    pub(crate) fn go_on(&mut self, slice: Slice, start: Option<PartitionStart>, is_open_ended: bool) {
        self.plan = Plan::Slice(slice);
        self.is_open_ended = is_open_ended;
        if self.state != State::Head {
            self.ready.clear();
            self.ready.extend(start.map(Fragment::PartitionStart));
            self.open_at_entry = None;
            self.state = State::Rows;
        }
    }

    /// These are the blocks that can hold the slice: goes on at the first row of them that was not decoded yet.
    pub(crate) fn read_blocks(&mut self, blocks: Blocks, pace: Pace, ahead: u64) {
        let (at, Range { start, end }) = (self.window.at(), blocks.range);
        if start > at {
            self.open = blocks.open;
        }
        let start = start.max(at);
        self.window.jump(start..end.max(start), pace);
        self.window.read_ahead_to(ahead);
        self.is_open_ended = false;
    }

    /// Goes on with the partitions of another range, which is not before what was decoded.
    pub(crate) fn scan_on(&mut self, range: Range<u64>, pace: Pace, ahead: u64) {
        self.state = if range.is_empty() { State::Done } else { State::Head };
        self.window.jump(range, pace);
        self.window.read_ahead_to(ahead);
        self.ready.clear();
        (self.open, self.open_at_entry) = (DeletionTime::LIVE, None);
    }

    /// Where the bytes at hand end.
    pub(crate) fn end_at_hand(&self) -> u64 {
        self.window.end_at_hand()
    }

    /// Decodes the head of a partition with its static row.
    fn head(&mut self, place: &mut Fragment) -> Result<Next> {
        match self.decode_head() {
            Ok((start, static_row, end)) => {
                if self.expected.take().is_some_and(|key| key.bytes != start.key.bytes) {
                    let what = "another partition stands here than the index promises";
                    return Err(Error::corrupt(self.data.file.path(), self.window.at(), what));
                }
                self.check_token(start.key.token)?;
                if let Some(ending) = &mut self.ending {
                    ending.is_met = *ending.key == *start.key.bytes;
                }
                self.window.advance_to(end);
                self.state = State::Rows;
                self.open = DeletionTime::LIVE;
                self.ready.extend(
                    static_row.filter(|row| self.with_static && !row.is_empty()).map(Fragment::StaticRow),
                );
                if let Some((blocks, pace)) = self.then.take() {
                    self.window.jump(blocks.range, pace);
                    self.open = blocks.open;
                }
                *place = Fragment::PartitionStart(start);
                Ok(Next::Fragment)
            }
            Err(error) => self.wants(error),
        }
    }

    fn check_token(&self, token: Token) -> Result<()> {
        match &self.plan {
            Plan::Scan(tokens) if !tokens.contains(&token) => {
                let what = format!(
                    "a partition with the token {token} stands here, where Index.db or Summary.db tell of those from {} to {}",
                    tokens.start(),
                    tokens.end()
                );
                Err(Error::corrupt(self.data.file.path(), self.window.at(), what))
            }
            _ => Ok(()),
        }
    }

    fn decode_head(&self) -> std::result::Result<(PartitionStart, Option<Row>, usize), DecodeError> {
        let (source, at) = self.window.source();
        let (head, end) = self.data.codec.partition_head(source, at)?;
        let token = match &self.expected {
            Some(key) if key.bytes == head.key => key.token,
            _ => token_for(self.data.partitioner, &head.key),
        };
        let key = PartitionKey { token, bytes: head.key };
        let start = PartitionStart { key, deletion: head.deletion };
        if !self.data.codec.has_static_row() {
            return Ok((start, None, end));
        }
        let (row, row_end) =
            self.data.codec.static_row(source, end).map_err(|error| error.behind(end - at))?;
        Ok((start, Some(row), row_end))
    }

    /// The next wanted row or tombstone of the partition, or its end.
    fn rows(&mut self, place: &mut Fragment) -> Result<Next> {
        loop {
            if self.window.is_done() {
                return if self.is_open_ended { Ok(Next::Fill) } else { self.end_of_range(place) };
            }
            let (mut source, mut at) = self.window.source();
            if at == source.end {
                return Ok(Next::Fill);
            }
            if let Some(position) = self.before_entry() {
                let end = self.data.codec.rows_before(source, at, &self.data.schema, position);
                if end > at {
                    self.window.advance_to(end);
                    if self.window.is_done() {
                        continue;
                    }
                    (source, at) = self.window.source();
                }
            }
            let row = place.as_new_row();
            let (lead, end) = match self.data.codec.lead(source, at, &mut row.clustering) {
                Ok(decoded) => decoded,
                Err(error) => return self.wants(error),
            };
            let step = match lead {
                Lead::Row(lead) => self.row((at, &lead, end), row)?,
                Lead::Marker(marker) => self.marker(marker, end, place)?,
                Lead::End => {
                    self.window.advance_to(end);
                    return self.end_of_partition(place);
                }
            };
            match step {
                Step::Over => {}
                Step::Row | Step::LastRow => {
                    if matches!(step, Step::LastRow) {
                        self.state = State::Behind;
                        self.note(false);
                    }
                    return Ok(self.give(place));
                }
                Step::Change(deletion) => {
                    let next = self.give(place);
                    self.open = deletion;
                    return Ok(next);
                }
                Step::Behind => return self.end_of_slice(place),
            }
        }
    }

    /// Gives usual rows of the slice, behind its first one and before the one where it ends, as long as they are at hand and `take` wants more.
    #[inline]
    pub(crate) fn usual_rows(&mut self, take: &mut impl RowTaker) {
        if let Some(place) = self.usual().map(|rows| rows.give(take).place()) {
            self.pass_rows(place);
        }
    }

    /// Passes by all of them, of a slice, and tells in which buffer they stand, and where they begin there.
    #[inline]
    pub(crate) fn pass_usual_rows(&mut self, tell: impl FnMut(&Rc<Vec<u8>>, usize)) {
        if let Some(place) = self.usual().map(|rows| rows.pass_all(tell).place()) {
            self.pass_rows(place);
        }
    }

    /// Goes behind usual rows, of which the last one began there in the buffer, if there was any of a slice.
    #[inline]
    fn pass_rows(&mut self, (last, end): (Option<usize>, usize)) {
        if let Some(last) = last {
            let (source, _) = self.window.source();
            self.passed = Passed::row(&self.data.codec, &source.owner[last + 1..end]);
        }
        self.window.advance_to(end);
    }

    /// What was given last of a slice.
    pub(crate) fn into_passed(self) -> Passed {
        self.passed
    }

    /// What is given next of a slice has to stand behind what was given before it.
    #[inline]
    fn in_order(&self, is_behind: bool) -> Result<()> {
        if is_behind {
            return Ok(());
        }
        let what = "a row or range tombstone does not stand behind the one before it";
        Err(Error::corrupt(self.data.file.path(), self.window.at(), what))
    }

    /// The usual rows at hand, those of a slice as long as they ascend.
    #[inline]
    fn usual(&self) -> Option<UsualRows<'_, AtHand<'_>>> {
        let is_among_rows = self.state == State::Rows && self.open_at_entry.is_some();
        if !is_among_rows || !self.ready.is_empty() {
            return None;
        }
        let Data { codec, schema, habit, .. } = &*self.data;
        let order = match self.plan.slice() {
            None => None,
            Some(slice) => Some(Ascending::behind(&self.passed, self.end_among_rows(slice), codec, schema)?),
        };
        let ahead = AtHand::new(self.window.source(), order);
        if !ahead.row_bytes().is_some_and(|bytes| codec.may_be_usual(bytes)) {
            return None;
        }
        Some(UsualRows::new(codec, ahead, habit))
    }

    /// Where the slice ends, unless nothing is behind that.
    #[inline]
    fn end_among_rows<'r>(&'r self, slice: &'r Slice) -> Option<Sought<'r>> {
        let Data { codec, schema, .. } = &*self.data;
        let end = || Sought::new(codec, schema, &slice.end).with_weight(self.data.weight_at_end(slice));
        (slice.end != Position::end()).then(end)
    }

    /// Where the slice begins, as long as nothing of it was found. Behind its first row there is none that comes before it.
    #[inline]
    fn before_entry(&self) -> Option<&Position> {
        self.plan.slice().map(|slice| &slice.start).filter(|_| self.open_at_entry.is_none())
    }

    /// Decodes the row of a lead, which begins and ends there, if it is wanted.
    #[inline]
    fn row(&mut self, (at, lead, end): (usize, &RowLead, usize), row: &mut Row) -> Result<Step> {
        if let Some(start) = self.before_entry()
            && self.data.schema.compare_row(&row.clustering, start).is_lt()
        {
            self.window.advance_to(end);
            return Ok(Step::Over);
        }
        let order = self.plan.slice().map(|slice| self.data.order_at_end(&row.clustering, slice));
        if order == Some(Ordering::Greater) {
            let (source, _) = self.window.source();
            let row = || Passed::row(&self.data.codec, lead.values(&source, at));
            self.in_order(self.data.may_follow(source, end, row))?;
            return Ok(Step::Behind);
        }
        if order.is_some() {
            let (source, _) = self.window.source();
            let row = lead.values(&source, at);
            let is_behind = self.passed.pass_row(row, &self.data.codec, &self.data.schema);
            self.in_order(is_behind)?;
        }
        let (source, _) = self.window.source();
        bring_near(source.owner, &(at..end));
        self.data.codec.row(source, at, lead, row).map_err(|error| self.corrupt(error))?;
        self.window.advance_to(end);
        Ok(match order {
            _ if row.is_empty() => Step::Over,
            Some(Ordering::Equal) => Step::LastRow,
            _ => Step::Row,
        })
    }

    /// Takes a marker, which becomes a fragment if it is wanted.
    fn marker(&mut self, marker: Marker, end: usize, place: &mut Fragment) -> Result<Step> {
        if marker.closes.unwrap_or(DeletionTime::LIVE) != self.open {
            let what = "a range tombstone ends here that is not the open one";
            return Err(Error::corrupt(self.data.file.path(), self.window.at(), what));
        }
        let deletion = marker.opens.unwrap_or(DeletionTime::LIVE);
        if let Some(slice) = self.plan.slice() {
            if self.data.schema.compare(&marker.position, &slice.start).is_le() {
                self.window.advance_to(end);
                self.open = deletion;
                return Ok(Step::Over);
            }
            if self.data.schema.compare(&marker.position, &slice.end).is_ge() {
                let (source, _) = self.window.source();
                let marker = || Passed::At(marker.position.clone());
                self.in_order(self.data.may_follow(source, end, marker))?;
                return Ok(Step::Behind);
            }
            let next = Passed::At(marker.position.detached());
            let is_behind = self.passed.pass(next, &self.data.codec, &self.data.schema);
            self.in_order(is_behind)?;
        }
        self.window.advance_to(end);
        *place = Fragment::change(marker.position, deletion);
        Ok(Step::Change(deletion))
    }

    /// Gives a fragment of the slice, behind the tombstone that is open where the slice begins.
    #[inline]
    fn give(&mut self, place: &mut Fragment) -> Next {
        if self.open_at_entry.is_none()
            && let Some(opening) = self.enter()
        {
            self.ready.push_back(std::mem::replace(place, opening));
        }
        Next::Fragment
    }

    fn enter(&mut self) -> Option<Fragment> {
        if self.open_at_entry.is_some() {
            return None;
        }
        self.open_at_entry = Some(self.open);
        match &self.plan {
            Plan::Slice(slice) if !self.open.is_live() => {
                Some(Fragment::change(slice.start.clone(), self.open))
            }
            _ => None,
        }
    }

    /// The byte that ends a partition.
    fn end_of_partition(&mut self, place: &mut Fragment) -> Result<Next> {
        if !self.open.is_live() {
            let what = "the partition ends while a range tombstone is open";
            return Err(Error::corrupt(self.data.file.path(), self.window.at(), what));
        }
        self.is_whole = false;
        match self.plan {
            Plan::Scan(_) => {
                self.open_at_entry = None;
                let is_done = self.window.is_done();
                if is_done && self.ending.as_ref().is_some_and(|ending| !ending.is_met) {
                    return Err(self.data.cut_short());
                }
                self.state = if is_done { State::Done } else { State::Head };
                *place = Fragment::PartitionEnd;
                Ok(Next::Fragment)
            }
            _ => self.end_of_slice(place),
        }
    }

    /// The bytes that hold the slice are at their end. Only index blocks end without a partition's end.
    fn end_of_range(&mut self, place: &mut Fragment) -> Result<Next> {
        if self.is_whole || matches!(self.plan, Plan::Scan(_)) {
            let what = "the data ends inside a partition";
            return Err(Error::corrupt(self.data.file.path(), self.window.at(), what));
        }
        self.end_of_slice(place)
    }

    fn end_of_slice(&mut self, place: &mut Fragment) -> Result<Next> {
        self.state = State::Done;
        self.note(true);
        let opening = self.enter();
        self.ready.extend(opening);
        if let Plan::Slice(slice) = &self.plan {
            if !self.open.is_live() {
                self.ready.push_back(Fragment::change(slice.end.clone(), DeletionTime::LIVE));
            }
            if self.ready.is_empty() {
                *place = Fragment::PartitionEnd;
                return Ok(Next::Fragment);
            }
            self.ready.push_back(Fragment::PartitionEnd);
        }
        Ok(place.pop_from(&mut self.ready))
    }

    /// A row was found, or there is none.
    #[inline]
    fn note(&mut self, is_absent: bool) {
        if let Some(absences) = self.absences.take() {
            absences.note(is_absent);
        }
    }

    fn wants(&mut self, error: DecodeError) -> Result<Next> {
        self.window.wants(&self.data.file, error)?;
        Ok(Next::Fill)
    }

    fn corrupt(&self, error: DecodeError) -> Error {
        Error::corrupt(self.data.file.path(), self.window.at() + error.at() as u64, error.what())
    }
}

impl Plan {
    fn slice(&self) -> Option<&Slice> {
        match self {
            Plan::Scan(_) => None,
            Plan::Slice(slice) | Plan::Piece(slice) => Some(slice),
        }
    }
}

impl FragmentReader for DataReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        if !self.ready.is_empty() {
            return Ok(place.pop_from(&mut self.ready));
        }
        match self.state {
            State::Head => self.head(place),
            State::Rows => self.rows(place),
            State::Behind => self.end_of_slice(place),
            State::Done => Ok(Next::End),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        self.usual_rows(take);
    }

    async fn fill(&mut self) -> Result<()> {
        if let Some(guess) = self.window.fill(&self.data.file).await? {
            self.data.slack.fell_short(guess);
        }
        Ok(())
    }
}
