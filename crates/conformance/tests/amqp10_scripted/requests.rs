//! Requests and replies: the node where replies arrive, the links on which they are sent, and refusals of these links.

use pubmark_conformance::peer::{RUN, publisher, subscriber};
use pubmark_conformance::recorder::{Event, Recorder};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, SendOutcome, SessionConfig, SessionId, SessionOptions, Subscription};
use pubmark_protocol::events::{Cause, Reason, Token};
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, REPLY, ReplyTo};
use pubmark_protocol::timing::Timing;
use pubmark_testing::assert_count_eq;
use pubmark_wire::amqp10::{
    Attach, Condition, Detach, Disposition, Flow, Message, Performative, Properties, Role, SenderSettles, State,
    Terminus, encode_data_front, encode_text, text_of,
};

use crate::script::{CHANNEL, Script, Until, attach, delivery, flow};

const ARTEMIS: Option<&str> = Some("apache-activemq-artemis");

fn requester() -> SessionConfig {
    SessionConfig {
        subscriptions: vec![Subscription { filter: "answers/asks".into(), qos: Qos::BestEffort }],
        options: SessionOptions { reply_topic: Some("answers/asks".into()), ..SessionOptions::default() },
        ..publisher("asks", "a", Qos::BestEffort)
    }
}

fn responder(qos: Qos) -> SessionConfig {
    SessionConfig {
        options: SessionOptions { replies_at: Some(qos), ..SessionOptions::default() },
        ..subscriber("answers", "a", qos)
    }
}

/// The client's next message: the handle of its link, and its bytes.
fn expect_message(script: &mut Script) -> (u32, Vec<u8>) {
    script.expect("transfer", |performative| match performative {
        Performative::Transfer(transfer) => Some((transfer.handle, transfer.payload.to_vec())),
        _ => None,
    })
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_text(text, &mut out);
    out
}

/// A reply to a request of the suite, with these properties.
fn answer_with(properties: Properties<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    properties.encode(&mut out);
    encode_data_front(header::FULL, &mut out);
    header::write_reply(&mut out, RUN, 7, 1, 0);
    out
}

#[test]
fn a_request_has_a_reply_address_and_a_correlation() {
    let queue = (Some("/queue/answers.asks".to_owned()), false);
    for (product, source, reply_to) in
        [(Some("RabbitMQ"), queue, "/amq/queue/answers.asks"), (ARTEMIS, (None, true), "there")]
    {
        let mut script = Script::new();
        script.open.product = product;
        let id = script.connect_client(requester(), Until::All);
        assert_eq!(script.ends[1], source);
        for (sequence, payload_bytes) in [(1, 100), (2, 16), (3, 500)] {
            script.peer.send(id, payload_bytes);
            let (_, bytes) = expect_message(&mut script);
            let message = Message::decode(&bytes).unwrap();
            let properties = message.properties().unwrap();
            assert_eq!((properties.to, properties.reply_to), (None, Some(reply_to)));
            assert_count_eq!(text_of(properties.correlation_id), Some(&*format!("0-{sequence}")));
            assert_eq!(message.body.len(), payload_bytes as usize);
        }
        // In parts, with the header of its payload in the first.
        script.peer.send(id, 5_000);
        let (_, bytes) = expect_message(&mut script);
        assert!(bytes.len() > 900 && bytes.windows(4).any(|part| part == b"\xa1\x030-"), "{bytes:?}");
    }
}

#[test]
fn a_node_without_an_address_of_reasonable_length_ends_the_connection() {
    let long = "a".repeat(257);
    for address in [None, Some(""), Some(long.as_str())] {
        let mut script = Script::new();
        script.open.product = ARTEMIS;
        let id = script.connect_client(requester(), Until::Receivers);
        let (name, handle) = script.attached_receivers[0].clone();
        let source = Some(Terminus { dynamic: true, ..Terminus::at(address) });
        let answer = Attach { source, initial_delivery_count: Some(0), ..attach(&name, handle, Role::Sender) };
        script.send_with(|out| answer.encode(CHANNEL, out));
        let cause = script.end_of(id);
        assert!(matches!(&cause, Cause::Protocol(words) if words.contains("node")), "{cause:?}");
        let granted = script.peer.record.count(|event| matches!(event, Event::Subscribed(_, _, Ok(_))));
        assert_count_eq!(granted, 0);
    }
}

