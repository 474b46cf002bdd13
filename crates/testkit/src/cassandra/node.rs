//! A live node of Cassandra in a Java of its own, which is told what to do line by line.
//!
//! ```text
//! <folder>/conf/      cassandra.yaml and logback.xml
//!         /storage/   data, commit log and all else
//!         /log        what Cassandra logs and prints; its end is shown where something fails
//! ```
//!
//! The other end is `java/Lab.java`, which says what can be asked.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use model::Bytes;
use model::hex::{parse_hex, push_hex};

use super::Cassandra;
use crate::Result;
use crate::statements::Bound;

/// Longer than anything takes that is asked of a node here.
const PATIENCE: Duration = Duration::from_secs(240);

/// How much of its log an error shows.
const TAIL_LINES: usize = 25;

/// The system's own tables need not survive a crash, but an orderly end; nothing is waited for.
const PROPERTIES: [&str; 10] = [
    "-Dcassandra.unsafesystem=true",
    "-Dcassandra.ring_delay_ms=0",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Dcassandra.superuser_setup_delay_ms=0",
    "-Dcassandra.initial_token=0",
    "-Dcassandra.size_recorder_interval=0",
    "-Dcassandra-foreground=yes",
    "-Dcassandra.clock=LabClock",
    "-Djava.net.preferIPv4Stack=true",
    // Lets `sstabledump` run where the daemon has read the configuration already.
    "-Dorg.apache.cassandra.tools.UtilALLOW_TOOL_REINIT_FOR_TEST=true",
];

const YAML: &str = "\
cluster_name: siltstone
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
data_file_directories: ['@STORAGE@/data']
commitlog_directory: '@STORAGE@/commitlog'
saved_caches_directory: '@STORAGE@/saved_caches'
hints_directory: '@STORAGE@/hints'
cdc_raw_directory: '@STORAGE@/cdc_raw'
commitlog_sync: periodic
commitlog_sync_period: 10s
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: 127.0.0.1:@PORT@
listen_address: 127.0.0.1
storage_port: @PORT@
start_native_transport: false
auto_snapshot: false
compaction_throughput: 0MiB/s
materialized_views_enabled: true
tombstone_warn_threshold: 500000
tombstone_failure_threshold: 1000000
read_request_timeout: 120s
range_request_timeout: 120s
write_request_timeout: 120s
counter_write_request_timeout: 120s
storage_compatibility_mode: @MODE@
@WORK@";

/// Much is indexed of little.
const QUESTIONS: &str = "column_index_size: 4KiB\n";

/// The cache of chunks has 8 MiB: 32 of these are for buffers.
const READS: &str = "file_cache_size: 40MiB\n";

/// No memtable is flushed by itself; it is of the kind that cassandra.yaml of Cassandra 5.0 has.
const FLUSHES: &str = "\
memtable_allocation_type: heap_buffers
memtable_heap_space: 5GiB
memtable_cleanup_threshold: 0.9
";

const LOGBACK: &str = "\
<configuration>
  <appender name=\"file\" class=\"ch.qos.logback.core.FileAppender\">
    <file>@FOLDER@/log</file>
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level=\"INFO\"><appender-ref ref=\"file\"/></root>
</configuration>
";

/// Which version of the format a node writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// As Cassandra 4 does: `storage_compatibility_mode: CASSANDRA_4`.
    Nb,
    /// As Cassandra 5 does: `storage_compatibility_mode: NONE`.
    Oa,
}

/// In huge pages, as those have their memory who are timed beside it. Where the kernel has none Java warns of it, which must not stand among
/// answers.
const QUESTIONS_HEAP: [&str; 4] =
    ["-Xmx2g", "-XX:+UseTransparentHugePages", "-Xlog:disable", "-Xlog:all=warning:stderr"];

/// The values of a row, as bytes; `None` is null.
pub type Values = Vec<Option<Bytes>>;

/// What a node is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Many small tables, about which it is asked.
    Questions,
    /// Large memtables, whose flushes are measured.
    Flushes,
    /// More data than memory, of which little is to be kept.
    Reads,
}

impl Work {
    /// The heap, and what cassandra.yaml has besides.
    fn setup(self) -> (&'static [&'static str], &'static str) {
        match self {
            Work::Questions => (&QUESTIONS_HEAP, QUESTIONS),
            Work::Flushes => (&["-Xmx8g"], FLUSHES),
            Work::Reads => (&["-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch"], READS),
        }
    }
}

/// A live node. It is killed where it is dropped.
#[derive(Debug)]
pub struct Node {
    process: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    folder: PathBuf,
    jmx_port: u16,
    times: BTreeMap<String, (usize, Duration)>,
}

