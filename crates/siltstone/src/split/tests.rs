//! SSTables on a simulated disk, cut in every way.

use std::io::Cursor;

use model::{Column, CqlType, Schema, Token};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use sstable::{OpenOptions, Version, WriteOptions};

use super::*;
use crate::convert::TargetCompression;
use crate::write::{Input, Job, write};

const SOURCES: &str = "/old";
const DEST: &str = "/new";

/// An SSTable of the partitions of these keys, each with a row of so many bytes.
async fn source(shard: &Shard, keys: impl Iterator<Item = i32>, timestamp: i64, len: usize) -> Rc<SSTable> {
    let value = Column { name: b"v"[..].into(), data_type: CqlType::Text };
    let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![value]);
    // Digits that a compressor makes half as long, not less.
    let digits =
        |key: i32| (0..len as u64 / 16 + 1).map(move |at| format!("{:016x}", mixed(key as u64 + (at << 32))));
    let value = |key: i32| digits(key).collect::<String>()[..len].to_owned();
    let line = |key: i32| {
        let value = value(key);
        format!(
            r#"{{"type":"row","key":["{key}"],"clustering":[1],"cells":[{{"name":"v","value":"{value}","tstamp":{timestamp}}}]}}"#
        )
    };
    let lines = keys.map(line).collect::<Vec<_>>().join("\n");
    let input = Input { path: PathBuf::from("rows"), lines: Box::new(Cursor::new(lines)) };
    let job = Job::new(Rc::new(schema), Version::Nb, WriteOptions::new(Version::Nb));
    let outcome = write(shard.disk(), &job, vec![input], Path::new(SOURCES), &mut |_| {}).await.unwrap();
    open(shard, &outcome.written).await
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

async fn open(shard: &Shard, written: &Written) -> Rc<SSTable> {
    let path = written.descriptor.path_of(&Component::Data);
    SSTable::open(shard.disk(), &path, &OpenOptions::new(Cache::new(1 << 20))).await.unwrap()
}

async fn cut(shard: &Shard, sources: &[Rc<SSTable>], cut: Cut) -> Result<Split> {
    let target = Target { compression: TargetCompression::None, ..Target::new(Version::Nb) };
    split(shard.disk(), sources.to_vec(), &cut, &target, Path::new(DEST), &mut |_, _| {}).await
}

async fn fragments(tables: &Tables) -> Vec<Fragment> {
    let mut reader = tables.scan();
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        fragments.push(fragment);
    }
    fragments
}

/// Where each partition of the table is.
async fn tokens(tables: &[Rc<SSTable>]) -> Vec<Token> {
    let all = fragments(&Tables::new(tables.to_vec()).unwrap()).await;
    let start = |fragment: &Fragment| match fragment {
        Fragment::PartitionStart(start) => Some(start.key.token),
        _ => None,
    };
    all.iter().filter_map(start).collect()
}

/// That the parts are sound and hold, one after the other, what the sources hold.
async fn check_whole(shard: &Shard, sources: &[Rc<SSTable>], parts: &Split) {
    let expected = fragments(&Tables::new(sources.to_vec()).unwrap()).await;
    let mut found = Vec::new();
    for part in &parts.written {
        let options = OpenOptions::new(Cache::new(1 << 20));
        let path = part.descriptor.path_of(&Component::Data);
        let report = sstable::verify::verify(shard.disk(), &path, &options, |_, _| {}).await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        found.extend(fragments(&Tables::new(vec![open(shard, part).await]).unwrap()).await);
    }
    assert!(found == expected, "{} parts", parts.written.len());
    let numbers: Vec<String> = parts.written.iter().map(|part| part.descriptor.generation.clone()).collect();
    assert_eq!(numbers, (1..=numbers.len()).map(|number| number.to_string()).collect::<Vec<_>>());
}

/// A run on a new disk.
fn simulated(main: impl AsyncFnOnce(Shard)) {
    run_simulated(SimOptions::default(), main).unwrap();
}

