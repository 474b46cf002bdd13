//! The bytes of SSTables: the only crate that knows them.
//!
//! | module | idea |
//! |---|---|
//! | [`version`] | what each version of the format changes; versions are compared nowhere else |
//! | [`component`] | the files of an SSTable and their names |
//! | [`sstable`] | an open SSTable: where every read begins |
//! | `opener` | its components, each opened or read separately |
//! | [`parts`] | the small components, read whole or by pages |
//! | [`data`] | rows: chunks, the row codec, the reader |
//! | [`key_filter`] | which keys can be there |
//! | `key_summary` | where in the index to look for a key, if fences do not tell |
//! | [`index`] | from a key or slice to the exact range of data |
//! | [`big`] | the BIG format's index: entries, and the search in a large partition |
//! | [`cache`] | what is kept of an index between reads |
//! | [`reader`], [`reverse`] | a slice of a partition, in either direction |
//! | `pacing` | how much of the data a read asks for at first, and whether it has to know where the partition ends |
//! | [`forwarding`], [`ranges`] | slices of one partition, and ranges of partitions, that follow each other |
//! | [`rows`] | several rows of one partition at once |
//! | [`one_row`] | one row of a large partition, with one request |
//! | `seek` | a small partition, looked for in the data itself |
//! | `tokens` | the tokens of all partitions |
//! | [`verify`] | whether an SSTable is sound |
//! | [`writer`], `appending` | a new SSTable, from a stream of fragments; its files, appended to while the next bytes are made |
//! | [`decode`], [`encode`] | numbers and strings out of bytes, and into them |
//! | [`error`] | what can be wrong, with the file and the place in it |

mod appending;
pub mod big;
pub mod cache;
pub mod component;
pub mod data;
pub mod decode;
pub mod encode;
pub mod error;
pub mod forwarding;
pub mod index;
pub mod key_filter;
mod key_summary;
pub mod one_row;
mod opener;
mod pacing;
pub mod parts;
pub mod ranges;
pub mod reader;
pub mod reverse;
pub mod rows;
mod seek;
pub mod sstable;
mod tokens;
pub mod verify;
pub mod version;
pub mod writer;

pub use big::promoted_cursor::Search;
pub use data::read_ahead::SMALL_GAP;
pub use error::{Error, Result};
pub use forwarding::ForwardingReader;
pub use one_row::{OneRow, WayToRow};
pub use ranges::RangesReader;
pub use reader::PartitionReader;
pub use sstable::{OpenOptions, ReadOptions, SSTable};
pub use version::Version;
pub use writer::{SSTableWriter, WriteOptions};
