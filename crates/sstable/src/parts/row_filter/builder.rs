//! RowFilter.db from the rows and blocks of large partitions, as these go by.
//!
//! ```text
//! rows of a stretch ──► offload(Ribbon::of) ──in order──► strips, pages
//! ```

use std::collections::VecDeque;

use runtime::{Task, offload};

use super::directory::{Directory, Stretches, Strips};
use super::ribbon::Ribbon;
use super::{NUMBER_AT, STRIPS};
use crate::Version;
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::fences::STRETCH;
use crate::parts::sealed_page::seal;

/// So many bytes of pages are a request. Bytes.
const FULL: usize = 64 << 10;
/// Ribbons that are being solved meanwhile, at the most.
const SOLVING: usize = 4;
/// So much waits behind them, at the most, until they are waited for.
const WAITING: usize = 64;
/// So many rows are worth a hop to another thread.
const MANY_ROWS: usize = 1024;
/// Of a stretch with more rows nothing is told: it would take mebibytes of memory, and many milliseconds in one go.
const MOST_ROWS: usize = 1 << 17;

/// Builds the ribbons.
///
/// For each partition, in the order of Index.db: [`RowFilterBuilder::row`] and [`RowFilterBuilder::marker`] for what a block
/// has, [`RowFilterBuilder::block`] behind it, and [`RowFilterBuilder::end`]. Now and then [`RowFilterBuilder::full_pages`],
/// before there are many stretches.
///
/// Pages are finished as they fill. What is kept besides are the hashes of some stretches' rows, of 131,072 each at the most, and
/// eight bytes a stretch.
#[derive(Debug, Default)]
pub(crate) struct RowFilterBuilder {
    /// Hashes of the rows since the last block.
    rows: Vec<[u64; 2]>,
    /// Whether there was a marker since, or too many rows.
    is_untold: bool,
    /// The stretch that is being filled.
    current: Option<Current>,
    /// What was ended and is not in the directory yet, in its order.
    ended: VecDeque<Ended>,
    /// How many of them are being solved.
    solving: usize,
    /// The strips of the stretches of the partition that goes into the directory next.
    stretches: Vec<Strips>,
    directory: Directory,
    /// Strips of the page that is being filled, encoded.
    page: Vec<u8>,
    /// Pages that nobody has taken yet.
    pages: Vec<u8>,
    /// How many strips there are, and how many pages of them are finished.
    strips: u32,
    finished: u32,
}

/// What is to go into the directory.
#[derive(Debug)]
enum Ended {
    /// A stretch of that number, of whose rows nothing is told, or this ribbon.
    Stretch(u64, Option<Ribbon>),
    /// One whose ribbon is being solved.
    Solving(u64, Task<Option<Ribbon>>),
    /// The partition of the stretches before it; whether the fences know it.
    Partition(bool),
}

/// Blocks whose places in the index are within one stretch.
#[derive(Debug)]
struct Current {
    number: u64,
    rows: Vec<[u64; 2]>,
    /// Whether range tombstones are in it, so that not all of it is rows, or too many of these.
    is_untold: bool,
}

impl RowFilterBuilder {
    /// A row of the block that is being filled, by its hash.
    #[inline]
    pub(crate) fn row(&mut self, hash: [u64; 2]) {
        if self.rows.len() < MOST_ROWS {
            self.rows.push(hash);
        } else {
            self.is_untold = true;
        }
    }

    /// The block that is being filled has the marker of a range tombstone.
    pub(crate) fn marker(&mut self) {
        self.is_untold = true;
    }

    /// The rows since the last block are those of one that begins `at` bytes behind the partition's first one in Index.db.
    /// `is_open` if a range tombstone is open before it.
    pub(crate) fn block(&mut self, at: u64, is_open: bool) {
        let number = at / STRETCH;
        if self.current.as_ref().is_some_and(|current| current.number != number) {
            self.end_stretch();
        }
        let current =
            self.current.get_or_insert_with(|| Current { number, rows: Vec::new(), is_untold: false });
        let is_large = current.rows.len() + self.rows.len() > MOST_ROWS;
        current.is_untold |= is_open || is_large || std::mem::take(&mut self.is_untold);
        if current.is_untold {
            current.rows.clear();
            self.rows.clear();
        }
        current.rows.append(&mut self.rows);
    }

