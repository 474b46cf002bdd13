//! Real SSTables are sound; and what is done to one is found and named.

use runtime::{Cache, Shard, ShardOptions};
use siltstone_sstable::verify::{Report, verify};
use siltstone_sstable::{OpenOptions, Result};

async fn verified(shard: &Shard, path: &std::path::Path) -> Result<Report> {
    let options = OpenOptions::new(Cache::new(8 << 20));
    verify(shard.disk(), path, &options, |done, total| assert!(done <= total)).await
}

#[test]
fn real_sstables_are_sound() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        let mut wrong = Vec::new();
        for fixture in testkit::fixtures::all() {
            match verified(&shard, &fixture.data).await {
                Ok(report) => {
                    for n in report.notes.listed() {
                        println!("NOTE {n}");
                    }
                    wrong.extend(report.problems.listed().iter().map(ToString::to_string))
                }
                // Sound, but nothing that is read here.
                Err(error) if error.to_string().contains("RandomPartitioner") => {}
                Err(error) => wrong.push(error.to_string()),
            }
        }
        assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
    })
    .unwrap();
}
