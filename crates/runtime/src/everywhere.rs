//! A test on all kinds of shards: what it asserts holds on each.

use crate::sim::SimOptions;
use crate::{Shard, ShardOptions, run, run_simulated};

pub(crate) fn everywhere(main: impl AsyncFn(Shard) + Send + Sync) {
    run(ShardOptions::default(), &main).unwrap();
    run(ShardOptions { io_uring: false, ..ShardOptions::default() }, &main).unwrap();
    run_simulated(SimOptions::default(), &main).unwrap();
}
