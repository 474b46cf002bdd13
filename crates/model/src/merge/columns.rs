//! Sources whose columns differ, brought to one schema.
//!
//! A column may have been added or dropped between the writing of two SSTables, or its type altered to
//! one that can hold the old values. A cell names its column by its place in the schema of its source; a
//! [`ColumnMap`] turns that into its place in the schema of all.

use std::collections::{BTreeMap, BTreeSet};

use super::compatible::{holds, holds_keys, wider};
use crate::flat::RowTaker;
use crate::time::NO_TIMESTAMP;
use crate::{Column, CqlType, Fragment, FragmentReader, Next, Row, Schema};

/// Why sources cannot be merged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MergeError {
    /// Their keys are not comparable.
    #[error("the partition keys differ: {0} and {1}")]
    PartitionKey(CqlType, CqlType),
    /// Their rows are not comparable.
    #[error("the clustering columns differ: ({}) and ({})", list(.0), list(.1))]
    Clustering(Vec<CqlType>, Vec<CqlType>),
    /// A column has values of two types, neither of which can hold those of the other.
    #[error("the column {column} is of two types that do not go together: {types}")]
    Column {
        /// Its name.
        column: String,
        /// The two types, in words.
        types: String,
    },
    /// Cells number their columns with 16 bits.
    #[error("together they have {0} columns of one kind, which is more than 65536")]
    TooManyColumns(usize),
}

/// The schema of all sources, and how to bring the rows of each to it.
#[derive(Clone, Debug)]
pub struct UnifiedSchema {
    /// Has every column that a source has.
    pub schema: Schema,
    /// One for each source.
    pub maps: Vec<ColumnMap>,
}

/// The columns of a table, and those of its sources that it does not have though nobody [dropped](ColumnMap::onto) them: whoever writes
/// the sources anew has to keep what he does not know. `None` if there are no such columns.
///
/// # Errors
/// [`MergeError::Column`] if such a column is of types that do not go together, or static in one place and not in another;
/// [`MergeError::TooManyColumns`].
pub fn with_unknown(
    table: &Schema,
    sources: &[&Schema],
    is_dropped: impl Fn(&[u8]) -> bool,
) -> Result<Option<Schema>, MergeError> {
    let (mut statics, mut regulars) = (Vec::new(), Vec::new());
    for source in sources {
        let [of_partitions, of_rows] = unknown_columns(table, source, &is_dropped);
        statics.extend(of_partitions.into_iter().cloned());
        regulars.extend(of_rows.into_iter().cloned());
    }
    if statics.is_empty() && regulars.is_empty() {
        return Ok(None);
    }
    let [statics, regulars] = [unify([&*table.statics, &statics])?, unify([&*table.regulars, &regulars])?];
    let names: BTreeSet<&[u8]> = statics.iter().map(|column| &*column.name).collect();
    if let Some(both) = regulars.iter().find(|column| names.contains(&*column.name)) {
        let column = both.name_text().into_owned();
        return Err(MergeError::Column { column, types: "one static, one not".to_owned() });
    }
    Ok(Some(Schema::new(table.partition_key.clone(), table.clustering.clone(), statics, regulars)))
}

/// The columns of a source that its table does not have though nobody dropped them, the static ones first.
pub fn unknown_columns<'a>(
    table: &Schema,
    source: &'a Schema,
    is_dropped: impl Fn(&[u8]) -> bool,
) -> [Vec<&'a Column>; 2] {
    let unknown = |all: &'a [Column], known: &[Column]| {
        let known: BTreeSet<&[u8]> = known.iter().map(|column| &*column.name).collect();
        let is_unknown = |column: &&Column| !known.contains(&*column.name) && !is_dropped(&column.name);
        all.iter().filter(is_unknown).collect()
    };
    [unknown(&source.statics, &table.statics), unknown(&source.regulars, &table.regulars)]
}

/// Brings the rows of one source to the schema of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnMap {
    statics: Places,
    regulars: Places,
}

/// A reader whose rows are brought to the schema of all sources.
#[derive(Debug)]
pub struct Mapped<R> {
    reader: R,
    map: ColumnMap,
}

