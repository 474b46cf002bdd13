//! Values of rows put where they are selected.
//!
//! ```text
//! first rows of a run──► Slotted──the values, one by one──┐
//!                └─────► Alike: where they stood          ├──► a row's values, by their slots
//!                          └──those of rows like these────┘
//! ```

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use model::Schema;
use model::flat::{FlatError, FlatRow, Outline, ValueVisitor};
use smallvec::SmallVec;

use super::shape::Place;
use super::sink::Common;

/// Most tables have no more columns.
pub(super) const FEW: usize = 8;

/// The values of a row, each at its slot: the place of its column in the selection.
pub(super) type Values<'a> = [Option<&'a [u8]>];

/// Where in the selection the columns are that each row has of its own, by their places among those of their kind.
pub(super) struct Slots {
    clustering: Vec<Option<usize>>,
    regulars: Vec<Option<usize>>,
}

/// When so many rows, one after the other or in runs most of whose rows are so, did not stand as was known, it is noted how the last one does.
const NOTED: [usize; 2] = [2, 16];

/// To find out that rows do not stand alike takes a tenth of what they do. Behind more than those that are noted, so many runs are not asked.
const PAUSE: u32 = 32;

impl Slots {
    pub(super) fn new(places: &[Place], schema: &Schema) -> Slots {
        let (mut clustering, mut regulars) =
            (vec![None; schema.clustering.len()], vec![None; schema.regulars.len()]);
        for (slot, place) in places.iter().enumerate() {
            match *place {
                Place::Clustering(at) => clustering[at] = Some(slot),
                Place::Regular(at) => regulars[usize::from(at)] = Some(slot),
                Place::PartitionKey(_) | Place::Static(_) => {}
            }
        }
        Slots { clustering, regulars }
    }

    fn all(&self) -> impl Iterator<Item = usize> {
        self.clustering.iter().chain(&self.regulars).flatten().copied()
    }
}

/// A row of nulls but for what all rows of the partition have in common, in one of these places.
#[inline]
pub(super) fn values_of_all<'v, 'a>(
    of: &'a Common,
    few: &'v mut [Option<&'a [u8]>; FEW],
    many: &'v mut Vec<Option<&'a [u8]>>,
) -> &'v mut Values<'a> {
    let count = of.selection.places.len();
    let values = match few.get_mut(..count) {
        Some(values) => values,
        None => {
            many.resize(count, None);
            many
        }
    };
    for (at, value) in &of.shared {
        values[*at] = Some(&**value);
    }
    values
}

/// How rows of a table stood last.
#[derive(Default)]
pub(super) struct Habit {
    outline: RefCell<Option<Rc<Outline>>>,
    /// How many rows have not stood so since most of a run did.
    others: Cell<usize>,
    /// So many runs are not asked, as each row seems to stand in a way of its own.
    pause: Cell<u32>,
}

/// Puts the values of usual rows one after the other into the same slots, from where they stand in rows that stand alike.
pub(super) struct Alike<'s> {
    slots: &'s Slots,
    habit: &'s Habit,
    /// How the rows stand, if that is known.
    outline: Option<Rc<Outline>>,
    /// The slots of a row's own columns, and where their values are in such rows; `None` is null.
    values: SmallVec<[(usize, Option<Range<usize>>); FEW]>,
    /// How many rows did not stand so, with those of the runs before; `None` if that is not asked.
    others: Option<usize>,
}

