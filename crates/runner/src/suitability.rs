//! Checks whether a protocol can carry a workload, before anything starts: an unsupported feature is refused, never
//! applied in part.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pubmark_engine::shared_connections::SharedConnections;
use pubmark_model::fleet::Fleet;
use pubmark_model::payload::HeaderPlace;
use pubmark_model::qos::Qos;
use pubmark_model::requests;
use pubmark_model::topic::TopicFilter;
use pubmark_model::workload::{DeviceGroup, SessionKind, SubscriberGroup, Workload};

use crate::carrying;
use pubmark_protocols::{PROTOCOLS, Protocol, ProtocolPair};

/// Checks a fleet against the protocols.
///
/// # Errors
/// The first feature that a protocol does not have, in a sentence.
pub fn fleet(workload: &Workload, protocol_pair: ProtocolPair, fleet: Fleet) -> Result<Arc<Fleet>, String> {
    let missing =
        lacking_for_groups(workload, protocol_pair).or_else(|| lacking_for_fleet(workload, &fleet, protocol_pair));
    missing.map_or_else(|| Ok(Arc::new(fleet)), Err)
}

/// Checks for a device group in which a device sends more messages in this time, warm-up and window together, than there are
/// sequence numbers; the result is a sentence.
pub fn too_many_messages(workload: &Workload, length: Duration) -> Option<String> {
    workload.devices.iter().find_map(|group| {
        let messages = group.arrival.mean_rate_within(Duration::ZERO, length)? * length.as_secs_f64();
        let sentence = || {
            format!(
                "each device of group `{}` sends {messages:.0} messages: more than the {} that sequence numbers tell apart",
                group.name,
                u32::MAX
            )
        };
        // A schedule of random gaps may have a few messages more than its mean.
        (messages > 0.99 * f64::from(u32::MAX)).then(sentence)
    })
}

/// The first feature that a protocol does not have, for a fleet that is not run: it may be too large for this machine,
/// and is enumerated only for protocols that depend on its topics.
pub fn lacking(workload: &Workload, protocol_pair: ProtocolPair) -> Option<String> {
    let looks = |protocol: &Protocol| {
        let can = &protocol.capabilities;
        let features = &can.features;
        let about_fleet = features.maximum_sessions.is_some() || features.only_responders_receive_requests;
        can.check_topic.is_some() || can.filter_matches.is_some() || about_fleet
    };
    let looks_at_fleet = looks(protocol_pair.publish) || looks(protocol_pair.subscribe);
    lacking_for_groups(workload, protocol_pair)
        .or_else(|| lacking_for_fleet(workload, &looks_at_fleet.then(|| Fleet::new(workload, 1))?, protocol_pair))
}

