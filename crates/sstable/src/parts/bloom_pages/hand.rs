//! The pages of a shard's filters: in its cache, and the few that were brought last before it.
//!
//! Keys that follow each other, or one key that is looked for in a few SSTables, ask the same pages again. Whether a page
//! at hand has the token is a comparison; the first tokens of the SSTable are not searched, and the cache, with its table
//! and its notes of what was used, is not asked.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use model::Token;
use runtime::{Cache, Reserved, SingleFlight};

use super::page::Page;
use super::reader::Loaded;

/// How many pages are at hand. Published measurements are of four; each more makes a look that finds nothing longer.
const PLACES: usize = 4;

/// How lookups found their pages, so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lookups {
    /// They were at hand.
    pub at_hand: u64,
    /// They were those that their SSTables had last.
    pub latest: u64,
    /// The cache was asked, and had them.
    pub cached: u64,
    /// The cache was asked, and they had to be read.
    pub read: u64,
}

impl Lookups {
    /// How often the cache was asked.
    pub fn of_cache(&self) -> u64 {
        self.cached + self.read
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Lookups) -> Lookups {
        Lookups {
            at_hand: self.at_hand - earlier.at_hand,
            latest: self.latest - earlier.latest,
            cached: self.cached - earlier.cached,
            read: self.read - earlier.read,
        }
    }
}

/// Where a shard has the pages of its filters. Clones are the same.
#[derive(Clone)]
pub struct FilterPages(Rc<Inner>);

struct Inner {
    cache: Cache,
    keeps_at_hand: bool,
    places: RefCell<[Option<Rc<Page>>; PLACES]>,
    /// The place that had a page last, where the next look begins.
    hit: Cell<usize>,
    /// The place that is taken next.
    next: Cell<usize>,
    pinned: Cell<Option<Reserved>>,
    /// Who waits for the same pages of a file waits for one read.
    flights: Flights,
    lookups: Cell<Lookups>,
}

type Flights = SingleFlight<(u64, Range<u32>), Loaded>;

impl FilterPages {
    /// In this cache, and four of them at hand. Those count towards its budget, whether they are in it as well or not.
    pub fn new(cache: &Cache) -> FilterPages {
        FilterPages::with(cache, true)
    }

    /// In this cache only: for measurements of what it is good for to have some at hand.
    pub fn without_hand(cache: &Cache) -> FilterPages {
        FilterPages::with(cache, false)
    }

    fn with(cache: &Cache, keeps_at_hand: bool) -> FilterPages {
        FilterPages(Rc::new(Inner {
            cache: cache.clone(),
            keeps_at_hand,
            places: RefCell::default(),
            hit: Cell::default(),
            next: Cell::default(),
            pinned: Cell::default(),
            flights: SingleFlight::new(),
            lookups: Cell::default(),
        }))
    }

    /// How lookups found their pages so far.
    pub fn lookups(&self) -> Lookups {
        self.0.lookups.get()
    }

    /// The cache.
    pub(super) fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// What `ask` says of the page of a file that has a token, if it is at hand.
    #[inline]
    pub(super) fn ask<T>(&self, owner: u64, token: Token, ask: impl Fn(&Rc<Page>) -> T) -> Option<T> {
        let places = self.0.places.borrow();
        let hit = self.0.hit.get();
        for step in 0..PLACES {
            let place = (hit + step) % PLACES;
            let has = |page: &&Rc<Page>| page.owner() == owner && page.line(token).is_some();
            if let Some(page) = places[place].as_ref().filter(has) {
                self.0.hit.set(place);
                self.count(|lookups| lookups.at_hand += 1);
                return Some(ask(page));
            }
        }
        None
    }

    /// The reads that are under way.
    pub(super) fn flights(&self) -> &Flights {
        &self.0.flights
    }

    /// Whether pages that are not at hand are put there.
    pub(super) fn keeps_at_hand(&self) -> bool {
        self.0.keeps_at_hand
    }

    /// Keeps a page at hand, in the place of the one that was put there first.
    pub(super) fn keep(&self, page: &Rc<Page>) {
        let place = self.0.next.get();
        self.0.next.set((place + 1) % PLACES);
        self.0.hit.set(place);
        let before = self.0.places.borrow_mut()[place].replace(page.clone());
        drop(before);
        let pinned = self.0.pinned.take();
        self.0.pinned.set(pinned.or_else(|| Some(self.0.cache.reserve(PLACES * Page::WEIGHT))));
    }

    /// Lets go of the pages of a file that goes.
    pub(super) fn forget(&self, owner: u64) {
        for place in self.0.places.borrow_mut().iter_mut() {
            place.take_if(|page| page.owner() == owner);
        }
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut Lookups)) {
        let mut lookups = self.0.lookups.get();
        add(&mut lookups);
        self.0.lookups.set(lookups);
    }
}

impl fmt::Debug for FilterPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterPages").field("lookups", &self.lookups()).finish_non_exhaustive()
    }
}
