//! Memory that will be looked at soon, brought near the CPU.
//!
//! Reading it would do the same, but a CPU can have only so many instructions under way behind a read that waits, and so
//! only a few such reads. A prefetch is done at once, and any number of them go on by themselves.

#![expect(unsafe_code, reason = "the CPU's instruction takes an address")]

/// Bytes of a line of the CPU's caches.
const LINE: usize = 64;

/// So many lines of a row are brought.
const LINES: usize = 4;

/// So many rows before it is looked at, a row is best brought near the CPU: there are too many instructions between two rows for a CPU to see
/// the next one by itself.
pub const ROWS_AHEAD: usize = 4;

/// Begins to bring the beginning of something near the CPU: the 64 bytes or so around its address. On CPUs other than x86-64
/// that is read there and then.
#[inline]
pub fn prefetch<T>(of: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing and does not fault, whatever the address is; this one is of a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(of).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(of);
}

/// Begins to bring the beginning of a row near the CPU: its first four lines. Who looks at the end of a longer one goes there line by
/// line, which a CPU foresees.
#[inline]
pub fn prefetch_row(row: &[u8]) {
    match row.first_chunk::<{ LINES * LINE }>() {
        Some(lines) => lines.iter().step_by(LINE).for_each(prefetch),
        // It is among the last ones of its piece of memory.
        None => row.chunks(LINE).for_each(|line| prefetch(&line[0])),
    }
}
