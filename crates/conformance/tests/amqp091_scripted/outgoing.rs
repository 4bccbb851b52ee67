//! Messages of ours: bodies, confirms, refusals, stops, repetitions.

use pubmark_conformance::peer::{RUN, publisher};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, Goodbye, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;

use crate::script::{Meeting, Script, answer, close, method, short, start, tune};

fn sequence(body: &[u8]) -> u32 {
    header::read(body, 0).unwrap().sequence
}

/// Outcomes of the session's messages in the order in which they became known.
fn outcomes(meeting: &Meeting) -> Vec<(u32, bool)> {
    meeting.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.is_ok())),
        _ => None,
    })
}

fn unanswered(meeting: &Meeting) -> Vec<u32> {
    meeting.peer.record.all(|event| match event {
        Event::Unacknowledged(_, token) => Some(token.sequence),
        _ => None,
    })
}

/// Sends three messages, which fill the window.
fn fill(meeting: &mut Meeting, id: SessionId, script: &mut Script) {
    for _ in 0..3 {
        meeting.peer.send(id, 24);
        script.expect_message(&mut meeting.peer);
    }
    assert_eq!(meeting.peer.offer(id, 24), SendOutcome::WouldBlock);
}

#[test]
fn one_confirm_may_be_for_many_and_they_come_in_any_order() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.confirmed(publisher("confirms", "a", Qos::AtLeastOnce));
    fill(&mut meeting, id, &mut script);
    script.say(&answer(80, 3, false));
    meeting.peer.wait("the third", |record| record.acknowledged() == 1);
    script.say(&answer(80, 2, true));
    meeting.peer.wait("all", |record| record.acknowledged() == 3);
    assert_eq!(outcomes(&meeting), [(3, true), (1, true), (2, true)]);
    fill(&mut meeting, id, &mut script);
    script.say(&answer(80, 0, true));
    meeting.peer.wait("all outstanding", |record| record.acknowledged() == 6);
    fill(&mut meeting, id, &mut script);
    script.say(&[answer(120, 7, false), answer(80, 8, false), answer(120, 9, true)].concat());
    meeting.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 9);
    assert_eq!(outcomes(&meeting)[6..], [(7, false), (8, true), (9, false)]);
    assert_eq!(meeting.peer.record.causes(id), []);
}

#[test]
fn messages_without_confirms_are_on_a_channel_of_their_own() {
    let mut meeting = Meeting::new();
    let plain = publisher("both", "a", Qos::BestEffort).publications.remove(0);
    let confirmed = publisher("both", "b", Qos::AtLeastOnce);
    let config = SessionConfig { publications: vec![plain, confirmed.publications[0].clone()], ..confirmed };
    let (id, mut script) = meeting.log_in(config);
    script.open_plain(&mut meeting.peer);
    script.open_confirmed(&mut meeting.peer);
    meeting.peer.wait("connected", |record| record.connects(id).len() == 1);
    for publication in [0, 1, 0] {
        assert_eq!(meeting.peer.offer_to(id, publication, 24), SendOutcome::Accepted);
    }
    meeting.peer.flush(id);
    let channels: Vec<u16> = (0..3).map(|_| script.expect_message(&mut meeting.peer).0).collect();
    assert_eq!(channels, [1, 2, 1]);
    script.say(&answer(80, 1, false));
    meeting.peer.wait("the confirm", |record| record.acknowledged() == 1);
    assert_eq!(outcomes(&meeting), [(2, true)]);
}

