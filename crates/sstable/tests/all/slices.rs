//! Slices agree with filtering the whole partition, however they are read.
//!
//! The whole partition, read by a scan, is the oracle. Every slice is then read forward and backwards,
//! with binary search and linear scan, with and without caches, with small and large buffers, with and
//! without io_uring and direct I/O: each must give what filtering the oracle gives.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{
    Bytes, Clustering, DeletionTime, Fragment, FragmentReader, PartitionKey, Position, RangeTombstoneChange,
    Schema, Slice, Weight,
};
use runtime::{Cache, Shard, ShardOptions, SimOptions};
use siltstone_sstable::component::INDEX_IO;
use siltstone_sstable::{ForwardingReader, OpenOptions, ReadOptions, SSTable, Search};
use testkit::gather::{Gathered, gather_flat};
use testkit::generate::random::Random;

const LARGE: [&str; 2] =
    ["me/large/sstables/large_none/me-1-big-Data.db", "oa/large/sstables/large_rev/oa-1-big-Data.db"];
const SMALL: [&str; 6] = [
    "mc/small/sstables/tombs/mc-2-big-Data.db",
    "me/small/sstables/tombs_rev/me-1-big-Data.db",
    "me/small/sstables/comp_deflate/me-1-big-Data.db",
    "nb/small/sstables/comp_zstd/nb-1-big-Data.db",
    "oa/small/sstables/tombs/oa-2-big-Data.db",
    "oa/small/sstables/statics/oa-1-big-Data.db",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cassandra").join(name)
}

/// A way to read that may not change what is read.
#[derive(Clone, Copy, Debug)]
struct Way {
    cache: usize,
    read_buffer: u64,
    search: Search,
    limit: Option<u64>,
    /// Rows are taken as they stand, where the reader gives them so.
    flat: bool,
}

const WAYS: [Way; 5] = [
    Way { cache: 64 << 20, read_buffer: 256 << 10, search: Search::Binary, limit: None, flat: true },
    Way { cache: 64 << 20, read_buffer: 256 << 10, search: Search::Scan, limit: None, flat: false },
    Way { cache: 0, read_buffer: 700, search: Search::Binary, limit: Some(1), flat: true },
    Way { cache: 10 << 10, read_buffer: 5000, search: Search::Binary, limit: Some(7), flat: false },
    Way { cache: 40 << 10, read_buffer: 100_000, search: Search::Scan, limit: Some(100), flat: true },
];

struct Partition {
    key: PartitionKey,
    fragments: Vec<Fragment>,
}

async fn partitions(table: &SSTable) -> Vec<Partition> {
    let mut found: Vec<Partition> = Vec::new();
    let mut scan = table.scan();
    while let Some(fragment) = scan.next().await.unwrap() {
        if let Fragment::PartitionStart(start) = &fragment {
            found.push(Partition { key: start.key.clone(), fragments: Vec::new() });
        }
        found.last_mut().unwrap().fragments.push(fragment);
    }
    found
}

/// What a slice of the partition must give: the oracle.
fn filtered(schema: &Schema, fragments: &[Fragment], slice: &Slice, with_static: bool) -> Vec<Fragment> {
    let change = |position: &Position, deletion| {
        Fragment::RangeTombstone(RangeTombstoneChange { position: position.clone(), deletion })
    };
    let (mut head, mut rows, mut open, mut open_at_start) = (vec![], vec![], DeletionTime::LIVE, None);
    for fragment in fragments {
        match fragment {
            Fragment::PartitionStart(_) => head.push(fragment.clone()),
            Fragment::StaticRow(_) if with_static => head.push(fragment.clone()),
            Fragment::Row(row)
                if schema.compare_row(&row.clustering, &slice.start).is_gt()
                    && schema.compare_row(&row.clustering, &slice.end).is_lt() =>
            {
                open_at_start.get_or_insert(open);
                rows.push(fragment.clone());
            }
            Fragment::RangeTombstone(tombstone)
                if schema.compare(&tombstone.position, &slice.end).is_lt() =>
            {
                if schema.compare(&tombstone.position, &slice.start).is_gt() {
                    open_at_start.get_or_insert(open);
                    rows.push(fragment.clone());
                }
                open = tombstone.deletion;
            }
            _ => {}
        }
    }
    let open_at_start = open_at_start.unwrap_or(open);
    if !open_at_start.is_live() {
        rows.insert(0, change(&slice.start, open_at_start));
    }
    if !open.is_live() {
        rows.push(change(&slice.end, DeletionTime::LIVE));
    }
    head.into_iter().chain(rows).chain([Fragment::PartitionEnd]).collect()
}