impl Cassandra {
    /// Starts a node in a folder, which may hold what an earlier one left, and waits until it is up.
    ///
    /// # Errors
    /// If it does not start; the error has the end of its log.
    pub fn node(&self, folder: &Path, writes: Writes, work: Work) -> Result<Node> {
        self.compile_drivers()?;
        let (storage, conf) = (folder.join("storage"), folder.join("conf"));
        let temporary = folder.join("tmp");
        for folder in [&storage, &conf, &temporary] {
            fs::create_dir_all(folder)?;
        }
        let [port, jmx_port] = free_ports()?;
        let mode = match writes {
            Writes::Nb => "CASSANDRA_4",
            Writes::Oa => "NONE",
        };
        let (heap, lines) = work.setup();
        let yaml = YAML.replace("@STORAGE@", &storage.display().to_string()).replace("@WORK@", lines);
        let yaml = yaml.replace("@PORT@", &port.to_string()).replace("@MODE@", mode);
        fs::write(conf.join("cassandra.yaml"), yaml)?;
        fs::write(conf.join("logback.xml"), LOGBACK.replace("@FOLDER@", &folder.display().to_string()))?;
        let mut java = self.java_in(&conf, &storage)?;
        java.args(heap).args(PROPERTIES).arg(format!("-Dcassandra.jmx.local.port={jmx_port}"));
        java.arg(format!("-Djava.io.tmpdir={0}", temporary.display()));
        java.arg(format!("-Djna.tmpdir={}", temporary.display())).arg("Lab");
        let printed = fs::File::options().create(true).append(true).open(folder.join("log"))?;
        let java = java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(printed);
        let mut process = java.spawn().map_err(|error| format!("java: {error}"))?;
        let requests = process.stdin.take().ok_or("a node has an stdin")?;
        let stdout = process.stdout.take().ok_or("a node has an stdout")?;
        let (sender, answers) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
            lines.map(|line| sender.send(line)).take_while(std::result::Result::is_ok).count()
        });
        let node =
            Node { process, requests, answers, folder: folder.to_owned(), jmx_port, times: BTreeMap::new() };
        node.answer()?;
        Ok(node)
    }
}

impl Node {
    /// Applies all statements of a schema as one change; it takes a fraction of the time of each by itself.
    ///
    /// # Errors
    /// As all of these: if the node fails, or does not answer in time.
    pub fn schema(&mut self, statements: &str) -> Result<()> {
        let file = self.folder.join("schema.cql");
        fs::write(&file, statements)?;
        self.ask("schema", &[&text(&file)]).map(drop)
    }

    /// Runs statements, one after the other.
    ///
    /// # Errors
    /// If one is refused.
    pub fn cql<S: AsRef<str>>(&mut self, statements: &[S]) -> Result<()> {
        let statements: Vec<&str> = statements.iter().map(AsRef::as_ref).collect();
        self.ask("cql", &statements).map(drop)
    }

    /// Runs statements with their values, each at a second.
    ///
    /// # Errors
    /// If one is refused.
    pub fn run(&mut self, statements: &[(i64, Bound)]) -> Result<()> {
        let file = self.folder.join("statements");
        let mut lines = String::new();
        for (now, statement) in statements {
            write!(lines, "{now}\t{}", statement.text)?;
            for value in &statement.values {
                lines.push('\t');
                put_value(value.as_deref(), &mut lines);
            }
            lines.push('\n');
        }
        fs::write(&file, lines)?;
        self.ask("run", &[&text(&file)]).map(drop)
    }

    /// The rows that a `SELECT` returns at a second: the bytes of each column.
    ///
    /// # Errors
    /// If it is refused.
    pub fn rows(&mut self, select: &str, now: i64) -> Result<Vec<Values>> {
        let file = self.folder.join("rows");
        self.ask("read", &[&now.to_string(), &text(&file), select])?;
        fs::read_to_string(&file)?.lines().map(|line| line.split('\t').map(value).collect()).collect()
    }

    /// `nodetool compact`, as it would be at a second: what has expired by then is gone.
    ///
    /// # Errors
    /// If it fails.
    pub fn compact_at(&mut self, table: &TableName, now: i64) -> Result<()> {
        self.ask("compact", &[&table.keyspace, &table.name, &now.to_string()]).map(drop)
    }

    /// What `nodetool import --extended-verify` asks of a node: the SSTables of the folders are verified, moved to the
    /// table's own and opened. How many there were.
    ///
    /// # Errors
    /// If Cassandra refuses one of the folders.
    pub fn import(&mut self, table: &TableName, folders: &[PathBuf]) -> Result<usize> {
        let folders: Vec<String> = folders.iter().map(|folder| text(folder)).collect();
        let mut arguments = vec![&*table.keyspace, &*table.name, "move"];
        arguments.extend(folders.iter().map(String::as_str));
        number(&self.ask("import", &arguments)?)
    }

