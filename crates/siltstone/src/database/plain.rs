//! Plain rows, encoded as they come: no [`Row`](model::Row) is made of them first.
//!
//! | | plain |
//! |---|---|
//! | table | neither counters nor compact storage |
//! | writes | inserts and updates of whole clustering keys, in ascending order |
//! | columns | regular ones of one value, set or unset |
//!
//! Most that is written in bulk is plain. All else, and what is wrong in any way, goes by [`Encoder::mutation`], which knows
//! every write and says what is wrong. Where both can, they give the same bytes.

use model::flat::{CellView, PutRows};
use model::{CqlType, Liveness};
use smallvec::SmallVec;

use super::encode::{Encoder, Keyed, One};
use super::shape::Place;
use super::value::{Coded, Encoded};
use super::write::{Change, Target, Write};

/// Bytes that a row and each of its cells take beside their values, or rather more.
const ABOUT_ROW: usize = 6;
const ABOUT_CELL: usize = 4;

/// The values of a clustering key.
type ClusteringBytes = SmallVec<[Encoded; 2]>;

/// A column that is set, or unset.
struct PlainCell<'w> {
    column: u16,
    value: Option<Coded<'w>>,
}

impl Encoder<'_> {
    /// The flat bytes of writes to one partition, if they are plain.
    pub(super) fn plain(&self, key: &[u8], writes: &[Keyed<'_>], timestamp: i64) -> Option<Vec<u8>> {
        if self.shape.schema.is_compact || self.shape.model().is_counter() {
            return None;
        }
        let mut rows = PutRows::new(key, writes.len());
        let mut before: Option<ClusteringBytes> = None;
        for (_, write) in writes {
            let clustering = self.plain_clustering(write, before.as_ref())?;
            let one = self.one(write, write.timestamp.unwrap_or(timestamp)).ok()?;
            one.put(write, &clustering, &mut rows)?;
            // Where the first one is plain, the others are most often.
            if before.replace(clustering).is_none() {
                rows.reserve(writes[1..].iter().map(|(_, write)| about(write)).sum());
            }
        }
        Some(rows.finish())
    }

    /// The clustering key of a write, if it is whole and comes behind the one before.
    #[inline]
    fn plain_clustering(&self, write: &Write, before: Option<&ClusteringBytes>) -> Option<ClusteringBytes> {
        let (Target::Insert(values) | Target::Update(values)) = &write.target else { return None };
        let columns = &self.shape.model().clustering;
        let clustering = self.shape.clustering_bytes(values).ok().filter(|key| key.len() == columns.len())?;
        let ascends = before.is_none_or(|before| is_before(columns, before, &clustering));
        ascends.then_some(clustering)
    }

    #[inline]
    fn plain_cells<'w>(&self, write: &'w Write) -> Option<SmallVec<[PlainCell<'w>; 4]>> {
        let mut cells: SmallVec<[PlainCell<'_>; 4]> = SmallVec::new();
        for (name, change) in &write.changes {
            let at = self.shape.find(name).ok()?;
            let (info, Place::Regular(column)) = (&self.shape.columns[at], self.shape.places[at]) else {
                return None;
            };
            let value = match change {
                _ if info.data_type.is_multi_cell() => return None,
                Change::Set(value) => value.encode(name, &info.data_type).ok()?,
                Change::Unset => None,
                _ => return None,
            };
            cells.push(PlainCell { column, value });
        }
        if !cells.is_sorted_by(|a, b| a.column < b.column) {
            // Of several of one column the last counts.
            cells.reverse();
            cells.sort_by_key(|cell| cell.column);
            cells.dedup_by_key(|cell| cell.column);
        }
        Some(cells)
    }
}

impl One<'_> {
    /// Appends the row of a write. `None` if it is not plain, or says nothing, or its SSTable could not hold it.
    #[inline]
    fn put(&self, write: &Write, clustering: &ClusteringBytes, rows: &mut PutRows) -> Option<()> {
        let &One { encoder, timestamp, ttl } = self;
        let (now, expiry) = (encoder.now, self.expiry());
        let marker = match write.target {
            Target::Insert(_) => Liveness { timestamp, ttl, local_expiration_time: expiry },
            _ => Liveness::NONE,
        };
        let cells = encoder.plain_cells(write)?;
        let says_nothing = marker.is_none() && cells.is_empty();
        if says_nothing || !encoder.limits.holds_time(expiry) || !encoder.limits.holds_time(now) {
            return None;
        }
        let cells = cells.iter().map(|cell| {
            let (column, value) = (cell.column, cell.value.as_deref());
            let (ttl, local_deletion_time) = if value.is_some() { (ttl, expiry) } else { (0, now) };
            CellView { column, ttl, timestamp, local_deletion_time, path: None, value }
        });
        rows.put(clustering.iter().map(|value| Some(&**value)), &marker, cells);
        Some(())
    }
}

