//! try
use model::*;
use siltstone_sstable::*;
fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    runtime::run(runtime::ShardOptions::default(), async move |shard: runtime::Shard| {
        for p in &paths {
            for search in [Search::Binary, Search::Scan] {
                for reverse in [false, true] {
                    let cache = runtime::Cache::new(64 << 20);
                    let s = SSTable::open(shard.disk(), std::path::Path::new(p), &OpenOptions::new(cache))
                        .await
                        .unwrap();
                    let key = s.key(Bytes::from(1i32.to_be_bytes().to_vec()));
                    for c in [100000i32, 100001, 100004, 0, 199000, 60000] {
                        let before = shard.disk().stats();
                        let pb = s.page_stats();
                        let pos: Clustering = [c.to_be_bytes().to_vec()].into_iter().collect();
                        let r: Result<()> = async {
                            let mut r = s
                                .read(
                                    &key,
                                    &Slice::of_prefix(pos),
                                    ReadOptions { search, reverse, ..Default::default() },
                                )
                                .await?
                                .unwrap();
                            let mut n = vec![];
                            while let Some(f) = r.next().await? {
                                n.push(match f {
                                    Fragment::Row(r) => format!("row {:?}", r.clustering.values[0]),
                                    Fragment::RangeTombstone(c) => format!("rt {:?}", c.position.weight),
                                    _ => "-".into(),
                                })
                            }
                            let st = shard.disk().stats().since(&before);
                            println!(
                                "{c}: {n:?} index {:?} data {:?} {:?}-{:?}",
                                st.class(component::INDEX_IO),
                                st.class(component::DATA_IO),
                                pb,
                                s.page_stats()
                            );
                            Ok(())
                        }
                        .await;
                        if let Err(e) = r {
                            println!("ERR {e}");
                        }
                    }
                    println!("---");
                }
            }
        }
    })
    .unwrap();
}
