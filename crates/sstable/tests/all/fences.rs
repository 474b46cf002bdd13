//! Fences change how many requests a read takes, and nothing else.
//!
//! Fences are built for real SSTables, on a simulated disk. Every slice is then read with them, without, with damaged
//! ones, with those of another SSTable, and with caches that keep nothing: all give the same rows. Damage is every byte
//! flipped, every length cut.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader,
    PartitionKey, PartitionStart, Position, Row, Schema, Slice,
};
use runtime::{Cache, Disk, Shard, SimOptions};
use siltstone_sstable::component::{Component, DATA_IO, Descriptor, FENCES_IO, INDEX_IO};
use siltstone_sstable::parts::fences::write_fences;
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::verify::verify;
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, SSTableWriter, Search, Version, WriteOptions};
use testkit::fixtures;

/// Tables with a large partition, and how many rows it has; two of them are in the repository.
const TABLES: [(&str, i32); 6] = [
    ("me/large/sstables/large_none/me-1-big-Data.db", 20_000),
    ("oa/large/sstables/large_rev/oa-1-big-Data.db", 20_000),
    ("me/large/sstables/large/me-1-big-Data.db", 200_000),
    ("oa/large/sstables/large/oa-1-big-Data.db", 200_000),
    ("me/large/sstables/large_rev/me-1-big-Data.db", 20_000),
    ("oa/large/sstables/large_none/oa-1-big-Data.db", 20_000),
];

/// As many of them as are there.
pub(super) fn tables() -> impl Iterator<Item = (PathBuf, i32)> {
    let path_of = |path: &str| {
        fixtures::roots().map(|root| root.join("cassandra").join(path)).find(|path| path.exists())
    };
    let there: Vec<_> = TABLES.iter().filter_map(|(path, rows)| Some((path_of(path)?, *rows))).collect();
    assert!(there.len() >= 2, "those of the repository");
    there.into_iter()
}

/// Runs over a disk in memory, with the files of the table's folder.
pub(super) fn with_table<T: Send>(path: &Path, test: impl AsyncFnOnce(&Shard, &Path) -> T + Send) -> T {
    let options = SimOptions { seed: 3, short_read_chance: 0.05, alignment: 512, ..SimOptions::default() };
    runtime::run_simulated(options, async |shard: Shard| {
        for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            let path = file.unwrap().path();
            shard.disk().as_simulated().unwrap().add_file(&path, std::fs::read(&path).unwrap());
        }
        test(&shard, path).await
    })
    .unwrap()
}

pub(super) async fn open(disk: &Disk, path: &Path, fences: bool, cache: usize) -> Rc<SSTable> {
    let options = OpenOptions { fences, ..OpenOptions::new(Cache::new(cache)) };
    SSTable::open(disk, path, &options).await.unwrap()
}

/// Builds fences for the table; their path and bytes.
pub(super) async fn build(disk: &Disk, path: &Path) -> (PathBuf, Vec<u8>) {
    let table = open(disk, path, false, 1 << 20).await;
    let len = write_fences(disk, &table, |_| {}).await.unwrap().expect("fences are of use here");
    let path = table.descriptor().path_of(&Component::Fences);
    let file = disk.open(&path, FENCES_IO).await.unwrap();
    assert_eq!(file.len(), len);
    let bytes = file.read_exact_at(0, len as usize).await.unwrap().to_vec();
    (path, bytes)
}

/// Where the trailer of fences begins.
pub(super) fn trailer(fences: &[u8]) -> usize {
    fences.len() - 4 - 112
}

/// Fences with a bit of a byte changed, and the checksum that they have to have then.
pub(super) fn lying(fences: &[u8], at: usize, bit: usize) -> Vec<u8> {
    let mut lying = fences.to_vec();
    lying[at] ^= 1 << bit;
    let page = at / 4096 * 4096;
    let sum = crc32fast::hash(&lying[page..page + 4092]);
    lying[page + 4092..page + 4096].copy_from_slice(&sum.to_be_bytes());
    lying
}

