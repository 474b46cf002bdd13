//! Random tables, with their columns both as CQL and as the model has them.

use std::fmt::Write as _;

use model::types::UserType as ModelUserType;
use model::{Bytes, Clustering, Column, CqlType, Position, Schema, Slice};

use super::Place;
use super::values::{Values, composite};
use crate::generate::KEYSPACE;
use crate::generate::random::Random;
use crate::generate::tables::Table as CqlTable;
use crate::generate::types::{Frozen, Type, UserType};

/// How many user types there are; a later one may have a field of an earlier one.
const USER_TYPES: usize = 3;

/// One table in so many is one of counters.
const COUNTERS_EVERY: usize = 8;

/// How many partitions and how many values of each clustering column there are.
const KEYS: usize = 4;

/// A table with few keys.
#[derive(Debug)]
pub struct Table {
    /// Its name, without its keyspace.
    pub name: String,
    /// Its columns.
    pub schema: Schema,
    /// The names of the columns of the partition key, as CQL has them.
    pub partition: Vec<String>,
    /// The names of the clustering columns.
    pub clustering: Vec<String>,
    /// The types of the columns of the partition key.
    pub partition_types: Vec<CqlType>,
    /// For how many seconds tombstones are kept.
    pub gc_grace_seconds: u32,
    /// The partitions that are written to.
    pub partitions: Vec<Vec<Bytes>>,
    /// For each clustering column the values that it has.
    pub clusterings: Vec<Vec<Bytes>>,
    /// The statement that creates the table.
    pub create: String,
    /// The statements that create the types it has.
    pub create_types: Vec<String>,
    /// The names of these types.
    pub types: Vec<String>,
}

impl Table {
    /// A table of random columns. Its name, and those of its types, are those of its number.
    pub fn random(random: &mut Random, number: usize) -> Table {
        let mut user: Vec<UserType> = Vec::new();
        for at in 0..USER_TYPES {
            user.push(UserType::random(random, number * USER_TYPES + at, &user));
        }
        let has_counters = random.below(COUNTERS_EVERY) == 0;
        let mut cql = CqlTable::random(random, number, &user, has_counters);
        let gc_grace_seconds = *random.one_of(&[0, 864_000]);
        cql.options = cql.options.split(" AND ").next().unwrap_or_default().to_owned();
        write!(cql.options, " AND gc_grace_seconds = {gc_grace_seconds}").expect("a string takes all");
        Table::of(random, &cql, &user, gc_grace_seconds)
    }

    fn of(random: &mut Random, cql: &CqlTable, user: &[UserType], gc_grace_seconds: u32) -> Table {
        let frozen = |of: &Type| cql_type(&Frozen(of).to_string(), user);
        let partition_types: Vec<CqlType> = cql.partition.iter().map(|key| frozen(&key.of)).collect();
        let clustering: Vec<CqlType> = cql.clustering.iter().map(|key| frozen(&key.of)).collect();
        let mut values = |of: &CqlType, empty: bool| Values { random, may_be_empty: empty }.value(of);
        let partitions = (0..KEYS).map(|_| partition_types.iter().map(|of| values(of, false)).collect());
        let partitions = partitions.collect();
        let clusterings = clustering.iter().map(|of| (0..KEYS).map(|_| values(of, true)).collect()).collect();
        let directed = clustering.into_iter().zip(&cql.clustering);
        let directed = directed.map(|(of, key)| match key.is_descending {
            true => CqlType::Reversed(Box::new(of)),
            false => of,
        });
        Table {
            name: cql.name.clone(),
            schema: Schema::new(
                composite(&partition_types),
                directed.collect(),
                columns(cql, user, true),
                columns(cql, user, false),
            ),
            partition: cql.partition.iter().map(|key| key.name.clone()).collect(),
            clustering: cql.clustering.iter().map(|key| key.name.clone()).collect(),
            partition_types,
            gc_grace_seconds,
            partitions,
            clusterings,
            create: cql.create(),
            create_types: user.iter().map(UserType::create).collect(),
            types: user.iter().map(|of| of.name.clone()).collect(),
        }
    }

    /// The statements that remove it and its types.
    pub fn drop_all(&self) -> Vec<String> {
        let types = self.types.iter().rev().map(|name| format!("DROP TYPE {KEYSPACE}.{name}"));
        std::iter::once(format!("DROP TABLE {}", self.full_name())).chain(types).collect()
    }

    /// Its name with its keyspace.
    pub fn full_name(&self) -> String {
        format!("{KEYSPACE}.{}", self.name)
    }

    /// The column at a place.
    pub fn column(&self, place: Place) -> &Column {
        &self.schema.columns(place.is_static)[usize::from(place.at)]
    }

    /// The name of a column, as CQL has it.
    pub fn name_of(&self, place: Place) -> String {
        model::types::maybe_quote(&self.column(place).name_text()).into_owned()
    }

    /// The static or the regular columns.
    pub fn places(&self, is_static: bool) -> Vec<Place> {
        (0..self.schema.columns(is_static).len()).map(|at| Place { is_static, at: at as u16 }).collect()
    }

    /// One of the rows' keys.
    pub fn random_row(&self, random: &mut Random) -> Clustering {
        self.clusterings.iter().map(|values| random.one_of(values).clone()).collect()
    }

    /// A slice between two positions at, before or behind such keys, or parts of them.
    pub fn random_slice(&self, random: &mut Random) -> Slice {
        let mut position = || {
            let row = self.random_row(random);
            let len = random.below(row.len() + 1);
            let is_whole = len == row.len();
            let prefix: Clustering = row.values.into_iter().take(len).flatten().collect();
            match random.below(3) {
                0 => Position::before(prefix),
                1 if is_whole => Position::at(prefix),
                _ => Position::after(prefix),
            }
        };
        let (start, end) = (position(), position());
        match self.schema.compare(&start, &end).is_le() {
            true => Slice { start, end },
            false => Slice { start: end, end: start },
        }
    }
}

fn columns(cql: &CqlTable, user: &[UserType], is_static: bool) -> Vec<Column> {
    let columns = cql.columns.iter().filter(|column| column.is_static == is_static);
    let column = |column: &crate::generate::tables::Column| {
        let of = match column.is_frozen {
            true => Frozen(&column.of).to_string(),
            false => column.of.to_string(),
        };
        Column { name: column.name.trim_matches('"').as_bytes().into(), data_type: cql_type(&of, user) }
    };
    columns.map(column).collect()
}

/// The model's type of what CQL calls so.
fn cql_type(text: &str, user: &[UserType]) -> CqlType {
    let find = |_: Option<&str>, name: &str| user.iter().find(|of| of.name == name).map(|of| of.model(user));
    CqlType::parse_cql(text, &find).expect("the types that are made up are types")
}

impl UserType {
    fn model(&self, user: &[UserType]) -> ModelUserType {
        let fields = self.fields.iter().enumerate();
        let fields =
            fields.map(|(number, of)| (format!("f{number}"), cql_type(&Frozen(of).to_string(), user)));
        ModelUserType {
            keyspace: KEYSPACE.to_owned(),
            name: self.name.clone(),
            fields: fields.collect(),
            frozen: false,
        }
    }
}
