//! The stream in which all readers speak.
//!
//! ```text
//! PartitionStart  StaticRow?  (Row | RangeTombstone)*  PartitionEnd     once a partition
//! ```
//!
//! A range tombstone is not a thing with two ends but a *change*: from this position on, this
//! deletion is in force. A slice that begins inside a deleted range therefore begins with a change
//! at its start and needs nothing from before it; one that ends inside closes with a change to live.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::future::Future;

use crate::clustering::{PositionBuf, Weight};
use crate::flat::RowTaker;
use crate::{Clustering, CqlType, DeletionTime, PartitionKey, Position, Row, Schema};

/// The head of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionStart {
    /// The key with its token.
    pub key: PartitionKey,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
}

/// From `position` on, `deletion` is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeTombstoneChange {
    /// Before or after a prefix, never at a row.
    pub position: Position,
    /// [`DeletionTime::LIVE`] where the range ends.
    pub deletion: DeletionTime,
}

/// One piece of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fragment {
    /// Opens a partition.
    PartitionStart(PartitionStart),
    /// The partition's static row; comes first, once at the most.
    StaticRow(Row),
    /// A clustered row.
    Row(Row),
    /// A deletion begins, changes or ends.
    RangeTombstone(RangeTombstoneChange),
    /// Closes the partition.
    PartitionEnd,
}

/// What came of [`FragmentReader::pop`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next fragment is in the place it was asked into.
    Fragment,
    /// Nothing at hand: [`FragmentReader::fill`], then pop again.
    Fill,
    /// The stream is at its end.
    End,
}

/// A stream of fragments: popped without waiting, filled with waiting.
///
/// Fragments are made in a place of whoever reads. Who looks at one after the other in the same place has them without
/// a move, and without memory of its own for each: a row is decoded into what the last row there has left. Who wants to keep
/// one takes it out.
pub trait FragmentReader {
    /// What can go wrong while reading.
    type Error;

    /// Puts the next fragment into `place`, if the bytes for it are at hand. Whatever comes of it, what was there before
    /// is gone.
    fn pop(&mut self, place: &mut Fragment) -> Result<Next, Self::Error>;

    /// Gives the next rows as they stand, as long as they are at hand in flat bytes, or by their values, and `take` wants more. That
    /// none is given says nothing of what comes next: it is to be popped.
    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        let _ = take;
    }

    /// Brings in at least the bytes that the next [`FragmentReader::pop`] needs.
    fn fill(&mut self) -> impl Future<Output = Result<(), Self::Error>>;

    /// Puts the next fragment into `place`, waited for; whether there is one.
    fn advance(&mut self, place: &mut Fragment) -> impl Future<Output = Result<bool, Self::Error>> {
        async {
            loop {
                match self.pop(place)? {
                    Next::Fragment => return Ok(true),
                    Next::End => return Ok(false),
                    Next::Fill => self.fill().await?,
                }
            }
        }
    }

    /// The next fragment, waited for; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Fragment>, Self::Error>> {
        async {
            let mut fragment = Fragment::default();
            Ok(self.advance(&mut fragment).await?.then_some(fragment))
        }
    }
}

impl Fragment {
    /// From this position on, as the stream runs, a range tombstone with this deletion is in force.
    pub fn change(position: Position, deletion: DeletionTime) -> Fragment {
        Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
    }

    /// Makes this a row of nothing, in the memory of the row that it was.
    #[inline]
    pub fn as_new_row(&mut self) -> &mut Row {
        if let Fragment::Row(row) = self {
            row.clear();
        } else {
            *self = Fragment::Row(Row::new(Clustering::empty()));
        }
        match self {
            Fragment::Row(row) => row,
            _ => unreachable!("it was made one"),
        }
    }

    /// Puts the first of what is waiting into this place.
    pub fn pop_from(&mut self, waiting: &mut VecDeque<Fragment>) -> Next {
        match waiting.pop_front() {
            Some(fragment) => {
                *self = fragment;
                Next::Fragment
            }
            None => Next::End,
        }
    }
}

