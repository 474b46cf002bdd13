//! A node of Cassandra that is given what Siltstone has written, and is asked within itself.
//!
//! ```text
//! data in memory      the SSTable ──► a node with 2 GB of heap
//! larger than memory  the SSTable ──► a node, warm ──► its process goes into a control group: page cache, and what it allocates from then on
//! load                rows made up within the node ──► commit log, memtable, flush, compaction
//! ```

use std::path::Path;

use testkit::cassandra::{Cassandra, Node, PeerPlan, PeerReads, TableName, VERSION, Work, Writes};

use super::confined::{Confined, forget};
use super::contestants::{Contestant, Dataset, Task};
use super::tables::{Cell, Table};
use super::{
    AT_ONCE_CASES, CLOCKS, Comparison, DiskCase, MEMORY_CASES, Options, READERS, STEADY_CASES, TIMED_AT_ONCE,
    all_equal, in_memory,
};
use crate::Result;
use crate::measure::median;
use crate::workspace::target;

/// So many rounds warm Java up.
const WARM_UP: u32 = 5;

/// MiB that the page cache, and what Java allocates besides its heap, may take while reads from disk are timed.
const PAGE_CACHE: u32 = 128;

/// Rows that a scan from disk goes through.
const SCANNED: u32 = 1_000_000;

/// Columns of Siltstone.
const OURS: [Contestant; 2] = [Contestant::SILTSTONE, Contestant::WITHIN];

/// Where a node is given what Siltstone has written.
const TABLE: [&str; 2] = [
    "CREATE KEYSPACE peers WITH durable_writes = false
     AND replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE peers.rows (k int, c int, v blob, PRIMARY KEY (k, c))
     WITH compression = {'enabled': 'false'}
     AND compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': false}",
];

/// Where it writes rows, with a commit log.
const LOADED: [&str; 2] = [
    "CREATE KEYSPACE loaded WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE loaded.rows (k int, c int, v blob, PRIMARY KEY (k, c)) WITH compression = {'enabled': 'false'}",
];

/// That Cassandra is there, and Java and its compiler, by having it do nothing.
///
/// # Errors
/// If one of them is missing, or Maven, which brings Cassandra the first time.
pub(super) fn check_java(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let started = Cassandra::prepare(&target(), options.cassandra.as_deref())
        .and_then(|cassandra| cassandra.tools(folder.path(), &[]));
    started.map_err(|error| format!("Cassandra, which is compared with, does not start: {error}").into())
}

