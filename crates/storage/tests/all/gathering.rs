//! SSTables that overlap, of which tokens are gathered: the same rows are found with fewer looks, and no SSTable hides any.

use std::time::Duration;

use model::Token;
use runtime::run_simulated;
use siltstone_storage::Tokens;
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::row_cache::Known;
use sstable::component::INDEX_IO;
use testkit::generate::random::Random;

mod damage;
mod limits;
mod world;

use world::{KEYS, PARTITIONS, SSTABLES, World, context, definition, key, open, options, spent};

/// The part of the ring below its middle.
const HALF: Tokens = Tokens { after: None, last: 0 };

#[test]
fn what_was_gathered_is_found_whatever_comes_and_goes() {
    for seed in 0..10 {
        run_simulated(options(seed), async |shard| {
            let mut world = World::filled(&context(&shard, 4 << 20), "/d", seed).await;
            assert_eq!(world.gathered(), 0, "nobody has read");
            world.settle().await;
            assert_eq!(world.gathered(), SSTABLES);

            // What is flushed meanwhile is found by its filter, and in time it is gathered too: with the rest, if it is as much.
            world.fill(10).await;
            world.check().await;
            let members = world.table.sstables().members().len();
            assert_eq!((world.gathered(), members), (SSTABLES, SSTABLES + 10));
            for (more, all) in [(10, SSTABLES + 20), (60, SSTABLES + 80)] {
                world.fill(more).await;
                world.settle().await;
                assert_eq!(world.gathered(), all);
            }

            // Compactions take the oldest half of them, and then all but the last few.
            for left in [SSTABLES, 5] {
                let mut oldest = world.table.compactable();
                oldest.sort_by_key(|member| member.max_timestamp);
                oldest.truncate(world.table.sstables().members().len() - left);
                world.table.rewrite(&Rewrite::into_one(oldest), &Control::default()).await.unwrap();
                world.settle().await;
                assert_eq!(world.table.sstables().members().len(), left + 1);
            }
            assert_eq!(world.gathered(), 0, "too few are left");
        })
        .unwrap();
    }
}

#[test]
fn few_are_named_that_have_not_got_a_partition() {
    run_simulated(options(7), async |shard| {
        let world = World::filled(&context(&shard, 4 << 20), "/d", 7).await;
        let there = world.partitions();
        assert!(world.named() > there + 500, "a filter is wrong one time in a hundred");
        let spent = spent(&shard, world.settle()).await;
        let requests = spent.class(INDEX_IO).requests;
        assert_eq!(requests, SSTABLES as u64, "each index is read once, by one request");
        assert!((there..there + 30).contains(&world.named()), "{} of {there}", world.named());
    })
    .unwrap();
}

/// The part of the ring that a shard has is all that it gathers; another part makes it begin anew.
#[test]
fn only_the_tokens_of_the_table_are_gathered() {
    run_simulated(options(5), async |shard| {
        let context = context(&shard, 4 << 20);
        let mut world = World::filled(&context, "/d", 5).await;
        let reserved = context.cache.reserved();
        world.own(HALF);
        world.settle().await;
        assert_eq!(world.gathered(), SSTABLES);
        let taken = context.cache.reserved() - reserved;
        assert!(taken < world.partitions() * 3, "{taken} bytes for half of {}", world.partitions());
        world.table.own(Tokens { after: None, last: Token::MAX });
        assert_eq!((world.gathered(), context.cache.reserved()), (0, reserved));
    })
    .unwrap();
}

/// What is gathered of a part of the ring says nothing of the rest.
#[test]
fn what_was_begun_for_other_tokens_is_not_taken() {
    run_simulated(options(15), async |shard| {
        let world = World::filled(&context(&shard, 4 << 20), "/d", 15).await;
        world.table.own(HALF);
        world.begin_gathering(&shard).await;
        world.table.own(Tokens { after: None, last: Token::MAX });
        runtime::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.gathered(), 0);
        world.settle().await;
        assert_eq!(world.gathered(), SSTABLES);
    })
    .unwrap();
}