fn lacking_for_groups(workload: &Workload, protocol_pair: ProtocolPair) -> Option<String> {
    let of_devices = |group: &DeviceGroup| {
        let kind = match group.requests {
            Some(_) => format!("requester group `{}`", group.name),
            None => format!("device group `{}`", group.name),
        };
        lacking_in_group(&kind, group.qos, group.session, protocol_pair.publish).or_else(|| {
            let keeps_none = group.retain && !protocol_pair.publish.capabilities.retain;
            let retains =
                || format!("{kind} retains its messages, {} keeps none", protocol_pair.publish.capabilities.name);
            let option = || lacking_option(&kind, group, protocol_pair.publish);
            keeps_none.then(retains).or_else(option).or_else(|| lacking_both(&kind, group, workload, protocol_pair))
        })
    };
    let of_subscribers = |group: &SubscriberGroup| {
        let kind = match group.responds {
            Some(_) => format!("responder group `{}`", group.name),
            None => format!("subscriber group `{}`", group.name),
        };
        let can = &protocol_pair.subscribe.capabilities;
        lacking_in_group(&kind, group.qos, group.session, protocol_pair.subscribe).or_else(|| {
            if group.identity.logs_in() && !can.features.log_in {
                return Some(format!("{kind} {}", no_log_in(can.name)));
            }
            if group.identity.reauthenticates() && !can.features.reauthenticates {
                return Some(format!("{kind} {}", no_reauthentication(protocol_pair.subscribe)));
            }
            if group.identity.has_nkeys() && !can.features.nkeys {
                return Some(format!("{kind} {}", no_nkeys(can.name)));
            }
            if group.identity.has_certificates() && !can.features.own_certificates {
                return Some(format!("{kind} {}", no_certificates(can.name)));
            }
            if !group.processing.is_zero() && !protocol_pair.subscribe.pauses {
                return Some(format!("{kind} {}", takes_its_time(protocol_pair.subscribe)));
            }
            if group.shared.is_some() && !can.features.shared_subscriptions {
                return Some(format!("{kind} shares its subscription, {} shares none", can.name));
            }
            if let Some(lacks) = no_content_filter(group, protocol_pair) {
                return Some(format!("{kind} {lacks}"));
            }
            let wild = group.filters.iter().find(|filter| filter.0.contains(['+', '#']) && !can.wildcards)?;
            Some(format!("filter `{}` of {kind} has a wildcard, {} has none", wild.0, can.name))
        })
    };
    if protocol_pair.second().is_some()
        && let Some(group) = workload.subscribers.iter().find(|group| group.client.is_some())
    {
        let name = &group.name;
        return Some(format!(
            "subscriber group `{name}` shares its connections with devices, which speak one protocol"
        ));
    }
    lacking_for_requests(workload, protocol_pair)
        .or_else(|| unread_header(workload, protocol_pair.subscribe))
        .or_else(|| lacking_for_messages(workload, protocol_pair))
        .or_else(|| workload.devices.iter().find_map(of_devices))
        .or_else(|| workload.subscribers.iter().find_map(of_subscribers))
        .or_else(|| carrying::too_much(workload, protocol_pair))
}

/// Checks for a header beside payloads that subscribers would not see, so that they could not distinguish messages.
fn unread_header(workload: &Workload, protocol: &Protocol) -> Option<String> {
    let can = &protocol.capabilities;
    let beside = workload.devices.iter().find(|group| group.header == HeaderPlace::UserProperty);
    let group = beside.filter(|_| can.features.properties.is_none() && !workload.subscribers.is_empty())?;
    let reason = match protocol.program {
        Some(program) => format!("client programs have none, and {program} is one"),
        None => format!("subscribers over {} see none ({} have them)", can.name, with_properties()),
    };
    Some(format!("device group `{}` has its header in a user property, {reason}: `header: payload`", group.name))
}

/// Why a protocol does not support slow subscribers.
fn takes_its_time(protocol: &Protocol) -> String {
    let with = PROTOCOLS.iter().filter(|other| other.pauses).map(|other| other.capabilities.name);
    let with: Vec<&str> = with.collect();
    format!(
        "has a processing time, clients over {} keep reading meanwhile ({} do not)",
        protocol.capabilities.name,
        with.join(", ")
    )
}

/// Checks that requests and replies use one protocol that supports them.
fn lacking_for_requests(workload: &Workload, protocol_pair: ProtocolPair) -> Option<String> {
    let group = workload.devices.iter().find(|group| group.requests.is_some())?;
    let kind = format!("requester group `{}`", group.name);
    if let Some(second) = protocol_pair.second() {
        let (first, second) = (protocol_pair.publish.capabilities.name, second.capabilities.name);
        return Some(format!(
            "{kind} asks over {first} and responders answer over {second}: they must speak one protocol"
        ));
    }
    let capabilities = &protocol_pair.publish.capabilities;
    if capabilities.features.requests.is_some() {
        return None;
    }
    let with = PROTOCOLS.iter().map(|protocol| &protocol.capabilities).filter(|can| can.features.requests.is_some());
    let with: Vec<&str> = with.map(|can| can.name).collect();
    Some(format!("{kind} waits for replies, {} has no requests ({} have)", capabilities.name, with.join(", ")))
}

