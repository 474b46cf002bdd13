//! Digest.crc32: the checksum of Data.db as a whole.
//!
//! ```text
//! the CRC32 of every byte of Data.db as it is on disk, in decimal ASCII: `2667083147`
//! ```
//!
//! The checksums of compressed chunks are among those bytes.

use std::path::Path;

use crate::{Error, Result, Version};

/// The CRC32 of Data.db.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(
    /// Of all bytes of the file.
    pub u32,
);

impl Digest {
    /// Decodes Digest.crc32. Blanks around the number are tolerated.
    ///
    /// # Errors
    /// Where it is not a number of 32 bits.
    pub fn parse(path: &Path, bytes: &[u8], _version: Version) -> Result<Digest> {
        let digits = bytes.trim_ascii();
        let number = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        match number.and_then(|text| text.parse().ok()) {
            Some(crc) => Ok(Digest(crc)),
            None => Err(Error::corrupt(path, 0, "the digest is not a decimal number of 32 bits")),
        }
    }

    /// The bytes of Digest.crc32.
    pub fn encode(self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parts::samples;

    fn parse(bytes: &[u8]) -> Result<Digest> {
        Digest::parse(Path::new("me-1-big-Digest.crc32"), bytes, Version::Me)
    }

    #[test]
    fn decimal_numbers() {
        assert_eq!(parse(b"2667083147").unwrap(), Digest(2_667_083_147));
        assert_eq!(parse(b"0\n").unwrap(), Digest(0));
        for wrong in [&b""[..], b"4294967296", b"-1", b"+1", b"12a", b"1 2", b"\xff"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn real_files_match_their_data() {
        for file in samples::real_files("Digest.crc32") {
            let digest = Digest::parse(&file.path, &file.bytes, file.version).unwrap();
            let data = file.sibling("Data.db").unwrap();
            assert_eq!(digest.0, crc32fast::hash(&data), "{}", file.path.display());
            assert_eq!(digest.encode(), file.bytes, "{}", file.path.display());
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            drop(parse(&bytes));
        }
    }
}
