//! The lives of a store, from one crash to the next, and all that outlives them.

use std::cell::{Cell, RefCell};
use std::fmt::Arguments;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use runtime::{Shard, SimDisk, SimOptions, monotonic, sleep};
use siltstone_storage::Definition;
use siltstone_storage::commit_log::SyncMode;
use testkit::generate::random::Random;
use testkit::statements::writer::START;
use testkit::statements::{Table, Writer};

use super::ledger::Ledger;
use super::plan::{Fault, Plan};
use super::session::Session;

/// The folder of a store with one log for all lives, or of the folders of them.
const LOG: &str = "/log";

/// Longer than anything takes that was begun.
const A_WHILE: Duration = Duration::from_millis(100);

/// What outlives a store.
pub(crate) struct World<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) plan: &'a Plan,
    pub(crate) tables: Vec<Written<'a>>,
    pub(crate) random: RefCell<Random>,
    /// When a write was acknowledged last.
    pub(crate) last_acknowledged: Cell<Duration>,
    /// The folders of logs that were not yet replayed, save for the current one's.
    logs: RefCell<Vec<PathBuf>>,
    lives: Cell<usize>,
    trace: RefCell<DefaultHasher>,
    is_told: bool,
}

/// A table and what was written to it.
pub(crate) struct Written<'a> {
    pub(crate) table: &'a Table,
    pub(crate) definition: &'a Definition,
    pub(crate) folder: PathBuf,
    pub(crate) ledger: RefCell<Ledger>,
    pub(crate) writer: RefCell<Writer<'a>>,
}

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The power is cut.
    PowerCut,
    /// The process is killed.
    Death,
    /// The store is closed.
    Close,
}

/// Runs a plan; a number for all that has happened.
pub(crate) async fn run(plan: &Plan, shard: &Shard, mut random: Random, is_told: bool) -> u64 {
    let tables = plan.tables.iter().map(|(table, definition)| Written {
        table,
        definition,
        folder: PathBuf::from(format!("/data/{}", table.name)),
        ledger: RefCell::new(Ledger::new(&definition.schema)),
        writer: RefCell::new(Writer::new(table, random.number())),
    });
    let world = World {
        shard,
        plan,
        tables: tables.collect(),
        random: RefCell::new(random),
        last_acknowledged: Cell::default(),
        logs: RefCell::default(),
        lives: Cell::new(0),
        trace: RefCell::default(),
        is_told,
    };
    world.begin().await;
    for _ in 0..plan.lives {
        let session = world.open().await;
        session.live().await;
        world.end(&session).await;
    }
    world.open().await;
    let counters = format!("{:?}", world.disk().counters());
    world.note(format_args!("{counters}"));
    world.trace.borrow().finish()
}

impl<'a> World<'a> {
    /// The disk.
    pub(crate) fn disk(&self) -> &SimDisk {
        self.shard.disk().as_simulated().unwrap()
    }

    /// The second it is.
    pub(crate) fn now(&self) -> i64 {
        self.shard.clock().now_seconds()
    }

    /// Something has happened.
    pub(crate) fn note(&self, what: Arguments<'_>) {
        let (time, text) = (monotonic(), what.to_string());
        (time, &text).hash(&mut *self.trace.borrow_mut());
        if self.is_told {
            println!("{time:>10?} {text}");
        }
    }

    /// A random number.
    pub(crate) fn below(&self, end: usize) -> usize {
        self.random.borrow_mut().below(end)
    }

    /// A source of numbers for a task.
    pub(crate) fn fork(&self) -> Random {
        Random::new(self.random.borrow_mut().number())
    }

    /// From here on the disk does this.
    pub(crate) fn set_fault(&self, fault: Fault) {
        let mut options = SimOptions { seed: self.fork().number(), ..self.plan.disk.clone() };
        match fault {
            Fault::None => {}
            Fault::Crash => {
                let operations = self.disk().counters().operations;
                let far = *self.random.borrow_mut().one_of(&[10, 100, 500]);
                options.crash_at = Some(operations + self.below(far) as u64);
            }
            Fault::Writes => options.write_error_chance = [0.003, 0.03][self.below(2)],
            Fault::Reads => options.io_error_chance = [0.01, 0.1][self.below(2)],
            Fault::Full => options.capacity = None,
        }
        self.note(format_args!("{fault:?} {:?}", options.crash_at));
        self.disk().set_options(options);
    }

    /// Where the log of this life is.
    pub(crate) fn log_folder(&self) -> PathBuf {
        match self.plan.has_folder_for_each_log {
            true => Path::new(LOG).join(self.lives.get().to_string()),
            false => PathBuf::from(LOG),
        }
    }

