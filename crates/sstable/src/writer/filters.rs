//! The filters of a new SSTable, made of the hashes of its keys once all are known: Filter.db, and BloomPages.db beside it.

use std::sync::Arc;

use runtime::{NewFile, offload};

use super::WriteOptions;
use super::seal::Sealer;
use crate::big::spool::Spool;
use crate::component::Component;
use crate::parts::binding::Binding;
use crate::parts::bloom_pages::BloomPagesBuilder;
use crate::parts::filter::{Filter, FilterBuilder};
use crate::parts::statistics::Partitioner;
use crate::{Error, Result};

/// So many hashes are worth a hop to another thread.
const MANY_HASHES: usize = 4096;

/// Filter.db, where there is to be one, and BloomPages.db up to what is bound to the data.
pub(super) struct Filters {
    filter: Option<FilterBuilder>,
    pages: Option<(NewFile, BloomPagesBuilder)>,
}

impl Filters {
    /// Those of the keys with these hashes.
    pub(super) async fn build(
        sealer: &mut Sealer,
        hashes: &mut Spool,
        keys: u64,
        options: &WriteOptions,
    ) -> Result<Filters> {
        let (version, chance) = (sealer.descriptor().version, options.bloom_filter_fp_chance);
        let path = sealer.descriptor().path_of(&Component::Filter);
        let filter = FilterBuilder::new(keys, chance, version);
        let mut filter = filter.map_err(|error| Error::unfit(&path, error.to_string()))?;
        if filter.is_none() {
            hashes.discard().await?;
            return Ok(Filters { filter: None, pages: None });
        }
        let has_pages = options.bloom_pages && options.partitioner == Partitioner::Murmur3;
        let mut pages = match has_pages.then(|| BloomPagesBuilder::new(keys, chance)).flatten() {
            Some(pages) => Some((sealer.create(Component::BloomPages).await?, pages)),
            None => None,
        };
        hashes
            .drain(async |piece| {
                let hashes: Arc<[[u64; 2]]> = piece.as_chunks().0.iter().map(hash_in).collect();
                // With pages to be made, the filter is made meanwhile on another thread.
                let adding = (pages.is_some() && hashes.len() >= MANY_HASHES).then(|| {
                    let (mut filter, hashes) = (filter.take().expect("no other has it"), hashes.clone());
                    offload(move || {
                        filter.add_all(&hashes);
                        filter
                    })
                });
                if let Some((file, pages)) = &mut pages {
                    hashes.iter().for_each(|&hash| pages.add(hash));
                    if pages.is_full() {
                        file.append(pages.take_pages()).await?;
                    }
                }
                match adding {
                    Some(adding) => filter = Some(adding.await),
                    None => filter.as_mut().expect("no other has it").add_all(&hashes),
                }
                Ok(())
            })
            .await?;
        Ok(Filters { filter, pages })
    }

    /// Writes the rest of BloomPages.db, and gives Filter.db.
    pub(super) async fn finish(self, sealer: &mut Sealer, binding: &Binding) -> Result<Option<Filter>> {
        if let Some((mut file, pages)) = self.pages {
            file.append(pages.finish(binding, sealer.descriptor().version)).await?;
            sealer.put(file);
        }
        Ok(self.filter.map(FilterBuilder::finish))
    }
}

/// Both halves of a hash, as they were spooled.
fn hash_in(bytes: &[u8; 16]) -> [u64; 2] {
    let hash = u128::from_le_bytes(*bytes);
    [hash as u64, (hash >> 64) as u64]
}
