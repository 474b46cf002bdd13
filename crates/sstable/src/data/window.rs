//! The bytes that a reader has at hand: a stretch of the data that slides along a range.
//!
//! ```text
//! data   ····|———— stretch ————|···············|····
//!               ^ at                           ^ end: no byte from here on is wanted
//! ```
//!
//! The rest of a stretch moves into the next one. So a row that crosses the end of a chunk or of a request is still in one buffer, and its
//! values point into it. If the range is read to its end, the next stretches are requested while this one is decoded.

use std::collections::VecDeque;
use std::ops::Range;

use super::chunk::{AtHand, Care, DataFile, Request, Stretch};
use super::guess::Guess;
use super::read_ahead::PAGE;
use super::row::Source;
use crate::Result;
use crate::decode::DecodeError;
use crate::error::Error;

/// How a range is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Bytes of the first request, before it is rounded up to whole chunks.
    pub first: u64,
    /// Requests double up to this many bytes; the one behind a guess is smaller than it, as that lacks little.
    pub most: u64,
    /// Whether uncompressed data is compared with its checksums.
    pub check: bool,
    /// What the first request is to bring, where that is less than all: who reads on is told.
    pub guess: Option<Guess>,
    /// Whether the range will be read to its end, if it is read beyond the first request: from then on the next requests
    /// are under way while the bytes of the last one are unpacked and decoded.
    pub overlaps: bool,
}

impl Pace {
    /// Whole requests from the beginning.
    pub fn steady(most: u64, check: bool) -> Pace {
        Pace { first: most, most, check, guess: None, overlaps: false }
    }

    /// The same for a range that will be read to its end.
    pub fn overlapping(most: u64, check: bool) -> Pace {
        Pace { overlaps: true, ..Pace::steady(most, check) }
    }
}

/// So many requests are under way ahead of who reads on.
const MOST_BEGUN: usize = 2;

/// No row is longer: a value of Cassandra's has no more bytes, and what is written at once has less by far.
const LONGEST_ROW: usize = i32::MAX as usize;

#[derive(Debug)]
pub(super) struct Window {
    stretch: Stretch,
    at: u64,
    end: u64,
    /// A request that comes as far as the end brings in what stands behind it as well, up to here.
    ahead: u64,
    /// Decoding needs the bytes up to here.
    needed: u64,
    step: u64,
    pace: Pace,
    /// What the last request was to bring, where that was less than all.
    guessed: Option<Guess>,
    /// The requests behind the bytes at hand that are under way, one behind the other.
    begun: VecDeque<Request>,
    /// How many there may be.
    most_begun: usize,
    /// Whether there will be no other range.
    is_last: bool,
    /// Checksums for what is checked.
    at_hand: AtHand,
}

impl Window {
    pub(super) fn new(file: &DataFile, range: Range<u64>, pace: Pace) -> Window {
        Window {
            stretch: file.nothing_at(range.start),
            at: range.start,
            end: range.end,
            ahead: range.end,
            needed: range.start,
            step: pace.first,
            pace,
            guessed: None,
            begun: VecDeque::new(),
            most_begun: 1,
            is_last: false,
            at_hand: AtHand::default(),
        }
    }

    /// The first request brings no more than about this many bytes; those behind it double.
    pub(super) fn at_first(&mut self, bytes: u64) {
        self.step = self.step.min(bytes);
    }

    /// There will be no other range.
    pub(super) fn no_more(&mut self) {
        self.is_last = true;
    }

    /// Goes on at another range, keeping the bytes at hand where they are part of it.
    pub(super) fn jump(&mut self, range: Range<u64>, pace: Pace) {
        if range.start < self.stretch.start || range.start > self.stretch.end() {
            self.stretch.empty_at(range.start);
        }
        (self.at, self.end, self.needed) = (range.start, range.end, range.start);
        (self.step, self.pace, self.ahead, self.guessed) = (pace.first, pace, range.end, None);
        self.begun.clear();
        self.most_begun = 1;
    }

    /// What stands behind the range, up to `place` of the data, will probably be wanted too.
    pub(super) fn read_ahead_to(&mut self, place: u64) {
        self.ahead = place.max(self.end);
    }

    /// Where the bytes at hand end, whether they are part of the range or not.
    pub(super) fn end_at_hand(&self) -> u64 {
        self.stretch.end().max(self.at)
    }

    /// The place in the data of the next byte to decode.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Whether the range is decoded to its end.
    pub(super) fn is_done(&self) -> bool {
        self.at == self.end
    }

