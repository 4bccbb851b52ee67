//! Outgoing messages: credit, windows, parts, outcomes.

use pubmark_conformance::peer::publisher;
use pubmark_conformance::recorder::{Event, Recorder};
use pubmark_model::predicate::{Predicate, SelectorFields};
use pubmark_model::qos::Qos;
use pubmark_protocol::body::Body;
use pubmark_protocol::clients::{Goodbye, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_testing::assert_count_eq;
use pubmark_wire::amqp10::{Condition, Detach, Disposition, Flow, Performative, Role, State, body};

use crate::script::{CHANNEL, Script, Until, flow};

/// A transfer of the client.
struct Sent {
    delivery: Option<u32>,
    settled: Option<bool>,
    more: bool,
    payload: Vec<u8>,
}

impl Script {
    fn expect_transfer(&mut self) -> Sent {
        self.expect("transfer", |performative| match performative {
            Performative::Transfer(transfer) => Some(Sent {
                delivery: transfer.delivery_id,
                settled: transfer.settled,
                more: transfer.more,
                payload: transfer.payload.to_vec(),
            }),
            _ => None,
        })
    }

    fn dispose(&mut self, first: u32, last: u32, settled: bool, state: Option<State<'_>>) {
        let disposition = Disposition { role: Role::Receiver, first, last, settled, state };
        self.send_with(|out| disposition.encode(CHANNEL, out));
    }

    /// Sends N messages and waits for their transfers.
    fn send_all(&mut self, id: SessionId, count: u32) {
        for _ in 0..count {
            self.peer.send(id, 16);
        }
        for _ in 0..count {
            self.expect_transfer();
        }
    }
}

/// Sequence numbers and outcomes, in order.
fn acknowledged(record: &Recorder) -> Vec<(u32, Result<(), Reason>)> {
    record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.clone())),
        _ => None,
    })
}

fn opened(qos: Qos) -> (Script, SessionId) {
    let mut script = Script::new();
    let config = SessionConfig { in_flight_window: 10, ..publisher("out", "a", qos) };
    let id = script.connect_client(config, Until::All);
    (script, id)
}

#[test]
fn best_effort_is_settled_and_at_least_once_is_not() {
    for (qos, settled) in [(Qos::BestEffort, true), (Qos::AtLeastOnce, false)] {
        let (mut script, id) = opened(qos);
        script.peer.send(id, 100);
        let sent = script.expect_transfer();
        assert_eq!((sent.delivery, sent.settled, sent.more), (Some(0), Some(settled), false));
        assert_eq!(body(&sent.payload).unwrap().len(), 100);
    }
}

#[test]
fn fields_that_selectors_name_go_beside_the_payload_with_their_types() {
    let mut script = Script::new();
    let predicate = Predicate::parse("payload.n > 1 && payload.at.door && payload.room == 'hall'").unwrap();
    let mut config = publisher("fields", "a", Qos::BestEffort);
    let document = br#"{"n": 2, "at": {"door": true}, "room": "lab", "other": 3}"#;
    config.publications[0].body = Some(Body::Document((&document[..]).into()));
    config.options.selector_fields = Some(SelectorFields::of([&predicate].into_iter()).into());
    let id = script.connect_client(config, Until::All);
    script.peer.send(id, 100);
    let sent = script.expect_transfer();
    let front = b"\0\x53\x74\xd1\0\0\0\x3d\0\0\0\x06";
    let pairs = [
        &b"\xa1\x09payload$n\x82\x40\0\0\0\0\0\0\0"[..],
        b"\xa1\x0fpayload$at$door\x41",
        b"\xa1\x0cpayload$room\xa1\x03lab",
    ];
    let expected = [&front[..], &pairs.concat(), b"\0\x53\x75\xa0\x64"].concat();
    assert!(sent.payload.starts_with(&expected), "{}", sent.payload.escape_ascii());
    let payload = body(&sent.payload).unwrap();
    assert_eq!((payload.len(), &payload[24..24 + document.len()]), (100, &document[..]));
    // A message in several parts, whose payload is too large for a frame, has them in the first part.
    script.peer.send(id, 1_500);
    let first = script.expect_transfer();
    assert!(first.more && first.payload.starts_with(&[&front[..], &pairs.concat()].concat()));
}

