//! The chores of the project; `cargo xtask help` lists them.
//!
//! | module | idea |
//! |---|---|
//! | [`tidy`] | the habits of the house, as far as they can be measured |
//! | [`interop`] | what Cassandra dumps, we dump: asked of Cassandra afresh |
//! | [`compare_dump`] | how long both take for it |
//! | [`compare_write`] | how many rows a second both write |
//! | [`bloomfile`] | what lookups in bloom filters cost |
//! | [`growth`] | how the cost of a row grows |
//! | [`instructions`] | how many instructions reads and writes take |
//! | [`published`] | the published benchmarks, beside what was published |
//! | [`peers`] | what the same work takes Siltstone and other databases |
//! | [`golden`] | golden texts whose answers are Cassandra's, rewritten |
//! | [`pages`] | pages whose tables chores print |
//! | [`measure`] | times and memory of commands |
//! | [`workspace`] | where things are, and the command under test |

pub mod bloomfile;
pub mod compare_dump;
pub mod compare_write;
pub mod golden;
pub mod growth;
pub mod instructions;
pub mod interop;
pub mod measure;
pub mod pages;
pub mod peers;
pub mod published;
pub mod tidy;
pub mod workspace;

/// What a chore ends with; its error is a sentence for whoever started it.
pub use testkit::Result;