    /// The partition is at its end. Only of those that the fences know is anything kept.
    pub(crate) fn end(&mut self, is_large: bool) {
        if is_large {
            self.end_stretch();
        }
        let has_stretches = match self.ended.back() {
            Some(ended) => !matches!(ended, Ended::Partition(_)),
            None => !self.stretches.is_empty(),
        };
        if is_large || has_stretches {
            self.ended.push_back(Ended::Partition(is_large));
        }
        self.current = None;
        self.rows.clear();
        self.is_untold = false;
    }

    /// The pages that are finished, to be appended to the file, if they are so many that it is worth a request. Waits where
    /// many ribbons are being solved.
    pub(crate) async fn full_pages(&mut self) -> Option<Vec<u8>> {
        self.settle(SOLVING).await;
        (self.pages.len() >= FULL).then(|| std::mem::take(&mut self.pages))
    }

    /// The rest of the file, and whether any row is told: if none is, nothing of it is of use.
    pub(crate) async fn finish(mut self, binding: &Binding, version: Version) -> (Vec<u8>, bool) {
        self.settle(0).await;
        if !self.page.is_empty() {
            self.end_page();
        }
        let is_of_use = self.directory.stretches.iter().any(|strips| strips.count > 0);
        self.directory.pages = self.finished;
        self.directory.put(binding, version, &mut self.pages);
        (self.pages, is_of_use)
    }

    fn end_stretch(&mut self) {
        let Some(Current { number, rows, is_untold }) = self.current.take() else { return };
        self.ended.push_back(match rows.len() {
            // No block of ours is without rows.
            _ if is_untold || rows.is_empty() => Ended::Stretch(number, None),
            ..MANY_ROWS => Ended::Stretch(number, Ribbon::of(&rows)),
            _ => {
                self.solving += 1;
                Ended::Solving(number, offload(move || Ribbon::of(&rows)))
            }
        });
    }

    /// Brings what was ended into the directory, until no more than so many ribbons before it are being solved, with little
    /// behind them.
    async fn settle(&mut self, most: usize) {
        while let Some(ended) = self.ended.pop_front() {
            match ended {
                Ended::Stretch(number, ribbon) => self.add(number, ribbon),
                Ended::Solving(..) if self.solving <= most && self.ended.len() < WAITING => {
                    return self.ended.push_front(ended);
                }
                Ended::Solving(number, ribbon) => {
                    self.solving -= 1;
                    let ribbon = ribbon.await;
                    self.add(number, ribbon);
                }
                Ended::Partition(is_large) => self.end_partition(is_large),
            }
        }
    }

    fn add(&mut self, number: u64, ribbon: Option<Ribbon>) {
        let strips = ribbon.map_or_else(Strips::default, |ribbon| self.put(&ribbon));
        self.stretches.resize(number as usize, Strips::default());
        self.stretches.push(strips);
    }

    fn end_partition(&mut self, is_large: bool) {
        if is_large {
            let first = self.directory.stretches.len() as u32;
            let count = self.stretches.len() as u32;
            self.directory.stretches.append(&mut self.stretches);
            self.directory.partitions.push(Stretches { first, count });
        }
        self.stretches.clear();
    }

    /// Puts a ribbon into pages; its strips, none where they have no numbers.
    fn put(&mut self, ribbon: &Ribbon) -> Strips {
        let (first, Ok(count)) = (self.strips, u16::try_from(ribbon.words.len())) else {
            return Strips::default();
        };
        let Some(end) = first.checked_add(u32::from(count)) else { return Strips::default() };
        for strip in ribbon.strips() {
            self.page.put(&strip);
            self.strips += 1;
            if self.strips.is_multiple_of(STRIPS) {
                self.end_page();
            }
        }
        assert_eq!(self.strips, end, "every strip has a number");
        Strips { first, count, seed: ribbon.seed }
    }

    fn end_page(&mut self) {
        let start = self.pages.len();
        self.pages.append(&mut self.page);
        self.pages.resize(start + NUMBER_AT, 0);
        self.pages.put_u32(self.finished);
        self.finished += 1;
        seal(&mut self.pages, start);
    }
}

#[cfg(test)]
mod tests {
    use model::key::murmur3;
    use runtime::SimOptions;

    use super::super::directory::Trailer;
    use super::super::ribbon::{Equation, STRIP};
    use super::*;
    use crate::parts::sealed_page::PAGE;

    const BINDING: Binding = Binding { digest: Some(7), data_len: 1000, index_len: 60 };
    const VERSION: Version = Version::Oa;

