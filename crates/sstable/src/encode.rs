//! Putting numbers and strings into bytes: the other side of [`crate::decode`], where the layouts are drawn.

/// Appends values as the format has them: big-endian, unless the name says otherwise.
pub trait Encode {
    /// Appends bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// One byte.
    fn put_u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    /// Two bytes.
    fn put_u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    /// Four bytes.
    fn put_u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    /// Four bytes, signed.
    fn put_i32(&mut self, number: i32) {
        self.put(&number.to_be_bytes());
    }

    /// Eight bytes.
    fn put_u64(&mut self, number: u64) {
        self.put(&number.to_be_bytes());
    }

    /// Eight bytes, signed.
    fn put_i64(&mut self, number: i64) {
        self.put(&number.to_be_bytes());
    }

    /// Eight bytes of IEEE 754.
    fn put_f64(&mut self, number: f64) {
        self.put(&number.to_be_bytes());
    }

    /// Four bytes, least significant first.
    fn put_u32_le(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    /// Eight bytes, least significant first.
    fn put_u64_le(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    /// An unsigned vint, in as few bytes as it takes.
    #[inline]
    fn put_vint(&mut self, number: u64) {
        let (mut bytes, len) = ([0; 9], vint_len(number));
        put_vint_at(number, &mut bytes[..len]);
        self.put(&bytes[..len]);
    }

    /// A signed vint, in as few bytes as it takes.
    #[inline]
    fn put_signed_vint(&mut self, number: i64) {
        self.put_vint(((number << 1) ^ (number >> 63)) as u64);
    }

    /// Bytes behind a vint length.
    #[inline]
    fn put_vint_bytes(&mut self, bytes: &[u8]) {
        self.put_vint(bytes.len() as u64);
        self.put(bytes);
    }

    /// Bytes behind a u16 length.
    ///
    /// # Panics
    /// If there are more than 65535 of them: whoever takes them in from outside refuses that.
    fn put_short_bytes(&mut self, bytes: &[u8]) {
        self.put_u16(u16::try_from(bytes.len()).expect("at most 65535 bytes have a u16 length"));
        self.put(bytes);
    }

    /// Bytes behind a u32 length.
    ///
    /// # Panics
    /// If there are 4 GiB of them.
    fn put_long_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).expect("less than 4 GiB have a u32 length"));
        self.put(bytes);
    }
}

impl Encode for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_u8(&mut self, number: u8) {
        self.push(number);
    }

    /// Eight bytes are put in any case, and those behind the vint taken off again: a copy of fixed length is one
    /// instruction.
    #[inline]
    fn put_vint(&mut self, number: u64) {
        let len = vint_len(number);
        if len == 9 {
            self.put_u8(0xff);
            return self.put_u64(number);
        }
        let end = self.len() + len;
        self.put(&vint_bytes(number, len));
        self.truncate(end);
    }
}

/// Puts an unsigned vint into the bytes it takes.
#[inline]
pub(crate) fn put_vint_at(number: u64, to: &mut [u8]) {
    let len = to.len();
    if len == 9 {
        to[0] = 0xff;
        return to[1..].copy_from_slice(&number.to_be_bytes());
    }
    to.copy_from_slice(&vint_bytes(number, len)[..len]);
}

/// An unsigned vint of up to eight bytes, with zeros behind it.
#[inline]
fn vint_bytes(number: u64, len: usize) -> [u8; 8] {
    let leading_ones = !(u64::MAX >> (len - 1));
    (number << (64 - 8 * len) | leading_ones).to_be_bytes()
}

/// How many bytes an unsigned vint takes, 1 to 9: seven bits a byte, save that the ninth has eight.
#[inline]
pub fn vint_len(number: u64) -> usize {
    // The number of bits by 7, rounded up and 9 at the most, without a division.
    (639 - 9 * (number | 1).leading_zeros() as usize) >> 6
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::Cursor;

    fn vint(number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_vint(number);
        bytes
    }

    #[test]
    fn vints_of_every_length() {
        assert_eq!(vint(0), [0x00]);
        assert_eq!(vint(127), [0x7f]);
        assert_eq!(vint(128), [0x80, 0x80]);
        assert_eq!(vint(0x3fff), [0xbf, 0xff]);
        assert_eq!(vint(0x4000), [0xc0, 0x40, 0x00]);
        assert_eq!(vint(0x0081_0203_0405_0607), [0xfe, 0x81, 2, 3, 4, 5, 6, 7]);
        assert_eq!(vint(u64::MAX), [0xff; 9]);
        for bits in 0..64 {
            for number in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let bytes = vint(number);
                assert_eq!((Cursor::new(&bytes).vint(), bytes.len()), (Ok(number), vint_len(number)));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(unsigned: u64, signed: i64, bytes: Vec<u8>, shift in 0_u32..64) {
            let (unsigned, signed) = (unsigned >> shift, signed >> shift);
            let mut put = vint(unsigned);
            put.put_signed_vint(signed);
            put.put_vint_bytes(&bytes);
            put.put_short_bytes(&bytes);
            put.put_long_bytes(&bytes);
            let mut cursor = Cursor::new(&put);
            prop_assert_eq!(cursor.vint(), Ok(unsigned));
            prop_assert_eq!(cursor.signed_vint(), Ok(signed));
            prop_assert_eq!(cursor.vint_bytes(), Ok(&bytes[..]));
            prop_assert_eq!(cursor.short_bytes(), Ok(&bytes[..]));
            prop_assert_eq!(cursor.long_bytes(), Ok(&bytes[..]));
            prop_assert_eq!(cursor.end(), Ok(()));
        }
    }
}
