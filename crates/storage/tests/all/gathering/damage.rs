//! Indexes that are not as they were written.

use std::path::Path;

use model::PartitionKey;
use runtime::{Disk, run_simulated};
use siltstone_storage::rewrite::{Control, Rewrite};
use sstable::component::{Component, INDEX_IO};
use sstable::parts::usage::Usage;

use super::world::{KEYS, SSTABLES, World, context, definition, key, open, options, spent};

/// Changes a file.
async fn change(disk: &Disk, path: &Path, change: impl FnOnce(&mut [u8])) {
    let file = disk.open(path, INDEX_IO).await.unwrap();
    let mut bytes = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
    change(&mut bytes);
    disk.as_simulated().unwrap().add_file(path.to_str().unwrap(), bytes);
}

/// An index with a turned bit hides no partition that is read by fences: those of its SSTable are found by the filter, as before.
#[test]
fn a_damaged_index_is_not_gathered() {
    let (mut refused, mut read_again) = (0, 0);
    for seed in 0..30 {
        let (one, again) = run_simulated(options(seed), async |shard| {
            let context = context(&shard, 4 << 20);
            let mut world = World::filled(&context, "/d", seed).await;
            let member = world.table.sstables().members()[world.random.below(SSTABLES)].clone();
            let path = member.sstable.descriptor().path_of(&Component::Index);
            assert!(matches!(member.sstable.fences_state(), Usage::InUse { .. }));
            drop(member);
            let turn =
                |bytes: &mut [u8]| bytes[world.random.below(bytes.len())] ^= 1 << world.random.below(8);
            change(shard.disk(), &path, turn).await;
            world.table = open(&context, "/d", definition()).await;
            world.settle().await;
            let refused = SSTABLES - world.gathered();
            world.fill(20).await;
            let again = spent(&shard, world.settle()).await;
            assert_eq!(world.gathered(), SSTABLES - refused + 20);
            (refused, again.class(INDEX_IO).requests - 20)
        })
        .unwrap();
        refused += one;
        read_again += again;
    }
    // A read asks the index too where fences know of two partitions with its token's lowest bits.
    assert!(read_again < 5, "what is damaged is not read again and again: {read_again}");
    assert!(refused > 15, "where a partition begins in the data is nothing that a token says: {refused}");
}

/// Without fences a row is not found if the index has another key in the place of its own, which the filter happens to know.
/// The tombstone that hides it stays all the same: the index may be written anew.
#[test]
fn a_tombstone_stays_as_long_as_a_filter_knows_of_a_row() {
    run_simulated(options(0), async |shard| {
        let context = context(&shard, 4 << 20);
        let mut world = World::new(&context, "/d", 0).await;
        let mut numbers: Vec<usize> = (0..KEYS).collect();
        numbers.sort_by_key(|number| key(*number).token);
        let (first, hidden, last) = (numbers[0], numbers[1000], numbers[KEYS - 1]);
        for sstable in 0..=20 {
            world.insert(first);
            match sstable {
                20 => world.delete(hidden),
                _ => world.insert(numbers[1000 + sstable]),
            }
            world.insert(last);
            world.flush().await;
        }
        let oldest = world.table.sstables().members().last().unwrap().clone();
        assert!(!matches!(oldest.sstable.fences_state(), Usage::InUse { .. }));
        // Which no read asks for.
        let mut others = 2 * KEYS..;
        let other = loop {
            let key = key(others.next().unwrap());
            let is_between = oldest.first < key && key < oldest.last;
            if is_between && oldest.sstable.filter().may_contain(&key).await.unwrap() {
                break key;
            }
        };
        let index = oldest.sstable.descriptor().path_of(&Component::Index);
        drop(oldest);
        let put_for = |old: PartitionKey, new: PartitionKey| {
            move |bytes: &mut [u8]| {
                let at = bytes.windows(4).position(|bytes| bytes == &old.bytes[..]).unwrap();
                bytes[at..at + 4].copy_from_slice(&new.bytes);
            }
        };
        change(shard.disk(), &index, put_for(key(hidden), other.clone())).await;
        world.table = open(&context, "/d", definition()).await;
        world.settle().await;
        assert_eq!(world.gathered(), 21);
        let newest = world.table.sstables().members()[0].clone();
        world.table.rewrite(&Rewrite::into_one(vec![newest]), &Control::default()).await.unwrap();
        change(shard.disk(), &index, put_for(other, key(hidden))).await;
        world.table = open(&context, "/d", definition()).await;
        world.check().await;
    })
    .unwrap();
}
