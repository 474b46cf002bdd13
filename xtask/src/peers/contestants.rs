//! Who takes part, what each works on, and how one is started: alone, traced, or with its instructions counted.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use testkit::command::checked;

use super::ALL_IN_MEMORY;
use super::confined::{Confined, forget};
use super::tables::Cell;
use super::trace::{CALLS, Reads, Traced};
use crate::Result;
use crate::pages::grouped;
use crate::workspace::{root, target};

/// The version of RocksDB that the crate in `peers/Cargo.toml` has bindings of.
pub const ROCKSDB_VERSION: &str = "10.4.2";

/// The library as its archive has it.
const JAVAS_LIBRARY: &str = "librocksdbjni-linux64.so";

/// A database, set up in one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contestant {
    /// The head of its column.
    pub title: &'static str,
    /// Its name, as the program has it.
    pub peer: &'static str,
    /// Whose files it reads; others of the same files have the same.
    pub variant: &'static str,
    /// How it is set up.
    pub flags: &'static [&'static str],
    /// MiB that a process may have in all where it is timed, what it reads by the page cache included.
    pub memory: Option<u32>,
}

impl Contestant {
    /// What a program embeds.
    pub const SILTSTONE: Contestant =
        Contestant { title: "Siltstone", peer: "siltstone", variant: "siltstone", flags: &[], memory: None };

    /// The same on the thread of a shard: without the hop.
    pub const WITHIN: Contestant =
        Contestant { title: "Siltstone, `run_on`", peer: "siltstone-within", ..Contestant::SILTSTONE };

    /// The same rows as its own load leaves them: in several SSTables, which follow each other.
    pub const AS_LOADED: Contestant = Contestant {
        title: "Siltstone, as loaded",
        variant: "siltstone-loaded",
        flags: &["--as-loaded"],
        ..Contestant::SILTSTONE
    };

    /// As it is by itself.
    pub const ROCKSDB: Contestant =
        Contestant { title: "RocksDB", peer: "rocksdb", variant: "rocksdb", flags: &[], memory: None };

    /// Indexes and filters are part of what the cache may take.
    pub const ROCKSDB_BOUNDED: Contestant = Contestant {
        title: "RocksDB, indexes in the cache",
        peer: "rocksdb",
        variant: "rocksdb-bounded",
        flags: &["--bounded-index"],
        memory: None,
    };

    /// Checksums of blocks are not compared.
    pub const ROCKSDB_UNCHECKED: Contestant =
        Contestant { title: "RocksDB, unchecked", flags: &["--unchecked"], ..Contestant::ROCKSDB };

    /// As it is by itself.
    pub const FJALL: Contestant =
        Contestant { title: "fjall", peer: "fjall", variant: "fjall", flags: &[], memory: None };

    /// Reads what Siltstone has written.
    pub const CQLITE: Contestant = Contestant { title: "cqlite", peer: "cqlite", ..Contestant::SILTSTONE };
}

/// The rows of one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dataset {
    /// How many.
    pub rows: u32,
    /// Bytes of each value.
    pub value_size: u32,
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {} bytes", grouped(self.rows.into(), 0), self.value_size)
    }
}

/// What one process does.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Who.
    pub contestant: Contestant,
    /// On what.
    pub dataset: Dataset,
    /// The case, as the program has it.
    pub case: &'static str,
    /// MiB for caches.
    pub memory: u32,
    /// Operations that are done before.
    pub warm: u64,
    /// The first that is measured.
    pub from: u64,
    /// How many are.
    pub count: u64,
    /// How often.
    pub rounds: u64,
    /// Rows that a scan goes through.
    pub scan: u32,
    /// How many read at once, each its share of the operations.
    pub readers: u32,
}

/// What a process says at its end.
#[derive(Clone, Debug)]
pub struct Numbers(Value);

impl Numbers {
    fn parse(line: &[u8]) -> Result<Numbers> {
        Ok(Numbers(serde_json::from_slice(line)?))
    }

