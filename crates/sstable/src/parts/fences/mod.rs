//! Fences.db: what a read would otherwise ask Index.db before it knows where to look.
//!
//! ```text
//! tokens   per 4 KiB of Index.db    the first token that begins there, where its entry is
//! places   per 4 KiB of the data    the first token that begins there, where its partition is; of each partition up to
//!                                   the next fence, two bytes of its token and where it begins
//! keys     per large partition      token, key, its ordinal, all that its entry in Index.db tells
//! groups   per 4 KiB of its blocks  ordinal, number and place of the first block that begins there, its first
//!                                   clustering prefix, the range tombstone that is open before it
//! ```
//!
//! A partition is large if its blocks take more than 4 KiB. The 4 KiB of the tokens are counted from the start of Index.db, those of the
//! places from the start of the uncompressed data, those of the groups from the partition's first block. A partition with blocks begins a
//! new place, and so does the one behind it.
//!
//! | module | idea |
//! |---|---|
//! | `page` | pages with a checksum, and the nodes in them |
//! | `tree` | static trees of nodes: built from their leaves up, descended from their root |
//! | `entries` | the entries of the four trees |
//! | `trailer` | the end of the file: where the trees are, and which SSTable they are of |
//! | `builder` | fences from the entries and blocks of Index.db, in their order |
//! | `rebuild` | the same for an SSTable that has none, and what tells whether they are right |
//! | `file` | what is rebuilt becomes a file |
//! | `reader` | lookups |
//! | `top`, `group_ranks` | the nodes above the leaves, as one list in memory, or as numbers |
//!
//! Cassandra and ScyllaDB do not know this component, and nothing is lost with it: if it is missing, damaged or of another SSTable, reads
//! do without it. Its bytes follow from Index.db and the binding, except for one bit, which says that no partition is deleted: if it is
//! rebuilt with that knowledge, the bytes are the same.

mod builder;
mod entries;
mod file;
mod group_ranks;
mod page;
mod reader;
mod rebuild;
mod top;
mod trailer;
mod tree;

pub use builder::FencesBuilder;
pub(crate) use builder::is_large;
pub(crate) use entries::{Group, Large, Near};
pub use file::write_fences;
pub(crate) use reader::{Fences, Fencing};
pub(crate) use rebuild::{Deletions, MOST_HEADS, rebuild};
pub(crate) use trailer::{is_of, is_undeleted};

/// Between two places are not more partitions than that, so that each node has several entries.
const MOST_SPOTS: usize = 300;

/// How many trees there are.
const TREES: usize = 4;

/// Of how many bytes of Index.db, or of the data, a fence tells the first.
pub(crate) const STRETCH: u64 = 4096;

/// What is longer, a key or a clustering prefix, has no place among the fences, so that each node has several
/// entries. Bytes.
pub(crate) const LONGEST: usize = 1000;

#[cfg(test)]
mod tests;
