//! What the components of our own have in common: pages with checksums, and the SSTable that they are of.

use std::rc::Rc;

use runtime::File;

use super::report::Report;
use crate::data::reader::Data;
use crate::parts::binding::Binding;
use crate::parts::digest::Digest;
use crate::parts::sealed_page::{PAGE, is_sound};
use crate::parts::statistics::Partitioner;
use crate::{Error, Result, Version};

/// The SSTable that such a component has to be of.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) data: &'a Rc<Data>,
    pub(super) index: &'a File,
    pub(super) partitioner: Partitioner,
    pub(super) digest: Option<Digest>,
    pub(super) version: Version,
}

impl Owner<'_> {
    /// What the component has to name.
    pub(super) fn binding(&self) -> Binding {
        Binding {
            digest: self.digest.map(|digest| digest.0),
            data_len: self.data.file.file().len(),
            index_len: self.index.len(),
        }
    }

    /// Whether such a component is used, and its pages are sound for themselves: then what they tell is to be checked. One of another
    /// SSTable, or of a format that is not known, is a note.
    pub(super) async fn uses(&self, file: &File, is_of: IsOf, report: &mut Report) -> bool {
        let Some(last) = self.last_page(file, report).await else { return false };
        let fits = is_of(&last, file.len(), &self.binding(), self.version);
        if let Err(why) = fits {
            report.note(file.path(), None, format!("it is not used: {why}"));
        }
        fits.is_ok()
    }

    /// The last page of such a component, if there is something more to check: it is used, and all its pages are sound.
    pub(super) async fn last_page(&self, file: &File, report: &mut Report) -> Option<Vec<u8>> {
        if self.partitioner == Partitioner::Local {
            let what = "the table of a secondary index has no tokens: this file is not used";
            report.note(file.path(), None, what);
            return None;
        }
        sound(file, report).await.unwrap_or_else(|error: Error| {
            report.error(error);
            None
        })
    }
}

/// Whether a file of so many bytes and with this last page is of an SSTable; otherwise why it is of no use.
type IsOf = fn(&[u8], u64, &Binding, Version) -> std::result::Result<(), &'static str>;

/// Such a component beside what it has to be, page by page.
pub(super) struct Comparison<'a> {
    file: &'a File,
    /// Where the pages so far end.
    at: u64,
    /// The first page that is another one.
    wrong: Option<u64>,
}

impl Comparison<'_> {
    /// Before the first page.
    pub(super) fn new(file: &File) -> Comparison<'_> {
        Comparison { file, at: 0, wrong: None }
    }

    /// The next pages that there have to be.
    pub(super) async fn take(&mut self, pages: Vec<u8>) -> Result<()> {
        let there = self.file.len().saturating_sub(self.at).min(pages.len() as u64) as usize;
        if self.wrong.is_none() && there > 0 {
            let found = self.file.read_exact_at(self.at, there).await?;
            let both = found.chunks(PAGE).zip(pages.chunks(PAGE));
            let place = both.zip((self.at..).step_by(PAGE)).find(|((found, page), _)| found != page);
            self.wrong = place.map(|(_, place)| place);
        }
        if there < pages.len() {
            self.wrong.get_or_insert(self.at + there as u64);
        }
        self.at += pages.len() as u64;
        Ok(())
    }

    /// Tells what is wrong, if all pages came; `source` makes them.
    pub(super) fn settle(self, source: &str, report: &mut Report) {
        match self.wrong {
            Some(at) => {
                report.wrong(self.file.path(), at, format!("a page is not what {source} makes of it"));
            }
            None if self.at != self.file.len() => {
                report.wrong(self.file.path(), self.at, format!("pages follow that {source} does not make"));
            }
            None => {}
        }
    }
}

/// Checks the pages for themselves; the last of them, if all are sound.
async fn sound(file: &File, report: &mut Report) -> Result<Option<Vec<u8>>> {
    let page = PAGE as u64;
    if file.len() == 0 || !file.len().is_multiple_of(page) {
        report.wrong(file.path(), file.len() / page * page, "the file ends inside a page");
        return Ok(None);
    }
    let (mut last, mut all_sound) = (Vec::new(), true);
    for at in (0..file.len()).step_by(PAGE) {
        last = file.read_exact_at(at, PAGE).await?.to_vec();
        if !is_sound(&last) {
            report.wrong(file.path(), at, "the checksum of a page is wrong");
            all_sound = false;
        }
    }
    Ok(all_sound.then_some(last))
}
