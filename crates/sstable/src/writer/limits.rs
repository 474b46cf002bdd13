//! What a version of the format cannot hold: found before it is written, and told in words.
//!
//! | what | cannot be held by |
//! |---|---|
//! | a local deletion time after 2038-01-19T03:14:06Z | the versions before `oa` |
//! | a deletion with a negative timestamp, of a partition or a range | `oa` |
//! | a shadowable deletion above another one of the same row | any file for Cassandra |
//! | a column of type vector | the versions before `nb` |
//! | a type whose name in the header is read as another one, as one of a keyspace without a name | all |
//! | a partition key of more than 65535 bytes, or such a value of a clustering key | all |

use model::time::NO_DELETION_TIME;
use model::{Cell, Clustering, CqlType, DeletionTime, Fragment, PartitionKey, Position, Row, Schema};

use super::WriteOptions;
use crate::Version;
use crate::data::pack::zstd_level;
use crate::data::row::{Family, INVALID_DELETION_TIME};
use crate::parts::compression_info::{Compression, Compressor};
use crate::parts::filter::check_fp_chance;

/// The greatest local deletion time that is a number of 32 bits with a sign. The one above it stands for none.
const GREATEST_LEGACY: i64 = i32::MAX as i64 - 1;

/// What may go into a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    version: Version,
    family: Family,
}

/// Why something may not.
type Fits = Result<(), String>;

impl Limits {
    /// Of files of this version, written for this family.
    pub fn of(version: Version, family: Family) -> Limits {
        Limits { version, family }
    }

    /// Whether a table of these columns, written with these options, fits.
    ///
    /// # Errors
    /// In words, what does not; options that are none.
    pub fn check_table(&self, schema: &Schema, options: &WriteOptions) -> Fits {
        self.check_schema(schema)?;
        self.check_family()?;
        options.compression.iter().try_for_each(|compression| self.check_compression(compression))?;
        check_fp_chance(options.bloom_filter_fp_chance).map_err(|error| error.to_string())?;
        if options.min_index_interval == 0 {
            return Err("min_index_interval must be at least 1".to_owned());
        }
        if options.column_index_size == 0 {
            return Err("column_index_size must be at least 1 byte".to_owned());
        }
        Ok(())
    }

    /// Whether a fragment fits.
    ///
    /// # Errors
    /// In words, what does not.
    #[inline]
    pub fn check(&self, fragment: &Fragment) -> Fits {
        match fragment {
            Fragment::PartitionStart(start) => self.check_partition(&start.key, &start.deletion),
            Fragment::StaticRow(row) | Fragment::Row(row) => self.check_row(row),
            Fragment::RangeTombstone(change) => self.check_end(&change.position, &change.deletion),
            Fragment::PartitionEnd => Ok(()),
        }
    }

    fn check_schema(&self, schema: &Schema) -> Fits {
        for of in types_of(schema) {
            if !self.version.has_vectors() && has_vector(of) {
                return Err(format!("version {} has no vectors, such as {}", self.version, of.cql_name()));
            }
            let name = of.to_string();
            if !CqlType::parse(&name).is_ok_and(|read| read.to_string() == name) {
                return Err(format!(
                    "the header of an SSTable cannot hold the type {}: types nest 64 deep at the most, and the keyspace of a user type is \
                     letters, digits and underscores",
                    of.cql_name()
                ));
            }
        }
        Ok(())
    }

    fn check_compression(&self, compression: &Compression) -> Fits {
        self.check_compressor(compression.compressor())?;
        if compression.compressor() == Compressor::Zstd {
            zstd_level(compression)?;
        }
        if compression.max_compressed_len() < i32::MAX as u32 && !self.version.has_max_compressed_length() {
            return Err(format!("version {} keeps no chunk uncompressed", self.version));
        }
        Ok(())
    }

