//! RowFilter.db of an SSTable from its Index.db, and from the data of its large partitions, each read once.

use std::ops::Range;
use std::rc::Rc;

use model::{DeletionTime, Position, Weight};
use runtime::{Cache, File};

use super::{RowFilterBuilder, can_tell, hash_of};
use crate::big::block_walk::BlockWalk;
use crate::big::entry::{Entry, EntryScanner, IndexSource, Promoted};
use crate::big::promoted_cursor::Block;
use crate::cache::cached_file::CachedFile;
use crate::data::reader::Data;
use crate::data::walk::{Item, Step, Walk};
use crate::index::INDEX_STEP;
use crate::parts::binding::Binding;
use crate::parts::fences::{LONGEST, STRETCH, is_large};
use crate::{Error, Result, Version};

/// Rows are read this many bytes at a time.
const DATA_STEP: u64 = 256 << 10;
/// For the blocks, each of which is met once. Bytes.
const CACHE: usize = 256 << 10;

/// Hands out the row filter of this SSTable, piece by piece: whole pages. `progress` is told how many bytes of Index.db are done.
/// `false` if nothing would be told; what was handed out is of no use then.
///
/// # Errors
/// What cannot be read or contradicts the format; what `take` says.
pub(crate) async fn rebuild(
    index: &File,
    data: &Rc<Data>,
    version: Version,
    binding: Binding,
    mut take: impl AsyncFnMut(Vec<u8>) -> Result<()>,
    mut progress: impl FnMut(u64),
) -> Result<bool> {
    if !can_tell(&data.schema) {
        return Ok(false);
    }
    let blocks = CachedFile::new(index.clone(), Cache::new(CACHE));
    let mut entries = EntryScanner::new(IndexSource::Streamed(index.clone()), 0..index.len(), INDEX_STEP);
    let mut builder = RowFilterBuilder::default();
    while let Some(entry) = entries.next().await? {
        let is_large = match entry.promoted.is_empty() {
            true => false,
            false => add_partition(&mut builder, &blocks, (data, version), &entry, &mut take).await?,
        };
        builder.end(is_large);
        progress(entries.position());
    }
    let (rest, is_of_use) = builder.finish(&binding, version).await;
    take(rest).await.map(|()| is_of_use)
}

/// Adds the rows of a partition with blocks, if it is large; whether the fences know it.
async fn add_partition(
    builder: &mut RowFilterBuilder,
    file: &CachedFile,
    (data, version): (&Rc<Data>, Version),
    entry: &Entry,
    take: &mut impl AsyncFnMut(Vec<u8>) -> Result<()>,
) -> Result<bool> {
    let promoted = Promoted::read(file, entry.promoted.clone(), version).await?;
    if !is_large(&promoted) {
        return Ok(false);
    }
    let start = promoted.blocks.start;
    let mut blocks = BlockWalk::new(promoted, version);
    let mut rows = Rows::new(data, entry).await?;
    let (mut open, mut stretch, mut is_fit) = (DeletionTime::LIVE, None, entry.key.len() <= LONGEST);
    loop {
        let at = blocks.position() - start;
        let Some(block) = blocks.next(file, &data.codec).await? else { return Ok(is_fit) };
        if stretch.replace(at / STRETCH) != Some(at / STRETCH) {
            is_fit &= blocks.first_prefix(&data.codec).len() <= LONGEST;
        }
        rows.add(&block, builder).await?;
        builder.block(at, !open.is_live());
        if let Some(pages) = builder.full_pages().await {
            take(pages).await?;
        }
        open = block.end_open;
    }
}

/// The rows of a partition beside its blocks.
struct Rows<'a> {
    data: &'a Data,
    walk: Walk,
    /// Where the partition begins.
    start: u64,
    place: Vec<u8>,
}

impl Rows<'_> {
    /// Behind the head of the partition of an entry.
    async fn new<'a>(data: &'a Rc<Data>, entry: &Entry) -> Result<Rows<'a>> {
        let (start, len) = (entry.data, data.file.len());
        let walk = Walk::new(data.clone(), start.min(len)..len, DATA_STEP);
        let mut rows = Rows { data, walk, start, place: Vec::new() };
        match rows.next().await? {
            Some((Item::Head { key, .. }, place)) if key == entry.key && place.start == start => Ok(rows),
            _ => Err(rows.wrong()),
        }
    }

    /// Adds those of the next block, which has to begin where the last one ended: a row in the wrong block would be taken for absent.
    async fn add(&mut self, block: &Block, builder: &mut RowFilterBuilder) -> Result<()> {
        let end = self.start.checked_add(block.end()).ok_or_else(|| self.wrong())?;
        if self.walk.position() - self.start != block.offset {
            return Err(self.wrong());
        }
        while self.walk.position() < end {
            let position = match self.next().await? {
                Some((Item::Row(row), _)) => Position::at(row.clustering),
                Some((Item::Marker(marker), _)) => marker.position,
                // Cassandra counts the byte that ends the partition in the last block.
                Some((Item::End, _)) => break,
                Some((Item::Head { .. }, _)) | None => return Err(self.wrong()),
            };
            match position.weight {
                Weight::At => {
                    self.place.clear();
                    self.data.codec.put_row_prefix(&position.prefix, &mut self.place);
                    builder.row(hash_of(&self.place));
                }
                _ => builder.marker(),
            }
        }
        if self.walk.position() == end { Ok(()) } else { Err(self.wrong()) }
    }

    async fn next(&mut self) -> Result<Option<(Item, Range<u64>)>> {
        loop {
            match self.walk.pop()? {
                Step::Item(item, place) => return Ok(Some((item, place))),
                Step::Fill => self.walk.fill().await?,
                Step::End => return Ok(None),
            }
        }
    }

    fn wrong(&self) -> Error {
        let what = "the blocks of the index are not those of the data";
        Error::corrupt(self.data.file.path(), self.walk.position(), what)
    }
}
