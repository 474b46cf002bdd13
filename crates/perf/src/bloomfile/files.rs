//! Bloom files of made-up keys: any number of them, without sorting.
//!
//! The ring is cut into as many equal parts as there are keys, and each key has a token somewhere in its part. So files of
//! the same size overlap everywhere, and have no key in common with what is asked for.

use std::path::{Path, PathBuf};

use runtime::{Disk, IoClass};
use siltstone::{Error, Result};
use sstable::Version;
use sstable::parts::binding::Binding;
use sstable::parts::bloom_pages::{BloomPages, BloomPagesBuilder, FilterPages};
use sstable::parts::filter::{Filter, FilterBuilder};

use crate::interrupted;

const VERSION: Version = Version::Me;
const IO: IoClass = IoClass::new(1);
/// Files of the same number of keys.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// Where they are.
    pub(crate) folder: PathBuf,
    /// How many there are.
    pub(crate) count: u32,
    /// Keys of each.
    pub(crate) keys: u64,
    /// The share of other keys that pass.
    pub(crate) fp_chance: f64,
}

impl Files {
    /// Makes those that are not there.
    ///
    /// # Errors
    /// So few keys that they need no pages; what cannot be written.
    pub(crate) async fn make(&self, disk: &Disk) -> Result<()> {
        for file in 0..self.count {
            let path = self.path(file);
            if !path.exists() {
                self.write(disk, file, &path.with_extension("tmp")).await?;
                std::fs::rename(path.with_extension("tmp"), &path)?;
            }
        }
        Ok(())
    }

    /// How many bytes they have together.
    ///
    /// # Errors
    /// If one is not there.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let len = |file| {
            let path = self.path(file);
            path.metadata().map(|is| is.len()).map_err(|error| Error::file(&path, error.to_string()))
        };
        (0..self.count).map(len).sum()
    }

    /// Opens all of them.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) async fn open(&self, disk: &Disk, pages: &FilterPages) -> Result<Vec<BloomPages>> {
        let mut opened = Vec::with_capacity(self.count as usize);
        for file in 0..self.count {
            let path = self.path(file);
            let pages = BloomPages::open(
                disk.open(&path, IO).await.map_err(sstable::Error::from)?,
                pages.clone(),
                VERSION,
                self.binding(),
            )
            .await;
            opened.push(pages.map_err(|why| Error::file(&path, why))?);
        }
        Ok(opened)
    }

    /// The same filters as those of Filter.db.
    ///
    /// # Errors
    /// If a filter would be too large.
    pub(crate) fn whole(&self) -> Result<Vec<Filter>> {
        let whole = |file| {
            interrupted::check()?;
            let builder = FilterBuilder::new(self.keys, self.fp_chance, VERSION);
            let mut builder = builder
                .map_err(|error| Error::Usage(error.to_string()))?
                .ok_or_else(|| Error::Usage("with a chance of 1 there is no filter".to_owned()))?;
            self.hashes(file).for_each(|hash| builder.add(hash));
            Ok(builder.finish())
        };
        (0..self.count).map(whole).collect()
    }

    async fn write(&self, disk: &Disk, file: u32, path: &Path) -> Result<()> {
        let builder = BloomPagesBuilder::new(self.keys, self.fp_chance);
        let mut builder = builder.ok_or_else(|| {
            Error::Usage(format!(
                "a filter of {} keys, of which a share of {} may pass, has one page: there is nothing to look up; more keys or a smaller \
                 --fp-chance are needed",
                self.keys, self.fp_chance
            ))
        })?;
        drop(std::fs::remove_file(path));
        let mut out = disk.create(path, IO).await.map_err(sstable::Error::from)?;
        for hash in self.hashes(file) {
            builder.add(hash);
            if builder.is_full() {
                interrupted::check()?;
                out.append(builder.take_pages()).await.map_err(sstable::Error::from)?;
            }
        }
        out.append(builder.finish(&self.binding(), VERSION)).await.map_err(sstable::Error::from)?;
        Ok(out.sync().await.map_err(sstable::Error::from)?)
    }

    /// The hashes of the keys of a file, in the order of their tokens.
    pub(crate) fn hashes(&self, file: u32) -> impl Iterator<Item = [u64; 2]> + use<> {
        let width = u64::MAX / self.keys;
        (0..self.keys).map(move |key| {
            let random = mixed(key ^ u64::from(file) << 40);
            let token = (i64::MIN as u64).wrapping_add(key * width).wrapping_add(1 + random % (width - 1));
            [token, mixed(random)]
        })
    }

    fn path(&self, file: u32) -> PathBuf {
        self.folder.join(format!("{}-{}-{file}-BloomPages.db", self.keys, self.fp_chance))
    }

    fn binding(&self) -> Binding {
        Binding { digest: None, data_len: self.keys, index_len: 0 }
    }
}

/// Numbers that follow each other become numbers that do not look so.
pub(crate) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
