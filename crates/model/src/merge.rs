//! Several streams as one, as Cassandra 5.0 reconciles them.
//!
//! What has but one source passes straight through.
//!
//! Only what is *shadowed* goes: data and deletions that a greater deletion covers. Tombstones stay,
//! and so do expired cells; dropping those is another step's business, which must know what lies outside
//! of the merge.
//!
//! | module | idea |
//! |---|---|
//! | `several` | the merge of two sources and more |
//! | [`reconcile`] | which of two cells wins, and several rows as one |
//! | [`counter`] | counter contexts, shard by shard |
//! | [`columns`] | sources whose columns differ |
//! | `ranges` | the range tombstones of all sources as one sequence |
//! | `compatible` | which type can hold the values of another |
//! | `heap`, `join` | a heap of source numbers; waiting for several sources at once |

use std::rc::Rc;

use crate::flat::RowTaker;
use crate::{Fragment, FragmentReader, Next, Schema};

pub mod columns;
mod compatible;
pub mod counter;
mod heap;
mod join;
mod ranges;
pub mod reconcile;
mod several;

pub use columns::{ColumnMap, Mapped, MergeError, UnifiedSchema, unknown_columns, with_unknown};
pub use compatible::{holds, holds_keys};
pub use reconcile::RowMerger;

use several::Several;

/// Which way the rows of a partition run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Direction {
    /// Positions ascend.
    #[default]
    Forward,
    /// Positions descend; a range tombstone change means that from its position *downwards* its deletion
    /// is in force. The static row still comes first, and partitions still ascend.
    Reverse,
}

/// Streams of fragments as one, all of the same schema and direction.
///
/// Each source keeps the invariants of a stream (see [`crate::fragment::Validator`]). Where two changes
/// of one source stand at one place, so may those of the merge.
#[derive(Debug)]
pub struct Merge<R>(Sources<R>);

#[derive(Debug)]
enum Sources<R> {
    One(R),
    Several(Box<Several<R>>),
}

impl<R: FragmentReader> Merge<R> {
    /// The merge of `sources`, which all have rows of `schema` in this direction.
    pub fn new(schema: &Rc<Schema>, direction: Direction, mut sources: Vec<R>) -> Merge<R> {
        match (sources.len(), sources.pop()) {
            (1, Some(only)) => Merge::of_one(only),
            (_, last) => {
                sources.extend(last);
                Merge(Sources::Several(Box::new(Several::new(schema, direction, sources))))
            }
        }
    }

    /// What one source gives.
    pub fn of_one(source: R) -> Merge<R> {
        Merge(Sources::One(source))
    }
}

impl<R: FragmentReader> FragmentReader for Merge<R> {
    type Error = R::Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next, R::Error> {
        match &mut self.0 {
            Sources::One(source) => source.pop(place),
            Sources::Several(merge) => merge.pop(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match &mut self.0 {
            Sources::One(source) => source.pop_flat(take),
            Sources::Several(merge) => merge.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<(), R::Error> {
        match &mut self.0 {
            Sources::One(source) => source.fill().await,
            Sources::Several(merge) => merge.fill().await,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
