//! Tests of Summary.db: small ones made by hand, broken ones, real ones.

use proptest::prelude::*;

use super::*;
use crate::parts::samples::{self, survives_corruption};

fn parse(bytes: &[u8]) -> Result<Summary> {
    Summary::parse(Path::new("me-1-big-Summary.db"), bytes, Version::Me, Partitioner::Murmur3)
}

fn error_of(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

/// `count` keys in the order of their tokens.
fn keys(count: u32) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = (0..count).map(|n| format!("key {n}").into_bytes()).collect();
    keys.sort_by_key(|key| token_of(key));
    keys
}

/// Summary.db of these entries.
fn encode(entries: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut builder = SummaryBuilder::new(1);
    entries.iter().for_each(|(key, offset)| builder.push(key, *offset));
    builder.finish().encode()
}

fn sample() -> (Vec<(Vec<u8>, u64)>, Vec<u8>) {
    let entries: Vec<_> = keys(7).into_iter().zip((0..).map(|i| i * 1000)).collect();
    let bytes = encode(&entries);
    (entries, bytes)
}

#[test]
fn entries_come_back() {
    let (entries, bytes) = sample();
    let summary = parse(&bytes).unwrap();
    assert_eq!((summary.len(), summary.min_index_interval(), summary.sampling_level()), (7, 1, 128));
    assert_eq!(summary.size_at_full_sampling(), 7);
    for (index, (key, offset)) in entries.iter().enumerate() {
        assert_eq!(summary.entry(index), (&key[..], *offset));
        assert_eq!(summary.token(index), token_of(key));
    }
    assert_eq!((summary.first_key(), summary.last_key()), (&entries[0].0[..], &entries[6].0[..]));
    assert_eq!([summary.stretch(0), summary.stretch(6)], [(0, Some(1000)), (6000, None)]);
    let flat = size_of::<Summary>() + bytes.len() + 8 * 7;
    assert!(summary.memory_bytes() <= flat, "{} bytes are more than {flat}", summary.memory_bytes());
}

/// Whatever stands before them, and however much of that is at hand.
#[test]
fn both_ends_are_found_from_behind() {
    let (entries, bytes) = sample();
    let [first, last] = [&entries[0].0, &entries[6].0].map(|key| &key[..]);
    let tokens = [first, last].map(token_of);
    let whole = 4 + first.len() + 4 + last.len();
    for len in 0..=bytes.len() {
        let expected = (len >= whole).then_some([first, last]);
        assert_eq!(Summary::ends_in(&bytes[bytes.len() - len..], tokens), expected, "of {len} bytes");
    }
    assert_eq!(Summary::ends_in(&bytes, [tokens[0], tokens[1] + 1]), None);
    assert_eq!(Summary::ends_in(&bytes, [tokens[1], tokens[1]]), None);
    for bit in 0..8 * whole {
        let mut damaged = bytes.clone();
        let at = bytes.len() - 1 - bit / 8;
        damaged[at] ^= 1 << (bit % 8);
        assert_eq!(Summary::ends_in(&damaged, tokens), None, "bit {bit}");
    }
}

#[test]
fn the_floor_is_the_last_entry_not_after_a_key() {
    let all = keys(1000);
    let mut builder = SummaryBuilder::new(10);
    all.iter().zip(0..).for_each(|(key, i)| builder.push(key, i * 50));
    let summary = builder.finish();
    assert_eq!(summary.len(), 100);
    for (i, key) in all.iter().enumerate() {
        assert_eq!(summary.floor(token_of(key), key), Some(i / 10));
        let by_compare = summary.floor_by(|entry| (token_of(entry), entry).cmp(&(token_of(key), key)));
        assert_eq!(by_compare, Some(i / 10));
    }
    let first = token_of(&all[0]);
    assert_eq!(summary.floor(first, b""), None, "no key of that token is before the empty key");
    assert_eq!(summary.floor(first - 1, b"z"), None);
    assert_eq!(summary.floor(i64::MAX, b""), Some(99));
}

#[test]
fn keys_of_one_token_are_told_apart() {
    let mut builder = SummaryBuilder::new(1);
    [b"b", b"d", b"f"].iter().zip(0..).for_each(|(key, i)| builder.push(*key, i));
    let mut summary = builder.finish();
    summary.tokens = vec![1, 5, 5].into_boxed_slice();
    assert_eq!(summary.floor(5, b"f"), Some(2));
    assert_eq!(summary.floor(5, b"e"), Some(1));
    assert_eq!(summary.floor(5, b"a"), Some(0));
    assert_eq!(summary.floor(1, b"a"), None);
}

