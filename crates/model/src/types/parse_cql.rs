//! The names that CQL gives types, read.
//!
//! ```text
//! type = native | name | keyspace.name | 'class'
//!      | list<type>   set<type>   map<type, type>   tuple<type, …>   vector<type, n>   frozen<type>
//! name = a word, in lower case whatever it is written in, or any text in double quotes
//! ```
//!
//! A name that is no native type is one of a user defined type, which the caller knows.

use super::parse::MAX_DEPTH;
use super::{CqlType, TypeError, UserType};

/// Finds a user defined type, not frozen, by its keyspace, where that is given, and its name.
pub type FindUserType<'a> = dyn Fn(Option<&str>, &str) -> Option<UserType> + 'a;

impl CqlType {
    /// Reads CQL's name of a type.
    ///
    /// # Errors
    /// If it is none, a user defined type is not known, or types nest more than 64 deep.
    pub fn parse_cql(text: &str, find: &FindUserType<'_>) -> Result<CqlType, TypeError> {
        let mut parser = Parser { text, at: 0, depth: 0, find };
        let parsed = parser.parse_type()?;
        parser.skip_blanks();
        match parser.peek() {
            None => Ok(parsed),
            Some(_) => Err(parser.error("the end of the type was expected")),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    find: &'a FindUserType<'a>,
}

/// A name as it was written.
enum Name {
    /// In lower case.
    Word(String),
    Quoted(String),
}

impl Parser<'_> {
    fn parse_type(&mut self) -> Result<CqlType, TypeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("the types are nested too deep"));
        }
        self.skip_blanks();
        let start = self.at;
        let parsed = match self.peek() {
            Some('\'') => self.parse_class()?,
            _ => match self.parse_name()? {
                Name::Word(word) if self.eat('<') => self.parse_parameters(&word, start)?,
                Name::Word(word) => match CqlType::native_of_cql(&word) {
                    Some(native) if !self.is_next('.') => native,
                    _ => self.parse_user_type(word, start)?,
                },
                Name::Quoted(name) => self.parse_user_type(name, start)?,
            },
        };
        self.depth -= 1;
        Ok(parsed)
    }

    /// The parameters of a type that has some, behind the bracket that opens them.
    fn parse_parameters(&mut self, word: &str, start: usize) -> Result<CqlType, TypeError> {
        let parsed = match word {
            "frozen" => self.parse_type()?.freeze(),
            "list" => CqlType::list(self.parse_type()?, false),
            "set" => CqlType::set(self.parse_type()?, false),
            "map" => {
                let key = self.parse_type()?;
                self.expect(',')?;
                CqlType::map(key, self.parse_type()?, false)
            }
            "tuple" => {
                let mut fields = vec![self.parse_type()?];
                while self.eat(',') {
                    fields.push(self.parse_type()?);
                }
                CqlType::tuple(fields)
            }
            "vector" => self.parse_vector()?,
            other => {
                self.at = start;
                return Err(self.error(format!("{other} is no type with parameters")));
            }
        };
        self.expect('>')?;
        Ok(parsed)
    }

    fn parse_vector(&mut self) -> Result<CqlType, TypeError> {
        let element = Box::new(self.parse_type()?.freeze());
        if element.fixed_len() == Some(0) {
            return Err(self.error("the elements of a vector must have bytes"));
        }
        self.expect(',')?;
        self.skip_blanks();
        let digits = self.take_while(|c| c.is_ascii_digit());
        let dimension = digits.parse::<i32>().ok().and_then(|n| u32::try_from(n).ok());
        match dimension.filter(|n| *n > 0) {
            Some(dimension) => Ok(CqlType::Vector { element, dimension }),
            None => Err(self.error("a positive dimension was expected")),
        }
    }

    /// Cassandra's name of a class in single quotes.
    fn parse_class(&mut self) -> Result<CqlType, TypeError> {
        let start = self.at + 1;
        let class = self.parse_quoted('\'')?;
        CqlType::parse(&class).map_err(|error| match error {
            TypeError::Syntax { at, what, .. } => {
                TypeError::Syntax { text: self.text.to_owned(), at: start + at, what }
            }
            other => other,
        })
    }

    fn parse_user_type(&mut self, first: String, start: usize) -> Result<CqlType, TypeError> {
        let (keyspace, name) = match self.eat('.') {
            true => {
                self.skip_blanks();
                match self.parse_name()? {
                    Name::Word(name) | Name::Quoted(name) => (Some(first), name),
                }
            }
            false => (None, first),
        };
        if let Some(found) = (self.find)(keyspace.as_deref(), &name) {
            return Ok(CqlType::Udt(Box::new(found)));
        }
        self.at = start;
        Err(self.error(format!("{name} is neither a type of CQL nor a user defined type that is known here")))
    }

    fn parse_name(&mut self) -> Result<Name, TypeError> {
        match self.peek() {
            Some('"') => self.parse_quoted('"').map(Name::Quoted),
            Some(c) if c.is_ascii_alphabetic() => {
                let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                Ok(Name::Word(word.to_ascii_lowercase()))
            }
            _ => Err(self.error("the name of a type was expected")),
        }
    }

    /// What is in quotes, of which two in a row are one.
    fn parse_quoted(&mut self, quote: char) -> Result<String, TypeError> {
        let start = self.at;
        let mut out = String::new();
        self.at += quote.len_utf8();
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            if next == quote {
                if self.peek() != Some(quote) {
                    return Ok(out);
                }
                self.at += quote.len_utf8();
            }
            out.push(next);
        }
        self.at = start;
        Err(self.error("the quotes are not closed"))
    }

    fn take_while(&mut self, take: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !take(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn expect(&mut self, wanted: char) -> Result<(), TypeError> {
        if self.eat(wanted) { Ok(()) } else { Err(self.error(format!("'{wanted}' was expected"))) }
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.is_next(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// Whether it comes next, behind blanks.
    fn is_next(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        self.peek() == Some(wanted)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_blanks(&mut self) {
        self.take_while(|c| c.is_ascii_whitespace());
    }

    fn error(&self, what: impl Into<String>) -> TypeError {
        TypeError::Syntax { text: self.text.to_owned(), at: self.at, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(keyspace: Option<&str>, name: &str) -> Option<UserType> {
        let fields = vec![("tags".to_owned(), CqlType::set(CqlType::Text, false))];
        let keyspace = keyspace.unwrap_or("ks").to_owned();
        let udt = UserType { keyspace, name: name.to_owned(), fields, frozen: false };
        (name.eq_ignore_ascii_case("addr")).then_some(udt)
    }

    fn parse(text: &str) -> CqlType {
        CqlType::parse_cql(text, &addr).unwrap()
    }

    fn error(text: &str) -> (usize, String) {
        match CqlType::parse_cql(text, &addr) {
            Err(TypeError::Syntax { at, what, .. }) => (at, what),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_name_that_is_written_is_read() {
        let named = [
            "int",
            "text",
            "timestamp",
            "counter",
            "duration",
            "vector<float, 3>",
            "map<text, frozen<addr>>",
            "frozen<list<int>>",
            "frozen<tuple<int, text>>",
            "addr",
            "frozen<addr>",
            "set<timeuuid>",
        ];
        for name in named {
            assert_eq!(parse(name).cql_name(), name);
        }
        assert_eq!(parse("VarChar"), CqlType::Text);
        assert_eq!(parse("timestamp"), CqlType::Timestamp);
        assert_eq!(parse(" Map < int , Text > "), CqlType::map(CqlType::Int, CqlType::Text, false));
        assert_eq!(parse("'org.apache.cassandra.db.marshal.DateType'"), CqlType::LegacyTimestamp);
        assert_eq!(parse("'com.example.Own(a=b)'"), CqlType::Custom("com.example.Own(a=b)".to_owned()));
    }

    #[test]
    fn user_types_have_a_keyspace() {
        let keyspace = |text: &str| match parse(text) {
            CqlType::Udt(udt) => (udt.keyspace, udt.name, udt.frozen),
            other => panic!("{other}"),
        };
        assert_eq!(keyspace("addr"), ("ks".into(), "addr".into(), false));
        assert_eq!(keyspace("frozen<Other . \"Addr\">"), ("other".into(), "Addr".into(), true));
    }

    #[test]
    fn what_is_frozen_is_frozen_inside() {
        let class = "org.apache.cassandra.db.marshal.FrozenType(org.apache.cassandra.db.marshal.ListType(\
                     org.apache.cassandra.db.marshal.SetType(org.apache.cassandra.db.marshal.UTF8Type)))";
        assert_eq!(parse("frozen<list<frozen<set<text>>>>").to_string(), class);
        assert_eq!(parse("frozen<list<set<text>>>").to_string(), class);
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(error("map<int>"), (7, "',' was expected".to_owned()));
        assert_eq!(error("list<int"), (8, "'>' was expected".to_owned()));
        assert_eq!(error("int int").0, 4);
        assert_eq!(error("list<home>").0, 5);
        assert_eq!(error("vector<int, 0>").1, "a positive dimension was expected");
        assert_eq!(error("'a.b(").1, "the quotes are not closed");
        assert_eq!(error("'a.b('").1, "')' was expected");
        assert_eq!(error("bag<int>"), (0, "bag is no type with parameters".to_owned()));
        assert!(error(&"list<".repeat(100)).1.contains("too deep"));
    }
}
