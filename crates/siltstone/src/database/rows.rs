//! Rows that have left their shard: one buffer a page, and each value a range of it.
//!
//! ```text
//! row     8 bytes token   value of each selected column, in order
//! value   i32 length, bytes     −1 is null
//! ```

use std::fmt;
use std::sync::Arc;

use model::types::quote;
use model::{CqlType, Token};

use super::shape::ColumnInfo;
use super::typed::{FromCql, corrupt, value_as};
use crate::{Error, Result};

/// Bytes for the first row of a page.
const FIRST: usize = 256;

/// Bytes that are made ready at once for the rows behind it, at the most: 64 KiB.
const AT_ONCE: usize = 64 << 10;

/// Some rows of a read, and where to go on.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Where the rows behind these begin: for the next read of the same kind. `None` where there are none.
    pub next: Option<Vec<u8>>,
}

/// A row as a `SELECT` gives it. Clones share its bytes, and those of the rows that came with it.
#[derive(Clone)]
pub struct Row {
    page: Arc<Packed>,
    start: usize,
}

/// What the rows of a page share.
struct Packed {
    columns: Arc<[ColumnInfo]>,
    bytes: Vec<u8>,
}

/// Rows as they leave a shard.
#[derive(Debug, Default)]
pub(super) struct PackedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) starts: Vec<usize>,
    pub(super) next: Option<Vec<u8>>,
    /// With how many bytes the last row begins that all of its partition begin with; 0 if it is of another one.
    pub(super) head: usize,
}

impl Row {
    /// The columns that were selected, in the order of the values.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.page.columns
    }

    /// The token of its partition.
    pub fn token(&self) -> Token {
        let bytes = &self.page.bytes[self.start..];
        Token::from_be_bytes(*bytes.first_chunk().expect("a row begins with its token"))
    }

    /// The bytes of a column as CQL has them; `None` where it is null or was not selected.
    ///
    /// A collection is the count of its elements and each with its length, whether or not it is frozen. A counter is its
    /// total.
    pub fn get(&self, column: &str) -> Option<&[u8]> {
        let at = self.columns().iter().position(|info| info.name == column)?;
        self.values().nth(at)?
    }

    /// A column as what a program wants, such as a number or a text: see [`FromCql`]. `None` where it is null.
    ///
    /// ```
    /// # use siltstone::database::{Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait()?;
    /// let t = database.create_table("CREATE TABLE ks.t (k int PRIMARY KEY, name text, at timestamp)").wait()?;
    /// t.write(Write::insert(7, ()).set("name", "ada").set("at", "2024-01-31T12:00:00Z")).wait()?;
    /// let row = t.get(7, ()).wait()?.expect("it was written");
    /// assert_eq!(row.get_as::<String>("name")?.as_deref(), Some("ada"));
    /// assert_eq!(row.get_as("at")?, Some(1_706_702_400_000_i64));
    /// # database.close().wait()?;
    /// # Ok::<(), siltstone::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if the column was not selected, or its values are of another kind or out of range; [`Error::Value`] for bytes that
    /// are no value of its type.
    pub fn get_as<T: FromCql>(&self, column: &str) -> Result<Option<T>> {
        let at = place_of(self.columns(), column)?;
        value_as(&self.columns()[at], self.values().nth(at).flatten())
    }

    /// The bytes of all columns, `None` where null.
    pub fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut rest = &self.page.bytes[self.start + size_of::<Token>()..];
        (0..self.columns().len()).map(move |_| take_value(&mut rest))
    }

    /// A column as JSON, as [`Row::to_json`] has it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the column was not selected; bytes that are no value of its type.
    pub fn json_of(&self, column: &str) -> Result<String> {
        let at = place_of(self.columns(), column)?;
        let mut json = String::new();
        write_value(&self.columns()[at], self.values().nth(at).flatten(), &mut json)?;
        Ok(json)
    }

    /// All columns as an object of JSON: `{"k":7,"v":"a","tags":["x"]}`. A float that is no number is its name, as `"NaN"`, and a
    /// duration of zero `"0s"`: [`Value::Json`](super::Value::Json) makes of each value what it was.
    ///
    /// # Errors
    /// Bytes that are no value of their column's type: a file that was not damaged has none.
    pub fn to_json(&self) -> Result<String> {
        to_json(self.columns(), self.values())
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Ok(json) => f.write_str(&json),
            Err(error) => write!(f, "{error}"),
        }
    }
}

impl PackedRows {
    /// Begins a row, of so many that the page will have at the most.
    pub(super) fn begin(&mut self, token: Token, most: usize) {
        self.make_ready(most);
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(&token.to_be_bytes());
    }

