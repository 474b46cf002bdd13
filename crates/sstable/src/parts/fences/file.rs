//! Fences.db, written beside an SSTable that is there already.

use runtime::Disk;

use crate::component::Component;
use crate::parts::beside::write_beside;
use crate::sstable::SSTable;
use crate::{Error, Result};

/// Builds the fences of an SSTable and writes them, in the place of those it has; how many bytes they take. `None`,
/// and nothing is left, where they would spare a read nothing. The SSTable follows them once it is opened anew.
///
/// Reads Index.db once, which `progress` is told of in bytes. The file gets its name when all of it is durable.
///
/// # Errors
/// Tables of secondary indexes, whose keys have no tokens; what cannot be read or written, or contradicts the format.
pub async fn write_fences(disk: &Disk, table: &SSTable, progress: impl FnMut(u64)) -> Result<Option<u64>> {
    write_beside(disk, table, &Component::Fences, async |file| {
        let take = async |pages| {
            file.append(pages).await?;
            Ok::<(), Error>(())
        };
        table.rebuild_fences(disk, take, progress).await
    })
    .await
}
