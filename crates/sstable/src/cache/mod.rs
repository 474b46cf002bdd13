//! What is kept of an index between reads, all of it under the shard's one budget.

pub mod cached_file;
pub mod index_page;
pub mod partition_index_cache;
