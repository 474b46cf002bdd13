//! The components of one SSTable, each opened or read separately.

use std::rc::Rc;

use model::Schema;
use runtime::{Cache, Disk, File};

use crate::component::{Component, Descriptor};
use crate::data::chunk::DataFile;
use crate::data::reader::Data;
use crate::key_summary::{KeySummary, SummarySource};
use crate::parts::binding::Binding;
use crate::parts::bloom_pages::BloomPages;
use crate::parts::chunk_pages::ChunkPlaces;
use crate::parts::crc::Crc;
use crate::parts::crc_pages::{CrcPages, SumsAtHand};
use crate::parts::digest::Digest;
use crate::parts::filter::Filter;
use crate::parts::statistics::{Partitioner, Statistics};
use crate::parts::summary::Summary;
use crate::parts::usage::Usage;
use crate::sstable::Own;
use crate::writer::is_unsealed;
use crate::{Error, Result, Version};

/// Reads the components of one SSTable.
pub(crate) struct Opener<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) descriptor: &'a Descriptor,
}

impl Opener<'_> {
    /// Refuses an SSTable whose writer did not come to its end: the list of its components is written last.
    pub(crate) fn check_sealed(&self) -> Result<()> {
        match !self.has(&Component::Toc) && is_unsealed(self.disk, self.descriptor) {
            true => {
                Err(self.missing(&Component::Toc, "it is still being written, or its writer was cut off"))
            }
            false => Ok(()),
        }
    }

    /// The components that TOC.txt lists, or that the folder has where there is none.
    pub(crate) async fn components(&self) -> Result<Vec<Component>> {
        match self.read(&Component::Toc).await? {
            Some((path, bytes)) => Component::parse_toc(&path, &bytes),
            None => self.descriptor.list(self.disk),
        }
    }

    /// Statistics.db; the columns of the table tell what it leaves open.
    pub(crate) async fn statistics(&self, table: Option<&Schema>) -> Result<Statistics> {
        match self.read(&Component::Statistics).await? {
            Some((path, bytes)) => Statistics::parse_of(&path, &bytes, self.descriptor.version, table),
            None => Err(self.missing(&Component::Statistics, "it tells the columns and their types")),
        }
    }

    pub(crate) async fn data(&self, statistics: &Statistics, cache: &Cache) -> Result<Data> {
        let file = self.data_file(cache, false).await?;
        Ok(Data::new(file, statistics, self.descriptor.version))
    }

    /// Data.db, compressed or not; what is read of CRC.db goes into the cache, and so does what is read of CompressionInfo.db, unless all of
    /// that is wanted now.
    pub(crate) async fn data_file(&self, cache: &Cache, all_chunks: bool) -> Result<DataFile> {
        let file = self.open(&Component::Data, "it holds the rows").await?;
        if self.has(&Component::CompressionInfo) {
            let info = self.open(&Component::CompressionInfo, "it was there").await?;
            let of = (self.descriptor.version, file.len());
            return Ok(DataFile::in_chunks(file, ChunkPlaces::open(info, of, cache, all_chunks).await?));
        }
        if self.has(&Component::Crc) {
            let crc = self.open(&Component::Crc, "it was there").await?;
            let crc = CrcPages::new(crc, cache.clone(), file.len());
            // Of a file that lost all of its data nobody would ever read a checksum.
            if file.len() == 0 {
                crc.prepare(&mut SumsAtHand::default()).await?;
            }
            return Ok(DataFile::plain(file, Some(crc)));
        }
        // Data that is not compressed has checksums; where it has none, it may be that only its other part is lost.
        if self.components().await?.contains(&Component::CompressionInfo) {
            let why = "without it compressed data cannot be read";
            return Err(self.missing(&Component::CompressionInfo, why));
        }
        Ok(DataFile::plain(file, None))
    }

    /// CRC.db, all of it, of an uncompressed Data.db of so many bytes.
    pub(crate) async fn crc(&self, data_len: u64) -> Result<Option<Rc<Crc>>> {
        let Some((path, bytes)) = self.read(&Component::Crc).await? else {
            return Ok(None);
        };
        let crc = Crc::parse(&path, &bytes, self.descriptor.version)?;
        crc.of_data(&path, data_len).map(Rc::new).map(Some)
    }

    pub(crate) async fn filter(&self) -> Result<Option<Filter>> {
        match self.read(&Component::Filter).await? {
            Some((path, bytes)) => {
                Filter::parse(&path, bytes, self.descriptor.version).map(Some).map_err(Error::of_spare)
            }
            None => Ok(None),
        }
    }

    pub(crate) async fn summary(&self, partitioner: Partitioner) -> Result<Option<Summary>> {
        match self.read(&Component::Summary).await? {
            Some((path, bytes)) => {
                let summary = Summary::parse(&path, &bytes, self.descriptor.version, partitioner);
                summary.map(Some).map_err(Error::of_spare)
            }
            None => Ok(None),
        }
    }

    /// The summary, as far as it has to be in memory where there are these components of our own.
    pub(crate) async fn key_summary(
        &self,
        index: &File,
        statistics: &Statistics,
        cache: &Cache,
        instead: &Own,
    ) -> Result<KeySummary> {
        let file = match self.has(&Component::Summary) {
            true => Some(self.open(&Component::Summary, "it was there").await?),
            false => None,
        };
        let source = SummarySource {
            file,
            index: index.clone(),
            version: self.descriptor.version,
            partitioner: statistics.validation.partitioner,
            ends: statistics.stats.ends().map(|key| key.map(Box::from)),
            tokens: instead.bloom_pages.as_ref().ok().filter(|_| instead.has_digest).map(BloomPages::ends),
            cache: cache.clone(),
        };
        KeySummary::open(source, instead.has_digest && instead.fences.is_ok()).await
    }

    /// What the components of our own have to be of, if there are any.
    pub(crate) async fn binding(
        &self,
        (data_len, index_len): (u64, u64),
    ) -> std::result::Result<Binding, Usage> {
        if ![Component::Fences, Component::BloomPages, Component::RowFilter].iter().any(|own| self.has(own)) {
            return Err(Usage::Absent);
        }
        match self.digest().await {
            Ok(digest) => Ok(Binding { digest: digest.map(|digest| digest.0), data_len, index_len }),
            Err(error) => Err(Usage::Ignored { why: error.to_string() }),
        }
    }

    /// A component that is of this SSTable, if it is wanted and there; what is wrong with it keeps nothing from being read.
    pub(crate) async fn own<T>(
        &self,
        component: &Component,
        is_wanted: bool,
        binding: &std::result::Result<Binding, Usage>,
        open: impl AsyncFnOnce(File, Version, Binding) -> std::result::Result<T, String>,
    ) -> std::result::Result<T, Usage> {
        if !is_wanted {
            return Err(Usage::Off);
        }
        if !self.has(component) {
            return Err(Usage::Absent);
        }
        let binding = binding.clone()?;
        let opened = match self.open(component, "it was there").await {
            Ok(file) => open(file, self.descriptor.version, binding).await,
            Err(error) => Err(error.to_string()),
        };
        opened.map_err(|why| Usage::Ignored { why })
    }

    /// Digest.crc32, if it is there.
    pub(crate) async fn digest(&self) -> Result<Option<Digest>> {
        let parse = |(path, bytes): (std::path::PathBuf, Vec<u8>)| {
            Digest::parse(&path, &bytes, self.descriptor.version)
        };
        self.read(&Component::Digest).await?.map(parse).transpose()
    }

    /// All of a component, if it is there.
    pub(crate) async fn read(&self, component: &Component) -> Result<Option<(std::path::PathBuf, Vec<u8>)>> {
        let path = self.descriptor.path_of(component);
        if !self.disk.exists(&path) {
            return Ok(None);
        }
        let file = self.disk.open(&path, component.io_class()).await?;
        let bytes = file.read_exact_at(0, file.len() as usize).await?.to_vec();
        Ok(Some((path, bytes)))
    }

    pub(crate) async fn open(&self, component: &Component, why: &str) -> Result<File> {
        let path = self.descriptor.path_of(component);
        if !self.disk.exists(&path) {
            return Err(self.missing(component, why));
        }
        Ok(self.disk.open(&path, component.io_class()).await?)
    }

    pub(crate) fn has(&self, component: &Component) -> bool {
        self.disk.exists(&self.descriptor.path_of(component))
    }

    pub(crate) fn missing(&self, component: &Component, why: &str) -> Error {
        Error::missing(&self.descriptor.path_of(component), format!("this file is missing; {why}"))
    }
}
