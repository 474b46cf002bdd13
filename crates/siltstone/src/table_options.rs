//! How a table wants its SSTables written: what of its options has bytes in them.
//!
//! ```text
//! WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 16, 'min_compress_ratio': 1.1}
//!  AND bloom_filter_fp_chance = 0.01 AND min_index_interval = 128
//! ```
//!
//! The names are Cassandra's, those of its 2.x too. All other options of a table leave its files as they are.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use sstable::parts::compression_info::{Compression, Compressor};
use sstable::{Version, WriteOptions};

use crate::convert::{Target, TargetCompression, fitting};
use crate::error::{Error, Result};
use crate::table_schema::{TableOptions, TableSchema};

/// What is wrong with an option, in words.
type Told<T> = std::result::Result<T, String>;

/// The entries of the compression that say how Zstandard and LZ4 do their work.
const OF_COMPRESSORS: [&str; 3] = ["compression_level", "lz4_compressor_type", "lz4_high_compressor_level"];

/// How to write an SSTable of a table: as the target says and, where it leaves that open, as the options of the table do.
/// Without either, as Cassandra does by default. The path of the schema is for messages.
///
/// # Errors
/// [`Error::File`] where an option of the table is none.
pub fn write_options(path: &Path, table: &TableSchema, target: &Target) -> Result<WriteOptions> {
    let wrong = |what: String| Error::file(path, format!("table {}: {what}", table.table));
    let defaults = target.write_options();
    let fp_chance = number(&table.options, "bloom_filter_fp_chance").map_err(wrong)?;
    let interval = number(&table.options, "min_index_interval").map_err(wrong)?;
    Ok(WriteOptions {
        compression: match &target.compression {
            TargetCompression::AsSource => compression(&table.options, target.version)
                .map_err(wrong)?
                .map(|compression| fitting(&compression, target)),
            TargetCompression::None => None,
            TargetCompression::Some(compression) => Some(compression.clone()),
        },
        bloom_filter_fp_chance: target
            .bloom_filter_fp_chance
            .or(fp_chance)
            .unwrap_or(defaults.bloom_filter_fp_chance),
        min_index_interval: target.min_index_interval.or(interval).unwrap_or(defaults.min_index_interval),
        ..defaults
    })
}

/// The compressor that the table is to have, where it is not known here, as newer ones of ScyllaDB are.
pub(crate) fn unknown_compressor(options: &TableOptions) -> Option<&str> {
    let entries = options.map("compression")?;
    let class = value_of(entries, ["class", "sstable_compression"]).filter(|_| !is_off(entries))?;
    (!class.is_empty() && Compressor::parse(class).is_none()).then_some(class)
}

fn is_off(entries: &[(String, String)]) -> bool {
    value_of(entries, ["enabled"; 2]).is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

fn value_of<'a>(entries: &'a [(String, String)], names: [&str; 2]) -> Option<&'a str> {
    entries.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str())
}

fn number<T: FromStr<Err: Display>>(options: &TableOptions, name: &str) -> Told<Option<T>> {
    options.text(name).map(|text| parsed(name, text)).transpose()
}

fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> Told<T> {
    text.trim().parse().map_err(|error| format!("{name} = {text}: {error}"))
}