impl<'s> Alike<'s> {
    #[inline]
    pub(super) fn new(slots: &'s Slots, habit: &'s Habit) -> Alike<'s> {
        let pause = habit.pause.get();
        habit.pause.set(pause.saturating_sub(1));
        let others = (pause == 0).then(|| habit.others.get());
        let outline = others.and_then(|_| habit.outline.borrow().clone());
        let mut alike = Alike { slots, habit, outline, values: SmallVec::new(), others };
        alike.place();
        alike
    }

    /// Puts the values of a usual row into the slots, where those of the last row are.
    ///
    /// # Errors
    /// If there is no row.
    #[inline(always)]
    pub(super) fn put<'a>(&mut self, row: FlatRow<'a>, values: &mut Values<'a>) -> Result<(), FlatError> {
        match self.outline.as_ref().and_then(|outline| outline.bytes_of(row)) {
            Some(bytes) => {
                for (slot, range) in &self.values {
                    values[*slot] = range.clone().map(|range| &bytes[range]);
                }
                Ok(())
            }
            None => self.put_other(row, values),
        }
    }

    /// The same of a row that stands in another way, or not in bytes.
    #[inline(never)]
    fn put_other<'a>(&mut self, row: FlatRow<'a>, values: &mut Values<'a>) -> Result<(), FlatError> {
        self.slots.all().for_each(|slot| values[slot] = None);
        row.visit_usual(&mut Slotted::new(self.slots, values))?;
        let Some(others) = &mut self.others else { return Ok(()) };
        *others += 1;
        if NOTED.contains(others) {
            self.outline = Outline::of(row).map(Rc::new);
            self.habit.outline.replace(self.outline.clone());
            self.place();
        }
        Ok(())
    }

    /// Of so many rows.
    pub(super) fn finish(self, rows: usize) {
        let Some(others) = self.others else { return };
        let are_alike = (others - self.habit.others.get()) * 2 <= rows;
        let is_given_up = !are_alike && others > NOTED[1];
        if is_given_up {
            self.habit.pause.set(PAUSE);
        }
        self.habit.others.set(if are_alike || is_given_up { 0 } else { others });
    }

    /// Finds where the values are by the outline.
    fn place(&mut self) {
        let Some(outline) = &self.outline else { return };
        let Slots { clustering, regulars } = self.slots;
        let of_key = |(at, slot): (usize, &Option<usize>)| {
            Some(((*slot)?, outline.clustering().get(at).cloned().flatten()))
        };
        let of_cell =
            |(at, slot): (usize, &Option<usize>)| Some(((*slot)?, outline.cells().get(at).cloned()));
        self.values.clear();
        self.values.extend(clustering.iter().enumerate().filter_map(of_key));
        self.values.extend(regulars.iter().enumerate().filter_map(of_cell));
    }
}

/// Puts the values of a row where they are selected.
pub(super) struct Slotted<'v, 'a> {
    slots: &'v Slots,
    values: &'v mut Values<'a>,
    /// How many clustering columns were seen.
    clustering: usize,
}

impl<'v, 'a> Slotted<'v, 'a> {
    #[inline]
    pub(super) fn new(slots: &'v Slots, values: &'v mut Values<'a>) -> Slotted<'v, 'a> {
        Slotted { slots, values, clustering: 0 }
    }
}

