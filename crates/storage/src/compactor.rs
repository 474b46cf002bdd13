//! Compactions as they are run: one at a time a shard, by themselves or because somebody asks for it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use runtime::Signal;

use crate::apart;
use crate::commit_log::TableId;
use crate::compaction::{Compaction, Generation, Job, Reason, SSTableFacts, View};
use crate::definition::Definition;
use crate::rewrite::{Control, Rewrite};
use crate::sstable_set::Member;
use crate::table::Table;
use crate::{Error, Result};

/// How compactions are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactionOptions {
    /// Whether they are run without being asked for. Default true.
    pub background: bool,
    /// Bytes of new data a second, uncompressed, that they hold back to as long as nobody waits for them; `None` for as
    /// fast as it goes. Default 64 MiB, Cassandra's.
    pub bytes_per_second: Option<u64>,
    /// A major compaction leaves SSTables of at least so many bytes of Data.db on disk, and of an eighth of the table, if their rows
    /// overlap no other SSTable, nothing in them is deleted or expires, and they were written since the table was opened or last altered:
    /// merging would only make larger files. Default 64 MiB; `u64::MAX` leaves only a single SSTable with nothing to merge with.
    pub leaves_from: u64,
}

/// About what a memtable of the default size becomes. Bytes.
const LEAVES_FROM: u64 = 64 << 20;

impl Default for CompactionOptions {
    fn default() -> CompactionOptions {
        CompactionOptions { background: true, bytes_per_second: Some(64 << 20), leaves_from: LEAVES_FROM }
    }
}

/// How often it is looked for what has expired meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Runs the compactions of a shard, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Compactor {
    options: CompactionOptions,
    is_busy: Cell<bool>,
    /// Whether there may be something to do since it was looked for last.
    is_woken: Cell<bool>,
    /// A compaction has ended, or there may be one to begin.
    changed: Signal,
    control: RefCell<Control>,
    /// Of which table the compaction is that is under way, and what it rewrites.
    under_way: RefCell<Option<(Table, Job)>>,
    /// What the last one that ended well has made, and of which table.
    made: RefCell<Option<(TableId, Vec<Generation>)>>,
    /// How many wait for one that they have asked for.
    waiting: Cell<usize>,
    stats: Cell<CompactionStats>,
}

/// What compactions did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionStats {
    /// Compactions that ended well.
    pub done: u64,
    /// Those that did not, cancelled ones too.
    pub failed: u64,
    /// SSTables that went.
    pub sstables_in: u64,
    /// SSTables that came.
    pub sstables_out: u64,
    /// Bytes on disk of what went.
    pub bytes_in: u64,
    /// Bytes on disk of what came.
    pub bytes_out: u64,
}

impl Compactor {
    pub(crate) fn new(options: CompactionOptions) -> Compactor {
        Compactor { options, ..Compactor::default() }
    }

    pub(crate) fn stats(&self) -> CompactionStats {
        self.stats.get()
    }

    /// The compaction that is under way, or the last one.
    pub(crate) fn control(&self) -> Control {
        self.control.borrow().clone()
    }

    /// There may be something to do.
    pub(crate) fn wake(&self) {
        self.is_woken.set(true);
        self.changed.notify();
    }

    /// Runs what the strategies of the tables ask for, whenever they do.
    pub(crate) async fn run(&self, tables: impl Fn() -> Vec<Table>) {
        if !self.options.background {
            return;
        }
        loop {
            self.is_woken.set(false);
            for table in tables() {
                while self.run_next(&table).await {}
            }
            let woken = self.changed.until(|| self.is_woken.get().then_some(()));
            runtime::timeout(LOOK_EVERY, woken).await;
        }
    }

    /// Merges all that may be merged of a table, at full speed. A compaction of the table that is under way is no longer throttled; if it
    /// merges the whole table into one SSTable, nothing else is done. If it merges a part of the table, it is cancelled, and that part is
    /// merged with the rest.
    ///
    /// # Errors
    /// The first that a rewrite gives.
    pub(crate) async fn major(&self, table: &Table) -> Result<()> {
        let _waiting = Waiting::begin(self);
        match self.is_at_work_on_a_part(table) {
            true => self.control.borrow().cancel(),
            false => self.control.borrow().hurry(),
        }
        let under_way = self.is_at_work_on(table).then(|| table.definition());
        let _turn = self.turn().await;
        if under_way.is_some_and(|definition| self.has_made_all(table, &definition)) {
            return Ok(());
        }
        for job in self.major_jobs(table) {
            self.changed.until(|| (!table.is_kept_off()).then_some(())).await;
            if table.is_left() {
                break;
            }
            self.compact(table, self.decided_now(table, job)).await?;
        }
        Ok(())
    }

    /// What there is to merge of a table, but for what stands as well as it can.
    fn major_jobs(&self, table: &Table) -> Vec<Job> {
        let (set, definition) = (table.sstables(), table.definition());
        let around =
            |job| apart::around_left(job, set.members(), &definition.schema, self.options.leaves_from);
        table.major_jobs().into_iter().flat_map(around).collect()
    }

