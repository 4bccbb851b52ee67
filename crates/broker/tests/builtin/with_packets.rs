//! Tests that mosquitto's clients cannot do.

use std::time::{Duration, Instant};

use pubmark_model::qos::Qos;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::*;

use crate::client::{Arrived, Client, connect_packet, head};
use crate::server::Server;

#[test]
fn a_second_connection_takes_the_session_over() {
    let server = Server::start();
    let mut first = Client::simple(server.address, Version::V5, "same");
    let mut second = Client::simple(server.address, Version::V5, "same");
    assert_eq!(first.expect_end(), Some(reason::SESSION_TAKEN_OVER));
    second.expect_silence();
    assert_eq!(server.finish().taken_over, 1);
}

#[test]
fn a_message_at_qos_2_is_spread_once_however_often_it_comes() {
    let server = Server::start();
    let mut subscriber = Client::simple(server.address, Version::V311, "s");
    assert_eq!(subscriber.subscribe(SubscribeRequest::new("t", Qos::BestEffort)), 0);
    let mut publisher = Client::simple(server.address, Version::V311, "p");
    let repeated = PublishHead { dup: true, ..head("t", Qos::ExactlyOnce, Some(9)) };
    publisher.publish(head("t", Qos::ExactlyOnce, Some(9)), b"x");
    publisher.publish(repeated, b"x");
    for _ in 0..2 {
        assert_eq!(publisher.expect_ack(), (AckKind::Pubrec, 9, 0));
    }
    publisher.ack(AckKind::Pubrel, 9);
    assert_eq!(publisher.expect_ack(), (AckKind::Pubcomp, 9, 0));
    assert_eq!(subscriber.expect_message().1, b"x");
    subscriber.expect_silence();
    // Released, the identifier belongs to another message.
    publisher.publish(head("t", Qos::ExactlyOnce, Some(9)), b"y");
    assert_eq!(subscriber.expect_message().1, b"y");
}

#[test]
fn a_message_at_qos_2_above_the_receive_maximum_is_not_taken_for_known_after_a_resume() {
    let server = Server::with(|settings| settings.receive_maximum = 1);
    let mut subscriber = Client::simple(server.address, Version::V5, "s");
    subscriber.subscribe(SubscribeRequest::new("t", Qos::BestEffort));
    let expiry = [Property::SessionExpiryInterval(60)];
    let connect =
        Connect { clean_start: false, properties: Properties::new(&expiry), ..connect_packet(Version::V5, "hasty") };
    let (mut publisher, _) = Client::connect(server.address, &connect);
    publisher.publish(head("t", Qos::ExactlyOnce, Some(1)), b"a");
    assert_eq!(publisher.expect_ack(), (AckKind::Pubrec, 1, 0));
    publisher.publish(head("t", Qos::ExactlyOnce, Some(2)), b"b");
    assert_eq!(publisher.expect_end(), Some(reason::RECEIVE_MAXIMUM_EXCEEDED));
    let (mut publisher, present) = Client::connect(server.address, &connect);
    assert!(present);
    publisher.ack(AckKind::Pubrel, 1);
    assert_eq!(publisher.expect_ack(), (AckKind::Pubcomp, 1, 0));
    publisher.publish(PublishHead { dup: true, ..head("t", Qos::ExactlyOnce, Some(2)) }, b"b");
    assert_eq!(publisher.expect_ack(), (AckKind::Pubrec, 2, 0));
    assert_eq!([subscriber.expect_message().1, subscriber.expect_message().1], [b"a", b"b"]);
    subscriber.expect_silence();
}

