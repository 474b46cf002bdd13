//! The index of an SSTable as a list: its partitions, or the index blocks of one of them.
//!
//! ```text
//!                token        position          size  blocks  key
//! -4069959284402364209               0          7361      12  ["1"]
//!
//! block      offset       width  first            last             open tombstone at its end
//!     0          18        4107  [0]              [99]
//! ```

use std::fmt::Write as _;
use std::io::Write;
use std::rc::Rc;

use model::{Bytes, DeletionTime, PartitionKey, Position, Weight};
use sstable::SSTable;
use sstable::big::entry::{Entry, Promoted};
use sstable::big::promoted_cursor::Block;
use sstable::component::Component;

use crate::error::{Error, Result, ValueError};
use crate::fragment_json::FragmentJson;
use crate::info::position_text;
use crate::json::{JsonWriter, Layout};

/// Lists the index of one SSTable.
#[derive(Debug)]
pub struct IndexList {
    table: Rc<SSTable>,
    fragments: FragmentJson,
    json: Option<JsonWriter>,
    /// The SSTable's name in quotes, for each line of JSON.
    name: String,
    is_named: bool,
}

/// A partition, as the index tells of it.
struct Partition {
    key: PartitionKey,
    position: u64,
    size: u64,
    promoted: Option<Promoted>,
}

impl IndexList {
    /// A list of this SSTable's index: aligned text, or JSON objects, one a line.
    pub fn new(table: &Rc<SSTable>, as_json: bool) -> IndexList {
        IndexList {
            table: table.clone(),
            fragments: FragmentJson::new(table.schema().clone(), 0),
            json: as_json.then(|| JsonWriter::new(Layout::Line)),
            name: format!("\"{}\"", table.descriptor()),
            is_named: false,
        }
    }

    /// Puts a line that names the SSTable above the list, where that is text; lines of JSON name it anyway.
    pub fn name_sstable(&mut self) {
        self.is_named = true;
    }

