//! A row whose key a flipped bit has made another one, in data that no checksum is asked about: reads come to an end, and whatever
//! they give without an error lacks none of the other rows, whether the row cache has kept what came before or not.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::merge::Direction;
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, Fragment, FragmentReader, Liveness, Mutation, Next,
    PartitionKey, Position, Row, Schema, Slice, flat,
};
use runtime::{IoClass, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{SyncMode, TableId};
use siltstone_storage::store::{Store, StoreOptions};
use siltstone_storage::{Definition, Error, Generations, ReadRequest, Result, Table};
use sstable::{Version, WriteOptions};

const ID: TableId = TableId([5; 16]);
const TIMESTAMP: i64 = 5;
/// A reader that is asked more often than this does not come to an end.
const MOST_POPS: usize = 20_000;

/// A partition of so many rows, each with a value of so many bytes.
#[derive(Clone)]
struct Subject {
    clustering: CqlType,
    rows: i32,
    value: usize,
    /// Bytes.
    cache: usize,
}

/// Which bits of which byte of a row's key are others.
#[derive(Clone, Copy)]
struct Damage {
    hit: i32,
    byte: usize,
    bits: u8,
}

impl Subject {
    fn key(&self, number: i32) -> Vec<u8> {
        match self.clustering {
            CqlType::Int => number.to_be_bytes().to_vec(),
            _ => format!("the row {number:06}").into_bytes(),
        }
    }

    async fn open(&self, shard: &Shard) -> (Store, Table) {
        let value = Column { name: b"v".as_slice().into(), data_type: CqlType::Blob };
        let schema = Schema::new(CqlType::Int, vec![self.clustering.clone()], Vec::new(), vec![value]);
        let mut definition = Definition::new(ID, &Rc::new(schema), Version::Me);
        definition.write = WriteOptions { compression: None, ..definition.write };
        let mut options = StoreOptions { cache: self.cache, ..StoreOptions::default() };
        options.log.sync = SyncMode::Batch;
        shard.disk().create_dir_all(Path::new("/d/t")).await.unwrap();
        let store = Store::open(shard, Path::new("/log"), options).await.unwrap();
        let table = store.add_table(Path::new("/d/t"), definition, &Generations::default()).await.unwrap();
        (store, table)
    }

    fn row(&self, number: i32) -> Row {
        let value = CellValue::Value(Bytes::from(vec![b'v'; self.value]));
        let cell = Cell {
            column: 0,
            ttl: 0,
            timestamp: TIMESTAMP,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value,
        };
        let liveness = Liveness { timestamp: TIMESTAMP, ..Liveness::NONE };
        let clustering: Clustering = std::iter::once(self.key(number)).collect();
        Row { liveness, cells: vec![cell], ..Row::new(clustering) }
    }

    /// The files of the partition.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        run_simulated(SimOptions::default(), async |shard| {
            let (store, table) = self.open(&shard).await;
            let mut mutation = Mutation::new(partition());
            mutation.rows.extend((0..self.rows).map(|number| self.row(number)));
            let mut record = Vec::new();
            flat::put_mutation(&mutation, &mut record);
            store.write(ID, record).await.unwrap();
            store.flush(&table).await.unwrap();
            let mut files = Vec::new();
            for path in shard.disk().list(Path::new("/d/t")).unwrap() {
                let file = shard.disk().open(&path, IoClass::default()).await.unwrap();
                files.push((path, file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec()));
            }
            files
        })
        .unwrap()
    }

    /// How many rows reads of a slice have, each with what the ones before it left.
    fn reads_of(
        &self,
        files: &[(PathBuf, Vec<u8>)],
        Damage { hit, byte, bits }: Damage,
        slice: &Slice,
        direction: Direction,
    ) -> Result<Vec<usize>> {
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk().as_simulated().unwrap();
            shard.disk().create_dir_all(Path::new("/d/t")).await.unwrap();
            for (path, bytes) in files {
                let mut bytes = bytes.clone();
                if path.to_string_lossy().ends_with("-Data.db") {
                    let key = self.key(hit);
                    let at = bytes.windows(key.len()).rposition(|window| window == key).unwrap();
                    bytes[at + byte] ^= bits;
                }
                disk.add_file(path.clone(), bytes);
            }
            let (_store, table) = self.open(&shard).await;
            let mut counts = Vec::new();
            for _ in 0..3 {
                counts.push(count(&table, slice, direction).await?);
            }
            Ok(counts)
        })
        .unwrap()
    }

    fn check(&self, hits: impl Iterator<Item = i32>) {
        let (files, mut told) = (self.files(), 0);
        for hit in hits {
            for direction in [Direction::Forward, Direction::Reverse] {
                let damage = Damage { hit, byte: self.key(hit).len() - 1, bits: 1 << (hit % 3) };
                match self.reads_of(&files, damage, &Slice::all(), direction) {
                    Ok(counts) => {
                        let all = counts.iter().all(|&count| count as i32 + 1 >= self.rows);
                        assert!(all, "row {hit}, {direction:?}: {counts:?} of {} rows", self.rows);
                    }
                    Err(error) => {
                        told += 1;
                        assert!(error.to_string().contains("-Data.db"), "{error}");
                    }
                }
            }
        }
        assert!(told > 0);
    }
}

