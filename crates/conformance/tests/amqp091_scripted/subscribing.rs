//! Queues, bindings and consumers, and refusals of them.

use pubmark_conformance::peer::{session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SessionConfig, SessionId, SessionOptions, Subscription};
use pubmark_protocol::events::Cause;

use crate::script::{
    Meeting, Script, bind_ok, channel_ok, close, consume_ok, declare_ok, message, method, qos_ok, short,
};

fn filters(qos: Qos, filters: &[&str]) -> SessionConfig {
    let subscriptions = filters.iter().map(|filter| Subscription { filter: (*filter).into(), qos }).collect();
    SessionConfig { subscriptions, ..session("some") }
}

/// What became of the subscriptions, in the order in which it was told.
fn told(meeting: &Meeting) -> Vec<(usize, Result<Qos, String>)> {
    meeting.peer.record.all(|event| match event {
        Event::Subscribed(_, index, granted) => {
            Some((*index, granted.clone().map_err(|reason| reason.text.to_string())))
        }
        _ => None,
    })
}

/// The client's answer to the end of its channel: agreed, and opened once more.
fn expect_reopening(meeting: &mut Meeting, script: &mut Script) {
    assert_eq!(script.expect(&mut meeting.peer, 1, 20, 41), b"");
    script.expect(&mut meeting.peer, 1, 20, 10);
}

/// The queue and the key of the client's next `queue.bind`.
fn expect_bind(meeting: &mut Meeting, script: &mut Script, queue: &str, key: &str) {
    let reason = script.expect(&mut meeting.peer, 1, 50, 20);
    assert_eq!(reason, [&[0, 0][..], &short(queue), &short("amq.topic"), &short(key), &[0; 5]].concat());
}

#[test]
fn a_queue_is_made_bound_and_consumed() {
    for (qos, no_ack) in [(Qos::BestEffort, 2), (Qos::AtLeastOnce, 0)] {
        let mut meeting = Meeting::new();
        let (_, mut script) = meeting.log_in(filters(qos, &["a/+", "b/#"]));
        script.open_plain(&mut meeting.peer);
        // Exclusive, auto-delete, named by the server.
        assert_eq!(script.expect(&mut meeting.peer, 1, 50, 10), b"\x00\x00\x00\x0c\x00\x00\x00\x00");
        script.say(&declare_ok("amq.gen-1"));
        expect_bind(&mut meeting, &mut script, "amq.gen-1", "a.*");
        expect_bind(&mut meeting, &mut script, "amq.gen-1", "b.#");
        if qos == Qos::AtLeastOnce {
            assert_eq!(script.expect(&mut meeting.peer, 1, 60, 10)[..4], [0; 4]);
        }
        let consume = script.expect(&mut meeting.peer, 1, 60, 20);
        assert_eq!(consume, [&[0, 0][..], &short("amq.gen-1"), &[0, no_ack, 0, 0, 0, 0]].concat());
        script.say(&[bind_ok(), bind_ok()].concat());
        meeting.peer.linger(20);
        assert_eq!(told(&meeting), [], "nothing is heard before there is a consumer");
        let qos_ok = if qos == Qos::AtLeastOnce { qos_ok() } else { vec![] };
        script.say(&[qos_ok, consume_ok()].concat());
        meeting.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 2);
        assert_eq!(told(&meeting), [(0, Ok(qos)), (1, Ok(qos))]);
    }
}

