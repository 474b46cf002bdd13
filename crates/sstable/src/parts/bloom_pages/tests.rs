//! Pages of made-up keys: no key is ever absent, others pass as often as they should, and a lookup costs what it should.

use std::path::Path;
use std::rc::Rc;

use model::key::{murmur3, token_of_hash};
use proptest::prelude::*;
use runtime::{Cache, Disk, IoClass, Shard, SimOptions, run_simulated};

use super::reader::BloomPages;
use super::*;
use crate::Version;
use crate::parts::binding::Binding;
use crate::parts::filter::FilterBuilder;
use crate::parts::sealed_page::PAGE;

const VERSION: Version = Version::Me;
const BINDING: Binding = Binding { digest: Some(1), data_len: 2, index_len: 3 };
const PATH: &str = "/t/me-1-big-BloomPages.db";

/// The hashes of so many keys, in the order of their tokens.
fn hashes(keys: std::ops::Range<u64>) -> Vec<[u64; 2]> {
    sorted(keys.map(|key| murmur3(&key.to_be_bytes())))
}

fn sorted(hashes: impl IntoIterator<Item = [u64; 2]>) -> Vec<[u64; 2]> {
    let mut hashes: Vec<_> = hashes.into_iter().collect();
    hashes.sort_by_key(|&hash| token_of_hash(hash));
    hashes
}

fn file_of(hashes: &[[u64; 2]], fp_chance: f64) -> Vec<u8> {
    let mut builder =
        BloomPagesBuilder::new(hashes.len() as u64, fp_chance).expect("there are several pages");
    hashes.iter().for_each(|&hash| builder.add(hash));
    builder.finish(&BINDING, VERSION)
}

async fn open(disk: &Disk, pages: &FilterPages) -> std::result::Result<BloomPages, String> {
    let file = disk.open(Path::new(PATH), IoClass::new(1)).await.unwrap();
    BloomPages::open(file, pages.clone(), VERSION, BINDING).await
}

/// Opens pages on a simulated disk.
fn with_pages<T: Send>(
    file: Vec<u8>,
    cache: usize,
    test: impl AsyncFnOnce(&Shard, BloomPages, FilterPages) -> T + Send,
) -> T {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        shard.disk().as_simulated().unwrap().add_file(Path::new(PATH), file);
        let pages = FilterPages::new(&Cache::new(cache));
        let opened = open(shard.disk(), &pages).await.unwrap();
        test(&shard, opened, pages).await
    })
    .unwrap()
}

