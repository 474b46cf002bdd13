//! A component of our own, written beside an SSTable that is there already, so that at any time there is all of it or none.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runtime::{Disk, NewFile};

use crate::component::Component;
use crate::parts::statistics::Partitioner;
use crate::sstable::SSTable;
use crate::{Error, Result};

/// Writes a component of an SSTable, in the place of the one it has; how many bytes it takes. `None`, and nothing is left, where
/// `write` says that it is of no use. The file gets its name when all of it is durable.
///
/// # Errors
/// Tables of secondary indexes, whose keys have no tokens; what `write` and the operating system say.
pub(crate) async fn write_beside(
    disk: &Disk,
    table: &SSTable,
    component: &Component,
    write: impl AsyncFnOnce(&mut NewFile) -> Result<bool>,
) -> Result<Option<u64>> {
    let path = table.descriptor().path_of(component);
    if table.statistics().validation.partitioner == Partitioner::Local {
        let what = format!("the table of a secondary index has no tokens, and so no {component}");
        return Err(Error::unsupported(&path, what));
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    remove_if_there(disk, &temporary).await?;
    let written = async {
        let mut file = disk.create_direct(&temporary, component.io_class()).await?;
        if !write(&mut file).await? {
            return Ok(None);
        }
        file.sync().await?;
        Ok(Some(file.len()))
    };
    let written = written.await;
    if let Ok(Some(_)) = written {
        disk.rename(&temporary, &path).await?;
        disk.sync_dir(folder_of(&path)).await?;
        return written;
    }
    // What made the writing fail is what is told.
    drop(remove_if_there(disk, &temporary).await);
    if let Ok(None) = written {
        remove_if_there(disk, &path).await?;
    }
    written
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
