//! One random statement after another.
//!
//! There are few partitions, few rows, few elements of collections and few timestamps, so what is written meets, and
//! often with the same timestamp. The clock only goes forward; timestamps do not follow it. What expires does so at
//! one of few seconds, so that cells of different times to live die together.

use std::collections::{BTreeMap, BTreeSet};

use model::{Bytes, Clustering, CqlType};

use super::table::Table;
use super::values::{Values, key_of, one_of_few, time_uuid};
use super::{Change, Count, Element, End, New, Part, Place, Range, Statement, What};
use crate::generate::random::Random;

/// When the first statement is executed, in seconds.
pub const START: i64 = 1_700_000_000;

/// How many different timestamps there are at a time.
const TIMESTAMPS: usize = 12;

/// What expires soon does so at a multiple of this, in seconds.
const EXPIRY: i64 = 20;

/// Longer times to live than any test lasts, in seconds.
const LONG: [i64; 2] = [100_000_000, 100_000_001];

/// How many different elements a collection may have.
const ELEMENTS: usize = 5;

/// Around when the elements of lists are added, in units of 100 ns since 1582.
const LIST_TIME: u64 = 1 << 58;

/// Makes statements. The same seed gives the same.
#[derive(Debug)]
pub struct Writer<'a> {
    table: &'a Table,
    random: Random,
    now: i64,
    /// Microseconds.
    first_timestamp: i64,
    /// How many elements were added to lists.
    added: u64,
    counters: Counters,
}

/// What was counted. Nothing is counted where something was deleted: what comes of that is nobody's promise.
#[derive(Debug, Default)]
struct Counters {
    /// Clocks and sums.
    totals: BTreeMap<CounterKey, (i64, i64)>,
    deleted_partitions: BTreeSet<Vec<u8>>,
    deleted_rows: BTreeSet<(Vec<u8>, Vec<Vec<u8>>)>,
    statements: i64,
}

type CounterKey = (Vec<u8>, Vec<Vec<u8>>, Place);