pub(super) fn is_in_use(table: &SSTable) -> bool {
    matches!(table.fences_state(), Usage::InUse { .. })
}

pub(super) async fn all(mut reader: impl FragmentReader<Error = siltstone_sstable::Error>) -> Vec<Fragment> {
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        fragments.push(fragment);
    }
    fragments
}

struct Question {
    key: PartitionKey,
    slice: Slice,
    options: ReadOptions,
}

/// Some slices of the first partitions, around places that are given by the rows' numbers, and of keys that are absent.
async fn questions(table: &SSTable, every: usize) -> Vec<Question> {
    let mut partitions: Vec<(PartitionKey, Vec<Clustering>)> = Vec::new();
    for fragment in all(table.scan()).await {
        match fragment {
            Fragment::PartitionStart(start) => partitions.push((start.key, Vec::new())),
            Fragment::Row(row) => partitions.last_mut().unwrap().1.push(row.clustering),
            _ => {}
        }
    }
    let absent = table.key(Bytes::from(&b"none"[..]));
    partitions.push((absent, vec![]));
    let mut questions = Vec::new();
    for (key, rows) in partitions {
        let cuts: Vec<_> = rows.iter().step_by(every).cloned().collect();
        let mut slices = vec![Slice::all()];
        for (i, row) in cuts.iter().enumerate() {
            slices.push(Slice::of_prefix(row.clone()));
            let end = cuts.get(i + 1 + i % 4).map_or(Position::end(), |end| Position::before(end.clone()));
            slices.push(Slice { start: Position::after(row.clone()), end });
            slices.push(Slice { start: Position::after(row.clone()), end: Position::before(row.clone()) });
        }
        if let Some(first) = rows.first() {
            slices.push(Slice { start: Position::start(), end: Position::before(first.clone()) });
            slices.push(Slice { start: Position::after(rows[rows.len() - 1].clone()), end: Position::end() });
        }
        for (i, slice) in slices.into_iter().enumerate() {
            let reverse = i % 3 == 1;
            if slice.is_all() && rows.len() > 1000 {
                continue;
            }
            let options = ReadOptions {
                search: Search::Binary,
                reverse,
                static_row: i % 2 == 0,
                limit: (i % 5 == 0).then_some(1 + i as u64),
                neighbours: false,
                is_filtered: false,
                read_buffer: [None, Some(1000)][i % 2],
                reads_on: i % 4 == 0,
                is_among_others: i % 10 == 0,
            };
            questions.push(Question { key: key.clone(), slice, options });
        }
    }
    questions
}

/// A few rows of the large partition and an absent key: enough to follow the fences everywhere.
async fn few(table: &SSTable) -> Vec<Question> {
    let mut questions = questions(table, 9000).await;
    questions.retain(|question| !question.slice.is_all() || question.key.bytes.len() != 4);
    let step = (questions.len() / 8).max(1);
    questions.into_iter().step_by(step).collect()
}

async fn answers(table: &Rc<SSTable>, questions: &[Question]) -> Vec<Option<Vec<Fragment>>> {
    let mut answers = Vec::new();
    for question in questions {
        answers.push(answer(table, question).await);
    }
    answers
}

async fn answer(table: &Rc<SSTable>, question: &Question) -> Option<Vec<Fragment>> {
    let Question { key, slice, options } = question;
    Some(all(table.read(key, slice, *options).await.unwrap()?).await)
}

#[test]
fn with_fences_and_without() {
    for (path, rows) in tables() {
        with_table(&path, async |shard, path| {
            let disk = shard.disk();
            let plain = open(disk, path, true, 64 << 20).await;
            assert_eq!(plain.fences_state(), Usage::Absent);
            let questions = questions(&plain, rows as usize / 60).await;
            let expected = answers(&plain, &questions).await;
            let (_, bytes) = build(disk, path).await;
            println!("{}: {} bytes of fences", path.display(), bytes.len());
            for cache in [64 << 20, 20 << 10, 0] {
                let table = open(disk, path, true, cache).await;
                assert!(is_in_use(&table));
                assert!(answers(&table, &questions).await == expected, "{}", path.display());
                assert!(is_in_use(&table), "{}", table.fences_state());
            }
            let off = open(disk, path, false, 64 << 20).await;
            assert_eq!(off.fences_state(), Usage::Off);
            assert!(
                verify(disk, path, &OpenOptions::new(Cache::new(1 << 20)), |_, _| {})
                    .await
                    .unwrap()
                    .is_sound()
            );
        });
    }
}

