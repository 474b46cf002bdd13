//! SSTables that are shared, split and adopted, tried again in between; and SSTables of several versions with one number.

use std::path::Path;
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Column, CqlType, DeletionTime, Fragment, FragmentReader, LiveRows, Liveness,
    Mutation, Row, Schema, Slice, Token, flat,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::store::{Store, StoreOptions};
use siltstone_storage::{Context, Definition, Generations, ReadRequest, Table, Tokens};
use sstable::Version;
use sstable::component::Descriptor;
use testkit::int_rows::key;

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };
const TABLE: TableId = TableId([0; 16]);
const FOLDER: &str = "/d";

/// A partition of one row.
fn partition(number: i32, timestamp: i64) -> Mutation {
    let value = CellValue::Value(Bytes::from(&number.to_be_bytes()[..]));
    let cell =
        Cell { column: 0, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value };
    let liveness = Liveness { timestamp, ..Liveness::NONE };
    let row = Row { liveness, cells: vec![cell], ..Row::new(std::iter::empty::<&[u8]>().collect()) };
    Mutation { rows: vec![row], ..Mutation::new(key(number)) }
}

/// That a partition is deleted, long ago.
fn deletion(number: i32, timestamp: i64) -> Mutation {
    let deletion = DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: 1 };
    Mutation { deletion, ..Mutation::new(key(number)) }
}

fn definition(version: Version) -> Definition {
    let value = Column { name: b"v"[..].into(), data_type: CqlType::Int };
    let schema = Rc::new(Schema::new(CqlType::Int, Vec::new(), Vec::new(), vec![value]));
    let mut definition = Definition::new(TABLE, &schema, version);
    definition.gc_grace_seconds = 0;
    definition
}

async fn open(shard: &Shard, folder: &str, version: Version, generations: &Generations) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(4 << 20));
    shard.disk().create_dir_all(Path::new(folder)).await.unwrap();
    Table::open(&context, Path::new(folder), definition(version), generations).await.unwrap()
}

/// The halves of the ring, each with the table as its shard opens it.
async fn halves(shard: &Shard, generations: &Generations) -> ([Tokens; 2], Vec<Table>) {
    let parts = [Tokens { after: None, last: 0 }, Tokens { after: Some(0), last: Token::MAX }];
    let mut tables = Vec::new();
    for part in parts {
        let table = open(shard, FOLDER, Version::Oa, generations).await;
        table.own(part);
        tables.push(table);
    }
    (parts, tables)
}

/// Into an SSTable of its own.
async fn write(table: &Table, mutations: impl IntoIterator<Item = Mutation>) {
    for mutation in mutations {
        table.apply(&mutation, NO_POSITION);
    }
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
}

async fn has(table: &Table, number: i32) -> bool {
    let mut reader = table.read(&ReadRequest::new(key(number), Slice::all())).await.unwrap();
    let mut live = LiveRows::new(0);
    while let Some(mut fragment) = reader.next().await.unwrap() {
        if live.keeps(&mut fragment) && matches!(fragment, Fragment::Row(_)) {
            return true;
        }
    }
    false
}

fn descriptors(table: &Table) -> Vec<Descriptor> {
    table.sstables().members().iter().map(|member| member.sstable.descriptor().clone()).collect()
}

/// One shard adopts what another one split, deletes a row of it for good, and is asked to adopt again: the row stays away.
#[test]
fn what_was_split_is_not_split_again_and_adopted_once() {
    run_simulated(SimOptions::default(), async |shard| {
        let generations = Generations::default();
        let whole = open(&shard, FOLDER, Version::Oa, &generations).await;
        write(&whole, (0..100).map(|number| partition(number, 5))).await;
        drop(whole);
        let (parts, tables) = halves(&shard, &generations).await;
        let [first, second] = &tables[..] else { unreachable!("there are two parts") };
        let inputs = first.shared();
        let gone: Vec<Descriptor> = inputs.iter().map(|input| input.sstable.descriptor().clone()).collect();
        assert_eq!((gone.len(), second.shared().len()), (1, 1));
        let split = first.split(&inputs, &parts, &Control::default()).await.unwrap();
        assert_eq!(split.new.len(), 2);
        assert!(first.shared().is_empty(), "nobody has adopted it, and it is split nevertheless");
        assert_eq!(descriptors(first), gone, "it is read on");

        second.adopt(&gone, &split.new).await.unwrap();
        let number = (0..100).find(|number| parts[1].contain(key(*number).token)).unwrap();
        write(second, [deletion(number, 9)]).await;
        let inputs = second.compactable();
        assert_eq!(inputs.len(), 2);
        second.rewrite(&Rewrite::into_one(inputs), &Control::default()).await.unwrap();
        assert!(!has(second, number).await);

        // The first one could not: all are asked again.
        let before = descriptors(second);
        for table in [first, second] {
            table.adopt(&gone, &split.new).await.unwrap();
        }
        assert_eq!(descriptors(second), before);
        assert_eq!(descriptors(first), [split.new[0].1.clone()]);
        split.committed.remove_old().await.unwrap();
        for other in (0..100).filter(|other| *other != number) {
            let table = &tables[usize::from(parts[1].contain(key(other).token))];
            assert!(has(table, other).await, "{other}");
        }
        assert!(!has(second, number).await);
    })
    .unwrap();
}

