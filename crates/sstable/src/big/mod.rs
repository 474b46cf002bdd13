//! The BIG format's index: Index.db.

pub mod entry;
pub mod promoted_cursor;
