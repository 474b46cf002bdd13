//! What tests share: fixtures, dumps, counts of memory. Never shipped.
//!
//! | module | idea |
//! |---|---|
//! | [`allocator`] | counting memory |
//! | [`fixtures`] | SSTables that other databases wrote |
//! | [`json`] | what Cassandra's dumps and ours have in common |

pub mod allocator;
pub mod fixtures;
pub mod json;
