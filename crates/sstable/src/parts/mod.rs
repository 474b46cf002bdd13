//! The small components of an SSTable: most are read whole, checked, and kept in memory; those of our own are read by pages.
//!
//! | module | component | answers |
//! |---|---|---|
//! | [`filter`] | Filter.db | can this key be here? |
//! | [`summary`] | Summary.db | where in Index.db to look for it |
//! | [`compression_info`], `chunk_pages` | CompressionInfo.db | where a chunk of Data.db stands: all of them, or by pages |
//! | [`statistics`] | Statistics.db | what the columns are, and what is in the file as a whole |
//! | [`crc`], [`crc_pages`] | CRC.db | the checksums of an uncompressed Data.db: all of them, or by pages |
//! | [`digest`] | Digest.crc32 | the checksum of Data.db as a whole |
//! | [`fences`] | Fences.db | where to look in Index.db; read by pages |
//! | [`bloom_pages`] | BloomPages.db | can this key be here? Read by pages |
//! | [`row_filter`] | RowFilter.db | can this row be in a large partition? Read by pages |
//! | [`scylla`] | Scylla.db | for ScyllaDB: what can be trusted in the file; written, not read |
//! | [`binding`] | | which SSTable a component of our own is of |
//! | [`usage`] | | whether such a component is used, and why not |
//! | `beside` | | how one is written for an SSTable that is there already |
//! | `sealed_page` | | pages that end with their checksum, and how a file of them ends |
//!
//! A parser is a pure function over bytes that are at hand. It never panics, whatever the bytes are,
//! and reserves no more memory than a small multiple of their length.
//!
//! What is written comes from a builder that is shown partitions, chunks or bytes as they go by, and is
//! then encoded, by a pure function as well: byte by byte what Cassandra writes.

pub(crate) mod beside;
pub mod binding;
pub mod bloom_pages;
pub(crate) mod chunk_pages;
pub mod compression_info;
pub mod crc;
pub mod crc_pages;
pub mod digest;
pub mod fences;
pub mod filter;
pub mod row_filter;
pub mod scylla;
pub(crate) mod sealed_page;
pub mod statistics;
pub mod summary;
pub mod usage;

#[cfg(test)]
pub(crate) mod samples;
