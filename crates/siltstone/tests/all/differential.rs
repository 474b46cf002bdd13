//! The same random statements to Siltstone and to a live Cassandra leave the same rows, to the byte, at any time.
//!
//! ```text
//! SILTSTONE_SEEDS=500                  tries so many seeds; a few without it
//! SILTSTONE_SEED=7                     tries this one and prints its statements; with SILTSTONE_SEEDS, begins here
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `differential/pair.rs` | a table of both sides, and the plain one beside them |
//! | `differential/reads.rs` | single rows, slices and reverse reads, against what a scan gave |
//!
//! Clocks stand still on both sides: each statement, each `SELECT` and each compaction is told its second. Tables are
//! tried in two ways. *In step*, both sides compact at the same moments, and have to forget the same. *Apart*, each
//! compacts when it likes, after which all writes have greater timestamps; only then does it not matter who has
//! forgotten what, and what there is is what the plain table has.

use std::env;
use std::path::Path;
use std::time::Instant;

use runtime::{SimOptions, run_simulated};
use testkit::cassandra::{Cassandra, Node, Work, Writes};
use testkit::generate::KEYSPACE;
use testkit::generate::random::Random;
use testkit::statements::Table;

mod pair;
mod reads;

use pair::Pair;

/// How many seeds are tried if nobody says otherwise.
const SEEDS: u64 = 4;

/// After so many seeds that fail, others hardly tell more.
const ENOUGH: usize = 5;

/// How much later rows are looked at, in seconds: what was to expire soon does so in between.
const LATER: [i64; 4] = [0, 11, 31, 150_000_000];

#[test]
fn the_rows_are_those_of_a_live_cassandra() {
    let builds = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cassandra = match Cassandra::prepare(builds, None) {
        Ok(cassandra) => cassandra,
        Err(error) => {
            println!("skipped: there is no Cassandra to compare with: {error}");
            return;
        }
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut node = cassandra.node(folder.path(), Writes::Oa, Work::Questions).unwrap();
    node.schema(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': '1'}} AND durable_writes = false;"
    ))
    .unwrap();
    let failures = try_all(&mut node);
    for (verb, (times, elapsed)) in node.times() {
        println!("{verb:9} {times:6} times, {:6.1} s", elapsed.as_secs_f64());
    }
    assert!(failures.is_empty(), "{} seeds fail:\n{}", failures.len(), failures.join("\n"));
}

fn try_all(node: &mut Node) -> Vec<String> {
    let chosen = number("SILTSTONE_SEED");
    let count = number("SILTSTONE_SEEDS").unwrap_or(if chosen.is_some() { 1 } else { SEEDS });
    let first = chosen.unwrap_or(0);
    let started = Instant::now();
    let mut failures = Vec::new();
    let mut tried = 0;
    for seed in first..first + count {
        println!("seed {seed}");
        let options = SimOptions { seed, max_delay: 3, short_read_chance: 0.1, ..SimOptions::default() };
        let table = Table::random(&mut Random::new(seed), tried);
        let tried_one = run_simulated(options, async |shard| {
            let mut pair = Pair::new(&shard, node, &table, seed).await;
            let done = try_one(&mut pair).await;
            pair.close(count == 1, done).await
        });
        tried += 1;
        if let Err(what) = tried_one.unwrap() {
            println!("seed {seed} fails: {what}");
            failures.push(format!("seed {seed}: {what}"));
        }
        if failures.len() == ENOUGH {
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{tried} seeds in {seconds:.1} s, {} of them fail", failures.len());
    failures
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text}, and no number")))
}

/// Writes, flushes, compacts and compares, in a random order.
async fn try_one(pair: &mut Pair<'_>) -> Result<(), String> {
    let mut random = Random::new(pair.seed ^ 0x5117);
    for _ in 0..random.between(2, 6) {
        pair.write(random.between(1, 40)).await;
        if random.percent(50) {
            pair.flush_cassandra();
        }
        if random.percent(50) {
            pair.flush_siltstone().await;
        }
        if random.percent(30) {
            pair.compact(&mut random).await;
        }
        if random.percent(15) {
            pair.restart().await;
        }
        if random.percent(30) {
            let later = *random.one_of(&LATER);
            let rows = pair.compare(later).await?;
            reads::compare(pair, &rows, later, &mut random).await?;
        }
    }
    for later in LATER {
        let rows = pair.compare(later).await?;
        reads::compare(pair, &rows, later, &mut random).await?;
    }
    Ok(())
}
