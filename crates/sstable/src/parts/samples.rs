//! For the tests of the parsers: real files of other databases, and ways to break bytes.

use std::io::Read;
use std::path::{Path, PathBuf};

use testkit::fixtures;

use crate::Version;
use crate::parts::statistics::{Partitioner, Statistics};

/// A component that another database wrote.
pub(crate) struct RealFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) version: Version,
}

impl RealFile {
    /// Another component of the same SSTable.
    pub(crate) fn sibling(&self, component: &str) -> Option<Vec<u8>> {
        std::fs::read(self.sibling_path(component)).ok()
    }

    pub(crate) fn sibling_path(&self, component: &str) -> PathBuf {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap();
        let prefix: Vec<&str> = name.splitn(4, '-').take(3).collect();
        self.path.with_file_name(format!("{}-{component}", prefix.join("-")))
    }

    /// Whether it is of ScyllaDB's test data, where Cassandra's own habits do not hold.
    pub(crate) fn is_scyllas(&self) -> bool {
        self.path.components().any(|part| part.as_os_str() == "scylla")
    }
}

/// All files of this component.
pub(crate) fn real_files(component: &str) -> Vec<RealFile> {
    let mut files = Vec::new();
    for folder in fixtures::roots() {
        collect(&folder, component, &mut files);
    }
    files
}

fn collect(folder: &Path, component: &str, files: &mut Vec<RealFile>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap().to_owned();
        if path.is_dir() {
            collect(&path, component, files);
        } else if name.split('-').nth(3) == Some(component) {
            let version = Version::parse(&name[..2]).unwrap();
            files.push(RealFile { bytes: std::fs::read(&path).unwrap(), path, version });
        }
    }
}

/// The keys of Index.db with their offsets in it.
pub(crate) fn index_entries(index: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let mut cursor = crate::decode::Cursor::new(index);
    let mut entries = Vec::new();
    while cursor.remaining() > 0 {
        let at = cursor.position() as u64;
        entries.push((cursor.short_bytes().unwrap().to_vec(), at));
        cursor.vint().unwrap();
        cursor.vint_bytes().unwrap();
    }
    entries
}

/// The partitioner of the SSTable that a component belongs to, where it is one that is read.
pub(crate) fn partitioner(file: &RealFile) -> Option<Partitioner> {
    let path = file.sibling_path("Statistics.db");
    let statistics = Statistics::parse(&path, &std::fs::read(&path).ok()?, file.version);
    statistics.ok().map(|statistics| statistics.validation.partitioner)
}

/// Statistics.db of the SSTable that a component belongs to.
pub(crate) fn statistics(file: &RealFile) -> Statistics {
    let path = file.sibling_path("Statistics.db");
    Statistics::parse(&path, &std::fs::read(&path).unwrap(), file.version).unwrap()
}

/// What Cassandra's `sstablemetadata` says of SSTables: the path of each Statistics.db, and the text.
pub(crate) fn sstablemetadata() -> Vec<(PathBuf, String)> {
    let mut texts = Vec::new();
    let sets_of = |root: PathBuf| ["cassandra/me/small", "cassandra/oa/small"].map(|set| root.join(set));
    for set in fixtures::roots().flat_map(sets_of) {
        let Ok(archive) = std::fs::read(set.join("meta.tar.gz")) else { continue };
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(&archive[..]).read_to_end(&mut tar).unwrap();
        for text in tar_members(&tar) {
            // The first line: `SSTable: sstables/idx/.idx_v/me-1-big`.
            let Some(rest) = text.strip_prefix("SSTable: ") else { continue };
            let name = rest.lines().next().unwrap();
            texts.push((set.join(format!("{name}-Statistics.db")), text));
        }
    }
    texts
}

/// The members of a tar archive, each behind a block of 512 bytes that tells its length in octal.
fn tar_members(mut tar: &[u8]) -> Vec<String> {
    let mut members = Vec::new();
    while tar.len() >= 1024 && tar[0] != 0 {
        let digits = std::str::from_utf8(&tar[124..135]).unwrap();
        let len = usize::from_str_radix(digits, 8).unwrap();
        members.push(String::from_utf8_lossy(&tar[512..512 + len]).into_owned());
        tar = &tar[512 + len.next_multiple_of(512)..];
    }
    members
}

/// Hands on every truncation of the bytes, and the bytes with every bit of theirs flipped.
pub(crate) fn survives_corruption(bytes: &[u8], mut parse: impl FnMut(&[u8])) {
    for len in 0..bytes.len() {
        parse(&bytes[..len]);
    }
    let mut broken = bytes.to_vec();
    for at in 0..bytes.len() {
        for flip in [0xff, 0x80, 0x01, 0x10, bytes[at], !bytes[at] ^ 0x80] {
            broken[at] ^= flip;
            parse(&broken);
            broken[at] = bytes[at];
        }
    }
}
