//! When something was written, deleted and expires, told from the time before it.
//!
//! ```text
//! stamp      flags: 01 a timestamp follows, otherwise it is the last one
//!                   06 expiry: 00 never   02 the last one's   04 a local time follows   06 TTL and local time follow
//!            [timestamp] [vint TTL] [local time]
//! deletion   timestamp, local time
//! timestamp  signed: microseconds above the last one; above 2030 for the first
//! local time signed: seconds above the timestamp, and above the TTL
//! ```
//!
//! A local time is most often the second of the timestamp plus the TTL, or near it, and then one byte. All sums wrap, so
//! that there is nothing that cannot be told, [`crate::time::NO_DELETION_TIME`] and its neighbours included.

use super::cursor::{Cursor, Decoded};
use crate::DeletionTime;
use crate::time::NO_DELETION_TIME;
use crate::types::vint::{put_signed, put_unsigned};

/// The flags of a stamp: the low bits of a byte whose others are free.
pub(super) const FLAGS: u8 = TIMESTAMP | EXPIRY;

pub(super) const TIMESTAMP: u8 = 0x01;
const EXPIRY: u8 = 0x06;
const LAST_EXPIRY: u8 = 0x02;
const LOCAL_TIME: u8 = 0x04;
const TTL: u8 = 0x06;

/// The first moment of 2030: microseconds from 2021 to 2038 are less than 2^48 away, which is seven bytes.
pub(super) const EPOCH: i64 = 1_893_456_000_000_000;

/// What a row marker and a cell have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    /// Microseconds.
    pub(super) timestamp: i64,
    pub(super) expiry: Expiry,
}

/// When something goes by itself, or when it was deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expiry {
    /// Seconds; 0 for none.
    pub(super) ttl: u32,
    /// Seconds.
    pub(super) local_time: i64,
}

impl Expiry {
    const NEVER: Expiry = Expiry { ttl: 0, local_time: NO_DELETION_TIME };
}

/// What the next time is told from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    timestamp: i64,
    expiry: Expiry,
}

impl Base {
    /// Where an item begins.
    pub(super) fn at_start() -> Base {
        Base { timestamp: EPOCH, expiry: Expiry::NEVER }
    }

    /// The flags of a stamp, for [`Base::put`].
    #[inline]
    pub(super) fn flags_of(&self, stamp: &Stamp) -> u8 {
        let expiry = match stamp.expiry {
            Expiry::NEVER => 0,
            expiry if expiry == self.expiry => LAST_EXPIRY,
            Expiry { ttl: 0, .. } => LOCAL_TIME,
            _ => TTL,
        };
        expiry | if stamp.timestamp == self.timestamp { 0 } else { TIMESTAMP }
    }

    /// Appends what of a stamp its flags do not say.
    #[inline]
    pub(super) fn put(&mut self, stamp: &Stamp, flags: u8, out: &mut Vec<u8>) {
        if flags & TIMESTAMP != 0 {
            self.put_timestamp(stamp.timestamp, out);
        }
        if flags & EXPIRY < LOCAL_TIME {
            return;
        }
        if flags & EXPIRY == TTL {
            put_unsigned(u64::from(stamp.expiry.ttl), out);
        }
        self.put_local_time(&stamp.expiry, out);
        self.expiry = stamp.expiry;
    }

    /// The stamp of these flags, which may have others among them. Most of a row's numbers are told here.
    #[inline(always)]
    pub(super) fn take(&mut self, flags: u8, cursor: &mut Cursor<'_>) -> Decoded<Stamp> {
        if flags & TIMESTAMP != 0 {
            let last = self.timestamp;
            self.take_timestamp(cursor)?;
            cursor.check(self.timestamp != last, &"a timestamp is told that is the last one")?;
        }
        let expiry = match flags & EXPIRY {
            0 => Expiry::NEVER,
            _ => self.apart(|base| cursor.apart(|cursor| base.take_told_expiry(flags, cursor)))?,
        };
        Ok(Stamp { timestamp: self.timestamp, expiry })
    }

    /// Has something done out of line: see [`Cursor::apart`].
    #[inline]
    pub(super) fn apart<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mut copy = *self;
        let done = work(&mut copy);
        *self = copy;
        done
    }

    #[inline(never)]
    fn take_told_expiry(&mut self, flags: u8, cursor: &mut Cursor<'_>) -> Decoded<Expiry> {
        let expiry = match flags & EXPIRY {
            LAST_EXPIRY => self.expiry,
            told => self.take_expiry(told == TTL, cursor)?,
        };
        cursor.check(expiry != Expiry::NEVER, &"an expiry is told where there is none")?;
        Ok(expiry)
    }

    fn take_expiry(&mut self, has_ttl: bool, cursor: &mut Cursor<'_>) -> Decoded<Expiry> {
        let ttl = if has_ttl { cursor.fitting()? } else { 0 };
        cursor.check(has_ttl == (ttl != 0), &"a time to live is told where there is none")?;
        let expiry = Expiry { ttl, local_time: self.take_local_time(ttl, cursor)? };
        cursor.check(expiry != self.expiry, &"an expiry is told that is the last one")?;
        self.expiry = expiry;
        Ok(expiry)
    }

    /// Appends a deletion.
    pub(super) fn put_deletion(&mut self, deletion: &DeletionTime, out: &mut Vec<u8>) {
        self.put_timestamp(deletion.marked_for_delete_at, out);
        self.put_local_time(&Expiry { ttl: 0, local_time: deletion.local_deletion_time }, out);
    }

    /// A deletion.
    pub(super) fn take_deletion(&mut self, cursor: &mut Cursor<'_>) -> Decoded<DeletionTime> {
        let marked_for_delete_at = self.take_timestamp(cursor)?;
        Ok(DeletionTime { marked_for_delete_at, local_deletion_time: self.take_local_time(0, cursor)? })
    }

    /// A deletion where a flag says that there is one, and none otherwise.
    #[inline]
    pub(super) fn take_deletion_if(
        &mut self,
        is_told: bool,
        cursor: &mut Cursor<'_>,
    ) -> Decoded<DeletionTime> {
        if !is_told {
            return Ok(DeletionTime::LIVE);
        }
        let deletion = self.take_deletion(cursor)?;
        cursor.check(!deletion.is_live(), &"a deletion is told where there is none")?;
        Ok(deletion)
    }

    #[inline]
    fn put_timestamp(&mut self, timestamp: i64, out: &mut Vec<u8>) {
        put_signed(timestamp.wrapping_sub(self.timestamp), out);
        self.timestamp = timestamp;
    }

    #[inline(always)]
    fn take_timestamp(&mut self, cursor: &mut Cursor<'_>) -> Decoded<i64> {
        self.timestamp = self.timestamp.wrapping_add(cursor.signed()?);
        Ok(self.timestamp)
    }

    fn put_local_time(&self, expiry: &Expiry, out: &mut Vec<u8>) {
        put_signed(expiry.local_time.wrapping_sub(self.likely_local_time(expiry.ttl)), out);
    }

    fn take_local_time(&self, ttl: u32, cursor: &mut Cursor<'_>) -> Decoded<i64> {
        Ok(self.likely_local_time(ttl).wrapping_add(cursor.signed()?))
    }

    /// The second in which what was just written expires, if the clocks agree.
    fn likely_local_time(&self, ttl: u32) -> i64 {
        self.timestamp.div_euclid(1_000_000) + i64::from(ttl)
    }
}
