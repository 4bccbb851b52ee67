//! Lies about connections and subscriptions.

use pubmark_model::qos::Qos;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{AckKind, Connect, Packet, Properties, Property, SubscribeRequest, Version};

use crate::client::{Client, connect_packet};
use crate::stage::{Stage, next, publish, sequences, some};

#[test]
fn a_publisher_cut_before_the_acknowledgement_leaves_messages_unknown() {
    let stage = Stage::start("cut-publisher when=before-ack message=3");
    let mut subscriber = stage.subscriber(Qos::AtLeastOnce);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::AtLeastOnce, 1..=5);
    for packet_id in [1, 2] {
        assert_eq!(publisher.expect_ack(), (AckKind::Puback, packet_id, 0));
    }
    assert_eq!(publisher.expect_end(), None);
    drop(publisher);
    assert_count_eq!(sequences(&mut subscriber, 2), some([1, 2]));
    subscriber.expect_silence();
    let ended = stage.end();
    assert_eq!(ended.lines("discarded").len(), 2);
    ended.check(&[("sent", 5), ("expected", 5), ("delivered", 2), ("unknown", 3)]);
}

#[test]
fn a_message_can_be_forwarded_although_its_publisher_was_cut() {
    let stage = Stage::start("cut-publisher when=before-ack forward=yes message=1");
    let mut subscriber = stage.subscriber(Qos::ExactlyOnce);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::ExactlyOnce, [1]);
    assert_eq!(publisher.expect_end(), None);
    assert_eq!(next(&mut subscriber).0, Some(1));
    stage.end().check(&[("sent", 1), ("expected", 1), ("delivered", 1)]);
}

#[test]
fn a_publisher_cut_behind_the_acknowledgement_has_it() {
    for how in ["close", "reset"] {
        let stage = Stage::start(&format!("cut-publisher when=after-ack how={how} message=2"));
        let mut subscriber = stage.subscriber(Qos::AtLeastOnce);
        let mut publisher = stage.publisher();
        publish(&mut publisher, Qos::AtLeastOnce, [1]);
        assert_eq!(publisher.expect_ack(), (AckKind::Puback, 1, 0));
        publish(&mut publisher, Qos::AtLeastOnce, [2]);
        if how == "close" {
            assert_eq!(publisher.expect_ack(), (AckKind::Puback, 2, 0));
        }
        assert_eq!(publisher.expect_end(), None);
        assert_count_eq!(sequences(&mut subscriber, 2), some([1, 2]));
        stage.end().check(&[("sent", 2), ("expected", 2), ("delivered", 2)]);
    }
}

#[test]
fn a_subscriber_that_was_cut_is_absent_until_it_subscribes_again() {
    let stage = Stage::start("cut-subscriber message=2");
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::BestEffort, 1..=3);
    assert_count_eq!(sequences(&mut subscriber, 2), some([1, 2]));
    assert_eq!(subscriber.expect_end(), None);
    publisher.expect_silence();
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    publish(&mut publisher, Qos::BestEffort, [4]);
    assert_eq!(next(&mut subscriber).0, Some(4));
    stage.end().check(&[("sent", 4), ("expected", 3), ("delivered", 3), ("absent", 1)]);
}

#[test]
fn a_persistent_subscriber_gets_what_it_missed_and_repetitions() {
    // At QoS 1 a repetition is another copy; at QoS 2 its identifier shows that it is one.
    for (qos, further_copies) in [(Qos::AtLeastOnce, 2), (Qos::ExactlyOnce, 0)] {
        let stage = Stage::start("cut-subscriber message=2");
        let expiry = [Property::SessionExpiryInterval(60)];
        let properties = Properties::new(&expiry);
        let connect = Connect { clean_start: false, properties, ..connect_packet(Version::V5, "supervisor") };
        let (mut subscriber, _) = Client::connect(stage.address, &connect);
        subscriber.subscribe(SubscribeRequest::new("a/#", qos));
        let mut publisher = stage.publisher();
        publish(&mut publisher, qos, 1..=3);
        assert_count_eq!(sequences(&mut subscriber, 2), some([1, 2]));
        assert_eq!(subscriber.expect_end(), None);
        let (mut subscriber, present) = Client::connect(stage.address, &connect);
        assert!(present);
        let arrived: Vec<_> = (0..3).map(|_| next(&mut subscriber)).map(|(found, head)| (found, head.dup)).collect();
        assert_count_eq!(arrived, [(Some(1), true), (Some(2), true), (Some(3), false)]);
        let mut figures = vec![("sent", 3), ("expected", 3), ("delivered", 3)];
        figures.extend((further_copies > 0).then_some(("duplicated", further_copies)));
        stage.end().check(&figures);
    }
}