/// What is in a place into which nothing was popped yet: the fragment that holds nothing.
impl Default for Fragment {
    fn default() -> Fragment {
        Fragment::PartitionEnd
    }
}

/// Checks the order of a stream. Asserted by writers before a write and by readers after a read.
///
/// Invariants of a stream:
/// 1. Fragments come in the order drawn in this module's head.
/// 2. Partitions ascend by token and key; in tables of a secondary index, by the order of the key's type.
/// 3. Positions never step back; no two rows have the same key.
/// 4. A range tombstone change stands before or after a prefix, not at a row.
/// 5. No deletion is in force at a partition's end.
#[derive(Debug)]
pub struct Validator {
    clustering: Vec<CqlType>,
    /// What puts the keys in order, where tokens do not.
    key_order: Option<CqlType>,
    state: State,
    key: Option<PartitionKey>,
    /// The last position of the partition, if there is one.
    last: PositionBuf,
    has_last: bool,
    open: DeletionTime,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    BetweenPartitions,
    AfterStart,
    InRows,
}

/// How a stream broke its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OrderError {
    /// Invariant 1.
    #[error("a fragment stands where its kind may not")]
    Kind,
    /// Invariant 2.
    #[error("a partition's token or key is not above the one before it")]
    Partition,
    /// Invariant 3.
    #[error("a clustering position is not above the one before it")]
    Clustering,
    /// Invariant 4.
    #[error("a range tombstone stands at a row instead of beside it")]
    TombstonePosition,
    /// Invariant 5.
    #[error("a range tombstone is still open at the partition's end")]
    OpenTombstone,
}

impl Validator {
    /// A validator at a stream's start.
    pub fn new(schema: &Schema) -> Validator {
        Validator {
            clustering: schema.clustering.clone(),
            key_order: None,
            state: State::BetweenPartitions,
            key: None,
            last: PositionBuf::start(),
            has_last: false,
            open: DeletionTime::LIVE,
        }
    }

    /// The same for the stream of a table whose keys are in the order of their type.
    pub fn by_key_order(self, schema: &Schema) -> Validator {
        Validator { key_order: Some(schema.partition_key.clone()), ..self }
    }

    /// Takes the stream's next fragment.
    ///
    /// # Errors
    /// If it may not stand behind those before it.
    pub fn check(&mut self, fragment: &Fragment) -> Result<(), OrderError> {
        match (fragment, self.state) {
            (Fragment::PartitionStart(start), State::BetweenPartitions) => self.start(start),
            (Fragment::StaticRow(_), State::AfterStart) => {
                self.state = State::InRows;
                Ok(())
            }
            (Fragment::Row(row), _) => self.check_row(row.clustering.views()),
            (Fragment::RangeTombstone(change), State::AfterStart | State::InRows) => self.change(change),
            (Fragment::PartitionEnd, State::AfterStart | State::InRows) => self.end(),
            _ => Err(OrderError::Kind),
        }
    }

