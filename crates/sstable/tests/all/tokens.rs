//! The tokens of all partitions by Index.db: every one of them, or an error.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{
    Bytes, Clustering, CqlType, DeletionTime, Fragment, Liveness, PartitionKey, PartitionStart, Row, Schema,
    Token,
};
use runtime::{Cache, Disk, Shard, SimOptions, run_simulated};
use siltstone_sstable::component::{Component, Descriptor, INDEX_IO};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::{OpenOptions, Result, SSTable, SSTableWriter, Version, WriteOptions};

/// Every fourth partition has rows, and with them blocks.
async fn write(disk: &Disk, version: Version, count: i32) -> (PathBuf, Vec<Token>) {
    let path = Path::new("/d").join(format!("{}-1-big-Data.db", version.name()));
    disk.create_dir_all(Path::new("/d")).await.unwrap();
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![], vec![]));
    let options = WriteOptions { column_index_size: 100, compression: None, ..WriteOptions::new(version) };
    let descriptor = Descriptor::parse(&path).unwrap();
    let mut writer =
        SSTableWriter::create(disk, descriptor, &schema, EncodingStats::NONE, options).await.unwrap();
    let mut keys: Vec<PartitionKey> =
        (0..count).map(|number| PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]))).collect();
    keys.sort();
    for (number, key) in keys.iter().enumerate() {
        let start = PartitionStart { key: key.clone(), deletion: DeletionTime::LIVE };
        writer.push(&Fragment::PartitionStart(start)).await.unwrap();
        for row in 0..if number % 4 == 0 { 40 } else { 1_i32 } {
            let clustering: Clustering = [row.to_be_bytes().to_vec()].into_iter().collect();
            let liveness = Liveness { timestamp: 1, ..Liveness::NONE };
            writer.push(&Fragment::Row(Row { liveness, ..Row::new(clustering) })).await.unwrap();
        }
        writer.push(&Fragment::PartitionEnd).await.unwrap();
    }
    writer.seal().await.unwrap();
    (path, keys.iter().map(|key| key.token).collect())
}

async fn tokens_of(sstable: &SSTable) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    sstable.each_token(|token| tokens.push(token)).await?;
    Ok(tokens)
}

async fn open(disk: &Disk, path: &Path) -> Rc<SSTable> {
    SSTable::open(disk, path, &OpenOptions::new(Cache::new(1 << 20))).await.unwrap()
}

#[test]
fn all_tokens_come_in_their_order() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        for count in [1, 2, 700] {
            run_simulated(SimOptions::default(), async |shard: Shard| {
                let (path, tokens) = write(shard.disk(), version, count).await;
                assert_eq!(tokens_of(&*open(shard.disk(), &path).await).await.unwrap(), tokens);
            })
            .unwrap();
        }
    }
}

/// Whichever bit is not as it was written, no token is lost without an error, and none is another one.
#[test]
fn a_damaged_index_gives_an_error_or_all_tokens() {
    run_simulated(SimOptions::default(), async |shard: Shard| {
        let (path, tokens) = write(shard.disk(), Version::Nb, 200).await;
        assert!(matches!(open(shard.disk(), &path).await.fences_state(), Usage::InUse { .. }));
        let index = Descriptor::parse(&path).unwrap().path_of(&Component::Index);
        let file = shard.disk().open(&index, INDEX_IO).await.unwrap();
        let whole = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        let (mut refused, mut same) = (0, 0);
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            shard.disk().as_simulated().unwrap().add_file(index.to_str().unwrap(), damaged);
            match tokens_of(&*open(shard.disk(), &path).await).await {
                Ok(found) => {
                    assert_eq!(found, tokens, "bit {bit}");
                    same += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("Index.db"), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(
            refused > 200 * 32,
            "of {} bits {refused} were refused, {same} of no matter",
            8 * whole.len()
        );
    })
    .unwrap();
}
