//! JSON, written as it comes: no tree, one buffer, two layouts.
//!
//! The layout of several lines is the one that `sstabledump` prints with Jackson: each entry on a line of
//! its own, unless objects or arrays are *inline* when its separator is written. That is a switch and no
//! property of the object: turned back while one is open, the rest of it goes on lines again.

use std::io::{self, Write};

use model::types::quote;

/// From this many bytes on, the buffer is worth writing out.
const FULL: usize = 64 << 10;

/// A new line, and two spaces for each of as many levels as are ever open here.
const NEW_LINE: &str = "\n                                ";

/// How entries are set apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// On lines of their own, indented by two spaces a level.
    Pretty,
    /// Not at all: everything is on one line.
    Line,
}

/// Writes JSON into a buffer that the caller drains from time to time.
///
/// The caller sees to it that keys stand in objects and nowhere else.
#[derive(Debug)]
pub struct JsonWriter {
    out: String,
    layout: Layout,
    /// How many objects and arrays are open, at most 64.
    depth: u32,
    /// Bit `i`: something was written in the one at depth `i`.
    filled: u64,
    after_key: bool,
    inline_objects: bool,
    inline_arrays: bool,
}

impl JsonWriter {
    /// An empty text.
    pub fn new(layout: Layout) -> JsonWriter {
        JsonWriter {
            out: String::with_capacity(FULL + FULL / 8),
            layout,
            depth: 0,
            filled: 0,
            after_key: false,
            inline_objects: false,
            inline_arrays: false,
        }
    }

    /// Whether the entries of objects stay on their line from here on.
    #[inline]
    pub fn inline_objects(&mut self, inline: bool) {
        self.inline_objects = inline;
    }

    /// Whether the items of arrays stay on their line from here on.
    #[inline]
    pub fn inline_arrays(&mut self, inline: bool) {
        self.inline_arrays = inline;
    }

    /// Opens an object.
    #[inline]
    pub fn begin_object(&mut self) {
        self.before_value();
        self.begin('{');
    }

    /// Closes the object.
    #[inline]
    pub fn end_object(&mut self) {
        self.end(self.inline_objects);
        self.out.push('}');
    }

    /// Opens an array.
    #[inline]
    pub fn begin_array(&mut self) {
        self.before_value();
        self.begin('[');
    }

    /// Closes the array.
    #[inline]
    pub fn end_array(&mut self) {
        self.end(self.inline_arrays);
        self.out.push(']');
    }

    /// The name of the next entry; it must need no escapes.
    #[inline(always)]
    pub fn key(&mut self, name: &str) {
        self.separate(self.inline_objects);
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str(if self.layout == Layout::Pretty { "\" : " } else { "\":" });
        self.after_key = true;
    }

    /// The name of the next entry, of any text.
    pub fn any_key(&mut self, name: &str) {
        self.separate(self.inline_objects);
        quote(name, &mut self.out);
        self.out.push_str(if self.layout == Layout::Pretty { " : " } else { ":" });
        self.after_key = true;
    }

    /// A string of any text.
    #[inline]
    pub fn string(&mut self, text: &str) {
        self.before_value();
        quote(text, &mut self.out);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: impl Into<i128>) {
        self.before_value();
        push_integer(number.into(), &mut self.out);
    }

    /// A number with a fraction; what is none is `null`.
    pub fn float(&mut self, number: f64) {
        let text = if number.is_finite() { number.to_string() } else { "null".to_owned() };
        self.literal(&text);
    }

    /// `true` or `false`.
    #[inline]
    pub fn boolean(&mut self, value: bool) {
        self.literal(if value { "true" } else { "false" });
    }

    /// `null`.
    pub fn null(&mut self) {
        self.literal("null");
    }

    /// JSON that is ready.
    #[inline]
    pub fn literal(&mut self, json: &str) {
        self.before_value();
        self.out.push_str(json);
    }

    /// JSON that is appended by whoever knows it.
    #[inline]
    pub fn append(&mut self, write: impl FnOnce(&mut String)) {
        self.before_value();
        write(&mut self.out);
    }

    /// JSON that is appended by whoever knows it, if it can be.
    #[inline]
    pub fn raw<T, E>(&mut self, write: impl FnOnce(&mut String) -> Result<T, E>) -> Result<T, E> {
        self.before_value();
        write(&mut self.out)
    }

    /// As if a value had been written here that somebody else writes.
    #[inline]
    pub fn skip_value(&mut self) {
        self.after_key = false;
        if let Some(depth) = self.depth.checked_sub(1) {
            self.filled |= 1 << depth;
        }
    }

    /// As if an object or array had been opened here that somebody else opens.
    #[inline]
    pub fn skip_begin(&mut self) {
        self.skip_value();
        self.filled &= !(1 << self.depth);
        self.depth += 1;
    }

