//! Probes: where clients find each other without a broker, each device publishes before the schedule begins, again and again until
//! each reader of its topic has received something. A probe has sequence number 0, which no message of a schedule has, and is in no
//! count of messages.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::workload::{DeviceGroup, Workload};

use crate::plan::RunPlan;

/// Sequence number of a probe.
pub const SEQUENCE: u32 = 0;
/// Time between two rounds of probes: some round trips of discovery.
pub const AGAIN: Duration = Duration::from_millis(250);
/// Longest wait for pairs to meet: DDS announces a participant that nobody answered again after 8 s. Those that have not met by then
/// are judged by what arrives (V24).
pub const LIMIT: Duration = Duration::from_secs(20);

/// Does a group send probes? Devices that come and go may be away, and a request has one responder, whose answer says that it is there.
pub fn sends(group: &DeviceGroup) -> bool {
    group.requests.is_none() && group.churn.is_none()
}

/// By group of devices: does it send probes?
pub fn groups(workload: &Workload) -> Arc<[bool]> {
    workload.devices.iter().map(sends).collect()
}

/// Pairs of a device that sends probes and an audience that its topic reaches.
pub fn pairs(plan: &RunPlan) -> u64 {
    let groups = groups(&plan.workload);
    let sends = |publisher: u32| groups[usize::from(plan.fleet.devices()[publisher as usize].group)];
    let streams = plan.fleet.streams(&plan.workload);
    let mut next = 0;
    let mut pairs = 0;
    for (heard, audience) in streams.iter().zip(plan.fleet.audiences(&plan.workload)) {
        // They are numbered in the order of their first members.
        if audience == next {
            next += 1;
            pairs += heard.iter().filter(|entry| sends(entry.publisher)).count() as u64;
        }
    }
    pairs
}

/// The pairs of a shard's audiences that have met.
#[derive(Debug, Default)]
pub struct Met {
    groups: Arc<[bool]>,
    /// By stream.
    streams: Vec<bool>,
    pairs: u64,
}

impl Met {
    /// None yet, of so many streams.
    pub fn new(groups: Arc<[bool]>, streams: usize) -> Met {
        Met { groups, streams: vec![false; streams], pairs: 0 }
    }

    /// A probe arrived from a device of this group.
    pub fn enter(&mut self, group: u16, stream: u32) {
        let sends = self.groups.get(usize::from(group)).copied().unwrap_or(false);
        if let Some(met) = self.streams.get_mut(stream as usize).filter(|met| sends && !**met) {
            *met = true;
            self.pairs += 1;
        }
    }

    /// How many have.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_met_once_however_many_probes_arrive() {
        let mut met = Met::new([true, false].into(), 3);
        for (group, stream) in [(0, 2), (0, 2), (1, 1), (0, 7), (9, 0)] {
            met.enter(group, stream);
        }
        assert_eq!(met.pairs(), 1, "group 1 sends none, and there are three streams");
        met.enter(0, 0);
        assert_eq!(met.pairs(), 2);
    }
}