impl UnifiedSchema {
    /// The schema that has the columns of all of these.
    ///
    /// Keys and clustering columns must sort alike. A column of several types gets the one that holds the
    /// values of all, as `text` does for `ascii` and `blob` for both.
    ///
    /// # Errors
    /// If keys or clustering columns do not sort alike, or a column has types of which none holds the values of all.
    ///
    /// # Panics
    /// If there is no schema at all.
    pub fn of(schemas: &[&Schema]) -> Result<UnifiedSchema, MergeError> {
        let (partition_key, clustering) = unify_keys(schemas)?;
        let statics = unify(schemas.iter().map(|schema| &schema.statics[..]))?;
        let regulars = unify(schemas.iter().map(|schema| &schema.regulars[..]))?;
        let schema = Schema::new(partition_key, clustering, statics, regulars);
        let maps = schemas.iter().map(|source| ColumnMap::between(source, &schema)).collect();
        Ok(UnifiedSchema { schema, maps })
    }
}

impl ColumnMap {
    /// Rows stay as they are.
    pub const IDENTITY: ColumnMap = ColumnMap { statics: Places::IDENTITY, regulars: Places::IDENTITY };

    /// Whether rows stay as they are.
    pub fn is_identity(&self) -> bool {
        self.statics.is_identity && self.regulars.is_identity
    }

    /// Brings a row of the source to the schema of all.
    pub fn map_row(&self, row: &mut Row, is_static: bool) {
        let places = if is_static { &self.statics } else { &self.regulars };
        if !places.is_identity {
            places.apply(row);
        }
    }

    /// Brings a fragment of the source to the schema of all.
    pub fn map(&self, fragment: &mut Fragment) {
        match fragment {
            Fragment::StaticRow(row) => self.map_row(row, true),
            Fragment::Row(row) => self.map_row(row, false),
            Fragment::PartitionStart(_) | Fragment::RangeTombstone(_) | Fragment::PartitionEnd => {}
        }
    }

    fn between(source: &Schema, unified: &Schema) -> ColumnMap {
        ColumnMap {
            statics: Places::between(&source.statics, &unified.statics, |_, _| NO_TIMESTAMP),
            regulars: Places::between(&source.regulars, &unified.regulars, |_, _| NO_TIMESTAMP),
        }
    }

    /// Brings the rows of a source to the columns of its table. Columns that the table does not have are left out: by who reads,
    /// while who writes anew keeps them by [`with_unknown`].
    /// `dropped` tells when a column of that name was dropped, in microseconds: what was written up to then is left
    /// out too, though the table may have such a column again; and all of it, if its type does not hold the values of before.
    ///
    /// # Errors
    /// [`MergeError::Column`] if the type of another column of the table does not hold the values that the source has.
    pub fn onto(
        source: &Schema,
        table: &Schema,
        dropped: impl Fn(&[u8]) -> Option<i64>,
    ) -> Result<ColumnMap, MergeError> {
        let pairs = [(&source.statics, &table.statics), (&source.regulars, &table.regulars)];
        // Of nearly all, and without a look for each column among all others.
        let is_same = |old: &[Column], new: &[Column]| {
            old == new && old.iter().all(|column| dropped(&column.name).is_none())
        };
        if pairs.iter().all(|(old, new)| is_same(old, new)) {
            return Ok(ColumnMap::IDENTITY);
        }
        for (old, new) in pairs.into_iter().flat_map(|(old, new)| of_one_name(old, new)) {
            if dropped(&old.name).is_none() && !holds(&new.data_type, &old.data_type) {
                let (column, types) = (old.name_text().into_owned(), two(&old.data_type, &new.data_type));
                return Err(MergeError::Column { column, types });
            }
        }
        let dropped_at = |old: &Column, new: &Column| match dropped(&old.name) {
            Some(_) if !holds(&new.data_type, &old.data_type) => i64::MAX,
            dropped_at => dropped_at.unwrap_or(NO_TIMESTAMP),
        };
        Ok(ColumnMap {
            statics: Places::between(&source.statics, &table.statics, dropped_at),
            regulars: Places::between(&source.regulars, &table.regulars, dropped_at),
        })
    }
}

impl<R: FragmentReader> Mapped<R> {
    /// The reader's rows, brought to the schema of all sources.
    pub fn new(reader: R, map: ColumnMap) -> Mapped<R> {
        Mapped { reader, map }
    }
}

impl<R: FragmentReader> FragmentReader for Mapped<R> {
    type Error = R::Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next, R::Error> {
        let next = self.reader.pop(place)?;
        if next == Next::Fragment {
            self.map.map(place);
        }
        Ok(next)
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        if self.map.regulars.is_identity {
            self.reader.pop_flat(take);
        }
    }

    async fn fill(&mut self) -> Result<(), R::Error> {
        self.reader.fill().await
    }
}

