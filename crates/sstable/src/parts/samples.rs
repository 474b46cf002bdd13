//! For the tests of the parsers: real files of other databases, and ways to break bytes.

use std::path::{Path, PathBuf};

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
}

/// All files of this component, from the fixtures beside the workspace; none where there are none.
pub(crate) fn real_files(component: &str) -> Vec<RealFile> {
    let mut files = Vec::new();
    for folder in ["../../../shared/fixtures", "tests/fixtures"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), component, &mut files);
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
