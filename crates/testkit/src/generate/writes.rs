//! Random writes of every kind to a table.
//!
//! Timestamps come in no order, and some are the same; times to live are of years, or of a second, so that what was
//! written is gone soon.

use super::KEYSPACE;
use super::random::Random;
use super::tables::{Column, Key, Table};
use super::types::Type;

/// Around when it is written, in microseconds.
const TIMESTAMP: usize = 1_700_000_000_000_000;

/// How many different timestamps there are.
const TIMESTAMPS: usize = 3000;

/// Times to live, in seconds.
const TTLS: [usize; 3] = [1, 200_000_000, 300_000_000];

impl Table {
    /// One statement.
    pub fn write(&self, random: &mut Random) -> String {
        if self.has_counters {
            return self.write_counters(random);
        }
        match random.below(100) {
            0..40 => self.insert(random),
            40..70 => self.update(random),
            70..78 => self.delete_cells(random),
            78..86 => self.delete(random, self.clustering.len()),
            86..97 => self.delete_range(random),
            _ => self.delete(random, 0),
        }
    }

    fn insert(&self, random: &mut Random) -> String {
        let statics_only = self.has_statics() && random.percent(20);
        let mut names = Vec::new();
        let mut values = Vec::new();
        let columns = self.some(random, |column| !statics_only || column.is_static);
        let clustering = if statics_only && !columns.is_empty() { &[][..] } else { &self.clustering };
        let partition = self.partition_key(random);
        for (key, value) in self.partition.iter().zip(partition) {
            names.push(&*key.name);
            values.push(value);
        }
        for key in clustering {
            names.push(&*key.name);
            values.push(random.one_of(&key.literals).clone());
        }
        for column in columns {
            names.push(&*column.name);
            values.push(value(column, random));
        }
        format!(
            "INSERT INTO {KEYSPACE}.{} ({}) VALUES ({}){}",
            self.name,
            names.join(", "),
            values.join(", "),
            using(random, true)
        )
    }

    fn update(&self, random: &mut Random) -> String {
        let statics = self.has_statics() && random.percent(30);
        let columns = self.some(random, |column| column.is_static == statics);
        if columns.is_empty() {
            return self.insert(random);
        }
        let changes: Vec<String> = columns.iter().map(|column| change(column, random)).collect();
        let using = using(random, true);
        let depth = if statics { 0 } else { self.clustering.len() };
        let row = self.conditions(random, depth);
        format!("UPDATE {KEYSPACE}.{}{using} SET {} WHERE {row}", self.name, changes.join(", "))
    }

    fn delete_cells(&self, random: &mut Random) -> String {
        let statics = self.has_statics() && random.percent(30);
        let columns = self.some(random, |column| column.is_static == statics);
        if columns.is_empty() {
            return self.delete(random, self.clustering.len());
        }
        let cells: Vec<String> = columns
            .iter()
            .map(|column| match &column.of {
                Type::Map(key, _) | Type::Set(key) if column.has_cells() && random.percent(50) => {
                    format!("{}[{}]", column.name, key.literal(random))
                }
                Type::User(_) if column.has_cells() && random.percent(50) => format!("{}.f0", column.name),
                _ => column.name.clone(),
            })
            .collect();
        let using = using(random, false);
        let row = self.conditions(random, if statics { 0 } else { self.clustering.len() });
        format!("DELETE {} FROM {KEYSPACE}.{}{using} WHERE {row}", cells.join(", "), self.name)
    }

    /// Deletes a partition, a row, or all rows with the same first clustering columns.
    fn delete(&self, random: &mut Random, depth: usize) -> String {
        let using = if self.has_counters { String::new() } else { using(random, false) };
        format!("DELETE FROM {KEYSPACE}.{}{using} WHERE {}", self.name, self.conditions(random, depth))
    }

