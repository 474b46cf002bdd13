//! The BIG format's index: Index.db.

pub(crate) mod block_walk;
pub mod entry;
mod fenced;
pub mod promoted_cursor;
pub(crate) mod spool;
pub(crate) mod writer;
