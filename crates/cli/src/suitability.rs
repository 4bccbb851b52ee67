//! Can a protocol carry a workload? Asked before anything starts: what it cannot do is refused, never done by halves.

use std::collections::BTreeSet;
use std::sync::Arc;

use pubmark_model::fleet::Fleet;
use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;
use pubmark_model::workload::{DeviceGroup, SessionKind, SubscriberGroup, Workload};

use crate::protocols::{Protocol, Spoken};

/// The workload counted out on one node.
///
/// # Errors
/// The first thing that a protocol cannot do, in a sentence.
pub fn fleet(workload: &Workload, spoken: Spoken) -> Result<Arc<Fleet>, String> {
    let fleet = Fleet::new(workload, 1);
    let missing = lacking_for_groups(workload, spoken).or_else(|| lacking_for_topics(workload, &fleet, spoken));
    missing.map_or_else(|| Ok(Arc::new(fleet)), Err)
}

/// The first thing that a protocol cannot do, for a fleet that is not to be run: it may be larger than this machine could
/// hold, and is counted out only for protocols that look at its topics.
pub fn lacking(workload: &Workload, spoken: Spoken) -> Option<String> {
    let looks =
        |protocol: &Protocol| protocol.capabilities.check_topic.is_some() || protocol.capabilities.hears.is_some();
    let looks_at_topics = looks(spoken.publish) || looks(spoken.subscribe);
    lacking_for_groups(workload, spoken)
        .or_else(|| lacking_for_topics(workload, &looks_at_topics.then(|| Fleet::new(workload, 1))?, spoken))
}

fn lacking_for_groups(workload: &Workload, spoken: Spoken) -> Option<String> {
    let of_devices = |group: &DeviceGroup| {
        let kind = format!("device group `{}`", group.name);
        lacking_in_group(&kind, group.qos, group.session, spoken.publish).or_else(|| {
            let keeps_none = group.retain && !spoken.publish.capabilities.retain;
            let retains = || format!("{kind} retains its messages, {} keeps none", spoken.publish.capabilities.name);
            keeps_none.then(retains).or_else(|| lacking_option(&kind, group, spoken.publish))
        })
    };
    let of_subscribers = |group: &SubscriberGroup| {
        let kind = format!("subscriber group `{}`", group.name);
        let can = &spoken.subscribe.capabilities;
        lacking_in_group(&kind, group.qos, group.session, spoken.subscribe).or_else(|| {
            if group.shared.is_some() && !can.features.shared_subscriptions {
                return Some(format!("{kind} shares its subscription, {} shares none", can.name));
            }
            let wild = group.filters.iter().find(|filter| filter.0.contains(['+', '#']) && !can.wildcards)?;
            Some(format!("filter `{}` of {kind} has a wildcard, {} has none", wild.0, can.name))
        })
    };
    workload.devices.iter().find_map(of_devices).or_else(|| workload.subscribers.iter().find_map(of_subscribers))
}

/// What only some protocols have for devices.
fn lacking_option(kind: &str, group: &DeviceGroup, protocol: &Protocol) -> Option<String> {
    let (name, features) = (protocol.capabilities.name, &protocol.capabilities.features);
    let waits = group.will.as_ref().is_some_and(|will| !will.delay.is_zero());
    let lacks = if group.will.is_some() && !features.wills {
        format!("leaves a will, {name} has none")
    } else if waits && !features.will_delay {
        format!("leaves a will with a delay, {name} publishes wills at once")
    } else if group.mqtt.message_expiry.is_some() && !features.message_expiry {
        format!("asks for `message_expiry`, messages do not expire in {name}")
    } else if group.mqtt.topic_alias && !features.topic_alias {
        format!("asks for `topic_alias`, {name} has none")
    } else {
        return None;
    };
    Some(format!("{kind} {lacks}"))
}

/// What a group of either kind may ask for.
fn lacking_in_group(kind: &str, qos: Qos, session: SessionKind, protocol: &Protocol) -> Option<String> {
    let can = &protocol.capabilities;
    if !can.offers(qos) {
        let offered: Vec<String> = can.qos().map(|qos| qos.level().to_string()).collect();
        let (level, word) = (qos.level(), level_name(qos));
        return Some(format!("{kind} asks for QoS {level} ({word}), {} offers QoS {}", can.name, offered.join(", ")));
    }
    let keeps_none = session == SessionKind::Persistent && !can.persistent_sessions;
    keeps_none.then(|| format!("{kind} has persistent sessions, {} keeps none", can.name))
}

fn level_name(qos: Qos) -> &'static str {
    match qos {
        Qos::BestEffort => "best-effort",
        Qos::AtLeastOnce => "at-least-once",
        Qos::ExactlyOnce => "exactly-once",
    }
}

fn lacking_for_topics(workload: &Workload, fleet: &Fleet, spoken: Spoken) -> Option<String> {
    let topics: BTreeSet<String> = fleet.devices().iter().map(|device| fleet.topic(workload, device)).collect();
    let filters = fleet.subscribers().iter().flat_map(|subscriber| fleet.filters(workload, subscriber));
    let filters: BTreeSet<String> = filters.collect();
    // What is published in one protocol's words has to be heard in the other's.
    unspeakable(&topics, spoken.publish)
        .or_else(|| unspeakable(topics.union(&filters), spoken.subscribe))
        .or_else(|| other_meaning(&filters, &topics, spoken.subscribe))
}

fn unspeakable<'a>(topics: impl IntoIterator<Item = &'a String>, protocol: &Protocol) -> Option<String> {
    let check = protocol.capabilities.check_topic?;
    let why = topics.into_iter().find_map(|topic| check(topic).err())?;
    Some(format!("{} has no such topic: {why}", protocol.capabilities.name))
}

/// A filter that would hear more or less of this workload's topics than the standard says.
fn other_meaning(filters: &BTreeSet<String>, topics: &BTreeSet<String>, protocol: &Protocol) -> Option<String> {
    let hears = protocol.capabilities.hears?;
    let wild = filters.iter().filter(|filter| filter.contains(['+', '#'])).cloned().map(TopicFilter);
    wild.into_iter().find_map(|filter| {
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
        missing_between(workload, "nats", "nats")
    }

    fn missing_between(workload: &Workload, publish: &str, subscribe: &str) -> Option<String> {
        let [publish, subscribe] = [publish, subscribe].map(|name| protocols::find(name).unwrap());
        let spoken = Spoken { publish, subscribe };
        assert_eq!(fleet(workload, spoken).err(), lacking(workload, spoken));
        lacking(workload, spoken)
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
        assert!(missing_in(&asked).unwrap().contains("asks for `topic_alias`, nats has none"));
        assert!(missing_between(&asked, "mqtt311", "mqtt5").unwrap().contains("mqtt311 has none"));
        assert_eq!(missing_between(&asked, "mqtt5", "mqtt311"), None);
        let mut asked = plain.clone();
        asked.subscribers[0].filters[0].0 = "a.b/#".to_owned();
        assert!(missing_in(&asked).unwrap().contains("`a.b/#` has `.` in it"));
        assert_eq!(missing_between(&asked, "nats", "mqtt5"), None, "each side is asked about its own");
        assert!(missing_between(&asked, "mqtt5", "nats").unwrap().contains("nats has no such topic"));
    }
}
