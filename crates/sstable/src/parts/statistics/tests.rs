//! Tests of Statistics.db: small ones made by hand, broken ones, real ones against what Cassandra's
//! `sstablemetadata` says of them.

use std::collections::HashMap;

use model::time::NO_DELETION_TIME;
use model::{CqlType, Position, Slice};
use proptest::prelude::*;

use super::*;
use crate::parts::samples::{self, RealFile, survives_corruption};

fn parse(bytes: &[u8], version: Version) -> Result<Statistics> {
    Statistics::parse(Path::new("nb-1-big-Statistics.db"), bytes, version)
}

fn error_of(bytes: &[u8], version: Version) -> String {
    parse(bytes, version).unwrap_err().to_string()
}

/// Statistics.db of these parts.
fn encode(parts: &[(u32, Vec<u8>)], version: Version) -> Vec<u8> {
    let crc = |bytes: &[u8]| match version.has_metadata_checksum() {
        true => crc32fast::hash(bytes).to_be_bytes().to_vec(),
        false => Vec::new(),
    };
    let count = (parts.len() as u32).to_be_bytes().to_vec();
    let mut offset = 4 + 8 * parts.len() + 2 * crc(&[]).len();
    let mut table = Vec::new();
    for (kind, part) in parts {
        table.extend(kind.to_be_bytes());
        table.extend((offset as u32).to_be_bytes());
        offset += part.len() + crc(part).len();
    }
    let mut bytes = [&count[..], &crc(&count), &table, &crc(&[&count[..], &table].concat())].concat();
    for (_, part) in parts {
        bytes.extend(part);
        bytes.extend(crc(part));
    }
    bytes
}

fn validation(partitioner: &str) -> Vec<u8> {
    [&(partitioner.len() as u16).to_be_bytes()[..], partitioner.as_bytes(), &0.01f64.to_be_bytes()].concat()
}

const INT: &[u8] = b"org.apache.cassandra.db.marshal.Int32Type";
const LIST: &[u8] = b"org.apache.cassandra.db.marshal.ListType(org.apache.cassandra.db.marshal.Int32Type)";

