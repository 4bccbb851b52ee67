//! Requests and replies on the wire (MQTT 5.0 §4.10).

use pubmark_adapters::mqtt::Mqtt5;
use pubmark_conformance::peer::{Peer, RUN, publisher, subscriber};
use pubmark_conformance::recorder::{Event, ReceivedRequest};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, SendOutcome, SessionConfig, SessionId, SessionOptions, Subscription};
use pubmark_protocol::events::{Reason, Token};
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo, correlation};
use pubmark_protocol::timing::Timing;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{Packet, PacketType, Properties, Property, Publish, PublishHead, Version, encode_publish};

use crate::script::{Script, packet};

/// A session whose messages are requests, with its subscription granted.
fn asking(script: &mut Script, peer: &mut Peer<Mqtt5>) -> SessionId {
    let options = SessionOptions { reply_topic: Some("answers/me".into()), ..SessionOptions::default() };
    let subscriptions = vec![Subscription { filter: "answers/me".into(), qos: Qos::BestEffort }];
    let config = SessionConfig { options, subscriptions, ..publisher("asks", "topic", Qos::BestEffort) };
    let id = script.accept(peer, config, &[]);
    let packet_id = script.expect(peer, PacketType::Subscribe, |found| {
        let Packet::Subscribe(subscribe) = found else { unreachable!() };
        assert_eq!(subscribe.filters.iter().next().unwrap().filter, "answers/me");
        subscribe.packet_id
    });
    let [high, low] = packet_id.to_be_bytes();
    script.send_bytes(&packet(0x90, &[high, low, 0, 0]));
    peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(_, 0, Ok(_)))) == 1);
    id
}

/// A PUBLISH of a server.
fn published(properties: &[Property<'_>], payload: &[u8]) -> Vec<u8> {
    let head = PublishHead {
        dup: false,
        qos: Qos::BestEffort,
        retain: false,
        topic: "topic",
        packet_id: None,
        properties: Properties::new(properties),
    };
    let mut out = Vec::new();
    encode_publish(Version::V5, &Publish { head, payload }, &mut out).unwrap();
    out
}

/// Topic, response topic, correlation data and packet identifier of a PUBLISH.
type Seen = (String, Option<String>, Option<Vec<u8>>, Option<u16>);

fn seen(found: Packet<'_>) -> Seen {
    let Packet::Publish(publish) = found else { unreachable!() };
    let (head, properties) = (publish.head, publish.head.properties);
    let response_topic = properties.response_topic().map(str::to_owned);
    (head.topic.to_owned(), response_topic, properties.correlation_data().map(<[u8]>::to_vec), head.packet_id)
}

#[test]
fn a_request_has_a_response_topic_and_a_correlation() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = asking(&mut script, &mut peer);
    for sequence in [1, 2] {
        assert_eq!(peer.offer(id, 100), SendOutcome::Accepted);
        peer.flush(id);
        let named = correlation(Token { publication: 0, sequence }).to_vec();
        let expected = ("topic".to_owned(), Some("answers/me".to_owned()), Some(named), None);
        assert_eq!(script.expect(&mut peer, PacketType::Publish, seen), expected);
    }
}

#[test]
fn a_reply_is_known_by_its_correlation_data_alone() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    asking(&mut script, &mut peer);
    let mut reply = Vec::new();
    header::write_reply(&mut reply, RUN, 7, 1, 0);
    let other = Token { publication: 3, sequence: 9 };
    for (correlation, expected) in [
        (Some(&correlation(other)[..]), Some(other)),
        (Some(&b"short"[..]), None),
        (Some(&b"far too long"[..]), None),
        (None, None),
    ] {
        let properties: Vec<_> = correlation.into_iter().map(Property::CorrelationData).collect();
        script.send_bytes(&published(&properties, &reply));
        peer.wait("the reply", |record| !record.replies.is_empty());
        assert_eq!(peer.record.replies.remove(0).request, expected, "{correlation:?}");
    }
}

