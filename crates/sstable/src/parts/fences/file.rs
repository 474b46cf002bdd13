//! Fences.db, written beside an SSTable that is there already, so that at any time there is all of it or none.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runtime::Disk;

use crate::component::{Component, FENCES_IO};
use crate::parts::statistics::Partitioner;
use crate::sstable::SSTable;
use crate::{Error, Result};

/// Builds the fences of an SSTable and writes them, in the place of those it has; how many bytes they take. `None`,
/// and nothing written, where they would spare a read nothing. The SSTable follows them once it is opened anew.
///
/// Reads Index.db once, which `progress` is told of in bytes. The file gets its name when all of it is durable.
///
/// # Errors
/// Tables of secondary indexes, whose keys have no tokens; what cannot be read or written, or contradicts the format.
pub async fn write_fences(disk: &Disk, table: &SSTable, progress: impl FnMut(u64)) -> Result<Option<u64>> {
    let path = table.descriptor().path_of(&Component::Fences);
    if table.statistics().validation.partitioner == Partitioner::Local {
        let what = "the table of a secondary index has no tokens, and so no fences";
        return Err(Error::unsupported(&path, what));
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    remove_if_there(disk, &temporary).await?;
    let written = write(disk, &temporary, table, progress).await;
    if let Ok(Some(_)) = written {
        disk.rename(&temporary, &path).await?;
        disk.sync_dir(folder_of(&path)).await?;
    } else {
        // What made the writing fail is what is told.
        drop(remove_if_there(disk, &temporary).await);
    }
    written
}

async fn write(disk: &Disk, path: &Path, table: &SSTable, progress: impl FnMut(u64)) -> Result<Option<u64>> {
    let mut file = disk.create(path, FENCES_IO).await?;
    let take = async |pages| {
        file.append(pages).await?;
        Ok(())
    };
    let is_worthwhile = table.rebuild_fences(disk, take, progress).await?;
    if !is_worthwhile {
        return Ok(None);
    }
    file.sync().await?;
    Ok(Some(file.len()))
}

async fn remove_if_there(disk: &Disk, path: &Path) -> Result<()> {
    match disk.remove(path).await {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
