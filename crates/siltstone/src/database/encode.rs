//! Writes by name made into mutations: what Cassandra makes of the same statements.
//!
//! | write | what it becomes |
//! |---|---|
//! | insert | a row marker and cells |
//! | update | cells |
//! | set to null | a tombstone; of many cells, the deletion of all that is older |
//! | set many cells | the deletion of all that is older, and cells |
//! | add, put, remove | cells and tombstones |
//! | unset | a tombstone; of many cells, the deletion of all that is as old |
//! | delete a row | its deletion; without clustering columns, that of its partition |

use model::key::token_of;
use model::merge::RowMerger;
use model::time::{NO_DELETION_TIME, NO_TIMESTAMP};
use model::{
    Bytes, Cell, CellValue, Clustering, CqlType, DeletionTime, Fragment, Liveness, Mutation, PartitionKey,
    PartitionStart, Position, RangeTombstone, RangeTombstoneChange, Row, Token, flat,
};
use sstable::writer::Limits;

use super::elements::{elements_of, path_of};
use super::shape::{Place, Shape};
use super::stamps::Stamps;
use super::value::{Encoded, Value};
use super::write::{Batch, Change, Target, Write};
use crate::{Error, Result};

/// The longest time to live, in seconds: twenty years, as with Cassandra.
const LONGEST_TTL: u32 = 20 * 365 * 24 * 60 * 60;

/// A write with its partition's key.
pub(super) type Keyed<'a> = (Encoded, &'a Write);

/// A mutation that can go to its shard: its flat bytes.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) token: Token,
    pub(super) bytes: Vec<u8>,
}

impl Record {
    /// That of a mutation.
    pub(super) fn of(mutation: &Mutation) -> Record {
        let mut bytes = Vec::new();
        flat::put_mutation(mutation, &mut bytes);
        Record { token: mutation.key.token, bytes }
    }
}

/// Makes mutations of writes to one table.
pub(super) struct Encoder<'a> {
    pub(super) shape: &'a Shape,
    pub(super) stamps: &'a Stamps,
    pub(super) limits: &'a Limits,
    /// Seconds since 1970.
    pub(super) now: i64,
}

