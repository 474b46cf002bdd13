//! CSV: fields between commas, in quotes where they have commas, quotes or ends of lines in them.

use std::io::{self, BufRead, Read as _};

use crate::text_lines::without_mark;

/// A record of more bytes than this is none: a quote that nobody has closed would take in all that follows.
const LONGEST: usize = 128 << 20;

/// Reads records, one after the other.
pub(super) struct Reader<'a> {
    lines: &'a mut dyn BufRead,
    lines_read: u64,
    /// Where the record begins.
    line: u64,
    bytes: u64,
}

/// The fields of a record; `None` is one that is empty and has no quotes.
pub(super) type Record = Vec<Option<String>>;

/// What stands in front of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing of the field.
    Begin,
    /// A field without quotes, or what is behind its last quote.
    Outside,
    /// An open quote.
    Inside,
    /// A quote within quotes: its end, or the first half of one.
    Quote,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lines: &'a mut dyn BufRead) -> Reader<'a> {
        Reader { lines, lines_read: 0, line: 0, bytes: 0 }
    }

    /// The number of the first line of the record that was read last, or could not be read.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// How many bytes were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next record; `None` at the end. Lines without anything in them are passed over.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        let mut text = String::new();
        loop {
            self.line = self.lines_read + 1;
            if !self.read_line(&mut text)? {
                return Ok(None);
            }
            if self.line == 1 {
                // Excel writes a mark in front.
                text.drain(..text.len() - without_mark(&text).len());
            }
            let mut place = Place::Begin.behind(&text);
            // The field goes on in the next line.
            while place == Place::Inside {
                let end = text.len();
                if end > LONGEST || !self.read_line(&mut text)? {
                    return Err(io::Error::other("a field in quotes is not closed"));
                }
                place = place.behind(&text[end..]);
            }
            if !text.trim_ascii().is_empty() {
                return fields(text.trim_end_matches(['\n', '\r'])).map(Some);
            }
            text.clear();
        }
    }

    fn read_line(&mut self, text: &mut String) -> io::Result<bool> {
        let mut bytes = Vec::new();
        let lines: &mut dyn BufRead = self.lines;
        let len = lines.take(LONGEST as u64 + 1).read_until(b'\n', &mut bytes)?;
        if len > LONGEST {
            return Err(io::Error::other(format!("the line is longer than {LONGEST} bytes")));
        }
        let line = std::str::from_utf8(&bytes)
            .map_err(|error| io::Error::other(format!("it is not UTF-8: {error}")))?;
        text.push_str(line);
        self.bytes += len as u64;
        self.lines_read += u64::from(len > 0);
        Ok(len > 0)
    }
}

impl Place {
    /// The place behind some text: as [`fields`] takes it apart.
    fn behind(self, text: &str) -> Place {
        text.bytes().fold(self, |place, byte| match (place, byte) {
            (Place::Inside, b'"') => Place::Quote,
            (Place::Begin | Place::Quote, b'"') | (Place::Inside, _) => Place::Inside,
            (_, b',') => Place::Begin,
            _ => Place::Outside,
        })
    }
}

fn fields(mut rest: &str) -> io::Result<Record> {
    let mut record = Record::new();
    loop {
        let (field, tail) = match rest.strip_prefix('"') {
            Some(quoted) => take_quoted(quoted)?,
            None => {
                let (field, tail) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                ((!field.is_empty()).then(|| field.to_owned()), tail)
            }
        };
        record.push(field);
        match tail.strip_prefix(',') {
            Some(tail) => rest = tail,
            None => return Ok(record),
        }
    }
}

/// A field up to its last quote, behind which nothing may be but spaces, and what is behind those.
fn take_quoted(mut rest: &str) -> io::Result<(Option<String>, &str)> {
    let mut field = String::new();
    while let Some((inside, tail)) = rest.split_once('"') {
        field.push_str(inside);
        match tail.strip_prefix('"') {
            Some(tail) => {
                field.push('"');
                rest = tail;
            }
            None => {
                let (behind, tail) = tail.split_at(tail.find(',').unwrap_or(tail.len()));
                if !behind.trim_ascii().is_empty() {
                    return Err(io::Error::other(format!(
                        "there is {behind:?} behind the quotes of a field"
                    )));
                }
                return Ok((Some(field), tail));
            }
        }
    }
    field.push_str(rest);
    Ok((Some(field), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut text: &[u8]) -> io::Result<Vec<Record>> {
        let mut reader = Reader::new(&mut text);
        std::iter::from_fn(|| reader.next().transpose()).collect()
    }

    #[test]
    fn quotes_hold_what_commas_and_lines_end() {
        let some = |text: &str| Some(text.to_owned());
        let text = b"a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\n\n,\"\",2";
        let expected = [
            vec![some("a"), some("b"), some("c")],
            vec![some("1"), some("x, \"y\"\nz"), None],
            vec![None, some(""), some("2")],
        ];
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(
            read(b"7,5\" pipe\n8,a\"\"b").unwrap(),
            [vec![some("7"), some("5\" pipe")], vec![some("8"), some("a\"\"b")],]
        );
    }

    #[test]
    fn nothing_stands_behind_quotes() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(b"1,\"a\" ,\"b\"\n").unwrap(), [vec![some("1"), some("a"), some("b")]]);
        assert!(read(b"1,\"a\"b\n").unwrap_err().to_string().contains("\"b\" behind the quotes"));
    }

    #[test]
    fn a_quote_that_is_not_closed_is_told_where_it_is() {
        let mut text = &b"a\n\"b\"\n1,\"c\nd\n"[..];
        let mut reader = Reader::new(&mut text);
        assert!(reader.next().is_ok() && reader.next().is_ok());
        assert!(reader.next().is_err());
        assert_eq!(reader.line(), 3);
    }
}
