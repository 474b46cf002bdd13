//! Major compactions leave SSTables whose rows follow each other, and merge all else as before.

use model::{Position, Slice};
use runtime::{Shard, SimOptions, run_simulated};
use siltstone_storage::{Definition, Store, StoreOptions, Table};

use crate::store::{TABLE, clustering, deletion, open_with, row, rows};

/// A table of which SSTables of any size may be left.
async fn open(shard: &Shard) -> (Store, Table) {
    let mut options = StoreOptions::default();
    options.compaction.leaves_from = 1;
    open_with(shard, "/d/t", "/log", options).await
}

/// An SSTable of these rows, each with its number as its value.
async fn flush(store: &Store, table: &Table, partition: i32, numbers: impl IntoIterator<Item = i32>) {
    for number in numbers {
        store.write(TABLE, row(partition, number, number, 1)).await.unwrap();
    }
    store.flush(table).await.unwrap();
}

/// How many compactions there were, and how many SSTables there are.
fn state(store: &Store, table: &Table) -> (u64, usize) {
    (store.compaction_stats().done, table.sstables().members().len())
}

#[test]
fn rows_in_order_are_not_written_again() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard).await;
        for first in [200, 0, 100, 300] {
            flush(&store, &table, 1, first..first + 100).await;
        }
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (0, 4));
        let all: Vec<(i32, i32)> = (0..400).map(|number| (number, number)).collect();
        assert_eq!(rows(&table, 1, Slice::all()).await, all);
        let slice = Slice { start: Position::before(clustering(150)), end: Position::after(clustering(250)) };
        assert_eq!(rows(&table, 1, slice).await, all[150..=250]);
    })
    .unwrap();
}

#[test]
fn what_overlaps_is_merged_between_what_does_not() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard).await;
        flush(&store, &table, 1, 0..100).await;
        flush(&store, &table, 1, (100..200).step_by(2)).await;
        flush(&store, &table, 1, (101..200).step_by(2)).await;
        flush(&store, &table, 1, 200..300).await;
        flush(&store, &table, 1, (300..400).step_by(2)).await;
        flush(&store, &table, 1, (301..400).step_by(2)).await;
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (2, 4));
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (2, 4), "now all follow each other");
        assert_eq!(rows(&table, 1, Slice::all()).await.len(), 400);
        // One of all partitions overlaps all.
        for partition in [1, 2, 3] {
            store.write(TABLE, row(partition, 150, 7, 2)).await.unwrap();
        }
        store.write(TABLE, row(1, -1, 7, 2)).await.unwrap();
        store.write(TABLE, row(1, 1000, 7, 2)).await.unwrap();
        store.flush(&table).await.unwrap();
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (3, 1));
    })
    .unwrap();
}

/// Where something can be forgotten, or the table was altered since, SSTables are written anew.
#[test]
fn what_is_worth_it_is_written_again() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard).await;
        flush(&store, &table, 1, 0..100).await;
        flush(&store, &table, 1, 100..200).await;
        store.write(TABLE, deletion(1, 300, 5)).await.unwrap();
        flush(&store, &table, 1, 200..300).await;
        let tombstones = || {
            let set = table.sstables();
            set.members().iter().filter(|member| !member.facts.drop_times.bins.is_empty()).count()
        };
        assert_eq!(tombstones(), 1);
        store.compact(&table).await.unwrap();
        assert_eq!(
            (state(&store, &table), tombstones()),
            ((1, 1), 0),
            "it is forgotten with all that it may delete"
        );
        flush(&store, &table, 1, 400..500).await;
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (1, 2));
        let definition = Definition { gc_grace_seconds: 7, ..(*table.definition()).clone() };
        store.set_definition(&table, definition).await.unwrap();
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (2, 1));
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (2, 1));
    })
    .unwrap();
}

/// A small SSTable is merged with those beside it, but for one that stands alone, be it between large ones.
#[test]
fn small_ones_are_merged() {
    run_simulated(SimOptions::default(), async |shard| {
        let mut options = StoreOptions::default();
        options.compaction.leaves_from = 5000;
        let (store, table) = open_with(&shard, "/d/t", "/log", options).await;
        flush(&store, &table, 1, 0..10).await;
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (0, 1), "there is nothing to merge it with");
        flush(&store, &table, 1, 10..20).await;
        flush(&store, &table, 1, 20..3000).await;
        flush(&store, &table, 1, 3000..3010).await;
        flush(&store, &table, 1, 3010..6000).await;
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (1, 4));
        assert_eq!(rows(&table, 1, Slice::all()).await.len(), 6000);
    })
    .unwrap();
}

/// Partitions follow each other by their tokens.
#[test]
fn partitions_in_order_are_not_written_again() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard).await;
        let mut keys: Vec<i32> = (0..400).collect();
        keys.sort_by_key(|number| crate::store::key(*number));
        for keys in keys.chunks(100) {
            for key in keys {
                store.write(TABLE, row(*key, 1, 1, 1)).await.unwrap();
            }
            store.flush(&table).await.unwrap();
        }
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (0, 4));
        // The rows of both stand at the same place, in the partition that both have.
        store.write(TABLE, row(keys[99], 2, 1, 1)).await.unwrap();
        store.flush(&table).await.unwrap();
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (0, 5), "behind the last row of the first");
        store.write(TABLE, row(keys[99], 1, 2, 2)).await.unwrap();
        store.flush(&table).await.unwrap();
        store.compact(&table).await.unwrap();
        assert_eq!(state(&store, &table), (1, 4), "and the small one, which is beside it");
        assert_eq!(rows(&table, keys[99], Slice::all()).await, [(1, 2), (2, 1)]);
    })
    .unwrap();
}
