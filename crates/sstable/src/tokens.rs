//! The tokens of all partitions, read once from Index.db.
//!
//! Who goes by them takes what they do not name for absent. So an Index.db that may have lost a partition is refused:
//!
//! ```text
//! an entry that was stepped over          there are not as many as Statistics.db counts
//! a key that is not as it was written     it is out of order, or fences do not have its token where it begins
//! ```
//!
//! Without fences reads find a partition by Index.db, as it is.

use model::Token;
use model::key::{murmur3, token_of_hash};

use crate::component::Component;
use crate::parts::fences::{Fences, Near};
use crate::parts::statistics::Partitioner;
use crate::sstable::SSTable;
use crate::{Error, Result};

impl SSTable {
    /// Whether its partitions are in the order of tokens that hash their keys.
    pub fn has_tokens(&self) -> bool {
        self.statistics().validation.partitioner == Partitioner::Murmur3
    }

    /// The tokens of its partitions, in their order.
    ///
    /// # Errors
    /// What cannot be read; what makes it uncertain that Index.db has all partitions, as this module says.
    ///
    /// # Panics
    /// If it has no [tokens](SSTable::has_tokens).
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        assert!(self.has_tokens(), "who asks for tokens knows that there are some");
        let count = self.statistics().stats.partition_sizes.count();
        let fences = self.index().fencing.get();
        let (mut entries, mut near) = (self.entries(), None);
        let (mut tokens, mut last) = (Vec::new(), Vec::new());
        loop {
            let at = entries.position();
            let Some(entry) = entries.pop()? else {
                if entries.fill().await? {
                    continue;
                }
                break;
            };
            let token = token_of_hash(murmur3(entry.key));
            if tokens.last().is_some_and(|before| (*before, &last[..]) >= (token, entry.key)) {
                return Err(self.uncertain(at, "a key is not above the one before it"));
            }
            if tokens.len() as u64 == count {
                return Err(self.uncertain(at, "there are more entries than Statistics.db counts"));
            }
            if let Some(fences) = &fences
                && !is_near(&mut near, fences, token, entry.data).await?
            {
                return Err(self.uncertain(at, "fences have another token for a partition"));
            }
            tokens.push(token);
            last.clear();
            last.extend_from_slice(entry.key);
        }
        match tokens.len() as u64 == count {
            true => Ok(tokens),
            false => {
                Err(self.uncertain(entries.position(), "there are fewer entries than Statistics.db counts"))
            }
        }
    }

    fn uncertain(&self, at: u64, what: &str) -> Error {
        Error::corrupt(&self.descriptor().path_of(&Component::Index), at, what)
    }
}

/// Whether fences have a partition with a token at this place of the data. Who comes from the one before has those `near` it.
async fn is_near(near: &mut Option<Near>, fences: &Fences, token: Token, data: u64) -> Result<bool> {
    let has = |near: &Near| near.has(token, data);
    if !near.as_ref().is_some_and(has) {
        *near = fences.near(token).await?;
    }
    Ok(near.as_ref().is_some_and(has))
}