fn partition() -> PartitionKey {
    PartitionKey::new(Bytes::from(&1_i32.to_be_bytes()[..]))
}

async fn count(table: &Table, slice: &Slice, direction: Direction) -> Result<usize> {
    let request =
        ReadRequest { direction, static_row: false, ..ReadRequest::new(partition(), slice.clone()) };
    let mut stream = table.read(&request).await?;
    let (mut rows, mut place) = (0, Fragment::default());
    for _ in 0..MOST_POPS {
        match stream.pop(&mut place)? {
            Next::Fragment => rows += usize::from(matches!(place, Fragment::Row(_))),
            Next::Fill => stream.fill().await?,
            Next::End => return Ok(rows),
        }
    }
    Err(Error::Invalid("a read does not come to an end".to_owned()))
}

#[test]
fn no_other_row_is_lost() {
    for clustering in [CqlType::Int, CqlType::Text] {
        for cache in [0, 20_000, 1 << 20] {
            let subject = Subject { clustering: clustering.clone(), rows: 600, value: 5, cache };
            subject.check((0..600).step_by(7));
        }
    }
}

/// A key that has become greater than all that is asked for stands before rows that are: what is given has them, or it is an error.
#[test]
fn a_key_that_has_grown_hides_no_row() {
    for (clustering, bit) in [(CqlType::Int, 0x40), (CqlType::Text, 0x08)] {
        let subject = Subject { clustering, rows: 600, value: 5, cache: 20_000 };
        let files = subject.files();
        for hit in (3..580).step_by(23) {
            for (first, last) in
                [(hit + 1, hit + 1), (hit + 5, hit + 5), (hit + 1, hit + 9), (hit - 2, hit + 3)]
            {
                for direction in [Direction::Forward, Direction::Reverse] {
                    let place = |number| std::iter::once(subject.key(number)).collect::<Clustering>();
                    let slice =
                        Slice { start: Position::before(place(first)), end: Position::after(place(last)) };
                    let damage = Damage { hit, byte: 0, bits: bit };
                    let expected = (first..=last).filter(|number| *number != hit).count();
                    match subject.reads_of(&files, damage, &slice, direction) {
                        Ok(counts) => assert_eq!(counts, [expected; 3], "row {hit}, {first} to {last}"),
                        Err(error) => assert!(error.to_string().contains("-Data.db"), "{error}"),
                    }
                }
            }
        }
    }
}

/// Each is a part of the row cache by itself, or too large for it.
#[test]
fn reads_of_long_rows_come_to_an_end() {
    for value in [20_000, 40 << 10] {
        Subject { clustering: CqlType::Int, rows: 40, value, cache: 256 << 20 }.check(0..40);
    }
}
