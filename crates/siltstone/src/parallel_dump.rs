//! A dump by several threads, for files whose text takes longer to write than their bytes to read.
//!
//! ```text
//! stretches of the data   0   1   2   3   4 …
//! written by thread       0   1   0   1   0 …   one after the other to the output
//! ```
//!
//! Each thread is a shard that reads all of the file and follows it, but writes only its share of the
//! stretches. So no index is needed, and what one thread would find wrong is found all the same. At most
//! two stretches of text a thread are in memory.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use runtime::{Cache, Shard, ShardOptions};
use sstable::{OpenOptions, SSTable};

use crate::dump::{Dump, Format, Share};
use crate::error::{Error, Result};

/// Bytes of data in a stretch: their text is a few MiB at the most.
const STRETCH: u64 = 128 << 10;

/// How a file is dumped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParallelDump {
    /// The form of the text.
    pub format: Format,
    /// How many threads share the work, at least one.
    pub threads: usize,
    /// Seconds since the epoch: decides what is said to have expired.
    pub now: i64,
    /// Whether each line names the SSTable, see [`Dump::name_sstable`].
    pub names_sstable: bool,
}

type Text = Result<String>;

impl ParallelDump {
    /// Dumps the SSTable that the file at `path` belongs to. `progress` is told how many bytes of its data are
    /// done, of how many.
    ///
    /// # Errors
    /// What cannot be read or written; what was read before is written.
    pub fn run(&self, path: &Path, out: &mut dyn Write, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let of = self.threads.max(1) as u64;
        thread::scope(|scope| {
            let shares: Vec<Receiver<Text>> = (0..of)
                .map(|remainder| {
                    let (to, from) = sync_channel(1);
                    let share = Share { remainder, of, stretch: STRETCH };
                    scope.spawn(move || self.dump_share(path, share, &to));
                    from
                })
                .collect();
            for (stretch, share) in (0..).zip(shares.iter().cycle()) {
                // A thread that has nothing more to say has reached the end.
                let Ok(text) = share.recv() else { break };
                out.write_all(text?.as_bytes())?;
                progress((stretch + 1) * STRETCH);
            }
            Ok(())
        })
    }

    fn dump_share(&self, path: &Path, share: Share, to: &SyncSender<Text>) {
        let options = ShardOptions { direct_io: false, ..ShardOptions::default() };
        let dumped = runtime::run(options, async |shard: Shard| -> Result<()> {
            let table = SSTable::open(shard.disk(), path, &OpenOptions::new(Cache::new(0))).await?;
            let mut dump = Dump::new(&table, self.format, self.now);
            if self.names_sstable {
                dump.name_sstable();
            }
            dump.share(share, &mut |text| to.send(Ok(text)).is_ok()).await
        });
        if let Err(error) = dumped.map_err(Error::from).and_then(|dumped| dumped) {
            // Nobody listens once another thread has failed.
            let _ = to.send(Err(error));
        }
    }
}
