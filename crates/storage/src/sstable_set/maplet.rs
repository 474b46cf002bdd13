//! Which of many SSTables may have a token, by one look: what a filter tells of one SSTable, a maplet tells of all.
//!
//! ```text
//! token     … │ 16 bits: the tag │ as many bits as there are buckets: the bucket
//! starts    of each bucket where its entries begin, u32, and where the last one's end
//! tags      u16 per partition of an SSTable, by buckets, and in each by SSTables
//! numbers   u16 beside each tag: the SSTable's
//! ```
//!
//! Tokens are hashes, and their low bits are as good as any others; of the high ones those of a shard have some in common. A bucket has
//! four to eight entries of different tokens, so an SSTable without a token is named with a chance of 8 / 2¹⁶ at the most, divided among
//! all of them.

use model::Token;

/// A bucket has at the most so many entries on average.
const BUCKET: usize = 8;

/// Bits of a token that an entry has in packed form: those above the lowest ones are of no use.
const TOKEN_BITS: u32 = 48;

/// Which SSTables have which tokens.
#[derive(Debug)]
pub(super) struct Maplet {
    /// There are 2 to the power of that many buckets.
    bits: u32,
    starts: Box<[u32]>,
    tags: Box<[u16]>,
    numbers: Box<[u16]>,
}

/// Collects the partitions of SSTables.
#[derive(Debug, Default)]
pub(super) struct MapletBuilder {
    /// The token's lowest bits, and below them the SSTable's number.
    entries: Vec<u64>,
}

impl Maplet {
    /// No maplet is for more SSTables.
    pub(super) const MOST_SSTABLES: usize = u16::MAX as usize;

    /// Nor for more partitions.
    pub(super) const MOST_PARTITIONS: u64 = 1 << 31;

    /// Bytes of memory that a partition takes, at the most.
    pub(super) const BYTES: usize = 2 * size_of::<u16>() + size_of::<u32>() / (BUCKET / 2);

    /// The numbers of the SSTables that may have a token, ascending.
    #[inline]
    pub(super) fn find(&self, token: Token) -> impl Iterator<Item = u16> {
        let (bucket, tag) = place(token as u64, self.bits);
        let entries = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        let (tags, numbers) = (&self.tags[entries.clone()], &self.numbers[entries]);
        let with_tag = tags.iter().zip(numbers).filter(move |(other, _)| **other == tag);
        // Two partitions of one SSTable may have the same tag.
        let mut last = None;
        with_tag.map(|(_, number)| *number).filter(move |number| last.replace(*number) != Some(*number))
    }

    /// How many partitions there are, of all SSTables together.
    pub(super) fn len(&self) -> u64 {
        self.tags.len() as u64
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.tags) + size_of_val(&*self.numbers)
    }
}

impl MapletBuilder {
    /// Bytes of memory that a partition takes until the maplet is built, beside those of the maplet: with the places of buckets, which are
    /// counted on.
    pub(super) const BYTES: usize = size_of::<u64>() + size_of::<u32>() / (BUCKET / 2);

    /// With room for so many partitions.
    pub(super) fn with_capacity(partitions: usize) -> MapletBuilder {
        MapletBuilder { entries: Vec::with_capacity(partitions) }
    }

    /// Adds a partition of the SSTable with this number.
    pub(super) fn push(&mut self, token: Token, number: u16) {
        self.entries.push((token as u64) << (u64::BITS - TOKEN_BITS) | u64::from(number));
    }

