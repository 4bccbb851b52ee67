//! The outcome of a run, merged from the outcomes of its shards.

use std::collections::HashMap;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::series::Series;
use pubmark_model::fleet::Link;
use pubmark_record::record::{Delivery, ProbedPairs};

use crate::books::Books;
pub use crate::content::closing::{ContentAccount, Differing, GroupContent};
use crate::faults::outcome::FaultOutcome;
pub use crate::followed::{FollowedDeliveries, FollowedDelivery};
use crate::message_log::Log;
pub use crate::ramp::Ramp;
use crate::remote::AccessReport;
use crate::request_outcome::RequestOutcome;
pub use crate::shard_outcome::Counters;
use crate::shard_outcome::{Times, TypeTimes};
use crate::shares::Side;
pub use crate::traffic::GroupTraffic;
pub use crate::transform::{GroupTransforms, StepSum, TransformCounts};

/// What the clients of one node received from the devices of another node, or of the same node.
#[derive(Clone, Debug)]
pub struct NodePair {
    /// Number of the senders' node, from 0.
    pub from: u16,
    /// Number of the receivers' node, from 0.
    pub to: u16,
    /// Its part of the message accounting: expected, delivered, lost, unknown, absent.
    pub delivery: Delivery,
    /// Writer–reader pairs between them without any delivery.
    pub silent: u64,
    /// Delivery − due.
    pub latency: Bounds,
}

/// A shard without an outcome, because its worker process was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostShard {
    /// Number of the node, from 0.
    pub node: u16,
    /// Its index in the run's list ([`crate::shares::shares`]).
    pub shard: u32,
    /// Its name.
    pub name: String,
    /// The reason, in words.
    pub why: String,
}

/// A thread's health over the measured window.
#[derive(Clone, Debug)]
pub struct ThreadHealth {
    /// The shard's name.
    pub name: String,
    /// Which clients' connections it drives.
    pub side: Side,
    /// CPU time divided by the window's length; `None` if the window did not run to its end.
    pub cores: Option<f64>,
    /// Number of sessions.
    pub sessions: u64,
    /// Wake-ups; `None` if the window did not run to its end.
    pub wakeups: Option<u64>,
    /// Its quantum (`--pace`) at the end of the window, ns; `None` if there was none.
    pub quantum_ns: Option<u64>,
    /// Share of the window at ordinary priority because its real-time budget was used up; `None` if it is not real-time.
    pub ordinary_share: Option<f64>,
}

/// Messages by their cause: a schedule or a trigger. Counts are of measured messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reactions {
    /// Offered by schedules.
    pub scheduled: u64,
    /// Offered because a trigger was delivered.
    pub triggered: u64,
    /// Reactions that were not offered because their trigger did not arrive.
    pub starved: u64,
}

/// The outcome of a whole run.
pub struct Outcome {
    /// The completed message accounting.
    pub books: Books,
    /// Requests and replies; `None` if the workload has no requesters.
    pub requests: Option<RequestOutcome>,
    /// Times.
    pub times: Times,
    /// Times by type, as in a shard.
    pub types: Vec<Option<Box<TypeTimes>>>,
    /// Counters.
    pub counters: Counters,
    /// Results of subscriber groups with a predicate; empty if there are none.
    pub content: Vec<GroupContent>,
    /// Results of the steps of `transform`, by device group.
    pub transform: GroupTransforms,
    /// Time series.
    pub series: Series,
    /// By node: first copies that it received in each full second of the window. If a node lost some of its shards,
    /// what the remaining shards received; `None` if no subscriber shard of the node returned an outcome.
    pub received_on_nodes: Vec<Option<Vec<u64>>>,
    /// By pair of nodes, in a run on several nodes.
    pub pairs: Vec<NodePair>,
    /// Shards of worker processes that were lost. Their measurements are missing from all other fields.
    pub lost: Vec<LostShard>,
    /// Traffic of the access networks of worker processes.
    pub access: Vec<AccessReport>,
    /// Traffic of sessions, by connection group: [`pubmark_model::connection_groups`].
    pub traffic: Vec<GroupTraffic>,
    /// Deliveries of followed messages.
    pub followed: FollowedDeliveries,
    /// The message log, in a run with one.
    pub log: Option<Log>,
    /// Bytes unsent at the end.
    pub unsent_bytes: u64,
    /// Bytes that were read for busy subscribers and not processed at the end.
    pub held_bytes: u64,
    /// One row per shard.
    pub threads: Vec<ThreadHealth>,
    /// Ramp-up of sessions before the schedule began: of subscribers, of devices.
    pub ramps: [Ramp; 2],
    /// Measured window, ns of `CLOCK_MONOTONIC`; empty if the run did not reach it.
    pub window_ns: (u64, u64),
    /// Faults, in a run with faults.
    pub faults: Option<FaultOutcome>,
    /// Reactions, in a workload with reactions.
    pub reactions: Option<Reactions>,
    /// Start of the measured window by the wall clock, ns since 1970.
    pub started_at_ns: u64,
    /// Pairs that exchanged a probe before the schedule began, in a run with probes.
    pub probed: Option<ProbedPairs>,
    /// Most sessions that were connected at once, read some hundred times a second; `None` in a run on several nodes.
    pub most_online: Option<u64>,
    /// Length of the drain, ns.
    pub drain_ns: u64,
    /// The run was stopped before its end.
    pub interrupted: bool,
    /// Every thread obtained SCHED_FIFO (only if it was requested).
    pub realtime: bool,
    /// No session of one side could be established, so nothing was measured.
    pub unreachable: bool,
}

