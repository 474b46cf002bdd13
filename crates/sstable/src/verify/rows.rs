//! One pass over Data.db: everything in it, beside the index.
//!
//! Behind damage the pass goes on at the next partition that the index knows.

use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use model::fragment::Validator;
use model::{
    Bytes, DeletionTime, Fragment, PartitionKey, PartitionStart, Position, RangeTombstoneChange, Row,
};

use super::blocks::BlockCheck;
use super::index::{IndexCheck, Order};
use super::report::Report;
use super::totals::Totals;
use super::values::ValueCheck;
use crate::cache::cached_file::CachedFile;
use crate::data::reader::Data;
use crate::data::row::Marker;
use crate::data::walk::{Item, Step, Walk};
use crate::parts::filter::Filter;
use crate::{Error, Version};

/// The pass over the rows.
pub(super) struct Pass<'a> {
    pub(super) data: Rc<Data>,
    pub(super) version: Version,
    pub(super) order: Order,
    pub(super) index: Option<(IndexCheck, CachedFile)>,
    pub(super) filter: Option<(Filter, PathBuf)>,
    pub(super) step: u64,
    pub(super) report: &'a mut Report,
    pub(super) totals: Totals,
    pub(super) values: ValueCheck,
    pub(super) last_key: Option<Bytes>,
    pub(super) partition: Option<Partition>,
}

/// The partition that the pass is in.
pub(super) struct Partition {
    start: u64,
    /// `None` once its rows were out of order.
    validator: Option<Validator>,
    open: DeletionTime,
    blocks: Option<BlockCheck>,
}

