//! Which SSTables a path names.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runtime::Disk;
use sstable::Version;
use sstable::component::{Component, Descriptor, MISSED, without_data};

use crate::error::{Error, Result};

/// The file in a table's folder that says what it is.
pub(crate) const SCHEMA: &str = "schema.cql";

/// The data files that a path names. The path is a file of an SSTable, the beginning of its files' names, such as `oa-7-big`, or a folder.
///
/// For a folder these are all of its SSTables, in the order of their generations, without those of inner folders. Skipped are files that
/// belong to no SSTable, SSTables that are still being written, and those that a change which was cut off leaves ([`passed_over`]).
///
/// # Errors
/// If there is nothing at the path, no SSTable in the folder, or one in a version that is not read.
pub async fn data_files(disk: &Disk, path: &Path) -> Result<Vec<PathBuf>> {
    each_data_file(disk, path).await.into_iter().map(|(file, found)| found.map(|_| file)).collect()
}

/// The data files of a folder that do not count: its transaction logs say that a change of SSTables, by Cassandra or by a database here,
/// was cut off. They are new SSTables that were not complete, or old ones whose rows are in new ones.
///
/// # Errors
/// What the operating system says.
pub async fn passed_over(disk: &Disk, folder: &Path) -> Result<PassedOver> {
    let mut passed_over = PassedOver::default();
    if !disk.is_dir(folder) {
        return Ok(passed_over);
    }
    let files = disk.list(folder).map_err(sstable::Error::from)?;
    for of_log in storage::transaction::passed_over(disk, folder).await? {
        match of_log.prefixes {
            Ok(prefixes) => passed_over.prefixes.extend(prefixes),
            Err(error) => passed_over.wrong.push((of_log.log, error.into())),
        }
    }
    let none = files.iter().filter(|file| is_data(file) && passed_over.has(file));
    passed_over.files = none.cloned().collect();
    Ok(passed_over)
}

/// What does not count in a folder.
#[derive(Debug, Default)]
pub struct PassedOver {
    /// Data files that do not count.
    pub files: Vec<PathBuf>,
    /// Logs that do not say which files count.
    pub wrong: Vec<(PathBuf, Error)>,
    /// How the names of files begin that do not count.
    prefixes: Vec<String>,
}

