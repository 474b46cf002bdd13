//! Scylla.db, as a file has it that is written for ScyllaDB: what can be trusted in it. It is not read here.
//!
//! ```text
//! u32 count of parts, then each: u32 kind, u32 length in bytes, its bytes
//! features, kind 2               u64, a bit for each
//! ```
//!
//! ScyllaDB reads a row's shadowable deletion only where the file tells that it may have some, and takes what a file does not tell for one of those
//! mistakes that its own writers made once.

use crate::encode::Encode;

/// The name of the component.
pub const SCYLLA: &str = "Scylla.db";

/// The kind of the part that has the features.
const FEATURES: u32 = 2;

/// Prefixes of index blocks, and of range tombstones, have as many values as they should.
const WHOLE_PREFIXES: u64 = 0x01 | 0x02;
/// A row may have a shadowable deletion besides another one.
const SHADOWABLE_DELETIONS: u64 = 0x04;
/// Static columns of tables with compact storage stand where they should.
const COMPACT_STATICS: u64 = 0x08;
/// So do counters without shards.
const EMPTY_COUNTERS: u64 = 0x10;
/// The header tells of user types within collections that they are frozen.
const FROZEN_USER_TYPES: u64 = 0x20;

/// The bytes of the component.
pub(crate) fn encode() -> Vec<u8> {
    let features =
        WHOLE_PREFIXES | SHADOWABLE_DELETIONS | COMPACT_STATICS | EMPTY_COUNTERS | FROZEN_USER_TYPES;
    let mut bytes = Vec::new();
    bytes.put_u32(1);
    bytes.put_u32(FEATURES);
    bytes.put_u32(size_of::<u64>() as u32);
    bytes.put_u64(features);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the first part of one that ScyllaDB has written, with one feature more.
    #[test]
    fn the_features_are_a_part_of_eight_bytes() {
        assert_eq!(encode(), [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0x3f]);
    }
}
