//! What tests share: fixtures, generators, golden texts. Never shipped.
//!
//! | module | idea |
//! |---|---|
//! | [`fixtures`] | SSTables that other databases wrote |
//! | [`json`] | what Cassandra's dumps and ours have in common |

pub mod fixtures;
pub mod json;