    /// One of them; 0 if it is not there.
    pub fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(0.0)
    }

    /// How many operations were measured.
    pub fn operations(&self) -> f64 {
        self.number("operations").max(1.0)
    }

    /// How many rows there were in one second of these; an absent row counts as one.
    pub fn rows_in(&self, seconds: &str) -> f64 {
        self.number("rows").max(self.operations()) / self.number(seconds)
    }

    /// Of what was found, while it was measured and before.
    pub fn sums(&self) -> [String; 2] {
        ["sum", "warm_sum"].map(|name| self.0[name].as_str().unwrap_or_default().to_owned())
    }

    /// What the database itself counted, if it counts.
    pub fn own_counts(&self) -> Option<Reads> {
        let number = |name: &str| self.0[name].as_u64();
        self.0["counts"].as_bool().filter(|counts| *counts)?;
        Some(Reads { requests: number("requests")?, bytes: number("bytes")? })
    }

    /// A time beside the peak of memory.
    pub fn seconds_and_memory(&self, seconds: f64) -> Cell {
        Cell::SecondsAndMiB(seconds, self.number("peak_kib") / 1024.0)
    }
}

/// The program of the peers, built, and the folder of its databases.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    pub(super) data: PathBuf,
    /// The folder of RocksDB's library, where it was not built.
    libraries: Option<PathBuf>,
}

