//! A table: rows written are durable, and reads see memtables, caches and every SSTable as one.
//!
//! | module | idea |
//! |---|---|
//! | [`definition`] | what a table is |
//! | [`table`] | a table of one shard: where every read begins, and how it is flushed |
//! | [`memtable`] | what has been written and is in no SSTable yet |
//! | [`sstable_set`] | the SSTables of a table at one moment |
//! | [`source`] | memtables and SSTables behind one face |
//! | [`slices`], `scans` | what SSTables have of a slice of a partition, and of all partitions |
//! | `lanes`, `ends` | which SSTables follow each other |
//! | `batches`, `chain` | what follows each other as one stream, each opened when what is in front of it has been read |
//! | [`single_key`] | single rows, newest SSTable first |
//! | [`store`] | the tables of a shard, with their commit log: where every write begins |
//! | [`commit_log`] | what is written is durable before it is in an SSTable |
//! | [`rewrite`], `outside` | SSTables merged into new ones; what lies outside of them, as far as tombstones are to stay for it |
//! | [`compactor`], `apart` | compactions as they are run; what they leave, because its rows follow each other |
//! | [`compaction`] | which SSTables are merged next |
//! | [`shared`] | SSTables that several shards share, and how each gets its own part |
//! | [`transaction`] | SSTables take the place of others at once |
//! | [`row_cache`] | what all SSTables say of a partition, kept part by part |
//! | `sorted` | a sorted list of any length |
//! | [`admission`] | who may read now |
//! | [`cover`] | whether what was read hides all that is unread |
//! | [`error`] | what can go wrong |

pub mod admission;
mod apart;
mod batches;
mod chain;
pub mod commit_log;
pub mod compaction;
pub mod compactor;
pub mod cover;
pub mod definition;
mod ends;
pub mod error;
mod lanes;
pub mod memtable;
mod outside;
pub mod rewrite;
pub mod row_cache;
mod scans;
pub mod shared;
pub mod single_key;
pub mod slices;
mod sorted;
pub mod source;
pub mod sstable_set;
pub mod store;
pub mod table;
pub mod transaction;

pub use definition::Definition;
pub use error::{Error, Result};
pub use shared::Tokens;
pub use store::{Store, StoreOptions};
pub use table::{Begun, Caching, Context, Fetched, Generations, Part, ReadRequest, Table, Unread};
pub use transaction::{Committed, Transaction, TransactionKind, clean_up};
