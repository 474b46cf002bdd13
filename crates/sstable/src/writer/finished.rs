//! What is written, before and after the step that makes an SSTable of it.

use super::seal::Sealer;
use crate::Result;
use crate::component::{Component, Descriptor};

/// What was written.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// The names of the files.
    pub descriptor: Descriptor,
    /// The components, TOC.txt last.
    pub components: Vec<Component>,
    /// How many partitions there are.
    pub partitions: u64,
    /// Bytes of Data.db, uncompressed.
    pub data_len: u64,
    /// Bytes of Data.db on disk.
    pub data_file_len: u64,
}

/// All of an SSTable but its last step: durable, and not yet there for anybody.
#[derive(Debug)]
pub struct Finished {
    pub(super) sealer: Sealer,
    pub(super) written: Written,
}

impl Finished {
    /// Bytes of Data.db, uncompressed.
    pub fn data_len(&self) -> u64 {
        self.written.data_len
    }

    /// From now on there is an SSTable.
    ///
    /// # Errors
    /// What the operating system says. Nothing is left then, save where only the last sync failed.
    pub async fn seal(self) -> Result<Written> {
        Ok(Written { components: self.sealer.seal().await?, ..self.written })
    }

    /// Removes what was written.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn abandon(self) -> Result<()> {
        self.sealer.abandon().await
    }
}
