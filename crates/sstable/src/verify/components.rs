//! The components of an SSTable that may be damaged: each opened for itself, so that one which cannot
//! be read does not keep the others from being checked.

use runtime::{Cache, File};

use super::report::Report;
use crate::component::Component;
use crate::data::chunk::DataFile;
use crate::opener::Opener;
use crate::parts::digest::Digest;
use crate::parts::filter::Filter;
use crate::parts::statistics::{Partitioner, Statistics};
use crate::parts::summary::Summary;
use crate::{Error, Result};

/// What could be opened.
pub(super) struct Components {
    pub(super) statistics: Option<Statistics>,
    pub(super) data: Option<DataFile>,
    /// Whether it is known how the data is compressed.
    pub(super) is_readable: bool,
    pub(super) digest: Option<Digest>,
    pub(super) index: Option<File>,
    pub(super) summary: Option<Summary>,
    pub(super) filter: Option<Filter>,
    pub(super) own: Own,
}

/// Those of our own.
pub(super) struct Own {
    pub(super) fences: Option<File>,
    pub(super) bloom_pages: Option<File>,
    pub(super) row_filter: Option<File>,
}

impl Components {
    /// Opens what can be opened and reports what cannot.
    pub(super) async fn open(opener: &Opener<'_>, report: &mut Report) -> Result<Components> {
        let listed = listed(opener, report).await?;
        let statistics = report.take(opener.statistics(None).await)?;
        let (data, is_readable) = data(opener, &listed, report).await?;
        // Without statistics the order of the keys is not known, and is not checked.
        let partitioner =
            statistics.as_ref().map_or(Partitioner::Local, |statistics| statistics.validation.partitioner);
        let summary = report.take(opener.summary(partitioner).await)?.flatten();
        let filter = report.take(opener.filter().await)?.flatten();
        let digest = report.take(opener.digest().await)?.flatten();
        let index = report.take(opener.open(&Component::Index, "it tells where the partitions are").await)?;
        let own = Own {
            fences: own(opener, &Component::Fences, report).await?,
            bloom_pages: own(opener, &Component::BloomPages, report).await?,
            row_filter: own(opener, &Component::RowFilter, report).await?,
        };
        Ok(Components { statistics, data, is_readable, digest, index, summary, filter, own })
    }
}

/// A component of our own, if it is there.
async fn own(opener: &Opener<'_>, component: &Component, report: &mut Report) -> Result<Option<File>> {
    match opener.has(component) {
        true => report.take(opener.open(component, "it was there").await),
        false => Ok(None),
    }
}

/// The components that TOC.txt lists, once they are compared with the files that are there.
async fn listed(opener: &Opener<'_>, report: &mut Report) -> Result<Vec<Component>> {
    let path_of = |component: &Component| opener.descriptor.path_of(component);
    let toc = path_of(&Component::Toc);
    let there = report.take(opener.descriptor.list(opener.disk))?.unwrap_or_default();
    for component in &there {
        if let Component::Other(_) = component {
            report.note(&path_of(component), None, "this component is not known and not checked");
        }
    }
    let listed = match opener.read(&Component::Toc).await {
        Ok(None) => {
            report.note(&toc, None, "there is none: the files of the folder stand in for it");
            None
        }
        Ok(Some((path, bytes))) => report.take(Component::parse_toc(&path, &bytes))?,
        Err(error) => report.take(Err(error))?,
    };
    let Some(listed) = listed else { return Ok(there) };
    let unlisted = |component: &&Component| component.is_listed() && !listed.contains(component);
    for component in there.iter().filter(unlisted) {
        report.note(&path_of(component), None, "TOC.txt does not list it");
    }
    note_missing(opener, &listed, &there, report);
    Ok(listed)
}

/// Components without which an SSTable can be read: what they would tell cannot be checked.
fn note_missing(opener: &Opener<'_>, listed: &[Component], there: &[Component], report: &mut Report) {
    let compressed = there.contains(&Component::CompressionInfo);
    let expected = [Component::Filter, Component::Summary, Component::Digest, Component::Crc];
    let expected = expected.iter().filter(|&component| !(compressed && *component == Component::Crc));
    let others = listed.iter().filter(|component| matches!(component, Component::Other(_) | Component::Crc));
    let mut missing: Vec<&Component> =
        expected.chain(others).filter(|component| !there.contains(component)).collect();
    missing.sort();
    missing.dedup();
    for component in missing {
        let path = opener.descriptor.path_of(component);
        let what = if listed.contains(component) {
            "there is none, though TOC.txt lists it"
        } else {
            "there is none"
        };
        report.note(&path, None, what);
    }
}

/// Data.db, and whether its rows can be read.
async fn data(
    opener: &Opener<'_>,
    listed: &[Component],
    report: &mut Report,
) -> Result<(Option<DataFile>, bool)> {
    match opener.data_file(&Cache::new(0), true).await {
        Ok(data) if data.compression().is_some() => return Ok((Some(data.summed(None)), true)),
        Ok(data) => {
            let crc = report.take(opener.crc(data.len()).await)?.flatten();
            return Ok((Some(data.summed(crc)), true));
        }
        Err(error) => report.take(Err::<(), Error>(error))?,
    };
    let is_compressed =
        listed.contains(&Component::CompressionInfo) || opener.has(&Component::CompressionInfo);
    if !opener.has(&Component::Data) {
        return Ok((None, false));
    }
    let file = report.take(opener.open(&Component::Data, "it holds the rows").await)?;
    Ok((file.map(|file| DataFile::plain(file, None).summed(None)), !is_compressed))
}