#[test]
fn what_was_not_acknowledged_is_repeated_in_order_to_a_session_that_comes_back() {
    let server = Server::start();
    for version in [Version::V311, Version::V5] {
        let expiry = [Property::SessionExpiryInterval(60)];
        let connect = Connect {
            clean_start: false,
            properties: Properties::new(&expiry),
            ..connect_packet(version, if version == Version::V5 { "back-5" } else { "back-4" })
        };
        let (mut subscriber, present) = Client::connect(server.address, &connect);
        assert!(!present);
        subscriber.subscribe(SubscribeRequest::new("t", Qos::ExactlyOnce));
        let mut publisher = Client::simple(server.address, Version::V5, "p");
        publisher.publish(head("t", Qos::ExactlyOnce, Some(1)), b"a");
        publisher.publish(head("t", Qos::AtLeastOnce, Some(2)), b"b");
        let first = subscriber.expect_message().2.packet_id.unwrap();
        let second = subscriber.expect_message().2.packet_id.unwrap();
        // The first message reaches the client, the second stays unacknowledged.
        subscriber.ack(AckKind::Pubrec, first);
        assert_eq!(subscriber.expect_ack(), (AckKind::Pubrel, first, 0));
        drop(subscriber);
        let (mut subscriber, present) = Client::connect(server.address, &connect);
        assert!(present);
        let (_, payload, arrived) = subscriber.expect_message();
        assert_eq!((payload.as_slice(), arrived.dup, arrived.packet_id), (&b"b"[..], true, Some(second)));
        assert_eq!(subscriber.expect_ack(), (AckKind::Pubrel, first, 0));
        subscriber.ack(AckKind::Pubcomp, first);
        subscriber.ack(AckKind::Puback, second);
        subscriber.expect_silence();
        drop(subscriber);
        let (mut subscriber, _) = Client::connect(server.address, &connect);
        subscriber.expect_silence();
        // A clean start removes the session.
        let (mut subscriber, present) = Client::connect(server.address, &Connect { clean_start: true, ..connect });
        assert!(!present);
        publisher.publish(head("t", Qos::BestEffort, None), b"c");
        publisher.expect(|packet| assert!(matches!(packet, Packet::Ack(_))));
        subscriber.expect_silence();
    }
}

#[test]
fn no_more_than_the_client_allows_is_in_flight() {
    let server = Server::start();
    let two = [Property::ReceiveMaximum(2)];
    let connect = Connect { properties: Properties::new(&two), ..connect_packet(Version::V5, "narrow") };
    let (mut subscriber, _) = Client::connect(server.address, &connect);
    subscriber.subscribe(SubscribeRequest::new("t", Qos::AtLeastOnce));
    let mut publisher = Client::simple(server.address, Version::V5, "p");
    for (packet_id, payload) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        publisher.publish(head("t", Qos::AtLeastOnce, Some(packet_id)), payload);
        assert_eq!(publisher.expect_ack(), (AckKind::Puback, packet_id, 0));
    }
    let first = subscriber.expect_message().2.packet_id.unwrap();
    subscriber.expect_message();
    subscriber.expect_silence();
    subscriber.ack(AckKind::Puback, first);
    assert_eq!(subscriber.expect_message().1, b"c");
}

/// A subscriber at QoS 1 or 2 to `t` with a session that persists.
fn persistent<'a>(properties: &'a [Property<'a>]) -> Connect<'a> {
    Connect { clean_start: false, properties: Properties::new(properties), ..connect_packet(Version::V5, "persistent") }
}

fn publish_acknowledged(publisher: &mut Client, packet_id: u16, payload: &[u8]) {
    publisher.publish(head("t", Qos::AtLeastOnce, Some(packet_id)), payload);
    assert_eq!(publisher.expect_ack(), (AckKind::Puback, packet_id, 0));
}

#[test]
fn what_is_repeated_to_a_session_that_comes_back_stays_within_its_receive_maximum() {
    let server = Server::start();
    let expiry = [Property::SessionExpiryInterval(60)];
    let (mut subscriber, _) = Client::connect(server.address, &persistent(&expiry));
    subscriber.subscribe(SubscribeRequest::new("t", Qos::AtLeastOnce));
    let mut publisher = Client::simple(server.address, Version::V5, "p");
    for (packet_id, payload) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        publish_acknowledged(&mut publisher, packet_id, payload);
        assert_eq!(subscriber.expect_message().1, payload);
    }
    drop(subscriber);
    let narrow = [Property::SessionExpiryInterval(60), Property::ReceiveMaximum(1)];
    let (mut subscriber, present) = Client::connect(server.address, &persistent(&narrow));
    assert!(present);
    publish_acknowledged(&mut publisher, 4, b"d");
    for (payload, is_repeated) in [(b"a", true), (b"b", true), (b"c", true), (b"d", false)] {
        let (_, found, arrived) = subscriber.expect_message();
        assert_eq!((&found[..], arrived.dup), (&payload[..], is_repeated));
        subscriber.expect_silence();
        subscriber.ack(AckKind::Puback, arrived.packet_id.unwrap());
    }
    subscriber.expect_silence();
    assert_count_eq!(server.finish().messages_sent, 4);
}

