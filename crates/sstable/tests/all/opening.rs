//! What opening a large SSTable reads, and that the rest of its small components is read by those who need it.

use std::rc::Rc;

use model::{Bytes, Fragment, FragmentReader as _, PartitionKey, Slice, Token};
use runtime::{Shard, SimOptions, run_simulated};
use siltstone_sstable::component::{Component, DATA_IO, FENCES_IO, METADATA_IO, SUMMARY_IO};
use siltstone_sstable::parts::compression_info::{Compression, Compressor};
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::{ReadOptions, Result, SSTable, Version};

use crate::small_partitions::Written;

/// Every key is found, what is not there is not, and ranges begin where they should.
async fn check(sstable: &Rc<SSTable>, keys: &[PartitionKey]) -> Result<()> {
    let mut places = Vec::new();
    let mut entries = sstable.entries();
    while let Some(entry) = entries.next().await? {
        places.push(entry.data);
    }
    places.push(sstable.data().file.len());
    for (number, key) in keys.iter().enumerate() {
        assert!(sstable.read(key, &Slice::all(), ReadOptions::default()).await?.is_some());
        assert_eq!(sstable.data_behind(key).await?, places[number + 1]);
        assert_eq!(sstable.data_above(key.token).await?, places[number + 1]);
        assert_eq!(sstable.data_above(key.token - 1).await?, places[number]);
    }
    assert_eq!(
        [sstable.data_above(Token::MIN).await?, sstable.data_above(Token::MAX).await?],
        [0, places[places.len() - 1]]
    );
    let absent = PartitionKey::new(Bytes::from(b"no such key".to_vec()));
    assert!(sstable.read(&absent, &Slice::all(), ReadOptions::default()).await?.is_none());
    Ok(())
}

/// Fences tell what it tells, and `oa` tells both ends in Statistics.db.
#[test]
fn a_summary_that_nobody_needs_is_not_read() {
    for (version, fences, expected) in
        [(Version::Oa, true, 0), (Version::Oa, false, 1), (Version::Nb, true, 1), (Version::Me, false, 1)]
    {
        run_simulated(SimOptions::default(), async |shard: Shard| {
            let disk = shard.disk();
            let written = Written::new(disk, version, 1000).await;
            let before = disk.stats();
            let sstable = written.open(disk, fences).await.unwrap();
            let asked = || disk.stats().since(&before).class(SUMMARY_IO).requests;
            check(&sstable, &written.keys).await.unwrap();
            assert_eq!(sstable.first_key(), &*written.keys[0].bytes);
            assert_eq!(sstable.last_key(), &*written.keys[999].bytes);
            assert_eq!(asked(), expected, "{version} {fences}");
            assert_eq!(sstable.summary().await.unwrap().len(), 1000);
            assert_eq!(sstable.summary().await.unwrap().first_key(), sstable.first_key());
            assert_eq!(asked(), 1, "it is read once, by who asks for it");
        })
        .unwrap();
    }
}

/// Of versions before `oa` the first and the last key are read alone, if their tokens are those of the filter. Else, all is read, and what is wrong
/// is an error: no key is taken for another one.
#[test]
fn of_older_versions_the_ends_are_read() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk();
        for version in [Version::Me, Version::Nb] {
            let written = Written::new(disk, version, 20_000).await;
            let asked = || disk.stats().class(SUMMARY_IO);
            let before = asked();
            let sstable = written.open(disk, true).await.unwrap();
            let opened = asked().since(&before);
            assert_eq!((opened.requests, opened.bytes), (1, 4 << 10));
            assert_eq!(sstable.first_key(), &*written.keys[0].bytes);
            assert_eq!(sstable.last_key(), &*written.keys[19_999].bytes);
            check(&sstable, &written.keys[..100]).await.unwrap();
            assert_eq!(asked().since(&before), opened);
            assert_eq!(sstable.summary().await.unwrap().len(), 20_000);

            // Both keys, each behind its length.
            for bit in 0..8 * (4 + 4 + 4 + 4) {
                let flip = |bytes: &mut Vec<u8>| {
                    let at = bytes.len() - 1 - bit / 8;
                    bytes[at] ^= 1 << (bit % 8);
                };
                written.change(disk, &Component::Summary, flip).await;
                // A last key behind all entries may be any, as far as anybody else can tell.
                if let Ok(sstable) = written.open(disk, true).await {
                    assert_eq!(sstable.first_key(), &*written.keys[0].bytes, "bit {bit}");
                    assert!(bit / 8 < 4, "bit {bit}");
                }
                written.change(disk, &Component::Summary, flip).await;
            }
        }
    })
    .unwrap();
}