/// A cold read of one row: one request to the index, one to the data. Its neighbour then: none to the index.
#[test]
fn a_row_of_a_large_partition_is_two_requests() {
    for (path, rows) in tables() {
        with_table(&path, async |shard, path| {
            let disk = shard.disk();
            disk.as_simulated().unwrap().set_options(SimOptions { alignment: 512, ..SimOptions::default() });
            let plain = open(disk, path, true, 64 << 20).await;
            assert_eq!(plain.fences_state(), Usage::Absent);
            build(disk, path).await;
            for row in [0, 50, rows / 2 - 999, rows - 900] {
                let table = open(disk, path, true, 64 << 20).await;
                for (next, index) in [(0, 1), (1, 0)] {
                    let key = table.key(Bytes::from(1_i32.to_be_bytes().to_vec()));
                    let prefix = [(row + next).to_be_bytes().to_vec()].into_iter().collect();
                    let before = disk.stats();
                    let slice = Slice::of_prefix(prefix);
                    let found =
                        all(table.read(&key, &slice, ReadOptions::default()).await.unwrap().unwrap()).await;
                    let stats = disk.stats().since(&before);
                    let expected =
                        all(plain.read(&key, &slice, ReadOptions::default()).await.unwrap().unwrap()).await;
                    let rows_of = |fragments: &[Fragment]| {
                        fragments.iter().filter(|fragment| matches!(fragment, Fragment::Row(_))).count()
                    };
                    assert!(found == expected, "{} row {row}", path.display());
                    assert_eq!(rows_of(&found), 1, "{} row {row}", path.display());
                    let counts = [INDEX_IO, DATA_IO, FENCES_IO].map(|class| stats.class(class).requests);
                    assert_eq!(counts, [index, 1, 0], "{} row {row}", path.display());
                    assert!(stats.class(INDEX_IO).bytes <= 3 * 4096);
                }
            }
        });
    }
}

/// Any byte flipped, any length: the rows are the same, and the damage is told.
#[test]
fn damaged_fences_do_no_harm() {
    let (path, _) = tables().nth(1).unwrap();
    with_table(&path, async |shard, path| {
        let disk = shard.disk();
        let plain = open(disk, path, true, 64 << 20).await;
        let questions = few(&plain).await;
        let expected = answers(&plain, &questions).await;
        let (fences, bytes) = build(disk, path).await;
        let put = |bytes: Vec<u8>| disk.as_simulated().unwrap().add_file(&fences, bytes);
        let mut damaged: Vec<Vec<u8>> =
            (0..bytes.len()).step_by(7).map(|len| bytes[..len].to_vec()).collect();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= [1, 0x80, 0xff][at % 3];
            damaged.push(flipped);
        }
        for damaged in damaged {
            put(damaged);
            let table = open(disk, path, true, 64 << 20).await;
            assert!(answers(&table, &questions).await == expected);
            assert!(!is_in_use(&table), "damage is seen by the first read at the latest");
        }
        put(bytes);
        assert!(is_in_use(&*open(disk, path, true, 64 << 20).await));
    });
}

