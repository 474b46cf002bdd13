//! The bytes of a segment: a header, then records, with a mark before each of the writes that brought them.
//!
//! ```text
//! header   0        8         12        20        28     36      40
//!          siltclog  format(1) segment   session   salt   CRC32 of all before it
//!
//! mark     0        4         8         16        24      32      36
//!          "mark"    kind      segment   salt      synced  CRC32 of all before it and of the mark's place
//!                    1 records follow, 2 the end
//!
//! record   0        4         20        24        24+n    28+n
//!          n         table     CRC32 a   payload   CRC32 b
//!          a: of segment, salt, the record's place, n, table       b: of the same and the payload
//! ```
//!
//! All numbers are big-endian. A *place* is the offset in the file, as 8 bytes. *Segment*, *session* and *salt* have 8
//! bytes: the number of the segment, that of the first one since the log was opened, and the microseconds since the epoch
//! at which it was. Because checksums cover place, segment and salt, bytes that are left of another file, or of this one's
//! namesake, are never taken for a record.
//!
//! *Synced* is what the whole format is about: all bytes before that offset were durable when the mark was written. So a
//! mark that is intact tells of every flaw before that offset that no power cut has caused it.
//!
//! No record is as long as the letters of a mark would have it, so that the two cannot be mistaken for each other.

use std::ops::Range;

use crc32fast::Hasher;

use super::TableId;

/// Bytes of the header of a segment.
pub(super) const HEADER_LEN: usize = 40;
/// Bytes of a mark.
pub(super) const MARK_LEN: usize = 36;
/// Bytes that a record takes beside its payload.
pub(super) const RECORD_OVERHEAD: usize = RECORD_HEAD + 4;
/// Bytes of a record before its payload.
const RECORD_HEAD: usize = 24;

const MAGIC: &[u8; 8] = b"siltclog";
const FORMAT: u32 = 1;
const MARK: &[u8; 4] = b"mark";
const FOLLOW: u32 = 1;
const END: u32 = 2;

const _: () = assert!(super::MAX_RECORD < u32::from_be_bytes(*MARK) as usize);

/// What a segment says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// Its number.
    pub(super) segment: u64,
    /// The number of the first segment since the log was opened.
    pub(super) session: u64,
    /// Microseconds since the epoch, when it was.
    pub(super) salt: u64,
}

/// Why there is no header to be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum HeaderFlaw {
    /// It is not there or not intact.
    Damaged,
    /// It is intact, but of a format that is not known.
    UnknownFormat(u32),
}

impl Header {
    /// The bytes of the header.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_be_bytes());
        for number in [self.segment, self.session, self.salt] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// The header at the start of `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Result<Header, HeaderFlaw> {
        let head = bytes.get(..HEADER_LEN).ok_or(HeaderFlaw::Damaged)?;
        if !head.starts_with(MAGIC) || u32_at(head, 36) != crc32fast::hash(&head[..36]) {
            return Err(HeaderFlaw::Damaged);
        }
        match u32_at(head, 8) {
            FORMAT => {
                let [segment, session, salt] = [12, 20, 28].map(|at| u64_at(head, at));
                Ok(Header { segment, session, salt })
            }
            format => Err(HeaderFlaw::UnknownFormat(format)),
        }
    }
}

/// What binds marks and records to their segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Binding {
    segment: u64,
    salt: u64,
    /// The checksum of both, which those of records go on from.
    checksum: u32,
}

impl Binding {
    /// That of a segment.
    pub(super) fn new(segment: u64, salt: u64) -> Binding {
        let mut hasher = Hasher::new();
        hasher.update(&segment.to_be_bytes());
        hasher.update(&salt.to_be_bytes());
        Binding { segment, salt, checksum: hasher.finalize() }
    }

    /// The checksum of a record's head, to go on from.
    fn hasher(&self, place: u64, length_and_table: &[u8]) -> Hasher {
        let mut hasher = Hasher::new_with_initial(self.checksum);
        hasher.update(&place.to_be_bytes());
        hasher.update(length_and_table);
        hasher
    }
}

/// Says what was durable when it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    /// Whether nothing follows.
    pub(super) is_end: bool,
    /// All before this offset was durable.
    pub(super) synced: u64,
}

