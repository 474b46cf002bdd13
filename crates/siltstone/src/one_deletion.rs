//! Rows with one deletion, as Cassandra's compactions leave them.
//!
//! A row may have been deleted in one SSTable and shadowed by an update of a materialized view in another. ScyllaDB keeps both
//! deletions; Cassandra keeps the greater one. A row of a single SSTable is never changed: what cannot be told of it is
//! refused.

use model::{Fragment, FragmentReader, Next};
use sstable::data::row::Family;

use crate::convert::Target;
use crate::read::Tables;

/// A reader of which rows keep but the greater of their two deletions, if that is asked for.
#[derive(Debug)]
pub(crate) struct OneDeletion<R> {
    reader: R,
    is_asked_for: bool,
}

impl<R> OneDeletion<R> {
    /// For what is merged of these tables and written to that target.
    pub(crate) fn for_target(reader: R, tables: &Tables, target: &Target) -> OneDeletion<R> {
        let is_asked_for = tables.tables().len() > 1 && target.family == Family::Cassandra;
        OneDeletion { reader, is_asked_for }
    }
}

impl<R: FragmentReader> FragmentReader for OneDeletion<R> {
    type Error = R::Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next, R::Error> {
        let next = self.reader.pop(place)?;
        if self.is_asked_for
            && let (Next::Fragment, Fragment::Row(row) | Fragment::StaticRow(row)) = (next, place)
        {
            row.keep_greater_deletion();
        }
        Ok(next)
    }

    async fn fill(&mut self) -> Result<(), R::Error> {
        self.reader.fill().await
    }
}
