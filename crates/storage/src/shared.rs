//! SSTables that several shards share, and how each of them gets its own part.
//!
//! A shard has a part of the ring. An SSTable that another number of shards wrote, or another database, may have
//! partitions of several parts: each of these shards then opens it, and reads only what is its own.
//!
//! ```text
//! shard 0    |------ a ------|                  |-a1-|
//! shard 1              |---- a, b ----|    ►         |-a2-|  |-b1-|
//! shard 2                      |- b -|                        |-b2-|
//! ```
//!
//! No shard may compact such an SSTable by itself, because the rows of the others would go with it. [`Table::split`] makes
//! one SSTable for each part of it, under one transaction; then each shard takes its own over with [`Table::adopt`], and
//! only when all have done so the old ones are removed. Where some have and others could not, it is to be tried again with the same
//! SSTables: what was made of a part of them since would come back with others.

use std::ops::Range;
use std::rc::Rc;

use model::Token;
use sstable::component::Descriptor;
use sstable::{SSTableWriter, Version};

use crate::definition::Definition;
use crate::rewrite::Control;
use crate::sstable_set::Member;
use crate::table::Table;
use crate::transaction::{Committed, Transaction, TransactionKind};
use crate::{Error, Result};

/// A part of the ring: all tokens above one, if it is given, and not above another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tokens {
    /// Tokens above this one.
    pub after: Option<Token>,
    /// The last one of them.
    pub last: Token,
}

/// SSTables that were split.
#[derive(Debug)]
#[must_use = "the files of the old SSTables are still there"]
pub struct Split {
    /// The ones that take the place of the old ones, each with the part of the ring that it has.
    pub new: Vec<(Tokens, Descriptor)>,
    /// To be brought to its end once every shard has adopted the new ones.
    pub committed: Committed,
}

impl Tokens {
    /// The whole ring.
    pub const ALL: Tokens = Tokens { after: None, last: Token::MAX };

    /// Whether a token is in it.
    pub fn contain(&self, token: Token) -> bool {
        token <= self.last && self.after.is_none_or(|after| token > after)
    }

    /// Whether some from the first to the last one may be in it.
    pub fn overlap(&self, first: Token, last: Token) -> bool {
        first <= self.last && self.after.is_none_or(|after| last > after)
    }

    /// What is in both; `None` if nothing is.
    pub fn common(&self, other: &Tokens) -> Option<Tokens> {
        let tokens = Tokens { after: self.after.max(other.after), last: self.last.min(other.last) };
        tokens.after.is_none_or(|after| after < tokens.last).then_some(tokens)
    }

    /// Whether all partitions of an SSTable are in it.
    fn hold(&self, member: &Member) -> bool {
        self.contain(member.first.token) && self.contain(member.last.token)
    }
}

impl Table {
    /// This part of the ring is all that the table is asked for: SSTables without partitions of it are closed, and
    /// those that have others too are shared.
    pub fn own(&self, tokens: Tokens) {
        let set = self.sstables();
        let is_needed = |member: &&Rc<Member>| member.overlaps(tokens.after, tokens.last);
        let members = set.members().iter().filter(is_needed).cloned().collect();
        self.set_tokens(tokens, set.by_filters(members));
    }

    /// The SSTables that have partitions of other shards too, and were not split yet.
    pub fn shared(&self) -> Vec<Rc<Member>> {
        let tokens = self.tokens();
        let is_shared = |member: &&Rc<Member>| !tokens.hold(member) && !self.is_leaving(member);
        self.sstables().members().iter().filter(is_shared).cloned().collect()
    }

    /// Whether an SSTable has partitions of this shard only.
    pub(crate) fn is_own(&self, member: &Member) -> bool {
        self.tokens().hold(member)
    }

    /// Makes of SSTables others that have partitions of one part each, and puts these in their place in the folder. The
    /// shards still read the old ones then.
    ///
    /// # Errors
    /// What cannot be read or written, and [`Error::Cancelled`]; all is then as it was. [`Error::InDoubt`] if it is not certain that
    /// it is: the old ones are then left as they are until the table is opened again.
    pub async fn split(&self, inputs: &[Rc<Member>], parts: &[Tokens], control: &Control) -> Result<Split> {
        let definition = self.definition();
        let version_of = |input| definition.version_like(input);
        match self.split_into(inputs, parts, control, version_of).await {
            Err(Error::SSTable(sstable::Error::Unfit { what, .. })) if definition.fallback().is_some() => {
                // Written when the table had another version.
                tracing::info!(table = %self.folder().display(), what, "each is split into the version that holds it");
                self.split_into(inputs, parts, control, Definition::version_of_all).await
            }
            split => split,
        }
    }

