//! Ranges of the ring, as people write them and as an index finds them.
//!
//! ```text
//! -100..200    above -100, up to 200, as all of Cassandra's tools count     ..0    0..    ..     open ends
//! ```

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use model::Token;
use sstable::SSTable;
use sstable::component::Component;

use super::Rest;
use crate::error::{Error, Result};
use crate::read::Tables;

/// The tokens above one and up to another one.
///
/// Invariant: `above` is less than `up_to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TokenRange {
    above: Token,
    up_to: Token,
}

impl TokenRange {
    /// All tokens: no key has the least number.
    pub const ALL: TokenRange = TokenRange { above: Token::MIN, up_to: Token::MAX };

    /// The tokens above one and up to another one, which is greater; `None` otherwise.
    pub fn new(above: Token, up_to: Token) -> Option<TokenRange> {
        (above < up_to).then_some(TokenRange { above, up_to })
    }

    /// Whether a token is one of them.
    pub fn contains(&self, token: Token) -> bool {
        self.above < token && token <= self.up_to
    }

    /// The data of an SSTable that has these tokens.
    pub(super) async fn stretch_of(&self, table: &SSTable) -> sstable::Result<Range<u64>> {
        let start = match self.above {
            Token::MIN => 0,
            above => table.data_above(above).await?,
        };
        Ok(start..table.data_above(self.up_to).await?)
    }
}

impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.above != Token::MIN {
            self.above.fmt(f)?;
        }
        f.write_str("..")?;
        if self.up_to != Token::MAX {
            self.up_to.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for TokenRange {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<TokenRange, String> {
        let expected = || format!("{text} is no range of tokens: one as -100..200 was expected");
        let (above, up_to) = text.split_once("..").ok_or_else(expected)?;
        let token = |text: &str, open: Token| match text.trim() {
            "" => Ok(open),
            text => text.parse().map_err(|_| expected()),
        };
        let (above, up_to) = (token(above, Token::MIN)?, token(up_to, Token::MAX)?);
        TokenRange::new(above, up_to).ok_or_else(|| {
            format!(
                "{text} has no tokens: one that goes over the end of the ring is two, {above}.. and ..{up_to}"
            )
        })
    }
}

/// The ranges in order, if they have no token in common and leave nothing out that is not to be left out.
pub(super) async fn checked(tables: &Tables, ranges: &[TokenRange], rest: Rest) -> Result<Vec<TokenRange>> {
    let mut ranges = ranges.to_vec();
    ranges.sort();
    if let Some(pair) = ranges.windows(2).find(|pair| pair[1].above < pair[0].up_to) {
        let what = format!("the ranges {} and {} have tokens in common", pair[0], pair[1]);
        return Err(Error::Usage(what));
    }
    if rest == Rest::Refused {
        for gap in gaps(&ranges) {
            check_gap(tables, &gap).await?;
        }
    }
    Ok(ranges)
}

/// What is between the ranges, before the first and behind the last.
fn gaps(ranges: &[TokenRange]) -> Vec<TokenRange> {
    let starts = [Token::MIN].into_iter().chain(ranges.iter().map(|range| range.up_to));
    let ends = ranges.iter().map(|range| range.above).chain([Token::MAX]);
    starts.zip(ends).filter_map(|(above, up_to)| TokenRange::new(above, up_to)).collect()
}

async fn check_gap(tables: &Tables, gap: &TokenRange) -> Result<()> {
    for table in tables.tables() {
        let stretch = gap.stretch_of(table).await?;
        if !stretch.is_empty() {
            return Err(Error::Usage(format!(
                "{} has {} bytes of data with tokens {gap}, which is in none of the ranges; --leave-out-rest leaves \
                 such out",
                table.descriptor().path_of(&Component::Data).display(),
                stretch.end - stretch.start,
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> TokenRange {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_are_read_and_printed() {
        for text in ["-100..200", "..0", "7..", "..", "-5..-4"] {
            assert_eq!(range(text).to_string(), text);
        }
        assert_eq!(range(".."), TokenRange::ALL);
        assert_eq!(
            [-101, -100, -99, 200, 201].map(|token| range("-100..200").contains(token)),
            [false, false, true, true, false]
        );
        for text in ["", "5", "a..b", "5..5", "7..-7", "..99999999999999999999"] {
            assert!(text.parse::<TokenRange>().is_err(), "{text}");
        }
        assert!("7..-7".parse::<TokenRange>().unwrap_err().contains("7.. and ..-7"));
    }

    #[test]
    fn gaps_are_what_is_left() {
        let of = |ranges: &[&str]| -> Vec<String> {
            let ranges: Vec<TokenRange> = ranges.iter().map(|text| range(text)).collect();
            gaps(&ranges).iter().map(TokenRange::to_string).collect()
        };
        assert_eq!(of(&["..0", "0.."]), [""; 0]);
        assert_eq!(of(&["-9..0", "0..3", "5..9"]), ["..-9", "3..5", "9.."]);
        assert_eq!(of(&[]), [".."]);
    }
}
