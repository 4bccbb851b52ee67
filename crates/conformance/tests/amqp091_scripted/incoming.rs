//! Messages of the server's and their acknowledgements.

use pubmark_conformance::peer::subscriber;
use pubmark_model::qos::Qos;
use pubmark_testing::{assert_count, assert_count_eq};

use crate::script::{Meeting, body, content_header, deliver, message, payload};

const HEARTBEAT: &[u8] = b"\x08\x00\x00\x00\x00\x00\x00\xce";

#[test]
fn messages_arrive_once_wherever_they_are_cut() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.consuming(subscriber("cut", "a", Qos::BestEffort));
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
        let before = meeting.peer.record.sequences(id).len();
        script.say(&words[..cut]);
        meeting.peer.linger(1);
        script.say(&words[cut..]);
        meeting.peer.wait("all three", |record| record.sequences(id).len() == before + 3);
        assert_count_eq!(meeting.peer.record.sequences(id)[before..], [1, 2, 3]);
    }
    assert_count_eq!(meeting.peer.record.foreign, 0);
    assert_count!(meeting.peer.record.arrived.iter().all(|one| [24, 60].contains(&one.payload_bytes)));
    script.expect_silence(&mut meeting.peer);
}

#[test]
fn a_message_without_a_body_is_whole_with_its_header() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.consuming(subscriber("empty", "a", Qos::BestEffort));
    script.say(&[deliver(1, 1), content_header(0), message(2, 5)].concat());
    meeting.peer.wait("the second", |record| record.sequences(id) == [5]);
    assert_count_eq!(meeting.peer.record.foreign, 1, "no message of ours has no header");
}

#[test]
fn what_was_delivered_is_acknowledged_and_nothing_else() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.consuming(subscriber("acks", "a", Qos::AtLeastOnce));
    let ack = |tag: u64, several: bool| [&tag.to_be_bytes()[..], &[u8::from(several)]].concat();
    script.say(&message(1, 1));
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(1, false));
    script.say(&[message(2, 2), message(3, 3), message(4, 4)].concat());
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(4, true));
    // The fifth is under way when the read ends: the fourth is the last to be acknowledged.
    script.say(&[message(5, 5), deliver(1, 6)].concat());
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(5, false));
    script.say(&content_header(24));
    script.expect_silence(&mut meeting.peer);
    script.say(&body(&payload(6, 24)));
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(6, false));
    assert_count_eq!(meeting.peer.record.sequences(id), [1, 2, 3, 4, 5, 6]);
    // Something else may end the read.
    script.say(&[message(7, 7), HEARTBEAT.to_vec()].concat());
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(7, false));
    // Many are not left for the end of the read.
    let many: Vec<u8> = (8..=150).flat_map(|number| message(number, number as u32)).collect();
    script.say(&many);
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(107, true));
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 80), ack(150, true));
}
