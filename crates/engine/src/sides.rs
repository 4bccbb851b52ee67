//! What the shards of devices and of subscribers do, each over its adapter.

use std::sync::mpsc::{Receiver, Sender};

use pubmark_protocol::clients::{Clients, Waker};

use crate::command::Command;
use crate::error::EngineError;
use crate::shard::event_loop;
use crate::shard::setup::Setup;
use crate::shard_outcome::ShardOutcome;

/// The main function of a shard's thread, for one adapter. It returns after `Command::Finish`, and sends its waker when the adapter is open.
pub type ShardRun = fn(Setup, &Receiver<Command>, &Sender<Waker>) -> Result<ShardOutcome, EngineError>;

/// [`ShardRun`] over an adapter.
pub const fn over<C: Clients>() -> ShardRun {
    event_loop::run::<C>
}

/// What each side's shards do: one adapter for both, or one for each.
#[derive(Clone, Copy)]
pub struct Sides {
    /// Devices.
    pub publish: ShardRun,
    /// Subscribers.
    pub subscribe: ShardRun,
}

impl Sides {
    /// Both sides over one adapter.
    pub fn both<C: Clients>() -> Sides {
        Sides { publish: over::<C>(), subscribe: over::<C>() }
    }
}
