//! Writes a dataset: row by row, so that memory does not grow with the large partition.

use std::path::Path;

use model::{Bytes, Clustering, DeletionTime, Fragment, PartitionStart};
use runtime::Disk;
use siltstone::Result;
use sstable::component::Descriptor;
use sstable::parts::statistics::EncodingStats;
use sstable::writer::Written;
use sstable::{SSTableWriter, WriteOptions};

use super::dataset::{DESCRIPTION, Dataset, Shape, clustering, key};
use crate::defaults::write_options;
use crate::random::Random;
use crate::{int_rows, interrupted, room};

/// Microseconds since the epoch. All rows have the same, so that the same options give the same files.
const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// How many different values there are.
const VALUES: u32 = 1024;

/// Writes the dataset into its folder, in the place of one that was there.
///
/// # Errors
/// A folder that holds something else; what the operating system says.
pub async fn populate(disk: &Disk, dataset: Dataset, shape: &Shape, folder: &Path) -> Result<Written> {
    let begun = room::begin(folder, DESCRIPTION)?;
    let descriptor = Descriptor::parse(&shape.data_file(folder))?;
    let published = write_options(shape.format);
    let options = WriteOptions {
        compression: published.compression.clone().filter(|_| shape.compression),
        column_index_size: shape.column_index_size_in_kb << 10,
        fences: shape.fences,
        ..published
    };
    let encoding = EncodingStats { min_timestamp: TIMESTAMP, ..EncodingStats::NONE };
    let mut writer = SSTableWriter::create(disk, descriptor, &dataset.schema(), encoding, options).await?;
    if let Err(error) = push_all(&mut writer, dataset, shape).await {
        // Whatever is left says no more than the error.
        drop(writer.abandon().await);
        return Err(error);
    }
    let written = writer.seal().await?;
    shape.write(folder)?;
    begun.end()?;
    Ok(written)
}

async fn push_all(writer: &mut SSTableWriter, dataset: Dataset, shape: &Shape) -> Result<()> {
    let values = values(shape.rows.min(VALUES), shape.value_size);
    let mut number = 0;
    for partition in dataset.keys(shape.rows) {
        let start = PartitionStart { key: key(partition), deletion: DeletionTime::LIVE };
        writer.push(&Fragment::PartitionStart(start)).await?;
        let rows = match dataset {
            Dataset::LargePartDs1 => 0..shape.rows,
            Dataset::SmallPart => number..number + 1,
        };
        for row in rows {
            interrupted::check()?;
            let position = match dataset {
                Dataset::LargePartDs1 => clustering(row),
                Dataset::SmallPart => Clustering::empty(),
            };
            let value = values[(row % VALUES) as usize].clone();
            writer.push(&Fragment::Row(int_rows::row(position, TIMESTAMP, value))).await?;
            number = row + 1;
        }
        writer.push(&Fragment::PartitionEnd).await?;
    }
    Ok(())
}

/// So many values, of which half repeats and half does not: compressors find something, but not everything.
fn values(count: u32, bytes: u32) -> Vec<Bytes> {
    let random = Random::new(1);
    let value = |_| {
        (0..bytes).map(|at| if at < bytes / 2 { random.below(256) as u8 } else { 0 }).collect::<Vec<u8>>()
    };
    (0..count).map(value).map(Bytes::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other values would be other files by the same name.
    #[test]
    fn values_are_those_of_datasets_that_are_there() {
        let values = values(VALUES, 10);
        assert_eq!(values[0][..5], [108, 130, 165, 98, 203]);
        assert_eq!(values[1023][..5], [167, 127, 21, 89, 53]);
    }

    #[test]
    fn half_of_a_value_repeats() {
        let values = values(VALUES, 10);
        assert_eq!((values.len(), values[0].len()), (1024, 10));
        assert_ne!(values[0][..5], values[1][..5]);
        assert_eq!(values[0][5..], [0; 5]);
    }
}
