//! Observes messages on the links: each packet of a linked run goes through the emulator, so a message's payload header
//! (`pubmark_protocol::header`) shows there when the message arrived at a link and when all of it had left it, without any
//! change in the system.
//!
//! [`Watch`] is the caller's side, [`Watcher`] the observer in the emulator's thread. The result is a list of [`Sighting`]s,
//! bounded in length.

mod find;
mod flow;
mod packet;
#[cfg(test)]
mod tests;
mod watcher;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pubmark_protocol::sampling::Sampling;

use crate::Direction;

pub use watcher::Watcher;

/// What to look for.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Number of the run, as in its payload headers.
    pub run: u32,
    /// Which messages are followed.
    pub sampling: Sampling,
    /// By publisher: size of all its payloads, bytes; 0 where they differ.
    pub payload_bytes: Arc<[u32]>,
    /// Length of the measured window: messages due in it are followed, ns.
    pub duration_ns: u64,
    /// Most sightings stored.
    pub most: usize,
}

/// A message that passed a link in one direction. Repetitions are sightings of their own, later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Whose link it is, counted from 0.
    pub group: u16,
    /// Which direction.
    pub direction: Direction,
    /// Port at the group's side, which distinguishes its connections.
    pub port: u16,
    /// Payload bytes, from the header on, that had passed by `out_ns`.
    pub bytes: u32,
    /// When its front first came to the link, lost or not; ns of the clock that this process follows.
    pub in_ns: u64,
    /// When it had left the link with all that its connection carried before it, so that its receiver could read it.
    pub out_ns: u64,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct WatchResult {
    /// In the order of leaving.
    pub sightings: Vec<Sighting>,
    /// Sightings that were not stored, as there were too many, or too many gaps in what their connection carried.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Shared {
    spec: OnceLock<WatchSpec>,
    /// Start of the measured window; 0 before it is known.
    start_ns: AtomicU64,
    /// Put here when the emulator ends.
    seen: Mutex<WatchResult>,
}

/// The caller's end.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Nothing is watched before [`Watch::begin`].
    pub fn new() -> Watch {
        Watch::default()
    }

    /// The observer to give to [`crate::network::Network::start_observed`].
    pub fn watcher(&self) -> Watcher {
        Watcher::new(Arc::clone(&self.0))
    }

    /// Sets what to look for; only the first call counts.
    pub fn order(&self, spec: WatchSpec) {
        let _ = self.0.spec.set(spec);
    }

    /// Watches from now on; the measured window starts at this time of the clock that this process follows, ns.
    pub fn begin(&self, start_ns: u64) {
        self.0.start_ns.store(start_ns, Ordering::Release);
    }

    /// What was seen; empty before the emulator has ended.
    pub fn take(&self) -> WatchResult {
        std::mem::take(&mut self.0.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
