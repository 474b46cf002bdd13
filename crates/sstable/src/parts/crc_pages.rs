//! CRC.db as scans need it: by pages, which are read when the first of their checksums is asked for.
//!
//! ```text
//! 4 KiB of checksums are those of 64 MiB of data
//! ```
//!
//! Most reads compare nothing with it, so that opening an SSTable reads nothing of it, and it takes no memory that grows with the data.

use std::cell::OnceCell;
use std::ops::Range;

use model::Bytes;
use runtime::{Cache, File};

use super::crc::{self, HEAD, SUM};
use crate::cache::cached_file::{CachedFile, PAGE};
use crate::{Error, Result};

/// What is wrong with a file that is not whole.
const ENDS: &str = "the file ends in the middle of a number";

/// The checksums of an uncompressed Data.db, on disk.
#[derive(Debug)]
pub struct CrcPages {
    pages: CachedFile,
    data_len: u64,
    /// Once it has been asked for.
    chunk_len: OnceCell<u32>,
}

/// A page of checksums that a scan has at hand: the next ones are mostly there too.
#[derive(Debug, Default)]
pub struct SumsAtHand(Option<(u64, Bytes)>);

impl CrcPages {
    /// The checksums in `file` of a Data.db of so many bytes. Reads nothing.
    pub fn new(file: File, cache: Cache, data_len: u64) -> CrcPages {
        CrcPages { pages: CachedFile::new(file, cache), data_len, chunk_len: OnceCell::new() }
    }

    /// What is held in memory beside what the cache has, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pages.memory_bytes()
    }

    /// Makes sure that it is known of how many bytes a checksum is.
    ///
    /// # Errors
    /// What cannot be read; where there are more or fewer checksums than one for each stretch.
    pub async fn prepare(&self, at_hand: &mut SumsAtHand) -> Result<()> {
        if self.chunk_len.get().is_some() {
            return Ok(());
        }
        let path = self.pages.path();
        let chunk_len = self.read(0, at_hand).await?;
        crc::check_chunk_len(chunk_len).map_err(|what| Error::corrupt(path, 0, what))?;
        let sums = self.pages.len() - HEAD;
        if !sums.is_multiple_of(SUM) {
            return Err(Error::corrupt(path, self.pages.len(), ENDS));
        }
        let (wanted, found) = (self.data_len.div_ceil(u64::from(chunk_len)), sums / SUM);
        // Cassandra's compactions add one of nothing at the end.
        let is_of_nothing =
            found == wanted + 1 && self.read(HEAD + wanted * SUM, at_hand).await? == crc::OF_NOTHING;
        if found != wanted && !is_of_nothing {
            return Err(crc::wrong_count(path, self.data_len, wanted, found));
        }
        self.chunk_len.get_or_init(|| chunk_len);
        Ok(())
    }

    /// How many bytes of Data.db a checksum is of. Never 0.
    ///
    /// # Panics
    /// If [`CrcPages::prepare`] has not been waited for.
    pub fn chunk_len(&self) -> u32 {
        *self.chunk_len.get().expect("checksums are prepared before they are asked for")
    }

    /// The CRC32s of some stretches of the data, counted from 0.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn sums(&self, stretches: Range<u64>, at_hand: &mut SumsAtHand) -> Result<Vec<u32>> {
        let mut sums = Vec::with_capacity((stretches.end - stretches.start) as usize);
        for stretch in stretches {
            sums.push(self.read(HEAD + stretch * SUM, at_hand).await?);
        }
        Ok(sums)
    }

    /// The number at a place of the file, which is a multiple of its length.
    async fn read(&self, at: u64, at_hand: &mut SumsAtHand) -> Result<u32> {
        let number = at / PAGE;
        let page = match &at_hand.0 {
            Some((held, page)) if *held == number => page,
            _ => {
                let range = number * PAGE..((number + 1) * PAGE).min(self.pages.len());
                &at_hand.0.insert((number, self.pages.read(range).await?)).1
            }
        };
        let bytes = page.get((at % PAGE) as usize..).and_then(|rest| rest.first_chunk());
        let ends = || Error::corrupt(self.pages.path(), at, ENDS);
        bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or_else(ends)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runtime::{IoClass, Shard, SimOptions, run_simulated};

    use super::*;

    const CLASS: IoClass = IoClass::new(1);

    async fn open(shard: &Shard, bytes: Vec<u8>, data_len: u64) -> CrcPages {
        let path = Path::new("/t/nb-1-big-CRC.db");
        shard.disk().as_simulated().expect("the disk is simulated").add_file(path, bytes);
        CrcPages::new(shard.disk().open(path, CLASS).await.unwrap(), Cache::new(0), data_len)
    }

    fn encoded(chunk_len: u32, sums: impl Iterator<Item = u32>) -> Vec<u8> {
        [chunk_len].into_iter().chain(sums).flat_map(u32::to_be_bytes).collect()
    }

    #[test]
    fn a_page_is_read_once_and_nothing_before_it_is_wanted() {
        run_simulated(SimOptions::default(), async |shard| {
            let crc = open(&shard, encoded(100, 0..3000), 300_000).await;
            let before = shard.disk().stats().class(CLASS);
            let asked = || shard.disk().stats().class(CLASS).since(&before).requests;
            let mut at_hand = SumsAtHand::default();
            assert_eq!(asked(), 0);
            crc.prepare(&mut at_hand).await.unwrap();
            assert_eq!((crc.chunk_len(), asked()), (100, 1));
            for first in (0..3000).step_by(8) {
                let sums = crc.sums(first..first + 8, &mut at_hand).await.unwrap();
                assert!(sums.into_iter().eq(first as u32..first as u32 + 8));
            }
            assert_eq!(asked(), 3);
        })
        .unwrap();
    }

    #[test]
    fn what_is_not_of_the_data_is_refused() {
        run_simulated(SimOptions::default(), async |shard| {
            let why = async |bytes: Vec<u8>, data_len| {
                let crc = open(&shard, bytes, data_len).await;
                let done = crc.prepare(&mut SumsAtHand::default()).await;
                done.map_or_else(|error| error.to_string(), |()| String::new())
            };
            assert_eq!(why(encoded(100, [7, 8].into_iter()), 101).await, "");
            assert_eq!(why(encoded(100, [7, 0].into_iter()), 100).await, "", "the last one is of nothing");
            assert!(
                why(encoded(100, [7, 8].into_iter()), 100)
                    .await
                    .contains("need 1 checksums, but there are 2")
            );
            assert!(
                why(encoded(100, [7].into_iter()), 101).await.contains("need 2 checksums, but there are 1")
            );
            assert!(why(encoded(0, [7].into_iter()), 1).await.contains("offset 0"));
            assert!(why(vec![0, 0, 1, 0, 0, 0, 0, 1, 9], 200).await.contains("middle"));
            for short in 0..4 {
                assert!(why(vec![0; short], 1).await.contains("CRC.db"), "{short}");
            }
        })
        .unwrap();
    }
}
