//! What the fuzz targets share: small real SSTables, and everything that can be read of one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::{Bytes, Clustering, Fragment, FragmentReader, Next, Position, Slice};
use runtime::{Cache, IoClass, Shard, SimOptions};
use sstable::component::{Component, Descriptor};
use sstable::verify::verify;
use sstable::{
    Error, OpenOptions, ReadOptions, Result, SSTable, SSTableWriter, Search, Version, WriteOptions,
};

/// What [`LARGE`] is written to.
const FENCED: &str = "/t/oa-7-big-Data.db";

/// Bytes of a page of our own components.
const PAGE: usize = 4096;

/// A reader that gives or fills more often than this does not come to an end.
const MOST_POPS: usize = 1_000_000;

/// A real SSTable: the version and generation in its files' names, and its components.
pub struct Table {
    name: &'static str,
    components: &'static [(&'static str, &'static [u8])],
}

macro_rules! table {
    ($folder:literal, $name:literal, [$($component:literal),*]) => {
        Table {
            name: $name,
            components: &[$((
                $component,
                include_bytes!(concat!("../../fixtures/cassandra/", $folder, "/", $name, "-", $component)),
            )),*],
        }
    };
}

/// Tables of every family: not compressed with index blocks; compressed, with checksums in Statistics.db
/// and without; with static rows, collections and counters.
pub const TABLES: [Table; 4] = [
    table!(
        "me/large/sstables/large_none",
        "me-2-big",
        [
            "Data.db",
            "Index.db",
            "Summary.db",
            "Filter.db",
            "Statistics.db",
            "CRC.db",
            "Digest.crc32",
            "TOC.txt"
        ]
    ),
    table!(
        "mc/small/sstables/tombs",
        "mc-2-big",
        ["Data.db", "Index.db", "Summary.db", "Filter.db", "Statistics.db", "CompressionInfo.db", "TOC.txt"]
    ),
    table!(
        "oa/large/sstables/large_rev",
        "oa-2-big",
        ["Data.db", "Index.db", "Summary.db", "Filter.db", "Statistics.db", "CompressionInfo.db", "TOC.txt"]
    ),
    table!(
        "nb/small/sstables/statics",
        "nb-1-big",
        ["Data.db", "Index.db", "Summary.db", "Filter.db", "Statistics.db", "CompressionInfo.db", "TOC.txt"]
    ),
];

/// A table with a partition of 20,000 rows, whose index is large.
pub const LARGE: Table = table!(
    "me/large/sstables/large_none",
    "me-1-big",
    ["Data.db", "Index.db", "Summary.db", "Filter.db", "Statistics.db", "CRC.db", "Digest.crc32", "TOC.txt"]
);

impl Table {
    /// Its files, to be changed.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let path = |component: &str| Path::new("/t").join(format!("{}-{component}", self.name));
        self.components.iter().map(|(component, bytes)| (path(component), bytes.to_vec())).collect()
    }

    /// Its Data.db.
    fn data(&self) -> PathBuf {
        Path::new("/t").join(format!("{}-Data.db", self.name))
    }

    /// Its files with other bytes for a component.
    pub fn with(&self, component: &str, bytes: &[u8]) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = self.files();
        for (path, content) in &mut files {
            if path.to_string_lossy().ends_with(component) {
                *content = bytes.to_vec();
            }
        }
        files
    }
}

/// The version that a number stands for.
pub fn version(number: u8) -> Version {
    Version::ALL[usize::from(number) % Version::ALL.len()]
}

/// Flips bits at some places of a file that consists of pages with checksums, and sets the checksums right.
pub fn change_pages(bytes: &mut [u8], edits: &[(u16, u8)]) {
    for (at, bits) in edits {
        let at = usize::from(*at) * bytes.len() / (usize::from(u16::MAX) + 1);
        bytes[at] ^= bits;
    }
    for page in bytes.chunks_exact_mut(PAGE) {
        let (content, sum) = page.split_at_mut(PAGE - 4);
        sum.copy_from_slice(&crc32fast::hash(content).to_be_bytes());
    }
}

/// Runs over a disk that has these files.
pub fn with_files(files: Vec<(PathBuf, Vec<u8>)>, test: impl AsyncFnOnce(Shard)) {
    let done = runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk().as_simulated().expect("the disk is simulated");
        files.into_iter().for_each(|(path, bytes)| disk.add_file(path, bytes));
        test(shard).await;
    });
    done.expect("the shard comes to an end");
}

