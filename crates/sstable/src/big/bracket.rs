//! The search for a block between two others: by guesses, and by halves where these go wrong.
//!
//! ```text
//! a guess    the blocks about the place where the values of both ends put the position: what of the map tells of
//!            them, and 32 KiB of them: 2 requests, and mostly the end of the search
//! a halving  the block in the middle: a page of the map, and a page of blocks
//! the end    once what is left of the map and of the blocks fits into 32 KiB each, these: 2 requests
//! ```
//!
//! Two guesses come first. Where they do not end the search, one halving follows, then a guess, two halvings, a guess,
//! four halvings, and so on. So in the worst case, where *h* halvings would do, there are at most 3 + log2(*h*) guesses
//! besides, each of which may cost 2 requests for nothing.

use std::rc::Rc;

use model::Position;

use super::promoted_cursor::{Block, PromotedCursor, SMALL};
use super::ruler;
use crate::Result;
use crate::cache::cached_file::PAGE;

/// From so many bytes of blocks on, to know the last block is worth the two requests that it may cost: to halve so
/// much until it is small takes more.
const WORTH_A_GUESS: u64 = 8 * SMALL;

/// What is looked for: the first block that is not before a position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal<'a> {
    /// Blocks that end before the position are before it.
    End(&'a Position),
    /// Blocks that begin at the position or before it are before it.
    Begin(&'a Position),
}

/// The blocks that may be the one that is looked for: from `low` on, up to `high`, which is it if none of them is.
#[derive(Debug)]
struct Bracket {
    low: u32,
    high: u32,
    /// A known block at `low` or right before it, with its number.
    left: Option<(u32, Rc<Block>)>,
    /// A known block at `high` or right before it, with its number.
    right: Option<(u32, Rc<Block>)>,
}

/// Whether to guess or to halve. What halvings there are come first.
#[derive(Debug)]
struct Turns {
    guesses: u32,
    halvings: u32,
    /// How many halvings come before the guess after these.
    more: u32,
}

impl Goal<'_> {
    fn position(&self) -> &Position {
        match self {
            Goal::End(position) | Goal::Begin(position) => position,
        }
    }
}

impl PromotedCursor<'_> {
    /// The first block from `low` on that is not before the goal; `high` if there is none below it.
    pub(super) async fn first_not_before(&self, goal: Goal<'_>, low: u32, high: u32) -> Result<u32> {
        let mut bracket = Bracket { low, high, left: None, right: None };
        let mut turns = Turns { guesses: 2, halvings: 0, more: 1 };
        while bracket.low < bracket.high {
            if self.read_if_small(bracket.low, bracket.high).await? {
                return self.halve_at_hand(goal, bracket).await;
            }
            let window = match turns.is_guess() {
                true => self.guess(goal, &mut bracket).await?,
                false => None,
            };
            match window {
                Some((start, end)) => self.narrow(goal, &mut bracket, start, end).await?,
                None => {
                    let middle = bracket.low.midpoint(bracket.high);
                    self.probe(goal, &mut bracket, middle).await?;
                }
            }
        }
        Ok(bracket.low)
    }

    /// Halves what was read already.
    async fn halve_at_hand(&self, goal: Goal<'_>, mut bracket: Bracket) -> Result<u32> {
        while bracket.low < bracket.high {
            let middle = bracket.low.midpoint(bracket.high);
            self.probe(goal, &mut bracket, middle).await?;
        }
        Ok(bracket.low)
    }

    /// Looks at one block of the bracket.
    async fn probe(&self, goal: Goal<'_>, bracket: &mut Bracket, number: u32) -> Result<()> {
        let block = self.block(number).await?;
        if self.is_before(goal, &block) {
            (bracket.low, bracket.left) = (number + 1, Some((number, block)));
        } else {
            (bracket.high, bracket.right) = (number, Some((number, block)));
        }
        Ok(())
    }

    /// Looks at the first and the last of some blocks of the bracket.
    async fn narrow(&self, goal: Goal<'_>, bracket: &mut Bracket, start: u32, end: u32) -> Result<()> {
        self.read_if_small(start, end).await?;
        self.probe(goal, bracket, end - 1).await?;
        if (bracket.low..bracket.high).contains(&start) {
            self.probe(goal, bracket, start).await?;
        }
        Ok(())
    }

    /// The blocks about the place where the goal seems to be.
    async fn guess(&self, goal: Goal<'_>, bracket: &mut Bracket) -> Result<Option<(u32, u32)>> {
        let each =
            ((self.promoted().map - self.promoted().blocks.start) / u64::from(self.promoted().count)).max(1);
        let count = bracket.high - bracket.low;
        if u64::from(count) * each < WORTH_A_GUESS || !ruler::can_measure(self.schema()) {
            return Ok(None);
        }
        let left = match bracket.left.take() {
            Some(left) => left,
            None => (bracket.low, self.block(bracket.low).await?),
        };
        let right = match bracket.right.take() {
            Some(right) => right,
            None => (bracket.high - 1, self.block(bracket.high - 1).await?),
        };
        let share = ruler::share(self.schema(), &left.1.first, &right.1.last, goal.position());
        let span = f64::from(right.0 + 1 - left.0);
        let middle = share.map(|share| left.0 + (share * span) as u32);
        (bracket.left, bracket.right) = (Some(left), Some(right));
        // Where blocks are not of one size, a window of so many of them may still be too large by a page or two.
        let width = ((SMALL - 2 * PAGE) / each).clamp(1, u64::from(count)) as u32;
        Ok(middle.map(|middle| {
            let start = middle.saturating_sub(width / 2).clamp(bracket.low, bracket.high - width);
            (start, start + width)
        }))
    }

    pub(super) fn is_before(&self, goal: Goal<'_>, block: &Block) -> bool {
        match goal {
            Goal::End(position) => self.schema().compare(&block.last, position).is_lt(),
            Goal::Begin(position) => self.schema().compare(&block.first, position).is_le(),
        }
    }
}

impl Turns {
    /// Whose turn it is.
    fn is_guess(&mut self) -> bool {
        if self.guesses == 0 && self.halvings == 0 {
            (self.guesses, self.halvings) = (1, self.more);
            self.more *= 2;
        }
        if self.halvings > 0 {
            self.halvings -= 1;
            return false;
        }
        self.guesses -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_become_rarer() {
        let mut turns = Turns { guesses: 2, halvings: 0, more: 1 };
        let order: String = (0..16).map(|_| if turns.is_guess() { 'g' } else { 'h' }).collect();
        assert_eq!(order, "gghghhghhhhghhhh");
    }
}
