//! What components of our own have to be, of an SSTable that is there already.

use runtime::Disk;

use super::SSTable;
use crate::Result;
use crate::opener::Opener;
use crate::parts::binding::Binding;
use crate::parts::fences::{self, Deletions, MOST_HEADS};
use crate::parts::row_filter;

impl SSTable {
    /// Hands out what Fences.db has to be, piece by piece; `false` if it would spare a read nothing.
    pub(crate) async fn rebuild_fences(
        &self,
        disk: &Disk,
        take: impl AsyncFnMut(Vec<u8>) -> Result<()>,
        progress: impl FnMut(u64),
    ) -> Result<bool> {
        let binding = self.binding(disk).await?;
        // Without a digest it would not be believed.
        let deletions = binding.digest.map_or(Deletions::Unknown, |_| self.deletions_untold());
        let known = (binding, deletions);
        fences::rebuild(&self.index_file, &self.data.codec, self.version(), known, take, progress).await
    }

    /// Hands out what RowFilter.db has to be, piece by piece; `false` if it would tell of no row.
    pub(crate) async fn rebuild_row_filter(
        &self,
        disk: &Disk,
        take: impl AsyncFnMut(Vec<u8>) -> Result<()>,
        progress: impl FnMut(u64),
    ) -> Result<bool> {
        let binding = self.binding(disk).await?;
        row_filter::rebuild(&self.index_file, &self.data, self.version(), binding, take, progress).await
    }

    /// What of deletions Fences.db is to tell, as Statistics.db does not. It is looked for anew, whatever fences there are, and only where it
    /// tells that an SSTable need not be asked for rows that lie elsewhere.
    fn deletions_untold(&self) -> Deletions<'_> {
        let (stats, version) = (&self.statistics.stats, self.version());
        let is_untold = stats.may_have_partition_deletions && !version.has_partition_deletion_flag();
        if !is_untold || !stats.covered_clustering.is_accurate || self.schema().clustering.is_empty() {
            return Deletions::Unknown;
        }
        Deletions::Sought((stats.partition_sizes.count() <= MOST_HEADS).then_some(&self.data))
    }

    /// What a component of our own is bound to.
    async fn binding(&self, disk: &Disk) -> Result<Binding> {
        let digest = Opener { disk, descriptor: &self.descriptor }.digest().await?;
        Ok(Binding {
            digest: digest.map(|digest| digest.0),
            data_len: self.data.file.file().len(),
            index_len: self.index_file.len(),
        })
    }
}
