//! What goes on at once: writing, reading, flushing and compacting.

use std::rc::Rc;
use std::time::Duration;

use model::merge::Direction;
use model::{Clustering, PartitionKey, Position, Slice};
use runtime::{sleep, timeout};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::sstable_set::Member;
use siltstone_storage::{Error, ReadRequest, Table};
use testkit::generate::random::Random;
use testkit::statements::Statement;

use super::checks::{Asked, agree, select};
use super::session::Session;
use super::world::{Written, schema};

impl Session<'_, '_> {
    /// Writes random statements.
    pub(crate) async fn write_some(&self, mut random: Random) {
        for _ in 0..self.world.plan.steps {
            pause(&mut random).await;
            if self.has_failed.get() {
                return;
            }
            let at = random.below(self.tables.len());
            let written = &self.world.tables[at];
            let mut statement = written.writer.borrow_mut().statement();
            expire_alike(&mut statement, self.world.now());
            let patience = random.percent(10).then(|| micros(&mut random, 300));
            self.write(at, &statement.to_mutation(written.table), patience).await;
        }
    }

    /// Reads random slices while others write.
    pub(crate) async fn read_some(&self, mut random: Random) {
        for _ in 0..self.world.plan.steps {
            pause(&mut random).await;
            let at = random.below(self.tables.len());
            let (written, table) = (&self.world.tables[at], &self.tables[at]);
            let asked = Asked::random(written, &mut random);
            if !schema(written).is_empty_slice(&asked.request.slice) {
                let patience = random.percent(10).then(|| micros(&mut random, 100));
                self.read(written, table, &asked, patience).await;
            }
        }
    }

    async fn read(&self, written: &Written<'_>, table: &Table, asked: &Asked, patience: Option<Duration>) {
        let ReadRequest { key, slice, direction, .. } = &asked.request;
        let before = written.ledger.borrow().before(key);
        let reading = select(table, asked, self.world.now());
        let found = match patience {
            None => Some(reading.await),
            Some(patience) => timeout(patience, reading).await,
        };
        let what = found.as_ref().map(|found| found.as_ref().map_err(ToString::to_string));
        self.world.note(format_args!("read {:?}", what.map(|found| found.map(Vec::len))));
        match found {
            Some(Err(error)) => self.explain(&error),
            Some(Ok(found)) => {
                let ledger = written.ledger.borrow();
                if let Some(possible) = ledger.between(&before, key, slice, *direction, self.world.now()) {
                    agree(&found, &asked.adapt(possible), &format!("{asked:?}"));
                }
            }
            None => {}
        }
    }

    /// Flushes a table now and then.
    pub(crate) async fn flush_some(&self, mut random: Random) {
        for _ in 0..self.world.plan.steps.div_ceil(4) {
            pause(&mut random).await;
            sleep(micros(&mut random, 1000)).await;
            let table = random.one_of(&self.tables);
            let flushed = match random.percent(5) {
                true => timeout(micros(&mut random, 1000), self.store.flush(table)).await,
                false => Some(self.store.flush(table).await),
            };
            let what = flushed.as_ref().map(|flushed| flushed.as_ref().map_err(ToString::to_string));
            self.world.note(format_args!("flushed {what:?}"));
            match flushed {
                Some(Err(error)) => self.explain(&error),
                Some(Ok(())) => {}
                None => self.note_fault(),
            }
        }
    }

    /// Compacts some of a table's SSTables.
    pub(crate) async fn compact_some(&self, mut random: Random) {
        for _ in 0..self.world.plan.steps.div_ceil(4) {
            pause(&mut random).await;
            sleep(micros(&mut random, 1000)).await;
            let table = random.one_of(&self.tables);
            if self.world.plan.compacts_by_itself {
                self.compact_all(table, &mut random).await;
                continue;
            }
            let inputs = self.some_members(table, &mut random);
            self.busy.borrow_mut().extend(inputs.iter().cloned());
            let mut rewrite = Rewrite::into_one(inputs);
            rewrite.job.output_level = random.below(3) as u32;
            rewrite.job.max_output_bytes = random.percent(30).then_some(500);
            self.compact(table, &rewrite, &mut random).await;
            let is_done = |member: &Rc<Member>| rewrite.inputs.iter().any(|input| Rc::ptr_eq(input, member));
            self.busy.borrow_mut().retain(|member| !is_done(member));
        }
    }

