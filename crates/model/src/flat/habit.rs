//! How rows stood last: most rows of a table, or of a file, stand as those before them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How rows stood last, as an outline of that kind.
#[derive(Debug)]
pub struct Habit<O> {
    outline: RefCell<Option<Rc<O>>>,
    /// How many rows have not stood so since most of a run did.
    others: Cell<usize>,
    /// So many runs are not asked, as each row seems to stand in a way of its own.
    pause: Cell<u32>,
}

/// A run of rows, of which each is asked whether it stands as is known.
#[derive(Debug)]
pub struct Run<'h, O> {
    habit: &'h Habit<O>,
    outline: Option<Rc<O>>,
    /// How many rows did not stand so, with those of the runs before; `None` if that is not asked.
    others: Option<usize>,
}

/// When so many rows, one after the other or in runs most of whose rows are so, did not stand as was known, it is noted how the last one does.
const NOTED: [usize; 2] = [2, 16];

/// To find out that rows do not stand alike takes a tenth of what they do. Behind more than those that are noted, so many runs are not asked.
const PAUSE: u32 = 32;

impl<O> Default for Habit<O> {
    fn default() -> Habit<O> {
        Habit { outline: RefCell::new(None), others: Cell::new(0), pause: Cell::new(0) }
    }
}

impl<O> Habit<O> {
    /// A run of rows begins.
    #[inline]
    pub fn begin(&self) -> Run<'_, O> {
        let others = (self.pause.get() == 0).then(|| self.others.get());
        let outline = others.and_then(|_| self.outline.borrow().clone());
        Run { habit: self, outline, others }
    }
}

impl<O> Run<'_, O> {
    /// How rows stand, if that is known.
    #[inline(always)]
    pub fn outline(&self) -> Option<&Rc<O>> {
        self.outline.as_ref()
    }

    /// A row stands in another way, of which the outline may have to be made, if it has one. Whether that is what is known now.
    #[inline]
    pub fn other(&mut self, outline: impl FnOnce() -> Option<O>) -> bool {
        let Some(others) = &mut self.others else { return false };
        *others += 1;
        let is_noted = NOTED.contains(others);
        is_noted && self.note(outline())
    }

    #[inline(never)]
    fn note(&mut self, outline: Option<O>) -> bool {
        let Some(outline) = outline.map(Rc::new) else { return false };
        self.habit.outline.replace(Some(outline.clone()));
        self.outline = Some(outline);
        true
    }

    /// It was of so many rows. One of none says nothing.
    #[inline]
    pub fn finish(self, rows: usize) {
        if rows == 0 {
            return;
        }
        let Some(others) = self.others else {
            return self.habit.pause.set(self.habit.pause.get().saturating_sub(1));
        };
        let are_alike = others.saturating_sub(self.habit.others.get()) * 2 <= rows;
        let is_given_up = !are_alike && others > NOTED[1];
        if is_given_up {
            self.habit.pause.set(PAUSE);
        }
        self.habit.others.set(if are_alike || is_given_up { 0 } else { others });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that stand in these ways, as a run each so many of them; how many did not stand as was known.
    fn others_of(habit: &Habit<u32>, rows: &[u32], run: usize) -> usize {
        let mut others = 0;
        for rows in rows.chunks(run) {
            habit.begin().finish(0);
            let mut run = habit.begin();
            for row in rows {
                if run.outline().is_none_or(|known| **known != *row) {
                    others += 1;
                    run.other(|| Some(*row));
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
            let others = [(); 2].map(|()| others_of(&habit, &[7; 90], run));
            assert_eq!(others, [NOTED[0], 0], "the next run knows it");
        }
    }

    #[test]
    fn rows_that_do_not_stand_alike_are_not_asked_for_long() {
        let unlike: Vec<u32> = (0..90).collect();
        for run in [1, 10, 90] {
            let habit = Habit::default();
            assert_eq!(others_of(&habit, &unlike, run), 90);
            let pause = habit.pause.get();
            assert!(pause > 0 || run == 1, "{pause}");
            // And then they are asked again.
            (0..pause).for_each(|_| _ = others_of(&habit, &[100], 1));
            assert!(others_of(&habit, &[100; 90], run) <= NOTED[1]);
            assert_eq!(others_of(&habit, &[100; 90], run), 0);
        }
    }

    #[test]
    fn rows_without_an_outline_leave_what_is_known() {
        let habit = Habit::default();
        others_of(&habit, &[7; 9], 9);
        let mut run = habit.begin();
        assert!((0..40).all(|_| !run.other(|| None)));
        assert_eq!(run.outline().map(|known| **known), Some(7));
    }
}
