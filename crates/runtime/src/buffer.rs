//! Memory whose address suits direct I/O, out of an ordinary `Vec`.
//!
//! Direct I/O wants the destination at an address that is a multiple of the device's alignment. The buffer is
//! allocated a little larger, and the read goes to its first aligned address:
//! ```text
//! ptr ─┐                ┌─ base: first aligned address
//!      ├─ padding (0s) ─┼─ uninitialised until the read fills it ─┐
//! ```

/// Allocates room for `len` bytes at an address that is a multiple of `alignment`, a power of two.
///
/// Returns the buffer and the index at which that room starts: the buffer's length, and its capacity is at least
/// `len` more. The buffer must not be reallocated before the read.
pub(crate) fn allocate(len: usize, alignment: usize) -> (Vec<u8>, usize) {
    debug_assert!(alignment.is_power_of_two());
    // Allocators align to a few words anyway, so small alignments are mostly met without spare room.
    let exact = Vec::with_capacity(len);
    if padding(&exact, alignment) == 0 {
        return (exact, 0);
    }
    drop(exact);
    let mut buf = Vec::with_capacity(len + alignment - 1);
    let base = padding(&buf, alignment);
    buf.resize(base, 0);
    (buf, base)
}

/// How many bytes the address of `buf` is short of a multiple of `alignment`.
fn padding(buf: &[u8], alignment: usize) -> usize {
    buf.as_ptr().addr().wrapping_neg() & (alignment - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_aligned_and_large_enough() {
        for alignment in [1, 4, 16, 512, 4096] {
            for len in [1, 100, 512, 4096, 70_000] {
                let (buf, base) = allocate(len, alignment);
                assert_eq!(buf.len(), base);
                assert_eq!((buf.as_ptr().addr() + base) % alignment, 0);
                assert!(buf.capacity() - base >= len);
            }
        }
    }
}
