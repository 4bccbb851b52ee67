//! Optional features of MQTT on the wire: topic aliases, message expiry, shared subscriptions.

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::{publisher, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SendOutcome, SessionConfig, SessionOptions};
use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{Packet, PacketType, Version};

use crate::script::{Script, packet};

/// A PUBLISH's topic, alias, expiry, and whether it is a repetition.
type Seen = (String, Option<u16>, Option<u32>, bool);

fn seen(found: Packet<'_>) -> Seen {
    let Packet::Publish(publish) = found else { unreachable!() };
    let head = publish.head;
    (head.topic.to_owned(), head.properties.topic_alias(), head.properties.message_expiry_s(), head.dup)
}

fn with(config: SessionConfig, options: SessionOptions) -> SessionConfig {
    SessionConfig { options, ..config }
}

#[test]
fn a_number_stands_for_a_topic_on_its_connection_only() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let config = SessionConfig { persistent: true, ..publisher("alias", "topic", Qos::AtLeastOnce) };
    let options = SessionOptions { topic_alias: true, message_expiry_s: Some(10), ..SessionOptions::default() };
    // Topic alias maximum 1.
    let id = script.accept(&mut peer, with(config, options), &[0x22, 0, 1]);
    assert!(!peer.record.connects(id)[0].topic_alias_refused);
    let full = |alias, dup| ("topic".to_owned(), alias, Some(10), dup);
    let short = (String::new(), Some(1), Some(10), false);
    for expected in [full(Some(1), false), short.clone(), short.clone()] {
        assert_eq!(peer.offer(id, 100), SendOutcome::Accepted);
        peer.flush(id);
        assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), expected);
    }
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 1);
    // The session is present: unacknowledged messages are resent with their topic, and the next message sets the alias
    // on this connection.
    let answer = script.connack(true, 0, &[0x22, 0, 1]);
    script.connect_client(&mut peer, id, &answer);
    for _ in 0..3 {
        assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), full(None, true));
    }
    for expected in [full(Some(1), false), short] {
        assert_eq!(peer.offer(id, 100), SendOutcome::Accepted);
        peer.flush(id);
        assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), expected);
    }
}

/// A message with a topic alias may be too large with its full topic: a server that receives it would end the
/// connection, find the session again, and so on.
#[test]
fn a_message_too_large_to_be_sent_again_with_its_topic_is_refused_and_not_sent_again() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let topic = "a/topic/of/fifty/bytes/that/is/written/out/in/full";
    let config = publisher("again", topic, Qos::AtLeastOnce);
    let config = SessionConfig { persistent: true, in_flight_window: 2, ..config };
    let options = SessionOptions { topic_alias: true, ..SessionOptions::default() };
    // Topic alias maximum 1, maximum packet size 120.
    let properties = [0x22, 0, 1, 0x27, 0, 0, 0, 120];
    let id = script.accept(&mut peer, with(config, options), &properties);
    for (payload_bytes, expected) in [(16, topic), (100, "")] {
        assert_eq!(peer.offer(id, payload_bytes), SendOutcome::Accepted);
        peer.flush(id);
        assert_eq!(script.expect(&mut peer, PacketType::Publish, seen).0, expected);
    }
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 1);
    let answer = script.connack(true, 0, &properties);
    script.connect_client(&mut peer, id, &answer);
    assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), (topic.to_owned(), None, None, true));
    peer.linger(20);
    script.read();
    assert!(script.received().is_empty(), "158 B were sent to a server that takes 120 B");
    let refused = peer.record.all(|event| match event {
        Event::Acknowledged(_, token, Err(reason)) => Some((token.sequence, reason.text.to_string())),
        _ => None,
    });
    assert_eq!(refused, [(2, "too large to be sent again with its topic: the server takes 120 B".to_owned())]);
    assert_eq!(peer.offer(id, 16), SendOutcome::Accepted, "its place is free");
    peer.flush(id);
    assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), (topic.to_owned(), Some(1), None, false));
}