fn with_len(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

/// Columns `l list<int>`, `z int`, `a int` and a clustering column of type int.
fn header() -> Vec<u8> {
    let mut bytes = vec![5, 7, 9];
    bytes.extend(with_len(INT));
    bytes.extend([1].into_iter().chain(with_len(INT)));
    bytes.extend([0, 3]);
    for (name, data_type) in [(b"l", LIST), (b"z", INT), (b"a", INT)] {
        bytes.extend(with_len(name));
        bytes.extend(with_len(data_type));
    }
    bytes
}

/// Least and greatest clustering 3 and 8; each field of a kind differs from the others.
fn stats(version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |part: &[u8]| bytes.extend_from_slice(part);
    for count in [4u64, 9] {
        put(&2u32.to_be_bytes());
        [1, 0, 1, count].iter().for_each(|number: &u64| put(&number.to_be_bytes()));
    }
    [&10i64.to_be_bytes()[..], &11i32.to_be_bytes()].iter().for_each(|field| put(field));
    [100i64, 200].iter().for_each(|time| put(&time.to_be_bytes()));
    [50u32, if version.has_uint_deletion_time() { u32::MAX } else { i32::MAX as u32 }, 0, 60]
        .iter()
        .for_each(|time| put(&time.to_be_bytes()));
    put(&0.5f64.to_be_bytes());
    [100u32, 0].iter().for_each(|number| put(&number.to_be_bytes()));
    put(&[0, 0, 0, 3]);
    put(&1234i64.to_be_bytes());
    if version.has_improved_min_max() {
        put(&[1]);
        put(&with_len(INT));
        put(&[1, 0, 1, 0, 0, 0, 0, 3, 6, 0, 1, 0, 0, 0, 0, 8]);
    } else {
        [3u8, 8].iter().for_each(|value| put(&[0, 0, 0, 1, 0, 4, 0, 0, 0, *value]));
    }
    put(&[1]);
    [77u64, 88].iter().for_each(|number| put(&number.to_be_bytes()));
    let position = [&10i64.to_be_bytes()[..], &5i32.to_be_bytes()].concat();
    put(&position);
    put(&[0, 0, 0, 1]);
    put(&position);
    put(&position);
    if version.has_pending_repair() {
        put(&[[1u8].as_slice(), &[0xaa; 16], &[1]].concat());
    }
    if version.has_originating_host() {
        put(&[[1u8].as_slice(), &[0xbb; 16]].concat());
    }
    if version.has_key_range() {
        put(&[0, 2, b'k', b'1', 2, b'k', b'9']);
        put(&0.25f64.to_be_bytes());
    }
    bytes
}

fn sample(version: Version) -> Vec<u8> {
    let compaction = vec![0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 13, 25, 1, 3];
    let parts = [
        (VALIDATION, validation("org.apache.cassandra.dht.Murmur3Partitioner")),
        (COMPACTION, compaction),
        (STATS, stats(version)),
        (HEADER, header()),
        (17, vec![1, 2, 3]),
    ];
    encode(&parts, version)
}

#[test]
fn all_fields_of_all_versions() {
    for version in Version::ALL {
        let Statistics { validation, compaction, stats, header } = parse(&sample(version), version).unwrap();
        assert_eq!((validation.partitioner, validation.filter_fp_chance), (Partitioner::Murmur3, 0.01));
        assert_eq!(compaction.estimated_partitions(), Some(3));
        check_stats(&stats, version);
        let expected = EncodingStats {
            min_timestamp: 1_442_880_000_000_005,
            min_local_deletion_time: 1_442_880_007,
            min_ttl: 9,
        };
        assert_eq!(header.encoding, expected);
        let names: Vec<_> = header.schema.regulars.iter().map(|column| column.name_text()).collect();
        assert_eq!(names, ["z", "a", "l"], "as listed, save that the list comes last");
        assert_eq!((header.schema.clustering.len(), header.schema.statics.len()), (1, 0));
    }
}

fn check_stats(stats: &Stats, version: Version) {
    assert_eq!((stats.partition_sizes.overflow(), stats.cell_counts.overflow()), (4, 9));
    assert_eq!(stats.commit_log_upper_bound, CommitLogPosition { segment: 10, position: 11 });
    assert_eq!((stats.min_timestamp, stats.max_timestamp), (100, 200));
    assert_eq!((stats.min_local_deletion_time, stats.max_local_deletion_time), (50, NO_DELETION_TIME));
    assert_eq!((stats.min_ttl, stats.max_ttl, stats.compression_ratio), (0, 60, 0.5));
    assert_eq!((stats.level, stats.repaired_at), (3, 1234));
    let prefix = |value: u8| [vec![0, 0, 0, value]].into_iter().collect();
    assert_eq!(stats.covered_clustering.slice.start, Position::before(prefix(3)));
    assert_eq!(stats.covered_clustering.slice.end, Position::after(prefix(8)));
    assert_eq!(stats.covered_clustering.is_accurate, version.has_accurate_min_max());
    assert_eq!((stats.has_legacy_counter_shards, stats.cell_count, stats.row_count), (true, 77, 88));
    assert_eq!((stats.commit_log_lower_bound.position, stats.commit_log_intervals.len()), (5, 1));
    assert_eq!(stats.pending_repair, version.has_pending_repair().then_some([0xaa; 16]));
    assert_eq!(stats.is_transient, version.has_is_transient());
    assert_eq!(stats.originating_host, version.has_originating_host().then_some([0xbb; 16]));
    assert_eq!(stats.may_have_partition_deletions, !version.has_partition_deletion_flag());
    assert_eq!(stats.first_key.as_deref(), version.has_key_range().then_some(&b"k1"[..]));
    assert_eq!(stats.last_key.as_deref(), version.has_key_range().then_some(&b"k9"[..]));
    assert_eq!(stats.token_space_coverage, version.has_token_space_coverage().then_some(0.25));
}

#[test]
fn deletion_times_before_and_after_the_epoch() {
    let encoding = |vint: &[u8], version| {
        let mut part = header();
        part.splice(1..2, vint.iter().copied());
        let parts = [(VALIDATION, validation("Murmur3Partitioner")), (STATS, stats(version)), (HEADER, part)];
        parse(&encode(&parts, version), version).unwrap().header.encoding.min_local_deletion_time
    };
    let minus_one = [0xff; 9];
    assert_eq!(encoding(&minus_one, Version::Me), 1_442_879_999);
    assert_eq!(encoding(&minus_one, Version::Oa), 1_442_879_999);
    let three_billion = [0xf0, 0xb2, 0xd0, 0x5e, 0x00];
    assert_eq!(encoding(&three_billion, Version::Oa), 4_442_880_000 - (1 << 32));
    assert_eq!(encoding(&[0xf0, 0x77, 0x35, 0x94, 0x00], Version::Oa), 3_442_880_000);
}

#[test]
fn other_partitioners_are_refused() {
    let version = Version::Nb;
    let of = |name: &str| {
        encode(&[(VALIDATION, validation(name)), (STATS, stats(version)), (HEADER, header())], version)
    };
    let error = error_of(&of("org.apache.cassandra.dht.RandomPartitioner"), version);
    let expected = "nb-1-big-Statistics.db: its partitioner is \"org.apache.cassandra.dht.RandomPartitioner\": \
                    only Murmur3Partitioner is read";
    assert_eq!(error, expected);
    let local = parse(&of("org.apache.cassandra.dht.LocalPartitioner"), version).unwrap();
    assert_eq!(local.validation.partitioner, Partitioner::Local);
    assert_eq!(local.compaction, Compaction::default());
}

#[test]
fn checksums_are_checked() {
    let sound = sample(Version::Nb);
    let broken = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        error_of(&bytes, Version::Nb)
    };
    assert!(broken(7).contains("offset 4: the number of parts does not match"));
    assert!(broken(12).contains("offset 48: the table of parts does not match"));
    assert!(broken(60).contains("offset 52: the part of type 0 has checksum"));
    assert!(broken(sound.len() - 1).contains("the part of type 17 has checksum"));
}

