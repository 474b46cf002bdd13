//! Damaged files never panic, never hang, never take memory without measure, and are never read wrong
//! where a checksum covers the damage.
//!
//! Every byte of every component of some small real SSTables is changed, and every component is cut at
//! every length. Then everything is read. The outcome is what the sound files give, or an error that
//! names the file. Rows that differ are tolerated only where the format has no checksum that the read
//! could compare: in Index.db, Summary.db and Filter.db, in Statistics.db before `na`, and for reads of
//! a slice of uncompressed data. `verify` sees damage of the data in any case.

#![expect(clippy::unwrap_used, reason = "a test may fail where it likes")]

#[path = "corruption/subject.rs"]
mod subject;

use model::Fragment;
use runtime::{Shard, SimOptions};
use siltstone_sstable::Version;
use siltstone_sstable::component::Component;
use siltstone_sstable::verify::verify;
use subject::{Answers, ComponentFile, Outcomes, Question, Subject};
use testkit::allocator;

#[global_allocator]
static ALLOCATOR: allocator::Watched = allocator::Watched;

/// No single allocation may be larger, whatever lengths the damaged bytes tell. Bytes.
const MOST_ALLOCATED: usize = 64 << 20;

/// What is done to a byte.
const FLIPS: [u8; 3] = [0x01, 0x80, 0xff];

/// Damage to one file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip { at: usize, bits: u8 },
    Cut { len: usize },
}

/// Which damage to try: all of it, or less of it in large files.
#[derive(Clone, Copy)]
struct Effort {
    /// Files from this length on are sampled.
    large: usize,
    /// Every how many bytes of a large file are flipped.
    flip_step: usize,
    /// Every how many lengths a large file is cut at.
    cut_step: usize,
}

const ALL: Effort = Effort { large: usize::MAX, flip_step: 1, cut_step: 1 };

/// Names the damage if the test fails while it is being tried.
struct Trying<'a>(&'a ComponentFile, Damage);

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {:?}", self.0.path.display(), self.1);
        }
    }
}

impl Damage {
    fn all(file: &ComponentFile, effort: Effort) -> Vec<Damage> {
        let len = file.bytes.len();
        let is_large = len >= effort.large;
        let (flip_step, cut_step) = if is_large { (effort.flip_step, effort.cut_step) } else { (1, 1) };
        let mut all: Vec<Damage> = (0..len).step_by(cut_step).map(|len| Damage::Cut { len }).collect();
        for at in (0..len).step_by(flip_step) {
            // One pattern a byte is enough for large files.
            let flips = if is_large { &FLIPS[at / flip_step % 3..][..1] } else { &FLIPS[..] };
            all.extend(flips.iter().map(|&bits| Damage::Flip { at, bits }));
        }
        all
    }

    fn apply(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Damage::Flip { at, bits } => {
                let mut bytes = bytes.to_vec();
                bytes[at] ^= bits;
                bytes
            }
            Damage::Cut { len } => bytes[..len].to_vec(),
        }
    }
}

/// Damages every component and reads everything.
fn survives(name: &str, effort: Effort) {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let subject = Subject::load(&shard, name);
        let questions = subject.questions(&shard).await;
        let expected = subject.read(&shard, &questions).await.unwrap().expect_sound();
        for file in &subject.files {
            let mut unseen = 0;
            let all = Damage::all(file, effort);
            for &damage in &all {
                let _trying = Trying(file, damage);
                subject.put(&shard, &file.path, damage.apply(&file.bytes));
                try_reads(&shard, &subject, file, &questions, &expected).await;
                unseen += usize::from(!is_seen(&shard, &subject, file, damage).await);
            }
            subject.put(&shard, &file.path, file.bytes.clone());
            println!("{name} {}: {} tried, {unseen} not seen by verify", file.component, all.len());
        }
        assert!(allocator::largest() <= MOST_ALLOCATED, "{} bytes at once", allocator::largest());
        assert!(allocator::peak() <= 4 * MOST_ALLOCATED, "{} bytes held", allocator::peak());
    })
    .unwrap();
}

async fn try_reads(
    shard: &Shard,
    subject: &Subject,
    file: &ComponentFile,
    questions: &[Question],
    expected: &Answers,
) {
    match subject.read(shard, questions).await {
        Ok(outcomes) => compare(subject, file, outcomes, expected),
        Err(error) => subject.expect_named(&error),
    }
}

