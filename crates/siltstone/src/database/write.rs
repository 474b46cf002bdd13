//! What is written: rows inserted, updated and deleted, by the names of their columns.

use std::ops::Deref;

use smallvec::SmallVec;

use super::value::{IntoValues, Value, Values};

/// Writes that go together.
///
/// They have one timestamp, so that their order means nothing to those of one row: a deletion of a row counts more than an insert beside it,
/// and of two values of one column the greater one stays. Where one is to come after the other, give them timestamps of their own, by
/// [`Write::timestamp`], or write them one after the other. In one [`Write`] the last value of a column counts.
///
/// All of one partition are one: a crash leaves all of them or none, and who begins to read then sees all of them. A slice or a scan
/// that is under way, as it has many rows or waits for the disk, sees them from where it stands on; each row is seen whole. Those of
/// several partitions are not one; each is durable by itself. Those of one partition may take 256 MiB, as in a request of CQL.
///
/// ```
/// use siltstone::database::{Batch, Write};
///
/// let mut batch = Batch::new();
/// batch.push(Write::insert("alice", 7).set("note", "seven").ttl(3600));
/// batch.push(Write::delete("bob"));
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(super) writes: Vec<Write>,
    pub(super) timestamp: Option<i64>,
}

/// A write to one row, to a range of rows, or to a partition.
#[derive(Clone, Debug)]
pub struct Write {
    pub(super) key: Values,
    pub(super) target: Target,
    pub(super) changes: SmallVec<[(Name, Change); 1]>,
    pub(super) ttl: Option<u32>,
    pub(super) timestamp: Option<i64>,
}

/// What a write is about.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A row comes to be.
    Insert(Values),
    /// Columns change.
    Update(Values),
    /// A row, or all rows that begin so, goes.
    DeleteRows(Values),
    /// All rows between two ends go.
    DeleteRange(Box<(Bound, Bound)>),
    /// Everything of the partition goes.
    DeletePartition,
}

/// Where a range of rows begins or ends.
///
/// A bound of fewer values than there are clustering columns is about all rows that begin with them.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Bound {
    /// Nowhere: the partition's first or last row.
    #[default]
    Open,
    /// At these rows, which are in the range.
    Including(Values),
    /// At these rows, which are not.
    Excluding(Values),
}

/// What becomes of a column.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Set(Value),
    Add(Value),
    Prepend(Value),
    Put(Box<(Value, Value)>),
    Remove(Value),
    Unset,
}

/// The name of a column. A short one has no place of its own in memory.
#[derive(Clone, Debug)]
pub(super) struct Name(SmallVec<[u8; 16]>);

impl Deref for Name {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a name was text before")
    }
}

impl Batch {
    /// Nothing yet.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a write.
    pub fn push(&mut self, write: Write) {
        self.writes.push(write);
    }

    /// The timestamp of all writes that have none of their own, in microseconds since 1970. Default the time of the
    /// machine's clock, and never one that an earlier batch had, nor one before that.
    pub fn timestamp(mut self, micros: i64) -> Batch {
        self.timestamp = Some(micros);
        self
    }

    /// Each write as a batch of its own, with the timestamp of this one.
    pub(crate) fn one_by_one(&self) -> impl Iterator<Item = Batch> {
        self.writes.iter().map(|write| Batch { writes: vec![write.clone()], timestamp: self.timestamp })
    }

    /// How many writes there are.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

impl From<Write> for Batch {
    fn from(write: Write) -> Batch {
        Batch { writes: vec![write], timestamp: None }
    }
}

impl FromIterator<Write> for Batch {
    fn from_iter<I: IntoIterator<Item = Write>>(writes: I) -> Batch {
        Batch { writes: writes.into_iter().collect(), timestamp: None }
    }
}

impl Write {
    /// `INSERT`: the row exists from now on, even if all of its columns are null. Without clustering values only
    /// static columns are written, unless the table has no clustering columns.
    pub fn insert(key: impl IntoValues, clustering: impl IntoValues) -> Write {
        Write::new(key, Target::Insert(clustering.into_values()))
    }

    /// `UPDATE`: columns change; the row exists as long as one of them is not null. Without clustering values, static
    /// columns.
    pub fn update(key: impl IntoValues, clustering: impl IntoValues) -> Write {
        Write::new(key, Target::Update(clustering.into_values()))
    }

    /// Deletes a partition with all its rows.
    pub fn delete(key: impl IntoValues) -> Write {
        Write::new(key, Target::DeletePartition)
    }

    /// Deletes a row; of fewer clustering values than there are columns, all rows that begin with them.
    pub fn delete_row(key: impl IntoValues, clustering: impl IntoValues) -> Write {
        Write::new(key, Target::DeleteRows(clustering.into_values()))
    }

    /// Deletes the rows between two ends, in the order of the table.
    pub fn delete_range(key: impl IntoValues, from: Bound, to: Bound) -> Write {
        Write::new(key, Target::DeleteRange(Box::new((from, to))))
    }

    /// Sets a column; of a collection that is not frozen, all of it. [`Value::Null`] deletes what it had before.
    pub fn set(self, column: &str, value: impl Into<Value>) -> Write {
        self.change(column, Change::Set(value.into()))
    }

    /// Adds elements to a list, at its end, to a set or to a map.
    pub fn add(self, column: &str, elements: impl Into<Value>) -> Write {
        self.change(column, Change::Add(elements.into()))
    }

    /// Adds elements before those that a list has.
    pub fn prepend(self, column: &str, elements: impl Into<Value>) -> Write {
        self.change(column, Change::Prepend(elements.into()))
    }

    /// Sets the value of a map's key, or a field of a user type by its name.
    pub fn put(self, column: &str, element: impl Into<Value>, value: impl Into<Value>) -> Write {
        self.change(column, Change::Put(Box::new((element.into(), value.into()))))
    }

    /// Takes an element out of a set, a key out of a map, or a field out of a user type.
    pub fn remove(self, column: &str, element: impl Into<Value>) -> Write {
        self.change(column, Change::Remove(element.into()))
    }

    /// `DELETE column`: as setting it to null; of a collection, also what was written at the same microsecond.
    pub fn unset(self, column: &str) -> Write {
        self.change(column, Change::Unset)
    }

    /// For how many seconds what is written lives, up to twenty years (630,720,000); 0 is for ever. Default what the table says. In versions of
    /// SSTables before `oa`, of which the default is one, nothing expires after 2038-01-19T03:14:06Z: such a write is an error.
    pub fn ttl(mut self, seconds: u32) -> Write {
        self.ttl = Some(seconds);
        self
    }

    /// The timestamp, in microseconds since 1970, in the place of the batch's.
    pub fn timestamp(mut self, micros: i64) -> Write {
        self.timestamp = Some(micros);
        self
    }

    fn new(key: impl IntoValues, target: Target) -> Write {
        Write { key: key.into_values(), target, changes: SmallVec::new(), ttl: None, timestamp: None }
    }

    fn change(mut self, column: &str, change: Change) -> Write {
        self.changes.push((Name(column.as_bytes().into()), change));
        self
    }
}

impl Bound {
    /// At rows that begin with these values, which are in the range.
    pub fn including(clustering: impl IntoValues) -> Bound {
        Bound::Including(clustering.into_values())
    }

    /// At rows that begin with these values, which are not.
    pub fn excluding(clustering: impl IntoValues) -> Bound {
        Bound::Excluding(clustering.into_values())
    }
}