impl PassedOver {
    fn has(&self, file: &Path) -> bool {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// The data files that a path names, as [`data_files`], but each with what keeps it from being read. A path that
/// names none stands for itself. Those in a version that is not read come last, and logs that leave open which files count.
pub async fn each_data_file(disk: &Disk, path: &Path) -> Vec<(PathBuf, Result<Descriptor>)> {
    let file_of = |descriptor: &Descriptor| descriptor.path_of(&Component::Data);
    if !disk.is_dir(path) {
        return match single(disk, path) {
            Ok(descriptor) => vec![(file_of(&descriptor), Ok(descriptor))],
            Err(error) => vec![(path.to_path_buf(), Err(error))],
        };
    }
    let files = match disk.list(path) {
        Ok(files) => files,
        Err(error) => return vec![(path.to_path_buf(), Err(sstable::Error::from(error).into()))],
    };
    let passed_over = match passed_over(disk, path).await {
        Ok(passed_over) => passed_over,
        Err(error) => return vec![(path.to_path_buf(), Err(error))],
    };
    let unsealed = sstable::writer::unsealed(&files);
    let is_sealed = |file: &PathBuf| Descriptor::parse(file).map_or(true, |name| !unsealed.contains(&name));
    let is_whole = |file: &PathBuf| is_sealed(file) && !passed_over.files.contains(file);
    let data = files.iter().filter(|file| is_whole(file) && is_data(file));
    let mut found: Vec<(PathBuf, Result<Descriptor>)> =
        data.map(|file| (file.clone(), Descriptor::parse(file).map_err(Error::from))).collect();
    let counts = |name: &Descriptor| !unsealed.contains(name) && !passed_over.has(&file_of(name));
    found.extend(without_data(&files).into_iter().filter(counts).map(|name| {
        let error = sstable::Error::missing(&file_of(&name), MISSED);
        (file_of(&name), Err(error.into()))
    }));
    if found.is_empty() {
        let has_some = |folder: &&PathBuf| {
            disk.is_dir(folder) && disk.list(folder).is_ok_and(|files| files.iter().any(|file| is_data(file)))
        };
        let what = match files.iter().find(has_some) {
            Some(folder) => {
                format!("there is no SSTable in this folder itself, but in {} there is", folder.display())
            }
            None => "there is no SSTable in this folder".to_owned(),
        };
        return vec![(path.to_path_buf(), Err(Error::file(path, what)))];
    }
    found.extend(passed_over.wrong.into_iter().map(|(log, error)| (log, Err(error))));
    found.sort_by(|(_, a), (_, b)| match (a, b) {
        (Ok(a), Ok(b)) => order(a).cmp(&order(b)),
        (a, b) => a.is_err().cmp(&b.is_err()),
    });
    found
}

/// What a path is that is none of a database, as there is no `data/` in it, as far as that is seen. `None` for a database, and if no table is near.
pub fn instead_of_database(path: &Path) -> Option<String> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        all.sort();
        all
    };
    // A schema.cql by itself may lie anywhere, and be that of a table which is to be made: but for a folder that is called as those of tables are.
    let has_table = |folder: &PathBuf| {
        let has_id =
            folder.to_str().and_then(|name| name.rsplit_once('-')).is_some_and(|(_, id)| id.len() == 32);
        inside(folder).iter().any(|file| is_data(file) || (has_id && file.ends_with(SCHEMA)))
    };
    if path.is_file() {
        return Some("it is a file: the folder of a database or of a table was expected".to_owned());
    }
    let Ok(path) = path.canonicalize() else { return Some("there is no such folder".to_owned()) };
    if path.join("data").is_dir() {
        return None;
    }
    if has_table(&path) {
        return Some("it is the folder of one table".to_owned());
    }
    let found = inside(&path);
    let here = found.iter().find(|folder| has_table(folder)).cloned();
    let is_data = here.is_none() && path.ends_with("data");
    let table = here.or_else(|| found.iter().flat_map(|folder| inside(folder)).find(has_table))?;
    let (above, table) = (path.parent().unwrap_or(&path).display(), table.display());
    Some(match is_data {
        true => format!(
            "it is the data of a database: give the folder that it is in, {above}, or that of one table, such as {table}"
        ),
        false => {
            format!("it has no data/, so it is no database: give the folder of one table, such as {table}")
        }
    })
}

/// Whether a file of this name tells that its folder is that of a table.
pub fn is_of_table(name: &str) -> bool {
    // Of an SSTable that lost its data the index is left.
    name.ends_with("-Data.db") || name.ends_with("-Index.db") || name == SCHEMA
}

fn is_data(file: &Path) -> bool {
    file.as_os_str().as_encoded_bytes().ends_with(b"-Data.db")
}

/// The SSTable that a path which is no folder names.
fn single(disk: &Disk, path: &Path) -> Result<Descriptor> {
    if !disk.exists(path) {
        // As an SSTable is called in what is printed of it: by what the names of its files have in common.
        let mut data = path.as_os_str().to_owned();
        data.push("-Data.db");
        return match Descriptor::parse(Path::new(&data)) {
            Ok(descriptor) if disk.exists(Path::new(&data)) => Ok(descriptor),
            _ => Err(Error::file(path, "there is no such file or folder")),
        };
    }
    // What cannot be looked at may be a folder all the same: then its name is not what is wrong.
    Descriptor::parse(path).map_err(|error| match disk.list(path) {
        Err(why) if why.kind() != ErrorKind::NotADirectory => sstable::Error::from(why).into(),
        _ => error.into(),
    })
}