/// That nothing is read wrong that is checked.
fn compare(subject: &Subject, file: &ComponentFile, outcomes: Outcomes, expected: &Answers) {
    let Outcomes { scan, slices } = outcomes;
    match scan {
        Ok(rows) => {
            assert!(rows == expected.scan || !is_checked(subject, file, true), "a scan reads wrong rows")
        }
        Err(error) => subject.expect_named(&error),
    }
    for (found, expected) in slices.into_iter().zip(&expected.slices) {
        match found {
            Ok(rows) => {
                assert!(rows == *expected || !is_checked(subject, file, false), "a slice reads wrong rows");
                if file.component == Component::Index {
                    let [found, expected] = [&rows, expected].map(rows_of);
                    assert!(
                        is_part(&found, &expected),
                        "a slice reads rows that are not there, or in another order"
                    );
                }
            }
            Err(error) => subject.expect_named(&error),
        }
    }
}

fn rows_of(fragments: &Option<Vec<Fragment>>) -> Vec<&Fragment> {
    let all = fragments.iter().flatten();
    all.filter(|fragment| matches!(fragment, Fragment::Row(_))).collect()
}

/// Whether all of `part` is in `whole`, in the same order.
fn is_part<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|item| whole.any(|other| other == item))
}

/// Whether reads compare the file with a checksum, or do not depend on it.
fn is_checked(subject: &Subject, file: &ComponentFile, by_scan: bool) -> bool {
    match &file.component {
        Component::Data => subject.is_compressed || by_scan,
        Component::Statistics => subject.version >= Version::Na,
        // A scan does not look at the index.
        Component::Index | Component::Summary | Component::Filter => by_scan,
        _ => true,
    }
}

/// Whether `verify` finds something wrong. It must, where a checksum or another component tells.
async fn is_seen(shard: &Shard, subject: &Subject, file: &ComponentFile, damage: Damage) -> bool {
    let found = match verify(shard.disk(), &subject.data, &subject.options(), |_, _| ()).await {
        Ok(report) => !report.is_sound(),
        Err(error) => {
            subject.expect_named(&error);
            true
        }
    };
    let must = match &file.component {
        Component::Data | Component::Digest | Component::Index => true,
        // Of data that is one short stretch, stretches may as well be longer.
        Component::Crc => !matches!(damage, Damage::Flip { at: 0..4, .. }),
        Component::Statistics => subject.version >= Version::Na,
        _ => false,
    };
    assert!(found || !must, "the damage is not seen");
    found
}

/// Damages every second byte of the index of a large partition, cuts the index at every 31st length, and searches in it.
fn index_survives(name: &str) {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let subject = Subject::load(&shard, name);
        let questions = subject.questions(&shard).await;
        let expected = subject.read_slices(&shard, &questions).await.unwrap().expect_sound();
        let file = subject.files.iter().find(|file| file.component == Component::Index).unwrap();
        for damage in Damage::all(file, Effort { large: 0, flip_step: 2, cut_step: 31 }) {
            let _trying = Trying(file, damage);
            subject.put(&shard, &file.path, damage.apply(&file.bytes));
            match subject.read_slices(&shard, &questions).await {
                Ok(outcomes) => compare(&subject, file, outcomes, &expected),
                Err(error) => subject.expect_named(&error),
            }
        }
    })
    .unwrap();
    assert!(allocator::largest() <= MOST_ALLOCATED, "{} bytes at once", allocator::largest());
}

#[test]
fn damage_of_the_index_of_large_partitions() {
    index_survives("me/large/sstables/large_none/me-1-big-Data.db");
    index_survives("oa/large/sstables/large_rev/oa-1-big-Data.db");
}

#[test]
fn damage_of_compressed_me_with_many_partitions() {
    survives("me/small/sstables/nock/me-1-big-Data.db", Effort { large: 300, flip_step: 5, cut_step: 41 });
}

#[test]
fn damage_of_compressed_mc() {
    survives("mc/small/sstables/tombs/mc-2-big-Data.db", ALL);
}

#[test]
fn damage_of_compressed_nb() {
    survives("nb/small/sstables/statics/nb-1-big-Data.db", ALL);
}

#[test]
fn damage_of_compressed_oa() {
    survives("oa/small/sstables/tombs/oa-2-big-Data.db", ALL);
}

#[test]
fn damage_of_uncompressed_me_with_index_blocks() {
    survives(
        "me/large/sstables/large_none/me-2-big-Data.db",
        Effort { large: 4000, flip_step: 1, cut_step: 7 },
    );
}

#[test]
fn damage_of_compressed_oa_with_index_blocks() {
    survives(
        "oa/large/sstables/large_rev/oa-2-big-Data.db",
        Effort { large: 4000, flip_step: 3, cut_step: 11 },
    );
}

