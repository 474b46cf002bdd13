//! Data.db as a range of uncompressed bytes, whatever it is on disk.
//!
//! ```text
//! compressed    chunk, u32 CRC32 of the chunk's bytes, chunk, u32 CRC32, …
//! uncompressed  the bytes; their CRC32s, one for each 64 KiB or so, stand in CRC.db
//! ```
//!
//! A range becomes one request, because the chunks that hold it are adjacent. Chunks are checked on every read; uncompressed data is
//! checked only if the reader asks for it, in whole stretches of CRC.db.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use runtime::{Ahead, File, IoError, Task, Window, buffer_of, reuse};

use super::read_ahead::PAGE;
use super::sums::{BadSum, Sums, Units};
use crate::parts::chunk_pages::{ChunkPlaces, Places, PlacesAtHand};
use crate::parts::compression_info::{CHUNK_CRC, Chunks, CompressionInfo, Compressor};
use crate::parts::crc::Crc;
use crate::parts::crc_pages::{CrcPages, SumsAtHand};
use crate::{Error, Result};

/// Less than this makes no request smaller, whatever a file is aligned to. Bytes.
const SECTOR: u64 = 512;

/// How much is read at a time for its checksum alone. Bytes.
const SUM_STEP: u64 = 256 << 10;

/// Who makes requests of so many bytes, or more, reads on: of a row that began in one of them the rest is in the next.
const LONG: usize = 64 << 10;

/// So many bytes of such a row have room before the next request. Of longer ones the request is copied behind them.
const ROOM: usize = 4 << 10;

/// The data of an SSTable.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    form: Form,
    /// Sees all that is read, where checksums are worked out.
    sums: Option<RefCell<Sums>>,
    /// The buffer of stretches that have no bytes, so that none is made for them.
    nothing: Rc<Vec<u8>>,
}

#[derive(Debug)]
enum Form {
    Compressed(ChunkPlaces),
    Plain { crc: Option<CrcPages> },
}

/// Uncompressed bytes and where they stand.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// The buffer; only `bytes` of it counts.
    pub owner: Rc<Vec<u8>>,
    /// The part of the buffer that is data.
    pub bytes: Range<usize>,
    /// The place of that part in the uncompressed data.
    pub start: u64,
}

impl Stretch {
    /// Where the bytes end in the uncompressed data.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Goes on without bytes at another place.
    pub(super) fn empty_at(&mut self, start: u64) {
        self.let_go();
        (self.bytes, self.start) = (0..0, start);
    }

    /// Hands the buffer on, unless something that was decoded still points into it.
    pub(super) fn let_go(&mut self) {
        if let Some(buffer) = Rc::get_mut(&mut self.owner) {
            reuse(std::mem::take(buffer));
        }
    }
}

/// What is to be done with a range of data beyond reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Care {
    /// Chunks are checked, and whole chunks unpacked.
    Usual,
    /// Uncompressed data is compared with CRC.db as well.
    Checked,
    /// Nothing behind the range will be wanted: of its last chunk no more is unpacked, where the compressor can stop.
    NoMore,
}

/// What is asked of the disk for a range of the data, and may be under way already.
#[derive(Debug)]
pub(super) struct Request {
    /// The uncompressed data that is wanted.
    range: Range<u64>,
    care: Care,
    /// What of the file that takes.
    on_disk: Range<u64>,
    /// Of compressed data, where each of its chunks stands.
    places: Places,
    /// The checksums that it is compared with, of as many stretches, once it has been waited for.
    sums: Vec<u32>,
    begun: Option<Task<std::result::Result<Ahead, IoError>>>,
}

/// What a reader has at hand of what tells of the data: its next requests mostly need the same.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    sums: SumsAtHand,
    places: PlacesAtHand,
}

impl Request {
    /// The uncompressed data that is wanted.
    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }
}

