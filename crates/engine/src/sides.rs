//! The main functions of the shards of devices and of subscribers, each for its adapter.

use std::sync::mpsc::{Receiver, Sender};

use pubmark_protocol::clients::{Clients, Waker};

use crate::command::Command;
use crate::error::EngineError;
use crate::shard::event_loop;
use crate::shard::setup::Setup;
use crate::shard_outcome::ShardOutcome;

/// The main function of a shard's thread, for one adapter. It sends its waker when the adapter is open, and returns
/// after `Command::Finish`.
pub type ShardRun = fn(Setup, &Receiver<Command>, &Sender<Waker>) -> Result<ShardOutcome, EngineError>;

/// [`ShardRun`] for an adapter.
pub const fn over<C: Clients>() -> ShardRun {
    event_loop::run::<C>
}

/// The main function of each side's shards: one adapter for both sides, or one for each.
#[derive(Clone, Copy)]
pub struct Sides {
    /// For devices.
    pub publish: ShardRun,
    /// For subscribers.
    pub subscribe: ShardRun,
}

impl Sides {
    /// Both sides with one adapter.
    pub fn both<C: Clients>() -> Sides {
        Sides { publish: over::<C>(), subscribe: over::<C>() }
    }
}
