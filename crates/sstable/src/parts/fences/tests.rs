//! Fences of made-up partitions, of many pages: every lookup against what went in.

use crate::parts::binding::Binding;
use std::cmp::Ordering;
use std::path::Path;

use model::{Bytes, Clustering, CqlType, DeletionTime, PartitionKey, Position, Schema, Token};
use runtime::{Cache, IoClass, SimOptions, run_simulated};

use super::entries::TokenFence;
use super::*;
use crate::Version;
use crate::big::entry::{OFFSET, Promoted};
use crate::data::row::{Minima, RowCodec, Sought};

const VERSION: Version = Version::Oa;

/// A generator of numbers that repeat with their seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

struct Partition {
    token: Token,
    key: Vec<u8>,
    at: u64,
    data: u64,
    promoted: Option<Promoted>,
    blocks: Vec<Block>,
}

/// A block: its place among the blocks, its first row, the tombstone that is open before it.
#[derive(Clone)]
struct Block {
    at: u64,
    first: Clustering,
    open: DeletionTime,
}

struct Made {
    partitions: Vec<Partition>,
    index_len: u64,
    codec: RowCodec,
    schema: Schema,
}

/// So many partitions, some with keys of one token, some large, some with what is too long for fences.
fn make(seed: u64, count: usize) -> Made {
    let mut random = Random(seed);
    let schema = Schema::new(CqlType::Blob, vec![CqlType::Text], vec![], vec![]);
    let minima = Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 };
    let codec = RowCodec::new(&schema, minima, VERSION);
    let (mut at, mut token, mut partitions) = (0, -1_000_000, Vec::new());
    for number in 0..count as u64 {
        token += random.below(3) as Token;
        let len = match random.below(40) {
            0 => 60_000,
            1 => 900,
            _ => random.below(30),
        };
        let key = [number.to_be_bytes().to_vec(), vec![7; len as usize]].concat();
        let head = at + 2 + key.len() as u64 + 20;
        let blocks = if random.below(4) == 0 { blocks(&mut random) } else { Vec::new() };
        let promoted = blocks.last().map(|last| Promoted {
            head_len: random.below(1000),
            deletion: if random.below(2) == 0 { DeletionTime::LIVE } else { deleted(number) },
            count: blocks.len() as u32,
            blocks: head..head + last.at + 50,
            map: head + last.at + 50,
            ordinal: None,
        });
        let end = promoted.as_ref().map_or(head, Promoted::end);
        partitions.push(Partition { token, key, at, data: number * 1000, promoted, blocks });
        at = end;
    }
    Made { partitions, index_len: at, codec, schema }
}

fn blocks(random: &mut Random) -> Vec<Block> {
    let (mut at, mut blocks) = (0, Vec::new());
    let longest = if random.below(8) == 0 { 1500 } else { 30 };
    for number in 0..2 + random.below(600) {
        let text = [format!("{number:06}").into_bytes(), vec![b'x'; random.below(longest) as usize]].concat();
        let open = if random.below(3) == 0 { deleted(number) } else { DeletionTime::LIVE };
        blocks.push(Block { at, first: [text].into_iter().collect(), open });
        at += 20 + random.below(if number % 50 == 49 { 9000 } else { 60 });
    }
    blocks
}

fn deleted(number: u64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: number as i64, local_deletion_time: 5 }
}

impl Made {
    fn binding(&self) -> Binding {
        Binding { digest: Some(5), data_len: 9, index_len: self.index_len }
    }

