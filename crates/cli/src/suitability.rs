//! Can a protocol carry a workload? Asked before anything starts: what it cannot do is refused, never done by halves.

use std::collections::BTreeSet;

use pubmark_model::fleet::Fleet;
use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;
use pubmark_model::workload::{SessionKind, Workload};

use crate::protocols::Protocol;

/// The first thing that the protocol cannot do, in a sentence; `None` if it can carry the workload.
pub fn missing(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    lacking_level(workload, protocol)
        .or_else(|| lacking_feature(workload, protocol))
        .or_else(|| unspeakable_topic(workload, fleet, protocol))
        .or_else(|| other_meaning(workload, fleet, protocol))
}

fn lacking_level(workload: &Workload, protocol: &Protocol) -> Option<String> {
    let levels = protocol.capabilities.qos;
    let devices = workload.devices.iter().map(|group| ("device group", &group.name, group.qos));
    let subscribers = workload.subscribers.iter().map(|group| ("subscriber group", &group.name, group.qos));
    let (kind, name, qos) = devices.chain(subscribers).find(|(_, _, qos)| !levels.contains(qos))?;
    let offered: Vec<String> = levels.iter().map(|qos| qos.level().to_string()).collect();
    Some(format!(
        "{kind} `{name}` asks for QoS {} ({}), {} offers QoS {}",
        qos.level(),
        level_name(qos),
        protocol.capabilities.name,
        offered.join(", ")
    ))
}

fn level_name(qos: Qos) -> &'static str {
    match qos {
        Qos::BestEffort => "best-effort",
        Qos::AtLeastOnce => "at-least-once",
        Qos::ExactlyOnce => "exactly-once",
    }
}

fn lacking_feature(workload: &Workload, protocol: &Protocol) -> Option<String> {
    let (can, name) = (&protocol.capabilities, protocol.capabilities.name);
    let retains = workload.devices.iter().find(|group| group.retain && !can.retain);
    if let Some(group) = retains {
        return Some(format!("device group `{}` retains its messages, {name} keeps none", group.name));
    }
    let kept = |session: SessionKind| session == SessionKind::Persistent && !can.persistent_sessions;
    let devices = workload.devices.iter().filter(|group| kept(group.session)).map(|group| &group.name);
    let subscribers = workload.subscribers.iter().filter(|group| kept(group.session)).map(|group| &group.name);
    if let Some(group) = devices.chain(subscribers).next() {
        return Some(format!("group `{group}` has persistent sessions, {name} keeps none"));
    }
    let filters = workload.subscribers.iter().flat_map(|group| &group.filters);
    let wild = filters.map(|filter| &filter.0).find(|filter| filter.contains(['+', '#']))?;
    (!can.wildcards).then(|| format!("filter `{wild}` has a wildcard, {name} has none"))
}

fn unspeakable_topic(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    let topics = fleet.devices().iter().map(|device| fleet.topic(workload, device));
    let filters = fleet.subscribers().iter().flat_map(|subscriber| fleet.filters(workload, subscriber));
    let why = topics.chain(filters).find_map(|topic| (protocol.capabilities.check_topic)(&topic).err())?;
    Some(format!("{} has no such topic: {why}", protocol.capabilities.name))
}

/// A filter that would hear more or less of this workload's topics than the standard says.
fn other_meaning(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    let filters = fleet.subscribers().iter().flat_map(|subscriber| fleet.filters(workload, subscriber));
    let wild: BTreeSet<String> = filters.filter(|filter| filter.contains(['+', '#'])).collect();
    let topics: BTreeSet<String> = fleet.devices().iter().map(|device| fleet.topic(workload, device)).collect();
    let differs = |filter: &str, topic: &str| {
        (protocol.capabilities.hears)(filter, topic) != TopicFilter(filter.to_owned()).matches(topic)
    };
    let pairs = wild.iter().flat_map(|filter| topics.iter().map(move |topic| (filter, topic)));
    let (filter, topic) = pairs.into_iter().find(|(filter, topic)| differs(filter, topic))?;
    let name = protocol.capabilities.name;
    let verb = if (protocol.capabilities.hears)(filter, topic) { "would hear" } else { "would not hear" };
    Some(format!("{name} cannot say `{filter}`: it {verb} `{topic}`"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::load::{LoadOptions, load};

    use super::*;
    use crate::protocols;

    fn missing_in(workload: &Workload) -> Option<String> {
        missing(workload, &Fleet::new(workload, 1), protocols::find("nats").unwrap())
    }

    #[test]
    fn what_a_protocol_lacks_is_named() {
        let plain = load("hello", &LoadOptions { qos: Some(Qos::BestEffort), ..LoadOptions::default() }).unwrap();
        assert_eq!(missing_in(&plain), None);
        let mut asked = plain.clone();
        asked.devices[0].qos = Qos::ExactlyOnce;
        assert!(missing_in(&asked).unwrap().contains("asks for QoS 2 (exactly-once), nats offers QoS 0"));
        let mut asked = plain.clone();
        asked.devices[0].retain = true;
        assert!(missing_in(&asked).unwrap().contains("retains its messages"));
        let mut asked = plain.clone();
        asked.subscribers[0].session = SessionKind::Persistent;
        assert!(missing_in(&asked).unwrap().contains("persistent"));
        let mut asked = plain.clone();
        asked.subscribers[0].filters[0].0 = "a.b/#".to_owned();
        assert!(missing_in(&asked).unwrap().contains("`a.b/#` has `.` in it"));
    }
}
