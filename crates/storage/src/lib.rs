//! A table: rows written are durable, and reads see memtables, caches and every SSTable as one.
//!
//! | module | idea |
//! |---|---|
//! | [`error`] | what can go wrong |

pub mod error;

pub use error::{Error, Result};
