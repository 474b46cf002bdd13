//! Collections and user types cut into the cells of their elements.

use std::fmt;

use model::types::UserType;
use model::{Bytes, CqlType};

use super::value::Value;
use crate::{Error, Result};

/// A path, which a list's element has none of its own, and a value.
pub(super) type Element<'a> = (Option<Vec<u8>>, &'a [u8]);

/// The elements of a value of a column of many cells; `None` where one is null that cannot be.
pub(super) fn elements_of<'a>(of: &CqlType, bytes: &'a [u8]) -> Option<Vec<Element<'a>>> {
    let mut rest = bytes;
    if let CqlType::Udt(udt) = of {
        return fields_of(udt, rest);
    }
    let count = take_length(&mut rest)?;
    let element = |_| match of {
        CqlType::List { .. } => Some((None, take(&mut rest)??)),
        CqlType::Set { .. } => Some((Some(take(&mut rest)??.to_vec()), &[][..])),
        _ => Some((Some(take(&mut rest)??.to_vec()), take(&mut rest)??)),
    };
    (0..count).map(element).collect()
}

/// The path of an element's cell: the key of a map, the element of a set, the name of a field, the id of a list's element.
pub(super) fn path_of(column: &str, of: &CqlType, element: &Value) -> Result<Bytes> {
    let unknown = |field: &dyn fmt::Display| Error::Usage(format!("{column} has no field {field}"));
    if let (CqlType::Udt(udt), Value::Text(name)) = (of, element) {
        let at = udt.fields.iter().position(|(field, _)| field == name).ok_or_else(|| unknown(name))?;
        return Ok(Bytes::from(&(at as u16).to_be_bytes()[..]));
    }
    let path_type = of.cell_path_type().expect("only columns of many cells have elements");
    let Some(path) = element.encode(column, path_type)? else {
        return Err(Error::Usage(format!("{column}: an element cannot be null")));
    };
    match of.cell_value_type(Some(&path)) {
        Some(_) => Ok(Bytes::from(&*path)),
        // A field may be named by its number, of which there is one for each.
        None => {
            let number =
                path_type.to_text(&path).map_err(|error| Error::Usage(format!("{column}: {error}")))?;
            Err(unknown(&number))
        }
    }
}

/// The fields that are set.
fn fields_of<'a>(udt: &UserType, mut rest: &'a [u8]) -> Option<Vec<Element<'a>>> {
    let mut fields = Vec::new();
    for at in 0..udt.fields.len() as u16 {
        if rest.is_empty() {
            break;
        }
        fields.extend(take(&mut rest)?.map(|value| (Some(at.to_be_bytes().to_vec()), value)));
    }
    Some(fields)
}

fn take_length(rest: &mut &[u8]) -> Option<i32> {
    let (length, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(i32::from_be_bytes(*length))
}

/// A part with its length: `None` where it is cut, `Some(None)` where it is null.
fn take<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let Ok(length) = usize::try_from(take_length(rest)?) else { return Some(None) };
    let (part, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(Some(part))
}
