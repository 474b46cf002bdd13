//! Positions between and at the rows of one partition, and slices of it.
//!
//! A [`Position`] is a prefix of the clustering columns and a [`Weight`] that says on which side of
//! the rows with that prefix it stands. All of Cassandra's bound kinds are such positions:
//!
//! | kind | position |
//! |---|---|
//! | inclusive start, exclusive end | before the prefix |
//! | a row | at its full clustering key |
//! | exclusive start, inclusive end | after the prefix |
//! | a boundary of both | the same, once |

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::{Bytes, CqlType};

/// The values of a row's clustering columns, or of the first few of them. `None` is null, which only
/// tables of compact storage hold.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Clustering {
    /// In the order of the schema's clustering columns.
    pub values: SmallVec<[Option<Bytes>; 2]>,
}

impl Clone for Clustering {
    /// Many are empty: the ends of whole partitions.
    #[inline]
    fn clone(&self) -> Clustering {
        match self.is_empty() {
            true => Clustering::empty(),
            false => Clustering { values: self.values.clone() },
        }
    }

    /// The prefixes of rows have the same length.
    #[inline]
    fn clone_from(&mut self, other: &Clustering) {
        if self.values.len() != other.values.len() {
            return self.values.clone_from(&other.values);
        }
        self.values.iter_mut().zip(&other.values).for_each(|(value, other)| value.clone_from(other));
    }
}

impl Clustering {
    /// The prefix of no columns: all rows have it.
    pub fn empty() -> Clustering {
        Clustering::default()
    }

    /// How many columns the prefix has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether this is the prefix of no columns.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, without a share of their buffers.
    #[inline]
    pub fn views(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> + Clone {
        self.values.iter().map(Option::as_deref)
    }

    /// Bytes of memory that the list of values takes besides the struct itself: many columns do not fit into it.
    pub fn spilled_bytes(&self) -> usize {
        if self.values.spilled() { self.values.capacity() * size_of::<Option<Bytes>>() } else { 0 }
    }

    /// A copy whose values no longer keep the buffer they were read from alive.
    pub fn detached(&self) -> Clustering {
        Clustering { values: self.values.iter().map(|v| v.as_ref().map(Bytes::detached)).collect() }
    }
}

impl<V: Into<Bytes>> FromIterator<V> for Clustering {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Clustering {
        Clustering { values: values.into_iter().map(|v| Some(v.into())).collect() }
    }
}

/// On which side of the rows with a prefix a position stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Weight {
    /// Before all rows with the prefix.
    Before,
    /// At the row of that key.
    At,
    /// After all rows with the prefix.
    After,
}

impl Weight {
    fn sign(self) -> Ordering {
        match self {
            Weight::Before => Ordering::Less,
            Weight::At => Ordering::Equal,
            Weight::After => Ordering::Greater,
        }
    }
}

/// A place among the clustered rows of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The prefix it stands at.
    pub prefix: Clustering,
    /// The side of the prefix it stands on.
    pub weight: Weight,
}

impl Position {
    /// Before every clustered row.
    pub fn start() -> Position {
        Position::before(Clustering::empty())
    }

    /// After every clustered row.
    pub fn end() -> Position {
        Position::after(Clustering::empty())
    }

    /// Before all rows with this prefix.
    pub fn before(prefix: Clustering) -> Position {
        Position { prefix, weight: Weight::Before }
    }

    /// At the row of this key.
    pub fn at(prefix: Clustering) -> Position {
        Position { prefix, weight: Weight::At }
    }

    /// After all rows with this prefix.
    pub fn after(prefix: Clustering) -> Position {
        Position { prefix, weight: Weight::After }
    }

    /// A copy that no longer keeps the buffer it was read from alive.
    pub fn detached(&self) -> Position {
        Position { prefix: self.prefix.detached(), weight: self.weight }
    }

    /// Borrows the position for comparing.
    pub fn as_view(&self) -> PositionRef<'_> {
        PositionRef { prefix: &self.prefix, weight: self.weight }
    }
}

