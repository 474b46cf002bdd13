//! A table: rows written are durable, and reads see memtables, caches and every SSTable as one.
//!
//! | module | idea |
//! |---|---|
//! | [`definition`] | what a table is |
//! | [`table`] | a table of one shard: where every write and read begins |
//! | [`memtable`] | what has been written and is in no SSTable yet |
//! | [`sstable_set`] | the SSTables of a table at one moment |
//! | [`source`] | memtables and SSTables behind one face |
//! | [`single_key`] | single rows, newest SSTable first |
//! | [`admission`] | who may read now |
//! | [`cover`] | whether what was read hides all that is unread |
//! | [`error`] | what can go wrong |

pub mod admission;
pub mod cover;
pub mod definition;
pub mod error;
pub mod memtable;
pub mod single_key;
pub mod source;
pub mod sstable_set;
pub mod table;

pub use definition::Definition;
pub use error::{Error, Result};
pub use table::{Context, Generations, ReadRequest, Table};
