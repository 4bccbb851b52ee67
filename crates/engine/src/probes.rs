//! Probes. If clients discover each other without a broker, each device publishes before the schedule begins,
//! repeatedly until each reader of its topic has received a probe, or a limit is reached. A probe has sequence number
//! 0, which no message of a schedule has, and is included in no count of messages.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::workload::{DeviceGroup, Workload};

use crate::plan::RunPlan;

/// Sequence number of a probe.
pub const SEQUENCE: u32 = 0;
/// Another round of probes follows if no further pair exchanged one for this long: some round trips of discovery.
pub const AGAIN: Duration = Duration::from_millis(250);
/// All probes are assumed to have arrived if none has for this long: counters of other machines arrive ten times a
/// second.
pub const QUIET: Duration = Duration::from_millis(300);
/// Longest wait for the probes in transit.
pub const QUIET_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for pairs to exchange a probe: DDS repeats the announcement of a participant that received no response
/// after 8 s. Pairs without a probe by then are judged by their deliveries (V24).
pub const LIMIT: Duration = Duration::from_secs(20);

/// Does a group send probes? Devices that disconnect by plan may be offline, and a request has one responder, whose
/// reply shows that it was discovered.
pub fn sends(group: &DeviceGroup) -> bool {
    group.requests.is_none() && group.churn.is_none()
}

/// By group of devices: does it send probes?
pub fn groups(workload: &Workload) -> Arc<[bool]> {
    workload.devices.iter().map(sends).collect()
}

/// Number of pairs of a device that sends probes and an audience that its topic reaches.
pub fn pairs(plan: &RunPlan) -> u64 {
    let groups = groups(&plan.workload);
    let sends = |publisher: u32| groups[usize::from(plan.fleet.devices()[publisher as usize].group)];
    let streams = plan.fleet.streams(&plan.workload);
    let mut next = 0;
    let mut pairs = 0;
    for (sources, audience) in streams.iter().zip(plan.fleet.audiences(&plan.workload)) {
        // Audiences are numbered in the order of their first members.
        if audience == next {
            next += 1;
            pairs += sources.iter().filter(|entry| sends(entry.publisher)).count() as u64;
        }
    }
    pairs
}

/// Schedules rounds of probes: the first at once, and another whenever pairs are missing and no further one was added
/// for [`AGAIN`].
#[derive(Debug)]
pub struct Rounds {
    wanted: u64,
    reached: u64,
    /// Time since which nothing has changed, ns.
    since_ns: Option<u64>,
}

impl Rounds {
    /// Rounds until `wanted` pairs have exchanged a probe.
    pub fn new(wanted: u64) -> Rounds {
        Rounds { wanted, reached: 0, since_ns: None }
    }

    /// Is a round due now? `reached` is the number of pairs that have exchanged a probe.
    pub fn is_due(&mut self, reached: u64, now_ns: u64) -> bool {
        let is_unchanged = reached == self.reached;
        let has_waited =
            self.since_ns.is_none_or(|since_ns| now_ns.saturating_sub(since_ns) >= AGAIN.as_nanos() as u64);
        let is_due = reached < self.wanted && is_unchanged && has_waited;
        if is_due || !is_unchanged {
            (self.reached, self.since_ns) = (reached, Some(now_ns));
        }
        is_due
    }
}

/// Have the probes arrived that were in transit when the last round was over, at `over_ns`? True after [`QUIET_LIMIT`]
/// in any case.
pub fn have_arrived(over_ns: u64, last_event_ns: u64, now_ns: u64) -> bool {
    let for_ns = |since_ns: u64| now_ns.saturating_sub(since_ns);
    for_ns(last_event_ns.max(over_ns)) >= QUIET.as_nanos() as u64 || for_ns(over_ns) >= QUIET_LIMIT.as_nanos() as u64
}

/// The pairs of a shard's audiences that have exchanged a probe.
#[derive(Debug, Default)]
pub struct ReachedPairs {
    groups: Arc<[bool]>,
    /// By stream: has the pair exchanged a probe?
    streams: Vec<bool>,
    pairs: u64,
}

impl ReachedPairs {
    /// No pair yet. `streams` is the number of streams of the shard.
    pub fn new(groups: Arc<[bool]>, streams: usize) -> ReachedPairs {
        ReachedPairs { groups, streams: vec![false; streams], pairs: 0 }
    }

    /// A probe arrived from a device of this group.
    pub fn enter(&mut self, group: u16, stream: u32) {
        let sends = self.groups.get(usize::from(group)).copied().unwrap_or(false);
        if let Some(reached) = self.streams.get_mut(stream as usize).filter(|reached| sends && !**reached) {
            *reached = true;
            self.pairs += 1;
        }
    }

    /// Number of pairs that have exchanged a probe.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn another_round_is_sent_while_pairs_are_missing_and_no_further_one_is_reached() {
        let mut rounds = Rounds::new(3);
        let mut due = |reached: u64, at_ms: u64| rounds.is_due(reached, at_ms * MS);
        assert!(due(0, 1_000), "the first");
        assert!(!due(0, 1_249));
        assert!(due(0, 1_250));
        assert!(!due(1, 1_499), "one has met");
        assert!(!due(2, 1_700), "another has");
        assert!(!due(2, 1_949));
        assert!(due(2, 1_950));
        assert!(!due(3, 9_000) && !due(3, 19_000), "all have");
    }

    #[test]
    fn the_window_waits_for_probes_under_way_and_not_for_ever() {
        let arrived = |last_ms: u64, now_ms: u64| have_arrived(1_000 * MS, last_ms * MS, now_ms * MS);
        assert!(!arrived(900, 1_299));
        assert!(arrived(900, 1_300));
        assert!(!arrived(1_250, 1_549), "one arrived meanwhile");
        assert!(arrived(1_250, 1_550));
        assert!(!arrived(5_990, 5_999));
        assert!(arrived(6_000, 6_000), "somebody else sends");
    }

    #[test]
    fn a_pair_is_reached_once_however_many_probes_arrive() {
        let mut reached = ReachedPairs::new([true, false].into(), 3);
        for (group, stream) in [(0, 2), (0, 2), (1, 1), (0, 7), (9, 0)] {
            reached.enter(group, stream);
        }
        assert_eq!(reached.pairs(), 1, "group 1 sends none, and there are three streams");
        reached.enter(0, 0);
        assert_eq!(reached.pairs(), 2);
    }
}
