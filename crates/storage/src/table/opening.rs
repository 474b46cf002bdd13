//! The SSTables of a folder, opened: all of them, or those that have something of a part of the ring.
//!
//! ```text
//! few shards     each opens all, a few at a time, and closes what has nothing of its part
//! many shards    each looks at its share of the SSTables ──► where their partitions are ──► each opens those of its part
//! ```
//!
//! If each of S shards opened all n SSTables, these would be S·n times some requests. With one more look at each they are about 2·n, as a
//! shard writes SSTables of its own part.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use model::Token;
use runtime::Disk;
use sstable::component::{Component, MISSED, without_data};
use sstable::writer::unsealed;

use super::{Context, open_options};
use crate::definition::Definition;
use crate::shared::Tokens;
use crate::sstable_set::Member;
use crate::{Result, transaction};

/// How many SSTables are opened at once.
const OPEN_AT_ONCE: usize = 32;

/// Of fewer SSTables each shard may open all: the look would cost more than it spares.
const MANY: usize = 64;

/// A part of the ring that a table is opened for.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its tokens.
    pub tokens: Tokens,
    /// The first and the last token of SSTables of the folder, by their data files, as far as anybody has looked: the others are opened to
    /// see.
    pub known: Arc<HashMap<PathBuf, [Token; 2]>>,
}

impl Default for Part {
    /// The whole ring.
    fn default() -> Part {
        Part { tokens: Tokens::ALL, known: Arc::default() }
    }
}

/// Whether a folder has so many SSTables that a [look](look) at them spares shards more than it costs.
pub fn has_many(disk: &Disk, folder: &Path) -> bool {
    let is_data = |file: &PathBuf| file.to_string_lossy().ends_with("-Data.db");
    disk.list(folder).is_ok_and(|files| files.iter().filter(|file| is_data(file)).count() >= MANY)
}

/// Looks at every `of`th SSTable of a folder, from `number` on, for [`Part::known`]. What cannot be opened is left out: who opens the table
/// says why.
///
/// # Errors
/// What the operating system says of the folder.
pub async fn look(
    context: &Context,
    folder: &Path,
    definition: &Definition,
    (number, of): (usize, usize),
) -> Result<Vec<(PathBuf, [Token; 2])>> {
    let files = context.disk.list(folder)?;
    let data = data_files(context, folder, &files).await?;
    let share: Vec<&PathBuf> = data.into_iter().skip(number).step_by(of).collect();
    let options = open_options(context, definition);
    let mut found = Vec::new();
    for some in share.chunks(OPEN_AT_ONCE) {
        let opened = some.iter().map(|path| Member::open(&context.disk, path, &options, definition));
        for (path, member) in some.iter().zip(runtime::join_all(opened).await) {
            found.extend(
                member.ok().map(|member| (path.to_path_buf(), [member.first.token, member.last.token])),
            );
        }
    }
    Ok(found)
}

/// Opens the SSTables of a folder that have something of a part of the ring, a few at a time.
pub(super) async fn open_all(
    context: &Context,
    folder: &Path,
    files: &[PathBuf],
    definition: &Definition,
    part: &Part,
) -> Result<Vec<Rc<Member>>> {
    let may_have = |path: &&PathBuf| match part.known.get(*path) {
        Some(&[first, last]) => part.tokens.overlap(first, last),
        None => true,
    };
    let data: Vec<&PathBuf> =
        data_files(context, folder, files).await?.into_iter().filter(may_have).collect();
    let options = open_options(context, definition);
    let mut members = Vec::new();
    for some in data.chunks(OPEN_AT_ONCE) {
        let opened = some.iter().map(|path| Member::open(&context.disk, path, &options, definition));
        for member in runtime::join_all(opened).await {
            members
                .extend(Some(member?).filter(|member| member.overlaps(part.tokens.after, part.tokens.last)));
        }
    }
    Ok(members)
}

/// The data files of a folder's SSTables: who only reads finds some that do not count, as a change was cut off.
async fn data_files<'f>(context: &Context, folder: &Path, files: &'f [PathBuf]) -> Result<Vec<&'f PathBuf>> {
    let mut passed_over = Vec::new();
    for of_log in transaction::passed_over(&context.disk, folder).await? {
        passed_over.extend(of_log.prefixes?);
    }
    let name_of = |file: &PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
    let counts = |name: &String| {
        name.ends_with("-Data.db") && !passed_over.iter().any(|prefix| name.starts_with(prefix))
    };
    let data: Vec<&PathBuf> =
        files.iter().filter(|file| name_of(file).is_some_and(|name| counts(&name))).collect();
    let unsealed = unsealed(files);
    for named in without_data(files).into_iter().filter(|named| !unsealed.contains(named)) {
        let path = named.path_of(&Component::Data);
        if name_of(&path).is_some_and(|name| counts(&name)) {
            return Err(sstable::Error::missing(&path, MISSED).into());
        }
    }
    Ok(data)
}
