//! What became of a component that reads can do without.

use std::fmt;

/// What became of a component of our own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Usage {
    /// It is not there.
    Absent,
    /// Nobody wants to know whether it is there.
    Off,
    /// It is used.
    InUse {
        /// Bytes of the file.
        bytes: u64,
    },
    /// It is there and not used.
    Ignored {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Usage::Absent => f.write_str("none"),
            Usage::Off => f.write_str("not wanted"),
            Usage::InUse { bytes } => write!(f, "{} KiB, in use", bytes.div_ceil(1024)),
            Usage::Ignored { why } => write!(f, "ignored: {why}"),
        }
    }
}
