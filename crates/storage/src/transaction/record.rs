//! A line of a transaction log, as Cassandra writes it.
//!
//! ```text
//! ADD:[/d/ks/t-1/nb-7-big-,0,8][2736087233]
//! REMOVE:[/d/ks/t-1/nb-5-big-,1700000000123,9][3024202612]
//! COMMIT:[,0,0][2613697770]
//! ABORT:[,0,0][737437348]
//!         │                │             │  └ checksum, decimal
//!         │                │             └ how many files there are; of a new SSTable any number
//!         │                └ when the last of them was written, in milliseconds; 0 of a new SSTable
//!         └ what the paths of all its files begin with: absolute, without links
//!
//! checksum: CRC32 of the path, the word, i32 low half of the time, i32 high half, i32 files; big-endian
//! ```
//!
//! The words are read in any case; the checksum is of the one in capitals.

use std::fmt;
use std::path::Path;

/// What a line says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    kind: Kind,
    /// What the paths of the SSTable's files begin with; empty in a last line.
    name: String,
    /// Milliseconds since the Unix epoch.
    update_time: i64,
    files: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Add,
    Remove,
    Commit,
    Abort,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Add, Kind::Remove, Kind::Commit, Kind::Abort];

    fn word(self) -> &'static str {
        match self {
            Kind::Add => "ADD",
            Kind::Remove => "REMOVE",
            Kind::Commit => "COMMIT",
            Kind::Abort => "ABORT",
        }
    }

    fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| word.eq_ignore_ascii_case(kind.word()))
    }
}

impl Record {
    pub(super) fn add(name: String) -> Record {
        Record { kind: Kind::Add, name, update_time: 0, files: 0 }
    }

    pub(super) fn remove(name: String, update_time: i64, files: i32) -> Record {
        Record { kind: Kind::Remove, name, update_time, files }
    }

    pub(super) fn commit() -> Record {
        Record { kind: Kind::Commit, name: String::new(), update_time: 0, files: 0 }
    }

    pub(super) fn abort() -> Record {
        Record { kind: Kind::Abort, ..Record::commit() }
    }

    /// Whether both say the same of one SSTable, whatever they know of its files.
    pub(super) fn is_about_the_same(&self, other: &Record) -> bool {
        self.kind == other.kind && file_prefix(&self.name) == file_prefix(&other.name)
    }

    pub(super) fn is_add(&self) -> bool {
        self.kind == Kind::Add
    }

    pub(super) fn is_remove(&self) -> bool {
        self.kind == Kind::Remove
    }

    pub(super) fn is_commit(&self) -> bool {
        self.kind == Kind::Commit
    }

    /// Whether nothing may follow.
    pub(super) fn is_last(&self) -> bool {
        matches!(self.kind, Kind::Commit | Kind::Abort)
    }

    /// What the paths of the SSTable's files begin with.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// When the last of its files was written, in milliseconds since the Unix epoch.
    pub(super) fn update_time(&self) -> i64 {
        self.update_time
    }

    /// How many files it had.
    pub(super) fn files(&self) -> i32 {
        self.files
    }

    /// Decodes a line; what is wrong with it otherwise.
    pub(super) fn parse(line: &str) -> Result<Record, String> {
        let (record, checksum) = split(line).ok_or_else(|| format!("this is not a record: {line:?}"))?;
        if i64::from(record.checksum()) != checksum {
            return Err(format!("its checksum should be {}: {line:?}", record.checksum()));
        }
        Ok(record)
    }

    fn checksum(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.name.as_bytes());
        crc.update(self.kind.word().as_bytes());
        crc.update(&(self.update_time as i32).to_be_bytes());
        crc.update(&((self.update_time >> 32) as i32).to_be_bytes());
        crc.update(&self.files.to_be_bytes());
        crc.finalize()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { kind, name, update_time, files } = self;
        write!(f, "{}:[{name},{update_time},{files}][{}]", kind.word(), self.checksum())
    }
}

/// Whether a line begins like a record, however it goes on.
pub(super) fn looks_like_one(line: &str) -> bool {
    line.split_once(":[").is_some_and(|(word, _)| Kind::parse(word).is_some())
}

/// What the names of an SSTable's files begin with.
pub(super) fn file_prefix(name: &str) -> &str {
    Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// A record and the checksum that stands behind it.
fn split(line: &str) -> Option<(Record, i64)> {
    let (word, rest) = line.split_once(":[")?;
    let kind = Kind::parse(word)?;
    let (fields, checksum) = rest.strip_suffix(']')?.rsplit_once("][")?;
    let &[name, update_time, files] = &fields.split(',').collect::<Vec<_>>()[..] else {
        return None;
    };
    let (update_time, files): (i64, i32) = (update_time.parse().ok()?, files.parse().ok()?);
    let has_file = matches!(kind, Kind::Add | Kind::Remove);
    // As Cassandra does, what a record of this kind does not have is not kept.
    let record = Record {
        kind,
        name: if has_file { name.to_owned() } else { String::new() },
        update_time: if kind == Kind::Remove { update_time } else { 0 },
        files: if has_file { files } else { 0 },
    };
    Some((record, checksum.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: &str = include_str!("record/cassandra.log");

    #[test]
    fn lines_of_cassandra_come_back() {
        let records: Vec<Record> = LINES.lines().map(|line| Record::parse(line).unwrap()).collect();
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        assert_eq!(lines, LINES);
        let [add, remove, .., commit] = &records[..] else { panic!("{records:?}") };
        assert!(add.is_add() && file_prefix(add.name()).ends_with("-big-"));
        assert!(remove.is_remove() && remove.update_time() > 1_500_000_000_000 && remove.files() > 6);
        assert!(commit.is_commit() && commit.is_last());
    }

    #[test]
    fn words_are_read_in_any_case() {
        let line = Record::remove("/t/nb-1-big-".into(), 7, 8).to_string();
        assert_eq!(Record::parse(&line.replace("REMOVE", "Remove")), Record::parse(&line));
    }

    #[test]
    fn what_is_damaged_is_told() {
        let line = Record::remove("/t/nb-1-big-".into(), 1 << 41 | 5, 8).to_string();
        for at in 0..line.len() {
            for bit in 0..7 {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let damaged = String::from_utf8(bytes).unwrap();
                let is_same_word = damaged.eq_ignore_ascii_case(&line) && damaged[6..] == line[6..];
                assert!(Record::parse(&damaged).is_err() || is_same_word, "{damaged}");
            }
            assert!(Record::parse(&line[..at]).is_err());
        }
        for line in ["", "ADD", "ADD:[]", "ADD:[/t/nb-1-big-,0][1]", "KEEP:[,0,0][1]", "ADD:[a,b,0,0][1]"] {
            assert!(Record::parse(line).unwrap_err().starts_with("this is not a record"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn records_come_back(name in "/[a-z/\\]\\[é]{0,9}", update_time in any::<i64>(), files in any::<i32>()) {
            for record in [
                Record::add(name.clone()), Record::remove(name, update_time, files), Record::commit(), Record::abort(),
            ] {
                let line = record.to_string();
                prop_assert!(looks_like_one(&line));
                prop_assert_eq!(Record::parse(&line), Ok(record));
            }
        }
    }
}
