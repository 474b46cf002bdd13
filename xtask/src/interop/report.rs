//! What passed, what failed, and what cannot be checked and why.

use std::collections::BTreeMap;
use std::fmt;

/// What is checked of each SSTable that we wrote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Check {
    /// Cassandra's `sstabledump` of it prints what our dump of it prints.
    Dump,
    /// Our dump of it is that of the original, but for positions.
    Rows,
    /// `sstableverify --extended` finds nothing.
    Verify,
    /// `nodetool import --extended-verify` takes it, and a SELECT returns what it returns of the original.
    Import,
    /// Cassandra compacts it with rows of its own; the rows are still right, and we read what it wrote.
    Compact,
    /// We compact it with the others of its table.
    Compacted,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Check::Dump => "sstabledump equals ours",
            Check::Rows => "rows of the original",
            Check::Verify => "sstableverify -e",
            Check::Import => "nodetool import -e, SELECT",
            Check::Compact => "major compaction, SELECT, dump",
            Check::Compacted => "siltstone table compact",
        })
    }
}

/// What Siltstone refuses to write since the version cannot hold it, by a part of what it says.
const REFUSALS: [(&str, &str); 3] = [
    ("has no vectors", "the version has no vectors"),
    ("has no negative ones there", "the version has no deletions before 1970"),
    ("in January 2038", "the version ends in January 2038"),
];

/// How many SSTables passed and failed; what could not be checked.
#[derive(Debug, Default)]
pub struct Report {
    counts: BTreeMap<(String, Check), Counts>,
    exceptions: BTreeMap<(String, Check, &'static str), usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    passed: usize,
    failed: usize,
}

/// Why Cassandra itself cannot do what a check asks for, if so; `file` is the name of the original Data.db.
pub fn exception(check: Check, table: &str, file: &str) -> Option<&'static str> {
    let is_index = table.contains('.');
    match check {
        Check::Dump if table == "dense2" => Some("Cassandra's dump fails on a clustering value that is null"),
        Check::Dump if is_index && !file.starts_with("oa-") => Some(
            "before oa, the type of an index's key does not say what it is of, and Cassandra's dump asks",
        ),
        Check::Import | Check::Compact if is_index => {
            Some("Cassandra imports no table of an index, but builds it anew")
        }
        _ => None,
    }
}

/// Why we do not write something, if that is as it should be.
pub fn refusal(error: &str) -> Option<&'static str> {
    REFUSALS.iter().find(|(part, _)| error.contains(part)).map(|(_, reason)| *reason)
}

impl Report {
    /// Notes how a check of some SSTables went; says so where it failed.
    pub fn note<E: fmt::Display>(
        &mut self,
        of: &Checked<'_>,
        sstables: usize,
        went: std::result::Result<(), E>,
    ) {
        let counts = self.counts.entry((of.version.to_owned(), of.check)).or_default();
        match went {
            Ok(()) => counts.passed += sstables,
            Err(error) => {
                counts.failed += sstables;
                println!("FAILED: {} {} in {}: {}: {error}", of.set, of.table, of.version, of.check);
            }
        }
    }

    /// Notes that a check cannot be made.
    pub fn except(&mut self, of: &Checked<'_>, reason: &'static str) {
        *self.exceptions.entry((of.table.to_owned(), of.check, reason)).or_default() += 1;
    }

    /// Whether something was checked, and nothing failed.
    pub fn is_good(&self) -> bool {
        !self.counts.is_empty() && self.counts.values().all(|counts| counts.failed == 0)
    }
}

/// What was checked.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    /// The set of fixtures.
    pub set: &'a str,
    /// The table.
    pub table: &'a str,
    /// The version that was written.
    pub version: &'a str,
    /// How it was checked.
    pub check: Check,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((version, check), Counts { passed, failed }) in &self.counts {
            writeln!(f, "{version:6} {:31} {passed:5} passed {failed:3} failed", check.to_string())?;
        }
        for ((table, check, reason), times) in &self.exceptions {
            writeln!(f, "not checked: {table}, {check}, {times} times: {reason}")?;
        }
        let sum = |count: fn(&Counts) -> usize| self.counts.values().map(count).sum::<usize>();
        write!(f, "{} passed, {} failed", sum(|counts| counts.passed), sum(|counts| counts.failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_count_and_excuse() {
        let mut report = Report::default();
        assert!(!report.is_good());
        let of = Checked { set: "s", table: "dense2", version: "me", check: Check::Verify };
        report.note(&of, 3, Ok::<(), String>(()));
        let dump = Checked { check: Check::Dump, ..of };
        report.except(&dump, exception(Check::Dump, "dense2", "me-1-big-Data.db").unwrap());
        assert!(report.is_good());
        let text = report.to_string();
        assert!(text.contains("    3 passed   0 failed\nnot checked: dense2"), "{text}");
        report.note(&of, 1, Err("broken"));
        assert!(!report.is_good() && report.to_string().ends_with("3 passed, 1 failed"));
    }

    #[test]
    fn exceptions_are_few() {
        assert!(exception(Check::Dump, "idx.idx_v", "oa-1-big-Data.db").is_none());
        assert!(exception(Check::Dump, "idx.idx_v", "nb-1-big-Data.db").is_some());
        assert!(exception(Check::Import, "idx", "nb-1-big-Data.db").is_none());
        assert!(exception(Check::Verify, "idx.idx_v", "nb-1-big-Data.db").is_none());
        assert!(refusal("a: version me has no vectors, such as b").is_some() && refusal("no").is_none());
    }
}
