//! CQL types: what a value's bytes mean, how they are ordered, named and printed.
//!
//! A [`CqlType`] is the type of a column, a key or an element, as the header of an SSTable names it. It
//! knows, for the bytes of one value, exactly what Cassandra 5.0 knows: their order, their JSON, their
//! text, and whether they are valid. Bytes are never trusted: a malformed value is an error or has some
//! place in the order, and is never a panic.
//!
//! | module | idea |
//! |---|---|
//! | `parse`, `names` | Cassandra's names of types, read and written |
//! | `parse_cql` | CQL's names of types, read |
//! | `compare`, `alike` | the order of values; types that differ in keyspaces only |
//! | `rank` | values as numbers, for a search that compares many with one |
//! | `validate` | which bytes are a value |
//! | `json`, `from_json` | JSON as `sstabledump` prints it, and back |
//! | `text`, `from_text` | the text of keys and cell paths, and back |
//! | `exact` | which values JSON and text tell to the byte |
//! | `parts`, `vint` | how the bytes of a composed value are cut |
//! | `counter` | counter contexts |
//! | `varint`, `decimal`, `float`, `duration`, `inet`, `uuid`, `date`, `composite` | one type each |
//! | `time_format` | a civil calendar and instants |
//! | `error` | what can be wrong with a name, bytes or a text |

mod alike;
mod compare;
mod composite;
pub mod counter;
mod date;
mod decimal;
mod duration;
mod error;
mod exact;
mod float;
mod from_json;
mod from_text;
mod inet;
mod json;
mod names;
mod parse;
mod parse_cql;
mod parts;
mod rank;
mod text;
mod time_format;
mod uuid;
mod validate;
mod varint;
pub(crate) mod vint;

pub use alike::all_alike;
pub use date::parse_instant;
pub use error::TypeError;
pub use json::quote;
pub use names::maybe_quote;
pub use parse_cql::FindUserType;
pub use rank::NumberOrder;
pub use time_format::{instant_micros, instant_seconds};

/// The type of a value.
///
/// Invariants:
/// 1. Elements of a collection, a tuple or a vector are frozen.
/// 2. Everything inside a frozen type is frozen.
/// 3. The dimension of a vector is positive.
///
/// [`CqlType::parse`] keeps them; so do [`CqlType::list`] and its neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    /// 7-bit text.
    Ascii,
    /// A signed 8-byte integer.
    BigInt,
    /// Any bytes.
    Blob,
    /// One byte: zero or not.
    Boolean,
    /// A counter context, see [`counter`].
    Counter,
    /// Days, as an unsigned 4-byte number with 1970-01-01 in the middle (`SimpleDateType`).
    Date,
    /// A 4-byte scale, then an unscaled varint.
    Decimal,
    /// An 8-byte IEEE 754 number.
    Double,
    /// Months, days and nanoseconds, each a signed vint.
    Duration,
    /// No bytes at all: the value of a set's cell.
    Empty,
    /// A 4-byte IEEE 754 number.
    Float,
    /// An IPv4 or IPv6 address.
    Inet,
    /// A signed 4-byte integer.
    Int,
    /// A signed 2-byte integer.
    SmallInt,
    /// UTF-8 text.
    Text,
    /// Nanoseconds of the day, 8 bytes.
    Time,
    /// Milliseconds since 1970, 8 bytes, signed.
    Timestamp,
    /// Milliseconds since 1970, ordered by unsigned bytes (the old `DateType`).
    LegacyTimestamp,
    /// A version 1 UUID, ordered by its time.
    TimeUuid,
    /// A signed byte.
    TinyInt,
    /// A UUID of any version.
    Uuid,
    /// A UUID ordered as two signed 8-byte numbers (`LexicalUUIDType`).
    LexicalUuid,
    /// A signed integer of any length (`IntegerType`).
    VarInt,
    /// A list; not frozen, its cells are under timeuuids.
    List {
        /// The type of the elements.
        element: Box<CqlType>,
        /// One cell for all of it.
        frozen: bool,
    },
    /// A set; not frozen, its elements are the paths of empty cells.
    Set {
        /// The type of the elements.
        element: Box<CqlType>,
        /// One cell for all of it.
        frozen: bool,
    },
    /// A map; not frozen, its keys are the paths of its cells.
    Map {
        /// The type of the keys.
        key: Box<CqlType>,
        /// The type of the values.
        value: Box<CqlType>,
        /// One cell for all of it.
        frozen: bool,
    },
    /// A tuple, always frozen.
    Tuple(Vec<CqlType>),
    /// A user defined type.
    Udt(Box<UserType>),
    /// A vector, always frozen.
    Vector {
        /// The type of the elements.
        element: Box<CqlType>,
        /// How many there are.
        dimension: u32,
    },
    /// The same values in descending order.
    Reversed(Box<CqlType>),
    /// Several values in one, as a compound partition key is.
    Composite(Vec<CqlType>),
    /// Several values in one, each naming its own type, maybe by a one-byte alias.
    DynamicComposite(Vec<(u8, CqlType)>),
    /// Keys in the order of the partitioner; its parameters as they were written.
    PartitionerOrder {
        /// The class of the partitioner; may be empty.
        partitioner: String,
        /// The type of the partition keys, where the name gives it.
        key: Option<Box<CqlType>>,
    },
    /// Column names to collection types, in tables of Cassandra 2.
    ColumnToCollection(Vec<(Vec<u8>, CqlType)>),
    /// A class that only its owner knows, with its parameters as they were written.
    Custom(String),
}