#[test]
fn a_reply_is_matched_by_its_correlation_alone() {
    let mut script = Script::new();
    let id = script.connect_client(requester(), Until::All);
    let handle = script.attached_receivers[0].1;
    let (ours, other) = (text("0-1"), text("a stranger's"));
    let named = Token { publication: 0, sequence: 1 };
    let identifiers: [(&[u8], Option<Token>); 5] =
        [(&ours, Some(named)), (&other, None), (&[], None), (&[0x44], None), (b"\xa0\x030-1", None)];
    for (number, (correlation_id, expected)) in (0..).zip(identifiers) {
        let bytes = answer_with(Properties { correlation_id, ..Properties::default() });
        let transfer = pubmark_wire::amqp10::Transfer { handle, ..delivery(number, true, &bytes) };
        script.send_with(|out| transfer.encode(CHANNEL, out));
        script.peer.wait("the answer", |record| record.replies.len() == number as usize + 1);
        let last = script.peer.record.replies.last().unwrap();
        assert_eq!((last.session, last.request, last.header.sequence), (id, expected, 1));
    }
    // Properties that are not in the standard make a message neither a request nor a reply.
    let mut bytes = b"\0\x53\x73\xc0\x07\x06\x40\x40\x40\x40\x40\x45".to_vec();
    encode_data_front(header::FULL, &mut bytes);
    header::write_reply(&mut bytes, RUN, 7, 1, 0);
    let transfer = pubmark_wire::amqp10::Transfer { handle, ..delivery(5, true, &bytes) };
    script.send_with(|out| transfer.encode(CHANNEL, out));
    script.peer.wait("the last", |record| record.replies.len() == 6);
    assert_eq!(script.peer.record.replies[5].request, None);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn a_request_has_its_address_and_its_correlation_of_any_type() {
    let mut script = Script::new();
    let id = script.connect_client(responder(Qos::BestEffort), Until::All);
    for (number, correlation) in (0..).zip([text("0-1"), vec![0x44], [&[0x98][..], &[7; 16]].concat(), vec![]]) {
        let mut bytes = Vec::new();
        Properties { to: None, reply_to: Some("back"), correlation_id: &correlation }.encode(&mut bytes);
        bytes.extend_from_slice(&crate::script::message(number, 24));
        script.send_with(|out| delivery(number, true, &bytes).encode(CHANNEL, out));
        script.peer.wait("the request", |record| record.received_requests.len() == number as usize + 1);
        let asked = script.peer.record.received_requests.last().unwrap();
        assert_count_eq!((asked.session, asked.address.as_str(), &asked.correlation), (id, "back", &correlation));
    }
}

/// Passes a reply to this address to the adapter and writes it.
fn offer(script: &mut Script, id: SessionId, address: &str, correlation: &[u8], number: u32, qos: Qos) -> SendOutcome {
    let answer = OutgoingReply {
        to: ReplyTo { address, correlation },
        qos,
        number,
        publisher: 7,
        sequence: 1,
        due_ns: 0,
        timing: Timing::on_time(0),
        payload_bytes: 100,
    };
    let taken = script.peer.clients.reply(id, &answer);
    script.peer.flush(id);
    taken
}

#[test]
fn replies_share_one_link_where_the_server_offers_it() {
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let mut script = Script::new();
        (script.open.product, script.open.anonymous_relay) = (ARTEMIS, true);
        let id = script.connect_client(responder(qos), Until::All);
        assert_eq!(script.ends[0], (None, false));
        for (number, address) in (0..).zip(["one", "another"]) {
            assert_eq!(offer(&mut script, id, address, &text("0-1"), number, qos), SendOutcome::Accepted);
            let (handle, bytes) = expect_message(&mut script);
            let message = Message::decode(&bytes).unwrap();
            let correlation_id = &text("0-1")[..];
            assert_eq!(message.properties(), Ok(Properties { to: Some(address), reply_to: None, correlation_id }));
            assert_eq!((handle, message.body.len()), (0, 100));
            assert!(header::read_reply(&message.body, RUN, 0).is_some());
        }
        let replies = |record: &Recorder| record.count(|event| matches!(event, Event::Written(..)));
        assert_count_eq!(replies(&script.peer.record), 2);
    }
}

