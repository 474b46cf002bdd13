//! Filters in pages under a table: reads of one key and of many, and what a compaction may purge.
//!
//! SSTables have so many partitions that their filters are cut into pages, and memory has no room for all of them.

use std::borrow::Cow;
use std::future::poll_fn;
use std::ops::Range;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use model::{
    Bytes, Clustering, CqlType, DeletionTime, Fragment, FragmentReader, LiveRows, Liveness, Mutation,
    PartitionKey, Row, Schema, Slice,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::{Begun, Caching, Context, Definition, Generations, ReadRequest, Table};
use sstable::Version;
use sstable::component::FILTER_IO;
use sstable::parts::usage::Usage;

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };
/// Partitions of an SSTable.
const PARTITIONS: u32 = 5000;
/// Numbers that no partition has.
const ABSENT: Range<u32> = 1_000_000..1_002_000;

fn run(cache: usize, test: impl AsyncFnOnce(&Shard, Table) + Send) {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(cache));
        let folder = Path::new("/d");
        shard.disk().create_dir_all(folder).await.unwrap();
        let schema = Rc::new(Schema::new(CqlType::Int, vec![], vec![], vec![]));
        let mut definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
        definition.gc_grace_seconds = 0;
        let table = Table::open(&context, folder, definition, &Generations::default()).await.unwrap();
        test(&shard, table).await;
    })
    .unwrap();
}

fn key(number: u32) -> PartitionKey {
    PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]))
}

fn insert(table: &Table, number: u32, timestamp: i64) {
    let liveness = Liveness { timestamp, ..Liveness::NONE };
    let rows = vec![Row { liveness, ..Row::new(Clustering::empty()) }];
    table.apply(&Mutation { rows, ..Mutation::new(key(number)) }, NO_POSITION);
}

fn delete(table: &Table, number: u32, timestamp: i64) {
    let deletion = DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: 1 };
    table.apply(&Mutation { deletion, ..Mutation::new(key(number)) }, NO_POSITION);
}

/// Makes an SSTable, whose filter is in pages.
async fn flush(table: &Table) {
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
    let set = table.sstables();
    let newest = set.members().first().unwrap();
    assert!(matches!(newest.sstable.filter().pages_usage(), Usage::InUse { .. }));
}

/// Four SSTables: the partitions of each second one are in others too.
async fn fill(table: &Table) {
    for sstable in 0..4 {
        (0..PARTITIONS)
            .for_each(|number| insert(table, sstable * PARTITIONS / 2 + number, i64::from(sstable)));
        flush(table).await;
    }
}

fn is_there(number: u32) -> bool {
    number < 5 * PARTITIONS / 2
}

/// Some that are there and some that are not, in no order.
fn some() -> impl Iterator<Item = u32> {
    (0..5 * PARTITIONS / 2).step_by(173).zip(ABSENT.step_by(29)).flat_map(|(there, absent)| [there, absent])
}

async fn has_row(stream: &mut impl FragmentReader<Error = siltstone_storage::Error>) -> bool {
    let mut live = LiveRows::new(10);
    while let Some(mut fragment) = stream.next().await.unwrap() {
        if live.keeps(&mut fragment) && matches!(fragment, Fragment::Row(_)) {
            return true;
        }
    }
    false
}

async fn finds(begun: Begun<'_>) -> bool {
    has_row(&mut begun.open().await.unwrap()).await
}

#[test]
fn one_key_and_many_are_found_alike() {
    let ways = [
        (0, Caching::Full),
        (40 << 10, Caching::Full),
        (40 << 10, Caching::Bypass),
        (16 << 20, Caching::Full),
        (16 << 20, Caching::Look),
    ];
    for (cache, caching) in ways {
        run(cache, async |_, table| {
            fill(&table).await;
            let request = |number| ReadRequest { caching, ..ReadRequest::new(key(number), Slice::all()) };
            for number in some() {
                let mut stream = table.read(&request(number)).await.unwrap();
                assert_eq!(has_row(&mut stream).await, is_there(number), "{number}");
            }
            let requests = some().map(|number| Cow::Owned(request(number))).collect();
            for (begun, number) in table.begin_all(requests).await.unwrap().into_iter().zip(some()) {
                assert_eq!(finds(begun).await, is_there(number), "{number}");
            }
        });
    }
}

/// What is written while the filters are asked is not lost, whether it is in a memtable by then or in an SSTable.
#[test]
fn a_flush_while_filters_are_asked_hides_nothing() {
    run(40 << 10, async |_, table| {
        fill(&table).await;
        let absent: Vec<u32> = ABSENT.step_by(10).collect();
        let requests =
            || absent.iter().map(|&number| Cow::Owned(ReadRequest::new(key(number), Slice::all()))).collect();
        let reader = runtime::spawn({
            let (table, requests) = (table.clone(), requests());
            async move {
                for begun in table.begin_all(requests).await.unwrap() {
                    finds(begun).await;
                }
            }
        });
        runtime::yield_now().await;
        (0..PARTITIONS).for_each(|number| insert(&table, ABSENT.start + number, 9));
        flush(&table).await;
        reader.await;
        for begun in table.begin_all(requests()).await.unwrap() {
            assert!(finds(begun).await);
        }
    });
}

