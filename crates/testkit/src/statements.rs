//! Random writes to random tables, each as CQL for Cassandra and as the mutation that Cassandra would make of it.
//!
//! | file | idea |
//! |---|---|
//! | [`table`] | random tables with their columns as the model has them |
//! | [`values`] | random values, as bytes |
//! | [`writer`] | one statement after another, which meet in few partitions, rows, elements and timestamps |
//! | [`cql`] | a statement as CQL with values to bind |
//! | [`mutation`] | a statement as a mutation |
//!
//! Values are bytes from the start, and are bound as such: no literal stands between what both sides are told.

use model::{Bytes, Clustering};

pub mod cql;
pub mod mutation;
pub mod table;
pub mod values;
pub mod writer;

pub use cql::Bound;
pub use table::Table;
pub use writer::Writer;

/// A write to one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// The values of the partition key's columns.
    pub key: Vec<Bytes>,
    /// Microseconds.
    pub timestamp: i64,
    /// The second in which it is executed.
    pub now: i64,
    /// Seconds to live; 0 for ever.
    pub ttl: u32,
    /// What is written.
    pub what: What,
}

/// What a statement does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// `INSERT`: a row comes to be, with these values. Without clustering columns, only static ones are written.
    Insert(Option<Clustering>, Vec<Change>),
    /// `UPDATE`: columns change.
    Update(Option<Clustering>, Vec<Change>),
    /// `UPDATE` of counters.
    Count(Option<Clustering>, Vec<Count>),
    /// `DELETE` of columns, or of parts of them.
    DeleteColumns(Option<Clustering>, Vec<(Place, Part)>),
    /// `DELETE` of a row.
    DeleteRow(Clustering),
    /// `DELETE` of a range of rows.
    DeleteRange(Range),
    /// `DELETE` of the partition.
    DeletePartition,
}

/// A column by its place in the schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Whether it is among the static columns.
    pub is_static: bool,
    /// Its place among them, or among the regular ones.
    pub at: u16,
}

/// A column and what becomes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The column.
    pub column: Place,
    /// What it is set to.
    pub to: New,
}

/// What a column is set to, or what is changed in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum New {
    /// `= null`.
    Null,
    /// A value of one cell.
    Value(Bytes),
    /// All elements of a column of many cells; whatever it had is gone.
    Elements(Vec<Element>),
    /// More elements.
    Add(Vec<Element>),
    /// Elements before all others of a list.
    Prepend(Vec<Element>),
    /// Elements of a set, or keys of a map, that go.
    Remove(Vec<Bytes>),
    /// The value of a map's key, or a field; `None` is null.
    Put(Bytes, Option<Bytes>),
}

/// A part of a column of many cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The path of its cell.
    pub path: Bytes,
    /// Its value; empty where the path says it all.
    pub value: Bytes,
}

/// What of a column is deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// The cell of this path.
    Cell(Bytes),
}

/// An increment of a counter, and what comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// The column.
    pub column: Place,
    /// What is added.
    pub by: i64,
    /// How many increments there have been, this one included.
    pub clock: i64,
    /// Their sum.
    pub total: i64,
}

/// Rows whose first clustering columns have these values, and the next ones values within bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The values of the first columns.
    pub prefix: Vec<Bytes>,
    /// From where on, by the order of values.
    pub lower: Option<End>,
    /// Up to where.
    pub upper: Option<End>,
}

/// One end of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The values of the columns after the prefix: one, or several of one direction.
    pub values: Vec<Bytes>,
    /// Whether rows of just these values are in the range.
    pub is_inclusive: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::random::Random;

    fn texts(seed: u64) -> (String, Vec<String>) {
        let table = Table::random(&mut Random::new(seed), 0);
        let mut writer = Writer::new(&table, seed);
        let texts = (0..100).map(|_| {
            let statement = writer.statement();
            assert!(statement.to_mutation(&table).is_in_order(&table.schema));
            let bound = statement.to_cql(&table);
            assert_eq!(bound.text.matches('?').count(), bound.values.len(), "{bound}");
            bound.to_string()
        });
        (table.create.clone(), texts.collect())
    }

    #[test]
    fn a_seed_repeats() {
        assert!(texts(7) == texts(7) && texts(7) != texts(8));
    }

    #[test]
    fn everything_comes_up() {
        let all: String = (0..60).flat_map(|seed| texts(seed).1).map(|text| text + "\n").collect();
        for part in [
            "INSERT INTO",
            "UPDATE",
            "DELETE FROM",
            "DELETE v",
            "] FROM",
            ".f0",
            " AND TTL ",
            " + v",
            "] = ",
            " - 0x",
            " = null",
            " > ",
            " >= ",
            " < ",
            " <= ",
            "(c0, c1) ",
        ] {
            assert!(all.contains(part), "{part}");
        }
    }
}