impl DataFile {
    /// What is held in memory to read the file beside what the cache has, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let form = match &self.form {
            Form::Compressed(places) => places.memory_bytes(),
            Form::Plain { crc } => crc.as_ref().map_or(0, CrcPages::memory_bytes),
        };
        self.file.memory_bytes() + form
    }

    /// Data that is compressed as `info` tells.
    pub fn compressed(file: File, info: CompressionInfo) -> DataFile {
        DataFile::in_chunks(file, ChunkPlaces::Known(Rc::new(info)))
    }

    /// Data in chunks that stand there.
    pub(crate) fn in_chunks(file: File, places: ChunkPlaces) -> DataFile {
        DataFile { file, form: Form::Compressed(places), sums: None, nothing: Rc::default() }
    }

    /// Whether there are checksums of all of it: those of its chunks, or CRC.db.
    pub(crate) fn has_checksums(&self) -> bool {
        !matches!(self.form, Form::Plain { crc: None })
    }

    /// Data that is not compressed. With checksums, reads may ask to be checked.
    pub fn plain(file: File, crc: Option<CrcPages>) -> DataFile {
        DataFile { file, form: Form::Plain { crc }, sums: None, nothing: Rc::default() }
    }

    /// The same data, whose checksums are worked out as it is read from its start on, and compared with CRC.db, if it has one.
    ///
    /// # Panics
    /// If it is not known where all chunks stand.
    pub(crate) fn summed(self, crc: Option<Rc<Crc>>) -> DataFile {
        let units = match (&self.form, crc) {
            (Form::Compressed(ChunkPlaces::Known(info)), _) => Units::Chunks(info.clone()),
            (Form::Compressed(ChunkPlaces::Paged(_)), _) => {
                panic!("who works checksums out has read where chunks stand")
            }
            (Form::Plain { .. }, Some(crc)) => Units::Stretches(crc, self.file.len()),
            (Form::Plain { .. }, None) => Units::None,
        };
        DataFile { sums: Some(RefCell::new(Sums::new(units))), ..self }
    }

    /// Reads what no reader has read, up to where the uncompressed `position` is on disk; at its end, all.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn sum_up_to(&self, position: u64) -> Result<()> {
        let Some(sums) = &self.sums else { return Ok(()) };
        let end = match &self.form {
            Form::Compressed(places) if position < self.len() => {
                let number = places.chunks().chunk_of(position);
                places.of(number..number + 1, &mut PlacesAtHand::default()).await?.all().start
            }
            Form::Plain { .. } if position < self.len() => position,
            _ => self.file.len(),
        };
        loop {
            let at = sums.borrow().at();
            if at >= end {
                return Ok(());
            }
            let len = (end - at).min(SUM_STEP) as usize;
            let window = self.file.read_exact_at(at, len).await?;
            sums.borrow_mut().see(at, &window);
        }
    }

    /// The CRC32 of all bytes of the file, once they have been read.
    pub(crate) fn digest(&self) -> Option<u32> {
        let sums = self.sums.as_ref()?.borrow();
        (sums.at() == self.file.len()).then(|| sums.digest())
    }

    /// What was found not to match its checksum since this was last asked.
    pub(crate) fn take_bad_sums(&self) -> Vec<BadSum> {
        self.sums.as_ref().map(|sums| sums.borrow_mut().take_bad()).unwrap_or_default()
    }

    /// The file on disk.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The name of the file, for errors.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// How many bytes of data there are, uncompressed.
    pub fn len(&self) -> u64 {
        match &self.form {
            Form::Compressed(places) => places.chunks().uncompressed_len(),
            Form::Plain { .. } => self.file.len(),
        }
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Up to where a request brings data in that asks for it up to `end`, which is above 0; not beyond all data.
    pub(crate) fn end_of_request(&self, end: u64) -> u64 {
        let unit = match &self.form {
            Form::Compressed(places) => places.chunks().chunk_len().into(),
            Form::Plain { .. } => (self.file.alignment() as u64).max(SECTOR),
        };
        end.next_multiple_of(unit).min(self.len())
    }

    /// Up to where the stretch of a request comes, if nothing in it is damaged.
    pub(super) fn end_of(&self, request: &Request) -> u64 {
        match &self.form {
            Form::Compressed(_) => self.end_of_request(request.range.end),
            // Whole stretches of CRC.db, where it is compared with them.
            Form::Plain { .. } => request.on_disk.end,
        }
    }

    /// Requests that end behind a multiple of so many bytes bring in nothing that was not asked for. Bytes; of compressed data that is
    /// left to its chunks. With care [`DataFile::prepare`] comes before.
    pub(super) fn unit(&self, care: Care) -> u64 {
        match &self.form {
            Form::Plain { crc: Some(crc) } if care == Care::Checked => u64::from(crc.chunk_len()),
            _ => PAGE,
        }
    }

    /// How the data is compressed.
    pub fn compression(&self) -> Option<&Chunks> {
        match &self.form {
            Form::Compressed(places) => Some(places.chunks()),
            Form::Plain { .. } => None,
        }
    }

    /// No bytes at all, at a place of the data.
    pub fn nothing_at(&self, start: u64) -> Stretch {
        Stretch { owner: self.nothing.clone(), bytes: 0..0, start }
    }

    /// Reads the data of `tail`, as far as it is in `range`, and what follows, with one request.
    ///
    /// The stretch begins at `range.start` or where `tail` does, whichever is earlier. It ends at
    /// `range.end` or, because chunks are read whole, up to a chunk later; or before a damaged chunk,
    /// if that is not the first.
    ///
    /// # Errors
    /// What the operating system says; if the checksum or size of the first chunk is wrong.
    ///
    /// # Panics
    /// If the range is not within the data, or `tail` does not end at its start.
    pub async fn read(&self, tail: &Stretch, range: Range<u64>, care: Care) -> Result<Stretch> {
        let mut at_hand = AtHand::default();
        self.prepare(care, &mut at_hand).await?;
        let mut request = self.request(range, care, &mut at_hand).await?;
        let window = self.wait(&mut request, &mut at_hand).await?;
        self.finish(tail, request, window)
    }

    /// Comes before all requests with this care: reads what has to be known of CRC.db.
    ///
    /// # Errors
    /// What cannot be read, or is not of this data.
    pub(super) async fn prepare(&self, care: Care, at_hand: &mut AtHand) -> Result<()> {
        match &self.form {
            Form::Plain { crc: Some(crc) } if care == Care::Checked => crc.prepare(&mut at_hand.sums).await,
            _ => Ok(()),
        }
    }

    /// Begins to read a range, as [`DataFile::read`] does, while its caller goes on: [`DataFile::wait`] waits for it. The
    /// disk is asked when the shard next turns to its tasks.
    ///
    /// # Errors
    /// If it cannot be told where the range is on disk.
    ///
    /// # Panics
    /// If the range is not within the data.
    pub(super) async fn begin(&self, range: Range<u64>, care: Care, at_hand: &mut AtHand) -> Result<Request> {
        let mut request = self.request(range, care, at_hand).await?;
        let (file, at, len) = (self.file.clone(), request.on_disk.start, len_of(&request.on_disk));
        request.begun = Some(runtime::spawn(file.read_ahead_at(at, len, self.room_before(len))));
        Ok(request)
    }

    /// The stretch of a request that [`DataFile::wait`] has brought the bytes of: see [`DataFile::read`].
    pub(super) fn finish(&self, tail: &Stretch, request: Request, window: Window) -> Result<Stretch> {
        assert_eq!(tail.end(), request.range.start, "a range goes on where its tail ends");
        let Request { range, care, on_disk, places, sums, .. } = request;
        match &self.form {
            Form::Compressed(of) => self.unpack_all((of.chunks(), &places), tail, (range, care), window),
            Form::Plain { crc: Some(crc) } if care == Care::Checked => {
                self.check((u64::from(crc.chunk_len()), &sums), tail, range, (on_disk.start, window))
            }
            Form::Plain { .. } => {
                let (buffer, bytes) = window.into_parts();
                Ok(join(tail, buffer, bytes, range.start))
            }
        }
    }

    /// What of the file has the data of a range: whole chunks, and with care whole stretches of CRC.db.
    ///
    /// # Errors
    /// If it cannot be told where they are.
    pub(super) async fn request(
        &self,
        range: Range<u64>,
        care: Care,
        at_hand: &mut AtHand,
    ) -> Result<Request> {
        assert!(range.start < range.end && range.end <= self.len(), "a range lies within the data");
        let mut places = Places::default();
        let on_disk = match &self.form {
            Form::Compressed(of) => {
                let [first, last] =
                    [range.start, range.end - 1].map(|position| of.chunks().chunk_of(position));
                places = of.of(first..last + 1, &mut at_hand.places).await?;
                places.all()
            }
            Form::Plain { crc: Some(crc) } if care == Care::Checked => {
                let size = u64::from(crc.chunk_len());
                range.start / size * size..range.end.next_multiple_of(size).min(self.len())
            }
            Form::Plain { .. } => range.clone(),
        };
        Ok(Request { range, care, on_disk, places, sums: Vec::new(), begun: None })
    }

    /// The bytes of a request as they are on disk, which is asked for them unless that was begun.
    pub(super) async fn wait(&self, request: &mut Request, at_hand: &mut AtHand) -> Result<Window> {
        if let Form::Plain { crc: Some(crc) } = &self.form
            && request.care == Care::Checked
        {
            let (size, Range { start, end }) = (u64::from(crc.chunk_len()), request.on_disk.clone());
            request.sums = crc.sums(start / size..end.div_ceil(size), &mut at_hand.sums).await?;
        }
        let on_disk = &request.on_disk;
        let window = match request.begun.take() {
            Some(begun) => begun.await?.take(),
            None => {
                let len = len_of(on_disk);
                self.file.read_behind_room_at(on_disk.start, len, self.room_before(len)).await?
            }
        };
        if let Some(sums) = &self.sums {
            sums.borrow_mut().see(on_disk.start, &window);
        }
        Ok(window)
    }

    /// How much room a request of so many bytes leaves before them, in bytes: for what is left over of those of the one before.
    fn room_before(&self, len: usize) -> usize {
        if len >= LONG && self.compression().is_none() { ROOM } else { 0 }
    }

    /// Checks the whole stretches of CRC.db that hold the range; `window` begins at `start` of the file.
    fn check(
        &self,
        (size, sums): (u64, &[u32]),
        tail: &Stretch,
        range: Range<u64>,
        (start, window): (u64, Window),
    ) -> Result<Stretch> {
        let first = start / size;
        let mut good = window.len();
        for ((chunk, &stored), bytes) in (first..).zip(sums).zip(window.chunks(size as usize)) {
            let computed = crc32fast::hash(bytes);
            if stored == computed {
                continue;
            }
            if chunk == first {
                let what = format!(
                    "the checksum of {} bytes: computed {computed:08x}, stored in CRC.db {stored:08x}",
                    bytes.len()
                );
                return Err(Error::corrupt(self.path(), chunk * size, what));
            }
            good = (chunk * size - start) as usize;
            break;
        }
        let (buffer, mut bytes) = window.into_parts();
        bytes.end = bytes.start + good;
        bytes.start += (range.start - start) as usize;
        Ok(join(tail, buffer, bytes, range.start))
    }

    /// Checks and unpacks the chunks that hold the range, which stand at these places; `window` begins with the first of them.
    fn unpack_all(
        &self,
        (chunks, places): (&Chunks, &Places),
        tail: &Stretch,
        (range, care): (Range<u64>, Care),
        window: Window,
    ) -> Result<Stretch> {
        let start = places.all().start;
        let chunk_len = u64::from(chunks.chunk_len());
        let (first, last) = (range.start / chunk_len, (range.end - 1) / chunk_len);
        let data_start = first * chunk_len;
        let whole = ((last + 1) * chunk_len).min(chunks.uncompressed_len());
        let is_cut = care == Care::NoMore && chunks.compressor() == Compressor::Lz4;
        let data_end = if is_cut { range.end } else { whole };
        // The range begins at a chunk's start wherever a tail is handed on: only whole chunks are read.
        let skipped = (range.start - data_start) as usize;
        let tail_bytes = if skipped == 0 { &tail.owner[tail.bytes.clone()] } else { &[] };
        let mut buffer = buffer_of(tail_bytes.len() + (data_end - data_start) as usize);
        buffer[..tail_bytes.len()].copy_from_slice(tail_bytes);
        let mut at = tail_bytes.len();
        for index in first..=last {
            let chunk = places.chunk(index);
            let bytes = &window[(chunk.start - start) as usize..(chunk.end - start) as usize];
            let [len, whole] = [data_end, whole].map(|end| (end - index * chunk_len).min(chunk_len) as usize);
            let Err(what) = self.unpack(chunks, bytes, &mut buffer[at..at + len], whole) else {
                at += len;
                continue;
            };
            if index == first {
                let what = format!("{what} (at offset {} of the file, compressed)", chunk.start);
                return Err(Error::corrupt(self.path(), index * chunk_len, what));
            }
            // What is before it may be all that is wanted.
            break;
        }
        window.let_go();
        if skipped == 0 {
            return Ok(Stretch { owner: Rc::new(buffer), bytes: 0..at, start: tail.start });
        }
        Ok(join(tail, buffer, skipped..at, range.start))
    }

    /// Checks a chunk of `whole` bytes and puts of those as many as there is room for.
    fn unpack(
        &self,
        chunks: &Chunks,
        chunk: &[u8],
        to: &mut [u8],
        whole: usize,
    ) -> std::result::Result<(), String> {
        let (packed, crc) = chunk
            .split_last_chunk::<{ CHUNK_CRC as usize }>()
            .ok_or_else(|| format!("a chunk of {} bytes is too short for its checksum", chunk.len()))?;
        let (expected, found) = (u32::from_be_bytes(*crc), crc32fast::hash(packed));
        if expected != found {
            return Err(format!("a chunk's checksum: computed {found:08x}, stored {expected:08x}"));
        }
        if chunks.is_raw(packed.len()) {
            // The last chunk of a file is padded with zeros up to the length from which chunks are raw.
            let raw = packed
                .get(..to.len())
                .ok_or_else(|| format!("a chunk holds {} bytes, not {}", packed.len(), to.len()))?;
            to.copy_from_slice(raw);
            return Ok(());
        }
        decompress(chunks.compressor(), packed, to, whole)
    }
}

