//! Ranges of tokens that have about the same size.
//!
//! The indexes of all sources are read once, side by side: each partition has a token and a length. A cut is made between
//! two tokens, where what is before comes nearest to its share.

use std::num::NonZeroU64;

use model::Token;
use sstable::big::entry::{Entry, EntryScanner};

use super::TokenRange;
use crate::error::Result;
use crate::read::Tables;

/// The partitions of one source, by its index.
struct Partitions {
    entries: EntryScanner,
    next: Option<Entry>,
    data_len: u64,
}

/// At most so many ranges with all tokens, each with a partition in it.
pub(super) async fn ranges(tables: &Tables, count: NonZeroU64) -> Result<Vec<TokenRange>> {
    let total: u64 = tables.tables().iter().map(|table| table.data().file.len()).sum();
    let mut sources = Vec::new();
    for table in tables.tables() {
        let mut entries = table.entries();
        let next = entries.next().await?;
        sources.push(Partitions { entries, next, data_len: table.data().file.len() });
    }
    let mut cuts = Cuts::new(total, count.get());
    while let Some((token, at)) = least(tables, &sources) {
        cuts.partition(token, sources[at].take().await?);
    }
    Ok(cuts.finish())
}

/// The least token that comes next, and the source that has it.
fn least(tables: &Tables, sources: &[Partitions]) -> Option<(Token, usize)> {
    let next = sources.iter().enumerate().filter_map(|(at, source)| Some((source.next.as_ref()?, at)));
    next.map(|(entry, at)| (tables.key(entry.key.clone()).token, at)).min()
}

impl Partitions {
    /// Goes on to the next partition; how many bytes of data the one before has.
    async fn take(&mut self) -> Result<u64> {
        let before = self.next.take().map_or(self.data_len, |entry| entry.data);
        self.next = self.entries.next().await?;
        let end = self.next.as_ref().map_or(self.data_len, |entry| entry.data);
        // A corrupt index may step back; the data will tell.
        Ok(end.saturating_sub(before))
    }
}

/// The cuts so far.
struct Cuts {
    total: u64,
    count: u64,
    /// The end of the range before.
    above: Token,
    /// The token of the partition before.
    last: Option<Token>,
    /// Bytes of data up to there.
    done: u64,
    /// Bytes of data where the next cut would be best.
    aim: u64,
    ranges: Vec<TokenRange>,
}

impl Cuts {
    fn new(total: u64, count: u64) -> Cuts {
        let aim = total / count;
        Cuts { total, count, above: Token::MIN, last: None, done: 0, aim, ranges: Vec::new() }
    }

    /// Takes the next partition, of so many bytes. What is left behind a cut is shared anew: a large partition makes the
    /// parts behind it smaller, not fewer.
    fn partition(&mut self, token: Token, len: u64) {
        let left = self.count - self.ranges.len() as u64;
        if let Some(last) = self.last.filter(|&last| last != token)
            && left > 1
            && self.done + len / 2 >= self.aim
        {
            self.ranges.extend(TokenRange::new(self.above, last));
            self.above = last;
            self.aim = self.done + self.total.saturating_sub(self.done) / (left - 1);
        }
        self.last = Some(token);
        self.done += len;
    }

    fn finish(mut self) -> Vec<TokenRange> {
        self.ranges.extend(TokenRange::new(self.above, Token::MAX));
        self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(count: u64, lens: &[u64]) -> Vec<String> {
        let total = lens.iter().sum();
        let mut cuts = Cuts::new(total, count);
        (1..).zip(lens).for_each(|(token, &len)| cuts.partition(token * 10, len));
        cuts.finish().iter().map(TokenRange::to_string).collect()
    }

    #[test]
    fn shares_are_about_equal() {
        assert_eq!(cut(2, &[5; 4]), ["..20", "20.."]);
        assert_eq!(cut(3, &[5; 4]), ["..10", "10..20", "20.."]);
        assert_eq!(cut(1, &[5; 4]), [".."]);
        assert_eq!(cut(9, &[5; 4]), ["..10", "10..20", "20..30", "30.."]);
    }

    #[test]
    fn a_large_partition_is_a_part_of_its_own() {
        assert_eq!(cut(3, &[1, 1, 100, 1, 1]), ["..20", "20..30", "30.."]);
        assert_eq!(cut(4, &[1, 1, 100, 1, 1]), ["..20", "20..30", "30..40", "40.."]);
    }
}
