//! A worker: shards that generate and measure, driven by commands from whoever started them. Here they are threads of this
//! process and commands go over channels; a worker process takes the same commands from a socket.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

use pubmark_protocol::clients::{Clients, Waker};

use crate::error::EngineError;
use crate::outcome::ShardOutcome;
use crate::progress::Progress;
use crate::shard::{self, Setup};

/// What a shard is told. Nothing is told while it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Bring the sessions up.
    Connect,
    /// Follow the schedule; the measured window starts at this time of `CLOCK_MONOTONIC`.
    Begin {
        /// The time, ns.
        start_ns: u64,
    },
    /// Publishing is over.
    Close {
        /// Since this time, ns.
        at_ns: u64,
    },
    /// End the sessions and hand over the outcome.
    Finish,
}

/// What the thread of a shard does over one adapter, until it is told to finish; it tells its waker when the adapter is open.
pub type ShardRun = fn(Setup, &Receiver<Command>, &Sender<Waker>) -> Result<ShardOutcome, EngineError>;

/// [`ShardRun`] over an adapter.
pub const fn over<C: Clients>() -> ShardRun {
    shard::run::<C>
}

struct Thread {
    name: String,
    commands: Sender<Command>,
    waker: Option<Waker>,
    handle: JoinHandle<Result<ShardOutcome, EngineError>>,
}

impl Thread {
    fn tell(&self, command: Command) {
        // A shard that is gone has failed: `finish` reports it.
        let _ = self.commands.send(command);
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Running shards.
pub struct Worker {
    threads: Vec<Thread>,
    /// Shared with the shards.
    pub progress: Arc<Progress>,
}

impl Worker {
    /// Starts the shards, each with what it does over its adapter, and waits until each has opened it.
    pub fn start(setups: Vec<(Setup, ShardRun)>, progress: Arc<Progress>) -> Result<Worker, EngineError> {
        let mut worker = Worker { threads: Vec::with_capacity(setups.len()), progress };
        let mut opened = Vec::with_capacity(setups.len());
        for (setup, run) in setups {
            let name = setup.name.clone();
            let (commands, inbox) = mpsc::channel();
            let (tell_opened, when_opened) = mpsc::channel();
            let handle = Builder::new()
                .name(name.replace(' ', "-"))
                .spawn(move || run(setup, &inbox, &tell_opened))
                .map_err(|source| EngineError::Thread { shard: name.clone(), source })?;
            worker.threads.push(Thread { name, commands, waker: None, handle });
            opened.push(when_opened);
        }
        for (thread, opened) in worker.threads.iter_mut().zip(opened) {
            // A shard that could not open has ended, and its result says why.
            thread.waker = opened.recv().ok();
        }
        match worker.threads.iter().all(|thread| thread.waker.is_some()) {
            true => Ok(worker),
            false => Err(worker.finish().err().unwrap_or_else(|| EngineError::Lost("unknown".to_owned()))),
        }
    }

    /// Tells the chosen shards.
    pub fn tell(&self, command: Command, chosen: impl Fn(usize) -> bool) {
        for (_, thread) in self.threads.iter().enumerate().filter(|(index, _)| chosen(*index)) {
            thread.tell(command);
        }
    }

    /// Has a shard ended before it was told to?
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(|thread| thread.handle.is_finished())
    }

    /// Ends all shards and collects what they found out; the first error if one failed. One after the other, in their order:
    /// where there is no broker, a subscriber that left before its devices would break their connections.
    pub fn finish(self) -> Result<Vec<ShardOutcome>, EngineError> {
        let results: Vec<_> = self
            .threads
            .into_iter()
            .map(|thread| {
                thread.tell(Command::Finish);
                thread.handle.join().unwrap_or(Err(EngineError::Lost(thread.name)))
            })
            .collect();
        results.into_iter().collect()
    }
}
