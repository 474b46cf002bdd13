//! What ScyllaDB has published of its programs, as far as it is drawn beside ours.
//!
//! Requests and bytes are of the same work on the same rows. Times and rates are of other machines: they show the shape of a
//! curve, not who is faster.

/// A line that was printed by the fast-forward program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) requests: u64,
    pub(super) kib: u64,
    /// Rows a second.
    pub(super) rate: u64,
}

/// The same lines, before and after a change.
#[derive(Debug)]
pub(super) struct Change<T: 'static> {
    pub(super) before: T,
    pub(super) after: T,
}

/// Slices of a partition, from one row on.
#[derive(Debug)]
pub(super) struct Slicing {
    /// Rows of the partition, and bytes of a value.
    pub(super) dataset: (u64, u64),
    /// The first row.
    pub(super) offset: u64,
    /// For 1, 32, 256, 4096 rows; with a linear scan of the index, and with the binary search that took its place.
    pub(super) lines: Change<[Read; 4]>,
}

/// How many rows the slices ask for.
pub(super) const SLICES: [u64; 4] = [1, 32, 256, 4096];

/// Slices of the large partition, and of one of two blocks.
pub(super) const SLICING: [Slicing; 4] = [
    Slicing {
        dataset: (10_000_000, 2000),
        offset: 0,
        lines: Change {
            before: [read(4, 320, 545), read(3, 324, 17_220), read(7, 776, 90_374), read(66, 8376, 237_984)],
            after: [
                read(17, 188, 546),
                read(19, 160, 16_751),
                read(24, 764, 72_207),
                read(83, 8700, 243_812),
            ],
        },
    },
    Slicing {
        dataset: (10_000_000, 2000),
        offset: 5_000_000,
        lines: Change {
            before: [
                read(29, 3520, 44),
                read(32, 3588, 1388),
                read(39, 4544, 10_325),
                read(95, 12_160, 105_414),
            ],
            after: [
                read(21, 172, 508),
                read(22, 268, 14_077),
                read(37, 652, 65_824),
                read(88, 8844, 239_324),
            ],
        },
    },
    Slicing {
        dataset: (400, 200),
        offset: 0,
        lines: Change {
            before: [read(3, 68, 3587), read(3, 68, 116_038), read(2, 72, 621_044), read(2, 88, 783_883)],
            after: [read(3, 68, 3598), read(3, 68, 116_153), read(2, 88, 559_437), read(2, 88, 790_064)],
        },
    },
    Slicing {
        dataset: (400, 200),
        offset: 200,
        lines: Change {
            before: [read(2, 72, 2951), read(2, 72, 91_019), read(2, 88, 436_503), read(2, 88, 436_475)],
            after: [read(2, 88, 2619), read(2, 88, 80_422), read(2, 88, 435_943), read(2, 88, 436_410)],
        },
    },
];

/// Rows of the partition, and bytes of a value, of which every second row is read.
pub(super) const SKIPS_DATASET: (u64, u64) = (10_000_000, 2000);

/// One row read, one skipped, again and again.
pub(super) const SKIPS: Change<Read> =
    Change { before: read(153_932, 19_703_260, 138_491), after: read(155_651, 19_704_088, 135_135) };

/// Rows of the partition in which two neighbours are read, and after how many KiB its index has a block. How large its values
/// are was not said.
pub(super) const NEIGHBOURS_DATASET: (u64, u64) = (1_000_000, 1);

/// A row in the middle, and then the next one with what the first has left in the caches; before and after the exact range.
pub(super) const NEIGHBOURS: Change<[(u64, Read); 2]> = Change {
    before: [(500_000, read(21, 196, 102)), (500_001, read(2, 64, 3113))],
    after: [(500_000, read(20, 137, 104)), (500_001, read(1, 2, 4602))],
};

const fn read(requests: u64, kib: u64, rate: u64) -> Read {
    Read { requests, kib, rate }
}

