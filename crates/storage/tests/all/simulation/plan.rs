//! What a seed stands for: the tables, how small everything is, and what the disk does.

use std::rc::Rc;
use std::time::Duration;

use runtime::SimOptions;
use siltstone_storage::commit_log::{SyncMode, TableId};
use siltstone_storage::compaction::Compaction;
use siltstone_storage::{Definition, StoreOptions};
use sstable::parts::compression_info::{Compression, Compressor};
use sstable::{Version, WriteOptions};
use testkit::generate::random::Random;
use testkit::statements::Table;

/// Strategies that find much to do.
const STRATEGIES: [&[(&str, &str)]; 4] = [
    &[("class", "SizeTieredCompactionStrategy"), ("min_threshold", "2")],
    &[
        ("class", "SizeTieredCompactionStrategy"),
        ("tombstone_compaction_interval", "1"),
        ("tombstone_threshold", "0.1"),
        ("unchecked_tombstone_compaction", "true"),
    ],
    &[("class", "LeveledCompactionStrategy"), ("sstable_size_in_mb", "1")],
    &[
        ("class", "TimeWindowCompactionStrategy"),
        ("compaction_window_unit", "MINUTES"),
        ("compaction_window_size", "1"),
    ],
];

/// What is run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The tables.
    pub(crate) tables: Vec<(Table, Definition)>,
    /// How the store is set up.
    pub(crate) options: StoreOptions,
    /// How often it is opened.
    pub(crate) lives: usize,
    /// How many rounds a life has at most, with a quiet moment after each.
    pub(crate) rounds: usize,
    /// Whether the store compacts by itself, as the strategies of the tables say.
    pub(crate) compacts_by_itself: bool,
    /// How many tasks write, read, flush and compact.
    pub(crate) tasks: [usize; 4],
    /// What each does in a round.
    pub(crate) steps: usize,
    /// What the disk always does.
    pub(crate) disk: SimOptions,
    /// Whether a life's commit log has a folder of its own.
    pub(crate) has_folder_for_each_log: bool,
    /// Whether tables are flushed before all is recovered.
    pub(crate) flushes_while_recovering: bool,
}

/// What goes wrong in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The power is cut.
    Crash,
    /// Some operations fail.
    Writes,
    /// Some reads fail.
    Reads,
    /// There is little room.
    Full,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn of(random: &mut Random) -> Plan {
        let tables = (0..random.between(1, 3)).map(|number| table(random, number)).collect();
        Plan {
            tables,
            options: options(random),
            lives: random.between(2, 5),
            rounds: random.between(1, 4),
            compacts_by_itself: random.percent(30),
            tasks: [random.between(1, 4), random.below(3), usize::from(random.percent(70)), random.below(3)],
            steps: random.between(3, 20),
            disk: SimOptions {
                short_read_chance: *random.one_of(&[0.0, 0.2]),
                short_write_chance: *random.one_of(&[0.0, 0.2]),
                max_delay: *random.one_of(&[0, 10, 100]),
                alignment: *random.one_of(&[1, 512]),
                ..SimOptions::default()
            },
            has_folder_for_each_log: random.percent(50),
            flushes_while_recovering: random.percent(50),
        }
    }
}

impl Fault {
    /// One of them.
    pub(crate) fn random(random: &mut Random) -> Fault {
        *random.one_of(&[
            Fault::None,
            Fault::None,
            Fault::Crash,
            Fault::Crash,
            Fault::Writes,
            Fault::Reads,
            Fault::Full,
        ])
    }
}

fn table(random: &mut Random, number: usize) -> (Table, Definition) {
    let table = Table::random(random, number);
    let has_vectors = table.create_types.iter().chain([&table.create]).any(|text| text.contains("vector<"));
    let versions: Vec<Version> =
        Version::ALL.into_iter().filter(|version| version.has_vectors() || !has_vectors).collect();
    let version = *random.one_of(&versions);
    let schema = Rc::new(table.schema.clone());
    let mut definition = Definition::new(TableId([number as u8 + 1; 16]), &schema, version);
    definition.gc_grace_seconds = table.gc_grace_seconds;
    definition.single_key_parallel_scan_threshold = *random.one_of(&[0.0, 0.5, 1.0]);
    definition.compaction = Compaction::parse(random.one_of(&STRATEGIES).iter().copied()).unwrap();
    definition.write = WriteOptions {
        compression: random.percent(50).then(|| Compression::new(Compressor::Lz4, version)),
        column_index_size: *random.one_of(&[1, 300, 64 << 10]),
        bloom_filter_fp_chance: *random.one_of(&[0.01, 0.5, 1.0]),
        min_index_interval: *random.one_of(&[1, 128]),
        fences: random.percent(50),
        ..definition.write
    };
    (table, definition)
}

fn options(random: &mut Random) -> StoreOptions {
    let mut options = StoreOptions {
        cache: *random.one_of(&[0, 2000, 1 << 20]),
        memtables: *random.one_of(&[3000, 10_000, 1 << 20]),
        ..StoreOptions::default()
    };
    options.compaction.bytes_per_second = *random.one_of(&[None, Some(10 << 20)]);
    options.compaction.leaves_from = *random.one_of(&[1, 2000, u64::MAX]);
    let period = Duration::from_micros(*random.one_of(&[100, 2000, 100_000]));
    options.log.sync = if random.percent(60) { SyncMode::Batch } else { SyncMode::Periodic { period } };
    options.log.segment_size = *random.one_of(&[300, 2000, 10_000]);
    options.log.total_size = *random.one_of(&[2000, 20_000, 1 << 30]);
    options
}
