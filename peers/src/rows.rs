//! The rows, the same for all peers, and what was found of them.
//!
//! ```text
//! partition 0      row i has the clustering key 2·i; odd keys are absent
//! as a key         00 00 00 00 · clustering, big-endian, its sign bit turned      for databases of keys and values
//! ```

/// The only partition.
pub(crate) const PARTITION: i32 = 0;

/// Rows that a batch of a load has.
pub(crate) const BATCH: usize = 1000;

/// How many rows there are, and how large their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) count: u32,
    pub(crate) value_size: usize,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) rows: u64,
    /// Of the key, and the ends and the length of the value: it costs little beside the read.
    quick: u64,
    /// Of every byte, where it is wanted.
    full: Option<u64>,
}

impl Rows {
    /// The clustering key of a row.
    pub(crate) fn clustering(row: u32) -> i32 {
        i32::try_from(row).expect("there are less than 2^30 rows") * 2
    }

    /// All rows, in batches.
    pub(crate) fn batches(self) -> impl Iterator<Item = Vec<(i32, Vec<u8>)>> {
        (0..self.count).step_by(BATCH).map(move |first| {
            let last = first.saturating_add(BATCH as u32).min(self.count);
            (first..last).map(|row| (Rows::clustering(row), self.value(row))).collect()
        })
    }

    /// The value of a row, which does not compress.
    pub(crate) fn value(self, row: u32) -> Vec<u8> {
        let mut value = Vec::with_capacity(self.value_size + 8);
        let mut word = 0;
        while value.len() < self.value_size {
            value.extend_from_slice(&mixed(u64::from(row) << 16 | word).to_le_bytes());
            word += 1;
        }
        value.truncate(self.value_size);
        value
    }
}

/// A row as a key.
pub(crate) fn key(clustering: i32) -> [u8; 8] {
    let clustering = clustering.cast_unsigned() ^ 1 << 31;
    (u64::from(PARTITION.cast_unsigned()) << 32 | u64::from(clustering)).to_be_bytes()
}

/// The clustering key of a key.
///
/// # Panics
/// If it is none.
pub(crate) fn clustering(key: &[u8]) -> i32 {
    let bytes = key.last_chunk().expect("keys have eight bytes");
    (u32::from_be_bytes(*bytes) ^ 1 << 31).cast_signed()
}

/// Bits that look random.
pub(crate) fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

impl Found {
    /// Nothing yet; every byte will be looked at.
    pub(crate) fn thoroughly() -> Found {
        Found { full: Some(0), ..Found::default() }
    }

    /// A row was found.
    pub(crate) fn row(&mut self, clustering: i32, value: &[u8]) {
        self.rows += 1;
        let ends = word(value.first_chunk()) ^ word(value.last_chunk()) ^ value.len() as u64;
        self.quick = (self.quick.rotate_left(7) ^ u64::from(clustering.cast_unsigned())).wrapping_add(ends);
        if let Some(full) = &mut self.full {
            for part in value.chunks(8) {
                let mut bytes = [0; 8];
                bytes[..part.len()].copy_from_slice(part);
                *full = mixed(*full ^ u64::from_le_bytes(bytes));
            }
        }
    }

    /// All of it in one number.
    pub(crate) fn sum(&self) -> u64 {
        mixed(self.quick ^ self.full.unwrap_or(0)) ^ self.rows
    }
}

fn word(bytes: Option<&[u8; 8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_rows() {
        assert!(key(-1) < key(0) && key(0) < key(1) && key(1) < key(i32::MAX));
        assert_eq!([-7, 0, 7].map(|number| clustering(&key(number))), [-7, 0, 7]);
    }

    #[test]
    fn what_is_found_is_summed() {
        let rows = Rows { count: 2500, value_size: 21 };
        let all: Vec<_> = rows.batches().flatten().collect();
        assert_eq!((all.len(), all[2499].0, all[7].1.len()), (2500, 4998, 21));
        let sum = |mut found: Found, value: &[u8]| {
            found.row(14, value);
            found.sum()
        };
        let mut other = all[7].1.clone();
        other[10] ^= 1;
        assert_eq!(sum(Found::default(), &all[7].1), sum(Found::default(), &other));
        assert_ne!(sum(Found::thoroughly(), &all[7].1), sum(Found::thoroughly(), &other));
    }
}
