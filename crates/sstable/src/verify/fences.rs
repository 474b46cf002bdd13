//! Fences.db: every page's checksum, which SSTable it is of, and that it is what Index.db makes of it, byte by byte.
//!
//! Reads do well without fences. So what is of another SSTable, or of a format that is not known, is a note.

use runtime::File;

use super::report::Report;
use crate::data::reader::Data;
use crate::parts::digest::Digest;
use crate::parts::fences::{Binding, PAGE, is_of, is_sound, rebuild};
use crate::parts::statistics::Partitioner;
use crate::{Error, Result, Version};

/// What fences belong to.
#[derive(Clone, Copy)]
pub(super) struct FencesOf<'a> {
    pub(super) data: &'a Data,
    pub(super) index: &'a File,
    pub(super) partitioner: Partitioner,
    pub(super) digest: Option<Digest>,
    pub(super) version: Version,
}

/// Checks fences.
pub(super) async fn check(file: &File, of: FencesOf<'_>, report: &mut Report) {
    if of.partitioner == Partitioner::Local {
        let what = "the table of a secondary index has no tokens: its fences are not used";
        return report.note(file.path(), None, what);
    }
    match pages(file, report).await {
        Ok(Some(last)) => content(file, &last, of, report).await,
        Ok(None) => {}
        Err(error) => report.error(error),
    }
}

/// Checks the pages for themselves; the last of them, if all are sound.
async fn pages(file: &File, report: &mut Report) -> Result<Option<Vec<u8>>> {
    if file.len() == 0 || !file.len().is_multiple_of(PAGE) {
        report.wrong(file.path(), file.len() / PAGE * PAGE, "the file ends inside a page");
        return Ok(None);
    }
    let (mut last, mut all_sound) = (Vec::new(), true);
    for at in (0..file.len()).step_by(PAGE as usize) {
        last = file.read_exact_at(at, PAGE as usize).await?.to_vec();
        if !is_sound(&last) {
            report.wrong(file.path(), at, "the checksum of a page is wrong");
            all_sound = false;
        }
    }
    Ok(all_sound.then_some(last))
}

async fn content(file: &File, last: &[u8], of: FencesOf<'_>, report: &mut Report) {
    let binding = Binding {
        digest: of.digest.map(|digest| digest.0),
        data_len: of.data.file.file().len(),
        index_len: of.index.len(),
    };
    if let Err(why) = is_of(last, file.len(), &binding, of.version) {
        return report.note(file.path(), None, format!("it is not used: {why}"));
    }
    let (mut at, mut wrong) = (0, None);
    let take = async |pages: Vec<u8>| {
        let end = at + pages.len() as u64;
        if end > file.len() {
            wrong.get_or_insert(at);
        } else if wrong.is_none() && !pages.is_empty() {
            let found = file.read_exact_at(at, pages.len()).await?;
            let differs = |page: &usize| {
                found[page * PAGE as usize..][..PAGE as usize]
                    != pages[page * PAGE as usize..][..PAGE as usize]
            };
            wrong = (0..pages.len() / PAGE as usize).find(differs).map(|page| at + page as u64 * PAGE);
        }
        at = end;
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
