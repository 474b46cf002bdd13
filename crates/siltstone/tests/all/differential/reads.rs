//! Single rows, slices and reverse reads of Siltstone's, against what its scan gave.

use model::{Bytes, Clustering, Direction, FragmentReader, PartitionKey, Position, Slice};
use storage::ReadRequest;
use storage::cover::Wanted;
use testkit::generate::random::Random;
use testkit::selected::{Selected, Selection};
use testkit::statements::Table;
use testkit::statements::values::key_of;

use super::pair::Pair;

/// How many reads there are each time.
const READS: usize = 12;

/// Compares random reads with the rows of a scan.
pub(crate) async fn compare(
    pair: &Pair<'_>,
    rows: &[Selected],
    later: i64,
    random: &mut Random,
) -> Result<(), String> {
    let now = pair.now() + later;
    for _ in 0..READS {
        let request = request(pair.table, random);
        let expected = chosen(pair, &request, rows);
        let found = read(pair, &request, now).await;
        if found != expected {
            let [found, expected] = [found, expected].map(|rows| pair.all_values(&rows));
            let difference = pair.difference(&found, &expected).unwrap_or_default();
            return Err(format!("at {now}, {request:?}: {difference}"));
        }
    }
    Ok(())
}

async fn read(pair: &Pair<'_>, request: &ReadRequest, now: i64) -> Vec<Selected> {
    let mut stream = pair.own.read(request).await.unwrap();
    let mut selection = Selection::new(&pair.table.schema, now, request.slice.is_all());
    while let Some(fragment) = stream.next().await.unwrap() {
        selection.take(fragment);
    }
    selection.rows.into_iter().map(|row| wanted(row, request)).collect()
}

/// The rows of a scan that a read gives.
fn chosen(pair: &Pair<'_>, request: &ReadRequest, rows: &[Selected]) -> Vec<Selected> {
    let (schema, slice) = (&pair.table.schema, &request.slice);
    let is_in = |row: &&Selected| match &row.clustering {
        Some(clustering) => {
            schema.compare_row(clustering, &slice.start).is_ge()
                && schema.compare_row(clustering, &slice.end).is_le()
        }
        None => request.static_row && slice.is_all(),
    };
    let rows = rows.iter().filter(|row| row.key == request.key).filter(is_in).cloned();
    let mut rows: Vec<Selected> = rows.map(|row| wanted(row, request)).collect();
    if request.direction == Direction::Reverse {
        rows.reverse();
    }
    rows
}

/// A row with nothing in the columns that were not wanted.
fn wanted(mut row: Selected, request: &ReadRequest) -> Selected {
    let Wanted { regulars, statics } = &request.wanted;
    for (values, wanted) in [(&mut row.regulars, regulars), (&mut row.statics, statics)] {
        let is_wanted = |at: usize| wanted.as_ref().is_none_or(|wanted| wanted.contains(&(at as u16)));
        values.iter_mut().enumerate().filter(|(at, _)| !is_wanted(*at)).for_each(|(_, value)| *value = None);
    }
    if !request.static_row {
        row.statics.fill(None);
    }
    row
}

fn request(table: &Table, random: &mut Random) -> ReadRequest {
    let columns: &Vec<Bytes> = random.one_of(&table.partitions);
    let key = PartitionKey::new(key_of(columns));
    let row = table.random_row(random);
    let slice = match random.below(10) {
        0..5 => Slice::of_prefix(row),
        5 => Slice::all(),
        6 => Slice { start: Position::at(row.clone()), end: Position::at(row) },
        7 => Slice::of_prefix(prefix(row, random)),
        _ => between(table, random),
    };
    let mut request = ReadRequest::new(key, slice);
    request.direction = *random.one_of(&[Direction::Forward, Direction::Reverse]);
    request.static_row = random.percent(70);
    request.limit = random.percent(30).then(|| 1 + random.below(10) as u64);
    if random.percent(50) {
        request.wanted.regulars = Some(some(table.schema.regulars.len(), random));
        request.wanted.statics = Some(some(table.schema.statics.len(), random));
    }
    request
}

/// A slice between two positions, which may be an empty one.
fn between(table: &Table, random: &mut Random) -> Slice {
    let mut position = || {
        let prefix = prefix(table.random_row(random), random);
        if random.percent(50) { Position::before(prefix) } else { Position::after(prefix) }
    };
    Slice { start: position(), end: position() }
}

fn prefix(row: Clustering, random: &mut Random) -> Clustering {
    let len = random.below(row.len() + 1);
    row.values.into_iter().take(len).flatten().collect()
}

fn some(count: usize, random: &mut Random) -> Vec<u16> {
    let chance = *random.one_of(&[10, 50, 100]);
    (0..count as u16).filter(|_| random.percent(chance)).collect()
}