/// A user defined type: a tuple whose fields have names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    /// The keyspace that defines it.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Name and type of each field, in the order in which they are stored.
    pub fields: Vec<(String, CqlType)>,
    /// One cell for all of it.
    pub frozen: bool,
}

static TIME_UUID: CqlType = CqlType::TimeUuid;
static SMALL_INT: CqlType = CqlType::SmallInt;
static EMPTY: CqlType = CqlType::Empty;

impl CqlType {
    /// `list<element>`, or `frozen<list<element>>`.
    pub fn list(element: CqlType, frozen: bool) -> CqlType {
        CqlType::List { element: Box::new(element.freeze()), frozen }
    }

    /// `set<element>`, or `frozen<set<element>>`.
    pub fn set(element: CqlType, frozen: bool) -> CqlType {
        CqlType::Set { element: Box::new(element.freeze()), frozen }
    }

    /// `map<key, value>`, or `frozen<map<key, value>>`.
    pub fn map(key: CqlType, value: CqlType, frozen: bool) -> CqlType {
        CqlType::Map { key: Box::new(key.freeze()), value: Box::new(value.freeze()), frozen }
    }

    /// `tuple<…>`.
    pub fn tuple(fields: impl IntoIterator<Item = CqlType>) -> CqlType {
        CqlType::Tuple(fields.into_iter().map(CqlType::freeze).collect())
    }

    /// The same type in one cell: what `frozen<…>` makes of it.
    pub fn freeze(self) -> CqlType {
        match self {
            CqlType::List { element, .. } => CqlType::List { element, frozen: true },
            CqlType::Set { element, .. } => CqlType::Set { element, frozen: true },
            CqlType::Map { key, value, .. } => CqlType::Map { key, value, frozen: true },
            CqlType::Udt(mut udt) => {
                udt.frozen = true;
                udt.fields = udt.fields.into_iter().map(|(name, field)| (name, field.freeze())).collect();
                CqlType::Udt(udt)
            }
            other => other,
        }
    }

