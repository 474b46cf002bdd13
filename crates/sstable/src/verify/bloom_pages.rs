//! BloomPages.db: every page's checksum, which SSTable it is of, and that no key of Index.db is absent there.
//!
//! Reads do well without. So what is of another SSTable, or of a format that is not known, is a note.

use model::Bytes;
use model::key::murmur3;
use runtime::{Cache, File};

use super::INDEX_STEP;
use super::pages::Owner;
use super::report::Report;
use crate::Result;
use crate::big::entry::{EntryScanner, IndexSource};
use crate::parts::bloom_pages::{BloomPages, FilterPages};

/// For the pages that were asked last. Bytes.
const CACHE: usize = 64 << 10;

/// Checks the pages of a filter.
pub(super) async fn check(file: &File, of: Owner<'_>, report: &mut Report) {
    if of.last_page(file, report).await.is_none() {
        return;
    }
    let shared = FilterPages::new(&Cache::new(CACHE));
    match BloomPages::open(file.clone(), shared, of.version, of.binding()).await {
        Err(why) => report.note(file.path(), None, format!("it is not used: {why}")),
        Ok(pages) => match absent_key(&pages, of.index).await {
            Ok(None) => {}
            Ok(Some(key)) => report.wrong_file(file.path(), format!("its pages deny the key {key:?}")),
            Err(error) => report.error(error),
        },
    }
}

/// The first key of Index.db that is not let pass.
async fn absent_key(pages: &BloomPages, index: &File) -> Result<Option<Bytes>> {
    let source = IndexSource::Streamed(index.clone());
    let mut entries = EntryScanner::new(source, 0..index.len(), INDEX_STEP);
    while let Some(entry) = entries.next().await? {
        if !pages.may_contain(murmur3(&entry.key)).await? {
            return Ok(Some(entry.key));
        }
    }
    Ok(None)
}
