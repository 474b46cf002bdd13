//! Whether an SSTable is sound: every checksum, every order, and what each component says of the others.
//!
//! | module | checks |
//! |---|---|
//! | `components` | each small component for itself; TOC.txt against the files that are there |
//! | `rows` | one pass over Data.db: checksums, digest, the coding and the order of everything in it |
//! | `index` | Index.db against the partitions, Summary.db against Index.db |
//! | `fences`, `bloom_pages` | Fences.db and BloomPages.db, if there are any, against Index.db |
//! | `row_filter` | RowFilter.db, if there is one, against both; `pages` what the three share |
//! | `blocks` | the index of each large partition against its rows |
//! | `totals` | Statistics.db against the data |
//! | `values` | values against their types |
//! | `report` | nothing: it has what the others found |
//!
//! What contradicts is a *problem*. What is legal, but unusual or not checked, is a *note*: components
//! that may be missing and are, unknown ones, values that their types do not allow. A verification goes
//! on behind a problem as far as that makes sense. Everything is read once from its start to its end, and large
//! partitions once more where RowFilter.db tells of their rows; memory is that of the small components and of a few requests.

mod blocks;
mod bloom_pages;
mod components;
mod fences;
mod index;
mod pages;
mod report;
mod row_filter;
mod rows;
mod totals;
mod values;

use std::path::Path;
use std::rc::Rc;

use runtime::{Disk, File};

use self::components::Components;
use self::index::{IndexCheck, Order, SampleCheck};
use self::pages::Owner;
pub use self::report::{Findings, Problem, Report};
use self::rows::Pass;
use self::totals::{Told, Totals};
use self::values::ValueCheck;
use crate::big::entry::{EntryScanner, IndexSource};
use crate::cache::cached_file::CachedFile;
use crate::component::{Component, Descriptor};
use crate::data::chunk::DataFile;
use crate::data::reader::Data;
use crate::index::INDEX_STEP;
use crate::opener::Opener;
use crate::parts::digest::Digest;
use crate::parts::filter::Filter;
use crate::parts::statistics::Statistics;
use crate::parts::summary::Summary;
use crate::sstable::OpenOptions;
use crate::{Result, Version};

/// Checks the SSTable that the file at `path`, any of its components, belongs to.
///
/// `progress` is told how many of how many uncompressed bytes of data are done.
///
/// # Errors
/// Only where the file is nothing that this library reads: names that are not an SSTable's, versions,
/// partitioners and compressors that are not known. All else is in the report.
pub async fn verify(
    disk: &Disk,
    path: &Path,
    options: &OpenOptions,
    mut progress: impl FnMut(u64, u64),
) -> Result<Report> {
    let descriptor = Descriptor::parse(path)?;
    let mut report = Report::new(descriptor.clone());
    let components = Components::open(&Opener { disk, descriptor: &descriptor }, &mut report).await?;
    let verifier = Verifier { descriptor, options, report };
    Ok(verifier.run(components, &mut progress).await)
}

struct Verifier<'a> {
    descriptor: Descriptor,
    options: &'a OpenOptions,
    report: Report,
}

impl Verifier<'_> {
    async fn run(mut self, components: Components, progress: &mut dyn FnMut(u64, u64)) -> Report {
        let Components { statistics, data, is_readable, digest, index, summary, filter, own } = components;
        let index_file = index.clone();
        let order = statistics.as_ref().map(|statistics| Order {
            partitioner: statistics.validation.partitioner,
            key: statistics.header.schema.partition_key.clone(),
        });
        let index = match index {
            Some(file) => Some((self.index(&file, order.clone(), summary).await, self.pages(file))),
            None => None,
        };
        if let Some(file) = &data {
            self.report.data_bytes = file.len();
            self.report.file_bytes = file.file().len();
        }
        match (data, statistics, order) {
            (Some(file), Some(statistics), Some(order)) if is_readable => {
                let data = Rc::new(Data::new(file, &statistics, self.version()));
                let partitioner = order.partitioner;
                let totals = self.rows(data.clone(), &statistics, order, index, filter, progress).await;
                if let Some(index) = &index_file {
                    let of = Owner { data: &data, index, partitioner, digest, version: self.version() };
                    if let Some(file) = own.fences {
                        fences::check(&file, of, totals.has_partition_deletion, &mut self.report).await;
                    }
                    if let Some(file) = own.bloom_pages {
                        bloom_pages::check(&file, of, &mut self.report).await;
                    }
                    if let Some(file) = own.row_filter {
                        row_filter::check(&file, of, &mut self.report).await;
                    }
                }
                self.digest(&data.file, digest);
            }
            (file, _, _) => self.without_rows(file, index, digest).await,
        }
        self.report
    }

    async fn rows(
        &mut self,
        data: Rc<Data>,
        statistics: &Statistics,
        order: Order,
        index: Option<(IndexCheck, CachedFile)>,
        filter: Option<Filter>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Totals {
        let filter_path = self.descriptor.path_of(&Component::Filter);
        let mut pass = Pass {
            data,
            version: self.version(),
            order,
            index,
            filter: filter.map(|filter| (filter, filter_path)),
            step: self.options.read_buffer.max(1),
            report: &mut self.report,
            totals: Totals::default(),
            values: ValueCheck::default(),
            last_key: None,
            partition: None,
        };
        let is_whole = pass.run(progress).await;
        let totals = pass.totals;
        let path = self.descriptor.path_of(&Component::Statistics);
        let told = Told { path: &path, version: self.version(), statistics };
        totals.compare(told, is_whole, &mut self.report);
        totals
    }

    /// What is left where the rows cannot be understood: the index for itself, and the digest.
    async fn without_rows(
        &mut self,
        data: Option<DataFile>,
        index: Option<(IndexCheck, CachedFile)>,
        digest: Option<Digest>,
    ) {
        if let Some((index, _)) = index {
            index.finish(false, &mut self.report).await;
        }
        let Some(data) = data else { return };
        if let Err(error) = data.sum_up_to(data.len()).await {
            self.report.error(error);
        }
        for bad in data.take_bad_sums() {
            self.report.wrong(data.path(), bad.offset, bad.what);
        }
        self.digest(&data, digest);
    }

    fn digest(&mut self, data: &DataFile, digest: Option<Digest>) {
        let (Some(Digest(expected)), Some(found)) = (digest, data.digest()) else { return };
        if expected != found {
            let what = format!("the digest of Data.db: computed {found}, stored {expected}");
            self.report.wrong_file(&self.descriptor.path_of(&Component::Digest), what);
        }
    }

    async fn index(&mut self, file: &File, order: Option<Order>, summary: Option<Summary>) -> IndexCheck {
        let samples =
            summary.map(|summary| SampleCheck::new(self.descriptor.path_of(&Component::Summary), summary));
        let entries = EntryScanner::new(IndexSource::Streamed(file.clone()), 0..file.len(), INDEX_STEP);
        IndexCheck::new(file.path().to_path_buf(), entries, order, samples, &mut self.report).await
    }

    fn pages(&self, file: File) -> CachedFile {
        CachedFile::new(file, self.options.cache.clone())
    }

    fn version(&self) -> Version {
        self.descriptor.version
    }
}