/// Bytes that are changed together with their checksum: never a panic or a hang. What contradicts the blocks is seen;
/// what nothing else tells, as the place of the partition in the data, is believed.
#[test]
fn fences_that_lie_are_given_up_where_blocks_contradict() {
    let (path, _) = tables().next().unwrap();
    with_table(&path, async |shard, path| {
        let disk = shard.disk();
        let plain = open(disk, path, true, 64 << 20).await;
        let questions = few(&plain).await;
        let expected = answers(&plain, &questions).await;
        let (fences, bytes) = build(disk, path).await;
        let trailer = trailer(&bytes);
        let (mut given_up, mut believed) = (0, 0);
        for at in (0..trailer).filter(|at| bytes[*at] != 0) {
            disk.as_simulated().unwrap().add_file(&fences, lying(&bytes, at, at % 8));
            let table = open(disk, path, true, 64 << 20).await;
            let mut is_wrong = false;
            for (question, expected) in questions.iter().zip(&expected) {
                if answer(&table, question).await != *expected {
                    assert!(is_in_use(&table), "byte {at}: what is given up is not believed");
                    is_wrong = true;
                }
            }
            believed += usize::from(is_wrong);
            given_up += usize::from(!is_in_use(&table));
        }
        // Four bytes of a token that tells where others begin, five of the partition's deletion, one of the first position that has
        // blocks, the number of places, and two that tell the only partition of a place from others.
        assert_eq!((given_up, believed), (44, 13));
    });
}

#[test]
fn fences_of_another_sstable_are_not_used() {
    let (path, _) = tables().next().unwrap();
    with_table(&path, async |shard, path| {
        let disk = shard.disk();
        let (fences, bytes) = build(disk, path).await;
        let simulated = disk.as_simulated().unwrap();
        let dir = path.parent().unwrap();
        simulated.add_file(dir.join("me-2-big-Fences.db"), bytes.clone());
        let other = open(disk, &dir.join("me-2-big-Data.db"), true, 64 << 20).await;
        let state = other.fences_state().to_string();
        assert_eq!(state, "ignored: its digest is that of another Data.db");
        let report =
            verify(disk, &dir.join("me-2-big-Data.db"), &OpenOptions::new(Cache::new(1 << 20)), |_, _| {})
                .await
                .unwrap();
        assert!(report.is_sound());
        assert!(report.notes.listed().iter().any(|note| note.what.contains("digest")), "{:?}", report.notes);

        simulated.remove_file(&dir.join("me-1-big-Digest.crc32"));
        let unbound = open(disk, path, true, 64 << 20).await;
        assert!(!is_in_use(&unbound), "{}", unbound.fences_state());
        simulated.remove_file(&fences);
        assert_eq!(open(disk, path, true, 64 << 20).await.fences_state(), Usage::Absent);
    });
}

/// What `verify` says of fences that are damaged, or sound for themselves but not what the index makes of them.
#[test]
fn verify_checks_fences() {
    let (path, _) = tables().next().unwrap();
    with_table(&path, async |shard, path| {
        let disk = shard.disk();
        let (fences, bytes) = build(disk, path).await;
        let problem = async |bytes: Vec<u8>| {
            disk.as_simulated().unwrap().add_file(&fences, bytes);
            let report = verify(disk, path, &OpenOptions::new(Cache::new(1 << 20)), |_, _| {}).await.unwrap();
            let found: Vec<_> = report.problems.listed().iter().map(|problem| problem.what.clone()).collect();
            assert!(report.problems.listed().iter().all(|problem| problem.path == fences));
            found.join("; ")
        };
        assert_eq!(problem(bytes.clone()).await, "");
        let mut flipped = bytes.clone();
        flipped[9] ^= 1;
        assert_eq!(problem(flipped.clone()).await, "the checksum of a page is wrong");
        let sum = crc32fast::hash(&flipped[..4092]);
        flipped[4092..4096].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(problem(flipped).await, "a page is not what Index.db makes of it");
        assert_eq!(problem(bytes[..bytes.len() - 1].to_vec()).await, "the file ends inside a page");
        assert_eq!(problem(Vec::new()).await, "the file ends inside a page");
    });
}

/// Rows of a partition that has fences.
const MANY: i32 = 1000;

