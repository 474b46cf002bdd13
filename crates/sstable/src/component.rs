//! The files of an SSTable and their names.
//!
//! ```text
//! me-1-big-Data.db            version - generation - format - component
//! nb-3gyd_0wz8_01bn52h3rn8frpo3ut-big-TOC.txt
//! ```
//!
//! All files of one SSTable lie in one folder and differ in the component only. A folder whose name
//! begins with a dot holds the table of a secondary index. TOC.txt names the components, one a line;
//! it is written last, and so an SSTable that has one is whole.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use runtime::{Disk, IoClass};

use crate::{Error, Result, Version};

/// The format in the names of all versions read here.
const FORMAT: &str = "big";

/// A file of an SSTable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Component {
    /// The rows.
    Data,
    /// Where each partition is in Data.db, and where in large ones each block.
    Index,
    /// A sample of Index.db.
    Summary,
    /// The bloom filter.
    Filter,
    /// The columns, and what is in the file as a whole.
    Statistics,
    /// Where the chunks of a compressed Data.db stand.
    CompressionInfo,
    /// The checksums of an uncompressed Data.db.
    Crc,
    /// The checksum of Data.db as a whole.
    Digest,
    /// Where to look in Index.db, for reads with fewer requests: known to nobody else, and never missed.
    Fences,
    /// The bloom filter once more, in pages: known to nobody else, and never missed.
    BloomPages,
    /// Which rows large partitions have: known to nobody else, and never missed.
    RowFilter,
    /// The names of the components.
    Toc,
    /// One that is not known here, such as `Scylla.db` or that of an index: legal, kept, not read.
    Other(String),
}

/// Known components in the order in which the files of a new SSTable are made durable. Once the last of
/// them is there, so are all others; unknown ones come before it.
pub const SEALING_ORDER: [Component; 12] = [
    Component::Data,
    Component::Index,
    Component::Filter,
    Component::CompressionInfo,
    Component::Crc,
    Component::Digest,
    Component::Summary,
    Component::Fences,
    Component::BloomPages,
    Component::RowFilter,
    Component::Statistics,
    Component::Toc,
];

/// Reads of Data.db.
pub const DATA_IO: IoClass = IoClass::new(1);
/// Reads of Index.db.
pub const INDEX_IO: IoClass = IoClass::new(2);
/// Reads of Filter.db, BloomPages.db and RowFilter.db.
pub const FILTER_IO: IoClass = IoClass::new(3);
/// Reads of Summary.db.
pub const SUMMARY_IO: IoClass = IoClass::new(4);
/// Reads of Fences.db.
pub const FENCES_IO: IoClass = IoClass::new(6);
/// Reads of all other components: each once, when an SSTable is opened, but for CRC.db, which scans read by pages, and for a
/// CompressionInfo.db that is not small, which all reads do.
pub const METADATA_IO: IoClass = IoClass::new(5);

impl Component {
    /// The component of that name; never fails, as unknown names are legal.
    pub fn parse(name: &str) -> Component {
        let known = SEALING_ORDER.into_iter().find(|component| component.name() == name);
        known.unwrap_or_else(|| Component::Other(name.to_owned()))
    }

    /// The last part of the file's name.
    pub fn name(&self) -> &str {
        match self {
            Component::Data => "Data.db",
            Component::Index => "Index.db",
            Component::Summary => "Summary.db",
            Component::Filter => "Filter.db",
            Component::Statistics => "Statistics.db",
            Component::CompressionInfo => "CompressionInfo.db",
            Component::Crc => "CRC.db",
            Component::Digest => "Digest.crc32",
            Component::Fences => "Fences.db",
            Component::BloomPages => "BloomPages.db",
            Component::RowFilter => "RowFilter.db",
            Component::Toc => "TOC.txt",
            Component::Other(name) => name,
        }
    }

