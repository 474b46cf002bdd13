//! Where the chunks of a compressed Data.db stand, as reads need it: all in memory, or by pages of CompressionInfo.db, which are read when a
//! chunk is first asked for.
//!
//! ```text
//! 4 KiB of offsets are those of 512 chunks: of 8 MiB of data, in chunks of 16 KiB
//! ```
//!
//! CompressionInfo.db grows with the data. So only of small ones all offsets are read when an SSTable is opened; of others it is what stands
//! before them. A page tells as much as a read has to know, and is in the cache with the pages of the index.

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::rc::Rc;

use model::Bytes;
use runtime::{Cache, File};
use smallvec::SmallVec;

use super::compression_info::{Chunks, CompressionInfo};
use crate::cache::cached_file::{CachedFile, PAGE};
use crate::{Error, Result, Version};

/// A CompressionInfo.db of up to so many bytes is read when its SSTable is opened: that of 2,000 chunks.
const SMALL: u64 = 16 << 10;
/// The bytes of an offset.
const OFFSET: u64 = 8;

/// Where chunks stand, and how they are compressed.
#[derive(Debug)]
pub(crate) enum ChunkPlaces {
    /// All of it is in memory.
    Known(Rc<CompressionInfo>),
    /// It is read as it is needed.
    Paged(ChunkPages),
}

/// The offsets on disk.
#[derive(Debug)]
pub(crate) struct ChunkPages {
    pages: CachedFile,
    chunks: Chunks,
    /// Where the first one is.
    start: u64,
    data_file_len: u64,
}

/// The pages that a reader had last: the next offsets are mostly there too. Where they begin in the file, and their bytes.
#[derive(Debug, Default)]
pub(crate) struct PlacesAtHand(Option<(u64, Bytes)>);

impl PlacesAtHand {
    /// A stretch of the file, if it is in them.
    fn bytes(&self, wanted: &Range<u64>) -> Option<&[u8]> {
        let (at, bytes) = self.0.as_ref()?;
        let start = wanted.start.checked_sub(*at)? as usize;
        bytes.get(start..start + (wanted.end - wanted.start) as usize)
    }
}

/// Where some chunks stand that follow each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Places {
    first: u64,
    /// One more than the chunks: the last one ends there.
    offsets: SmallVec<[u64; 4]>,
}

impl Places {
    fn known(info: &CompressionInfo, numbers: Range<u64>) -> Places {
        let last = info.chunk(numbers.end as usize - 1);
        let starts = numbers.clone().map(|number| info.chunk(number as usize).start);
        Places { first: numbers.start, offsets: starts.chain([last.end]).collect() }
    }

    /// What of Data.db they take.
    ///
    /// # Panics
    /// If they are of no chunk.
    pub(crate) fn all(&self) -> Range<u64> {
        self.offsets[0]..self.offsets[self.offsets.len() - 1]
    }

    /// Where one of them stands; its CRC32 is the last four bytes of the range.
    ///
    /// # Panics
    /// If it is none of them.
    pub(crate) fn chunk(&self, number: u64) -> Range<u64> {
        let at = (number - self.first) as usize;
        self.offsets[at]..self.offsets[at + 1]
    }
}

impl ChunkPlaces {
    /// By the CompressionInfo.db in `file`, of a Data.db that has so many bytes on disk. Reads all of it if `is_whole`, or if it is small.
    ///
    /// # Errors
    /// What cannot be read, contradicts the format or does not fit that Data.db; compressors that are not known.
    pub(crate) async fn open(
        file: File,
        (version, data_file_len): (Version, u64),
        cache: &Cache,
        is_whole: bool,
    ) -> Result<ChunkPlaces> {
        if !is_whole && file.len() > SMALL {
            let pages = CachedFile::new(file.clone(), cache.clone());
            let head = pages.read(0..PAGE).await?;
            if let Some(pages) = ChunkPages::open(pages, &head, (version, data_file_len)) {
                return Ok(ChunkPlaces::Paged(pages));
            }
        }
        let bytes = file.read_exact_at(0, file.len() as usize).await?;
        let info = CompressionInfo::parse(file.path(), &bytes, version, data_file_len)?;
        Ok(ChunkPlaces::Known(Rc::new(info)))
    }

    /// How they are compressed.
    pub(crate) fn chunks(&self) -> &Chunks {
        match self {
            ChunkPlaces::Known(info) => info.chunks(),
            ChunkPlaces::Paged(pages) => &pages.chunks,
        }
    }

