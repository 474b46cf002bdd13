//! Memory that will be looked at soon, brought near the CPU.
//!
//! Reading it would do the same, but a CPU can have only so many instructions under way behind a read that waits, and so
//! only a few such reads. A prefetch is done at once, and any number of them go on by themselves.

#![expect(unsafe_code, reason = "the CPU's instruction takes an address")]

/// Bytes of a line of the CPU's caches.
pub const LINE: usize = 64;

/// So many lines of a row are brought.
const LINES: usize = 4;

/// So many rows before it is looked at, a row is best brought near the CPU: there are too many instructions between two rows for a CPU to see
/// the next one by itself.
pub const ROWS_AHEAD: usize = 8;

/// Begins to bring the beginning of something near the CPU: the 64 bytes or so around its address. On CPUs other than x86-64
/// nothing is done.
#[inline]
pub fn prefetch<T>(of: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing and does not fault, whatever the address is; this one is of a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(of).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = of;
}

/// Where something is, or was when this was noted: it can be brought near the CPU before anybody knows whether it is there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whereabouts(usize);

impl Whereabouts {
    /// Of what is there now, or of what a weak pointer points to.
    #[inline]
    pub fn of<T>(at: *const T) -> Whereabouts {
        Whereabouts(at.addr())
    }

    /// So many bytes behind it.
    #[inline]
    pub fn behind(self, bytes: usize) -> Whereabouts {
        Whereabouts(self.0.wrapping_add(bytes))
    }

    /// Begins to bring the line that it is in and those behind that near the CPU, so many in all, if that is an x86-64.
    #[inline]
    pub fn bring<const COUNT: usize>(self) {
        for line in 0..COUNT {
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                let at = std::ptr::without_provenance::<i8>(self.0.wrapping_add(line * LINE));
                // SAFETY: a prefetch changes nothing, gives nothing and does not fault, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        }
    }
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
