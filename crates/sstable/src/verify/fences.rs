//! Fences.db: every page's checksum, which SSTable it is of, and that it is what Index.db makes of it, byte by byte.
//!
//! Reads do well without fences. So what is of another SSTable, or of a format that is not known, is a note.

use runtime::File;

use super::pages::Owner;
use super::report::Report;
use crate::Error;
use crate::parts::fences::{PAGE, is_of, rebuild};

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
    let (mut at, mut wrong) = (0, None);
    let take = async |pages: Vec<u8>| {
        let there = file.len().saturating_sub(at).min(pages.len() as u64) as usize;
        if wrong.is_none() && there > 0 {
            let found = file.read_exact_at(at, there).await?;
            let both = found.chunks(PAGE as usize).zip(pages.chunks(PAGE as usize));
            let place = both.zip((at..).step_by(PAGE as usize)).find(|((found, page), _)| found != page);
            wrong = place.map(|(_, place)| place);
        }
        if there < pages.len() {
            wrong.get_or_insert(at + there as u64);
        }
        at += pages.len() as u64;
        Ok::<(), Error>(())
    };
    let rebuilt = rebuild(of.index, &of.data.codec, of.version, binding, take, |_| {}).await;
    match (rebuilt, wrong) {
        // What is wrong with Index.db has been said.
        (Err(error), _) => report.error(error),
        (Ok(_), Some(at)) => report.wrong(file.path(), at, "a page is not what Index.db makes of it"),
        (Ok(_), None) if at != file.len() => {
            report.wrong(file.path(), at, "pages follow that Index.db does not make")
        }
        (Ok(_), None) => {}
    }
}