/// A deletion before 1970, which `oa` has no room for, was written before the table became one of `oa`.
#[test]
fn what_the_version_does_not_hold_is_split_as_it_was() {
    const DELETED: [i32; 6] = [3, 5, 8, 11, 14, 17];
    run_simulated(SimOptions::default(), async |shard| {
        let generations = Generations::default();
        let old = open(&shard, FOLDER, Version::Nb, &generations).await;
        write(&old, (0..20).map(|number| partition(number, -9))).await;
        write(&old, DELETED.map(|number| deletion(number, -5))).await;
        drop(old);
        let new = open(&shard, FOLDER, Version::Oa, &generations).await;
        write(&new, (40..60).map(|number| partition(number, 5))).await;
        drop(new);
        let (parts, tables) = halves(&shard, &generations).await;
        let inputs = tables[0].shared();
        assert_eq!(inputs.len(), 3);
        let gone: Vec<Descriptor> = inputs.iter().map(|input| input.sstable.descriptor().clone()).collect();
        let split = tables[0].split(&inputs, &parts, &Control::default()).await.unwrap();
        let versions = split.new.iter().map(|(_, descriptor)| descriptor.version);
        assert_eq!(versions.filter(|version| *version == Version::Oa).count(), 2);
        for table in &tables {
            table.adopt(&gone, &split.new).await.unwrap();
        }
        split.committed.remove_old().await.unwrap();
        for number in (0..20).chain(40..60) {
            let table = &tables[usize::from(parts[1].contain(key(number).token))];
            assert_eq!(has(table, number).await, !DELETED.contains(&number), "{number}");
        }
    })
    .unwrap();
}

/// An SSTable of an earlier version, all of which has expired, has the number of one that has not.
#[test]
fn versions_with_one_number_are_told_apart() {
    run_simulated(SimOptions::default(), async |shard| {
        let old = open(&shard, "/old", Version::Nb, &Generations::default()).await;
        write(&old, [deletion(1, 5)]).await;
        let new = open(&shard, FOLDER, Version::Oa, &Generations::default()).await;
        write(&new, [partition(1, 100), partition(2, 100)]).await;
        let [nb, oa] = [&old, &new].map(|table| descriptors(table)[0].clone());
        assert_eq!(nb.generation, oa.generation);
        drop((old, new));
        for file in shard.disk().list(Path::new("/old")).unwrap() {
            let to = Path::new(FOLDER).join(file.file_name().unwrap());
            shard.disk().rename(&file, &to).await.unwrap();
        }
        runtime::sleep(std::time::Duration::from_secs(100)).await;
        let store = Store::open(&shard, Path::new("/log"), StoreOptions::default()).await.unwrap();
        let definition = definition(Version::Oa);
        let table = store.add_table(Path::new(FOLDER), definition, &Generations::default()).await.unwrap();
        assert_eq!(table.sstables().members().len(), 2);
        store.compact(&table).await.unwrap();
        assert!(has(&table, 1).await && has(&table, 2).await);
        assert_eq!(table.sstables().members().len(), 1);
        let mut record = Vec::new();
        flat::put_mutation(&partition(3, 200), &mut record);
        store.write(TABLE, record).await.unwrap();
        store.flush(&table).await.unwrap();
        store.compact(&table).await.unwrap();
        assert!(has(&table, 1).await && has(&table, 3).await);
    })
    .unwrap();
}