#[test]
fn a_message_at_qos_2_that_was_sent_does_not_expire() {
    let server = Server::start();
    let expiry = [Property::SessionExpiryInterval(60)];
    let (mut subscriber, _) = Client::connect(server.address, &persistent(&expiry));
    subscriber.subscribe(SubscribeRequest::new("t", Qos::ExactlyOnce));
    let mut publisher = Client::simple(server.address, Version::V5, "p");
    let second = [Property::MessageExpiryInterval(1)];
    let mortal = PublishHead { properties: Properties::new(&second), ..head("t", Qos::ExactlyOnce, Some(1)) };
    publisher.publish(mortal, b"x");
    let packet_id = subscriber.expect_message().2.packet_id;
    drop(subscriber);
    std::thread::sleep(Duration::from_millis(1_100));
    // The client may have noted the identifier: without the message it would take the next one for a repetition.
    let (mut subscriber, _) = Client::connect(server.address, &persistent(&expiry));
    let (_, payload, arrived) = subscriber.expect_message();
    assert_eq!((&payload[..], arrived.dup, arrived.packet_id), (&b"x"[..], true, packet_id));
    assert_eq!(arrived.properties, ["MessageExpiryInterval(0)"]);
}

#[test]
fn messages_for_a_client_that_is_away_take_limited_memory() {
    let server = Server::with(|settings| settings.maximum_queued_bytes = 10_000);
    let expiry = [Property::SessionExpiryInterval(60)];
    let (mut subscriber, _) = Client::connect(server.address, &persistent(&expiry));
    subscriber.subscribe(SubscribeRequest::new("t", Qos::AtLeastOnce));
    drop(subscriber);
    let mut publisher = Client::simple(server.address, Version::V5, "p");
    (1..=20).for_each(|packet_id| publish_acknowledged(&mut publisher, packet_id, &[7; 1_000]));
    let (mut subscriber, _) = Client::connect(server.address, &persistent(&expiry));
    for _ in 0..10 {
        let packet_id = subscriber.expect_message().2.packet_id.unwrap();
        subscriber.ack(AckKind::Puback, packet_id);
    }
    subscriber.expect_silence();
    // What was acknowledged makes room.
    publish_acknowledged(&mut publisher, 21, b"room");
    assert_eq!(subscriber.expect_message().1, b"room");
    assert_count_eq!(server.finish().dropped_queued_messages, 10);
}

#[test]
fn a_client_has_a_limited_number_of_subscriptions() {
    let server = Server::with(|settings| settings.maximum_subscriptions = 2);
    for (version, refused) in [(Version::V311, 0x80), (Version::V5, reason::QUOTA_EXCEEDED)] {
        let mut client = Client::simple(server.address, version, "c");
        for (filter, code) in [("a", 1), ("b", 1), ("c", refused), ("a", 1)] {
            assert_eq!(client.subscribe(SubscribeRequest::new(filter, Qos::AtLeastOnce)), code, "{filter}");
        }
    }
    assert_count_eq!(server.finish().subscriptions_refused, 2);
}

#[test]
fn limits_are_announced_and_kept() {
    let server = Server::with(|settings| settings.maximum_packet_bytes = 1_000);
    let mut client = Client::open(server.address, Version::V5);
    client.send(&Packet::Connect(connect_packet(Version::V5, "")));
    client.expect(|packet| {
        let Packet::Connack(connack) = packet else { panic!("{packet:?} for CONNACK") };
        let properties = connack.properties;
        assert_eq!((properties.maximum_packet_bytes(), properties.receive_maximum()), (Some(1_000), Some(1_024)));
        assert!(properties.assigned_client_id().is_some_and(|client_id| !client_id.is_empty()));
    });
    // The header alone shows that the packet is too large.
    client.send_bytes(&[0x30, 0xe8, 0x07]);
    assert_eq!(client.expect_end(), Some(reason::PACKET_TOO_LARGE));
}

#[test]
fn messages_above_the_clients_packet_limit_are_left_out_and_counted() {
    let server = Server::start();
    let limit = [Property::MaximumPacketSize(50)];
    let connect = Connect { properties: Properties::new(&limit), ..connect_packet(Version::V5, "small") };
    let (mut subscriber, _) = Client::connect(server.address, &connect);
    subscriber.subscribe(SubscribeRequest::new("t", Qos::AtLeastOnce));
    let mut publisher = Client::simple(server.address, Version::V5, "p");
    publisher.publish(head("t", Qos::AtLeastOnce, Some(1)), &[0; 60]);
    publisher.publish(head("t", Qos::BestEffort, None), &[0; 60]);
    publisher.publish(head("t", Qos::AtLeastOnce, Some(2)), b"fits");
    assert_eq!(subscriber.expect_message().1, b"fits");
    assert_count_eq!(server.finish().dropped_too_large, 2);
}

