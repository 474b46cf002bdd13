//! What a dump prints as JSON lines says all that a file holds: read back and sorted, it is the same fragments.

use std::path::Path;
use std::rc::Rc;

use model::{Fragment, FragmentReader, Next, Row};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::dump::{Dump, Format};
use siltstone::json_rows::JsonRows;
use siltstone::sorted_rows::{Sorted, SortedRows};
use sstable::{OpenOptions, SSTable};
use testkit::fixtures::{self, Fixture};

/// Fixtures that are not read, or whose rows are not compared, each for a reason.
const LEFT_OUT: [(&str, &str); 2] = [
    ("random_partitioner", "it is refused"),
    ("idx_v", "the partitions of an index are in the order of its key, not of tokens"),
];

const NOW: i64 = 2_000_000_000;

/// The dump of an SSTable as lines of JSON.
pub(crate) async fn lines(table: &Rc<SSTable>) -> String {
    let mut text = Vec::new();
    Dump::new(table, Format::JsonLines, NOW).all(&mut text, &mut |_| {}).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// A row as it is dumped: without what its own deletions shadow, and not if nothing is left.
fn normalized(mut row: Row) -> Option<Row> {
    row.normalize();
    (!row.is_empty()).then_some(row)
}

async fn scanned(table: &SSTable) -> Vec<Fragment> {
    let mut reader = table.scan();
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        fragments.extend(match fragment {
            Fragment::Row(row) => normalized(row).map(Fragment::Row),
            Fragment::StaticRow(row) => normalized(row).map(Fragment::StaticRow),
            other => Some(other),
        });
    }
    fragments
}

fn read<'a>(name: &str, table: &SSTable, lines: impl Iterator<Item = &'a str>) -> Vec<Fragment> {
    let mut rows = JsonRows::new(Path::new(name), table.schema().clone(), None);
    let mut sorted = SortedRows::new(table.schema().clone());
    for line in lines {
        sorted.insert(rows.parse_line(line).unwrap().unwrap());
    }
    drain(sorted.finish().unwrap())
}

fn drain(mut sorted: Sorted) -> Vec<Fragment> {
    let (mut fragments, mut fragment) = (Vec::new(), Fragment::default());
    while sorted.pop(&mut fragment).unwrap() == Next::Fragment {
        fragments.push(std::mem::take(&mut fragment));
    }
    fragments
}

/// Where the two differ first.
fn difference(ours: &[Fragment], theirs: &[Fragment]) -> Option<String> {
    let differs = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
    let at = differs.or((ours.len() != theirs.len()).then_some(ours.len().min(theirs.len())))?;
    Some(format!("fragment {at}: {:?}\n    expected {:?}", ours.get(at), theirs.get(at)))
}

/// The same lines in an order that the seed decides.
fn shuffled(lines: &str, mut seed: u64) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    for end in (1..lines.len()).rev() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        lines.swap(end, (seed % (end as u64 + 1)) as usize);
    }
    lines
}

async fn check(shard: &Shard, fixture: &Fixture) -> Option<String> {
    let options = OpenOptions::new(Cache::new(1 << 20));
    let table = SSTable::open(shard.disk(), &fixture.data, &options).await.unwrap();
    let (lines, scanned) = (lines(&table).await, scanned(&table).await);
    let in_order = difference(&read(&fixture.name, &table, lines.lines()), &scanned);
    if in_order.is_some() || lines.len() > 1 << 20 {
        return in_order;
    }
    let shuffled = shuffled(&lines, 0x5117_5704e);
    difference(&read(&fixture.name, &table, shuffled.into_iter()), &scanned)
        .map(|what| format!("shuffled: {what}"))
}

#[test]
fn dumps_are_read_back_as_they_were() {
    let fixtures = fixtures::all();
    let is_read = |fixture: &&Fixture| LEFT_OUT.iter().all(|(name, _)| !fixture.name.contains(name));
    let fixtures: Vec<Fixture> = fixtures.iter().filter(is_read).cloned().collect();
    runtime::run(ShardOptions { direct_io: false, ..ShardOptions::default() }, async move |shard: Shard| {
        let mut failures = Vec::new();
        for fixture in &fixtures {
            failures.extend(check(&shard, fixture).await.map(|what| format!("{}: {what}", fixture.name)));
        }
        let count = fixtures.len();
        assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
    })
    .unwrap();
}
