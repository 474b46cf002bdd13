//! What is written is read again: random tables and random fragments, in every version.
//!
//! Everything that has a place in the format is drawn: prefixes of all lengths, null and empty values, more clustering
//! columns than a header has room for and more columns than a bit map, the extremes of all times, changes of range
//! tombstones that are redundant. Blocks and chunks are small. The whole is scanned and verified, and rows are looked up.

use std::iter::repeat_with;
use std::path::Path;
use std::rc::Rc;

use model::time::{EXPIRED_LIVENESS_TTL, NO_DELETION_TIME};
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader, Liveness,
    PartitionKey, PartitionStart, Position, RangeTombstoneChange, Row, Schema, Slice, Weight,
};
use runtime::{Cache, Disk, IoClass, SimOptions, run_simulated};
use siltstone_sstable::component::{Component, Descriptor};
use siltstone_sstable::parts::compression_info::{Compression, Compressor};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::verify::verify;
use siltstone_sstable::{OpenOptions, ReadOptions, Result, SSTable, SSTableWriter, Version, WriteOptions};

const TABLES: u64 = 150;

/// Numbers that a seed gives again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True that often of a hundred times.
    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn bytes(&mut self, longest: usize) -> Vec<u8> {
        let len = self.below(longest + 1);
        (0..len).map(|_| b'a' + self.below(26) as u8).collect()
    }
}

/// What a table is drawn from.
struct Draw {
    random: Random,
    version: Version,
    schema: Rc<Schema>,
}

fn parse(name: &str) -> CqlType {
    CqlType::parse(name).unwrap()
}

fn schema(random: &mut Random) -> Schema {
    let columns = |random: &mut Random, prefix: &str, count: usize| {
        let types = [
            "Int32Type",
            "UTF8Type",
            "LongType",
            "BytesType",
            "SetType(UTF8Type)",
            "MapType(Int32Type,UTF8Type)",
        ];
        let column = |number| Column {
            name: format!("{prefix}{number}").into_bytes().into(),
            data_type: parse(random.of(&types)),
        };
        (0..count).map(column).collect::<Vec<_>>()
    };
    let types = ["Int32Type", "UTF8Type", "ReversedType(Int32Type)", "ReversedType(UTF8Type)", "BytesType"];
    let count = random.of(&[0, 1, 2, 3, 33, 64]);
    let clustering = (0..count).map(|_| parse(random.of(&types))).collect();
    let (statics, regulars) = (random.of(&[0, 0, 1, 3, 70]), random.of(&[0, 1, 5, 63, 64, 130]));
    let statics = if count == 0 { 0 } else { statics };
    let statics = columns(random, "s", statics);
    Schema::new(CqlType::Blob, clustering, statics, columns(random, "r", regulars))
}

impl Draw {
    fn value(&mut self, of: &CqlType) -> Vec<u8> {
        match of.fixed_len() {
            Some(len) => {
                let small = self.random.below(40) as u64;
                small.to_be_bytes()[8 - len..].to_vec()
            }

            None if self.random.is(3) => self.random.bytes(9000),
            None => self.random.bytes(3),
        }
    }

    fn timestamp(&mut self) -> i64 {
        let usual = 1_700_000_000_000_000 + self.random.below(1000) as i64;
        self.random.of(&[usual, usual, usual, 0, 1, -1, i64::MAX, i64::MIN + 1])
    }

    fn seconds(&mut self) -> i64 {
        let usual = 1_700_000_000 + self.random.below(1000) as i64;
        let greatest = match self.version {
            Version::Oa => i64::from(u32::MAX) - 2,
            _ => i64::from(i32::MAX) - 1,
        };
        self.random.of(&[usual, usual, usual, 0, 1, greatest])
    }

    fn deletion(&mut self) -> DeletionTime {
        DeletionTime { marked_for_delete_at: self.timestamp(), local_deletion_time: self.seconds() }
    }

    /// One of a partition or a range: these are never negative in `oa`.
    fn range_deletion(&mut self) -> DeletionTime {
        let mut deletion = self.deletion();
        if self.version == Version::Oa {
            deletion.marked_for_delete_at = deletion.marked_for_delete_at.max(0);
        }
        deletion
    }