impl Mark {
    /// The bytes of the mark at an offset of its segment.
    pub(super) fn encode(&self, binding: &Binding, place: u64) -> [u8; MARK_LEN] {
        let mut bytes = [0; MARK_LEN];
        bytes[..4].copy_from_slice(MARK);
        bytes[4..8].copy_from_slice(&if self.is_end { END } else { FOLLOW }.to_be_bytes());
        bytes[8..16].copy_from_slice(&binding.segment.to_be_bytes());
        bytes[16..24].copy_from_slice(&binding.salt.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.synced.to_be_bytes());
        let checksum = mark_checksum(&bytes, place);
        bytes[32..].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// The mark at `at` of a segment with this number, if there is an intact one, and the binding that it tells.
    pub(super) fn decode(bytes: &[u8], at: usize, segment: u64) -> Option<(Mark, Binding)> {
        let mark = bytes.get(at..)?.get(..MARK_LEN)?;
        let is_intact = mark.starts_with(MARK)
            && u64_at(mark, 8) == segment
            && u32_at(mark, 32) == mark_checksum(mark, at as u64);
        let kind = u32_at(mark, 4);
        let synced = u64_at(mark, 24);
        let is_sound = (kind == FOLLOW || kind == END) && synced <= at as u64;
        let mark = Mark { is_end: kind == END, synced };
        (is_intact && is_sound).then(|| (mark, Binding::new(segment, u64_at(bytes, at + 16))))
    }
}

fn mark_checksum(mark: &[u8], place: u64) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&mark[..32]);
    hasher.update(&place.to_be_bytes());
    hasher.finalize()
}

/// All intact marks of a segment with this number that begin at `from` or later, wherever they stand.
pub(super) fn marks(
    bytes: &[u8],
    from: usize,
    segment: u64,
) -> impl Iterator<Item = (usize, Mark, Binding)> + '_ {
    let starts = bytes.get(from..).unwrap_or_default().windows(MARK.len()).enumerate();
    starts.filter(|(_, window)| window == MARK).filter_map(move |(skipped, _)| {
        let at = from + skipped;
        Mark::decode(bytes, at, segment).map(|(mark, binding)| (at, mark, binding))
    })
}

/// Where a record stands, and what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// The table.
    pub(super) table: TableId,
    /// Where its payload is in the segment.
    pub(super) payload: Range<usize>,
}

impl Record {
    /// Appends a record to the bytes that begin at the offset `start` of their segment.
    ///
    /// # Panics
    /// If the payload is longer than [`super::MAX_RECORD`].
    pub(super) fn encode(out: &mut Vec<u8>, start: u64, binding: &Binding, table: TableId, payload: &[u8]) {
        assert!(payload.len() <= super::MAX_RECORD, "a record has at most its greatest length");
        let at = out.len();
        out.reserve(RECORD_OVERHEAD + payload.len());
        out.extend((payload.len() as u32).to_be_bytes());
        out.extend(table.0);
        let mut hasher = binding.hasher(start + at as u64, &out[at..]);
        out.extend(hasher.clone().finalize().to_be_bytes());
        hasher.update(payload);
        out.extend_from_slice(payload);
        out.extend(hasher.finalize().to_be_bytes());
    }

    /// The record at `at` of a segment.
    pub(super) fn decode(bytes: &[u8], at: usize, binding: &Binding) -> Result<Record, Flaw> {
        let rest = bytes.get(at..).unwrap_or_default();
        let head = rest.get(..RECORD_HEAD).ok_or(Flaw::here("the bytes end within the head of a record"))?;
        let length = u32_at(head, 0) as usize;
        // The length is looked at first, because it is what tells most of what is no record at no cost.
        if length > super::MAX_RECORD {
            return Err(Flaw::here("neither a record nor a mark"));
        }
        let mut hasher = binding.hasher(at as u64, &head[..20]);
        if hasher.clone().finalize() != u32_at(head, 20) {
            return Err(Flaw::here("the checksum of a record's head is wrong"));
        }
        let payload = at + RECORD_HEAD..at + RECORD_HEAD + length;
        let end = payload.end + 4;
        let Some(body) = bytes.get(payload.start..end) else {
            return Err(Flaw::here("the bytes end within a record"));
        };
        hasher.update(&body[..length]);
        if hasher.finalize() != u32_at(body, length) {
            return Err(Flaw { what: "the checksum of a record is wrong", next: Some(end) });
        }
        let table = TableId(head[4..20].try_into().expect("a table has 16 bytes"));
        Ok(Record { table, payload })
    }