#[test]
fn a_refused_subscription_leaves_the_rest() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.log_in(filters(Qos::BestEffort, &["open", "secret", "also", "hidden"]));
    script.open_plain(&mut meeting.peer);
    script.expect(&mut meeting.peer, 1, 50, 10);
    script.say(&declare_ok("q"));
    for key in ["open", "secret", "also", "hidden"] {
        expect_bind(&mut meeting, &mut script, "q", key);
    }
    script.expect(&mut meeting.peer, 1, 60, 20);
    let refusal = "ACCESS_REFUSED - access to topic 'secret' in exchange 'amq.topic' refused";
    script.say(&[bind_ok(), close(1, 403, refusal, (50, 20))].concat());
    expect_reopening(&mut meeting, &mut script);
    expect_bind(&mut meeting, &mut script, "q", "also");
    expect_bind(&mut meeting, &mut script, "q", "hidden");
    script.expect(&mut meeting.peer, 1, 60, 20);
    script.say(&[channel_ok(1), bind_ok(), close(1, 403, "no", (50, 20))].concat());
    expect_reopening(&mut meeting, &mut script);
    script.expect(&mut meeting.peer, 1, 60, 20);
    script.say(&[channel_ok(1), consume_ok()].concat());
    meeting.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 4);
    let no = |words: &str| Err(words.to_owned());
    let granted = Ok(Qos::BestEffort);
    assert_eq!(told(&meeting), [(0, granted.clone()), (1, no(refusal)), (2, granted), (3, no("ACCESS_REFUSED - no"))]);
    script.say(&message(1, 1));
    meeting.peer.wait("a message", |record| record.sequences(id) == [1]);
    assert_eq!(meeting.peer.record.causes(id), []);
}

#[test]
fn without_a_queue_or_a_consumer_no_subscription_is_granted() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.log_in(filters(Qos::BestEffort, &["a", "b"]));
    script.open_plain(&mut meeting.peer);
    script.expect(&mut meeting.peer, 1, 50, 10);
    script.say(&close(1, 403, "no queues for you", (50, 10)));
    expect_reopening(&mut meeting, &mut script);
    script.say(&channel_ok(1));
    let no = || Err("ACCESS_REFUSED - no queues for you".to_owned());
    assert_eq!(told(&meeting), [(0, no()), (1, no())]);
    assert_eq!(meeting.peer.record.causes(id), []);
    let mut meeting = Meeting::new();
    let (_, mut script) = meeting.log_in(filters(Qos::AtLeastOnce, &["a"]));
    script.open_plain(&mut meeting.peer);
    script.expect(&mut meeting.peer, 1, 50, 10);
    script.say(&[declare_ok("q"), bind_ok(), qos_ok(), close(1, 403, "", (60, 20))].concat());
    meeting.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    assert_eq!(told(&meeting), [(0, Err("ACCESS_REFUSED".to_owned()))]);
}

#[test]
fn what_belongs_to_no_subscription_ends_the_connection() {
    for of in [(60, 40), (0, 0)] {
        let mut meeting = Meeting::new();
        let (id, mut script) = meeting.log_in(filters(Qos::BestEffort, &["a"]));
        script.open_plain(&mut meeting.peer);
        script.expect(&mut meeting.peer, 1, 50, 10);
        script.say(&[declare_ok("q"), close(1, 403, "no", of)].concat());
        assert!(matches!(meeting.end_of(id), Cause::Server { .. }));
        assert_eq!(told(&meeting), []);
    }
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.consuming(subscriber("cancelled", "a", Qos::BestEffort));
    script.say(&method(1, 60, 30, &[short("consumer"), vec![1]].concat()));
    let cause = meeting.end_of(id);
    assert!(matches!(&cause, Cause::Server { reason, .. } if reason.text.contains("cancelled")), "{cause:?}");
}

/// Passively, with the client's name.
fn expect_question(meeting: &mut Meeting, script: &mut Script) {
    script.expect(&mut meeting.peer, 1, 20, 10);
    let asked = script.expect(&mut meeting.peer, 1, 50, 10);
    assert_eq!(asked, [&[0, 0][..], &short("kept"), &[1, 0, 0, 0, 0]].concat());
}

fn kept() -> SessionConfig {
    SessionConfig { persistent: true, ..subscriber("kept", "a/#", Qos::AtLeastOnce) }
}

