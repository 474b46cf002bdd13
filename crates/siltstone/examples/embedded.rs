//! A program with a database of its own: it counts the words of texts, and tells which of them were seen last.
//!
//! ```text
//! cargo run --example embedded -- /tmp/words
//! ```

use std::error::Error;

use siltstone::database::{Batch, Database, Options, Scan, Slice, Write};

const SEEN: &str = "CREATE TABLE IF NOT EXISTS words.seen (word text, at timestamp, line text, PRIMARY KEY (word, at)) \
    WITH CLUSTERING ORDER BY (at DESC) AND default_time_to_live = 86400";
const COUNTS: &str = "CREATE TABLE IF NOT EXISTS words.counts (word text PRIMARY KEY, n counter)";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = match std::env::args().nth(1) {
        Some(folder) => folder.into(),
        None => std::env::temp_dir().join("siltstone-words"),
    };
    // An open SSTable is two files or more.
    siltstone::allow_many_files()?;
    let database = Database::open(folder, Options::default()).wait()?;
    let (seen, counts) = (database.create_table(SEEN).wait()?, database.create_table(COUNTS).wait()?);
    let text = ["silt settles in layers", "layers are pressed into stone", "stone keeps what silt was"];
    for (number, line) in (0_i64..).zip(text) {
        let at = siltstone::now() * 1000 + number;
        let words = line.split(' ');
        seen.write(words.clone().map(|word| Write::insert(word, at).set("line", line)).collect::<Batch>())
            .wait()?;
        for word in words {
            counts.add(word, (), [("n", 1)]).wait()?;
        }
    }
    let last = seen.slice("silt", Slice::all().limit(1)).wait()?;
    println!("seen last: {}", last.rows[0].get_as::<String>("line")?.unwrap_or_default());
    let mut next = None;
    loop {
        let page = counts.scan(Scan::all().limit(100).resume(next)).wait()?;
        for row in &page.rows {
            println!("{}", row.to_json()?);
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok(database.close().wait()?)
}
