//! Searches in promoted indexes that are made up, on a simulated disk: what they find, and with how many requests.

use std::path::Path;
use std::rc::Rc;

use model::{Clustering, CqlType, DeletionTime, Position, Schema, Slice};
use runtime::{Cache, IoClass, Shard, SimOptions, run_simulated};

use super::entry::{EntryScanner, IndexSource, Promoted};
use super::groups::GroupReads;
use super::promoted_cursor::{BlockIndex, Found, PromotedCursor, Search, put_block_tail};
use super::ruler;
use crate::Version;
use crate::cache::cached_file::CachedFile;
use crate::data::row::{Minima, RowCodec, put_deletion_time};
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::fences::{Deletions, Fences, Fencing, rebuild};
use crate::parts::usage::Usage;

const VERSION: Version = Version::Me;
const INDEX: &str = "/me-1-big-Index.db";
const FENCES: &str = "/me-1-big-Fences.db";
const DELETED: DeletionTime = DeletionTime { marked_for_delete_at: 7, local_deletion_time: 8 };
/// Bytes of a partition before its first row, and of a block.
const HEAD: u64 = 40;
const WIDTH: u64 = 66_000;

/// A partition of so many blocks: block *i* has the rows of `keys(2 i)` and `keys(2 i + 1)`.
struct Partition<'a> {
    schema: &'a Schema,
    codec: RowCodec,
    count: u32,
    keys: &'a dyn Fn(u64) -> Clustering,
    /// Every so many blocks a tombstone is open at the end.
    tombstones: u32,
    /// Bytes of the key of the partition in front of it.
    in_front: usize,
}

impl<'a> Partition<'a> {
    fn new(schema: &'a Schema, count: u32, keys: &'a dyn Fn(u64) -> Clustering) -> Partition<'a> {
        let minima = Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 };
        Partition {
            schema,
            codec: RowCodec::new(schema, minima, VERSION),
            count,
            keys,
            tombstones: 7,
            in_front: LOW.len(),
        }
    }

    fn end_open(&self, block: u32) -> DeletionTime {
        let is_open = block % self.tombstones == 3 && block + 1 < self.count;
        if is_open { DELETED } else { DeletionTime::LIVE }
    }

    /// Index.db with this partition, between two small ones.
    fn index(&self) -> Vec<u8> {
        let (mut blocks, mut map) = (Vec::new(), Vec::new());
        for block in 0..self.count {
            map.put_u32(blocks.len() as u32);
            for row in [2 * u64::from(block), 2 * u64::from(block) + 1] {
                self.codec.put_row_prefix(&(self.keys)(row), &mut blocks);
            }
            let offset = HEAD + u64::from(block) * WIDTH;
            put_block_tail(offset, WIDTH, &self.end_open(block), VERSION, &mut blocks);
        }
        let mut head = Vec::new();
        head.put_vint(HEAD);
        put_deletion_time(&DeletionTime::LIVE, VERSION, &mut head);
        head.put_vint(u64::from(self.count));
        let mut index = Vec::new();
        let low = [&LOW[..], &vec![0; self.in_front - LOW.len()]].concat();
        for (key, data, promoted) in [(&low[..], 0, false), (&KEY, 9, true), (&HIGH, 1 << 50, false)] {
            index.put_short_bytes(key);
            index.put_vint(data);
            if promoted {
                index.put_vint((head.len() + blocks.len() + map.len()) as u64);
                [&head, &blocks, &map].iter().for_each(|part| index.put(part));
            } else {
                index.put_vint(0);
            }
        }
        index
    }
}

/// Keys in the order of their tokens.
const LOW: [u8; 4] = 5_i32.to_be_bytes();
const KEY: [u8; 4] = 1_i32.to_be_bytes();
const HIGH: [u8; 4] = 2_i32.to_be_bytes();

/// An open index on a shard, with a cold cache.
struct Opened<'a> {
    shard: &'a Shard,
    partition: &'a Partition<'a>,
    index: BlockIndex,
    promoted: Promoted,
}

