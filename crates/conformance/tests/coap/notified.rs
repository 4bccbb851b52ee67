//! Subscriptions against a server that notifies as it likes.

use pubmark_conformance::peer::{RUN, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SessionId};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_protocol::header;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::script::{Heard, Stage, response};

fn payload(sequence: u32, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    header::write(&mut out, bytes, RUN, 7, sequence, 1);
    let body: Vec<u8> = (0..bytes - out.len()).map(|index| (index % 251) as u8).collect();
    out.extend(body);
    out
}

/// A subscription that was granted; the request for it.
fn observed(qos: Qos) -> (Stage, SessionId, Heard) {
    let mut stage = Stage::new();
    let id = stage.open(subscriber("hears", "a/+", qos));
    let asked = stage.grant();
    stage.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    (stage, id, asked)
}

fn notification(asked: &Heard, kind: Kind, message_id: u16, number: u8, payload: &[u8]) -> Vec<u8> {
    response(kind, Code::CONTENT, message_id, asked.token(), &[(number::OBSERVE, &[number])], payload)
}

fn grants(stage: &Stage) -> Vec<Result<Qos, Reason>> {
    stage.peer.record.all(|event| match event {
        Event::Subscribed(_, _, granted) => Some(granted.clone()),
        _ => None,
    })
}

#[test]
fn a_subscription_is_asked_for_at_its_level_until_it_is_answered() {
    for (qos, kind) in [(Qos::BestEffort, Kind::NonConfirmable), (Qos::AtLeastOnce, Kind::Confirmable)] {
        let mut stage = Stage::new();
        stage.open(subscriber("asks", "a/+", qos));
        let (first, second) = (stage.hear(), stage.hear());
        assert_eq!((first.message().kind, second.message().kind), (kind, kind));
        let same = first.id() == second.id();
        assert_eq!(same, kind == Kind::Confirmable, "a repetition of the message layer has the same identifier");
        let path: Vec<&[u8]> = first.message().options.all(number::URI_PATH).collect();
        assert_eq!(path, [&b"ps"[..], b"a", b"+"]);
        stage.grant();
        stage.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
        assert_eq!(grants(&stage), [Ok(qos)]);
    }
}

