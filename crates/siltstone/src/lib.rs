//! A wide-column database over the SSTables of Cassandra and ScyllaDB: library and command.
//!
//! Programs that want a database begin with [`database`], which is all that they need. What else the command `siltstone` does, a program can
//! do with the other modules; the command only reads its arguments and hands over its output. Their functions run on a shard, which
//! [`runtime::run`] starts: `examples/read_sstable.rs` is such a program. The crates whose types they take and give are here under their
//! own names: [`model`], [`runtime`], [`sstable`] and [`storage`].
//!
//! | module | idea |
//! |---|---|
//! | [`database`] | tables that are written and read, in one folder |
//! | [`paths`] | which SSTables a path names |
//! | [`keys`] | partition keys and clusterings as people write them |
//! | [`dump`], [`parallel_dump`] | all of an SSTable as JSON, by one thread or by several |
//! | [`read`] | a slice of a partition, of one SSTable or merged from several |
//! | [`info`], [`facts`] | what is known of an SSTable as a whole, as text and as JSON |
//! | [`index_list`] | its partitions, and the index blocks of one |
//! | [`convert`] | SSTables into another version of the format, several into one |
//! | [`mod@load`] | rows as JSON lines or CSV into a table |
//! | [`mod@write`] | lines of JSON into a new SSTable |
//! | [`split`] | one or several SSTables into several |
//! | [`verify`] | what a verification found, in words and as JSON |
//! | [`fragment_json`] | rows and tombstones as JSON, as `sstabledump` prints them |
//! | [`json`], [`instants`] | JSON and times, written quickly |
//! | [`json_reader`], `json_members` | JSON, read quickly, and the members of an object as they stand |
//! | `text_lines` | lines of text, and the mark that may stand in front |
//! | [`table_schema`] | what CQL or JSON says of a table |
//! | [`table_options`] | how a table wants its SSTables written |
//! | [`json_rows`] | the lines of a dump, read back |
//! | [`sorted_rows`] | rows in any order, put in order |
//! | [`error`] | what can go wrong |

pub mod convert;
pub mod database;
pub mod dump;
pub mod error;
pub mod facts;
pub mod fragment_json;
pub mod index_list;
pub mod info;
pub mod instants;
pub mod json;
mod json_members;
pub mod json_reader;
pub mod json_rows;
pub mod keys;
pub mod load;
pub mod parallel_dump;
pub mod paths;
pub mod read;
pub mod sorted_rows;
pub mod split;
pub mod table_options;
pub mod table_schema;
mod text_lines;
pub mod verify;
pub mod write;

use std::time::{SystemTime, UNIX_EPOCH};

pub use error::{Error, Result};
pub use runtime::allow_many_files;
pub use {model, runtime, sstable, storage};

/// The time by the machine's clock, in seconds since the epoch.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