impl Program {
    /// Builds it. The first time that takes long if RocksDB is built too: it is large.
    ///
    /// # Errors
    /// If it does not build, or Maven cannot bring RocksDB.
    pub fn build(data: PathBuf, published_rocksdb: bool) -> Result<Program> {
        let builds = target().join("peers");
        let libraries = published_rocksdb.then(|| bring_rocksdb(&builds.join("rocksdb"))).transpose()?;
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root().join("peers")).args(["build", "--quiet", "--release", "--target-dir"]);
        cargo.arg(&builds).envs(libraries.iter().map(|folder| ("ROCKSDB_LIB_DIR", folder)));
        checked(&mut cargo)?;
        Ok(Program { path: builds.join("release/siltstone-peers"), data, libraries })
    }

    /// Writes the rows for reading, unless they are there.
    ///
    /// # Errors
    /// If it fails.
    pub fn prepare(&self, contestant: Contestant, dataset: Dataset) -> Result<()> {
        let folder = self.folder(contestant, dataset);
        let [done, begun] = ["prepared", "begun"].map(|mark| folder.with_extension(mark));
        match fs::read_to_string(&done) {
            Ok(layout) if layout == LAYOUT => return Ok(()),
            // It was made here, and is made anew.
            Ok(_) => fs::rename(&done, &begun)?,
            Err(_) => {}
        }
        make_room(&folder, &begun)?;
        eprintln!("{}: {dataset}, written", contestant.title);
        checked(&mut self.command("prepare", contestant, dataset, &folder))?;
        Ok(fs::write(done, LAYOUT)?)
    }

    /// Copies Siltstone's SSTable to a folder, but not the schema beside it.
    ///
    /// # Errors
    /// If it is not there.
    pub fn copy_sstable(&self, dataset: Dataset, to: &Path) -> Result<()> {
        fs::create_dir_all(to)?;
        let tables = self.folder(Contestant::SILTSTONE, dataset).join("data/peers");
        for table in fs::read_dir(tables)? {
            for file in fs::read_dir(table?.path())? {
                let name = file?.path();
                let is_of_sstable = |name: &str| name.contains("-big-");
                if let Some(file) = name.file_name().filter(|name| name.to_str().is_some_and(is_of_sstable)) {
                    fs::copy(&name, to.join(file))?;
                }
            }
        }
        Ok(())
    }

    /// The seconds that a load takes, into a folder of its own, once nothing of the one before waits for the disk.
    ///
    /// # Errors
    /// If it fails.
    pub fn load(&self, contestant: Contestant, dataset: Dataset) -> Result<f64> {
        let folder = tempfile::tempdir_in(&self.data)?;
        checked(&mut Command::new("sync"))?;
        let mut load = self.command("load", contestant, dataset, folder.path());
        load.args(["--io-uring", "--memory=256"]);
        Ok(Numbers::parse(&checked(&mut load)?.stdout)?.number("seconds"))
    }

    /// What a process says that does the work by itself.
    ///
    /// # Errors
    /// If it fails.
    pub fn timed(&self, work: &Task) -> Result<Numbers> {
        let confined = match work.contestant.memory {
            Some(mib) => {
                forget(&self.folder(work.contestant, work.dataset))?;
                Some(Confined::to(mib)?)
            }
            None => None,
        };
        let start = match &confined {
            Some(confined) => confined.command(&self.path),
            None => Command::new(&self.path),
        };
        let mut read = self.reading(self.with_libraries(start), work);
        Numbers::parse(&checked(read.arg("--io-uring"))?.stdout)
    }

    /// The same, and what a tracer sees of it.
    ///
    /// # Errors
    /// If it fails, or there is no `strace`.
    pub fn traced(&self, work: &Task) -> Result<(Traced, Numbers)> {
        let trace = self.data.join("trace");
        let mut strace = self.start("strace");
        strace.args(["-f", "-y", "-s", "0", "-e"]).arg(format!("trace={CALLS}"));
        strace.args(["-e", "signal=none", "-o"]).arg(&trace).arg(&self.path);
        let numbers = Numbers::parse(&checked(&mut self.reading(strace, work))?.stdout)?;
        let folder = format!("{}/", self.folder(work.contestant, work.dataset).display());
        Ok((Traced::parse(&fs::read_to_string(&trace)?, &folder), numbers))
    }

    /// The same, and how many instructions all its threads took.
    ///
    /// # Errors
    /// If it fails, or there is no `valgrind`.
    pub fn counted(&self, work: &Task) -> Result<(f64, Numbers)> {
        let output = checked(&mut self.reading(self.valgrind(), work))?;
        Ok((collected(&output)?, Numbers::parse(&output.stdout)?))
    }

    /// How many instructions all threads of a load take.
    ///
    /// # Errors
    /// If it fails, or there is no `valgrind`.
    pub fn counted_load(&self, contestant: Contestant, dataset: Dataset) -> Result<f64> {
        let folder = tempfile::tempdir_in(&self.data)?;
        let mut load = self.valgrind();
        load.arg("load");
        arguments(&mut load, contestant, dataset, folder.path());
        collected(&checked(load.arg("--memory=256"))?)
    }

    fn valgrind(&self) -> Command {
        let mut valgrind = self.start("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&self.path);
        valgrind
    }

    /// One row of the large fixture, from opening it to the row.
    ///
    /// # Errors
    /// If it is not read.
    pub fn one_row(&self, fixture: &Path, by_siltstone: bool) -> Result<Cell> {
        let mut read = self.start(&self.path);
        read.arg("one-row").args(by_siltstone.then_some("--siltstone"));
        read.arg(fixture).arg(self.data.join("fixture"));
        let numbers = Numbers::parse(&checked(&mut read)?.stdout)?;
        match numbers.number("rows") {
            1.0 => Ok(numbers.seconds_and_memory(numbers.number("seconds"))),
            rows => Err(format!("{rows} rows were found where there is one").into()),
        }
    }

    fn start(&self, program: impl AsRef<OsStr>) -> Command {
        self.with_libraries(Command::new(program))
    }

    fn with_libraries(&self, mut command: Command) -> Command {
        command.envs(self.libraries.iter().map(|folder| ("LD_LIBRARY_PATH", folder)));
        command.envs([HUGE_PAGES]);
        command
    }

    fn reading(&self, mut command: Command, work: &Task) -> Command {
        let Task { contestant, dataset, case, memory, warm, from, count, rounds, scan, readers } = *work;
        let folder = self.folder(contestant, dataset);
        command.arg("read");
        if memory >= ALL_IN_MEMORY {
            command.env(HUGE_PAGES.0, "2");
        }
        arguments(&mut command, contestant, dataset, &folder);
        command.arg(format!("--case={case}")).arg(format!("--memory={memory}"));
        command.arg(format!("--warm={warm}")).arg(format!("--from={from}"));
        command.arg(format!("--count={count}")).arg(format!("--rounds={rounds}"));
        command.arg(format!("--scan-rows={scan}")).arg(format!("--readers={readers}"));
        command
    }

    fn command(&self, what: &str, contestant: Contestant, dataset: Dataset, folder: &Path) -> Command {
        let mut command = self.start(&self.path);
        command.arg(what);
        arguments(&mut command, contestant, dataset, folder);
        command
    }

    fn folder(&self, contestant: Contestant, dataset: Dataset) -> PathBuf {
        self.data.join(format!("{}-{}-{}", contestant.variant, dataset.rows, dataset.value_size))
    }
}

