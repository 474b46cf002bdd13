//! A scan that is to take few rows asks the disk for little, and gives all the same what it is asked for beyond them.

use std::path::Path;
use std::rc::Rc;

use model::{
    Bytes, Clustering, CqlType, Fragment, FragmentReader, Liveness, Mutation, PartitionKey, Row, Schema,
    Token,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::{Context, Definition, Generations, Table};
use sstable::Version;
use sstable::component::DATA_IO;
use testkit::generate::random::Random;

/// Partitions, each of one row with a key of so many bytes.
const PARTITIONS: u32 = 5000;
const KEY: usize = 200;

async fn open(shard: &Shard) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(1 << 20));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Blob], vec![], vec![]));
    let definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

async fn fill(table: &Table) {
    for number in 0..PARTITIONS {
        let mut random = Random::new(u64::from(number));
        let clustering: Clustering =
            [(0..KEY).map(|_| random.number() as u8).collect::<Vec<_>>()].into_iter().collect();
        let liveness = Liveness { timestamp: 1, ..Liveness::NONE };
        let key = PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]));
        let mutation =
            Mutation { rows: vec![Row { liveness, ..Row::new(clustering) }], ..Mutation::new(key) };
        table.apply(&mutation, LogPosition { segment: 0, offset: 0 });
    }
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
}

/// How many rows come of so many that are asked for.
async fn take(rows: &mut impl FragmentReader<Error = siltstone_storage::Error>, count: u32) -> u32 {
    let (mut taken, mut fragment) = (0, Fragment::default());
    while taken < count && rows.advance(&mut fragment).await.unwrap() {
        taken += u32::from(matches!(fragment, Fragment::Row(_)));
    }
    taken
}

#[test]
fn a_scan_of_few_rows_reads_little() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let table = open(&shard).await;
        fill(&table).await;
        let read = || shard.disk().stats().class(DATA_IO);
        for (limit, most) in [(Some(1), 64 << 10), (Some(100), 64 << 10), (Some(1000), 256 << 10)] {
            let before = read();
            let mut rows = table.scan(None, Token::MAX, limit).await.unwrap();
            let count = limit.unwrap() as u32;
            assert_eq!(take(&mut rows, count).await, count);
            let asked = read().since(&before);
            assert!(asked.requests == 1 && asked.bytes <= most, "{limit:?}: {asked:?}");
            assert_eq!(
                take(&mut rows, u32::MAX).await,
                PARTITIONS - count,
                "and all others, if they are asked for"
            );
        }
        let before = read();
        let mut rows = table.scan(None, Token::MAX, None).await.unwrap();
        assert_eq!(take(&mut rows, 1).await, 1);
        let asked = read().since(&before);
        assert!(asked.bytes >= 256 << 10, "who takes all is read ahead for: {asked:?}");
    })
    .unwrap();
}
