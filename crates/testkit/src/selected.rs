//! Rows as a `SELECT` gives them: the bytes of every column.

use model::{
    Bytes, Cell, Clustering, Column, Fragment, LiveRows, PartitionKey, PartitionStart, Row, Schema, select,
};

/// A row of a `SELECT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selected {
    /// Its partition.
    pub key: PartitionKey,
    /// Its clustering key; `None` where the partition has nothing but its static row.
    pub clustering: Option<Clustering>,
    /// The static columns.
    pub statics: Vec<Option<Bytes>>,
    /// The regular columns.
    pub regulars: Vec<Option<Bytes>>,
}

/// Makes rows of a stream that runs either way.
#[derive(Debug)]
pub struct Selection<'a> {
    schema: &'a Schema,
    live: LiveRows,
    /// Whether a partition of which only the static row is left is a row: not where rows are chosen by their keys.
    with_static_only: bool,
    key: Option<PartitionKey>,
    static_row: Option<Row>,
    has_rows: bool,
    /// What was selected so far.
    pub rows: Vec<Selected>,
}

impl<'a> Selection<'a> {
    /// What is live at `now`, in seconds.
    pub fn new(schema: &'a Schema, now: i64, with_static_only: bool) -> Selection<'a> {
        Selection {
            schema,
            live: LiveRows::new(now),
            with_static_only,
            key: None,
            static_row: None,
            has_rows: false,
            rows: Vec::new(),
        }
    }

    /// Takes the next fragment.
    pub fn take(&mut self, mut fragment: Fragment) {
        match &fragment {
            Fragment::PartitionStart(PartitionStart { key, .. }) => {
                (self.key, self.static_row, self.has_rows) = (Some(key.clone()), None, false);
            }
            Fragment::PartitionEnd
                if !self.has_rows && self.with_static_only && self.static_row.is_some() =>
            {
                self.add(None);
            }
            _ => {}
        }
        if !self.live.keeps(&mut fragment) {
            return;
        }
        match fragment {
            Fragment::StaticRow(row) => self.static_row = Some(row),
            Fragment::Row(row) => self.add(Some(row)),
            _ => {}
        }
    }

    fn add(&mut self, row: Option<Row>) {
        self.has_rows = true;
        let key = self.key.clone().expect("rows stand in partitions");
        let (statics, regulars) = (self.static_row.as_ref(), row.as_ref());
        self.rows.push(Selected {
            key,
            statics: values(&self.schema.statics, statics.map_or(&[], |row| &row.cells)),
            regulars: values(&self.schema.regulars, regulars.map_or(&[], |row| &row.cells)),
            clustering: row.map(|row| row.clustering),
        });
    }
}

/// The value of each column from the live cells of a row.
pub fn values(columns: &[Column], cells: &[Cell]) -> Vec<Option<Bytes>> {
    let mut rest = cells;
    let value = |(at, column): (usize, &Column)| {
        let count = rest.iter().take_while(|cell| usize::from(cell.column) == at).count();
        let (own, others) = rest.split_at(count);
        rest = others;
        select::value_of(&column.data_type, own).map(|value| Bytes::from(&*value))
    };
    columns.iter().enumerate().map(value).collect()
}
