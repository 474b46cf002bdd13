//! A token's place among others: a range of tokens cut into equal parts, without a division.
//!
//! ```text
//! s = how many bits of (last − first) are above the 32nd
//! f = ⌊parts · 2³² / (((last − first) >> s) + 1)⌋
//! part of a token = (((token − first) >> s) · f) >> 32
//! ```

use model::Token;

/// A range of tokens in equal parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    first: Token,
    /// The last token less the first.
    width: u64,
    shift: u32,
    factor: u64,
}

impl Span {
    /// From the first to the last token, in so many parts: at least one, and fewer than 2³¹.
    pub(super) fn new(first: Token, last: Token, parts: u32) -> Span {
        assert!(first <= last && (1..1 << 31).contains(&parts), "a span has tokens and parts");
        let width = last.wrapping_sub(first) as u64;
        let shift = 32_u32.saturating_sub(width.leading_zeros());
        let factor = (u64::from(parts) << 32) / ((width >> shift) + 1);
        Span { first, width, shift, factor }
    }

    pub(super) fn first(&self) -> Token {
        self.first
    }

    pub(super) fn last(&self) -> Token {
        self.first.wrapping_add(self.width as i64)
    }

    /// In which part a token is; `None` if it is in none.
    #[inline]
    pub(super) fn part(&self, token: Token) -> Option<usize> {
        let distance = token.wrapping_sub(self.first) as u64;
        let is_within = token >= self.first && distance <= self.width;
        is_within.then(|| (((distance >> self.shift) * self.factor) >> 32) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_equal() {
        let span = Span::new(-500, 499, 10);
        let counts = (-500..500).fold([0; 10], |mut counts, token| {
            counts[span.part(token).unwrap()] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (99..=101).contains(count)), "{counts:?}");
        assert_eq!((span.part(-501), span.part(500), span.last()), (None, None, 499));
        let all = Span::new(i64::MIN, i64::MAX, 4);
        assert_eq!(
            [i64::MIN, -1, 0, i64::MAX].map(|token| all.part(token)),
            [Some(0), Some(1), Some(2), Some(3)]
        );
        assert_eq!(Span::new(7, 7, 63).part(7), Some(0));
    }

    proptest! {
        #[test]
        fn parts_ascend_and_are_as_many(a: i64, b: i64, c: i64, parts in 1_u32..1 << 31) {
            let mut tokens = [a, b, c];
            tokens.sort_unstable();
            let span = Span::new(tokens[0], tokens[2], parts);
            let found = tokens.map(|token| span.part(token).unwrap());
            prop_assert!(found.is_sorted() && found[0] == 0 && found[2] < parts as usize);
            prop_assert_eq!(span.first(), tokens[0]);
            prop_assert_eq!(span.last(), tokens[2]);
            let outside = tokens[2].checked_add(1).and_then(|above| span.part(above));
            prop_assert_eq!(outside, None);
        }
    }
}
