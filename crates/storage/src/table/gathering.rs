//! Gathers the tokens of SSTables that overlap, while reads go on: once they have taken so many looks that it pays.

use std::rc::{Rc, Weak};

use runtime::Signal;

use super::{Inner, Table};
use crate::sstable_set::{Gathered, Gatherer, SSTableSet};

/// Wakes who gathers.
#[derive(Debug, Default)]
pub(super) struct Gathering(Rc<Signal>);

impl Gathering {
    /// There is something to gather.
    #[cold]
    fn wake(&self) {
        self.0.notify();
    }
}

impl Drop for Gathering {
    /// The table is gone, and so is what gathers for it.
    fn drop(&mut self) {
        self.0.notify();
    }
}

impl Table {
    /// Begins to gather whenever it pays, as long as the table is there.
    pub(super) fn begin_gathering(&self) {
        let (table, woken) = (Rc::downgrade(&self.0), self.0.gathering.0.clone());
        runtime::spawn(async move {
            while let Some(table) = next(&table, &woken).await {
                table.gather().await;
            }
        })
        .detach();
    }

    /// Notes that filters were looked at.
    #[inline]
    pub(super) fn note_looks(&self, set: &SSTableSet) {
        if set.pays_to_gather() {
            self.0.gathering.wake();
        }
    }

    /// A set takes the place of the table's.
    pub(super) fn put_set(&self, set: SSTableSet) {
        // Of what it has gathered, that which the new one has no more gives its memory back now.
        drop(self.0.set.take());
        let is_kept = self.0.definition.borrow().caches_indexes;
        let room = if is_kept { self.0.context.maplet_memory.left() / Gathered::BYTES } else { 0 };
        *self.0.set.borrow_mut() = Rc::new(set.gathering(room as u64));
    }

    async fn gather(&self) {
        let (tokens, members) = (self.tokens(), self.sstables().to_gather());
        let partitions = members.iter().map(|member| member.facts.partitions).sum();
        let mut gatherer = Gatherer::new(tokens, partitions, &self.0.context.maplet_memory);
        gatherer.gather(&members).await;
        let gathered = gatherer.finish().await;
        // Some SSTables may be gone meanwhile, but of no other tokens may the table be.
        if self.tokens() == tokens {
            let set = self.sstables().with_gathered(gathered);
            self.put_set(set);
        }
    }
}

/// The table, once it has something to gather; `None` once it is gone.
async fn next(table: &Weak<Inner>, woken: &Signal) -> Option<Table> {
    woken
        .until(|| match table.upgrade() {
            Some(inner) => inner.set.borrow().pays_to_gather().then(|| Some(Table(inner.clone()))),
            None => Some(None),
        })
        .await
}