/// About how many bytes a row takes.
fn about(write: &Write) -> usize {
    let value_of = |change: &Change| match change {
        Change::Set(value) => value.about(),
        _ => 0,
    };
    let cells = write.changes.iter().map(|(_, change)| ABOUT_CELL + value_of(change));
    let key = match &write.target {
        Target::Insert(values) | Target::Update(values) => values.iter().map(|value| value.about()).sum(),
        _ => 0,
    };
    ABOUT_ROW + key + cells.sum::<usize>()
}

/// Whether one row stands before another one.
#[inline]
fn is_before(columns: &[CqlType], a: &ClusteringBytes, b: &ClusteringBytes) -> bool {
    let orders = columns.iter().zip(a).zip(b).map(|((of, a), b)| of.compare(a, b));
    orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).is_lt()
}

#[cfg(test)]
mod tests {
    use sstable::Version;
    use sstable::data::row::Family;
    use sstable::writer::Limits;

    use super::super::shape::Shape;
    use super::super::stamps::Stamps;
    use super::super::value::Value;
    use super::super::write::Batch;
    use super::*;
    use crate::table_schema::TableSchema;

    const TABLE: &str = "CREATE TABLE ks.t (k int, a int, b text, s int static, v blob, w int, l list<int>,
        PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)";

    /// Whether the writes of a batch are plain; where they are, the bytes are those of their mutation.
    fn is_plain(writes: impl IntoIterator<Item = Write>) -> bool {
        let shape = Shape::new(TableSchema::parse("t".as_ref(), TABLE, None).unwrap(), 0);
        let (stamps, limits) = (Stamps::new(1), Limits::of(Version::Nb, Family::Cassandra));
        let encoder = Encoder { shape: &shape, stamps: &stamps, limits: &limits, now: 1_700_000_000 };
        let batch = writes.into_iter().collect::<Batch>().timestamp(1_700_000_000_000_000);
        let both = encoder.each_partition(&batch, |key, writes, timestamp| {
            Ok((encoder.plain(key, writes, timestamp), encoder.mutation(key, writes, timestamp)))
        });
        both.unwrap().into_iter().fold(true, |all, (plain, mutation)| match plain {
            Some(bytes) => {
                let mut expected = Vec::new();
                model::flat::put_mutation(&mutation.unwrap(), &mut expected);
                assert_eq!(bytes, expected);
                all
            }
            None => false,
        })
    }

    fn insert(a: i32, b: &str) -> Write {
        Write::insert(7, (a, b))
    }

    #[test]
    fn rows_in_order_are_plain() {
        assert!(is_plain([
            insert(2, "x").set("v", vec![1; 300]),
            insert(1, "x").set("w", 4),
            insert(1, "y")
        ]));
        assert!(is_plain([
            Write::update(7, (1, "x")).set("w", 1).ttl(60),
            insert(0, "").set("v", Vec::new())
        ]));
        assert!(is_plain([insert(1, "x").set("w", 1).set("v", vec![1]).set("w", 2).unset("v").timestamp(5)]));
        assert!(is_plain([insert(1, "x").set("v", Value::Null), Write::insert(8, (9, "z")).set("w", 1)]));
    }

    #[test]
    fn others_are_not() {
        let plain = || insert(1, "x").set("w", 1);
        assert!(is_plain([plain()]));
        assert!(!is_plain([plain(), plain()]), "the same row twice");
        assert!(!is_plain([plain(), insert(2, "x")]), "the first column descends");
        assert!(!is_plain([plain().set("s", 1)]), "a static column");
        assert!(!is_plain([plain().set("l", serde_json::json!([1]))]), "a list");
        assert!(!is_plain([plain().add("w", 1)]), "no collection");
        assert!(!is_plain([plain().set("x", 1)]), "no column");
        assert!(!is_plain([plain().set("w", "x")]), "no number");
        assert!(!is_plain([Write::insert(7, 1).set("w", 1)]), "a part of a key");
        assert!(!is_plain([Write::update(7, (1, "x"))]), "a row of nothing");
        assert!(!is_plain([insert(1, "x").timestamp(i64::MIN).ttl(60)]), "a marker that is none");
        assert!(!is_plain([Write::delete_row(7, (1, "x"))]), "a deletion");
        assert!(!is_plain([plain().ttl(15 * 365 * 24 * 60 * 60)]), "it expires after 2038");
        assert!(!is_plain([plain().ttl(u32::MAX)]), "no time to live");
    }
}
