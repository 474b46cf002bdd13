//! The disk of the machine, through compio; a request that has begun is always seen to its end.
//!
//! The kernel writes into the buffer of a read until the read completes, whether or not somebody still waits for it,
//! and takes bytes out of that of a write. Closing an io_uring does not wait for requests that the device is working
//! on: freeing their buffers with the driver would let it write into memory that belongs to others by then, or put
//! what others keep there into a file. Therefore:
//!
//! 1. A request whose caller is dropped goes on as a task of its own, which keeps the buffer.
//! 2. [`RealDisk::close`] waits for all that have begun and lets none begin: only then may the driver be dropped.
//!
//! Without io_uring each request takes a thread while it is under way, so that there are [few](FEW) at a time; others wait.
//!
//! Without direct I/O, a read first asks the page cache of the operating system, which answers at once or not at all:
//! what it has needs no way through the driver, which takes several times as many instructions. Nor does what a thread reads
//! that has borrowed the shard and waits: see [`in_place`].

#![expect(unsafe_code, reason = "a buffer is as long as what was read into it, which is not cleared before")]

use std::cell::{Cell, RefCell};
use std::fs;
use std::future::{Future, pending, poll_fn};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::fs::OpenOptions;
use compio::io::{AsyncReadAt, AsyncWriteAt};
use rustix::fs::{AtFlags, FileType, OFlags, Statx, StatxFlags, fcntl_getfl, fcntl_setfl, statx};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use crate::blocks::Alignments;
use crate::file::{Opened, Source};
use crate::in_place;
use crate::line::Line;
use crate::new_file::{Created, Sink};
use crate::task::{boxed, yield_now};

/// The disk of the machine, as one shard uses it. Clones are the same.
#[derive(Clone)]
pub(crate) struct RealDisk(Rc<Inner>);

struct Inner {
    direct_io: bool,
    /// So many requests may be under way at a time.
    most: usize,
    under_way: Cell<usize>,
    /// Who waits to begin one.
    waiting: Line,
    closed: Cell<bool>,
    closer: RefCell<Option<Waker>>,
    /// How many reads the page cache has answered since other tasks were let go on.
    from_memory: Cell<u32>,
}

/// So many requests are under way at a time where each takes a thread.
pub(crate) const FEW: usize = 32;

/// Larger reads, in bytes, go through the driver: the shard would do nothing else for long.
const LARGEST_FROM_MEMORY: usize = 256 << 10;

/// Larger reads, in bytes, are left to the shard, even by who waits.
const LARGEST_IN_PLACE: usize = 256 << 10;

/// So many reads are answered by the page cache before other tasks are let go on.
const FROM_MEMORY_AT_A_TIME: u32 = 16;

impl RealDisk {
    pub(crate) fn new(direct_io: bool, most: usize) -> Self {
        Self(Rc::new(Inner {
            direct_io,
            most,
            under_way: Cell::new(0),
            waiting: Line::new(),
            closed: Cell::new(false),
            closer: RefCell::default(),
            from_memory: Cell::new(0),
        }))
    }