impl<'a> Opened<'a> {
    async fn new(shard: &'a Shard, partition: &'a Partition<'a>, with_fences: bool) -> Opened<'a> {
        let file = shard.disk().open(Path::new(INDEX), IoClass::new(2)).await.unwrap();
        let binding = Binding { digest: None, data_len: 77, index_len: file.len() };
        let cache = Cache::new(64 << 20);
        let fences = match with_fences {
            true => {
                let file = shard.disk().open(Path::new(FENCES), IoClass::new(6)).await.unwrap();
                Ok(Fences::open(file, cache.clone(), VERSION, binding).await.unwrap())
            }
            false => Err(Usage::Off),
        };
        let fencing = Rc::new(Fencing::new(fences));
        let key = model::PartitionKey::new(model::Bytes::from(&KEY[..]));
        let promoted = match fencing.get() {
            Some(fences) => fences.large(&key).await.unwrap().expect("it is large").promoted,
            None => {
                let source = IndexSource::Streamed(file.clone());
                let mut entries = EntryScanner::new(source, 0..file.len(), 4096);
                entries.next().await.unwrap();
                let entry = entries.next().await.unwrap().unwrap();
                let other = CachedFile::new(file.clone(), Cache::new(0));
                Promoted::read(&other, entry.promoted, VERSION).await.unwrap()
            }
        };
        let file = CachedFile::new(file, cache.clone());
        if !with_fences {
            // The page with the entry.
            file.prefetch(promoted.blocks.start - 1..promoted.blocks.start).await.unwrap();
        }
        let index = BlockIndex {
            file,
            cache,
            owner: 1 << 40,
            version: VERSION,
            groups: 1 << 41,
            reads: GroupReads::new(),
            rows: Err(crate::parts::usage::Usage::Absent),
            fencing,
        };
        Opened { shard, partition, index, promoted }
    }

    async fn find(&self, slice: &Slice, search: Search) -> Found {
        let Partition { schema, codec, .. } = self.partition;
        PromotedCursor::new(&self.index, codec, schema, &self.promoted).find(slice, search).await.unwrap()
    }

    /// What is found, and with how many requests.
    async fn counted(&self, slice: &Slice) -> (Found, u64) {
        let before = self.shard.disk().stats();
        let found = self.find(slice, Search::Binary).await;
        (found, self.shard.disk().stats().since(&before).total().requests)
    }
}

/// Builds the fences of the index that is on the disk.
async fn build_fences(shard: &Shard, partition: &Partition<'_>) -> usize {
    let file = shard.disk().open(Path::new(INDEX), IoClass::new(2)).await.unwrap();
    let binding = Binding { digest: None, data_len: 77, index_len: file.len() };
    let mut fences = Vec::new();
    let take = async |pages: Vec<u8>| {
        fences.extend(pages);
        Ok(())
    };
    assert!(
        rebuild(&file, &partition.codec, VERSION, (binding, Deletions::Unknown), take, |_| {}).await.unwrap()
    );
    let len = fences.len();
    shard.disk().as_simulated().unwrap().add_file(FENCES, fences);
    len
}

fn with_index<T: Send>(
    partition: &(impl Fn() -> (Schema, u32, Box<dyn Fn(u64) -> Clustering>) + Sync),
    test: impl AsyncFnOnce(&Shard, &Partition<'_>) -> T + Send,
) -> T {
    run_simulated(SimOptions { alignment: 512, ..SimOptions::default() }, async |shard| {
        let (schema, count, keys) = partition();
        let partition = Partition::new(&schema, count, &*keys);
        shard.disk().as_simulated().unwrap().add_file(INDEX, partition.index());
        test(&shard, &partition).await
    })
    .unwrap()
}

fn schema(clustering: Vec<CqlType>) -> Schema {
    Schema::new(CqlType::Int, clustering, vec![], vec![])
}

fn ints(of: impl Fn(u64) -> i64 + 'static) -> Box<dyn Fn(u64) -> Clustering> {
    Box::new(move |row| [(of(row) as i32).to_be_bytes().to_vec()].into_iter().collect())
}

/// Rows of which one is asked for: around the ends, and here and there.
fn rows(count: u32, samples: u64) -> impl Iterator<Item = u64> {
    let last = 2 * u64::from(count) - 1;
    let some = (0..samples).map(move |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % last);
    [0, 1, 2, last - 2, last - 1, last].into_iter().chain(some)
}

/// The most requests to the index, its entry's page aside, that a cold search for one row takes.
async fn most_requests(shard: &Shard, partition: &Partition<'_>, samples: u64, with_fences: bool) -> u64 {
    let mut most = 0;
    for row in rows(partition.count, samples) {
        let opened = Opened::new(shard, partition, with_fences).await;
        let (found, requests) = opened.counted(&Slice::of_prefix((partition.keys)(row))).await;
        let block = (row / 2) as u32;
        let start = HEAD + u64::from(block) * WIDTH;
        let open = if block == 0 { DeletionTime::LIVE } else { partition.end_open(block - 1) };
        let bytes = start..start + WIDTH;
        let Found { blocks, entry, exit, .. } = &found;
        assert_eq!((blocks, &found.bytes, found.open), (&(block..block + 1), &bytes, open), "row {row}");
        // Each block has two rows: its ends. Where nothing tells, it may be the last one.
        let is_first = row % 2 == 0 && ruler::can_measure(partition.schema);
        let place = if is_first { start..start + 7 } else { bytes.end - 7..bytes.end };
        assert_eq!((entry.row(7), exit.row(7)), (place.clone(), place), "row {row}");
        most = most.max(requests);
    }
    most
}

/// Where nothing is found, nothing is read: what matters is which tombstone is open.
fn assert_same(found: &Found, expected: &Found, slice: &Slice) {
    let same = if expected.blocks.is_empty() {
        (&found.blocks, found.open) == (&expected.blocks, expected.open) && found.bytes.is_empty()
    } else {
        found == expected
    };
    assert!(same, "{slice:?}\n{found:?}\n{expected:?}");
}

/// So many slices between any two rows or gaps: what is found is what a scan finds, however it is searched for.
async fn agrees(shard: &Shard, partition: &Partition<'_>, samples: u64) {
    let scan = Opened::new(shard, partition, false).await;
    let fenced = Opened::new(shard, partition, true).await;
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for sample in 0..samples {
        let mut position = |row: u64| match random(4) {
            0 => Position::before((partition.keys)(row)),
            1 => Position::at((partition.keys)(row)),
            _ => Position::after((partition.keys)(row)),
        };
        let last = 2 * u64::from(partition.count);
        let first = sample.wrapping_mul(0x9e37_79b9_7f4a_7c15) % last;
        let slice = match sample % 5 {
            0 => Slice { start: Position::start(), end: position(first) },
            1 => Slice { start: position(first), end: Position::end() },
            2 => Slice { start: position(first), end: position((first + sample * sample).min(last - 1)) },
            _ => Slice { start: position(first), end: position((first + sample % 3).min(last - 1)) },
        };
        if partition.schema.is_empty_slice(&slice) {
            continue;
        }
        let expected = scan.find(&slice, Search::Scan).await;
        let cold = Opened::new(shard, partition, false).await;
        let cold_fenced = Opened::new(shard, partition, true).await;
        for opened in [&cold, &scan, &cold_fenced, &fenced] {
            let found = opened.find(&slice, Search::Binary).await;
            assert_same(&found, &expected, &slice);
        }
        assert!(matches!(fenced.index.fencing.state(), Usage::InUse { .. }));
    }
}

/// What begins in the first block is found in the page with the entry, as far as that tells where it ends.
#[test]
fn the_first_rows_cost_nothing() {
    for (count, of_all) in [(1, true), (9, true), (10_000, false)] {
        let partition = move || (schema(vec![CqlType::Int]), count, ints(|row| row as i64 * 10));
        with_index(&partition, async |shard, partition| {
            let at = |number: i32| std::iter::once(&number.to_be_bytes()[..]).collect::<Clustering>();
            let last = 20 * count as i32 - 10;
            let ends = [-5, 0, 5, 10, 15, 20, 100, 155, 290].map(|end| end.min(last + 5));
            let starts = [Position::start(), Position::before(at(-7)), Position::before(at(-1))];
            let starts = starts.into_iter().chain([0, 1, 10].map(|number| Position::before(at(number))));
            for (start, end) in starts.flat_map(|start| ends.map(|end| (start.clone(), end))) {
                let slice = Slice { start, end: Position::after(at(end)) };
                if partition.schema.is_empty_slice(&slice) {
                    continue;
                }
                let opened = Opened::new(shard, partition, false).await;
                let (found, requests) = opened.counted(&slice).await;
                assert_eq!(requests, 0, "{count}: {slice:?}");
                assert_same(&found, &opened.find(&slice, Search::Scan).await, &slice);
            }
            let others = [between_rows(at(0), at(400)), between_rows(at(11), at(35))];
            for slice in others {
                let opened = Opened::new(shard, partition, false).await;
                let (found, requests) = opened.counted(&slice).await;
                assert_eq!(requests == 0, of_all, "{count}: {slice:?}");
                assert_same(&found, &opened.find(&slice, Search::Scan).await, &slice);
            }
        });
    }
}

fn between_rows(first: Clustering, last: Clustering) -> Slice {
    Slice { start: Position::before(first), end: Position::after(last) }
}

/// Wherever among the first blocks the page ends that has the entry, and however few values an end has: what is found is what a scan finds.
#[test]
fn the_first_rows_are_those_that_a_scan_finds() {
    let types = [
        vec![CqlType::Text, CqlType::BigInt],
        vec![CqlType::Text, CqlType::Reversed(Box::new(CqlType::BigInt))],
    ];
    for (types, descends) in types.into_iter().zip([false, true]) {
        let key = move |row: u64| {
            let within = if descends { 6 - row % 7 } else { row % 7 };
            [vec![b'a' + (row / 7) as u8], within.to_be_bytes().to_vec()].into_iter().collect::<Clustering>()
        };
        let partition = move || -> (Schema, u32, Box<dyn Fn(u64) -> Clustering>) {
            (schema(types.clone()), 40, Box::new(key))
        };
        with_index(&partition, async |shard, partition| {
            let beginning = |row: u64| Clustering { values: key(row).values.into_iter().take(1).collect() };
            let mut free = 0;
            for in_front in (3300..4100).step_by(13) {
                let padded = Partition { in_front, ..Partition::new(partition.schema, 40, partition.keys) };
                shard.disk().as_simulated().unwrap().add_file(INDEX, padded.index());
                for (first, last) in [(0, 0), (0, 9), (1, 13), (0, 40), (2, 5)] {
                    for slice in [
                        between_rows(key(first), key(last)),
                        between_rows(beginning(first), key(last)),
                        between_rows(key(first), beginning(last)),
                        Slice { start: Position::start(), end: Position::before(key(last)) },
                        Slice { start: Position::after(key(first)), end: Position::end() },
                    ] {
                        let opened = Opened::new(shard, &padded, false).await;
                        let (found, requests) = opened.counted(&slice).await;
                        free += usize::from(requests == 0);
                        let expected =
                            Opened::new(shard, &padded, false).await.find(&slice, Search::Scan).await;
                        assert_same(&found, &expected, &slice);
                    }
                }
            }
            assert!((300..1400).contains(&free), "{free} cost no request");
        });
    }
}

/// 10 million rows of 2000 bytes in blocks of 64 KiB: 7 MB of blocks.
const BLOCKS: u32 = 305_000;

fn uniform() -> (Schema, u32, Box<dyn Fn(u64) -> Clustering>) {
    (schema(vec![CqlType::Int]), BLOCKS, ints(|row| row as i64 * 33 / 2))
}

#[test]
fn ten_million_rows() {
    with_index(&uniform, async |shard, partition| {
        assert_eq!(most_requests(shard, partition, 60, false).await, 4, "and the entry's page, and the data");
        let len = build_fences(shard, partition).await;
        assert!(len <= 40_000, "{len} bytes of fences");
        assert_eq!(most_requests(shard, partition, 60, true).await, 1);
        agrees(shard, partition, 60).await;
    });
}

/// Who goes through a partition by a row here and there has several groups of blocks with a request, and who comes from its end one: the
/// bytes are the same, all told.
#[test]
fn groups_that_follow_each_other_come_together() {
    let partition = || (schema(vec![CqlType::Int]), 20_000, ints(|row| row as i64));
    with_index(&partition, async |shard, partition| {
        build_fences(shard, partition).await;
        let cost = async |rows: &mut dyn Iterator<Item = u64>| {
            let opened = Opened::new(shard, partition, true).await;
            let before = shard.disk().stats();
            for row in rows {
                let found = opened.find(&Slice::of_prefix((partition.keys)(row)), Search::Binary).await;
                assert_eq!(u64::from(found.blocks.start), row / 2);
            }
            shard.disk().stats().since(&before).class(IoClass::new(2))
        };
        let rows = || (0..570_u64).map(|number| 70 * number);
        let (forward, back) = (cost(&mut rows()).await, cost(&mut rows().rev()).await);
        let groups = back.requests;
        assert!(groups > 90, "{groups} groups");
        assert!(forward.requests <= groups / 6, "{} requests for {groups} groups", forward.requests);
        assert!(forward.bytes <= back.bytes, "{forward:?} {back:?}");
        // Every third group: none is behind the one before.
        let far = cost(&mut (0..40_000).step_by(3 * 40_000 / groups as usize)).await;
        assert!(far.bytes < back.bytes / 2, "{far:?} {back:?}");
    });
}

/// A group that comes along is nobody's error until it is asked for.
#[test]
fn damage_behind_a_group_is_told_to_who_goes_there() {
    let partition = || (schema(vec![CqlType::Int]), 20_000, ints(|row| row as i64));
    with_index(&partition, async |shard, partition| {
        build_fences(shard, partition).await;
        let mut index = partition.index();
        let damaged = 40 << 10;
        index[damaged..damaged + 200].fill(0xff);
        shard.disk().as_simulated().unwrap().add_file(INDEX, index);
        let opened = Opened::new(shard, partition, true).await;
        let cursor = PromotedCursor::new(&opened.index, &partition.codec, partition.schema, &opened.promoted);
        let mut found = 0;
        for row in (0..40_000).step_by(70) {
            match cursor.find(&Slice::of_prefix((partition.keys)(row)), Search::Binary).await {
                Ok(blocks) => assert_eq!(u64::from(blocks.blocks.start), row / 2),
                Err(_) => break,
            }
            found += 1;
        }
        // Up to the group that has it: some are of four kilobytes each.
        let groups = (damaged as u64 - opened.promoted.blocks.start) / 4096;
        let rows = groups * 40_000 / 105;
        assert!(found * 70 >= rows, "{found} rows were found, up to row {rows} all are sound");
        assert!(found * 70 < rows + 1000, "{found} rows were found");
    });
}

#[test]
fn ten_million_rows_in_small_blocks() {
    let partition = || (schema(vec![CqlType::Int]), 5_000_000, ints(|row| row as i64));
    with_index(&partition, async |shard, partition| {
        assert_eq!(most_requests(shard, partition, 30, false).await, 4);
    });
}

/// Numbers at random: about where they should be, but not quite.
#[test]
fn numbers_at_random() {
    let mut numbers: Vec<i64> =
        (0..2 * u64::from(BLOCKS)).map(|i| (model::key::murmur3(&i.to_be_bytes())[0] >> 33) as i64).collect();
    numbers.sort_unstable();
    let numbers: &'static [i64] = numbers.leak();
    let partition = || (schema(vec![CqlType::Int]), BLOCKS, ints(|row| numbers[row as usize]));
    with_index(&partition, async |shard, partition| {
        assert_eq!(most_requests(shard, partition, 60, false).await, 4);
    });
}

#[test]
fn descending_numbers_and_texts() {
    let reversed = || schema(vec![CqlType::Reversed(Box::new(CqlType::Int))]);
    let descending = || (reversed(), BLOCKS, ints(|row| 500_000_000 - row as i64 * 100));
    let text = |row: u64| [format!("user-{:09}", row * 17).into_bytes()].into_iter().collect();
    let texts = || -> (Schema, u32, Box<dyn Fn(u64) -> Clustering>) {
        (schema(vec![CqlType::Text]), BLOCKS, Box::new(text))
    };
    // The fences of texts are too large to be read when they are opened: one of their leaves is read as well.
    for (partition, fenced) in [(&descending as &(dyn Fn() -> _ + Sync), 1), (&texts, 2)] {
        with_index(&partition, async |shard, partition| {
            assert_eq!(most_requests(shard, partition, 40, false).await, 4);
            build_fences(shard, partition).await;
            assert_eq!(most_requests(shard, partition, 40, true).await, fenced);
            agrees(shard, partition, 20).await;
        });
    }
}

/// All rows have one first value: the second one tells.
#[test]
fn composite_positions() {
    let keys = |row: u64| [b"same".to_vec(), (row as i64).to_be_bytes().to_vec()].into_iter().collect();
    let partition = || -> (Schema, u32, Box<dyn Fn(u64) -> Clustering>) {
        (schema(vec![CqlType::Text, CqlType::BigInt]), BLOCKS, Box::new(keys))
    };
    with_index(&partition, async |shard, partition| {
        assert_eq!(most_requests(shard, partition, 40, false).await, 4);
        build_fences(shard, partition).await;
        assert_eq!(most_requests(shard, partition, 40, true).await, 2);
        agrees(shard, partition, 20).await;
    });
}

/// Where guesses are of no use, there are few of them: see [`super::bracket`].
#[test]
fn numbers_that_mislead() {
    let exponential = || {
        let of = |row: u64| 2_f64.powf(row as f64 * 62.9 / (2.0 * f64::from(BLOCKS))) as i64 + row as i64;
        let keys = move |row: u64| [of(row).to_be_bytes().to_vec()].into_iter().collect();
        (schema(vec![CqlType::BigInt]), BLOCKS, Box::new(keys) as Box<dyn Fn(u64) -> Clustering>)
    };
    // Each next half of the rows lies within the first thousandth of what is left.
    let adversarial = || {
        let of = |row: u64| {
            let (mut low, mut high, mut sum, mut span) = (0, 2 * u64::from(BLOCKS), 0_u64, 1_u64 << 62);
            while high - low > 64 {
                let middle = low + (high - low) / 2;
                let (near, far) = (span / 1000, span - span / 1000);
                if row < middle {
                    (high, span) = (middle, near)
                } else {
                    (low, sum, span) = (middle, sum + far, near)
                }
            }
            sum + row
        };
        let keys = move |row: u64| [(of(row) as i64).to_be_bytes().to_vec()].into_iter().collect();
        (schema(vec![CqlType::BigInt]), BLOCKS, Box::new(keys) as Box<dyn Fn(u64) -> Clustering>)
    };
    // At the most it would be 2 + 2 · (8 + 3 + 3) + 2: without any guess 8 halvings bring 8 MB down to 32 KiB, and the last request pair
    // reads these.
    for (partition, expected) in [(&exponential as &(dyn Fn() -> _ + Sync), 27), (&adversarial, 28)] {
        with_index(&partition, async |shard, partition| {
            assert_eq!(most_requests(shard, partition, 60, false).await, expected);
            build_fences(shard, partition).await;
            assert_eq!(most_requests(shard, partition, 20, true).await, 2);
            agrees(shard, partition, 20).await;
        });
    }
}

/// Types that say nothing are halved, as before: a request pair each time.
#[test]
fn positions_without_a_measure() {
    let keys = |row: u64| [vec![0, 0, 0, 0, 0, 0, 0, 8], row.to_be_bytes().to_vec()].concat();
    let tuple = move |row: u64| [keys(row)[4..].to_vec()].into_iter().collect();
    let partition = || -> (Schema, u32, Box<dyn Fn(u64) -> Clustering>) {
        (schema(vec![CqlType::Tuple(vec![CqlType::BigInt])]), BLOCKS, Box::new(tuple))
    };
    with_index(&partition, async |shard, partition| {
        assert_eq!(most_requests(shard, partition, 40, false).await, 2 * 8 + 2);
    });
}

#[test]
fn a_few_blocks_are_found_exactly() {
    let few = || (schema(vec![CqlType::Int]), 9, ints(|row| row as i64 * 10));
    with_index(&few, async |shard, partition| {
        let opened = Opened::new(shard, partition, false).await;
        let beside = |row: u64, by: i64| {
            [((row as i64 * 10 + by) as i32).to_be_bytes().to_vec()].into_iter().collect()
        };
        for first in 0..18 {
            for last in first..18 {
                // Beyond the last row wanted, too, but before the next one.
                let slice = Slice {
                    start: Position::before(beside(first, 0)),
                    end: Position::after(beside(last, 5)),
                };
                let found = opened.find(&slice, Search::Binary).await;
                assert_eq!(found.blocks, (first / 2) as u32..(last / 2) as u32 + 1, "{first} to {last}");
                assert_eq!(found, opened.find(&slice, Search::Scan).await);
            }
        }
    });
}
