//! Every byte of a log flipped, and every length of its files: never a wrong record, and never damage that is not told.

use std::ops::Range;

use runtime::{Shard, SimDisk, SimOptions, run_simulated};

use super::format::{HEADER_LEN, Header, RECORD_OVERHEAD, marks};
use super::tests::{A, B, Entry, batch, open, payload, replay_all, segment_files};
use super::*;

const FOLDER: &str = "/log";

/// A log of several segments, as bytes.
struct Sample {
    files: Vec<(PathBuf, Vec<u8>)>,
    entries: Vec<Entry>,
}

/// Two sessions, the first of which ended with a torn tail, the second maybe well.
async fn sample(shard: &Shard, is_closed: bool) -> Sample {
    let folder = Path::new(FOLDER);
    for session in 0..2 {
        let log = open(shard, folder, batch(500)).await.unwrap();
        for number in 0..7 {
            let table = if number % 3 == 0 { B } else { A };
            log.append(table, &payload(number + session, 30 * number)).await.unwrap();
        }
        if session == 1 && is_closed {
            log.close().await.unwrap();
        }
        if session == 0 {
            let disk = shard.disk().as_simulated().unwrap();
            let path = segment_path(folder, log.position().segment);
            let mut bytes = content(shard.disk(), &path).await;
            bytes.extend([0; 50]);
            drop(log);
            disk.add_file(path, bytes);
        }
    }
    let (entries, replayed) = replay_all(shard.disk(), folder, OnCorruption::Stop).await.unwrap();
    assert_eq!((entries.len(), replayed.torn.len()), (14, 1));
    let mut files = Vec::new();
    for path in segment_files(shard.disk(), folder) {
        let bytes = content(shard.disk(), &path).await;
        files.push((path, bytes));
    }
    assert!(files.len() >= 5);
    Sample { files, entries }
}

async fn content(disk: &Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, COMMIT_LOG_IO).await.unwrap();
    file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec()
}

impl Sample {
    /// Where an entry is, its overhead too.
    fn range(entry: &Entry) -> Range<usize> {
        let end = entry.0.offset as usize;
        end - entry.2.len() - RECORD_OVERHEAD..end
    }

    /// The entries that do not touch a range of a file.
    fn without(&self, path: &Path, damaged: &Range<usize>) -> Vec<Entry> {
        let number = segment_number(path).unwrap();
        let touches = |entry: &Entry| {
            let range = Self::range(entry);
            entry.0.segment == number && range.start < damaged.end && damaged.start < range.end
        };
        self.entries.iter().filter(|entry| !touches(entry)).cloned().collect()
    }

    /// The first byte of a file of which nothing says that it was durable; 0 if all of it was.
    fn unproven(&self, index: usize) -> Option<usize> {
        let (path, bytes) = &self.files[index];
        let session = |index: usize| Header::decode(&self.files[index].1).unwrap().session;
        if self.files.get(index + 1).is_some() && session(index) == session(index + 1) {
            return None;
        }
        let number = segment_number(path).unwrap();
        Some(marks(bytes, 0, number).map(|(_, mark, _)| mark.synced as usize).max().unwrap())
    }

    /// Puts a file on the disk in the place of the good one, and replays.
    async fn replay_with(
        &self,
        shard: &Shard,
        index: usize,
        bytes: Vec<u8>,
        mode: OnCorruption,
    ) -> Result<(Vec<Entry>, Replayed)> {
        let disk: &SimDisk = shard.disk().as_simulated().unwrap();
        let (path, good) = &self.files[index];
        disk.add_file(path, bytes);
        let found = replay_all(shard.disk(), Path::new(FOLDER), mode).await;
        disk.add_file(path, good.clone());
        found
    }
}

/// For a log that was closed and one that was not.
fn for_samples(test: impl AsyncFn(&Shard, &Sample)) {
    for is_closed in [false, true] {
        run_simulated(SimOptions::default(), async |shard| {
            let sample = sample(&shard, is_closed).await;
            test(&shard, &sample).await;
        })
        .unwrap();
    }
}

