//! Requests and their replies.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SendOutcome, SessionConfig, SessionId, SessionOptions, Subscription};
use pubmark_protocol::events::Token;
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_protocol::timing::Timing;
use pubmark_testing::{assert_count, assert_count_eq};

use super::Target;
use crate::peer::{Peer, publisher, subscriber};
use crate::recorder::{Event, ReceivedRequest, Recorder};

/// Sizes of requests and replies.
const SIZES: [u32; 4] = [24, 100, 5_000, 200_000];

/// A session whose messages are requests.
fn requester(name: &str, topic: &str, qos: Qos) -> SessionConfig {
    let reply_topic: Box<str> = format!("answers/{name}").into();
    SessionConfig {
        subscriptions: vec![Subscription { filter: reply_topic.clone(), qos }],
        options: SessionOptions { reply_topic: Some(reply_topic), ..SessionOptions::default() },
        ..publisher(name, topic, qos)
    }
}

/// A session that replies to them.
fn responder(topic: &str, qos: Qos) -> SessionConfig {
    SessionConfig {
        options: SessionOptions { replies_at: Some(qos), ..SessionOptions::default() },
        ..subscriber("responder", topic, qos)
    }
}

fn has_no_requests(target: &Target) -> bool {
    if target.capabilities.features.requests.is_none() {
        pubmark_testing::skip(format_args!("{} has no words for requests", target.capabilities.name));
    }
    target.capabilities.features.requests.is_none()
}

/// Replies to a request with as many bytes as it had; waits while sending would block.
fn answer(peer: &mut Peer, asked: &ReceivedRequest, qos: Qos, number: u32) {
    let answer = OutgoingReply {
        to: ReplyTo { address: &asked.address, correlation: &asked.correlation },
        qos,
        number,
        publisher: asked.header.publisher,
        sequence: asked.header.sequence,
        due_ns: asked.header.due_ns,
        timing: Timing::on_time(asked.at_ns),
        payload_bytes: asked.payload_bytes as u32,
    };
    loop {
        let writable = |record: &Recorder| record.count(|event| *event == Event::Writable(asked.session));
        let before = writable(&peer.record);
        let taken = peer.clients.reply(asked.session, &answer);
        peer.flush(asked.session);
        match taken {
            SendOutcome::Accepted => return,
            SendOutcome::WouldBlock => peer.wait("writable", |record| writable(record) > before),
            SendOutcome::TooLarge(_) => panic!("refused: {answer:?}"),
        }
    }
}

pub fn replies_name_their_requests(target: &mut Target) {
    if has_no_requests(target) {
        return;
    }
    for qos in target.capabilities.qos() {
        let mut peer = target.peer();
        let topic = format!("requests/level-{}", qos.level());
        let responder = peer.join(responder(&topic, qos));
        let askers: Vec<SessionId> =
            ["asker-1", "asker-2"].map(|name| peer.join(requester(name, &topic, qos))).to_vec();
        for size in SIZES {
            askers.iter().for_each(|asker| peer.send(*asker, size));
        }
        let count = SIZES.len() * askers.len();
        peer.wait("all requests", |record| record.received_requests.len() == count);
        let asked = std::mem::take(&mut peer.record.received_requests);
        assert!(asked.iter().all(|one| one.session == responder && !one.address.is_empty()), "{asked:?}");
        // In reverse order: a reply belongs to the request that its correlation names, whatever the order.
        for (number, one) in (0..).zip(asked.iter().rev()) {
            answer(&mut peer, one, qos, number);
        }
        peer.wait("all answers", |record| record.replies.len() == count);
        let answers_sent =
            peer.record.count(|event| matches!(event, Event::Written(session, ..) if *session == responder));
        assert_count_eq!(answers_sent, count, "{qos:?}");
        peer.linger(50);
        assert_count_eq!((peer.record.replies.len(), peer.record.received_requests.len()), (count, 0), "{qos:?}");
        for one in &peer.record.replies {
            let request = asked.iter().find(|asked| asked.header.sequence == one.header.sequence).unwrap();
            let token = Token { publication: 0, sequence: request.header.sequence };
            assert_eq!((one.request, one.payload_bytes, one.intact), (Some(token), request.payload_bytes, true));
            assert_eq!((one.header.publisher, one.header.due_ns), (request.header.publisher, request.header.due_ns));
            assert!(one.header.write_start_us.is_some_and(|held_us| held_us < 60_000_000), "{one:?}");
        }
        for asker in &askers {
            assert_count_eq!(peer.record.replies.iter().filter(|one| one.session == *asker).count(), SIZES.len());
        }
    }
}

pub fn a_plain_subscriber_receives_a_request_as_a_message(target: &mut Target) {
    if has_no_requests(target) {
        return;
    }
    if target.capabilities.features.only_requests {
        return pubmark_testing::skip(format_args!(
            "{} carries requests only, nobody just listens",
            target.capabilities.name
        ));
    }
    let mut peer = target.peer();
    let level = target.capabilities.levels[0].qos;
    let listens = peer.join(subscriber("listens", "requests/heard", level));
    let asks = peer.join(requester("asks", "requests/heard", level));
    peer.send(asks, header::FULL as u32);
    if target.capabilities.features.only_responders_receive_requests {
        peer.linger(200);
        assert_count!(peer.record.received_requests.is_empty() && peer.record.sequences(listens).is_empty());
        return;
    }
    peer.wait("the request", |record| record.received_requests.len() == 1);
    assert_count_eq!(peer.record.sequences(listens).len(), 1);
    peer.linger(100);
    assert_count_eq!(peer.record.replies, []);
}

pub fn a_request_without_a_responder_has_no_reply(target: &mut Target) {
    if has_no_requests(target) {
        return;
    }
    let mut peer = target.peer();
    let level = target.capabilities.levels[0].qos;
    if target.capabilities.features.subscribers_listen {
        // A requester needs a peer to connect to; this responder subscribes to something else.
        peer.join(responder("requests/other", level));
    }
    let asks = peer.join(requester("asks-in-vain", "requests/unheard", level));
    peer.send(asks, header::FULL as u32);
    peer.linger(200);
    assert_count_eq!(peer.record.replies, []);
    let refusals = peer.record.all(|event| match event {
        Event::Acknowledged(session, token, Err(_)) => Some((*session, *token)),
        _ => None,
    });
    // Some systems report a missing responder at once; the report must then name this request.
    assert_count!(refusals.is_empty() || refusals == [(asks, Token { publication: 0, sequence: 1 })], "{refusals:?}");
}
