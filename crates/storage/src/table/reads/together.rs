//! Rows of one partition that are asked for at once: each SSTable is asked for all of them together.
//!
//! ```text
//! reads    a     b     c        of one partition, none of them in memory
//!          └─────┼─────┘
//!              Party            whoever is opened first reads for all
//! ```
//!
//! Where that goes wrong, each reads for itself, and tells what is wrong with its own row.

use std::cell::RefCell;
use std::rc::Rc;

use model::Schema;
use model::merge::Direction;
use runtime::SingleFlight;

use super::{Begun, ReadRequest, Table, Unread};
use crate::Result;
use crate::single_key::{self, OfRow};
use crate::sstable_set::{Candidates, SSTableSet};

/// Of so many requests that follow each other rows are brought together, and not of more: all are in memory before the first is given
/// out.
pub(super) const MOST: usize = 32;

/// Reads that go together.
struct Party {
    table: Table,
    schema: Rc<Schema>,
    requests: Vec<ReadRequest>,
    candidates: Candidates,
    /// The set that learns from it whether SSTables delete the partition.
    teaches: Option<Rc<SSTableSet>>,
    /// Who comes first reads; the others wait for it.
    flight: SingleFlight<(), ()>,
    /// What was read for each, until it takes it: nothing for anyone where that went wrong.
    read: RefCell<Option<Vec<Option<OfRow>>>>,
}

/// The part that one read has in it.
pub(super) struct Seat {
    party: Rc<Party>,
    at: usize,
}

/// Brings those together that are of rows of one partition, and near each other among the requests.
pub(super) fn bring_together(begun: &mut [Begun<'_>]) {
    for some in begun.chunks_mut(MOST) {
        let mut unread = Vec::new();
        for begun in some {
            if let Begun::Unread(one) = begun
                && goes_with_others(one)
            {
                unread.push(one);
            }
        }
        unread.sort_by(|a, b| {
            let (a_slice, b_slice) = (&a.request.slice, &b.request.slice);
            let rows = || a.schema.compare(&a_slice.start, &b_slice.start);
            a.request.key.cmp(&b.request.key).then_with(rows)
        });
        for rows in unread.chunk_by_mut(|a, b| goes_before(a, b)).filter(|rows| rows.len() > 1) {
            let party = Rc::new(Party {
                table: rows[0].table.clone(),
                schema: rows[0].schema.clone(),
                requests: rows.iter().map(|unread| (*unread.request).clone()).collect(),
                candidates: rows[0].members.clone(),
                teaches: rows.iter().find_map(|unread| unread.teaches.clone()),
                flight: SingleFlight::new(),
                read: RefCell::new(None),
            });
            for (at, unread) in rows.iter_mut().enumerate() {
                unread.seat = Some(Seat { party: party.clone(), at });
            }
        }
    }
}

/// Whether it is of one row, of which SSTables alone tell.
fn goes_with_others(unread: &Unread<'_>) -> bool {
    let Unread { request, schema, memtables, .. } = unread;
    memtables.is_empty()
        && request.direction == Direction::Forward
        && (!request.static_row || schema.statics.is_empty())
        && single_key::is_one_row(request, schema)
}

/// Whether both are rows of one partition, the first before the second, and the same is wanted of both, of the same SSTables.
fn goes_before(a: &Unread<'_>, b: &Unread<'_>) -> bool {
    let (a_request, b_request) = (&a.request, &b.request);
    a_request.key == b_request.key
        && a_request.wanted == b_request.wanted
        && a.members.are(&b.members)
        && a.schema.compare(&a_request.slice.end, &b_request.slice.start).is_le()
}

impl Seat {
    /// What SSTables say of the row; `None` if it was not read with the others.
    pub(super) async fn take(&self) -> Option<OfRow> {
        let party = &*self.party;
        if party.read.borrow().is_none() {
            let read = async || {
                let read = party.read_all().await.unwrap_or_default();
                party.read.replace(Some(read.into_iter().map(Some).collect()));
            };
            party.flight.run((), read).await;
        }
        party.read.borrow_mut().as_mut()?.get_mut(self.at)?.take()
    }
}

impl Party {
    async fn read_all(&self) -> Result<Vec<OfRow>> {
        let key = &self.requests[0].key;
        let mut candidates = self.candidates.clone();
        candidates.settle(key).await?;
        let (adaptive, members) = (&self.table.0.adaptive, candidates.members());
        let rows = single_key::read_together(&self.requests, adaptive, members, &self.schema).await?;
        if let Some(set) = &self.teaches
            && let Some(of_all) = rows.iter().find(|row| row.is_all)
        {
            set.note_deletion(key, of_all.partition_deletion());
        }
        if rows.iter().all(|row| row.sstables.is_empty()) {
            candidates.note_absent(key).await?;
        }
        Ok(rows)
    }
}
