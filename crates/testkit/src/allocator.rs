//! An allocator that remembers what passed through it, for tests that count memory.
//!
//! A test binary that wants it says `#[global_allocator] static WATCHED: Watched = Watched;`. The counts are those of
//! the whole process: a test that reads them runs alone in its binary.

#![expect(unsafe_code, reason = "an allocator is unsafe by its nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, watched.
#[derive(Debug)]
pub struct Watched;

/// The largest single allocation so far, in bytes.
pub fn largest() -> usize {
    LARGEST.load(Relaxed)
}

/// The most bytes that were held at once so far.
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// How many bytes are held now.
pub fn held() -> usize {
    HELD.load(Relaxed)
}

/// How many allocations were freed so far.
pub fn freed() -> usize {
    FREED.load(Relaxed)
}

fn add(len: usize) {
    LARGEST.fetch_max(len, Relaxed);
    PEAK.fetch_max(HELD.fetch_add(len, Relaxed) + len, Relaxed);
}

fn sub(len: usize) {
    HELD.fetch_sub(len, Relaxed);
}

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        sub(layout.size());
        FREED.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        add(len);
        sub(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, len) }
    }
}