/// The stream that the same slice gives backwards.
fn reversed(fragments: &[Fragment]) -> Vec<Fragment> {
    let is_row = |fragment: &&Fragment| matches!(fragment, Fragment::Row(_) | Fragment::RangeTombstone(_));
    let mut head: Vec<_> = fragments.iter().filter(|f| !is_row(f)).cloned().collect();
    let end = head.pop();
    let mut rows: Vec<_> = fragments.iter().filter(is_row).cloned().collect();
    let mut below = DeletionTime::LIVE;
    for fragment in &mut rows {
        if let Fragment::RangeTombstone(change) = fragment {
            std::mem::swap(&mut change.deletion, &mut below);
        }
    }
    head.into_iter().chain(rows.into_iter().rev()).chain(end).collect()
}

/// Positions worth cutting at: around rows, around prefixes, around the ends of index blocks, outside.
async fn cuts(table: &Rc<SSTable>, partition: &Partition, every: usize) -> Vec<Position> {
    let mut prefixes: Vec<Clustering> = Vec::new();
    let rows = partition.fragments.iter().filter_map(|fragment| match fragment {
        Fragment::Row(row) => Some(row.clustering.clone()),
        Fragment::RangeTombstone(change) => Some(change.position.prefix.clone()),
        _ => None,
    });
    prefixes.extend(rows.step_by(every));
    let mut entries = table.entries();
    while let Some(entry) = entries.next().await.unwrap() {
        if entry.key == partition.key.bytes
            && let Some((_, blocks)) = table.blocks(&entry).await.unwrap()
        {
            let some = blocks.iter().step_by(blocks.len().div_ceil(5)).chain(blocks.last());
            prefixes.extend(some.flat_map(|block| [block.first.prefix.clone(), block.last.prefix.clone()]));
        }
    }
    let shorter: Vec<_> = prefixes.iter().filter(|prefix| prefix.len() > 1).map(first_column).collect();
    prefixes.extend(shorter);
    let around = |prefix: Clustering| [Position::before(prefix.clone()), Position::after(prefix)];
    let mut cuts: Vec<_> = prefixes.into_iter().flat_map(around).collect();
    cuts.extend([Position::start(), Position::end()]);
    cuts.sort_by(|a, b| table.schema().compare(a, b));
    cuts.dedup();
    cuts
}

fn first_column(prefix: &Clustering) -> Clustering {
    Clustering { values: prefix.values[..1].iter().cloned().collect() }
}

/// All slices between neighbouring cuts, and some longer ones.
fn slices(cuts: &[Position]) -> Vec<Slice> {
    let mut slices = Vec::new();
    for (i, start) in cuts.iter().enumerate() {
        for step in [1, 2, 5] {
            if let Some(end) = cuts.get(i + step) {
                slices.push(Slice { start: start.clone(), end: end.clone() });
            }
        }
        if i % (cuts.len() / 4).max(1) == 1 {
            slices.push(Slice { start: start.clone(), end: Position::end() });
            slices.push(Slice { start: Position::start(), end: start.clone() });
        }
    }
    slices.push(Slice::all());
    slices.retain(|slice| slice.start != slice.end);
    slices
}

/// The same slice with its ends at rows, if that is where they may be.
fn at_rows(schema: &Schema, slice: &Slice) -> Option<Slice> {
    let is_row = |position: &Position| position.prefix.len() == schema.clustering.len();
    let is_beside =
        (slice.start.weight, slice.end.weight) == (Weight::Before, Weight::After) && is_row(&slice.start);
    let at = |position: &Position| Position::at(position.prefix.clone());
    (is_beside && is_row(&slice.end)).then(|| Slice { start: at(&slice.start), end: at(&slice.end) })
}

async fn read(table: &Rc<SSTable>, key: &PartitionKey, slice: &Slice, options: ReadOptions) -> Vec<Fragment> {
    let mut reader = table.read(key, slice, options).await.unwrap().expect("the partition is there");
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        fragments.push(fragment);
    }
    fragments
}

