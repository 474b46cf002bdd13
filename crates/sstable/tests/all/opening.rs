//! What opening a large SSTable reads, and that the rest of its small components is read by those who need it.

use std::rc::Rc;

use model::{Bytes, Fragment, FragmentReader as _, PartitionKey, Slice, Token};
use runtime::{Disk, Shard, SimOptions, run_simulated};
use siltstone_sstable::component::{Component, DATA_IO, FENCES_IO, METADATA_IO, SUMMARY_IO};
use siltstone_sstable::parts::compression_info::{Compression, Compressor};
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::{ReadOptions, Result, SSTable, Version, WriteOptions};

use crate::small_partitions::Written;

/// Where each partition begins, and where the last one ends.
async fn places(sstable: &SSTable) -> Result<Vec<u64>> {
    let mut places = Vec::new();
    let mut entries = sstable.entries();
    while let Some(entry) = entries.next().await? {
        places.push(entry.data);
    }
    places.push(sstable.data().file.len());
    Ok(places)
}

/// Every key is found, what is not there is not, and ranges begin where they should.
async fn check(sstable: &Rc<SSTable>, keys: &[PartitionKey]) -> Result<()> {
    let places = places(sstable).await?;
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

/// Without CRC.db nothing but the last key tells how much data there is: a scan does not end in front of it without a word.
#[test]
fn data_that_is_cut_between_two_partitions_is_told() {
    for version in [Version::Me, Version::Oa] {
        run_simulated(SimOptions::default(), async |shard: Shard| {
            let disk = shard.disk();
            let written = Written::new(disk, version, 50).await;
            disk.remove(&written.path_of(&Component::Crc)).await.unwrap();
            let sstable = written.open(disk, true).await.unwrap();
            let places = places(&sstable).await.unwrap();
            assert_eq!(count(&sstable).await.unwrap(), 50);
            for left in [49, 7, 1, 0] {
                written.change(disk, &Component::Data, |bytes| bytes.truncate(places[left] as usize)).await;
                let sstable = written.open(disk, true).await.unwrap();
                let error = count(&sstable).await.unwrap_err().to_string();
                assert!(error.contains("-Data.db"), "{left} are left: {error}");
            }
        })
        .unwrap();
    }
}

/// How many partitions a scan has.
async fn count(sstable: &SSTable) -> Result<usize> {
    let (mut reader, mut count) = (sstable.scan(), 0);
    while let Some(fragment) = reader.next().await? {
        count += usize::from(matches!(fragment, Fragment::PartitionEnd));
    }
    Ok(count)
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
    for version in [Version::Me, Version::Nb] {
        run_simulated(SimOptions::default(), async |shard: Shard| {
            let disk = shard.disk();
            let written = Written::new(disk, version, 20_000).await;
            let asked = || disk.stats().class(SUMMARY_IO);
            let (before, all_before) = (asked(), disk.stats());
            let sstable = written.open(disk, true).await.unwrap();
            let opened = asked().since(&before);
            assert_eq!((opened.requests, opened.bytes), (1, 4 << 10));
            assert!(disk.stats().since(&all_before).total().requests <= 6);
            assert_eq!(sstable.first_key(), &*written.keys[0].bytes);
            assert_eq!(sstable.last_key(), &*written.keys[19_999].bytes);
            check(&sstable, &written.keys[..100]).await.unwrap();
            assert_eq!(asked().since(&before), opened);
            assert_eq!(sstable.summary().await.unwrap().len(), 20_000);

            each_wrong_end_is_an_error(disk, &written).await;
        })
        .unwrap();
        // With few keys in it, so that it is small and others are behind the last of them.
        run_simulated(SimOptions::default(), async |shard: Shard| {
            let options = WriteOptions { compression: None, ..WriteOptions::new(version) };
            let written = Written::with(shard.disk(), version, 20_000, options).await;
            each_wrong_end_is_an_error(shard.disk(), &written).await;
        })
        .unwrap();
    }
}

async fn each_wrong_end_is_an_error(disk: &Disk, written: &Written) {
    // Both keys, each behind its length.
    for bit in 0..8 * (4 + 4 + 4 + 4) {
        let flip = |bytes: &mut Vec<u8>| {
            let at = bytes.len() - 1 - bit / 8;
            bytes[at] ^= 1 << (bit % 8);
        };
        written.change(disk, &Component::Summary, flip).await;
        for fences in [true, false] {
            let error = written.open(disk, fences).await.map(drop).unwrap_err().to_string();
            assert!(error.contains("Summary.db") && error.contains("take it away"), "bit {bit}: {error}");
        }
        written.change(disk, &Component::Summary, flip).await;
    }
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

/// Where ranges begin is asked of them first. They may not be what they were, or be sealed and say of a key that it has another token.
#[test]
fn ranges_begin_where_they_should_whatever_fences_say() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk();
        let written = Written::new(disk, Version::Oa, 20_000).await;
        let path = written.path_of(&Component::Fences);
        let file = disk.open(&path, FENCES_IO).await.unwrap();
        let sound = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        let damaged = [&vec![7; sound.len() - (32 << 10)][..], &sound[sound.len() - (32 << 10)..]].concat();
        check_ranges(disk, &written, damaged).await;
        let mut told = 0;
        for key in written.keys.iter().step_by(7) {
            for change in [-1, 1] {
                let mut lying = sound.clone();
                if tell_another_token(&mut lying, key.token, change) {
                    check_ranges(disk, &written, lying).await;
                    told += 1;
                }
            }
        }
        assert!(told > 20, "fences tell few of these: {told}");
    })
    .unwrap();
}

/// With these fences.
async fn check_ranges(disk: &Disk, written: &Written, fences: Vec<u8>) {
    disk.as_simulated().unwrap().add_file(written.path_of(&Component::Fences), fences);
    let sstable = written.open(disk, true).await.unwrap();
    assert!(matches!(sstable.fences_state(), Usage::InUse { .. }));
    let places = places(&sstable).await.unwrap();
    for (at, key) in written.keys.iter().enumerate().skip(3).step_by(61) {
        assert_eq!(sstable.data_above(key.token - 1).await.unwrap(), places[at]);
        assert_eq!(sstable.data_behind(key).await.unwrap(), places[at + 1]);
    }
}

/// Puts another number wherever there is this token, and the right checksum behind each page. Whether it was there.
fn tell_another_token(fences: &mut [u8], token: Token, change: i64) -> bool {
    let mut is_there = false;
    for page in fences.chunks_mut(4096) {
        let (told, sum) = page.split_at_mut(4092);
        let mut from = 0;
        while let Some(at) = told[from..].windows(8).position(|bytes| bytes == token.to_be_bytes()) {
            told[from + at..from + at + 8].copy_from_slice(&(token + change).to_be_bytes());
            (from, is_there) = (from + at + 8, true);
        }
        sum.copy_from_slice(&crc32fast::hash(told).to_be_bytes());
    }
    is_there
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
        let options = WriteOptions { compression: Some(chunks), ..WriteOptions::new(Version::Oa) };
        let written = Written::with(disk, Version::Oa, 30_000, options).await;
        let before = disk.stats();
        let sstable = written.open(disk, true).await.unwrap();
        let opened = disk.stats().since(&before);
        assert!(sstable.data().file.compression().unwrap().count() > 2100);
        assert!(opened.class(METADATA_IO).bytes <= 16 << 10, "{opened:?}");
        assert!(opened.total().requests <= 6, "{opened:?}");

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
