//! `siltstone sstable read`: a slice of one partition.

use std::io::{self, Write as _};
use std::num::NonZeroU64;

use clap::{Args, ValueEnum};
use model::Bytes;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::read::{Found, Query, ReadStats, Tables, print_rows, slice_between};
use siltstone::{Result, keys};
use sstable::{OpenOptions, ReadOptions, Search};

use super::{Paths, note, on_shard, positive};

/// Print the rows of one partition, or a slice of them, as JSON lines: the fewest requests that do.
///
/// Several SSTables, or the SSTables of a folder, are merged. Rows are printed as they are stored then:
/// deleted rows and cells as tombstones, and the deletion of the partition and of ranges of it on lines of their own, unless --live is
/// given. Which table an SSTable is of, it does not tell: a
/// merge refuses SSTables whose keys or columns do not go together, and takes all others for those of one table.
///
/// Chunks of compressed data are checked as they are read. Uncompressed data is not compared with CRC.db, as that
/// would take more bytes than the rows: dump and verify do so.
///
/// Where nothing is found, a note on stderr says so, and the exit code is 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable read /backup/events-1f/oa-7-big-Data.db --key '[\"42\"]' --limit 10
  siltstone sstable read /backup/events-1f --key '[\"42\"]' --from '[\"2024-01-01\"]' --to '[\"2024-01-31\"]' --live
  siltstone sstable read /backup/events-1f --key '[\"42\"]' --reverse --limit 1 --stats --repeat 2

Keys, by the types of their columns:
  text                --key '[\"alice\"]'
  int                 --key '[\"42\"]'
  blob                --key '[\"cafe01\"]'                  hexadecimal, without 0x; in --from and --to with it
  timestamp           --key '[\"2024-01-31T12:00:00Z\"]'
  (text, int)         --key '[\"alice\", \"42\"]'

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(super) struct Read {
    #[command(flatten)]
    paths: Paths,

    /// The partition's key: a JSON array of the text of each of its columns, as a dump prints it.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    key: String,

    /// The first row: a JSON array of clustering values, as a dump prints them, or of the first few of them;
    /// then of the rows that begin with these, all are meant. The order is that of the table: where a column
    /// descends, the greatest value comes first.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    from: Option<String>,

    /// The last row, included; written as --from is.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    to: Option<String>,

    /// At most so many rows; the static row is not counted.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    limit: Option<NonZeroU64>,

    /// From the last row to the first.
    #[arg(long)]
    reverse: bool,

    /// Print the static row even though --from or --to is given. It may cost a request of its own.
    #[arg(long = "static")]
    static_row: bool,

    /// Only what a SELECT would return now: neither deleted nor expired. Of a counter, its total; without --live
    /// it is printed as sstabledump prints it, the first eight bytes of what is stored.
    #[arg(long)]
    live: bool,

    /// How to find the rows of a large partition.
    #[arg(long, value_enum, default_value = "binary", value_name = "HOW")]
    index_search: SearchArg,

    /// Do not use Fences.db, even if there is one.
    #[arg(long)]
    no_fences: bool,

    /// Read so many times and print the rows each time. Caches are cold at first, and then kept.
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive, allow_negative_numbers = true)]
    repeat: NonZeroU64,

    /// After each repetition, print on stderr as JSON, one a line, what that repetition alone asked of the disk.
    ///
    /// Opening the SSTables is not counted.
    ///
    /// requests, bytes: reads asked of the operating system, and how many bytes they were for.
    ///
    /// index_requests, index_bytes: those of them that were for Index.db.
    ///
    /// data_requests, data_bytes: those of them that were for Data.db, as it is on disk.
    ///
    /// fences_requests, fences_bytes: those of them that were for Fences.db.
    ///
    /// filter_requests, filter_bytes: those of them that were for filters: Filter.db, BloomPages.db and RowFilter.db.
    ///
    /// summary_requests, summary_bytes: those of them that were for Summary.db.
    ///
    /// metadata_requests, metadata_bytes: the rest, which were for CompressionInfo.db and CRC.db.
    ///
    /// page_hits, page_misses: pages of 4 KiB of Index.db that were in the cache, and that were not.
    ///
    /// fences: for each SSTable what became of its Fences.db.
    #[arg(long)]
    stats: bool,

    #[command(flatten)]
    io: IoArgs,
}

#[derive(Debug, Args)]
struct IoArgs {
    /// Do not use io_uring but a pool of threads.
    #[arg(long)]
    no_io_uring: bool,

    /// Do not read past the page cache of the operating system.
    #[arg(long)]
    no_direct_io: bool,

    /// Memory for parts of the index, in MiB.
    #[arg(long, value_name = "N", default_value = "64")]
    cache_mib: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SearchArg {
    /// By fences if there are any; else by guesses and halves, through the offset map of the partition's index.
    Binary,
    /// From the first index block on.
    Scan,
}

impl Read {
    pub(super) fn run(self) -> Result<()> {
        let options = ShardOptions {
            io_uring: !self.io.no_io_uring,
            direct_io: !self.io.no_direct_io,
            ..ShardOptions::default()
        };
        on_shard(options, async move |shard| self.read(&shard).await)
    }

    async fn read(&self, shard: &Shard) -> Result<()> {
        let cache = Cache::new(usize::from(self.io.cache_mib) << 20);
        let options = OpenOptions { fences: !self.no_fences, ..OpenOptions::new(cache) };
        let tables = Tables::new(self.paths.open(shard, &options).await?)?;
        let query = self.query(&tables)?;
        let mut out = io::stdout().lock();
        for repetition in 0..self.repeat.get() {
            let before = ReadStats::now(shard.disk(), &tables);
            let found = print_rows(&tables, &query, siltstone::now(), &mut out).await?;
            out.flush()?;
            if repetition == 0 {
                self.note_what_is_missing(found);
            }
            if self.stats {
                eprintln!("{}", ReadStats::now(shard.disk(), &tables).since(&before).to_json());
            }
        }
        Ok(())
    }

    fn note_what_is_missing(&self, found: Found) {
        match found {
            Found::Rows => {}
            Found::NoPartition => note(&format!("no partition has the key {}", self.key)),
            Found::NoRows if self.live => {
                note("the partition is there, but none of its rows asked for is live")
            }
            Found::NoRows => note("the partition is there, but it has no such rows"),
            Found::EmptySlice => note(
                "no rows: --from lies behind --to in the order of the table; where a column is descending, \
                 greater values come first",
            ),
        }
    }

    fn query(&self, tables: &Tables) -> Result<Query> {
        let schema = tables.schema();
        let clustering =
            |json: &Option<String>| json.as_ref().map(|json| keys::clustering(schema, json)).transpose();
        let search = match self.index_search {
            SearchArg::Binary => Search::Binary,
            SearchArg::Scan => Search::Scan,
        };
        Ok(Query {
            key: tables.key(Bytes::from(keys::partition_key(schema, &self.key)?)),
            slice: slice_between(clustering(&self.from)?, clustering(&self.to)?),
            options: ReadOptions {
                search,
                reverse: self.reverse,
                static_row: self.static_row || (self.from.is_none() && self.to.is_none()),
                limit: self.limit.map(NonZeroU64::get),
                neighbours: false,
                is_filtered: false,
                read_buffer: None,
                reads_on: true,
                is_among_others: false,
            },
            limit: self.limit.map(NonZeroU64::get),
            live: self.live,
        })
    }
}
