//! What the data is: schema, types and their order, rows and the fragment stream.
//!
//! Nothing here does I/O, is async by itself, or is `unsafe`. A row points into the buffer it was
//! read from ([`Bytes`]); it is copied only when it leaves the shard or enters a cache.
//!
//! | module | idea |
//! |---|---|
//! | [`bytes`] | a piece of a shared buffer |
//! | [`types`] | CQL types: their names, order, JSON and text |
//! | [`schema`] | the columns of a table, as a file's header lists them |
//! | [`key`] | partition keys and their Murmur3 tokens |
//! | [`time`] | timestamps, deletions, expiry |
//! | [`clustering`] | positions between the rows of a partition, slices of it |
//! | [`row`] | rows and cells |
//! | [`fragment`] | the stream in which all readers speak, and its validator |
//! | [`flat`] | all of these as bytes: in a log, in a cache, on the way to another shard |
//! | [`hex`] | bytes as hexadecimal digits |
//! | [`merge`] | several streams as one |
//! | [`purge`] | what a compaction forgets of a stream |
//! | [`live`] | what a `SELECT` would return of a stream |
//! | [`select`] | a column's value from its live cells |
//! | [`mutation`] | what a write says of one partition |

pub mod bytes;
pub mod clustering;
pub mod flat;
pub mod fragment;
pub mod hex;
pub mod key;
pub mod live;
pub mod merge;
pub mod mutation;
pub mod purge;
pub mod row;
pub mod schema;
pub mod select;
pub mod time;
pub mod types;

pub use bytes::Bytes;
pub use clustering::{Clustering, Position, PositionBuf, PositionRef, Slice, Weight};
pub use fragment::{Fragment, FragmentReader, Next, PartitionStart, RangeTombstoneChange};
pub use key::{KeyView, PartitionKey, Token};
pub use live::LiveRows;
pub use merge::{Direction, Merge, UnifiedSchema};
pub use mutation::{Mutation, RangeTombstone};
pub use purge::{Purge, PurgeRules};
pub use row::{Cell, CellValue, Row};
pub use schema::{Column, Schema};
pub use time::{DeletionTime, Liveness};
pub use types::CqlType;
