//! How rows stood last: most rows of a table, or of a file, stand as those before them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How rows stood last, as an outline of that kind.
#[derive(Debug)]
pub struct Habit<O> {
    outline: RefCell<Option<Rc<O>>>,
    seen: Cell<Seen>,
    /// So many runs are not asked, as rows seem to stand in many ways.
    pause: Cell<u32>,
}

/// A run of rows, of which each is asked whether it stands as is known.
#[derive(Debug)]
pub struct Run<'h, O> {
    habit: &'h Habit<O>,
    outline: Option<Rc<O>>,
    /// Before it; `None` where rows are not asked.
    seen: Option<Seen>,
    /// How many of it did not stand as was known.
    others: usize,
}

/// What was seen since it was last asked whether rows stand alike.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rows: usize,
    /// Those that did not stand as was known.
    others: usize,
    /// The place in the run behind the last row that did not, and its bytes, unless it was noted how it stands.
    last: Option<(usize, usize)>,
}

/// Whether rows stand alike is asked of so many. A look that finds another row takes a tenth of what it takes to take that one apart.
const ASKED_OF: usize = 32;

/// They do if not more than one in so many stands in another way: in runs shorter than that more is done for each run than it spares.
const ONE_IN: usize = 4;

/// So many runs of rows that do not are not asked.
const PAUSE: u32 = 32;

impl<O> Default for Habit<O> {
    fn default() -> Habit<O> {
        Habit { outline: RefCell::default(), seen: Cell::default(), pause: Cell::new(0) }
    }
}

impl<O> Habit<O> {
    /// A run of rows begins.
    #[inline]
    pub fn begin(&self) -> Run<'_, O> {
        let seen = (self.pause.get() == 0).then(|| self.seen.get());
        let outline = seen.and_then(|_| self.outline.borrow().clone());
        Run { habit: self, outline, seen, others: 0 }
    }
}

impl<O> Run<'_, O> {
    /// How rows stand, if that is known.
    #[inline(always)]
    pub fn outline(&self) -> Option<&Rc<O>> {
        self.outline.as_ref()
    }

    /// The row behind so many of the run stands in another way, of which the outline may have to be made, if it has one. That is known from then
    /// on if the row before it stood in another way as well, and has as many bytes, however they are counted. Whether it is known now.
    #[inline]
    pub fn other(&mut self, number: usize, bytes: usize, outline: impl FnOnce() -> Option<O>) -> bool {
        let Some(seen) = &mut self.seen else { return false };
        self.others += 1;
        if seen.last != Some((number, bytes)) {
            seen.last = Some((number + 1, bytes));
            return false;
        }
        seen.last = None;
        self.note(outline())
    }

    #[inline(never)]
    fn note(&mut self, outline: Option<O>) -> bool {
        let Some(outline) = outline.map(Rc::new) else { return false };
        self.habit.outline.replace(Some(outline.clone()));
        self.outline = Some(outline);
        true
    }

    /// It was of so many rows.
    #[inline]
    pub fn finish(self, rows: usize) {
        let Some(seen) = self.seen else {
            return self.habit.pause.set(self.habit.pause.get().saturating_sub(u32::from(rows > 0)));
        };
        // The row before the first one of the next run.
        let last = seen.last.filter(|(number, _)| *number == rows).map(|(_, bytes)| (0, bytes));
        let (rows, others) = (seen.rows + rows, seen.others + self.others);
        if rows < ASKED_OF {
            return self.habit.seen.set(Seen { rows, others, last });
        }
        let is_given_up = others * ONE_IN > rows;
        if is_given_up {
            self.habit.pause.set(PAUSE);
        }
        self.habit.seen.set(Seen { last: last.filter(|_| !is_given_up), ..Seen::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that stand in these ways, as long as they tell, as a run each so many of them; how many did not stand as was known.
    fn others_of(habit: &Habit<u32>, rows: &[u32], run: usize) -> usize {
        let mut others = 0;
        for rows in rows.chunks(run) {
            habit.begin().finish(0);
            let mut run = habit.begin();
            for (number, row) in rows.iter().enumerate() {
                if run.outline().is_none_or(|known| **known != *row) {
                    others += 1;
                    run.other(number, *row as usize, || Some(*row));
                }
            }
            run.finish(rows.len());
        }
        others
    }

    #[test]
    fn most_rows_that_stand_alike_are_not_looked_at_one_by_one() {
        for run in [1, 10, 90] {
            let habit = Habit::default();
            assert_eq!(others_of(&habit, &[7; 90], run), 2);
            assert_eq!(others_of(&habit, &[7; 90], run), 0, "the next run knows it");
            assert_eq!(others_of(&habit, &[8; 90], run), 2, "and what comes after it");
        }
    }

    /// However many others there are, in whatever ways these stand, two beside each other in one way among them.
    #[test]
    fn rows_here_and_there_that_stand_in_other_ways_change_nothing() {
        for run in [1, 10, 100, 1000] {
            let habit = Habit::default();
            others_of(&habit, &[7; 90], run);
            let rows: Vec<u32> = (0..1000).map(|i| if i % 5 == 0 { 100 + i / 10 } else { 7 }).collect();
            assert_eq!(others_of(&habit, &rows, run), 200, "{run}");
            assert_eq!(habit.pause.get(), 0);
        }
    }

    #[test]
    fn rows_that_do_not_stand_alike_are_not_asked_for_long() {
        let unlike: Vec<u32> = (0..40).collect();
        let in_turn: Vec<u32> = (0..40).map(|i| i % 2).collect();
        for (run, rows) in [1, 10, 90].into_iter().flat_map(|run| [(run, &unlike), (run, &in_turn)]) {
            let habit = Habit::default();
            others_of(&habit, &[0, 0], 1);
            assert!(others_of(&habit, rows, run) >= 20);
            let pause = habit.pause.get();
            assert!(pause > 0, "{run}");
            assert!(habit.begin().outline().is_none());
            // And then they are asked again.
            (0..pause).for_each(|_| _ = others_of(&habit, &[100], 1));
            assert_eq!(others_of(&habit, &[100; 90], run), 2);
            assert_eq!(others_of(&habit, &[100; 90], run), 0);
        }
    }

    #[test]
    fn rows_without_an_outline_leave_what_is_known() {
        let habit = Habit::default();
        others_of(&habit, &[7; 9], 9);
        let mut run = habit.begin();
        assert!((0..40).all(|number| !run.other(number, 1, || None)));
        assert_eq!(run.outline().map(|known| **known), Some(7));
    }
}
