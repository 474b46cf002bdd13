//! The BIG format's index: Index.db.

pub(crate) mod block_walk;
mod bracket;
pub mod entry;
mod fenced;
mod front;
pub(crate) mod groups;
pub(crate) mod onward;
mod packed_blocks;
pub mod promoted_cursor;
pub(crate) mod ruler;
pub(crate) mod spool;
pub(crate) mod writer;

#[cfg(test)]
mod search_tests;
