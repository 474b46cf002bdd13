//! A binary heap of source numbers, whose order is given with each call.
//!
//! `std`'s heap needs an order in the items themselves; here it is found in the sources and the schema.

use std::cmp::Ordering;

use smallvec::SmallVec;

/// Source numbers, the least first.
///
/// Invariant: no item is less than its parent, by the order that every call is given.
#[derive(Debug, Default)]
pub(super) struct Heap {
    items: SmallVec<[u32; 8]>,
}

impl Heap {
    pub(super) fn least(&self) -> Option<u32> {
        self.items.first().copied()
    }

    pub(super) fn push(&mut self, item: u32, compare: impl Fn(u32, u32) -> Ordering) {
        let mut at = self.items.len();
        self.items.push(item);
        while at > 0 {
            let parent = (at - 1) / 2;
            if compare(self.items[at], self.items[parent]).is_ge() {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    pub(super) fn pop(&mut self, compare: impl Fn(u32, u32) -> Ordering) -> Option<u32> {
        let last = self.items.pop()?;
        if self.items.is_empty() {
            return Some(last);
        }
        self.replace_least(last, compare)
    }

    /// Takes the least item and puts another one into the heap.
    pub(super) fn replace_least(&mut self, item: u32, compare: impl Fn(u32, u32) -> Ordering) -> Option<u32> {
        let least = std::mem::replace(self.items.first_mut()?, item);
        self.sift_down(compare);
        Some(least)
    }

    fn sift_down(&mut self, compare: impl Fn(u32, u32) -> Ordering) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.items.len() {
                return;
            }
            if child + 1 < self.items.len() && compare(self.items[child + 1], self.items[child]).is_lt() {
                child += 1;
            }
            if compare(self.items[at], self.items[child]).is_le() {
                return;
            }
            self.items.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_in_order() {
        let mut heap = Heap::default();
        let keys = [5, 3, 9, 3, 7, 1, 1, 8];
        let compare = |a: u32, b: u32| keys[a as usize].cmp(&keys[b as usize]);
        (0..7).for_each(|item| heap.push(item, compare));
        assert_eq!(heap.replace_least(7, compare).map(|item| keys[item as usize]), Some(1));
        let popped: Vec<i32> = std::iter::from_fn(|| heap.pop(compare)).map(|i| keys[i as usize]).collect();
        assert_eq!(popped, [1, 3, 3, 5, 7, 8, 9]);
        assert_eq!(heap.replace_least(0, compare), None);
    }
}
