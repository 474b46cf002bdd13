//! A real SSTable in memory, and everything that is read of it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{Bytes, Fragment, FragmentReader, PartitionKey, Position, Slice};
use runtime::{Cache, Shard};
use siltstone_sstable::component::{Component, Descriptor};
use siltstone_sstable::{Error, OpenOptions, ReadOptions, Result, SSTable, Search, Version};

/// A reader that gives or fills more often than this does not come to an end.
const MOST_POPS: usize = 200_000;

/// A file of an SSTable and its bytes.
pub(super) struct ComponentFile {
    pub(super) component: Component,
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// A real SSTable on a simulated disk.
pub(super) struct Subject {
    pub(super) data: PathBuf,
    pub(super) version: Version,
    pub(super) is_compressed: bool,
    pub(super) files: Vec<ComponentFile>,
}

/// What to read of it besides a scan.
#[derive(Clone)]
pub(super) struct Question {
    key: Bytes,
    slice: Slice,
    options: ReadOptions,
}

/// What a scan gives, and what each question.
#[derive(PartialEq, Debug)]
pub(super) struct Answers {
    pub(super) scan: Vec<Fragment>,
    pub(super) slices: Vec<Option<Vec<Fragment>>>,
}

/// The same where each may fail.
pub(super) struct Outcomes {
    pub(super) scan: Result<Vec<Fragment>>,
    pub(super) slices: Vec<Result<Option<Vec<Fragment>>>>,
}

impl Subject {
    /// Puts a fixture onto the shard's disk.
    pub(super) fn load(shard: &Shard, name: &str) -> Subject {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cassandra").join(name);
        let descriptor = Descriptor::parse(&data).unwrap();
        let mut files = Vec::new();
        for file in std::fs::read_dir(&descriptor.dir).unwrap() {
            let path = file.unwrap().path();
            let Ok((of, component)) = Descriptor::parse_component(&path) else { continue };
            if of == descriptor {
                files.push(ComponentFile { component, bytes: std::fs::read(&path).unwrap(), path });
            }
        }
        let is_compressed = files.iter().any(|file| file.component == Component::CompressionInfo);
        let subject = Subject { data, version: descriptor.version, is_compressed, files };
        subject.files.iter().for_each(|file| subject.put(shard, &file.path, file.bytes.clone()));
        subject
    }

    pub(super) fn put(&self, shard: &Shard, path: &Path, bytes: Vec<u8>) {
        shard.disk().as_simulated().unwrap().add_file(path, bytes);
    }

    /// Questions that reach every way of reading, from what a scan gave.
    pub(super) async fn questions(&self, shard: &Shard) -> Vec<Question> {
        let table = self.open(shard).await.unwrap();
        let mut partitions: Vec<(Bytes, Vec<Position>)> = Vec::new();
        for fragment in all(table.scan()).await.unwrap() {
            match fragment {
                Fragment::PartitionStart(start) => partitions.push((start.key.bytes.detached(), Vec::new())),
                Fragment::Row(row) => {
                    partitions.last_mut().unwrap().1.push(Position::before(row.clustering.detached()));
                }
                _ => {}
            }
        }
        let mut questions = Vec::new();
        let largest = partitions.iter().max_by_key(|(_, rows)| rows.len());
        for (key, rows) in partitions.first().into_iter().chain(largest).chain(partitions.last()) {
            let middle = rows.get(rows.len() / 2).cloned().unwrap_or(Position::start());
            // Large partitions are not read whole: only their index is searched.
            let later = rows.len() / 2 + (rows.len() / 4).min(100);
            let late = rows.get(later).cloned().unwrap_or(Position::end());
            let part = Slice { start: middle, end: late };
            let whole = if rows.len() < 1000 { Slice::all() } else { part.clone() };
            for (slice, reverse) in [(whole, true), (part.clone(), false), (part, true)] {
                for search in [Search::Binary, Search::Scan] {
                    let options = ReadOptions {
                        search,
                        reverse,
                        static_row: true,
                        limit: reverse.then_some(1),
                        ..ReadOptions::default()
                    };
                    questions.push(Question { key: key.clone(), slice: slice.clone(), options });
                }
            }
        }
        questions
    }

    /// Reads only what was asked for; `Err` where it cannot even be opened.
    pub(super) async fn read_slices(&self, shard: &Shard, questions: &[Question]) -> Result<Outcomes> {
        let table = self.open(shard).await?;
        let mut slices = Vec::with_capacity(questions.len());
        for question in questions {
            slices.push(answer(&table, question).await);
        }
        Ok(Outcomes { scan: Ok(Vec::new()), slices })
    }

    /// Reads everything; `Err` where it cannot even be opened.
    pub(super) async fn read(&self, shard: &Shard, questions: &[Question]) -> Result<Outcomes> {
        let scan = all(self.open(shard).await?.scan()).await;
        Ok(Outcomes { scan, ..self.read_slices(shard, questions).await? })
    }

    pub(super) async fn open(&self, shard: &Shard) -> Result<Rc<SSTable>> {
        SSTable::open(shard.disk(), &self.data, &self.options()).await
    }

    pub(super) fn options(&self) -> OpenOptions {
        OpenOptions { read_buffer: 6000, ..OpenOptions::new(Cache::new(1 << 20)) }
    }

    /// That an error names a file of this SSTable.
    pub(super) fn expect_named(&self, error: &Error) {
        let dir = self.data.parent().unwrap().display().to_string();
        assert!(error.to_string().starts_with(&dir), "an error names its file: {error}");
    }
}

impl Outcomes {
    /// What was read from sound files.
    pub(super) fn expect_sound(self) -> Answers {
        Answers { scan: self.scan.unwrap(), slices: self.slices.into_iter().map(Result::unwrap).collect() }
    }
}

async fn answer(table: &Rc<SSTable>, question: &Question) -> Result<Option<Vec<Fragment>>> {
    let key: PartitionKey = table.key(question.key.clone());
    match table.read(&key, &question.slice, question.options).await? {
        Some(reader) => all(reader).await.map(Some),
        None => Ok(None),
    }
}

/// All fragments of a reader that must come to an end: some of the rows as they stand, and at least every fourth one by itself.
pub(super) async fn all(mut reader: impl FragmentReader<Error = Error>) -> Result<Vec<Fragment>> {
    let (mut fragments, mut fragment) = (Vec::new(), Fragment::default());
    for _ in 0..MOST_POPS {
        let mut left = 3;
        reader.pop_flat(&mut |row: model::flat::FlatRow<'_>| {
            row.decode(&mut fragment).expect("a row stands there");
            fragments.push(std::mem::take(&mut fragment));
            left -= 1;
            left > 0
        });
        match reader.pop(&mut fragment)? {
            model::Next::Fragment => fragments.push(std::mem::take(&mut fragment)),
            model::Next::End => return Ok(fragments),
            model::Next::Fill => reader.fill().await?,
        }
    }
    panic!("the reader does not come to an end");
}
