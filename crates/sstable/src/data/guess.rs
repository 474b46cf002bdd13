//! How much is read beyond the estimated end of the wanted rows, so that few reads need a second request.
//!
//! ```text
//! slack ← slack − 1/256 of a row    a read begins
//! slack ← slack + 1 row             its first request did not bring all wanted rows
//! ```
//!
//! So about one read in 256 needs a second request. If rows have one size and evenly spaced keys, there is next to no slack; if estimates
//! are poor, it grows until whole blocks are read. Reads of few rows and of many, forward and in reverse, alone and among other SSTables,
//! each have a slack of their own, because they go wrong in different ways.

use std::cell::Cell;

/// So many parts of a row are counted.
const PARTS: u32 = 256;

/// What there is at first, in parts of a row.
const FIRST: u32 = PARTS / 2;

/// And at the most: with more, guesses are not worth it.
const MOST: u32 = 64 * PARTS;

/// What a first request is to bring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guess {
    /// A row.
    Row,
    /// Several rows.
    Rows,
    /// Rows, backwards.
    Reverse,
    /// Several rows, between which those of other SSTables come.
    Share,
    /// The same, backwards.
    ReverseShare,
}

/// How much is added to guesses, in parts of a row.
#[derive(Debug)]
pub(crate) struct Slack([Cell<u32>; 5]);

impl Default for Slack {
    fn default() -> Slack {
        Slack([FIRST; 5].map(Cell::new))
    }
}

impl Slack {
    /// A read begins that could make such a guess: how many bytes are to be added, if a row has so many; `None` if it is
    /// not to be made.
    pub(crate) fn of(&self, guess: Guess, row: u64) -> Option<u64> {
        let slack = &self.0[guess as usize];
        let parts = slack.replace(slack.get().saturating_sub(1));
        (parts <= MOST).then(|| row.saturating_mul(parts.into()) / u64::from(PARTS))
    }

    /// It fell short.
    pub(crate) fn fell_short(&self, guess: Guess) {
        let slack = &self.0[guess as usize];
        slack.set(match slack.get() {
            given_up if given_up > MOST => given_up,
            parts if parts + PARTS > MOST => 2 * MOST,
            parts => parts + PARTS,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many reads fell short, where this says how far rows end behind the guess, in hundredths of a row.
    fn short(slack: &Slack, reads: u64, error: impl Fn(u64) -> u64) -> u64 {
        let is_short = |&read: &u64| {
            let is_short = slack.of(Guess::Row, 100).is_some_and(|added| added < error(read));
            if is_short {
                slack.fell_short(Guess::Row);
            }
            is_short
        };
        (0..reads).filter(is_short).count() as u64
    }

    #[test]
    fn one_read_of_256_falls_short() {
        let slack = Slack::default();
        let any = |read: u64| model::key::murmur3(&read.to_be_bytes())[0] as u64 % 1000;
        let learning = short(&slack, 1000, any);
        assert!(learning < 30, "{learning} reads to learn that rows end anywhere in ten");
        let known = short(&slack, 256_000, any);
        assert!((900..=1100).contains(&known), "{known} of 256,000 reads");
        assert!(slack.of(Guess::Row, 100).unwrap() > 900);
        assert_eq!(slack.of(Guess::Rows, 100), Some(50), "other guesses have a slack of their own");
    }

    #[test]
    fn where_guesses_are_right_nothing_is_added() {
        let slack = Slack::default();
        assert_eq!(short(&slack, 1000, |_| 0), 0);
        assert_eq!(slack.of(Guess::Row, 1 << 40), Some(0));
    }

    #[test]
    fn where_they_say_nothing_there_are_none_for_a_while() {
        let slack = Slack::default();
        let learning = short(&slack, 10_000, |_| u64::MAX);
        assert!((60..=66).contains(&learning), "{learning} reads");
        assert_eq!(slack.of(Guess::Row, 100), None);
        assert_eq!(short(&slack, 32_000, |_| u64::MAX), 2, "each time another 16,384");
    }
}