    /// Where the chunks of these numbers stand, of which there is one at least.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub(crate) async fn of(&self, numbers: Range<u64>, at_hand: &mut PlacesAtHand) -> Result<Places> {
        match self {
            ChunkPlaces::Known(info) => Ok(Places::known(info, numbers)),
            ChunkPlaces::Paged(pages) => match pages.at_once(numbers.clone(), at_hand)? {
                Some(places) => Ok(places),
                // Who need not wait need not have room for that.
                None => runtime::boxed(|| pages.read(numbers, at_hand)).await,
            },
        }
    }

    /// What is held in memory beside what the cache has, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            ChunkPlaces::Known(info) => info.memory_bytes(),
            ChunkPlaces::Paged(pages) => {
                size_of::<ChunkPages>() + pages.chunks.memory_bytes() + pages.pages.memory_bytes()
            }
        }
    }
}

impl ChunkPages {
    /// By the first bytes of the file. `None` if all of it has to be read, to see whether it is right: they do not tell that there is an
    /// offset for each chunk, and nothing else.
    pub(crate) fn open(
        pages: CachedFile,
        head: &[u8],
        (version, data_file_len): (Version, u64),
    ) -> Option<ChunkPages> {
        let (chunks, count, start) = Chunks::parse(pages.path(), head, version).ok()?;
        let (count, start) = (u64::from(count), start as u64);
        let is_whole = count == chunks.count() && pages.len() == start + count * OFFSET;
        is_whole.then_some(ChunkPages { pages, chunks, start, data_file_len })
    }

    /// What the pages at hand tell, or one in the cache.
    fn at_once(&self, numbers: Range<u64>, at_hand: &mut PlacesAtHand) -> Result<Option<Places>> {
        let wanted = self.offsets_of(&numbers);
        if at_hand.bytes(&wanted).is_none() {
            let page = wanted.start / PAGE;
            let is_in_it = wanted.end <= (page + 1) * PAGE;
            let Some(bytes) = is_in_it.then(|| self.pages.at_hand(page)).flatten() else { return Ok(None) };
            at_hand.0 = Some((page * PAGE, bytes));
        }
        at_hand.bytes(&wanted).map(|bytes| self.places(numbers, bytes, wanted.start)).transpose()
    }

    /// The same by reading pages, which are at hand from then on.
    async fn read(&self, numbers: Range<u64>, at_hand: &mut PlacesAtHand) -> Result<Places> {
        let wanted = self.offsets_of(&numbers);
        let start = wanted.start / PAGE * PAGE;
        let end = wanted.end.next_multiple_of(PAGE).min(self.pages.len());
        at_hand.0 = Some((start, self.pages.read(start..end).await?));
        self.places(numbers, at_hand.bytes(&wanted).expect("it has just been read"), wanted.start)
    }

    /// Which bytes of the file tell where chunks start and end.
    fn offsets_of(&self, numbers: &Range<u64>) -> Range<u64> {
        let end = (numbers.end + 1).min(self.chunks.count());
        self.start + numbers.start * OFFSET..self.start + end * OFFSET
    }

    /// What the bytes tell of these chunks that stand at `at`.
    fn places(&self, numbers: Range<u64>, bytes: &[u8], at: u64) -> Result<Places> {
        let number = |bytes: &[u8; OFFSET as usize]| u64::from_be_bytes(*bytes);
        let mut offsets: SmallVec<[u64; 4]> = bytes.as_chunks().0.iter().map(number).collect();
        if numbers.end == self.chunks.count() {
            // The last chunk ends where the file does.
            offsets.push(self.data_file_len);
        }
        self.check(&offsets, numbers.start, at)?;
        Ok(Places { first: numbers.start, offsets })
    }

    /// Whether each offset is behind the one before it by as much as a chunk may take, and none is beyond Data.db. They are the offsets from
    /// that of `first` on, which stand at `at`.
    fn check(&self, offsets: &[u64], first: u64, at: u64) -> Result<()> {
        let lengths: RangeInclusive<u64> = self.chunks.lengths_on_disk();
        let may_follow = |pair: &[u64]| {
            pair[1] <= self.data_file_len
                && pair[1].checked_sub(pair[0]).is_some_and(|len| lengths.contains(&len))
        };
        let wrong = offsets.windows(2).position(|pair| !may_follow(pair));
        let begins = first > 0 || offsets[0] == 0;
        let Some(wrong) = wrong.or(if begins { None } else { Some(0) }) else { return Ok(()) };
        let what = format!(
            "a chunk does not end a chunk's length after its start, or beyond the {} bytes of Data.db: one of the two files is damaged or cut \
             short",
            self.data_file_len
        );
        Err(Error::corrupt(self.path(), at + wrong as u64 * OFFSET, what))
    }

    fn path(&self) -> &Path {
        self.pages.path()
    }
}

#[cfg(test)]
mod tests {
    use runtime::{IoClass, Shard, SimOptions, run_simulated};

    use super::*;
    use crate::parts::compression_info::{Compression, CompressionInfoBuilder, Compressor};

    const CLASS: IoClass = IoClass::new(1);
    const CHUNK: u64 = 4096;
    const COUNT: u64 = 3000;

