//! Gathers the tokens of SSTables that overlap, while reads go on: once they have taken so many looks that it pays.

use std::rc::{Rc, Weak};

use runtime::Signal;

use super::{Inner, Table};
use crate::shared::Tokens;
use crate::sstable_set::{Gathered, Gatherer, Member, Room, SSTableSet};

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

/// What is being gathered for a table.
struct Begun {
    tokens: Tokens,
    members: Vec<Rc<Member>>,
    gatherer: Gatherer,
}

impl Table {
    /// Begins to gather whenever it pays, as long as the table is there.
    pub(super) fn begin_gathering(&self) {
        let (table, woken) = (Rc::downgrade(&self.0), self.0.gathering.0.clone());
        runtime::spawn_vital(async move {
            while let Some(begun) = next(&table, &woken).await {
                if let Some(begun) = begun {
                    gather(&table, begun).await;
                }
            }
        })
        .detach();
    }

    /// Notes that filters were looked at.
    #[inline]
    pub(super) fn note_looks(&self, set: &SSTableSet) {
        if set.pays_to_plan() {
            self.0.gathering.wake();
        }
    }

    /// What is to be gathered now, if anything is.
    fn begin_to_gather(&self) -> Option<Begun> {
        let (memory, tokens) = (&self.0.context.maplet_memory, self.tokens());
        let room = if self.definition().caches_indexes { Room::of(memory) } else { Room::NONE };
        let (members, partitions) = self.sstables().to_gather(room)?;
        Some(Begun { tokens, members, gatherer: Gatherer::new(tokens, partitions, memory) })
    }

    /// Takes what was gathered of the partitions with these tokens.
    fn take_gathered(&self, tokens: Tokens, gathered: Gathered) {
        // Some SSTables may be gone meanwhile, but of no other tokens may the table be.
        if self.tokens() == tokens && self.definition().caches_indexes {
            let set = self.sstables().with_gathered(gathered);
            *self.0.set.borrow_mut() = Rc::new(set);
        }
    }
}

/// Whether something is to be gathered, and what, once that is to be asked; `None` once the table is gone.
async fn next(table: &Weak<Inner>, woken: &Signal) -> Option<Option<Begun>> {
    woken
        .until(|| match table.upgrade() {
            Some(inner) => {
                let is_asked = inner.set.borrow().pays_to_plan();
                is_asked.then(|| Some(Table(inner).begin_to_gather()))
            }
            None => Some(None),
        })
        .await
}

/// Gathers, as long as the table is there.
async fn gather(table: &Weak<Inner>, begun: Begun) {
    let Begun { tokens, members, mut gatherer } = begun;
    for some in members.chunks(Gatherer::AT_ONCE) {
        gatherer.add(some).await;
        if table.strong_count() == 0 {
            return;
        }
    }
    drop(members);
    let gathered = gatherer.finish().await;
    if let Some(inner) = table.upgrade() {
        Table(inner).take_gathered(tokens, gathered);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{CqlType, Schema};
    use runtime::{Cache, SimOptions, run_simulated};
    use sstable::Version;

    use super::*;
    use crate::commit_log::TableId;
    use crate::{Context, Definition, Generations};

    #[test]
    fn who_gathers_ends_with_the_table() {
        run_simulated(SimOptions::default(), async |shard| {
            let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(1 << 20));
            shard.disk().create_dir_all(Path::new("/d")).await?;
            let schema = Rc::new(Schema::new(CqlType::Int, vec![], vec![], vec![]));
            let definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
            let table = Table::open(&context, Path::new("/d"), definition, &Generations::default()).await?;
            let woken = Rc::downgrade(&table.0.gathering.0);
            runtime::yield_now().await;
            assert_eq!(woken.strong_count(), 2);
            drop(table);
            runtime::yield_now().await;
            assert_eq!(woken.strong_count(), 0);
            Ok::<_, crate::Error>(())
        })
        .unwrap()
        .unwrap();
    }
}
