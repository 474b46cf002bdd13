//! The names of types, read: the grammar of Cassandra's `TypeParser`.
//!
//! ```text
//! type       = class [ "(" parameters ")" ]
//! class      = a word; without a dot in it, a class of Cassandra's own package
//! parameters = type, …                      ListType SetType MapType TupleType CompositeType FrozenType ReversedType
//!            | keyspace, hex, hex:type, …   UserType: keyspace, name, fields
//!            | type , number                VectorType
//!            | char=>type, …                DynamicCompositeType
//!            | class [":" type]             PartitionerDefinedOrder
//!            | hex:type, …                  ColumnToCollectionType
//!            | key [= value], …             the others; only `reversed` means something
//! ```
//!
//! Blanks may stand around everything, and commas are optional, as they are to Cassandra. Two things
//! are stricter: nothing may follow the type, and a name must not be nested too deep.

use super::names::PACKAGE;
use super::{CqlType, TypeError, UserType};
use crate::hex::parse_hex;

/// How deep types may nest. Deeper ones could exhaust the stack of whoever walks over them.
pub(super) const MAX_DEPTH: usize = 64;

impl CqlType {
    /// Reads Cassandra's name of a type. An empty name is `blob`, as it is to Cassandra.
    ///
    /// # Errors
    /// If it is none, or types nest more than 64 deep.
    pub fn parse(text: &str) -> Result<CqlType, TypeError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        parser.skip_blanks();
        if parser.peek().is_none() {
            return Ok(CqlType::Blob);
        }
        let parsed = parser.parse_type()?;
        parser.skip_blanks();
        match parser.peek() {
            None => Ok(parsed),
            Some(_) => Err(parser.error("the end of the name was expected")),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn parse_type(&mut self) -> Result<CqlType, TypeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("the types are nested too deep"));
        }
        self.skip_blanks();
        let start = self.at;
        let class = self.word();
        if class.is_empty() {
            return Err(self.error("the name of a class was expected"));
        }
        self.skip_blanks();
        let parsed = match short_name(class) {
            Some(short) => self.parse_known(short, start)?,
            None => self.parse_custom(start)?,
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn parse_known(&mut self, class: &str, start: usize) -> Result<CqlType, TypeError> {
        if let Some(native) = CqlType::native(class) {
            return Ok(if self.parse_reversed_flag()? {
                CqlType::Reversed(Box::new(native))
            } else {
                native
            });
        }
        match class {
            "FrozenType" => self.parse_types(class).map(|[inner]| inner.freeze()),
            "ReversedType" => self.parse_types(class).map(|[inner]| CqlType::Reversed(Box::new(inner))),
            "ListType" => self.parse_types(class).map(|[element]| CqlType::list(element, false)),
            "SetType" => self.parse_types(class).map(|[element]| CqlType::set(element, false)),
            "MapType" => self.parse_types(class).map(|[key, value]| CqlType::map(key, value, false)),
            "TupleType" => self.parse_list(Self::parse_type).map(CqlType::tuple),
            "CompositeType" => self.parse_list(Self::parse_type).map(CqlType::Composite),
            "UserType" => self.parse_user_type(),
            "VectorType" => self.parse_vector(),
            "DynamicCompositeType" => self.parse_list(Self::parse_alias).map(CqlType::DynamicComposite),
            "ColumnToCollectionType" => self.parse_list(Self::parse_column).map(CqlType::ColumnToCollection),
            "PartitionerDefinedOrder" => self.parse_partitioner(),
            _ => self.parse_custom(start),
        }
    }

    /// `key [= value], …`: whether `reversed` is among them, and not false.
    fn parse_reversed_flag(&mut self) -> Result<bool, TypeError> {
        let flags = self.parse_list(|parser| {
            let key = parser.word();
            if key.is_empty() {
                return Err(parser.error("a parameter was expected"));
            }
            parser.skip_blanks();
            let value = if parser.eat('=') {
                parser.skip_blanks();
                parser.word()
            } else {
                ""
            };
            Ok(key == "reversed" && (value.is_empty() || value == "true"))
        })?;
        Ok(flags.last().is_some_and(|flag| *flag))
    }

    /// Exactly `N` types in parentheses.
    fn parse_types<const N: usize>(&mut self, class: &str) -> Result<[CqlType; N], TypeError> {
        let types = self.parse_list(Self::parse_type)?;
        let found = types.len();
        types.try_into().map_err(|_| self.error(format!("{class} takes {N} parameters, here are {found}")))
    }

    fn parse_user_type(&mut self) -> Result<CqlType, TypeError> {
        self.expect('(')?;
        self.skip_blanks_and_comma();
        let keyspace = self.word().to_owned();
        self.skip_blanks_and_comma();
        let name = self.parse_hex_text()?;
        let mut fields = Vec::new();
        loop {
            self.skip_blanks_and_comma();
            if self.eat(')') {
                return Ok(CqlType::Udt(Box::new(UserType { keyspace, name, fields, frozen: false })));
            }
            let name = self.parse_hex_text()?;
            self.skip_blanks();
            self.expect(':')?;
            fields.push((name, self.parse_type()?));
        }
    }

    fn parse_vector(&mut self) -> Result<CqlType, TypeError> {
        self.expect('(')?;
        let element = Box::new(self.parse_type()?.freeze());
        if element.fixed_len() == Some(0) {
            return Err(self.error("the elements of a vector must have bytes"));
        }
        self.skip_blanks_and_comma();
        let dimension = self.word().parse::<i32>().ok().and_then(|n| u32::try_from(n).ok());
        let Some(dimension) = dimension.filter(|n| *n > 0) else {
            return Err(self.error("a positive dimension was expected"));
        };
        self.skip_blanks();
        self.expect(')')?;
        Ok(CqlType::Vector { element, dimension })
    }

    fn parse_alias(&mut self) -> Result<(u8, CqlType), TypeError> {
        let &[alias] = self.word().as_bytes() else {
            return Err(self.error("an alias of one character was expected"));
        };
        self.skip_blanks();
        self.expect('=')?;
        self.expect('>')?;
        Ok((alias, self.parse_type()?))
    }

    fn parse_column(&mut self) -> Result<(Vec<u8>, CqlType), TypeError> {
        let name = self.word();
        let name = parse_hex(name).ok_or_else(|| self.error(format!("'{name}' is not hexadecimal")))?;
        self.skip_blanks();
        self.expect(':')?;
        Ok((name, self.parse_type()?))
    }

    fn parse_partitioner(&mut self) -> Result<CqlType, TypeError> {
        if !self.eat('(') {
            return Ok(CqlType::PartitionerOrder { partitioner: String::new(), key: None });
        }
        self.skip_blanks();
        let partitioner = self.word().to_owned();
        self.skip_blanks();
        let key = if self.eat(':') { Some(Box::new(self.parse_type()?)) } else { None };
        self.skip_blanks();
        self.expect(')')?;
        Ok(CqlType::PartitionerOrder { partitioner, key })
    }

    /// A class that is not Cassandra's: kept as it is written, to the end of its parameters.
    fn parse_custom(&mut self, start: usize) -> Result<CqlType, TypeError> {
        let mut open = 0usize;
        while let Some(next) = self.peek() {
            match next {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                _ if open > 0 => {}
                _ => break,
            }
            self.at += next.len_utf8();
            if open == 0 {
                break;
            }
        }
        if open > 0 {
            return Err(self.error("')' was expected"));
        }
        Ok(CqlType::Custom(self.text[start..self.at].trim_end().to_owned()))
    }

    /// The items in parentheses; none where there are no parentheses.
    fn parse_list<T>(
        &mut self,
        mut parse_item: impl FnMut(&mut Self) -> Result<T, TypeError>,
    ) -> Result<Vec<T>, TypeError> {
        let mut items = Vec::new();
        if !self.eat('(') {
            return Ok(items);
        }
        loop {
            self.skip_blanks_and_comma();
            if self.eat(')') {
                return Ok(items);
            }
            items.push(parse_item(self)?);
        }
    }

    /// A word of hexadecimal digits that spell UTF-8 text.
    fn parse_hex_text(&mut self) -> Result<String, TypeError> {
        let word = self.word();
        let text = parse_hex(word).and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| self.error(format!("'{word}' is not the hexadecimal of a name")))
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-+._&".contains(c)));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn expect(&mut self, wanted: char) -> Result<(), TypeError> {
        if self.eat(wanted) { Ok(()) } else { Err(self.error(format!("'{wanted}' was expected"))) }
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n']).len();
    }

    fn skip_blanks_and_comma(&mut self) {
        self.skip_blanks();
        if self.eat(',') {
            self.skip_blanks();
        }
    }

    fn error(&self, what: impl Into<String>) -> TypeError {
        TypeError::Syntax { text: self.text.to_owned(), at: self.at, what: what.into() }
    }
}

/// The name of a class within Cassandra's own package; `None` if it is of another one.
fn short_name(class: &str) -> Option<&str> {
    match class.strip_prefix(PACKAGE) {
        Some(short) if !short.contains('.') => Some(short),
        _ if class.contains('.') => None,
        _ => Some(class),
    }
}