impl<'a> ValueVisitor<'a> for Slotted<'_, 'a> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        if let Some(Some(slot)) = self.slots.clustering.get(self.clustering) {
            self.values[*slot] = value;
        }
        self.clustering += 1;
    }

    #[inline]
    fn cell(&mut self, column: u16, value: &'a [u8]) {
        if let Some(Some(slot)) = self.slots.regulars.get(usize::from(column)) {
            self.values[*slot] = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;
    use model::flat::UsualRow;
    use testkit::generate::random::Random;

    use super::*;

    /// The lengths of a row's values: of its clustering key, of which some are null, and of its cells.
    type Lengths = (Vec<Option<usize>>, Vec<usize>);

    fn lengths(random: &mut Random) -> Lengths {
        let clustering = (0..2).map(|_| *random.one_of(&[None, Some(1), Some(4), Some(70)])).collect();
        let count = random.between(0, 3);
        (clustering, (0..count).map(|_| *random.one_of(&[1, 4, 70])).collect())
    }

    /// The flat bytes of a row with such values, all of this byte.
    fn row((clustering, cells): &Lengths, byte: u8) -> Bytes {
        let value = |len: &usize| vec![byte; *len];
        let clustering: Vec<_> = clustering.iter().map(|len| len.as_ref().map(value)).collect();
        let cells: Vec<_> = cells.iter().map(value).collect();
        let clustering: Vec<_> = clustering.iter().map(Option::as_deref).collect();
        let cells: Vec<_> = cells.iter().map(|value| &**value).collect();
        let mut out = Vec::new();
        UsualRow { clustering: &clustering, timestamp: i64::from(byte), cells: &cells }.put(&mut out);
        Bytes::from(out)
    }

    /// Some of the columns, each at a slot of its own.
    fn slots(random: &mut Random) -> Slots {
        let mut free: Vec<usize> = (0..6).collect();
        let mut columns = |count: usize| {
            let slot = |_| {
                let slot = free.swap_remove(random.below(free.len()));
                random.percent(80).then_some(slot)
            };
            (0..count).map(slot).collect()
        };
        Slots { clustering: columns(2), regulars: columns(3) }
    }

    /// However rows stand that come one after the other, each has its own values and no others.
    #[test]
    fn rows_that_stand_alike_have_their_own_values() {
        for seed in 0..300 {
            let random = &mut Random::new(seed);
            let forms: Vec<_> = (0..random.between(1, 3)).map(|_| lengths(random)).collect();
            let (slots, habit) = (slots(random), Habit::default());
            for _ in 0..6 {
                let count = random.between(1, 60);
                let rows: Vec<_> =
                    (0..count).map(|_| row(random.one_of(&forms), random.number() as u8)).collect();
                let (mut alike, mut values) = (Alike::new(&slots, &habit), [None; 6]);
                for bytes in &rows {
                    let row = FlatRow::alone(bytes).known_as(true);
                    alike.put(row, &mut values).unwrap();
                    let mut expected = [None; 6];
                    row.visit_usual(&mut Slotted::new(&slots, &mut expected)).unwrap();
                    assert_eq!(values, expected, "seed {seed}");
                }
                alike.finish(rows.len());
            }
        }
    }

    /// Puts these rows, as a run each so many of them; how many were looked at one by one.
    fn others_of(habit: &Habit, rows: &[Bytes], run: usize) -> usize {
        let slots = Slots { clustering: vec![Some(0)], regulars: vec![Some(1)] };
        let mut others = 0;
        for rows in rows.chunks(run) {
            let (mut alike, mut values) = (Alike::new(&slots, habit), [None; 2]);
            for row in rows {
                let row = FlatRow::alone(row).known_as(true);
                others += usize::from(alike.outline.as_ref().and_then(|of| of.bytes_of(row)).is_none());
                alike.put(row, &mut values).unwrap();
            }
            alike.finish(rows.len());
        }
        others
    }

    fn alike() -> Vec<Bytes> {
        (0..90).map(|byte| row(&(vec![Some(4)], vec![70]), byte)).collect()
    }

    fn unlike() -> Vec<Bytes> {
        (0..90).map(|byte| row(&(vec![Some(4)], vec![1 + byte]), byte as u8)).collect()
    }

    #[test]
    fn most_rows_that_stand_alike_are_not_looked_at_one_by_one() {
        for run in [1, 10, 90] {
            let habit = Habit::default();
            let others = [(); 2].map(|()| others_of(&habit, &alike(), run));
            assert_eq!(others, [NOTED[0], 0], "the next run knows it");
        }
    }

    #[test]
    fn rows_that_do_not_stand_alike_are_not_asked_for_long() {
        for run in [1, 10, 90] {
            let habit = Habit::default();
            assert_eq!(others_of(&habit, &unlike(), run), 90);
            let pause = habit.pause.get();
            assert!(pause > 0 || run == 1, "{pause}");
            // And then they are asked again.
            (0..pause).for_each(|_| _ = others_of(&habit, &alike()[..1], 1));
            assert!(others_of(&habit, &alike(), run) <= NOTED[1]);
            assert_eq!(others_of(&habit, &alike(), run), 0);
        }
    }
}
