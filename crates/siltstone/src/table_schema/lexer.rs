//! CQL cut into tokens, without comments.

use std::borrow::Cow;

use super::{Parsed, Wrong};

/// A piece of the text that means one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// As it is written.
    pub(super) text: &'a str,
    /// Bytes from the start of the text.
    pub(super) at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A name, a keyword or a number.
    Word,
    /// A name in double quotes.
    Quoted,
    /// Text in single quotes or between double dollar signs.
    Text,
    /// One character.
    Symbol,
}

impl<'a> Token<'a> {
    /// Whether it is this keyword, which is given in upper case, or this symbol.
    pub(super) fn is(&self, wanted: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Symbol) && self.text.eq_ignore_ascii_case(wanted)
    }

    /// The name that it is: in lower case where it has no quotes.
    pub(super) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word if !self.text.starts_with(|c: char| c.is_ascii_digit()) => {
                Some(self.text.to_ascii_lowercase())
            }
            Kind::Quoted => Some(self.inside('"').into_owned()),
            _ => None,
        }
    }

    /// What is in its quotes, or all of it where it has none.
    pub(super) fn content(&self) -> Cow<'a, str> {
        match self.kind {
            Kind::Text if self.text.starts_with('$') => Cow::Borrowed(&self.text[2..self.text.len() - 2]),
            Kind::Text => self.inside('\''),
            Kind::Quoted => self.inside('"'),
            Kind::Word | Kind::Symbol => Cow::Borrowed(self.text),
        }
    }

    /// Where it ends.
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    fn inside(&self, quote: char) -> Cow<'a, str> {
        let inside = &self.text[1..self.text.len() - 1];
        if inside.contains(quote) {
            return Cow::Owned(inside.replace(&format!("{quote}{quote}"), &quote.to_string()));
        }
        Cow::Borrowed(inside)
    }
}

/// All tokens of a text.
pub(super) fn tokens(text: &str) -> Parsed<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, len) = match next {
            _ if next.is_whitespace() => (None, next.len_utf8()),
            // A mark of byte order.
            '\u{feff}' if at == 0 => (None, next.len_utf8()),
            _ if rest.starts_with("--") || rest.starts_with("//") => {
                (None, rest.find('\n').unwrap_or(rest.len()))
            }
            _ if rest.starts_with("/*") => (None, closed(rest, 2, "*/", at, "a comment")?),
            _ if rest.starts_with("$$") => (Some(Kind::Text), closed(rest, 2, "$$", at, "a text")?),
            '\'' => (Some(Kind::Text), quoted(rest, '\'', at)?),
            '"' => (Some(Kind::Quoted), quoted(rest, '"', at)?),
            _ if is_word(next) => (Some(Kind::Word), word_len(rest)),
            _ => (Some(Kind::Symbol), next.len_utf8()),
        };
        tokens.extend(kind.map(|kind| Token { kind, text: &rest[..len], at }));
        at += len;
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Of a number, a point belongs to the word; of a name, it stands between two.
fn word_len(text: &str) -> usize {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    text.find(|c| !(is_word(c) || is_number && c == '.')).unwrap_or(text.len())
}

/// How long something is up to the end of `end`, which is looked for from `from` on.
fn closed(rest: &str, from: usize, end: &str, at: usize, what: &str) -> Parsed<usize> {
    match rest[from..].find(end) {
        Some(found) => Ok(from + found + end.len()),
        None => Err(Wrong::new(at, format!("{what} is not closed"))),
    }
}

/// How long something in quotes is, in which two quotes are one.
fn quoted(rest: &str, quote: char, at: usize) -> Parsed<usize> {
    let mut end = 1;
    loop {
        end += closed(&rest[end..], 0, quote.encode_utf8(&mut [0; 4]), at, "a text in quotes")?;
        if !rest[end..].starts_with(quote) {
            return Ok(end);
        }
        end += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_left_out() {
        let text = "USE -- all ; of it\n \"a\"\"b\" /* 'x\n */ 'it''s' // end\n0.01 $$;$$ a.b;";
        let all = tokens(text).unwrap();
        let texts: Vec<&str> = all.iter().map(|token| token.text).collect();
        assert_eq!(texts, ["USE", "\"a\"\"b\"", "'it''s'", "0.01", "$$;$$", "a", ".", "b", ";"]);
        assert_eq!(all[1].name().unwrap(), "a\"b");
        assert_eq!((all[2].content(), all[4].content()), ("it's".into(), ";".into()));
        assert_eq!(all[0].name().unwrap(), "use");
        assert_eq!(all[3].name(), None);
    }

    #[test]
    fn what_is_not_closed_is_named() {
        for (text, at) in [("a 'b", 2), ("/* a", 0), ("\"a\"\"", 0), (" $$a$", 1)] {
            assert_eq!(tokens(text).unwrap_err().at, at, "{text}");
        }
    }
}