/// What is written tells that no partition is deleted, where Statistics.db does not.
#[test]
fn fences_deny_deletions_of_partitions() {
    const DELETED: DeletionTime = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
    for version in [Version::Me, Version::Nb, Version::Oa] {
        for (deletion, expires) in [(DeletionTime::LIVE, true), (DeletionTime::LIVE, false), (DELETED, true)]
        {
            runtime::run_simulated(SimOptions::default(), async |shard| {
                let disk = shard.disk();
                // So small that there is nothing else to tell, and so large that there is.
                for rows in [3, MANY] {
                    let path = write(disk, version, deletion, expires, rows).await;
                    let table = open(disk, &path, true, 1 << 20).await;
                    let is_untold = version != Version::Oa && expires;
                    let denies = is_untold && deletion.is_live();
                    assert_eq!(table.denies_partition_deletions(), denies, "{version:?} {deletion:?}");
                    assert_eq!(is_in_use(&table), denies || rows == MANY);
                    let stats = &table.statistics().stats;
                    assert_eq!(stats.may_have_partition_deletions, is_untold || !deletion.is_live());
                    assert_eq!(problems(disk, &path).await, "");
                    assert!(!open(disk, &path, false, 1 << 20).await.denies_partition_deletions());
                    // Who builds them again does not lose it, and finds it if they were lost.
                    for knows in [true, false] {
                        let table = open(disk, &path, knows, 1 << 20).await;
                        write_fences(disk, &table, |_| {}).await.unwrap();
                        let again = open(disk, &path, true, 1 << 20).await;
                        assert_eq!(again.denies_partition_deletions(), denies);
                        assert_eq!(problems(disk, &path).await, "");
                    }
                }
            })
            .unwrap();
        }
    }
}

/// Of SSTables that have no fences the heads of partitions are read, if there are not too many.
#[test]
fn deletions_of_partitions_are_looked_for() {
    let deletion = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
    for (partitions, deleted, denies) in
        [(1, None, true), (9, None, true), (9, Some(4), false), (1000, None, true), (1001, None, false)]
    {
        runtime::run_simulated(SimOptions::default(), async |shard| {
            let (disk, small) = (shard.disk(), 1);
            let path = PathBuf::from("/me-1-big-Data.db");
            let mut writer = writer(disk, &path, Version::Me).await;
            let key = |number: i32| PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]));
            let mut keys: Vec<PartitionKey> = (0..partitions).map(key).collect();
            keys.sort();
            for (number, key) in keys.into_iter().enumerate() {
                let deletion = if deleted == Some(number) { deletion } else { DeletionTime::LIVE };
                // The middle one has blocks.
                let rows = if number == 5 { MANY } else { small };
                push(&mut writer, PartitionStart { key, deletion }, rows, true).await;
            }
            writer.seal().await.unwrap();
            let written = open(disk, &path, true, 1 << 20).await;
            assert_eq!(written.denies_partition_deletions(), deleted.is_none());
            write_fences(disk, &written, |_| {}).await.unwrap();
            let built = open(disk, &path, true, 1 << 20).await;
            assert_eq!(built.denies_partition_deletions(), denies, "{partitions}");
            assert_eq!(problems(disk, &path).await, "");
            // A head that cannot be read tells nothing, and is in nobody's way.
            disk.as_simulated().unwrap().add_file(&path, vec![0xff; built.data().file.file().len() as usize]);
            let damaged = open(disk, &path, false, 1 << 20).await;
            write_fences(disk, &damaged, |_| {}).await.unwrap();
            assert!(!open(disk, &path, true, 1 << 20).await.denies_partition_deletions());
        })
        .unwrap();
    }
}

#[test]
fn verify_finds_deletions_that_fences_deny() {
    runtime::run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk();
        let deletion = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
        let path = write(disk, Version::Me, deletion, true, MANY).await;
        let fences = open(disk, &path, true, 1 << 20).await.descriptor().path_of(&Component::Fences);
        let file = disk.open(&fences, FENCES_IO).await.unwrap();
        let mut lying = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        let last = lying.len() - 4096;
        // The end of a trailer has 17 bytes, the binding before it 23, of which the first are the flags.
        lying[last + 4092 - 17 - 23] |= 2;
        let sum = crc32fast::hash(&lying[last..last + 4092]);
        lying[last + 4092..].copy_from_slice(&sum.to_be_bytes());
        disk.as_simulated().unwrap().add_file(&fences, lying);
        assert!(open(disk, &path, true, 1 << 20).await.denies_partition_deletions());
        let found = problems(disk, &path).await;
        assert_eq!(found, "it says that no partition is deleted, and one is");
    })
    .unwrap();
}

