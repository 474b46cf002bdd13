//! A lexer that knows just enough of Rust to tell code, comments and literals apart.
//!
//! ```text
//! text       let s = "a{"; // why
//! code       let s = "  ";
//! comments                 // why
//! ```
//! Both have the length and the line breaks of the text, so that an offset means the same in all three.

use std::ops::Range;

/// A text with parts of it blanked out.
#[derive(Debug, PartialEq, Eq)]
pub struct Masked {
    /// Without comments, and without what is inside of string and character literals.
    pub code: String,
    /// Without anything but comments.
    pub comments: String,
}

impl Masked {
    /// Masks a Rust text. Text that does not lex is masked up to its end.
    pub fn new(text: &str) -> Masked {
        let (comments, literals) = Lexer { bytes: text.as_bytes(), at: 0 }.parts();
        let code = blanked(text, comments.iter().chain(&literals));
        let mut code_parts = Vec::new();
        let mut last = 0;
        for comment in &comments {
            code_parts.push(last..comment.start);
            last = comment.end;
        }
        code_parts.push(last..text.len());
        Masked { code, comments: blanked(text, code_parts.iter()) }
    }
}

fn blanked<'a>(text: &str, ranges: impl Iterator<Item = &'a Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        bytes[range.clone()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(bytes).expect("whole characters are blanked")
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    /// Where the comments and the insides of the literals are.
    fn parts(mut self) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        let (mut comments, mut literals) = (Vec::new(), Vec::new());
        while self.at < self.bytes.len() {
            if self.sees(b"//") || self.sees(b"/*") {
                comments.push(self.comment());
            } else if let Some(literal) = self.literal() {
                literals.push(literal);
            } else if is_word(self.bytes[self.at]) {
                // A word as a whole, so that no prefix of a literal is seen in its middle.
                self.skip_while(is_word);
            } else {
                self.at += 1;
            }
        }
        (comments, literals)
    }

    fn sees(&self, what: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(what)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| wanted(*byte)) {
            self.at += 1;
        }
    }

    fn comment(&mut self) -> Range<usize> {
        let start = self.at;
        if self.sees(b"//") {
            self.skip_while(|byte| byte != b'\n');
            return start..self.at;
        }
        let mut depth = 0;
        while self.at < self.bytes.len() {
            let step = if self.sees(b"/*") {
                depth += 1;
                2
            } else if self.sees(b"*/") {
                depth -= 1;
                2
            } else {
                1
            };
            self.at += step;
            if depth == 0 {
                break;
            }
        }
        start..self.at
    }

    /// The inside of a literal that begins here.
    fn literal(&mut self) -> Option<Range<usize>> {
        let rest = &self.bytes[self.at..];
        let prefix = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let (is_raw, is_prefix) = match &rest[..prefix] {
            b"r" | b"br" | b"cr" => (true, true),
            b"" | b"b" | b"c" => (false, true),
            _ => (false, false),
        };
        let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
        match rest.get(prefix + hashes) {
            Some(b'"') if is_raw => Some(self.raw_string(prefix + hashes + 1, hashes)),
            Some(b'"') if is_prefix && hashes == 0 => Some(self.quoted(prefix + 1, b'"')),
            Some(b'\'') if is_prefix && hashes == 0 && is_character(&rest[prefix + 1..]) => {
                Some(self.quoted(prefix + 1, b'\''))
            }
            _ => None,
        }
    }

    fn raw_string(&mut self, opening: usize, hashes: usize) -> Range<usize> {
        let start = self.at + opening;
        let closing = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
        let found = self.bytes[start..].windows(closing.len()).position(|window| window == closing);
        let end = found.map_or(self.bytes.len(), |len| start + len);
        self.at = (end + closing.len()).min(self.bytes.len());
        start..end
    }

    fn quoted(&mut self, opening: usize, quote: u8) -> Range<usize> {
        self.at += opening;
        let start = self.at;
        while self.at < self.bytes.len() && self.bytes[self.at] != quote {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        let end = self.at.min(self.bytes.len());
        self.at = end + 1;
        start..end
    }
}

/// Whether a quote before this begins a character, not a lifetime.
fn is_character(rest: &[u8]) -> bool {
    let len = match rest.first() {
        Some(b'\\') => return true,
        Some(byte) => byte.leading_ones().max(1) as usize,
        None => return false,
    };
    rest.get(len) == Some(&b'\'')
}

/// Whether this is a byte of a name or a number.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where a word stands in a text, by itself and not within a longer one.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let after = bytes.get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The end of the group of brackets that begins at `open`, after its closing bracket.
pub fn group_end(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Masked::new(text).code
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(code("a /* b /* c */ d */ e // f\ng"), "a                   e     \ng");
        assert_eq!(code(r#"x("a\"}", b"{", 'c', '\'')"#), r#"x("    ", b" ", ' ', '  ')"#);
        assert_eq!(code("'é' 'a: loop"), "'  ' 'a: loop");
        assert_eq!(code("r#\"a\"b\"# \"}\" br\"\\\" r#type"), "r#\"   \"# \" \" br\" \" r#type");
        assert_eq!(code("\"// no comment\" 1"), "\"             \" 1");
        assert_eq!(code("fn f<'a>(s: &'a str) -> char { 'x' }"), "fn f<'a>(s: &'a str) -> char { ' ' }");
        assert_eq!(code("number\"x\""), "number\" \"");
    }

    #[test]
    fn comments_stay_alone() {
        assert_eq!(Masked::new("a \"//\" // b\nc").comments, "       // b\n ");
    }

    #[test]
    fn unfinished_texts_end() {
        for text in ["\"a", "'\\", "/* a", "r#\"a", "\"\\", "b'"] {
            assert_eq!(code(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("fn fns _fn fn(", "fn").collect::<Vec<_>>(), [0, 11]);
        assert_eq!(group_end("a { (b) } c", 2), 9);
        assert_eq!(group_end("{ (", 0), 3);
    }
}
