//! What ScyllaDB has published of its programs, as far as it is drawn beside ours: a file that names columns as our results do.
//!
//! Requests and bytes are of the same work on the same rows. Times and rates are of other machines: they show the shape of a
//! curve, not who is faster.

use std::sync::LazyLock;

use serde_json::Value;

static TABLES: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../../../docs/performance/published.json");
    serde_json::from_str(text).expect("the file is JSON")
});

/// Slices of a partition; with a linear scan of its index, and with the binary search that took its place.
pub(super) const SLICES: &str = "slices";

/// Slices with gaps between them, in those two ways.
pub(super) const SKIPS: &str = "skips";

/// A row in the middle, and then the next one with what the first has left in the caches; before and after the exact range. How
/// large values are was not said.
pub(super) const NEIGHBOURS: &str = "neighbours";

/// Rows by their keys, with less memory than there is data, and with none for it; before and after the compact index.
pub(super) const QUERIES: &str = "queries";

/// Rows of three SSTables, read all at once or newest first; milliseconds.
pub(super) const SINGLE_KEY: &str = "single key";

/// The lines of one of these tables.
///
/// # Panics
/// If there is none of that name.
pub(super) fn lines(table: &str) -> &'static [Value] {
    TABLES[table].as_array().expect("the table is there")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_lines() {
        let counts = [SLICES, SKIPS, NEIGHBOURS, QUERIES, SINGLE_KEY].map(|table| lines(table).len());
        assert_eq!(counts, [16, 1, 2, 3, 5]);
    }
}