/// Checks that messages without a reply use a protocol that carries them.
fn lacking_for_messages(workload: &Workload, protocol_pair: ProtocolPair) -> Option<String> {
    let only_requests = |protocol: &Protocol| protocol.capabilities.features.only_requests;
    let publishes = workload.devices.iter().find(|group| group.requests.is_none());
    let listens = workload.subscribers.iter().find(|group| group.responds.is_none());
    let publishes = publishes.filter(|_| only_requests(protocol_pair.publish));
    let listens = listens.filter(|_| only_requests(protocol_pair.subscribe));
    let publishes = publishes.map(|group| (format!("device group `{}` publishes", group.name), protocol_pair.publish));
    let listens =
        || listens.map(|group| (format!("subscriber group `{}` subscribes", group.name), protocol_pair.subscribe));
    let (what, protocol) = publishes.or_else(listens)?;
    Some(format!("{what}, {} carries requests and their replies only", protocol.capabilities.name))
}

/// Checks devices and subscribers on one connection, for protocols whose connections are for only one of them.
fn lacking_both(kind: &str, group: &DeviceGroup, workload: &Workload, protocol_pair: ProtocolPair) -> Option<String> {
    let client = group.client.as_ref()?;
    let apart = [protocol_pair.publish, protocol_pair.subscribe].into_iter().find(|protocol| {
        let features = &protocol.capabilities.features;
        features.two_ports || features.subscribers_listen
    })?;
    let subscribers = workload.subscribers.iter().find(|other| other.client.as_ref() == Some(client))?;
    let (name, others) = (apart.capabilities.name, &subscribers.name);
    Some(format!("{kind} is on the connections of subscriber group `{others}`, one of {name} publishes or subscribes"))
}

/// The first option of a device group that the protocol does not have.
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
    } else if features.properties.is_none() && group.header == HeaderPlace::UserProperty {
        match protocol.program {
            Some(program) => format!(
                "has its header in a user property, and client programs have none, such as {program}: `header: payload`"
            ),
            None => format!(
                "has its header in a user property, messages have none in {name} ({} have): `header: payload`",
                with_properties()
            ),
        }
    } else if group.identity.logs_in() && !features.log_in {
        no_log_in(name)
    } else if group.identity.reauthenticates() && !features.reauthenticates {
        no_reauthentication(protocol)
    } else if group.identity.has_nkeys() && !features.nkeys {
        no_nkeys(name)
    } else if group.identity.has_certificates() && !features.own_certificates {
        no_certificates(name)
    } else if features.properties.is_none() && !group.properties.is_empty() {
        match protocol.program {
            Some(program) => format!("has `properties`, client programs have none, such as {program}"),
            None => format!("has `properties`, messages have none in {name} ({} have)", with_properties()),
        }
    } else {
        return None;
    };
    Some(format!("{kind} {lacks}"))
}

/// Brokers filter by properties that publishers put beside their payloads, so both sides need a protocol with content
/// filters.
fn no_content_filter(group: &SubscriberGroup, protocol_pair: ProtocolPair) -> Option<String> {
    group.broker_filter()?;
    let both = [protocol_pair.subscribe, protocol_pair.publish].map(|protocol| &protocol.capabilities);
    let lacking = both.into_iter().find(|can| can.features.content_filters.is_none())?;
    let with =
        PROTOCOLS.iter().map(|protocol| &protocol.capabilities).filter(|can| can.features.content_filters.is_some());
    let with: Vec<&str> = with.map(|can| can.name).collect();
    Some(format!(
        "is filtered at the broker, {} has no content filters ({} has): `where: {{filter: …, at: client}}`",
        lacking.name,
        with.join(", ")
    ))
}

fn no_log_in(protocol: &str) -> String {
    format!("has a log-in, {protocol} has none")
}

fn no_reauthentication(protocol: &Protocol) -> String {
    let without = match protocol.program {
        Some(program) => format!("and client programs such as {program} have not"),
        None => format!("and {} has not", protocol.capabilities.name),
    };
    format!(
        "renews tokens on open connections (`reauthenticate`), which pubmark's clients over mqtt5 alone do, {without}"
    )
}

