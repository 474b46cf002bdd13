//! CSV: fields between commas, in quotes where they have commas, quotes or ends of lines in them.

use std::io::{self, BufRead};

/// Reads records, one after the other.
pub(super) struct Reader<'a> {
    lines: &'a mut dyn BufRead,
    line: u64,
    bytes: u64,
}

/// The fields of a record; `None` is one that is empty and has no quotes.
pub(super) type Record = Vec<Option<String>>;

impl<'a> Reader<'a> {
    pub(super) fn new(lines: &'a mut dyn BufRead) -> Reader<'a> {
        Reader { lines, line: 0, bytes: 0 }
    }

    /// The number of the last line of the last record.
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
            if !self.read_line(&mut text)? {
                return Ok(None);
            }
            // An odd number of quotes: the record goes on in the next line.
            while text.matches('"').count() % 2 == 1 {
                if !self.read_line(&mut text)? {
                    return Err(io::Error::other("a field in quotes is not closed"));
                }
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(fields(text.trim_end_matches(['\n', '\r']))));
            }
            text.clear();
        }
    }

    fn read_line(&mut self, text: &mut String) -> io::Result<bool> {
        let len = self.lines.read_line(text)?;
        self.bytes += len as u64;
        self.line += u64::from(len > 0);
        Ok(len > 0)
    }
}

fn fields(mut rest: &str) -> Record {
    let mut record = Record::new();
    loop {
        let (field, tail) = match rest.strip_prefix('"') {
            Some(quoted) => take_quoted(quoted),
            None => {
                let (field, tail) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                ((!field.is_empty()).then(|| field.to_owned()), tail)
            }
        };
        record.push(field);
        match tail.strip_prefix(',') {
            Some(tail) => rest = tail,
            None => return record,
        }
    }
}

/// A field up to its last quote, and what is behind it up to the next comma as well.
fn take_quoted(mut rest: &str) -> (Option<String>, &str) {
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
                field.push_str(behind);
                return (Some(field), tail);
            }
        }
    }
    field.push_str(rest);
    (Some(field), "")
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
        assert!(read(b"a\n\"b").is_err());
    }
}