    /// The length that every value of this type has in an SSTable, where it is then written without its
    /// length; `None` where each value is preceded by its length.
    ///
    /// Many types whose values always have one length (`smallint`, `date`, `time`) are not among them.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            CqlType::Empty => Some(0),
            CqlType::Boolean => Some(1),
            CqlType::Int | CqlType::Float => Some(4),
            CqlType::BigInt | CqlType::Double | CqlType::Timestamp | CqlType::LegacyTimestamp => Some(8),
            CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid => Some(16),
            CqlType::Vector { element, dimension } => {
                element.fixed_len().and_then(|len| len.checked_mul(*dimension as usize))
            }
            CqlType::Reversed(base) => base.fixed_len(),
            _ => None,
        }
    }

    /// Whether a column of this type has a cell for each element or field.
    pub fn is_multi_cell(&self) -> bool {
        match self {
            CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => {
                !frozen
            }
            CqlType::Udt(udt) => !udt.frozen,
            _ => false,
        }
    }

    /// Whether this is `counter`.
    pub fn is_counter(&self) -> bool {
        matches!(self, CqlType::Counter)
    }

    /// Whether values are in descending order.
    pub fn is_reversed(&self) -> bool {
        matches!(self, CqlType::Reversed(_))
    }

    /// The type without [`CqlType::Reversed`] around it.
    pub fn unreversed(&self) -> &CqlType {
        match self {
            CqlType::Reversed(base) => base.unreversed(),
            other => other,
        }
    }

    /// The type of the paths of a multi-cell column's cells, which is also their order; `None` where the
    /// column has one cell.
    pub fn cell_path_type(&self) -> Option<&CqlType> {
        match self {
            CqlType::List { frozen: false, .. } => Some(&TIME_UUID),
            CqlType::Set { element, frozen: false } => Some(element),
            CqlType::Map { key, frozen: false, .. } => Some(key),
            CqlType::Udt(udt) if !udt.frozen => Some(&SMALL_INT),
            _ => None,
        }
    }

    /// The type of the value of the cell at `path`; of a column with one cell, the type itself.
    ///
    /// Only a multi-cell user type looks at the path. A field that it does not have is `None`.
    pub fn cell_value_type(&self, path: Option<&[u8]>) -> Option<&CqlType> {
        match self {
            CqlType::List { element, frozen: false } => Some(element),
            CqlType::Set { frozen: false, .. } => Some(&EMPTY),
            CqlType::Map { value, frozen: false, .. } => Some(value),
            CqlType::Udt(udt) if !udt.frozen => udt.field_at(path?).map(|(_, field)| field),
            other => Some(other),
        }
    }

    /// Whether `is` holds for the type or for one that it is made of.
    pub fn any(&self, is: &dyn Fn(&CqlType) -> bool) -> bool {
        if is(self) {
            return true;
        }
        match self {
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.any(is),
            CqlType::Map { key, value, .. } => key.any(is) || value.any(is),
            CqlType::Tuple(parts) | CqlType::Composite(parts) => parts.iter().any(|part| part.any(is)),
            CqlType::Udt(udt) => udt.fields.iter().any(|(_, field)| field.any(is)),
            CqlType::Reversed(base) => base.any(is),
            CqlType::DynamicComposite(parts) => parts.iter().any(|(_, part)| part.any(is)),
            CqlType::PartitionerOrder { key, .. } => key.as_ref().is_some_and(|key| key.any(is)),
            CqlType::ColumnToCollection(parts) => parts.iter().any(|(_, part)| part.any(is)),
            _ => false,
        }
    }

    /// Whether an empty value is a value of this type, and not only the absence of one.
    pub fn allows_empty(&self) -> bool {
        !matches!(
            self,
            CqlType::Date
                | CqlType::Duration
                | CqlType::Empty
                | CqlType::LegacyTimestamp
                | CqlType::SmallInt
                | CqlType::Time
                | CqlType::TinyInt
                | CqlType::List { .. }
                | CqlType::Set { .. }
                | CqlType::Map { .. }
                | CqlType::Vector { .. }
                | CqlType::Reversed(_)
                | CqlType::PartitionerOrder { .. }
                | CqlType::ColumnToCollection(_)
                | CqlType::Custom(_)
        )
    }
}

impl UserType {
    /// Name and type of the field whose cells are at `path`, its position as a `smallint`.
    pub fn field_at(&self, path: &[u8]) -> Option<&(String, CqlType)> {
        let position = u16::from_be_bytes(path.try_into().ok()?);
        self.fields.get(usize::from(position))
    }
}

#[cfg(test)]
mod tests;