impl<'a> Writer<'a> {
    /// The writes to a table that come of a seed.
    pub fn new(table: &'a Table, seed: u64) -> Writer<'a> {
        Writer {
            table,
            random: Random::new(seed),
            now: START,
            first_timestamp: START * 1_000_000,
            added: 0,
            counters: Counters::default(),
        }
    }

    /// The second of the last statement.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// All further statements are executed at this second or later.
    pub fn advance_to(&mut self, now: i64) {
        self.now = self.now.max(now);
    }

    /// All further timestamps are greater than any before.
    pub fn new_timestamps(&mut self) {
        self.first_timestamp += TIMESTAMPS as i64;
    }

    /// The next statement.
    pub fn statement(&mut self) -> Statement {
        self.now += self.random.below(3) as i64;
        let key = self.random.one_of(&self.table.partitions).clone();
        if self.table.schema.is_counter() {
            return self.count(key);
        }
        let what = self.what();
        let can_expire = matches!(what, What::Insert(..) | What::Update(..));
        Statement {
            key,
            timestamp: self.first_timestamp + self.random.below(TIMESTAMPS) as i64,
            now: self.now,
            ttl: if can_expire { self.ttl() } else { 0 },
            what,
        }
    }

    fn ttl(&mut self) -> u32 {
        let soon = (self.now / EXPIRY + 1 + self.random.below(3) as i64) * EXPIRY - self.now;
        let ttl = match self.random.below(10) {
            0..3 => soon,
            3 => *self.random.one_of(&LONG),
            _ => 0,
        };
        ttl as u32
    }

    fn what(&mut self) -> What {
        match self.random.below(100) {
            0..35 => self.insert(),
            35..68 => self.update(),
            68..82 => self.delete_columns(),
            82..88 => self.delete_row(),
            88..97 => self.delete_range(),
            _ => What::DeletePartition,
        }
    }

    fn insert(&mut self) -> What {
        let has_statics = !self.table.schema.statics.is_empty();
        let statics = self.some(true);
        if has_statics && !statics.is_empty() && self.random.percent(25) {
            return What::Insert(None, self.overwrites(&statics));
        }
        let mut columns = self.some(false);
        if self.random.percent(20) {
            columns.extend(statics);
        }
        What::Insert(Some(self.row()), self.overwrites(&columns))
    }

    fn update(&mut self) -> What {
        let (statics, regulars) = (self.some(true), self.some(false));
        let (row, columns) = match (statics.is_empty(), regulars.is_empty()) {
            (true, true) => return self.insert(),
            (false, true) => (None, statics),
            (true, false) => (Some(self.row()), regulars),
            (false, false) if self.random.percent(50) => (None, statics),
            (false, false) => (Some(self.row()), [regulars, statics].concat()),
        };
        let changes = columns.into_iter().map(|column| self.change(column)).collect();
        What::Update(row, changes)
    }

    fn delete_columns(&mut self) -> What {
        let is_static = self.random.percent(30);
        let columns = self.some(is_static);
        if columns.is_empty() {
            return self.delete_row();
        }
        let row = (!is_static).then(|| self.row());
        let parts = columns.into_iter().map(|column| (column, self.part(column))).collect();
        What::DeleteColumns(row, parts)
    }

    fn delete_row(&mut self) -> What {
        match self.table.clustering.is_empty() {
            true => What::DeletePartition,
            false => What::DeleteRow(self.row()),
        }
    }

    /// All kinds of ranges; an empty one is taken for what it is, too.
    fn delete_range(&mut self) -> What {
        let columns = self.table.clustering.len();
        let depth = self.random.below(columns.max(1));
        if depth == columns {
            return self.delete_row();
        }
        let row = self.row();
        let prefix: Vec<Bytes> = row.values.into_iter().flatten().take(depth).collect();
        let lower = self.end(depth);
        let upper = self.end(depth);
        if prefix.is_empty() && lower.is_none() && upper.is_none() {
            return What::DeletePartition;
        }
        What::DeleteRange(Range { prefix, lower, upper })
    }

    /// A bound of the columns behind the first few: of one, or of several that run the same way.
    fn end(&mut self, depth: usize) -> Option<End> {
        if self.random.percent(30) {
            return None;
        }
        let types = &self.table.schema.clustering[depth..];
        let alike = types.iter().take_while(|of| of.is_reversed() == types[0].is_reversed()).count();
        let len = if self.random.percent(70) { 1 } else { self.random.between(1, alike) };
        let row = self.row();
        let values = row.values.into_iter().flatten().skip(depth).take(len).collect();
        Some(End { values, is_inclusive: self.random.percent(50) })
    }

    fn row(&mut self) -> Clustering {
        self.table.random_row(&mut self.random)
    }

    /// Some of the columns: often few, at times all.
    fn some(&mut self, is_static: bool) -> Vec<Place> {
        let chance = *self.random.one_of(&[3, 30, 60, 100]);
        let mut columns = self.table.places(is_static);
        columns.retain(|_| self.random.percent(chance));
        columns
    }

    fn overwrites(&mut self, columns: &[Place]) -> Vec<Change> {
        columns.iter().map(|column| Change { column: *column, to: self.overwrite(*column) }).collect()
    }

    fn overwrite(&mut self, column: Place) -> New {
        let of = &self.table.column(column).data_type;
        match of {
            _ if self.random.percent(10) => New::Null,
            of if of.is_multi_cell() => New::Elements(self.elements(column)),
            // A value of no bytes, which these types take.
            CqlType::Int | CqlType::BigInt | CqlType::Uuid | CqlType::Double if self.random.percent(4) => {
                New::Value(Bytes::default())
            }
            of => New::Value(self.value(of)),
        }
    }

    /// Few values, so that cells of one timestamp often have the same.
    fn value(&mut self, of: &CqlType) -> Bytes {
        match self.random.percent(50) {
            true => one_of_few(&mut self.random, of, 1, 3),
            false => Values { random: &mut self.random, may_be_empty: true }.value(of),
        }
    }

    fn change(&mut self, column: Place) -> Change {
        let of = &self.table.column(column).data_type;
        if !of.is_multi_cell() || self.random.percent(30) {
            return Change { column, to: self.overwrite(column) };
        }
        let to = match of {
            CqlType::List { .. } if self.random.percent(50) => New::Prepend(self.prepended(column)),
            CqlType::List { .. } => New::Add(self.elements(column)),
            CqlType::Map { .. } if self.random.percent(40) => self.put(column),
            CqlType::Set { .. } | CqlType::Map { .. } if self.random.percent(40) => {
                New::Remove(self.elements(column).into_iter().map(|element| element.path).collect())
            }
            CqlType::Udt(_) => self.put(column),
            _ => New::Add(self.elements(column)),
        };
        Change { column, to }
    }

    fn put(&mut self, column: Place) -> New {
        let of = &self.table.column(column).data_type;
        let path = self.path(of);
        let value = of.cell_value_type(Some(&path)).expect("paths are of fields that are there");
        let value = if self.random.percent(20) { None } else { Some(self.value(value)) };
        New::Put(path, value)
    }

    fn part(&mut self, column: Place) -> Part {
        let of = &self.table.column(column).data_type;
        match of {
            // An element of a list is deleted by its place, which has to be looked up.
            CqlType::List { .. } => Part::Whole,
            of if of.is_multi_cell() && self.random.percent(60) => Part::Cell(self.path(of)),
            _ => Part::Whole,
        }
    }

    /// The path of an element, which is not that of a list.
    fn path(&mut self, of: &CqlType) -> Bytes {
        match of {
            CqlType::Udt(udt) => Bytes::from(&(self.random.below(udt.fields.len()) as u16).to_be_bytes()[..]),
            of => {
                let path = of.cell_path_type().expect("the column has many cells");
                one_of_few(&mut self.random, path, 2, ELEMENTS)
            }
        }
    }

    /// Elements in the order of their paths.
    fn elements(&mut self, column: Place) -> Vec<Element> {
        let of = &self.table.column(column).data_type;
        let mut paths: Vec<Bytes> = match of {
            CqlType::List { .. } => (0..self.random.below(4)).map(|_| self.behind_all()).collect(),
            CqlType::Udt(udt) => (0..udt.fields.len() as u16)
                .filter(|_| self.random.percent(80))
                .map(|field| Bytes::from(&field.to_be_bytes()[..]))
                .collect(),
            of => (0..self.random.below(4)).map(|_| self.path(of)).collect(),
        };
        let order = of.cell_path_type().expect("the column has many cells");
        paths.sort_by(|a, b| order.compare(a, b));
        paths.dedup();
        paths.into_iter().map(|path| self.element(of, path)).collect()
    }

    fn element(&mut self, of: &CqlType, path: Bytes) -> Element {
        let value = match of.cell_value_type(Some(&path)) {
            None | Some(CqlType::Empty) => Bytes::default(),
            Some(value) => self.value(value),
        };
        Element { path, value }
    }

    /// The path of an element that is added at a list's end.
    fn behind_all(&mut self) -> Bytes {
        self.added += 1;
        Bytes::from(&time_uuid(LIST_TIME + self.added, 0)[..])
    }

    /// Elements before all others, in the order in which the list has them.
    fn prepended(&mut self, column: Place) -> Vec<Element> {
        let of = &self.table.column(column).data_type;
        let count = self.random.below(4) as u64;
        self.added += count;
        let paths = (0..count).map(|at| time_uuid(LIST_TIME - self.added + at, 0));
        let paths: Vec<Bytes> = paths.map(|path| Bytes::from(&path[..])).collect();
        paths.into_iter().map(|path| self.element(of, path)).collect()
    }

    fn count(&mut self, key: Vec<Bytes>) -> Statement {
        self.counters.statements += 1;
        let what = self.count_what(&key);
        // Cassandra takes the timestamps of counters from its own clock.
        let timestamp = self.first_timestamp + self.counters.statements;
        Statement { key, timestamp, now: self.now, ttl: 0, what }
    }

    fn count_what(&mut self, key: &[Bytes]) -> What {
        let row = self.row();
        if self.random.percent(2) {
            self.counters.deleted_partitions.insert(key_of(key).to_vec());
            return What::DeletePartition;
        }
        if !self.table.clustering.is_empty() && self.random.percent(5) {
            self.counters.deleted_rows.insert((key_of(key).to_vec(), plain(&row)));
            return What::DeleteRow(row);
        }
        let is_static = self.random.percent(40) || self.table.schema.regulars.is_empty();
        let is_static = is_static && !self.table.schema.statics.is_empty();
        if self.counters.deleted_partitions.contains(&*key_of(key)) {
            return What::DeletePartition;
        }
        if !is_static && self.counters.deleted_rows.contains(&(key_of(key).to_vec(), plain(&row))) {
            return What::DeleteRow(row);
        }
        let mut columns = self.some(is_static);
        if columns.is_empty() {
            columns.push(*self.random.one_of(&self.table.places(is_static)));
        }
        let row = (!is_static).then_some(row);
        let counts = columns.into_iter().map(|column| self.increment(key, row.as_ref(), column)).collect();
        What::Count(row, counts)
    }

    fn increment(&mut self, key: &[Bytes], row: Option<&Clustering>, column: Place) -> Count {
        let by = self.random.below(2000) as i64 - 1000;
        let key = (key_of(key).to_vec(), row.map(plain).unwrap_or_default(), column);
        let (clock, total) = self.counters.totals.entry(key).or_default();
        (*clock, *total) = (*clock + 1, *total + by);
        Count { column, by, clock: *clock, total: *total }
    }
}

fn plain(row: &Clustering) -> Vec<Vec<u8>> {
    row.values.iter().map(|value| value.as_ref().map(|value| value.to_vec()).unwrap_or_default()).collect()
}
