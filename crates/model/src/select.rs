//! What a `SELECT` gives of live cells: the value of a column as the wire has it.
//!
//! ```text
//! list, set     i32 count   (i32 length, element)*
//! map           i32 count   (i32 length, key   i32 length, value)*
//! user type     (i32 length, field)*, length −1 for a field that is not set
//! counter       i64, the sum of all shards
//! ```

use std::borrow::Cow;

use crate::types::counter::CounterContext;
use crate::{Cell, CellValue, CqlType};

/// The value of a column from its live cells, in the order of a row's; `None` where it is null.
///
/// A counter whose context is malformed is null: the file it comes from was checked where it could be.
#[inline]
pub fn value_of<'a>(data_type: &CqlType, cells: &'a [Cell]) -> Option<Cow<'a, [u8]>> {
    let [first, ..] = cells else { return None };
    let made = match data_type {
        CqlType::List { frozen: false, .. } => collection(cells, |cell, to| put(value(cell), to)),
        CqlType::Set { frozen: false, .. } => collection(cells, |cell, to| put(path(cell), to)),
        CqlType::Map { frozen: false, .. } => collection(cells, |cell, to| {
            put(path(cell), to);
            put(value(cell), to);
        }),
        CqlType::Udt(udt) if !udt.frozen => user_type(udt.fields.len(), cells),
        CqlType::Counter => CounterContext::parse(value(first)).ok()?.total().to_be_bytes().to_vec(),
        _ => {
            return match &first.value {
                CellValue::Value(value) => Some(Cow::Borrowed(value)),
                CellValue::Tombstone => None,
            };
        }
    };
    Some(Cow::Owned(made))
}

fn collection(cells: &[Cell], mut put_element: impl FnMut(&Cell, &mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = (cells.len() as i32).to_be_bytes().to_vec();
    cells.iter().for_each(|cell| put_element(cell, &mut bytes));
    bytes
}

/// A cell of a field that there is not, as a damaged or foreign file may have one, hides no other.
fn user_type(fields: usize, cells: &[Cell]) -> Vec<u8> {
    let mut values = vec![None; fields];
    for cell in cells {
        let field = path(cell).try_into().map(u16::from_be_bytes).ok();
        if let Some(place) = field.and_then(|field| values.get_mut(usize::from(field))) {
            *place = Some(value(cell));
        }
    }
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Some(value) => put(value, &mut bytes),
            None => bytes.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
    bytes
}

fn put(value: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&(value.len() as i32).to_be_bytes());
    to.extend_from_slice(value);
}

fn path(cell: &Cell) -> &[u8] {
    cell.path.as_deref().unwrap_or_default()
}

fn value(cell: &Cell) -> &[u8] {
    match &cell.value {
        CellValue::Value(value) => value,
        CellValue::Tombstone => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::time::NO_DELETION_TIME;
    use crate::types::UserType;

    fn cell(path: Option<&[u8]>, value: &[u8]) -> Cell {
        Cell {
            column: 0,
            ttl: 0,
            timestamp: 1,
            local_deletion_time: NO_DELETION_TIME,
            path: path.map(Bytes::from),
            value: CellValue::Value(Bytes::from(value)),
        }
    }

    fn bytes_of(data_type: &CqlType, cells: &[Cell]) -> Option<Vec<u8>> {
        value_of(data_type, cells).map(Cow::into_owned)
    }

    #[test]
    fn elements_are_counted_and_have_lengths() {
        let cells = [cell(Some(b"a"), b"xy"), cell(Some(b"b"), b"")];
        let list = CqlType::list(CqlType::Text, false);
        let with = |bytes: &[u8]| Some([b"\0\0\0\x02", bytes].concat());
        assert_eq!(bytes_of(&list, &cells), with(b"\0\0\0\x02xy\0\0\0\0"));
        let map = CqlType::map(CqlType::Text, CqlType::Text, false);
        assert_eq!(bytes_of(&map, &cells), with(b"\0\0\0\x01a\0\0\0\x02xy\0\0\0\x01b\0\0\0\0"));
        let set = CqlType::set(CqlType::Text, false);
        assert_eq!(bytes_of(&set, &cells), with(b"\0\0\0\x01a\0\0\0\x01b"));
        assert_eq!(bytes_of(&set, &[]), None);
    }

    #[test]
    fn a_user_type_has_all_its_fields() {
        let fields = ["a", "b", "c"].map(|name| (name.to_owned(), CqlType::Text)).to_vec();
        let udt = UserType { keyspace: "k".into(), name: "t".into(), fields, frozen: false };
        let cells = [cell(Some(&[0xff, 0xff]), b"y"), cell(Some(&[0, 1]), b"x"), cell(Some(&[0, 3]), b"z")];
        let expected = b"\xff\xff\xff\xff\0\0\0\x01x\xff\xff\xff\xff".to_vec();
        assert_eq!(bytes_of(&CqlType::Udt(Box::new(udt)), &cells), Some(expected));
    }

    #[test]
    fn one_cell_is_its_value() {
        assert_eq!(bytes_of(&CqlType::Text, &[cell(None, b"")]), Some(Vec::new()));
        let shard = [&[0; 2][..], &[7; 16], &1_i64.to_be_bytes(), &5_i64.to_be_bytes()].concat();
        assert_eq!(bytes_of(&CqlType::Counter, &[cell(None, &shard)]), Some(5_i64.to_be_bytes().to_vec()));
    }
}
