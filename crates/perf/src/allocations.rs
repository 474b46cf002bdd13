//! An allocator that counts: how many allocations each thread made, and how many bytes of them it has not freed.
//!
//! A program that wants to know says `#[global_allocator] static COUNTED: Counted = Counted;`. Without that, nothing is
//! known. The counts are the thread's own, as a shard is one thread: they cost no atomics, and other threads do not show.
//! What allocates is mimalloc, as a server would have it: docs/decisions/0040-the-allocator-of-the-benchmarks.md.

#![expect(unsafe_code, reason = "an allocator is unsafe by its nature")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use mimalloc::MiMalloc;

/// mimalloc, counted.
#[derive(Debug)]
pub struct Counted;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// How many allocations this thread made so far, those included that made one larger; `None` if the program does not
/// count them.
pub fn made() -> Option<u64> {
    // No thread comes as far as asking without a single one.
    Some(MADE.get()).filter(|&made| made > 0)
}

/// How many bytes this thread has allocated and not freed; `None` if the program does not count them. What one thread
/// allocates and another frees is more than is there for the one, and less for the other.
pub fn live() -> Option<i64> {
    made().map(|_| LIVE.get())
}

fn count(bytes: usize) {
    // A thread that is ending has no counter any more; nobody will ask it.
    let _ = MADE.try_with(|made| made.set(made.get() + 1));
    count_live(bytes as i64);
}

fn count_live(bytes: i64) {
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: every call is handed on to mimalloc unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count_live(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count(len);
        count_live(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { MiMalloc.realloc(pointer, layout, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_the_allocator_knows_nothing() {
        let _some = Box::new(1);
        assert_eq!((made(), live()), (None, None));
    }

    #[test]
    fn each_allocation_counts_once() {
        let layout = Layout::array::<u8>(64).unwrap();
        std::thread::spawn(move || {
            // SAFETY: the layout is not of size 0, and what is allocated is freed with the layout it then has.
            unsafe {
                let pointer = Counted.alloc(layout);
                let pointer = Counted.realloc(pointer, layout, 128);
                assert_eq!(live(), Some(128));
                Counted.dealloc(pointer, Layout::array::<u8>(128).unwrap());
            }
            assert_eq!((made(), live()), (Some(2), Some(0)));
        })
        .join()
        .unwrap();
    }
}
