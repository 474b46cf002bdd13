//! SSTables of many small partitions, and how the index is read by who goes from one to the next.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{
    Bytes, Clustering, CqlType, DeletionTime, Fragment, Liveness, PartitionKey, PartitionStart, Row, Schema,
};
use runtime::{Cache, Disk, Shard, SimOptions, run_simulated};
use siltstone_sstable::component::{Component, Descriptor, INDEX_IO};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::{OpenOptions, Result, SSTable, SSTableWriter, Version, WriteOptions};

/// An SSTable of so many partitions, and their keys.
pub(crate) struct Written {
    path: PathBuf,
    pub(crate) keys: Vec<PartitionKey>,
}

impl Written {
    /// Each partition has a row. All keys are in the summary.
    pub(crate) async fn new(disk: &Disk, version: Version, count: i32) -> Written {
        let options = WriteOptions { min_index_interval: 1, compression: None, ..WriteOptions::new(version) };
        Written::with(disk, version, count, options).await
    }

    pub(crate) async fn with(disk: &Disk, version: Version, count: i32, options: WriteOptions) -> Written {
        let path = Path::new("/d").join(format!("{}-1-big-Data.db", version.name()));
        disk.create_dir_all(Path::new("/d")).await.unwrap();
        let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![], vec![]));
        let descriptor = Descriptor::parse(&path).unwrap();
        let mut writer =
            SSTableWriter::create(disk, descriptor, &schema, EncodingStats::NONE, options).await.unwrap();
        let key = |number: i32| PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]));
        let mut keys: Vec<PartitionKey> = (0..count).map(key).collect();
        keys.sort();
        for key in &keys {
            let start = PartitionStart { key: key.clone(), deletion: DeletionTime::LIVE };
            let clustering: Clustering = [vec![0, 0, 0, 1]].into_iter().collect();
            let liveness = Liveness { timestamp: 1, ..Liveness::NONE };
            writer.push(&Fragment::PartitionStart(start)).await.unwrap();
            writer.push(&Fragment::Row(Row { liveness, ..Row::new(clustering) })).await.unwrap();
            writer.push(&Fragment::PartitionEnd).await.unwrap();
        }
        writer.seal().await.unwrap();
        Written { path, keys }
    }

    pub(crate) fn path_of(&self, component: &Component) -> PathBuf {
        Descriptor::parse(&self.path).unwrap().path_of(component)
    }

    pub(crate) async fn open(&self, disk: &Disk, fences: bool) -> Result<Rc<SSTable>> {
        let options = OpenOptions { fences, ..OpenOptions::new(Cache::new(4 << 20)) };
        SSTable::open(disk, &self.path, &options).await
    }

    /// The bytes of a component are changed on disk.
    pub(crate) async fn change(&self, disk: &Disk, component: &Component, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path_of(component);
        let file = disk.open(&path, component.io_class()).await.unwrap();
        let mut bytes = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        change(&mut bytes);
        disk.as_simulated().unwrap().add_file(path, bytes);
    }
}

#[test]
fn who_goes_from_partition_to_partition_reads_the_index_ahead() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk();
        let written = Written::new(disk, Version::Me, 20_000).await;
        let file = disk.open(&written.path_of(&Component::Index), INDEX_IO).await.unwrap();
        let pages = file.len().div_ceil(4096);
        // Between two fences are four kilobytes, and between two entries of this summary one partition.
        for (fences, few) in [(true, pages / 5), (false, pages / 3)] {
            for (step, most) in [(1, few), (40, few), (7919, pages)] {
                let sstable = written.open(disk, fences).await.unwrap();
                let before = disk.stats().class(INDEX_IO);
                for at in (0..written.keys.len()).map(|at| at * step % written.keys.len()) {
                    assert!(sstable.index().find(&written.keys[at]).await.unwrap().is_some());
                }
                let asked = disk.stats().class(INDEX_IO).since(&before);
                assert!(
                    asked.requests <= most && asked.bytes <= file.len() * 5 / 4,
                    "fences {fences}, {step}: {asked:?}, {pages} pages"
                );
            }
        }
    })
    .unwrap();
}
