//! Which SSTable a component of our own is of: it holds for no other.
//!
//! ```text
//! binding   u8 flags, u32 the number in Digest.crc32, u64 length of Data.db, u64 length of Index.db
//!           2 bytes: the version of the SSTable, in letters
//! flags     1 there is a Digest.crc32     others are the component's
//! ```

use crate::Version;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;

/// What an SSTable is known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The number in Digest.crc32, if there is such a file.
    pub digest: Option<u32>,
    /// Bytes of Data.db, as it is on disk.
    pub data_len: u64,
    /// Bytes of Index.db.
    pub index_len: u64,
}

/// The flag that there is a Digest.crc32.
const HAS_DIGEST: u8 = 1;

impl Binding {
    /// How many bytes it takes, encoded.
    pub(super) const BYTES: usize = 1 + 4 + 8 + 8 + 2;

    /// Appends it, with the version of the SSTable.
    pub(super) fn put(&self, version: Version, to: &mut Vec<u8>) {
        to.put_u8(u8::from(self.digest.is_some()));
        to.put_u32(self.digest.unwrap_or(0));
        to.put_u64(self.data_len);
        to.put_u64(self.index_len);
        to.put(version.name().as_bytes());
    }

    /// What is not as it should be in the one that is encoded here.
    pub(super) fn difference(
        &self,
        version: Version,
        cursor: &mut Cursor<'_>,
    ) -> Decoded<Option<&'static str>> {
        let (has_digest, digest) = (cursor.u8()? & HAS_DIGEST != 0, cursor.u32()?);
        let digest = has_digest.then_some(digest);
        let found = Binding { digest, data_len: cursor.u64()?, index_len: cursor.u64()? };
        Ok(if cursor.take(2)? != version.name().as_bytes() {
            Some("it is of an SSTable of another version")
        } else if found.digest != self.digest {
            Some("its digest is that of another Data.db")
        } else if found.data_len != self.data_len {
            Some("it is of a Data.db of another length")
        } else {
            (found.index_len != self.index_len).then_some("it is of an Index.db of another length")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_for_one_sstable() {
        let own = Binding { digest: Some(0), data_len: 1000, index_len: 60 };
        let mut bytes = Vec::new();
        own.put(Version::Me, &mut bytes);
        assert_eq!(bytes.len(), Binding::BYTES);
        let difference =
            |of: Binding, version| of.difference(version, &mut Cursor::new(&bytes)).unwrap().unwrap_or("");
        assert_eq!(difference(own, Version::Me), "");
        assert!(difference(own, Version::Oa).contains("another version"));
        assert!(difference(Binding { digest: Some(8), ..own }, Version::Me).contains("digest"));
        assert!(difference(Binding { digest: None, ..own }, Version::Me).contains("digest"));
        assert!(difference(Binding { data_len: 999, ..own }, Version::Me).contains("Data.db of another"));
        assert!(difference(Binding { index_len: 61, ..own }, Version::Me).contains("Index.db of another"));
    }
}
