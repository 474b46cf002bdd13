//! Counter contexts merged, shard by shard.
//!
//! | shards of one id | what stays |
//! |---|---|
//! | global and any other kind | the global one |
//! | local and remote | the local one |
//! | two local | their sum: clocks and counts |
//! | two global, two remote | the later clock; of equal ones the greater count |
//!
//! How a context is written, [`crate::types::counter`] draws.

use std::cmp::Ordering;
use std::iter::Peekable;

use crate::Bytes;
use crate::types::counter::{CounterContext, Shard, ShardKind};

/// What the merge of two contexts is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Merged {
    /// The left one has all that the right one has.
    Left,
    /// The right one has all that the left one has.
    Right,
    /// Neither has all of it.
    New(Bytes),
}

/// Merges two counter contexts; `None` where one of them is malformed.
pub fn merge(left: &[u8], right: &[u8]) -> Option<Merged> {
    let (left, right) = (CounterContext::parse(left).ok()?, CounterContext::parse(right).ok()?);
    let (mut left_has_all, mut right_has_all) = (true, true);
    for pair in pairs(&left, &right) {
        let outcome = pair.outcome();
        left_has_all &= matches!(outcome, Outcome::Left | Outcome::Either);
        right_has_all &= matches!(outcome, Outcome::Right | Outcome::Either);
    }
    match (left_has_all, right_has_all) {
        (true, _) => Some(Merged::Left),
        (false, true) => Some(Merged::Right),
        (false, false) => {
            let shards: Vec<Shard> = pairs(&left, &right).filter_map(Pair::merged).collect();
            encode(&shards).map(Merged::New)
        }
    }
}

/// Writes a context of these shards, which ascend by id; `None` where they are more than it can number.
pub fn encode(shards: &[Shard]) -> Option<Bytes> {
    i16::try_from(shards.len()).ok()?;
    let marked = shards.iter().filter(|shard| shard.kind != ShardKind::Remote).count();
    let mut context = Vec::with_capacity(2 + 2 * marked + size_of::<[u64; 4]>() * shards.len());
    context.extend_from_slice(&(marked as i16).to_be_bytes());
    for (index, shard) in (0i16..).zip(shards) {
        match shard.kind {
            ShardKind::Remote => {}
            ShardKind::Local => context.extend_from_slice(&index.to_be_bytes()),
            ShardKind::Global => context.extend_from_slice(&(index + i16::MIN).to_be_bytes()),
        }
    }
    for shard in shards {
        context.extend_from_slice(&shard.id);
        context.extend_from_slice(&shard.clock.to_be_bytes());
        context.extend_from_slice(&shard.count.to_be_bytes());
    }
    Some(Bytes::from(context))
}

/// Which of two shards stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Left,
    Right,
    /// They are the same.
    Either,
    Sum,
}

/// The shards of one id.
enum Pair {
    Left(Shard),
    Right(Shard),
    Both(Shard, Shard),
}

impl Pair {
    fn outcome(&self) -> Outcome {
        match self {
            Pair::Left(_) => Outcome::Left,
            Pair::Right(_) => Outcome::Right,
            Pair::Both(left, right) => outcome_of(left, right),
        }
    }

    fn merged(self) -> Option<Shard> {
        match (self.outcome(), self) {
            (_, Pair::Left(shard) | Pair::Right(shard)) => Some(shard),
            (Outcome::Sum, Pair::Both(left, right)) => Some(sum(left, right)),
            (Outcome::Right, Pair::Both(_, right)) => Some(right),
            (Outcome::Left | Outcome::Either, Pair::Both(left, _)) => Some(left),
        }
    }
}

fn outcome_of(left: &Shard, right: &Shard) -> Outcome {
    if (left.kind, right.kind) == (ShardKind::Local, ShardKind::Local) {
        return Outcome::Sum;
    }
    match precedence(left).cmp(&precedence(right)) {
        Ordering::Greater => Outcome::Left,
        Ordering::Less => Outcome::Right,
        Ordering::Equal => Outcome::Either,
    }
}