fn refused_rest(ranges: &[TokenRange]) -> Cut {
    Cut::Tokens { ranges: ranges.to_vec(), rest: Rest::Refused }
}

fn count(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

#[test]
fn by_size_each_part_but_the_last_is_just_full() {
    for size in [1, 700, 5_000, 1 << 20] {
        simulated(async |shard| {
            let sources = [source(&shard, 0..200, 5, 100).await, source(&shard, 150..300, 6, 100).await];
            let parts = cut(&shard, &sources, Cut::Size(count(size))).await.unwrap();
            check_whole(&shard, &sources, &parts).await;
            let (_, full) = parts.written.split_last().unwrap();
            for part in full {
                let partition = part.data_file_len / part.partitions;
                assert!((size..size + partition + 8).contains(&part.data_file_len), "{}", part.data_file_len);
            }
            assert_eq!(parts.written.len() == 1, size == 1 << 20);
        });
    }
}

#[test]
fn what_is_not_compressed_yet_counts() {
    simulated(async |shard| {
        let sources = [source(&shard, 0..3000, 5, 400).await];
        let target = Target::new(Version::Me);
        let cut = Cut::Size(count(300_000));
        let parts =
            split(shard.disk(), sources.to_vec(), &cut, &target, Path::new(DEST), &mut |_, _| {}).await;
        let parts = parts.unwrap();
        check_whole(&shard, &sources, &parts).await;
        let (_, full) = parts.written.split_last().unwrap();
        assert!(full.len() > 1, "{full:?}");
        for part in full {
            assert!((270_000..330_000).contains(&part.data_file_len), "{}", part.data_file_len);
            assert!(part.data_len > part.data_file_len, "it is compressed");
        }
    });
}

#[test]
fn a_range_ends_with_its_last_token() {
    simulated(async |shard| {
        let sources = [source(&shard, 0..500, 5, 10).await, source(&shard, 400..900, 6, 10).await];
        let tokens = tokens(&sources).await;
        for at in [0, 1, 127, 128, 500, 898, 899] {
            let below = TokenRange::new(Token::MIN, tokens[at]).unwrap();
            let above = TokenRange::new(tokens[at], Token::MAX).unwrap();
            let parts = cut(&shard, &sources, refused_rest(&[above, below])).await.unwrap();
            let partitions: Vec<u64> = parts.written.iter().map(|part| part.partitions).collect();
            let expected = [at as u64 + 1, 899 - at as u64];
            assert_eq!(partitions, expected.into_iter().filter(|&count| count > 0).collect::<Vec<_>>());
            assert_eq!(parts.empty, if at == 899 { vec![above] } else { Vec::new() });
            parts.written.iter().for_each(|part| remove(&shard, part));
        }
    });
}

fn remove(shard: &Shard, written: &Written) {
    let disk = shard.disk().as_simulated().unwrap();
    written.components.iter().for_each(|component| disk.remove_file(&written.descriptor.path_of(component)));
}

#[test]
fn ranges_read_only_their_part() {
    simulated(async |shard| {
        let sources = [source(&shard, 0..4000, 5, 500).await];
        let tokens = tokens(&sources).await;
        let range = TokenRange::new(tokens[2000], tokens[2100]).unwrap();
        let before = shard.disk().stats().total().bytes;
        let only = Cut::Tokens { ranges: vec![range], rest: Rest::LeftOut };
        let parts = cut(&shard, &sources, only).await.unwrap();
        let bytes = shard.disk().stats().total().bytes - before;
        assert_eq!(parts.written[0].partitions, 100);
        let file_len = sources[0].data().file.file().len();
        assert!(bytes < file_len / 2, "{bytes} of {file_len} bytes were read");
    });
}

#[test]
fn what_is_in_no_range_is_noticed_first() {
    simulated(async |shard| {
        let sources = [source(&shard, 0..100, 5, 10).await];
        let tokens = tokens(&sources).await;
        let range = |from: usize, to: usize| TokenRange::new(tokens[from], tokens[to]).unwrap();
        let all = [TokenRange::new(Token::MIN, tokens[10]).unwrap(), range(10, 99)];
        for (ranges, what) in [
            (vec![range(0, 50), range(40, 99)], "have tokens in common"),
            (vec![range(0, 50), range(0, 50)], "have tokens in common"),
            (vec![all[0]], "in none of the ranges"),
            (vec![all[1]], "in none of the ranges"),
            (vec![all[0], range(11, 99)], "in none of the ranges"),
        ] {
            let error = cut(&shard, &sources, refused_rest(&ranges)).await.unwrap_err();
            assert!(error.to_string().contains(what) && error.exit_code() == 2, "{error}");
            assert!(!shard.disk().exists(Path::new(DEST)));
        }
        let parts = cut(&shard, &sources, refused_rest(&all)).await.unwrap();
        check_whole(&shard, &sources, &parts).await;
    });
}

#[test]
fn parts_are_about_equal() {
    for parts in [1, 2, 7, 100, 900, 5000] {
        simulated(async |shard| {
            let sources = [source(&shard, 0..500, 5, 30).await, source(&shard, 450..900, 6, 30).await];
            let cut = cut(&shard, &sources, Cut::Parts(count(parts))).await.unwrap();
            check_whole(&shard, &sources, &cut).await;
            let made = cut.written.len() as u64;
            assert!(made == parts || made > 890 && parts >= 900, "{made} of {parts}");
            assert_eq!(cut.empty, []);
            let sizes: Vec<u64> = cut.written.iter().map(|part| part.partitions).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(parts > 7 || most - least < 40, "{sizes:?}");
        });
    }
}

#[test]
fn all_parts_or_none() {
    simulated(async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file(format!("{DEST}/notes"), vec![1]);
        disk.add_file(format!("{DEST}/nb-7-big-Data.db.tmp"), vec![1]);
        let sources = [source(&shard, 0..300, 5, 100).await];
        let (mut failures, mut capacity) = (0, 40_000);
        let names = || shard.disk().list(Path::new(DEST)).unwrap();
        for cut_at in [Cut::Size(count(4_000)), Cut::Parts(count(5))] {
            loop {
                disk.set_options(SimOptions { capacity: Some(capacity), ..SimOptions::default() });
                let done = cut(&shard, &sources, cut_at.clone()).await;
                disk.set_options(SimOptions::default());
                if let Ok(parts) = done {
                    assert!(parts.written.len() > 4);
                    parts.written.iter().for_each(|part| remove(&shard, part));
                    break;
                }
                assert_eq!(names(), [Path::new(DEST).join("notes")], "{capacity} bytes");
                (failures, capacity) = (failures + 1, capacity + 2_000);
            }
        }
        assert!(failures > 5, "{failures}");
    });
}

#[test]
fn sources_must_be_of_one_table() {
    simulated(async |shard| {
        assert!(cut(&shard, &[], Cut::Parts(count(2))).await.is_err());
        assert!(!shard.disk().exists(Path::new(DEST)));
    });
}

/// A process that ends before the last part is written leaves none of them. What is left then is to name a list of each.
#[test]
fn parts_are_there_together() {
    let (mut none, mut some) = (0, 0);
    for operation in 0.. {
        let mut is_over = false;
        simulated(async |shard| {
            let sources = [source(&shard, 0..40, 1, 20).await];
            let disk = shard.disk().as_simulated().expect("simulated");
            let crash_at = Some(disk.counters().operations + operation);
            disk.set_options(SimOptions { crash_at, ..SimOptions::default() });
            is_over = cut(&shard, &sources, Cut::Parts(count(4))).await.is_ok();
            disk.set_options(SimOptions::default());
            disk.restart();
            let found =
                crate::paths::data_files(shard.disk(), Path::new(DEST)).await.map_or(0, |files| files.len());
            none += u32::from(found == 0);
            some += u32::from(0 < found && found < 4);
        });
        if is_over {
            break;
        }
    }
    assert!(none > 100 && some <= 2 * 4, "{none}, {some}");
}