    /// ScyllaDB knows all compressors in the versions that it reads.
    fn check_compressor(&self, compressor: Compressor) -> Fits {
        if self.version.has_compressor(compressor) || self.family == Family::Scylla {
            return Ok(());
        }
        let name = compressor.class_name();
        Err(format!(
            "Cassandra has {name} from version na on: version {} with it is ScyllaDB's alone",
            self.version
        ))
    }

    fn check_family(&self) -> Fits {
        if self.family == Family::Scylla && !self.version.may_be_scyllas() {
            return Err(format!("ScyllaDB does not read version {}: it reads mc, md and me", self.version));
        }
        Ok(())
    }

    /// Whether the key of a partition, and its deletion, fit.
    ///
    /// # Errors
    /// In words, what does not.
    pub fn check_partition(&self, key: &PartitionKey, deletion: &DeletionTime) -> Fits {
        check_key(&key.bytes)?;
        self.check_deletion(deletion, "a partition")
    }

    /// Whether an end of a range of rows, and the deletion of the range, fit.
    ///
    /// # Errors
    /// In words, what does not.
    pub fn check_end(&self, position: &Position, deletion: &DeletionTime) -> Fits {
        check_clustering(&position.prefix)?;
        self.check_deletion(deletion, "a range of rows")
    }

    /// Whether a row fits.
    ///
    /// # Errors
    /// In words, what does not.
    #[inline]
    pub fn check_row(&self, row: &Row) -> Fits {
        check_clustering(&row.clustering)?;
        if self.family == Family::Cassandra && row.has_two_deletions() {
            let what = "a row has a shadowable deletion above another one: Cassandra has one deletion a row";
            return Err(what.to_owned());
        }
        if self.version.has_uint_deletion_time() {
            return Ok(());
        }
        let of_columns = row.complex_deletions.iter().map(|(_, deletion)| deletion);
        for deletion in of_columns.chain([&row.deletion, &row.shadowable]) {
            self.check_seconds(deletion.local_deletion_time, "was deleted")?;
        }
        self.check_seconds(row.liveness.local_expiration_time, "expires")?;
        row.cells.iter().try_for_each(|cell: &Cell| self.check_seconds(cell.local_deletion_time, "expires"))
    }

    /// Whether a local deletion time or one of expiry fits, in seconds since 1970.
    #[inline]
    pub fn holds_time(&self, seconds: i64) -> bool {
        // That a time is none can be told by all of them.
        let is_none = seconds == NO_DELETION_TIME || seconds == INVALID_DELETION_TIME;
        seconds <= GREATEST_LEGACY || is_none || self.version.has_uint_deletion_time()
    }

    fn check_deletion(&self, deletion: &DeletionTime, of: &str) -> Fits {
        if deletion.is_live() {
            return Ok(());
        }
        if self.version.has_uint_deletion_time() && deletion.marked_for_delete_at < 0 {
            return Err(format!(
                "{of} was deleted with timestamp {}: version {} has no negative ones there",
                deletion.marked_for_delete_at, self.version
            ));
        }
        self.check_seconds(deletion.local_deletion_time, "was deleted")
    }

    #[inline]
    fn check_seconds(&self, seconds: i64, what: &str) -> Fits {
        if self.holds_time(seconds) {
            return Ok(());
        }
        Err(format!(
            "something {what} at {seconds} seconds since 1970: version {} ends at {GREATEST_LEGACY}, in January 2038",
            self.version
        ))
    }
}

fn check_key(key: &[u8]) -> Fits {
    match u16::try_from(key.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("a partition key has {} bytes, more than 65535", key.len())),
    }
}

#[inline]
fn check_clustering(clustering: &Clustering) -> Fits {
    let lengths = clustering.values.iter().map(|value| value.as_ref().map_or(0, |value| value.len()));
    match lengths.max().filter(|&longest| longest > usize::from(u16::MAX)) {
        Some(longest) => Err(format!("a value of a clustering key has {longest} bytes, more than 65535")),
        None => Ok(()),
    }
}

