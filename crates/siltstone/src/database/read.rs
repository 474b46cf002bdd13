//! What is to be read: a slice of a partition, or a part of the ring.

use std::ops::RangeInclusive;

use model::Token;

use super::write::Bound;

/// How many rows a page has at the most, if nothing else is said: as many as Cassandra's drivers ask for.
pub const PAGE_ROWS: usize = 5000;

/// After how many bytes of rows a page ends, if nothing else is said: 1 MiB.
pub const PAGE_BYTES: usize = 1 << 20;

/// Some rows of a partition, page by page.
///
/// ```
/// use siltstone::database::{Bound, Slice};
///
/// let last_ten = Slice::all().to(Bound::excluding("2024-02-01")).reverse().limit(10);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub(super) from: Bound,
    pub(super) to: Bound,
    pub(super) is_reverse: bool,
    pub(super) page: PageOptions,
}

/// The rows of many partitions in the order of their tokens, page by page.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub(super) tokens: Option<RangeInclusive<Token>>,
    pub(super) page: PageOptions,
}

/// What both have.
#[derive(Clone, Debug)]
pub(super) struct PageOptions {
    pub(super) columns: Option<Vec<String>>,
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) resume: Option<Vec<u8>>,
    pub(super) now: Option<i64>,
}

impl Default for PageOptions {
    fn default() -> PageOptions {
        PageOptions { columns: None, rows: PAGE_ROWS, bytes: PAGE_BYTES, resume: None, now: None }
    }
}

impl Slice {
    /// All rows of the partition.
    pub fn all() -> Slice {
        Slice::default()
    }

    /// From this bound on, in the order of the table: where a clustering column descends, greater values come first.
    pub fn from(mut self, from: Bound) -> Slice {
        self.from = from;
        self
    }

    /// Up to this bound.
    pub fn to(mut self, to: Bound) -> Slice {
        self.to = to;
        self
    }

    /// From the last row to the first.
    pub fn reverse(mut self) -> Slice {
        self.is_reverse = true;
        self
    }
}

impl Scan {
    /// All partitions.
    pub fn all() -> Scan {
        Scan::default()
    }

    /// Partitions with these tokens only.
    pub fn tokens(mut self, tokens: RangeInclusive<Token>) -> Scan {
        self.tokens = Some(tokens);
        self
    }
}

macro_rules! pages {
    ($($of:ty),*) => {
        $(
            impl $of {
                /// These columns only, in this order. Default all, in the order of `SELECT *`.
                pub fn columns<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
                    self.page.columns = Some(columns.into_iter().map(Into::into).collect());
                    self
                }

                /// At most so many rows a page, and at least one. Default [`PAGE_ROWS`].
                pub fn limit(mut self, rows: usize) -> Self {
                    self.page.rows = rows.max(1);
                    self
                }

                /// A page ends with the row that reaches so many bytes. Default [`PAGE_BYTES`]. While it is read so many count among
                /// [`Options::reads`](super::Options::reads): a page of more than the share of a shard is read alone there.
                pub fn limit_bytes(mut self, bytes: usize) -> Self {
                    self.page.bytes = bytes.max(1);
                    self
                }

                /// Behind the rows of a page of the same read: its `next`. It stays valid whatever is written, and if the
                /// database is opened again.
                pub fn resume(mut self, next: impl Into<Option<Vec<u8>>>) -> Self {
                    self.page.resume = next.into();
                    self
                }

                /// What has expired by this second since 1970 is left out. Default the machine's clock.
                pub fn at(mut self, seconds: i64) -> Self {
                    self.page.now = Some(seconds);
                    self
                }
            }
        )*
    };
}

pages!(Slice, Scan);