#[test]
fn what_cannot_be_is_refused() {
    let version = Version::Me;
    let with = |parts: &[(u32, Vec<u8>)]| error_of(&encode(parts, version), version);
    let (first, second) = ((VALIDATION, validation("Murmur3Partitioner")), (STATS, stats(version)));
    assert!(with(&[]).contains("the validation part is missing"));
    assert!(with(&[first.clone(), second.clone()]).contains("the header part is missing"));
    assert!(with(&[first.clone(), first.clone()]).contains("part 1, of type 0, is there twice"));
    let mut twice = header();
    let name = twice.len() - with_len(INT).len() - 1;
    twice[name] = b'z';
    assert!(
        with(&[first.clone(), second.clone(), (HEADER, twice)]).contains("the column \"z\" is listed twice")
    );
    let longer = [header(), vec![0]].concat();
    assert!(with(&[first.clone(), second.clone(), (HEADER, longer)]).contains("more bytes follow"));
    let mut unknown = header();
    unknown[4] = b'(';
    assert!(with(&[first, second, (HEADER, unknown)]).contains("type"));
    assert!(error_of(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 99], version).contains("not within the file (99)"));
}

#[test]
fn broken_bytes_never_panic() {
    for version in Version::ALL {
        survives_corruption(&sample(version), |bytes| drop(parse(bytes, version)));
    }
    // Past the checksums, each part on its own.
    for version in Version::ALL {
        let path = Path::new("p");
        for (kind, bytes) in [(STATS, stats(version)), (HEADER, header()), (COMPACTION, vec![0, 0, 0, 1, 0])]
        {
            survives_corruption(&bytes, |bytes| {
                let part = Part { path, kind, base: 0, bytes };
                drop(Stats::decode(&part, version));
                drop(Header::decode(&part, version));
                drop(Compaction::decode(&part).map(|compaction| compaction.estimated_partitions()));
            });
        }
    }
}