fn expect_damage(result: Result<(Vec<Entry>, Replayed)>, path: &Path, at: usize) {
    let error = result.expect_err(&format!("{}: {at} is not noticed", path.display()));
    assert!(error.to_string().starts_with(&format!("{}: corrupt at offset ", path.display())), "{error}");
}

/// What was found is what is there before some place of a file, and all of the files of other sessions.
fn expect_shortened(sample: &Sample, index: usize, at: usize, found: &(Vec<Entry>, Replayed)) {
    let (path, bytes) = &sample.files[index];
    let number = segment_number(path).unwrap();
    let is_before = |entry: &&Entry| {
        entry.0.segment != number || Sample::range(entry).end <= found_until(found, path, bytes)
    };
    assert!(sample.entries.iter().filter(is_before).eq(&found.0), "{}: {at}", path.display());
    assert!(found_until(found, path, bytes) <= at, "what is flipped is torn");
    assert_eq!(found.1.damage, []);
}

/// Where the torn tail of a file begins.
fn found_until(found: &(Vec<Entry>, Replayed), path: &Path, bytes: &[u8]) -> usize {
    let gap = found.1.torn.iter().find(|gap| gap.path == path);
    gap.map_or(bytes.len(), |gap| gap.offset as usize)
}

#[test]
fn a_flipped_byte_is_an_error_or_shortens_the_tail() {
    for_samples(async |shard, sample| {
        let mut shortened = 0;
        for (index, (path, good)) in sample.files.iter().enumerate() {
            for (at, flip) in (0..good.len()).flat_map(|at| [(at, 0xFF), (at, 1 << (at % 8))]) {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                let found = sample.replay_with(shard, index, bytes, OnCorruption::Stop).await;
                if sample.unproven(index).is_none_or(|unproven| at < unproven) {
                    expect_damage(found, path, at);
                } else {
                    shortened += 1;
                    expect_shortened(sample, index, at, &found.unwrap());
                }
            }
        }
        assert!(shortened > 100, "{shortened}");
    });
}

#[test]
fn all_but_what_is_flipped_is_salvaged() {
    for_samples(async |shard, sample| {
        for (index, (path, good)) in sample.files.iter().enumerate() {
            for at in 0..good.len() {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << (at % 8);
                let (found, told) =
                    sample.replay_with(shard, index, bytes, OnCorruption::Salvage).await.unwrap();
                assert!(found == sample.without(path, &(at..at + 1)), "{}: {at}", path.display());
                let is_unproven = sample.unproven(index).is_some_and(|unproven| at >= unproven);
                let gaps = if is_unproven { &told.torn } else { &told.damage };
                let has = |gap: &Gap| {
                    gap.path == *path && (gap.offset..gap.offset + gap.length).contains(&(at as u64))
                };
                assert!(gaps.iter().any(has), "{}: {at}: {told:?}", path.display());
            }
        }
    });
}

#[test]
fn larger_holes_hide_nothing_else() {
    for_samples(async |shard, sample| {
        for (index, (path, good)) in sample.files.iter().enumerate() {
            for (start, len) in (0..good.len()).step_by(13).map(|start| (start, 1 + start * 7 % 300)) {
                let hole = start..(start + len).min(good.len());
                let mut zeros = good.clone();
                zeros[hole.clone()].fill(0);
                let mut doubled = good.clone();
                doubled.copy_within(0..hole.len(), hole.start);
                for bytes in [zeros, doubled] {
                    let is_changed = bytes != *good;
                    let stopped = sample.replay_with(shard, index, bytes.clone(), OnCorruption::Stop).await;
                    if is_changed && sample.unproven(index).is_none() {
                        expect_damage(stopped, path, start);
                    } else if let Ok(stopped) = stopped {
                        let at = if is_changed { hole.end } else { good.len() };
                        expect_shortened(sample, index, at, &stopped);
                    }
                    let (found, _) =
                        sample.replay_with(shard, index, bytes, OnCorruption::Salvage).await.unwrap();
                    let intact = sample.without(path, &hole);
                    assert!(found.iter().all(|entry| sample.entries.contains(entry)) && found.is_sorted());
                    // Without a mark nobody knows what a segment without a header is bound to.
                    let has_header = hole.start >= HEADER_LEN;
                    assert!(!has_header || intact.iter().all(|entry| found.contains(entry)));
                }
            }
        }
    });
}

