//! The BIG format's index: Index.db.

pub(crate) mod block_walk;
mod bracket;
pub mod entry;
mod fenced;
pub(crate) mod onward;
mod packed_blocks;
pub mod promoted_cursor;
mod ruler;
pub(crate) mod spool;
pub(crate) mod writer;

#[cfg(test)]
mod search_tests;
