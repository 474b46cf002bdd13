//! A position that orders itself: what the maps of a memtable are sorted by.

use std::cmp::Ordering;
use std::rc::Rc;

use model::{Clustering, Position, Schema};

/// A position among the rows of a table.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// [`Schema::rank`] of the position: most comparisons need no look at the position itself.
    rank: u64,
    pub(super) position: Position,
    schema: Rc<Schema>,
}

impl Place {
    pub(super) fn new(schema: &Rc<Schema>, position: Position) -> Place {
        Place { rank: schema.rank(&position), position, schema: schema.clone() }
    }

    /// Where a row stands.
    pub(super) fn of_row(schema: &Rc<Schema>, clustering: Clustering) -> Place {
        Place::new(schema, Position::at(clustering))
    }
}

impl Ord for Place {
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
