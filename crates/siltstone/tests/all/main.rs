//! The tests that go across the crate, in one program: each takes as long to build as the crate itself.
//!
//! Those that count all of a process, its allocations or its memory, are programs of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bounds;
mod cli;
mod cli_perf;
mod cli_tables;
mod cli_writing;
mod column_order;
mod conversions;
mod damaged_summaries;
mod database;
mod database_random;
mod differential;
mod embedding;
mod json_rows;
mod loads;
mod many_threads;
mod new_rows;
mod nothing_is_lost;
mod opening;
mod readme;
mod reads;
mod scanned;
mod scans;
mod schemas;
mod sweep;
mod table_changes;
mod table_folders;
mod table_schema;
mod written_again;