/// A configuration of the simple query.
#[derive(Debug)]
pub(super) struct Queries {
    pub(super) partitions: u64,
    /// Whether rows and indexes are kept in memory.
    pub(super) is_cached: bool,
    pub(super) summary_ratio: f64,
    /// Before and after the compact index; the first line of each, as far as counts go.
    pub(super) lines: Change<Query>,
}

/// What an operation costs, and how many there were a second.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) allocations: f64,
    pub(super) into_caches: f64,
    pub(super) tasks: f64,
    pub(super) instructions: f64,
    pub(super) rates: &'static [f64],
}

/// Memory of all of them.
pub(super) const QUERY_MEMORY: u64 = 200 << 20;

/// Rows by their keys, with less memory than there is data, and with none for it.
pub(super) const QUERIES: [Queries; 3] = [
    Queries {
        partitions: 1_000_000,
        is_cached: true,
        summary_ratio: 0.0005,
        lines: Change {
            before: Query {
                allocations: 166.0,
                into_caches: 521.7,
                tasks: 54.0,
                instructions: 802_428.0,
                rates: &[7774.96, 7511.08, 7740.44, 7818.72, 7865.49],
            },
            after: Query {
                allocations: 130.7,
                into_caches: 12.8,
                tasks: 36.1,
                instructions: 109_236.0,
                rates: &[
                    32_492.40, 32_591.99, 32_514.52, 32_491.14, 32_582.90, 32_479.43, 32_418.48, 31_394.14,
                    32_298.55,
                ],
            },
        },
    },
    Queries {
        partitions: 100_000,
        is_cached: false,
        summary_ratio: 0.0005,
        lines: Change {
            before: Query {
                allocations: 146.2,
                into_caches: 789.0,
                tasks: 45.3,
                instructions: 889_320.0,
                rates: &[9124.57, 9437.23, 9455.65, 9451.22, 9429.50, 9430.29, 9454.08],
            },
            after: Query {
                allocations: 150.7,
                into_caches: 6.5,
                tasks: 44.7,
                instructions: 396_164.0,
                rates: &[
                    14_484.84, 14_526.21, 14_567.53, 14_545.63, 14_626.06, 14_593.74, 14_538.10, 14_527.18,
                ],
            },
        },
    },
    Queries {
        partitions: 100_000,
        is_cached: false,
        summary_ratio: 0.005,
        lines: Change {
            before: Query {
                allocations: 146.1,
                into_caches: 83.6,
                tasks: 45.1,
                instructions: 170_553.0,
                rates: &[
                    33_906.70, 32_696.16, 33_889.05, 33_893.24, 33_836.73, 33_897.61, 33_834.73, 33_776.31,
                    33_808.08,
                ],
            },
            after: Query {
                allocations: 148.2,
                into_caches: 4.4,
                tasks: 45.0,
                instructions: 121_047.0,
                rates: &[
                    40_081.51, 40_005.85, 39_816.75, 39_953.11, 40_073.96, 39_882.25, 39_916.08, 39_786.30,
                    38_662.45, 39_849.42,
                ],
            },
        },
    },
];

/// A case of single keys: its name here, and its latencies in milliseconds, from the mean to the greatest.
pub(super) type Latency = (&'static str, [f64; 6]);

/// What the latencies are.
pub(super) const LATENCIES: [&str; 6] =
    ["mean", "median", "95th percentile", "99th percentile", "99.9th percentile", "max"];

/// Rows of three SSTables, read all at once or newest first.
pub(super) const SINGLE_KEY: [Latency; 5] = [
    ("off", [1.3, 1.0, 2.4, 2.9, 8.0, 13.5]),
    ("best", [0.6, 0.6, 1.0, 1.2, 4.4, 13.4]),
    ("in", [0.7, 0.6, 1.1, 1.4, 5.4, 16.8]),
    ("mid", [1.4, 1.1, 2.7, 3.2, 7.7, 15.1]),
    ("worst", [2.8, 2.3, 5.4, 6.5, 13.5, 19.2]),
];
