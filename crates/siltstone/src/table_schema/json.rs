//! A table as JSON.
//!
//! ```text
//! {"keyspace":"ks", "table":"t",
//!  "types":[{"name":"addr","fields":[{"name":"zip","type":"int"}]}],
//!  "partition_key":[{"name":"k","type":"int"}], "clustering":[{"name":"c","type":"text","order":"desc"}],
//!  "static":[…], "regular":[…], "compact_storage":false, "options":{"compression":{"class":"LZ4Compressor"}}}
//! ```
//!
//! A type is one of CQL, or the name of a class of Cassandra.

use std::collections::HashMap;
use std::ops::Range;

use model::CqlType;
use model::types::UserType;

use super::cql::parse_type;
use super::draft::{Draft, DraftColumn};
use super::{OptionValue, Parsed, TableSchema, Wanted, Wrong};
use crate::json_members::{Members, Refusal};
use crate::json_reader::JsonReader;

/// What the names of Cassandra's classes begin with.
const CLASS: &str = "org.apache.cassandra.";

/// The table that a text describes, in this keyspace unless the text tells another.
pub(super) fn parse(text: &str, table: Option<&str>, keyspace: Option<&str>) -> Parsed<TableSchema> {
    let whole = 0..text.len();
    let mut members = at(&whole, Members::of_line(text))?;
    let told = members.take("keyspace").map(|piece| string(text, &piece)).transpose()?;
    let keyspace = told.or_else(|| keyspace.map(str::to_owned));
    let name = members.take("table").ok_or_else(|| Wrong::new(0, "table is missing"))?;
    let mut reader = Reader { text, types: HashMap::new() };
    let mut draft = Draft { keyspace, table: string(text, &name)?, ..Draft::default() };
    if !(Wanted { name: table }).is(draft.keyspace.as_deref(), &draft.table) {
        let what = format!("this is the table {}, not {}", draft.table, table.unwrap_or_default());
        return Err(Wrong::new(name.start, what));
    }
    if let Some(types) = members.take("types") {
        items(text, &types)?.iter().try_for_each(|piece| reader.user_type(piece, &draft))?;
    }
    for (name, kind) in [
        ("partition_key", ColumnKind::PartitionKey),
        ("clustering", ColumnKind::Clustering),
        ("static", ColumnKind::Static),
        ("regular", ColumnKind::Regular),
    ] {
        if let Some(columns) = members.take(name) {
            items(text, &columns)?.iter().try_for_each(|piece| reader.column(piece, kind, &mut draft))?;
        }
    }
    draft.is_compact = match members.take("compact_storage").map(|piece| (piece.start, &text[piece])) {
        None | Some((_, "false")) => false,
        Some((_, "true")) => true,
        Some((at, _)) => return Err(Wrong::new(at, "true or false was expected")),
    };
    if let Some(piece) = members.take("options") {
        options(text, &piece, &mut draft)?;
    }
    at(&whole, members.finish("a table"))?;
    draft.build().map_err(|what| Wrong::new(name.start, what))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

struct Reader<'a> {
    text: &'a str,
    types: HashMap<String, UserType>,
}