    /// What `sstableverify --extended` does with a file.
    ///
    /// # Errors
    /// If it finds something.
    pub fn verify(&mut self, table: &TableName, data: &Path) -> Result<()> {
        self.ask("verify", &[&table.keyspace, &table.name, &text(data)]).map(drop)
    }

    /// Writes every row to a file, one JSON a line, as it is at the second `now`; how many there are.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn select(&mut self, table: &TableName, now: u64, output: &Path) -> Result<usize> {
        let now = now.to_string();
        number(&self.ask("select", &[&table.keyspace, &table.name, &now, &text(output)])?)
    }

    /// Writes a few rows of made-up values, the same for the same columns.
    ///
    /// # Errors
    /// If they are refused.
    pub fn write_extra_rows(&mut self, table: &TableName) -> Result<()> {
        self.ask("extra", &[&table.keyspace, &table.name]).map(drop)
    }

    /// Puts the rows that [`Cassandra::write_rows`] writes into the memtable of a table `(k int, c int, v blob)`.
    ///
    /// # Errors
    /// If they are refused.
    pub fn fill(&mut self, table: &TableName, shape: [u32; 3]) -> Result<()> {
        let [partitions, rows, bytes] = shape.map(|number| number.to_string());
        self.ask("fill", &[&table.keyspace, &table.name, &partitions, &rows, &bytes]).map(drop)
    }

    /// Flushes the memtable of a table; the seconds from the request within the node to the live SSTable.
    ///
    /// # Errors
    /// If it fails.
    pub fn flush(&mut self, table: &TableName) -> Result<f64> {
        number(&self.ask("flush", &[&table.keyspace, &table.name])?)
    }

    /// Does the reads that peers are measured by, some first and then so many, the latter again and again.
    ///
    /// # Errors
    /// If it fails.
    pub fn peer_reads(&mut self, table: &TableName, case: &str, plan: &PeerPlan) -> Result<PeerReads> {
        let PeerPlan { before, from, count, rows, scanned, rounds, readers } = *plan;
        let numbers = [before, from, count, rows, scanned, rounds, readers].map(|number| number.to_string());
        let mut arguments = vec![&*table.keyspace, &*table.name, case];
        arguments.extend(numbers.iter().map(String::as_str));
        let answer = self.ask("peers", &arguments)?;
        let [sum, sum_before, rows, rounds @ ..] = &answer[..] else {
            return Err("the node's answer is too short".into());
        };
        let (mut seconds, mut cpu_seconds) = (Vec::new(), Vec::new());
        for [elapsed, of_cpus] in rounds.as_chunks().0 {
            seconds.push(elapsed.parse()?);
            cpu_seconds.push(of_cpus.parse()?);
        }
        Ok(PeerReads { sums: [sum.clone(), sum_before.clone()], rows: rows.parse()?, seconds, cpu_seconds })
    }

    /// Writes the rows that peers are measured by: the seconds from the first of them to the one SSTable.
    ///
    /// # Errors
    /// If it fails.
    pub fn peer_load(&mut self, table: &TableName, rows: u32, value_size: u32) -> Result<f64> {
        let numbers = [rows, value_size].map(|number| number.to_string());
        number(&self.ask("load", &[&table.keyspace, &table.name, &numbers[0], &numbers[1]])?)
    }

    /// `nodetool compact` or `nodetool refresh` of a table, or CQL's `truncate`.
    ///
    /// # Errors
    /// If it fails.
    pub fn maintain(&mut self, verb: &str, table: &TableName) -> Result<()> {
        self.ask(verb, &[&table.keyspace, &table.name]).map(drop)
    }

    /// The Data.db files of a table that are live.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn files(&mut self, table: &TableName) -> Result<Vec<PathBuf>> {
        let files = self.ask("files", &[&table.keyspace, &table.name])?;
        Ok(files.into_iter().map(PathBuf::from).collect())
    }

    /// Takes a snapshot of a table; its folders.
    ///
    /// # Errors
    /// If it fails.
    pub fn snapshot(&mut self, table: &TableName, name: &str) -> Result<Vec<PathBuf>> {
        let folders = self.ask("snapshot", &[&table.keyspace, &table.name, name])?;
        Ok(folders.into_iter().map(PathBuf::from).collect())
    }

    /// Has `sstabledump` print to a file.
    ///
    /// # Errors
    /// If it fails.
    pub fn dump(&mut self, data: &Path, output: &Path) -> Result<()> {
        self.ask("dump", &[&text(data), &text(output)]).map(drop)
    }

    /// Where `nodetool` finds it, on 127.0.0.1.
    pub fn jmx_port(&self) -> u16 {
        self.jmx_port
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Where it keeps everything.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How often it was asked for what, and how long all of that took.
    pub fn times(&self) -> &BTreeMap<String, (usize, Duration)> {
        &self.times
    }

    /// Ends it in good order, so that another can be started in its folder, and tools can read its schema.
    ///
    /// # Errors
    /// If it does not end well.
    pub fn quit(mut self) -> Result<()> {
        self.ask("quit", &[])?;
        self.process.wait()?;
        Ok(())
    }

    fn ask(&mut self, verb: &str, arguments: &[&str]) -> Result<Vec<String>> {
        let started = Instant::now();
        let mut line = verb.to_owned();
        for argument in arguments {
            line.push('\t');
            line.push_str(&escape(argument));
        }
        line.push('\n');
        let written = self.requests.write_all(line.as_bytes()).and_then(|()| self.requests.flush());
        if let Err(error) = written {
            return Err(format!("{verb}: {error}\n{}", self.log_tail()).into());
        }
        let answer = self.answer().map_err(|error| format!("{verb}: {error}").into());
        let (times, elapsed) = self.times.entry(verb.to_owned()).or_default();
        (*times, *elapsed) = (*times + 1, *elapsed + started.elapsed());
        answer
    }

    fn answer(&self) -> Result<Vec<String>> {
        let line = match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("no answer in {PATIENCE:?}\n{}", self.log_tail()).into());
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(format!("the node ended\n{}", self.log_tail()).into());
            }
        };
        let mut words = line.split('\t').map(unescape);
        match words.next().as_deref() {
            Some("ok") => Ok(words.collect()),
            _ => Err(words.collect::<Vec<_>>().join(" ").into()),
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let mut tail = "the end of its log:\n".to_owned();
        for line in &lines[lines.len().saturating_sub(TAIL_LINES)..] {
            writeln!(tail, "  {line}").expect("a string takes all");
        }
        tail
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Which reads of a case are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerPlan {
    /// Operations before those that are timed.
    pub before: u64,
    /// The first that is timed.
    pub from: u64,
    /// How many are.
    pub count: u64,
    /// Rows that there are.
    pub rows: u64,
    /// Rows that a scan goes through.
    pub scanned: u64,
    /// How often.
    pub rounds: u64,
    /// How many read at once, each its share.
    pub readers: u64,
}

/// What the reads of a case found, and how long they took.
#[derive(Clone, Debug)]
pub struct PeerReads {
    /// Of the rows that were measured, and of those before.
    pub sums: [String; 2],
    /// How many were measured.
    pub rows: u64,
    /// Of each round.
    pub seconds: Vec<f64>,
    /// What the node took of all CPUs in each.
    pub cpu_seconds: Vec<f64>,
}

/// The name of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableName {
    /// Its keyspace.
    pub keyspace: String,
    /// Its own name, as it is stored; that of an index has its table's and a dot before it.
    pub name: String,
}

