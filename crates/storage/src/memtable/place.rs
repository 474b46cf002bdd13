//! A position that orders itself: what a memtable sorts ranges by.

use std::cmp::Ordering;
use std::rc::Rc;

use model::{Position, Schema};

/// A position among the rows of a table.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// [`Schema::rank`] of the position: most comparisons need no look at the position itself.
    rank: u64,
    /// Positions are few, and large.
    position: Box<Position>,
    schema: Rc<Schema>,
}

impl Place {
    pub(super) fn new(schema: &Rc<Schema>, position: Position) -> Place {
        Place { rank: schema.rank(&position), position: Box::new(position), schema: schema.clone() }
    }

    /// The position.
    pub(super) fn position(&self) -> &Position {
        &self.position
    }
}

impl Ord for Place {
    #[inline]
    fn cmp(&self, other: &Place) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| self.schema.compare(&self.position, &other.position))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}
