//! Random tables and random writes to them, as CQL for Cassandra: the same from the same seed.
//!
//! | file | idea |
//! |---|---|
//! | [`random`] | numbers from a seed |
//! | [`types`] | types and literals of them |
//! | [`tables`] | tables of random columns |
//! | [`writes`] | writes of every kind, which meet in few partitions and rows |

use std::fmt::Write as _;

use random::Random;
use tables::Table;
use types::UserType;

pub mod random;
pub mod tables;
pub mod types;
pub mod writes;

/// How many user types there are; a later one may have a field of an earlier one.
const USER_TYPES: usize = 3;

/// Every so many tables is one of counters.
const COUNTERS_EVERY: usize = 6;

/// The keyspace of all tables.
pub const KEYSPACE: &str = "generated";

/// Tables of one keyspace with what is written to them.
#[derive(Debug)]
pub struct Generated {
    /// The statements that make the keyspace, its types and its tables.
    pub schema: String,
    /// The names of the tables.
    pub tables: Vec<String>,
    /// What is written, as one statement each; a flush comes after each part.
    pub parts: Vec<Vec<String>>,
}

/// What a seed gives: so many tables, and so many flushes with so many statements for each table.
pub fn generate(seed: u64, tables: usize, flushes: usize, statements: usize) -> Generated {
    let mut random = Random::new(seed);
    let mut types: Vec<UserType> = Vec::new();
    for number in 0..USER_TYPES {
        types.push(UserType::random(&mut random, number, &types));
    }
    let tables: Vec<Table> = (0..tables)
        .map(|number| {
            let has_counters = number % COUNTERS_EVERY == COUNTERS_EVERY - 1;
            Table::random(&mut random, number, &types, has_counters)
        })
        .collect();
    let parts = (0..flushes).map(|_| {
        let writes = tables.iter().flat_map(|table| (0..statements).map(move |_| table));
        writes.map(|table| table.write(&mut random)).collect()
    });
    let parts = parts.collect();
    Generated { schema: schema(&types, &tables), tables: names(&tables), parts }
}

fn names(tables: &[Table]) -> Vec<String> {
    tables.iter().map(|table| table.name.clone()).collect()
}

fn schema(types: &[UserType], tables: &[Table]) -> String {
    let mut schema = format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': '1'}} AND durable_writes = true;\n"
    );
    let statements = types.iter().map(UserType::create).chain(tables.iter().map(Table::create));
    for statement in statements {
        writeln!(schema, "{statement};").expect("a string takes all");
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats() {
        let [a, b, c] = [7, 7, 8].map(|seed| format!("{:?}", generate(seed, 12, 2, 40)));
        assert!(a == b && a != c);
    }

    #[test]
    fn everything_comes_up() {
        let all = (0..20).map(|seed| generate(seed, 12, 2, 60));
        let text: String = all.map(|all| all.schema + &all.parts.concat().join("\n")).collect();
        for part in [
            " static",
            " DESC",
            "frozen<",
            "counter",
            "'enabled': 'false'",
            "ZstdCompressor",
            "USING TIMESTAMP",
            " AND TTL ",
            "INSERT INTO",
            "UPDATE",
            "DELETE FROM",
            "= null",
            "= v",
            "''",
            "vector<",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains('\t'));
    }
}