    pub(crate) async fn open(&self, path: &Path) -> io::Result<Opened> {
        let direct = if self.0.direct_io {
            // A file system without direct I/O refuses the flag; other reasons show again in the second attempt.
            self.open_with(path, OFlags::DIRECT).await.ok()
        } else {
            None
        };
        let is_direct = direct.is_some();
        let file = match direct {
            Some(file) => file,
            None => self.open_with(path, OFlags::empty()).await?,
        };
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::DIOALIGN;
        let stat = statx(&file, c"", AtFlags::EMPTY_PATH, wanted)?;
        if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let alignments = direct_alignments(&stat).filter(|_| is_direct);
        if is_direct && alignments.is_none() {
            fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::DIRECT)?;
        }
        let (alignment, memory_alignment) = alignments.unwrap_or((1, 1));
        let asks_memory = Cell::new(alignments.is_none());
        let source = Source::Real(RealFile { disk: self.clone(), file, asks_memory });
        Ok(Opened { source, len: stat.stx_size, alignment, memory_alignment })
    }

    async fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<compio::fs::File> {
        let path = path.to_owned();
        self.request(async move {
            OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).await
        })
        .await
    }

    /// Makes a new file, whose writes go through the page cache of the operating system unless they are to be direct, and can be.
    pub(crate) async fn create(&self, path: &Path, is_direct: bool) -> io::Result<Created> {
        let path = path.to_owned();
        let work = async move { OpenOptions::new().write(true).create_new(true).open(path).await };
        let file = self.request(work).await?;
        // The flag comes later: a file system that refuses it would have made the file all the same.
        let alignments = if is_direct && self.0.direct_io { set_direct(&file) } else { None };
        Ok(Created { sink: Sink::Real(RealNewFile { disk: self.clone(), file }), alignments })
    }

    pub(crate) async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.request(async move { compio::fs::rename(from, to).await }).await
    }

    pub(crate) async fn remove(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        self.request(async move { compio::fs::remove_file(path).await }).await
    }

    pub(crate) async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        self.request(async move { compio::fs::create_dir_all(path).await }).await
    }

    pub(crate) async fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        self.request(async move { compio::fs::remove_dir(path).await }).await
    }

    pub(crate) async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // The folder of a bare file name, as `Path::parent` tells it, is the current one.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let folder = self.open_with(path, OFlags::DIRECTORY).await?;
        self.request(async move { folder.sync_all().await }).await
    }

    pub(crate) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        // Names are compared in a tenth of the instructions of paths.
        let mut names =
            fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names.into_iter().map(|name| dir.join(name)).collect())
    }

    /// Lets no further request begin, and waits for those that have. Requests that come later wait for ever.
    pub(crate) async fn close(&self) {
        self.0.closed.set(true);
        poll_fn(|context| {
            if self.0.under_way.get() == 0 {
                return Poll::Ready(());
            }
            self.0.closer.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Whether any request is under way.
    pub(crate) fn has_requests(&self) -> bool {
        self.0.under_way.get() > 0
    }

    /// Does what compio is asked for by `work`, to its end even if the caller is dropped before.
    async fn request<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        let under_way = self.clone().begin().await;
        let work = boxed(move || async move {
            let _under_way = under_way;
            work.await
        });
        Request(Some(work)).await
    }

    /// Lets other tasks go on now and then: who reads from memory alone never waits, and would keep the shard.
    async fn let_others_go_on(&self) {
        self.0.from_memory.update(|count| (count + 1) % FROM_MEMORY_AT_A_TIME);
        if self.0.from_memory.get() == 0 {
            yield_now().await;
        }
    }

    async fn begin(self) -> UnderWay {
        in_place::over().await;
        let Inner { under_way, most, waiting, .. } = &*self.0;
        if under_way.get() >= *most || !waiting.is_empty() {
            waiting.until(|| (under_way.get() < *most).then_some(())).await;
        }
        if self.0.closed.get() {
            pending::<()>().await;
        }
        self.0.under_way.update(|count| count + 1);
        UnderWay(self)
    }
}

/// Has an empty file written past the page cache, if its file system can; what its writes have to suit then.
fn set_direct(file: &compio::fs::File) -> Option<Alignments> {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let (offset, memory) = direct_alignments(&stat)?;
    fcntl_setfl(file, fcntl_getfl(file).ok()? | OFlags::DIRECT).ok()?;
    let block = offset.max((stat.stx_blksize as usize).next_power_of_two());
    Some(Alignments { block, memory })
}

/// What offsets and lengths, and what addresses of direct I/O are multiples of, if the kernel knows.
fn direct_alignments(stat: &Statx) -> Option<(usize, usize)> {
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN);
    let offset = stat.stx_dio_offset_align as usize;
    let memory = stat.stx_dio_mem_align as usize;
    (known && offset.is_power_of_two() && memory.is_power_of_two()).then_some((offset, memory))
}

/// An open file of the machine.
pub(crate) struct RealFile {
    disk: RealDisk,
    file: compio::fs::File,
    /// Whether bytes may be in the page cache of the operating system, and it says so without waiting.
    asks_memory: Cell<bool>,
}

