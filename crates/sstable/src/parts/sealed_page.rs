//! Pages that end with their checksum, and how a file of them ends: what our own components are made of.
//!
//! ```text
//! page   content, zeros, in the last page of a file the trailer, u32 CRC32 of the 4092 bytes before it
//! end    of the trailer: u64 pages of the file, u8 format of the file, 8 bytes that name it
//! ```

use super::binding::Binding;
use crate::Version;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Bytes of a page before its checksum.
pub(crate) const ROOM: usize = PAGE - 4;
/// Bytes of a trailer's end.
pub(super) const END: usize = 8 + 1 + 8;

/// What kind of file it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// The only format that is written and read.
    pub(super) format: u8,
    /// The last bytes before the checksum of the last page.
    pub(super) magic: &'static [u8; 8],
}

impl Kind {
    /// Appends the end of a trailer.
    pub(super) fn put_end(&self, pages: u64, to: &mut Vec<u8>) {
        to.put_u64(pages);
        to.put_u8(self.format);
        to.put(self.magic);
    }

    /// The `len` bytes of the trailer before its end, in a file of this kind that has `file_len` bytes and this last page;
    /// otherwise why the file is of no use.
    pub(super) fn trailer<'a>(
        &self,
        page: &'a [u8],
        file_len: u64,
        len: usize,
    ) -> Result<&'a [u8], &'static str> {
        let Some(trailer) = page.get(ROOM - END - len..ROOM).filter(|_| page.len() == PAGE) else {
            return Err("it is cut off");
        };
        let (trailer, magic) = trailer.split_at(len + END - 8);
        if magic != self.magic {
            return Err("it does not end as such a file does");
        }
        let (trailer, format) = trailer.split_at(trailer.len() - 1);
        if format != [self.format] {
            return Err("its format is not known");
        }
        if !is_sound(page) {
            return Err("the checksum of its last page is wrong");
        }
        let (trailer, pages) = trailer.split_last_chunk().expect("eight bytes are before the format");
        if u64::from_be_bytes(*pages).checked_mul(PAGE as u64) != Some(file_len) {
            return Err("it is cut off");
        }
        Ok(trailer)
    }

    /// What `take` reads at the beginning of such a trailer, of which the rest binds the file to its SSTable; otherwise why the file is of
    /// no use.
    pub(super) fn bound_trailer<T>(
        &self,
        (page, file_len): (&[u8], u64),
        len: usize,
        (binding, version): (&Binding, Version),
        take: impl FnOnce(&mut Cursor<'_>) -> Decoded<T>,
    ) -> Result<T, &'static str> {
        let mut cursor = Cursor::new(self.trailer(page, file_len, len)?);
        let told = take(&mut cursor).map_err(|error| error.what())?;
        match binding.difference(version, &mut cursor).map_err(|error| error.what())? {
            Some(difference) => Err(difference),
            None => Ok(told),
        }
    }
}

/// Appends zeros up to the checksum of the page that begins at `start` of `out`, and the checksum.
pub(super) fn seal(out: &mut Vec<u8>, start: usize) {
    assert!(out.len() <= start + ROOM, "what is on a page has room there");
    out.resize(start + ROOM, 0);
    let sum = crc32fast::hash(&out[start..]);
    out.put_u32(sum);
}

/// Whether a page is as it was written.
pub(crate) fn is_sound(page: &[u8]) -> bool {
    let Some((content, sum)) = page.split_last_chunk() else { return false };
    page.len() == PAGE && crc32fast::hash(content) == u32::from_be_bytes(*sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { format: 3, magic: b"siltpage" };

    fn last_page() -> Vec<u8> {
        let mut page = vec![1; ROOM - END - 2];
        page.extend([7, 8]);
        KIND.put_end(2, &mut page);
        seal(&mut page, 0);
        page
    }

    #[test]
    fn a_trailer_stands_before_the_checksum() {
        let page = last_page();
        assert_eq!(page.len(), PAGE);
        assert_eq!(KIND.trailer(&page, 2 * PAGE as u64, 2), Ok(&[7, 8][..]));
        assert_eq!(KIND.trailer(&page, PAGE as u64, 2), Err("it is cut off"));
        assert_eq!(KIND.trailer(&page[1..], 2 * PAGE as u64, 2), Err("it is cut off"));
        let other = Kind { format: 4, ..KIND };
        assert_eq!(other.trailer(&page, 2 * PAGE as u64, 2), Err("its format is not known"));
        let other = Kind { magic: b"siltpagf", ..KIND };
        assert_eq!(other.trailer(&page, 2 * PAGE as u64, 2), Err("it does not end as such a file does"));
    }

    #[test]
    fn damage_is_seen() {
        let mut page = last_page();
        for at in 0..page.len() {
            page[at] ^= 0x10;
            assert!(!is_sound(&page) && KIND.trailer(&page, 2 * PAGE as u64, 2).is_err(), "byte {at}");
            page[at] ^= 0x10;
        }
        assert!(is_sound(&page) && !is_sound(&page[..PAGE - 1]) && !is_sound(&[]));
    }
}
