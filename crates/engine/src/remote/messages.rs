//! What is said between a run and its worker processes.

use serde::{Deserialize, Serialize};

use super::order::Order;
use crate::command::Command;
use crate::shard_outcome::ShardOutcome;

/// To a worker process.
#[derive(Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// What to do; said once, first.
    Order(Box<Order>),
    /// A command for a shard, by its index in the run.
    Command { shard: u32, command: Command },
}

/// From a worker process.
#[derive(Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// All its shards have opened their adapters.
    Opened,
    /// It cannot do what it was told, or a shard failed; why.
    Failed(String),
    /// A shard has ended before it was told to.
    Ended,
    /// What a shard found out.
    Outcome { shard: u32, outcome: Box<ShardOutcome> },
    /// What the access network carried that the process made; before the last outcome.
    Access(Vec<u8>),
}
