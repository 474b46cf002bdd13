//! BloomPages.db: the bloom filter of an SSTable in the order of tokens, in pages that are read when they are asked for.
//!
//! ```text
//! token → its page (first tokens, in memory) → its line of 64 bytes, by its place among the tokens of the page
//!                                              → its bits of the line, from the other half of the key's hash
//! ```
//!
//! Of Filter.db a lookup reads bytes from all over the file, so it has to be in memory as a whole. Here a lookup is one
//! line of the CPU's cache, keys that follow each other are in one page, and what is not asked for takes no memory.
//!
//! | module | idea |
//! |---|---|
//! | `span` | a token's place among others, as a number of equal parts |
//! | `line` | a bloom filter of 512 bits |
//! | `density` | how many keys share a line, and how many bits each sets |
//! | `page` | 63 lines, and which tokens they are for |
//! | `directory` | the end of the file: the first token of each page, and which SSTable they are of |
//! | `builder` | all of it, from the hashes of keys in their order |
//! | `hand` | the pages of a shard: in its cache, and a few before it |
//! | `reader` | lookups of one key |
//! | `sift` | lookups of many keys at once |
//!
//! Nobody else knows this component, and nothing is lost with it: where it is missing, damaged or of another SSTable,
//! reads go by Filter.db.

mod builder;
mod density;
mod directory;
mod hand;
mod line;
mod page;
mod reader;
mod sift;
mod span;

pub use builder::BloomPagesBuilder;
pub use hand::{FilterPages, Lookups};
pub use page::FilterPage;
pub use reader::{BloomPages, Probe};

#[cfg(test)]
mod tests;