/// The first version from this one on that has all types of a table.
pub fn version_for(version: Version, schema: &Schema) -> Version {
    let has_vectors = types_of(schema).any(has_vector);
    if has_vectors && !version.has_vectors() { Version::Nb } else { version }
}

fn types_of(schema: &Schema) -> impl Iterator<Item = &CqlType> {
    let columns = schema.statics.iter().chain(&schema.regulars).map(|column| &column.data_type);
    columns.chain([&schema.partition_key]).chain(&schema.clustering)
}

/// Whether values of the type are vectors or hold some.
fn has_vector(of: &CqlType) -> bool {
    of.any(&|part| matches!(part, CqlType::Vector { .. }))
}

#[cfg(test)]
mod tests {
    use model::types::UserType;
    use model::{Bytes, Column, PartitionKey, PartitionStart, Position, RangeTombstoneChange};

    use super::*;

    fn limits(version: Version) -> Limits {
        Limits::of(version, Family::Cassandra)
    }

    fn deletion(marked_for_delete_at: i64, local_deletion_time: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at, local_deletion_time }
    }

    fn start(key: usize, deletion: DeletionTime) -> Fragment {
        let key = PartitionKey::new(Bytes::from(vec![0; key]));
        Fragment::PartitionStart(PartitionStart { key, deletion })
    }

    fn row(change: impl FnOnce(&mut Row)) -> Fragment {
        let mut row = Row::new(Clustering::empty());
        change(&mut row);
        Fragment::Row(row)
    }

    /// The name of the keyspace stands in the header as it is.
    #[test]
    fn user_types_are_of_a_keyspace_that_has_a_name() {
        let of = |keyspace: &str| {
            let fields = vec![("a".to_owned(), CqlType::Int)];
            let udt = UserType { keyspace: keyspace.to_owned(), name: "t".to_owned(), fields, frozen: true };
            let column = Column { name: b"v".as_slice().into(), data_type: CqlType::Udt(Box::new(udt)) };
            let schema = Schema::new(CqlType::Int, vec![], vec![], vec![column]);
            limits(Version::Me).check_table(&schema, &WriteOptions::new(Version::Me))
        };
        assert_eq!(of("ks_1"), Ok(()));
        for keyspace in ["", "my ks", "a,b", "a)"] {
            assert!(of(keyspace).unwrap_err().contains("keyspace"), "{keyspace}");
        }
    }

    #[test]
    fn times_after_2038_are_of_oa() {
        let far = [
            start(4, deletion(5, GREATEST_LEGACY + 1)),
            row(|row| row.deletion = deletion(5, GREATEST_LEGACY + 1)),
            row(|row| row.shadowable = deletion(5, GREATEST_LEGACY + 1)),
            row(|row| row.complex_deletions = vec![(0, deletion(5, GREATEST_LEGACY + 1))]),
            row(|row| row.liveness.local_expiration_time = GREATEST_LEGACY + 1),
            Fragment::RangeTombstone(RangeTombstoneChange {
                position: Position::start(),
                deletion: deletion(5, GREATEST_LEGACY + 1),
            }),
        ];
        for fragment in far {
            assert_eq!(limits(Version::Oa).check(&fragment), Ok(()));
            let refused = limits(Version::Nb).check(&fragment).unwrap_err();
            assert!(refused.contains("2147483647 seconds since 1970"), "{refused}");
        }
        assert_eq!(limits(Version::Me).check(&start(4, deletion(5, GREATEST_LEGACY))), Ok(()));
        assert_eq!(limits(Version::Me).check(&start(4, DeletionTime::LIVE)), Ok(()));
        assert_eq!(limits(Version::Me).check(&row(|_| {})), Ok(()), "nothing in it ever expires");
    }

    #[test]
    fn negative_timestamps_are_not_of_oa() {
        let negative = start(4, deletion(-1, 7));
        assert_eq!(limits(Version::Nb).check(&negative), Ok(()));
        assert!(limits(Version::Oa).check(&negative).unwrap_err().contains("timestamp -1"));
    }

    #[test]
    fn cassandra_has_one_deletion_a_row() {
        let both = |deletion, shadowable| row(|row| (row.deletion, row.shadowable) = (deletion, shadowable));
        let (old, new) = (deletion(5, 5), deletion(6, 6));
        assert!(limits(Version::Me).check(&both(old, new)).is_err());
        assert_eq!(limits(Version::Me).check(&both(new, old)), Ok(()), "the shadowable one says nothing");
        assert_eq!(Limits::of(Version::Me, Family::Scylla).check(&both(old, new)), Ok(()));
    }

    #[test]
    fn long_keys_are_of_no_version() {
        for version in Version::ALL {
            assert_eq!(limits(version).check(&start(65535, DeletionTime::LIVE)), Ok(()));
            assert!(limits(version).check(&start(65536, DeletionTime::LIVE)).is_err());
            let of = |len: usize| -> Clustering { [vec![1], vec![0; len]].into_iter().collect() };
            for (len, fits) in [(65535, true), (65536, false)] {
                let position = Position::after(of(len));
                let bound = RangeTombstoneChange { position, deletion: DeletionTime::LIVE };
                assert_eq!(limits(version).check(&Fragment::RangeTombstone(bound)).is_ok(), fits);
                assert_eq!(limits(version).check_row(&Row::new(of(len))).is_ok(), fits);
            }
        }
    }

    #[test]
    fn tables_and_options_are_of_their_time() {
        let of = |text: &str| {
            let column = Column { name: b"v"[..].into(), data_type: CqlType::parse(text).unwrap() };
            Schema::new(CqlType::Int, Vec::new(), Vec::new(), vec![column])
        };
        let check = |version, text, change: fn(&mut WriteOptions)| {
            let mut options = WriteOptions::new(version);
            change(&mut options);
            Limits::of(version, options.family).check_table(&of(text), &options)
        };
        let vectors = "FrozenType(ListType(VectorType(FloatType, 3)))";
        assert_eq!(check(Version::Nb, vectors, |_| {}), Ok(()));
        assert!(check(Version::Me, vectors, |_| {}).unwrap_err().contains("has no vectors"));
        let zstd = |options: &mut WriteOptions| {
            options.compression = Some(Compression::new(Compressor::Zstd, Version::Me));
        };
        assert!(check(Version::Me, "Int32Type", zstd).unwrap_err().contains("ZstdCompressor"));
        assert_eq!(check(Version::Nb, "Int32Type", zstd), Ok(()));
        let level = |options: &mut WriteOptions| {
            let of = vec![("compression_level".to_owned(), "23".to_owned())];
            options.compression = Some(Compression::new(Compressor::Zstd, Version::Nb).with_options(of));
        };
        assert!(check(Version::Nb, "Int32Type", level).unwrap_err().contains("no compression_level"));
        let raw = |options: &mut WriteOptions| {
            let ratio = Compression::new(Compressor::Lz4, Version::Nb).with_min_ratio(1.1, Version::Nb);
            options.compression = Some(ratio.unwrap());
        };
        assert_eq!(check(Version::Nb, "Int32Type", raw), Ok(()));
        assert!(check(Version::Me, "Int32Type", raw).unwrap_err().contains("keeps no chunk uncompressed"));
        let scylla = |options: &mut WriteOptions| options.family = Family::Scylla;
        assert_eq!(check(Version::Me, "Int32Type", scylla), Ok(()));
        assert!(check(Version::Oa, "Int32Type", scylla).unwrap_err().contains("ScyllaDB does not read"));
        assert!(check(Version::Me, "Int32Type", |options| options.min_index_interval = 0).is_err());
        assert!(check(Version::Me, "Int32Type", |options| options.column_index_size = 0).is_err());
        assert!(check(Version::Me, "Int32Type", |options| options.bloom_filter_fp_chance = 0.0).is_err());
    }
}
