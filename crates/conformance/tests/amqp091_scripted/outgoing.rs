//! Outgoing messages: bodies, confirms, refusals, flow control, retransmissions.

use pubmark_conformance::peer::{RUN, publisher};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, Goodbye, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, Script, answer, close, method, short, start, tune};

fn sequence(body: &[u8]) -> u32 {
    header::read(body, 0).unwrap().sequence
}

/// Outcomes of the session's messages in the order in which they became known.
fn outcomes(harness: &Harness) -> Vec<(u32, bool)> {
    harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.is_ok())),
        _ => None,
    })
}

fn unanswered(harness: &Harness) -> Vec<u32> {
    harness.peer.record.all(|event| match event {
        Event::Unacknowledged(_, token) => Some(token.sequence),
        _ => None,
    })
}

/// Sends three messages, which fill the window.
fn fill(harness: &mut Harness, id: SessionId, script: &mut Script) {
    for _ in 0..3 {
        harness.peer.send(id, 24);
        script.expect_message(&mut harness.peer);
    }
    assert_eq!(harness.peer.offer(id, 24), SendOutcome::WouldBlock);
}

#[test]
fn one_confirm_may_be_for_many_and_they_come_in_any_order() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.confirmed(publisher("confirms", "a", Qos::AtLeastOnce));
    fill(&mut harness, id, &mut script);
    script.send_bytes(&answer(80, 3, false));
    harness.peer.wait("the third", |record| record.acknowledged() == 1);
    script.send_bytes(&answer(80, 2, true));
    harness.peer.wait("all", |record| record.acknowledged() == 3);
    assert_eq!(outcomes(&harness), [(3, true), (1, true), (2, true)]);
    fill(&mut harness, id, &mut script);
    script.send_bytes(&answer(80, 0, true));
    harness.peer.wait("all outstanding", |record| record.acknowledged() == 6);
    fill(&mut harness, id, &mut script);
    script.send_bytes(&[answer(120, 7, false), answer(80, 8, false), answer(120, 9, true)].concat());
    harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 9);
    assert_eq!(outcomes(&harness)[6..], [(7, false), (8, true), (9, false)]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn messages_without_confirms_are_on_a_channel_of_their_own() {
    let mut harness = Harness::new();
    let plain = publisher("both", "a", Qos::BestEffort).publications.remove(0);
    let confirmed = publisher("both", "b", Qos::AtLeastOnce);
    let config = SessionConfig { publications: vec![plain, confirmed.publications[0].clone()], ..confirmed };
    let (id, mut script) = harness.log_in(config);
    script.open_plain(&mut harness.peer);
    script.open_confirmed(&mut harness.peer);
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    for publication in [0, 1, 0] {
        assert_eq!(harness.peer.offer_to(id, publication, 24), SendOutcome::Accepted);
    }
    harness.peer.flush(id);
    let channels: Vec<u16> = (0..3).map(|_| script.expect_message(&mut harness.peer).0).collect();
    assert_eq!(channels, [1, 2, 1]);
    script.send_bytes(&answer(80, 1, false));
    harness.peer.wait("the confirm", |record| record.acknowledged() == 1);
    assert_eq!(outcomes(&harness), [(2, true)]);
}

#[test]
fn a_large_body_goes_out_in_frames_of_the_size_agreed_on() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.accept(publisher("large", "a", Qos::BestEffort));
    script.send_bytes(&start(9, "PLAIN"));
    script.expect(&mut harness.peer, 0, 10, 11);
    script.send_bytes(&tune(0, 4_096, 0));
    script.expect(&mut harness.peer, 0, 10, 31);
    script.expect(&mut harness.peer, 0, 10, 40);
    script.send_bytes(&crate::script::open_ok());
    script.open_plain(&mut harness.peer);
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    for bytes in [4_087, 4_088, 4_089, 8_176, 8_177, 50_000] {
        harness.peer.send(id, bytes);
        let (_, body) = script.expect_message(&mut harness.peer);
        let found = header::read(&body, 0).unwrap();
        assert!(header::is_of_run(&found, RUN) && body.len() == bytes as usize);
        let written = harness.peer.record.all(|event| match event {
            Event::Written(_, token, start_ns, _) if token.sequence == found.sequence => Some(*start_ns),
            _ => None,
        });
        assert_eq!(u64::from(found.write_start_us.unwrap()), (written[0] - found.due_ns) / 1_000);
        // The suite's pool: every byte is one more than the one before.
        let rest = &body[header::FULL..];
        assert!(rest.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 251), "{bytes}");
    }
}