/// The shard of the greater one stays: by kind, clock and count.
///
/// Negative clocks of remote shards run downwards and are later than any other. Where Cassandra lets the
/// order of the sources decide, between a clock of 0 and a positive one, the positive one is later.
fn precedence(shard: &Shard) -> (u8, bool, i128, i64) {
    let clock = i128::from(shard.clock);
    let runs_down = shard.kind == ShardKind::Remote && clock < 0;
    (rank(shard.kind), runs_down, if runs_down { -clock } else { clock }, shard.count)
}

fn rank(kind: ShardKind) -> u8 {
    match kind {
        ShardKind::Remote => 0,
        ShardKind::Local => 1,
        ShardKind::Global => 2,
    }
}

fn sum(left: Shard, right: Shard) -> Shard {
    let (clock, count) = (left.clock.wrapping_add(right.clock), left.count.wrapping_add(right.count));
    Shard { clock, count, ..left }
}

fn pairs(left: &CounterContext<'_>, right: &CounterContext<'_>) -> impl Iterator<Item = Pair> {
    let (mut left, mut right) = (left.shards().peekable(), right.shards().peekable());
    std::iter::from_fn(move || next_pair(&mut left, &mut right))
}

fn next_pair(
    left: &mut Peekable<impl Iterator<Item = Shard>>,
    right: &mut Peekable<impl Iterator<Item = Shard>>,
) -> Option<Pair> {
    let order = match (left.peek(), right.peek()) {
        (Some(left), Some(right)) => left.id.cmp(&right.id),
        (Some(_), None) => Ordering::Less,
        (None, _) => Ordering::Greater,
    };
    match order {
        Ordering::Less => left.next().map(Pair::Left),
        Ordering::Greater => right.next().map(Pair::Right),
        Ordering::Equal => left.next().zip(right.next()).map(|(left, right)| Pair::Both(left, right)),
    }
}

#[cfg(test)]
mod tests {
    use super::ShardKind::{Global, Local, Remote};
    use super::*;

    /// Kind, id, clock and count of each shard.
    fn context(shards: &[(ShardKind, u8, i64, i64)]) -> Vec<u8> {
        let shard = |&(kind, id, clock, count): &_| Shard { id: [id; 16], clock, count, kind };
        let shards: Vec<Shard> = shards.iter().map(shard).collect();
        encode(&shards).unwrap().to_vec()
    }

    /// The merge, which must not depend on which one is left.
    fn both_ways(left: &[u8], right: &[u8]) -> Vec<u8> {
        let merged = |left: &[u8], right: &[u8]| match merge(left, right).unwrap() {
            Merged::Left => left.to_vec(),
            Merged::Right => right.to_vec(),
            Merged::New(bytes) => bytes.to_vec(),
        };
        assert_eq!(merged(left, right), merged(right, left));
        merged(left, right)
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = context(&[(Remote, 1, 2, 3), (Global, 2, -4, 5), (Local, 3, 6, -7)]);
        let expected = [0, 2, 0x80, 1, 0, 2].into_iter().chain([1; 16]).collect::<Vec<u8>>();
        assert_eq!(bytes[..22], expected);
        let read: Vec<Shard> = CounterContext::parse(&bytes).unwrap().shards().collect();
        assert_eq!(encode(&read).unwrap().to_vec(), bytes);
    }

