//! Rows with a partition key and a clustering key of an int each, and a blob: what several benchmarks read.

use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, Fragment, FragmentReader, Liveness, Mutation, Next,
    PartitionKey, Row, Schema,
};
use storage::Table;
use storage::commit_log::LogPosition;

/// What such a table has.
pub(crate) fn schema() -> Rc<Schema> {
    let column = Column { name: b"value"[..].into(), data_type: CqlType::Blob };
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]))
}

/// The key of a partition.
pub(crate) fn key(number: u32) -> PartitionKey {
    PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]))
}

/// The key of a row in its partition.
pub(crate) fn clustering(number: u32) -> Clustering {
    std::iter::once(&number.to_be_bytes()[..]).collect()
}

/// A row of the one value, as an `INSERT` writes it. The timestamp in microseconds.
pub(crate) fn row(clustering: Clustering, timestamp: i64, value: Bytes) -> Row {
    let (ttl, local_deletion_time, path) = (0, NO_DELETION_TIME, None);
    let value = CellValue::Value(value);
    Row {
        liveness: Liveness { timestamp, ..Liveness::NONE },
        cells: vec![Cell { column: 0, ttl, timestamp, local_deletion_time, path, value }],
        ..Row::new(clustering)
    }
}

/// How many rows a stream gives, which is read no further than to a limit.
pub(crate) async fn count<R: FragmentReader>(stream: &mut R, limit: Option<u64>) -> Result<u64, R::Error> {
    let (mut rows, mut fragment) = (0, Fragment::default());
    loop {
        match stream.pop(&mut fragment)? {
            Next::Fragment => rows += u64::from(matches!(fragment, Fragment::Row(_))),
            Next::Fill => stream.fill().await?,
            Next::End => return Ok(rows),
        }
        if limit == Some(rows) {
            return Ok(rows);
        }
    }
}

/// Writes rows of a partition, in their order, into the memtable.
pub(crate) fn apply(table: &Table, partition: u32, rows: Vec<Row>) {
    table.apply(&Mutation { rows, ..Mutation::new(key(partition)) }, LogPosition::default());
}