    /// Chunks that are each longer than the one before, up to some length; the last one is short of data.
    fn info() -> CompressionInfo {
        let compression =
            Compression::new(Compressor::Lz4, Version::Nb).with_chunk_len(CHUNK as u32).unwrap();
        let mut builder = CompressionInfoBuilder::new(compression);
        (0..COUNT).for_each(|number| builder.push(100 + number % 50));
        builder.finish(COUNT * CHUNK - 7)
    }

    fn data_file_len(info: &CompressionInfo) -> u64 {
        info.chunk(COUNT as usize - 1).end
    }

    async fn open(shard: &Shard, bytes: Vec<u8>, data_file_len: u64, cache: usize) -> Result<ChunkPlaces> {
        let path = Path::new("/t/nb-1-big-CompressionInfo.db");
        shard.disk().as_simulated().expect("the disk is simulated").add_file(path, bytes);
        let file = shard.disk().open(path, CLASS).await.unwrap();
        ChunkPlaces::open(file, (Version::Nb, data_file_len), &Cache::new(cache), false).await
    }

    #[test]
    fn pages_tell_what_the_whole_file_tells() {
        run_simulated(SimOptions::default(), async |shard| {
            let info = info();
            let places = open(&shard, info.encode(Version::Nb), data_file_len(&info), 1 << 20).await.unwrap();
            assert!(matches!(places, ChunkPlaces::Paged(_)));
            assert_eq!((places.chunks(), places.chunks().count()), (info.chunks(), COUNT));
            let known = ChunkPlaces::Known(Rc::new(info.clone()));
            for first in 0..COUNT {
                for last in [first, first + 1, first + 2, first + 700, COUNT - 1] {
                    let numbers = first..last.min(COUNT - 1) + 1;
                    let found = places.of(numbers.clone(), &mut PlacesAtHand::default()).await.unwrap();
                    assert_eq!(found, known.of(numbers, &mut PlacesAtHand::default()).await.unwrap());
                    assert_eq!(found.chunk(first), info.chunk(first as usize));
                }
            }
        })
        .unwrap();
    }

    #[test]
    fn a_page_is_read_when_it_is_needed_and_once_by_who_goes_on() {
        run_simulated(SimOptions::default(), async |shard| {
            let info = info();
            let asked = || shard.disk().stats().class(CLASS);
            let places = open(&shard, info.encode(Version::Nb), data_file_len(&info), 0).await.unwrap();
            assert_eq!((asked().requests, asked().bytes), (1, PAGE));
            let mut at_hand = PlacesAtHand::default();
            for first in (0..COUNT).step_by(10) {
                places.of(first..first + 10, &mut at_hand).await.unwrap();
            }
            // Where a stretch lies in two pages both are read.
            let pages = (COUNT * OFFSET).div_ceil(PAGE) + 1;
            assert!((pages..2 * pages).contains(&asked().requests), "{:?}", asked());
        })
        .unwrap();
    }

    /// What a page tells is a chunk that may be there, or an error. A small file is read whole, and so is one that has something else behind
    /// its chunks.
    #[test]
    fn what_cannot_be_is_an_error() {
        run_simulated(SimOptions::default(), async |shard| {
            let info = info();
            let (sound, len) = (info.encode(Version::Nb), data_file_len(&info));
            let start = sound.len() - COUNT as usize * OFFSET as usize;
            let at = start + 1000 * OFFSET as usize;
            for bit in 0..8 * OFFSET as usize {
                let mut damaged = sound.clone();
                damaged[at + bit / 8] ^= 1 << (bit % 8);
                let places = open(&shard, damaged, len, 0).await.unwrap();
                match places.of(999..1001, &mut PlacesAtHand::default()).await {
                    // A chunk's own checksum finds out about that.
                    Ok(found) => assert!(bit / 8 >= 5 && found.all().end <= len, "bit {bit}"),
                    Err(error) => assert!(error.to_string().contains("CompressionInfo.db"), "{error}"),
                }
                assert!(
                    places.of(0..900, &mut PlacesAtHand::default()).await.is_ok(),
                    "they are as they were"
                );
            }
            let cut = open(&shard, sound.clone(), len - 1000, 0).await.unwrap();
            assert!(cut.of(0..10, &mut PlacesAtHand::default()).await.is_ok());
            let error = cut.of(COUNT - 1..COUNT, &mut PlacesAtHand::default()).await.unwrap_err();
            assert!(error.to_string().contains("cut short"), "{error}");
            assert!(open(&shard, sound[..sound.len() - 8].to_vec(), len, 0).await.is_err());
            let mut longer = sound.clone();
            longer[start - 1] += 1;
            longer.extend(len.to_be_bytes());
            let known = open(&shard, longer, len + 9, 0).await.unwrap();
            assert!(matches!(known, ChunkPlaces::Known(_)), "a chunk of no data is behind the others");
            assert_eq!(known.of(2999..3000, &mut PlacesAtHand::default()).await.unwrap().all().end, len);
        })
        .unwrap();
    }
}
