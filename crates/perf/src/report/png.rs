//! A picture as PNG: rows of red, green and blue, packed by Deflate.
//!
//! ```text
//! file    89 "PNG" 0d 0a 1a 0a │ IHDR │ tEXt │ IDAT │ IEND
//! chunk   length u32 │ name │ content │ CRC-32 of name and content     numbers are big-endian
//! IHDR    width u32 │ height u32 │ 8 bits a colour │ 2: colours │ 0: Deflate │ 0: filters │ 0: rows in order
//! tEXt    "Software" 0 │ who drew it
//! IDAT    zlib of all rows; a row is 0, for no filter, and three bytes a pixel
//! ```

use std::io::Write as _;

use crc32fast::Hasher;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// What each file begins with.
const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Who drew it.
pub(super) const MARK: &str = "siltstone perf report";

/// Bytes of a pixel.
const PIXEL: usize = 3;

/// The file of a picture of so many pixels, which stand in rows, three bytes each.
pub(super) fn encoded(pixels: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    assert_eq!(pixels.len(), width as usize * height as usize * PIXEL, "each pixel has three bytes");
    let mut file = SIGNATURE.to_vec();
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    chunk(&mut file, *b"IHDR", &head);
    chunk(&mut file, *b"tEXt", &[b"Software\0", MARK.as_bytes()].concat());
    chunk(&mut file, *b"IDAT", &packed(pixels, width as usize * PIXEL));
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, name: [u8; 4], content: &[u8]) {
    let mut sum = Hasher::new();
    sum.update(&name);
    sum.update(content);
    file.extend((content.len() as u32).to_be_bytes());
    file.extend(name);
    file.extend(content);
    file.extend(sum.finalize().to_be_bytes());
}

fn packed(pixels: &[u8], row: usize) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = pixels.chunks(row).try_for_each(|row| {
        packer.write_all(&[0])?;
        packer.write_all(row)
    });
    let packed = written.and_then(|()| packer.finish());
    packed.expect("memory can be written to")
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;

    /// Takes a file apart: width and height, and the pixels.
    pub(in super::super) fn decoded(file: &[u8]) -> ((u32, u32), Vec<u8>) {
        let number = |at: &[u8]| u32::from_be_bytes(at[..4].try_into().unwrap());
        let mut rest = file.strip_prefix(&SIGNATURE).unwrap();
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let len = number(rest) as usize;
            assert_eq!(crc32fast::hash(&rest[4..8 + len]), number(&rest[8 + len..]));
            chunks.push((&rest[4..8], &rest[8..8 + len]));
            rest = &rest[12 + len..];
        }
        let names: Vec<&[u8]> = chunks.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [b"IHDR", b"tEXt", b"IDAT", b"IEND"]);
        let (width, height) = (number(chunks[0].1), number(&chunks[0].1[4..]));
        assert_eq!(chunks[0].1[8..], [8, 2, 0, 0, 0]);
        let mut rows = Vec::new();
        ZlibDecoder::new(chunks[2].1).read_to_end(&mut rows).unwrap();
        let row = 1 + width as usize * PIXEL;
        assert_eq!(rows.len(), row * height as usize);
        let pixels = rows.chunks(row).flat_map(|row| &row[1..]).copied().collect();
        ((width, height), pixels)
    }

    #[test]
    fn pixels_come_back() {
        let pixels: Vec<u8> = (0..5 * 4 * PIXEL as u8).collect();
        assert_eq!(decoded(&encoded(&pixels, (5, 4))), ((5, 4), pixels));
    }
}
