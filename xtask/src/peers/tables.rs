//! Figures side by side, and the page that they stand on.

use std::fmt;
use std::thread;

use testkit::cassandra::VERSION;

use super::contestants::ROCKSDB_VERSION;
use super::{Options, TIMED};

/// What the tables say against Siltstone; to be read again whenever they are printed.
const BEHIND: &str = "\
## Where Siltstone is behind, and why

- **64 KiB blocks**: with blocks of 8 KiB or less a filter of rows is written, by groups of blocks
  ([0039](../decisions/0039-rows-of-large-partitions.md)); with larger ones it is not, so for an absent row the block is read. What is read is
  half a block at the least: KiB of rows, slices and skips are those of blocks of that size, not of blocks of 4 KiB.
- **Requests of a row**: RocksDB has four in a hundred blocks in its cache, and its indexes and filters beside it, in memory of their own: so
  of ten million rows it also knows nearly all that are not there, with nearly twice the memory. Ours, all within the limit, keep three in a hundred of
  the rows ([0042](../decisions/0042-neighbours-of-a-row.md)). With its indexes in the cache RocksDB makes no fewer.
- **KiB of skips, the first time**: the index is read along the way, four KiB of every second read; RocksDB and fjall have read theirs, or a
  good part, when they were opened. With what opening takes ours are fewer than RocksDB's, and with rows of 200 bytes a tenth more than fjall's. What
  fjall reads then, some KiB or some MiB, depends on what its load has left in its journal.
- **KiB of all rows**: the rows of Cassandra's format take half a percent more than fjall's: 214 bytes, of which 14 are the row's own, where fjall
  has 213.
- **Requests to open**: eleven small ones, as the components of an SSTable are files of their own. RocksDB's eight are a hundred times the KiB.
- **Instructions from disk by `run_on`**: a program on the thread of a shard may have other reads under way beside the one that it waits for, so its
  request goes by the shard's driver and back, in five thousand instructions of a row. Who asks a `Database` and waits makes it by
  `pread` ([0057](../decisions/0057-who-waits-reads.md)), as the peers do. An absent row is a future that is polled there: a hundred instructions, by
  which it is two in a hundred behind fjall's.
- **Rows a second of a row from disk**: one request each, whoever reads, so that the disk decides; columns whose requests are the same are
  ahead of each other by some in a hundred, now this one and now that one.
- **Rows a second of absent rows from disk**: the fences are searched and a filter of the row's group of blocks is asked, both in pages that come and go
  ([0054](../decisions/0054-filters-answer-in-the-call.md)), in fewer instructions than RocksDB's one filter, which is in memory beside what its cache may
  take. One in 250 passes, and has a group of blocks read and packed.
- **Peak memory** beside fjall's: one or two MiB. Its indexes and blocks are in the page cache too, which no column counts.
- **Load**, beside RocksDB: what is written is merged into one SSTable at the end, all rows of which are read, compared and written once
  more; RocksDB's compaction of ascending keys moves files, and writes nothing.
";

/// A figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell {
    /// Requests, and KiB.
    Reads(f64, f64),
    /// Thousands of something.
    Thousands(f64),
    /// Memory.
    MiB(f64),
    /// A time, and the peak of memory.
    SecondsAndMiB(f64, f64),
}

/// Figures of a group of cases; a column for each who takes part.
#[derive(Debug)]
pub struct Table {
    title: String,
    heads: Vec<String>,
    lines: Vec<(String, Vec<Cell>)>,
    has_ratios: bool,
}

