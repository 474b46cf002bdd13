//! BloomPages.db: sound pages with some bytes changed, and checksums that hold all the same.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use model::key::{murmur3, token_of_hash};
use runtime::{Cache, IoClass};
use siltstone_fuzz::{change_pages, with_files};
use sstable::Version;
use sstable::parts::binding::Binding;
use sstable::parts::bloom_pages::{BloomPages, BloomPagesBuilder, FilterPages};

const PATH: &str = "/t/oa-1-big-BloomPages.db";
const KEYS: u32 = 20_000;

fuzz_target!(|edits: Vec<(u16, u8)>| {
    let binding = Binding { digest: Some(1), data_len: 2, index_len: 3 };
    let mut hashes: Vec<[u64; 2]> = (0..KEYS).map(|key| murmur3(&key.to_be_bytes())).collect();
    hashes.sort_by_key(|hash| token_of_hash(*hash));
    let mut builder = BloomPagesBuilder::new(u64::from(KEYS), 0.01).expect("they are worth pages");
    hashes.iter().for_each(|hash| builder.add(*hash));
    let mut bytes = builder.finish(&binding, Version::Oa);
    let is_sound = edits.is_empty();
    change_pages(&mut bytes, &edits);
    with_files(vec![(PATH.into(), bytes)], async |shard| {
        let file = shard.disk().open(Path::new(PATH), IoClass::new(0)).await.expect("it is there");
        let pages = FilterPages::new(&Cache::new(1 << 20));
        let opened = BloomPages::open(file, pages, Version::Oa, binding).await;
        assert!(opened.is_ok() || !is_sound);
        let Ok(opened) = opened else { return };
        for hash in hashes.iter().step_by(997).chain(&[[0, 0], [u64::MAX, 1 << 63]]) {
            let may_contain = opened.may_contain(*hash).await;
            opened.probe(*hash);
            assert!(!is_sound || may_contain.is_ok());
        }
        let mut found = Vec::new();
        let sifted = opened.sift(&hashes, &mut found).await;
        assert!(!is_sound || sifted.is_ok() && found.len() == hashes.len());
    });
});
