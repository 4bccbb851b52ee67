//! The requests and replies of a shard's clients: `requesting` is the requesters' side, `responding` the responders'.

use super::jobs::Jobs;
use crate::requests::ShardRequests;

/// Open requests, and requests that responders of the shard work on.
pub struct Requests {
    /// Message accounting and times.
    pub figures: ShardRequests,
    pub(super) jobs: Jobs,
    pub(super) seed: u64,
    pub(super) run: u32,
    /// Open requests, and replies passed to the adapter and not written.
    pub(super) open: u64,
    pub(super) replies_handed: u64,
}

impl Requests {
    /// No requests yet. `seed` is that of the random processing times, `run` the number of the run.
    pub fn new(figures: ShardRequests, seed: u64, run: u32) -> Requests {
        Requests { figures, jobs: Jobs::default(), seed, run, open: 0, replies_handed: 0 }
    }

    /// Does the shard have requesters?
    pub fn has_requesters(&self) -> bool {
        !self.figures.books.is_empty()
    }

    /// Number of requests and replies that are not settled.
    pub fn in_flight(&self) -> u64 {
        self.open + self.replies_handed + self.jobs.count()
    }
}
