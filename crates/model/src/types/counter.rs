//! Counter contexts: the value of a counter's cell, a shard for each node that ever counted.
//!
//! ```text
//! marked:i16 index:i16 × |marked| (id:[u8; 16] clock:i64 count:i64)*
//! ```
//!
//! The header lists the shards that are not remote, by their index: an index is a local shard, the index
//! minus 32768 a global one. A negative number of them says that the local ones are yet to be cleared.
//! Shards are ordered by the unsigned bytes of their ids. The counter is the sum of all counts.

use super::TypeError;
use super::parts::take_array;

/// The bytes of one shard.
const SHARD_LEN: usize = 32;

/// A counter context, its bytes checked to be whole.
#[derive(Clone, Copy, Debug)]
pub struct CounterContext<'a> {
    /// Pairs of bytes, one for each marked shard.
    marks: &'a [u8],
    /// A whole number of shards.
    shards: &'a [u8],
    local_to_clear: bool,
}

/// What one node counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The id of the node that counted.
    pub id: [u8; 16],
    /// How often it did.
    pub clock: i64,
    /// What it counted.
    pub count: i64,
    /// What is to be done when two shards of one node meet.
    pub kind: ShardKind,
}

/// What is to be done when two shards of one node meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardKind {
    /// The one with the higher clock stays; wins over the other kinds.
    Global,
    /// Clocks and counts are added; wins over remote.
    Local,
    /// The one with the higher clock stays.
    Remote,
}

impl<'a> CounterContext<'a> {
    /// The context in `bytes`.
    ///
    /// # Errors
    /// If they are none: a header or shards that are cut short.
    pub fn parse(bytes: &'a [u8]) -> Result<CounterContext<'a>, TypeError> {
        let mut rest = bytes;
        let marked = take_array(&mut rest).map(i16::from_be_bytes);
        let marked = marked.ok_or_else(|| TypeError::bytes("counter", "no header"))?;
        let (marks, shards) = rest
            .split_at_checked(2 * usize::from(marked.unsigned_abs()))
            .ok_or_else(|| TypeError::bytes("counter", "the header is cut"))?;
        if !shards.len().is_multiple_of(SHARD_LEN) {
            return Err(TypeError::bytes("counter", "the last shard is cut"));
        }
        Ok(CounterContext { marks, shards, local_to_clear: marked < 0 })
    }

    /// The value of the counter.
    pub fn total(&self) -> i64 {
        self.shards().fold(0, |total, shard| total.wrapping_add(shard.count))
    }

    /// The shards, in the order in which they are stored.
    pub fn shards(&self) -> impl Iterator<Item = Shard> + 'a {
        let mut marks =
            self.marks.chunks_exact(2).map(|mark| i16::from_be_bytes([mark[0], mark[1]])).peekable();
        let (local_to_clear, (shards, _)) = (self.local_to_clear, self.shards.as_chunks::<SHARD_LEN>());
        shards.iter().enumerate().map(move |(index, shard)| {
            // An index that does not fit never matches a mark.
            let local = i16::try_from(index).ok();
            let global = local.map(|index| index.wrapping_add(i16::MIN));
            let kind = match marks.peek().copied() {
                Some(mark) if Some(mark) == local => ShardKind::Local,
                Some(mark) if Some(mark) == global => ShardKind::Global,
                _ => ShardKind::Remote,
            };
            if kind != ShardKind::Remote {
                marks.next();
            }
            // Local to another node, from which the file came: remote here, as if the mark were cleared already.
            let is_cleared = kind == ShardKind::Local && local_to_clear;
            Shard::read(shard, if is_cleared { ShardKind::Remote } else { kind })
        })
    }

    /// Whether marks of local shards are yet to be cleared, as the file came from another node: these are remote.
    pub fn local_to_clear(&self) -> bool {
        self.local_to_clear
    }
}

impl Shard {
    fn read(bytes: &[u8; SHARD_LEN], kind: ShardKind) -> Shard {
        let mut rest = &bytes[..];
        let id = take_array(&mut rest).unwrap_or_default();
        let clock = i64::from_be_bytes(take_array(&mut rest).unwrap_or_default());
        let count = i64::from_be_bytes(take_array(&mut rest).unwrap_or_default());
        Shard { id, clock, count, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn context(marks: &[i16], shards: &[(u8, i64, i64)]) -> Vec<u8> {
        let mut bytes = (marks.len() as i16).to_be_bytes().to_vec();
        bytes.extend(marks.iter().flat_map(|mark| mark.to_be_bytes()));
        for (id, clock, count) in shards {
            bytes.extend([*id; 16]);
            bytes.extend(clock.to_be_bytes());
            bytes.extend(count.to_be_bytes());
        }
        bytes
    }

    #[test]
    fn shards_of_all_kinds_are_summed() {
        let bytes = context(&[i16::MIN, 2], &[(1, 7, 10), (2, 8, -3), (3, 9, 100)]);
        let context = CounterContext::parse(&bytes).unwrap();
        assert_eq!(context.total(), 107);
        let kinds: Vec<_> = context.shards().map(|shard| (shard.id[0], shard.clock, shard.kind)).collect();
        assert_eq!(kinds, [(1, 7, ShardKind::Global), (2, 8, ShardKind::Remote), (3, 9, ShardKind::Local)]);
    }

    #[test]
    fn the_mark_of_uncleared_shards_is_kept() {
        let mut bytes = context(&[0], &[(1, 1, 1)]);
        assert!(!CounterContext::parse(&bytes).unwrap().local_to_clear());
        bytes[..2].copy_from_slice(&(-1i16).to_be_bytes());
        assert!(CounterContext::parse(&bytes).unwrap().local_to_clear());
    }

    #[test]
    fn cut_contexts_are_refused() {
        let bytes = context(&[i16::MIN], &[(1, 7, 10)]);
        for len in (0..bytes.len()).filter(|len| *len != 4) {
            assert!(CounterContext::parse(&bytes[..len]).is_err(), "{len}");
        }
        assert_eq!(CounterContext::parse(&bytes[..4]).unwrap().total(), 0);
        assert!(CounterContext::parse(&i16::MIN.to_be_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(context) = CounterContext::parse(&bytes) {
                let total = context.shards().fold(0i64, |sum, shard| sum.wrapping_add(shard.count));
                prop_assert_eq!(total, context.total());
            }
        }
    }
}