/// Reads everything of the SSTable at `path` in every way, and verifies it.
pub async fn read_everything(shard: &Shard, path: &Path) {
    let options = OpenOptions { read_buffer: 5000, ..OpenOptions::new(Cache::new(1 << 20)) };
    let verified = verify(shard.disk(), path, &options, |done, total| assert!(done <= total)).await;
    drop(verified);
    let Ok(table) = SSTable::open(shard.disk(), path, &options).await else { return };
    let mut places = Vec::new();
    let _ = each(table.scan(), |fragment| match fragment {
        Fragment::PartitionStart(start) => places.push((start.key, Vec::new())),
        Fragment::Row(row) => places.last_mut().expect("a row is in a partition").1.push(row.clustering),
        _ => {}
    })
    .await;
    for (key, rows) in places.iter().take(2) {
        let middle = rows.get(rows.len() / 2).cloned().map_or(Position::start(), Position::before);
        let late = rows.get(rows.len() * 3 / 4).cloned().map_or(Position::end(), Position::after);
        for slice in [Slice::all(), Slice { start: middle, end: late }] {
            for (reverse, search) in [(false, Search::Binary), (true, Search::Binary), (true, Search::Scan)] {
                let options = ReadOptions {
                    search,
                    reverse,
                    static_row: true,
                    limit: reverse.then_some(1),
                    ..ReadOptions::default()
                };
                if let Ok(Some(reader)) = table.read(&table.key(key.bytes.clone()), &slice, options).await {
                    let _ = each(reader, drop).await;
                }
            }
        }
    }
}

/// Changes a component of our own of a table with a large partition, and reads rows by it.
pub fn read_beside(component: &Component, edits: &[(u16, u8)]) {
    let mut files = fenced().to_vec();
    let data = Descriptor::parse(Path::new(FENCED)).expect("it is a name");
    let changed = data.path_of(component);
    let (_, bytes) = files.iter_mut().find(|(path, _)| *path == changed).expect("it has all of them");
    change_pages(bytes, edits);
    with_files(files, async |shard| {
        let options = OpenOptions::new(Cache::new(1 << 20));
        let path = Path::new(FENCED);
        let table = SSTable::open(shard.disk(), path, &options).await.expect("what is beside it does no harm");
        for key in [1_i32, 2, 77] {
            let key = table.key(Bytes::from(key.to_be_bytes().to_vec()));
            if let Ok(Some(reader)) = table.read(&key, &Slice::all(), ReadOptions::default()).await {
                let _ = each(reader, drop).await;
            }
            for (row, reverse) in [(0_i32, false), (9000, false), (9001, true), (30_000, true)] {
                let at: Clustering = [row.to_be_bytes().to_vec()].into_iter().collect();
                let slice = Slice { start: Position::before(at.clone()), end: Position::after(at) };
                let options = ReadOptions { reverse, ..ReadOptions::default() };
                if let Ok(Some(reader)) = table.read(&key, &slice, options).await {
                    let _ = each(reader, drop).await;
                }
            }
        }
    });
}

/// The files of [`LARGE`], written with small blocks and all components of our own.
fn fenced() -> &'static [(PathBuf, Vec<u8>)] {
    static FILES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let written = runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
            let disk = shard.disk();
            let simulated = disk.as_simulated().expect("the disk is simulated");
            LARGE.files().into_iter().for_each(|(path, bytes)| simulated.add_file(path, bytes));
            let options = OpenOptions::new(Cache::new(1 << 20));
            let from = SSTable::open(disk, &LARGE.data(), &options).await?;
            let to = Descriptor::parse(Path::new(FENCED))?;
            let options = WriteOptions { column_index_size: 1024, ..WriteOptions::new(to.version) };
            let encoding = from.statistics().header.encoding;
            let mut writer = SSTableWriter::create(disk, to, from.schema(), encoding, options).await?;
            writer.push_all(&mut from.scan(), &mut |_| ()).await?;
            writer.seal().await?;
            let mut files = Vec::new();
            for path in disk.list(Path::new("/t"))? {
                let file = disk.open(&path, IoClass::new(0)).await?;
                files.push((path, file.read_exact_at(0, file.len() as usize).await?.to_vec()));
            }
            Ok::<_, Error>(files)
        });
        written.expect("the shard comes to an end").expect("a simulated disk takes it")
    })
}

/// Hands on all fragments of a reader that must come to an end.
async fn each(mut reader: impl FragmentReader<Error = Error>, mut with: impl FnMut(Fragment)) -> Result<()> {
    let mut fragment = Fragment::default();
    for _ in 0..MOST_POPS {
        match reader.pop(&mut fragment)? {
            Next::Fragment => with(std::mem::take(&mut fragment)),
            Next::End => return Ok(()),
            Next::Fill => reader.fill().await?,
        }
    }
    panic!("the reader does not come to an end");
}
