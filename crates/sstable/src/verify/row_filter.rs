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
    if let Some(last) = of.last_page(file, report).await {
        content(file, &last, of, report).await;
    }
}

async fn content(file: &File, last: &[u8], of: Owner<'_>, report: &mut Report) {
    let binding = of.binding();
    if let Err(why) = is_of(last, file.len(), &binding, of.version) {
        return report.note(file.path(), None, format!("it is not used: {why}"));
    }
    if !can_tell(&of.data.schema) {
        return report.note(
            file.path(),
            None,
            "it is not used: one row's clustering key may have several forms",
        );
    }
    let mut comparison = Comparison::new(file);
    let take = async |pages| comparison.take(pages).await;
    match rebuild(of.index, of.data, of.version, binding, take, |_| {}).await {
        Ok(_) => comparison.settle("the SSTable", report),
        // What is wrong with the index or the data has been said.
        Err(error) => report.note(file.path(), None, format!("it cannot be checked: {error}")),
    }
}
