//! The tests that go across the crate, in one program: each takes as long to build as the crate itself.
//!
//! Those that count all of a process, its allocations or its memory, are programs of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod astray;
mod bloom_pages;
mod faults;
mod fences;
mod forwarding;
mod guesses;
mod identity;
mod large_partition;
mod limits;
mod opening;
mod places;
mod requests;
mod row_filter;
mod slices;
mod small_partitions;
mod tokens;
mod verify;
mod write_read;