/// The data files that several paths name, in the order of the paths. An SSTable that several of them name, as `me-1-big-*` does, is
/// there once.
///
/// # Errors
/// As of [`data_files`].
pub async fn all_data_files(disk: &Disk, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let found = each_of_all_data_files(disk, paths).await.into_iter();
    found.map(|(file, found)| found.map(|_| file)).collect()
}

/// The same, but each with what keeps it from being read.
pub async fn each_of_all_data_files(disk: &Disk, paths: &[PathBuf]) -> Vec<(PathBuf, Result<Descriptor>)> {
    let mut seen = BTreeSet::new();
    let mut is_new = |found: &(PathBuf, Result<Descriptor>)| match &found.1 {
        Ok(name) => {
            // Whatever way leads to the folder; a simulated one is nowhere else.
            let dir = name.dir.canonicalize().unwrap_or_else(|_| name.dir.clone());
            seen.insert(Descriptor { dir, ..name.clone() })
        }
        Err(_) => true,
    };
    let mut all = Vec::new();
    for path in paths {
        all.extend(each_data_file(disk, path).await.into_iter().filter(|found| is_new(found)));
    }
    all
}

/// The names for a new SSTable in a folder. Its number is above those of all SSTables there, complete or not, and of those that the log of
/// a change which was cut off says to remove.
///
/// # Errors
/// If there is no such folder, no number is left, or there is a log that does not tell what it is about.
pub async fn next_descriptor(disk: &Disk, dir: &Path, version: Version) -> Result<Descriptor> {
    let files = disk.list(dir).map_err(sstable::Error::from)?;
    let mut last = files.iter().filter_map(|file| number_of(file)).max().unwrap_or(0);
    for passed_over in storage::transaction::passed_over(disk, dir).await? {
        let numbers = passed_over.prefixes?.into_iter().filter_map(|prefix| number_of(Path::new(&prefix)));
        last = numbers.fold(last, u32::max);
    }
    if last == LAST_NUMBER {
        return Err(Error::file(dir, format!("it has an SSTable of the last number there is, {last}")));
    }
    Ok(Descriptor { dir: dir.to_path_buf(), version, generation: (last + 1).to_string() })
}

/// The greatest number of an SSTable that Cassandra reads: a Java int.
const LAST_NUMBER: u32 = i32::MAX as u32;

/// The number of the SSTable that a file belongs to, of whatever version and format: `nb-7-big-Data.db`, `da-7-bti-Data.db`.
fn number_of(file: &Path) -> Option<u32> {
    let mut parts = file.file_name()?.to_str()?.split('-');
    parts.next().filter(|version| version.len() == 2)?;
    let number = parts.next()?.parse().ok().filter(|number| *number <= LAST_NUMBER);
    parts.next().filter(|format| ["big", "bti"].contains(format))?;
    number
}

/// Numbers ascend; ids that are times come after them and ascend as text.
fn order(descriptor: &Descriptor) -> (u64, &str, &str) {
    let number = descriptor.generation.parse().unwrap_or(u64::MAX);
    (number, &descriptor.generation, descriptor.version.name())
}

#[cfg(test)]
mod tests {
    use runtime::{SimOptions, run_simulated};
    use storage::transaction::{Transaction, TransactionKind};

    use super::*;