    fn prefix(&self, block: &Block) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.codec.put_row_prefix(&block.first, &mut bytes);
        bytes
    }

    /// The fences; blocks are told before their entry or after it.
    fn build(&self, blocks_first: bool) -> Vec<u8> {
        let (mut builder, mut file) = (FencesBuilder::new(VERSION), Vec::new());
        for Partition { token, key, at, data, promoted, blocks } in &self.partitions {
            if !blocks_first {
                builder.entry(*token, key, *at);
            }
            for (number, block) in (0..).zip(blocks) {
                builder.block(number, block.at, &self.prefix(block), block.open);
            }
            if blocks_first {
                builder.entry(*token, key, *at);
            }
            builder.end_entry(promoted.as_ref(), *data);
            file.extend(builder.take_pages());
        }
        assert!(builder.is_worthwhile());
        file.extend(builder.finish(self.binding()));
        file
    }

    /// The numbers of the blocks that have a fence; `None` where the partition has none.
    fn groups(&self, partition: &Partition) -> Option<Vec<usize>> {
        let promoted = partition.promoted.as_ref()?;
        let stretch = |number: usize| partition.blocks[number].at / STRETCH;
        let firsts = (0..partition.blocks.len()).filter(|&i| i == 0 || stretch(i) != stretch(i - 1));
        let firsts: Vec<usize> = firsts.collect();
        let fits = |&number: &usize| self.prefix(&partition.blocks[number]).len() <= LONGEST;
        let is_fit = partition.key.len() <= LONGEST && firsts.iter().all(fits);
        (is_fit && promoted.blocks.end - promoted.blocks.start > STRETCH).then_some(firsts)
    }
}

async fn check_tokens(made: &Made, fences: &Fences) {
    let entries = &made.partitions;
    for token in entries.iter().flat_map(|entry| [entry.token - 1, entry.token, entry.token + 1]) {
        let Some((fence, next)) = fences.token(token).await.unwrap() else {
            assert!(token < entries[0].token);
            continue;
        };
        let end = next.map_or(made.index_len, |next| next.at);
        let first = entries.iter().find(|entry| entry.at == fence.at).expect("an entry begins there");
        assert!(first.token == fence.token && fence.token <= token);
        assert!(next.is_none_or(|next| next.token > token && next.at > fence.at));
        let within = |entry: &&Partition| (fence.at..end).contains(&entry.at);
        assert!(entries.iter().filter(|entry| entry.token == token).all(|entry| within(&entry)));
        // A stretch goes on into the next one only where that begins with entries of one token.
        let begun: Vec<_> =
            entries.iter().filter(within).filter(|entry| entry.at / STRETCH != fence.at / STRETCH).collect();
        assert!(
            begun
                .windows(2)
                .all(|pair| pair[0].at / STRETCH != pair[1].at / STRETCH || pair[0].token == pair[1].token)
        );
    }
}

async fn check_places(made: &Made, fences: &Fences) {
    let entries = &made.partitions;
    let mut without_blocks = 0;
    for token in entries.iter().flat_map(|entry| [entry.token - 1, entry.token, entry.token + 1]) {
        let Some(near) = fences.near(token).await.unwrap() else {
            assert!(token < entries[0].token);
            continue;
        };
        let (fence, end) = (near.fence, near.end);
        assert!(fence.token <= token && end.is_none_or(|end| end > fence.data));
        let within = |entry: &&Partition| (fence.data..end.unwrap_or(u64::MAX)).contains(&entry.data);
        assert!(entries.iter().filter(|entry| entry.token == token).all(|entry| within(&entry)));
        let within: Vec<&Partition> = entries.iter().filter(within).collect();
        assert_eq!((within[0].data, within[0].token), (fence.data, fence.token));
        let is_near = |other: &Partition| other.data / STRETCH == fence.data / STRETCH;
        let fits = |other: &&Partition| is_near(other) && other.promoted.is_none();
        assert_eq!(fence.has_blocks, !within.iter().all(fits));
        // One with blocks is among others only if it has the token of the one before it.
        let is_late = |pair: &[&Partition]| pair[1].promoted.is_some() && pair[0].token != pair[1].token;
        assert!(!within.windows(2).any(is_late));
        assert!(within.windows(2).all(|pair| is_near(pair[1]) || pair[0].token == pair[1].token));
        let ranges: Vec<_> = near.ranges(token, u64::MAX).collect();
        let of_token = |number: &usize| within[*number].token == token;
        let expected = (0..within.len()).filter(of_token).map(|number| {
            let next = within.get(number + 1).map(|next| next.data);
            within[number].data..next.or(end).unwrap_or(u64::MAX)
        });
        // Tokens are near each other here, so that their last bytes tell them apart.
        assert!(if fence.has_blocks { ranges.is_empty() } else { ranges.into_iter().eq(expected) });
        without_blocks += usize::from(!fence.has_blocks);
    }
    assert!(without_blocks > 0);
}

