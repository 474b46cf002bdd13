//! RowFilter.db: which rows large partitions have, so that one that is not there costs no request to the data.
//!
//! ```text
//! partition, row → fences: its ordinal, and the group of blocks → directory: the ribbon of that group
//!                → the slots of the row's hash, in one strip of it or two
//! ```
//!
//! A group is what begins within 4 KiB of the partition's blocks in Index.db, as the [fences](super::fences) have it. So a
//! row is looked for where the search for its block comes by anyhow, and rows that are near each other are in one page.
//!
//! | module | idea |
//! |---|---|
//! | `ribbon` | a filter of eight bits a row and little more |
//! | `builder` | all of it, from the hashes of rows in their order |
//! | `directory` | the end of the file: which strips each group has, and which SSTable they are of |
//! | `reader` | lookups |
//! | `absences` | whether looking is worth a request |
//! | `rebuild` | the same file for an SSTable that is there already, and what tells whether it is right |
//! | `file` | what is rebuilt becomes a file |
//!
//! Nobody else knows this component, and nothing is lost with it: where it is missing, damaged or of another SSTable, or
//! without fences, the block is read.

mod absences;
mod builder;
mod directory;
mod file;
mod reader;
mod rebuild;
mod ribbon;

use model::Schema;
use model::key::murmur3;

use super::sealed_page::ROOM;
use ribbon::STRIP;

pub use absences::Absences;
pub(crate) use builder::RowFilterBuilder;
pub(crate) use directory::is_of;
pub use file::write_row_filter;
pub(crate) use reader::RowFilter;
pub(crate) use rebuild::rebuild;

/// Strips of a page.
const STRIPS: u32 = ((ROOM - 4) / STRIP) as u32;
/// Where in a page its number is, behind the strips.
const NUMBER_AT: usize = STRIPS as usize * STRIP;

/// Whether the rows of a table can be told by the bytes of their clustering keys.
pub(crate) fn can_tell(schema: &Schema) -> bool {
    !schema.clustering.is_empty() && schema.clustering.iter().all(model::CqlType::is_equal_by_bytes)
}

/// The hash of a row, from its place as an index of blocks has it.
pub(crate) fn hash_of(place: &[u8]) -> [u64; 2] {
    murmur3(place)
}