    /// The maplet. Of each bucket entries are by SSTables. That takes half a second for ten million partitions.
    pub(super) fn build(self) -> Maplet {
        let mut entries = self.entries;
        // SSTables are read side by side.
        entries.sort_unstable_by_key(|entry| *entry as u16);
        assert!(entries.len() as u64 <= Maplet::MOST_PARTITIONS, "a maplet has places for its partitions");
        let bits = entries.len().div_ceil(BUCKET).next_power_of_two().ilog2();
        let of = |entry: &u64| (place(entry >> u16::BITS, bits), *entry as u16);
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for ((bucket, _), _) in entries.iter().map(of) {
            starts[bucket + 1] += 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        let (mut tags, mut numbers) = (vec![0; entries.len()], vec![0; entries.len()]);
        let mut next = starts.clone();
        for ((bucket, tag), number) in entries.iter().map(of) {
            let at = next[bucket] as usize;
            (tags[at], numbers[at]) = (tag, number);
            next[bucket] += 1;
        }
        Maplet { bits, starts: starts.into(), tags: tags.into(), numbers: numbers.into() }
    }
}

/// The bucket of a token among 2 to the power of `bits`, and its tag.
#[inline]
fn place(token: u64, bits: u32) -> (usize, u16) {
    ((token & ((1 << bits) - 1)) as usize, (token >> bits) as u16)
}

#[cfg(test)]
mod tests {
    use testkit::generate::random::Random;

    use super::*;

    /// A maplet of these SSTables.
    fn maplet(sstables: &[Vec<Token>]) -> Maplet {
        let mut builder = MapletBuilder::default();
        for (number, tokens) in (0..).zip(sstables) {
            tokens.iter().for_each(|token| builder.push(*token, number));
        }
        builder.build()
    }

    #[test]
    fn all_that_have_a_token_are_found_and_few_others() {
        for (seed, most) in [1_usize, 2, 5, 30, 300, 3000].into_iter().enumerate() {
            let mut random = Random::new(seed as u64);
            let all: Vec<Token> = (0..3 * most).map(|_| random.number() as Token).collect();
            let sstables: Vec<Vec<Token>> = (0..40)
                .map(|_| (0..random.below(most)).map(|_| all[random.below(2 * most)]).collect())
                .collect();
            let maplet = maplet(&sstables);
            assert_eq!(maplet.len() as usize, sstables.iter().map(Vec::len).sum::<usize>());
            let mut wrong = 0;
            for token in &all {
                let found: Vec<u16> = maplet.find(*token).collect();
                assert!(found.is_sorted_by(|a, b| a < b), "each once");
                let has = |number: u16| sstables[usize::from(number)].contains(token);
                assert!((0..40).filter(|number| has(*number)).all(|number| found.contains(&number)));
                wrong += found.iter().filter(|number| !has(**number)).count();
            }
            assert!(wrong <= 1 + most / 100, "{wrong} of {}", all.len());
        }
    }

    #[test]
    fn tokens_of_a_part_of_the_ring_spread_too() {
        let tokens: Vec<Token> = (0..10_000).map(|at| Token::MIN + (at * 0x9e37_79b9_7f4a)).collect();
        let maplet = maplet(&[tokens]);
        let longest = maplet.starts.windows(2).map(|ends| ends[1] - ends[0]).max();
        assert!(longest < Some(40), "{longest:?}");
        assert!(maplet.memory_bytes() <= 10_001 * Maplet::BYTES);
    }

    #[test]
    fn an_sstable_is_named_once() {
        // All in one bucket, with one tag.
        let maplet = maplet(&[vec![5], vec![5 + (1 << 40), 5, 5 + (1 << 41)], vec![6], vec![5]]);
        assert_eq!(maplet.find(5).collect::<Vec<_>>(), [0, 1, 3]);
    }

    #[test]
    fn one_of_nothing_finds_nothing() {
        for sstables in [&[][..], &[vec![]]] {
            assert_eq!(maplet(sstables).find(7).count(), 0);
        }
    }

    #[test]
    fn sstables_are_read_side_by_side() {
        let mut builder = MapletBuilder::with_capacity(6);
        for token in 0..3 {
            builder.push(token, 1);
            builder.push(token, 0);
        }
        assert_eq!(builder.build().find(2).collect::<Vec<_>>(), [0, 1]);
    }
}
