//! Fences of an SSTable from its Index.db, which is read once from its start to its end; and a look at the data for what that does not
//! tell.

use std::rc::Rc;

use model::{DeletionTime, Fragment, FragmentReader, PartitionKey, Token};
use runtime::{Cache, File};

use super::builder::{FencesBuilder, is_large};
use crate::big::block_walk::BlockWalk;
use crate::big::entry::{Entry, EntryScanner, IndexSource, Promoted};
use crate::cache::cached_file::CachedFile;
use crate::data::reader::{Data, DataReader, Pace};
use crate::data::row::RowCodec;
use crate::index::{INDEX_STEP, token_for};
use crate::parts::binding::Binding;
use crate::parts::statistics::Partitioner;
use crate::{Error, Result, Version};

/// For the blocks of large partitions, each of which is met once. Bytes.
const CACHE: usize = 256 << 10;

/// Of so many partitions the heads are read in the data, where Index.db does not tell: a request each.
pub(crate) const MOST_HEADS: u64 = 1000;
/// Bytes of it.
const HEAD: u64 = 512;

/// What is known of deletions of whole partitions, before Index.db is read.
#[derive(Clone, Copy)]
pub(crate) enum Deletions<'a> {
    /// There are none: the fences tell that.
    None,
    /// There may be some.
    Unknown,
    /// It is looked for in Index.db, and of partitions without blocks in the data, if that is given: else they may be deleted.
    Sought(Option<&'a Rc<Data>>),
}

/// Hands out the fences of this Index.db, piece by piece: whole pages. They tell that no partition is deleted if that is found.
/// `progress` is told how many bytes of it are done.
/// `false` if they would spare a read nothing; what was handed out is of no use then.
///
/// # Errors
/// What cannot be read or contradicts the format; what `take` says.
pub(crate) async fn rebuild(
    index: &File,
    codec: &RowCodec,
    version: Version,
    (binding, deletions): (Binding, Deletions<'_>),
    mut take: impl AsyncFnMut(Vec<u8>) -> Result<()>,
    mut progress: impl FnMut(u64),
) -> Result<bool> {
    let blocks = CachedFile::new(index.clone(), Cache::new(CACHE));
    let mut entries = EntryScanner::new(IndexSource::Streamed(index.clone()), 0..index.len(), INDEX_STEP);
    let mut builder = FencesBuilder::new(version);
    let mut last = None;
    let mut is_undeleted = !matches!(deletions, Deletions::Unknown);
    while let Some(entry) = entries.next().await? {
        let token = token_for(Partitioner::Murmur3, &entry.key);
        if last.replace((token, entry.data)).is_some_and(|(last, data)| last > token || data >= entry.data) {
            let what = "the partitions of the index are out of order";
            return Err(Error::corrupt(index.path(), entry.at, what));
        }
        builder.entry(token, &entry.key, entry.at);
        let promoted = add_blocks(&mut builder, &blocks, codec, version, &entry).await?;
        builder.end_entry(promoted.as_ref(), entry.data);
        if let (Deletions::Sought(data), true) = (deletions, is_undeleted) {
            is_undeleted = match (&promoted, data) {
                (Some(promoted), _) => promoted.deletion.is_live(),
                (None, Some(data)) => has_live_head(data, &entry, token).await?,
                (None, None) => false,
            };
        }
        if builder.is_full() {
            take(builder.take_pages()).await?;
        }
        progress(entries.position());
    }
    if is_undeleted {
        builder.tell_undeleted();
    }
    let is_worthwhile = builder.is_worthwhile();
    take(builder.finish(binding)).await?;
    Ok(is_worthwhile)
}

/// Whether the data says that the partition of an entry is not deleted. If the data is not sound there, it does not say so.
async fn has_live_head(data: &Rc<Data>, entry: &Entry, token: Token) -> Result<bool> {
    let key = PartitionKey { token, bytes: entry.key.clone() };
    let range = entry.data..data.file.len();
    let mut reader = DataReader::scan(data.clone(), range, Pace::steady(HEAD, true)).expecting(&key);
    match reader.next().await {
        Ok(Some(Fragment::PartitionStart(start))) => Ok(start.deletion.is_live()),
        Err(Error::Io(error)) => Err(Error::Io(error)),
        _ => Ok(false),
    }
}

/// Adds the blocks of an entry, if it is a large one.
async fn add_blocks(
    builder: &mut FencesBuilder,
    file: &CachedFile,
    codec: &RowCodec,
    version: Version,
    entry: &Entry,
) -> Result<Option<Promoted>> {
    if entry.promoted.is_empty() {
        return Ok(None);
    }
    let promoted = Promoted::read(file, entry.promoted.clone(), version).await?;
    if !is_large(&promoted) {
        return Ok(Some(promoted));
    }
    let mut walk = BlockWalk::new(promoted.clone(), version);
    let mut open = DeletionTime::LIVE;
    loop {
        let (number, at) = (walk.number(), walk.position());
        let Some(block) = walk.next(file, codec).await? else { break };
        builder.block(number, at - promoted.blocks.start, &walk.first_prefix(codec), open);
        open = block.end_open;
    }
    if walk.position() != promoted.map {
        let what = "the blocks do not end where the offset map begins";
        return Err(Error::corrupt(file.path(), walk.position(), what));
    }
    Ok(Some(promoted))
}
