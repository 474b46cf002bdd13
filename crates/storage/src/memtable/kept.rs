//! A row of a memtable: as it came, or as it is once it was merged.

use std::cmp::Ordering;
use std::rc::Rc;

use model::flat::StandingRow;
use model::merge::RowMerger;
use model::{Cell, Clustering, DeletionTime, PositionRef, Row, Schema, Weight};

use super::newer::is_void;

/// A row that others may have a share of: what it says does not change.
#[derive(Clone, Debug)]
pub(super) enum KeptRow {
    /// In the flat bytes of the only mutation that it is of.
    Standing(StandingRow),
    /// Decoded. Its values stay where they came, however often it is merged again.
    Merged(Rc<Row>),
}

impl KeptRow {
    /// What is left of one version, or of an older and a newer one, where this is the deletion around them.
    pub(super) fn merged(
        versions: impl IntoIterator<Item = KeptRow>,
        merger: &mut RowMerger,
        around: DeletionTime,
    ) -> Option<KeptRow> {
        let mut versions = versions.into_iter().map(KeptRow::into_row).collect();
        merger.merge(&mut versions, false, around).map(|row| KeptRow::Merged(Rc::new(row)))
    }

    /// Whether it makes an older version void, so that the two need not be merged. Neither is of a table of counters.
    pub(super) fn voids(&self, older: &KeptRow) -> bool {
        match (self, older) {
            (KeptRow::Standing(newer), KeptRow::Standing(older)) => is_void(older, newer),
            _ => false,
        }
    }

    /// Bytes of memory that it takes besides its place, without the buffers that its values are in.
    pub(super) fn weight(&self) -> usize {
        match self {
            KeptRow::Standing(_) => 0,
            KeptRow::Merged(row) => weight(row),
        }
    }

    /// Puts the row into one that has nothing but memory.
    #[inline]
    pub(super) fn decode(&self, place: &mut Row) {
        match self {
            KeptRow::Standing(row) => row.decode(place),
            KeptRow::Merged(row) => place.clone_from(row),
        }
    }

    /// The row.
    pub(super) fn into_row(self) -> Row {
        match self {
            KeptRow::Standing(row) => row.to_row(),
            KeptRow::Merged(row) => Rc::unwrap_or_clone(row),
        }
    }

    /// Its clustering key.
    pub(super) fn clustering(&self) -> Clustering {
        match self {
            KeptRow::Standing(row) => row.clustering(),
            KeptRow::Merged(row) => row.clustering.clone(),
        }
    }

    /// Where it stands beside a position.
    pub(super) fn compare(&self, schema: &Schema, position: PositionRef<'_>) -> Ordering {
        match self {
            KeptRow::Standing(row) => row.compare(schema, position),
            KeptRow::Merged(row) => schema.compare_views(at(row), position),
        }
    }

    /// Where it stands beside another row.
    pub(super) fn compare_to(&self, schema: &Schema, other: &KeptRow) -> Ordering {
        match (self, other) {
            (KeptRow::Standing(row), KeptRow::Standing(other)) => row.compare_to(schema, other),
            (row, KeptRow::Merged(other)) => row.compare(schema, at(other)),
            (KeptRow::Merged(row), KeptRow::Standing(other)) => other.compare(schema, at(row)).reverse(),
        }
    }
}

/// Bytes that a decoded row takes, without the buffers that its values are in.
pub(super) fn weight(row: &Row) -> usize {
    let cells = row.cells.capacity() * size_of::<Cell>();
    let deletions = row.complex_deletions.capacity() * size_of::<(u16, DeletionTime)>();
    size_of::<Row>() + cells + deletions + row.clustering.spilled_bytes()
}

fn at(row: &Row) -> PositionRef<'_> {
    PositionRef { prefix: &row.clustering, weight: Weight::At }
}