/// The key, and the clustering columns, each of the type that holds the values of all and sorts them alike.
fn unify_keys(schemas: &[&Schema]) -> Result<(CqlType, Vec<CqlType>), MergeError> {
    let (first, others) = schemas.split_first().expect("a merge has at least one schema");
    let (mut key, mut clustering) = (&first.partition_key, first.clustering.iter().collect::<Vec<_>>());
    for other in others {
        let differ = || MergeError::PartitionKey(key.clone(), other.partition_key.clone());
        key = wider_key(key, &other.partition_key).ok_or_else(differ)?;
        let pairs = || clustering.iter().zip(&other.clustering);
        let wider: Option<Vec<_>> = pairs().map(|(a, b)| wider_key(a, b)).collect();
        let wider = wider.filter(|_| clustering.len() == other.clustering.len());
        let differ = || {
            let known = clustering.iter().map(|&of| of.clone()).collect();
            MergeError::Clustering(known, other.clustering.clone())
        };
        clustering = wider.ok_or_else(differ)?;
    }
    Ok((key.clone(), clustering.into_iter().cloned().collect()))
}

fn wider_key<'a>(a: &'a CqlType, b: &'a CqlType) -> Option<&'a CqlType> {
    if holds_keys(a, b) { Some(a) } else { holds_keys(b, a).then_some(b) }
}

/// All columns, each with a type that holds the values of all its types.
fn unify<'a>(sources: impl IntoIterator<Item = &'a [Column]>) -> Result<Vec<Column>, MergeError> {
    let mut types: BTreeMap<&[u8], &CqlType> = BTreeMap::new();
    for column in sources.into_iter().flatten() {
        let known = types.entry(&column.name).or_insert(&column.data_type);
        *known = wider(known, &column.data_type).ok_or_else(|| MergeError::Column {
            column: column.name_text().into_owned(),
            types: two(known, &column.data_type),
        })?;
    }
    if types.len() > usize::from(u16::MAX) + 1 {
        return Err(MergeError::TooManyColumns(types.len()));
    }
    let column =
        |(name, data_type): (&[u8], &CqlType)| Column { name: name.into(), data_type: data_type.clone() };
    Ok(types.into_iter().map(column).collect())
}

/// The new place of each static or regular column.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Places {
    /// Empty where each stays where it is.
    to: Vec<Place>,
    is_identity: bool,
    /// Whether the order of the columns stays the same.
    is_monotone: bool,
    /// Whether something is left out.
    has_gaps: bool,
}

/// The new place of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    number: u16,
    /// What is not newer than this is left out; [`NO_TIMESTAMP`] where nothing is.
    dropped_at: i64,
}

impl Places {
    /// Each stays where it is.
    const IDENTITY: Places = Places { to: Vec::new(), is_identity: true, is_monotone: true, has_gaps: false };

    /// `dropped_at` is told of the columns of one name: up to when what the source has is left out.
    fn between(source: &[Column], table: &[Column], dropped_at: impl Fn(&Column, &Column) -> i64) -> Places {
        let stays = |(a, b): (&Column, &Column)| a.name == b.name && dropped_at(a, b) == NO_TIMESTAMP;
        if source.len() == table.len() && source.iter().zip(table).all(stays) {
            return Places::IDENTITY;
        }
        let places: BTreeMap<&[u8], u16> =
            table.iter().map(|column| &*column.name).zip(0..=u16::MAX).collect();
        let place = |column: &Column| match places.get(&*column.name) {
            Some(&number) => Place { number, dropped_at: dropped_at(column, &table[usize::from(number)]) },
            None => Place { number: 0, dropped_at: i64::MAX },
        };
        let to: Vec<Place> = source.iter().map(place).collect();
        let has_gaps = to.iter().any(|place| place.dropped_at != NO_TIMESTAMP);
        let numbers = || to.iter().filter(|place| place.dropped_at != i64::MAX).map(|place| place.number);
        if !has_gaps && numbers().eq(0..to.len() as u16) {
            return Places::IDENTITY;
        }
        let is_monotone = numbers().is_sorted();
        Places { is_identity: false, is_monotone, has_gaps, to }
    }

