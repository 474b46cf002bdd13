//! Data.db, written from its start to its end: encoded rows go in, chunks with their checksums come out.
//!
//! ```text
//! pending   encoded ──a batch of whole chunks──► packed on another thread ──append──► Data.db
//! ```
//!
//! Rows go on being encoded while batches are packed, and one append is under way: see [`super::packing`]. What is left
//! at the end is packed on the shard's own thread, so that the data of a small SSTable never leaves it. Without compression what is
//! pending is what goes to the file; its checksums cost less than a hop.

use runtime::NewFile;

use super::pack::Packer;
use super::packing::{Batch, Packing};
use crate::Result;
use crate::appending::Appending;
use crate::parts::compression_info::{CompressionInfo, CompressionInfoBuilder};
use crate::parts::crc::{Crc, CrcBuilder};
use crate::parts::digest::Digest;

/// With so many bytes at hand, a request is worth it.
const FULL: usize = 1 << 20;

/// Multiples of so many bytes go to the file as they are, where nothing waits for the rest of its block: see
/// [`NewFile::append`].
const UNIT: usize = 4096;

/// Writes Data.db.
///
/// Invariant: `start` plus the length of `pending` is the place in the uncompressed data of the next byte.
#[derive(Debug)]
pub(crate) struct DataWriter {
    form: Form,
    output: Output,
    pending: Vec<u8>,
    /// How many bytes have to be pending for a flush.
    full: usize,
    start: u64,
}

/// The file, and what is known of what is in it.
#[derive(Debug)]
struct Output {
    file: Appending,
    /// Bytes of data that these are.
    data_len: u64,
    /// Of batches of compressed chunks.
    digest: crc32fast::Hasher,
}

#[derive(Debug)]
enum Form {
    Compressed(Box<Packing>, CompressionInfoBuilder),
    Plain(CrcBuilder),
}

/// What goes with a Data.db.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The checksum of the file.
    pub(crate) digest: Digest,
    /// How it is checked, or compressed.
    pub(crate) checks: Checks,
    /// Bytes on disk.
    pub(crate) file_len: u64,
    /// Bytes of data.
    pub(crate) data_len: u64,
}

/// The component that goes with Data.db.
#[derive(Debug)]
pub(crate) enum Checks {
    Compressed(CompressionInfo),
    Plain(Crc),
}

impl DataWriter {
    /// Writes compressed data.
    pub(crate) fn compressed(file: NewFile, packer: Packer, info: CompressionInfoBuilder) -> DataWriter {
        let packing = Packing::new(packer);
        let full = packing.batch_len();
        DataWriter::new(file, Form::Compressed(Box::new(packing), info), full)
    }

    /// Writes data as it is.
    pub(crate) fn plain(file: NewFile) -> DataWriter {
        DataWriter::new(file, Form::Plain(CrcBuilder::default()), FULL)
    }

    fn new(file: NewFile, form: Form, full: usize) -> DataWriter {
        let output = Output { file: Appending::new(file), data_len: 0, digest: crc32fast::Hasher::new() };
        DataWriter { form, output, pending: Vec::new(), full, start: 0 }
    }

    /// Where to append encoded bytes. Nothing but appending is allowed.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// The place in the uncompressed data of the next byte.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.start + self.pending.len() as u64
    }

    /// How many bytes of data are packed, and how many bytes of the file they are. The rest follows later; how much
    /// that is depends on what was written alone, not on the speed of anything.
    pub(crate) fn packed(&self) -> (u64, u64) {
        (self.output.data_len, self.output.file.len())
    }

    /// Whether so much is at hand that [`DataWriter::flush`] is worth it.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= self.full
    }

    /// Begins to write what is at hand, save a chunk, or without compression a block, that is not whole.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        let DataWriter { form, output, pending, start, .. } = self;
        let end = *start + pending.len() as u64;
        match form {
            Form::Compressed(packing, info) => {
                // A row may be so large that it is many batches.
                let much = packing.begin(pending);
                for batch in much.chunks(packing.batch_len()) {
                    output.append_due(packing, info).await?;
                    packing.begin_copy(batch);
                }
                output.append_due(packing, info).await?;
            }
            Form::Plain(crc) => {
                let tail = pending.split_off(pending.len() & !(UNIT - 1));
                output.append_plain(pending, crc).await?;
                pending.extend_from_slice(&tail);
            }
        }
        *start = end - pending.len() as u64;
        Ok(())
    }

    /// Writes all that is left, and gives the file to be made durable.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn finish(self) -> Result<(NewFile, Sealed)> {
        let DataWriter { form, mut output, mut pending, start, .. } = self;
        let data_len = start + pending.len() as u64;
        let (checks, digest) = match form {
            Form::Compressed(mut packing, mut info) => {
                let last = packing.last(pending);
                while let Some(batch) = packing.next().await {
                    packing.reuse(output.append_batch(batch, &mut info).await?);
                }
                packing.reuse(output.append_batch(last, &mut info).await?);
                (Checks::Compressed(info.finish(data_len)), Digest(output.digest.finalize()))
            }
            Form::Plain(mut crc) => {
                output.append_plain(&mut pending, &mut crc).await?;
                let (crc, digest) = crc.finish();
                (Checks::Plain(crc), digest)
            }
        };
        let file_len = output.file.len();
        Ok((output.file.end().await?, Sealed { digest, checks, file_len, data_len }))
    }
}