/// Waits for the attach of a sender: its name, its handle, its address.
fn expect_sender(script: &mut Script) -> (String, u32, String) {
    let (name, handle) = script.expect_attach(Role::Sender);
    (name, handle, script.ends.last().unwrap().0.clone().unwrap())
}

fn writable(script: &mut Script, id: SessionId, times: usize) {
    script.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == times);
}

/// Replies that were acknowledged or refused, by number.
fn outcomes(record: &Recorder) -> Vec<(u32, Result<(), Reason>)> {
    record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) if token.publication == REPLY => Some((token.sequence, outcome.clone())),
        _ => None,
    })
}

#[test]
fn otherwise_each_address_has_a_link_that_is_attached_once() {
    let mut script = Script::new();
    script.open.anonymous_relay = false;
    let qos = Qos::AtLeastOnce;
    let id = script.connect_client(responder(qos), Until::All);
    assert_eq!(offer(&mut script, id, "back", &text("0-1"), 0, qos), SendOutcome::WouldBlock);
    let (name, handle, address) = expect_sender(&mut script);
    assert_count_eq!((handle, address.as_str()), (1, "back"), "behind the receiver");
    assert_eq!(offer(&mut script, id, "back", &text("0-1"), 0, qos), SendOutcome::WouldBlock, "not asked for twice");
    script.answer_sender(&name, handle);
    writable(&mut script, id, 1);
    for number in 0..3 {
        assert_eq!(offer(&mut script, id, "back", &text("0-1"), number, qos), SendOutcome::Accepted);
        let (handle, bytes) = expect_message(&mut script);
        let properties = Properties { correlation_id: &text("0-1"), ..Properties::default() };
        assert_eq!((handle, Message::decode(&bytes).unwrap().properties()), (1, Ok(properties)));
    }
    let accepted = Disposition { role: Role::Receiver, first: 0, last: 1, settled: true, state: Some(State::Accepted) };
    script.send_with(|out| accepted.encode(CHANNEL, out));
    script.peer.wait("two", |record| outcomes(record).len() == 2);
    // The third has no outcome when the server detaches the link, and never gets one.
    let error = Some(Condition { name: "amqp:resource-deleted", description: Some("the queue went") });
    script.send_with(|out| Detach { handle, closed: true, error }.encode(CHANNEL, out));
    script.peer.wait("the third", |record| outcomes(record).len() == 3);
    let refused = Err(Reason::words("amqp:resource-deleted: the queue went"));
    assert_eq!(outcomes(&script.peer.record), [(0, Ok(())), (1, Ok(())), (2, refused)]);
    script.peer.flush(id);
    let ended = script.expect("detach", |performative| match performative {
        Performative::Detach(detach) => Some((detach.handle, detach.closed)),
        _ => None,
    });
    assert_eq!(ended, (1, true));
    // The node is known to be missing; the next reply attaches again, on the same handle.
    assert_eq!(offer(&mut script, id, "back", &text("0-1"), 3, qos), SendOutcome::TooLarge(0));
    assert_eq!(offer(&mut script, id, "back", &text("0-1"), 4, qos), SendOutcome::WouldBlock);
    assert_eq!(expect_sender(&mut script).1, 1);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn an_address_that_the_server_refuses_holds_up_nothing() {
    let mut script = Script::new();
    let qos = Qos::BestEffort;
    let id = script.connect_client(responder(qos), Until::All);
    assert_eq!(offer(&mut script, id, "gone", &[], 0, qos), SendOutcome::WouldBlock);
    let (name, handle, _) = expect_sender(&mut script);
    let error = Some(Condition { name: "amqp:not-found", description: None });
    let refusal = Attach { target: None, ..attach(&name, handle, Role::Receiver) };
    script.send_with(|out| {
        refusal.encode(CHANNEL, out);
        Detach { handle, closed: true, error }.encode(CHANNEL, out);
    });
    writable(&mut script, id, 1);
    assert_eq!(offer(&mut script, id, "gone", &[], 0, qos), SendOutcome::TooLarge(0));
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn there_are_as_many_links_as_the_server_takes_and_the_idle_one_makes_room() {
    let mut script = Script::new();
    // One receiver, and two links for replies.
    script.begin.handle_max = 2;
    let qos = Qos::AtLeastOnce;
    let id = script.connect_client(responder(qos), Until::All);
    for (number, address) in (0..).zip(["first", "second"]) {
        assert_eq!(offer(&mut script, id, address, &[], number, qos), SendOutcome::WouldBlock);
        let (name, handle, _) = expect_sender(&mut script);
        script.answer_sender(&name, handle);
        writable(&mut script, id, number as usize + 1);
        assert_eq!(offer(&mut script, id, address, &[], number, qos), SendOutcome::Accepted);
        expect_message(&mut script);
    }
    // The outcome of the deliveries on both links is still unknown.
    assert_eq!(offer(&mut script, id, "third", &[], 2, qos), SendOutcome::WouldBlock);
    script.peer.linger(20);
    assert_count_eq!(script.peer.record.count(|event| *event == Event::Writable(id)), 2);
    let accepted = Disposition { role: Role::Receiver, first: 0, last: 0, settled: true, state: Some(State::Accepted) };
    script.send_with(|out| accepted.encode(CHANNEL, out));
    writable(&mut script, id, 3);
    assert_eq!(offer(&mut script, id, "third", &[], 2, qos), SendOutcome::WouldBlock);
    let handle = script.expect("detach", |performative| match performative {
        Performative::Detach(detach) => Some(detach.handle),
        _ => None,
    });
    assert_eq!(handle, 1, "the one that was not used for longest");
    script.send_with(|out| Detach { handle, closed: true, error: None }.encode(CHANNEL, out));
    writable(&mut script, id, 4);
    assert_eq!(offer(&mut script, id, "third", &[], 2, qos), SendOutcome::WouldBlock);
    let (name, handle, address) = expect_sender(&mut script);
    assert_eq!((handle, address.as_str()), (1, "third"));
    script.answer_sender(&name, handle);
    writable(&mut script, id, 5);
    assert_eq!(offer(&mut script, id, "third", &[], 2, qos), SendOutcome::Accepted);
    assert_eq!(expect_message(&mut script).0, 1);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn a_server_without_capacity_for_another_link_takes_no_replies() {
    let mut script = Script::new();
    script.begin.handle_max = 0;
    let id = script.connect_client(responder(Qos::BestEffort), Until::All);
    assert_eq!(offer(&mut script, id, "back", &[], 0, Qos::BestEffort), SendOutcome::TooLarge(0));
}

#[test]
fn an_unrequested_link_ends_the_connection() {
    let mut script = Script::new();
    let id = script.connect_client(responder(Qos::BestEffort), Until::All);
    script.answer_receiver("s0", 9, SenderSettles::Mixed);
    assert!(matches!(script.end_of(id), Cause::Protocol(_)));
    let mut script = Script::new();
    let id = script.connect_client(responder(Qos::BestEffort), Until::All);
    let begin = script.begin;
    let stranger = attach("s0", 9, Role::Receiver);
    script.send_with(|out| {
        stranger.encode(CHANNEL, out);
        Flow { handle: Some(9), link_credit: Some(1), ..flow(&begin) }.encode(CHANNEL, out);
    });
    assert!(matches!(script.end_of(id), Cause::Protocol(_)));
}
