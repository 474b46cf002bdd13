//! What is read is what was written, and the folders hold what is needed and nothing else.

use std::collections::BTreeSet;
use std::path::PathBuf;

use model::merge::Direction;
use model::{FragmentReader, Slice, Token};
use runtime::monotonic;
use siltstone_storage::{ReadRequest, Result, Table};
use sstable::component::{Component, Descriptor};
use testkit::selected::{Selected, Selection};

use super::session::Session;
use super::world::Written;

/// A read.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: ReadRequest,
}

impl Asked {
    /// What is expected, without what is not asked for.
    pub(crate) fn adapt(&self, mut states: Vec<Vec<Selected>>) -> Vec<Vec<Selected>> {
        if !self.request.static_row {
            for rows in &mut states {
                rows.retain(|row| row.clustering.is_some());
                rows.iter_mut().for_each(|row| row.statics.fill(None));
            }
        }
        states
    }
}

/// Reads a slice to its end.
pub(crate) async fn select(table: &Table, asked: &Asked, now: i64) -> Result<Vec<Selected>> {
    let schema = table.definition().schema.clone();
    let ReadRequest { slice, static_row, .. } = &asked.request;
    let mut selection = Selection::new(&schema, now, slice.is_all() && *static_row);
    let mut rows = table.read(&asked.request).await?;
    while let Some(fragment) = rows.next().await? {
        selection.take(fragment);
    }
    Ok(selection.rows)
}

/// Makes sure that each row is as in one of the states that there were while it was read.
pub(crate) fn agree(found: &[Selected], states: &[Vec<Selected>], asked: &str) {
    if let [state] = states {
        assert!(found == state, "{asked}\nfound {found:#?}\nbut there is {state:#?}");
        return;
    }
    let is_known = |row: &Selected| {
        let with_key = states.iter().flatten().filter(|other| other.clustering == row.clustering);
        let has_regulars = with_key.into_iter().any(|other| other.regulars == row.regulars);
        let is_without = states.iter().any(Vec::is_empty);
        // A partition without rows: each of them may have been gone when it was looked for.
        let is_one = has_regulars || row.clustering.is_none();
        is_one && (is_without || states.iter().flatten().any(|other| other.statics == row.statics))
    };
    let strange = found.iter().find(|row| !is_known(row));
    assert!(strange.is_none(), "{asked}\nfound {strange:#?}\nbut there is one of {states:#?}");
    let is_there = |row: &&Selected| {
        states.iter().all(|rows| rows.iter().any(|other| other.clustering == row.clustering))
    };
    for row in states[0].iter().filter(is_there) {
        let is_found = found.iter().any(|other| other.clustering == row.clustering);
        assert!(is_found, "{asked}\nmissing {row:#?}\nin {found:#?}");
    }
}

impl Session<'_, '_> {
    /// What is left after the end of the life before is what was promised, and only that.
    pub(crate) async fn check_opened(&self, is_calm: bool) {
        self.check_files(is_calm).await;
        if !is_calm {
            self.note_fault();
        }
        if self.world.plan.compacts_by_itself {
            self.store.begin_compactions();
        }
        let world = self.world;
        let last = world.last_acknowledged.get();
        let in_time = world.period().and_then(|period| last.checked_sub(period));
        for (at, (written, table)) in self.each().enumerate() {
            let found = scan(table, None, Token::MAX, world.now()).await.unwrap();
            let again = written.ledger.borrow_mut().survive(
                &found,
                world.now(),
                in_time,
                &mut world.random.borrow_mut(),
            );
            world.note(format_args!("{at} has {} rows, {} writes are in doubt", found.len(), again.len()));
            for mutation in again {
                self.write(at, &mutation, None).await;
            }
        }
        // What was there all the time must not be taken for lost after the next crash.
        self.store.log().sync().await.unwrap();
        self.settle();
        self.check_quiet().await;
    }

    /// While nobody writes, everything that is read is known.
    pub(crate) async fn check_quiet(&self) {
        let now = self.world.now();
        for (written, table) in self.each() {
            let found = scan(table, None, Token::MAX, now).await.unwrap();
            for key in written.ledger.borrow().keys() {
                let of_key: Vec<Selected> = found.iter().filter(|row| row.key == key).cloned().collect();
                self.check_partition(written, &key, &of_key);
            }
            assert!(found.is_sorted_by_key(|row| &row.key));
            self.check_halves(table, &found).await;
            written.ledger.borrow_mut().is_quiet();
        }
        self.world.note(format_args!("all is well at {:?}", monotonic()));
    }

    fn check_partition(&self, written: &Written<'_>, key: &model::PartitionKey, found: &[Selected]) {
        let ledger = written.ledger.borrow();
        let before = ledger.before(key);
        let (all, way) = (Slice::all(), Direction::Forward);
        if let Some(states) = ledger.between(&before, key, &all, way, self.world.now()) {
            assert!(states.iter().any(|state| state == found), "{key:?}\nfound {found:#?}\nof {states:#?}");
        }
    }

    /// Two scans of a half each give what one gives.
    async fn check_halves(&self, table: &Table, all: &[Selected]) {
        if all.is_empty() {
            return;
        }
        let middle = all[self.world.below(all.len())].key.token;
        let mut halves = scan(table, None, middle, self.world.now()).await.unwrap();
        halves.extend(scan(table, Some(middle), Token::MAX, self.world.now()).await.unwrap());
        assert!(halves == all, "above and below {middle:?}");
    }

    /// There are the files of the SSTables, and no segment of a log of before. Where something has failed that is done after a
    /// flush, there is what was to be removed.
    async fn check_files(&self, is_calm: bool) {
        let disk = self.world.shard.disk();
        for (written, table) in self.each() {
            let mut needed = BTreeSet::new();
            for member in table.sstables().members() {
                needed.extend(self.files_of(member.sstable.descriptor()).await);
            }
            let is_left = |path: &PathBuf| !is_calm && path.extension().is_some_and(|end| end == "log");
            let there = disk.list(&written.folder).unwrap().into_iter();
            let there: BTreeSet<PathBuf> = there.filter(|path| !is_left(path)).collect();
            assert_eq!(there, needed, "the files of {}", written.folder.display());
        }
        let folder = self.world.log_folder();
        let first = folder.join(format!("commitlog-{:020}.log", self.store.log().first_segment()));
        let segments = disk.list(&folder).unwrap();
        assert!(
            !segments.is_empty() && segments.iter().all(|path| *path >= first),
            "{segments:?}, {first:?}"
        );
    }

    async fn files_of(&self, descriptor: &Descriptor) -> Vec<PathBuf> {
        let toc = descriptor.path_of(&Component::Toc);
        let file = self.world.shard.disk().open(&toc, runtime::IoClass::default()).await.unwrap();
        let text = file.read_exact_at(0, file.len() as usize).await.unwrap();
        let mut components = Component::parse_toc(&toc, &text).unwrap();
        // They are not listed, because others do not know them.
        let there = descriptor.list(self.world.shard.disk()).unwrap();
        components.extend(there.into_iter().filter(|component| !component.is_listed()));
        components.iter().map(|component| descriptor.path_of(component)).collect()
    }
}

/// Reads all partitions between two tokens.
async fn scan(table: &Table, after: Option<Token>, last: Token, now: i64) -> Result<Vec<Selected>> {
    let schema = table.definition().schema.clone();
    let mut selection = Selection::new(&schema, now, true);
    let mut rows = table.scan(after, last, None).await?;
    while let Some(fragment) = rows.next().await? {
        selection.take(fragment);
    }
    Ok(selection.rows)
}