    /// The output of a future that may hand out work.
    fn simulated<T>(main: impl AsyncFnOnce() -> T) -> T {
        runtime::run_simulated(SimOptions::default(), async |_| main().await).unwrap()
    }

    fn hash(row: u64) -> [u64; 2] {
        murmur3(&row.to_be_bytes())
    }

    /// Adds these rows in blocks of ten, each of which takes 40 bytes of the index from `at` on; where the next one is.
    fn add(builder: &mut RowFilterBuilder, rows: std::ops::Range<u64>, mut at: u64) -> u64 {
        for row in rows.clone() {
            builder.row(hash(row));
            if row % 10 == 9 || row + 1 == rows.end {
                builder.block(at, false);
                at += 40;
            }
        }
        at
    }

    async fn finish(builder: RowFilterBuilder) -> (Directory, Vec<u8>) {
        let (file, is_of_use) = builder.finish(&BINDING, VERSION).await;
        assert!(is_of_use);
        let (pages, last) = file.split_at(file.len() - PAGE);
        let trailer = Trailer::decode(last, file.len() as u64, &BINDING, VERSION).unwrap();
        let directory = Directory::decode(trailer, &pages[pages.len() - trailer.len() as usize..]).unwrap();
        (directory, file)
    }

    fn may_have(directory: &Directory, file: &[u8], (ordinal, at): (u64, u64), row: u64) -> bool {
        let Some(strips) = directory.strips(ordinal, &(at..at + STRETCH)) else { return true };
        let equation = Equation::of(hash(row), strips.seed, usize::from(strips.count));
        let strip = |number: usize| {
            let number = strips.first as usize + number;
            let start = number / STRIPS as usize * PAGE + number % STRIPS as usize * STRIP;
            file[start..][..STRIP].try_into().unwrap()
        };
        let next = equation.spans_two().then(|| strip(equation.strip() + 1));
        equation.holds(&strip(equation.strip()), next.as_ref())
    }

    #[test]
    fn all_rows_pass_and_one_of_256_others() {
        simulated(async || {
            let mut builder = RowFilterBuilder::default();
            let counts = [50_000, 2000, 30_011];
            let mut first = 0;
            for count in counts {
                add(&mut builder, first..first + count, 0);
                builder.end(true);
                first += count;
            }
            let (directory, file) = finish(builder).await;
            assert!(file.len() as u64 * 8 < first * 10, "{} bytes", file.len());
            assert_eq!(directory.partitions.len(), 3);
            let (mut first, mut passed) = (0, 0);
            for (ordinal, count) in (0..).zip(counts) {
                for row in 0..count {
                    let place = (ordinal, row / 10 * 40);
                    assert!(may_have(&directory, &file, place, first + row), "row {row} of {ordinal}");
                    passed += u32::from(may_have(&directory, &file, place, first + row + 1_000_000));
                }
                first += count;
            }
            let chance = f64::from(passed) / first as f64;
            assert!((0.003..0.005).contains(&chance), "{chance}");
        });
    }

    #[test]
    fn what_has_range_tombstones_is_not_told() {
        simulated(async || {
            let mut builder = RowFilterBuilder::default();
            // A marker in the second stretch, a tombstone that is open where the fourth begins.
            let at = add(&mut builder, 0..1500, 0);
            builder.row(hash(1500));
            builder.marker();
            builder.block(at, false);
            let at = add(&mut builder, 1501..3200, at + 40);
            builder.row(hash(3200));
            builder.block(at, true);
            add(&mut builder, 3201..5000, at + 40);
            builder.end(true);
            let (directory, file) = finish(builder).await;
            let is_told: Vec<_> = (0..6)
                .map(|stretch| {
                    directory.strips(0, &(stretch * STRETCH..stretch * STRETCH + STRETCH)).is_some()
                })
                .collect();
            assert_eq!(is_told, [true, false, true, false, true, false], "of the last there is nothing");
            let passing =
                |at| (70_000..71_000).filter(|&row| may_have(&directory, &file, (0, at), row)).count();
            assert!(passing(0) < 15 && passing(STRETCH) == 1000);
        });
    }

