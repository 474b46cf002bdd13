//! SSTables that other databases wrote, each with what Cassandra's `sstabledump` prints of it.
//!
//! ```text
//! fixtures/cassandra/<version>/<set>/sstables/<table>/…-Data.db       dump/<table>__….json.gz
//! fixtures/cassandra/<version>/<set>/compacted/sstables/<table>/…     dump/compacted__sstables__<table>__….json.gz
//! fixtures/scylla/…/…-Data.db                                         ….dump.json.gz beside it
//! ```
//!
//! The repository has the first of these lines; a larger collection, which may be beside it, has all three.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

/// Where fixtures are, from this crate's folder: those of the project, which are always there, and a larger collection beside it, which may
/// be missing.
const ROOTS: [&str; 2] = ["../../fixtures", "../../../shared/fixtures"];

/// So many SSTables are in the repository, or more: a sweep over fewer would be told as if it had tried all.
const AT_LEAST: usize = 150;

/// Cassandra's `sstabledump` gives up on these without an error of its own: on a clustering value that is
/// null, and on index tables whose key it takes for one of another type.
const BROKEN_DUMPS: [&str; 2] = ["dense2__", "__.idx_v__"];

/// An SSTable with its dump.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fixture {
    /// Its Data.db.
    pub data: PathBuf,
    /// What Cassandra's dump of it is, where there is one that went well.
    pub dump: Option<PathBuf>,
    /// A short name for messages.
    pub name: String,
}

/// All fixtures, those of both collections.
///
/// # Panics
/// If those of the repository are not there.
pub fn all() -> Vec<Fixture> {
    let mut fixtures: Vec<Fixture> = Vec::new();
    for root in roots() {
        let mut files = Vec::new();
        collect(&root, &mut files);
        files.sort();
        fixtures.extend(files.iter().map(|data| Fixture::new(&root, data)));
    }
    let own = fixtures.iter().filter(|fixture| fixture.data.starts_with(repository())).count();
    assert!(own >= AT_LEAST, "the repository has but {own} fixtures");
    fixtures
}

/// The folder of a table of the repository, such as `cassandra/nb/small/sstables/coll`.
///
/// # Panics
/// If it is not there.
pub fn table(path: &str) -> PathBuf {
    let folder = repository().join(path);
    assert!(folder.is_dir(), "the fixture {path} is not there");
    folder
}

/// The folder of a table of either collection, where it is there; otherwise a note on stdout tells.
pub fn optional(path: &str) -> Option<PathBuf> {
    let found = roots().map(|root| root.join(path)).find(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped: the fixture {path} is not there");
    }
    found
}

/// The folders of sets whose rows are known, such as `cassandra/nb/small`: they have `expected/`, `schema.cql` and
/// `info.json`. A set of both collections comes twice, each time with the tables of one.
///
/// # Panics
/// If those of the repository are not there.
pub fn sets_with_rows() -> Vec<PathBuf> {
    let folders = |root: PathBuf| {
        let versions = fs::read_dir(root.join("cassandra")).into_iter().flatten().flatten();
        versions.flat_map(|version| fs::read_dir(version.path()).into_iter().flatten().flatten())
    };
    let mut sets: Vec<PathBuf> = roots().flat_map(folders).map(|set| set.path()).collect();
    sets.retain(|set| set.join("expected").is_dir());
    sets.sort();
    let own = sets.iter().filter(|set| set.starts_with(repository())).count();
    assert!(own >= 2, "the repository has but {own} sets whose rows are known");
    sets
}

/// The folders of the collections that are there.
pub fn roots() -> impl Iterator<Item = PathBuf> {
    ROOTS.into_iter().filter_map(root)
}

fn repository() -> PathBuf {
    root(ROOTS[0]).expect("the repository has fixtures")
}

fn root(root: &str) -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(root).canonicalize().ok()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.as_os_str().as_encoded_bytes().ends_with(b"-Data.db") {
            files.push(path);
        }
    }
}

impl Fixture {
    fn new(root: &Path, data: &Path) -> Fixture {
        let name = data.strip_prefix(root).unwrap_or(data).display().to_string();
        let name = name.trim_end_matches("-Data.db").to_owned();
        let dump = dump_of(root, &name).filter(|dump| dump.is_file() && !is_broken(dump));
        Fixture { data: data.to_path_buf(), dump, name }
    }

    /// The dump's text, if there is one.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn dump_text(&self) -> Option<String> {
        let file = fs::File::open(self.dump.as_ref()?).expect("a dump can be opened");
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).expect("a dump is compressed text");
        Some(text)
    }

    /// The dump, if there is one.
    ///
    /// # Panics
    /// If it cannot be read or is no JSON.
    pub fn dump(&self) -> Option<Value> {
        let text = self.dump_text()?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }
}

/// Where the dump of the SSTable `name` would be.
fn dump_of(root: &Path, name: &str) -> Option<PathBuf> {
    let mut parts = name.split('/');
    if parts.next()? != "cassandra" {
        return Some(root.join(format!("{name}.dump.json.gz")));
    }
    let set = Path::new("cassandra").join(parts.next()?).join(parts.next()?);
    let rest: Vec<&str> = parts.collect();
    let rest = rest.strip_prefix(&["sstables"]).unwrap_or(&rest);
    Some(root.join(set).join("dump").join(format!("{}.json.gz", rest.join("__"))))
}

/// Cassandra 5.0 dumps index tables of its own version without trouble.
fn is_broken(dump: &Path) -> bool {
    let name = dump.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_own = name.contains("__oa-") && !name.contains(BROKEN_DUMPS[0]);
    !is_own && BROKEN_DUMPS.iter().any(|part| name.contains(part))
}
