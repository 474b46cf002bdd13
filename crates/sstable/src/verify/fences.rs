//! Fences.db: every page's checksum, which SSTable it is of, that it is what Index.db makes of it, byte by byte, and that no partition is
//! deleted where it says so.
//!
//! Reads do well without fences. So what is of another SSTable, or of a format that is not known, is a note.

use runtime::File;

use super::pages::{Comparison, Owner};
use super::report::Report;
use crate::parts::fences::{Deletions, is_of, is_undeleted, rebuild};
use crate::parts::sealed_page::PAGE;

/// Checks fences of an SSTable in which some partition was found to be deleted, or none.
pub(super) async fn check(file: &File, of: Owner<'_>, has_partition_deletion: bool, report: &mut Report) {
    if !of.uses(file, is_of, report).await {
        return;
    }
    let mut comparison = Comparison::new(file);
    let take = async |pages| comparison.take(pages).await;
    let is_undeleted = match file.read_exact_at(file.len() - PAGE as u64, PAGE).await {
        Ok(last) => is_undeleted(&last, file.len(), &of.binding(), of.version),
        Err(error) => return report.error(error.into()),
    };
    if is_undeleted && has_partition_deletion {
        report.wrong_file(file.path(), "it says that no partition is deleted, and one is");
    }
    let known = (of.binding(), if is_undeleted { Deletions::None } else { Deletions::Unknown });
    match rebuild(of.index, &of.data.codec, of.version, known, take, |_| {}).await {
        Ok(_) => comparison.settle("Index.db", report),
        // What is wrong with Index.db has been said.
        Err(error) => report.error(error),
    }
}
