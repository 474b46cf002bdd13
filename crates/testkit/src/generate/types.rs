//! Random types, and literals of them.

use std::fmt;

use super::random::Random;

/// The types without parts, each with literals of its edges.
const SIMPLE: [(&str, &[&str]); 19] = [
    ("ascii", &["'a'", "'~ z'", "''"]),
    ("bigint", &["0", "-1", "9223372036854775807", "-9223372036854775808"]),
    ("blob", &["0x", "0x00", "0xff00ff"]),
    ("boolean", &["true", "false"]),
    ("date", &["'1970-01-01'", "'0001-01-01'", "'9999-12-31'"]),
    ("decimal", &["0", "1.50", "-1E+10", "123456789012345678901234567890.5"]),
    ("double", &["0.0", "-0.0", "NaN", "-Infinity", "1e-300"]),
    ("float", &["0.0", "-0.0", "NaN", "Infinity", "1e30"]),
    ("inet", &["'127.0.0.1'", "'::1'"]),
    ("int", &["0", "-1", "2147483647", "-2147483648"]),
    ("smallint", &["0", "-32768", "32767"]),
    ("text", &["''", "'a'", "'żółć €'", "'𝄞'"]),
    ("time", &["'00:00:00'", "'23:59:59.999999999'"]),
    ("timestamp", &["0", "-1", "253402300799999"]),
    ("timeuuid", &["00000000-0000-1000-8080-808080808080", "50554d6e-29bb-11e5-b345-feff819cdc9f"]),
    ("tinyint", &["0", "-128", "127"]),
    ("uuid", &["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"]),
    ("varint", &["0", "128", "-99999999999999999999999999"]),
    // The last one, as it has no order and can be no key.
    ("duration", &["0s", "-1d", "1y2mo3d4h5m6s7ms8us9ns"]),
];

/// How deep parts have parts.
const DEEPEST: usize = 2;

/// How long the longest texts and blobs are, in bytes; they span pages and chunks.
const LONGEST: usize = 20_000;

/// How long literals of keys are; all of a key have to fit into 64 KiB.
const LONGEST_KEY: usize = 2000;

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// One without parts.
    Simple(&'static str),
    /// A list.
    List(Box<Type>),
    /// A set.
    Set(Box<Type>),
    /// A map.
    Map(Box<Type>, Box<Type>),
    /// A tuple.
    Tuple(Vec<Type>),
    /// A vector of a length.
    Vector(Box<Type>, usize),
    /// A user type.
    User(UserType),
}

/// A type with names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserType {
    /// Its name.
    pub name: String,
    /// The types of its fields, which are called f0, f1, ….
    pub fields: Vec<Type>,
}

impl UserType {
    /// A type whose fields may be of other user types.
    pub fn random(random: &mut Random, number: usize, others: &[UserType]) -> UserType {
        let fields = (0..random.between(1, 4)).map(|_| Type::value(random, others, 1)).collect();
        UserType { name: format!("type{number}"), fields }
    }

    /// The statement that makes it.
    pub fn create(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().enumerate().map(|(number, of)| format!("f{number} {}", Frozen(of))).collect();
        format!("CREATE TYPE {}.{} ({})", super::KEYSPACE, self.name, fields.join(", "))
    }
}

impl Type {
    /// A type that values can have, at some depth. Vectors are few, as not all versions of the format have them.
    pub fn value(random: &mut Random, user: &[UserType], depth: usize) -> Type {
        if depth == 0 && random.percent(1) {
            let of = Type::Simple(SIMPLE[random.below(SIMPLE.len() - 1)].0);
            return Type::Vector(Box::new(of), random.between(1, 3));
        }
        Type::random(random, user, depth, SIMPLE.len())
    }

    /// A type that keys can have.
    pub fn key(random: &mut Random) -> Type {
        Type::random(random, &[], 1, SIMPLE.len() - 1)
    }

    fn random(random: &mut Random, user: &[UserType], depth: usize, simple: usize) -> Type {
        if depth >= DEEPEST || random.percent(60) {
            return Type::Simple(SIMPLE[random.below(simple)].0);
        }
        let part = |random: &mut Random, simple| Box::new(Type::random(random, user, depth + 1, simple));
        match random.below(if user.is_empty() { 4 } else { 6 }) {
            0 => Type::List(part(random, simple)),
            1 => Type::Set(part(random, SIMPLE.len() - 1)),
            2 => Type::Map(part(random, SIMPLE.len() - 1), part(random, simple)),
            3 => Type::Tuple((0..random.between(1, 3)).map(|_| *part(random, simple)).collect()),
            _ => Type::User(random.one_of(user).clone()),
        }
    }

    /// Whether a column of it can be changed by parts.
    pub fn has_cells(&self) -> bool {
        matches!(self, Type::List(_) | Type::Set(_) | Type::Map(..) | Type::User(_))
    }