#[test]
fn only_the_peers_acknowledgement_acknowledges_a_message() {
    let (mut script, id) = opened(Qos::AtLeastOnce);
    script.send_all(id, 9);
    let error = Some(Condition { name: "amqp:resource-limit-exceeded", description: Some("full") });
    // No outcome for delivery 0; 1 is not complete; a range with an already settled delivery; older numbers again.
    script.dispose(1, 1, false, Some(State::Received));
    script.dispose(3, 3, true, Some(State::Rejected(error)));
    script.dispose(2, 5, true, Some(State::Accepted));
    script.dispose(2, 2, true, Some(State::Released));
    script.dispose(6, 6, true, Some(State::Released));
    script.dispose(7, 7, true, Some(State::Modified { failed: true, undeliverable_here: false }));
    script.dispose(8, 8, true, None);
    script.peer.wait("all", |record| acknowledged(record).len() == 7);
    let refused = |words: &'static str| Err(Reason::words(words));
    assert_count_eq!(
        acknowledged(&script.peer.record),
        [
            (4, refused("rejected: amqp:resource-limit-exceeded: full")),
            (3, Ok(())),
            (5, Ok(())),
            (6, Ok(())),
            (7, refused("released")),
            (8, refused("modified: delivery failed")),
            (9, refused("settled without an outcome")),
        ]
    );
    // A delivery that is accepted and not settled waits for the client.
    script.dispose(0, 1, false, Some(State::Accepted));
    let settled = script.expect("disposition", |performative| match performative {
        Performative::Disposition(ours) => Some((ours.role, ours.first, ours.last, ours.settled)),
        _ => None,
    });
    assert_eq!(settled, (Role::Sender, 0, 1, true));
    assert_count_eq!(script.peer.record.acknowledged(), 5);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn outcomes_of_unsent_messages_end_the_connection() {
    for (first, last) in [(0, 2), (2, 2), (0, u32::MAX), (5, 1), (0x8000_0000, 0x8000_0001)] {
        let (mut script, id) = opened(Qos::AtLeastOnce);
        script.send_all(id, 2);
        script.dispose(first, last, true, Some(State::Accepted));
        let cause = script.end_of(id);
        assert!(matches!(cause, Cause::Protocol(_)), "{first} to {last}: {cause:?}");
        assert_count_eq!(script.peer.record.acknowledged(), 0);
        assert_count_eq!(script.peer.record.unanswered(), 2);
    }
}

#[test]
fn no_credit_is_back_pressure() {
    let mut script = Script::new();
    script.credit = 3;
    let id = script.connect_client(publisher("credit", "a", Qos::BestEffort), Until::All);
    let offer_all = |script: &mut Script| {
        let mut taken = 0;
        while script.peer.offer(id, 16) == SendOutcome::Accepted {
            taken += 1;
        }
        script.peer.flush(id);
        taken
    };
    assert_eq!(offer_all(&mut script), 3);
    (0..3).for_each(|_| drop(script.expect_transfer()));
    let writable = |record: &Recorder| record.count(|event| *event == Event::Writable(id));
    let send_bytes = |script: &mut Script, delivery_count, credit, drain| {
        let begin = script.begin;
        let flow = Flow {
            next_incoming_id: Some(delivery_count),
            handle: Some(0),
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            drain,
            ..flow(&begin)
        };
        script.send_with(|out| flow.encode(CHANNEL, out));
    };
    script.peer.linger(20);
    assert_count_eq!(writable(&script.peer.record), 0);
    // The server has received two of the three: its credit of five allows four more.
    send_bytes(&mut script, 2, 5, false);
    script.peer.wait("writable", |record| writable(record) == 1);
    assert_eq!(offer_all(&mut script), 4);
    (0..4).for_each(|_| drop(script.expect_transfer()));
    // Credit is drained on request, and the client reports it.
    send_bytes(&mut script, 7, 2, true);
    let drained = script.expect_flow();
    assert_eq!((drained.delivery_count, drained.link_credit, drained.drain), (Some(9), Some(0), true));
    assert_eq!(offer_all(&mut script), 0);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn the_sessions_window_is_respected() {
    let mut script = Script::new();
    (script.credit, script.begin.incoming_window) = (1_000, 4);
    let id = script.connect_client(publisher("window", "a", Qos::BestEffort), Until::All);
    // After three transfers the window allows one more but not two.
    assert_eq!(script.peer.offer(id, 2_500), SendOutcome::Accepted);
    assert_eq!(script.peer.offer(id, 1_500), SendOutcome::WouldBlock);
    assert_eq!(script.peer.offer(id, 100), SendOutcome::Accepted);
    assert_eq!(script.peer.offer(id, 100), SendOutcome::WouldBlock);
    assert!(matches!(script.peer.offer(id, 100_000), SendOutcome::TooLarge(_)), "no window will ever take it");
    script.peer.flush(id);
    (0..4).for_each(|_| drop(script.expect_transfer()));
    let begin = script.begin;
    script.send_with(|out| Flow { next_incoming_id: Some(4), ..flow(&begin) }.encode(CHANNEL, out));
    script.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == 1);
    assert_eq!(script.peer.offer(id, 2_500), SendOutcome::Accepted);
    // A server that expects a transfer that was not sent counts wrong.
    script.send_with(|out| Flow { next_incoming_id: Some(40), ..flow(&begin) }.encode(CHANNEL, out));
    assert!(matches!(script.end_of(id), Cause::Protocol(_)));
}

#[test]
fn a_large_message_goes_in_frames_that_the_server_takes() {
    for (qos, settled) in [(Qos::BestEffort, true), (Qos::AtLeastOnce, false)] {
        let (mut script, id) = opened(qos);
        for payload_bytes in [951, 952, 953, 960, 961, 1_920, 10_000] {
            script.peer.send(id, payload_bytes);
            let mut sent = script.expect_transfer();
            assert_eq!(sent.settled, Some(settled));
            let mut whole = std::mem::take(&mut sent.payload);
            while sent.more {
                sent = script.expect_transfer();
                assert_eq!((sent.delivery, sent.settled), (None, None));
                assert!(sent.payload.len() < 1_000);
                whole.extend_from_slice(&sent.payload);
            }
            let body = body(&whole).unwrap();
            assert_eq!(body.len(), payload_bytes as usize);
            assert!(pubmark_protocol::header::read(&body, 1).is_some_and(|header| header.write_start_us.is_some()));
        }
        assert_count_eq!(script.peer.record.written(), 7);
    }
}

#[test]
fn a_message_above_the_links_limit_is_refused_before_it_is_sent() {
    let mut script = Script::new();
    script.max_message_bytes = Some(105);
    let id = script.connect_client(publisher("limit", "a", Qos::AtLeastOnce), Until::All);
    assert_eq!(script.peer.record.connects(id)[0].maximum_packet_bytes, Some(105));
    assert_eq!(script.peer.offer(id, 101), SendOutcome::TooLarge(105));
    assert_eq!(script.peer.offer(id, 100), SendOutcome::Accepted);
    let error = Some(Condition { name: "amqp:link:message-size-exceeded", description: None });
    script.send_with(|out| Detach { handle: 0, closed: true, error }.encode(CHANNEL, out));
    let reason = Reason::words("amqp:link:message-size-exceeded");
    assert_eq!(script.end_of(id), Cause::Server { reason, too_large: true });
}

#[test]
fn after_a_cut_delivery_is_unknown_and_the_next_connection_starts_fresh() {
    let (mut script, id) = opened(Qos::AtLeastOnce);
    script.send_all(id, 3);
    script.dispose(1, 1, true, Some(State::Accepted));
    script.peer.wait("one", |record| record.acknowledged() == 1);
    assert_eq!(script.peer.offer(id, 16), SendOutcome::Accepted);
    script.close();
    script.end_of(id);
    let record = &script.peer.record;
    let unknown = record.all(|event| match event {
        Event::Unacknowledged(_, token) => Some(token.sequence),
        _ => None,
    });
    let abandoned = record.count(|event| matches!(event, Event::Abandoned(..)));
    assert_count_eq!((unknown, abandoned), (vec![1, 3], 1));
    script.reconnect_client(id, Until::All);
    script.peer.send(id, 16);
    assert_eq!(script.expect_transfer().delivery, Some(0));
    script.dispose(0, 0, true, Some(State::Accepted));
    script.peer.wait("another", |record| record.acknowledged() == 2);
    script.peer.leave(id, Goodbye::Graceful);
    script.expect("close", |performative| matches!(performative, Performative::Close(None)).then_some(()));
}

#[test]
fn heartbeats_have_the_servers_interval_and_a_silent_server_is_given_up() {
    let mut script = Script::with_keep_alive(1);
    script.open.idle_time_out_ms = Some(900);
    let id = script.connect_client(publisher("life", "a", Qos::BestEffort), Until::All);
    for _ in 0..3 {
        let began = std::time::Instant::now();
        let (_, body) = script.frame();
        assert_eq!(body, b"");
        assert!(began.elapsed().as_millis() < 900);
        script.send_bytes(b"\0\0\0\x08\x02\0\0\0");
    }
    assert_eq!(script.end_of(id), Cause::Silent);
}
