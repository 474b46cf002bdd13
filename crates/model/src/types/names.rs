//! The names of types: Cassandra's classes, as file headers spell them, and CQL's.
//!
//! ```text
//! org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.UTF8Type,…Int32Type)
//! map<text, int>
//! ```
//!
//! Inside a frozen type the class names no longer say `FrozenType`: it goes without saying.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write as _};

use super::{CqlType, UserType};
use crate::hex::to_hex;

/// The package of Cassandra's types, with the dot.
pub(super) const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Class, CQL name and type of those that take no parameters. A class that CQL has no name for is its own.
static NATIVE: [(&str, &str, CqlType); 23] = [
    ("AsciiType", "ascii", CqlType::Ascii),
    ("BooleanType", "boolean", CqlType::Boolean),
    ("BytesType", "blob", CqlType::Blob),
    ("ByteType", "tinyint", CqlType::TinyInt),
    ("CounterColumnType", "counter", CqlType::Counter),
    ("DateType", "timestamp", CqlType::LegacyTimestamp),
    ("DecimalType", "decimal", CqlType::Decimal),
    ("DoubleType", "double", CqlType::Double),
    ("DurationType", "duration", CqlType::Duration),
    ("EmptyType", "empty", CqlType::Empty),
    ("FloatType", "float", CqlType::Float),
    ("InetAddressType", "inet", CqlType::Inet),
    ("Int32Type", "int", CqlType::Int),
    ("IntegerType", "varint", CqlType::VarInt),
    ("LexicalUUIDType", "'org.apache.cassandra.db.marshal.LexicalUUIDType'", CqlType::LexicalUuid),
    ("LongType", "bigint", CqlType::BigInt),
    ("ShortType", "smallint", CqlType::SmallInt),
    ("SimpleDateType", "date", CqlType::Date),
    ("TimestampType", "timestamp", CqlType::Timestamp),
    ("TimeType", "time", CqlType::Time),
    ("TimeUUIDType", "timeuuid", CqlType::TimeUuid),
    ("UTF8Type", "text", CqlType::Text),
    ("UUIDType", "uuid", CqlType::Uuid),
];

/// Words that CQL reads as names only in quotes.
const RESERVED: &str = " add allow alter and apply asc authorize batch begin by columnfamily create delete desc \
    describe drop entries execute from full grant if in index infinity insert into is keyspace limit \
    materialized modify nan norecursive not null of on or order primary rename revoke schema select set table \
    to token truncate unlogged update use using view where with ";

impl CqlType {
    /// The name that CQL gives the type: `frozen<list<int>>`.
    pub fn cql_name(&self) -> String {
        let mut name = String::new();
        self.write_cql_name(&mut name);
        name
    }

    /// The type without parameters whose class, without its package, is `class`.
    pub(super) fn native(class: &str) -> Option<CqlType> {
        match class {
            "LegacyTimeUUIDType" => Some(CqlType::TimeUuid),
            _ => NATIVE.iter().find(|native| native.0 == class).map(|native| native.2.clone()),
        }
    }

    /// The type without parameters that CQL calls so; `timestamp` is the one that Cassandra makes today.
    pub(super) fn native_of_cql(name: &str) -> Option<CqlType> {
        match name {
            "varchar" => Some(CqlType::Text),
            "timestamp" => Some(CqlType::Timestamp),
            _ => NATIVE.iter().find(|native| native.1 == name).map(|native| native.2.clone()),
        }
    }

