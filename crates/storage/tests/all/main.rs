//! The tests that go across the crate, in one program: each takes as long to build as the crate itself.
//!
//! Those that count all of a process, its allocations or its memory, are programs of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod anywhere;
mod apart;
mod chains;
mod damaged_keys;
mod denials;
mod failures;
mod few_rows;
mod gathering;
mod kill;
mod many_keys;
mod one_row;
mod row_cache;
mod shared;
mod simulation;
mod single_rows;
mod spans;
mod store;
