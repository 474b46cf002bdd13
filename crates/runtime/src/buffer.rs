//! Large buffers, used again and again, at addresses that suit direct I/O.
//!
//! What streams through a shard comes in buffers of some 4 to 512 KiB that live for a moment. An allocator that gets
//! them back either returns them to the operating system, and a page fault fetches every page of the next one, or keeps
//! them, and small things that live long settle in between. So a thread keeps a few for whoever wants one next.
//!
//! Direct I/O wants the destination at an address that is a multiple of the device's alignment. The buffer is
//! allocated a little larger, and the read goes to its first aligned address:
//! ```text
//! ptr ─┐                ┌─ base: first aligned address
//!      ├─ padding (0s) ─┼─ uninitialised until the read fills it ─┐
//! ```

use std::cell::RefCell;

/// The least capacity of a buffer that is kept, and the most, in bytes.
const KEPT_CAPACITY: [usize; 2] = [4 << 10, 512 << 10];

/// A buffer of so many bytes is worth one that is kept.
const WORTH_ONE: usize = 256;

/// How many bytes a thread keeps of buffers that nobody uses.
const MOST_KEPT: usize = 1 << 20;

/// How many buffers it keeps: each is looked at when one is wanted.
const MOST_BUFFERS: usize = 32;

/// Capacities are multiples of this, so that a buffer suits more than what it was made for. Bytes.
const STEP: usize = 4 << 10;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { buffers: Vec::new(), bytes: 0 }) };
}

/// Buffers that nobody uses, and their capacities together.
struct Kept {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// A buffer of at least that length, in bytes, whatever is in it: who writes what it needs of it need not have it cleared.
pub fn buffer_of(len: usize) -> Vec<u8> {
    // What is a little small to be kept is cut off one that is.
    let capacity = if len < WORTH_ONE { len } else { len.max(KEPT_CAPACITY[0]) };
    let mut buffer = kept(capacity, Wanted::Filled(len)).unwrap_or_default();
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer
}

/// An empty buffer of at least that capacity, in bytes: one that [`reuse`] was told of, or a new one.
pub fn buffer(capacity: usize) -> Vec<u8> {
    match kept(capacity, Wanted::Empty) {
        Some(mut buffer) => {
            buffer.clear();
            buffer
        }
        None => Vec::with_capacity(capacity),
    }
}

/// What a buffer is wanted for. What is short has to be filled for who wants it long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// As a buffer of so many bytes: the longest of those that suit alike.
    Filled(usize),
    /// To be filled from its beginning on: the shortest of them.
    Empty,
}

/// One that is kept, or a new one that will be.
fn kept(capacity: usize, wanted: Wanted) -> Option<Vec<u8>> {
    if capacity < KEPT_CAPACITY[0] || capacity > KEPT_CAPACITY[1] {
        return None;
    }
    let kept = KEPT.with_borrow_mut(|kept| kept.take(capacity, wanted));
    Some(kept.unwrap_or_else(|| Vec::with_capacity(capacity.next_multiple_of(STEP))))
}

/// Hands on a buffer that nobody uses any more.
pub fn reuse(buffer: Vec<u8>) {
    if buffer.capacity() < KEPT_CAPACITY[0] || buffer.capacity() > KEPT_CAPACITY[1] + STEP {
        return;
    }
    // A thread that ends has nobody to keep it for.
    let _ = KEPT.try_with(|kept| kept.borrow_mut().put(buffer));
}

/// Bytes of buffers that this thread keeps for whoever wants one next; never above 1 MiB.
pub fn kept_bytes() -> usize {
    KEPT.try_with(|kept| kept.borrow().bytes).unwrap_or(0)
}

