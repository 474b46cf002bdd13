//! Which shard has which part of the ring.
//!
//! ```text
//! i64::MIN ────────── 0 ────────── i64::MAX      the ring
//! |--- 0 ---|--- 1 ---|--- 2 ---|--- 3 ---|      four shards, equal parts
//! ```

use model::Token;
use storage::Tokens;

/// The ring, cut into equal parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ring {
    shards: usize,
}

impl Ring {
    /// For so many shards, which are one at least.
    pub(super) fn new(shards: usize) -> Ring {
        Ring { shards: shards.max(1) }
    }

    /// The shard of a token.
    pub(super) fn shard_of(self, token: Token) -> usize {
        // From the start of the ring, as a fraction of it in 64 bits.
        let place = (token as u64) ^ (1 << 63);
        ((u128::from(place) * self.shards as u128) >> 64) as usize
    }

    /// The part of a shard.
    pub(super) fn part(self, shard: usize) -> Tokens {
        let last = match shard + 1 == self.shards {
            true => Token::MAX,
            false => self.first(shard + 1) - 1,
        };
        Tokens { after: (shard > 0).then(|| self.first(shard) - 1), last }
    }

    /// The parts of all shards, in order.
    pub(super) fn parts(self) -> impl Iterator<Item = Tokens> {
        (0..self.shards).map(move |shard| self.part(shard))
    }

    /// The first token of a shard.
    fn first(self, shard: usize) -> Token {
        let place = ((shard as u128) << 64).div_ceil(self.shards as u128);
        ((place as u64) ^ (1 << 63)) as Token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_their_shards_have() {
        for shards in [1, 2, 3, 4, 7, 64] {
            let ring = Ring::new(shards);
            let mut before = None;
            for (shard, part) in ring.parts().enumerate() {
                assert_eq!(part.after, before);
                let first = part.after.map_or(Token::MIN, |after| after + 1);
                assert_eq!((ring.shard_of(first), ring.shard_of(part.last)), (shard, shard));
                before = Some(part.last);
            }
            assert_eq!(before, Some(Token::MAX));
        }
    }
}
