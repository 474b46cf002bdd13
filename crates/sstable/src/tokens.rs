//! The tokens of all partitions, read once from Index.db.
//!
//! Who goes by them takes what they do not name for absent. So an Index.db that may have lost a partition is refused:
//!
//! ```text
//! an entry that was stepped over          there are not as many as Statistics.db counts
//! a key that is not as it was written     it is out of order, or fences do not have its token where it begins;
//!                                         without fences, the filter does not have it
//! ```
//!
//! By fences that is certain. A filter has one wrong key in a hundred: such an index hides no more from who goes by these tokens than
//! from who reads by it.

use std::rc::Rc;

use model::Token;
use model::key::{murmur3, token_of_hash};

use crate::component::Component;
use crate::parts::fences::{Fences, Near};
use crate::parts::statistics::Partitioner;
use crate::sstable::SSTable;
use crate::{Error, Result};

/// So many entries are looked at before other tasks of the shard go on, and so many keys are asked of the filter together.
const AT_A_TIME: usize = 512;

impl SSTable {
    /// Whether its partitions are in the order of tokens that hash their keys.
    pub fn has_tokens(&self) -> bool {
        self.statistics().validation.partitioner == Partitioner::Murmur3
    }

    /// Visits the tokens of its partitions, in their order. What was visited before an error is of no use.
    ///
    /// # Errors
    /// What cannot be read; what makes it uncertain that Index.db has all partitions, as this module says.
    ///
    /// # Panics
    /// If it has no [tokens](SSTable::has_tokens).
    pub async fn each_token(&self, mut visit: impl FnMut(Token)) -> Result<()> {
        assert!(self.has_tokens(), "who asks for tokens knows that there are some");
        let expected = self.statistics().stats.partition_sizes.count();
        let mut witness = match self.index().fencing.get() {
            Some(fences) => Witness::Fences(fences, None),
            None => Witness::Filter(Vec::new()),
        };
        let (mut entries, mut count) = (self.entries(), 0);
        let (mut before, mut last) = (Token::MIN, Vec::new());
        loop {
            let at = entries.position();
            let Some(entry) = entries.pop()? else {
                if entries.fill().await? {
                    continue;
                }
                break;
            };
            let hash = murmur3(entry.key);
            let token = token_of_hash(hash);
            if count > 0 && (before, &last[..]) >= (token, entry.key) {
                return Err(self.uncertain(at, "a key is not above the one before it"));
            }
            if count == expected {
                return Err(self.uncertain(at, "there are more entries than Statistics.db counts"));
            }
            if !witness.confirms(self, hash, entry.data).await? {
                return Err(self.uncertain(at, "fences or the filter have not got a key"));
            }
            visit(token);
            (count, before) = (count + 1, token);
            last.clear();
            last.extend_from_slice(entry.key);
            if count.is_multiple_of(AT_A_TIME as u64) {
                runtime::yield_now().await;
            }
        }
        if count != expected {
            return Err(
                self.uncertain(entries.position(), "there are fewer entries than Statistics.db counts")
            );
        }
        match witness.confirms_rest(self).await? {
            true => Ok(()),
            false => Err(self.uncertain(entries.position(), "the filter has not got a key")),
        }
    }

    fn uncertain(&self, at: u64, what: &str) -> Error {
        Error::corrupt(&self.descriptor().path_of(&Component::Index), at, what)
    }
}

/// What else knows of the keys.
enum Witness {
    /// They know where the partition of each token begins. Those near the last one are at hand.
    Fences(Rc<Fences>, Option<Near>),
    /// It knows hashes; those that it was not asked for yet.
    Filter(Vec<[u64; 2]>),
}

impl Witness {
    /// Whether nothing speaks against a key with this hash whose partition begins at this place of the data.
    async fn confirms(&mut self, sstable: &SSTable, hash: [u64; 2], data: u64) -> Result<bool> {
        match self {
            Witness::Fences(fences, near) => {
                let token = token_of_hash(hash);
                let has = |near: &Near| near.has(token, data);
                if !near.as_ref().is_some_and(has) {
                    *near = fences.near(token).await?;
                }
                Ok(near.as_ref().is_some_and(has))
            }
            Witness::Filter(hashes) => {
                hashes.push(hash);
                if hashes.len() < AT_A_TIME { Ok(true) } else { self.confirms_rest(sstable).await }
            }
        }
    }

    /// Whether nothing speaks against those keys that were not looked for yet.
    async fn confirms_rest(&mut self, sstable: &SSTable) -> Result<bool> {
        let Witness::Filter(hashes) = self else { return Ok(true) };
        let mut found = Vec::new();
        sstable.filter().sift(hashes, &mut found).await?;
        let has_all = found.len() == hashes.len();
        hashes.clear();
        Ok(has_all)
    }
}