    fn liveness(&mut self) -> Liveness {
        let timestamp = self.timestamp();
        match self.random.below(4) {
            0 => Liveness::NONE,
            1 => Liveness { timestamp, ..Liveness::NONE },
            2 => Liveness { timestamp, ttl: EXPIRED_LIVENESS_TTL, local_expiration_time: self.seconds() },
            _ => {
                let ttl = self.random.of(&[1, 86_400, 630_720_000]);
                let local_expiration_time = self.seconds().max(i64::from(ttl));
                Liveness { timestamp, ttl, local_expiration_time }
            }
        }
    }

    fn cell(&mut self, column: u16, path: Option<Vec<u8>>, of: &CqlType, row: &Liveness) -> Cell {
        let mut cell = Cell {
            column,
            ttl: 0,
            timestamp: self.timestamp(),
            local_deletion_time: NO_DELETION_TIME,
            path: path.map(Bytes::from),
            value: CellValue::Tombstone,
        };
        if self.random.is(20) {
            cell.local_deletion_time = self.seconds();
            return cell;
        }
        if self.random.is(20) {
            cell.ttl = self.random.of(&[1, 86_400, 630_720_000]);
            cell.local_deletion_time = self.seconds().max(i64::from(cell.ttl));
        }
        if !row.is_none() && self.random.is(60) {
            cell.timestamp = row.timestamp;
            let usual = row.ttl != EXPIRED_LIVENESS_TTL;
            (cell.ttl, cell.local_deletion_time) = if usual {
                (row.ttl, row.local_expiration_time)
            } else {
                (cell.ttl, cell.local_deletion_time)
            };
        }
        let value = if self.random.is(10) { Vec::new() } else { self.value(of) };
        cell.value = CellValue::Value(Bytes::from(value));
        cell
    }

    fn column(&mut self, index: u16, of: &CqlType, row: &mut Row) {
        if !of.is_multi_cell() {
            let cell = self.cell(index, None, of, &row.liveness);
            return row.cells.push(cell);
        }
        if self.random.is(30) {
            let deletion = self.deletion();
            row.complex_deletions.push((index, deletion));
        }
        for number in 0..self.random.of(&[0, 0, 1, 3]) {
            let (path, value) = match of {
                CqlType::Map { .. } => (i32::to_be_bytes(number).to_vec(), CqlType::Text),
                _ => (vec![b'a' + number as u8], parse("EmptyType")),
            };
            let mut cell = self.cell(index, Some(path), &value, &row.liveness);
            if matches!(of, CqlType::Set { .. }) && !cell.is_tombstone() {
                cell.value = CellValue::Value(Bytes::default());
            }
            row.cells.push(cell);
        }
    }

    /// A row as most are, if the table has such: inserted for good, with a value in each column.
    fn usual_row(&mut self, clustering: &Clustering) -> Option<Row> {
        let timestamp = self.timestamp();
        let mut row = Row::new(clustering.clone());
        row.liveness = Liveness { timestamp, ..Liveness::NONE };
        let schema = self.schema.clone();
        for (index, column) in (0..).zip(&schema.regulars) {
            let value = Some(self.value(&column.data_type)).filter(|value| !value.is_empty());
            let value = CellValue::Value(Bytes::from(value.unwrap_or_else(|| b"some".to_vec())));
            let local_deletion_time = NO_DELETION_TIME;
            row.cells.push(Cell { column: index, ttl: 0, timestamp, local_deletion_time, path: None, value });
        }
        let is_possible = schema.regulars.iter().all(|column| !column.data_type.is_multi_cell());
        is_possible.then_some(row)
    }

    fn row(&mut self, clustering: Clustering, is_static: bool) -> Row {
        if !is_static
            && self.random.is(60)
            && let Some(usual) = self.usual_row(&clustering)
        {
            return usual;
        }
        let mut row = Row::new(clustering);
        if !is_static {
            row.liveness = self.liveness();
            match self.random.below(8) {
                0 => row.deletion = self.deletion(),
                1 => row.shadowable = self.deletion(),
                _ => {}
            }
        }
        let schema = self.schema.clone();
        let percent = self.random.of(&[0, 5, 50, 95, 100]);
        for (index, column) in (0..).zip(schema.columns(is_static)) {
            if self.random.is(percent) {
                self.column(index, &column.data_type, &mut row);
            }
        }
        row
    }

    fn clustering(&mut self) -> Clustering {
        let schema = self.schema.clone();
        let mut clustering = Clustering::empty();
        for of in &schema.clustering {
            let value = match self.random.below(20) {
                0 => None,
                1 => Some(Vec::new()),
                _ => Some(self.value(of)),
            };
            clustering.values.push(value.map(Bytes::from));
        }
        clustering
    }

