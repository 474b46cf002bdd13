//! try
use model::{Fragment, FragmentReader};
use siltstone_sstable::*;
fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    runtime::run(runtime::ShardOptions::default(), async move |shard: runtime::Shard| {
        for p in &paths {
            let cache = runtime::Cache::new(64 << 20);
            let t = std::time::Instant::now();
            let r: Result<()> = async {
                let s =
                    SSTable::open(shard.disk(), std::path::Path::new(p), &OpenOptions::new(cache)).await?;
                let mut v = model::fragment::Validator::new(s.schema());
                let mut r = s.scan();
                let (mut parts, mut rows, mut rts) = (0, 0, 0);
                while let Some(f) = r.next().await? {
                    if let Err(e) = v.check(&f) {
                        println!("{p}: order {e} at {}", r.position());
                    }
                    match f {
                        Fragment::PartitionStart(_) => parts += 1,
                        Fragment::Row(_) => rows += 1,
                        Fragment::RangeTombstone(_) => rts += 1,
                        _ => {}
                    }
                }
                println!("{p}: {parts} {rows} {rts} {:?}", t.elapsed());
                Ok(())
            }
            .await;
            if let Err(e) = r {
                println!("ERR {e}");
            }
        }
    })
    .unwrap();
}
