//! A table as its text names it, made into the one that files have.

use model::{Column, CqlType, Schema};

use super::{TableOptions, TableSchema};

/// What was read of a table.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) keyspace: Option<String>,
    pub(super) table: String,
    pub(super) columns: Vec<DraftColumn>,
    pub(super) partition_key: Vec<String>,
    pub(super) clustering: Vec<String>,
    /// The clustering columns in descending order.
    pub(super) descending: Vec<String>,
    pub(super) is_compact: bool,
    /// Columns that were dropped, each with its timestamp in microseconds.
    pub(super) dropped: Vec<(String, i64)>,
    /// The same columns as they were, and those too of which it is not known when that was.
    pub(super) dropped_columns: Vec<DraftColumn>,
    pub(super) options: TableOptions,
}

#[derive(Debug)]
pub(super) struct DraftColumn {
    pub(super) name: String,
    pub(super) data_type: CqlType,
    pub(super) is_static: bool,
}

/// The columns that are not of the primary key.
type Columns = Vec<Column>;

impl Draft {
    /// The table, or what is wrong with it.
    pub(super) fn build(mut self) -> Result<TableSchema, String> {
        self.check()?;
        let partition_key = match &self.key_types(&self.partition_key)?[..] {
            [column] => column.clone(),
            columns => CqlType::Composite(columns.to_vec()),
        };
        let mut clustering = self.key_types(&self.clustering)?;
        for (data_type, name) in clustering.iter_mut().zip(&self.clustering) {
            if self.descending.contains(name) {
                *data_type = CqlType::Reversed(Box::new(data_type.clone()));
            }
        }
        let (mut statics, mut regulars) = self.columns();
        check_counters(&statics, &regulars)?;
        if self.is_compact {
            self.show_compact(&mut clustering, &mut statics, &mut regulars)?;
        }
        Ok(TableSchema {
            schema: Schema::new(partition_key, clustering, statics, regulars),
            keyspace: self.keyspace,
            table: self.table,
            partition_key: self.partition_key,
            clustering: self.clustering,
            is_compact: self.is_compact,
            dropped: self.dropped,
            options: self.options,
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.partition_key.is_empty() {
            return Err(format!("the table {} has no primary key", self.table));
        }
        for (index, column) in self.columns.iter().enumerate() {
            if self.columns[..index].iter().any(|other| other.name == column.name) {
                return Err(format!("the column {} is there twice", column.name));
            }
            check_user_type(column)?;
            check_counter(column)?;
            if column.is_static && self.clustering.is_empty() {
                return Err(format!("{} is static, but there are no clustering columns", column.name));
            }
        }
        if let Some(name) = self.descending.iter().find(|name| !self.clustering.contains(name)) {
            return Err(format!("{name} has an order, but is no clustering column"));
        }
        let keys: Vec<&String> = self.partition_key.iter().chain(&self.clustering).collect();
        match keys.iter().enumerate().find(|(index, name)| keys[..*index].contains(name)) {
            Some((_, name)) => Err(format!("{name} is in the primary key twice")),
            None => Ok(()),
        }
    }

    /// The types of columns of the primary key.
    fn key_types(&self, names: &[String]) -> Result<Vec<CqlType>, String> {
        let data_type = |name: &String| {
            let column = self.columns.iter().find(|column| column.name == *name);
            let column = column.ok_or_else(|| format!("{name} is in the primary key, but is no column"))?;
            match &column.data_type {
                _ if column.is_static => Err(format!("{name} is in the primary key and cannot be static")),
                kind if kind.is_multi_cell() || kind.is_counter() => {
                    Err(format!("{name} is in the primary key and cannot be a {}", kind.cql_name()))
                }
                kind if kind.any(&|part| *part == CqlType::Duration) => Err(format!(
                    "{name} is in the primary key, where durations, which have no order, cannot be"
                )),
                kind => Ok(kind.clone()),
            }
        };
        names.iter().map(data_type).collect()
    }

    fn columns(&mut self) -> (Columns, Columns) {
        let is_key = |name: &String| self.partition_key.contains(name) || self.clustering.contains(name);
        let others = self.columns.drain(..).filter(|column| !is_key(&column.name));
        let (statics, regulars): (Vec<DraftColumn>, Vec<DraftColumn>) =
            others.partition(|column| column.is_static);
        let column = |column: DraftColumn| new_column(&column.name, column.data_type);
        (statics.into_iter().map(column).collect(), regulars.into_iter().map(column).collect())
    }

    /// The columns of compact storage that CQL does not show.
    ///
    /// Without clustering columns all others are static ones, and the rows, of which there are none, would have a name
    /// and a value. With clustering columns there is one value, be it empty.
    fn show_compact(
        &mut self,
        clustering: &mut Vec<CqlType>,
        statics: &mut Columns,
        regulars: &mut Columns,
    ) -> Result<(), String> {
        let is_multi_cell = |column: &&Column| column.data_type.is_multi_cell();
        if let Some(column) = regulars.iter().find(is_multi_cell) {
            return Err(format!(
                "{} has several cells, which COMPACT STORAGE has no place for",
                column.name_text()
            ));
        }
        if !statics.is_empty() {
            return Err("COMPACT STORAGE has no static columns".to_owned());
        }
        if clustering.is_empty() {
            *statics = std::mem::take(regulars);
            let is_counter = statics.iter().any(|column| column.data_type.is_counter());
            let value = if is_counter { CqlType::Counter } else { CqlType::Blob };
            regulars.push(new_column(&self.free_name("value", statics, 0), value));
            clustering.push(CqlType::Text);
            let name = self.free_name("column", statics, 1);
            self.clustering.push(name);
        } else if regulars.is_empty() {
            regulars.push(new_column(&self.free_name("value", statics, 0), CqlType::Empty));
        } else if regulars.len() > 1 {
            return Err(
                "COMPACT STORAGE has one column beside the primary key, if that has clustering columns"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The first name of `value, value1, …` that no column has; counted from `first`, where 0 is no number.
    fn free_name(&self, base: &str, columns: &[Column], first: usize) -> String {
        let is_taken = |name: &String| {
            let is_key = self.partition_key.contains(name) || self.clustering.contains(name);
            is_key || columns.iter().any(|column| *column.name == *name.as_bytes())
        };
        let name = |number| if number == 0 { base.to_owned() } else { format!("{base}{number}") };
        (first..).map(name).find(|name| !is_taken(name)).expect("there are more numbers than columns")
    }
}

fn new_column(name: &str, data_type: CqlType) -> Column {
    Column { name: name.as_bytes().into(), data_type }
}

/// A user defined type with a cell for each field has fields of one cell.
fn check_user_type(column: &DraftColumn) -> Result<(), String> {
    let CqlType::Udt(udt) = &column.data_type else { return Ok(()) };
    match udt.fields.iter().find(|field| !udt.frozen && field.1.is_multi_cell()) {
        Some((field, _)) => {
            Err(format!("{}: the field {field} of a type that is not frozen is not either", column.name))
        }
        None => Ok(()),
    }
}

/// A counter is a column, not a part of one.
fn check_counter(column: &DraftColumn) -> Result<(), String> {
    let of = &column.data_type;
    match !of.is_counter() && of.any(&|part| *part == CqlType::Counter) {
        true => Err(format!("{}: counters are not within {}", column.name, of.cql_name())),
        false => Ok(()),
    }
}

fn check_counters(statics: &[Column], regulars: &[Column]) -> Result<(), String> {
    let mut columns = statics.iter().chain(regulars);
    let counters = statics.iter().chain(regulars).filter(|column| column.data_type.is_counter()).count();
    match columns.find(|column| counters > 0 && !column.data_type.is_counter()) {
        Some(column) => Err(format!("{} is no counter, but others are", column.name_text())),
        None => Ok(()),
    }
}