impl Output {
    /// Appends the batches that it is time to take.
    async fn append_due(&mut self, packing: &mut Packing, info: &mut CompressionInfoBuilder) -> Result<()> {
        while let Some(batch) = packing.due().await {
            packing.reuse(self.append_batch(batch, info).await?);
        }
        Ok(())
    }

    /// Begins to append a batch, and gives it back with another buffer.
    async fn append_batch(&mut self, mut batch: Batch, info: &mut CompressionInfoBuilder) -> Result<Batch> {
        batch.chunk_lens.iter().for_each(|&len| info.push(len));
        self.digest.combine(&batch.digest);
        self.data_len += batch.data_len();
        batch.packed = self.file.append(batch.packed).await?;
        Ok(batch)
    }

    /// Begins to append data as it is, and leaves an empty buffer.
    async fn append_plain(&mut self, data: &mut Vec<u8>, crc: &mut CrcBuilder) -> Result<()> {
        crc.update(data);
        self.data_len += data.len() as u64;
        *data = self.file.append(std::mem::take(data)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runtime::{Cache, Disk, IoClass, ShardOptions, SimOptions, run_simulated};

    use super::*;
    use crate::Version;
    use crate::data::chunk::{Care, DataFile};
    use crate::data::packing::BATCH;
    use crate::parts::compression_info::{Compression, Compressor};
    use crate::parts::crc_pages::CrcPages;

    const PATH: &str = "/t/me-1-big-Data.db";

    /// Text that compresses, then noise that does not, then text again.
    fn data() -> Vec<u8> {
        let mut noise = 1_u32;
        let mut next = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        };
        let text = b"silt settles in layers and is pressed into stone; ".repeat(4000);
        let noise: Vec<u8> = (0..500_000).map(|_| next()).collect();
        [&text[..], &noise, &text[..77_777]].concat()
    }

    async fn write(disk: &Disk, compression: Option<Compression>, data: &[u8]) -> Sealed {
        write_pieces(disk, compression, data, 1777).await
    }

    async fn write_pieces(disk: &Disk, compression: Option<Compression>, data: &[u8], len: usize) -> Sealed {
        disk.create_dir_all(Path::new("/t")).await.unwrap();
        let file = disk.create(Path::new(PATH), IoClass::new(1)).await.unwrap();
        let mut writer = match compression {
            Some(compression) => {
                let packer = Packer::new(compression.clone()).unwrap();
                DataWriter::compressed(file, packer, CompressionInfoBuilder::new(compression))
            }
            None => DataWriter::plain(file),
        };
        for (at, piece) in (0..).step_by(len).zip(data.chunks(len)) {
            assert_eq!(writer.position(), at);
            writer.buffer().extend_from_slice(piece);
            if writer.is_full() {
                writer.flush().await.unwrap();
            }
        }
        writer.finish().await.unwrap().1
    }

    async fn read(disk: &Disk, sealed: Sealed) -> Vec<u8> {
        let class = IoClass::new(1);
        let file = disk.open(Path::new(PATH), class).await.unwrap();
        assert_eq!(file.len(), sealed.file_len);
        let whole = file.read_exact_at(0, file.len() as usize).await.unwrap();
        assert_eq!(sealed.digest, Digest(crc32fast::hash(&whole)));
        let file = match sealed.checks {
            Checks::Compressed(info) => DataFile::compressed(file, info),
            Checks::Plain(crc) => {
                let path = Path::new("/t/crc");
                disk.as_simulated().expect("the disk is simulated").add_file(path, crc.encode());
                let crc = disk.open(path, class).await.unwrap();
                DataFile::plain(file, Some(CrcPages::new(crc, Cache::new(0), sealed.data_len)))
            }
        };
        let stretch = file.read(&file.nothing_at(0), 0..sealed.data_len, Care::Checked).await.unwrap();
        stretch.owner[stretch.bytes].to_vec()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut ways = vec![None];
        for compressor in
            [Compressor::Lz4, Compressor::Snappy, Compressor::Deflate, Compressor::Zstd, Compressor::Noop]
        {
            for version in [Version::Me, Version::Nb] {
                let compression = Compression::new(compressor, version);
                ways.push(Some(compression.clone().with_chunk_len(4 << 10).unwrap()));
                ways.push(Some(compression.with_chunk_len(1 << 20).unwrap()));
            }
        }
        let ratio = Compression::new(Compressor::Lz4, Version::Nb).with_min_ratio(1.1, Version::Nb).unwrap();
        ways.push(Some(ratio));
        let data = data();
        for way in ways {
            run_simulated(SimOptions { short_write_chance: 0.3, ..SimOptions::default() }, async |shard| {
                let sealed = write(shard.disk(), way.clone(), &data).await;
                assert!(read(shard.disk(), sealed).await == data, "{way:?}");
            })
            .unwrap();
        }
    }

    /// Pieces that fill a batch exactly, chunks longer than a batch usually is, and rows of many batches.
    #[test]
    fn batches_are_cut_anywhere() {
        let data = data().repeat(4);
        for chunk_len in [4 << 10, 16 << 10, 1 << 20] {
            for piece in [64 << 10, BATCH, BATCH + 1, 3 * BATCH - 5, data.len()] {
                run_simulated(SimOptions::default(), async |shard| {
                    let compression = Compression::new(Compressor::Lz4, Version::Nb);
                    let compression = compression.with_chunk_len(chunk_len).unwrap();
                    let sealed = write_pieces(shard.disk(), Some(compression), &data, piece).await;
                    assert!(read(shard.disk(), sealed).await == data, "{chunk_len} {piece}");
                })
                .unwrap();
            }
        }
    }

    /// How far a writer says it is does not depend on the threads, and it is never far behind.
    #[test]
    fn what_is_packed_is_told_alike_on_every_shard() {
        let data = data().repeat(16);
        let steps = async |disk: &Disk, path: &Path| {
            let compression = Compression::new(Compressor::Lz4, Version::Nb);
            let file = disk.create(path, IoClass::new(1)).await.unwrap();
            let packer = Packer::new(compression.clone()).unwrap();
            let mut writer = DataWriter::compressed(file, packer, CompressionInfoBuilder::new(compression));
            let mut steps = Vec::new();
            for piece in data.chunks(9999) {
                writer.buffer().extend_from_slice(piece);
                if writer.is_full() {
                    writer.flush().await.unwrap();
                }
                let (packed, file_len) = writer.packed();
                assert!(writer.position() - packed <= 6 * BATCH as u64 && (file_len > 0) == (packed > 0));
                steps.push((packed, file_len));
            }
            steps
        };
        let simulated = run_simulated(SimOptions::default(), async |shard| {
            shard.disk().create_dir_all(Path::new("/t")).await.unwrap();
            steps(shard.disk(), Path::new(PATH)).await
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("me-1-big-Data.db");
        let real = runtime::run(ShardOptions::default(), async |shard| steps(shard.disk(), &path).await);
        assert_eq!(simulated.unwrap(), real.unwrap());
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        let of = |level: &str| {
            let options = vec![(super::super::pack::LEVEL.to_owned(), level.to_owned())];
            Packer::new(Compression::new(Compressor::Zstd, Version::Nb).with_options(options)).map(drop)
        };
        assert_eq!(of("19"), Ok(()));
        assert!(of("99").unwrap_err().starts_with("Zstandard has no compression_level \"99\""));
        assert!(of("high").is_err());
    }
}
