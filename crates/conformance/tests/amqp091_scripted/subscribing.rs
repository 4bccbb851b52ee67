//! Queues, bindings and consumers, and refusals of them.

use pubmark_conformance::peer::{session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SessionConfig, SessionId, SessionOptions, Subscription};
use pubmark_protocol::events::Cause;

use crate::script::{
    Harness, Script, bind_ok, channel_ok, close, consume_ok, declare_ok, delete_ok, message, method, qos_ok, short,
};

fn filters(qos: Qos, filters: &[&str]) -> SessionConfig {
    let subscriptions = filters.iter().map(|filter| Subscription { filter: (*filter).into(), qos }).collect();
    SessionConfig { subscriptions, ..session("some") }
}

/// Results of the subscriptions, in the order of their events.
fn grants(harness: &Harness) -> Vec<(usize, Result<Qos, String>)> {
    harness.peer.record.all(|event| match event {
        Event::Subscribed(_, index, granted) => {
            Some((*index, granted.clone().map_err(|reason| reason.text.to_string())))
        }
        _ => None,
    })
}

/// The client's response to the end of its channel: close-ok, then a new open.
fn expect_reopening(harness: &mut Harness, script: &mut Script) {
    assert_eq!(script.expect(&mut harness.peer, 1, 20, 41), b"");
    script.expect(&mut harness.peer, 1, 20, 10);
}

/// The queue and the key of the client's next `queue.bind`.
fn expect_bind(harness: &mut Harness, script: &mut Script, queue: &str, key: &str) {
    let reason = script.expect(&mut harness.peer, 1, 50, 20);
    assert_eq!(reason, [&[0, 0][..], &short(queue), &short("amq.topic"), &short(key), &[0; 5]].concat());
}

#[test]
fn a_queue_is_made_bound_and_consumed() {
    for (qos, no_ack) in [(Qos::BestEffort, 2), (Qos::AtLeastOnce, 0)] {
        let mut harness = Harness::new();
        let (_, mut script) = harness.log_in(filters(qos, &["a/+", "b/#"]));
        script.open_plain(&mut harness.peer);
        // Exclusive, auto-delete, named by the server.
        assert_eq!(script.expect(&mut harness.peer, 1, 50, 10), b"\x00\x00\x00\x0c\x00\x00\x00\x00");
        script.send_bytes(&declare_ok("amq.gen-1"));
        expect_bind(&mut harness, &mut script, "amq.gen-1", "a.*");
        expect_bind(&mut harness, &mut script, "amq.gen-1", "b.#");
        if qos == Qos::AtLeastOnce {
            assert_eq!(script.expect(&mut harness.peer, 1, 60, 10)[..4], [0; 4]);
        }
        let consume = script.expect(&mut harness.peer, 1, 60, 20);
        assert_eq!(consume, [&[0, 0][..], &short("amq.gen-1"), &[0, no_ack, 0, 0, 0, 0]].concat());
        script.send_bytes(&[bind_ok(), bind_ok()].concat());
        harness.peer.linger(20);
        assert_eq!(grants(&harness), [], "nothing is heard before there is a consumer");
        let qos_ok = if qos == Qos::AtLeastOnce { qos_ok() } else { vec![] };
        script.send_bytes(&[qos_ok, consume_ok()].concat());
        harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 2);
        assert_eq!(grants(&harness), [(0, Ok(qos)), (1, Ok(qos))]);
    }
}