#[test]
fn real_files_decode_and_survive_corruption() {
    let mut small: HashMap<Version, RealFile> = HashMap::new();
    for file in samples::real_files("Statistics.db") {
        let is_foreign = file.path.components().any(|part| part.as_os_str() == "random_partitioner");
        match Statistics::parse(&file.path, &file.bytes, file.version) {
            Ok(statistics) => {
                assert!(!is_foreign);
                check_against_index(&file, &statistics);
            }
            Err(error) => {
                assert!(is_foreign && error.to_string().contains("only Murmur3Partitioner"), "{error}")
            }
        }
        if small.get(&file.version).is_none_or(|other| other.bytes.len() > file.bytes.len()) {
            small.insert(file.version, file);
        }
    }
    for (version, file) in small {
        survives_corruption(&file.bytes, |bytes| drop(parse(bytes, version)));
    }
}

/// The keys and how many of them there are.
fn check_against_index(file: &RealFile, statistics: &Statistics) {
    let index = samples::index_entries(&file.sibling("Index.db").unwrap());
    let name = file.path.display();
    let is_scylla = file.path.components().any(|part| part.as_os_str() == "scylla");
    if let Some(estimate) = statistics.compaction.estimated_partitions().filter(|_| !is_scylla) {
        let wrong = estimate.abs_diff(index.len() as u64);
        assert!(wrong <= index.len() as u64 / 25, "{name}: {estimate} for {}", index.len());
    }
    if !is_scylla {
        assert_eq!(statistics.stats.partition_sizes.count(), index.len() as u64, "{name}");
    }
    let keys = [statistics.stats.first_key.as_deref(), statistics.stats.last_key.as_deref()];
    if file.version.has_key_range() {
        assert_eq!(keys, [Some(&index[0].0[..]), Some(&index[index.len() - 1].0[..])], "{name}");
    }
}

/// What `sstablemetadata` says, line by line.
#[test]
fn real_files_say_what_cassandra_says() {
    // Where Cassandra 3's tool failed, the text breaks off.
    for (path, text) in samples::sstablemetadata().into_iter().filter(|(_, text)| text.contains("KeyType: "))
    {
        let name = path.display();
        let version = Version::parse(&path.file_name().unwrap().to_str().unwrap()[..2]).unwrap();
        let Statistics { validation, compaction, stats, header } =
            Statistics::parse(&path, &std::fs::read(&path).unwrap(), version).unwrap();
        let said = Said(&text);
        assert_eq!(said.text("Partitioner"), validation.partitioner_class, "{name}");
        assert_eq!(said.float("Bloom Filter FP chance"), validation.filter_fp_chance, "{name}");
        let local_time = |key| match said.number(key) {
            2_147_483_647 => NO_DELETION_TIME,
            time => time,
        };
        let expected = [
            said.number("Minimum timestamp"),
            said.number("Maximum timestamp"),
            local_time("SSTable min local deletion time"),
            local_time("SSTable max local deletion time"),
            said.number("TTL min"),
            said.number("TTL max"),
            said.number("SSTable Level"),
            said.number("Repaired at"),
            said.number("totalColumnsSet"),
            said.number("totalRows"),
            said.number("Estimated cardinality"),
            said.number("EncodingStats minTTL"),
            said.number("EncodingStats minLocalDeletionTime"),
            said.number("EncodingStats minTimestamp"),
        ];
        let found = [
            stats.min_timestamp,
            stats.max_timestamp,
            stats.min_local_deletion_time,
            stats.max_local_deletion_time,
            i64::from(stats.min_ttl),
            i64::from(stats.max_ttl),
            i64::from(stats.level),
            stats.repaired_at,
            stats.cell_count as i64,
            stats.row_count as i64,
            compaction.estimated_partitions().unwrap() as i64,
            header.encoding.min_ttl,
            header.encoding.min_local_deletion_time,
            header.encoding.min_timestamp,
        ];
        assert_eq!(expected, found, "{name}");
        match text.contains("Compression ratio: ") {
            true => assert_eq!(said.float("Compression ratio"), stats.compression_ratio, "{name}"),
            false => assert_eq!(stats.compression_ratio, -1.0, "{name}"),
        }
        assert_eq!(
            said.text("Originating host id").replace('-', ""),
            hex(&stats.originating_host.unwrap()),
            "{name}"
        );
        assert_eq!(said.intervals(), stats.commit_log_intervals, "{name}");
        assert_eq!(CqlType::parse(said.text("KeyType")).unwrap(), header.schema.partition_key, "{name}");
        let types: Vec<String> = header.schema.clustering.iter().map(CqlType::to_string).collect();
        assert_eq!(said.text("ClusteringTypes"), format!("[{}]", types.join(", ")), "{name}");
        check_clustering(&said, &stats, &header, &name.to_string());
        check_histograms(&text, &stats, &name.to_string());
    }
}