impl Table {
    /// No line yet.
    pub fn new<'a>(title: String, of: &'a str, columns: impl IntoIterator<Item = &'a str>) -> Table {
        let heads = [of].into_iter().chain(columns).map(str::to_owned).collect();
        Table { title, heads, lines: Vec::new(), has_ratios: false }
    }

    /// A line more.
    pub fn line(&mut self, name: &str, cells: Vec<Cell>) {
        self.lines.push((name.to_owned(), cells));
    }

    /// Says beside each figure how large it is beside the first of its line.
    pub fn with_ratios(self) -> Table {
        Table { has_ratios: true, ..self }
    }

    fn text_of(&self, cells: &[Cell], at: usize) -> String {
        match (cells[0], cells[at]) {
            (Cell::Thousands(first), Cell::Thousands(this)) if self.has_ratios && at > 0 => {
                format!("{} ({:.2}×)", cells[at], this / first)
            }
            (_, cell) => cell.to_string(),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n| {} |", self.title, self.heads.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(self.heads.len() - 1))?;
        for (name, cells) in &self.lines {
            let texts: Vec<String> = (0..cells.len()).map(|at| self.text_of(cells, at)).collect();
            writeln!(f, "| {name} | {} |", texts.join(" | "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cell::Reads(requests, kib) => write!(f, "{} / {}", digits(requests), kib_of(kib)),
            Cell::Thousands(thousands) => f.write_str(&digits(thousands)),
            Cell::MiB(mib) => write!(f, "{mib:.0} MiB"),
            Cell::SecondsAndMiB(seconds, mib) => write!(f, "{seconds:.4} s, {mib:.0} MiB"),
        }
    }
}

/// Three digits or more.
fn digits(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

fn kib_of(kib: f64) -> String {
    if kib < 100.0 { format!("{kib:.1}") } else { format!("{kib:.0}") }
}

/// The tables of a part as they stand on the page, so that they are found again.
pub fn marked(part: &str, tables: &str) -> String {
    format!("<!-- {part} -->\n{tables}<!-- end of {part} -->\n")
}

/// The tables of a part of the page; none if they are not there.
pub fn part_of<'a>(page: &'a str, part: &str) -> &'a str {
    let behind = page.split_once(&format!("<!-- {part} -->\n")).map(|(_, behind)| behind);
    let tables = behind.and_then(|behind| behind.split_once(&format!("<!-- end of {part} -->\n")));
    tables.map_or("", |(tables, _)| tables)
}

/// The page with all tables.
pub fn page(tables: &str, options: &Options) -> String {
    let Options { memory_mib, runs, .. } = options;
    let rocksdb = match options.published_rocksdb {
        true => {
            "the library that the project publishes for Java, used from Rust by its interface for C, which was compiled for any x86-64"
        }
        false => "built by the crate",
    };
    let flag = if options.published_rocksdb { "--published-rocksdb " } else { "" };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!(
        "# Siltstone and its peers\n\n\
         The same work by Siltstone, RocksDB 10.4 (the crate `rocksdb` 0.24), fjall 3.1, cqlite 0.18 and Cassandra {VERSION}, each in processes\n\
         of its own. Printed by\n\n\
         ```sh\ncargo xtask peers {flag}--runs {runs} --write\n```\n\n\
         Each table is of one run; `--only` prints some again, and the others stay as they were, so tables may be of different runs.\n\
         `--fixture` is a folder of the fixtures, such as `oa/large`.\n\n\
         One partition, `int` clustering keys, a value of random bytes each row. RocksDB and fjall have partition and clustering as\n\
         big-endian keys. All have blocks of 4 KiB, no compression, and the rows in one sorted run. What is found is summed and must be\n\
         the same with all. Smaller is better, but for rows a second.\n\n\
         {tables}\n\
         {BEHIND}\n\
         ## How it is measured\n\n\
         - **From disk**: all caches together have {memory_mib} MiB. Requests are the system calls `read`, `pread64` and their like on files of\n  \
           the database, as `strace` sees them, and their bytes; in steady state, after thousands of other reads that fill the caches (60,000 of a row, 6,000 of absent ones, 1,500 slices; where indexes are larger than memory 20,000 of rows and 15,000 slices), save for a scan of all\n  \
           rows, and for what is read for the first time. Siltstone reads without io_uring for that; what it counts itself must be the same, and is\n  \
           checked. Siltstone and RocksDB read past the page cache (direct reads), fjall has no such option: its requests go to the page cache;\n  \
           what that reads ahead and takes of memory is in no column. RocksDB keeps indexes and filters in memory beside its cache, unless they are *in the cache*\n  \
           (`cache_index_and_filter_blocks`, two-level index, partitioned filters); its filters have 10 bits a key.\n\
         - **Siltstone, 64 KiB blocks** has the blocks that Cassandra and ScyllaDB write by themselves. Those of a `Database` have 4 KiB.\n\
         - **From disk, instructions and rows a second**: the same reads in steady state, with the same memory. Instructions are callgrind's, the
  \
           difference between so many and thrice as many operations, and of a scan between 100,000 rows and 300,000. fjall has no column of rows a second: it
  \
           would be read from the page cache, and is in memory then, whatever its own limit. {TIMED} times the operations are timed that are traced.
\
         - **All in memory**: caches of 1 GiB, and each read is done before. Instructions are callgrind's, of all threads of the process, without io_uring,\n  \
           with which a process does not come to its end there: the difference between some operations done once and done again and again, divided. Rows a second are the median of {runs} runs in turn, on {cores} cores\n  \
           that others used as well: they are good for large ratios only; in brackets the ratio to the first column. A read of an absent row counts as one.\n\
         - **Siltstone** is `siltstone::Database` with one shard, asked from another thread than that: who asks for a row or a slice looks while\n  \
           the shard is at rest, a scan hops there. Rows come by `Table::get`, and those of slices and scans are looked at by `Table::fold` and\n  \
           `Table::fold_scan`, as the peers' are by their iterators. **`run_on`** is the same from a loop on the thread of the shard.\n\
         - **Load** is batches of 1,000 rows through the log, synced as each does by itself, a flush, and a compaction into one sorted run, with 256 MiB\n  \
           for caches. Siltstone is given a batch while the one before is written; the others have no such call. Siltstone's and RocksDB's SSTables\n  \
           go to the disk past the page cache, all else goes there. Medians are of three runs at the most.\n\
         - **All** allocate with mimalloc, what is written in C++ too.\n\
         - **Cassandra** {VERSION} is a whole node, with a heap of 2 GB, that was given Siltstone's SSTable. Its reads are prepared statements within the\n  \
           node: no network, and nothing is encoded for one. Either is asked by one thread, which has its answer before it asks again: rows a second\n  \
           are those of one core, but that Java compiles and collects on the others. Its first round is that of a Java that has just read the same rows once; the others are the\n  \
           median of the rounds behind the fifth.\n\
         - **cqlite** reads the same file by statements of CQL, and is opened before it is timed, but for the row of the fixture; the mean of\n  \
           three reads. Both are told that they may keep 256 MiB. Of a scan of all rows, or of the first 10,000 by `LIMIT`, cqlite has not come to the\n  \
           end in minutes, so there is no line of it.\n\
         - RocksDB {ROCKSDB_VERSION} is {rocksdb}.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown() {
        let mut table = Table::new("T".to_owned(), "of", ["a", "b"]);
        table.line("row", vec![Cell::Thousands(2.0), Cell::Thousands(5.0)]);
        let expected = "## T\n\n| of | a | b |\n|---|---:|---:|\n| row | 2.00 | 5.00 (2.50×) |\n";
        assert_eq!(table.with_ratios().to_string(), expected);
    }

    #[test]
    fn a_part_stays_on_the_page() {
        let page = format!("# T\n{}{}text\n", marked("disk", "## A\n\n| a |\n\n"), marked("many", ""));
        assert_eq!(part_of(&page, "disk"), "## A\n\n| a |\n\n");
        assert_eq!((part_of(&page, "many"), part_of(&page, "load")), ("", ""));
    }

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.96, 12.34, 123.4].map(|number| Cell::Thousands(number).to_string());
        assert_eq!(texts, ["0.96", "12.3", "123"]);
        assert_eq!(Cell::Reads(1.0, 4.53).to_string(), "1.00 / 4.5");
    }
}
