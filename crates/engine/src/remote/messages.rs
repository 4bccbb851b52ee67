//! Messages between a run and its worker processes.

use serde::{Deserialize, Serialize};

use super::task::WorkerTask;
use crate::command::Command;
use crate::shard_outcome::ShardOutcome;

/// To a worker process.
#[derive(Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// The order; sent once, as the first message.
    Task(Box<WorkerTask>),
    /// A command for a shard, by its index in the run.
    Command { shard: u32, command: Command },
    /// Send your part of the message log. Sent after all outcomes.
    SendLog,
}

/// From a worker process.
#[derive(Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// All its shards have opened their adapters.
    Opened,
    /// It cannot execute its order, a shard failed, or a message is too long; the reason.
    Failed(String),
    /// A shard has ended before its `Finish` command.
    Ended,
    /// Outcome of a shard.
    Outcome { shard: u32, outcome: Box<ShardOutcome> },
    /// Report of the access network that the process set up; sent before the last outcome.
    Access(Vec<u8>),
    /// A piece of the process's part of the message log, at most
    /// [`PIECE_BYTES`](crate::message_log::part::PIECE_BYTES); an empty piece is the end of the part.
    Log(Vec<u8>),
}
