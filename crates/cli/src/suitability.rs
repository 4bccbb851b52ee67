//! Can a protocol carry a workload? Asked before anything starts: what it cannot do is refused, never done by halves.

use std::collections::BTreeSet;
use std::sync::Arc;

use pubmark_model::fleet::Fleet;
use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;
use pubmark_model::workload::{SessionKind, Workload};

use pubmark_protocol::capabilities::Capabilities;

use crate::protocols::Protocol;

/// The workload counted out on one node.
///
/// # Errors
/// The first thing that the protocol cannot do, in a sentence.
pub fn fleet(workload: &Workload, protocol: &Protocol) -> Result<Arc<Fleet>, String> {
    let fleet = Fleet::new(workload, 1);
    let missing = lacking_for_all(workload, protocol).or_else(|| lacking_for_topics(workload, &fleet, protocol));
    missing.map_or_else(|| Ok(Arc::new(fleet)), Err)
}

/// The first thing that the protocol cannot do, for a fleet that is not to be run: it may be larger than this machine could
/// hold, and is counted out only for protocols that look at its topics.
pub fn lacking(workload: &Workload, protocol: &Protocol) -> Option<String> {
    let looks_at_topics = protocol.capabilities.check_topic.is_some() || protocol.capabilities.hears.is_some();
    lacking_for_all(workload, protocol)
        .or_else(|| lacking_for_topics(workload, &looks_at_topics.then(|| Fleet::new(workload, 1))?, protocol))
}

fn lacking_for_all(workload: &Workload, protocol: &Protocol) -> Option<String> {
    lacking_level(workload, protocol).or_else(|| lacking_feature(workload, protocol))
}

fn lacking_for_topics(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    unspeakable_topic(workload, fleet, protocol).or_else(|| other_meaning(workload, fleet, protocol))
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
    if let Some(lacks) = lacking_option(workload, can) {
        return Some(lacks);
    }
    let filters = workload.subscribers.iter().flat_map(|group| &group.filters);
    let wild = filters.map(|filter| &filter.0).find(|filter| filter.contains(['+', '#']))?;
    (!can.wildcards).then(|| format!("filter `{wild}` has a wildcard, {name} has none"))
}

/// What only some protocols have.
fn lacking_option(workload: &Workload, can: &Capabilities) -> Option<String> {
    let (name, features) = (can.name, &can.features);
    let mut shared = workload.subscribers.iter().filter(|group| group.shared.is_some());
    if let Some(group) = shared.next().filter(|_| !features.shared_subscriptions) {
        return Some(format!("subscriber group `{}` shares its subscription, {name} shares none", group.name));
    }
    workload.devices.iter().find_map(|group| {
        let waits = group.will.as_ref().is_some_and(|will| !will.delay.is_zero());
        let lacks = if group.will.is_some() && !features.wills {
            "leave a will: {name} has none"
        } else if waits && !features.will_delay {
            "leave a will with a delay: {name} publishes wills at once"
        } else if group.mqtt.message_expiry.is_some() && !features.message_expiry {
            "ask for `message_expiry`: messages do not expire in {name}"
        } else if group.mqtt.topic_alias && !features.topic_alias {
            "ask for `topic_alias`: {name} has none"
        } else {
            return None;
        };
        Some(format!("devices of `{}` {}", group.name, lacks.replace("{name}", name)))
    })
}

fn unspeakable_topic(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    let check = protocol.capabilities.check_topic?;
    let topics = fleet.devices().iter().map(|device| fleet.topic(workload, device));
    let filters = fleet.subscribers().iter().flat_map(|subscriber| fleet.filters(workload, subscriber));
    let why = topics.chain(filters).find_map(|topic| check(&topic).err())?;
    Some(format!("{} has no such topic: {why}", protocol.capabilities.name))
}

/// A filter that would hear more or less of this workload's topics than the standard says.
fn other_meaning(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    let hears = protocol.capabilities.hears?;
    let filters = fleet.subscribers().iter().flat_map(|subscriber| fleet.filters(workload, subscriber));
    let wild: BTreeSet<String> = filters.filter(|filter| filter.contains(['+', '#'])).collect();
    let topics: BTreeSet<String> = fleet.devices().iter().map(|device| fleet.topic(workload, device)).collect();
    wild.into_iter().map(TopicFilter).find_map(|filter| {
        let topic = topics.iter().find(|topic| hears(&filter.0, topic) != filter.matches(topic))?;
        let verb = if hears(&filter.0, topic) { "would hear" } else { "would not hear" };
        Some(format!("{} cannot say `{}`: it {verb} `{topic}`", protocol.capabilities.name, filter.0))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::load::{LoadOptions, load};

    use super::*;
    use crate::protocols;

    fn missing_in(workload: &Workload) -> Option<String> {
        let nats = protocols::find("nats").unwrap();
        assert_eq!(fleet(workload, nats).err(), lacking(workload, nats));
        lacking(workload, nats)
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
        asked.subscribers[0].shared = Some("workers".to_owned());
        assert!(missing_in(&asked).unwrap().contains("shares its subscription, nats shares none"));
        let mut asked = plain.clone();
        asked.devices[0].mqtt.topic_alias = true;
        assert!(missing_in(&asked).unwrap().contains("ask for `topic_alias`: nats has none"));
        assert!(lacking(&asked, protocols::find("mqtt311").unwrap()).unwrap().contains("mqtt311 has none"));
        assert_eq!(lacking(&asked, protocols::find("mqtt5").unwrap()), None);
        let mut asked = plain.clone();
        asked.subscribers[0].filters[0].0 = "a.b/#".to_owned();
        assert!(missing_in(&asked).unwrap().contains("`a.b/#` has `.` in it"));
    }
}
