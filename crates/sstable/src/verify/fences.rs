//! Fences.db: every page's checksum, which SSTable it is of, and that it is what Index.db makes of it, byte by byte.
//!
//! Reads do well without fences. So what is of another SSTable, or of a format that is not known, is a note.

use runtime::File;

use super::pages::{Comparison, Owner};
use super::report::Report;
use crate::parts::fences::{is_of, rebuild};

/// Checks fences.
pub(super) async fn check(file: &File, of: Owner<'_>, report: &mut Report) {
    if !of.uses(file, is_of, report).await {
        return;
    }
    let mut comparison = Comparison::new(file);
    let take = async |pages| comparison.take(pages).await;
    match rebuild(of.index, &of.data.codec, of.version, of.binding(), take, |_| {}).await {
        Ok(_) => comparison.settle("Index.db", report),
        // What is wrong with Index.db has been said.
        Err(error) => report.error(error),
    }
}
