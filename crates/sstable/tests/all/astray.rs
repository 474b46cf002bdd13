//! An index that points to another partition: no checksum covers it, so the key in the data has the last word.

use std::path::{Path, PathBuf};

use model::{
    Bytes, CqlType, DeletionTime, Fragment, FragmentReader, Liveness, PartitionKey, PartitionStart, Row,
    Schema, Slice,
};
use runtime::{Cache, Shard, SimOptions};
use siltstone_sstable::component::{Component, Descriptor};
use siltstone_sstable::parts::statistics::{EncodingStats, Partitioner};
use siltstone_sstable::{Error, OpenOptions, ReadOptions, SSTable, SSTableWriter, Version, WriteOptions};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cassandra/me/small/sstables/nock")
}

const DATA: &str = "me-1-big-Data.db";

/// The entries of an index without promoted indexes: key, data position, and where in the file it is coded.
fn entries(index: &[u8]) -> Vec<(Vec<u8>, std::ops::Range<usize>)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < index.len() {
        let key_len = usize::from(u16::from_be_bytes([index[at], index[at + 1]]));
        let position = at + 2 + key_len;
        let len = 1 + index[position].leading_ones() as usize;
        found.push((index[at + 2..position].to_vec(), position..position + len));
        assert_eq!(index[position + len], 0, "there is no promoted index");
        at = position + len + 1;
    }
    found
}

#[test]
fn a_wrong_position_is_an_error_and_no_other_row() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let disk = shard.disk().as_simulated().expect("the disk is simulated");
        let mut index = Vec::new();
        for file in std::fs::read_dir(folder()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            if path.ends_with("me-1-big-Index.db") {
                index.clone_from(&bytes);
            }
            disk.add_file(&path, bytes);
        }
        // The first entry of the second index page: its page cannot tell that the position is out of order.
        let entries = entries(&index);
        let ((key, to), (_, from)) = (entries[128].clone(), entries[100].clone());
        let mut bent = index.clone();
        bent.copy_within(from, to.start);
        disk.add_file(folder().join("me-1-big-Index.db"), bent);

        let options = OpenOptions::new(Cache::new(1 << 20));
        let table = SSTable::open(shard.disk(), &folder().join(DATA), &options).await.unwrap();
        let key = table.key(Bytes::from(key));
        for reverse in [false, true] {
            let options = ReadOptions { reverse, ..ReadOptions::default() };
            let mut reader =
                table.read(&key, &Slice::all(), options).await.unwrap().expect("the index has it");
            let error = reader.next().await.expect_err("what the index points to is another partition");
            assert!(
                matches!(&error, Error::Corrupt { what, .. } if what.contains("another partition")),
                "{error}"
            );
        }
        let mut scan = table.scan_partition(&key).await.unwrap().expect("the index has it");
        assert!(scan.next().await.is_err());
    })
    .unwrap();
}

/// Tables of a secondary index have no tokens: their keys stand in the order of their type, and what is absent there is no damage.
#[test]
fn an_absent_key_of_a_secondary_index_is_absent() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let schema = Schema::new(CqlType::Text, vec![CqlType::Int], Vec::new(), Vec::new()).into();
        let (dir, version) = (PathBuf::from("/t"), Version::Nb);
        shard.disk().create_dir_all(&dir).await.unwrap();
        let of = Descriptor { dir, version, generation: "1".into() };
        let options = WriteOptions {
            partitioner: Partitioner::Local,
            bloom_filter_fp_chance: 1.0,
            ..WriteOptions::new(version)
        };
        let none = EncodingStats::NONE;
        let mut writer =
            SSTableWriter::create(shard.disk(), of.clone(), &schema, none, options).await.unwrap();
        let key = |number: u32| PartitionKey { token: 0, bytes: format!("{number:04}").into_bytes().into() };
        for number in (0..1000).step_by(2) {
            let start = PartitionStart { key: key(number), deletion: DeletionTime::LIVE };
            let row = Row {
                liveness: Liveness { timestamp: 1, ..Liveness::NONE },
                ..Row::new([vec![0; 4]].into_iter().collect())
            };
            for fragment in [Fragment::PartitionStart(start), Fragment::Row(row), Fragment::PartitionEnd] {
                writer.push(&fragment).await.unwrap();
            }
        }
        writer.seal().await.unwrap();
        let options = OpenOptions::new(Cache::new(1 << 20));
        let path = of.path_of(&Component::Data);
        let table = SSTable::open(shard.disk(), &path, &options).await.unwrap();
        for number in 0..1000 {
            let key = table.key(key(number).bytes);
            let found = table.read(&key, &Slice::all(), ReadOptions::default()).await.unwrap();
            assert_eq!(found.is_some(), number % 2 == 0, "{number}");
        }
    })
    .unwrap();
}
