//! `siltstone sstable dump`: rows as JSON.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use model::{Bytes, PartitionKey};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::dump::{Dump as Dumper, Format};
use siltstone::fragment_json::FragmentJson;
use siltstone::parallel_dump::ParallelDump;
use siltstone::{Result, keys};
use sstable::{OpenOptions, SSTable};

use super::progress::Progress;
use super::{Paths, note, on_shard};

/// For the little of the index that finding single keys reads. Bytes.
const CACHE: usize = 4 << 20;

/// Print what an SSTable holds as JSON: all of it, or the partitions of some keys.
///
/// The output is that of the sstabledump of Cassandra 5.0, one JSON array an SSTable; several SSTables give
/// several arrays, one after the other. With --format jsonl each row or tombstone is a JSON object on a line
/// of its own, which names the key of its partition and, where there are several SSTables, the SSTable. These lines
/// tell all that a file holds: where a value does not, its bytes are beside it.
///
/// Positions are bytes from the start of the uncompressed data, as sstabledump prints them: that of a partition
/// is the end of its head, which is its key and its deletion; that of a row or tombstone is its start. Memory
/// stays small whatever the size.
///
/// A counter's value is what sstabledump takes for it, the first eight bytes of what is stored; read --live
/// prints its total. A float that is NaN or infinite is printed as null; read takes "NaN", "Infinity" and
/// "-Infinity" in --from and --to.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable dump /backup/users-7b8c/me-1-big-Data.db > users.json
  siltstone sstable dump --key '[\"7\"]' --key '[\"9\"]' /backup/users-7b8c
  siltstone sstable dump --format jsonl /backup/users-7b8c | jq -c 'select(.type == \"row\") | .key'

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(super) struct Dump {
    #[command(flatten)]
    paths: Paths,

    /// Only the partition of this key: a JSON array of the text of each of its columns, as the dump prints
    /// it. May be given several times; keys that are not there are left out.
    #[arg(long = "key", value_name = "JSON", allow_hyphen_values = true)]
    keys: Vec<String>,

    /// How to print.
    #[arg(long, value_enum, default_value = "cassandra")]
    format: FormatArg,
}

/// Data of this many bytes, uncompressed, is dumped by several threads.
const SHARED: u64 = 1 << 20;

/// More threads than this have too little to share: each of them reads everything.
const MOST_THREADS: usize = 4;

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    /// An array of partitions, as Cassandra's sstabledump.
    Cassandra,
    /// An object for each row or tombstone, one a line.
    Jsonl,
}

impl Dump {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions { direct_io: false, ..ShardOptions::default() }, async move |shard| {
            self.dump_all(&shard).await
        })
    }

    async fn dump_all(&self, shard: &Shard) -> Result<()> {
        let files = self.paths.files(shard).await?;
        let options = OpenOptions::new(Cache::new(CACHE));
        let mut out = io::stdout().lock();
        let names_sstable = files.len() > 1;
        for file in files {
            let table = SSTable::open(shard.disk(), &file, &options).await?;
            let format = match self.format {
                FormatArg::Cassandra => Format::Cassandra,
                FormatArg::Jsonl => Format::JsonLines,
            };
            let keys = self.keys_of(&table)?;
            let now = siltstone::now();
            let len = table.data().file.len();
            let mut progress = Progress::new(&table.descriptor().to_string(), len);
            let mut dumper = Dumper::new(&table, format, now);
            if names_sstable {
                dumper.name_sstable();
            }
            if !keys.is_empty() {
                let missing = dumper.keys(&keys, &mut out).await?;
                report_missing(&table, &missing);
            } else if len < SHARED {
                dumper.all(&mut out, &mut |done| progress.set(done)).await?;
            } else {
                let dump = ParallelDump { format, threads: threads(), now, names_sstable };
                dump.run(&file, &mut out, &mut |done| progress.set(done.min(len)))?;
            }
        }
        Ok(out.flush()?)
    }

    fn keys_of(&self, table: &SSTable) -> Result<Vec<PartitionKey>> {
        let key = |json: &String| Ok(table.key(Bytes::from(keys::partition_key(table.schema(), json)?)));
        self.keys.iter().map(key).collect()
    }
}

fn report_missing(table: &SSTable, keys: &[PartitionKey]) {
    let mut fragments = FragmentJson::new(table.schema().clone(), 0);
    for key in keys {
        if let Ok(text) = fragments.key_text(&key.bytes) {
            note(&format!("{}: no partition has the key {text}", table.data().file.path().display()));
        }
    }
}
