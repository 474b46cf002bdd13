//! A table whose SSTables overlap, and what is to be read of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, FragmentReader, LiveRows, Liveness,
    Mutation, PartitionKey, Row, Schema, Slice, time::NO_DELETION_TIME,
};
use runtime::{Cache, IoStats, Shard, SimOptions};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::{Caching, Context, Definition, Generations, ReadRequest, Result, Table, Tokens};
use sstable::Version;
use sstable::component::INDEX_IO;
use testkit::generate::random::Random;

/// Numbers of partitions are below this.
pub(crate) const KEYS: usize = 2000;
/// Partitions of an SSTable, at the most: so many that it has fences.
pub(crate) const PARTITIONS: usize = 300;
/// So many SSTables are many.
pub(crate) const SSTABLES: usize = 40;

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };

pub(crate) fn key(number: usize) -> PartitionKey {
    PartitionKey::new(Bytes::from(&(number as u32).to_be_bytes()[..]))
}

pub(crate) fn request(number: usize) -> ReadRequest {
    ReadRequest { caching: Caching::Bypass, ..ReadRequest::new(key(number), Slice::all()) }
}

pub(crate) fn options(seed: u64) -> SimOptions {
    SimOptions { seed, max_delay: seed as u32 % 20, ..SimOptions::default() }
}

/// What tables of a shard have in common.
pub(crate) fn context(shard: &Shard, cache: usize) -> Context {
    Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(cache))
}

pub(crate) fn definition() -> Definition {
    let value = Column { name: b"v"[..].into(), data_type: CqlType::BigInt };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![], vec![], vec![value]));
    let mut definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
    definition.caches_rows = false;
    definition.gc_grace_seconds = 0;
    definition
}

pub(crate) async fn open(context: &Context, folder: &str, definition: Definition) -> Table {
    context.disk.create_dir_all(Path::new(folder)).await.unwrap();
    Table::open(context, Path::new(folder), definition, &Generations::default()).await.unwrap()
}

/// A table, and when each of its partitions was written last.
pub(crate) struct World {
    pub(crate) table: Table,
    pub(crate) model: BTreeMap<usize, i64>,
    pub(crate) random: Random,
    timestamp: i64,
}

impl World {
    /// An empty table.
    pub(crate) async fn new(context: &Context, folder: &str, seed: u64) -> World {
        World::with(context, folder, definition(), seed).await
    }

    pub(crate) async fn with(context: &Context, folder: &str, definition: Definition, seed: u64) -> World {
        let table = open(context, folder, definition).await;
        World { table, model: BTreeMap::new(), random: Random::new(seed), timestamp: 0 }
    }

    /// A table with many SSTables.
    pub(crate) async fn filled(context: &Context, folder: &str, seed: u64) -> World {
        let mut world = World::new(context, folder, seed).await;
        world.fill(SSTABLES).await;
        world
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.timestamp += 1;
        let timestamp = self.timestamp;
        let liveness = Liveness { timestamp, ..Liveness::NONE };
        let value = CellValue::Value(Bytes::from(&timestamp.to_be_bytes()[..]));
        let cell =
            Cell { column: 0, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value };
        let rows = vec![Row { liveness, cells: vec![cell], ..Row::new(Clustering::empty()) }];
        self.table.apply(&Mutation { rows, ..Mutation::new(key(number)) }, NO_POSITION);
        self.model.insert(number, timestamp);
    }

    pub(crate) fn delete(&mut self, number: usize) {
        self.timestamp += 1;
        let deletion = DeletionTime { marked_for_delete_at: self.timestamp, local_deletion_time: 1 };
        self.table.apply(&Mutation { deletion, ..Mutation::new(key(number)) }, NO_POSITION);
        self.model.remove(&number);
    }

    pub(crate) async fn flush(&self) {
        self.table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
    }

    /// Makes so many more SSTables, each with some of all partitions.
    pub(crate) async fn fill(&mut self, sstables: usize) {
        self.fill_with(sstables, PARTITIONS).await;
    }