#[test]
fn a_segment_that_is_cut_off_is_damaged_or_a_tail() {
    for_samples(async |shard, sample| {
        for (index, (path, good)) in sample.files.iter().enumerate() {
            for len in 0..good.len() {
                let found = sample.replay_with(shard, index, good[..len].to_vec(), OnCorruption::Stop).await;
                if sample.unproven(index).is_none() {
                    expect_damage(found, path, len);
                    let salvaged = sample
                        .replay_with(shard, index, good[..len].to_vec(), OnCorruption::Salvage)
                        .await
                        .unwrap();
                    assert!(salvaged.0 == sample.without(path, &(len..good.len())));
                    assert_eq!(salvaged.1.damage.len(), 1);
                } else {
                    let found = found.unwrap();
                    assert!(found.0 == sample.without(path, &(len..good.len())));
                    assert_eq!(found.1.damage, []);
                }
            }
            let mut longer = good.clone();
            longer.extend([0; 9]);
            let found = sample.replay_with(shard, index, longer, OnCorruption::Stop).await;
            match &found {
                Ok((entries, told)) => {
                    assert!(*entries == sample.entries && told.torn.iter().any(|gap| gap.path == *path));
                }
                Err(error) => assert!(error.to_string().contains("behind the end"), "{error}"),
            }
        }
    });
}

#[test]
fn a_segment_of_another_name_or_format_is_an_error() {
    for_samples(async |shard, sample| {
        let disk = shard.disk().as_simulated().unwrap();
        let (path, good) = &sample.files[0];
        let other = segment_path(Path::new(FOLDER), 3);
        disk.add_file(&other, good.clone());
        for mode in [OnCorruption::Stop, OnCorruption::Salvage] {
            expect_damage(replay_all(shard.disk(), Path::new(FOLDER), mode).await, &other, 12);
        }
        disk.remove_file(&other);
        let mut bytes = good.clone();
        bytes[11] = 9;
        let checksum = crc32fast::hash(&bytes[..36]);
        bytes[36..40].copy_from_slice(&checksum.to_be_bytes());
        for mode in [OnCorruption::Stop, OnCorruption::Salvage] {
            let found = sample.replay_with(shard, 0, bytes.clone(), mode).await;
            let words = found.unwrap_err().to_string();
            assert_eq!(
                words,
                format!("{}: corrupt at offset 8: commit logs of format 9 are not known", path.display())
            );
        }
    });
}

#[test]
fn the_records_of_a_namesake_are_not_taken() {
    run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        let folder = Path::new(FOLDER);
        let log = open(&shard, folder, batch(4000)).await.unwrap();
        for number in 0..9 {
            log.append(A, &payload(number, 50)).await.unwrap();
        }
        let path = segment_path(folder, log.position().segment);
        let old = content(shard.disk(), &path).await;
        drop(log);
        disk.remove_file(&path);
        // A moment later, the same number, and blocks of the old file behind what was written.
        shard.clock().as_simulated().unwrap().advance(Duration::from_micros(1));
        let log = open(&shard, folder, batch(4000)).await.unwrap();
        for number in 0..3 {
            log.append(A, &payload(number, 50)).await.unwrap();
        }
        let mut new = content(shard.disk(), &path).await;
        assert_eq!(segment_path(folder, log.position().segment), path);
        drop(log);
        let end = new.len();
        new.extend_from_slice(&old[end..]);
        disk.add_file(path, new);
        for mode in [OnCorruption::Stop, OnCorruption::Salvage] {
            let (found, told) = replay_all(shard.disk(), folder, mode).await.unwrap();
            assert_eq!((found.len(), told.torn.len(), told.damage.len()), (3, 1, 0));
        }
    })
    .unwrap();
}
