//! What a compaction reads: all of its inputs, of each lane of them one at a time.

use std::rc::Rc;

use model::merge::{ColumnMap, Direction, Mapped, Merge};
use model::{Schema, Token};
use sstable::data::reader::DataReader;

use crate::Result;
use crate::batches::{LaneReader, Opens, open_lanes};
use crate::lanes;
use crate::source::share_of_compaction;
use crate::sstable_set::Member;

/// The SSTables, each with what brings its rows to the columns that are written.
pub(super) struct Inputs(Vec<(Rc<Member>, ColumnMap)>);

/// The merge of all inputs, whose columns are those of this schema then.
pub(super) async fn read_all(
    inputs: &[Rc<Member>],
    columns: Vec<ColumnMap>,
    schema: &Rc<Schema>,
) -> Result<Merge<LaneReader<Inputs>>> {
    let lanes = lanes::of_scan(inputs, schema);
    let opener = Inputs(inputs.iter().cloned().zip(columns).collect());
    let lanes = open_lanes(opener, lanes, Direction::Forward, schema).await?;
    Ok(Merge::new(schema, Direction::Forward, lanes))
}

impl Opens for Inputs {
    type Reader = DataReader;

    async fn open(&self, member: &Rc<Member>, at_once: usize) -> Result<Option<Mapped<DataReader>>> {
        let (_, columns) =
            self.0.iter().find(|(input, _)| Rc::ptr_eq(input, member)).expect("lanes are made of the inputs");
        let all = 0..member.sstable.data().file.len();
        let reader = member.sstable.scan_range(all, share_of_compaction(at_once))?;
        let reader = reader.within(member.tokens(None, Token::MAX));
        Ok(Some(Mapped::new(reader, columns.clone())))
    }

    fn worth(&self, member: &Member) -> f64 {
        member.sstable.data().file.len() as f64 / share_of_compaction(1) as f64
    }
}