async fn check_large(made: &Made, fences: &Fences) -> usize {
    let mut large = 0;
    for partition in &made.partitions {
        let bytes = Bytes::from(&partition.key[..]);
        let key = PartitionKey { token: partition.token, bytes };
        let found = fences.large(&key).await.unwrap();
        let other =
            PartitionKey { token: key.token, bytes: Bytes::from(&[&partition.key[..], b"x"].concat()[..]) };
        assert_eq!(fences.large(&other).await.unwrap(), None);
        let Some(groups) = made.groups(partition) else {
            assert_eq!(found, None);
            continue;
        };
        let found = found.expect("it is large");
        let promoted = Promoted { ordinal: Some(large as u64), ..partition.promoted.clone().unwrap() };
        assert_eq!((found.at, found.data, found.promoted), (partition.at, partition.data, promoted));
        check_groups(made, fences, partition, (found.ordinal, &groups)).await;
        large += 1;
    }
    large
}

async fn check_groups(
    made: &Made,
    fences: &Fences,
    partition: &Partition,
    (ordinal, groups): (u64, &[usize]),
) {
    for number in 0..partition.blocks.len() {
        let (floor, next) = fences.group_of(ordinal, number as u32).await.unwrap();
        let expected = groups.iter().rposition(|&first| first <= number).unwrap();
        let block = &partition.blocks[groups[expected]];
        assert_eq!((floor.number as usize, floor.at, floor.open), (groups[expected], block.at, block.open));
        let first = Position::at(block.first.clone());
        assert_eq!(floor.compare(&Sought::new(&made.codec, &made.schema, &first)), Ok(Ordering::Equal));
        assert_eq!(next.map(|next| next.number as usize), groups.get(expected + 1).copied());
        let first = &partition.blocks[number].first;
        for (position, is_before) in
            [(Position::before(first.clone()), true), (Position::after(first.clone()), false)]
        {
            let sought = Sought::new(&made.codec, &made.schema, &position);
            let (floor, next) = fences.groups_around(ordinal, &sought).await.unwrap();
            let not_after =
                groups.iter().take_while(|&&group| group < number || (group == number && !is_before)).count();
            let number_of = |group: Option<Group>| group.map(|group| group.number as usize);
            assert_eq!(number_of(floor), not_after.checked_sub(1).map(|group| groups[group]));
            assert_eq!(number_of(next), groups.get(not_after).copied());
        }
    }
}

fn check(seed: u64, count: usize, cache: usize) {
    let made = make(seed, count);
    let bytes = made.build(seed.is_multiple_of(2));
    assert!(bytes == made.build(seed % 2 == 1), "the order of the calls does not matter");
    run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
        shard.disk().as_simulated().unwrap().add_file("/me-1-big-Fences.db", bytes.clone());
        let file = shard.disk().open(Path::new("/me-1-big-Fences.db"), IoClass::new(6)).await.unwrap();
        let fences = Fences::open(file, Cache::new(cache), VERSION, made.binding()).await.unwrap();
        check_tokens(&made, &fences).await;
        check_places(&made, &fences).await;
        let large = check_large(&made, &fences).await;
        assert!(large > 0 && large < count / 3, "{large} large partitions");
    })
    .unwrap();
}

#[test]
fn lookups_find_what_went_in() {
    for seed in 0..12 {
        check(seed, 120, 1 << 20);
    }
    check(77, 700, 64 << 10);
    check(78, 100, 0);
}