#[test]
fn a_summary_of_nothing() {
    let summary = SummaryBuilder::default().finish();
    assert!(summary.is_empty() && summary.first_key().is_empty());
    assert_eq!(summary.floor(0, b"k"), None);
}

#[test]
fn what_cannot_be_is_refused() {
    let (entries, bytes) = sample();
    let changed = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    assert!(error_of(&changed(4, &[0xff; 4])).contains("offset 4: the entries do not fit"));
    assert!(error_of(&changed(24, &29u32.to_le_bytes())).contains("first entry"));
    assert!(error_of(&changed(28, &28u32.to_le_bytes())).contains("offset 28: an entry's position"));
    assert!(error_of(&changed(28, &u32::MAX.to_le_bytes())).contains("offset 28"));
    assert!(error_of(&[&bytes[..], b"x"].concat()).contains("more bytes follow"));

    let mut swapped = entries.clone();
    swapped.swap(1, 2);
    assert!(error_of(&encode(&swapped)).contains("entry 2 is not after"));
    let mut still = entries;
    still[1].1 = 0;
    assert!(error_of(&encode(&still)).contains("entry 1 is not after"));
}

#[test]
fn broken_bytes_never_panic() {
    survives_corruption(&sample().1, |bytes| {
        if let Ok(summary) = parse(bytes) {
            assert!((0..summary.len()).all(|i| summary.entry(i).0.len() <= bytes.len()));
            summary.floor(0, b"k");
        }
    });
}

/// Real summaries point to their keys in Index.db; ours of the same Index.db has Cassandra's bytes.
#[test]
fn real_files_point_into_their_index() {
    for file in samples::real_files("Summary.db") {
        let Some(partitioner) = samples::partitioner(&file) else { continue };
        let summary = Summary::parse(&file.path, &file.bytes, file.version, partitioner).unwrap();
        let index = samples::index_entries(&file.sibling("Index.db").unwrap());
        for i in 0..summary.len() {
            let (key, offset) = summary.entry(i);
            let found = index.binary_search_by_key(&offset, |(_, at)| *at).unwrap();
            assert_eq!(index[found].0, key, "{}", file.path.display());
        }
        let ends = (summary.first_key(), summary.last_key());
        assert_eq!(ends, (&index[0].0[..], &index[index.len() - 1].0[..]), "{}", file.path.display());

        let mut builder = SummaryBuilder::new(summary.min_index_interval());
        index.iter().for_each(|(key, offset)| builder.push(key, *offset));
        if !file.is_scyllas() {
            assert_eq!(builder.finish().encode(), file.bytes, "{}", file.path.display());
        }
        assert_eq!(summary.encode(), file.bytes, "{}", file.path.display());
    }
}

proptest! {
    #[test]
    fn never_panics(bytes: Vec<u8>) {
        drop(parse(&bytes));
    }
}

#[test]
fn entries_point_into_the_index() {
    let entries: Vec<_> = keys(3).into_iter().zip([0, 10, 300]).collect();
    let summary = parse(&encode(&entries)).unwrap();
    let path = Path::new("me-1-big-Index.db");
    assert!(summary.check_index_len(path, 301).is_ok());
    let error = summary.check_index_len(path, 300).unwrap_err().to_string();
    assert!(error.contains("Index.db: corrupt at offset 300: it ends here, but entry 2"), "{error}");
}

#[test]
fn its_ends_are_those_that_are_told() {
    let (entries, bytes) = sample();
    let (summary, path) = (parse(&bytes).unwrap(), Path::new("oa-1-big-Summary.db"));
    let [first, last] = [0, 6].map(|index: usize| Some(&entries[index].0[..]));
    for told in [[first, last], [None; 2], [Some(&[][..]); 2]] {
        summary.check_ends(path, told).unwrap();
    }
    let error = |told| summary.check_ends(path, told).unwrap_err().to_string();
    let place = bytes.len() - 2 * 4 - entries[0].0.len() - entries[6].0.len();
    let (at_first, at_last) = (place, place + 4 + entries[0].0.len());
    assert!(error([last, last]).contains(&format!("{at_first}: the first key is not the one")));
    assert!(error([first, first]).contains(&format!("{at_last}: the last key is not the one")));
}
