//! The engine's plan of a repetition.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pubmark_engine::pacing::{self, Pacing};
use pubmark_engine::plan::{Networks, RunPlan};
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::random::mix;
use pubmark_model::workload::DeviceGroup;
use pubmark_protocol::clients::ConnectionSettings;
use pubmark_protocol::clock;
use pubmark_protocols::Protocol;
use pubmark_record::record::BackEndKind;
use pubmark_record::threshold::Objectives;

use crate::linked::{self, Linked};
use crate::prepared::PreparedRun;
use crate::recording::delivery_window;
use crate::target::Target;
use crate::{client_program, faults, sockets, suitability, workers};

/// Longest wait for sessions, in addition to the ramp-up; and how long failed sessions are retried if others are
/// connected.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
const HOPELESS_AFTER: Duration = Duration::from_secs(5);
/// Both limits behind links, which the probes have just crossed: where half of the packets are lost, three attempts of
/// ten seconds in a hundred fail one after the other.
const LINKED_CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// Keep-alive in seconds: a client that has sent nothing for this time sends a ping.
const KEEP_ALIVE_S: u16 = 60;
/// Space for topic and properties in the largest packet that a system may send to us.
const PACKET_ROOM: usize = 64 * 1024;
/// Packets of other clients may be larger than ours; up to this size they are counted as foreign instead of ending a
/// connection.
const FOREIGN_ROOM: usize = 1 << 20;

impl PreparedRun {
    /// Longest quantum that `--pace auto` may choose: a fraction of the shortest time among the limits.
    fn longest_quantum(&self) -> Duration {
        let limit_us = self.objectives.as_ref().and_then(Objectives::shortest_time_us);
        let of_limit = |limit_us: f64| Duration::from_nanos((limit_us * 1e3) as u64) / pacing::PART;
        limit_us.map_or(pacing::LONGEST_AUTO, |limit_us| of_limit(limit_us).min(pacing::LONGEST_AUTO))
    }

    /// Longest time in which client libraries that open only a few sessions at a time open those of the run; zero for others.
    fn opening(&self) -> Duration {
        let pace = |protocol: &Protocol| protocol.capabilities.features.opens_per_s;
        let slowest = [self.protocol_pair.publish, self.protocol_pair.subscribe].into_iter().filter_map(pace).min();
        let (devices, subscribers) = suitability::sessions(&self.workload, &self.fleet);
        slowest.map_or(Duration::ZERO, |per_s| Duration::from_secs((devices + subscribers).div_ceil(u64::from(per_s))))
    }

    pub(crate) fn plan(&self, target: &Target, linked: Option<&Linked>) -> RunPlan {
        let largest = self.workload.devices.iter().map(DeviceGroup::largest_payload_bytes).max().unwrap_or(0);
        let largest = largest.max(self.workload.largest_reply_bytes()) as usize;
        let (generator, connection) = (&self.spec.generator, &self.spec.connection);
        let nodes = self.spec.node_count();
        let are_linked = linked::any(&self.workload);
        let shards = |sessions: usize| usize::from(generator.shards).min(sessions).max(1);
        let sources: Option<Arc<[IpAddr]>> = connection.source_addresses.as_ref().map(|sources| Arc::clone(&sources.0));
        let program = client_program::of(&self.spec, self.protocol_pair, &self.workload).map(Arc::new);
        RunPlan {
            workload: Arc::clone(&self.workload),
            fleet: Arc::clone(&self.fleet),
            seed: self.spec.load.seed,
            run_id: run_id(),
            timeline: self.spec.timeline(),
            drain_limit: self.spec.window.drain,
            redelivers_after: delivery_window::redelivers_after(&self.workload, &self.fleet, self.protocol_pair),
            publish_at: target.publish_at.clone(),
            subscribe_at: target.subscribe_at.clone(),
            networks: match (linked, self.driven()) {
                (Some(linked), _) => linked.networks(),
                (None, Some(_)) => linked::networks_elsewhere(&self.workload),
                (None, None) => Networks::none(),
            },
            nodes,
            node_labels: self.node_labels.clone(),
            on_nodes: self.driven().is_some(),
            probes: self.protocol_pair.is_brokerless() && nodes > 1,
            // Worker processes for nodes on this machine run inside their networks; on nodes that join, each process
            // creates its networks itself, so that an isolated group needs its own one.
            by_network: are_linked
                && (workers::are_needed(self.protocol_pair)
                    || (nodes > 1 && linked.is_some())
                    || (self.driven().is_some() && ConnectionGroups::of(&self.workload).has_isolated())),
            library_sockets: workers::have_library_sockets(self.protocol_pair) && program.is_none(),
            follows: linked.filter(|linked| linked.shows_packets() && nodes == 1).map(|_| self.followed()),
            message_log: self.spec.message_log.map(|_| self.host.scratch.clone()),
            sources: sources.unwrap_or_else(|| [].into()),
            publisher_shards: shards(self.fleet.devices().len()),
            subscriber_shards: shards(self.fleet.subscribers().len()),
            connects_per_s: connection.connects.unwrap_or_default().per_s(),
            connect_limit: if are_linked { LINKED_CONNECT_LIMIT } else { CONNECT_LIMIT }.saturating_add(self.opening()),
            hopeless_after: if are_linked { LINKED_CONNECT_LIMIT } else { HOPELESS_AFTER },
            realtime: generator.realtime,
            shares_cores: self.shares_cores(target),
            pacing: Pacing { pace: generator.pace, at_most: self.longest_quantum() },
            handicap: generator.handicap,
            faults: faults::planned(&self.workload, &self.faults),
            connections: ConnectionSettings {
                maximum_packet_bytes: (largest + PACKET_ROOM).max(FOREIGN_ROOM),
                receive_stamps: true,
                keep_alive_s: KEEP_ALIVE_S,
                resumes_tls: sockets::resume_tls(connection),
                congestion_control: connection.congestion_control.as_deref().map(Into::into),
                program,
            },
        }
    }
}

impl PreparedRun {
    /// Whether the system has no core but those of pubmark's threads on this machine. Only a process that this run starts inherits
    /// them; a container has those of its engine.
    fn shares_cores(&self, target: &Target) -> bool {
        let is_child = matches!(target.info.back_end, BackEndKind::Builtin | BackEndKind::Process);
        target.running.is_some() && is_child && self.driven().is_none() && self.pins.share_all(&self.host.cores)
    }
}

/// A number that distinguishes this run's messages from those of other runs: a hash of the time and the process.
fn run_id() -> u32 {
    (mix(clock::realtime_ns() ^ mix(u64::from(std::process::id()))) >> 32) as u32
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_protocols::{ProtocolPair, find};

    use super::*;

    #[test]
    fn a_pair_of_protocols_redelivers_after_the_longer_of_two_times() {
        let redelivery = |publish: &str, subscribe: &str| {
            let [publish, subscribe] = [publish, subscribe].map(|name| find(name).unwrap());
            ProtocolPair { publish, subscribe }.redelivers_after()
        };
        assert_eq!(redelivery("mqtt5", "mqtt5"), None);
        for (publish, subscribe) in [("jetstream", "jetstream"), ("mqtt5", "jetstream")] {
            assert_eq!(redelivery(publish, subscribe), Some(Duration::from_secs(5)), "{publish}");
        }
        assert_eq!(redelivery("coap", "coap"), Some(Duration::from_secs(45)), "MAX_TRANSMIT_SPAN");
    }
}
