//! Rows that come as they stand: the values of usual ones go right into the bytes of the data.

use model::flat::{FlatRow, GIVEN, UsualRow, UsualValues};
use model::{Fragment, FragmentReader};

use super::SSTableWriter;
use crate::Result;
use crate::parts::row_filter::hash_of;

impl SSTableWriter {
    /// Takes the next rows that a reader gives [as they stand](FragmentReader::pop_flat), up to so many; how many these were. The SSTable
    /// is that of the same rows [pushed](SSTableWriter::push) one by one. None may come where there are more: the next
    /// fragment is to be popped then.
    ///
    /// # Errors
    /// Those of [`SSTableWriter::push`].
    pub async fn push_flat<R: FragmentReader>(&mut self, reader: &mut R, most: usize) -> Result<usize> {
        let (mut count, mut taken) = (0, Ok(()));
        reader.pop_flat(&mut |row: FlatRow<'_>| {
            count += 1;
            taken = self.flat_row(row);
            taken.is_ok() && count < most && !self.is_full()
        });
        taken?;
        self.flush_if_full().await?;
        Ok(count)
    }

    fn flat_row(&mut self, row: FlatRow<'_>) -> Result<()> {
        if row.is_usual() && !self.has_counters {
            let mut taken = UsualValues::default();
            let values = match row.values() {
                Some(values) => *values,
                None => {
                    row.visit(&mut taken).expect(GIVEN);
                    taken.row()
                }
            };
            if self.codec.can_put_usual(values.cells.len()) && has_short_keys(&values) {
                return self.usual_row(&values);
            }
        }
        let mut other = std::mem::take(&mut self.decoded);
        row.decode(&mut other).expect(GIVEN);
        let Fragment::Row(row) = &mut other else { unreachable!("a row was decoded") };
        if self.is_to_lose_a_deletion(row) {
            row.keep_greater_deletion();
        }
        self.check(&other)?;
        let Fragment::Row(row) = &other else { unreachable!("a row was decoded") };
        self.row(row);
        self.decoded = other;
        Ok(())
    }

    /// What [`SSTableWriter::row`] does. Every version holds a usual row.
    fn usual_row(&mut self, row: &UsualRow<'_>) -> Result<()> {
        let checked = self.validator.check_row(row.clustering.iter().copied());
        checked.map_err(|error| self.unfit(error.to_string()))?;
        self.end_head();
        self.settle_change();
        let at = self.begin_item(|codec, to| codec.put_prefix_of_values(row.clustering, to));
        if let Some(rows) = self.index.rows() {
            rows.row(hash_of(&self.last));
        }
        let previous = self.since_previous(at);
        self.codec.put_values_of_row(row, &self.last, previous, self.data.buffer());
        self.collector.usual_row(row.clustering, row.timestamp, row.cells.len());
        self.is_last_untold = true;
        self.end_item();
        Ok(())
    }
}

/// Whether files can hold the values of a row's clustering key. They are looked at when they come, but not by those who wrote the logs of old.
fn has_short_keys(row: &UsualRow<'_>) -> bool {
    row.clustering.iter().flatten().all(|value| value.len() <= usize::from(u16::MAX))
}