/// The server may have received it. Then it takes the next message with its identifier for a repetition, acknowledges it and
/// does not publish it (MQTT 5.0 §4.3.3).
#[test]
fn the_identifier_of_a_message_that_cannot_be_sent_again_at_qos_2_is_not_used_for_another_one() {
    let identity = |found: Packet<'_>| {
        let Packet::Publish(publish) = found else { unreachable!() };
        (publish.head.packet_id.unwrap(), publish.head.dup)
    };
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let config = publisher("twice", "a/topic/of/fifty/bytes/that/is/written/out/in/full", Qos::ExactlyOnce);
    let config = SessionConfig { persistent: true, in_flight_window: 2, ..config };
    let options = SessionOptions { topic_alias: true, ..SessionOptions::default() };
    // Topic alias maximum 1, maximum packet size 120.
    let properties = [0x22, 0, 1, 0x27, 0, 0, 0, 120];
    let id = script.accept(&mut peer, with(config, options), &properties);
    for (payload_bytes, expected) in [(16, 1), (100, 2)] {
        assert_eq!(peer.offer(id, payload_bytes), SendOutcome::Accepted);
        peer.flush(id);
        assert_eq!(script.expect(&mut peer, PacketType::Publish, identity), (expected, false));
    }
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 1);
    let answer = script.connack(true, 0, &properties);
    script.connect_client(&mut peer, id, &answer);
    assert_eq!(script.expect(&mut peer, PacketType::Publish, identity), (1, true));
    let is_refused = |event: &Event| matches!(event, Event::Acknowledged(_, token, Err(_)) if token.sequence == 2);
    peer.wait("the refusal", |record| record.count(is_refused) == 1);
    assert_eq!(peer.offer(id, 16), SendOutcome::Accepted, "it has left the window");
    peer.flush(id);
    assert_eq!(script.expect(&mut peer, PacketType::Publish, identity), (3, false));
}

#[test]
fn a_server_without_topic_aliases_gets_topics_and_that_is_reported() {
    for properties in [&[][..], &[0x22, 0, 0]] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
        let options = SessionOptions { topic_alias: true, ..SessionOptions::default() };
        let id = script.accept(&mut peer, with(publisher("none", "topic", Qos::BestEffort), options), properties);
        assert!(peer.record.connects(id)[0].topic_alias_refused);
        for _ in 0..2 {
            assert_eq!(peer.offer(id, 100), SendOutcome::Accepted);
            peer.flush(id);
            let expected = ("topic".to_owned(), None, None, false);
            assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), expected);
        }
    }
}

fn requested_filter<C: Clients>(version: Version) -> String {
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let options = SessionOptions { shared: Some("workers".into()), ..SessionOptions::default() };
    script.accept(&mut peer, with(subscriber("shared", "a/+", Qos::AtLeastOnce), options), &[]);
    script.expect(&mut peer, PacketType::Subscribe, |found| {
        let Packet::Subscribe(subscribe) = found else { unreachable!() };
        subscribe.filters.iter().next().unwrap().filter.to_owned()
    })
}

#[test]
fn a_shared_group_stands_in_the_filter() {
    assert_eq!(requested_filter::<Mqtt5>(Version::V5), "$share/workers/a/+");
    assert_eq!(requested_filter::<Mqtt311>(Version::V311), "$share/workers/a/+");
}

#[test]
fn a_server_without_shared_subscriptions_gets_no_request() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let options = SessionOptions { shared: Some("workers".into()), ..SessionOptions::default() };
    // Shared subscription available: 0.
    let id = script.accept(&mut peer, with(subscriber("alone", "a", Qos::BestEffort), options), &[0x2a, 0]);
    let refused = Err(Reason::code(0x9e, "shared subscriptions not supported"));
    peer.wait("an answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    assert_count_eq!(peer.record.count(|event| *event == Event::Subscribed(id, 0, refused.clone())), 1);
    peer.linger(20);
    script.read();
    assert!(script.received().is_empty());
    script.send_bytes(&packet(0xd0, &[]));
    peer.linger(20);
    assert!(peer.record.causes(id).is_empty());
}