#[test]
fn a_server_that_wants_no_messages_gets_none() {
    let blocked = method(0, 10, 60, &short("low on memory"));
    let unblocked = method(0, 10, 61, &[]);
    let (stop, go_on) = (method(2, 20, 20, &[0]), method(2, 20, 20, &[1]));
    for (stop, go_on, is_answered) in [(blocked, unblocked, false), (stop, go_on, true)] {
        let mut harness = Harness::new();
        let (id, mut script) = harness.confirmed(publisher("stop", "a", Qos::AtLeastOnce));
        script.send_bytes(&stop);
        harness.peer.linger(20);
        if is_answered {
            assert_eq!(script.expect(&mut harness.peer, 2, 20, 21), [0]);
        }
        assert_eq!(harness.peer.offer(id, 24), SendOutcome::WouldBlock);
        harness.peer.linger(20);
        assert_count_eq!(harness.peer.record.count(|event| *event == Event::Writable(id)), 0);
        script.send_bytes(&go_on);
        harness.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == 1);
        if is_answered {
            assert_eq!(script.expect(&mut harness.peer, 2, 20, 21), [1]);
        }
        harness.peer.send(id, 24);
        script.expect_message(&mut harness.peer);
    }
}

#[test]
fn a_message_that_is_too_large_ends_the_connection_and_its_outcome_is_reported() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.confirmed(publisher("too-large", "a", Qos::AtLeastOnce));
    harness.peer.send(id, 100);
    script.expect_message(&mut harness.peer);
    let words = "PRECONDITION_FAILED - message size 100 is larger than configured max size 99";
    script.send_bytes(&close(2, 406, words, (60, 40)));
    let cause = harness.end_of(id);
    assert!(matches!(&cause, Cause::Server { reason, too_large: true } if reason.text == words), "{cause:?}");
    assert_count_eq!((unanswered(&harness), outcomes(&harness)), (vec![1], vec![]));
}

#[test]
fn unconfirmed_messages_are_resent_in_order_if_the_session_persists() {
    for persistent in [false, true] {
        let mut harness = Harness::new();
        let config = SessionConfig { persistent, ..publisher("again", "a", Qos::AtLeastOnce) };
        let (id, mut script) = harness.confirmed(config);
        fill(&mut harness, id, &mut script);
        script.send_bytes(&answer(80, 2, false));
        harness.peer.wait("the second", |record| record.acknowledged() == 1);
        harness.peer.send(id, 24);
        drop(script);
        assert!(matches!(harness.end_of(id), Cause::Dropped(_)));
        assert_count_eq!(unanswered(&harness), if persistent { vec![] } else { vec![1, 3, 4] });
        let mut script = harness.accept_again(id);
        script.log_in(&mut harness.peer);
        script.open_confirmed(&mut harness.peer);
        harness.peer.wait("connected", |record| record.connects(id).len() == 2);
        assert_eq!(harness.peer.record.connects(id)[1].session_present, persistent);
        if !persistent {
            script.expect_silence(&mut harness.peer);
            continue;
        }
        let again: Vec<u32> = (0..3).map(|_| sequence(&script.expect_message(&mut harness.peer).1)).collect();
        assert_eq!(again, [1, 3, 4]);
        assert_count_eq!(harness.peer.record.count(|event| matches!(event, Event::Resent(..))), 3);
        // The server counts from 1 on each connection.
        script.send_bytes(&answer(80, 3, true));
        harness.peer.wait("all", |record| record.acknowledged() == 4);
        assert_eq!(outcomes(&harness), [(2, true), (1, true), (3, true), (4, true)]);
        harness.peer.send(id, 24);
        harness.peer.leave(id, Goodbye::Cut);
        harness.peer.clients.finish(&mut harness.peer.record);
        assert_count_eq!(unanswered(&harness), [5]);
    }
}