fn no_nkeys(protocol: &str) -> String {
    format!("logs in with NKeys, which NATS alone has, and {protocol} has not")
}

fn no_certificates(protocol: &str) -> String {
    format!("has a certificate for each client, clients over {protocol} have none of their own")
}

/// Protocols whose messages have user properties.
fn with_properties() -> String {
    let with = PROTOCOLS.iter().map(|protocol| &protocol.capabilities).filter(|can| can.features.properties.is_some());
    with.map(|can| can.name).collect::<Vec<_>>().join(", ")
}

/// The first option of a group of either kind that the protocol does not have.
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

fn lacking_for_fleet(workload: &Workload, fleet: &Fleet, protocol_pair: ProtocolPair) -> Option<String> {
    too_many_sessions(workload, fleet, protocol_pair)
        .or_else(|| carrying::too_many_deliveries(workload, fleet, protocol_pair))
        .or_else(|| lacking_for_topics(workload, fleet, protocol_pair))
        .or_else(|| unheard_request(workload, fleet, protocol_pair.publish))
}

/// Checks for a subscriber that would have to receive requests, where only the responder receives them.
fn unheard_request(workload: &Workload, fleet: &Fleet, protocol: &Protocol) -> Option<String> {
    let can = &protocol.capabilities;
    let (group, topic) = requests::received_by_non_responder(workload, fleet)
        .filter(|_| can.features.only_responders_receive_requests)?;
    Some(format!(
        "subscriber group `{group}` subscribes to requests (`{topic}`), over {} only their responder receives them",
        can.name
    ))
}

/// Sessions of devices and those of subscribers.
pub fn sessions(workload: &Workload, fleet: &Fleet) -> (u64, u64) {
    (SharedConnections::new(workload, fleet).sending().count() as u64, fleet.subscribers().len() as u64)
}

/// Checks for more sessions than a client library supports.
fn too_many_sessions(workload: &Workload, fleet: &Fleet, protocol_pair: ProtocolPair) -> Option<String> {
    let has_limit = |protocol: &Protocol| protocol.capabilities.features.maximum_sessions.is_some();
    if !has_limit(protocol_pair.publish) && !has_limit(protocol_pair.subscribe) {
        return None;
    }
    let (devices, subscribers) = sessions(workload, fleet);
    let sides = match protocol_pair.second() {
        None => vec![(protocol_pair.publish, devices + subscribers)],
        Some(second) => vec![(protocol_pair.publish, devices), (second, subscribers)],
    };
    sides.into_iter().find_map(|(protocol, sessions)| {
        let can = &protocol.capabilities;
        let most = u64::from(can.features.maximum_sessions?);
        let words = || {
            let (name, instead) = (carrying::library(protocol), carrying::instead(protocol));
            format!("{sessions} sessions are more than the {most} of {name}: a smaller `--scale`, or groups that share a `client`{instead}")
        };
        (sessions > most).then(words)
    })
}

fn lacking_for_topics(workload: &Workload, fleet: &Fleet, protocol_pair: ProtocolPair) -> Option<String> {
    let topics: BTreeSet<String> = fleet.devices().iter().map(|device| fleet.topic(workload, device)).collect();
    let filters = fleet.subscribers().iter().flat_map(|subscriber| fleet.filters(workload, subscriber));
    let filters: BTreeSet<String> = filters.collect();
    // A topic that is published over one protocol has to be valid in the other.
    unspeakable(&topics, protocol_pair.publish)
        .or_else(|| unspeakable(topics.union(&filters), protocol_pair.subscribe))
        .or_else(|| other_meaning(&filters, &topics, protocol_pair.subscribe))
}

