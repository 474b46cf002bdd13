//! cqlite: reads the very SSTables that Siltstone has written, by statements of CQL. It has no option for direct reads.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ::siltstone::database::{Bound, Database as Siltstone, Options, Slice};
use clap::Args;
use cqlite_core::ingestion::{IngestionConfig, ingest};
use cqlite_core::{Config, Database, Value};
use tokio::runtime::{Builder, Runtime};

use crate::Settings;
use crate::rows::{Found, PARTITION};
use crate::work::{Peer, Result, Way, peak_kib};

/// The table as cqlite is told of it.
const SCHEMA: &str = "CREATE TABLE peers.rows (k int, c int, v blob, PRIMARY KEY (k, c));\n";

/// The id that a folder of a table has in its name, where nobody asks which.
const ID: &str = "00000000000000000000000000000001";

/// An open database with the runtime that it wants.
#[derive(Clone)]
pub(crate) struct Cqlite {
    runtime: Arc<Runtime>,
    database: Arc<Database>,
}

/// One row of the large partition of a fixture: `schema.cql` and `sstables/large/` in its folder.
#[derive(Debug, Args)]
pub(crate) struct OneRow {
    /// Siltstone reads it instead.
    #[arg(long)]
    siltstone: bool,

    /// The folder of the fixture.
    fixture: PathBuf,

    /// A folder for a view of it as a folder of data.
    scratch: PathBuf,

    /// The first clustering column of the row.
    #[arg(long, default_value = "99001")]
    row: i32,
}

impl OneRow {
    /// Opens, reads and says how long that took and what memory.
    pub(crate) fn run(&self) -> Result<String> {
        let began = Instant::now();
        let rows = if self.siltstone { self.by_siltstone()? } else { self.by_cqlite()? };
        let seconds = began.elapsed().as_secs_f64();
        Ok(format!("{{\"rows\":{rows},\"seconds\":{seconds},\"peak_kib\":{}}}", peak_kib()))
    }

    fn by_siltstone(&self) -> Result<usize> {
        let options = Options { read_only: true, shards: 1, ..Options::default() };
        let folder = self.fixture.join("sstables/large");
        let database = Siltstone::open_table_folder(folder, None, options).wait()?;
        let at = Bound::including(self.row);
        let slice = Slice::all().from(at.clone()).to(at);
        let table = database.tables().remove(0);
        Ok(table.slice(1, slice).wait()?.rows.len())
    }

    fn by_cqlite(&self) -> Result<usize> {
        let table = self.scratch.join("data/fx_large").join(format!("large-{ID}"));
        fs::create_dir_all(&table)?;
        for file in fs::read_dir(self.fixture.join("sstables/large"))? {
            let file = file?;
            let link = table.join(file.file_name());
            if !link.exists() {
                symlink(file.path().canonicalize()?, link)?;
            }
        }
        let schema = self.fixture.join("schema.cql");
        let cqlite = Cqlite::of(&self.scratch.join("data"), &schema, Config::default())?;
        let row = self.row;
        let select = format!("SELECT k, c, d, n, v FROM fx_large.large WHERE k = 1 AND c = {row}");
        Ok(cqlite.runtime.block_on(cqlite.database.execute(&select))?.rows.len())
    }
}

impl Cqlite {
    /// Opens what Siltstone has written.
    pub(crate) fn open(settings: &Settings) -> Result<Cqlite> {
        let schema = settings.folder.join("cqlite.cql");
        fs::write(&schema, SCHEMA)?;
        let mut config = Config::default();
        config.memory.max_memory = settings.cache_bytes() as u64;
        config.memory.block_cache.max_size = settings.cache_bytes() as u64;
        Cqlite::of(&settings.folder.join("data"), &schema, config)
    }

    fn of(data: &Path, schema: &Path, core_config: Config) -> Result<Cqlite> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let config = IngestionConfig {
            schema_paths: vec![schema.to_owned()],
            data_dir: data.to_owned(),
            version_hint: None,
            core_config,
            table_directory_filter: None,
        };
        let database = runtime.block_on(ingest(config))?.database;
        Ok(Cqlite { runtime: Arc::new(runtime), database: Arc::new(database) })
    }

    fn select(&self, rest: &str, found: &mut Found) -> Result<()> {
        let select = format!("SELECT c, v FROM peers.rows {rest}");
        let result = self.runtime.block_on(self.database.execute(&select))?;
        for row in &result.rows {
            match (row.values.get("c"), row.values.get("v")) {
                (Some(Value::Integer(clustering)), Some(Value::Blob(value))) => found.row(*clustering, value),
                other => return Err(format!("a row was expected, not {other:?}").into()),
            }
        }
        Ok(())
    }
}

impl Peer for Cqlite {
    async fn point(&mut self, clustering: i32, found: &mut Found) -> Result<()> {
        self.select(&format!("WHERE k = {PARTITION} AND c = {clustering}"), found)
    }

    async fn slice(&mut self, from: i32, rows: usize, way: Way, found: &mut Found) -> Result<()> {
        let (sign, order) = match way {
            Way::Forward => (">=", "ASC"),
            Way::Reverse => ("<=", "DESC"),
        };
        let rest = format!("WHERE k = {PARTITION} AND c {sign} {from} ORDER BY c {order} LIMIT {rows}");
        self.select(&rest, found)
    }

    async fn scan(&mut self, rows: usize, found: &mut Found) -> Result<()> {
        self.select(&format!("LIMIT {}", rows.min(i32::MAX as usize)), found)
    }
}
