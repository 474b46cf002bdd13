//! Batches of chunks, packed on other threads and taken back in their order.
//!
//! ```text
//! encoded ──batch──► ┌ offload(pack) ┐
//!                    │ offload(pack) │ at most IN_FLIGHT
//!                    └ offload(pack) ┘ ──in order──► packed, lengths of chunks, checksum ──► appended
//! ```
//!
//! A batch has its own packer, buffers and checksum, so that nothing is shared; a batch that was taken is used again.
//! When one is taken depends on what was given alone, never on how fast the threads are: who asks how long the file is
//! in between gets the same answer in every run.

use std::collections::VecDeque;

use runtime::{Task, buffer, offload, reuse};

use super::pack::Packer;
use crate::parts::compression_info::Compression;

/// So many bytes of data are worth a hop to another thread. A thread is woken twice for each batch and a request is made of
/// it: with a quarter of this, the kernel took half as much again.
pub(super) const BATCH: usize = 512 << 10;

/// So many batches are packed, or wait for being taken, at a time. Not the number of cores: see this module's head.
const IN_FLIGHT: usize = 4;

/// Packs batch after batch.
#[derive(Debug)]
pub(crate) struct Packing {
    compression: Compression,
    under_way: VecDeque<Task<Batch>>,
    /// Those of which the buffers can be used again.
    idle: Vec<Batch>,
    /// How many may be under way. It begins with one: so the first lengths are known early.
    most: usize,
}

/// Chunks that are packed together.
#[derive(Debug)]
pub(crate) struct Batch {
    packer: Packer,
    data: Vec<u8>,
    /// The chunks with their checksums.
    pub(crate) packed: Vec<u8>,
    /// How many bytes each of them is.
    pub(crate) chunk_lens: Vec<u64>,
    /// The checksum of all that is packed.
    pub(crate) digest: crc32fast::Hasher,
}

impl Packing {
    /// The packer is used for the first batch; others are made like it.
    pub(crate) fn new(packer: Packer) -> Packing {
        let compression = packer.compression().clone();
        Packing { compression, under_way: VecDeque::new(), idle: vec![Batch::new(packer)], most: 1 }
    }

    /// How many bytes of data a batch has, save the last one: whole chunks.
    pub(crate) fn batch_len(&self) -> usize {
        BATCH.next_multiple_of(self.chunk_len())
    }

    /// How many bytes of data a chunk has, save the last one.
    pub(crate) fn chunk_len(&self) -> usize {
        self.compression.chunk_len() as usize
    }

    /// Has `data` packed, and leaves of it what is no whole chunk. What would be much more than a batch is given back
    /// instead, whole chunks of it: [`Packing::begin_copy`].
    pub(crate) fn begin(&mut self, data: &mut Vec<u8>) -> Vec<u8> {
        let whole = data.len() / self.chunk_len() * self.chunk_len();
        let mut batch = self.batch();
        batch.data.clear();
        // Room for the row that ends a batch, so that buffers do not double.
        if batch.data.capacity() == 0 {
            batch.data = buffer(self.batch_len() + self.batch_len() / 8);
        }
        std::mem::swap(&mut batch.data, data);
        data.extend_from_slice(&batch.data[whole..]);
        batch.data.truncate(whole);
        if whole > 2 * self.batch_len() {
            let much = std::mem::take(&mut batch.data);
            self.idle.push(batch);
            return much;
        }
        self.offload(batch);
        Vec::new()
    }

    /// Has these bytes packed, which are whole chunks.
    pub(crate) fn begin_copy(&mut self, data: &[u8]) {
        let mut batch = self.batch();
        batch.data.clear();
        batch.data.extend_from_slice(data);
        self.offload(batch);
    }

    /// Packs the last bytes on this thread.
    pub(crate) fn last(&mut self, data: Vec<u8>) -> Batch {
        let batch = self.batch();
        Batch { data, ..batch }.pack()
    }

    /// The next batch, if so many are under way that it is time to take one. [`Packing::reuse`] it.
    pub(crate) async fn due(&mut self) -> Option<Batch> {
        if self.under_way.len() <= self.most {
            return None;
        }
        self.most = IN_FLIGHT.min(self.most + 1);
        self.next().await
    }

    /// The next batch, if there is one under way.
    pub(crate) async fn next(&mut self) -> Option<Batch> {
        Some(self.under_way.pop_front()?.await)
    }

    /// Lets the buffers of a batch be used again.
    pub(crate) fn reuse(&mut self, batch: Batch) {
        self.idle.push(batch);
    }

    fn batch(&mut self) -> Batch {
        self.idle.pop().unwrap_or_else(|| {
            let packer = Packer::new(self.compression.clone());
            Batch::new(packer.expect("one was made with the same options"))
        })
    }

    fn offload(&mut self, mut batch: Batch) {
        if batch.packed.capacity() == 0 {
            // What does not compress becomes longer before it is found not to.
            batch.packed = buffer(batch.data.capacity() + batch.data.capacity() / 8);
        }
        self.under_way.push_back(offload(|| batch.pack()));
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        for batch in self.idle.drain(..) {
            reuse(batch.data);
            reuse(batch.packed);
        }
    }
}

impl Batch {
    fn new(packer: Packer) -> Batch {
        let (data, packed, chunk_lens) = (Vec::new(), Vec::new(), Vec::new());
        Batch { packer, data, packed, chunk_lens, digest: crc32fast::Hasher::new() }
    }

    /// How many bytes of data were packed.
    pub(crate) fn data_len(&self) -> u64 {
        self.data.len() as u64
    }

    fn pack(mut self) -> Batch {
        self.packed.clear();
        self.chunk_lens.clear();
        for chunk in self.data.chunks(self.packer.chunk_len()) {
            self.chunk_lens.push(self.packer.pack(chunk, &mut self.packed));
        }
        self.digest.reset();
        self.digest.update(&self.packed);
        self
    }
}
