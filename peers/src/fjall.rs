//! fjall: a row is a key and a value. It has no direct reads: its requests are those to the operating system.

use ::fjall::config::{BlockSizePolicy, CompressionPolicy};
use ::fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use crate::Settings;
use crate::rows::{BATCH, Found, clustering, key};
use crate::work::{Peer, Result, Way};

/// The name of the only keyspace.
const KEYSPACE: &str = "rows";

/// A database of fjall.
#[derive(Clone)]
pub(crate) struct Fjall {
    /// Its threads go on as long as it is there.
    _database: Database,
    keyspace: Keyspace,
}

/// Writes all rows, a batch after the other, and compacts them.
pub(crate) fn load(settings: &Settings) -> Result<()> {
    let (database, keyspace) = open(settings)?;
    for rows in settings.of_rows().batches() {
        let mut batch = OwnedWriteBatch::with_capacity(database.clone(), BATCH);
        rows.into_iter().for_each(|(clustering, value)| batch.insert(&keyspace, key(clustering), value));
        batch.commit()?;
    }
    keyspace.rotate_memtable_and_wait()?;
    keyspace.major_compact()?;
    Ok(database.persist(PersistMode::SyncAll)?)
}

/// The defaults, but for what is told to all peers.
fn open(settings: &Settings) -> Result<(Database, Keyspace)> {
    let database = Database::builder(&settings.folder).cache_size(settings.cache_bytes() as u64).open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .data_block_size_policy(BlockSizePolicy::all(settings.block * 1024))
            .data_block_compression_policy(CompressionPolicy::disabled())
            .index_block_compression_policy(CompressionPolicy::disabled())
    };
    let keyspace = database.keyspace(KEYSPACE, options)?;
    Ok((database, keyspace))
}

impl Fjall {
    /// Opens what was loaded.
    pub(crate) fn open(settings: &Settings) -> Result<Fjall> {
        let (database, keyspace) = open(settings)?;
        Ok(Fjall { _database: database, keyspace })
    }
}

impl Peer for Fjall {
    async fn point(&mut self, clustering: i32, found: &mut Found) -> Result<()> {
        if let Some(value) = self.keyspace.get(key(clustering))? {
            found.row(clustering, &value);
        }
        Ok(())
    }

    async fn slice(&mut self, from: i32, rows: usize, way: Way, found: &mut Found) -> Result<()> {
        match way {
            Way::Forward => take(self.keyspace.range(key(from)..), rows, found),
            Way::Reverse => take(self.keyspace.range(..=key(from)).rev(), rows, found),
        }
    }

    async fn scan(&mut self, rows: usize, found: &mut Found) -> Result<()> {
        take(self.keyspace.iter(), rows, found)
    }
}

fn take(rows: impl Iterator<Item = Guard>, count: usize, found: &mut Found) -> Result<()> {
    for row in rows.take(count) {
        let (key, value) = row.into_inner()?;
        found.row(clustering(&key), &value);
    }
    Ok(())
}
