//! What SSTables have of all partitions between two tokens.

use std::rc::Rc;

use model::merge::{Direction, Mapped};
use model::{PartitionKey, Schema, Token};
use sstable::data::reader::DataReader;

use crate::Result;
use crate::batches::{LaneReader, Opens, open_lanes};
use crate::lanes;
use crate::source::{SCAN_READ_AHEAD, share};
use crate::sstable_set::{Member, SSTableSet};

/// Where a scan begins.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// Above a token; at the first partition where there is none.
    Above(Option<Token>),
    /// Behind a partition.
    Behind(PartitionKey),
}

/// How the SSTables of a scan are opened.
#[derive(Debug)]
pub(crate) struct Scans {
    pub(crate) start: Start,
    pub(crate) last: Token,
    /// How many rows will be taken at the most, if that is known.
    pub(crate) limit: Option<u64>,
}

/// All that SSTables of a set have from a start up to a token: one stream for each lane of them.
pub(crate) async fn open_all(
    set: &SSTableSet,
    scans: Scans,
    schema: &Rc<Schema>,
) -> Result<Vec<LaneReader<Scans>>> {
    let members = set.members().iter().filter(|member| scans.start.finds(member, scans.last));
    let lanes = lanes::of_scan(members, schema);
    open_lanes(scans, lanes, Direction::Forward, schema).await
}

impl Start {
    /// Above which token all is; `None` if it may have any.
    fn after(&self) -> Option<Token> {
        match self {
            Start::Above(after) => *after,
            Start::Behind(key) => key.token.checked_sub(1),
        }
    }

    /// Whether an SSTable may have something between this and a token.
    fn finds(&self, member: &Member, last: Token) -> bool {
        match self {
            Start::Above(after) => member.overlaps(*after, last),
            Start::Behind(key) => member.overlaps(None, last) && member.last > *key,
        }
    }
}

impl Opens for Scans {
    type Reader = DataReader;

    async fn open(&self, member: &Rc<Member>, at_once: usize) -> Result<Option<Mapped<DataReader>>> {
        let sstable = &member.sstable;
        // Its first and its last key are in memory.
        let start = match &self.start {
            Start::Above(Some(after)) if member.first.token <= *after => sstable.data_above(*after).await?,
            Start::Behind(key) if member.first <= *key => sstable.data_behind(key).await?,
            _ => 0,
        };
        let end = match member.last.token <= self.last {
            true => sstable.data().file.len(),
            false => sstable.data_above(self.last).await?,
        };
        if start > 0 && start == sstable.data().file.len() {
            // The last partition is behind where it begins.
            return Err(sstable.cut_short().into());
        }
        let reader = sstable.scan_range(start..end, share(SCAN_READ_AHEAD, at_once))?;
        let reader = match self.limit {
            Some(rows) => reader.at_first(sstable.len_of_scanned(rows)),
            None => reader,
        };
        let reader = reader.within(member.tokens(self.start.after(), self.last));
        Ok(Some(Mapped::new(reader, member.columns.clone())))
    }

    fn worth(&self, member: &Member) -> f64 {
        member.sstable.data().file.len() as f64 / share(SCAN_READ_AHEAD, 1) as f64
    }
}
