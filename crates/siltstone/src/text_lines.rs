//! Lines of text, none longer than memory has room for, and the mark that may stand in front.

use std::io::{self, BufRead, Read as _};

/// No line is longer, in bytes: what is read of one is in memory as a whole.
pub(crate) const LONGEST_LINE: u64 = 512 << 20;

/// The mark of byte order, which some programs put in front of UTF-8.
const MARK: &str = "\u{feff}";

/// Reads a line into the buffer, in the place of what was there, with what ends it; how many bytes, 0 at the end of the input. One of more than
/// [`LONGEST_LINE`] bytes is too long, and not there as a whole.
///
/// # Errors
/// What the input says.
pub(crate) fn read_line(input: &mut dyn BufRead, buffer: &mut Vec<u8>) -> io::Result<u64> {
    buffer.clear();
    let len = input.take(LONGEST_LINE + 1).read_until(b'\n', buffer)?;
    Ok(len as u64)
}

/// That a line is longer than [`LONGEST_LINE`], in words.
pub(crate) fn too_long() -> String {
    format!("it is longer than {LONGEST_LINE} bytes")
}

/// The text without a mark of byte order in front.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}
