//! What becomes of one request to the simulated disk, drawn before it starts.
//!
//! Each read draws six numbers in a fixed order (delay, error, short read and its length, corruption and its bit), and
//! each operation that changes the disk four (delay, error, short write and its length), whatever the chances are; so
//! that the same seed and the same requests give the same run.

use super::SimOptions;
use super::random::Random;

/// The fate of one read.
pub(super) struct Fate {
    pub(super) delay: u32,
    pub(super) fails: bool,
    /// How many bytes are returned, of those that are there.
    pub(super) count: usize,
    /// Which bit of them is flipped.
    pub(super) flip: Option<usize>,
}

impl Fate {
    /// Draws the fate of a request for which `available` bytes are there.
    pub(super) fn draw(
        options: &SimOptions,
        random: &mut Random,
        available: usize,
        alignment: usize,
    ) -> Self {
        let delay = random.below(u64::from(options.max_delay) + 1) as u32;
        let fails = random.chance(options.io_error_chance);
        let short = random.chance(options.short_read_chance);
        let units = available.div_ceil(alignment);
        let short_count = (1 + random.below((units as u64).saturating_sub(1).max(1)) as usize) * alignment;
        let count = if short && units > 1 { short_count } else { available };
        let corrupt = random.chance(options.corruption_chance);
        let bit = random.below((count as u64 * 8).max(1)) as usize;
        Self { delay, fails, count, flip: (corrupt && count > 0).then_some(bit) }
    }
}

/// The fate of one operation that changes the disk.
pub(super) struct ChangeFate {
    pub(super) delay: u32,
    pub(super) fails: bool,
    /// How many bytes are appended, of those that it has.
    pub(super) count: usize,
}

impl ChangeFate {
    /// Draws the fate of an operation that appends `len` bytes, or a multiple of `unit` where it is short.
    pub(super) fn draw(options: &SimOptions, random: &mut Random, len: usize, unit: usize) -> Self {
        let delay = random.below(u64::from(options.max_delay) + 1) as u32;
        let fails = random.chance(options.write_error_chance);
        let short = random.chance(options.short_write_chance);
        let units = len / unit;
        let short_count = (1 + random.below((units as u64).saturating_sub(1).max(1)) as usize) * unit;
        Self { delay, fails, count: if short && units > 1 { short_count } else { len } }
    }
}