/// The compression of the table; `None` where it has none.
fn compression(options: &TableOptions, version: Version) -> Told<Option<Compression>> {
    let Some(entries) = options.map("compression") else {
        return Ok(Some(Compression::new(Compressor::Lz4, version)));
    };
    let of = |names| value_of(entries, names);
    let class = of(["class", "sstable_compression"]).unwrap_or_default();
    if is_off(entries) || class.is_empty() && entries.iter().all(|(name, _)| name == "sstable_compression") {
        return Ok(None);
    }
    let compressor = Compressor::parse(class)
        .ok_or_else(|| format!("compression: there is no compressor {class:?} that is known here"))?;
    let own = entries.iter().filter(|(name, _)| OF_COMPRESSORS.contains(&name.as_str()));
    let mut compression = Compression::new(compressor, version).with_options(own.cloned().collect());
    if let Some(kib) = of(["chunk_length_in_kb", "chunk_length_kb"]) {
        let len = parsed::<u32>("chunk_length_in_kb", kib)?.saturating_mul(1 << 10);
        let refused = |error| format!("compression: chunk_length_in_kb = {kib}: {error}");
        compression = compression.with_chunk_len(len).map_err(refused)?;
    }
    if let Some(ratio) = of(["min_compress_ratio"; 2]).filter(|_| version.has_max_compressed_length()) {
        let refused = |error| format!("compression: min_compress_ratio = {ratio}: {error}");
        let ratio = parsed("min_compress_ratio", ratio)?;
        compression = compression.with_min_ratio(ratio, version).map_err(refused)?;
    }
    Ok(Some(compression))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "schema.cql";

    fn options(with: &str, target: &Target) -> Result<WriteOptions> {
        let text = format!("CREATE TABLE ks.t (k int PRIMARY KEY) WITH comment = ''{with};");
        let table = TableSchema::parse(Path::new(PATH), &text, None).unwrap();
        write_options(Path::new(PATH), &table, target)
    }

    fn compression_of(map: &str, version: Version) -> Option<Compression> {
        options(&format!(" AND compression = {map}"), &Target::new(version)).unwrap().compression
    }

    #[test]
    fn what_is_not_told_is_cassandras_default() {
        for version in Version::ALL {
            assert_eq!(options("", &Target::new(version)).unwrap(), WriteOptions::new(version));
        }
    }

    #[test]
    fn the_options_of_the_table_are_the_defaults_of_the_target() {
        let with = " AND bloom_filter_fp_chance = 0.5 AND min_index_interval = 64 AND crc_check_chance = 0.3
            AND compression = {'class': 'org.apache.cassandra.io.compress.SnappyCompressor', 'chunk_length_in_kb': 4}";
        let of_table = options(with, &Target::new(Version::Nb)).unwrap();
        assert_eq!((of_table.bloom_filter_fp_chance, of_table.min_index_interval), (0.5, 64));
        let compression = of_table.compression.unwrap();
        assert_eq!((compression.compressor(), compression.chunk_len()), (Compressor::Snappy, 4096));
        let target = Target {
            compression: TargetCompression::None,
            bloom_filter_fp_chance: Some(0.25),
            min_index_interval: Some(32),
            ..Target::new(Version::Nb)
        };
        let chosen = options(with, &target).unwrap();
        assert_eq!((chosen.bloom_filter_fp_chance, chosen.min_index_interval), (0.25, 32));
        assert_eq!(chosen.compression, None);
    }

    #[test]
    fn tables_without_compression() {
        let unknown = "{'class': 'ZstdWithDictsCompressor', 'enabled': 'false'}";
        for map in
            ["{}", "{'enabled': 'false'}", "{'enabled': false}", "{'sstable_compression': ''}", unknown]
        {
            assert_eq!(compression_of(map, Version::Nb), None, "{map}");
        }
    }

    #[test]
    fn compressions_as_each_time_named_them() {
        let old = compression_of(
            "{'sstable_compression': 'DeflateCompressor', 'chunk_length_kb': '64'}",
            Version::Me,
        );
        assert_eq!(old.map(|old| (old.compressor(), old.chunk_len())), Some((Compressor::Deflate, 64 << 10)));
        let zstd = "{'class': 'ZstdCompressor', 'compression_level': '7', 'min_compress_ratio': 2}";
        let new = compression_of(zstd, Version::Nb).unwrap();
        assert_eq!(new.options(), [("compression_level".to_owned(), "7".to_owned())]);
        assert_eq!((new.compressor(), new.max_compressed_len()), (Compressor::Zstd, 8 << 10));
        let stand_in = compression_of(zstd, Version::Me).unwrap();
        assert_eq!((stand_in.compressor(), stand_in.options().len()), (Compressor::Lz4, 0));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_table() {
        for (with, what) in [
            (" AND bloom_filter_fp_chance = 'x'", "bloom_filter_fp_chance = x: "),
            (" AND compression = {'chunk_length_in_kb': 4}", "there is no compressor \"\""),
            (" AND compression = {'class': 'LzmaCompressor'}", "\"LzmaCompressor\""),
            (
                " AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 5}",
                "chunk_length_in_kb = 5: ",
            ),
            (
                " AND compression = {'class': 'LZ4Compressor', 'min_compress_ratio': 0.5}",
                "min_compress_ratio = 0.5: ",
            ),
        ] {
            let error = options(with, &Target::new(Version::Nb)).unwrap_err().to_string();
            assert!(error.starts_with("schema.cql: table t: ") && error.contains(what), "{error}");
        }
    }
}
