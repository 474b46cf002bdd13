//! One life of a store: rounds in which everything goes on at once, and quiet moments between them.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use model::Mutation;
use runtime::{join_all, monotonic, sleep};
use siltstone_storage::commit_log::{EarlierLog, OnCorruption};
use siltstone_storage::sstable_set::Member;
use siltstone_storage::table::clean_folder;
use siltstone_storage::{Error, Generations, Result, Store, Table};

use super::plan::Fault;
use super::world::{World, Written, record};

/// Longer than any period.
const LONG: Duration = Duration::from_secs(1);

/// No time passes from this second on: what is written then must expire before 2038.
const LAST: i64 = 1_900_000_000;

/// A store that is open.
pub(crate) struct Session<'w, 'a> {
    pub(crate) world: &'w World<'a>,
    pub(crate) store: Store,
    pub(crate) tables: Vec<Table>,
    /// SSTables that are being compacted.
    pub(crate) busy: RefCell<Vec<Rc<Member>>>,
    /// Writes have failed, and will go on to.
    pub(crate) has_failed: Cell<bool>,
    faults: Cell<bool>,
}

type Body<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

impl<'w, 'a> Session<'w, 'a> {
    /// Opens the store, with all that has to be done before it is used.
    pub(crate) async fn open(world: &'w World<'a>) -> Result<Session<'w, 'a>> {
        let disk = world.shard.disk();
        for written in &world.tables {
            clean_folder(disk, &written.folder).await?;
        }
        let find = |folder: PathBuf| EarlierLog::find(disk, &folder);
        let logs = world.old_logs().into_iter().map(find).collect::<Result<Vec<_>>>()?;
        let store = Store::open(world.shard, &world.log_folder(), world.plan.options.clone()).await?;
        let mut session = Session {
            world,
            store,
            tables: Vec::new(),
            busy: RefCell::default(),
            has_failed: Cell::new(false),
            faults: Cell::new(false),
        };
        match session.recover(&logs).await {
            Ok(()) => Ok(session),
            Err(error) => {
                // Nothing goes on by itself from here on.
                drop(session.store.close().await);
                Err(error)
            }
        }
    }

