//! The ramp-up of a run's sessions.

use pubmark_model::fleet::Device;
use pubmark_model::schedule::{ChurnCursor, Rules};
use serde::{Deserialize, Serialize};

use crate::plan::RunPlan;
use crate::shared_connections::SharedConnections;
use crate::shares::Side;

/// Number of sessions of a side that connect before the schedule begins: all that receive, and those that only send and
/// are planned to be online at that time.
pub fn sessions_at_start(plan: &RunPlan, side: Side) -> u64 {
    if side == Side::Subscribe {
        return plan.listening_sessions() as u64;
    }
    let rules = Rules::all(&plan.workload, plan.seed, &plan.timeline);
    // Only a device with a connection that it does not share disconnects and reconnects by plan.
    let online = |members: &Vec<Device>| {
        members.iter().all(|device| {
            let group = usize::from(device.group);
            plan.workload.devices[group].churn.is_none() || ChurnCursor::new(&rules[group], device).online_at_start()
        })
    };
    SharedConnections::new(&plan.workload, &plan.fleet).sending().filter(online).count() as u64
}

/// Ramp-up of sessions before the schedule began. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ramp {
    /// Sessions that were accepted; a reconnect does not count again.
    pub accepted: u64,
    /// The first attempt, and the last acceptance; `None` if there was no attempt yet.
    pub span_ns: Option<(u64, u64)>,
}

impl Ramp {
    /// An attempt to connect begins.
    pub fn tried(&mut self, at_ns: u64) {
        self.span_ns.get_or_insert((at_ns, at_ns));
    }

    /// A session was accepted for the first time.
    pub fn accepted(&mut self, at_ns: u64) {
        self.accepted += 1;
        let (first_ns, last_ns) = self.span_ns.get_or_insert((at_ns, at_ns));
        *last_ns = at_ns.max(*last_ns).max(*first_ns);
    }

    /// Adds the ramp-up of another shard.
    pub fn merge(&mut self, other: &Ramp) {
        self.accepted += other.accepted;
        self.span_ns = match (self.span_ns, other.span_ns) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }

    /// Time from the first attempt to the last acceptance, s; `None` if no session was accepted.
    pub fn seconds(&self) -> Option<f64> {
        let (first_ns, last_ns) = self.span_ns.filter(|_| self.accepted > 0)?;
        Some((last_ns - first_ns) as f64 / 1e9)
    }
}