#[test]
fn another_definition_leaves_what_was_gathered() {
    run_simulated(options(6), async |shard| {
        let world = World::filled(&context(&shard, 4 << 20), "/d", 6).await;
        world.settle().await;
        let mut definition = definition();
        definition.gc_grace_seconds = 100;
        world.table.set_definition(definition).await.unwrap();
        assert_eq!(world.gathered(), SSTABLES);
        world.check().await;
    })
    .unwrap();
}

/// Rows that are asked for by themselves, of partitions that have no others.
#[test]
fn rows_that_are_there_are_not_denied() {
    run_simulated(options(8), async |shard| {
        let world = World::filled(&context(&shard, 4 << 20), "/d", 8).await;
        world.settle().await;
        assert_eq!(world.gathered(), SSTABLES);
        let is_denied =
            |number: &usize| matches!(world.table.known_row(key(*number).view(), &[]), Known::Absent);
        // Filters are asked each time once they knew a few times.
        let denied = (KEYS..2 * KEYS).filter(is_denied).count();
        assert!(denied > KEYS * 9 / 10, "{denied}");
        let denied = (0..KEYS).filter(is_denied).filter(|number| world.model.contains_key(number)).count();
        assert_eq!(denied, 0);
    })
    .unwrap();
}

/// All that happens to a table happens while tokens are gathered.
#[test]
fn what_is_read_is_true_whatever_happens_meanwhile() {
    let mut gathered = 0;
    for seed in 0..40 {
        gathered += run_simulated(options(seed * 37), async |shard| {
            let context = context(&shard, if seed % 3 == 0 { 200 << 10 } else { 4 << 20 });
            let mut world = World::new(&context, "/d", seed).await;
            let mut most = 0;
            for _ in 0..120 {
                happen(&mut world, &context).await;
                let mut random = Random::new(world.random.below(1 << 30) as u64);
                let mut some = |count| -> Vec<usize> {
                    let numbers: Vec<_> = (0..random.below(count)).map(|_| random.below(450)).collect();
                    numbers.into_iter().filter(|number| world.owns(*number)).collect()
                };
                for number in some(60) {
                    world.check_one(number).await;
                }
                world.check_many(&some(10)).await;
                most = most.max(world.gathered());
            }
            most
        })
        .unwrap();
    }
    assert!(gathered > 40 * SSTABLES / 2, "{gathered}");
}

/// One of those things.
async fn happen(world: &mut World, context: &siltstone_storage::Context) {
    match world.random.below(40) {
        0..20 => {
            for _ in 0..1 + world.random.below(6) {
                write_some(world);
                world.flush().await;
            }
        }
        20 | 21 => {
            let mut members = world.table.compactable();
            for _ in 0..world.random.below(members.len().max(1)) {
                members.swap_remove(world.random.below(members.len()));
            }
            if members.len() > 10 {
                world.table.rewrite(&Rewrite::into_one(members), &Control::default()).await.unwrap();
            }
        }
        22 => {
            let mut definition = definition();
            definition.gc_grace_seconds = world.random.below(2) as u32;
            world.table.set_definition(definition).await.unwrap();
        }
        23 => {
            let tokens = world.table.tokens();
            let another = open(context, "/other", definition()).await;
            drop(std::mem::replace(&mut world.table, another));
            world.table = open(context, "/d", definition()).await;
            world.table.own(tokens);
        }
        24 if world.random.below(10) == 0 => world.own(HALF),
        _ => {}
    }
}

fn write_some(world: &mut World) {
    for _ in 0..1 + world.random.below(PARTITIONS / 8) {
        let number = world.random.below(400);
        match world.random.below(4) {
            _ if !world.owns(number) => {}
            0 => world.delete(number),
            _ => world.insert(number),
        }
    }
}
