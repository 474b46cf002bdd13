//! The versions of the format and what each changes. Versions are compared here and nowhere else.
//!
//! | version | written by | adds |
//! |---|---|---|
//! | mc | Cassandra 3.0.8 to 3.11.7, ScyllaDB 3.0 to 4.2 | the baseline |
//! | md | Cassandra 3.11.8, ScyllaDB 4.3 to 5.0 | min/max clustering that can be trusted |
//! | me | Cassandra 3.11.11, ScyllaDB 5.1 | the originating host in Statistics |
//! | na, nb | Cassandra 4.0 to 5.0 | checksums in Statistics, byte-wise bloom filters, incompressible chunks kept raw |
//! | oa | Cassandra 5.0 | unsigned deletion times, clustering bounds as a slice, the key range in Statistics |

use std::fmt;

use crate::parts::compression_info::Compressor;

/// A version of the BIG format that this library reads, from the oldest to the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Version {
    /// Cassandra 3.0.8, ScyllaDB 3.0.
    Mc,
    /// Cassandra 3.11.8, ScyllaDB 4.3.
    Md,
    /// Cassandra 3.11.11, ScyllaDB 5.1 and later.
    Me,
    /// Cassandra 4.0 before its release.
    Na,
    /// Cassandra 4.0 to 5.0.
    Nb,
    /// Cassandra 5.0 with `storage_compatibility_mode: NONE`.
    Oa,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Version; 6] =
        [Version::Mc, Version::Md, Version::Me, Version::Na, Version::Nb, Version::Oa];

    /// The version of that name, as file names have it.
    pub fn parse(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Why a version of that name, which is none of these, is not read.
    pub(crate) fn why_unread(version: &str, format: &str) -> String {
        let read = Version::ALL.map(Version::name).join(", ");
        match version {
            _ if format == "bti" => format!("it is of version {version} in format BTI: BTI is not read"),
            "ms" | "mt" => format!("it is of version {version}, which has the index of BTI: BTI is not read"),
            _ if version < "mc" => {
                format!(
                    "it is of version {version}, which is too old: {read} are read; Cassandra 3.11 can upgrade it"
                )
            }
            _ if version.starts_with('p') => {
                format!("it is of version {version}, which is too new: {read} are read")
            }
            _ => format!("its version is {version:?}, which is not known: {read} are read"),
        }
    }

    /// The two letters in file names.
    pub fn name(self) -> &'static str {
        match self {
            Version::Mc => "mc",
            Version::Md => "md",
            Version::Me => "me",
            Version::Na => "na",
            Version::Nb => "nb",
            Version::Oa => "oa",
        }
    }

    /// Whether ScyllaDB writes it too. Its early releases left range tombstones out of Statistics and
    /// counted the columns of a row twice; Cassandra's counts are exact.
    pub fn may_be_scyllas(self) -> bool {
        self <= Version::Me
    }

    /// Whether a user defined type of a column may be frozen without Statistics saying so: Cassandra 3.0 knew no others.
    pub fn may_leave_frozen_out(self) -> bool {
        self <= Version::Me
    }

    /// Whether min and max clustering in Statistics can be trusted.
    pub fn has_accurate_min_max(self) -> bool {
        self >= Version::Md
    }

    /// Whether Statistics names the host that wrote the file. `na` is older than that change.
    pub fn has_originating_host(self) -> bool {
        self == Version::Me || self >= Version::Nb
    }

    /// Whether the bits of Filter.db are stored as bytes, not as big-endian words.
    pub fn has_bytewise_filter(self) -> bool {
        self >= Version::Na
    }

    /// Whether CompressionInfo.db tells the compressed length from which chunks are kept raw.
    pub fn has_max_compressed_length(self) -> bool {
        self >= Version::Na
    }

    /// How many bytes of data a chunk holds where the table does not say it.
    pub fn default_chunk_len(self) -> u32 {
        if self >= Version::Na { 16 << 10 } else { 64 << 10 }
    }

    /// Whether the parts of Statistics.db are followed by their CRC32.
    pub fn has_metadata_checksum(self) -> bool {
        self >= Version::Na
    }

    /// Whether Statistics has the pending repair's session.
    pub fn has_pending_repair(self) -> bool {
        self >= Version::Na
    }

    /// Whether Statistics has the flag of transient replication.
    pub fn has_is_transient(self) -> bool {
        self >= Version::Na
    }

    /// How many sizes of partitions the histogram of a new file tells apart; readers take any number.
    pub fn partition_size_steps(self) -> usize {
        if self >= Version::Oa { 155 } else { 150 }
    }

    /// How many counts of cells the histogram of a new file tells apart; readers take any number. Cassandra
    /// went from the one to the other with 3.11.9, which writes md as 3.11.8 did.
    pub fn cell_count_steps(self) -> usize {
        if self >= Version::Md { 118 } else { 114 }
    }

    /// Whether the histogram of drop times says how many bins there could be, and not how many there are.
    pub fn tells_most_bins(self) -> bool {
        self < Version::Na
    }

    /// Whether min and max clustering are a slice with bound kinds, not bare values.
    pub fn has_improved_min_max(self) -> bool {
        self >= Version::Oa
    }

    /// Whether Statistics has the flag of partition deletions.
    pub fn has_partition_deletion_flag(self) -> bool {
        self >= Version::Oa
    }

    /// Whether Statistics has the first and the last key.
    pub fn has_key_range(self) -> bool {
        self >= Version::Oa
    }

    /// Whether Statistics has the share of the ring that the keys cover.
    pub fn has_token_space_coverage(self) -> bool {
        self >= Version::Oa
    }

    /// Whether all who read the version know the compressor: Zstandard and none at all came with Cassandra 4.0.
    pub fn has_compressor(self, compressor: Compressor) -> bool {
        self >= Version::Na || !matches!(compressor, Compressor::Zstd | Compressor::Noop)
    }

    /// Whether who reads the version may know vectors: Cassandra 5.0 does, which writes `nb` too.
    pub fn has_vectors(self) -> bool {
        self >= Version::Nb
    }

    /// Whether local deletion times are unsigned 32-bit seconds, good until 2106, and a live deletion
    /// of a partition is a single byte.
    pub fn has_uint_deletion_time(self) -> bool {
        self >= Version::Oa
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
