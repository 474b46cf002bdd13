//! Memory that is taken, and given back; disks that fail; tables that go.

use std::rc::Rc;
use std::time::Duration;

use runtime::{SimOptions, run_simulated};
use sstable::component::INDEX_IO;

use super::world::{KEYS, SSTABLES, World, context, definition, options, spent};

#[test]
fn nothing_is_gathered_without_memory_for_it() {
    for (cache, caches_indexes) in [(0, true), (64 << 10, true), (4 << 20, false)] {
        run_simulated(options(3), async |shard| {
            let context = context(&shard, cache);
            let mut definition = definition();
            definition.caches_indexes = caches_indexes;
            let mut world = World::with(&context, "/d", definition, 3).await;
            world.fill(SSTABLES).await;
            let reserved = context.cache.reserved();
            world.settle().await;
            assert_eq!((world.gathered(), context.cache.reserved()), (0, reserved), "{cache}");
        })
        .unwrap();
    }
}

#[test]
fn what_is_taken_of_the_cache_comes_back() {
    run_simulated(options(1), async |shard| {
        let context = context(&shard, 4 << 20);
        let world = World::filled(&context, "/d", 1).await;
        let opened = context.cache.reserved();
        world.settle().await;
        let (taken, partitions) = (context.cache.reserved() - opened, world.partitions());
        let per_partition = taken as f64 / partitions as f64;
        assert!((4.5..5.1).contains(&per_partition), "{taken} for {partitions}");
        drop(world);
        runtime::sleep(Duration::from_secs(1)).await;
        assert_eq!(context.cache.reserved(), 0);
    })
    .unwrap();
}

/// A table takes what another one has left, and all it needs once that one is gone.
#[test]
fn tables_share_what_there_is() {
    run_simulated(options(2), async |shard| {
        let context = context(&shard, 2800 << 10);
        let mut first = World::new(&context, "/first", 1).await;
        first.fill_with(SSTABLES, KEYS).await;
        let mut second = World::new(&context, "/second", 2).await;
        second.fill_with(SSTABLES, KEYS).await;
        first.settle().await;
        assert_eq!(first.gathered(), SSTABLES);
        second.settle().await;
        assert!((8..24).contains(&second.gathered()), "{}", second.gathered());
        drop(first);
        // As many as are left are too many still; it looks again after as many reads as it took before, and no fewer than some.
        for _ in 0..3 {
            second.settle().await;
        }
        assert_eq!(second.gathered(), SSTABLES);
    })
    .unwrap();
}

/// A table that is told to keep nothing of indexes takes nothing more of what is being gathered.
#[test]
fn what_was_begun_with_memory_is_not_taken_without() {
    run_simulated(options(16), async |shard| {
        let context = context(&shard, 4 << 20);
        let world = World::filled(&context, "/d", 16).await;
        let reserved = context.cache.reserved();
        world.begin_gathering(&shard).await;
        let mut definition = definition();
        definition.caches_indexes = false;
        world.table.set_definition(definition).await.unwrap();
        world.settle().await;
        assert_eq!((world.gathered(), context.cache.reserved()), (0, reserved));
    })
    .unwrap();
}

/// A table that goes while its tokens are read takes with it who reads them.
#[test]
fn who_gathers_goes_with_the_table() {
    for delay in [1, 100] {
        run_simulated(SimOptions { max_delay: delay, ..options(4) }, async |shard| {
            let context = context(&shard, 4 << 20);
            let world = World::filled(&context, "/d", 4).await;
            world.begin_gathering(&shard).await;
            let sstable = Rc::downgrade(&world.table.sstables().members()[0].sstable);
            assert_eq!(world.gathered(), 0);
            drop(world);
            let after = spent(&shard, runtime::sleep(Duration::from_secs(1))).await;
            assert!(after.class(INDEX_IO).requests < SSTABLES as u64 / 2, "not all are read to the end");
            assert!(sstable.upgrade().is_none());
            assert_eq!(context.cache.reserved(), 0);
        })
        .unwrap();
    }
}

/// An index that could not be read once may be read another time.
#[test]
fn what_a_disk_failed_to_read_is_gathered_later() {
    run_simulated(options(9), async |shard| {
        let world = World::filled(&context(&shard, 4 << 20), "/d", 9).await;
        let disk = shard.disk().as_simulated().unwrap();
        disk.set_options(SimOptions { io_error_chance: 1.0, ..options(9) });
        for number in 0..KEYS {
            drop(world.read(number).await);
        }
        runtime::sleep(Duration::from_secs(1)).await;
        assert!(disk.counters().io_errors > 0);
        assert_eq!(world.gathered(), 0);
        disk.set_options(options(9));
        world.settle().await;
        assert_eq!(world.gathered(), SSTABLES);
    })
    .unwrap();
}
