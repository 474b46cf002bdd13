//! What a write says of one partition.
//!
//! A mutation is a small partition by itself: applied to a table, it is merged with what is there by the rules of
//! [`crate::merge`]. Nothing depends on the order in which mutations are applied, save for counters.

use crate::{DeletionTime, PartitionKey, Position, Row, Schema};

/// A deletion of all rows between two positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeTombstone {
    /// From here on; never at a row.
    pub start: Position,
    /// Up to here; never at a row.
    pub end: Position,
    /// What is deleted.
    pub deletion: DeletionTime,
}

/// A write to one partition.
///
/// Invariants, kept by whoever builds one:
/// 1. `rows` ascend by their clustering keys, each key once.
/// 2. Rows keep their own invariants, with columns of the table's schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutation {
    /// The partition.
    pub key: PartitionKey,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
    /// The static row.
    pub static_row: Option<Row>,
    /// Clustered rows.
    pub rows: Vec<Row>,
    /// Deletions of ranges, in any order; they may overlap.
    pub range_tombstones: Vec<RangeTombstone>,
}

impl Mutation {
    /// A mutation that says nothing yet.
    pub fn new(key: PartitionKey) -> Mutation {
        Mutation {
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Vec::new(),
            range_tombstones: Vec::new(),
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.as_ref().is_none_or(Row::is_empty)
            && self.rows.iter().all(Row::is_empty)
            && self.range_tombstones.is_empty()
    }

    /// Whether invariant 1 holds, and every range tombstone begins before it ends.
    pub fn is_in_order(&self, schema: &Schema) -> bool {
        self.rows.windows(2).all(|pair| schema.compare_rows(&pair[0].clustering, &pair[1].clustering).is_lt())
            && self.range_tombstones.iter().all(|range| schema.compare(&range.start, &range.end).is_lt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Clustering, CqlType};

    #[test]
    fn order_is_that_of_the_clustering_keys() {
        let schema = Schema::new(
            CqlType::Blob,
            vec![CqlType::Reversed(Box::new(CqlType::Blob))],
            Vec::new(),
            Vec::new(),
        );
        let row = |byte: u8| Row::new(std::iter::once(vec![byte]).collect::<Clustering>());
        let mut mutation = Mutation::new(PartitionKey::new(Bytes::default()));
        assert!(mutation.is_empty());
        mutation.rows = vec![row(2), row(1)];
        assert!(mutation.is_empty() && mutation.is_in_order(&schema));
        mutation.rows.reverse();
        assert!(!mutation.is_in_order(&schema));
        mutation.rows.clear();
        let at = |byte: u8| Position::before(row(byte).clustering);
        let deletion = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
        mutation.range_tombstones = vec![RangeTombstone { start: at(2), end: at(1), deletion }];
        assert!(!mutation.is_empty() && mutation.is_in_order(&schema));
        mutation.range_tombstones[0].end = at(2);
        assert!(!mutation.is_in_order(&schema));
    }
}