    /// A major job of before, with what can go unread as things are now: what was written meanwhile may be older than what that deletes.
    fn decided_now(&self, table: &Table, job: Job) -> Job {
        let mut all: Vec<Generation> = job.inputs.iter().chain(&job.expired).cloned().collect();
        all.sort_unstable();
        let is_of_these = |job: &Job| {
            let mut these: Vec<&Generation> = job.inputs.iter().chain(&job.expired).collect();
            these.sort_unstable();
            these.into_iter().eq(&all)
        };
        let now = self.major_jobs(table).into_iter().find(is_of_these);
        now.unwrap_or_else(|| Job { inputs: all.clone(), expired: Vec::new(), ..job })
    }

    /// Runs the next compaction of a table, behind those that somebody waits for; whether there was one and it ended well.
    async fn run_next(&self, table: &Table) -> bool {
        self.changed.until(|| (self.waiting.get() == 0).then_some(())).await;
        let _turn = self.turn().await;
        let Some(job) = table.next_job() else { return false };
        let all: Vec<Generation> = job.inputs.iter().chain(&job.expired).cloned().collect();
        match self.compact(table, job).await {
            Ok(()) => true,
            Err(_) if table.is_left() => false,
            Err(Error::Cancelled) => false,
            Err(error) => {
                let is_lasting = will_fail_again(&error);
                tracing::warn!(table = %table.folder().display(), %error, is_lasting, "a compaction has failed");
                if is_lasting {
                    // The same job would come next, and keep all others back.
                    let guilty = all.iter().find(|one| is_of(&error, one));
                    table.set_aside(guilty.map_or_else(|| all.clone(), |guilty| vec![guilty.clone()]));
                }
                is_lasting
            }
        }
    }

    async fn compact(&self, table: &Table, job: Job) -> Result<()> {
        let is_wanted = self.waiting.get() > 0;
        let control = Control::throttled(self.options.bytes_per_second.filter(|_| !is_wanted));
        *self.control.borrow_mut() = control.clone();
        tracing::debug!(table = %table.folder().display(), inputs = job.inputs.len(), why = %job.why, "compaction");
        let Some(rewrite) = table.rewrite_of(job.clone()) else { return Ok(()) };
        let gone = rewrite.inputs.iter().chain(&rewrite.expired);
        let (count, bytes) = (gone.clone().count() as u64, bytes_of(gone));
        self.made.take();
        self.under_way.replace(Some((table.clone(), job)));
        let under_way = UnderWay(self);
        let done = table.rewrite(&rewrite, &control).await;
        drop(under_way);
        let mut stats = self.stats.get();
        match &done {
            Ok(new) => {
                let made = new.iter().map(|member| member.facts.generation.clone()).collect();
                *self.made.borrow_mut() = Some((table.definition().id, made));
                stats.done += 1;
                stats.sstables_in += count;
                stats.bytes_in += bytes;
                stats.sstables_out += new.len() as u64;
                stats.bytes_out += bytes_of(new.iter());
            }
            Err(_) => stats.failed += 1,
        }
        self.stats.set(stats);
        done.map(drop)
    }

    /// Begins no compaction of a table any more. One that is under way stops as soon as it can, and is waited for.
    pub(crate) async fn leave(&self, table: &Table) {
        table.leave_for_good();
        if self.is_at_work_on(table) {
            self.control.borrow().cancel();
        }
        self.changed.until(|| (!self.is_at_work_on(table)).then_some(())).await;
    }

    /// Begins no compaction of a table as long as this is held. One that is under way stops as soon as it can, and is waited for.
    pub(crate) async fn keep_off<'a>(&'a self, table: &'a Table) -> KeptOff<'a> {
        let kept_off = KeptOff::begin(self, table);
        if self.is_at_work_on(table) {
            self.control.borrow().cancel();
        }
        self.changed.until(|| (!self.is_at_work_on(table)).then_some(())).await;
        kept_off
    }

    fn is_at_work_on(&self, table: &Table) -> bool {
        self.under_way.borrow().as_ref().is_some_and(|(now, _)| now.is(table))
    }

    /// Whether what is under way merges less than what there is to merge, and nobody waits for it.
    fn is_at_work_on_a_part(&self, table: &Table) -> bool {
        let under_way = self.under_way.borrow();
        let Some((_, job)) =
            under_way.as_ref().filter(|(now, job)| now.is(table) && job.why != Reason::Major)
        else {
            return false;
        };
        let has = |generation| job.inputs.contains(generation) || job.expired.contains(generation);
        let jobs = self.major_jobs(table);
        !jobs.is_empty() && !jobs.iter().any(|all| all.inputs.iter().chain(&all.expired).all(has))
    }