/// A responder, and a request that it received.
fn asked(script: &mut Script, peer: &mut Peer<Mqtt5>, qos: Qos, properties: &[u8]) -> ReceivedRequest {
    let options = SessionOptions { replies_at: Some(qos), ..SessionOptions::default() };
    let config = SessionConfig { options, in_flight_window: 1, ..subscriber("answers", "topic", qos) };
    script.accept(peer, config, properties);
    script.expect(peer, PacketType::Subscribe, |_| ());
    let mut request = Vec::new();
    header::write(&mut request, 24, RUN, 5, 6, 7);
    let reason = [Property::ResponseTopic("back/to/5"), Property::CorrelationData(b"\0\xffany")];
    script.send_bytes(&published(&reason, &request));
    peer.wait("the request", |record| record.received_requests.len() == 1);
    peer.record.received_requests.remove(0)
}

fn answer(asked: &ReceivedRequest, qos: Qos, number: u32, payload_bytes: u32) -> OutgoingReply<'_> {
    OutgoingReply {
        to: ReplyTo { address: &asked.address, correlation: &asked.correlation },
        qos,
        number,
        publisher: asked.header.publisher,
        sequence: asked.header.sequence,
        due_ns: asked.header.due_ns,
        timing: Timing::on_time(asked.at_ns),
        payload_bytes,
    }
}

#[test]
fn a_reply_goes_to_the_reply_address_and_is_acknowledged_separately() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let asked = asked(&mut script, &mut peer, Qos::AtLeastOnce, &[]);
    let session = asked.session;
    assert_eq!((asked.address.as_str(), asked.correlation.as_slice()), ("back/to/5", &b"\0\xffany"[..]));
    let reply = answer(&asked, Qos::AtLeastOnce, 77, 100);
    assert_eq!(peer.clients.reply(session, &reply), SendOutcome::Accepted);
    let second = answer(&asked, Qos::AtLeastOnce, 78, 100);
    assert_eq!(peer.clients.reply(session, &second), SendOutcome::WouldBlock, "the window is one");
    peer.flush(session);
    let (topic, response_topic, correlation, packet_id) = script.expect(&mut peer, PacketType::Publish, seen);
    assert_eq!((topic.as_str(), response_topic, correlation), ("back/to/5", None, Some(b"\0\xffany".to_vec())));
    let [high, low] = packet_id.unwrap().to_be_bytes();
    script.send_bytes(&packet(0x40, &[high, low, 0x87, 0]));
    let refused = Event::Acknowledged(session, reply.token(), Err(Reason::code(0x87, "not authorized")));
    peer.wait("the refusal", |record| record.count(|event| *event == refused) == 1);
    peer.wait("room", |record| record.count(|event| *event == Event::Writable(session)) == 1);
    assert_eq!(peer.clients.reply(session, &second), SendOutcome::Accepted);
}

#[test]
fn a_reply_larger_than_the_server_takes_is_refused_by_size() {
    for (bytes, expected) in [(158, SendOutcome::TooLarge(180)), (157, SendOutcome::Accepted)] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
        // Maximum packet size 180: 3 of the fixed header, 2 + 9 of the topic, 1 + 3 + 5 of the properties, 157 of payload.
        let asked = asked(&mut script, &mut peer, Qos::BestEffort, &[0x27, 0, 0, 0, 180]);
        let reply = answer(&asked, Qos::BestEffort, 1, bytes);
        assert_eq!(peer.clients.reply(asked.session, &reply), expected, "{bytes}");
    }
}

#[test]
fn a_reply_whose_connection_ends_before_it_is_written_is_abandoned() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let asked = asked(&mut script, &mut peer, Qos::BestEffort, &[]);
    let reply = answer(&asked, Qos::BestEffort, 9, 100);
    assert_eq!(peer.clients.reply(asked.session, &reply), SendOutcome::Accepted);
    peer.leave(asked.session, pubmark_protocol::clients::Goodbye::Cut);
    let abandoned = Event::Abandoned(asked.session, reply.token());
    assert_count_eq!(peer.record.count(|event| *event == abandoned), 1);
}