    /// Decodes TOC.txt: the components in the order in which it names them, each once. Blank lines are
    /// tolerated.
    ///
    /// # Errors
    /// Where a line is not the name of a file in the same folder.
    pub fn parse_toc(path: &Path, bytes: &[u8]) -> Result<Vec<Component>> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Error::corrupt(path, error.valid_up_to() as u64, "a component's name is not UTF-8")
        })?;
        let names = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        if let Some(name) = names().find(|name| name.contains(['/', '\\', '\0'])) {
            let at = name.as_ptr() as usize - text.as_ptr() as usize;
            return Err(Error::corrupt(path, at as u64, format!("{name:?} is not the name of a component")));
        }
        Ok(distinct(names()))
    }

    /// The text of TOC.txt for an SSTable of these components: each on a line of its own, known ones in the
    /// order in which they are made durable, then the others by name, and TOC.txt itself, whether it is
    /// among them or not. Cassandra, to which the order means nothing, writes them in that of a hash map.
    pub fn toc_text(components: &[Component]) -> String {
        let known = SEALING_ORDER.iter().filter(|&known| *known != Component::Toc);
        let listed = known.filter(|known| known.is_listed() && components.contains(known));
        let mut others: Vec<_> = components.iter().filter(|component| component.is_other()).collect();
        others.sort();
        others.dedup();
        let all = listed.chain(others).chain([&Component::Toc]);
        all.flat_map(|component| [component.name(), "\n"]).collect()
    }

    /// Whether TOC.txt names it where it is there. What is our own comes and goes while the other files stay as they are.
    pub fn is_listed(&self) -> bool {
        !matches!(self, Component::Fences | Component::BloomPages | Component::RowFilter)
    }

    fn is_other(&self) -> bool {
        matches!(self, Component::Other(_))
    }

    /// Under which class its reads are counted.
    pub fn io_class(&self) -> IoClass {
        match self {
            Component::Data => DATA_IO,
            Component::Index => INDEX_IO,
            Component::Filter | Component::BloomPages | Component::RowFilter => FILTER_IO,
            Component::Summary => SUMMARY_IO,
            Component::Fences => FENCES_IO,
            _ => METADATA_IO,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which SSTable a file belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Descriptor {
    /// The folder.
    pub dir: PathBuf,
    /// The version of the format.
    pub version: Version,
    /// A number, or a time-based id such as `3gyd_0wz8_01bn52h3rn8frpo3ut`.
    pub generation: String,
}

impl Descriptor {
    /// The SSTable that a file belongs to, any of its components.
    ///
    /// # Errors
    /// Where it is not the name of an SSTable's file, or of one in a version that is not read.
    pub fn parse(path: &Path) -> Result<Descriptor> {
        Descriptor::parse_component(path).map(|(descriptor, _)| descriptor)
    }

    /// The SSTable that a file belongs to, and which component it is.
    ///
    /// # Errors
    /// Those of [`Descriptor::parse`].
    pub fn parse_component(path: &Path) -> Result<(Descriptor, Component)> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let (descriptor, component) = parse_name(name).map_err(|what| Error::unsupported(path, what))?;
        Ok((Descriptor { dir, ..descriptor }, component))
    }

    /// What the names take in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.dir.as_os_str().len() + self.generation.len()
    }

    /// The name of a component's file.
    pub fn file_name(&self, component: &Component) -> String {
        format!("{}-{}-{FORMAT}-{component}", self.version, self.generation)
    }

    /// The path of a component's file.
    pub fn path_of(&self, component: &Component) -> PathBuf {
        self.dir.join(self.file_name(component))
    }

    /// Whether this is the table of a secondary index.
    pub fn is_index_table(&self) -> bool {
        self.dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    }

    /// The components that are in the folder: what stands in for a missing TOC.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn list(&self, disk: &Disk) -> Result<Vec<Component>> {
        let here = Path::new(".");
        let paths = disk.list(if self.dir.as_os_str().is_empty() { here } else { &self.dir })?;
        let names = paths.iter().filter_map(|path| path.file_name().and_then(OsStr::to_str));
        Ok(self.components_among(names))
    }

    /// The components among the files of the folder, by their names: what stands in for a missing TOC. Files that are
    /// still being written, `….tmp`, are left out.
    pub fn components_among<'a>(&self, file_names: impl IntoIterator<Item = &'a str>) -> Vec<Component> {
        let prefix = self.file_name(&Component::Other(String::new()));
        let names = file_names.into_iter().filter_map(|name| name.strip_prefix(&prefix));
        distinct(names.filter(|name| !name.is_empty() && !name.ends_with(".tmp")))
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{FORMAT}", self.version, self.generation)
    }
}

/// What is wrong with an SSTable [without its data](without_data).
pub const MISSED: &str = "this file is missing, and others of the SSTable are there: its rows are missed";

