//! Small partitions, which are kept whole.

use super::*;

/// A table without static columns, whose partitions are small: from 1 on, with five rows each.
async fn small_partitions(shard: &Shard, count: i32) -> Table {
    let with_statics = schema();
    let (keys, clustering) = (with_statics.partition_key.clone(), with_statics.clustering.clone());
    let schema = Schema::new(keys, clustering, Vec::new(), with_statics.regulars.clone());
    let table = open(shard, definition(&Rc::new(schema)), 4 * MIB).await;
    (1..=count).for_each(|number| table.apply(&rows(number, 0..5, 1), NO_POSITION));
    flush(&table).await;
    table
}

#[test]
fn a_small_partition_is_kept_whole() {
    simulated(async |shard| {
        let table = small_partitions(&shard, 50).await;
        let of = |number, slice| ReadRequest::new(key(number), slice);
        for number in 1..=50 {
            assert!(read(&table, &of(number, Slice::all())).await.1 > 0);
        }
        let stats = table.row_cache().stats();
        assert_eq!((stats.parts, stats.wholes), (50, 50));
        for (slice, count) in [(Slice::all(), 5), (between(1, 3), 2), (one(4), 1), (one(9), 0)] {
            for direction in [Direction::Forward, Direction::Reverse] {
                let request = ReadRequest { direction, ..of(7, slice.clone()) };
                assert_eq!(read(&table, &request).await, (count, 0), "{request:?}");
            }
        }
        assert_eq!(known(&table, &of(7, one(4)), 0).map(|rows| rows.len()), Some(1));
        assert_eq!(known(&table, &of(7, one(9)), 0).map(|rows| rows.len()), Some(0));
        // Another key with the same token is another partition.
        let other = PartitionKey { token: key(7).token, bytes: Bytes::from(b"silt".to_vec()) };
        assert_eq!(read(&table, &ReadRequest::new(other, Slice::all())).await.0, 0);
    });
}

#[test]
fn a_flush_drops_whole_partitions_that_it_says_something_of() {
    simulated(async |shard| {
        let table = small_partitions(&shard, 50).await;
        let all = async |number| read(&table, &ReadRequest::new(key(number), Slice::all())).await;
        for number in 1..=50 {
            all(number).await;
        }
        write(&table, rows(3, 4..7, 2)).await;
        assert_eq!(table.row_cache().stats().wholes, 49);
        assert_eq!((all(3).await.0, all(3).await, all(4).await), (7, (7, 0), (5, 0)));
        write(&table, Mutation { deletion: deletion(1), ..Mutation::new(key(4)) }).await;
        assert_eq!((all(4).await.0, all(4).await, all(5).await), (0, (0, 0), (5, 0)));
        // More partitions than the cache has: their rows are looked for among what it has.
        (40..1000).for_each(|number| table.apply(&rows(number, 7..8, 2), NO_POSITION));
        flush(&table).await;
        assert_eq!(table.row_cache().stats().wholes, 39);
        assert_eq!((all(39).await, all(40).await.0, all(900).await.0), ((5, 0), 6, 1));
        table.row_cache().clear();
        assert_eq!(table.row_cache().stats().parts, 0);
    });
}

#[test]
fn parts_and_whole_partitions_do_not_stay_together() {
    simulated(async |shard| {
        let table = small_partitions(&shard, 1).await;
        assert_eq!(read_slice(&table, between(1, 3)).await.0, 2);
        assert_eq!((table.row_cache().stats().parts, table.row_cache().stats().wholes), (1, 0));
        // A part as small as that is read over.
        assert_eq!(read_slice(&table, Slice::all()).await.0, 5);
        assert_eq!((table.row_cache().stats().parts, table.row_cache().stats().wholes), (1, 1));
        table.row_cache().clear();
        let both = [Slice::all(), between(1, 3)].map(|slice| ReadRequest::new(key(1), slice));
        let together = join_all(both.iter().map(|request| selected(&table, request, 0))).await;
        assert_eq!(together.iter().map(Vec::len).collect::<Vec<_>>(), [5, 2]);
        assert_eq!((table.row_cache().stats().parts, table.row_cache().stats().wholes), (1, 1));
        assert_eq!(read_slice(&table, Slice::all()).await, (5, 0));
    });
}

#[test]
fn a_row_without_a_clustering_key_is_kept_unless_it_is_large() {
    simulated(async |shard| {
        let regulars = schema().regulars.clone();
        let schema = Schema::new(CqlType::Int, Vec::new(), Vec::new(), regulars);
        let table = open(&shard, definition(&Rc::new(schema)), 4 * MIB).await;
        for (number, len) in [(1, 200_000), (2, 100)] {
            let row = Row { clustering: Clustering::empty(), ..row(0, 1, len) };
            let mutation = Mutation { rows: vec![row], deletion: deletion(0), ..Mutation::new(key(number)) };
            table.apply(&mutation, NO_POSITION);
        }
        flush(&table).await;
        for (number, len, wholes) in [(1, 200_000, 0), (1, 200_000, 0), (2, 100, 1)] {
            let request = ReadRequest::new(key(number), Slice::all());
            let before = table.context().disk.stats();
            let rows = selected(&table, &request, 0).await;
            assert!(table.context().disk.stats().since(&before).total().requests > 0);
            assert_eq!(rows[0].regulars[0].as_ref().map(|value| value.len()), Some(len));
            assert_eq!((rows.len(), table.row_cache().stats().wholes), (1, wholes));
            // With the deletion, which is older than the row.
            let first = table.read(&request).await.unwrap().next().await.unwrap();
            let start = PartitionStart { key: key(number), deletion: deletion(0) };
            assert_eq!(first, Some(Fragment::PartitionStart(start)));
        }
    });
}