    fn prefix(&mut self, of: &Clustering) -> Clustering {
        let len = self.random.below(of.len() + 1);
        let mut prefix = Clustering::empty();
        prefix.values.extend(of.values.iter().take(len).cloned());
        prefix
    }

    /// Rows and changes in order, each position once, save for changes that come twice.
    fn items(&mut self) -> Vec<Fragment> {
        let rows = self.random.of(&[0, 1, 2, 30]);
        let changes = if self.schema.clustering.is_empty() { 0 } else { self.random.of(&[0, 0, 2, 20]) };
        let mut positions: Vec<Position> = (0..rows).map(|_| Position::at(self.clustering())).collect();
        for _ in 0..changes {
            let near = if rows > 0 && self.random.is(70) {
                self.random.of(&positions).prefix
            } else {
                self.clustering()
            };
            let prefix = self.prefix(&near);
            positions.push(if self.random.is(50) {
                Position::before(prefix)
            } else {
                Position::after(prefix)
            });
        }
        let schema = self.schema.clone();
        positions.sort_by(|a, b| schema.compare(a, b));
        positions.dedup_by(|a, b| schema.compare(a, b).is_eq());
        let mut items: Vec<Fragment> = Vec::new();
        let mut last = DeletionTime::LIVE;
        for position in positions {
            if position.weight == Weight::At {
                items.push(Fragment::Row(self.row(position.prefix, false)));
                continue;
            }
            for _ in 0..self.random.of(&[1, 1, 2]) {
                let new = self.range_deletion();
                last = self.random.of(&[new, new, last, DeletionTime::LIVE]);
                let position = position.clone();
                items.push(Fragment::RangeTombstone(RangeTombstoneChange { position, deletion: last }));
            }
        }
        if !last.is_live() {
            let position = Position::end();
            items.push(Fragment::RangeTombstone(RangeTombstoneChange {
                position,
                deletion: DeletionTime::LIVE,
            }));
        }
        items
    }

    fn table(&mut self) -> Vec<Fragment> {
        let count = self.random.of(&[1, 2, 12]);
        let mut keys: Vec<PartitionKey> = (0..count)
            .map(|_| {
                let len = self.random.of(&[0, 1, 4, 4, 4, 200, 65535]);
                PartitionKey::new(Bytes::from((0..len).map(|_| self.random.next() as u8).collect::<Vec<_>>()))
            })
            .collect();
        keys.sort();
        keys.dedup();
        let mut fragments = Vec::new();
        for key in keys {
            let deletion = if self.random.is(20) { self.range_deletion() } else { DeletionTime::LIVE };
            fragments.push(Fragment::PartitionStart(PartitionStart { key, deletion }));
            if !self.schema.statics.is_empty() && self.random.is(60) {
                fragments.push(Fragment::StaticRow(self.row(Clustering::empty(), true)));
            }
            fragments.extend(self.items());
            fragments.push(Fragment::PartitionEnd);
        }
        fragments
    }

    fn options(&mut self) -> WriteOptions {
        let compressor = self.random.of(&[
            None,
            Some(Compressor::Lz4),
            Some(Compressor::Snappy),
            Some(Compressor::Deflate),
        ]);
        let compression = compressor.map(|compressor| {
            let chunk_len = self.random.of(&[16, 256, 4096, 1 << 20]);
            let compression = Compression::new(compressor, self.version).with_chunk_len(chunk_len).unwrap();
            match self.version >= Version::Nb && self.random.is(50) {
                true => compression.with_min_ratio(1.1, self.version).unwrap(),
                false => compression,
            }
        });
        WriteOptions {
            compression,
            column_index_size: self.random.of(&[1, 40, 1000, 64 << 10]),
            fits_blocks: self.random.is(50),
            bloom_filter_fp_chance: self.random.of(&[0.01, 1.0]),
            min_index_interval: self.random.of(&[1, 2, 128, u32::MAX]),
            fences: self.random.is(50),
            ..WriteOptions::new(self.version)
        }
    }
}