/// The same with rows as they stand, and how many did.
async fn read_flat(
    table: &Rc<SSTable>,
    key: &PartitionKey,
    slice: &Slice,
    options: ReadOptions,
) -> (Vec<Fragment>, usize) {
    let mut reader = table.read(key, slice, options).await.unwrap().expect("the partition is there");
    let Gathered { fragments, flat } = gather_flat(&mut reader).await.unwrap();
    (fragments, flat)
}

async fn open(shard: &Shard, name: &str, way: &Way) -> Rc<SSTable> {
    let options = OpenOptions { read_buffer: way.read_buffer, ..OpenOptions::new(Cache::new(way.cache)) };
    SSTable::open(shard.disk(), &fixture(name), &options).await.unwrap()
}

/// How many slices were compared, and how many rows of them were taken as they stand.
async fn check(shard: &Shard, name: &str, every: usize, ways: &[Way]) -> (usize, usize) {
    let (mut checked, mut flat) = (0, 0);
    for way in ways {
        let table = open(shard, name, way).await;
        for partition in partitions(&table).await {
            let cuts = cuts(&table, &partition, every).await;
            for slice in slices(&cuts) {
                for (reverse, static_row) in [(false, true), (true, true), (false, false), (true, false)] {
                    let options = ReadOptions {
                        search: way.search,
                        reverse,
                        static_row,
                        limit: way.limit,
                        reads_on: way.flat,
                        ..ReadOptions::default()
                    };
                    let found = match way.flat {
                        true => {
                            let (found, rows) = read_flat(&table, &partition.key, &slice, options).await;
                            flat += rows;
                            found
                        }
                        false => read(&table, &partition.key, &slice, options).await,
                    };
                    let expected = filtered(table.schema(), &partition.fragments, &slice, static_row);
                    let expected = if reverse { reversed(&expected) } else { expected };
                    assert!(
                        found == expected,
                        "{name} {way:?} {options:?} {slice:?}\n{found:?}\n{expected:?}"
                    );
                    checked += 1;
                    if let Some(at_rows) = at_rows(table.schema(), &slice) {
                        assert!(
                            read(&table, &partition.key, &at_rows, options).await == expected,
                            "{at_rows:?}"
                        );
                    }
                }
            }
        }
    }
    (checked, flat)
}

/// Reads slices that follow each other with one reader, and compares each with filtering. Some it leaves in their middle.
async fn check_forwarding(shard: &Shard, name: &str, every: usize, ways: &[Way]) -> usize {
    let mut random = Random::new(5);
    let mut checked = 0;
    for way in ways {
        let table = open(shard, name, way).await;
        for partition in partitions(&table).await {
            let cuts = cuts(&table, &partition, every).await;
            for longest in [1, 2, 10, cuts.len()] {
                let mut reader = None;
                for slice in following(&cuts, longest, &mut random) {
                    let reader = forwarded(&table, &partition.key, &mut reader, &slice, way.search).await;
                    let mut expected = filtered(table.schema(), &partition.fragments, &slice, false);
                    if random.below(4) == 0 {
                        expected.truncate(random.below(expected.len()));
                    }
                    let mut found = Vec::new();
                    while found.len() < expected.len() {
                        found.push(reader.next().await.unwrap().expect("there is more"));
                    }
                    assert!(found == expected, "{name} {way:?} {slice:?}\n{found:?}\n{expected:?}");
                    if matches!(found.last(), Some(Fragment::PartitionEnd)) {
                        assert_eq!(reader.next().await.unwrap(), None);
                    }
                    checked += 1;
                }
            }
        }
    }
    checked
}

/// Slices between cuts, each beginning where the one before ended or behind; each and each gap of up to so many cuts.
fn following(cuts: &[Position], longest: usize, random: &mut Random) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut at = random.below(longest);
    while at + 1 < cuts.len() {
        let end = (at + 1 + random.below(longest)).min(cuts.len() - 1);
        slices.push(Slice { start: cuts[at].clone(), end: cuts[end].clone() });
        at = end + random.below(longest + 1);
    }
    slices
}

/// The reader at another slice, made for it if there is none yet.
async fn forwarded<'a>(
    table: &Rc<SSTable>,
    key: &PartitionKey,
    reader: &'a mut Option<ForwardingReader>,
    slice: &Slice,
    search: Search,
) -> &'a mut ForwardingReader {
    match reader {
        Some(reader) => reader.fast_forward_to(slice),
        None => *reader = table.read_forwarding(key, slice, search).await.unwrap(),
    }
    reader.as_mut().expect("the partition is there")
}