impl Kept {
    /// The smallest that is large enough, unless most of it would be idle.
    fn take(&mut self, capacity: usize, wanted: Wanted) -> Option<Vec<u8>> {
        let place = self.last_that_fits(capacity, wanted).or_else(|| {
            let fits =
                |buffer: &Vec<u8>| buffer.capacity() >= capacity && buffer.capacity() <= 2 * capacity + STEP;
            let order = |len| if wanted == Wanted::Empty { len } else { usize::MAX - len };
            let buffers = self.buffers.iter().enumerate().filter(|(_, buffer)| fits(buffer));
            Some(buffers.min_by_key(|(_, buffer)| (buffer.capacity(), order(buffer.len())))?.0)
        })?;
        let buffer = self.buffers.swap_remove(place);
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// The last one that came, if there can be none that suits better: mostly it was used for the same.
    fn last_that_fits(&self, capacity: usize, wanted: Wanted) -> Option<usize> {
        let (last, Wanted::Filled(len)) = (self.buffers.last()?, wanted) else { return None };
        let fits = (capacity..capacity + STEP).contains(&last.capacity()) && last.len() >= len;
        fits.then(|| self.buffers.len() - 1)
    }

    /// Keeps it, in the place of those that came first.
    fn put(&mut self, buffer: Vec<u8>) {
        self.bytes += buffer.capacity();
        self.buffers.push(buffer);
        while self.bytes > MOST_KEPT || self.buffers.len() > MOST_BUFFERS {
            self.bytes -= self.buffers.remove(0).capacity();
        }
    }
}

/// Allocates room for `len` bytes at an address that is a multiple of `alignment`, a power of two.
///
/// Returns the buffer and the index at which that room starts. The buffer's length is at least that, whatever is in it,
/// and its capacity at least `len` more. The buffer must not be reallocated before the read.
pub(crate) fn allocate(len: usize, alignment: usize) -> (Vec<u8>, usize) {
    debug_assert!(alignment.is_power_of_two());
    let mut buf = if len < WORTH_ONE {
        // Allocators align to a few words anyway, so small alignments are mostly met without spare room.
        let exact = Vec::with_capacity(len);
        if padding(&exact, alignment) == 0 {
            return (exact, 0);
        }
        drop(exact);
        Vec::with_capacity(len + alignment - 1)
    } else {
        // What is a little small to be kept takes one that is.
        let capacity = (len + alignment - 1).max(KEPT_CAPACITY[0]);
        kept(capacity, Wanted::Empty).unwrap_or_else(|| Vec::with_capacity(capacity))
    };
    let base = padding(&buf, alignment);
    if buf.len() < base {
        buf.resize(base, 0);
    }
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
                assert!(buf.len() >= base);
                assert_eq!((buf.as_ptr().addr() + base) % alignment, 0);
                assert!(buf.capacity() - base >= len);
            }
        }
    }

    #[test]
    fn a_buffer_is_used_again_for_as_much_and_not_for_much_less() {
        let first = buffer(100_000);
        let address = first.as_ptr();
        reuse(first);
        let [small, large, another] = [20_000, 98_000, 100_000].map(buffer);
        assert_ne!(small.as_ptr(), address);
        assert_eq!((large.as_ptr(), large.len()), (address, 0));
        assert_ne!(another.as_ptr(), address);
    }

    #[test]
    fn a_buffer_of_a_length_is_not_cleared() {
        let mut first = Vec::with_capacity(8000);
        first.resize(5000, 7);
        reuse(first);
        let again = buffer_of(4500);
        assert_eq!(again, [7; 5000]);
        reuse(again);
        assert_eq!(buffer_of(5100), [&[7; 5000][..], &[0; 100]].concat());
        assert_eq!(buffer_of(10), [0; 10]);
        for lens in [[5000, 6000], [6000, 5000]] {
            for len in lens {
                let mut buffer = Vec::with_capacity(40_000);
                buffer.resize(len, 7);
                reuse(buffer);
            }
            let (long, short) = (buffer_of(39_000), buffer(39_000));
            assert_eq!(long[..6000], [7; 6000]);
            drop((long, short));
        }
    }

    #[test]
    fn only_so_much_is_kept() {
        (0..100).map(|_| buffer(64 << 10)).collect::<Vec<_>>().into_iter().for_each(reuse);
        reuse(Vec::with_capacity(10));
        reuse(Vec::with_capacity(10 << 20));
        KEPT.with_borrow(|kept| assert_eq!(kept.buffers.len(), 16));
        assert_eq!(kept_bytes(), MOST_KEPT);
    }
}
