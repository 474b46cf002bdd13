//! A small partition that is kept whole: it is found in the cache by its token, and no directory tells of it.
//!
//! ```text
//! 4 bytes            where the numbers begin
//! 4 bytes            the length of the key
//! 1 byte             0 no SSTable has the partition, 1 it is there, 2 there is a deletion of it
//! [16 bytes]         that one's timestamp, and when it was written
//! key
//! fragments and their numbers, as a `Stretch` has them
//! ```
//!
//! Whole is what has no static columns and no range tombstones, and is not too large for one part. What a row of it takes
//! beside its bytes is then little: decision 0038 has the figures.

use std::rc::Rc;

use model::{Bytes, DeletionTime, Direction, PartitionKey};
use smallvec::SmallVec;

use super::stretch::{Draft, Stretch};

/// What the cache has of a partition.
pub(super) type Whole = Vec<u8>;

/// Bytes in front of the key, without a deletion.
const HEAD: usize = 9;

/// Where it is told whether the partition is there.
const STATE: usize = 8;

/// Bytes of a deletion.
const DELETION: usize = 16;

/// What the third number of the head says.
const ABSENT: u8 = 0;
const LIVE: u8 = 1;
const DELETED: u8 = 2;

/// The fragments of a draft, which came in this direction, as all that there is of a partition. Leaves the draft empty.
///
/// # Panics
/// If there are range tombstones.
pub(super) fn of_partition(
    key: &PartitionKey,
    head: Option<DeletionTime>,
    draft: &mut Draft,
    direction: Direction,
) -> Rc<Whole> {
    assert!(!draft.has_changes(), "what has range tombstones is not kept whole");
    let mut before = SmallVec::<[u8; 64]>::new();
    before.extend_from_slice(&[0; 4]);
    before.extend_from_slice(&(key.bytes.len() as u32).to_le_bytes());
    match head {
        None => before.push(ABSENT),
        Some(DeletionTime::LIVE) => before.push(LIVE),
        Some(deletion) => {
            before.push(DELETED);
            before.extend_from_slice(&deletion.marked_for_delete_at.to_le_bytes());
            before.extend_from_slice(&deletion.local_deletion_time.to_le_bytes());
        }
    }
    before.extend_from_slice(&key.bytes);
    let (mut bytes, numbers_at) = draft.seal(&before, direction);
    bytes[..4].copy_from_slice(&numbers_at.to_le_bytes());
    Rc::new(bytes)
}

/// Whether this is the partition with this key: another may have its token.
pub(super) fn is_of(whole: &Whole, key: &[u8]) -> bool {
    key_of(whole) == key
}

/// The key of the partition.
pub(super) fn key_of(whole: &Whole) -> &[u8] {
    let start = if whole[STATE] == DELETED { HEAD + DELETION } else { HEAD };
    &whole[start..][..u32::from_le_bytes(number(whole, 4)) as usize]
}

/// All that there is of it.
pub(super) fn stretch_of(whole: &Rc<Whole>) -> Stretch {
    Stretch {
        head: head_of(whole),
        open: DeletionTime::LIVE,
        has_changes: false,
        bytes: Bytes::new(whole, 0..whole.len()),
        numbers_at: u32::from_le_bytes(number(whole, 0)),
    }
}

/// The deletion of the partition; `None` if no SSTable has the partition.
fn head_of(whole: &Whole) -> Option<DeletionTime> {
    match whole[STATE] {
        ABSENT => None,
        LIVE => Some(DeletionTime::LIVE),
        _ => Some(DeletionTime {
            marked_for_delete_at: i64::from_le_bytes(number(whole, HEAD)),
            local_deletion_time: i64::from_le_bytes(number(whole, HEAD + 8)),
        }),
    }
}

/// Bytes of memory that it takes.
pub(super) fn weight(whole: &Rc<Whole>) -> usize {
    // It is counted by two numbers in front of it, and an allocator notes the lengths of both pieces.
    4 * size_of::<usize>() + size_of::<Whole>() + whole.capacity()
}

fn number<const LENGTH: usize>(whole: &Whole, at: usize) -> [u8; LENGTH] {
    whole[at..at + LENGTH].try_into().expect("the slice has the length")
}

#[cfg(test)]
mod tests {
    use model::{Clustering, CqlType, Fragment, Row, Schema, Slice};

    use super::*;

    fn row(at: u8) -> Fragment {
        Fragment::Row(Row::new(std::iter::once(vec![at]).collect::<Clustering>()))
    }

    #[test]
    fn a_partition_is_told_as_it_was_kept() {
        let key = PartitionKey::new(Bytes::from(b"silt".to_vec()));
        let schema = Schema::new(CqlType::Blob, vec![CqlType::Blob], Vec::new(), Vec::new());
        let deletion = DeletionTime { marked_for_delete_at: -7, local_deletion_time: 1 << 33 };
        for head in [None, Some(DeletionTime::LIVE), Some(deletion)] {
            for rows in [0, 1, 5_u8] {
                let mut draft = Draft::default();
                (0..rows).rev().for_each(|at| draft.push(&row(at)));
                let whole = of_partition(&key, head, &mut draft, Direction::Reverse);
                assert_eq!((head_of(&whole), key_of(&whole)), (head, &b"silt"[..]));
                assert!(is_of(&whole, b"silt") && !is_of(&whole, b"stone") && !is_of(&whole, b"sil"));
                assert_eq!(whole.capacity(), whole.len(), "nothing is wasted");
                let mut view = stretch_of(&whole).view(&Slice::all(), &schema, Direction::Forward);
                let next = || {
                    let mut place = Fragment::default();
                    view.next(&mut place).then_some(place)
                };
                assert_eq!(
                    std::iter::from_fn(next).collect::<Vec<_>>(),
                    (0..rows).map(row).collect::<Vec<_>>()
                );
            }
        }
    }
}
