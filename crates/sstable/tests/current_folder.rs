//! Bare names are those of files in the current folder, which is that of a whole process.

use std::path::Path;
use std::rc::Rc;

use model::{CqlType, Schema};
use siltstone_sstable::component::Descriptor;
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::{SSTableWriter, Version, WriteOptions};

#[test]
fn what_is_abandoned_in_the_current_folder_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    std::env::set_current_dir(dir.path()).unwrap();
    runtime::run(runtime::ShardOptions::default(), async |shard| {
        let schema = Rc::new(Schema::new(CqlType::Int, Vec::new(), Vec::new(), Vec::new()));
        let descriptor = Descriptor::parse(Path::new("nb-1-big-Data.db")).unwrap();
        let options = WriteOptions::new(Version::Nb);
        let writer = SSTableWriter::create(shard.disk(), descriptor, &schema, EncodingStats::NONE, options);
        writer.await.unwrap().abandon().await.unwrap();
        assert_eq!(shard.disk().list(dir.path()).unwrap(), Vec::<std::path::PathBuf>::new());
    })
    .unwrap();
}