    pub(crate) async fn fill_with(&mut self, sstables: usize, partitions: usize) {
        for _ in 0..sstables {
            for _ in 0..partitions {
                let number = self.random.below(KEYS);
                self.insert(number);
            }
            self.flush().await;
        }
    }

    /// Leaves the table the partitions with these tokens.
    pub(crate) fn own(&mut self, tokens: Tokens) {
        self.table.own(tokens);
        self.model.retain(|number, _| tokens.contain(key(*number).token));
    }

    /// Whether a partition is one of the table.
    pub(crate) fn owns(&self, number: usize) -> bool {
        self.table.tokens().contain(key(number).token)
    }

    pub(crate) async fn read(&self, number: usize) -> Result<Option<i64>> {
        value_of(&mut self.table.read(&request(number)).await?).await
    }

    /// A partition is as the model has it.
    pub(crate) async fn check_one(&self, number: usize) {
        let found = self.read(number).await.unwrap();
        assert_eq!(found, self.model.get(&number).copied(), "{number}");
    }

    /// These partitions are as the model has them, if they are read together.
    pub(crate) async fn check_many(&self, numbers: &[usize]) {
        let requests = numbers.iter().map(|number| Cow::Owned(request(*number))).collect();
        for (begun, number) in self.table.begin_all(requests).await.unwrap().into_iter().zip(numbers) {
            let found = value_of(&mut begun.open().await.unwrap()).await.unwrap();
            assert_eq!(found, self.model.get(number).copied(), "{number} among many");
        }
    }

    /// All partitions are as the model has them, and others are not there: one by one and many together.
    pub(crate) async fn check(&self) {
        let is_own = |number: &usize| self.owns(*number);
        for number in (0..KEYS + 100).filter(is_own) {
            self.check_one(number).await;
        }
        self.check_many(&(0..KEYS).step_by(17).filter(is_own).collect::<Vec<_>>()).await;
    }

    /// Reads everything often enough that what pays to be gathered is.
    pub(crate) async fn settle(&self) {
        for _ in 0..3 {
            self.check().await;
            runtime::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Reads until the first index is read.
    pub(crate) async fn begin_gathering(&self, shard: &Shard) {
        let before = shard.disk().stats();
        let mut own = (0..KEYS).cycle().filter(|number| self.owns(*number));
        while shard.disk().stats().since(&before).class(INDEX_IO).requests == 0 {
            self.check_one(own.next().unwrap()).await;
        }
        assert_eq!(self.gathered(), 0);
    }

    /// Of how many SSTables tokens are gathered.
    pub(crate) fn gathered(&self) -> usize {
        self.table.sstables().gathered()
    }

    /// How many partitions SSTables have, all together.
    pub(crate) fn partitions(&self) -> usize {
        self.table.sstables().members().iter().map(|member| member.facts.partitions as usize).sum()
    }

    /// How many SSTables may have some partition, all partitions together.
    pub(crate) fn named(&self) -> usize {
        let set = self.table.sstables();
        (0..KEYS + 1000).map(|number| set.of_key(&key(number)).members().len()).sum()
    }
}

/// What was asked of the disk while this was done.
pub(crate) async fn spent(shard: &Shard, done: impl Future<Output = ()>) -> IoStats {
    let before = shard.disk().stats();
    done.await;
    shard.disk().stats().since(&before)
}

/// What is read of a partition.
async fn value_of(stream: &mut impl FragmentReader<Error = siltstone_storage::Error>) -> Result<Option<i64>> {
    let (mut live, mut found) = (LiveRows::new(10), None);
    while let Some(mut fragment) = stream.next().await? {
        if live.keeps(&mut fragment)
            && let model::Fragment::Row(row) = &fragment
            && let CellValue::Value(value) = &row.cells[0].value
        {
            found = Some(i64::from_be_bytes((**value).try_into().unwrap()));
        }
    }
    Ok(found)
}