impl Comparison<'_> {
    /// In memory with few rows, from disk with many, and loads of some.
    pub(super) fn cassandra(&self, few: Dataset, many: Dataset, loads: &[Dataset]) -> Result<Vec<Table>> {
        let cassandra = Cassandra::prepare(&target(), self.options.cassandra.as_deref())?;
        let mut tables = Vec::from(self.beside_in_memory(&cassandra, few)?);
        // Not everybody may limit what a process has.
        match Confined::to(PAGE_CACHE) {
            Ok(confined) => tables.extend(self.beside_from_disk(&cassandra, many, &confined)?),
            Err(error) => self.leave_out("Cassandra from disk", &error),
        }
        tables.push(self.beside_loads(&cassandra, loads)?);
        Ok(tables)
    }

    /// The rates of both, in turn by case.
    fn beside_in_memory(&self, cassandra: &Cassandra, dataset: Dataset) -> Result<[Table; 2]> {
        let folder = tempfile::tempdir_in(&self.program.data)?;
        let mut node = self.given(cassandra, dataset, folder.path(), Work::Questions)?;
        let theirs = ["Cassandra, first round", "Cassandra, warm"];
        let mut tables = rate_tables(dataset, "all in memory", &OURS, &theirs);
        for (case, name, [_, _, count]) in MEMORY_CASES {
            eprintln!("Cassandra: {dataset}, {case}, timed");
            let task = in_memory(Contestant::SILTSTONE, dataset, case, count);
            let plan = plan_of(&task, WARM_UP + self.options.runs);
            let theirs = node.peer_reads(&table_name("peers"), case, &plan)?;
            let mut sums = vec![("Cassandra", theirs.sums.clone())];
            let mut lines = [const { Vec::new() }; 2];
            for contestant in OURS {
                let task = Task { contestant, ..task };
                let ours: Vec<_> =
                    (0..self.options.runs).map(|_| self.timed(&task)).collect::<Result<_>>()?;
                sums.extend(ours.iter().map(|numbers| (contestant.title, numbers.sums())));
                for (line, clock) in lines.iter_mut().zip(CLOCKS) {
                    line.push(median(ours.iter().map(|numbers| numbers.rows_in(clock.0)).collect()));
                }
            }
            all_equal(case, &sums)?;
            for ((line, rates), table) in lines.iter_mut().zip(rates_of(&theirs, count)).zip(&mut tables) {
                line.extend([rates[0], median(rates[WARM_UP as usize..].to_vec())]);
                table.line(name, thousands(line.drain(..)));
            }
        }
        node.quit()?;
        Ok(tables.map(Table::with_ratios))
    }

    /// The same where most goes to the disk, with the node confined once it is warm, by one reader and by many.
    fn beside_from_disk(
        &self,
        cassandra: &Cassandra,
        dataset: Dataset,
        confined: &Confined,
    ) -> Result<Vec<Table>> {
        let folder = tempfile::tempdir_in(&self.program.data)?;
        let mut node = self.given(cassandra, dataset, folder.path(), Work::Reads)?;
        let alone = STEADY_CASES.map(|(case, name, numbers)| match case {
            "scan" => (case, "a row of 1,000,000 in order", numbers),
            _ => (case, name, numbers),
        });
        let crowd = AT_ONCE_CASES
            .map(|(case, name, [warm, from, count])| (case, name, [warm, from, TIMED_AT_ONCE * count]));
        for case in &alone {
            // Java compiles now what it takes.
            let task = self.task_from_disk(Contestant::SILTSTONE, dataset, case, 1);
            node.peer_reads(&table_name("peers"), task.case, &plan_of(&task, WARM_UP))?;
        }
        forget(folder.path())?;
        confined.adopt(node.process())?;
        let tables = [
            self.in_turn(&mut node, dataset, &alone, (&OURS, 1))?,
            self.in_turn(&mut node, dataset, &crowd, (&[Contestant::WITHIN], READERS))?,
        ];
        node.quit()?;
        Ok(tables.into_iter().flatten().collect())
    }

    /// The rates of so many readers from disk, in turn by case.
    fn in_turn(
        &self,
        node: &mut Node,
        dataset: Dataset,
        cases: &[DiskCase],
        (ours, readers): (&[Contestant], u32),
    ) -> Result<[Table; 2]> {
        let theirs = format!("Cassandra, {PAGE_CACHE} MiB beside its heap");
        let place = if readers == 1 { "from disk" } else { &format!("from disk, {readers} at once") };
        let mut tables = rate_tables(dataset, place, ours, &[&theirs]);
        for each in cases {
            let (case, name, _) = *each;
            let task = |ours: &Contestant| self.task_from_disk(*ours, dataset, each, readers);
            let tasks: Vec<_> = ours.iter().map(task).collect();
            let mut rates = CLOCKS.map(|_| vec![Vec::new(); ours.len() + 1]);
            let mut sums = Vec::new();
            for _ in 0..self.options.runs {
                for (at, task) in tasks.iter().enumerate() {
                    let numbers = self.timed(task)?;
                    for (rates, (clock, _)) in rates.iter_mut().zip(CLOCKS) {
                        rates[at].push(numbers.rows_in(clock));
                    }
                    sums.push((task.contestant.title, numbers.sums()));
                }
                eprintln!("Cassandra: {dataset}, {case}, timed {place}");
                let theirs = node.peer_reads(&table_name("peers"), case, &plan_of(&tasks[0], 1))?;
                for (rates, found) in rates.iter_mut().zip(rates_of(&theirs, tasks[0].count)) {
                    rates[ours.len()].extend(found);
                }
                sums.push(("Cassandra", theirs.sums));
            }
            all_equal(case, &sums)?;
            for (rates, table) in rates.into_iter().zip(&mut tables) {
                table.line(name, thousands(rates.into_iter().map(median)));
            }
        }
        Ok(tables.map(Table::with_ratios))
    }

    /// What so many readers do with little memory.
    fn task_from_disk(
        &self,
        contestant: Contestant,
        dataset: Dataset,
        case: &DiskCase,
        readers: u32,
    ) -> Task {
        let (case, _, numbers) = *case;
        Task { scan: SCANNED, readers, ..self.disk_task(contestant, dataset, case, numbers) }
    }

    /// Rows a second from the first batch to the one SSTable, as in the table of loads.
    fn beside_loads(&self, cassandra: &Cassandra, datasets: &[Dataset]) -> Result<Table> {
        let title = format!("Load beside Cassandra {VERSION}: thousands of rows a second");
        let heads = [Contestant::SILTSTONE.title, "Cassandra, the first time", "Cassandra, warm"];
        let mut table = Table::new(title, "rows", heads);
        for dataset in datasets {
            let folder = tempfile::tempdir_in(&self.program.data)?;
            let mut node = cassandra.node(folder.path(), Writes::Oa, Work::Questions)?;
            node.cql(&LOADED)?;
            let loaded = table_name("loaded");
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..self.options.runs + 1 {
                node.maintain("truncate", &loaded)?;
                eprintln!("Cassandra: {dataset}, loaded");
                theirs.push(node.peer_load(&loaded, dataset.rows, dataset.value_size)?);
                ours.push(self.program.load(Contestant::SILTSTONE, *dataset)?);
            }
            self.check_load(&mut node, &loaded, *dataset)?;
            node.quit()?;
            let seconds = [median(ours), theirs[0], median(theirs[1..].to_vec())];
            table.line(
                &dataset.to_string(),
                thousands(seconds.map(|seconds| f64::from(dataset.rows) / seconds)),
            );
        }
        Ok(table.with_ratios())
    }

    /// That the node has written the rows which all others have.
    fn check_load(&self, node: &mut Node, table: &TableName, dataset: Dataset) -> Result<()> {
        let task = Task { scan: dataset.rows, ..in_memory(Contestant::SILTSTONE, dataset, "scan", 1) };
        let theirs = node.peer_reads(table, "scan", &plan_of(&task, 1))?;
        let ours = self.timed(&task)?.sums();
        all_equal("scan", &[("Cassandra", theirs.sums), (Contestant::SILTSTONE.title, ours)])
    }

    /// A node that was given what Siltstone has written.
    fn given(&self, cassandra: &Cassandra, dataset: Dataset, folder: &Path, work: Work) -> Result<Node> {
        self.program.prepare(Contestant::SILTSTONE, dataset)?;
        let mut node = cassandra.node(folder, Writes::Oa, work)?;
        node.cql(&TABLE)?;
        let files = folder.join("peers/rows");
        self.program.copy_sstable(dataset, &files)?;
        match node.import(&table_name("peers"), &[files])? {
            1 => Ok(node),
            _ => Err("the node did not take the SSTable".into()),
        }
    }
}

