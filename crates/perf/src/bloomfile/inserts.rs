//! New rows into a table of many SSTables that overlap: whether they are there is asked first.
//!
//! ```text
//! a batch of sorted keys ──► the filters of all SSTables, in one way or another ──► the commit log and a memtable
//! ```
//!
//! With the pages at hand it is the store's own way, `Table::begin_all`, with all that a read is; in the other ways the
//! filters are asked by themselves, which does them a favour. Keys that pass a filter are looked for in its SSTable.

use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use model::{Bytes, Clustering, CqlType, Liveness, Mutation, PartitionKey, Row, Schema, Slice, flat};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::{Error, Result};
use sstable::component::Component;
use sstable::parts::binding::Binding;
use sstable::parts::bloom_pages::{BloomPages, FilterPages};
use sstable::parts::digest::Digest;
use sstable::{ReadOptions, SSTable, Version, WriteOptions};
use storage::commit_log::{LogPosition, TableId};
use storage::sstable_set::SSTableSet;
use storage::{Begun, Caching, Definition, Generations, ReadRequest, Store, StoreOptions, Table};

use super::before::Shared;
use super::cases::{Taken, processors};
use super::files::mixed;
use super::ways::{Asker, Common, Way};
use crate::clocks::Clocks;
use crate::interrupted;
use crate::room;

const VERSION: Version = Version::Me;
const TABLE: TableId = TableId([9; 16]);
/// What goes into the memtable does not come out of it while it is measured. Bytes.
const MEMTABLES: usize = 8 << 30;

/// What a run is made of.
#[derive(Clone, Debug)]
pub(crate) struct Inserts {
    /// SSTables that overlap everywhere.
    pub(crate) sstables: u32,
    /// Partitions of each.
    pub(crate) partitions: u32,
    /// Rows that are inserted.
    pub(crate) rows: u64,
    /// So many at a time.
    pub(crate) batch: u64,
    pub(crate) fp_chance: f64,
    pub(crate) cache: usize,
    pub(crate) machine: ShardOptions,
}

impl Inserts {
    /// Does it in this way, in a new folder.
    ///
    /// # Errors
    /// What cannot be read or written; a row that is there, though it is new.
    pub(crate) fn run(&self, way: Way) -> Result<Taken> {
        let folder = room::temporary()?;
        runtime::run(self.machine.clone(), async |shard: Shard| {
            self.measure(&shard, folder.path(), way).await
        })?
    }

    async fn measure(&self, shard: &Shard, folder: &Path, way: Way) -> Result<Taken> {
        let (log, files) = (folder.join("commitlog"), folder.join("cf"));
        std::fs::create_dir_all(&log)?;
        std::fs::create_dir_all(&files)?;
        let options = StoreOptions { cache: self.cache, memtables: MEMTABLES, ..StoreOptions::default() };
        let store = Store::open(shard, &log, options).await?;
        let table = store.add_table(&files, self.definition(), &Generations::default()).await?;
        for sstable in 0..u64::from(self.sstables) {
            interrupted::check()?;
            let first = sstable * u64::from(self.partitions);
            (first..first + u64::from(self.partitions))
                .for_each(|number| table.apply(&mutation(key(number)), LogPosition::default()));
            table.flush(LogPosition::default, async |_, _| Ok(())).await?;
        }
        let asker = self.asker(shard, &table, way).await?;
        let mut taken = Taken { lookups: self.rows, ..Taken::default() };
        let before = asker.of_cache();
        for from in (0..self.rows).step_by(self.batch as usize) {
            interrupted::check()?;
            // Keys above those of all SSTables.
            let mut keys: Vec<PartitionKey> =
                (from..from + self.batch).map(|number| key(1 << 40 | number)).collect();
            keys.sort_unstable();
            let clocks = Clocks::now();
            let found = match way {
                Way::AtHand => found_by_table(&table, &keys).await?,
                _ => found_by_filters(&asker, &table.sstables(), &keys).await?,
            };
            taken.passed += found;
            for key in keys {
                let mut record = Vec::new();
                flat::put_mutation(&mutation(key), &mut record);
                store.write(TABLE, record).await?;
            }
            taken.time += clocks.passed();
        }
        let now = asker.of_cache();
        (taken.of_cache, taken.read) = (now.0 - before.0, now.1 - before.1);
        store.close().await?;
        Ok(taken)
    }