    /// A literal.
    pub fn literal(&self, random: &mut Random) -> String {
        let list = |random: &mut Random, of: &Type, count: usize| {
            (0..count).map(|_| of.literal(random)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Type::Simple(name) => simple(name, random),
            Type::List(of) => {
                let count = random.below(4);
                format!("[{}]", list(random, of, count))
            }
            Type::Set(of) => {
                let count = random.below(4);
                format!("{{{}}}", list(random, of, count))
            }
            Type::Map(key, value) => {
                // Cassandra takes `{}` for a set in some places.
                let entries = (0..random.between(1, 3))
                    .map(|_| format!("{}: {}", key.literal(random), value.literal(random)))
                    .collect::<Vec<_>>();
                format!("{{{}}}", entries.join(", "))
            }
            Type::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.literal_or_null(random)).collect();
                format!("({})", parts.join(", "))
            }
            Type::Vector(of, len) => format!("[{}]", list(random, of, *len)),
            Type::User(user) => {
                let fields = user.fields.iter().enumerate();
                let fields: Vec<String> =
                    fields.map(|(number, of)| format!("f{number}: {}", of.literal_or_null(random))).collect();
                format!("{{{}}}", fields.join(", "))
            }
        }
    }

    /// A literal of few different ones, none of them empty.
    pub fn key_literal(&self, random: &mut Random) -> String {
        match self {
            Type::Simple("ascii" | "text") => format!("'key {}'", random.below(1000)),
            Type::Simple("blob") => format!("0x{:08x}", random.below(1000)),
            _ => self.short_literal(random),
        }
    }

    /// A literal that is no longer than a key may be.
    pub fn short_literal(&self, random: &mut Random) -> String {
        loop {
            let literal = self.literal(random);
            if literal.len() <= LONGEST_KEY {
                return literal;
            }
        }
    }

    fn literal_or_null(&self, random: &mut Random) -> String {
        if random.percent(10) { "null".to_owned() } else { self.literal(random) }
    }
}

fn simple(name: &str, random: &mut Random) -> String {
    let edges = SIMPLE.iter().find(|(other, _)| *other == name).map_or(&[][..], |(_, edges)| edges);
    if random.percent(30) {
        return (*random.one_of(edges)).to_owned();
    }
    let number = random.number();
    match name {
        "ascii" | "text" => format!("'{}'", "value ".repeat(length(random) / 6)),
        "blob" => format!("0x{}", format!("{number:016x}").repeat(length(random) / 8)),
        "bigint" => number.cast_signed().to_string(),
        "int" | "varint" => (number.cast_signed() >> 32).to_string(),
        "smallint" => (number.cast_signed() >> 48).to_string(),
        "tinyint" => (number.cast_signed() >> 56).to_string(),
        "decimal" | "double" | "float" => format!("{}.{}", number.cast_signed() >> 40, number % 100),
        "uuid" => format!("{:08x}-0000-4000-8000-{:012x}", number >> 32, number & 0xffff_ffff),
        "timeuuid" => format!("{:08x}-29bb-11e5-b345-{:012x}", number >> 32, number & 0xffff_ffff),
        "timestamp" => (number >> 24).to_string(),
        "inet" => format!("'10.0.{}.{}'", number % 256, (number >> 8) % 256),
        "time" => format!("'{:02}:{:02}:{:02}'", number % 24, (number >> 8) % 60, (number >> 16) % 60),
        "date" => format!("'{:04}-{:02}-01'", 1900 + number % 200, 1 + (number >> 8) % 12),
        "duration" => format!("{}mo{}d{}s", number % 20, (number >> 8) % 40, (number >> 16) % 4000),
        _ => (*random.one_of(edges)).to_owned(),
    }
}

/// Most are short.
fn length(random: &mut Random) -> usize {
    match random.below(100) {
        0 => random.below(LONGEST),
        1..10 => random.below(600),
        _ => random.below(40),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Simple(name) => f.write_str(name),
            Type::List(of) => write!(f, "list<{}>", Frozen(of)),
            Type::Set(of) => write!(f, "set<{}>", Frozen(of)),
            Type::Map(key, value) => write!(f, "map<{}, {}>", Frozen(key), Frozen(value)),
            Type::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| Frozen(part).to_string()).collect();
                write!(f, "tuple<{}>", parts.join(", "))
            }
            Type::Vector(of, len) => write!(f, "vector<{}, {len}>", Frozen(of)),
            Type::User(user) => f.write_str(&user.name),
        }
    }
}

/// A type whose parts are not changed one by one.
#[derive(Debug)]
pub struct Frozen<'a>(pub &'a Type);

impl fmt::Display for Frozen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Simple(_) | Type::Vector(..) | Type::Tuple(_) => self.0.fmt(f),
            of => write!(f, "frozen<{of}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_cql() {
        let int = || Box::new(Type::Simple("int"));
        let map = Type::Map(int(), Box::new(Type::List(int())));
        assert_eq!(map.to_string(), "map<int, frozen<list<int>>>");
        assert_eq!(Frozen(&map).to_string(), "frozen<map<int, frozen<list<int>>>>");
        let user = UserType { name: "type0".to_owned(), fields: vec![map] };
        assert_eq!(user.create(), "CREATE TYPE generated.type0 (f0 frozen<map<int, frozen<list<int>>>>)");
        let literal = Type::Tuple(vec![Type::User(user)]).literal(&mut Random::new(3));
        assert!(literal == "(null)" || literal.starts_with("({f0: "), "{literal}");
    }
}
