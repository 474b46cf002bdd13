//! RowFilter.db: every page's checksum, which SSTable it is of, and that it is what Index.db and the rows of large partitions make
//! of it, byte by byte.
//!
//! Reads do well without. So what is of another SSTable, or of a format that is not known, is a note.

use runtime::File;

use super::pages::{Comparison, Owner};
use super::report::Report;
use crate::parts::row_filter::{can_tell, is_of, rebuild};

/// Checks which rows are told.
pub(super) async fn check(file: &File, of: Owner<'_>, report: &mut Report) {
    if !of.uses(file, is_of, report).await {
        return;
    }
    if !can_tell(&of.data.schema) {
        let what = "it is not used: one row's clustering key may have several forms";
        return report.note(file.path(), None, what);
    }
    let mut comparison = Comparison::new(file);
    let take = async |pages| comparison.take(pages).await;
    match rebuild(of.index, of.data, of.version, of.binding(), take, |_| {}).await {
        Ok(_) => comparison.settle("the SSTable", report),
        // What is wrong with the index or the data has been said.
        Err(error) => report.note(file.path(), None, format!("it cannot be checked: {error}")),
    }
}