#[test]
fn a_refused_subscription_is_told() {
    for (code, options, expected) in
        [(Code::NOT_FOUND, &[][..], "4.04 Not Found"), (Code::CONTENT, &[], "2.05 Content without observing")]
    {
        let mut stage = Stage::new();
        let id = stage.open(subscriber("refused", "a", Qos::AtLeastOnce));
        let asked = stage.hear();
        stage.reply(&asked, code, options, b"state");
        stage.peer.wait("answered", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
        let reason = grants(&stage).remove(0).unwrap_err().to_string();
        assert!(reason.starts_with(expected), "{reason}");
        assert_eq!((stage.peer.record.causes(id), stage.peer.record.arrived.len()), (vec![], 0));
    }
}

#[test]
fn older_notifications_and_copies_are_not_delivered() {
    let (mut stage, id, asked) = observed(Qos::AtLeastOnce);
    for (message_id, number) in [(10, 2), (10, 2), (11, 4), (12, 3), (13, 4), (14, 5)] {
        stage.say(&notification(&asked, Kind::Confirmable, message_id, number, &payload(number.into(), 24)));
        assert!(stage.hear().is_empty(Kind::Acknowledgement, message_id), "acknowledged whatever it is");
    }
    assert_count_eq!(stage.peer.record.sequences(id), [2, 4, 5]);
    assert!(stage.peer.record.arrived.iter().all(|one| one.kernel_ns.is_none_or(|stamp| stamp <= one.at_ns + 50_000)));
}

#[test]
fn a_lower_level_than_asked_for_is_told_once() {
    let (mut stage, id, asked) = observed(Qos::AtLeastOnce);
    for number in 2..5 {
        let message_id = number.into();
        stage.say(&notification(&asked, Kind::NonConfirmable, message_id, number, &payload(number.into(), 24)));
    }
    stage.peer.wait("all", |record| record.sequences(id).len() == 3);
    assert_eq!(grants(&stage), [Ok(Qos::AtLeastOnce), Ok(Qos::BestEffort)]);
}

#[test]
fn garbage_and_cut_notifications_leave_the_session_as_it_is() {
    let (mut stage, id, asked) = observed(Qos::BestEffort);
    let whole = notification(&asked, Kind::NonConfirmable, 50, 9, &payload(9, 24));
    let payload_at = whole.len() - 24;
    // Behind the token it is a whole message, of another meaning.
    for length in (0..payload_at).filter(|length| *length != 4 + asked.token().len()) {
        stage.say(&whole[..length]);
    }
    stage.say(&[0x40, 0x45, 0, 9, 0xff]);
    assert!(stage.hear().is_empty(Kind::Reset, 9), "who waits for an acknowledgement is told");
    stage.say(&[0x40, 1, 0, 8]);
    assert!(stage.hear().is_empty(Kind::Reset, 8), "we serve nobody");
    stage.say(&[0x40, 0, 0, 7]);
    assert!(stage.hear().is_empty(Kind::Reset, 7), "a ping is answered");
    stage.say(&notification(&asked, Kind::NonConfirmable, 60, 20, &payload(20, 24)));
    stage.peer.wait("the next", |record| record.sequences(id) == [20]);
    assert_count_eq!(
        (stage.peer.record.causes(id), stage.peer.record.foreign),
        (vec![], 1),
        "one was cut before its payload"
    );
}

fn block(number: u32, more: bool) -> [u8; 1] {
    [Block { number, more, exponent: 6 }.value() as u8]
}

/// Notifies of the first block and answers the requests for the rest with these tags.
fn fetch(stage: &mut Stage, asked: &Heard, number: u8, tags: &[&[u8]]) {
    let body = payload(number.into(), 1_024 * tags.len() - 500);
    let options = [(number::ETAG, tags[0]), (number::OBSERVE, &[number][..]), (number::BLOCK2, &block(0, true)[..])];
    let first = response(Kind::Confirmable, Code::CONTENT, number.into(), asked.token(), &options, &body[..1_024]);
    stage.say(&first);
    assert!(stage.hear().is_empty(Kind::Acknowledgement, number.into()));
    for (index, tag) in tags.iter().enumerate().skip(1) {
        let request = stage.hear();
        let wanted = request.message().options.get(number::BLOCK2).and_then(Block::read).unwrap();
        assert_eq!((wanted.number, request.message().options.get(number::OBSERVE)), (index as u32, None));
        let part = &body[index * 1_024..body.len().min((index + 1) * 1_024)];
        let value = block(index as u32, index + 1 < tags.len());
        stage.reply(&request, Code::CONTENT, &[(number::ETAG, tag), (number::BLOCK2, &value)], part);
        stage.peer.linger(5);
    }
}

#[test]
fn blocks_are_put_together_as_long_as_they_belong_together() {
    let (mut stage, id, asked) = observed(Qos::AtLeastOnce);
    fetch(&mut stage, &asked, 2, &[b"x", b"x", b"x"]);
    stage.peer.wait("the first", |record| record.sequences(id) == [2]);
    assert_count!(stage.peer.record.arrived[0].intact && stage.peer.record.arrived[0].payload_bytes == 2_572);
    // The resource changed meanwhile: the rest is of something else.
    fetch(&mut stage, &asked, 3, &[b"y", b"z"]);
    stage.peer.linger(50);
    assert!(stage.look().is_none(), "it is not asked for again");
    fetch(&mut stage, &asked, 4, &[b"", b""]);
    stage.peer.wait("the third", |record| record.sequences(id) == [2, 4]);
}

#[test]
fn a_newer_notification_ends_the_fetch_of_an_older_one() {
    let (mut stage, id, asked) = observed(Qos::AtLeastOnce);
    let options = [(number::OBSERVE, &[2][..]), (number::BLOCK2, &block(0, true)[..])];
    let body = payload(2, 1_024);
    stage.say(&response(Kind::Confirmable, Code::CONTENT, 2, asked.token(), &options, &body));
    stage.hear();
    let request = stage.hear();
    stage.say(&notification(&asked, Kind::Confirmable, 3, 3, &payload(3, 24)));
    stage.peer.wait("the newer", |record| record.sequences(id) == [3]);
    stage.reply(&request, Code::CONTENT, &[(number::BLOCK2, &block(1, false))], b"rest");
    stage.ignore(100);
    assert_count_eq!((stage.peer.record.sequences(id), stage.peer.record.foreign), (vec![3], 0));
}

#[test]
fn a_subscription_that_the_server_ends_ends_the_session() {
    let (mut stage, id, asked) = observed(Qos::AtLeastOnce);
    stage.say(&response(Kind::Confirmable, Code::NOT_FOUND, 5, asked.token(), &[], b""));
    assert!(stage.hear().is_empty(Kind::Acknowledgement, 5));
    let reason = Reason::words("subscription `a/+` ended: 4.04 Not Found");
    assert_eq!(stage.peer.record.causes(id), [Cause::Server { reason, too_large: false }]);
}

#[test]
fn who_leaves_says_so() {
    let (mut stage, id, asked) = observed(Qos::AtLeastOnce);
    stage.peer.leave(id, Goodbye::Graceful);
    let reason = stage.hear();
    let message = reason.message();
    assert_eq!((message.kind, message.token), (Kind::NonConfirmable, asked.token()));
    assert_eq!(message.options.get(number::OBSERVE), Some(&[1][..]));
}
