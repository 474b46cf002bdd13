//! JSON, read as it comes: no tree, and nothing copied that needs no copy.
//!
//! A reader stands in a line of text. It walks objects and arrays member by member, and what the caller has no use
//! for yet it takes whole, as the piece of the line that it is. All offsets are those in the line.

use std::borrow::Cow;
use std::ops::Range;

/// What is not JSON, or not the JSON that was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonError {
    /// Bytes from the start of the line.
    pub at: usize,
    /// What was expected there.
    pub what: &'static str,
}

type Read<T> = std::result::Result<T, JsonError>;

/// How deep arrays and objects may nest within a value that is taken whole.
const MAX_DEPTH: usize = 64;

/// Reads JSON from a line.
#[derive(Clone, Debug)]
pub struct JsonReader<'a> {
    /// The line up to where reading ends.
    text: &'a str,
    at: usize,
}

impl<'a> JsonReader<'a> {
    /// At the start of the line.
    pub fn new(line: &'a str) -> JsonReader<'a> {
        JsonReader { text: line, at: 0 }
    }

    /// In the piece of the line that was taken whole.
    pub fn within(line: &'a str, piece: &Range<usize>) -> JsonReader<'a> {
        JsonReader { text: &line[..piece.end], at: piece.start }
    }

    /// Enters an object.
    ///
    /// # Errors
    /// If there is none.
    pub fn begin_object(&mut self) -> Read<()> {
        self.expect(b'{', "an object was expected")
    }

    /// Enters an array.
    ///
    /// # Errors
    /// If there is none.
    pub fn begin_array(&mut self) -> Read<()> {
        self.expect(b'[', "an array was expected")
    }

    /// The name of the object's next member, whose value is next to be read; `None` at the object's end.
    /// `is_first` is true before the first one.
    ///
    /// # Errors
    /// What is not JSON.
    pub fn member(&mut self, is_first: &mut bool) -> Read<Option<Cow<'a, str>>> {
        if self.is_end(b'}', is_first, "',' or '}' was expected")? {
            return Ok(None);
        }
        let name = self.string()?;
        self.expect(b':', "':' was expected")?;
        Ok(Some(name))
    }

    /// Whether the array has a next item, which is then next to be read. `is_first` is true before the first one.
    ///
    /// # Errors
    /// What is not JSON.
    pub fn item(&mut self, is_first: &mut bool) -> Read<bool> {
        Ok(!self.is_end(b']', is_first, "',' or ']' was expected")?)
    }

    /// A string.
    ///
    /// # Errors
    /// If there is none.
    pub fn string(&mut self) -> Read<Cow<'a, str>> {
        let piece = self.string_piece()?;
        let inside = &self.text[piece.start + 1..piece.end - 1];
        if !inside.contains('\\') {
            return Ok(Cow::Borrowed(inside));
        }
        let parsed = serde_json::from_str(&self.text[piece.clone()]);
        parsed.map(Cow::Owned).map_err(|_| JsonError { at: piece.start, what: "a string has a wrong escape" })
    }

