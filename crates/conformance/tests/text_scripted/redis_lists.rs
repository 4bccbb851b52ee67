//! Requests and replies over the lists of Redis.

use pubmark_adapters::redis::RedisClients;
use pubmark_conformance::peer::{RUN, publisher, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::any::AnyClients;
use pubmark_protocol::clients::{
    Goodbye, RequestTarget, SendOutcome, SessionConfig, SessionId, SessionOptions, Subscription,
};
use pubmark_protocol::events::{Cause, Token};
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_protocol::timing::Timing;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, Script};

const HELLO: &[u8] = b"%1\r\n$5\r\nproto\r\n:3\r\n";

/// A session of two connections, which are open and have logged in.
struct Opened {
    harness: Harness<RedisClients>,
    id: SessionId,
    pushes: Script,
    pops: Script,
}

impl Opened {
    fn new(config: SessionConfig) -> Opened {
        let mut harness = Harness::new(false);
        let (id, pushes) = harness.accept(config);
        Opened::over(harness, id, pushes)
    }

    fn over(mut harness: Harness<RedisClients>, id: SessionId, mut pushes: Script) -> Opened {
        let connects = harness.peer.record.connects(id).len();
        pushes.expect(&mut harness.peer, b"\r\n");
        pushes.send_bytes(HELLO);
        let mut pops = harness.accept_further();
        pops.expect(&mut harness.peer, b"\r\n");
        assert_eq!(harness.peer.record.connects(id).len(), connects, "one of two is not all");
        pops.send_bytes(HELLO);
        harness.peer.wait("connected", |record| record.connects(id).len() > connects);
        Opened { harness, id, pushes, pops }
    }

    /// Its own list is cleared; then it pops.
    fn emptied(&mut self, list: &str) {
        let reason = self.pops.expect(&mut self.harness.peer, b"\r\n");
        assert_eq!(reason, format!("*2\r\n$6\r\nUNLINK\r\n${}\r\n{list}\r\n", list.len()));
        self.pops.send_bytes(b":0\r\n");
        self.harness.peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    }

    fn pop(&mut self, list: &str, element: &[u8]) {
        self.pops.send_bytes(format!("*2\r\n${}\r\n{list}\r\n${}\r\n", list.len(), element.len()).as_bytes());
        self.pops.send_bytes(&[element, b"\r\n"].concat());
    }
}

fn asking() -> Opened {
    let options = SessionOptions {
        reply_topic: Some("answers/me".into()),
        targets: vec![RequestTarget { filter: "a/+".into(), endpoint: 0 }],
        ..SessionOptions::default()
    };
    let subscriptions = vec![Subscription { filter: "answers/me".into(), qos: Qos::BestEffort }];
    let mut opened = Opened::new(SessionConfig { options, subscriptions, ..publisher("asks", "a/b", Qos::BestEffort) });
    opened.emptied("pubmark:list:answers/me");
    opened
}

fn answering() -> Opened {
    let options = SessionOptions { replies_at: Some(Qos::BestEffort), ..SessionOptions::default() };
    let mut opened = Opened::new(SessionConfig { options, ..subscriber("answers", "a/+", Qos::BestEffort) });
    opened.emptied("pubmark:list:a/+");
    opened
}