/// Even if its name is gone by then, as that of an SSTable that was merged with others is.
#[test]
fn a_summary_is_read_when_fences_turn_out_to_be_wrong() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk();
        let written = Written::new(disk, Version::Oa, 20_000).await;
        // All but the end, which is read and checked at once.
        let damage = |bytes: &mut Vec<u8>| {
            let end = bytes.len() - (32 << 10);
            bytes[..end].fill(7);
        };
        written.change(disk, &Component::Fences, damage).await;
        let sstable = written.open(disk, true).await.unwrap();
        assert!(matches!(sstable.fences_state(), Usage::InUse { .. }));
        assert_eq!(disk.stats().class(SUMMARY_IO).requests, 0);
        disk.remove(&written.path_of(&Component::Summary)).await.unwrap();
        check(&sstable, &written.keys).await.unwrap();
        assert!(matches!(sstable.fences_state(), Usage::Ignored { .. }));
        assert_eq!(disk.stats().class(SUMMARY_IO).requests, 1);
    })
    .unwrap();
}

/// It matters to nobody, until it is needed.
#[test]
fn a_damaged_summary_is_an_error_of_who_needs_it() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk();
        let written = Written::new(disk, Version::Oa, 1000).await;
        written.change(disk, &Component::Summary, |bytes| bytes[30] ^= 1).await;
        let sstable = written.open(disk, true).await.unwrap();
        check(&sstable, &written.keys).await.unwrap();
        for error in
            [sstable.summary().await.map(drop).unwrap_err(), written.open(disk, false).await.unwrap_err()]
        {
            let text = error.to_string();
            assert!(text.contains("Summary.db") && text.contains("take it away"), "{text}");
        }
    })
    .unwrap();
}

/// However many partitions there are: the end of the fences, that of the filter, and statistics.
#[test]
fn opening_reads_little_of_many_partitions() {
    for count in [100, 5_000, 20_000, 60_000] {
        run_simulated(SimOptions::default(), async |shard: Shard| {
            let disk = shard.disk();
            let written = Written::new(disk, Version::Oa, count).await;
            let before = disk.stats();
            let sstable = written.open(disk, true).await.unwrap();
            let asked = disk.stats().since(&before);
            assert!(asked.total().bytes <= 112 << 10, "{count}: {asked:?}");
            assert!(asked.total().requests <= 5, "{count}: {:?}", asked.total());
            // A key is one page of the fences away, if not read yet.
            let before = disk.stats();
            let key = &written.keys[count as usize / 3];
            assert!(sstable.read(key, &Slice::all(), ReadOptions::default()).await.unwrap().is_some());
            assert!(disk.stats().since(&before).class(FENCES_IO).requests <= 1, "{count}");
        })
        .unwrap();
    }
}

/// Of compressed data the places of chunks are read as they are needed: here 3,000 of them, of 25 KiB. A scan and a read of each row find what
/// is there, with a cache and without.
#[test]
fn places_of_chunks_are_read_as_they_are_needed() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk();
        let chunks = Compression::new(Compressor::Lz4, Version::Oa).with_chunk_len(256).unwrap();
        let written = Written::compressed(disk, Version::Oa, 30_000, Some(chunks)).await;
        let before = disk.stats();
        let sstable = written.open(disk, true).await.unwrap();
        let opened = disk.stats().since(&before);
        assert!(sstable.data().file.compression().unwrap().count() > 2100);
        assert!(opened.class(METADATA_IO).bytes <= 16 << 10, "{opened:?}");

        let before = disk.stats();
        let mut scan = sstable.scan();
        let mut rows = 0;
        while let Some(fragment) = scan.next().await.unwrap() {
            rows += usize::from(matches!(fragment, Fragment::Row(_)));
        }
        assert_eq!(rows, written.keys.len());
        let pages = disk.stats().since(&before).class(METADATA_IO).requests;
        assert!((1..=5).contains(&pages), "{pages} requests");

        check(&sstable, &written.keys[..2000]).await.unwrap();
        let before = disk.stats();
        let key = &written.keys[25_000];
        assert!(sstable.read(key, &Slice::all(), ReadOptions::default()).await.unwrap().is_some());
        let asked = disk.stats().since(&before);
        assert_eq!((asked.class(DATA_IO).requests, asked.class(METADATA_IO).requests), (1, 0));
    })
    .unwrap();
}