    /// The bytes at hand, and where in their buffer the next byte to decode is.
    #[inline]
    pub(super) fn source(&self) -> (Source<'_>, usize) {
        let behind = (self.at - self.stretch.start) as usize;
        let wanted = (self.end - self.stretch.start) as usize;
        let end = self.stretch.bytes.start + wanted.min(self.stretch.bytes.len());
        (Source { owner: &self.stretch.owner, end }, self.stretch.bytes.start + behind)
    }

    /// Everything up to this place of the buffer has been decoded.
    #[inline]
    pub(super) fn advance_to(&mut self, place: usize) {
        self.at = self.stretch.start + (place - self.stretch.bytes.start) as u64;
    }

    /// Notes what a failed decoding needs. It is an error where the range does not have it, or no row is as long.
    pub(super) fn wants(&mut self, file: &DataFile, error: DecodeError) -> Result<()> {
        if let DecodeError::Truncated { needed } = error {
            let end = self.at.saturating_add(needed as u64);
            if end <= self.end && needed <= LONGEST_ROW {
                self.needed = end;
                return Ok(());
            }
        }
        Err(Error::corrupt(file.path(), self.at + error.at() as u64, error.what()))
    }

    /// Reads on, with one request. The guess that fell short, if the last one was made by one.
    pub(super) async fn fill(&mut self, file: &DataFile) -> Result<Option<Guess>> {
        let fell_short = self.guessed.take();
        let start = self.end_at_hand();
        let is_first = self.stretch.bytes.is_empty();
        file.prepare(if self.pace.check { Care::Checked } else { Care::Usual }, &mut self.at_hand).await?;
        // The request that is under way, if it is for what comes next: then those behind it are as well.
        let begun = self.begun.pop_front().filter(|request| request.range().start == start);
        if begun.is_none() {
            self.begun.clear();
        }
        let end = begun.as_ref().map_or_else(|| self.end_of_next(file, start), |request| request.range().end);
        self.take_step(fell_short);
        if start >= end {
            return Ok(fell_short);
        }
        let mut request = match begun {
            Some(begun) => begun,
            None => file.request(start..end, self.care(end), &mut self.at_hand).await?,
        };
        let window = file.wait(&mut request, &mut self.at_hand).await?;
        if self.pace.overlaps && !is_first && !runtime::is_in_place() {
            self.begin_next(file, file.end_of(&request)).await;
            // Who unpacks and decodes for long does not wait in between: the disk is to know before.
            runtime::yield_now().await;
        }
        // The bytes that are not decoded yet move in front of the new ones.
        let read = file.finish(&self.tail(start), request, window)?;
        std::mem::replace(&mut self.stretch, read).let_go();
        Ok(fell_short)
    }

    /// Where the next request ends, which begins at `start`.
    fn end_of_next(&self, file: &DataFile, start: u64) -> u64 {
        let wanted = self.needed.max(start.saturating_add(self.step)).min(self.end);
        let unit = file.unit(if self.pace.check { Care::Checked } else { Care::Usual });
        let whole = wanted / unit * unit;
        let end = match self.pace.guess {
            None if whole >= self.needed && whole > start && wanted < self.end => whole,
            // What comes along anyway may be all that is left.
            _ => file.end_of_request(wanted).min(self.end),
        };
        if end == self.end { self.ahead } else { end }
    }

    /// What is behind the bytes that come until `start` is asked for before it is needed: by one request, and from then on by two,
    /// so that the disk need not wait for the next one to be made when one has ended.
    /// What is wrong there is told when it is its turn.
    async fn begin_next(&mut self, file: &DataFile, start: u64) {
        let mut start = self.begun.back().map_or(start, |last| file.end_of(last));
        while self.begun.len() < self.most_begun {
            let end = self.end_of_next(file, start);
            if start >= end {
                break;
            }
            let begun = file.begin(start..end, self.care(end), &mut self.at_hand).await;
            let Ok(request) = begun else { break };
            start = file.end_of(&request);
            self.begun.push_back(request);
        }
        self.most_begun = MOST_BEGUN;
    }

    /// A request is made: how large the next one is to be. What a guess lacked is mostly little.
    fn take_step(&mut self, fell_short: Option<Guess>) {
        self.guessed = self.pace.guess.take();
        let next = match (self.guessed, fell_short) {
            (Some(_), _) => (self.step / 4).max(2 * PAGE),
            (None, Some(_)) => self.pace.first.max(self.step) * 2,
            (None, None) => self.step * 2,
        };
        self.step = next.clamp(1, self.pace.most.max(1));
    }

    fn care(&self, end: u64) -> Care {
        match self.pace.check {
            true => Care::Checked,
            false if self.is_last && end == self.end => Care::NoMore,
            false => Care::Usual,
        }
    }

