//! What ScyllaDB has published of its programs, as far as it is drawn beside ours.

/// Requests and KiB of a slice of the large partition of ten million rows of 2000 bytes: by offset, by rows.
pub(super) const SLICING: [(u64, &[Slicing]); 2] = [
    (
        0,
        &[
            Slicing { rows: 1, scan: (4, 320), binary: (17, 188) },
            Slicing { rows: 32, scan: (3, 324), binary: (19, 160) },
            Slicing { rows: 256, scan: (7, 776), binary: (24, 764) },
            Slicing { rows: 4096, scan: (66, 8376), binary: (83, 8700) },
        ],
    ),
    (
        5_000_000,
        &[
            Slicing { rows: 1, scan: (29, 3520), binary: (21, 172) },
            Slicing { rows: 32, scan: (32, 3588), binary: (22, 268) },
            Slicing { rows: 256, scan: (39, 4544), binary: (37, 652) },
            Slicing { rows: 4096, scan: (95, 12_160), binary: (88, 8844) },
        ],
    ),
];

/// A line of it: requests and KiB.
pub(super) struct Slicing {
    pub(super) rows: u64,
    /// With a linear scan of the index.
    pub(super) scan: (u64, u64),
    /// With the binary search that took its place.
    pub(super) binary: (u64, u64),
}

/// Rows of the partition that the figures are of.
pub(super) const SLICING_ROWS: u64 = 10_000_000;