/// What callgrind says that it has counted.
fn collected(output: &Output) -> Result<f64> {
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    Ok(collected.ok_or("callgrind does not say what it collected")?)
}

fn arguments(command: &mut Command, contestant: Contestant, dataset: Dataset, folder: &Path) {
    command.arg(contestant.peer).arg("--folder").arg(folder).args(contestant.flags);
    command.arg(format!("--rows={}", dataset.rows)).arg(format!("--value-size={}", dataset.value_size));
}

/// Brings the library that RocksDB publishes for Java, which has the interface for C as well.
fn bring_rocksdb(folder: &Path) -> Result<PathBuf> {
    let library = folder.join("librocksdb.so");
    if !library.exists() {
        fs::create_dir_all(folder)?;
        let artifact = format!("-Dartifact=org.rocksdb:rocksdbjni:{ROCKSDB_VERSION}:jar:linux64");
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "-Dstyle.color=never", "dependency:copy", &artifact]);
        checked(maven.arg(format!("-DoutputDirectory={}", folder.display())))?;
        let mut jar = Command::new("jar");
        jar.current_dir(folder).args([
            "xf",
            &format!("rocksdbjni-{ROCKSDB_VERSION}-linux64.jar"),
            JAVAS_LIBRARY,
        ]);
        checked(&mut jar)?;
        fs::rename(folder.join(JAVAS_LIBRARY), &library)?;
    }
    Ok(folder.to_owned())
}

/// Whether the allocator of all but Cassandra asks the kernel for huge pages, for which it reads this. With them what is first touched is
/// 2 MiB, which is not for a process of 8 MiB of caches; where all is in memory, slices are a tenth faster: `docs/decisions/0040`.
const HUGE_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");

/// What is prepared has another number as soon as anybody prepares it otherwise: what is there of before is not measured then.
const LAYOUT: &str = "1";

/// An empty folder. Only what was begun before makes room for it, which a file beside it tells.
fn make_room(folder: &Path, begun: &Path) -> Result<()> {
    if folder.exists() && !begun.exists() {
        return Err(format!(
            "{} is there, and was not made here: remove it, or choose another --data",
            folder.display()
        )
        .into());
    }
    fs::write(begun, "")?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        let line =
            br#"{"operations":4,"rows":8,"sum":"a","warm_sum":"b","requests":3,"bytes":1536,"counts":true}"#;
        let numbers = Numbers::parse(line).unwrap();
        assert_eq!((numbers.operations(), numbers.number("none")), (4.0, 0.0));
        assert_eq!(numbers.sums(), ["a", "b"]);
        assert_eq!(numbers.own_counts(), Some(Reads { requests: 3, bytes: 1536 }));
    }

    #[test]
    fn only_what_was_begun_makes_room() {
        let data = tempfile::tempdir().unwrap();
        let (folder, begun) = (data.path().join("set"), data.path().join("set.begun"));
        make_room(&folder, &begun).unwrap();
        fs::write(folder.join("half"), "").unwrap();
        make_room(&folder, &begun).unwrap();
        assert!(!folder.join("half").exists());
        fs::write(folder.join("letter"), "").unwrap();
        fs::remove_file(&begun).unwrap();
        assert!(make_room(&folder, &begun).is_err() && folder.join("letter").exists());
    }

    #[test]
    fn rows_are_grouped() {
        let dataset = Dataset { rows: 10_000_000, value_size: 200 };
        assert_eq!(dataset.to_string(), "10,000,000 rows of 200 bytes");
    }
}