impl RealFile {
    /// One request: reads into `target` of `buf`, whose length is at least `target.start` and capacity `target.end`.
    pub(crate) async fn read_at(
        &self,
        mut buf: Vec<u8>,
        target: Range<usize>,
        offset: u64,
    ) -> (io::Result<usize>, Vec<u8>) {
        if self.asks_memory.get()
            && target.len() <= LARGEST_FROM_MEMORY
            && self.read_from_memory(&mut buf, &target, offset)
        {
            match in_place::is_in_place() {
                true => in_place::made_none().await,
                false => self.disk.let_others_go_on().await,
            }
            return (Ok(target.len()), buf);
        }
        if target.len() <= LARGEST_IN_PLACE && in_place::may_make_request() {
            return self.read_in_place(buf, target, offset);
        }
        let file = self.file.clone();
        let work = async move { file.read_at(buf.slice(target), offset).await };
        let BufResult(result, slice) = self.disk.request(work).await;
        (result, slice.into_inner())
    }

    /// Reads on this thread, which waits meanwhile.
    #[inline(never)]
    fn read_in_place(
        &self,
        mut buf: Vec<u8>,
        target: Range<usize>,
        offset: u64,
    ) -> (io::Result<usize>, Vec<u8>) {
        buf.truncate(target.start);
        let room = &mut buf.spare_capacity_mut()[..target.len()];
        let read = in_place::make_request(|| pread(&self.file, room, offset));
        let read = read.map(|(bytes, _)| bytes.len()).map_err(io::Error::from);
        if let Ok(count) = read {
            // SAFETY: so many bytes behind the end were just written.
            unsafe { buf.set_len(target.start + count) };
        }
        (read, buf)
    }

    /// Reads without waiting, and without a way through the driver, if the page cache has all of it.
    fn read_from_memory(&self, buf: &mut Vec<u8>, target: &Range<usize>, offset: u64) -> bool {
        // Most buffers were used before, and are long enough.
        let len = buf.len();
        buf.resize(target.end.max(len), 0);
        let mut room = [IoSliceMut::new(&mut buf[target.clone()])];
        let read = preadv2(&self.file, &mut room, offset, ReadWriteFlags::NOWAIT);
        if read == Ok(target.len()) {
            return true;
        }
        // File systems that cannot tell are not asked again.
        self.asks_memory.set(!matches!(read, Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)));
        buf.truncate(len);
        false
    }
}

/// A file of the machine that is being written.
pub(crate) struct RealNewFile {
    disk: RealDisk,
    file: compio::fs::File,
}

impl RealNewFile {
    /// One request: writes the bytes in `part` of `buf` at `offset` of the file; how many of them it took.
    pub(crate) async fn write_at(
        &self,
        buf: Vec<u8>,
        part: Range<usize>,
        offset: u64,
    ) -> (io::Result<usize>, Vec<u8>) {
        let mut file = self.file.clone();
        let work = async move { file.write_at(buf.slice(part), offset).await };
        let BufResult(result, slice) = self.disk.request(work).await;
        (result, slice.into_inner())
    }

    /// Lets the page cache have what is written from here on.
    pub(crate) fn end_direct(&self) -> io::Result<()> {
        Ok(fcntl_setfl(&self.file, fcntl_getfl(&self.file)? - OFlags::DIRECT)?)
    }

    /// The bytes and the length, as `fdatasync` does; times and rights of the file may come later.
    pub(crate) async fn sync(&self) -> io::Result<()> {
        let file = self.file.clone();
        self.disk.request(async move { file.sync_data().await }).await
    }
}

/// Counts a request as long as it is under way.
struct UnderWay(RealDisk);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let disk = &self.0.0;
        disk.under_way.update(|count| count - 1);
        disk.waiting.notify();
        if let Some(closer) = disk.closer.take() {
            closer.wake();
        }
    }
}

/// A request that has begun, and goes on as a task when it is dropped.
struct Request<F: Future + 'static>(Option<Pin<Box<F>>>);