impl Outcome {
    /// Lowers the lower bounds of all latencies, because a relay of pubmark on every connection held bytes for up to
    /// `held_ns` per pass. A message passes the relay `passes` times, a request with its reply twice as often. The
    /// number of passes of a reaction chain is unknown, so the lower bound of its latency becomes 0.
    pub fn lower_by(&mut self, held_ns: u64, passes: u64) {
        if held_ns == 0 {
            return;
        }
        let one_way_ns = held_ns.saturating_mul(passes);
        self.times.latency.lower_by(one_way_ns);
        self.times.service_latency.lower_by(one_way_ns);
        self.times.chain.lower_by(u64::MAX);
        // What a client waits for is a message to the system and a response.
        self.times.backpressure.lower_by(one_way_ns.saturating_mul(2));
        for times in self.types.iter_mut().flatten() {
            times.latency.lower_by(one_way_ns);
            times.service_latency.lower_by(one_way_ns);
        }
        self.content.iter_mut().for_each(|group| group.counts.latency.lower_by(one_way_ns));
        self.pairs.iter_mut().for_each(|pair| pair.latency.lower_by(one_way_ns));
        self.series.lower_by(one_way_ns);
        if let Some(requests) = &mut self.requests {
            requests.lower_by(one_way_ns.saturating_mul(2));
        }
    }

    /// Lowers the lower bounds of round trips and chains, because clocks of two nodes differ by up to `error_ns`; `None`
    /// if that is unknown. `links` are the fleet's reactions.
    ///
    /// How long a message lay in our socket counts from the time at which its sender wrote it, if nothing later is known.
    /// If the sender's clock is ahead of the receiver's, that is too short by their difference. The latency of one message
    /// is shorter by the same difference and gets the error on both sides where it is reported ([`crate::sections`]); that
    /// covers two messages in a row. A round trip is measured by one clock, which stays its upper bound; but the wait of
    /// its request at the responder is judged by two.
    pub fn lower_by_clock_error(&mut self, error_ns: Option<u64>, links: &[Link]) {
        let error_ns = error_ns.unwrap_or(u64::MAX);
        if error_ns == 0 {
            return;
        }
        if let Some(requests) = &mut self.requests {
            requests.lower_by(error_ns);
        }
        let further = longest_chain(links).div_ceil(2) - 1;
        self.times.chain.lower_by(error_ns.saturating_mul(further));
    }
}

/// Number of messages in the longest chain of reactions, at least 1. Links are in the order of the chains.
fn longest_chain(links: &[Link]) -> u64 {
    let mut messages: HashMap<u32, u64> = HashMap::new();
    for link in links {
        let before = messages.get(&link.trigger).copied().unwrap_or(1);
        let longest = messages.entry(link.reacts).or_default();
        *longest = (*longest).max(before + 1);
    }
    messages.into_values().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_chain_counts_its_root_and_each_reaction_after_another() {
        let link = |(trigger, reacts)| Link { trigger, reacts };
        let longest = |links: &[(u32, u32)]| longest_chain(&links.iter().copied().map(link).collect::<Vec<_>>());
        assert_eq!((longest(&[]), longest(&[(0, 1), (0, 3)])), (1, 2));
        assert_eq!(longest(&[(0, 3), (0, 5), (3, 5), (5, 7)]), 4);
    }
}
