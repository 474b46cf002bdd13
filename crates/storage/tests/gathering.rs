//! SSTables that overlap, of which tokens are gathered: the same rows are found with fewer looks, and no SSTable hides any.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, FragmentReader, LiveRows, Liveness, Mutation,
    PartitionKey, Row, Schema, Slice, Token, time::NO_DELETION_TIME,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::{Caching, Context, Definition, Generations, ReadRequest, Table, Tokens};
use sstable::Version;
use sstable::component::{Component, INDEX_IO};
use sstable::parts::usage::Usage;
use testkit::generate::random::Random;

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };
/// Numbers of partitions are below this.
const KEYS: usize = 2000;
/// Partitions of an SSTable, at the most: so many that it has fences.
const PARTITIONS: usize = 300;
/// So many SSTables are many.
const SSTABLES: usize = 40;

fn key(number: usize) -> PartitionKey {
    PartitionKey::new(Bytes::from(&(number as u32).to_be_bytes()[..]))
}

/// What is in the table: of each partition when it was written last.
type Model = BTreeMap<usize, i64>;

async fn open(shard: &Shard, cache: usize, caches_indexes: bool) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(cache));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    let value = Column { name: b"v"[..].into(), data_type: CqlType::BigInt };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![], vec![], vec![value]));
    let mut definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
    definition.caches_rows = false;
    definition.caches_indexes = caches_indexes;
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

fn insert(table: &Table, number: usize, timestamp: i64) {
    let liveness = Liveness { timestamp, ..Liveness::NONE };
    let value = CellValue::Value(Bytes::from(&timestamp.to_be_bytes()[..]));
    let cell =
        Cell { column: 0, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value };
    let rows = vec![Row { liveness, cells: vec![cell], ..Row::new(Clustering::empty()) }];
    table.apply(&Mutation { rows, ..Mutation::new(key(number)) }, NO_POSITION);
}

/// Makes so many more SSTables, each with some of all partitions.
async fn fill(table: &Table, model: &mut Model, random: &mut Random, sstables: usize) {
    for _ in 0..sstables {
        let timestamp = 1 + model.values().max().unwrap_or(&0);
        for _ in 0..PARTITIONS {
            let number = random.below(KEYS);
            insert(table, number, timestamp);
            model.insert(number, timestamp);
        }
        table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
    }
}

/// What is read of a partition.
async fn read(stream: &mut impl FragmentReader<Error = siltstone_storage::Error>) -> Option<i64> {
    let (mut live, mut found) = (LiveRows::new(10), None);
    while let Some(mut fragment) = stream.next().await.unwrap() {
        if live.keeps(&mut fragment)
            && let model::Fragment::Row(row) = &fragment
            && let CellValue::Value(value) = &row.cells[0].value
        {
            found = Some(i64::from_be_bytes((**value).try_into().unwrap()));
        }
    }
    found
}

fn request(number: usize) -> ReadRequest {
    ReadRequest { caching: Caching::Bypass, ..ReadRequest::new(key(number), Slice::all()) }
}

/// All partitions are as the model has them, and others are not there: one by one and many together.
async fn check(table: &Table, model: &Model) {
    for number in 0..KEYS + 100 {
        let found = read(&mut table.read(&request(number)).await.unwrap()).await;
        assert_eq!(found, model.get(&number).copied(), "{number}");
    }
    let requests = (0..KEYS).step_by(17).map(|number| Cow::Owned(request(number))).collect();
    for (begun, number) in table.begin_all(requests).await.unwrap().into_iter().zip((0..KEYS).step_by(17)) {
        let found = read(&mut begun.open().await.unwrap()).await;
        assert_eq!(found, model.get(&number).copied(), "{number} among many");
    }
}

/// Reads until nothing more is gathered.
async fn settle(table: &Table, model: &Model) {
    for _ in 0..4 {
        check(table, model).await;
        runtime::sleep(std::time::Duration::from_secs(1)).await;
    }
}

fn options(seed: u64) -> SimOptions {
    SimOptions { seed, max_delay: seed as u32 % 20, ..SimOptions::default() }
}

#[test]
fn what_was_gathered_is_found_whatever_comes_and_goes() {
    for seed in 0..10 {
        run_simulated(options(seed), async |shard| {
            let (mut random, mut model) = (Random::new(seed), Model::new());
            let table = open(&shard, 4 << 20, true).await;
            fill(&table, &mut model, &mut random, SSTABLES).await;
            assert_eq!(table.sstables().gathered(), 0, "nobody has read");
            check(&table, &model).await;
            settle(&table, &model).await;
            assert_eq!(table.sstables().gathered(), SSTABLES);

            // What is flushed meanwhile is found by its filter, and in time it is gathered with the rest.
            fill(&table, &mut model, &mut random, 10).await;
            check(&table, &model).await;
            assert_eq!(
                (table.sstables().gathered(), table.sstables().members().len()),
                (SSTABLES, SSTABLES + 10)
            );
            fill(&table, &mut model, &mut random, 10).await;
            settle(&table, &model).await;
            assert_eq!(table.sstables().gathered(), SSTABLES + 20);

            // Compactions take the oldest half of them, and then all but the last few.
            for left in [SSTABLES / 2, 5] {
                let (set, mut oldest) = (table.sstables(), table.compactable());
                oldest.sort_by_key(|member| member.max_timestamp);
                oldest.truncate(set.members().len() - left);
                table.rewrite(&Rewrite::into_one(oldest), &Control::default()).await.unwrap();
                check(&table, &model).await;
                settle(&table, &model).await;
                assert_eq!(table.sstables().members().len(), left + 1);
            }
            assert_eq!(table.sstables().gathered(), 0, "too few are left");
        })
        .unwrap();
    }
}

