//! Values of rows put where they are selected.
//!
//! ```text
//! first rows of a run──► Slotted──the values, one by one──┐
//!                └─────► Placer: where they stood         ├──► a row's values, by their slots
//!                          └──those of rows like these────┘
//! ```

use std::ops::Range;
use std::ptr;
use std::rc::Rc;

use model::Schema;
use model::flat::{FlatError, FlatRow, Habit, Layout, Outline, Run, ValueVisitor};
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

/// Puts the values of usual rows one after the other into the same slots, from where they stand in rows that stand alike.
pub(super) struct Placer<'s, 'a> {
    slots: &'s Slots,
    /// Of rows in flat bytes.
    run: Option<Run<'s, Outline>>,
    /// The layout of the last row, if it was given so.
    layout: Option<&'a Layout>,
    /// The slots of a row's own columns, and where their values are in such rows; `None` is null.
    values: SmallVec<[(usize, Option<Range<usize>>); FEW]>,
}

impl<'s, 'a> Placer<'s, 'a> {
    /// For rows that come as this one does, in flat bytes or laid out.
    #[inline]
    pub(super) fn new(slots: &'s Slots, habit: &'s Habit<Outline>, first: FlatRow<'a>) -> Placer<'s, 'a> {
        let run = first.layout().is_none().then(|| habit.begin());
        let mut placer = Placer { slots, run, layout: None, values: SmallVec::new() };
        placer.place_by_outline();
        placer
    }

    /// Puts the values of a usual row into the slots, where those of the last row are; it is the one of this number.
    ///
    /// # Errors
    /// If there is no row.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        number: usize,
        row: FlatRow<'a>,
        values: &mut Values<'a>,
    ) -> Result<(), FlatError> {
        let bytes = match (row.layout(), self.layout) {
            (Some((bytes, layout)), Some(last)) if ptr::eq(layout, last) => bytes,
            (Some((bytes, layout)), _) => {
                self.layout = Some(layout);
                self.place(layout);
                bytes
            }
            (None, None) => match self.outline().and_then(|outline| outline.bytes_of(row)) {
                Some(bytes) => bytes,
                None => return self.put_other(number, row, values),
            },
            (None, Some(_)) => return self.put_other(number, row, values),
        };
        for (slot, range) in &self.values {
            values[*slot] = range.clone().map(|range| &bytes[range]);
        }
        Ok(())
    }

    /// The same of a row that stands in another way, or not in bytes.
    #[inline(never)]
    fn put_other(
        &mut self,
        number: usize,
        row: FlatRow<'a>,
        values: &mut Values<'a>,
    ) -> Result<(), FlatError> {
        self.slots.all().for_each(|slot| values[slot] = None);
        let mut slotted = Slotted::new(self.slots, values);
        row.visit_usual(&mut slotted)?;
        let bytes = slotted.bytes;
        let was_laid_out = self.layout.take().is_some();
        let is_noted = self.run.as_mut().is_some_and(|run| run.other(number, bytes, || Outline::of(row)));
        if is_noted || was_laid_out {
            self.place_by_outline();
        }
        Ok(())
    }

    /// There were so many.
    pub(super) fn finish(self, rows: usize) {
        if let Some(run) = self.run {
            run.finish(rows);
        }
    }

    #[inline(always)]
    fn outline(&self) -> Option<&Rc<Outline>> {
        self.run.as_ref()?.outline()
    }

    fn place_by_outline(&mut self) {
        if let Some(outline) = self.outline().cloned() {
            self.place(outline.layout());
        }
    }

    /// Finds where the values are.
    fn place(&mut self, layout: &Layout) {
        let Slots { clustering, regulars } = self.slots;
        let of_key = |(at, slot): (usize, &Option<usize>)| {
            Some(((*slot)?, layout.clustering().get(at).cloned().flatten()))
        };
        let of_cell = |(at, slot): (usize, &Option<usize>)| Some(((*slot)?, layout.cells().get(at).cloned()));
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
    /// Of all values that were seen.
    bytes: usize,
}

impl<'v, 'a> Slotted<'v, 'a> {
    #[inline]
    pub(super) fn new(slots: &'v Slots, values: &'v mut Values<'a>) -> Slotted<'v, 'a> {
        Slotted { slots, values, clustering: 0, bytes: 0 }
    }
}

impl<'a> ValueVisitor<'a> for Slotted<'_, 'a> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        if let Some(Some(slot)) = self.slots.clustering.get(self.clustering) {
            self.values[*slot] = value;
        }
        self.clustering += 1;
        self.bytes += value.map_or(0, <[u8]>::len);
    }

    #[inline]
    fn cell(&mut self, column: u16, value: &'a [u8]) {
        if let Some(Some(slot)) = self.slots.regulars.get(usize::from(column)) {
            self.values[*slot] = Some(value);
        }
        self.bytes += value.len();
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

    /// However rows stand that come one after the other, each has its own values and no others: in flat bytes, or laid out in them.
    #[test]
    fn rows_that_stand_alike_have_their_own_values() {
        for seed in 0..300 {
            let random = &mut Random::new(seed);
            let forms: Vec<_> = (0..random.between(1, 3)).map(|_| lengths(random)).collect();
            let samples: Vec<_> = forms.iter().map(|form| row(form, 7)).collect();
            let outlines: Vec<_> =
                samples.iter().map(|row| Outline::of(FlatRow::alone(row).known_as(true))).collect();
            let (slots, habit) = (slots(random), Habit::default());
            for _ in 0..6 {
                let count = random.between(1, 60);
                let mut rows = Vec::new();
                for _ in 0..count {
                    let form = random.below(forms.len());
                    let layout = outlines[form].as_ref().filter(|_| random.percent(40)).map(Outline::layout);
                    rows.push((row(&forms[form], random.number() as u8), layout));
                }
                let flat = |bytes| FlatRow::alone(bytes).known_as(true);
                let given: Vec<_> = rows
                    .iter()
                    .map(|(bytes, layout)| match layout {
                        Some(layout) => FlatRow::laid_out(bytes, layout, 7),
                        None => flat(bytes),
                    })
                    .collect();
                let (mut placer, mut values) = (Placer::new(&slots, &habit, given[0]), [None; 6]);
                for (number, ((bytes, _), given)) in rows.iter().zip(given).enumerate() {
                    let flat = flat(bytes);
                    placer.put(number, given, &mut values).unwrap();
                    let mut expected = [None; 6];
                    flat.visit_usual(&mut Slotted::new(&slots, &mut expected)).unwrap();
                    assert_eq!(values, expected, "seed {seed}");
                }
                placer.finish(rows.len());
            }
        }
    }
}
