//! Fences.db: every page's checksum, which SSTable it is of, and that it is what Index.db makes of it, byte by byte.
//!
//! Reads do well without fences. So what is of another SSTable, or of a format that is not known, is a note.

use runtime::File;

use super::pages::{Comparison, Owner};
use super::report::Report;
use crate::parts::fences::{is_of, rebuild};

/// Checks fences.
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
    let mut comparison = Comparison::new(file);
    let take = async |pages| comparison.take(pages).await;
    match rebuild(of.index, &of.data.codec, of.version, binding, take, |_| {}).await {
        Ok(_) => comparison.settle("Index.db", report),
        // What is wrong with Index.db has been said.
        Err(error) => report.error(error),
    }
}