/// Runs over a disk in memory whose reads are cut short at random.
fn with_files_in_memory(names: &[&str], test: impl AsyncFnOnce(Shard) + Send) {
    let options = SimOptions { seed: 11, short_read_chance: 0.1, alignment: 512, ..SimOptions::default() };
    runtime::run_simulated(options, async |shard: Shard| {
        let disk = shard.disk().as_simulated().expect("the disk is simulated");
        for name in names {
            for file in std::fs::read_dir(fixture(name).parent().unwrap()).unwrap() {
                let path = file.unwrap().path();
                disk.add_file(&path, std::fs::read(&path).unwrap());
            }
        }
        test(shard).await;
    })
    .unwrap();
}

#[test]
fn slices_of_small_partitions_agree_with_filtering() {
    with_files_in_memory(&SMALL, async |shard: Shard| {
        for name in SMALL {
            assert!(check(&shard, name, 5, &WAYS).await.0 > 100, "{name} has slices to check");
        }
    });
}

#[test]
fn slices_of_large_partitions_agree_with_filtering() {
    with_files_in_memory(&LARGE, async |shard: Shard| {
        for name in LARGE {
            let (checked, flat) = check(&shard, name, 5000, &WAYS).await;
            assert!(checked > 1000 && flat > 1000, "{name} has slices and rows to check: {checked}, {flat}");
        }
    });
}

#[test]
fn slices_that_follow_each_other_agree_with_filtering() {
    with_files_in_memory(&[SMALL.as_slice(), &LARGE].concat(), async |shard: Shard| {
        for name in SMALL {
            assert!(check_forwarding(&shard, name, 5, &WAYS).await > 50, "{name} has slices to check");
        }
        for name in LARGE {
            assert!(check_forwarding(&shard, name, 1000, &WAYS).await > 100, "{name} has slices to check");
        }
    });
}

#[test]
fn neither_io_uring_nor_direct_io_changes_what_is_read() {
    for (io_uring, direct_io) in [(true, false), (false, true), (false, false)] {
        let options = ShardOptions { io_uring, direct_io, ..ShardOptions::default() };
        runtime::run(options, async |shard: Shard| {
            for name in [SMALL[0], LARGE[0], LARGE[1]] {
                assert!(check(&shard, name, 9000, &WAYS[3..4]).await.0 > 100);
            }
        })
        .unwrap();
    }
}

#[test]
fn data_behind_a_key_begins_with_the_next_partition() {
    with_files_in_memory(&SMALL, async |shard: Shard| {
        for name in SMALL {
            let table = open(&shard, name, &WAYS[0]).await;
            let (mut entries, mut all) = (table.entries(), Vec::new());
            while let Some(entry) = entries.next().await.unwrap() {
                all.push((table.key(entry.key), entry.data));
            }
            let ends = all[1..].iter().map(|(_, data)| *data).chain([table.data().file.len()]);
            for ((key, data), end) in all.iter().zip(ends) {
                assert_eq!(table.data_behind(key).await.unwrap(), end, "{name} {key:?}");
                // One that is not there stands before this key, and behind all others of its token.
                let before = PartitionKey { token: key.token, bytes: Bytes::default() };
                assert_eq!(table.data_behind(&before).await.unwrap(), *data, "{name} {key:?}");
            }
        }
    });
}

/// A scan of few partitions asks where they begin, and where they end.
#[test]
fn both_ends_of_a_short_range_are_one_request_of_the_index() {
    with_files_in_memory(&SMALL, async |shard: Shard| {
        for name in SMALL {
            let table = open(&shard, name, &WAYS[0]).await;
            let (mut entries, mut tokens) = (table.entries(), Vec::new());
            while let Some(entry) = entries.next().await.unwrap() {
                tokens.push((table.key(entry.key).token, entry.data));
            }
            let [.., (first, _), (second, data), (_, end)] = tokens[..] else { panic!("{name} has few") };
            let table = open(&shard, name, &WAYS[0]).await;
            let before = shard.disk().stats();
            assert_eq!(table.data_above(first).await.unwrap(), data, "{name}");
            assert_eq!(table.data_above(second).await.unwrap(), end, "{name}");
            assert_eq!(shard.disk().stats().since(&before).class(INDEX_IO).requests, 1, "{name}");
        }
    });
}