    /// Takes the stream's next fragment, which is a row of this clustering key.
    ///
    /// # Errors
    /// If it may not stand behind those before it.
    #[inline]
    pub fn check_row<'v>(
        &mut self,
        clustering: impl ExactSizeIterator<Item = Option<&'v [u8]>> + Clone,
    ) -> Result<(), OrderError> {
        match self.state {
            State::AfterStart | State::InRows => self.advance(clustering, Weight::At),
            State::BetweenPartitions => Err(OrderError::Kind),
        }
    }

    /// The last position of the partition, if anything clustered of it has come.
    pub fn last(&self) -> Option<&PositionBuf> {
        self.has_last.then_some(&self.last)
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    /// If a partition was begun and not ended.
    pub fn finish(&self) -> Result<(), OrderError> {
        if self.state == State::BetweenPartitions { Ok(()) } else { Err(OrderError::Kind) }
    }

    fn start(&mut self, start: &PartitionStart) -> Result<(), OrderError> {
        if self.key.as_ref().is_some_and(|last| self.compare_keys(last, &start.key).is_ge()) {
            return Err(OrderError::Partition);
        }
        self.key = Some(start.key.clone());
        self.state = State::AfterStart;
        self.has_last = false;
        Ok(())
    }

    fn compare_keys(&self, a: &PartitionKey, b: &PartitionKey) -> Ordering {
        match &self.key_order {
            Some(order) => order.compare(&a.bytes, &b.bytes),
            None => a.cmp(b),
        }
    }

    fn change(&mut self, change: &RangeTombstoneChange) -> Result<(), OrderError> {
        if change.position.weight == Weight::At {
            return Err(OrderError::TombstonePosition);
        }
        self.open = change.deletion;
        self.advance(change.position.prefix.views(), change.position.weight)
    }

    #[inline]
    fn advance<'v>(
        &mut self,
        prefix: impl ExactSizeIterator<Item = Option<&'v [u8]>> + Clone,
        weight: Weight,
    ) -> Result<(), OrderError> {
        self.state = State::InRows;
        if self.has_last {
            match self.last.compare(&self.clustering, prefix.clone(), weight) {
                Ordering::Less => {}
                // Two changes at one place are redundant, but in order.
                Ordering::Equal if weight != Weight::At => {}
                _ => return Err(OrderError::Clustering),
            }
        }
        self.last.set(prefix, weight);
        self.has_last = true;
        Ok(())
    }

    fn end(&mut self) -> Result<(), OrderError> {
        self.state = State::BetweenPartitions;
        if self.open.is_live() { Ok(()) } else { Err(OrderError::OpenTombstone) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    fn schema() -> Schema {
        Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), Vec::new())
    }

    fn start(key: i32) -> Fragment {
        let key = PartitionKey::new(Bytes::from(key.to_be_bytes().to_vec()));
        Fragment::PartitionStart(PartitionStart { key, deletion: DeletionTime::LIVE })
    }

    fn clustering(value: i32) -> Clustering {
        [value.to_be_bytes().to_vec()].into_iter().collect()
    }

    fn row(value: i32) -> Fragment {
        Fragment::Row(Row::new(clustering(value)))
    }

    fn change(position: Position, at: i64) -> Fragment {
        let deletion = match at {
            0 => DeletionTime::LIVE,
            at => DeletionTime { marked_for_delete_at: at, local_deletion_time: at },
        };
        Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
    }

    fn run(fragments: &[Fragment]) -> Result<(), OrderError> {
        let mut validator = Validator::new(&schema());
        fragments.iter().try_for_each(|fragment| validator.check(fragment))?;
        validator.finish()
    }

    #[test]
    fn a_stream_in_order_passes() {
        let fragments = [
            start(1),
            Fragment::StaticRow(Row::new(Clustering::empty())),
            row(1),
            change(Position::before(clustering(2)), 9),
            row(2),
            change(Position::after(clustering(2)), 0),
            Fragment::PartitionEnd,
            start(2),
            Fragment::PartitionEnd,
        ];
        assert_eq!(run(&fragments), Ok(()));
    }

    #[test]
    fn each_invariant_has_its_error() {
        use Fragment::PartitionEnd;
        assert_eq!(run(&[row(1)]), Err(OrderError::Kind));
        assert_eq!(run(&[start(1)]), Err(OrderError::Kind));
        // The token of 2 is above the one of 1.
        assert_eq!(run(&[start(2), PartitionEnd, start(1)]), Err(OrderError::Partition));
        assert_eq!(run(&[start(1), row(2), row(2)]), Err(OrderError::Clustering));
        assert_eq!(run(&[start(1), row(2), row(1)]), Err(OrderError::Clustering));
        assert_eq!(
            run(&[start(1), change(Position::at(clustering(1)), 5)]),
            Err(OrderError::TombstonePosition)
        );
        let open = [start(1), change(Position::start(), 5), PartitionEnd];
        assert_eq!(run(&open), Err(OrderError::OpenTombstone));
    }
}
