//! RocksDB: a row is a key and a value.

use ::rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, CompactOptions, DB, DBCompressionType, DBRawIterator,
    FlushOptions, Options, ReadOptions, WriteBatch,
};

use crate::Settings;
use crate::rows::{Found, clustering, key};
use crate::work::{Peer, Result, Way};

/// A database of RocksDB.
pub(crate) struct Rocks {
    database: &'static DB,
    /// Whether checksums of blocks are compared, which it does by itself.
    checks: bool,
    /// The iterator of the case that skips, which goes on where it is.
    onward: Option<DBRawIterator<'static>>,
}

/// Writes all rows, a batch after the other, and compacts them.
pub(crate) fn load(settings: &Settings) -> Result<()> {
    let mut options = options(settings);
    options.create_if_missing(true);
    let database = DB::open(&options, &settings.folder)?;
    for batch in settings.of_rows().batches() {
        let mut writes = WriteBatch::default();
        batch.iter().for_each(|(clustering, value)| writes.put(key(*clustering), value));
        database.write(writes)?;
    }
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    database.flush_opt(&flush)?;
    database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &CompactOptions::default());
    Ok(())
}

/// The defaults, but for what is told to all peers.
fn options(settings: &Settings) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes()));
    blocks.set_block_size(settings.block as usize * 1024);
    blocks.set_bloom_filter(10.0, false);
    if settings.bounded_index {
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        blocks.set_partition_filters(true);
        blocks.set_pin_top_level_index_and_filter(true);
    }
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_use_direct_reads(!settings.buffered);
    options.set_use_direct_io_for_flush_and_compaction(!settings.buffered);
    // Nothing but the reads is to be counted.
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

impl Rocks {
    /// Opens what was loaded.
    pub(crate) fn open(settings: &Settings) -> Result<Rocks> {
        // An iterator borrows its database, and both are needed until the process ends.
        let database = Box::leak(Box::new(DB::open(&options(settings), &settings.folder)?));
        Ok(Rocks { database, checks: !settings.unchecked, onward: None })
    }
}

impl Rocks {
    /// The defaults, but for what is told.
    fn reading(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_verify_checksums(self.checks);
        options
    }
}

impl Clone for Rocks {
    fn clone(&self) -> Rocks {
        // Each reader has an iterator of its own.
        Rocks { onward: None, ..*self }
    }
}

impl Peer for Rocks {
    async fn point(&mut self, clustering: i32, found: &mut Found) -> Result<()> {
        if let Some(value) = self.database.get_pinned_opt(key(clustering), &self.reading())? {
            found.row(clustering, &value);
        }
        Ok(())
    }

    async fn slice(&mut self, from: i32, rows: usize, way: Way, found: &mut Found) -> Result<()> {
        let mut iterator = self.database.raw_iterator_opt(self.reading());
        match way {
            Way::Forward => iterator.seek(key(from)),
            Way::Reverse => iterator.seek_for_prev(key(from)),
        }
        take(&mut iterator, rows, way, found)
    }

    async fn skip_to(&mut self, from: i32, rows: usize, found: &mut Found) -> Result<()> {
        let (database, options) = (self.database, self.reading());
        let iterator = self.onward.get_or_insert_with(|| database.raw_iterator_opt(options));
        iterator.seek(key(from));
        take(iterator, rows, Way::Forward, found)
    }

    async fn scan(&mut self, rows: usize, found: &mut Found) -> Result<()> {
        let mut iterator = self.database.raw_iterator_opt(self.reading());
        iterator.seek_to_first();
        take(&mut iterator, rows, Way::Forward, found)
    }
}

fn take(iterator: &mut DBRawIterator<'_>, rows: usize, way: Way, found: &mut Found) -> Result<()> {
    for number in 0..rows {
        if number > 0 {
            match way {
                Way::Forward => iterator.next(),
                Way::Reverse => iterator.prev(),
            }
        }
        match iterator.item() {
            Some((key, value)) => found.row(clustering(key), value),
            None => break,
        }
    }
    Ok(iterator.status()?)
}