fn check_clustering(said: &Said, stats: &Stats, header: &Header, name: &str) {
    let texts = |position: &Position| -> Vec<String> {
        let values = position.prefix.values.iter().zip(&header.schema.clustering);
        let text = |(value, data_type): (&Option<model::Bytes>, &CqlType)| match value {
            Some(value) => data_type.to_text(value).unwrap(),
            None => "null".to_owned(),
        };
        values.map(text).collect()
    };
    let Slice { start, end } = &stats.covered_clustering.slice;
    // Times and the like have another text in the older tool.
    if !header.schema.clustering.iter().all(|data_type| matches!(data_type, CqlType::Int | CqlType::Text)) {
        return;
    }
    if said.0.contains("minClustringValues") {
        let list = |position| format!("[{}]", texts(position).join(", "));
        assert_eq!(said.text("minClustringValues"), list(start), "{name}");
        assert_eq!(said.text("maxClustringValues"), list(end), "{name}");
    } else if said.0.contains("Covered clusterings") {
        let expected = said.text("Covered clusterings");
        let inner = format!("{}, {}", texts(start).join(":"), texts(end).join(":"));
        assert_eq!(&expected[1..expected.len() - 1], inner, "{name}");
    } else {
        // Cassandra 3 leaves the lines out where a value of a column is missing.
        let columns = header.schema.clustering.len();
        assert!(start.prefix.len() < columns || end.prefix.len() < columns, "{name}");
    }
}

/// Cassandra 3 prints every bucket.
fn check_histograms(text: &str, stats: &Stats, name: &str) {
    let Some((_, table)) = text.split_once("Cell Count\n") else { return };
    let mut rows = table.lines().map_while(|line| {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        (!numbers.is_empty()).then_some(numbers)
    });
    for (i, &offset) in stats.partition_sizes.offsets.iter().enumerate() {
        let row = rows.next().unwrap();
        assert_eq!((row[0], row[1]), (offset, stats.partition_sizes.buckets[i]), "{name}");
        if let Some(&cells) = row.get(2) {
            assert_eq!(cells, stats.cell_counts.buckets[i], "{name}");
            assert!(stats.cell_counts.offsets.get(i).is_none_or(|&own| own == offset), "{name}");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines `key: value` of `sstablemetadata`.
struct Said<'a>(&'a str);

impl Said<'_> {
    fn text(&self, key: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{key} in {}", self.0)).trim_end()
    }

    /// A number, or the one in the brackets behind a date: `11/14/2023 22:13:20 (1700000000)`.
    fn number(&self, key: &str) -> i64 {
        let text = self.text(key);
        let first = text.split(' ').next().unwrap().parse();
        first.unwrap_or_else(|_| text.rsplit('(').next().unwrap().trim_end_matches(')').parse().unwrap())
    }

    fn float(&self, key: &str) -> f64 {
        self.text(key).parse().unwrap()
    }

    fn intervals(&self) -> Vec<(CommitLogPosition, CommitLogPosition)> {
        let text = self.text("Replay positions covered");
        let numbers: Vec<i64> = text
            .split(|c: char| !c.is_ascii_digit() && c != '-')
            .filter_map(|word| word.parse().ok())
            .collect();
        let position = |pair: &[i64]| CommitLogPosition { segment: pair[0], position: pair[1] as i32 };
        numbers.chunks(4).map(|four| (position(&four[..2]), position(&four[2..]))).collect()
    }
}

proptest! {
    #[test]
    fn never_panics(bytes: Vec<u8>, version in prop::sample::select(Version::ALL.to_vec())) {
        drop(parse(&bytes, version));
        let parts = [(VALIDATION, validation("Murmur3Partitioner")), (STATS, bytes.clone()), (HEADER, bytes)];
        drop(parse(&encode(&parts, version), version));
    }
}
