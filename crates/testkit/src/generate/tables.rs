//! Tables of random columns.

use super::KEYSPACE;
use super::random::Random;
use super::types::{Frozen, Type, UserType};

/// Compression of every kind, and none.
const COMPRESSIONS: [&str; 7] = [
    "{'enabled': 'false'}",
    "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'}",
    "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '64'}",
    "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '16', 'min_compress_ratio': '1.5'}",
    "{'class': 'SnappyCompressor', 'chunk_length_in_kb': '16'}",
    "{'class': 'DeflateCompressor', 'chunk_length_in_kb': '16'}",
    "{'class': 'ZstdCompressor', 'chunk_length_in_kb': '16'}",
];

/// How many different partitions there are: few, so that writes meet.
const PARTITIONS: usize = 7;

/// How many different values a clustering column has.
const CLUSTERINGS: usize = 5;

/// From this many columns on, a row says otherwise which of them it has.
const MANY: usize = 64;

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The columns of its partition key, with the literals of each partition.
    pub partition: Vec<Key>,
    /// Its clustering columns, with literals.
    pub clustering: Vec<Key>,
    /// Its other columns.
    pub columns: Vec<Column>,
    /// Whether they are counters.
    pub has_counters: bool,
    /// What follows `WITH`, save for the order of rows.
    pub options: String,
}

/// A column of the primary key.
#[derive(Debug)]
pub struct Key {
    /// Its name, as CQL has it.
    pub name: String,
    /// What it can be.
    pub literals: Vec<String>,
    /// Its type.
    pub of: Type,
    /// Whether greater values come first.
    pub is_descending: bool,
}

/// Any other column.
#[derive(Debug)]
pub struct Column {
    /// Its name, as CQL has it.
    pub name: String,
    /// Its type.
    pub of: Type,
    /// Whether it is changed as a whole only.
    pub is_frozen: bool,
    /// Whether a partition has one value for all rows.
    pub is_static: bool,
}

impl Table {
    /// A table of random columns.
    pub fn random(random: &mut Random, number: usize, user: &[UserType], has_counters: bool) -> Table {
        let partition =
            (0..random.between(1, 3)).map(|at| Key::random(random, format!("p{at}"), PARTITIONS, 0));
        let partition: Vec<Key> = partition.collect();
        let clustering: Vec<Key> =
            (0..random.below(4)).map(|at| Key::random(random, format!("c{at}"), CLUSTERINGS, 20)).collect();
        let count = match random.below(10) {
            0 => random.between(MANY + 1, MANY + 20),
            1 => random.between(MANY - 2, MANY),
            _ => random.between(1, 7),
        };
        let mut columns: Vec<Column> =
            (0..count).map(|at| Column::random(random, at, user, has_counters)).collect();
        if !clustering.is_empty() && random.percent(60) {
            let statics = random.between(1, count.min(3));
            columns[..statics].iter_mut().for_each(|column| column.is_static = true);
        }
        let mut options = format!("compression = {}", random.one_of(&COMPRESSIONS));
        if random.percent(15) && !has_counters {
            options.push_str(" AND default_time_to_live = 250000000");
        }
        Table { name: format!("t{number}"), partition, clustering, columns, has_counters, options }
    }

    /// The statement that makes it.
    pub fn create(&self) -> String {
        let keys = self.partition.iter().chain(&self.clustering);
        let mut columns: Vec<String> = keys.map(|key| format!("{} {}", key.name, Frozen(&key.of))).collect();
        columns.extend(self.columns.iter().map(|column| column.declare(self.has_counters)));
        let names = |keys: &[Key]| keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>().join(", ");
        let mut primary = format!("({})", names(&self.partition));
        let mut order = String::new();
        if !self.clustering.is_empty() {
            primary = format!("{primary}, {}", names(&self.clustering));
            let orders = self
                .clustering
                .iter()
                .map(|key| format!("{} {}", key.name, if key.is_descending { "DESC" } else { "ASC" }));
            order = format!("CLUSTERING ORDER BY ({}) AND ", orders.collect::<Vec<_>>().join(", "));
        }
        format!(
            "CREATE TABLE {KEYSPACE}.{} ({}, PRIMARY KEY ({primary})) WITH {order}{} AND \
             compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}",
            self.name,
            columns.join(", "),
            self.options
        )
    }
}

impl Key {
    fn random(random: &mut Random, name: String, literals: usize, edges: usize) -> Key {
        let of = Type::key(random);
        let literals = (0..literals).map(|_| match random.percent(edges) {
            // Among these are empty ones, which a partition key may not be.
            true => of.short_literal(random),
            false => of.key_literal(random),
        });
        let literals = literals.collect();
        Key { name, literals, of, is_descending: random.percent(40) }
    }
}

impl Column {
    fn random(random: &mut Random, number: usize, user: &[UserType], has_counters: bool) -> Column {
        let name = match random.below(10) {
            0 => format!("\"V {number:02}\""),
            _ => format!("v{number:02}"),
        };
        let of = match has_counters {
            true => Type::Simple("counter"),
            false => Type::value(random, user, 0),
        };
        Column { name, of, is_frozen: random.percent(30), is_static: false }
    }

    fn declare(&self, is_counter: bool) -> String {
        let suffix = if self.is_static { " static" } else { "" };
        match self.is_frozen && !is_counter {
            true => format!("{} {}{suffix}", self.name, Frozen(&self.of)),
            false => format!("{} {}{suffix}", self.name, self.of),
        }
    }

    /// Whether it can be changed by parts.
    pub fn has_cells(&self) -> bool {
        self.of.has_cells() && !self.is_frozen
    }
}
