//! RowFilter.db, written beside an SSTable that is there already.

use runtime::Disk;

use crate::component::Component;
use crate::parts::beside::write_beside;
use crate::sstable::SSTable;
use crate::{Error, Result};

/// Builds RowFilter.db of an SSTable and writes it, in the place of the one it has; how many bytes it takes. `None`, and
/// nothing left, where no partition is large, where all of them are full of range tombstones, or where the clustering key has
/// types of which one value may have several forms. The SSTable uses it once it is opened anew, if it has fences.
///
/// Reads Index.db once, which `progress` is told of in bytes, and the data of large partitions. The file gets its name when
/// all of it is durable.
///
/// # Errors
/// Tables of secondary indexes, whose keys have no tokens; what cannot be read or written, or contradicts the format.
pub async fn write_row_filter(
    disk: &Disk,
    table: &SSTable,
    progress: impl FnMut(u64),
) -> Result<Option<u64>> {
    write_beside(disk, table, &Component::RowFilter, async |file| {
        let take = async |pages| {
            file.append(pages).await?;
            Ok::<(), Error>(())
        };
        table.rebuild_row_filter(disk, take, progress).await
    })
    .await
}