    /// The folders of all logs that were not replayed to their end.
    pub(crate) fn old_logs(&self) -> Vec<PathBuf> {
        self.logs.borrow().clone()
    }

    /// All logs of before were replayed.
    pub(crate) fn forget_logs(&self) {
        self.logs.borrow_mut().clear();
    }

    async fn begin(&self) {
        let disk = self.shard.disk();
        for table in &self.tables {
            disk.create_dir_all(&table.folder).await.unwrap();
        }
        disk.create_dir_all(Path::new(LOG)).await.unwrap();
        for folder in ["/data", "/"] {
            disk.sync_dir(Path::new(folder)).await.unwrap();
        }
        let clock = self.shard.clock().as_simulated().unwrap();
        clock.set(Duration::from_secs(START as u64));
    }

    /// Opens the store, whatever it takes.
    async fn open(&self) -> Session<'_, 'a> {
        for attempt in 0.. {
            let is_calm = attempt > 2 || self.random.borrow_mut().percent(50);
            let fault = if is_calm { Fault::None } else { Fault::random(&mut self.random.borrow_mut()) };
            self.lives.update(|lives| lives + 1);
            self.set_fault(fault);
            let opened = Session::open(self).await;
            let has_crashed = self.disk().has_crashed();
            self.note(format_args!("opened: {:?}", opened.as_ref().err().map(ToString::to_string)));
            let (log, is_new) = (self.log_folder(), !self.old_logs().contains(&self.log_folder()));
            self.logs.borrow_mut().extend(is_new.then_some(log));
            match opened {
                Ok(session) if !has_crashed => {
                    self.set_fault(Fault::None);
                    session.check_opened(fault == Fault::None).await;
                    return session;
                }
                Ok(session) => self.end(&session).await,
                Err(error) => {
                    assert!(fault != Fault::None, "{error}");
                    self.cut_power_if_off_or(50).await;
                }
            }
        }
        unreachable!()
    }

    /// Ends a life.
    async fn end(&self, session: &Session<'_, '_>) {
        let end = match self.below(3) {
            _ if self.disk().has_crashed() => End::PowerCut,
            0 => End::PowerCut,
            1 => End::Death,
            _ => End::Close,
        };
        self.note(format_args!("{end:?}"));
        match end {
            End::PowerCut => {
                self.cut_power().await;
                drop(session.store.close().await);
                sleep(A_WHILE).await;
                self.set_fault(Fault::None);
                self.disk().restart();
            }
            End::Death => {
                let options =
                    SimOptions { write_error_chance: 1.0, io_error_chance: 1.0, ..self.plan.disk.clone() };
                self.disk().set_options(options);
                drop(session.store.close().await);
                sleep(A_WHILE).await;
                self.set_fault(Fault::None);
            }
            End::Close => {
                self.set_fault(Fault::None);
                let closed = session.store.close().await;
                assert!(closed.is_ok() || session.has_met_a_fault(), "{closed:?}");
                if closed.is_ok() {
                    session.settle();
                }
                sleep(A_WHILE).await;
            }
        }
    }

    /// Lets the next operation be the last one.
    async fn cut_power(&self) {
        let crash_at = Some(self.disk().counters().operations);
        self.disk().set_options(SimOptions { crash_at, ..self.plan.disk.clone() });
        drop(self.shard.disk().sync_dir(Path::new("/")).await);
        assert!(self.disk().has_crashed());
    }

    /// Turns the power on again where it is off, and at times where it is not.
    async fn cut_power_if_off_or(&self, chance: usize) {
        let is_cut = self.random.borrow_mut().percent(chance);
        if self.disk().has_crashed() || is_cut {
            if !self.disk().has_crashed() {
                self.cut_power().await;
            }
            sleep(A_WHILE).await;
            self.set_fault(Fault::None);
            self.disk().restart();
        }
    }

    /// For how long a write may be lost that was acknowledged.
    pub(crate) fn period(&self) -> Option<Duration> {
        match self.plan.options.log.sync {
            SyncMode::Batch => None,
            SyncMode::Periodic { period } => Some(period),
        }
    }
}

/// A write's mutation as the store takes it.
pub(crate) fn record(mutation: &model::Mutation) -> Vec<u8> {
    let mut record = Vec::new();
    model::flat::put_mutation(mutation, &mut record);
    record
}

/// The schema, as the reads of tests take it.
pub(crate) fn schema<'a>(written: &'a Written<'_>) -> &'a Rc<model::Schema> {
    &written.definition.schema
}
