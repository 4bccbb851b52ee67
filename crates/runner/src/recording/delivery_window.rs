//! How far subscribers let the system send ahead of their acknowledgements.

use std::time::Duration;

use pubmark_model::fleet::Fleet;
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Features;
use pubmark_protocol::clients::DeliveryWindow;
use pubmark_protocols::ProtocolPair;

/// The smallest window of a group of subscribers, messages of a subscription; `None` if none of the groups sets a limit.
pub(super) fn smallest(workload: &Workload, fleet: &Fleet, features: &Features) -> Option<u32> {
    windows(workload, fleet, features).map(|(messages, _)| messages).min()
}

/// Longest time until a message is sent again on an open connection, on either side; slow subscribers may ask for more than their
/// protocol's.
pub(crate) fn redelivers_after(workload: &Workload, fleet: &Fleet, pair: ProtocolPair) -> Option<Duration> {
    let slow = windows(workload, fleet, &pair.subscribe.capabilities.features).filter_map(|(_, after)| after).max();
    pair.redelivers_after().max(slow)
}

/// The windows of the groups of subscribers that have one: messages of a subscription, and the time after which one of them is sent
/// again, where it is.
fn windows<'a>(
    workload: &'a Workload,
    fleet: &'a Fleet,
    features: &'a Features,
) -> impl Iterator<Item = (u32, Option<Duration>)> + 'a {
    (0..).zip(&workload.subscribers).filter_map(move |(number, group)| {
        let messages = features.delivery_window_of(std::iter::once(group.qos))?;
        let Some(redelivers_after) = features.redelivers_after.filter(|_| !group.processing.is_zero()) else {
            return Some((messages, features.redelivers_after));
        };
        let window = DeliveryWindow { messages, redelivers_after }
            .of_slow_subscriber(group.processing, subscriptions(workload, fleet, number));
        Some((window.messages, Some(window.redelivers_after)))
    })
}

/// Most subscriptions of a subscriber of a group.
fn subscriptions(workload: &Workload, fleet: &Fleet, group: u16) -> usize {
    let members = fleet.subscribers().iter().filter(|subscriber| subscriber.group == group);
    members.map(|subscriber| fleet.filters(workload, subscriber).len()).max().unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::load::{LoadOptions, load};
    use pubmark_model::qos::Qos;
    use pubmark_model::topic::TopicFilter;
    use pubmark_model::workload::SubscriberGroup;

    use super::*;

    /// A workload with groups of subscribers of these levels, processing times (ms) and numbers of filters.
    fn workload(groups: &[(Qos, u64, usize)]) -> Workload {
        let mut workload = load("hello", &LoadOptions::default()).unwrap();
        let any = workload.subscribers.remove(0);
        let group = |(qos, processing_ms, filters): &(Qos, u64, usize)| SubscriberGroup {
            qos: *qos,
            processing: Duration::from_millis(*processing_ms),
            filters: (0..*filters).map(|number| TopicFilter(format!("level/{number}"))).collect(),
            ..any.clone()
        };
        workload.subscribers = groups.iter().map(group).collect();
        workload
    }

    /// Their window over a protocol.
    fn over(protocol: &str, groups: &[(Qos, u64, usize)]) -> Option<u32> {
        let workload = workload(groups);
        let fleet = Fleet::new(&workload, 1);
        smallest(&workload, &fleet, &pubmark_protocols::find(protocol).unwrap().capabilities.features)
    }

    #[test]
    fn what_a_slow_subscriber_did_not_acknowledge_comes_again_after_the_time_that_it_asks_for() {
        let after = |protocol: &str, groups: &[(Qos, u64, usize)]| {
            let workload = workload(groups);
            let fleet = Fleet::new(&workload, 1);
            let [publish, subscribe] = [protocol; 2].map(|name| pubmark_protocols::find(name).unwrap());
            redelivers_after(&workload, &fleet, ProtocolPair { publish, subscribe })
        };
        let both = [(Qos::AtLeastOnce, 0, 1), (Qos::AtLeastOnce, 4_000, 2)];
        assert_eq!(after("jetstream", &both), Some(Duration::from_secs(16)));
        assert_eq!(after("jetstream", &both[..1]), Some(Duration::from_secs(5)));
        assert_eq!(after("jetstream", &[(Qos::BestEffort, 4_000, 2)]), Some(Duration::from_secs(5)));
        assert_eq!((after("mqtt5", &both), after("coap", &both)), (None, Some(Duration::from_secs(45))));
    }

    #[test]
    fn the_window_of_slow_subscribers_is_what_they_ask_for() {
        use Qos::{AtLeastOnce, BestEffort, ExactlyOnce};
        assert_eq!(over("jetstream", &[(AtLeastOnce, 0, 1)]), Some(65_536));
        assert_eq!(over("jetstream", &[(AtLeastOnce, 5, 1)]), Some(500));
        assert_eq!(over("jetstream", &[(AtLeastOnce, 5, 2)]), Some(250));
        assert_eq!(over("jetstream", &[(ExactlyOnce, 10_000, 1)]), Some(1));
        for [fast, slow] in [[AtLeastOnce, ExactlyOnce], [ExactlyOnce, AtLeastOnce]] {
            assert_eq!(over("jetstream", &[(fast, 0, 1), (slow, 5, 1)]), Some(500), "that of the slow group");
        }
        assert_eq!(over("jetstream", &[(BestEffort, 5, 1), (AtLeastOnce, 0, 1)]), Some(65_536));
        assert_eq!(over("jetstream", &[(BestEffort, 5, 1)]), None);
    }

    #[test]
    fn slowness_changes_no_window_where_nothing_is_sent_again_on_an_open_connection() {
        for (protocol, window) in [("amqp091", Some(1_000)), ("amqp10", Some(1_000)), ("mqtt5", None)] {
            assert_eq!(over(protocol, &[(Qos::AtLeastOnce, 5, 1)]), window, "{protocol}");
        }
    }
}