#[test]
fn a_refused_subscription_leaves_the_rest() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(filters(Qos::BestEffort, &["open", "secret", "also", "hidden"]));
    script.open_plain(&mut harness.peer);
    script.expect(&mut harness.peer, 1, 50, 10);
    script.send_bytes(&declare_ok("q"));
    for key in ["open", "secret", "also", "hidden"] {
        expect_bind(&mut harness, &mut script, "q", key);
    }
    script.expect(&mut harness.peer, 1, 60, 20);
    let refusal = "ACCESS_REFUSED - access to topic 'secret' in exchange 'amq.topic' refused";
    script.send_bytes(&[bind_ok(), close(1, 403, refusal, (50, 20))].concat());
    expect_reopening(&mut harness, &mut script);
    expect_bind(&mut harness, &mut script, "q", "also");
    expect_bind(&mut harness, &mut script, "q", "hidden");
    script.expect(&mut harness.peer, 1, 60, 20);
    script.send_bytes(&[channel_ok(1), bind_ok(), close(1, 403, "no", (50, 20))].concat());
    expect_reopening(&mut harness, &mut script);
    script.expect(&mut harness.peer, 1, 60, 20);
    script.send_bytes(&[channel_ok(1), consume_ok()].concat());
    harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 4);
    let no = |words: &str| Err(words.to_owned());
    let granted = Ok(Qos::BestEffort);
    assert_eq!(
        grants(&harness),
        [(0, granted.clone()), (1, no(refusal)), (2, granted), (3, no("ACCESS_REFUSED - no"))]
    );
    script.send_bytes(&message(1, 1));
    harness.peer.wait("a message", |record| record.sequences(id) == [1]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn without_a_queue_or_a_consumer_no_subscription_is_granted() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(filters(Qos::BestEffort, &["a", "b"]));
    script.open_plain(&mut harness.peer);
    script.expect(&mut harness.peer, 1, 50, 10);
    script.send_bytes(&close(1, 403, "no queues for you", (50, 10)));
    expect_reopening(&mut harness, &mut script);
    script.send_bytes(&channel_ok(1));
    let no = || Err("ACCESS_REFUSED - no queues for you".to_owned());
    assert_eq!(grants(&harness), [(0, no()), (1, no())]);
    assert_eq!(harness.peer.record.causes(id), []);
    let mut harness = Harness::new();
    let (_, mut script) = harness.log_in(filters(Qos::AtLeastOnce, &["a"]));
    script.open_plain(&mut harness.peer);
    script.expect(&mut harness.peer, 1, 50, 10);
    script.send_bytes(&[declare_ok("q"), bind_ok(), qos_ok(), close(1, 403, "", (60, 20))].concat());
    harness.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    assert_eq!(grants(&harness), [(0, Err("ACCESS_REFUSED".to_owned()))]);
}

#[test]
fn a_message_without_a_subscription_ends_the_connection() {
    for of in [(60, 40), (0, 0)] {
        let mut harness = Harness::new();
        let (id, mut script) = harness.log_in(filters(Qos::BestEffort, &["a"]));
        script.open_plain(&mut harness.peer);
        script.expect(&mut harness.peer, 1, 50, 10);
        script.send_bytes(&[declare_ok("q"), close(1, 403, "no", of)].concat());
        assert!(matches!(harness.end_of(id), Cause::Server { .. }));
        assert_eq!(grants(&harness), []);
    }
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("cancelled", "a", Qos::BestEffort));
    script.send_bytes(&method(1, 60, 30, &[short("consumer"), vec![1]].concat()));
    let cause = harness.end_of(id);
    assert!(matches!(&cause, Cause::Server { reason, .. } if reason.text.contains("cancelled")), "{cause:?}");
}

/// Before the session is open for the first time: the queue with the client's name, whatever is in it.
fn expect_deletion(harness: &mut Harness, script: &mut Script) {
    script.expect(&mut harness.peer, 1, 20, 10);
    let request = script.expect(&mut harness.peer, 1, 50, 40);
    assert_eq!(request, [&[0, 0][..], &short("kept"), &[0]].concat());
}

/// Passively, with the client's name.
fn expect_queue_check(harness: &mut Harness, script: &mut Script) {
    script.expect(&mut harness.peer, 1, 20, 10);
    let requests = script.expect(&mut harness.peer, 1, 50, 10);
    assert_eq!(requests, [&[0, 0][..], &short("kept"), &[1, 0, 0, 0, 0]].concat());
}

fn kept() -> SessionConfig {
    SessionConfig { persistent: true, ..subscriber("kept", "a/#", Qos::AtLeastOnce) }
}

/// Connects a persistent session for the first time: its queue is declared.
fn first_time(harness: &mut Harness) -> (SessionId, Script) {
    let (id, mut script) = harness.log_in(kept());
    expect_deletion(harness, &mut script);
    script.send_bytes(&[channel_ok(1), delete_ok(7)].concat());
    expect_first_opening(harness, id, &mut script);
    (id, script)
}