#[test]
fn a_large_body_goes_out_in_frames_of_the_size_agreed_on() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.accept(publisher("large", "a", Qos::BestEffort));
    script.say(&start(9, "PLAIN"));
    script.expect(&mut meeting.peer, 0, 10, 11);
    script.say(&tune(0, 4_096, 0));
    script.expect(&mut meeting.peer, 0, 10, 31);
    script.expect(&mut meeting.peer, 0, 10, 40);
    script.say(&crate::script::open_ok());
    script.open_plain(&mut meeting.peer);
    meeting.peer.wait("connected", |record| record.connects(id).len() == 1);
    for bytes in [4_087, 4_088, 4_089, 8_176, 8_177, 50_000] {
        meeting.peer.send(id, bytes);
        let (_, body) = script.expect_message(&mut meeting.peer);
        let found = header::read(&body, 0).unwrap();
        assert!(header::is_of_run(&found, RUN) && body.len() == bytes as usize);
        let written = meeting.peer.record.all(|event| match event {
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
        let mut meeting = Meeting::new();
        let (id, mut script) = meeting.confirmed(publisher("stop", "a", Qos::AtLeastOnce));
        script.say(&stop);
        meeting.peer.linger(20);
        if is_answered {
            assert_eq!(script.expect(&mut meeting.peer, 2, 20, 21), [0]);
        }
        assert_eq!(meeting.peer.offer(id, 24), SendOutcome::WouldBlock);
        meeting.peer.linger(20);
        assert_eq!(meeting.peer.record.count(|event| *event == Event::Writable(id)), 0);
        script.say(&go_on);
        meeting.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == 1);
        if is_answered {
            assert_eq!(script.expect(&mut meeting.peer, 2, 20, 21), [1]);
        }
        meeting.peer.send(id, 24);
        script.expect_message(&mut meeting.peer);
    }
}

#[test]
fn a_message_that_is_too_large_ends_the_connection_and_its_fate_is_told() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.confirmed(publisher("too-large", "a", Qos::AtLeastOnce));
    meeting.peer.send(id, 100);
    script.expect_message(&mut meeting.peer);
    let words = "PRECONDITION_FAILED - message size 100 is larger than configured max size 99";
    script.say(&close(2, 406, words, (60, 40)));
    let cause = meeting.end_of(id);
    assert!(matches!(&cause, Cause::Server { reason, too_large: true } if reason.text == words), "{cause:?}");
    assert_count_eq!((unanswered(&meeting), outcomes(&meeting)), (vec![1], vec![]));
}

#[test]
fn what_was_not_confirmed_is_sent_again_in_order_if_the_session_is_kept() {
    for persistent in [false, true] {
        let mut meeting = Meeting::new();
        let config = SessionConfig { persistent, ..publisher("again", "a", Qos::AtLeastOnce) };
        let (id, mut script) = meeting.confirmed(config);
        fill(&mut meeting, id, &mut script);
        script.say(&answer(80, 2, false));
        meeting.peer.wait("the second", |record| record.acknowledged() == 1);
        meeting.peer.send(id, 24);
        drop(script);
        assert!(matches!(meeting.end_of(id), Cause::Dropped(_)));
        assert_count_eq!(unanswered(&meeting), if persistent { vec![] } else { vec![1, 3, 4] });
        let mut script = meeting.accept_again(id);
        script.log_in(&mut meeting.peer);
        script.open_confirmed(&mut meeting.peer);
        meeting.peer.wait("connected", |record| record.connects(id).len() == 2);
        assert_eq!(meeting.peer.record.connects(id)[1].session_present, persistent);
        if !persistent {
            script.expect_silence(&mut meeting.peer);
            continue;
        }
        let again: Vec<u32> = (0..3).map(|_| sequence(&script.expect_message(&mut meeting.peer).1)).collect();
        assert_eq!(again, [1, 3, 4]);
        assert_count_eq!(meeting.peer.record.count(|event| matches!(event, Event::Resent(..))), 3);
        // The server counts from 1 on each connection.
        script.say(&answer(80, 3, true));
        meeting.peer.wait("all", |record| record.acknowledged() == 4);
        assert_eq!(outcomes(&meeting), [(2, true), (1, true), (3, true), (4, true)]);
        meeting.peer.send(id, 24);
        meeting.peer.leave(id, Goodbye::Cut);
        meeting.peer.clients.finish(&mut meeting.peer.record);
        assert_count_eq!(unanswered(&meeting), [5]);
    }
}