    /// Whether the last compaction made all that there is of a table, which still is what `definition` says.
    fn has_made_all(&self, table: &Table, definition: &Rc<Definition>) -> bool {
        let (made, set) = (self.made.borrow(), table.sstables());
        let is_made = |member: &Rc<Member>| {
            let own = (definition.id, vec![member.facts.generation.clone()]);
            made.as_ref() == Some(&own)
        };
        matches!(set.members(), [only] if is_made(only)) && Rc::ptr_eq(definition, &table.definition())
    }

    /// Waits until no compaction is under way. None is as long as the turn is held.
    async fn turn(&self) -> Turn<'_> {
        self.changed.until(|| (!self.is_busy.replace(true)).then_some(())).await;
        Turn(self)
    }
}

/// A compaction that is under way, until it ends or is given up.
struct UnderWay<'a>(&'a Compactor);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.take();
        self.0.changed.notify();
    }
}

/// A table of which no compaction is begun, until it is dropped.
pub(crate) struct KeptOff<'a> {
    compactor: &'a Compactor,
    table: &'a Table,
}

impl<'a> KeptOff<'a> {
    fn begin(compactor: &'a Compactor, table: &'a Table) -> KeptOff<'a> {
        table.keep_compactions_off(1);
        KeptOff { compactor, table }
    }
}

impl Drop for KeptOff<'_> {
    fn drop(&mut self) {
        self.table.keep_compactions_off(-1);
        self.compactor.wake();
    }
}

/// Somebody waits for a compaction, until it is dropped.
struct Waiting<'a>(&'a Compactor);

impl Waiting<'_> {
    fn begin(compactor: &Compactor) -> Waiting<'_> {
        compactor.waiting.update(|count| count + 1);
        Waiting(compactor)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.update(|count| count - 1);
        self.0.changed.notify();
    }
}

/// The right to run a compaction.
struct Turn<'a>(&'a Compactor);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.is_busy.set(false);
        self.0.changed.notify();
    }
}

impl Table {
    /// How many compactions the table waits for, about.
    pub fn pending_compactions(&self) -> u64 {
        self.with_view(|_| false, |compaction, view| compaction.pending(view))
    }

    fn next_job(&self) -> Option<Job> {
        let is_free = !self.is_left() && !self.is_kept_off();
        let is_set_aside = |facts: &SSTableFacts| self.is_set_aside(&facts.generation);
        is_free.then(|| self.with_view(is_set_aside, |compaction, view| compaction.next(view)))?
    }

    fn major_jobs(&self) -> Vec<Job> {
        self.with_view(|_| false, |compaction, view| compaction.major(view))
    }

    /// Decides from what there is now; what is set aside counts as busy.
    fn with_view<T>(
        &self,
        is_set_aside: impl Fn(&SSTableFacts) -> bool,
        decide: impl FnOnce(&Compaction, &View<'_>) -> T,
    ) -> T {
        let definition = self.definition();
        let all: Vec<SSTableFacts> =
            self.sstables().members().iter().map(|member| member.facts.clone()).collect();
        let compactable = self.compactable();
        let free: BTreeSet<&Generation> = compactable.iter().map(|member| &member.facts.generation).collect();
        let is_busy = |facts: &&SSTableFacts| is_set_aside(facts) || !free.contains(&facts.generation);
        let busy: BTreeSet<Generation> =
            all.iter().filter(is_busy).map(|facts| facts.generation.clone()).collect();
        let memtables = self.memtables();
        let least = memtables.iter().filter_map(|memtable| memtable.timestamps()).map(|times| times.0).min();
        let now = self.context().clock.now_seconds();
        decide(&definition.compaction, &View::new(&all, &busy, now, definition.gc_grace_seconds, least))
    }

    /// What a job does to the SSTables as they are now; `None` if they are not all there any more.
    fn rewrite_of(&self, job: Job) -> Option<Rewrite> {
        let set = self.sstables();
        let members: BTreeMap<&Generation, &Rc<Member>> =
            set.members().iter().map(|member| (&member.facts.generation, member)).collect();
        let member = |generation: &Generation| members.get(generation).copied().cloned();
        let inputs = job.inputs.iter().map(member).collect::<Option<Vec<_>>>()?;
        let expired = job.expired.iter().map(member).collect::<Option<Vec<_>>>()?;
        Some(Rewrite { inputs, expired, job })
    }
}

/// Whether it is what the SSTables have that made a compaction fail, so that it would fail the next time too.
fn will_fail_again(error: &Error) -> bool {
    match error {
        Error::SSTable(error) => !matches!(error, sstable::Error::Io(_)),
        // Columns that the table does not know, and that do not go together.
        Error::Invalid(_) => true,
        _ => false,
    }
}

/// Whether an error is about a file of this SSTable.
fn is_of(error: &Error, generation: &Generation) -> bool {
    let Error::SSTable(error) = error else { return false };
    let name = error.path().and_then(|path| path.file_name()?.to_str());
    name.is_some_and(|name| name.strip_prefix(generation.as_str()).is_some_and(|rest| rest.starts_with('-')))
}

fn bytes_of<'a>(members: impl Iterator<Item = &'a Rc<Member>>) -> u64 {
    members.map(|member| member.facts.bytes_on_disk).sum()
}
