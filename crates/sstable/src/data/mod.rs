//! Data.db: the rows. Shared by every index format.

pub mod chunk;
pub mod reader;
pub mod row;
mod window;