    fn names_of(files: &[&str], path: &str) -> std::result::Result<Vec<String>, String> {
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk().as_simulated().expect("simulated");
            files.iter().for_each(|file| disk.add_file(file, Vec::new()));
            let found = data_files(shard.disk(), Path::new(path)).await.map_err(|error| error.to_string())?;
            Ok(found.iter().map(|file| file.display().to_string()).collect())
        })
        .unwrap()
    }

    #[test]
    fn a_folder_is_its_own_sstables_by_generation() {
        let files =
            ["/t/me-10-big-Data.db", "/t/me-9-big-Data.db", "/t/me-9-big-TOC.txt", "/t/.i/me-1-big-Data.db"];
        let time_based = "/t/nb-3gyd_0wz8_01bn52h3rn8frpo3ut-big-Data.db";
        let all = [&files[..], &[time_based]].concat();
        assert_eq!(names_of(&all, "/t").unwrap(), [files[1], files[0], time_based]);
        assert_eq!(names_of(&all, "/t/me-9-big").unwrap(), [files[1]], "as verify calls it");
        assert!(names_of(&all, "/t/me-8-big").unwrap_err().to_string().contains("there is no such file"));
    }

    #[test]
    fn what_is_not_whole_is_passed_over() {
        let files = [
            "/t/me-1-big-Data.db",
            "/t/me-1-big-TOC.txt.tmp",
            "/t/me-2-big-Data.db",
            "/t/me-3-big-Data.db.tmp",
        ];
        assert_eq!(names_of(&files, "/t").unwrap(), [files[2]]);
    }

    /// Of a copy of a folder, in which somebody was at work.
    #[test]
    fn what_is_none_by_the_log_of_a_change_is_passed_over() {
        run_simulated(SimOptions::default(), async |shard| {
            let (disk, clock, dir) = (shard.disk(), shard.clock(), Path::new("/ks/t"));
            let simulated = disk.as_simulated().expect("simulated");
            let files = ["/ks/t/me-1-big-Data.db", "/ks/t/me-2-big-Data.db", "/ks/t/me-3-big-Data.db"];
            files.iter().for_each(|file| simulated.add_file(file, Vec::new()));
            let named = |number: usize| Descriptor::parse(Path::new(files[number - 1])).unwrap();
            let kind = TransactionKind::Compaction;
            let mut change = Transaction::begin(disk, clock, dir, Version::Me, kind).await.unwrap();
            change.add(&named(3)).await.unwrap();
            change.remove([&named(1)]).await.unwrap();
            let left = async || data_files(disk, dir).await.unwrap();
            assert_eq!(left().await, [files[0], files[1]].map(PathBuf::from));
            // A copy has other times.
            simulated.add_file(files[0], vec![7]);
            let committed = change.commit().await.unwrap();
            assert_eq!(left().await, [files[1], files[2]].map(PathBuf::from));
            assert_eq!(passed_over(disk, dir).await.unwrap().files, [Path::new(files[0])]);
            // Who names it means it.
            assert_eq!(data_files(disk, Path::new(files[0])).await.unwrap(), [Path::new(files[0])]);
            drop(committed);
            // The copy was made before the new one was whole.
            disk.remove(Path::new(files[2])).await.unwrap();
            let error = data_files(disk, dir).await.unwrap_err().to_string();
            assert!(error.contains("me-3-big-Data.db, which is not there"), "{error}");
            assert_eq!(each_data_file(disk, dir).await.len(), 2 + 1, "and the log");
            simulated.add_file("/ks/t/me_txn_compaction_1.log", b"COMMIT:[,0,0][1]\nADD:".to_vec());
            let each = each_data_file(disk, dir).await;
            assert_eq!(each.iter().filter(|(_, found)| found.is_ok()).count(), 2);
        })
        .unwrap();
    }

    /// Of a copy that is not whole.
    #[test]
    fn an_sstable_without_its_data_is_told() {
        let files = ["/t/me-1-big-Data.db", "/t/me-2-big-Index.db", "/t/me-2-big-TOC.txt"];
        let what = "/t/me-2-big-Data.db: this file is missing";
        assert!(names_of(&files, "/t").unwrap_err().starts_with(what));
        assert!(names_of(&files[1..], "/t").unwrap_err().starts_with(what));
    }

    #[test]
    fn a_new_sstable_has_a_new_number() {
        run_simulated(SimOptions::default(), async |shard| {
            let next = |dir| next_descriptor(shard.disk(), Path::new(dir), Version::Me);
            let disk = shard.disk().as_simulated().expect("simulated");
            let others = [
                "/t/a-b",
                "/t/me-20250101123456-big",
                "/t/notes-77-x",
                "/t/me-18446744073709551615-big-Data.db",
            ];
            for file in ["/t/da-9-bti-Data.db", "/t/me-10-big-TOC.txt.tmp"].into_iter().chain(others) {
                disk.add_file(file, Vec::new());
            }
            disk.add_file("/u/notes", Vec::new());
            assert_eq!(next("/t").await.unwrap().path_of(&Component::Toc), Path::new("/t/me-11-big-TOC.txt"));
            assert_eq!(next("/u").await.unwrap().generation, "1");
            assert!(next("/v").await.is_err());
            disk.add_file("/u/me-2147483647-big-Data.db", Vec::new());
            let error = next("/u").await.unwrap_err().to_string();
            assert!(error.ends_with("the last number there is, 2147483647"), "{error}");
        })
        .unwrap();
    }

    /// Whoever cleans up behind it would remove an SSTable of that number.
    #[test]
    fn a_new_sstable_has_no_number_of_a_change_that_was_cut_off() {
        run_simulated(SimOptions::default(), async |shard| {
            let (disk, clock, dir) = (shard.disk(), shard.clock(), Path::new("/ks/t"));
            let simulated = disk.as_simulated().expect("simulated");
            simulated.add_file("/ks/t/me-1-big-Data.db", Vec::new());
            let reserved = Descriptor::parse(Path::new("/ks/t/me-7-big-Data.db")).unwrap();
            let kind = TransactionKind::Compaction;
            let mut change = Transaction::begin(disk, clock, dir, Version::Me, kind).await.unwrap();
            change.add(&reserved).await.unwrap();
            let log = change.log_path().to_path_buf();
            drop(change);
            assert_eq!(next_descriptor(disk, dir, Version::Me).await.unwrap().generation, "8");
            simulated.add_file(&log, b"ADD:[/ks/t/me-7-big-,0,0][1]\nCOMMIT:[,0,0][2]\n".to_vec());
            let error = next_descriptor(disk, dir, Version::Me).await.unwrap_err().to_string();
            assert!(error.contains(&log.display().to_string()), "{error}");
        })
        .unwrap();
    }

    #[test]
    fn any_component_names_its_sstable() {
        assert_eq!(
            names_of(&["/t/me-9-big-TOC.txt"], "/t/me-9-big-TOC.txt").unwrap(),
            ["/t/me-9-big-Data.db"]
        );
    }

    #[test]
    fn an_sstable_of_several_names_is_there_once() {
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk().as_simulated().expect("simulated");
            let files = ["/t/me-1-big-Data.db", "/t/me-1-big-TOC.txt", "/t/me-2-big-Data.db"];
            files.iter().for_each(|file| disk.add_file(file, Vec::new()));
            let paths = [files[2], files[1], files[0], "/t"].map(PathBuf::from);
            assert_eq!(
                all_data_files(shard.disk(), &paths).await.unwrap(),
                [files[2], files[0]].map(PathBuf::from)
            );
        })
        .unwrap();
    }

    #[test]
    fn what_names_nothing_is_an_error() {
        let error = |files: &[&str], path: &str| names_of(files, path).unwrap_err();
        assert_eq!(error(&["/t/a"], "/t"), "/t: there is no SSTable in this folder");
        let inside = error(&["/t/a", "/t/s/me-1-big-Data.db"], "/t");
        assert_eq!(inside, "/t: there is no SSTable in this folder itself, but in /t/s there is");
        assert_eq!(error(&["/t/a"], "/u"), "/u: there is no such file or folder");
        assert!(error(&["/t/ab-1-big-Data.db"], "/t").starts_with("/t/ab-1-big-Data.db: "));
    }
}