fn len_of(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// The tail and what was read after it, in one buffer. Most rows fit before what was read.
fn join(tail: &Stretch, mut buffer: Vec<u8>, mut bytes: Range<usize>, start: u64) -> Stretch {
    let tail_bytes = &tail.owner[tail.bytes.clone()];
    if tail_bytes.is_empty() {
        return Stretch { owner: Rc::new(buffer), bytes, start };
    }
    if let Some(before) = bytes.start.checked_sub(tail_bytes.len()) {
        buffer[before..bytes.start].copy_from_slice(tail_bytes);
        bytes.start = before;
        return Stretch { owner: Rc::new(buffer), bytes, start: tail.start };
    }
    let mut joined = runtime::buffer(tail.bytes.len() + bytes.len());
    joined.extend_from_slice(tail_bytes);
    joined.extend_from_slice(&buffer[bytes]);
    reuse(buffer);
    let bytes = 0..joined.len();
    Stretch { owner: Rc::new(joined), bytes, start: tail.start }
}

/// Fills `to` with what `packed` holds, which is `whole` bytes. Of LZ4 less may be wanted.
///
/// ```text
/// LZ4      u32 LE uncompressed length, one LZ4 block
/// Snappy   one raw Snappy block, which begins with its length
/// Deflate  one zlib stream
/// Zstd     one zstd frame
/// Noop     the bytes
/// ```
fn decompress(
    compressor: Compressor,
    packed: &[u8],
    to: &mut [u8],
    whole: usize,
) -> std::result::Result<(), String> {
    let wanted = to.len();
    let found = match compressor {
        Compressor::Lz4 => {
            let (len, block) =
                packed.split_first_chunk::<4>().ok_or("a chunk is too short for its length")?;
            let len = u32::from_le_bytes(*len) as usize;
            if len != whole {
                return Err(format!("a chunk says it holds {len} bytes, not {whole}"));
            }
            let unpacked = match wanted < whole {
                true => lzzzz::lz4::decompress_partial(block, to, whole),
                false => lzzzz::lz4::decompress(block, to),
            };
            unpacked.map_err(|error| unpacking(&error))?
        }
        Compressor::Snappy => {
            let len = snap::raw::decompress_len(packed).map_err(|error| unpacking(&error))?;
            if len != wanted {
                return Err(format!("a chunk says it holds {len} bytes, not {wanted}"));
            }
            snap::raw::Decoder::new().decompress(packed, to).map_err(|error| unpacking(&error))?
        }
        Compressor::Deflate => inflate(packed, to)?,
        Compressor::Zstd => {
            zstd::bulk::decompress_to_buffer(packed, to).map_err(|error| unpacking(&error))?
        }
        Compressor::Noop => {
            to.get_mut(..packed.len()).ok_or("a chunk holds more than it should")?.copy_from_slice(packed);
            packed.len()
        }
    };
    if found == wanted { Ok(()) } else { Err(format!("a chunk holds {found} bytes, not {wanted}")) }
}

fn inflate(packed: &[u8], to: &mut [u8]) -> std::result::Result<usize, String> {
    let mut stream = flate2::Decompress::new(true);
    let status =
        stream.decompress(packed, to, flate2::FlushDecompress::Finish).map_err(|error| unpacking(&error))?;
    match status {
        flate2::Status::StreamEnd => Ok(stream.total_out() as usize),
        _ => Err("a chunk cannot be decompressed: the zlib stream does not end".into()),
    }
}

fn unpacking(error: &dyn std::fmt::Display) -> String {
    format!("a chunk cannot be decompressed: {error}")
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