#[test]
fn a_request_goes_to_its_responders_list_and_a_reply_is_matched_by_its_correlation() {
    let mut opened = asking();
    let reason = opened.pops.expect(&mut opened.harness.peer, b"\r\n");
    let pop = "*3\r\n$5\r\nBLPOP\r\n$23\r\npubmark:list:answers/me\r\n$5\r\n5.000\r\n";
    assert_eq!(reason, pop.repeat(16));
    assert_eq!(opened.harness.peer.offer(opened.id, 24), SendOutcome::Accepted);
    opened.harness.peer.flush(opened.id);
    let reason = opened.pushes.expect(&mut opened.harness.peer, b"\r\n");
    let front = "*3\r\n$5\r\nRPUSH\r\n$16\r\npubmark:list:a/+\r\n$52\r\npubmark:list:answers/me\n0-1\n";
    assert!(reason.starts_with(front), "{reason}");
    let mut reply = Vec::new();
    header::write_reply(&mut reply, RUN, 7, 1, 0);
    let [first, other] = [(0, 1), (3, 9)].map(|(publication, sequence)| Token { publication, sequence });
    let cases: [(&[u8], _); 4] = [(b"0-1\n", Some(first)), (b"3-9\n", Some(other)), (b"what\n", None), (b"", None)];
    for (correlation, expected) in cases {
        opened.pop("pubmark:list:answers/me", &[correlation, &reply].concat());
        let peer = &mut opened.harness.peer;
        peer.wait("the answer", |record| !record.replies.is_empty());
        assert_eq!(peer.record.replies.remove(0).request, expected, "{}", correlation.escape_ascii());
        assert_eq!(opened.pops.expect(peer, b"\r\n"), pop, "another one in its place");
    }
    opened.pops.send_bytes(b"*-1\r\n");
    assert_eq!(opened.pops.expect(&mut opened.harness.peer, b"\r\n"), pop, "nothing came: it waits on");
}

#[test]
fn a_refused_request_is_reported_and_the_connection_stays() {
    let mut opened = asking();
    let (peer, id) = (&mut opened.harness.peer, opened.id);
    for _ in 0..3 {
        assert_eq!(peer.offer(id, 24), SendOutcome::Accepted);
    }
    peer.flush(id);
    opened.pushes.send_bytes(b":1\r\n+PONG\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n:2\r\n");
    let refusals = |event: &Event| match event {
        Event::Acknowledged(session, token, Err(reason)) if *session == id => {
            Some((token.sequence, reason.text.clone()))
        }
        _ => None,
    };
    peer.wait("the refusal", |record| !record.all(refusals).is_empty());
    peer.linger(20);
    let refused = peer.record.all(refusals);
    assert!(matches!(&refused[..], [(2, reason)] if reason.starts_with("OOM")), "{refused:?}");
    assert!(peer.record.causes(id).is_empty());
    opened.pushes.send_bytes(b":1\r\n");
    peer.wait("closed", |record| !record.causes(id).is_empty());
    assert!(matches!(&peer.record.causes(id)[..], [Cause::Protocol(_)]), "it answers nothing");
}