    fn delete_range(&self, random: &mut Random) -> String {
        if self.clustering.is_empty() {
            return self.delete(random, 0);
        }
        let depth = random.below(self.clustering.len());
        let mut conditions = self.conditions(random, depth);
        let key = &self.clustering[depth];
        for operators in [[">", ">="], ["<", "<="]] {
            if random.percent(60) {
                let (operator, literal) = (random.one_of(&operators), random.one_of(&key.literals));
                conditions.push_str(&format!(" AND {} {operator} {literal}", key.name));
            }
        }
        format!("DELETE FROM {KEYSPACE}.{}{} WHERE {conditions}", self.name, using(random, false))
    }

    fn write_counters(&self, random: &mut Random) -> String {
        let statics = self.has_statics() && random.percent(30);
        let columns = self.some(random, |column| column.is_static == statics);
        if columns.is_empty() || random.percent(4) {
            return self.delete(random, self.clustering.len());
        }
        let sums: Vec<String> = columns
            .iter()
            .map(|column| {
                format!("{0} = {0} {1} {2}", column.name, random.one_of(&["+", "-"]), random.below(1000))
            })
            .collect();
        let row = self.conditions(random, if statics { 0 } else { self.clustering.len() });
        format!("UPDATE {KEYSPACE}.{} SET {} WHERE {row}", self.name, sums.join(", "))
    }

    fn has_statics(&self) -> bool {
        self.columns.iter().any(|column| column.is_static)
    }

    /// Some of the columns: often few, at times all.
    fn some(&self, random: &mut Random, is_good: impl Fn(&Column) -> bool) -> Vec<&Column> {
        let chance = *random.one_of(&[3, 30, 60, 100]);
        self.columns.iter().filter(|column| is_good(column) && random.percent(chance)).collect()
    }

    /// The columns of a partition key go together, so that there are few different ones.
    fn partition_key(&self, random: &mut Random) -> Vec<String> {
        let number = random.below(self.partition[0].literals.len());
        self.partition.iter().map(|key| key.literals[number].clone()).collect()
    }

    /// A partition, and the first clustering columns up to a depth.
    fn conditions(&self, random: &mut Random, depth: usize) -> String {
        let equals = |(key, value): (&Key, String)| format!("{} = {value}", key.name);
        let partition = self.partition_key(random);
        let mut conditions: Vec<String> = self.partition.iter().zip(partition).map(equals).collect();
        for key in &self.clustering[..depth] {
            conditions.push(equals((key, random.one_of(&key.literals).clone())));
        }
        conditions.join(" AND ")
    }
}

fn value(column: &Column, random: &mut Random) -> String {
    match &column.of {
        _ if random.percent(8) => "null".to_owned(),
        // A value of no bytes, which these types take.
        Type::Simple(name @ ("int" | "bigint" | "uuid" | "double")) if random.percent(4) => {
            format!("blob_as_{name}(0x)")
        }
        Type::Map(..) if random.percent(8) => "{}".to_owned(),
        of => of.literal(random),
    }
}

/// An assignment: of all, or of a part where the column has such.
fn change(column: &Column, random: &mut Random) -> String {
    let name = &column.name;
    if !column.has_cells() || random.percent(40) {
        return format!("{name} = {}", value(column, random));
    }
    match &column.of {
        Type::List(_) if random.percent(50) => format!("{name} = {} + {name}", column.of.literal(random)),
        Type::Map(key, value) if random.percent(50) => {
            format!("{name}[{}] = {}", key.literal(random), value.literal(random))
        }
        Type::Map(key, _) if random.percent(30) => {
            format!("{name} = {name} - {{{}}}", key.literal(random))
        }
        Type::Set(_) if random.percent(40) => format!("{name} = {name} - {}", column.of.literal(random)),
        Type::User(user) => format!("{name}.f0 = {}", user.fields[0].literal(random)),
        of => format!("{name} = {name} + {}", of.literal(random)),
    }
}

fn using(random: &mut Random, can_expire: bool) -> String {
    let timestamp = format!(" USING TIMESTAMP {}", TIMESTAMP + random.below(TIMESTAMPS));
    match can_expire && random.percent(20) {
        true => format!("{timestamp} AND TTL {}", random.one_of(&TTLS)),
        false => timestamp,
    }
}
