//! The published benchmarks, rebuilt: the same datasets, cases and columns, so that tables can be laid side by side.
//!
//! | module | idea |
//! |---|---|
//! | [`fast_forward`] | slices and skips of a large partition and of many small ones |
//! | [`simple_query`] | one row, read or written by its key |
//! | [`single_key`] | rows that stand in three SSTables, read newest first |
//! | [`reads`] | rows and slices of one partition, wherever they are |
//! | [`bloomfile`] | lookups in bloom filters that are read by pages |
//! | [`growth`] | what a row costs, by the size of what it is in |
//! | [`report`] | charts of what they print |
//! | [`arguments`] | what several of them can be told |
//! | [`allocations`] | how many allocations a thread made |
//! | [`counters`] | how many instructions it carried out |
//! | [`interrupted`] | Ctrl-C, and what is told by then |
//! | `clocks`, `polls` | the time that passes, and how often a shard turned to some work |
//! | `throughput` | operations by a number of workers at once |
//! | `progress` | how far something is that takes long |
//! | `int_rows`, `random` | rows that several of them read, and numbers that look random |
//! | `fences` | whether reads went by fences, as it is told |
//! | `room` | room for a dataset, and for nothing else |
//! | `numbers` | numbers of several runs as one, and as they are printed |
//! | `defaults` | what ScyllaDB does where a table says nothing else |
//!
//! Requests and bytes are exact and repeat on any machine; allocations nearly, as the order in which requests end may change
//! a few. Times do not: they are for ratios within one run.

pub mod allocations;
pub mod arguments;
pub mod bloomfile;
mod clocks;
pub mod counters;
mod defaults;
pub mod fast_forward;
mod fences;
pub mod growth;
mod int_rows;
pub mod interrupted;
mod numbers;
mod polls;
mod progress;
mod random;
pub mod reads;
pub mod report;
mod room;
pub mod simple_query;
pub mod single_key;
mod throughput;