/// Writes a partition with this deletion and so many rows, which expire one day or never.
async fn write(disk: &Disk, version: Version, deletion: DeletionTime, expires: bool, rows: i32) -> PathBuf {
    let path = PathBuf::from(format!("/{}-{rows}-big-Data.db", version.name()));
    let mut writer = writer(disk, &path, version).await;
    let key = PartitionKey::new(Bytes::from(&1_i32.to_be_bytes()[..]));
    push(&mut writer, PartitionStart { key, deletion }, rows, expires).await;
    writer.seal().await.unwrap();
    path
}

async fn writer(disk: &Disk, path: &Path, version: Version) -> SSTableWriter {
    let value = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![value]));
    let descriptor = Descriptor::parse(path).unwrap();
    let options = WriteOptions { column_index_size: 256, ..WriteOptions::new(version) };
    SSTableWriter::create(disk, descriptor, &schema, EncodingStats::NONE, options).await.unwrap()
}

/// Writes a partition of so many rows, which expire one day or never.
async fn push(writer: &mut SSTableWriter, start: PartitionStart, rows: i32, expires: bool) {
    writer.push(&Fragment::PartitionStart(start)).await.unwrap();
    let (ttl, local_deletion_time) = if expires { (100, 2_000_000_000) } else { (0, NO_DELETION_TIME) };
    for number in 0..rows {
        let clustering: Clustering = std::iter::once(&number.to_be_bytes()[..]).collect();
        let value = CellValue::Value(Bytes::from(vec![1; 100]));
        let cell = Cell { column: 0, ttl, timestamp: 5, local_deletion_time, path: None, value };
        let row = Row { cells: vec![cell], ..Row::new(clustering) };
        writer.push(&Fragment::Row(row)).await.unwrap();
    }
    writer.push(&Fragment::PartitionEnd).await.unwrap();
}

/// What `verify` says.
async fn problems(disk: &Disk, path: &Path) -> String {
    let report = verify(disk, path, &OpenOptions::new(Cache::new(1 << 20)), |_, _| {}).await.unwrap();
    let found: Vec<_> = report.problems.listed().iter().map(|problem| problem.what.clone()).collect();
    found.join("; ")
}

/// Wherever the power is cut while fences are written, there are all of them or none.
#[test]
fn a_power_cut_leaves_all_or_nothing() {
    let (path, _) = tables().next().unwrap();
    let (mut without, mut with) = (0, 0);
    for crash_at in 0.. {
        let (crashed, in_use) = with_table(&path, async |shard, path| {
            let disk = shard.disk();
            let simulated = disk.as_simulated().unwrap();
            let table = open(disk, path, true, 1 << 20).await;
            simulated.set_options(SimOptions { crash_at: Some(crash_at), ..SimOptions::default() });
            let written = write_fences(disk, &table, |_| {}).await;
            let crashed = simulated.has_crashed();
            assert_eq!(written.is_err(), crashed);
            simulated.restart();
            simulated.set_options(SimOptions::default());
            let table = open(disk, path, true, 1 << 20).await;
            assert!(matches!(table.fences_state(), Usage::Absent | Usage::InUse { .. }));
            let in_use = is_in_use(&table);
            // What is left of the first attempt is not in the way of the next one.
            write_fences(disk, &table, |_| {}).await.unwrap();
            (crashed, in_use)
        });
        assert!(crashed || in_use);
        (without, with) = (without + usize::from(!in_use), with + usize::from(in_use));
        if !crashed {
            break;
        }
    }
    assert!(without > 1 && with > 0, "{without} cuts before, {with} after");
}