    /// Where the next thing stands.
    pub(super) fn end(&self) -> usize {
        self.payload.end + 4
    }
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flaw {
    /// In words.
    pub(super) what: &'static str,
    /// Where the next thing stands, if that is known for sure.
    pub(super) next: Option<usize>,
}

impl Flaw {
    /// A flaw of which nobody knows how far it reaches.
    pub(super) fn here(what: &'static str) -> Flaw {
        Flaw { what, next: None }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: fn() -> Binding = || Binding::new(7, 99);
    const TABLE: TableId = TableId([3; 16]);

    /// A segment with two records behind a mark, and the end.
    fn segment() -> Vec<u8> {
        let mut bytes = Header { segment: 7, session: 5, salt: 99 }.encode();
        bytes.extend(Mark { is_end: false, synced: 40 }.encode(&BINDING(), 40));
        Record::encode(&mut bytes, 0, &BINDING(), TABLE, b"sand");
        Record::encode(&mut bytes, 0, &BINDING(), TABLE, b"");
        let end = bytes.len() as u64;
        bytes.extend(Mark { is_end: true, synced: end }.encode(&BINDING(), end));
        bytes
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let bytes = segment();
        assert_eq!(Header::decode(&bytes), Ok(Header { segment: 7, session: 5, salt: 99 }));
        let mark = Mark { is_end: false, synced: 40 };
        assert_eq!(Mark::decode(&bytes, HEADER_LEN, 7), Some((mark, BINDING())));
        let first = Record::decode(&bytes, 76, &BINDING()).unwrap();
        assert_eq!((first.table, &bytes[first.payload.clone()], first.end()), (TABLE, &b"sand"[..], 108));
        let second = Record::decode(&bytes, 108, &BINDING()).unwrap();
        assert_eq!((second.payload.clone(), second.end()), (132..132, 136));
        let end = Mark { is_end: true, synced: 136 };
        assert_eq!(Mark::decode(&bytes, 136, 7), Some((end, BINDING())));
        assert_eq!(bytes.len(), 172);
        let places: Vec<_> = marks(&bytes, 0, 7).map(|(at, ..)| at).collect();
        assert_eq!(places, [40, 136]);
        assert_eq!(marks(&bytes, 41, 7).count(), 1);
    }

    #[test]
    fn the_bytes_are_as_drawn() {
        let hex = model::hex::to_hex(&segment()[..108]);
        // Worked out by zlib's crc32 of what the page of the format says.
        let (header, rest) = hex.split_at(80);
        assert_eq!(
            header,
            "73696c74636c6f67000000010000000000000007000000000000000500000000000000634ff13ca3"
        );
        let (mark, record) = rest.split_at(72);
        assert_eq!(mark, "6d61726b00000001000000000000000700000000000000630000000000000028e7451889");
        assert_eq!(record, "00000004030303030303030303030303030303031bf183a773616e6414770f64");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = segment();
        for (at, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let is_good = |range: Range<usize>| range.contains(&at);
            assert_eq!(Header::decode(&bytes).is_err(), is_good(0..40), "{at}");
            assert_eq!(Mark::decode(&bytes, 40, 7).is_none(), is_good(40..76), "{at}");
            assert_eq!(Record::decode(&bytes, 76, &BINDING()).is_err(), is_good(76..108), "{at}");
            assert_eq!(Record::decode(&bytes, 108, &BINDING()).is_err(), is_good(108..136), "{at}");
            assert_eq!(Mark::decode(&bytes, 136, 7).is_none(), is_good(136..172), "{at}");
        }
    }

    #[test]
    fn a_damaged_payload_does_not_hide_where_it_ends() {
        let mut bytes = segment();
        bytes[101] ^= 1;
        let flaw = Record::decode(&bytes, 76, &BINDING()).unwrap_err();
        assert_eq!(flaw.next, Some(108));
        bytes[76] ^= 1;
        assert_eq!(Record::decode(&bytes, 76, &BINDING()).unwrap_err().next, None);
    }

    #[test]
    fn what_belongs_elsewhere_is_nothing_here() {
        let bytes = segment();
        for other in [Binding::new(8, 99), Binding::new(7, 98)] {
            assert!(Record::decode(&bytes, 76, &other).is_err());
        }
        assert_eq!(Mark::decode(&bytes, 40, 8), None);
        let shifted: Vec<u8> = [&[0], &bytes[..]].concat();
        assert!(Record::decode(&shifted, 77, &BINDING()).is_err());
        assert_eq!(Mark::decode(&shifted, 41, 7), None);
        assert_eq!(marks(&shifted, 0, 7).count(), 0);
    }

    #[test]
    fn bytes_that_end_early_or_say_nothing_are_flaws() {
        let bytes = segment();
        for end in 0..bytes.len() {
            let cut = &bytes[..end];
            assert_eq!(Header::decode(cut).is_ok(), end >= 40);
            assert_eq!(Mark::decode(cut, 40, 7).is_some(), end >= 76);
            assert_eq!(Record::decode(cut, 76, &BINDING()).is_ok(), end >= 108);
        }
        let zeros = [0; 200];
        assert!(Header::decode(&zeros).is_err() && Mark::decode(&zeros, 0, 7).is_none());
        assert!((0..200).all(|at| Record::decode(&zeros, at, &BINDING()).is_err()));
        assert!(Record::decode(&zeros, 300, &BINDING()).is_err());
    }

    #[test]
    fn another_format_is_told_from_damage() {
        let mut bytes = segment();
        bytes[11] = 2;
        assert_eq!(Header::decode(&bytes), Err(HeaderFlaw::Damaged));
        let checksum = crc32fast::hash(&bytes[..36]);
        bytes[36..40].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(Header::decode(&bytes), Err(HeaderFlaw::UnknownFormat(2)));
    }
}
