//! Where a read goes on: behind which row of which partition.
//!
//! ```text
//! version 1   4 bytes length, key   position     none: behind all of the partition
//! ```

use model::{Bytes, PartitionKey, Position, flat};

use crate::{Error, Result};

/// What the bytes begin with.
const VERSION: u8 = 1;

/// A place behind a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Resume {
    /// The partition.
    pub(super) key: Vec<u8>,
    /// As flat bytes; none behind all of it.
    position: Vec<u8>,
}

impl Resume {
    pub(super) fn at(key: &PartitionKey, position: Option<&Position>) -> Resume {
        let mut bytes = Vec::new();
        position.iter().for_each(|position| flat::put_position(position, &mut bytes));
        Resume { key: key.bytes.to_vec(), position: bytes }
    }

    /// As a program keeps it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + size_of::<u32>() + self.key.len() + self.position.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&(self.key.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.position);
        bytes
    }

    /// What a program has kept.
    pub(super) fn parse(bytes: &[u8]) -> Result<Resume> {
        let parsed = || {
            let (len, rest) = bytes.strip_prefix(&[VERSION])?.split_first_chunk()?;
            let (key, position) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            Some(Resume { key: key.to_vec(), position: position.to_vec() })
        };
        let resume = parsed().ok_or_else(wrong)?;
        resume.position()?;
        Ok(resume)
    }

    /// Behind which row; `None` is behind all of them.
    pub(super) fn position(&self) -> Result<Option<Position>> {
        if self.position.is_empty() {
            return Ok(None);
        }
        flat::position(&Bytes::from(self.position.as_slice())).map(Some).map_err(|_| wrong())
    }
}

fn wrong() -> Error {
    Error::Usage("this is no position that a read of this table has returned".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back() {
        let key = PartitionKey::new(Bytes::from(b"key".to_vec()));
        let position = Position::after([b"c".to_vec()].into_iter().collect());
        for position in [None, Some(&position)] {
            let resume = Resume::at(&key, position);
            assert_eq!(Resume::parse(&resume.to_bytes()).unwrap(), resume);
            assert_eq!(resume.position().unwrap().as_ref(), position);
        }
        for wrong in [&[][..], &[2, 0, 0, 0, 0], &[1, 0, 0, 0, 9], &[1, 0, 0, 0, 0, 0xff]] {
            assert!(Resume::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