/// An entry whose position is the greatest number there is, of a partition that has index blocks.
#[test]
fn positions_beyond_all_measure_are_errors() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let subject = Subject::load(&shard, "me/large/sstables/large_none/me-1-big-Data.db");
        let questions = subject.questions(&shard).await;
        let mut entries = subject.open(&shard).await.unwrap().entries();
        while let Some(entry) = entries.next().await.unwrap() {
            if entry.promoted.is_empty() {
                continue;
            }
            let index = subject.files.iter().find(|file| file.component == Component::Index).unwrap();
            let key_end = entry.at as usize + 2 + entry.key.len();
            let position_len = index.bytes[key_end].leading_ones() as usize + 1;
            let rest = key_end + position_len..entry.promoted.end as usize;
            let parts = [&index.bytes[entry.at as usize..key_end], &[0xff; 9], &index.bytes[rest]];
            subject.put(&shard, &index.path, parts.concat());
            let summary = subject.files.iter().find(|file| file.component == Component::Summary).unwrap();
            shard.disk().as_simulated().unwrap().remove_file(&summary.path);

            let outcomes = subject.read_slices(&shard, &questions).await.unwrap();
            let errors: Vec<_> = outcomes.slices.into_iter().filter_map(Result::err).collect();
            assert!(!errors.is_empty());
            errors.iter().for_each(|error| subject.expect_named(error));
            let report = verify(shard.disk(), &subject.data, &subject.options(), |_, _| ()).await.unwrap();
            assert!(!report.is_sound());
            return;
        }
        panic!("a partition has index blocks");
    })
    .unwrap();
}

/// The tables of a set, with each compressor and without.
const COMPRESSORS: [&str; 5] = [
    "mc/small/sstables/comp_snappy/mc-1-big-Data.db",
    "me/small/sstables/comp_deflate/me-1-big-Data.db",
    "nb/small/sstables/comp_zstd/nb-1-big-Data.db",
    "oa/small/sstables/comp_lz4_4k/oa-1-big-Data.db",
    "me/small/sstables/comp_none/me-1-big-Data.db",
];

/// Reads everything with these faults, under many seeds. How often it failed.
async fn failures_under(shard: &Shard, subject: &Subject, faults: SimOptions, seeds: u64) -> u64 {
    let disk = shard.disk().as_simulated().unwrap();
    let questions = subject.questions(shard).await;
    let expected = subject.read(shard, &questions).await.unwrap().expect_sound();
    let mut failures = 0;
    for seed in 0..seeds {
        disk.set_options(SimOptions { seed, ..faults.clone() });
        let found = subject.read(shard, &questions).await;
        disk.set_options(SimOptions::default());
        let Ok(Outcomes { scan, slices }) = found else {
            failures += 1;
            continue;
        };
        let rows =
            slices.into_iter().zip(&expected.slices).map(|(found, expected)| (found, expected.clone()));
        for (found, expected) in rows.chain([(scan.map(Some), Some(expected.scan.clone()))]) {
            match found {
                Ok(rows) => assert!(rows == expected, "seed {seed} reads wrong rows"),
                Err(error) => {
                    subject.expect_named(&error);
                    failures += 1;
                }
            }
        }
    }
    failures
}

#[test]
fn failures_of_the_disk_are_errors() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let faults = SimOptions { io_error_chance: 0.01, max_delay: 4, ..SimOptions::default() };
        for name in COMPRESSORS {
            let subject = Subject::load(&shard, name);
            assert!(failures_under(&shard, &subject, faults.clone(), 15).await > 0, "{name}: a read failed");
        }
    })
    .unwrap();
}

#[test]
fn short_reads_are_continued() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let faults = SimOptions { short_read_chance: 0.6, max_delay: 4, ..SimOptions::default() };
        for name in COMPRESSORS {
            let subject = Subject::load(&shard, name);
            assert_eq!(failures_under(&shard, &subject, faults.clone(), 5).await, 0, "{name}");
            let disk = shard.disk().as_simulated().unwrap();
            disk.set_options(SimOptions { seed: 5, ..faults.clone() });
            let report = verify(shard.disk(), &subject.data, &subject.options(), |_, _| ()).await.unwrap();
            disk.set_options(SimOptions::default());
            assert!(report.is_sound(), "{:?}", report.problems.listed());
        }
    })
    .unwrap();
}

/// Once the table is open, bits of the data flip on their way: no scan may hand them on.
#[test]
fn flipped_bits_are_never_read() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk().as_simulated().unwrap();
        for name in COMPRESSORS {
            let subject = Subject::load(&shard, name);
            let table = subject.open(&shard).await.unwrap();
            let expected = subject::all(table.scan()).await.unwrap();
            let mut failures = 0;
            for seed in 0..20 {
                disk.set_options(SimOptions { seed, corruption_chance: 0.02, ..SimOptions::default() });
                match subject::all(table.scan()).await {
                    Ok(rows) => assert!(rows == expected, "{name}: seed {seed} reads wrong rows"),
                    Err(error) => {
                        assert!(error.to_string().contains("Data.db: corrupt at offset "), "{error}");
                        failures += 1;
                    }
                }
            }
            disk.set_options(SimOptions::default());
            assert!(failures > 0, "{name}: a bit was flipped");
        }
    })
    .unwrap();
}