/// The session opens, and its queue is declared, bound and consumed.
fn expect_first_opening(harness: &mut Harness, id: SessionId, script: &mut Script) {
    let declared = script.expect(&mut harness.peer, 1, 50, 10);
    let expires = [&b"\x09x-expiresl"[..], &86_400_000u64.to_be_bytes()].concat();
    assert_eq!(declared, [&[0, 0][..], &short("kept"), &[2, 0, 0, 0, expires.len() as u8], &expires].concat());
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    assert!(!harness.peer.record.connects(id)[0].session_present);
    script.send_bytes(&declare_ok("kept"));
    expect_bind(harness, script, "kept", "a.#");
    script.expect(&mut harness.peer, 1, 60, 10);
    script.expect(&mut harness.peer, 1, 60, 20);
}

#[test]
fn a_server_may_refuse_to_delete_a_queue_that_no_earlier_run_left() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(kept());
    expect_deletion(&mut harness, &mut script);
    script.send_bytes(&[channel_ok(1), close(1, 404, "NOT_FOUND - no queue 'kept' in vhost '/'", (50, 40))].concat());
    expect_reopening(&mut harness, &mut script);
    script.send_bytes(&channel_ok(1));
    expect_first_opening(&mut harness, id, &mut script);
}

/// A queue that is there in place of a deletion, or deleted in place of a check, would be taken for the session's.
#[test]
fn a_response_to_another_request_about_the_queue_ends_the_connection() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(kept());
    expect_deletion(&mut harness, &mut script);
    script.send_bytes(&[channel_ok(1), declare_ok("kept")].concat());
    assert!(matches!(harness.end_of(id), Cause::Protocol(words) if words.contains("queue.declare-ok")));
}

#[test]
fn a_persistent_session_has_a_durable_queue_that_is_found_again() {
    let mut harness = Harness::new();
    let (id, mut script) = first_time(&mut harness);
    script.send_bytes(&[bind_ok(), qos_ok(), consume_ok()].concat());
    harness.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    harness.peer.leave(id, Goodbye::Graceful);
    script.expect(&mut harness.peer, 0, 10, 50);
    let mut script = harness.accept_again(id);
    script.log_in(&mut harness.peer);
    expect_queue_check(&mut harness, &mut script);
    script.send_bytes(&[channel_ok(1), declare_ok("kept")].concat());
    harness.peer.wait("connected", |record| record.connects(id).len() == 2);
    assert!(harness.peer.record.connects(id)[1].session_present);
    // It is already bound.
    script.expect(&mut harness.peer, 1, 60, 10);
    script.expect(&mut harness.peer, 1, 60, 20);
    script.send_bytes(&[qos_ok(), consume_ok(), message(1, 9)].concat());
    harness.peer.wait("what it missed", |record| record.sequences(id) == [9]);
    assert_eq!(grants(&harness).len(), 1, "nothing is asked twice");
    script.expect(&mut harness.peer, 1, 60, 80);
    harness.peer.leave(id, Goodbye::Final);
    let deleted = script.expect(&mut harness.peer, 1, 50, 40);
    assert_eq!(deleted, [&[0, 0][..], &short("kept"), &[0]].concat());
    script.expect(&mut harness.peer, 0, 10, 50);
}

#[test]
fn a_queue_that_was_never_bound_is_bound_when_it_is_found() {
    let mut harness = Harness::new();
    let (id, script) = first_time(&mut harness);
    drop(script);
    harness.end_of(id);
    let mut script = harness.accept_again(id);
    script.log_in(&mut harness.peer);
    expect_queue_check(&mut harness, &mut script);
    script.send_bytes(&[channel_ok(1), declare_ok("kept")].concat());
    expect_bind(&mut harness, &mut script, "kept", "a.#");
    script.send_bytes(&[bind_ok(), qos_ok(), consume_ok()].concat());
    harness.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
}