impl<F: Future + 'static> Future for Request<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let work = self.0.as_mut().expect("a request is not polled after its end");
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F: Future + 'static> Drop for Request<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            compio::runtime::spawn(work).detach();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::IoClass;
    use crate::{Shard, ShardOptions, run, spawn, yield_now};

    /// Starts reads and drops them midway, again and again, among allocations that would show foreign writes.
    async fn abandon_reads(shard: &Shard, path: &Path) {
        let file = shard.disk().open(path, IoClass::default()).await.unwrap();
        for round in 0..20_u64 {
            let reads: Vec<_> = (0..16)
                .map(|number| {
                    let file = file.clone();
                    spawn(async move { file.read_exact_at((round + number) * 1000, 100_000).await })
                })
                .collect();
            yield_now().await;
            drop(reads);
            yield_now().await;
            let others: Vec<Vec<u8>> = (0..16).map(|_| vec![0; 100_000]).collect();
            yield_now().await;
            assert!(others.iter().flatten().all(|byte| *byte == 0), "a read wrote into foreign memory");
        }
    }

    fn for_both_drivers(main: impl AsyncFn(Shard, &Path) + Send + Sync) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        for io_uring in [true, false] {
            let options = ShardOptions { io_uring, ..ShardOptions::default() };
            run(options, async |shard| main(shard, &path).await).unwrap();
        }
    }

    /// Without io_uring more of them would have more threads than a container may have.
    #[test]
    fn only_a_few_requests_take_a_thread_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let options = ShardOptions { io_uring: false, ..ShardOptions::default() };
        run(options, async |_| {
            let (disk, most) = (RealDisk::new(true, 3), Cell::new(0));
            let sync = async |_| {
                disk.sync_dir(folder.path()).await.unwrap();
                most.set(disk.0.under_way.get().max(most.get()));
            };
            crate::join_all((0..50).map(sync)).await;
            disk.close().await;
            assert!((1..=3).contains(&most.get()), "{}", most.get());
        })
        .unwrap();
    }

    /// Who makes one request after the other does not keep others from theirs.
    #[test]
    fn who_waits_for_a_request_has_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        run(ShardOptions::default(), async |_| {
            let (disk, ended) = (RealDisk::new(true, 1), RefCell::new(Vec::new()));
            let syncs = async |(name, count): (char, usize)| {
                for _ in 0..count {
                    disk.sync_dir(folder.path()).await.unwrap();
                    ended.borrow_mut().push(name);
                }
            };
            crate::join_all([('a', 20), ('b', 1)].map(syncs)).await;
            let at = ended.borrow().iter().position(|name| *name == 'b');
            assert!(at.is_some_and(|at| at < 3), "{ended:?}");
        })
        .unwrap();
    }

    #[test]
    fn abandoned_reads_keep_their_buffers() {
        for_both_drivers(async |shard, path| {
            abandon_reads(&shard, path).await;
            let file = shard.disk().open(path, IoClass::default()).await.unwrap();
            assert_eq!(*file.read_exact_at(5, 5).await.unwrap(), [7; 5]);
        });
    }

    /// The page cache answers without waiting, but not for ever.
    #[test]
    fn who_reads_from_memory_lets_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        let options = ShardOptions { direct_io: false, ..ShardOptions::default() };
        run(options, async |shard| {
            let file = shard.disk().open(&path, IoClass::default()).await.unwrap();
            let reader = spawn(async move {
                loop {
                    assert_eq!(*file.read_exact_at(77, 5).await.unwrap(), [7; 5]);
                }
            });
            yield_now().await;
            yield_now().await;
            drop(reader);
        })
        .unwrap();
    }

    #[test]
    fn a_shard_waits_for_abandoned_reads_and_not_for_tasks() {
        for _ in 0..20 {
            for_both_drivers(async |shard, path| {
                let file = shard.disk().open(path, IoClass::default()).await.unwrap();
                for number in 0..16_u64 {
                    let file = file.clone();
                    spawn(async move {
                        loop {
                            file.read_exact_at(number * 1000, 500_000).await.unwrap();
                        }
                    })
                    .detach();
                }
                yield_now().await;
            });
        }
    }
}
