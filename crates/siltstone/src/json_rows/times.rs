//! Timestamps, deletions and times to live, with what stands for those that are missing.
//!
//! Times are text as dumps print it, or numbers: microseconds of timestamps, seconds of all others. A local time that is
//! missing is the second of the timestamp, to which a time to live is added.

use std::ops::Range;

use model::time::{NO_DELETION_TIME, NO_TIMESTAMP};
use model::types::parse_instant;
use model::{DeletionTime, Liveness};

use crate::json_members::{Members, Read, Refusal};

const MICROS: i64 = 1_000_000;

/// The greatest time to live, which is that of a dead row marker too.
const MOST_TTL: i64 = i32::MAX as i64;

/// Seconds from here on do not fit the format.
const LOCAL_END: i64 = u32::MAX as i64;

/// Reads times.
#[derive(Debug)]
pub(super) struct Times {
    default_timestamp: Option<i64>,
}

/// The time to live of a cell, and when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ttl {
    pub(super) seconds: u32,
    pub(super) end: i64,
}

impl Times {
    pub(super) fn new(default_timestamp: Option<i64>) -> Times {
        Times { default_timestamp }
    }

    /// A timestamp: that of the member, else the row's, else the default.
    pub(super) fn timestamp(&self, members: &mut Members<'_>, name: &str, row: &Liveness) -> Read<i64> {
        let default = if row.is_none() { self.default_timestamp } else { Some(row.timestamp) };
        match members.take(name) {
            Some(piece) => micros(members, &piece).map_err(|error| error.within(name)),
            None => {
                default.ok_or_else(|| Refusal::new(format!("{name} is missing, and no default is given")))
            }
        }
    }

    /// The row marker, if there is one.
    pub(super) fn liveness_info(&self, members: &mut Members<'_>) -> Read<Liveness> {
        let name = "liveness_info";
        let Some(members) = members.take_object(name)? else { return Ok(Liveness::NONE) };
        self.liveness(members).map_err(|error| error.within(name))
    }

    fn liveness(&self, mut members: Members<'_>) -> Read<Liveness> {
        let timestamp = self.timestamp(&mut members, "tstamp", &Liveness::NONE)?;
        if timestamp == NO_TIMESTAMP {
            return Err(Refusal::new("tstamp: this number stands for no timestamp"));
        }
        let ttl = ttl(&mut members, timestamp)?.unwrap_or(Ttl::NONE);
        members.finish("liveness_info")?;
        Ok(Liveness { timestamp, ttl: ttl.seconds, local_expiration_time: ttl.end })
    }

    /// The deletion of a partition, a row, a range or a collection, if there is one.
    pub(super) fn deletion_info(&self, members: &mut Members<'_>) -> Read<Option<DeletionTime>> {
        self.deletion(members, "deletion_info")
    }

    /// The same, in a member of another name.
    pub(super) fn deletion(&self, members: &mut Members<'_>, name: &str) -> Read<Option<DeletionTime>> {
        let Some(mut members) = members.take_object(name)? else { return Ok(None) };
        let deletion = self.deletion_of(&mut members).and_then(|deletion| {
            members.finish("deletion_info")?;
            Ok(deletion)
        });
        deletion.map(Some).map_err(|error| error.within(name))
    }

    fn deletion_of(&self, members: &mut Members<'_>) -> Read<DeletionTime> {
        let marked_for_delete_at = self.timestamp(members, "marked_deleted", &Liveness::NONE)?;
        let local = local_time(members, "local_delete_time")?;
        let local_deletion_time = local.unwrap_or_else(|| second_of(marked_for_delete_at));
        let deletion = DeletionTime { marked_for_delete_at, local_deletion_time };
        if deletion.is_live() { Err(Refusal::new("it deletes nothing")) } else { Ok(deletion) }
    }

    /// When a cell was deleted, on the clock of its server.
    pub(super) fn cell_deletion(&self, mut members: Members<'_>, timestamp: i64) -> Read<i64> {
        let local = local_time(&mut members, "local_delete_time")?;
        members.finish("the deletion_info of a cell")?;
        Ok(local.unwrap_or_else(|| second_of(timestamp)))
    }
}

impl Ttl {
    /// What does not expire.
    pub(super) const NONE: Ttl = Ttl { seconds: 0, end: NO_DELETION_TIME };

    /// That of a row.
    pub(super) fn of(row: &Liveness) -> Ttl {
        Ttl { seconds: row.ttl, end: row.local_expiration_time }
    }
}

/// The time to live that is told. Whether it is over is not asked: `expired` depends on when it was printed.
pub(super) fn ttl(members: &mut Members<'_>, timestamp: i64) -> Read<Option<Ttl>> {
    members.take("expired");
    let end = local_time(members, "expires_at")?;
    let Some(piece) = members.take("ttl") else {
        return match end {
            Some(_) => Err(Refusal::new("there is expires_at, but no ttl")),
            None => Ok(None),
        };
    };
    let seconds = members.integer(&piece).map_err(|error| error.within("ttl"))?;
    if !(0..=MOST_TTL).contains(&seconds) {
        return Err(Refusal::new(format!("ttl: {seconds} is not between 0 and {MOST_TTL} seconds")));
    }
    let end = match (end, seconds) {
        (Some(_), 0) => return Err(Refusal::new("ttl: what does not expire has no expires_at")),
        // Dead row markers have the time of their deletion.
        (Some(end), seconds) if end < seconds && seconds != MOST_TTL => {
            return Err(Refusal::new(format!("ttl: {seconds} seconds are not over at {end}")));
        }
        (Some(end), _) => end,
        (None, 0) => NO_DELETION_TIME,
        (None, seconds) => second_of(timestamp) + seconds,
    };
    if end != NO_DELETION_TIME && end >= LOCAL_END {
        return Err(Refusal::new("ttl: it ends after the year 2106"));
    }
    Ok(Some(Ttl { seconds: seconds as u32, end }))
}

/// The second of a timestamp, as far as there is one.
fn second_of(timestamp: i64) -> i64 {
    (timestamp / MICROS).clamp(0, LOCAL_END - 1)
}

/// A time in microseconds.
fn micros(members: &Members<'_>, piece: &Range<usize>) -> Read<i64> {
    if !members.is_string(piece) {
        return members.integer(piece);
    }
    let text = members.string(piece)?;
    parse_instant(&text).ok_or_else(|| {
        Refusal::new(format!(
            "{text} is no time: one as 2023-11-14T22:13:20.001970Z was expected, or microseconds"
        ))
    })
}

/// A time in seconds that the format has room for.
fn local_time(members: &mut Members<'_>, name: &str) -> Read<Option<i64>> {
    let Some(piece) = members.take(name) else { return Ok(None) };
    seconds(members, &piece).map(Some).map_err(|error| error.within(name))
}

fn seconds(members: &Members<'_>, piece: &Range<usize>) -> Read<i64> {
    let seconds = match members.is_string(piece) {
        false => members.integer(piece)?,
        true => {
            let text = members.string(piece)?;
            let micros = parse_instant(&text).filter(|micros| micros % MICROS == 0);
            micros.map(|micros| micros / MICROS).ok_or_else(|| {
                Refusal::new(format!(
                    "{text} is no time: one as 2023-11-14T22:13:20Z was expected, or seconds"
                ))
            })?
        }
    };
    match seconds {
        NO_DELETION_TIME | 0..LOCAL_END => Ok(seconds),
        _ => Err(Refusal::new("it is not between the years 1970 and 2106")),
    }
}