/// Beyond 32 KiB only the end is read when fences are opened: all but the leaves. Each lookup reads one of those. Without a
/// cache it reads what is above the leaf too.
#[test]
fn large_fences_are_read_by_pages() {
    let mut builder = FencesBuilder::new(VERSION);
    let mut file = Vec::new();
    for number in 0..200_000_i64 {
        builder.entry(number * 3, &number.to_be_bytes(), number as u64 * STRETCH);
        builder.end_entry(None, number as u64);
        file.extend(builder.take_pages());
    }
    let index_len = 200_000 * STRETCH;
    let binding = Binding { digest: None, data_len: 1, index_len };
    file.extend(builder.finish(binding));
    assert!(file.len() > 1 << 20 && (file.len() as u64) < index_len / 100, "{} bytes", file.len());
    let fence = |number: i64| TokenFence { token: number * 3, at: number as u64 * STRETCH };
    for (cache, steps, most) in [(4 << 20, 1, 1), (0, 997, 3)] {
        run_simulated(SimOptions::default(), async |shard| {
            shard.disk().as_simulated().unwrap().add_file("/f", file.clone());
            let file = shard.disk().open(Path::new("/f"), IoClass::new(6)).await.unwrap();
            let requests = || shard.disk().stats().total().requests;
            let fences = Fences::open(file, Cache::new(cache), VERSION, binding).await.unwrap();
            assert!(cache == 0 || requests() == 1);
            for number in (0..200_000).step_by(steps) {
                let next = (number < 199_999).then(|| fence(number + 1));
                for token in [number * 3, number * 3 + 2] {
                    let before = requests();
                    assert_eq!(fences.token(token).await.unwrap(), Some((fence(number), next)));
                    assert!(requests() - before <= most, "{} requests for {token}", requests() - before);
                }
            }
            assert_eq!(fences.token(-1).await.unwrap(), None);
        })
        .unwrap();
    }
}

/// So many keys of one token as anybody likes: what does not fit is left to Index.db.
#[test]
fn a_crowd_of_one_token_has_no_place() {
    for (count, has_blocks) in [(MOST_SPOTS, false), (MOST_SPOTS + 1, true), (9000, true)] {
        let mut builder = FencesBuilder::new(VERSION);
        let mut file = Vec::new();
        let tokens = std::iter::repeat_n(5, count).chain([6, 7]);
        for (number, token) in (0..).zip(tokens) {
            builder.entry(token, &[1], number * 10);
            builder.end_entry(None, number);
            file.extend(builder.take_pages());
        }
        let binding = Binding { digest: None, data_len: 1, index_len: 1 << 20 };
        file.extend(builder.finish(binding));
        run_simulated(SimOptions::default(), async |shard| {
            shard.disk().as_simulated().unwrap().add_file("/f", file.clone());
            let file = shard.disk().open(Path::new("/f"), IoClass::new(6)).await.unwrap();
            let fences = Fences::open(file, Cache::new(1 << 20), VERSION, binding).await.unwrap();
            let near = fences.near(5).await.unwrap().unwrap();
            assert_eq!((near.fence.data, near.fence.has_blocks), (0, has_blocks));
            assert_eq!(near.ranges(5, 1 << 20).count(), if has_blocks { 0 } else { count });
            let (near, end) = (fences.near(7).await.unwrap().unwrap(), count as u64 + 2);
            assert_eq!((near.fence.token, near.fence.has_blocks), (6, false));
            let starts = [6, 7, 8].map(|token| near.ranges(token, end).map(|range| range.start).next());
            assert_eq!(starts, [Some(end - 2), Some(end - 1), None]);
        })
        .unwrap();
    }
}

/// What takes no room on a page is left out, and nothing else.
#[test]
fn small_partitions_have_no_fences_of_their_own() {
    let promoted = |len: u64| Promoted {
        head_len: 3,
        deletion: DeletionTime::LIVE,
        count: 2,
        blocks: 100..100 + len,
        map: 100 + len,
        ordinal: None,
    };
    for (len, key_len, prefix_len, is_large) in [
        (4096, 8, 9, false),
        (4097, 8, 9, true),
        (4097, 1000, 1000, true),
        (4097, 1001, 9, false),
        (4097, 8, 1001, false),
    ] {
        let mut builder = FencesBuilder::new(VERSION);
        builder.entry(1, &vec![1; key_len], 0);
        builder.block(0, 0, &vec![4; prefix_len], DeletionTime::LIVE);
        builder.block(1, 50, &[9; 2000], DeletionTime::LIVE);
        builder.end_entry(Some(&promoted(len)), 0);
        assert_eq!(builder.is_worthwhile(), is_large, "{len} {key_len} {prefix_len}");
        let index_len = promoted(len).map + 2 * OFFSET;
        let file = builder.finish(Binding { digest: None, data_len: 1, index_len });
        assert_eq!(file.len(), STRETCH as usize);
    }
}