impl Encoder<'_> {
    /// One record for each partition of a batch.
    pub(super) fn records(&self, batch: &Batch) -> Result<Vec<Record>> {
        self.each_partition(batch, |key, writes, timestamp| match self.plain(key, writes, timestamp) {
            Some(bytes) => Ok(Record { token: token_of(key), bytes }),
            None => Ok(Record::of(&self.mutation(key, writes, timestamp)?)),
        })
    }

    /// What becomes of the writes to each partition, in the order of their keys' bytes, with the timestamp of those writes
    /// that have none of their own.
    pub(super) fn each_partition<T>(
        &self,
        batch: &Batch,
        each: impl Fn(&[u8], &[Keyed<'_>], i64) -> Result<T>,
    ) -> Result<Vec<T>> {
        let keyed = batch.writes.iter().map(|write| Ok((self.shape.key_bytes(&write.key)?, write)));
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        // Those to one row stay in their order.
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let needs_time = || batch.writes.iter().any(|write| write.timestamp.is_none());
        let now = || if needs_time() { self.stamps.micros() } else { 0 };
        let timestamp = batch.timestamp.unwrap_or_else(now);
        // Equal values need not be equal bytes: 0.0 is another key than -0.0.
        let partitions = keyed.chunk_by(|(a, _), (b, _)| a == b);
        partitions.map(|writes| each(&writes[0].0, writes, timestamp)).collect()
    }

    /// The mutation of writes to one partition.
    pub(super) fn mutation(&self, key: &[u8], writes: &[Keyed<'_>], timestamp: i64) -> Result<Mutation> {
        let mut mutation = Mutation::new(PartitionKey::new(Bytes::from(key)));
        for (_, write) in writes {
            self.one(write, write.timestamp.unwrap_or(timestamp))?.apply(write, &mut mutation)?;
        }
        self.finished(mutation)
    }

    /// A write at its time.
    pub(super) fn one(&self, write: &Write, timestamp: i64) -> Result<One<'_>> {
        let ttl = write.ttl.unwrap_or(self.shape.default_ttl);
        if ttl > LONGEST_TTL {
            return Err(Error::Usage(format!("a time to live of {ttl} s is longer than {LONGEST_TTL} s")));
        }
        if timestamp == NO_TIMESTAMP {
            return Err(Error::Usage(format!("the timestamp {timestamp} stands for none")));
        }
        if self.shape.model().is_counter() {
            let is_insert = matches!(write.target, Target::Insert(_));
            let expires = write.ttl.is_some_and(|ttl| ttl > 0);
            if is_insert || expires || write.changes.iter().any(|(_, change)| change.is_value()) {
                let what = "counters are neither inserted nor set, and do not expire: they are added to";
                return Err(Error::Usage(what.to_owned()));
            }
        }
        Ok(One { encoder: self, timestamp, ttl })
    }

    /// The mutation as it must be: rows in order, each once, and nothing that its SSTables could not hold.
    fn finished(&self, mut mutation: Mutation) -> Result<Mutation> {
        let schema = self.shape.model();
        let compare = |a: &Row, b: &Row| schema.compare_rows(&a.clustering, &b.clustering);
        if !mutation.rows.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            let mut merger = RowMerger::new(schema);
            mutation.rows.sort_by(compare);
            let mut rows: Vec<Row> = Vec::with_capacity(mutation.rows.len());
            for group in mutation.rows.chunk_by(|a, b| compare(a, b).is_eq()) {
                match group {
                    [only] => rows.push(only.clone()),
                    several => rows.extend(merger.merge(&mut several.to_vec(), false, DeletionTime::LIVE)),
                }
            }
            mutation.rows = rows;
        }
        self.check(&mutation)?;
        Ok(mutation)
    }

    /// Whether SSTables of the table's version can hold a mutation.
    pub(super) fn check(&self, mutation: &Mutation) -> Result<()> {
        let refused = |what: String| Error::Usage(format!("{}: {what}", self.shape.name()));
        let start = PartitionStart { key: mutation.key.clone(), deletion: mutation.deletion };
        self.limits.check(&Fragment::PartitionStart(start)).map_err(refused)?;
        for range in &mutation.range_tombstones {
            for position in [&range.start, &range.end] {
                let change = RangeTombstoneChange { position: position.clone(), deletion: range.deletion };
                self.limits.check(&Fragment::RangeTombstone(change)).map_err(refused)?;
            }
        }
        let mut rows = mutation.rows.iter().chain(&mutation.static_row);
        rows.try_for_each(|row| self.limits.check_row(row)).map_err(refused)
    }
}

impl Change {
    /// Whether it is more than a deletion.
    fn is_value(&self) -> bool {
        !matches!(self, Change::Unset | Change::Set(Value::Null))
    }
}

/// Makes one write a part of a mutation.
pub(super) struct One<'a> {
    pub(super) encoder: &'a Encoder<'a>,
    /// Microseconds.
    pub(super) timestamp: i64,
    /// Seconds; 0 for ever.
    pub(super) ttl: u32,
}