impl Pass<'_> {
    /// Goes through all of it. Whether everything could be read.
    pub(super) async fn run(&mut self, progress: &mut dyn FnMut(u64, u64)) -> bool {
        let len = self.data.file.len();
        let (mut start, mut is_whole) = (0, true);
        loop {
            let mut walk = Walk::new(self.data.clone(), start..len, self.step);
            let Some(bound) = self.walk_on(&mut walk, progress).await else { break };
            is_whole = false;
            match self.next_start(bound).await {
                Some(next) if next < len => start = next,
                _ => break,
            }
        }
        if let Err(error) = self.data.file.sum_up_to(len).await {
            self.report.error(error);
        }
        self.take_bad_sums();
        progress(len, len);
        if let Some((index, _)) = self.index.take() {
            index.finish(is_whole, self.report).await;
        }
        is_whole
    }

    /// Walks to the end, or to damage: then the least position from which it may go on.
    async fn walk_on(&mut self, walk: &mut Walk, progress: &mut dyn FnMut(u64, u64)) -> Option<u64> {
        loop {
            match walk.pop() {
                Ok(Step::Item(item, place)) => self.item(item, place).await,
                Ok(Step::Fill) => {
                    let filled = walk.fill().await;
                    self.take_bad_sums();
                    if let Err(error) = filled {
                        return Some(self.damage(error, walk.position()));
                    }
                    progress(walk.position(), self.data.file.len());
                }
                Ok(Step::End) => return None,
                Err(error) => {
                    self.report.error(error);
                    let start = self.partition.take().map_or(walk.position(), |partition| partition.start);
                    return Some(start + 1);
                }
            }
        }
    }

    /// Reading failed: all of a damaged chunk is lost, and behind a failure of the disk, everything.
    fn damage(&mut self, error: Error, position: u64) -> u64 {
        self.partition = None;
        let bound = match (&error, self.data.file.compression()) {
            (Error::Corrupt { offset, .. }, Some(info)) => {
                let len = u64::from(info.chunk_len());
                (offset / len + 1) * len
            }
            (Error::Corrupt { .. }, None) => position + 1,
            _ => u64::MAX,
        };
        self.report.error(error);
        bound
    }

    async fn next_start(&mut self, bound: u64) -> Option<u64> {
        let (index, _) = self.index.as_mut()?;
        let (next, passed) = index.pass_to(bound, self.report).await;
        self.report.unread_partitions += passed;
        let next = next?;
        if let Err(error) = self.data.file.sum_up_to(next).await {
            self.report.error(error);
            return None;
        }
        Some(next)
    }

    fn take_bad_sums(&mut self) {
        for bad in self.data.file.take_bad_sums() {
            self.report.wrong(self.data.file.path(), bad.offset, bad.what);
        }
    }

    async fn item(&mut self, item: Item, place: Range<u64>) {
        match item {
            Item::Head { key, deletion, static_row } => self.head(key, deletion, static_row, place).await,
            Item::Row(row) => self.row(row, place).await,
            Item::Marker(marker) => self.marker(marker, place).await,
            Item::End => self.end(place.start),
        }
    }

    async fn head(&mut self, key: Bytes, deletion: DeletionTime, row: Option<Row>, place: Range<u64>) {
        self.report.partitions += 1;
        self.check_key(&key, place.start);
        self.totals.partition(&key, deletion);
        let blocks = self.blocks(&key, deletion, &place).await;
        let mut validator = Validator::new(&self.data.schema);
        let start = PartitionStart { key: PartitionKey { token: 0, bytes: key }, deletion };
        let started = validator.check(&Fragment::PartitionStart(start));
        started.expect("a stream may begin with any partition");
        self.partition = Some(Partition {
            start: place.start,
            validator: Some(validator),
            open: DeletionTime::LIVE,
            blocks,
        });
        if let Some(row) = row.filter(|row| !row.is_empty()) {
            self.report.static_rows += 1;
            self.count(&row, true, place.start);
            self.order(Fragment::StaticRow(row), place.start);
        }
    }

    fn check_key(&mut self, key: &Bytes, at: u64) {
        let path = self.data.file.path();
        if self.last_key.as_ref().is_some_and(|last| !self.order.ascends(last, key)) {
            self.report.wrong(path, at, "a partition's token or key is not above the one before it");
        }
        self.last_key = Some(key.clone());
        if let Some((filter, filter_path)) = &self.filter
            && !filter.may_contain(model::key::murmur3(key))
        {
            self.report.wrong_file(filter_path, format!("the filter denies the key {key:?}"));
        }
        self.values.key(path, at, &self.data.schema, key, self.report);
    }

    /// The check of the partition's blocks, if its entry has any.
    async fn blocks(
        &mut self,
        key: &Bytes,
        deletion: DeletionTime,
        place: &Range<u64>,
    ) -> Option<BlockCheck> {
        let (index, file) = self.index.as_mut()?;
        let entry = index.meet(place.start, key, self.report).await?;
        if entry.promoted.is_empty() {
            return None;
        }
        let head = (place.end - place.start, deletion);
        BlockCheck::new(file.clone(), &self.data.codec, self.version, &entry, head, self.report).await
    }

    async fn row(&mut self, row: Row, place: Range<u64>) {
        let open = self.partition.as_ref().map_or(DeletionTime::LIVE, |partition| partition.open);
        self.placed(&Position::at(row.clustering.clone()), open, &place).await;
        // Readers step over rows of nothing, and so does whoever counts them.
        if !row.is_empty() {
            self.report.rows += 1;
            self.count(&row, false, place.start);
        }
        self.order(Fragment::Row(row), place.start);
    }

    async fn marker(&mut self, marker: Marker, place: Range<u64>) {
        self.report.range_tombstones += 1;
        let Some(partition) = &mut self.partition else { return };
        let (closes, opens) =
            (marker.closes.unwrap_or(DeletionTime::LIVE), marker.opens.unwrap_or(DeletionTime::LIVE));
        let was_open = std::mem::replace(&mut partition.open, opens);
        if was_open != closes {
            let what = "a range tombstone ends here that is not the open one";
            self.report.wrong(self.data.file.path(), place.start, what);
        }
        self.totals.deletion(closes);
        self.totals.deletion(opens);
        self.placed(&marker.position, opens, &place).await;
        let change = RangeTombstoneChange { position: marker.position, deletion: opens };
        self.order(Fragment::RangeTombstone(change), place.start);
    }

    /// What rows and markers have in common.
    async fn placed(&mut self, position: &Position, open: DeletionTime, place: &Range<u64>) {
        let data = self.data.clone();
        self.totals.position(&data.schema, position);
        self.values.clustering(data.file.path(), place.start, &data.schema, &position.prefix, self.report);
        let Some(partition) = &mut self.partition else { return };
        if let Some(blocks) = &mut partition.blocks {
            let place = place.start - partition.start..place.end - partition.start;
            blocks.item(&data.codec, place, position, open, self.report).await;
        }
    }

    fn count(&mut self, row: &Row, of_static: bool, at: u64) {
        self.report.cells += row.cells.len() as u64;
        self.totals.row(row);
        self.values.row(self.data.file.path(), at, &self.data.schema, of_static, row, self.report);
    }

    /// Checks the order of the partition's fragments; says what is wrong once.
    fn order(&mut self, fragment: Fragment, at: u64) {
        let Some(partition) = &mut self.partition else { return };
        let Some(validator) = &mut partition.validator else { return };
        if let Err(error) = validator.check(&fragment) {
            partition.validator = None;
            self.report.wrong(self.data.file.path(), at, error.to_string());
        }
    }

    fn end(&mut self, at: u64) {
        self.order(Fragment::PartitionEnd, at);
        if let Some(blocks) = self.partition.take().and_then(|partition| partition.blocks) {
            blocks.finish(self.report);
        }
    }
}
