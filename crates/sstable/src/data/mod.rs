//! Data.db: the rows. Shared by every index format.

pub mod chunk;
pub(crate) mod guess;
pub(crate) mod one_row;
pub(crate) mod pack;
mod packing;
pub(crate) mod passed;
pub(crate) mod read_ahead;
pub mod reader;
pub mod row;
pub(crate) mod sums;
pub(crate) mod usual_rows;
pub(crate) mod walk;
mod window;
pub(crate) mod writer;