impl One<'_> {
    fn apply(&self, write: &Write, mutation: &mut Mutation) -> Result<()> {
        match &write.target {
            Target::Insert(clustering) => self.change_row(clustering, write, true, mutation),
            Target::Update(clustering) => self.change_row(clustering, write, false, mutation),
            Target::DeletePartition => {
                mutation.deletion = mutation.deletion.max(self.deletion());
                Ok(())
            }
            Target::DeleteRows(clustering) => self.delete_rows(clustering, mutation),
            Target::DeleteRange(ends) => {
                let (from, to) = &**ends;
                let (start, end) = (self.encoder.shape.start(from)?, self.encoder.shape.end(to)?);
                self.delete_range(start, end, mutation);
                Ok(())
            }
        }
    }

    fn delete_rows(&self, values: &[Value], mutation: &mut Mutation) -> Result<()> {
        let clustering = self.encoder.shape.clustering(values)?;
        if clustering.is_empty() {
            mutation.deletion = mutation.deletion.max(self.deletion());
        } else if clustering.len() == self.encoder.shape.clustering_len() {
            mutation.rows.push(Row { deletion: self.deletion(), ..Row::new(clustering) });
        } else {
            self.delete_range(Position::before(clustering.clone()), Position::after(clustering), mutation);
        }
        Ok(())
    }

    /// A range that is empty deletes nothing.
    fn delete_range(&self, start: Position, end: Position, mutation: &mut Mutation) {
        if !self.encoder.shape.model().compare(&start, &end).is_lt() {
            return;
        }
        if self.encoder.shape.clustering_len() == 0 {
            // The only row of the partition, which is a static one in compact storage.
            mutation.deletion = mutation.deletion.max(self.deletion());
        } else {
            mutation.range_tombstones.push(RangeTombstone { start, end, deletion: self.deletion() });
        }
    }

    fn change_row(
        &self,
        clustering: &[Value],
        write: &Write,
        is_insert: bool,
        mutation: &mut Mutation,
    ) -> Result<()> {
        let shape = self.encoder.shape;
        let clustering = self.encoder.shape.clustering(clustering)?;
        if is_insert && write.changes.is_empty() && !shape.is_marked_by_key() {
            return Err(Error::Usage(format!(
                "{}: rows of compact storage are there by what is set of them: an insert of the key alone is none",
                shape.name()
            )));
        }
        let (mut statics, mut row) = (Row::new(Clustering::empty()), Row::new(clustering));
        for (name, change) in &write.changes {
            let name = &**name;
            let at = shape.find(name)?;
            match shape.places[at] {
                Place::Static(column) => self.change(at, column, change, &mut statics)?,
                Place::Regular(column) => self.change(at, column, change, &mut row)?,
                _ => return Err(Error::Usage(format!("{name} is a part of the key, which does not change"))),
            }
        }
        if let Some(row) = self.whole_row(row, is_insert)? {
            mutation.rows.push(row);
        }
        if !statics.is_empty() {
            let mut versions: Vec<Row> = mutation.static_row.take().into_iter().collect();
            versions.push(sorted(statics, shape, true));
            let mut merger = RowMerger::new(shape.model());
            mutation.static_row = merger.merge(&mut versions, true, DeletionTime::LIVE);
        }
        Ok(())
    }

    /// The clustered row that is written, if one is.
    fn whole_row(&self, mut row: Row, is_insert: bool) -> Result<Option<Row>> {
        let shape = self.encoder.shape;
        let (given, columns) = (row.clustering.len(), shape.model().clustering.len());
        if given < columns {
            return match row.is_empty() && given == 0 {
                true => Ok(None),
                false => Err(Error::Usage(format!(
                    "{} has {columns} clustering columns, of which {given} were given",
                    shape.name()
                ))),
            };
        }
        if is_insert {
            self.mark(&mut row);
        }
        Ok((!row.is_empty()).then(|| sorted(row, shape, false)))
    }

    /// Makes the row exist. In compact storage rows have no marker: it is the cells that make them exist.
    fn mark(&self, row: &mut Row) {
        let (shape, ttl) = (self.encoder.shape, self.ttl);
        if !shape.schema.is_compact {
            row.liveness = Liveness { timestamp: self.timestamp, ttl, local_expiration_time: self.expiry() };
        } else if shape.is_marked_by_key() {
            row.cells.push(self.cell(0, None, Bytes::default()));
        }
    }

    fn change(&self, at: usize, column: u16, change: &Change, row: &mut Row) -> Result<()> {
        let info = &self.encoder.shape.columns[at];
        let (name, of) = (&info.name, &info.data_type);
        if !of.is_multi_cell() {
            let value = match change {
                Change::Set(value) => value.encode(name, of)?,
                Change::Unset => None,
                _ => {
                    return Err(Error::Usage(format!(
                        "{name} has no elements of its own: it is set as a whole"
                    )));
                }
            };
            row.cells.push(match value {
                Some(value) => self.cell(column, None, Bytes::from(&*value)),
                None => self.tombstone(column, None),
            });
            return Ok(());
        }
        match change {
            Change::Set(value) => {
                let older = DeletionTime { marked_for_delete_at: self.timestamp - 1, ..self.deletion() };
                row.complex_deletions.push((column, older));
                self.add(name, of, column, value, false, row)?;
            }
            Change::Unset => row.complex_deletions.push((column, self.deletion())),
            Change::Add(elements) => self.add(name, of, column, elements, false, row)?,
            Change::Prepend(elements) => self.add(name, of, column, elements, true, row)?,
            Change::Remove(element) => {
                row.cells.push(self.tombstone(column, Some(path_of(name, of, element)?)));
            }
            Change::Put(put) => {
                let (element, value) = &**put;
                let path = path_of(name, of, element)?;
                let data_type = of.cell_value_type(Some(&path)).expect("paths are those of elements");
                row.cells.push(match value.encode(name, data_type)? {
                    Some(value) => self.cell(column, Some(path), Bytes::from(&*value)),
                    None => self.tombstone(column, Some(path)),
                });
            }
        }
        Ok(())
    }

    fn add(
        &self,
        name: &str,
        of: &CqlType,
        column: u16,
        elements: &Value,
        before: bool,
        row: &mut Row,
    ) -> Result<()> {
        if before && !matches!(of, CqlType::List { .. }) {
            return Err(Error::Usage(format!("{name} is no list: nothing comes before its elements")));
        }
        let Some(bytes) = elements.encode(name, of)? else { return Ok(()) };
        let mut parts = elements_of(of, &bytes)
            .ok_or_else(|| Error::Usage(format!("{name}: an element of a collection cannot be null")))?;
        if before {
            parts.reverse();
        }
        for (path, value) in parts {
            let path = path.unwrap_or_else(|| self.element(before));
            row.cells.push(self.cell(column, Some(Bytes::from(path)), Bytes::from(value)));
        }
        Ok(())
    }

    /// The path of a new element of a list.
    fn element(&self, before: bool) -> Vec<u8> {
        let stamps = self.encoder.stamps;
        if before { stamps.prepend().to_vec() } else { stamps.append().to_vec() }
    }

    fn cell(&self, column: u16, path: Option<Bytes>, value: Bytes) -> Cell {
        let (timestamp, ttl, value) = (self.timestamp, self.ttl, CellValue::Value(value));
        Cell { column, ttl, timestamp, local_deletion_time: self.expiry(), path, value }
    }

    fn tombstone(&self, column: u16, path: Option<Bytes>) -> Cell {
        let (timestamp, value) = (self.timestamp, CellValue::Tombstone);
        Cell { column, ttl: 0, timestamp, local_deletion_time: self.encoder.now, path, value }
    }

    fn deletion(&self) -> DeletionTime {
        DeletionTime { marked_for_delete_at: self.timestamp, local_deletion_time: self.encoder.now }
    }

    /// When what is written expires, in seconds.
    pub(super) fn expiry(&self) -> i64 {
        if self.ttl == 0 { NO_DELETION_TIME } else { self.encoder.now + i64::from(self.ttl) }
    }
}

/// Cells and deletions in their order; of several of one place the last.
fn sorted(mut row: Row, shape: &Shape, is_static: bool) -> Row {
    let columns = shape.model().columns(is_static);
    let compare = |a: &Cell, b: &Cell| {
        let paths = || match (columns[usize::from(a.column)].data_type.cell_path_type(), &a.path, &b.path) {
            (Some(order), Some(a), Some(b)) => order.compare(a, b),
            _ => std::cmp::Ordering::Equal,
        };
        a.column.cmp(&b.column).then_with(paths)
    };
    row.cells.reverse();
    row.cells.sort_by(compare);
    row.cells.dedup_by(|later, first| compare(first, later).is_eq());
    row.complex_deletions.sort_by_key(|(column, deletion)| (*column, std::cmp::Reverse(*deletion)));
    row.complex_deletions.dedup_by_key(|(column, _)| *column);
    row
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