#[test]
fn a_silent_client_is_ended_and_a_pinging_one_is_not() {
    let server = Server::start();
    let connect = |client_id| Connect { keep_alive_s: 1, ..connect_packet(Version::V5, client_id) };
    let (mut silent, _) = Client::connect(server.address, &connect("silent"));
    let (mut awake, _) = Client::connect(server.address, &connect("awake"));
    let ended = std::thread::spawn(move || silent.expect_end());
    let mut pings = 0;
    while !ended.is_finished() {
        awake.expect_silence();
        pings += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ended.join().unwrap(), Some(reason::KEEP_ALIVE_TIMEOUT));
    awake.expect_silence();
    assert!(pings > 0);
    assert_count_eq!(server.finish().silent, 1);
}

#[test]
fn two_matching_filters_bring_one_copy_with_both_identifiers() {
    let server = Server::start();
    let mut client = Client::simple(server.address, Version::V5, "both");
    let number = |id| [Property::SubscriptionIdentifier(id)];
    client.subscribe_with(SubscribeRequest::new("a/+", Qos::BestEffort), Properties::new(&number(7)));
    client.subscribe_with(SubscribeRequest::new("a/#", Qos::AtLeastOnce), Properties::new(&number(9)));
    let user = [Property::UserProperty("k", "v"), Property::ResponseTopic("answers")];
    let properties = Properties::new(&user);
    client.publish(PublishHead { properties, ..head("a/b", Qos::ExactlyOnce, Some(1)) }, b"x");
    client.expect(|packet| assert!(matches!(packet, Packet::Ack(_)), "{packet:?}"));
    let (_, _, Arrived { qos, mut properties, .. }) = client.expect_message();
    assert_eq!(qos, Qos::AtLeastOnce);
    properties.sort();
    let expected = [
        "ResponseTopic(\"answers\")",
        "SubscriptionIdentifier(7)",
        "SubscriptionIdentifier(9)",
        "UserProperty(\"k\", \"v\")",
    ];
    assert_eq!(properties, expected);
    client.expect_silence();
}

#[test]
fn no_local_and_retain_options_are_kept() {
    let server = Server::start();
    let mut client = Client::simple(server.address, Version::V5, "c");
    let mut other = Client::simple(server.address, Version::V5, "o");
    let retained = PublishHead { retain: true, ..head("t", Qos::BestEffort, None) };
    other.publish(retained, b"kept");
    other.expect_silence();
    let quiet = SubscribeRequest {
        no_local: true,
        retain_as_published: true,
        retain_handling: RetainHandling::Never,
        ..SubscribeRequest::new("t", Qos::BestEffort)
    };
    client.subscribe(quiet);
    client.publish(head("t", Qos::BestEffort, None), b"own");
    client.expect_silence();
    other.publish(retained, b"again");
    let (_, payload, arrived) = client.expect_message();
    assert_eq!((payload.as_slice(), arrived.retain), (&b"again"[..], true));
    // An existing subscription gets no retained messages under `IfNew`; a new one does.
    client.subscribe(SubscribeRequest { retain_handling: RetainHandling::IfNew, ..quiet });
    client.expect_silence();
    other.subscribe(SubscribeRequest { retain_handling: RetainHandling::IfNew, ..quiet });
    assert_eq!(other.expect_message().1, b"again");
}

#[test]
fn a_retained_message_ages_and_expires_at_every_level() {
    let server = Server::start();
    let mut publisher = Client::simple(server.address, Version::V5, "p");
    for (packet_id, topic, expiry_s) in [(1, "aged/long", 60), (2, "aged/short", 1)] {
        let expiry = [Property::MessageExpiryInterval(expiry_s)];
        let properties = Properties::new(&expiry);
        let retained = PublishHead { retain: true, properties, ..head(topic, Qos::AtLeastOnce, Some(packet_id)) };
        publisher.publish(retained, b"kept");
        assert_eq!(publisher.expect_ack(), (AckKind::Puback, packet_id, 0));
    }
    std::thread::sleep(Duration::from_millis(1_100));
    for (client_id, qos) in [("0", Qos::BestEffort), ("1", Qos::AtLeastOnce)] {
        let mut subscriber = Client::simple(server.address, Version::V5, client_id);
        subscriber.subscribe(SubscribeRequest::new("aged/+", qos));
        let (topic, _, arrived) = subscriber.expect_message();
        assert_eq!((topic.as_str(), arrived.qos, arrived.retain), ("aged/long", qos, true));
        let left_s =
            arrived.properties[0].strip_prefix("MessageExpiryInterval(").and_then(|rest| rest.strip_suffix(')'));
        assert!((1..60).contains(&left_s.unwrap().parse::<u32>().unwrap()), "{:?}", arrived.properties);
        subscriber.expect_silence();
    }
    assert_count_eq!(server.finish().expired, 2);
}

