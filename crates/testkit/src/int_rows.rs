//! Keys and deletions of tables of nothing but `int`s, as most tests need them.

use model::{Bytes, Clustering, DeletionTime, PartitionKey};

/// The partition of a number.
pub fn key(number: i32) -> PartitionKey {
    PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]))
}

/// The key of a row in its partition.
pub fn clustering(number: i32) -> Clustering {
    std::iter::once(&number.to_be_bytes()[..]).collect()
}

/// A deletion of what was written up to a time, in microseconds; it is old.
pub fn deletion(at: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
}
