//! Names of publishers and subscribers.

use std::collections::HashMap;

use pubmark_engine::message_log::entries::Entry;
use pubmark_engine::plan::RunPlan;
use pubmark_engine::sections;
use pubmark_engine::shares::places_of_subscribers;
use pubmark_metrics::bounds::lower_ns;
use pubmark_record::nodes::NodeRow;

use super::columns::LoggedRow;

/// Largest number of clients for which figures of each client are written: a longer table is not useful, and needs
/// memory.
const CLIENT_LIMIT: usize = 100_000;

/// A publisher of the fleet.
pub struct PublisherName {
    /// Index of the publisher's group in the workload.
    group: usize,
    /// Its node, from 0.
    node: u16,
    topic: String,
    /// Client identifier.
    pub client_id: String,
}

/// The receiver of messages: a subscriber, or a shared group.
pub struct AudienceName {
    /// Subscriber group in the workload.
    pub group: String,
    /// Client identifier of the first member.
    pub client_id: String,
    /// Its node, from 0.
    node: u16,
}

/// Names of a run's clients.
pub struct Names {
    /// Device types and their delivery levels, by index in the workload.
    pub groups: Vec<(String, u8)>,
    /// Publishers, by number in the fleet.
    pub publishers: Vec<PublisherName>,
    /// Audiences, by number in the message accounting.
    pub audiences: HashMap<u32, AudienceName>,
}

impl Names {
    /// The names of a plan's clients.
    pub fn new(plan: &RunPlan) -> Names {
        let (workload, fleet) = (&plan.workload, &plan.fleet);
        let nodes = sections::nodes_of_publishers(plan);
        let publishers = fleet.devices().iter().zip(nodes).map(|(device, node)| PublisherName {
            group: usize::from(device.group),
            node,
            topic: fleet.topic(workload, device),
            client_id: fleet.device_identity(workload, plan.run_id, device).client_id,
        });
        let mut audiences = HashMap::new();
        let numbers = fleet.audiences(workload);
        let places = places_of_subscribers(workload, fleet, plan.labels(), &numbers);
        for ((subscriber, audience), (node, _)) in fleet.subscribers().iter().zip(numbers).zip(places) {
            let group = &workload.subscribers[usize::from(subscriber.group)].name;
            for part in 0..plan.subscribe_at.sessions_per_subscriber() as u32 {
                audiences.entry(plan.subscribe_at.number_of_part(audience, part)).or_insert_with(|| AudienceName {
                    group: group.clone(),
                    client_id: fleet.subscriber_identity(workload, plan.run_id, subscriber).client_id,
                    node,
                });
            }
        }
        let groups = workload.devices.iter().map(|group| (group.name.clone(), group.qos.level())).collect();
        Names { groups, publishers: publishers.collect(), audiences }
    }

    /// Whether figures of each client are written.
    pub fn are_few(&self) -> bool {
        self.publishers.len() + self.audiences.len() <= CLIENT_LIMIT
    }

    /// The device type of a publisher, and its delivery level.
    pub fn group_of(&self, publisher: u32) -> &(String, u8) {
        &self.groups[self.publishers[publisher as usize].group]
    }

    /// An entry whose latency contains the error of the clocks of its two nodes, as the record's latencies do, and whose
    /// lower bound is without the time in a relay, up to `relay_ns`; `u64::MAX` if that is unknown.
    pub fn widened(&self, entry: &Entry, nodes: &[NodeRow], relay_ns: u64) -> Entry {
        let Some((lower, upper)) = entry.latency_ns else { return *entry };
        let latency = (lower_ns(lower, relay_ns), upper);
        let entry = Entry { latency_ns: Some(latency), ..*entry };
        let Some(audience) = entry.audience.and_then(|audience| self.audiences.get(&audience)) else { return entry };
        let from = self.publishers[entry.publisher as usize].node;
        let latency = match sections::pair_error_ns(nodes, from, audience.node) {
            Some(0) => latency,
            Some(error_ns) => (lower_ns(latency.0, error_ns), latency.1.saturating_add_unsigned(error_ns)),
            // The clocks were not compared: the upper bound is as it was measured, and V22 is about that.
            None => (0, latency.1),
        };
        Entry { latency_ns: Some(latency), ..entry }
    }

    /// An entry with the names that belong to it.
    pub fn row<'a>(&'a self, entry: &'a Entry) -> LoggedRow<'a> {
        let publisher = &self.publishers[entry.publisher as usize];
        let (device_type, qos) = self.group_of(entry.publisher);
        let audience = entry.audience.and_then(|audience| self.audiences.get(&audience));
        LoggedRow {
            entry,
            device_type,
            node: publisher.node + 1,
            topic: &publisher.topic,
            qos: *qos,
            subscriber_group: audience.map(|audience| audience.group.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use pubmark_engine::message_log::entries::EntryOutcome;

    use super::*;

    #[test]
    fn the_lower_bound_of_a_latency_is_without_the_time_in_a_relay() {
        let mut names = Names::of_publishers(1);
        names.audiences.insert(0, AudienceName { group: String::new(), client_id: String::new(), node: 0 });
        let entry = Entry {
            outcome: EntryOutcome::Delivered,
            publisher: 0,
            sequence: Some(1),
            audience: Some(0),
            payload_bytes: Some(16),
            due_ns: Some(0),
            ready_ns: Some(0),
            write_start_ns: None,
            received_ns: Some(9_000),
            latency_ns: Some((5_000, 9_000)),
            out_of_order: false,
        };
        let latency = |relay_ns: u64| names.widened(&entry, &[], relay_ns).latency_ns;
        let expected = [5_000, 3_000, 0, 0].map(|lower_ns| Some((lower_ns, 9_000)));
        assert_eq!([0, 2_000, 7_000, u64::MAX].map(latency), expected);
        let missing = Entry { latency_ns: None, ..entry };
        assert_eq!(names.widened(&missing, &[], 2_000), missing);
    }

    impl Names {
        /// This number of publishers, and no subscribers.
        pub fn of_publishers(count: usize) -> Names {
            Names {
                groups: vec![("sensor".to_owned(), 0)],
                publishers: (0..count)
                    .map(|_| PublisherName { group: 0, node: 0, topic: String::new(), client_id: String::new() })
                    .collect(),
                audiences: HashMap::new(),
            }
        }
    }

    #[test]
    fn figures_of_each_client_are_written_for_up_to_a_hundred_thousand() {
        assert!(Names::of_publishers(100_000).are_few());
        assert!(!Names::of_publishers(100_001).are_few());
    }
}
