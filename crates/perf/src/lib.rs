//! The published benchmarks, rebuilt: the same datasets, cases and columns, so that tables can be laid side by side.
//!
//! | module | idea |
//! |---|---|
//! | [`fast_forward`] | slices and skips of a large partition and of many small ones |
//! | [`allocations`] | how many allocations a thread made |
//!
//! Requests and bytes are exact and repeat on any machine; allocations nearly, as the order in which requests end may change
//! a few. Times do not: they are for ratios within one run.

pub mod allocations;
pub mod fast_forward;