#[test]
fn subscriptions_are_granted_less_or_refused() {
    let stage = Stage::start("grant qos=0 topic=a/+\nrefuse-subscribe code=0x87 topic=c");
    let mut subscriber = Client::simple(stage.address, Version::V5, "s");
    assert_eq!(subscriber.subscribe(SubscribeRequest::new("a/b", Qos::ExactlyOnce)), 0);
    assert_eq!(subscriber.subscribe(SubscribeRequest::new("b", Qos::AtLeastOnce)), 1);
    assert_eq!(subscriber.subscribe(SubscribeRequest::new("c", Qos::AtLeastOnce)), 0x87);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::AtLeastOnce, [1]);
    let (sequence, arrived) = next(&mut subscriber);
    assert_count_eq!((sequence, arrived.qos), (Some(1), Qos::BestEffort));
    stage.end().check(&[("sent", 1), ("expected", 1), ("delivered", 1), ("granted_qos_lower", 1)]);
}

#[test]
fn clients_are_refused_by_code_and_by_password() {
    let stage = Stage::start("refuse-connect code=0x88 client=first count=1\nlogin user=u password=p client=second");
    let code = |connect: &Connect<'_>| {
        let mut client = Client::open(stage.address, connect.version);
        client.send(&Packet::Connect(*connect));
        client.expect(|packet| match packet {
            Packet::Connack(connack) => connack.code,
            other => panic!("{other:?} for CONNACK"),
        })
    };
    let first = connect_packet(Version::V5, "first");
    assert_eq!((code(&first), code(&first)), (0x88, 0));
    let second = connect_packet(Version::V311, "second");
    let known = Connect { user: Some("u"), password: Some(b"p"), ..second };
    let wrong = Connect { password: Some(b"q"), ..known };
    assert_eq!((code(&second), code(&wrong), code(&known)), (4, 4, 0));
    let ended = stage.end();
    ended.check(&[]);
    let codes: Vec<&str> = ended.lines("open").iter().map(|(_, fields)| fields[4]).collect();
    assert_eq!(codes, ["136", "0", "4", "4", "0"]);
}

#[test]
fn a_session_that_is_taken_over_is_written_down() {
    let stage = Stage::start("");
    let mut first = Client::simple(stage.address, Version::V5, "same name");
    let mut second = Client::simple(stage.address, Version::V5, "same name");
    assert_eq!(first.expect_end(), Some(0x8e));
    second.expect_silence();
    let ended = stage.end();
    ended.check(&[]);
    let closed: Vec<Vec<&str>> = ended.lines("closed").into_iter().map(|(_, fields)| fields).collect();
    assert_eq!(closed, [["same%20name", "takeover", "0"], ["same%20name", "stop", "0"]]);
}

#[test]
fn copies_that_never_reached_the_socket_are_written_down() {
    let stage = Stage::start("");
    let subscriber = stage.subscriber(Qos::BestEffort);
    let mut publisher = stage.publisher();
    // More than the socket buffers accept while the client does not read.
    let large = vec![7; 1_000_000];
    for _ in 0..16 {
        publisher.publish(crate::stage::plain_head(), &large);
    }
    publisher.expect_silence();
    let ended = stage.end();
    drop(subscriber);
    assert!(!ended.lines("unwritten").is_empty());
    let Some(figures) = &ended.figures else { return };
    assert_count_eq!(figures["foreign"] as usize + ended.lines("unwritten").len(), 16);
}