    async fn split_into(
        &self,
        inputs: &[Rc<Member>],
        parts: &[Tokens],
        control: &Control,
        version_of: impl Fn(Version) -> Version,
    ) -> Result<Split> {
        let context = self.context();
        let (version, kind) = (self.definition().version, TransactionKind::Compaction);
        let mut transaction =
            Transaction::begin(&context.disk, &context.clock, self.folder(), version, kind).await?;
        match self.write_parts(inputs, (parts, version_of), control, &mut transaction).await {
            Ok(new) => {
                // From here on they are not split again.
                self.leave(inputs);
                let committed = transaction.commit().await;
                if committed.as_ref().is_err_and(|error| !matches!(error, Error::InDoubt { .. })) {
                    self.stay(inputs);
                }
                Ok(Split { new, committed: committed? })
            }
            Err(error) => {
                // Whatever is left says no more than the error.
                drop(transaction.abort().await);
                Err(error)
            }
        }
    }

    /// Reads new SSTables in the place of others, as far as they have partitions of this shard. Where that is done already, nothing is.
    ///
    /// # Errors
    /// What cannot be opened; the old ones are then read on.
    pub async fn adopt(&self, gone: &[Descriptor], new: &[(Tokens, Descriptor)]) -> Result<()> {
        let is_gone = |member: &&Rc<Member>| gone.contains(member.sstable.descriptor());
        let gone_now =
            || self.sstables().members().iter().filter(is_gone).cloned().collect::<Vec<Rc<Member>>>();
        if gone_now().is_empty() {
            return Ok(());
        }
        let tokens = self.tokens();
        let mut adopted = Vec::new();
        // Those of others may be compacted already.
        for (_, descriptor) in new.iter().filter(|(part, _)| part.common(&tokens).is_some()) {
            let member = self.open_member(descriptor).await?;
            adopted.extend(Some(member).filter(|member| member.overlaps(tokens.after, tokens.last)));
        }
        let gone = gone_now();
        self.set_members(&gone, &adopted);
        self.stay(&gone);
        Ok(())
    }

    async fn write_parts(
        &self,
        inputs: &[Rc<Member>],
        (parts, version_of): (&[Tokens], impl Fn(Version) -> Version),
        control: &Control,
        transaction: &mut Transaction,
    ) -> Result<Vec<(Tokens, Descriptor)>> {
        let mut new = Vec::new();
        for input in inputs {
            let version = version_of(input.sstable.version());
            let (mut start, len) = (0, input.sstable.data().file.len());
            // Of each, even where it should have nothing: not a byte of it is left out.
            for part in parts {
                control.check()?;
                let end = match () {
                    () if part.last >= input.last.token => len,
                    () if part.last < input.first.token => start,
                    () => input.sstable.data_above(part.last).await?,
                };
                if start != end {
                    let descriptor = self.write_part((input, version), start..end, part, transaction).await?;
                    new.push((*part, descriptor));
                }
                start = end;
            }
            assert!(start == len, "the parts are the whole ring");
        }
        transaction.remove(inputs.iter().map(|input| input.sstable.descriptor())).await?;
        Ok(new)
    }

    /// The part of an SSTable that this range of its data has.
    async fn write_part(
        &self,
        (input, version): (&Member, Version),
        range: Range<u64>,
        part: &Tokens,
        transaction: &mut Transaction,
    ) -> Result<Descriptor> {
        let sstable = &input.sstable;
        let descriptor = self.next_descriptor(version);
        transaction.add(&descriptor).await?;
        let statistics = sstable.statistics();
        let mut options = self.definition().write.clone();
        options.level = statistics.stats.level;
        (options.repaired_at, options.pending_repair) = (input.facts.repaired_at, input.facts.pending_repair);
        let (disk, encoding) = (&self.context().disk, statistics.header.encoding);
        let mut writer =
            SSTableWriter::create(disk, descriptor.clone(), sstable.schema(), encoding, options).await?;
        let mut rows = sstable.scan_range(range, u64::MAX)?.within(input.tokens(part.after, part.last));
        if let Err(error) = writer.push_all(&mut rows, &mut |_| ()).await {
            // Whatever is left says no more than the error.
            drop(writer.abandon().await);
            return Err(error.into());
        }
        writer.seal().await?;
        Ok(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_ring_meet() {
        let part = |after, last| Tokens { after, last };
        assert!(Tokens::ALL.contain(i64::MIN) && Tokens::ALL.contain(i64::MAX));
        assert!(!part(Some(0), 9).contain(0) && part(Some(0), 9).contain(9));
        assert_eq!(part(Some(0), 9).common(&part(None, 5)), Some(part(Some(0), 5)));
        assert_eq!(part(Some(0), 9).common(&part(Some(9), 20)), None);
    }
}