    #[test]
    fn of_other_partitions_nothing_is_told() {
        simulated(async || {
            let mut builder = RowFilterBuilder::default();
            add(&mut builder, 0..900, 0);
            builder.end(false);
            builder.row(hash(1));
            builder.marker();
            builder.end(false);
            let nothing = std::mem::take(&mut builder);
            assert!(!nothing.finish(&BINDING, VERSION).await.1);
            // One that is found too long for fences in the end.
            add(&mut builder, 0..2000, 0);
            builder.end(false);
            // Blocks of which none begins within the second stretch.
            builder.row(hash(1));
            builder.block(0, false);
            builder.row(hash(2));
            builder.block(2 * STRETCH + 5, false);
            builder.end(true);
            let (directory, file) = finish(builder).await;
            assert_eq!(directory.partitions.len(), 1);
            assert!(may_have(&directory, &file, (0, 0), 1) && !may_have(&directory, &file, (0, 0), 2));
            assert!(directory.strips(0, &(STRETCH..2 * STRETCH)).is_none());
            let last = (0, 2 * STRETCH + 5);
            assert!(may_have(&directory, &file, last, 2) && !may_have(&directory, &file, last, 1));
        });
    }

    /// Ribbons that are solved elsewhere come in their order, however often somebody asks for pages meanwhile.
    #[test]
    fn it_is_the_same_whenever_pages_are_taken() {
        let build = async |every: u64| {
            let (mut builder, mut file) = (RowFilterBuilder::default(), Vec::new());
            for (partition, is_large) in [true, false, true].into_iter().enumerate() {
                let mut at = 0;
                for first in (0..120_000).step_by(10) {
                    let rows = partition as u64 * 1_000_000 + first;
                    at = add(&mut builder, rows..rows + 10, at);
                    if first % every == 0
                        && let Some(pages) = builder.full_pages().await
                    {
                        file.extend(pages);
                    }
                    assert!(every > 10_000 || builder.solving <= SOLVING + 1, "{}", builder.solving);
                }
                builder.end(is_large);
            }
            let (rest, is_of_use) = builder.finish(&BINDING, VERSION).await;
            assert!(is_of_use);
            file.extend(rest);
            file
        };
        let often = simulated(async || build(1000).await);
        assert_eq!(often, simulated(async || build(u64::MAX).await));
        assert_eq!(often.len() % PAGE, 0);
    }

    /// What is ended behind a ribbon that is being solved does not wait for ever, and stretches without rows have none.
    #[test]
    fn little_waits_and_nothing_is_told_of_nothing() {
        simulated(async || {
            let mut builder = RowFilterBuilder::default();
            for stretch in 0..1000 {
                let rows =
                    [2 * MANY_ROWS as u64, 3, 0][if stretch == 0 { 0 } else { 1 + stretch as usize % 2 }];
                (0..rows).for_each(|row| builder.row(hash(stretch << 32 | row)));
                builder.block(stretch * STRETCH, false);
                drop(builder.full_pages().await);
                assert!(builder.ended.len() <= WAITING, "{}", builder.ended.len());
            }
            builder.end(true);
            let (directory, _) = finish(builder).await;
            let is_told =
                |stretch: u64| directory.strips(0, &(stretch * STRETCH..(stretch + 1) * STRETCH)).is_some();
            assert_eq!([0, 1, 2, 3, 4].map(is_told), [true, false, true, false, true]);
        });
    }

    #[test]
    fn too_many_rows_are_not_told() {
        simulated(async || {
            let mut builder = RowFilterBuilder::default();
            for (block, rows) in
                [MOST_ROWS, MOST_ROWS + 1, MOST_ROWS / 2, MOST_ROWS / 2, MOST_ROWS, 1].into_iter().enumerate()
            {
                (0..rows as u64).for_each(|row| builder.row(hash(row)));
                // The third and fourth block are one stretch, and the last two.
                let place = [0, 1, 2, 2, 3, 3][block] * STRETCH + block as u64;
                builder.block(place, false);
                let held =
                    builder.rows.len() + builder.current.as_ref().map_or(0, |current| current.rows.len());
                assert!(held <= MOST_ROWS, "{held}");
            }
            builder.end(true);
            let (directory, file) = finish(builder).await;
            let is_told =
                |stretch: u64| directory.strips(0, &(stretch * STRETCH..(stretch + 1) * STRETCH)).is_some();
            assert_eq!([0, 1, 2, 3].map(is_told), [true, false, true, false]);
            assert!((0..MOST_ROWS as u64).all(|row| may_have(&directory, &file, (0, 0), row)));
        });
    }
}