    /// The filters of the table's SSTables, as they are asked in another way than the table's own.
    async fn asker(&self, shard: &Shard, table: &Table, way: Way) -> Result<Asker> {
        let cache = Cache::new(self.cache);
        let (common, pages) = match way {
            Way::Before => {
                let shared = Shared::new(self.sstables, processors(), self.cache);
                (Common::Before(Arc::new(shared)), FilterPages::without_hand(&Cache::new(0)))
            }
            Way::AtHand => (Common::Nothing, store_pages(table)),
            Way::Whole => unreachable!("no table is asked in this way"),
            Way::PerShard => (Common::Nothing, FilterPages::without_hand(&cache)),
        };
        let mut files = Vec::new();
        for member in table.sstables().members().iter().filter(|_| way != Way::AtHand) {
            files.push(pages_of(shard, &member.sstable, &pages).await?);
        }
        Ok(Asker { way, common, processor: 0, files, pages, of_shared: Default::default() })
    }

    fn definition(&self) -> Definition {
        let schema = Rc::new(Schema::new(CqlType::BigInt, vec![], vec![], vec![]));
        let mut definition = Definition::new(TABLE, &schema, VERSION);
        definition.write = WriteOptions {
            bloom_filter_fp_chance: self.fp_chance,
            compression: None,
            ..WriteOptions::new(VERSION)
        };
        definition
    }
}

fn store_pages(table: &Table) -> FilterPages {
    table.context().filter_pages.clone()
}

/// The pages of an open SSTable's filter, opened once more.
async fn pages_of(shard: &Shard, sstable: &SSTable, pages: &FilterPages) -> Result<BloomPages> {
    let open = async |component: &Component| {
        let path = sstable.descriptor().path_of(component);
        shard.disk().open(&path, component.io_class()).await.map_err(sstable::Error::from)
    };
    let digest = open(&Component::Digest).await?;
    let bytes = digest.read_exact_at(0, digest.len() as usize).await.map_err(sstable::Error::from)?;
    let digest = Digest::parse(digest.path(), &bytes, VERSION)?;
    let binding = Binding {
        digest: Some(digest.0),
        data_len: sstable.data().file.file().len(),
        index_len: sstable.index_len(),
    };
    let file = open(&Component::BloomPages).await?;
    let path = file.path().to_owned();
    let opened = BloomPages::open(file, pages.clone(), VERSION, binding).await;
    opened.map_err(|why| Error::file(&path, why))
}

/// How many of these keys an SSTable may have, as the table asks.
async fn found_by_table(table: &Table, keys: &[PartitionKey]) -> Result<u64> {
    let request = |key: &PartitionKey| {
        let request = ReadRequest::new(key.clone(), Slice::all());
        Cow::Owned(ReadRequest { caching: Caching::Look, ..request })
    };
    let begun = table.begin_all(keys.iter().map(request).collect()).await?;
    let mut found = 0;
    for begun in begun {
        if let Begun::Unread(unread) = begun {
            found += 1;
            let mut stream = unread.open().await?;
            if crate::int_rows::count(&mut stream, None).await? > 0 {
                return Err(there_already());
            }
        }
    }
    Ok(found)
}

/// The same by filters and SSTables, one after the other.
async fn found_by_filters(asker: &Asker, set: &SSTableSet, keys: &[PartitionKey]) -> Result<u64> {
    let options = ReadOptions { is_filtered: true, ..ReadOptions::default() };
    let mut found = 0;
    for key in keys {
        let hash = model::key::murmur3(&key.bytes);
        let mut may = false;
        for (file, member) in (0..).zip(set.members()) {
            if asker.may_contain(file, hash).await? {
                may = true;
                if member.sstable.read(key, &Slice::all(), options).await?.is_some() {
                    return Err(there_already());
                }
            }
        }
        found += u64::from(may);
    }
    Ok(found)
}

fn there_already() -> Error {
    Error::Usage("a new row is there already".to_owned())
}

fn key(number: u64) -> PartitionKey {
    PartitionKey::new(Bytes::from(&mixed(number).to_be_bytes()[..]))
}

fn mutation(key: PartitionKey) -> Mutation {
    let liveness = Liveness { timestamp: 1_700_000_000_000_000, ..Liveness::NONE };
    Mutation { rows: vec![Row { liveness, ..Row::new(Clustering::empty()) }], ..Mutation::new(key) }
}