/// Of a batch each page of a filter is read once, and pages side by side with one request.
#[test]
fn many_keys_read_each_page_once() {
    run(1 << 20, async |shard, table| {
        fill(&table).await;
        let filter_reads = || shard.disk().stats().class(FILTER_IO).requests;
        let request = |number| Cow::Owned(ReadRequest::new(key(number), Slice::all()));
        let before = filter_reads();
        let begun = table.begin_all(ABSENT.map(request).collect()).await.unwrap();
        let answered = begun.iter().filter(|begun| matches!(begun, Begun::Ready(_))).count();
        assert!(answered > 1900, "of 2000 absent keys {answered} are known to be absent");
        assert!(filter_reads() - before <= 4, "a request a filter at the most");
    });
}

/// A tombstone goes once nothing outside of the compaction has the partition, which the filters tell page by page.
#[test]
fn tombstones_are_purged_by_filters_in_pages() {
    for cache in [0, 40 << 10, 16 << 20] {
        run(cache, async |_, table| {
            (0..PARTITIONS).for_each(|number| insert(&table, number, 1));
            flush(&table).await;
            let outside = table.compactable();
            // Every second one deletes something that is outside.
            for number in 0..PARTITIONS {
                delete(&table, if number % 2 == 0 { number } else { ABSENT.start + number }, 5);
            }
            flush(&table).await;
            let inputs: Vec<_> = table
                .compactable()
                .into_iter()
                .filter(|member| !outside.iter().any(|other| other.is(member)))
                .collect();
            assert_eq!(inputs.len(), 1);
            table.rewrite(&Rewrite::into_one(inputs), &Control::default()).await.unwrap();
            let (mut left, mut stream) = (0, table.scan(None, i64::MAX, None).await.unwrap());
            let mut fragment = Fragment::default();
            while stream.advance(&mut fragment).await.unwrap() {
                if let Fragment::PartitionStart(start) = &fragment {
                    left += u32::from(!start.deletion.is_live());
                }
            }
            let needed = PARTITIONS / 2;
            // One in a hundred of the others passes the filter outside.
            assert!(
                (needed..needed + needed / 20).contains(&left),
                "{left} tombstones are left of {needed} needed"
            );
        });
    }
}

/// For each partition all filters outside would be asked, page by page: only where something may be purged that is worth it.
#[test]
fn a_compaction_without_tombstones_asks_no_filter() {
    run(0, async |shard, table| {
        fill(&table).await;
        let filter_reads = || shard.disk().stats().class(FILTER_IO).requests;
        let before = filter_reads();
        insert(&table, 0, 9);
        table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
        let of_opening = filter_reads() - before;
        let rewrite = async |inputs| {
            let before = filter_reads();
            table.rewrite(&Rewrite::into_one(inputs), &Control::default()).await.unwrap();
            filter_reads() - before
        };
        let without = rewrite(table.compactable().split_off(3)).await;
        // A second of a deletion is enough.
        delete(&table, ABSENT.start, 9);
        (0..PARTITIONS).for_each(|number| insert(&table, number, 1));
        flush(&table).await;
        let newest = table.compactable().swap_remove(0);
        let with = rewrite(vec![newest]).await;
        assert_eq!((of_opening, without, with), (1, 1, 8), "the new SSTable is opened, and pages are read");
    });
}

/// What is flushed while a compaction goes on lies outside of it.
#[test]
fn a_tombstone_stays_for_what_is_flushed_meanwhile() {
    /// So often it is looked after the compaction before the flush: it has begun then, and is not at its end.
    const STEPS: usize = 1;
    run(16 << 20, async |_, table| {
        let last = (0..PARTITIONS).max_by_key(|number| key(*number).token).unwrap();
        (0..PARTITIONS).filter(|number| *number != last).for_each(|number| insert(&table, number, 1));
        delete(&table, last, 5);
        flush(&table).await;
        let (rewrite, control) = (Rewrite::into_one(table.compactable()), Control::default());
        let mut compaction = pin!(table.rewrite(&rewrite, &control));
        for _ in 0..STEPS {
            assert!(poll_fn(|context| Poll::Ready(compaction.as_mut().poll(context).is_pending())).await);
            runtime::yield_now().await;
        }
        insert(&table, last, 1);
        flush(&table).await;
        compaction.await.unwrap();
        let request = ReadRequest::new(key(last), Slice::all());
        assert!(!finds(table.begin(Cow::Owned(request))).await, "it is deleted");
    });
}

/// The index of the only SSTable tells for the same request what its filter would; what is absent brings the filter in.
#[test]
fn the_filter_of_the_only_sstable_is_read_for_what_is_absent() {
    run(512 << 10, async |shard, table| {
        (0..PARTITIONS).for_each(|number| insert(&table, number, 1));
        flush(&table).await;
        let filter_reads = || shard.disk().stats().class(FILTER_IO).requests;
        // A row that the cache takes to be asked for again, now and then wrongly, is looked for in another way.
        let find = async |number| {
            let caching = Caching::Bypass;
            let request = ReadRequest { caching, ..ReadRequest::new(key(number), Slice::all()) };
            finds(table.begin(Cow::Owned(request))).await
        };
        let opened = filter_reads();
        for number in (0..PARTITIONS).step_by(100) {
            assert!(find(number).await);
        }
        assert_eq!(filter_reads(), opened, "what is there costs no request of the filter");
        let absent = || ABSENT.step_by(20);
        for number in absent() {
            assert!(!find(number).await);
        }
        assert_eq!(filter_reads() - opened, 2, "a request for each of two pages");
        let before = shard.disk().stats().total().requests;
        for number in absent() {
            assert!(!find(number).await);
        }
        let again = shard.disk().stats().total().requests - before;
        assert!(again < 10, "{again} requests for {} keys that are known to be absent", absent().count());
    });
}
