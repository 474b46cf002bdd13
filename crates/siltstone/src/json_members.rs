//! The members of an object, each as the piece of the line that its value is.

use std::borrow::Cow;
use std::ops::Range;

use model::CqlType;
use smallvec::SmallVec;

use crate::json_reader::{JsonError, JsonReader};
use crate::keys;

/// No object here has as many.
const MOST_MEMBERS: usize = 32;

/// Why a line is refused: where in it, from the outside in, and what is wrong there.
#[derive(Debug)]
pub(crate) struct Refusal {
    place: Vec<String>,
    what: String,
    /// Bytes from the start of the line, where it is no JSON.
    at: Option<usize>,
}

pub(crate) type Read<T> = std::result::Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(what: impl Into<String>) -> Refusal {
        Refusal { place: Vec::new(), what: what.into(), at: None }
    }

    /// The same, in the member or item of that name.
    pub(crate) fn within(mut self, name: impl Into<String>) -> Refusal {
        self.place.insert(0, name.into());
        self
    }

    /// The same, with more words behind.
    pub(crate) fn with(mut self, more: &str) -> Refusal {
        self.what.push_str(more);
        self
    }

    /// Bytes from the start of the line, where it is no JSON.
    pub(crate) fn at(&self) -> Option<usize> {
        self.at
    }

    pub(crate) fn in_words(self) -> String {
        self.place.into_iter().chain([self.what]).collect::<Vec<_>>().join(": ")
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Refusal {
        Refusal { at: Some(error.at), ..Refusal::new(error.what) }
    }
}

/// The members of an object that are not taken yet.
pub(crate) struct Members<'a> {
    line: &'a str,
    items: SmallVec<[(Cow<'a, str>, Range<usize>); 8]>,
}

impl<'a> Members<'a> {
    /// The members of the object that a line is.
    pub(crate) fn of_line(line: &'a str) -> Read<Members<'a>> {
        let mut reader = JsonReader::new(line);
        let members = Members::read(line, &mut reader)?;
        reader.end()?;
        Ok(members)
    }

    /// The members of the object that is a piece of a line.
    pub(crate) fn of_piece(line: &'a str, piece: &Range<usize>) -> Read<Members<'a>> {
        Members::read(line, &mut JsonReader::within(line, piece))
    }

    fn read(line: &'a str, reader: &mut JsonReader<'a>) -> Read<Members<'a>> {
        let mut items = SmallVec::<[(Cow<'a, str>, Range<usize>); 8]>::new();
        let mut is_first = true;
        reader.begin_object()?;
        while let Some(name) = reader.member(&mut is_first)? {
            if items.len() == MOST_MEMBERS {
                return Err(Refusal::new(format!("an object has more than {MOST_MEMBERS} members")));
            }
            if items.iter().any(|item| item.0 == name) {
                return Err(Refusal::new(format!("the member {name} is there twice")));
            }
            items.push((name, reader.value()?));
        }
        Ok(Members { line, items })
    }

    /// The line that it is of.
    pub(crate) fn line(&self) -> &'a str {
        self.line
    }

    /// Where the value of a member is, which is not taken by that.
    pub(crate) fn piece_of(&self, name: &str) -> Option<Range<usize>> {
        self.items.iter().find(|item| item.0 == name).map(|item| item.1.clone())
    }

    /// The value of a member.
    pub(crate) fn take(&mut self, name: &str) -> Option<Range<usize>> {
        let at = self.items.iter().position(|item| item.0 == name)?;
        Some(self.items.swap_remove(at).1)
    }

    /// The members of the object that a member is.
    pub(crate) fn take_object(&mut self, name: &str) -> Read<Option<Members<'a>>> {
        let Some(piece) = self.take(name) else { return Ok(None) };
        Members::of_piece(self.line, &piece).map(Some).map_err(|error| error.within(name))
    }

    /// Checks that all members were taken: others are not known here.
    pub(crate) fn finish(self, of: &str) -> Read<()> {
        match self.items.first() {
            None => Ok(()),
            Some((name, _)) => Err(Refusal::new(format!("{name} is not a member of {of}"))),
        }
    }

    /// The string that a piece is.
    pub(crate) fn string(&self, piece: &Range<usize>) -> Read<Cow<'a, str>> {
        Ok(JsonReader::within(self.line, piece).string()?)
    }

    /// The bytes that a piece spells: `"0x00ff"`.
    pub(crate) fn hex(&self, piece: &Range<usize>) -> Read<Vec<u8>> {
        let mut bytes = Vec::new();
        let put = CqlType::Blob.put_json(&self.line[piece.clone()], &mut bytes);
        put.map_err(|error| Refusal::new(keys::in_words(error)))?;
        Ok(bytes)
    }

    /// The integer that a piece is.
    pub(crate) fn integer(&self, piece: &Range<usize>) -> Read<i64> {
        let text = &self.line[piece.clone()];
        text.parse().map_err(|_| Refusal::new(format!("{text} is not an integer of 64 bits")))
    }

    /// Whether a piece is a string.
    pub(crate) fn is_string(&self, piece: &Range<usize>) -> bool {
        self.line[piece.clone()].starts_with('"')
    }
}