    /// What is not decoded yet of the stretch; it ends at `start`.
    fn tail(&self, start: u64) -> Stretch {
        let Stretch { owner, bytes, start: first } = &self.stretch;
        if self.stretch.end() != start {
            return Stretch { owner: owner.clone(), bytes: 0..0, start };
        }
        let bytes = bytes.start + (self.at - first) as usize..bytes.end;
        Stretch { owner: owner.clone(), bytes, start: self.at }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.stretch.let_go();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runtime::{Cache, IoClass, Shard, SimOptions};

    use super::*;
    use crate::parts::crc::{CHUNK_LEN, CrcBuilder};
    use crate::parts::crc_pages::CrcPages;

    const LEN: u64 = 300_000;
    const STEP: u64 = 40_000;
    const DATA: IoClass = IoClass::new(1);

    fn byte(at: u64) -> u8 {
        (at / 7).wrapping_add(at >> 5) as u8
    }

    /// A file with its checksums.
    async fn open(shard: &Shard) -> DataFile {
        let [path, crc_path] = [Path::new("/data"), Path::new("/crc")];
        let disk = shard.disk().as_simulated().expect("the disk is simulated");
        let bytes: Vec<u8> = (0..LEN).map(byte).collect();
        let mut crc = CrcBuilder::default();
        crc.update(&bytes);
        disk.add_file(path, bytes);
        disk.add_file(crc_path, crc.finish().0.encode());
        let crc = shard.disk().open(crc_path, IoClass::default()).await.unwrap();
        let crc = CrcPages::new(crc, Cache::new(0), LEN);
        DataFile::plain(shard.disk().open(path, DATA).await.unwrap(), Some(crc))
    }

    /// Reads all in items of so many bytes; what had been asked of the disk after each request.
    async fn read(shard: &Shard, pace: Pace, item: usize) -> Vec<u64> {
        let file = open(shard).await;
        let before = shard.disk().stats().class(DATA);
        let (mut window, mut asked) = (Window::new(&file, 0..LEN, pace), Vec::new());
        while !window.is_done() {
            let (source, at) = window.source();
            let have = source.end - at;
            let whole = item.min((LEN - window.at()) as usize);
            if have >= whole {
                let bytes = &source.owner[at..at + whole];
                assert!(bytes.iter().zip(window.at()..).all(|(found, at)| *found == byte(at)));
                window.advance_to(at + whole);
                continue;
            }
            window.wants(&file, DecodeError::Truncated { needed: whole }).unwrap();
            window.fill(&file).await.unwrap();
            asked.push(shard.disk().stats().class(DATA).since(&before).bytes);
        }
        asked
    }

    #[test]
    fn the_next_request_is_under_way_and_no_other_is_made() {
        runtime::run_simulated(SimOptions::default(), async |shard| {
            for item in [10, 999, 30_011] {
                let steady = read(&shard, Pace::steady(STEP, false), item).await;
                let overlapping = read(&shard, Pace::overlapping(STEP, false), item).await;
                assert_eq!((steady.first(), steady.last()), (overlapping.first(), Some(&LEN)));
                // The first request by itself, as it may be all that is wanted; then one ahead, then two, up to the end.
                let ahead = steady.iter().skip(2).take(1).chain(steady.iter().skip(4)).chain([&LEN; 2]);
                assert!(overlapping.iter().skip(1).eq(ahead), "{steady:?} {overlapping:?}");
            }
        })
        .unwrap();
    }

    /// Checksums are of whole stretches: requests end with one, and the next request begins there, be it under way already or not.
    #[test]
    fn what_is_checked_is_read_once() {
        runtime::run_simulated(SimOptions::default(), async |shard| {
            for step in [10_000, 65_536, 100_000, 140_000] {
                for pace in [Pace::steady(step, true), Pace::overlapping(step, true)] {
                    for item in [10, 30_011, 90_001] {
                        let asked = read(&shard, pace, item).await;
                        assert_eq!(asked.last(), Some(&LEN), "{pace:?} {item}: {asked:?}");
                        assert!(asked.iter().all(|to| *to == LEN || to % u64::from(CHUNK_LEN) == 0));
                    }
                }
            }
        })
        .unwrap();
    }

    /// As the byte is that ends a partition, behind its only row.
    #[test]
    fn what_little_is_left_comes_along() {
        runtime::run_simulated(SimOptions::default(), async |shard| {
            let asked = read(&shard, Pace::steady(STEP, false), LEN as usize - 1).await;
            assert_eq!(asked, [LEN]);
        })
        .unwrap();
    }

    /// An item that is larger than what was asked for ahead of it.
    #[test]
    fn more_may_be_needed_than_is_under_way() {
        runtime::run_simulated(SimOptions::default(), async |shard| {
            let asked = read(&shard, Pace::overlapping(STEP / 8, false), 70_001).await;
            assert_eq!(asked.last(), Some(&LEN));
        })
        .unwrap();
    }
}