    async fn recover(&mut self, logs: &[EarlierLog]) -> Result<()> {
        for written in &self.world.tables {
            let (folder, definition) = (&written.folder, written.definition.clone());
            self.tables.push(self.store.add_table(folder, definition, &Generations::default()).await?);
        }
        let result = RefCell::new(Ok(Vec::new()));
        let mut tasks: Vec<Body<'_>> = vec![Box::pin(async {
            *result.borrow_mut() = self.store.recover(logs, |_| true, OnCorruption::Stop).await;
        })];
        if self.world.plan.flushes_while_recovering {
            tasks.push(Box::pin(self.flush_meanwhile()));
        }
        join_all(tasks).await;
        result.into_inner()?;
        for log in logs {
            log.remove(self.world.shard.disk()).await?;
        }
        self.world.forget_logs();
        Ok(())
    }

    /// Flushes what is not recovered yet as a whole. Should it fail, so does what comes after it.
    async fn flush_meanwhile(&self) {
        for _ in 0..self.world.below(6) {
            sleep(Duration::from_micros(self.world.below(300) as u64)).await;
            drop(self.store.flush(&self.tables[self.world.below(self.tables.len())]).await);
        }
    }

    /// All tables, with what was written to them.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&Written<'a>, &Table)> {
        self.world.tables.iter().zip(&self.tables)
    }

    /// Whether the disk did anything that explains an error.
    pub(crate) fn has_met_a_fault(&self) -> bool {
        self.faults.get()
    }

    /// Round after round, until something has failed.
    pub(crate) async fn live(&self) {
        for _ in 0..self.world.plan.rounds {
            let fault = Fault::random(&mut self.world.random.borrow_mut());
            if fault != Fault::None {
                self.note_fault();
            }
            self.world.set_fault(fault);
            if fault == Fault::Full {
                self.fill_disk().await;
            }
            self.round().await;
            if self.world.disk().has_crashed() {
                return;
            }
            self.world.set_fault(Fault::None);
            self.check_quiet().await;
            if self.has_failed.get() {
                return self.go_on().await;
            }
            self.rest().await;
        }
    }

    /// A store that takes no writes any more can still flush and compact.
    async fn go_on(&self) {
        let flushes = self.flush_some(self.world.fork());
        join_all([Box::pin(flushes) as Body<'_>, Box::pin(self.compact_some(self.world.fork()))]).await;
        self.check_quiet().await;
    }

    /// Leaves little room on the disk.
    async fn fill_disk(&self) {
        let mut used = 0;
        for path in self.files() {
            let file = self.world.shard.disk().open(&path, runtime::IoClass::default()).await;
            used += file.map_or(0, |file| file.len());
        }
        let capacity = Some(used + self.world.below(20_000) as u64);
        let options = runtime::SimOptions { capacity, ..self.world.plan.disk.clone() };
        self.world.disk().set_options(options);
    }

    /// All files there are.
    fn files(&self) -> Vec<PathBuf> {
        let folders = self.world.tables.iter().map(|written| written.folder.clone());
        let logs = self.world.old_logs().into_iter().chain([self.world.log_folder()]);
        let list = |folder: PathBuf| self.world.shard.disk().list(&folder).unwrap_or_default();
        folders.chain(logs).flat_map(list).collect()
    }

    async fn round(&self) {
        let plan = self.world.plan;
        let [writers, readers, flushers, compactors] = plan.tasks;
        let mut tasks: Vec<Body<'_>> = Vec::new();
        for _ in 0..writers {
            tasks.push(Box::pin(self.write_some(self.world.fork())));
        }
        for _ in 0..readers {
            tasks.push(Box::pin(self.read_some(self.world.fork())));
        }
        for _ in 0..flushers {
            tasks.push(Box::pin(self.flush_some(self.world.fork())));
        }
        for _ in 0..compactors {
            tasks.push(Box::pin(self.compact_some(self.world.fork())));
        }
        join_all(tasks).await;
    }

    /// Writes, until somebody says that it is done. One that is given up is begun once more.
    pub(crate) async fn write(&self, at: usize, mutation: &Mutation, mut patience: Option<Duration>) {
        let written = &self.world.tables[at];
        let number = written.ledger.borrow_mut().begin(mutation);
        let id = written.definition.id;
        self.world.note(format_args!("write {at} {number}"));
        let result = loop {
            let writing = self.store.write(id, record(mutation));
            match patience.take() {
                None => break writing.await,
                Some(patience) => match runtime::timeout(patience, writing).await {
                    Some(result) => break result,
                    None => self.world.note(format_args!("gave {at} {number} up")),
                },
            }
        };
        self.world
            .note(format_args!("written {at} {number} {:?}", result.as_ref().err().map(ToString::to_string)));
        match result {
            Ok(()) => {
                let now = monotonic();
                let is_durable = self.world.period().is_none();
                written.ledger.borrow_mut().acknowledge(&mutation.key, number, now, is_durable);
                self.world.last_acknowledged.set(now);
            }
            Err(error) => {
                self.explain(&error);
                self.has_failed.set(true);
            }
        }
    }

    /// Something explains errors from here on: what the disk did, or what was dropped before its end.
    pub(crate) fn note_fault(&self) {
        self.faults.set(true);
    }

    /// Nothing fails for no reason.
    pub(crate) fn explain(&self, error: &Error) {
        let is_io = matches!(
            error,
            Error::Io(_)
                | Error::SSTable(sstable::Error::Io(_))
                | Error::LogFailed(_)
                | Error::InDoubt { .. }
                | Error::Unsettled { .. }
        );
        assert!(self.faults.get() && is_io, "{error}");
    }

    /// All that was acknowledged is durable.
    pub(crate) fn settle(&self) {
        for written in &self.world.tables {
            let mut ledger = written.ledger.borrow_mut();
            let all = ledger.acknowledged();
            ledger.settle(all);
        }
    }

    /// A while in which nobody asks for anything; afterwards it may be later than what was written.
    async fn rest(&self) {
        match self.world.below(3) {
            0 => {}
            1 => {
                let synced = self.store.log().sync().await;
                if self.is_well(synced.map(drop)) {
                    self.settle();
                    self.pass_time();
                }
            }
            _ => {
                sleep(LONG).await;
                if self.is_at_rest().await {
                    self.settle();
                    self.pass_time();
                }
            }
        }
    }

    /// Whether what was done on a good disk went well, as it does unless something has failed before.
    fn is_well(&self, result: Result<()>) -> bool {
        if let Err(error) = &result {
            self.explain(error);
            self.has_failed.set(true);
        }
        result.is_ok()
    }

    /// Makes sure that what is to happen by itself has happened.
    async fn is_at_rest(&self) -> bool {
        let log = self.store.log();
        if log.durable_position() != log.position() {
            return self.is_well(log.sync().await.map(drop));
        }
        let of_tables: usize = self.store.tables().iter().map(Table::memtable_bytes).sum();
        assert_eq!(self.store.memtable_bytes(), of_tables);
        let has_room = self.store.memtable_bytes() <= self.world.plan.options.memtables;
        assert!(has_room || self.faults.get(), "{} bytes in memtables", self.store.memtable_bytes());
        assert!(log.pressure().is_empty() || self.faults.get(), "the log has {} bytes", log.size());
        true
    }

    /// What was written up to now may be purged from here on: nothing older is written any more.
    fn pass_time(&self) {
        let by = [0, 1, 25, 60, 900_000, 120_000_000][self.world.below(6)];
        let clock = self.world.shard.clock();
        if by > 0 && clock.now_seconds() < LAST {
            clock.as_simulated().unwrap().advance(Duration::from_secs(by));
            for written in &self.world.tables {
                assert!(!written.ledger.borrow().has_under_way());
                let mut writer = written.writer.borrow_mut();
                writer.new_timestamps();
                writer.advance_to(clock.now_seconds());
            }
            self.world.note(format_args!("it is {}", clock.now_seconds()));
        }
    }
}