/// A table of rows by the clock, and one by the time that CPUs took.
fn rate_tables(dataset: Dataset, place: &str, ours: &[Contestant], theirs: &[&str]) -> [Table; 2] {
    CLOCKS.map(|(_, clock)| {
        let title =
            format!("Beside Cassandra {VERSION}: {dataset}, {place}{clock}, thousands of rows a second");
        let heads = ours.iter().map(|ours| ours.title).chain(theirs.iter().copied());
        Table::new(title, "reads of", heads)
    })
}

/// What a node has read in each round, by either clock; an absent row counts as one.
fn rates_of(reads: &PeerReads, count: u64) -> [Vec<f64>; 2] {
    let rows = reads.rows.max(count) as f64;
    [&reads.seconds, &reads.cpu_seconds].map(|rounds| rounds.iter().map(|seconds| rows / seconds).collect())
}

/// The same reads by a node.
fn plan_of(task: &Task, rounds: u32) -> PeerPlan {
    let Task { warm, from, count, dataset, scan, readers, .. } = *task;
    PeerPlan {
        before: warm,
        from,
        count,
        rows: dataset.rows.into(),
        scanned: scan.into(),
        rounds: rounds.into(),
        readers: readers.into(),
    }
}

fn table_name(keyspace: &str) -> TableName {
    TableName { keyspace: keyspace.to_owned(), name: "rows".to_owned() }
}

fn thousands(rates: impl IntoIterator<Item = f64>) -> Vec<Cell> {
    rates.into_iter().map(|rate| Cell::Thousands(rate / 1000.0)).collect()
}
