//! Summary.db has no checksum. Whatever a flipped bit in it says of where an SSTable's partitions begin and end, a scan by several shards and
//! a compaction have all rows, or an error: none is left out, and none that was deleted comes back.

use std::path::Path;

use siltstone::database::{Database, Options, Scan, Write};
use siltstone::{Error, Result};
use sstable::Version;

const KEYS: i32 = 40;

/// Two flushes of one shard: all rows, then another version of some and the deletion of others.
fn write(folder: &Path, version: Version) {
    let database = Database::open(folder, Options { version, ..options(1) }).wait().unwrap();
    let table = "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))";
    let table = database.create_table(table).wait().unwrap();
    for key in 0..KEYS {
        (0..2).for_each(|row| table.write(Write::insert(key, row).set("v", 1)).wait().unwrap());
    }
    table.flush().wait().unwrap();
    for key in (0..KEYS).filter(|key| key % 3 > 0) {
        match key % 3 {
            1 => table.write(Write::insert(key, 1).set("v", 2)).wait().unwrap(),
            _ => table.write(Write::delete_row(key, 0)).wait().unwrap(),
        }
    }
    table.flush().wait().unwrap();
    database.close().wait().unwrap();
}

fn options(shards: usize) -> Options {
    Options { shards, direct_io: false, cache: 4 << 20, ..Options::default() }
}

/// What each row is that is asked for by its key.
fn asked_for(folder: &Path) -> Result<Vec<String>> {
    let database = Database::open(folder, options(1)).wait()?;
    let table = database.tables().remove(0);
    let all = (0..KEYS).flat_map(|key| [0, 1].map(|row| (key, row)));
    let rows = all.map(|(key, row)| {
        let found = table.get(key, row).wait()?;
        Ok(found.map_or_else(String::new, |row| format!("{:?}", row.values().collect::<Vec<_>>())))
    });
    let rows = rows.collect();
    database.close().wait()?;
    rows
}

/// What a scan by four shards has, before all is compacted and after that.
fn scanned(folder: &Path) -> Result<[Vec<String>; 2]> {
    let database = Database::open(folder, options(4)).wait()?;
    let table = database.tables().remove(0);
    let rows = || {
        let (mut rows, mut next) = (Vec::new(), None);
        loop {
            let page = table.scan(Scan::all().resume(next)).wait()?;
            rows.extend(page.rows.iter().map(|row| format!("{:?}", row.values().collect::<Vec<_>>())));
            next = page.next;
            if next.is_none() {
                return Ok::<_, Error>(rows);
            }
        }
    };
    let before = rows()?;
    table.compact().wait()?;
    let after = rows()?;
    database.close().wait()?;
    Ok([before, after])
}

/// A copy of all files, in which one bit of a file is another one.
fn copy_damaged(from: &Path, to: &Path, damaged: &Path, (at, bit): (usize, u8)) {
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_damaged(&entry, &target, damaged, (at, bit));
            continue;
        }
        let mut bytes = std::fs::read(&entry).unwrap();
        if entry == damaged {
            bytes[at] ^= 1 << bit;
        }
        std::fs::write(&target, bytes).unwrap();
    }
}

fn summaries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { summaries(&path) } else { vec![path] });
    found.filter(|path| path.to_string_lossy().ends_with("-Summary.db")).collect()
}

#[test]
fn no_row_is_lost_by_a_wrong_end() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Version::Me);
    let all = summaries(folder.path());
    assert_eq!(all.len(), 2);
    let sound = tempfile::tempdir().unwrap();
    copy_damaged(folder.path(), sound.path(), Path::new(""), (0, 0));
    let [expected, compacted] = scanned(sound.path()).unwrap();
    assert!(expected == compacted && expected.len() as i32 > KEYS);
    let (mut wrong, mut told) = (Vec::new(), 0);
    for summary in &all {
        let len = std::fs::metadata(summary).unwrap().len() as usize;
        // The entry, the first key, the last key.
        for damage in (24..len).flat_map(|at| [0, 2, 7].map(|bit| (at, bit))) {
            let copy = tempfile::tempdir().unwrap();
            copy_damaged(folder.path(), copy.path(), summary, damage);
            match scanned(copy.path()) {
                Ok(rows) if rows.iter().all(|rows| *rows == expected) => {}
                Ok(_) => wrong.push((summary.clone(), damage)),
                Err(_) => told += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "wrong rows, and no error: {wrong:?}");
    assert!(told > 0);
}

/// Since `oa` the ends are told by Statistics.db too, which has checksums.
#[test]
fn no_row_is_beyond_a_wrong_end() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Version::Oa);
    let sound = tempfile::tempdir().unwrap();
    copy_damaged(folder.path(), sound.path(), Path::new(""), (0, 0));
    let (expected, mut told) = (asked_for(sound.path()).unwrap(), 0);
    for summary in &summaries(folder.path()) {
        let len = std::fs::metadata(summary).unwrap().len() as usize;
        // The last key, which has four bytes, behind its length.
        for damage in (len - 4..len).flat_map(|at| [0, 3, 7].map(|bit| (at, bit))) {
            let copy = tempfile::tempdir().unwrap();
            copy_damaged(folder.path(), copy.path(), summary, damage);
            match asked_for(copy.path()) {
                Ok(rows) => assert_eq!(rows, expected, "{damage:?}"),
                Err(_) => told += 1,
            }
        }
    }
    assert!(told > 0);
}