#[test]
fn a_queue_without_permission_refuses_the_session() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(kept());
    expect_deletion(&mut harness, &mut script);
    script.send_bytes(&[channel_ok(1), close(1, 405, "RESOURCE_LOCKED - locked", (50, 40))].concat());
    assert!(matches!(harness.end_of(id), Cause::Refused(reason) if reason.text == "RESOURCE_LOCKED - locked"));
}

/// The queue of the suite's group.
const GROUP: &str = "pubmark.workers.c0ffee";

fn member() -> SessionConfig {
    let options = SessionOptions { shared: Some("workers".into()), ..SessionOptions::default() };
    SessionConfig { options, ..filters(Qos::BestEffort, &["a/#"]) }
}

/// The client declares the group's queue, binds and consumes it.
fn expect_group(harness: &mut Harness, script: &mut Script) {
    // Auto-delete, and not exclusive.
    let declared = script.expect(&mut harness.peer, 1, 50, 10);
    assert_eq!(declared, [&[0, 0][..], &short(GROUP), &[8, 0, 0, 0, 0]].concat());
    script.send_bytes(&declare_ok(GROUP));
    expect_bind(harness, script, GROUP, "a.#");
    let consume = script.expect(&mut harness.peer, 1, 60, 20);
    assert_eq!(consume, [&[0, 0][..], &short(GROUP), &short("member"), &[2, 0, 0, 0, 0]].concat());
}

#[test]
fn members_of_a_group_have_one_queue_which_is_made_again_if_it_goes_at_that_moment() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(member());
    script.open_plain(&mut harness.peer);
    expect_group(&mut harness, &mut script);
    for of in [(50, 20), (60, 20)] {
        let gone = close(1, 404, "NOT_FOUND - no queue", of);
        let bound = if of.0 == 60 { bind_ok() } else { vec![] };
        script.send_bytes(&[bound, gone].concat());
        expect_reopening(&mut harness, &mut script);
        script.send_bytes(&channel_ok(1));
        expect_group(&mut harness, &mut script);
    }
    script.send_bytes(&[bind_ok(), consume_ok(), message(1, 1)].concat());
    harness.peer.wait("the message", |record| record.sequences(id) == [1]);
    assert_eq!(grants(&harness), [(0, Ok(Qos::BestEffort))]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_group_queue_that_is_deleted_every_time_is_a_refusal() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(member());
    script.open_plain(&mut harness.peer);
    for round in 0..4 {
        expect_group(&mut harness, &mut script);
        script.send_bytes(&close(1, 404, "NOT_FOUND - no queue", (50, 20)));
        expect_reopening(&mut harness, &mut script);
        script.send_bytes(&channel_ok(1));
        assert_eq!(grants(&harness), [], "{round}");
    }
    // It has no bindings left and nothing to consume.
    script.expect(&mut harness.peer, 1, 60, 20);
    script.send_bytes(&close(1, 404, "NOT_FOUND - no queue", (60, 20)));
    harness.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    assert_eq!(grants(&harness), [(0, Err("NOT_FOUND - no queue".to_owned()))]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn the_last_member_of_a_persistent_group_deletes_its_queue() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(SessionConfig { persistent: true, ..member() });
    script.open_plain(&mut harness.peer);
    // Another member may have declared it: it is not deleted.
    let declared = script.expect(&mut harness.peer, 1, 50, 10);
    assert!(declared.starts_with(&[&[0, 0][..], &short(GROUP), &[2]].concat()), "{}", declared.escape_ascii());
    script.send_bytes(&declare_ok(GROUP));
    expect_bind(&mut harness, &mut script, GROUP, "a.#");
    script.expect(&mut harness.peer, 1, 60, 20);
    script.send_bytes(&[bind_ok(), consume_ok()].concat());
    harness.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    harness.peer.leave(id, Goodbye::Final);
    assert_eq!(script.expect(&mut harness.peer, 1, 60, 30), [short("member"), vec![1]].concat());
    let deleted = script.expect(&mut harness.peer, 1, 50, 40);
    assert_eq!(deleted, [&[0, 0][..], &short(GROUP), &[1]].concat());
    script.expect(&mut harness.peer, 0, 10, 50);
}