    fn apply(&self, row: &mut Row) {
        if self.has_gaps {
            let stays = |column: u16, timestamp: i64| timestamp > self.to[usize::from(column)].dropped_at;
            row.cells.retain(|cell| stays(cell.column, cell.timestamp));
            row.complex_deletions.retain(|(column, deletion)| stays(*column, deletion.marked_for_delete_at));
        }
        let place = |column: &mut u16| *column = self.to[usize::from(*column)].number;
        row.cells.iter_mut().for_each(|cell| place(&mut cell.column));
        row.complex_deletions.iter_mut().for_each(|(column, _)| place(column));
        if !self.is_monotone {
            // Stable, so the paths within a column keep their order.
            row.cells.sort_by_key(|cell| cell.column);
            row.complex_deletions.sort_by_key(|(column, _)| *column);
        }
    }
}

/// The columns that both have, by their names.
fn of_one_name<'a>(old: &'a [Column], new: &'a [Column]) -> impl Iterator<Item = (&'a Column, &'a Column)> {
    let named = |name: &[u8]| new.iter().find(|column| *column.name == *name);
    old.iter().filter_map(move |column| Some((column, named(&column.name)?)))
}

fn two(a: &CqlType, b: &CqlType) -> String {
    format!("{a} and {b}")
}

fn list(types: &[CqlType]) -> String {
    types.iter().map(CqlType::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Cell, CellValue, Clustering, DeletionTime, time::NO_DELETION_TIME};

    fn schema(regulars: &[(&str, CqlType)]) -> Schema {
        let column = |(name, data_type): &(&str, CqlType)| Column {
            name: name.as_bytes().into(),
            data_type: data_type.clone(),
        };
        Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), regulars.iter().map(column).collect())
    }

    fn cell(column: u16, path: Option<&[u8]>) -> Cell {
        Cell {
            column,
            ttl: 0,
            timestamp: 1,
            local_deletion_time: NO_DELETION_TIME,
            path: path.map(Bytes::from),
            value: CellValue::Tombstone,
        }
    }

    fn columns_of(row: &Row) -> Vec<u16> {
        row.cells.iter().map(|cell| cell.column).collect()
    }

    #[test]
    fn columns_of_all_sources_are_in_the_schema() {
        let set = CqlType::set(CqlType::Int, false);
        let (old, new) = (
            schema(&[("b", CqlType::Ascii), ("d", set.clone())]),
            schema(&[("a", CqlType::Int), ("b", CqlType::Text), ("c", set.clone()), ("d", set.clone())]),
        );
        let unified = UnifiedSchema::of(&[&old, &new]).unwrap();
        assert_eq!(unified.schema, new);
        assert!(unified.maps[1].is_identity());
        let mut row = Row::new(Clustering::empty());
        row.cells = vec![cell(0, None), cell(1, Some(b"p")), cell(1, Some(b"q"))];
        row.complex_deletions = vec![(1, DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 })];
        unified.maps[0].map_row(&mut row, false);
        assert_eq!(columns_of(&row), [1, 3, 3]);
        assert_eq!(row.complex_deletions[0].0, 3);
        assert_eq!(UnifiedSchema::of(&[&new, &old]).unwrap().schema, new);
    }

    #[test]
    fn a_map_that_turns_columns_around_sorts_their_cells() {
        let right = schema(&[("a", CqlType::Int), ("b", CqlType::list(CqlType::Int, false))]);
        let mut turned = right.clone();
        turned.regulars.reverse();
        let unified = UnifiedSchema::of(&[&turned]).unwrap();
        assert_eq!(unified.schema, right);
        let mut row = Row::new(Clustering::empty());
        row.cells = vec![cell(0, Some(b"p")), cell(0, Some(b"q")), cell(1, None)];
        unified.maps[0].map_row(&mut row, false);
        assert_eq!(row.cells, [cell(0, None), cell(1, Some(b"p")), cell(1, Some(b"q"))]);
    }

    #[test]
    fn what_does_not_go_together_is_refused_by_name() {
        let message = |a: &Schema, b: &Schema| UnifiedSchema::of(&[a, b]).unwrap_err().to_string();
        let a = schema(&[("total", CqlType::Int)]);
        let b = schema(&[("total", CqlType::Text)]);
        let text = message(&a, &b);
        assert!(text.contains("total") && text.contains("Int32Type") && text.contains("UTF8Type"), "{text}");
        let other_key = Schema { partition_key: CqlType::Text, ..a.clone() };
        assert!(message(&a, &other_key).starts_with("the partition keys differ: "));
        let other_clustering =
            Schema { clustering: vec![CqlType::Reversed(Box::new(CqlType::Int))], ..a.clone() };
        let text = message(&a, &other_clustering);
        assert!(text.contains("clustering") && text.contains("ReversedType"), "{text}");
    }
}
