//! BloomRows.db: which rows large partitions have, so that one that is not there costs no request to the data.
//!
//! ```text
//! partition, row → fences: its ordinal, and the group of blocks → directory: the lines of that group, in memory
//!                → one of them by the first half of the row's hash → its bits of the line, from the other half
//! ```
//!
//! A group is what begins within 4 KiB of the partition's blocks in Index.db, as the [fences](super::fences) have it. So a
//! row is looked for where the search for its block comes by anyhow, and rows that are near each other are in one page.
//!
//! | module | idea |
//! |---|---|
//! | `builder` | all of it, from the hashes of rows in their order |
//! | `directory` | the end of the file: which lines each group has, and which SSTable they are of |
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

use model::Schema;
use model::key::murmur3;

use super::bloom_pages::LINE;
use super::sealed_page::ROOM;

pub(crate) use absences::Absences;
pub(crate) use builder::BloomRowsBuilder;
pub(crate) use directory::is_of;
pub use file::write_bloom_rows;
pub(crate) use reader::BloomRows;
pub(crate) use rebuild::rebuild;

/// Bits that a row sets.
const HASHES: u8 = 6;
/// As many rows share ten lines in the mean: then one of a hundred others passes.
const ROWS_OF_TEN_LINES: usize = 517;
/// Lines of a page.
const LINES: u32 = (ROOM / LINE) as u32;
/// Where in a page its number is, behind the lines.
const NUMBER_AT: usize = LINES as usize * LINE;

/// Whether the rows of a table can be told by the bytes of their clustering keys.
pub(crate) fn can_tell(schema: &Schema) -> bool {
    !schema.clustering.is_empty() && schema.clustering.iter().all(model::CqlType::is_equal_by_bytes)
}

/// The hash of a row, from its place as an index of blocks has it.
pub(crate) fn hash_of(place: &[u8]) -> [u64; 2] {
    murmur3(place)
}

/// Which of so many lines a row's bits are in.
fn line_of(hash: [u64; 2], lines: u32) -> u32 {
    ((u128::from(hash[0]) * u128::from(lines)) >> 64) as u32
}