    #[test]
    fn the_rules_for_two_shards() {
        let cases = [
            ((Global, 1, 5, 10), (Global, 1, 4, 90), (Global, 1, 5, 10)),
            ((Global, 1, 5, 10), (Global, 1, 5, 11), (Global, 1, 5, 11)),
            ((Global, 1, -5, 10), (Global, 1, -6, 11), (Global, 1, -5, 10)),
            ((Global, 1, 1, 1), (Local, 1, 9, 9), (Global, 1, 1, 1)),
            ((Global, 1, 1, 1), (Remote, 1, 9, 9), (Global, 1, 1, 1)),
            ((Local, 1, 1, 1), (Remote, 1, 9, 9), (Local, 1, 1, 1)),
            ((Local, 1, 2, 3), (Local, 1, 4, 5), (Local, 1, 6, 8)),
            ((Local, 1, i64::MAX, -1), (Local, 1, 1, i64::MIN), (Local, 1, i64::MIN, i64::MAX)),
            ((Remote, 1, 5, 1), (Remote, 1, 4, 9), (Remote, 1, 5, 1)),
            ((Remote, 1, 5, 1), (Remote, 1, 5, 2), (Remote, 1, 5, 2)),
            ((Remote, 1, -1, 1), (Remote, 1, 5, 2), (Remote, 1, -1, 1)),
            ((Remote, 1, -1, 1), (Remote, 1, -2, 2), (Remote, 1, -2, 2)),
            ((Remote, 1, 0, 1), (Remote, 1, 7, 2), (Remote, 1, 7, 2)),
            ((Remote, 1, i64::MIN, 1), (Remote, 1, i64::MAX, 2), (Remote, 1, i64::MIN, 1)),
        ];
        for (left, right, expected) in cases {
            let merged = both_ways(&context(&[left]), &context(&[right]));
            assert_eq!(merged, context(&[expected]), "{left:?} {right:?}");
        }
    }

    #[test]
    fn shards_of_different_ids_stay_side_by_side() {
        let left = context(&[(Global, 1, 1, 1), (Remote, 3, 1, 2), (Local, 5, 1, 3)]);
        let right = context(&[(Local, 2, 1, 4), (Global, 3, 1, 5), (Global, 6, 1, 6)]);
        let expected = context(&[
            (Global, 1, 1, 1),
            (Local, 2, 1, 4),
            (Global, 3, 1, 5),
            (Local, 5, 1, 3),
            (Global, 6, 1, 6),
        ]);
        assert_eq!(both_ways(&left, &right), expected);
        assert_eq!(merge(&expected, &left), Some(Merged::New(both_ways(&left, &expected).into())));
    }

    #[test]
    fn a_context_that_has_all_is_not_copied() {
        let small = context(&[(Global, 2, 1, 1)]);
        let large = context(&[(Global, 1, 1, 1), (Global, 2, 3, 1), (Remote, 4, 1, 1)]);
        assert_eq!(merge(&small, &large), Some(Merged::Right));
        assert_eq!(merge(&large, &small), Some(Merged::Left));
        assert_eq!(merge(&large, &large), Some(Merged::Left));
    }

    #[test]
    fn shards_that_were_local_to_another_node_are_remote() {
        let marked = |shards: &[(ShardKind, u8, i64, i64)]| {
            let mut context = context(shards);
            let count = i16::from_be_bytes([context[0], context[1]]);
            context[..2].copy_from_slice(&(-count).to_be_bytes());
            context
        };
        let local = context(&[(Local, 1, 4, 5)]);
        assert_eq!(both_ways(&marked(&[(Local, 1, 2, 3)]), &local), local);
        let [early, late] = [marked(&[(Local, 1, 2, 3)]), marked(&[(Local, 1, 7, 6)])];
        assert_eq!(both_ways(&early, &late), late, "the later one, not their sum");
        let globals = [(Global, 1, 1, 1), (Local, 2, 9, 9)];
        let both = both_ways(&marked(&globals), &context(&[(Remote, 2, 8, 8), (Remote, 3, 1, 1)]));
        assert_eq!(both, context(&[(Global, 1, 1, 1), (Remote, 2, 9, 9), (Remote, 3, 1, 1)]));
    }

    #[test]
    fn a_malformed_context_merges_with_none() {
        let good = context(&[(Global, 1, 1, 1)]);
        for cut in [0, 1, 3, 5, good.len() - 1] {
            assert_eq!(merge(&good, &good[..cut]), None);
            assert_eq!(merge(&good[..cut], &good), None);
        }
    }
}