    /// The same of a row that begins with as many bytes of the one before it.
    #[inline]
    pub(super) fn begin_alike(&mut self, head: usize, most: usize) {
        self.make_ready(most);
        let before = self.starts.last().map_or(0, |start| *start);
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_within(before..before + head);
    }

    /// How many bytes of the last row there are so far.
    pub(super) fn begun(&self) -> usize {
        self.bytes.len() - self.starts.last().map_or(0, |start| *start)
    }

    /// Takes the last row out again.
    pub(super) fn take_back(&mut self) {
        if let Some(start) = self.starts.pop() {
            self.bytes.truncate(start);
        }
    }

    #[inline]
    fn make_ready(&mut self, most: usize) {
        // The others are taken to be like the first one.
        match *self.starts {
            [] => self.bytes.reserve(FIRST),
            [_] => {
                self.bytes.reserve(self.bytes.len().saturating_mul(most - 1).min(AT_ONCE));
                self.starts.reserve((most - 1).min(self.bytes.capacity() / self.bytes.len()));
            }
            _ => {}
        }
    }

    /// The next value of the row.
    #[inline(always)]
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        let len = value.map_or(-1, |value| i32::try_from(value.len()).expect("values have less than 2 GiB"));
        self.bytes.extend_from_slice(&len.to_be_bytes());
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }

    /// The one row of these columns, if there is one.
    pub(super) fn into_row(self, columns: &Arc<[ColumnInfo]>) -> Option<Row> {
        let start = *self.starts.first()?;
        Some(Row { page: Arc::new(Packed { columns: columns.clone(), bytes: self.bytes }), start })
    }

    /// Rows of these columns.
    pub(super) fn into_page(self, columns: &Arc<[ColumnInfo]>) -> Page {
        let page = Arc::new(Packed { columns: columns.clone(), bytes: self.bytes });
        let row = |start| Row { page: page.clone(), start };
        Page { rows: self.starts.into_iter().map(row).collect(), next: self.next }
    }
}

/// Which of the selected columns is called so.
pub(super) fn place_of(columns: &[ColumnInfo], column: &str) -> Result<usize> {
    let at = columns.iter().position(|info| info.name == column);
    at.ok_or_else(|| Error::Usage(format!("the column {column} was not selected")))
}

/// Columns as an object of JSON.
pub(super) fn to_json<'a>(
    columns: &[ColumnInfo],
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<String> {
    let mut json = String::from("{");
    for (at, (column, value)) in columns.iter().zip(values).enumerate() {
        json.push_str(if at == 0 { "" } else { "," });
        quote(&column.name, &mut json);
        json.push(':');
        write_value(column, value, &mut json)?;
    }
    json.push('}');
    Ok(json)
}

fn take_value<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, tail) = rest.split_first_chunk().expect("a value begins with its length");
    let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else {
        *rest = tail;
        return None;
    };
    let (value, tail) = tail.split_at(len);
    *rest = tail;
    Some(value)
}

fn write_value(column: &ColumnInfo, value: Option<&[u8]>, json: &mut String) -> Result<()> {
    let Some(value) = value else {
        json.push_str("null");
        return Ok(());
    };
    let data_type: &CqlType = &column.data_type;
    data_type.write_row_json(value, json).map_err(|source| corrupt(column, source))
}

#[cfg(test)]
mod tests {
    use super::super::shape::ColumnKind;
    use super::*;

    #[test]
    fn values_are_read_back() {
        let column = |name: &str, data_type| ColumnInfo {
            name: name.to_owned(),
            data_type,
            kind: ColumnKind::Regular,
        };
        let columns: Arc<[ColumnInfo]> =
            vec![column("k", CqlType::Int), column("v", CqlType::Text), column("w", CqlType::Text)].into();
        let mut packed = PackedRows::default();
        for number in 0..3_i32 {
            packed.begin(i64::from(number) - 1, 3);
            packed.push(Some(&number.to_be_bytes()));
            packed.push(None);
            packed.push(Some(b""));
        }
        let page = packed.into_page(&columns);
        let row = &page.rows[2];
        assert_eq!((row.token(), row.get("k"), row.get("v")), (1, Some(&[0, 0, 0, 2][..]), None));
        assert_eq!((row.get("w"), row.get("x")), (Some(&[][..]), None));
        assert_eq!(row.to_json().unwrap(), r#"{"k":2,"v":null,"w":""}"#);
        assert_eq!(row.json_of("k").unwrap(), "2");
        assert!(row.json_of("x").is_err());
    }
}