#[test]
fn a_slow_subscriber_loses_counted_messages_at_qos_0_and_nobody_else_does() {
    let server = Server::with(|settings| settings.maximum_queued_bytes = 100_000);
    let mut slow = Client::simple(server.address, Version::V311, "slow");
    let mut quick = Client::simple(server.address, Version::V311, "quick");
    slow.subscribe(SubscribeRequest::new("t", Qos::BestEffort));
    quick.subscribe(SubscribeRequest::new("t", Qos::BestEffort));
    let mut publisher = Client::simple(server.address, Version::V311, "p");
    for _ in 0..400 {
        // A round fits into the fast client's queue even if its socket accepts nothing, and it reads between rounds.
        (0..10).for_each(|_| publisher.publish(head("t", Qos::BestEffort, None), &[7; 5_000]));
        (0..10).for_each(|_| drop(quick.expect_message()));
    }
    quick.expect_silence();
    let mut received = 0u64;
    slow.send(&Packet::Pingreq);
    while slow.expect(|packet| matches!(packet, Packet::Publish(_))) {
        received += 1;
    }
    let statistics = server.finish();
    assert!(statistics.dropped_queued_bytes > 0);
    assert_count_eq!(received + statistics.dropped_queued_bytes, 4_000);
    assert_count_eq!(statistics.messages_sent, 4_000 + received);
}

#[test]
fn broken_packets_end_their_connection_only() {
    let server = Server::start();
    let mut bystander = Client::simple(server.address, Version::V5, "bystander");
    let mut client = Client::simple(server.address, Version::V5, "c");
    client.send_bytes(&[0x36, 5, 0, 1, b'a', 0, 1]);
    assert_eq!(client.expect_end(), Some(reason::MALFORMED_PACKET));
    let mut client = Client::simple(server.address, Version::V5, "c");
    client.send(&Packet::Connect(connect_packet(Version::V5, "c")));
    assert_eq!(client.expect_end(), Some(reason::PROTOCOL_ERROR));
    let mut client = Client::open(server.address, Version::V5);
    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.expect_end(), None);
    let mut client = Client::simple(server.address, Version::V5, "c");
    let deep = "a/".repeat(200);
    assert_eq!(client.subscribe(SubscribeRequest::new(&deep, Qos::BestEffort)), reason::TOPIC_FILTER_INVALID);
    bystander.expect_silence();
    assert_count_eq!(server.finish().protocol_errors, 3);
}

#[test]
fn a_session_expires_after_its_interval_and_its_delayed_will_comes_then() {
    let server = Server::start();
    let mut watcher = Client::simple(server.address, Version::V5, "watcher");
    watcher.subscribe(SubscribeRequest::new("will", Qos::BestEffort));
    let delay = [Property::WillDelayInterval(30)];
    let expiry = [Property::SessionExpiryInterval(2)];
    let kept_for = Duration::from_secs(2);
    let will = Will {
        qos: Qos::AtLeastOnce,
        retain: false,
        topic: "will",
        payload: b"late",
        properties: Properties::new(&delay),
    };
    let connect = Connect {
        will: Some(will),
        clean_start: false,
        properties: Properties::new(&expiry),
        ..connect_packet(Version::V5, "mortal")
    };
    drop(Client::connect(server.address, &connect));
    // Back within the interval: the session is there, and the will of the first connection never comes.
    let (back, present) = Client::connect(server.address, &connect);
    assert!(present);
    std::thread::sleep(kept_for + Duration::from_millis(300));
    watcher.expect_silence();
    let left = Instant::now();
    drop(back);
    let (_, payload, arrived) = watcher.expect_message();
    assert!(left.elapsed() >= kept_for, "the will came after {:?}", left.elapsed());
    assert_eq!((payload.as_slice(), arrived.properties), (&b"late"[..], vec![]));
    watcher.expect_silence();
    assert!(!Client::connect(server.address, &connect).1);
}