    async fn compact(&self, table: &Table, rewrite: &Rewrite, random: &mut Random) {
        let control = Control::default();
        let is_cancelled = random.percent(10);
        let canceller = runtime::spawn({
            let (control, after) = (control.clone(), micros(random, 1000));
            async move {
                sleep(after).await;
                control.cancel();
            }
        });
        if !is_cancelled {
            drop(canceller);
        }
        let rewriting = table.rewrite(rewrite, &control);
        let rewritten = match random.percent(5) {
            true => timeout(micros(random, 1000), rewriting).await,
            false => Some(rewriting.await),
        };
        let what = rewritten.as_ref().map(|new| new.as_ref().map(Vec::len).map_err(ToString::to_string));
        self.world.note(format_args!("compacted {}: {what:?}", rewrite.inputs.len()));
        match rewritten {
            Some(Err(Error::Cancelled)) => assert!(is_cancelled),
            Some(Err(error)) => self.explain(&error),
            _ => {}
        }
    }

    async fn compact_all(&self, table: &Table, random: &mut Random) {
        if random.percent(10) {
            self.store.compaction().cancel();
        }
        let compacted = match random.percent(5) {
            true => timeout(micros(random, 1000), self.store.compact(table)).await,
            false => Some(self.store.compact(table).await),
        };
        let what = compacted.as_ref().map(|compacted| compacted.as_ref().map_err(ToString::to_string));
        self.world.note(format_args!("compacted all: {what:?}"));
        match compacted {
            Some(Err(Error::Cancelled)) => {}
            Some(Err(error)) => self.explain(&error),
            _ => {}
        }
    }

    fn some_members(&self, table: &Table, random: &mut Random) -> Vec<Rc<Member>> {
        let mut members = table.compactable();
        let busy = self.busy.borrow();
        members.retain(|member| !busy.iter().any(|other| Rc::ptr_eq(other, member)));
        let chance = *random.one_of(&[50, 100]);
        members.retain(|_| random.percent(chance));
        members
    }
}

impl Asked {
    fn random(written: &Written<'_>, random: &mut Random) -> Asked {
        let keys = &written.table.partitions;
        let key = testkit::statements::values::key_of(random.one_of::<Vec<_>>(keys));
        let slice = match random.below(3) {
            0 => Slice::all(),
            1 => Slice::of_prefix(written.table.random_row(random)),
            _ => slice(written, random),
        };
        let mut request = ReadRequest::new(PartitionKey::new(key), slice);
        request.static_row = random.percent(70);
        if random.percent(50) {
            request.direction = Direction::Reverse;
        }
        request.limit = random.percent(20).then(|| 1 + random.below(10) as u64);
        Asked { request }
    }
}

/// Makes what is written with one timestamp expire at one time. Of two cells with one timestamp that expire, the one that
/// does so later wins, until a compaction makes a tombstone of the other: then that wins, as with Cassandra.
fn expire_alike(statement: &mut Statement, since: i64) {
    if statement.ttl > 0 {
        let expiry = since + [50, 100, 150, 100_000_000][statement.timestamp as usize % 4];
        statement.ttl = u32::try_from(expiry - statement.now).unwrap_or(0);
    }
}

/// Rows between two positions.
fn slice(written: &Written<'_>, random: &mut Random) -> Slice {
    let mut position = || {
        let row = written.table.random_row(random);
        let len = random.below(row.len() + 1);
        let prefix: Clustering = row.values.into_iter().take(len).flatten().collect();
        if random.percent(50) { Position::before(prefix) } else { Position::after(prefix) }
    };
    let (start, end) = (position(), position());
    match schema(written).compare(&start, &end).is_le() {
        true => Slice { start, end },
        false => Slice { start: end, end: start },
    }
}

/// Some time between two steps: often none.
async fn pause(random: &mut Random) {
    if random.percent(50) {
        sleep(micros(random, 500)).await;
    }
}

fn micros(random: &mut Random, most: usize) -> Duration {
    Duration::from_micros(random.below(most) as u64)
}