    /// Takes any value, as the piece of the line that it is. What nests in it is looked at just so far that its end
    /// is found.
    ///
    /// # Errors
    /// What is not JSON.
    pub fn value(&mut self) -> Read<Range<usize>> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => return self.string_piece(),
            Some(b'{' | b'[') => self.skip_nested()?,
            Some(b'-' | b'0'..=b'9') => self.skip_number()?,
            Some(b't') => self.skip_word("true")?,
            Some(b'f') => self.skip_word("false")?,
            Some(b'n') => self.skip_word("null")?,
            _ => return Err(self.error("a value was expected")),
        }
        Ok(start..self.at)
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    /// If something does.
    pub fn end(&mut self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end was expected")),
        }
    }

    /// The byte that comes next, behind blanks.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn is_end(&mut self, end: u8, is_first: &mut bool, what: &'static str) -> Read<bool> {
        let is_first = std::mem::take(is_first);
        match self.peek() {
            Some(next) if next == end => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(false)
            }
            Some(_) if is_first => Ok(false),
            _ => Err(self.error(what)),
        }
    }

    fn expect(&mut self, wanted: u8, what: &'static str) -> Read<()> {
        if self.peek() != Some(wanted) {
            return Err(self.error(what));
        }
        self.at += 1;
        Ok(())
    }

    /// A string with its quotes.
    fn string_piece(&mut self) -> Read<Range<usize>> {
        self.expect(b'"', "a string was expected")?;
        let start = self.at - 1;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(b' '..) => self.at += 1,
                Some(_) => return Err(self.error("a control character stands in a string")),
                None => return Err(JsonError { at: start, what: "a string is not closed" }),
            }
        }
        self.at += 1;
        Ok(start..self.at)
    }

    fn skip_nested(&mut self) -> Read<()> {
        // Bit `i`: what is open at depth `i` is an object.
        let (mut depth, mut objects) = (0usize, 0u64);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string_piece()?;
                    continue;
                }
                Some(_) if depth == MAX_DEPTH => return Err(self.error("it is nested too deep")),
                Some(open @ (b'{' | b'[')) => {
                    objects = objects & !(1 << depth) | u64::from(open == b'{') << depth;
                    depth += 1;
                }
                Some(close @ (b'}' | b']')) => {
                    depth -= 1;
                    if (objects >> depth & 1 == 1) != (close == b'}') {
                        return Err(self.error("a bracket is closed by one of another kind"));
                    }
                }
                Some(_) => {}
                None => return Err(self.error("a bracket is not closed")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_number(&mut self) -> Read<()> {
        self.eat(b"-");
        if !self.eat(b"0") && self.skip_digits() == 0 {
            return Err(self.error("a digit was expected"));
        }
        if self.eat(b".") && self.skip_digits() == 0 {
            return Err(self.error("a digit was expected"));
        }
        if self.eat(b"eE") {
            self.eat(b"+-");
            if self.skip_digits() == 0 {
                return Err(self.error("a digit was expected"));
            }
        }
        match self.text.as_bytes().get(self.at) {
            Some(b'0'..=b'9') => Err(self.error("a number begins with a zero")),
            _ => Ok(()),
        }
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    fn eat(&mut self, any: &[u8]) -> bool {
        let found = self.text.as_bytes().get(self.at).is_some_and(|next| any.contains(next));
        self.at += usize::from(found);
        found
    }

    fn skip_word(&mut self, word: &'static str) -> Read<()> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("a value was expected"));
        }
        self.at += word.len();
        Ok(())
    }

    fn error(&self, what: &'static str) -> JsonError {
        JsonError { at: self.at.min(self.text.len()), what }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The value, taken apart and put together again.
    fn rebuild(reader: &mut JsonReader<'_>, line: &str) -> Read<Value> {
        let mut is_first = true;
        match reader.peek() {
            Some(b'{') => {
                reader.begin_object()?;
                let mut members = serde_json::Map::new();
                while let Some(name) = reader.member(&mut is_first)? {
                    members.insert(name.into_owned(), rebuild(reader, line)?);
                }
                Ok(members.into())
            }
            Some(b'[') => {
                reader.begin_array()?;
                let mut items = Vec::new();
                while reader.item(&mut is_first)? {
                    items.push(rebuild(reader, line)?);
                }
                Ok(items.into())
            }
            Some(b'"') => Ok(reader.string()?.into()),
            _ => {
                let piece = reader.value()?;
                let error = JsonError { at: piece.start, what: "it is no value" };
                serde_json::from_str(&line[piece]).map_err(|_| error)
            }
        }
    }

    fn read(line: &str) -> Read<Value> {
        let mut reader = JsonReader::new(line);
        let value = rebuild(&mut reader, line)?;
        reader.end()?;
        Ok(value)
    }

    const LINES: [&str; 7] = [
        r#"{"a":[1,-2.5e+3,0,0.1,"x\"\\\u00fcż"],"b":{},"c":[],"d":null,"e":[true,false]}"#,
        " { \"a\" : [ 1 , 2 ] , \"b\\n\" : { \"c\" : \"\" } } ",
        "7",
        "\"\"",
        "[[[]],{}]",
        "-0",
        r#"{"position":18,"clustering":[1,"a"],"cells":[{"name":"v","value":[{"k": [1, "]"]}]}]}"#,
    ];

    #[test]
    fn lines_are_read_as_serde_reads_them() {
        for line in LINES {
            assert_eq!(read(line), Ok(serde_json::from_str(line).unwrap()), "{line}");
            let mut reader = JsonReader::new(line);
            let piece = reader.value().unwrap();
            assert_eq!(&line[piece], line.trim());
        }
    }

    #[test]
    fn what_serde_refuses_is_refused() {
        for line in LINES {
            for (at, _) in line.char_indices() {
                for put in ["", "}", "]", ",", "\"", "x", "0", "-", ":", "{"] {
                    let next = at + line[at..].chars().next().map_or(0, char::len_utf8);
                    let changed = format!("{}{put}{}", &line[..at], &line[next..]);
                    let expected = serde_json::from_str::<Value>(&changed).ok();
                    assert_eq!(read(&changed).ok(), expected, "{changed}");
                }
            }
        }
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(read("{\"a\" 1}"), Err(JsonError { at: 5, what: "':' was expected" }));
        assert_eq!(read("[1,]").unwrap_err().at, 3);
        assert_eq!(JsonReader::new("[1}").value().unwrap_err().at, 2);
        assert_eq!(JsonReader::new(&"[".repeat(100)).value().unwrap_err().what, "it is nested too deep");
    }
}