/// How many SSTables may have some partition, all partitions together.
fn named(table: &Table) -> usize {
    (0..KEYS + 1000).map(|number| table.sstables().of_key(&key(number)).members().len()).sum()
}

#[test]
fn few_are_named_that_have_not_got_a_partition() {
    run_simulated(options(7), async |shard| {
        let (mut random, mut model) = (Random::new(7), Model::new());
        let table = open(&shard, 4 << 20, true).await;
        fill(&table, &mut model, &mut random, SSTABLES).await;
        let there = table.sstables().members().iter().map(|member| member.facts.partitions as usize).sum();
        assert!(named(&table) > there + 500, "a filter is wrong one time in a hundred");
        let before = shard.disk().stats();
        settle(&table, &model).await;
        let spent = shard.disk().stats().since(&before);
        assert_eq!(
            spent.class(INDEX_IO).requests,
            SSTABLES as u64,
            "each index is read once, by one request"
        );
        assert!((there..there + 30).contains(&named(&table)), "{} of {there}", named(&table));
    })
    .unwrap();
}

#[test]
fn nothing_is_gathered_without_memory_for_it() {
    for (cache, caches_indexes) in [(0, true), (64 << 10, true), (4 << 20, false)] {
        run_simulated(options(3), async |shard| {
            let (mut random, mut model) = (Random::new(3), Model::new());
            let table = open(&shard, cache, caches_indexes).await;
            fill(&table, &mut model, &mut random, SSTABLES).await;
            let reserved = table.context().cache.reserved();
            settle(&table, &model).await;
            assert_eq!(table.sstables().gathered(), 0, "{cache}");
            assert_eq!(table.context().cache.reserved(), reserved);
        })
        .unwrap();
    }
}

/// The part of the ring that a shard has is all that it gathers; another part makes it begin anew.
#[test]
fn only_the_tokens_of_the_table_are_gathered() {
    run_simulated(options(5), async |shard| {
        let (mut random, mut model) = (Random::new(5), Model::new());
        let table = open(&shard, 4 << 20, true).await;
        fill(&table, &mut model, &mut random, SSTABLES).await;
        table.own(Tokens { after: None, last: 0 });
        let mine: Model =
            model.iter().filter(|(number, _)| key(**number).token <= 0).map(|(a, b)| (*a, *b)).collect();
        let read_mine = async || {
            for number in (0..KEYS).filter(|number| key(*number).token <= 0) {
                let found = read(&mut table.read(&request(number)).await.unwrap()).await;
                assert_eq!(found, mine.get(&number).copied(), "{number}");
            }
            runtime::sleep(std::time::Duration::from_secs(1)).await;
        };
        for _ in 0..8 {
            read_mine().await;
        }
        assert_eq!(table.sstables().gathered(), SSTABLES);
        table.own(Tokens { after: None, last: Token::MAX });
        assert_eq!(table.sstables().gathered(), 0);
        settle(&table, &model).await;
        assert_eq!(table.sstables().gathered(), SSTABLES);
    })
    .unwrap();
}

/// An index of which a byte is not as it was written hides no partition that is read by fences: those of its SSTable are found by the
/// filter, as before.
#[test]
fn a_damaged_index_is_not_gathered() {
    let mut refused = 0;
    for seed in 0..60 {
        refused += run_simulated(options(seed), async |shard| {
            let (mut random, mut model) = (Random::new(seed), Model::new());
            let table = open(&shard, 4 << 20, true).await;
            fill(&table, &mut model, &mut random, SSTABLES).await;
            let member = table.sstables().members()[random.below(SSTABLES)].clone();
            let path = member.sstable.descriptor().path_of(&Component::Index);
            let file = shard.disk().open(&path, INDEX_IO).await.unwrap();
            assert!(matches!(member.sstable.fences_state(), Usage::InUse { .. }));
            let mut bytes = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            drop((member, table));
            shard.disk().as_simulated().unwrap().add_file(path.to_str().unwrap(), bytes);
            let table = open(&shard, 4 << 20, true).await;
            settle(&table, &model).await;
            SSTABLES - table.sstables().gathered()
        })
        .unwrap();
    }
    println!("{refused} of 60");
    assert!(refused > 30, "where a partition begins in the data is nothing that a token says");
}