    /// Lists all partitions, in the order of the file.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub async fn partitions(&mut self, out: &mut dyn Write) -> Result<()> {
        self.write_head(out)?;
        let mut entries = self.table.entries();
        let mut next = entries.next().await?;
        while let Some(entry) = next {
            next = entries.next().await?;
            let (end, entry_end) = next
                .as_ref()
                .map_or((self.table.data().file.len(), self.table.index_len()), |next| (next.data, next.at));
            if end <= entry.data {
                let path = self.table.descriptor().path_of(&Component::Index);
                let what = match &next {
                    Some(_) => "the positions in the index do not ascend",
                    None => "the last partition of the index begins where the data ends, or behind it",
                };
                return Err(sstable::Error::corrupt(&path, entry_end, what).into());
            }
            let partition = self.partition(&entry, end).await?;
            self.print_partition(&partition, out)?;
        }
        self.drain(out)
    }

    /// Lists the partition of this key with its index blocks; whether it is there.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub async fn blocks(&mut self, key: &PartitionKey, out: &mut dyn Write) -> Result<bool> {
        let Some(place) = self.table.index().find(key).await? else {
            return Ok(false);
        };
        let range = self.table.index().range(&place).await?;
        let promoted = self.table.index().promoted(&place).await?;
        let size = range.end.saturating_sub(range.start);
        let partition = Partition { key: key.clone(), position: range.start, size, promoted };
        self.write_head(out)?;
        self.print_partition(&partition, out)?;
        if let Some(promoted) = &partition.promoted {
            self.print_blocks(promoted, out).await?;
        }
        self.drain(out)?;
        Ok(true)
    }

    fn write_head(&self, out: &mut dyn Write) -> Result<()> {
        if self.json.is_some() {
            return Ok(());
        }
        if self.is_named {
            let descriptor = self.table.descriptor();
            writeln!(out, "{}:", descriptor.dir.join(descriptor.to_string()).display())?;
        }
        Ok(writeln!(out, "{:>20}  {:>14}  {:>12}  {:>6}  key", "token", "position", "size", "blocks")?)
    }

    /// The partition of this entry, which ends at `end` of the data.
    async fn partition(&self, entry: &Entry, end: u64) -> Result<Partition> {
        let key = self.table.key(Bytes::detached(&entry.key));
        let promoted = self.table.index().promoted_of(entry).await?;
        Ok(Partition { key, position: entry.data, size: end - entry.data, promoted })
    }

    fn print_partition(&mut self, partition: &Partition, out: &mut dyn Write) -> Result<()> {
        let Partition { key, position, size, promoted } = partition;
        let text = self.fragments.key_text(&key.bytes).map_err(|value| self.corrupt(*position, value))?;
        let is_index = self.table.descriptor().is_index_table();
        let blocks = promoted.as_ref().map_or(0, |promoted| promoted.count);
        let Some(json) = &mut self.json else {
            // Tables of secondary indexes are in the order of their keys, which have no tokens.
            let token = if is_index { String::new() } else { key.token.to_string() };
            writeln!(out, "{token:>20}  {position:>14}  {size:>12}  {blocks:>6}  {text}")?;
            return Ok(());
        };
        json.begin_object();
        json.key("sstable");
        json.literal(&self.name);
        json.key("key");
        json.literal(&text);
        json.key("token");
        if is_index {
            json.null()
        } else {
            json.integer(key.token)
        }
        for (name, number) in [("position", *position), ("size", *size), ("blocks", u64::from(blocks))] {
            json.key(name);
            json.integer(number);
        }
        if let Some(promoted) = promoted {
            json.key("head");
            json.integer(promoted.head_len);
            self.fragments.write_deletion(&promoted.deletion, json);
        }
        json.end_object();
        json.end_line();
        Ok(json.drain_if_full(out)?)
    }

    async fn print_blocks(&mut self, promoted: &Promoted, out: &mut dyn Write) -> Result<()> {
        let table = self.table.clone();
        let cursor = table.index().cursor(&table.data().codec, promoted);
        if self.json.is_none() {
            writeln!(
                out,
                "\n{:>7}  {:>14}  {:>10}  first, last, open tombstone at its end",
                "block", "offset", "width"
            )?;
        }
        for number in 0..promoted.count {
            let block = cursor.block(number).await?;
            match self.json {
                Some(_) => self.print_block_json(number, &block, out)?,
                None => self.print_block(number, &block, out)?,
            }
        }
        Ok(())
    }

    fn print_block(&mut self, number: u32, block: &Block, out: &mut dyn Write) -> Result<()> {
        let [first, last] =
            [&block.first, &block.last].map(|position| position_text(&self.fragments, position));
        let mut line = format!("{number:>7}  {:>14}  {:>10}  {first}, {last}", block.offset, block.width);
        if !block.end_open.is_live() {
            let mut json = JsonWriter::new(Layout::Line);
            json.begin_object();
            self.fragments.write_deletion(&block.end_open, &mut json);
            json.end_object();
            write!(line, ", {}", json.into_text()).expect("a String can always be appended to");
        }
        Ok(writeln!(out, "{line}")?)
    }

    fn print_block_json(&mut self, number: u32, block: &Block, out: &mut dyn Write) -> Result<()> {
        let [first, last] = [&block.first, &block.last].map(|position| self.position(position));
        let Some(json) = &mut self.json else { return Ok(()) };
        json.begin_object();
        json.key("sstable");
        json.literal(&self.name);
        for (name, number) in [("block", u64::from(number)), ("offset", block.offset), ("width", block.width)]
        {
            json.key(name);
            json.integer(number);
        }
        for (name, position) in [("first", first), ("last", last)] {
            let (weight, clustering) = position.map_err(|value| corrupt(&self.table, block.offset, value))?;
            json.key(name);
            json.begin_object();
            json.key("side");
            json.string(weight);
            json.key("clustering");
            json.literal(&clustering);
            json.end_object();
        }
        write_open(&mut self.fragments, &block.end_open, json);
        json.end_object();
        json.end_line();
        Ok(json.drain_if_full(out)?)
    }

    /// On which side of the rows with a prefix a position is, and the prefix as JSON.
    fn position(&self, position: &Position) -> std::result::Result<(&'static str, String), ValueError> {
        let side = match position.weight {
            Weight::Before => "before",
            Weight::At => "at",
            Weight::After => "after",
        };
        Ok((side, self.fragments.clustering_text(&position.prefix)?))
    }

    fn drain(&mut self, out: &mut dyn Write) -> Result<()> {
        match &mut self.json {
            Some(json) => Ok(json.drain(out)?),
            None => Ok(()),
        }
    }

    fn corrupt(&self, position: u64, value: ValueError) -> Error {
        corrupt(&self.table, position, value)
    }
}

fn write_open(fragments: &mut FragmentJson, open: &DeletionTime, json: &mut JsonWriter) {
    if open.is_live() {
        return;
    }
    json.key("open_at_end");
    json.begin_object();
    fragments.write_deletion(open, json);
    json.end_object();
}

fn corrupt(table: &SSTable, position: u64, value: ValueError) -> Error {
    let place = format!("where the data is at {position}");
    Error::Value { path: table.descriptor().path_of(&Component::Index), place, value: Box::new(value) }
}
