//! Messages of the server and their acknowledgements.

use pubmark_conformance::peer::subscriber;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Clients as _;
use pubmark_protocol::clock;
use pubmark_testing::{assert_count, assert_count_eq};

use crate::script::{Harness, body, content_header, deliver, message, payload};

const HEARTBEAT: &[u8] = b"\x08\x00\x00\x00\x00\x00\x00\xce";

#[test]
fn messages_arrive_once_wherever_they_are_cut() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("cut", "a", Qos::BestEffort));
    let long = payload(2, 60);
    let words = [
        message(1, 1),
        deliver(1, 2),
        content_header(60),
        body(&long[..20]),
        HEARTBEAT.to_vec(),
        body(&long[20..59]),
        body(&long[59..]),
        message(3, 3),
    ]
    .concat();
    for cut in 1..words.len() {
        let before = harness.peer.record.sequences(id).len();
        script.send_bytes(&words[..cut]);
        harness.peer.linger(1);
        script.send_bytes(&words[cut..]);
        harness.peer.wait("all three", |record| record.sequences(id).len() == before + 3);
        assert_count_eq!(harness.peer.record.sequences(id)[before..], [1, 2, 3]);
    }
    assert_count_eq!(harness.peer.record.foreign, 0);
    assert_count!(harness.peer.record.arrived.iter().all(|one| [24, 60].contains(&one.payload_bytes)));
    script.expect_silence(&mut harness.peer);
}

#[test]
fn a_message_without_a_body_is_whole_with_its_header() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("empty", "a", Qos::BestEffort));
    script.send_bytes(&[deliver(1, 1), content_header(0), message(2, 5)].concat());
    harness.peer.wait("the second", |record| record.sequences(id) == [5]);
    assert_count_eq!(harness.peer.record.foreign, 1, "a message without a header is foreign");
}

#[test]
fn only_delivered_messages_are_acknowledged() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("acks", "a", Qos::AtLeastOnce));
    let ack = |tag: u64, several: bool| [&tag.to_be_bytes()[..], &[u8::from(several)]].concat();
    script.send_bytes(&message(1, 1));
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(1, false));
    script.send_bytes(&[message(2, 2), message(3, 3), message(4, 4)].concat());
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(4, true));
    // The fifth is incomplete when the read ends: the fourth is the last to be acknowledged.
    script.send_bytes(&[message(5, 5), deliver(1, 6)].concat());
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(5, false));
    script.send_bytes(&content_header(24));
    script.expect_silence(&mut harness.peer);
    script.send_bytes(&body(&payload(6, 24)));
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(6, false));
    assert_count_eq!(harness.peer.record.sequences(id), [1, 2, 3, 4, 5, 6]);
    // The read may end with another frame.
    script.send_bytes(&[message(7, 7), HEARTBEAT.to_vec()].concat());
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(7, false));
    // With many messages, acknowledgements are sent before the end of the read.
    let many: Vec<u8> = (8..=150).flat_map(|number| message(number, number as u32)).collect();
    script.send_bytes(&many);
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(107, true));
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack(150, true));
}

#[test]
fn a_slow_subscriber_acknowledges_each_message_when_it_begins_to_process_it() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("slow", "a", Qos::AtLeastOnce));
    harness.peer.record.works = Some(id);
    script.send_bytes(&[message(1, 1), message(2, 2), message(3, 3)].concat());
    for tag in 1..=3u64 {
        let ack = [&tag.to_be_bytes()[..], &[0]].concat();
        assert_eq!(script.expect(&mut harness.peer, 1, 60, 80), ack);
        script.expect_silence(&mut harness.peer);
        harness.peer.record.at_work = false;
        harness.peer.clients.resume(id, clock::monotonic_ns(), &mut harness.peer.record);
    }
    assert_count_eq!(harness.peer.record.sequences(id), [1, 2, 3]);
}
