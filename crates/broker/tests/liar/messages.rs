//! Lies about messages.

use pubmark_model::qos::Qos;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{AckKind, PublishHead, SubscribeRequest, Version};

use crate::client::Client;
use crate::stage::{Stage, next, payload, plain_head, publish, sequences, some};

#[test]
fn without_a_script_it_is_honest_at_every_level() {
    for qos in Qos::ALL {
        let stage = Stage::start("");
        let mut subscriber = stage.subscriber(qos);
        let mut publisher = stage.publisher();
        publish(&mut publisher, qos, 1..=20);
        for expected in 1..=20 {
            let (sequence, arrived) = next(&mut subscriber);
            assert_eq!((sequence, arrived.qos, arrived.dup, arrived.retain), (Some(expected), qos, false, false));
        }
        subscriber.expect_silence();
        stage.end().check(&[("sent", 20), ("expected", 20), ("delivered", 20)]);
    }
}

#[test]
fn messages_are_dropped_doubled_swapped_and_forged() {
    let script = "drop message=3\nduplicate message=5\nduplicate message=6 after=3\nswap message=10\n\
                  foreign message=12\nretained-copy message=13";
    let stage = Stage::start(script);
    let mut subscriber = stage.subscriber(Qos::AtLeastOnce);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::AtLeastOnce, 1..=14);
    let mut expected = some([1, 2, 4, 5, 5, 6, 7, 8, 9, 6, 11, 10, 12]);
    expected.push(None);
    expected.extend(some([13, 13, 14]));
    assert_count_eq!(sequences(&mut subscriber, expected.len()), expected);
    subscriber.expect_silence();
    let counts = [("duplicated", 2), ("out_of_order", 1), ("foreign", 1), ("retained_replay", 1)];
    let mut figures = vec![("sent", 14), ("expected", 14), ("delivered", 13), ("lost", 1)];
    figures.extend(counts);
    stage.end().check(&figures);
}

#[test]
fn a_message_held_back_goes_out_after_a_second_without_a_next_one() {
    let stage = Stage::start("swap message=2");
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::BestEffort, 1..=2);
    assert_count_eq!(sequences(&mut subscriber, 2), some([1, 2]));
    let ended = stage.end();
    ended.check(&[("sent", 2), ("expected", 2), ("delivered", 2)]);
    let held_ns = ended.lines("forwarded")[1].0 - ended.lines("received")[1].0;
    assert!(held_ns >= 1_000_000_000, "{held_ns} ns");
}

#[test]
fn a_topic_filter_limits_a_lie() {
    let stage = Stage::start("drop topic=other/#\ndrop topic=a/+ every=2 count=2");
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::BestEffort, 1..=7);
    assert_count_eq!(sequences(&mut subscriber, 5), some([1, 3, 5, 6, 7]));
    stage.end().check(&[("sent", 7), ("expected", 7), ("delivered", 5), ("lost", 2)]);
}

#[test]
fn refused_messages_are_reported_to_the_publisher_and_stored_or_delivered() {
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let stage = Stage::start("refuse code=0x97 message=2\nrefuse code=0x90 deliver=yes message=3");
        let mut subscriber = stage.subscriber(qos);
        let mut publisher = stage.publisher();
        publish(&mut publisher, qos, 1..=4);
        let kind = if qos == Qos::AtLeastOnce { AckKind::Puback } else { AckKind::Pubrec };
        for (packet_id, code) in [(1, 0), (2, 0x97), (3, 0x90), (4, 0)] {
            assert_eq!(publisher.expect_ack(), (kind, packet_id, code));
        }
        assert_count_eq!(sequences(&mut subscriber, 3), some([1, 3, 4]));
        let figures = [("sent", 2), ("refused", 2), ("expected", 2), ("delivered", 2), ("delivered_after_refusal", 1)];
        stage.end().check(&figures);
    }
}

#[test]
fn version_3_1_1_has_no_reason_code_and_is_not_refused() {
    let stage = Stage::start("refuse code=0x97");
    let mut subscriber = stage.subscriber(Qos::AtLeastOnce);
    let mut publisher = Client::simple(stage.address, Version::V311, "old");
    publisher.publish(crate::client::head("a/b", Qos::AtLeastOnce, Some(1)), &payload(1));
    assert_eq!(publisher.expect_ack(), (AckKind::Puback, 1, 0));
    assert_eq!(next(&mut subscriber).0, Some(1));
    stage.end().check(&[("sent", 1), ("expected", 1), ("delivered", 1)]);
}

#[test]
fn a_repeated_message_at_qos_2_is_recognised_until_it_is_released() {
    let stage = Stage::start("");
    let mut subscriber = stage.subscriber(Qos::ExactlyOnce);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::ExactlyOnce, [1]);
    let head = PublishHead { dup: true, ..crate::client::head("a/b", Qos::ExactlyOnce, Some(1)) };
    publisher.publish(head, &payload(1));
    assert_eq!(publisher.expect_ack(), (AckKind::Pubrec, 1, 0));
    assert_eq!(publisher.expect_ack(), (AckKind::Pubrec, 1, 0));
    publisher.ack(AckKind::Pubrel, 1);
    assert_eq!(publisher.expect_ack(), (AckKind::Pubcomp, 1, 0));
    assert_eq!(next(&mut subscriber).0, Some(1));
    subscriber.expect_silence();
    let ended = stage.end();
    assert_eq!(ended.lines("repeated").len(), 1);
    ended.check(&[("sent", 1), ("expected", 1), ("delivered", 1)]);
}

#[test]
fn overlapping_filters_bring_one_copy_or_one_each() {
    for (script, copies) in [("", 1), ("overlap", 2)] {
        let stage = Stage::start(script);
        let mut subscriber = stage.subscriber(Qos::BestEffort);
        subscriber.subscribe(SubscribeRequest::new("a/+", Qos::BestEffort));
        publish(&mut stage.publisher(), Qos::BestEffort, [1]);
        assert_count_eq!(sequences(&mut subscriber, copies), some(vec![1; copies]));
        subscriber.expect_silence();
        let figures = [("sent", 1), ("expected", 1), ("delivered", 1), ("overlap", 1)];
        stage.end().check(&figures[..figures.len() + copies - 2]);
    }
}

#[test]
fn retained_messages_are_replayed_and_others_where_the_script_says_so() {
    for (script, replayed) in [("", vec![2]), ("replay", vec![3])] {
        let stage = Stage::start(script);
        let mut publisher = stage.publisher();
        publish(&mut publisher, Qos::BestEffort, [1]);
        publisher.publish(PublishHead { retain: true, ..plain_head() }, &payload(2));
        publish(&mut publisher, Qos::BestEffort, [3]);
        publisher.expect_silence();
        let mut subscriber = stage.subscriber(Qos::BestEffort);
        for sequence in replayed {
            let (found, arrived) = next(&mut subscriber);
            assert_count_eq!((found, arrived.retain), (Some(sequence), true));
        }
        subscriber.expect_silence();
        stage.end().check(&[("sent", 3), ("retained_replay", 1), ("absent", 3)]);
    }
}