/// Without what says nothing: rows that are empty, changes that change nothing.
fn meant(fragments: &[Fragment]) -> Vec<Fragment> {
    let (mut meant, mut open): (Vec<Fragment>, _) = (Vec::new(), DeletionTime::LIVE);
    for (index, fragment) in fragments.iter().enumerate() {
        match fragment {
            Fragment::Row(row) | Fragment::StaticRow(row) if row.is_empty() => {}
            Fragment::RangeTombstone(change) => {
                let replaced = matches!(fragments.get(index + 1),
                    Some(Fragment::RangeTombstone(next)) if next.position == change.position);
                if !replaced && open != change.deletion {
                    open = change.deletion;
                    meant.push(fragment.clone());
                }
            }
            other => meant.push(other.clone()),
        }
    }
    meant
}

async fn write(
    disk: &Disk,
    descriptor: &Descriptor,
    schema: &Rc<Schema>,
    options: WriteOptions,
    encoding: EncodingStats,
    fragments: &[Fragment],
) -> Result<()> {
    let mut writer = SSTableWriter::create(disk, descriptor.clone(), schema, encoding, options).await?;
    for fragment in fragments {
        writer.push(fragment).await?;
    }
    writer.seal().await.map(drop)
}

async fn collect(
    reader: &mut impl FragmentReader<Error = siltstone_sstable::Error>,
) -> Result<Vec<Fragment>> {
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await? {
        fragments.push(fragment);
    }
    Ok(fragments)
}

/// Every row is where its index says.
async fn look_up(table: &Rc<SSTable>, fragments: &[Fragment]) -> Result<std::result::Result<(), String>> {
    let mut key = None;
    for fragment in fragments {
        match fragment {
            Fragment::PartitionStart(start) => key = Some(start.key.clone()),
            Fragment::Row(row) => {
                let slice = Slice::of_prefix(row.clustering.clone());
                let reader = table.read(key.as_ref().unwrap(), &slice, ReadOptions::default()).await?;
                let Some(mut reader) = reader else { return Ok(Err("no partition".to_owned())) };
                if !collect(&mut reader).await?.contains(fragment) {
                    return Ok(Err(format!("{:?} is not found", row.clustering)));
                }
            }
            _ => {}
        }
    }
    Ok(Ok(()))
}

async fn check(disk: &Disk, seed: u64) -> std::result::Result<(), String> {
    let mut random = Random(seed);
    let version = random.of(&Version::ALL);
    let schema = Rc::new(schema(&mut random));
    let mut draw = Draw { random, version, schema: schema.clone() };
    let (fragments, options) = (draw.table(), draw.options());
    let encoding = match draw.random.is(50) {
        true => EncodingStats::NONE,
        false => EncodingStats { min_timestamp: i64::MIN + 1, min_local_deletion_time: 0, min_ttl: 0 },
    };
    let path = format!("/t/{version}-1-big-Data.db");
    let descriptor = Descriptor::parse(Path::new(&path)).unwrap();
    let error = |error: siltstone_sstable::Error| format!("{error} ({version}, {options:?})");
    write(disk, &descriptor, &schema, options.clone(), encoding, &fragments).await.map_err(error)?;
    let temporary = disk.list(Path::new("/t")).unwrap();
    assert!(!temporary.iter().any(|path| path.extension().is_some_and(|end| end == "tmp")), "{temporary:?}");

    let open = OpenOptions::new(Cache::new(1 << 20));
    let table = SSTable::open(disk, Path::new(&path), &open).await.map_err(error)?;
    let (read, meant) = (collect(&mut table.scan()).await.map_err(error)?, meant(&fragments));
    if let Some((read, written)) = read.iter().zip(&meant).find(|(a, b)| a != b) {
        return Err(format!("{written:?} became {read:?} ({version}, {options:?})"));
    }
    if read.len() != meant.len() || **table.schema() != *schema {
        return Err(format!("{} fragments became {}", meant.len(), read.len()));
    }
    look_up(&table, &meant).await.map_err(error)??;
    check_written_again(disk, &table, options.clone(), encoding).await.map_err(error)?;
    let report = verify(disk, &table.descriptor().path_of(&Component::Data), &open, |_, _| {}).await;
    let report = report.map_err(error)?;
    if report.is_sound() { Ok(()) } else { Err(format!("{:?} ({version}, {options:?})", report.problems)) }
}