/// Connects a kept session for the first time: its queue is made.
fn first_time(meeting: &mut Meeting) -> (SessionId, Script) {
    let (id, mut script) = meeting.log_in(kept());
    expect_question(meeting, &mut script);
    script.say(&[channel_ok(1), close(1, 404, "NOT_FOUND - no queue 'kept' in vhost '/'", (50, 10))].concat());
    expect_reopening(meeting, &mut script);
    script.say(&channel_ok(1));
    let declared = script.expect(&mut meeting.peer, 1, 50, 10);
    let expires = [&b"\x09x-expiresl"[..], &86_400_000u64.to_be_bytes()].concat();
    assert_eq!(declared, [&[0, 0][..], &short("kept"), &[2, 0, 0, 0, expires.len() as u8], &expires].concat());
    meeting.peer.wait("connected", |record| record.connects(id).len() == 1);
    assert!(!meeting.peer.record.connects(id)[0].session_present);
    script.say(&declare_ok("kept"));
    expect_bind(meeting, &mut script, "kept", "a.#");
    script.expect(&mut meeting.peer, 1, 60, 10);
    script.expect(&mut meeting.peer, 1, 60, 20);
    (id, script)
}

#[test]
fn a_kept_session_has_a_durable_queue_that_is_found_again() {
    let mut meeting = Meeting::new();
    let (id, mut script) = first_time(&mut meeting);
    script.say(&[bind_ok(), qos_ok(), consume_ok()].concat());
    meeting.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    meeting.peer.leave(id, Goodbye::Graceful);
    script.expect(&mut meeting.peer, 0, 10, 50);
    let mut script = meeting.accept_again(id);
    script.log_in(&mut meeting.peer);
    expect_question(&mut meeting, &mut script);
    script.say(&[channel_ok(1), declare_ok("kept")].concat());
    meeting.peer.wait("connected", |record| record.connects(id).len() == 2);
    assert!(meeting.peer.record.connects(id)[1].session_present);
    // It is bound already.
    script.expect(&mut meeting.peer, 1, 60, 10);
    script.expect(&mut meeting.peer, 1, 60, 20);
    script.say(&[qos_ok(), consume_ok(), message(1, 9)].concat());
    meeting.peer.wait("what it missed", |record| record.sequences(id) == [9]);
    assert_eq!(told(&meeting).len(), 1, "nothing is asked twice");
    script.expect(&mut meeting.peer, 1, 60, 80);
    meeting.peer.leave(id, Goodbye::Final);
    let deleted = script.expect(&mut meeting.peer, 1, 50, 40);
    assert_eq!(deleted, [&[0, 0][..], &short("kept"), &[0]].concat());
    script.expect(&mut meeting.peer, 0, 10, 50);
}

#[test]
fn a_queue_that_was_never_bound_is_bound_when_it_is_found() {
    let mut meeting = Meeting::new();
    let (id, script) = first_time(&mut meeting);
    drop(script);
    meeting.end_of(id);
    let mut script = meeting.accept_again(id);
    script.log_in(&mut meeting.peer);
    expect_question(&mut meeting, &mut script);
    script.say(&[channel_ok(1), declare_ok("kept")].concat());
    expect_bind(&mut meeting, &mut script, "kept", "a.#");
    script.say(&[bind_ok(), qos_ok(), consume_ok()].concat());
    meeting.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
}

#[test]
fn a_queue_that_is_not_ours_to_ask_for_refuses_the_session() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.log_in(kept());
    expect_question(&mut meeting, &mut script);
    script.say(&[channel_ok(1), close(1, 405, "RESOURCE_LOCKED - locked", (50, 10))].concat());
    assert!(matches!(meeting.end_of(id), Cause::Refused(reason) if reason.text == "RESOURCE_LOCKED - locked"));
}

/// The queue of the suite's group.
const GROUP: &str = "pubmark.workers.c0ffee";

