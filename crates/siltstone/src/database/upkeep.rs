//! Flushes, compactions and snapshots of a table, on all of its shards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};

use sstable::component::{Component, Descriptor};
use storage::Tokens;
use storage::commit_log::TableId;
use storage::rewrite::Control;

use super::folder::{self, SCHEMA, name_of};
use super::worker::Worker;
use super::{Inner, TableState};
use crate::{Error, Result};

/// The folder of a table's snapshots.
const SNAPSHOTS: &str = "snapshots";

/// Flushes the table.
pub(super) async fn flush(inner: &Inner, state: &TableState) -> Result<()> {
    inner.check_writable()?;
    inner.each(async |worker, id| worker.flush(id).await, &state.id).await.map(drop)
}

/// Splits what several shards share, then merges all that each shard has for itself.
pub(super) async fn compact(inner: &Inner, state: &TableState) -> Result<()> {
    inner.check_writable()?;
    if !inner.has_schema(state) {
        let what = "for how long it keeps tombstones is not known, as it has no schema.cql: it is only read";
        return Err(Error::file(&state.folder, what));
    }
    let _turn = state.upkeep.take().await;
    split(inner, state.id).await?;
    inner.each(async |worker, id| worker.compact(id).await, &state.id).await.map(drop)
}

/// Gives each shard its own part of SSTables that several share. Each is split by the shard that has its first partition;
/// the old ones are removed when nobody reads them any more.
async fn split(inner: &Inner, id: TableId) -> Result<()> {
    let parts: Vec<Tokens> = inner.ring.parts().collect();
    let splits = inner.each(async |worker, (id, parts)| worker.split(id, parts).await, &(id, parts)).await?;
    let splits: Vec<Changed> = splits.into_iter().flatten().collect();
    if splits.is_empty() {
        return Ok(());
    }
    inner.each(async |worker, (id, splits)| worker.adopt(id, splits).await, &(id, splits)).await?;
    inner.each(async |worker, id| worker.remove_split(id).await, &id).await.map(drop)
}

/// Links all files of all SSTables.
pub(super) async fn snapshot(inner: &Inner, state: &Arc<TableState>, name: &str) -> Result<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        let what = "its folder is called so, without a slash in it and a dot in front";
        return Err(Error::Usage(format!("{name:?} is no name of a snapshot: {what}")));
    }
    flush(inner, state).await?;
    let _turn = state.upkeep.take().await;
    let path = state.folder.join(SNAPSHOTS).join(name);
    if path.exists() {
        return Err(Error::Usage(format!("there is a snapshot {name} already, in {}", path.display())));
    }
    let made = path.clone();
    let make = async move |worker: Rc<Worker>| folder::make(worker.shard.disk(), &made).await;
    inner.shards[0].call(make).await?;
    let linked =
        inner.each(async |worker, (id, path)| worker.link(id, &path), &(state.id, path.clone())).await?;
    let files: BTreeSet<String> = linked.into_iter().flatten().collect();
    let text = state.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let to = path.clone();
    let finish = async move |worker: Rc<Worker>| finish_snapshot(&worker, &to, &files, text).await;
    inner.shards[0].call(finish).await?;
    Ok(path)
}

/// Writes what Cassandra writes beside the files, and makes all names durable.
async fn finish_snapshot(
    worker: &Worker,
    path: &Path,
    files: &BTreeSet<String>,
    schema: Option<String>,
) -> Result<()> {
    let disk = worker.shard.disk();
    if let Some(text) = schema {
        folder::write_text(disk, &path.join(SCHEMA), &text).await?;
    }
    let data: Vec<&String> = files.iter().filter(|file| file.ends_with("-Data.db")).collect();
    let manifest = serde_json::json!({ "files": data });
    folder::write_text(disk, &path.join("manifest.json"), &format!("{manifest}\n")).await
}

/// Descriptors that go and that come, as they can go to another shard.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    gone: Vec<Descriptor>,
    new: Vec<(Tokens, Descriptor)>,
}

impl Worker {
    /// Merges all SSTables that are this shard's alone.
    async fn compact(&self, id: TableId) -> Result<()> {
        let table = self.table(id)?.table.clone();
        Ok(self.store()?.compact(&table).await?)
    }

    /// Splits the shared SSTables that begin in this shard's part of the ring, unless that is done and was not adopted by all.
    async fn split(&self, id: TableId, parts: Vec<Tokens>) -> Result<Option<Changed>> {
        let shard = self.table(id)?;
        if let Some((changed, _)) = &*shard.split.borrow() {
            return Ok(Some(changed.clone()));
        }
        let tokens = shard.table.tokens();
        let begins_here = |member: &Rc<_>| {
            let member: &storage::sstable_set::Member = member;
            tokens.contain(member.first.token)
        };
        let inputs: Vec<_> = shard.table.shared().into_iter().filter(begins_here).collect();
        if inputs.is_empty() {
            return Ok(None);
        }
        let split = shard.table.split(&inputs, &parts, &Control::default()).await?;
        let gone = inputs.iter().map(|input| input.sstable.descriptor().clone()).collect();
        let changed = Changed { gone, new: split.new };
        shard.split.borrow_mut().replace((changed.clone(), split.committed));
        Ok(Some(changed))
    }

    async fn adopt(&self, id: TableId, splits: Vec<Changed>) -> Result<()> {
        let table = self.table(id)?.table.clone();
        for Changed { gone, new } in &splits {
            table.adopt(gone, new).await?;
        }
        Ok(())
    }

    async fn remove_split(&self, id: TableId) -> Result<()> {
        let split = self.table(id)?.split.borrow_mut().take();
        if let Some((_, committed)) = split {
            committed.remove_old().await?;
        }
        Ok(())
    }

    /// Links the files of this shard's SSTables, without a wait: nothing can take them away meanwhile. Their names.
    fn link(&self, id: TableId, to: &Path) -> Result<Vec<String>> {
        let shard = self.table(id)?;
        let set = shard.table.sstables();
        let own: BTreeSet<Descriptor> =
            set.members().iter().map(|member| member.sstable.descriptor().clone()).collect();
        let mut names = Vec::new();
        for file in self.shard.disk().list(shard.table.folder()).map_err(sstable::Error::from)? {
            let parsed: Option<(Descriptor, Component)> = Descriptor::parse_component(&file).ok();
            if !parsed.is_some_and(|(descriptor, _)| own.contains(&descriptor)) {
                continue;
            }
            let name = name_of(&file);
            match std::fs::hard_link(&file, to.join(&name)) {
                // An SSTable that is shared may have been linked by another shard.
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(Error::file(&file, format!("it cannot be linked: {error}")));
                }
                _ => names.push(name),
            }
        }
        Ok(names)
    }
}