/// Keys as they may come: spread, of one token, close together, at both ends of the ring.
fn any_hashes() -> impl Strategy<Value = Vec<[u64; 2]>> {
    let token = prop_oneof![
        3 => any::<u64>(),
        1 => 0_u64..50,
        1 => Just(7_u64),
        1 => prop_oneof![Just(u64::MAX), Just(1_u64 << 63), Just((1 << 63) - 1), Just((1 << 63) + 1)],
    ];
    let many = (token, any::<u64>(), 1_u64..400);
    prop::collection::vec(many, 1..60).prop_map(|stretches| {
        sorted(stretches.into_iter().flat_map(|(token, half, count)| {
            (0..count).map(move |at| {
                let step = if token < 50 { at % 3 } else { at.wrapping_mul(0x1234_5678_9ABC) };
                [token.wrapping_add(step), half.wrapping_mul(2 * at + 1)]
            })
        }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_key_is_ever_absent(hashes in any_hashes(), fp_chance in 0.001..0.9) {
        let Some(mut builder) = BloomPagesBuilder::new(hashes.len() as u64, fp_chance) else { return Ok(()) };
        hashes.iter().for_each(|&hash| builder.add(hash));
        let file = builder.finish(&BINDING, VERSION);
        for cache in [0, 20 << 10, 1 << 24] {
            with_pages(file.clone(), cache, async |_, pages, _| {
                for &hash in &hashes {
                    assert!(pages.may_contain(hash).await.unwrap(), "{hash:x?}");
                    assert_ne!(pages.probe(hash), Probe::Absent);
                }
                let mut found = Vec::new();
                pages.sift(&hashes, &mut found).await.unwrap();
                assert!(found.into_iter().eq(0..hashes.len()), "one after the other or all at once");
            });
        }
    }
}

/// Whether the share of absent keys that pass is within a tenth of the chance, for both kinds of filter.
#[test]
fn as_many_others_pass_as_should() {
    const KEYS: u64 = 300_000;
    const ABSENT: u64 = 10_000_000;
    let own = hashes(0..KEYS);
    for (fp_chance, shift) in [(0.1, 0), (0.01, 1), (0.001, 2)] {
        let mut whole = FilterBuilder::new(KEYS, fp_chance, VERSION).unwrap().unwrap();
        own.iter().for_each(|&hash| whole.add(hash));
        let whole = whole.finish();
        // Other keys each time: what passes by chance is not the same.
        let absent =
            || (KEYS + shift * ABSENT..KEYS + (shift + 1) * ABSENT).map(|key| murmur3(&key.to_be_bytes()));
        let passed = absent().filter(|&hash| whole.may_contain(hash)).count();
        assert_share("Filter.db", passed, ABSENT, fp_chance);
        let passed = with_pages(file_of(&own, fp_chance), 1 << 30, async |_, pages, _| {
            pages.sift(&own, &mut Vec::new()).await.unwrap();
            absent().filter(|&hash| pages.probe(hash) == Probe::Maybe).count()
        });
        assert_share("BloomPages.db", passed, ABSENT, fp_chance);
    }
}

#[track_caller]
fn assert_share(kind: &str, passed: usize, of: u64, wanted: f64) {
    let share = passed as f64 / of as f64;
    println!("{kind}: {share:.6} of others pass, wanted {wanted}");
    assert!((share / wanted - 1.0).abs() < 0.1, "{kind}: {share} of others pass, and not {wanted}");
}

#[test]
fn keys_in_their_order_ask_the_cache_once_a_page() {
    let own = hashes(0..30_000);
    let file = file_of(&own, 0.01);
    let count = (file.len() / PAGE - 1) as u64;
    with_pages(file, 1 << 24, async |shard, pages, shared| {
        let requests = shard.disk().stats().total().requests;
        assert_eq!(requests, 1, "the file is small beside the cache, and read whole with its directory");
        let others = hashes(1_000_000..1_030_000);
        for &hash in &others {
            assert_ne!(pages.probe(hash), Probe::Unread);
        }
        let lookups = shared.lookups();
        assert!(lookups.of_cache() <= count && lookups.at_hand > 29_000, "{lookups:?}");
        assert_eq!(shard.disk().stats().total().requests, requests);
    });
}

#[test]
fn missing_pages_side_by_side_are_one_request() {
    let own = hashes(0..600_000);
    let file = file_of(&own, 0.01);
    // Too large to be read when it is opened.
    with_pages(file.clone(), 2 << 20, async |shard, pages, shared| {
        let opened = shard.disk().stats().total();
        assert_eq!((opened.requests, opened.bytes), (1, 64 << 10));
        let few: Vec<_> = own.iter().step_by(1000).copied().collect();
        assert_eq!(pages.probe(few[0]), Probe::Unread);
        let mut found = Vec::new();
        pages.sift(&few, &mut found).await.unwrap();
        assert!(found.into_iter().eq(0..few.len()));
        let pages_of_lines = (file.len() / PAGE - 1) as u64;
        let read =
            shard.disk().stats().since(&runtime::IoStats::default()).total().requests - opened.requests;
        assert_eq!((read, shared.lookups().read), (pages_of_lines.div_ceil(64), pages_of_lines));
        pages.sift(&few, &mut Vec::new()).await.unwrap();
        assert_eq!(shared.lookups().read, pages_of_lines, "they are in the cache now");
    });
}

#[test]
fn one_key_reads_one_page_and_those_who_want_the_same_wait_for_it() {
    let own = hashes(0..600_000);
    with_pages(file_of(&own, 0.01), 2 << 20, async |shard, pages, _| {
        let opened = shard.disk().stats().total();
        let asked = [own[7], own[8], own[9]].map(|hash| pages.may_contain(hash));
        assert!(runtime::join_all(asked).await.into_iter().all(|may| may.unwrap()));
        let read = shard.disk().stats().total();
        assert_eq!((read.requests - opened.requests, read.bytes - opened.bytes), (1, PAGE as u64));
    });
}

#[test]
fn pages_at_hand_are_four_and_go_with_their_file() {
    let files: Vec<_> = (0..6).map(|file| hashes(file * 40_000..(file + 1) * 40_000)).collect();
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let cache = Cache::new(64 << 20);
        let shared = FilterPages::new(&cache);
        let mut opened = Vec::new();
        for (number, hashes) in files.iter().enumerate() {
            let path = format!("/t/me-{number}-big-BloomPages.db");
            shard.disk().as_simulated().unwrap().add_file(Path::new(&path), file_of(hashes, 0.01));
            let file = shard.disk().open(Path::new(&path), IoClass::new(1)).await.unwrap();
            opened.push(BloomPages::open(file, shared.clone(), VERSION, BINDING).await.unwrap());
        }
        let ask = |files: std::ops::Range<usize>| {
            let before = shared.lookups();
            for _ in 0..10 {
                files.clone().for_each(|file| {
                    assert_eq!(opened[file].probe(own(&opened, &files, file)), Probe::Maybe)
                });
            }
            shared.lookups().since(&before)
        };
        fn own(_: &[BloomPages], _: &std::ops::Range<usize>, file: usize) -> [u64; 2] {
            hashes(file as u64 * 40_000..file as u64 * 40_000 + 1)[0]
        }
        let four = ask(0..4);
        assert_eq!((four.at_hand, four.of_cache()), (36, 4));
        // Six in turn are too many to be at hand, but each file knows the page that it had last, and none takes another's place for it.
        let six = ask(0..6);
        assert_eq!((six.of_cache(), six.at_hand, six.latest), (2, 40, 18), "{six:?}");
        let (reserved, used) = (cache.reserved(), cache.used());
        assert!((4 * PAGE..5 * PAGE).contains(&reserved), "what is at hand counts");
        drop(opened);
        assert_eq!(cache.used(), used, "what is in the cache goes by itself");
        drop(shared);
        assert_eq!(cache.reserved(), 0);
    })
    .unwrap();
}

#[test]
fn a_page_that_goes_leaves_nothing_behind() {
    let (own, other) = (hashes(0..8_000), hashes(0..200_000));
    // Without a cache there are only the pages at hand.
    with_pages(file_of(&own, 0.01), 0, async |shard, first, shared| {
        let path = Path::new("/t/me-2-big-BloomPages.db");
        shard.disk().as_simulated().unwrap().add_file(path, file_of(&other, 0.01));
        let file = shard.disk().open(path, IoClass::new(1)).await.unwrap();
        let second = BloomPages::open(file, shared.clone(), VERSION, BINDING).await.unwrap();
        assert!(first.may_contain(own[0]).await.unwrap() && first.knows_a_page());
        for hash in other.iter().step_by(997) {
            assert!(second.may_contain(*hash).await.unwrap());
        }
        assert!(shared.lookups().read > 60, "pages came and went: {:?}", shared.lookups());
        assert!(!first.knows_a_page() && second.knows_a_page());
        assert!(first.may_contain(own[0]).await.unwrap() && first.knows_a_page());
    });
}

#[test]
fn damage_is_an_error_or_known_at_once() {
    let own = hashes(0..20_000);
    let sound = file_of(&own, 0.01);
    let pages = sound.len() / PAGE - 1;
    for (at, flip) in (0..sound.len()).step_by(61).map(|at| (at, 1 << (at % 8))) {
        let mut file = sound.clone();
        file[at] ^= flip;
        run_simulated(SimOptions::default(), async |shard: Shard| {
            shard.disk().as_simulated().unwrap().add_file(Path::new(PATH), file);
            // Once with all pages read when it is opened, and once with pages read as they are asked for.
            let at_once = open(shard.disk(), &FilterPages::new(&Cache::new(1 << 24))).await;
            assert!(at_once.is_err(), "byte {at}");
            match open(shard.disk(), &FilterPages::new(&Cache::new(1 << 20))).await {
                Err(_) => assert!(at / PAGE == pages, "byte {at} is not of the directory"),
                Ok(opened) => {
                    let mut wrong = 0;
                    for &hash in own.iter().step_by(500) {
                        match opened.may_contain(hash).await {
                            Ok(may) => assert!(may, "byte {at}"),
                            Err(_) => wrong += 1,
                        }
                    }
                    assert!(wrong > 0, "byte {at}");
                }
            }
        })
        .unwrap();
    }
    for len in (0..sound.len()).step_by(1000) {
        run_simulated(SimOptions::default(), async |shard: Shard| {
            shard.disk().as_simulated().unwrap().add_file(Path::new(PATH), sound[..len].to_vec());
            assert!(
                open(shard.disk(), &FilterPages::new(&Cache::new(1 << 20))).await.is_err(),
                "{len} bytes"
            );
        })
        .unwrap();
    }
}

#[test]
fn of_few_keys_there_are_no_pages() {
    assert!(BloomPagesBuilder::new(3000, 0.01).is_none() && BloomPagesBuilder::new(3400, 0.01).is_some());
    assert!(BloomPagesBuilder::new(1 << 30, 1.0).is_none() && BloomPagesBuilder::new(0, 0.01).is_none());
}

/// A lookup of an absent key is one line of the filter, whatever page it is of.
#[test]
fn a_line_is_all_that_is_looked_at() {
    let own = hashes(0..100_000);
    let shared = Rc::new(file_of(&own, 0.001));
    with_pages(shared.to_vec(), 1 << 24, async |_, pages, _| {
        for hash in hashes(1_000_000..1_010_000) {
            if let Some(line) = pages.line_of(token_of_hash(hash)) {
                assert!(line.len() == 64 && line.start % 64 == 0, "a line of the CPU's cache: {line:x?}");
            }
        }
    });
}