/// A position in memory of its own that is used again: who walks along rows keeps the last one so, which need not be there any
/// more.
#[derive(Clone, Debug)]
pub struct PositionBuf {
    /// The values, one behind the other.
    bytes: Vec<u8>,
    /// How many bytes each has.
    lens: SmallVec<[Option<u32>; 4]>,
    weight: Weight,
}

impl PositionBuf {
    /// Before every clustered row.
    pub fn start() -> PositionBuf {
        PositionBuf { bytes: Vec::new(), lens: SmallVec::new(), weight: Weight::Before }
    }

    /// Becomes the position of this prefix and weight.
    ///
    /// # Panics
    /// If a value has 4 GiB.
    #[inline]
    pub fn set<'v>(&mut self, prefix: impl Iterator<Item = Option<&'v [u8]>>, weight: Weight) {
        self.bytes.clear();
        self.lens.clear();
        for value in prefix {
            self.lens.push(value.map(|value| u32::try_from(value.len()).expect("a value is below 4 GiB")));
            self.bytes.extend_from_slice(value.unwrap_or_default());
        }
        self.weight = weight;
    }

    /// Becomes another position.
    pub fn set_to(&mut self, other: &PositionBuf) {
        self.set(other.prefix(), other.weight);
    }

    /// Where it stands beside another position, of clustering columns of these types.
    #[inline]
    pub fn compare<'v>(
        &self,
        types: &[CqlType],
        prefix: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
        weight: Weight,
    ) -> Ordering {
        let columns = prefix.len();
        for ((own, other), data_type) in self.prefix().zip(prefix).zip(types) {
            let order = compare_values(data_type, own, other);
            if order.is_ne() {
                return order;
            }
        }
        compare_ends((self.lens.len(), self.weight), (columns, weight))
    }

    /// The same position with values that can be shared.
    pub fn to_position(&self) -> Position {
        let values = self.prefix().map(|value| value.map(Bytes::from)).collect();
        Position { prefix: Clustering { values }, weight: self.weight }
    }

    #[inline]
    fn prefix(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut rest = &*self.bytes;
        self.lens.iter().map(move |len| {
            len.map(|len| {
                let (value, behind) = rest.split_at(len as usize);
                rest = behind;
                value
            })
        })
    }
}

/// A borrowed [`Position`].
#[derive(Clone, Copy, Debug)]
pub struct PositionRef<'a> {
    /// The prefix it stands at.
    pub prefix: &'a Clustering,
    /// The side of the prefix it stands on.
    pub weight: Weight,
}

/// The rows from `start` to `end`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Rows before this position are left out.
    pub start: Position,
    /// Rows after this position are left out.
    pub end: Position,
}

impl Slice {
    /// All clustered rows.
    pub fn all() -> Slice {
        Slice { start: Position::start(), end: Position::end() }
    }

    /// All rows with this prefix; of a full clustering key, the one row.
    pub fn of_prefix(prefix: Clustering) -> Slice {
        Slice { start: Position::before(prefix.clone()), end: Position::after(prefix) }
    }

    /// The same rows, with ends beside rows instead of at them: there a range tombstone may begin and end.
    pub fn beside_rows(&self) -> Cow<'_, Slice> {
        if self.start.weight != Weight::At && self.end.weight != Weight::At {
            return Cow::Borrowed(self);
        }
        let mut slice = self.clone();
        if slice.start.weight == Weight::At {
            slice.start.weight = Weight::Before;
        }
        if slice.end.weight == Weight::At {
            slice.end.weight = Weight::After;
        }
        Cow::Owned(slice)
    }

    /// Whether the slice leaves nothing out.
    pub fn is_all(&self) -> bool {
        let is_edge = |position: &Position, weight| position.prefix.is_empty() && position.weight == weight;
        is_edge(&self.start, Weight::Before) && is_edge(&self.end, Weight::After)
    }
}

/// The order of positions, from the types of the clustering columns (reversed ones included).
///
/// A shorter prefix stands before or after the longer ones that begin with it, by its weight. Null
/// comes before every value, whatever the column's direction.
#[inline]
pub fn compare_positions(types: &[CqlType], a: PositionRef<'_>, b: PositionRef<'_>) -> Ordering {
    match (types, &*a.prefix.values, &*b.prefix.values) {
        // Most tables have one clustering column, and searches do little else than this.
        ([data_type, ..], [Some(left)], [Some(right)]) => {
            data_type.compare(left, right).then(a.weight.cmp(&b.weight))
        }
        // Many others have none.
        (_, [], []) => a.weight.cmp(&b.weight),
        _ => compare_any_positions(types, a, b),
    }
}

