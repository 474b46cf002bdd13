//! What tests share: fixtures, dumps, counts of memory, and Cassandra itself. Never shipped.
//!
//! | module | idea |
//! |---|---|
//! | [`allocator`] | counting memory |
//! | [`cassandra`] | Cassandra, as Maven brings it: its tools, and a live node |
//! | [`command`] | commands that have to go well |
//! | [`fixtures`] | SSTables that other databases wrote |
//! | [`gather`] | streams to their ends |
//! | [`generate`] | random tables, and random writes to them |
//! | [`int_rows`] | keys of tables of numbers |
//! | [`json`] | what Cassandra's dumps and ours have in common |
//! | [`oracle`] | a table as plain as can be |
//! | [`selected`] | rows as a `SELECT` gives them |
//! | [`statements`] | random writes, as CQL and as mutations |

pub mod allocator;
pub mod cassandra;
pub mod command;
pub mod fixtures;
pub mod gather;
pub mod generate;
pub mod int_rows;
pub mod json;
pub mod oracle;
pub mod selected;
pub mod statements;

/// What is done with other programs ends with this; the error is a sentence for whoever asked.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