#[test]
fn a_request_arrives_wherever_it_is_split_and_its_reply_goes_to_its_address() {
    let mut opened = answering();
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    let request = [&b"*2\r\n$16\r\npubmark:list:a/+\r\n$32\r\nto:me\n?\n"[..], &payload, b"\r\n"].concat();
    // Without the lines before it, the request has no reply address.
    let message = [&b"*2\r\n$16\r\npubmark:list:a/+\r\n$24\r\n"[..], &payload, b"\r\n"].concat();
    let (peer, id) = (&mut opened.harness.peer, opened.id);
    opened.pops.send_split(peer, id, &[request, message].concat(), 2);
    let asked = peer.record.received_requests.pop().unwrap();
    assert_eq!((asked.address.as_str(), &asked.correlation[..]), ("to:me", &b"?"[..]));
    assert_count_eq!(peer.record.received_requests.len() + 1, peer.record.sequences(id).len() / 2);
    let answer = OutgoingReply {
        to: ReplyTo { address: &asked.address, correlation: &asked.correlation },
        qos: Qos::BestEffort,
        number: 5,
        publisher: 7,
        sequence: 1,
        due_ns: 1,
        timing: Timing::on_time(asked.at_ns),
        payload_bytes: 24,
    };
    assert_eq!(peer.clients.reply(id, &answer), SendOutcome::Accepted);
    peer.flush(id);
    let reason = opened.pushes.expect(peer, b"\r\n");
    assert!(reason.starts_with("*3\r\n$5\r\nRPUSH\r\n$5\r\nto:me\r\n$26\r\n?\n"), "{reason}");
    opened.pushes.send_bytes(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    let refused = |event: &Event| matches!(event, Event::Acknowledged(_, token, Err(_)) if *token == answer.token());
    peer.wait("the refusal", |record| record.count(refused) == 1);
}

#[test]
fn a_session_ends_with_either_of_its_connections_and_comes_back_to_its_lists() {
    for ends_first in [true, false] {
        let Opened { mut harness, id, pushes, pops } = answering();
        let other = if ends_first {
            drop(pushes);
            pops
        } else {
            drop(pops);
            pushes
        };
        harness.peer.wait("closed", |record| !record.causes(id).is_empty());
        harness.peer.linger(20);
        assert!(matches!(&harness.peer.record.causes(id)[..], [Cause::Dropped(_)]), "told once");
        drop(other);
        let pushes = harness.accept_again(id);
        let mut opened = Opened::over(harness, id, pushes);
        let reason = opened.pops.expect(&mut opened.harness.peer, b"\r\n");
        assert!(reason.starts_with("*3\r\n$5\r\nBLPOP"), "what was pushed meanwhile is there: {reason}");
        let Opened { mut harness, mut pushes, .. } = opened;
        harness.peer.leave(id, Goodbye::Graceful);
        assert_eq!(pushes.expect(&mut harness.peer, b"\r\n"), "*2\r\n$6\r\nUNLINK\r\n$16\r\npubmark:list:a/+\r\n");
    }
}

#[test]
fn a_server_that_responds_without_end_and_reads_no_pop_is_left() {
    let Opened { mut harness, id, pushes: _pushes, mut pops } = answering();
    let cause = pops.repeat_unread(&mut harness.peer, id, b"_\r\n");
    assert_eq!(cause, Cause::Protocol("an answer to BLPOP before all of it was written".to_owned()));
}

/// Elements for all the pops that wait arrive at once; the pops that follow are not written in between.
#[test]
fn as_many_elements_as_pops_may_arrive_together() {
    let mut opened = answering();
    let pops = b"*3\r\n$5\r\nBLPOP\r\n$16\r\npubmark:list:a/+\r\n$5\r\n5.000\r\n".repeat(100);
    opened.pops.expect(&mut opened.harness.peer, &pops);
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    let element = [&b"*2\r\n$16\r\npubmark:list:a/+\r\n$24\r\n"[..], &payload, b"\r\n"].concat();
    for rounds in 1..=3 {
        opened.pops.send_bytes(&element.repeat(100));
        opened.harness.peer.wait("all", |record| record.sequences(opened.id).len() == 100 * rounds);
        opened.pops.expect(&mut opened.harness.peer, &pops);
    }
    assert_eq!(opened.harness.peer.record.causes(opened.id), []);
}

#[test]
fn a_server_that_forbids_pop_is_distinguished() {
    let mut opened = Opened::new(SessionConfig {
        options: SessionOptions { replies_at: Some(Qos::BestEffort), ..SessionOptions::default() },
        ..subscriber("forbidden", "a", Qos::BestEffort)
    });
    let peer = &mut opened.harness.peer;
    opened.pops.expect(peer, b"\r\n");
    opened.pops.send_bytes(b"-NOPERM No permissions to access a key\r\n");
    peer.wait("the refusal", |record| record.count(|event| matches!(event, Event::Subscribed(_, 0, Err(_)))) == 1);
    opened.pops.send_bytes(b"*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    peer.wait("closed", |record| !record.causes(opened.id).is_empty());
    assert!(matches!(&peer.record.causes(opened.id)[..], [Cause::Protocol(_)]));
    for wrong in
        [&b"*1\r\n$1\r\na\r\n"[..], b"%1\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\n", b"*2\r\n_\r\n$1\r\nb\r\n", b":1\r\n"]
    {
        let mut opened = answering();
        opened.pops.send_bytes(wrong);
        let peer = &mut opened.harness.peer;
        peer.linger(20);
        opened.pops.send_bytes(b"a\r\n:7\r\n");
        peer.wait("closed", |record| !record.causes(opened.id).is_empty());
        assert!(matches!(&peer.record.causes(opened.id)[..], [Cause::Protocol(_)]), "{}", wrong.escape_ascii());
    }
}