fn compare_any_positions(types: &[CqlType], a: PositionRef<'_>, b: PositionRef<'_>) -> Ordering {
    for ((a, b), data_type) in a.prefix.values.iter().zip(&b.prefix.values).zip(types) {
        let order = compare_values(data_type, a.as_deref(), b.as_deref());
        if order != Ordering::Equal {
            return order;
        }
    }
    compare_ends((a.prefix.len(), a.weight), (b.prefix.len(), b.weight))
}

/// The order of two positions by how many columns their prefixes have and their weights, where the columns that both have
/// are equal.
#[inline]
pub fn compare_ends(a: (usize, Weight), b: (usize, Weight)) -> Ordering {
    match a.0.cmp(&b.0) {
        Ordering::Equal => a.1.cmp(&b.1),
        Ordering::Less => a.1.sign().then(Ordering::Less),
        Ordering::Greater => b.1.sign().reverse().then(Ordering::Greater),
    }
}

/// The order of two values of a clustering column, of which either may be null.
#[inline]
pub fn compare_values(data_type: &CqlType, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => data_type.compare(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(values: &[i32]) -> Clustering {
        values.iter().map(|v| v.to_be_bytes().to_vec()).collect()
    }

    /// Every position of a two-column partition, in the order they stand.
    #[test]
    fn a_shorter_prefix_encloses_the_longer_ones() {
        let types = [CqlType::Int, CqlType::Int];
        let ordered = [
            Position::start(),
            Position::before(ints(&[-1])),
            Position::before(ints(&[-1, 7])),
            Position::at(ints(&[-1, 7])),
            Position::after(ints(&[-1, 7])),
            Position::at(ints(&[-1, 8])),
            Position::after(ints(&[-1])),
            Position::before(ints(&[0])),
            Position::end(),
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare_positions(&types, a.as_view(), b.as_view()), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_position_is_kept_in_a_buffer() {
        let types = [CqlType::Int, CqlType::Text];
        let text = |value: i32, text: &str| {
            let values = [Some(Bytes::from(&value.to_be_bytes()[..])), Some(Bytes::from(text.as_bytes()))];
            Clustering { values: values.into_iter().collect() }
        };
        let null = Clustering { values: [text(3, "").values[0].clone(), None].into_iter().collect() };
        let ordered = [
            Position::start(),
            Position::before(ints(&[3])),
            Position::at(null),
            Position::at(text(3, "")),
            Position::after(text(3, "")),
            Position::before(text(3, "some text")),
            Position::at(text(3, "text")),
            Position::at(text(4, "a")),
            Position::end(),
        ];
        let mut buffer = PositionBuf::start();
        assert_eq!(buffer.to_position(), Position::start());
        for a in ordered.iter().rev() {
            buffer.set(a.prefix.views(), a.weight);
            assert_eq!(buffer.to_position(), *a);
            for b in &ordered {
                let order = compare_positions(&types, a.as_view(), b.as_view());
                assert_eq!(buffer.compare(&types, b.prefix.views(), b.weight), order, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_slice_of_a_row_begins_and_ends_beside_it() {
        let at = |value: i32| Position::at(ints(&[value, 1]));
        let slice = Slice { start: at(1), end: at(2) };
        let beside = Slice { start: Position::before(at(1).prefix), end: Position::after(at(2).prefix) };
        assert_eq!(*slice.beside_rows(), beside);
        assert!(matches!(beside.beside_rows(), Cow::Borrowed(same) if *same == beside));
    }

    #[test]
    fn null_comes_first_in_both_directions() {
        for data_type in [CqlType::Int, CqlType::Reversed(Box::new(CqlType::Int))] {
            let null = Position::at(Clustering { values: [None].into_iter().collect() });
            let value = Position::at(ints(&[5]));
            assert_eq!(compare_positions(&[data_type], null.as_view(), value.as_view()), Ordering::Less);
        }
    }
}