/// The SSTables of which the files of a folder are the index, but not the data: it may be a copy that is not whole.
pub fn without_data(files: &[PathBuf]) -> Vec<Descriptor> {
    let there: BTreeSet<&PathBuf> = files.iter().collect();
    let indexes = files.iter().filter(|file| file.as_os_str().as_encoded_bytes().ends_with(b"-Index.db"));
    let named = indexes.filter_map(|file| Descriptor::parse(file).ok());
    named.filter(|name| !there.contains(&name.path_of(&Component::Data))).collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Component> {
    let mut components: Vec<Component> = Vec::new();
    for component in names.map(Component::parse) {
        if !components.contains(&component) {
            components.push(component);
        }
    }
    components
}

/// A descriptor without its folder.
fn parse_name(name: &str) -> std::result::Result<(Descriptor, Component), String> {
    let parts: Vec<&str> = name.splitn(4, '-').collect();
    let &[version, generation, format, component] = &parts[..] else {
        return Err(not_a_name(name));
    };
    if !is_generation(generation) || !is_version(version) || component.is_empty() {
        return Err(not_a_name(name));
    }
    if format != FORMAT && format != "bti" {
        let unknown = || format!("its format is {format:?}: only {FORMAT:?} is read");
        return Err(older_name(name).unwrap_or_else(unknown));
    }
    match Version::parse(version).filter(|_| format == FORMAT) {
        Some(version) => {
            let descriptor = Descriptor { dir: PathBuf::new(), version, generation: generation.to_owned() };
            Ok((descriptor, Component::parse(component)))
        }
        None => Err(Version::why_unread(version, format)),
    }
}

fn not_a_name(name: &str) -> String {
    let strange = || "this is not the name of an SSTable's file, such as me-1-big-Data.db".to_owned();
    older_name(name).unwrap_or_else(strange)
}

/// A number, or `dddd_dddd_` and 18 more digits in base 36.
fn is_generation(generation: &str) -> bool {
    let is_number = !generation.is_empty() && generation.bytes().all(|byte| byte.is_ascii_digit());
    let is_id = generation.len() == 28
        && generation.bytes().enumerate().all(|(at, byte)| match at {
            4 | 9 => byte == b'_',
            _ => byte.is_ascii_alphanumeric(),
        });
    is_number || is_id
}

fn is_version(version: &str) -> bool {
    version.len() == 2 && version.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// What to say of the names of Cassandra 2.1 and older: `keyspace-table-ka-1-Data.db`, at times with
/// `tmp` in the middle.
fn older_name(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('-').collect();
    match &parts[..] {
        [_, _, version, generation, _] | [_, _, _, version, generation, _]
            if is_version(version) && is_generation(generation) =>
        {
            Some(Version::why_unread(version, FORMAT))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn parse(path: &str) -> Result<(Descriptor, Component)> {
        Descriptor::parse_component(Path::new(path))
    }

    fn error_of(path: &str) -> String {
        parse(path).unwrap_err().to_string()
    }

    #[test]
    fn names_come_back() {
        let paths = [
            ("ks/t-1/me-1-big-Data.db", Version::Me, "1", Component::Data),
            ("oa-12-big-CRC.db", Version::Oa, "12", Component::Crc),
            (
                "/t/nb-3gyd_0wz8_01bn52h3rn8frpo3ut-big-TOC.txt",
                Version::Nb,
                "3gyd_0wz8_01bn52h3rn8frpo3ut",
                Component::Toc,
            ),
            ("mc-7-big-Digest.crc32", Version::Mc, "7", Component::Digest),
            ("me-1-big-Scylla.db", Version::Me, "1", Component::Other("Scylla.db".into())),
            (
                "nb-1-big-SAI+aa+idx+Meta-x.db",
                Version::Nb,
                "1",
                Component::Other("SAI+aa+idx+Meta-x.db".into()),
            ),
        ];
        for (path, version, generation, expected) in paths {
            let (descriptor, component) = parse(path).unwrap();
            assert_eq!((descriptor.version, &descriptor.generation[..]), (version, generation));
            assert_eq!(component, expected);
            assert_eq!(descriptor.path_of(&component), Path::new(path));
        }
        assert_eq!(parse("x/me-3-big-Index.db").unwrap().0.to_string(), "me-3-big");
    }

    #[test]
    fn every_component_has_its_name() {
        for component in SEALING_ORDER {
            assert_eq!(Component::parse(component.name()), component);
        }
        assert_eq!(SEALING_ORDER.last(), Some(&Component::Toc));
    }

    #[test]
    fn index_tables_lie_in_hidden_folders() {
        let is_index = |path: &str| parse(path).unwrap().0.is_index_table();
        assert!(is_index("ks/t/.idx_v/me-1-big-Data.db"));
        assert!(
            !is_index("ks/t/me-1-big-Data.db")
                && !is_index("./me-1-big-Data.db")
                && !is_index("me-1-big-Data.db")
        );
        assert!(!is_index("../me-1-big-Data.db"));
    }

    #[test]
    fn what_is_not_read_is_named() {
        for version in ["la", "lb", "ma", "mb"] {
            let error = error_of(&format!("t/{version}-1-big-Data.db"));
            assert!(error.starts_with(&format!(
                "t/{version}-1-big-Data.db: it is of version {version}, which is too old"
            )));
        }
        assert!(error_of("ks-t-ka-1-Data.db").contains("it is of version ka, which is too old"));
        assert!(error_of("ks-t-tmp-jb-22-Index.db").contains("it is of version jb, which is too old"));
        assert!(error_of("pa-1-big-Data.db").contains("it is of version pa, which is too new: mc, md"));
        assert!(error_of("zz-1-big-Data.db").contains("its version is \"zz\", which is not known"));
        assert!(error_of("da-1-bti-Data.db").contains("version da in format BTI: BTI is not read"));
        assert!(error_of("ms-1-big-Data.db").contains("BTI is not read"));
        assert!(error_of("me-1-huge-Data.db").contains("its format is \"huge\""));
        for wrong in [
            "Data.db",
            "",
            "/",
            "..",
            "me-1-big",
            "me-1-big-",
            "me-x-big-Data.db",
            "me--big-Data.db",
            "manifest.json",
        ] {
            assert!(error_of(wrong).contains("not the name of an SSTable's file"), "{wrong}");
        }
    }

    #[test]
    fn a_toc_names_components() {
        let path = Path::new("me-1-big-TOC.txt");
        let toc = Component::parse_toc(path, b"Data.db\n\nTOC.txt\r\n Scylla.db\nData.db").unwrap();
        assert_eq!(toc, [Component::Data, Component::Toc, Component::Other("Scylla.db".into())]);
        assert_eq!(Component::parse_toc(path, b"").unwrap(), []);
        let error = Component::parse_toc(path, b"Data.db\n../../etc/passwd").unwrap_err().to_string();
        assert_eq!(
            error,
            "me-1-big-TOC.txt: corrupt at offset 8: \"../../etc/passwd\" is not the name of a component"
        );
        assert!(Component::parse_toc(path, b"Data.db\n\xff").unwrap_err().to_string().contains("offset 8"));
    }

    #[test]
    fn a_toc_is_written_in_one_order() {
        let other = |name: &str| Component::Other(name.to_owned());
        let components =
            [other("SAI+b"), Component::Statistics, other("SAI+a"), Component::Data, other("SAI+b")];
        let text = Component::toc_text(&components);
        assert_eq!(text, "Data.db\nStatistics.db\nSAI+a\nSAI+b\nTOC.txt\n");
        let listed = SEALING_ORDER.iter().filter(|component| component.is_listed()).count();
        assert_eq!(Component::toc_text(&SEALING_ORDER).lines().count(), listed);
    }

    #[test]
    fn a_folder_stands_in_for_a_toc() {
        let (descriptor, _) = parse("t/me-1-big-Data.db").unwrap();
        let names = [
            "me-1-big-Data.db",
            "me-11-big-Index.db",
            "mc-1-big-Index.db",
            "me-1-big-Filter.db",
            "me-1-big-Summary.db.tmp",
            "me-1-big-",
            "manifest.json",
        ];
        assert_eq!(descriptor.components_among(names), [Component::Data, Component::Filter]);
    }

    #[test]
    fn real_tocs_and_names() {
        for file in crate::parts::samples::real_files("TOC.txt") {
            let (descriptor, component) = Descriptor::parse_component(&file.path).unwrap();
            assert_eq!((component, descriptor.version), (Component::Toc, file.version));
            let components = Component::parse_toc(&file.path, &file.bytes).unwrap();
            let text = Component::toc_text(&components);
            let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            let (ours, theirs) = (sorted(&text), sorted(std::str::from_utf8(&file.bytes).unwrap()));
            assert_eq!((ours, text.len()), (theirs, file.bytes.len()), "{}", file.path.display());
            for component in components {
                let path = descriptor.path_of(&component);
                assert!(
                    path.exists() || path.components().any(|part| part.as_os_str() == "scylla"),
                    "{}",
                    path.display()
                );
            }
        }
    }

    proptest! {
        #[test]
        fn never_panics(name: String, bytes: Vec<u8>) {
            drop(parse(&name));
            drop(parse(&format!("me-1-{name}")));
            drop(Component::parse_toc(Path::new("t"), &bytes));
        }
    }
}