/// Rows as they stand in an SSTable make the same one as the fragments did that it was made of.
async fn check_written_again(
    disk: &Disk,
    table: &Rc<SSTable>,
    options: WriteOptions,
    encoding: EncodingStats,
) -> Result<()> {
    disk.create_dir_all(Path::new("/again")).await.unwrap();
    let descriptor = Descriptor { dir: "/again".into(), ..table.descriptor().clone() };
    let mut writer = SSTableWriter::create(disk, descriptor, table.schema(), encoding, options).await?;
    writer.push_all(&mut table.scan(), &mut |_| {}).await?;
    let again = writer.seal().await?;
    for component in &again.components {
        let bytes = async |descriptor: &Descriptor| {
            let file = disk.open(&descriptor.path_of(component), IoClass::default()).await.unwrap();
            file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec()
        };
        assert_eq!(bytes(&again.descriptor).await, bytes(table.descriptor()).await, "{component:?}");
    }
    Ok(())
}

#[test]
fn what_is_written_is_read() {
    for seed in 0..TABLES {
        let checked = run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
            shard.disk().create_dir_all(Path::new("/t")).await.unwrap();
            check(shard.disk(), seed).await
        });
        if let Err(error) = checked.unwrap() {
            panic!("seed {seed}: {error}");
        }
    }
}

/// The hashes of so many keys lie in a file until the filter is made; without a filter it goes all the same.
#[test]
fn many_partitions_without_a_filter_leave_nothing() {
    run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk();
        disk.create_dir_all(Path::new("/t")).await.unwrap();
        let mut keys: Vec<_> =
            (0..150_000_u32).map(|key| PartitionKey::new(Bytes::from(key.to_be_bytes().to_vec()))).collect();
        keys.sort();
        let deletion = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
        let partition =
            |key| [Fragment::PartitionStart(PartitionStart { key, deletion }), Fragment::PartitionEnd];
        let fragments: Vec<_> = keys.into_iter().flat_map(partition).collect();
        let schema = Rc::new(Schema::new(CqlType::Int, Vec::new(), Vec::new(), Vec::new()));
        let options = WriteOptions { bloom_filter_fp_chance: 1.0, ..WriteOptions::new(Version::Nb) };
        let descriptor = Descriptor::parse(Path::new("/t/nb-1-big-Data.db")).unwrap();
        write(disk, &descriptor, &schema, options, EncodingStats::NONE, &fragments).await.unwrap();
        let names = disk.list(Path::new("/t")).unwrap();
        assert!(!names.iter().any(|path| path.extension().is_some_and(|end| end == "tmp")), "{names:?}");
    })
    .unwrap();
}

/// The first and last position of one block may be more than is kept in memory.
#[test]
fn partitions_of_very_long_keys_are_written() {
    const COLUMNS: usize = 9;
    run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk();
        disk.create_dir_all(Path::new("/t")).await.unwrap();
        let liveness = Liveness { timestamp: 1, ..Liveness::NONE };
        let row = |first: u8| {
            let long = || Bytes::from(vec![first; 65_535]);
            Fragment::Row(Row { liveness, ..Row::new(repeat_with(long).take(COLUMNS).collect()) })
        };
        let mut keys: Vec<_> = (0..6_u8).map(|key| PartitionKey::new(Bytes::from(vec![key]))).collect();
        keys.sort();
        let partition = |(rows, key): (u8, PartitionKey)| {
            let start = Fragment::PartitionStart(PartitionStart { key, deletion: DeletionTime::LIVE });
            let rows = (0..rows % 3).map(row);
            [start].into_iter().chain(rows).chain([Fragment::PartitionEnd]).collect::<Vec<_>>()
        };
        // No row, one and two of them, twice.
        let fragments: Vec<_> = (0..6).zip(keys).flat_map(partition).collect();
        let schema =
            Rc::new(Schema::new(CqlType::Blob, vec![CqlType::Blob; COLUMNS], Vec::new(), Vec::new()));
        let path = Path::new("/t/oa-1-big-Data.db");
        let (descriptor, options) = (Descriptor::parse(path).unwrap(), WriteOptions::new(Version::Oa));
        write(disk, &descriptor, &schema, options, EncodingStats::NONE, &fragments).await.unwrap();
        let names = disk.list(Path::new("/t")).unwrap();
        assert!(!names.iter().any(|path| path.extension().is_some_and(|end| end == "tmp")), "{names:?}");
        let table = SSTable::open(disk, path, &OpenOptions::new(Cache::new(1 << 20))).await.unwrap();
        assert!(collect(&mut table.scan()).await.unwrap() == meant(&fragments));
        look_up(&table, &meant(&fragments)).await.unwrap().unwrap();
    })
    .unwrap();
}