/// Two ports of 127.0.0.1 that nobody listens at.
fn free_ports() -> Result<[u16; 2]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [listen()?, listen()?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn number<N: FromStr<Err: Display>>(answer: &[String]) -> Result<N> {
    let answer = answer.first().ok_or("the node's answer is empty")?;
    answer.parse().map_err(|error| format!("{answer}: {error}").into())
}

fn put_value(value: Option<&[u8]>, to: &mut String) {
    match value {
        Some(bytes) => push_hex(bytes, to),
        None => to.push('-'),
    }
}

fn value(word: &str) -> Result<Option<Bytes>> {
    if word == "-" {
        return Ok(None);
    }
    parse_hex(word).map(|bytes| Some(Bytes::from(bytes))).ok_or_else(|| format!("{word} is no value").into())
}

fn escape(argument: &str) -> String {
    argument.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                other => other.unwrap_or('\\'),
            },
            c => c,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_escaped() {
        for text in ["", "a\tb\nc\\n", "\\", "\\\\t"] {
            assert_eq!(unescape(&escape(text)), text);
            assert!(!escape(text).contains(['\t', '\n']), "{text}");
        }
    }

    #[test]
    fn values_come_back() {
        for bytes in [None, Some(&b""[..]), Some(b"\x00\xff")] {
            let mut word = String::new();
            put_value(bytes, &mut word);
            assert_eq!(value(&word).unwrap().as_deref(), bytes);
        }
        assert!(value("0").is_err() && value("zz").is_err());
    }

    #[test]
    fn ports_are_two() {
        let [a, b] = free_ports().unwrap();
        assert_ne!(a, b);
    }
}
