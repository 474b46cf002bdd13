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

/// How many buffers it keeps: as many as a mask has bits.
const MOST_BUFFERS: usize = u32::BITS as usize;

/// Capacities are multiples of this, so that a buffer suits more than what it was made for. Bytes.
const STEP: usize = 4 << 10;

/// Buffers are told apart by how many whole steps their capacity has, up to one more than those that are asked for.
const CLASSES: usize = KEPT_CAPACITY[1] / STEP + 2;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::NONE) };
}

/// Buffers that nobody uses, found by their capacity without a look at the others.
struct Kept {
    buffers: [Vec<u8>; MOST_BUFFERS],
    /// When each of them came.
    came: [u64; MOST_BUFFERS],
    /// Where there is none.
    free: u32,
    /// Where those of each class are: the short ones, and those that are at least half filled.
    of_class: [[u32; 2]; CLASSES],
    /// The classes that there are any of, a bit each.
    classes: [u64; CLASSES.div_ceil(64)],
    /// How many have come.
    count: u64,
    /// Their capacities together.
    bytes: usize,
}

/// A buffer of at least that length, in bytes, whatever is in it: who writes what it needs of it need not have it cleared.
pub fn buffer_of(len: usize) -> Vec<u8> {
    // What is a little small to be kept is cut off one that is.
    let capacity = if len < WORTH_ONE { len } else { len.max(KEPT_CAPACITY[0]) };
    let mut buffer = kept(capacity, Wanted::Filled).unwrap_or_default();
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

/// What a buffer is wanted for, in the order of [`Kept::of_class`]. What is short has to be filled for who wants it long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// To be filled from its beginning on: a short one, if others suit alike.
    Empty,
    /// For its whole length: one that has some.
    Filled,
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
    const NONE: Kept = Kept {
        buffers: [const { Vec::new() }; MOST_BUFFERS],
        came: [0; MOST_BUFFERS],
        free: u32::MAX,
        of_class: [[0; 2]; CLASSES],
        classes: [0; CLASSES.div_ceil(64)],
        count: 0,
        bytes: 0,
    };

    /// One of the smallest that are large enough, unless most of it would be idle.
    fn take(&mut self, capacity: usize, wanted: Wanted) -> Option<Vec<u8>> {
        let class = self.first_class(capacity.div_ceil(STEP))?;
        if class * STEP > 2 * capacity + STEP {
            return None;
        }
        let kinds = self.of_class[class];
        let kind = if kinds[wanted as usize] != 0 { wanted as usize } else { 1 - wanted as usize };
        Some(self.remove(kinds[kind].trailing_zeros() as usize))
    }

    /// Keeps it, in the place of those that came first.
    fn put(&mut self, buffer: Vec<u8>) {
        while self.free == 0 || self.bytes + buffer.capacity() > MOST_KEPT {
            self.remove(self.oldest());
        }
        let place = self.free.trailing_zeros() as usize;
        let [class, kind] = place_of(&buffer);
        self.free &= !(1 << place);
        self.of_class[class][kind] |= 1 << place;
        self.classes[class / 64] |= 1 << (class % 64);
        self.bytes += buffer.capacity();
        self.count += 1;
        self.came[place] = self.count;
        self.buffers[place] = buffer;
    }

    fn remove(&mut self, place: usize) -> Vec<u8> {
        let buffer = std::mem::take(&mut self.buffers[place]);
        let [class, kind] = place_of(&buffer);
        self.free |= 1 << place;
        self.of_class[class][kind] &= !(1 << place);
        if self.of_class[class] == [0; 2] {
            self.classes[class / 64] &= !(1 << (class % 64));
        }
        self.bytes -= buffer.capacity();
        buffer
    }

    /// The first class from one on that there is a buffer of.
    fn first_class(&self, from: usize) -> Option<usize> {
        let first = self.classes[from / 64] & (u64::MAX << (from % 64));
        let later = (from / 64 + 1..self.classes.len()).map(|word| (word, self.classes[word]));
        let (word, bits) = std::iter::once((from / 64, first)).chain(later).find(|(_, bits)| *bits != 0)?;
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn oldest(&self) -> usize {
        let taken = (0..MOST_BUFFERS).filter(|place| self.free & (1 << place) == 0);
        taken.min_by_key(|place| self.came[*place]).expect("a buffer alone is not more than is kept")
    }
}

/// The class of a buffer, and whether it is at least half filled.
fn place_of(buffer: &Vec<u8>) -> [usize; 2] {
    [buffer.capacity() / STEP, usize::from(buffer.len() * 2 >= buffer.capacity())]
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

/// The same room in a buffer that was allocated before, if it has it, or otherwise in a new one, with as much room as that says.
pub(crate) fn realign(
    mut buf: Vec<u8>,
    len: usize,
    (new_len, alignment): (usize, usize),
) -> (Vec<u8>, usize) {
    let base = padding(&buf, alignment);
    if buf.capacity() < base + len {
        return allocate(new_len, alignment);
    }
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
                for (buf, base) in [allocate(len, alignment), realign(vec![1; 7000], len, (len, alignment))] {
                    assert!(buf.len() >= base);
                    assert_eq!((buf.as_ptr().addr() + base) % alignment, 0);
                    assert!(buf.capacity() - base >= len);
                }
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
        let mut first = Vec::with_capacity(8 << 10);
        first.resize(5000, 7);
        reuse(first);
        let again = buffer_of(4500);
        assert_eq!(again, [7; 5000]);
        reuse(again);
        assert_eq!(buffer_of(5100), [&[7; 5000][..], &[0; 100]].concat());
        assert_eq!(buffer_of(10), [0; 10]);
        for lens in [[5000, 30_000], [30_000, 5000]] {
            for len in lens {
                let mut buffer = Vec::with_capacity(40 << 10);
                buffer.resize(len, 7);
                reuse(buffer);
            }
            let (long, short) = (buffer_of(39_000), buffer(39_000));
            assert_eq!(long[..30_000], [7; 30_000]);
            drop((long, short));
        }
    }

    /// Whatever is wanted and given back, in buffers of every capacity, comes once and is large enough, and the sums are right.
    #[test]
    fn what_is_kept_is_found_again() {
        let mut noise = 1_u32;
        let mut next = |below: usize| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 8) as usize % below
        };
        let mut kept = Kept::NONE;
        for round in 0..20_000 {
            let capacity = KEPT_CAPACITY[0] + next([10_000, 550_000][round / 100 % 2]);
            if next(3) > 0 {
                let mut buffer = Vec::with_capacity(capacity.min(KEPT_CAPACITY[1] + STEP));
                buffer.resize(next(buffer.capacity()), 0);
                kept.put(buffer);
            } else if capacity <= KEPT_CAPACITY[1] {
                let wanted = [Wanted::Empty, Wanted::Filled][next(2)];
                let suits = |buffer: &Vec<u8>| {
                    let whole = buffer.capacity() / STEP * STEP;
                    whole >= capacity && whole <= 2 * capacity + STEP
                };
                let best =
                    kept.buffers.iter().filter(|buffer| suits(buffer)).map(|b| b.capacity() / STEP).min();
                let found = kept.take(capacity, wanted);
                assert_eq!(found.map(|buffer| buffer.capacity() / STEP), best);
            }
            let bytes: usize = kept.buffers.iter().map(Vec::capacity).sum();
            assert!(kept.bytes == bytes && bytes <= MOST_KEPT);
            let taken = kept.buffers.iter().filter(|buffer| buffer.capacity() > 0).count();
            assert_eq!(kept.free.count_zeros() as usize, taken);
        }
    }

    #[test]
    fn only_so_much_is_kept() {
        (0..100).map(|_| buffer(64 << 10)).collect::<Vec<_>>().into_iter().for_each(reuse);
        reuse(Vec::with_capacity(10));
        reuse(Vec::with_capacity(10 << 20));
        KEPT.with_borrow(|kept| assert_eq!(kept.free.count_zeros(), 16));
        assert_eq!(kept_bytes(), MOST_KEPT);
    }
}