    /// As if it had been closed.
    #[inline]
    pub fn skip_end(&mut self) {
        self.depth -= 1;
    }

    /// Takes the text out of the buffer.
    pub fn take(&mut self) -> String {
        std::mem::replace(&mut self.out, String::with_capacity(FULL))
    }

    /// Ends the line; nothing may be open.
    pub fn end_line(&mut self) {
        assert!(self.depth == 0, "a line ends behind a whole value");
        self.out.push('\n');
    }

    /// Writes the buffer out, if it is worth it.
    ///
    /// # Errors
    /// What writing says.
    #[inline]
    pub fn drain_if_full(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.out.len() < FULL { Ok(()) } else { self.drain(out) }
    }

    /// Writes the buffer out.
    ///
    /// # Errors
    /// What writing says.
    pub fn drain(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let written = out.write_all(self.out.as_bytes());
        self.out.clear();
        // One value may have been very long.
        self.out.shrink_to(4 * FULL);
        written
    }

    /// The text so far, for short ones that are never drained.
    pub fn into_text(self) -> String {
        self.out
    }

    #[inline]
    fn before_value(&mut self) {
        if self.after_key {
            self.after_key = false;
        } else if self.depth > 0 {
            self.separate(self.inline_arrays);
        }
    }

    #[inline]
    fn begin(&mut self, bracket: char) {
        assert!(self.depth < u64::BITS, "JSON is nested at most 64 deep");
        self.out.push(bracket);
        self.filled &= !(1 << self.depth);
        self.depth += 1;
    }

    #[inline]
    fn separate(&mut self, inline: bool) {
        let bit = 1 << (self.depth - 1);
        if self.filled & bit != 0 {
            self.out.push(',');
        }
        self.filled |= bit;
        self.indent(inline);
    }

    #[inline]
    fn end(&mut self, inline: bool) {
        self.depth -= 1;
        if self.filled & (1 << self.depth) == 0 {
            self.out.push_str(if self.layout == Layout::Pretty { " " } else { "" });
        } else {
            self.indent(inline);
        }
    }

    #[inline]
    fn indent(&mut self, inline: bool) {
        match (self.layout, inline) {
            (Layout::Line, _) => {}
            (Layout::Pretty, true) => self.out.push(' '),
            (Layout::Pretty, false) => {
                let len = 1 + 2 * self.depth as usize;
                self.out.push_str(&NEW_LINE[..len.min(NEW_LINE.len())]);
            }
        }
    }
}

/// Appends an integer's digits.
#[inline]
pub fn push_integer(number: i128, out: &mut String) {
    match u32::try_from(number) {
        Ok(small) => push_digits(small, 1, out),
        Err(_) => out.push_str(&number.to_string()),
    }
}

/// Appends a number's digits, at least `least` of them, at most ten.
#[inline]
pub(crate) fn push_digits(mut number: u32, least: usize, out: &mut String) {
    let mut digits = [b'0'; 10];
    let mut at = digits.len();
    while number > 0 || digits.len() - at < least {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.push_str(std::str::from_utf8(&digits[at..]).expect("digits are text"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(layout: Layout) -> String {
        let mut json = JsonWriter::new(layout);
        json.begin_array();
        json.begin_object();
        json.key("a");
        json.inline_arrays(true);
        json.begin_array();
        json.integer(1);
        json.string("x\"\n\u{1f}ü");
        json.end_array();
        json.inline_arrays(false);
        json.key("b");
        json.begin_object();
        json.end_object();
        json.end_object();
        json.boolean(true);
        json.end_array();
        json.end_line();
        json.into_text()
    }

    #[test]
    fn both_layouts_say_the_same() {
        let line = "[{\"a\":[1,\"x\\\"\\n\\u001Fü\"],\"b\":{}},true]\n";
        let pretty = "[\n  {\n    \"a\" : [ 1, \"x\\\"\\n\\u001Fü\" ],\n    \"b\" : { }\n  },\n  true\n]\n";
        assert_eq!(write(Layout::Line), line);
        assert_eq!(write(Layout::Pretty), pretty);
    }

    #[test]
    fn digits() {
        let mut out = String::new();
        for number in [0, 7, i128::from(u32::MAX), -3, i128::from(u64::MAX)] {
            push_integer(number, &mut out);
            out.push(' ');
        }
        push_digits(42, 6, &mut out);
        assert_eq!(out, "0 7 4294967295 -3 18446744073709551615 000042");
    }

    #[test]
    fn numbers_that_are_none_are_null() {
        let mut json = JsonWriter::new(Layout::Line);
        json.begin_array();
        [0.5, f64::NAN, -1.0].into_iter().for_each(|number| json.float(number));
        json.end_array();
        assert_eq!(json.into_text(), "[0.5,null,-1]");
    }
}