    /// What messages call the type: its CQL name without parameters.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            CqlType::Ascii => "ascii",
            CqlType::BigInt => "bigint",
            CqlType::Blob => "blob",
            CqlType::Boolean => "boolean",
            CqlType::Counter => "counter",
            CqlType::Date => "date",
            CqlType::Decimal => "decimal",
            CqlType::Double => "double",
            CqlType::Duration => "duration",
            CqlType::Empty => "empty",
            CqlType::Float => "float",
            CqlType::Inet => "inet",
            CqlType::Int => "int",
            CqlType::SmallInt => "smallint",
            CqlType::Text => "text",
            CqlType::Time => "time",
            CqlType::Timestamp | CqlType::LegacyTimestamp => "timestamp",
            CqlType::TimeUuid => "timeuuid",
            CqlType::TinyInt => "tinyint",
            CqlType::Uuid => "uuid",
            CqlType::LexicalUuid => "lexical uuid",
            CqlType::VarInt => "varint",
            CqlType::List { .. } => "list",
            CqlType::Set { .. } => "set",
            CqlType::Map { .. } => "map",
            CqlType::Tuple(_) => "tuple",
            CqlType::Udt(_) => "user defined type",
            CqlType::Vector { .. } => "vector",
            CqlType::Composite(_) => "composite",
            CqlType::DynamicComposite(_) => "dynamic composite",
            CqlType::PartitionerOrder { .. } | CqlType::ColumnToCollection(_) | CqlType::Custom(_) => {
                "custom type"
            }
            CqlType::Reversed(base) => base.kind(),
        }
    }

    /// Class and CQL name of a type without parameters.
    fn native_names(&self) -> Option<(&'static str, &'static str)> {
        NATIVE.iter().find(|native| native.2 == *self).map(|native| (native.0, native.1))
    }

    fn write_cql_name(&self, out: &mut String) {
        match self {
            CqlType::List { element, frozen } => write_cql("list", &[element], *frozen, out),
            CqlType::Set { element, frozen } => write_cql("set", &[element], *frozen, out),
            CqlType::Map { key, value, frozen } => write_cql("map", &[key, value], *frozen, out),
            CqlType::Tuple(fields) => write_cql("tuple", &fields.iter().collect::<Vec<_>>(), true, out),
            CqlType::Udt(udt) if udt.frozen => {
                out.push_str("frozen<");
                out.push_str(&maybe_quote(&udt.name));
                out.push('>');
            }
            CqlType::Udt(udt) => out.push_str(&maybe_quote(&udt.name)),
            CqlType::Vector { element, dimension } => {
                out.push_str("vector<");
                element.write_cql_name(out);
                out.push_str(&format!(", {dimension}>"));
            }
            CqlType::Reversed(base) => base.write_cql_name(out),
            other => match other.native_names() {
                Some((_, name)) => out.push_str(name),
                None => out.push_str(&format!("'{other}'")),
            },
        }
    }

    /// The class name; in a type that is already frozen, `frozen_around` keeps it from being said again.
    fn write_class(&self, frozen_around: bool, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CqlType::List { element, frozen } => write_frozen("ListType", *frozen, frozen_around, f, |f| {
                element.write_class(*frozen || frozen_around, f)
            }),
            CqlType::Set { element, frozen } => write_frozen("SetType", *frozen, frozen_around, f, |f| {
                element.write_class(*frozen || frozen_around, f)
            }),
            CqlType::Map { key, value, frozen } => write_frozen("MapType", *frozen, frozen_around, f, |f| {
                key.write_class(*frozen || frozen_around, f)?;
                f.write_char(',')?;
                value.write_class(*frozen || frozen_around, f)
            }),
            CqlType::Udt(udt) => write_frozen("UserType", udt.frozen, frozen_around, f, |f| {
                udt.write_parameters(frozen_around, f)
            }),
            CqlType::Vector { element, dimension } => {
                write!(f, "{PACKAGE}VectorType(")?;
                element.write_class(frozen_around, f)?;
                write!(f, " , {dimension})")
            }
            CqlType::Tuple(fields) => write_list("TupleType", fields, true, f),
            CqlType::Composite(parts) => write_list("CompositeType", parts, false, f),
            CqlType::Reversed(base) => write!(f, "{PACKAGE}ReversedType({base})"),
            other => other.write_odd_class(f),
        }
    }

    /// The class names of natives and of what only old tables have.
    fn write_odd_class(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CqlType::DynamicComposite(aliases) => {
                let aliases = aliases.iter().map(|(alias, kind)| format!("{}=>{kind}", char::from(*alias)));
                write!(f, "{PACKAGE}DynamicCompositeType({})", aliases.collect::<Vec<_>>().join(","))
            }
            CqlType::PartitionerOrder { partitioner, key: None } => {
                write!(f, "{PACKAGE}PartitionerDefinedOrder({partitioner})")
            }
            CqlType::PartitionerOrder { partitioner, key: Some(key) } => {
                write!(f, "{PACKAGE}PartitionerDefinedOrder({partitioner}:{key})")
            }
            CqlType::ColumnToCollection(columns) => {
                let columns = columns.iter().map(|(name, kind)| format!("{}:{kind}", to_hex(name)));
                write!(f, "{PACKAGE}ColumnToCollectionType({})", columns.collect::<Vec<_>>().join(","))
            }
            CqlType::Custom(class) => f.write_str(class),
            native => match native.native_names() {
                Some((class, _)) => write!(f, "{PACKAGE}{class}"),
                None => Ok(()),
            },
        }
    }
}

/// Cassandra's name of the type, as headers of SSTables spell it; [`CqlType::parse`] reads it back.
impl Display for CqlType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_class(false, f)
    }
}

impl UserType {
    fn write_parameters(&self, frozen_around: bool, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.keyspace, to_hex(self.name.as_bytes()))?;
        for (name, field) in &self.fields {
            write!(f, ",{}:", to_hex(name.as_bytes()))?;
            field.write_class(self.frozen || frozen_around, f)?;
        }
        Ok(())
    }
}

/// `name` as CQL writes it: in quotes, unless it is a plain lower-case word that is not reserved.
pub fn maybe_quote(name: &str) -> Cow<'_, str> {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain && !RESERVED.contains(&format!(" {name} ")) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
}

fn write_cql(name: &str, parameters: &[&CqlType], frozen: bool, out: &mut String) {
    out.push_str(if frozen { "frozen<" } else { "" });
    out.push_str(name);
    for (i, parameter) in parameters.iter().enumerate() {
        out.push_str(if i == 0 { "<" } else { ", " });
        parameter.write_cql_name(out);
    }
    out.push_str(if parameters.is_empty() { "<>" } else { ">" });
    out.push_str(if frozen { ">" } else { "" });
}

fn write_frozen(
    class: &str,
    frozen: bool,
    frozen_around: bool,
    f: &mut Formatter<'_>,
    parameters: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let say = frozen && !frozen_around;
    if say {
        write!(f, "{PACKAGE}FrozenType(")?;
    }
    write!(f, "{PACKAGE}{class}(")?;
    parameters(f)?;
    f.write_str(if say { "))" } else { ")" })
}

fn write_list(class: &str, parts: &[CqlType], frozen_around: bool, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{PACKAGE}{class}(")?;
    for (i, part) in parts.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { "," })?;
        part.write_class(frozen_around, f)?;
    }
    f.write_char(')')
}