fn member() -> SessionConfig {
    let options = SessionOptions { shared: Some("workers".into()), ..SessionOptions::default() };
    SessionConfig { options, ..filters(Qos::BestEffort, &["a/#"]) }
}

/// The client makes the group's queue, binds and consumes it.
fn expect_group(meeting: &mut Meeting, script: &mut Script) {
    // Auto-delete, and not exclusive.
    let declared = script.expect(&mut meeting.peer, 1, 50, 10);
    assert_eq!(declared, [&[0, 0][..], &short(GROUP), &[8, 0, 0, 0, 0]].concat());
    script.say(&declare_ok(GROUP));
    expect_bind(meeting, script, GROUP, "a.#");
    let consume = script.expect(&mut meeting.peer, 1, 60, 20);
    assert_eq!(consume, [&[0, 0][..], &short(GROUP), &short("member"), &[2, 0, 0, 0, 0]].concat());
}

#[test]
fn members_of_a_group_have_one_queue_which_is_made_again_if_it_goes_at_that_moment() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.log_in(member());
    script.open_plain(&mut meeting.peer);
    expect_group(&mut meeting, &mut script);
    for of in [(50, 20), (60, 20)] {
        let gone = close(1, 404, "NOT_FOUND - no queue", of);
        let bound = if of.0 == 60 { bind_ok() } else { vec![] };
        script.say(&[bound, gone].concat());
        expect_reopening(&mut meeting, &mut script);
        script.say(&channel_ok(1));
        expect_group(&mut meeting, &mut script);
    }
    script.say(&[bind_ok(), consume_ok(), message(1, 1)].concat());
    meeting.peer.wait("the message", |record| record.sequences(id) == [1]);
    assert_eq!(told(&meeting), [(0, Ok(Qos::BestEffort))]);
    assert_eq!(meeting.peer.record.causes(id), []);
}

#[test]
fn a_groups_queue_that_goes_every_time_is_a_refusal() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.log_in(member());
    script.open_plain(&mut meeting.peer);
    for round in 0..4 {
        expect_group(&mut meeting, &mut script);
        script.say(&close(1, 404, "NOT_FOUND - no queue", (50, 20)));
        expect_reopening(&mut meeting, &mut script);
        script.say(&channel_ok(1));
        assert_eq!(told(&meeting), [], "{round}");
    }
    // What is left of its bindings is none, and it has nothing to consume.
    script.expect(&mut meeting.peer, 1, 60, 20);
    script.say(&close(1, 404, "NOT_FOUND - no queue", (60, 20)));
    meeting.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    assert_eq!(told(&meeting), [(0, Err("NOT_FOUND - no queue".to_owned()))]);
    assert_eq!(meeting.peer.record.causes(id), []);
}

#[test]
fn who_leaves_a_kept_group_for_good_ends_its_queue_if_nobody_else_uses_it() {
    let mut meeting = Meeting::new();
    let (id, mut script) = meeting.log_in(SessionConfig { persistent: true, ..member() });
    script.expect(&mut meeting.peer, 1, 20, 10);
    let asked = script.expect(&mut meeting.peer, 1, 50, 10);
    assert_eq!(asked, [&[0, 0][..], &short(GROUP), &[1, 0, 0, 0, 0]].concat());
    script.say(&[channel_ok(1), declare_ok(GROUP)].concat());
    expect_bind(&mut meeting, &mut script, GROUP, "a.#");
    script.expect(&mut meeting.peer, 1, 60, 20);
    script.say(&[bind_ok(), consume_ok()].concat());
    meeting.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    meeting.peer.leave(id, Goodbye::Final);
    assert_eq!(script.expect(&mut meeting.peer, 1, 60, 30), [short("member"), vec![1]].concat());
    let deleted = script.expect(&mut meeting.peer, 1, 50, 40);
    assert_eq!(deleted, [&[0, 0][..], &short(GROUP), &[1]].concat());
    script.expect(&mut meeting.peer, 0, 10, 50);
}