impl Reader<'_> {
    /// `{"name":…,"fields":[{"name":…,"type":…}]}`
    fn user_type(&mut self, piece: &Range<usize>, draft: &Draft) -> Parsed<()> {
        let mut members = at(piece, Members::of_piece(self.text, piece))?;
        let name = self.required(&mut members, piece, "name")?;
        let list = members.take("fields").ok_or_else(|| Wrong::new(piece.start, "fields is missing"))?;
        let mut fields = Vec::new();
        for piece in items(self.text, &list)? {
            let mut members = at(&piece, Members::of_piece(self.text, &piece))?;
            let name = self.required(&mut members, &piece, "name")?;
            fields.push((name, self.data_type(&mut members, &piece)?));
            at(&piece, members.finish("a field"))?;
        }
        at(piece, members.finish("a type"))?;
        let keyspace = draft.keyspace.clone().unwrap_or_default();
        self.types.insert(name.clone(), UserType { keyspace, name, fields, frozen: false });
        Ok(())
    }

    /// `{"name":…,"type":…}`, of a clustering column with `"order"`.
    fn column(&mut self, piece: &Range<usize>, kind: ColumnKind, draft: &mut Draft) -> Parsed<()> {
        let mut members = at(piece, Members::of_piece(self.text, piece))?;
        let name = self.required(&mut members, piece, "name")?;
        let mut data_type = self.data_type(&mut members, piece)?;
        match kind {
            ColumnKind::PartitionKey => draft.partition_key.push(name.clone()),
            ColumnKind::Clustering => {
                draft.clustering.push(name.clone());
                // A class may say it too.
                let is_reversed = data_type.is_reversed();
                data_type = data_type.unreversed().clone();
                if self.is_descending(&mut members)? || is_reversed {
                    draft.descending.push(name.clone());
                }
            }
            ColumnKind::Static | ColumnKind::Regular => {}
        }
        draft.columns.push(DraftColumn { name, data_type, is_static: kind == ColumnKind::Static });
        at(piece, members.finish("a column"))
    }

    fn is_descending(&self, members: &mut Members<'_>) -> Parsed<bool> {
        let Some(piece) = members.take("order") else { return Ok(false) };
        match string(self.text, &piece)?.to_ascii_lowercase().as_str() {
            "asc" => Ok(false),
            "desc" => Ok(true),
            _ => Err(Wrong::new(piece.start, "asc or desc was expected")),
        }
    }

    fn data_type(&self, members: &mut Members<'_>, of: &Range<usize>) -> Parsed<CqlType> {
        let piece = members.take("type").ok_or_else(|| Wrong::new(of.start, "type is missing"))?;
        let name = string(self.text, &piece)?;
        if name.starts_with(CLASS) {
            return CqlType::parse(&name).map_err(|error| Wrong::new(piece.start, error.to_string()));
        }
        let find = |_: Option<&str>, name: &str| self.types.get(name).cloned();
        parse_type(&name, piece.start + 1, &find)
    }

    fn required(&self, members: &mut Members<'_>, of: &Range<usize>, name: &str) -> Parsed<String> {
        let piece = members.take(name).ok_or_else(|| Wrong::new(of.start, format!("{name} is missing")))?;
        string(self.text, &piece)
    }
}

fn options(text: &str, piece: &Range<usize>, draft: &mut Draft) -> Parsed<()> {
    for (name, piece) in entries(text, piece)? {
        let value = match text[piece.clone()].starts_with('{') {
            true => {
                let entries = entries(text, &piece)?;
                let entry = |(name, piece): (String, Range<usize>)| Ok((name, scalar(text, &piece)?));
                OptionValue::Map(entries.into_iter().map(entry).collect::<Parsed<_>>()?)
            }
            false => OptionValue::Text(scalar(text, &piece)?),
        };
        draft.options.set(name, value);
    }
    Ok(())
}

/// The members of an object whose names may be any.
fn entries(text: &str, piece: &Range<usize>) -> Parsed<Vec<(String, Range<usize>)>> {
    let read = || {
        let mut reader = JsonReader::within(text, piece);
        let (mut entries, mut is_first) = (Vec::new(), true);
        reader.begin_object()?;
        while let Some(name) = reader.member(&mut is_first)? {
            entries.push((name.into_owned(), reader.value()?));
        }
        Ok(entries)
    };
    read().map_err(|error: crate::json_reader::JsonError| Wrong::new(error.at, error.what))
}

fn items(text: &str, piece: &Range<usize>) -> Parsed<Vec<Range<usize>>> {
    let read = || {
        let mut reader = JsonReader::within(text, piece);
        let (mut items, mut is_first) = (Vec::new(), true);
        reader.begin_array()?;
        while reader.item(&mut is_first)? {
            items.push(reader.value()?);
        }
        Ok(items)
    };
    read().map_err(|error: crate::json_reader::JsonError| Wrong::new(error.at, error.what))
}

fn string(text: &str, piece: &Range<usize>) -> Parsed<String> {
    let read = JsonReader::within(text, piece).string();
    read.map(std::borrow::Cow::into_owned).map_err(|error| Wrong::new(error.at, error.what))
}

/// A string, a number or a word, as text.
fn scalar(text: &str, piece: &Range<usize>) -> Parsed<String> {
    match text.as_bytes()[piece.start] {
        b'"' => string(text, piece),
        b'{' | b'[' => Err(Wrong::new(piece.start, "a number or a string was expected")),
        _ => Ok(text[piece.clone()].to_owned()),
    }
}

/// What was read, or what is wrong with the piece.
fn at<T>(piece: &Range<usize>, read: Result<T, Refusal>) -> Parsed<T> {
    read.map_err(|refusal| Wrong::new(refusal.at().unwrap_or(piece.start), refusal.in_words()))
}