fn unspeakable<'a>(topics: impl IntoIterator<Item = &'a String>, protocol: &Protocol) -> Option<String> {
    let check = protocol.capabilities.check_topic?;
    let why = topics.into_iter().find_map(|topic| check(topic).err())?;
    Some(format!("{} has no such topic: {why}", protocol.capabilities.name))
}

/// Checks for a filter that would match more or fewer of this workload's topics than the standard defines.
fn other_meaning(filters: &BTreeSet<String>, topics: &BTreeSet<String>, protocol: &Protocol) -> Option<String> {
    let hears = protocol.capabilities.filter_matches?;
    let wild = filters.iter().filter(|filter| filter.contains(['+', '#'])).cloned().map(TopicFilter);
    wild.into_iter().find_map(|filter| {
        let topic = topics.iter().find(|topic| hears(&filter.0, topic) != filter.matches(topic))?;
        let verb = if hears(&filter.0, topic) { "would receive" } else { "would not receive" };
        Some(format!("{} cannot express `{}`: it {verb} `{topic}`", protocol.capabilities.name, filter.0))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::arrival::Arrival;
    use pubmark_model::load::{LoadOptions, load};
    use pubmark_model::predicate::Predicate;
    use pubmark_model::workload::FilterPlace;

    use super::*;
    use pubmark_protocols as protocols;

    fn missing_in(workload: &Workload) -> Option<String> {
        missing_between(workload, "nats", "nats")
    }

    fn missing_between(workload: &Workload, publish: &str, subscribe: &str) -> Option<String> {
        let [publish, subscribe] = [publish, subscribe].map(|name| protocols::find(name).unwrap());
        let protocol_pair = ProtocolPair { publish, subscribe };
        assert_eq!(fleet(workload, protocol_pair, Fleet::new(workload, 1)).err(), lacking(workload, protocol_pair));
        lacking(workload, protocol_pair)
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
        let lacks = missing_between(&asked, "redis", "redis").unwrap();
        assert!(lacks.contains("shares its subscription, redis shares none"), "{lacks}");
        assert_eq!(missing_in(&asked), None);
        let mut beside = plain.clone();
        beside.devices[0].header = HeaderPlace::UserProperty;
        assert_eq!(missing_between(&beside, "mqtt5", "mqtt5"), None);
        let lacks = missing_between(&beside, "mqtt5", "mqtt311").unwrap();
        assert!(lacks.contains("subscribers over mqtt311 see none (mqtt5"), "{lacks}");
        let lacks = missing_between(&beside, "mqtt311", "mqtt5").unwrap();
        assert!(lacks.contains("messages have none in mqtt311"), "{lacks}");
        let hello =
            br#"{"versions": [1], "name": "paho", "version": "2.1", "protocols": [{"name": "mqtt5", "qos": [0]}]}"#;
        let hello = pubmark_protocol::client_program::Hello::read(hello).unwrap();
        let program = pubmark_protocols::of_program(pubmark_protocols::find("mqtt5").unwrap(), &hello).unwrap();
        let lacks = lacking(&beside, ProtocolPair { publish: program, subscribe: program }).unwrap();
        assert!(lacks.contains("client programs have none, and paho 2.1 is one: `header: payload`"), "{lacks}");
        assert!(!lacks.contains("(mqtt5"), "{lacks}");
        let mut slow = plain.clone();
        slow.subscribers[0].processing = std::time::Duration::from_millis(5);
        assert_eq!(missing_in(&slow), None);
        let lacks = missing_between(&slow, "nats", "redis-streams").unwrap();
        assert!(lacks.contains("clients over redis-streams keep reading meanwhile (mqtt5, mqtt311, nats"), "{lacks}");
        assert_eq!(missing_between(&slow, "redis-streams", "nats"), None, "devices may be as fast as they like");
        let mut filtered = plain.clone();
        filtered.subscribers[0].predicate = Some(Predicate::parse("payload.n > 3").unwrap());
        assert_eq!(missing_in(&filtered), None, "each client filters");
        filtered.subscribers[0].filtered_at = FilterPlace::Broker;
        for (publish, subscribe) in [("nats", "nats"), ("amqp10", "nats"), ("nats", "amqp10")] {
            let lacks = missing_between(&filtered, publish, subscribe).unwrap();
            assert!(
                lacks.contains("nats has no content filters (amqp10 has): `where: {filter: …, at: client}`"),
                "{lacks}"
            );
        }
        assert_eq!(missing_between(&filtered, "amqp10", "amqp10"), None);
        let asking = load("request-reply", &LoadOptions::default()).unwrap();
        assert_eq!(missing_in(&asking), None);
        let lacks = missing_between(&asking, "mqtt311", "mqtt311").unwrap();
        assert!(lacks.contains("mqtt311 has no requests (mqtt5, nats"), "{lacks}");
        assert!(missing_between(&asking, "mqtt5", "nats").unwrap().contains("must speak one protocol"));
        let mut received_by_non_responder = asking.clone();
        received_by_non_responder.subscribers.push(SubscriberGroup {
            name: "spy".to_owned(),
            responds: None,
            predicate: None,
            ..asking.subscribers[0].clone()
        });
        assert_eq!(missing_between(&received_by_non_responder, "nats", "nats"), None);
        let lacks = missing_between(&received_by_non_responder, "redis", "redis").unwrap();
        assert!(lacks.contains("`spy` subscribes to requests (`request-reply/"), "{lacks}");
        assert_eq!(missing_between(&asking, "coap-peers", "coap-peers"), None);
        let lacks = missing_between(&received_by_non_responder, "coap-peers", "coap-peers").unwrap();
        assert!(lacks.contains("`spy` subscribes, coap-peers carries requests and their replies only"), "{lacks}");
        let lacks = missing_between(&plain, "coap-peers", "coap-peers").unwrap();
        assert!(lacks.contains("publishes, coap-peers carries requests and their replies only"), "{lacks}");
        let mut shared = asking.clone();
        shared.subscribers[0].shared = Some("workers".to_owned());
        assert!(missing_between(&shared, "coap-peers", "coap-peers").unwrap().contains("coap-peers shares none"));
        let mut asked = plain.clone();
        asked.devices[0].mqtt.topic_alias = true;
        assert!(missing_in(&asked).unwrap().contains("asks for `topic_alias`, nats has none"));
        assert!(missing_between(&asked, "mqtt311", "mqtt5").unwrap().contains("mqtt311 has none"));
        assert_eq!(missing_between(&asked, "mqtt5", "mqtt311"), None);
        let mut asked = plain.clone();
        asked.devices[0].client = Some("both".to_owned());
        assert_eq!(missing_between(&asked, "zeromq", "zeromq"), None);
        asked.subscribers[0].client = Some("both".to_owned());
        assert!(missing_between(&asked, "zeromq", "zeromq").unwrap().contains("one of zeromq publishes or subscribes"));
        assert_eq!(missing_in(&asked), None);
        let mut asked = plain.clone();
        asked.subscribers[0].filters[0].0 = "a.b/#".to_owned();
        assert!(missing_in(&asked).unwrap().contains("`a.b/#` has `.` in it"));
        assert_eq!(missing_between(&asked, "nats", "mqtt5"), None, "each side is asked about its own");
        assert!(missing_between(&asked, "mqtt5", "nats").unwrap().contains("nats has no such topic"));
    }

    #[test]
    fn a_device_whose_messages_have_no_number_is_known() {
        let mut workload = load("hello", &LoadOptions::default()).unwrap();
        workload.devices[0].arrival = Arrival::Poisson { rate_per_s: 1e6 };
        assert_eq!(too_many_messages(&workload, Duration::from_secs(4_200)), None);
        let lacks = too_many_messages(&workload, Duration::from_secs(7_200)).unwrap();
        assert!(lacks.contains("7200000000 messages") && lacks.contains("4294967295"), "{lacks}");
        workload.devices[0].arrival = Arrival::Flood;
        assert_eq!(too_many_messages(&workload, Duration::from_secs(7_200)), None);
    }
}
