//! Publishing against a server with arbitrary responses.

use std::time::Duration;

use pubmark_conformance::peer::{publisher, session};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, Goodbye, SendOutcome};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Reason};
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::script::{ClientMessage, Harness, response};

fn sender(qos: Qos) -> pubmark_protocol::clients::SessionConfig {
    publisher("says", "a/b", qos)
}

fn outcomes(harness: &Harness) -> Vec<Result<(), Reason>> {
    harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, _, outcome) => Some(outcome.clone()),
        _ => None,
    })
}

/// Publishes and returns the request.
fn publish(harness: &mut Harness, id: pubmark_protocol::clients::SessionId, bytes: u32) -> ClientMessage {
    harness.peer.send(id, bytes);
    let received = harness.receive();
    assert_eq!(received.message().code, Code::PUT);
    received
}

#[test]
fn no_session_is_open_before_the_server_has_responded() {
    let mut harness = Harness::new();
    let (id, ping) = harness.begin(session("opens"));
    harness.send_empty(Kind::Reset, ping.id().wrapping_add(1));
    let again = harness.receive();
    assert_eq!(again.bytes, ping.bytes, "the answer to another message is none");
    assert_eq!(harness.peer.record.connects(id), []);
    harness.send_empty(Kind::Reset, ping.id());
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    for garbage in [&b"+OK\r\n"[..], b"\x16\x03\x01\x02\x00", &[0x40], &[], &[0x49, 1, 0, 0]] {
        let (id, _) = harness.begin(session("garbage"));
        harness.send_bytes(garbage);
        harness.peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(harness.peer.record.causes(id)[..], [Cause::Protocol(_)]));
    }
}

#[test]
fn a_message_without_a_response_is_retransmitted_identically_and_counted_once() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let first = publish(&mut harness, id, 100);
    assert_eq!((first.message().kind, first.message().payload.len()), (Kind::Confirmable, 100));
    for _ in 0..3 {
        assert_eq!(harness.receive().bytes, first.bytes);
    }
    assert_count_eq!(harness.peer.record.written(), 1);
    harness.reply(&first, Code::CHANGED, &[], b"");
    harness.reply(&first, Code::CHANGED, &[], b"");
    harness.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    harness.ignore(100);
    assert_eq!(outcomes(&harness), [Ok(())]);
}

#[test]
fn responses_to_something_else_are_ignored() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let sent = publish(&mut harness, id, 16);
    let mut other = sent.token().to_vec();
    other[2] ^= 1;
    let (code, ack) = (Code::CHANGED, Kind::Acknowledgement);
    harness.send_bytes(&response(ack, code, sent.id(), &other, &[], b""));
    harness.send_bytes(&response(ack, code, sent.id() ^ 1, sent.token(), &[], b""));
    harness.send_bytes(&response(Kind::NonConfirmable, code, 5, &[1, 2, 3, 4, 5, 6, 7, 8], &[], b""));
    assert!(harness.receive_other_than(&sent).is_empty(Kind::Reset, 5), "an unknown token is rejected");
    harness.send_bytes(&response(Kind::Confirmable, code, 6, &other, &[], b""));
    assert!(harness.receive_other_than(&sent).is_empty(Kind::Reset, 6));
    assert_eq!(outcomes(&harness), []);
    harness.reply(&sent, code, &[], b"");
    harness.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_separate_response_may_follow_its_acknowledgement() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let sent = publish(&mut harness, id, 16);
    harness.send_empty(Kind::Acknowledgement, sent.id());
    harness.ignore(500);
    assert!(harness.try_receive().is_none(), "what is acknowledged is not sent again");
    let separate = response(Kind::Confirmable, Code::CREATED, 900, sent.token(), &[], b"");
    for _ in 0..2 {
        harness.send_bytes(&separate);
        assert!(harness.receive().is_empty(Kind::Acknowledgement, 900), "each copy is acknowledged");
    }
    assert_eq!(outcomes(&harness), [Ok(())]);
}

#[test]
fn refusals_are_reported_with_the_servers_text() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let sent = publish(&mut harness, id, 16);
    harness.reply(&sent, Code::NOT_FOUND, &[], b"");
    let sent = publish(&mut harness, id, 16);
    harness.reply(&sent, Code::new(5, 0), &[], b"out of memory");
    let sent = publish(&mut harness, id, 16);
    harness.send_empty(Kind::Reset, sent.id());
    let sent = publish(&mut harness, id, 16);
    harness.reply(&sent, Code::CONTINUE, &[], b"");
    harness.peer.wait("all", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 4);
    let words =
        ["4.04 Not Found", "5.00 Internal Server Error: out of memory", "rejected with a reset", "2.31 Continue"];
    assert_eq!(outcomes(&harness), words.map(|words| Err(Reason::words(words))));
}

#[test]
fn at_best_effort_only_refusals_are_received() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::BestEffort));
    let sent = publish(&mut harness, id, 16);
    let message = sent.message();
    assert_eq!((message.kind, message.options.get(number::NO_RESPONSE)), (Kind::NonConfirmable, Some(&[2][..])));
    let non = Kind::NonConfirmable;
    harness.send_bytes(&response(non, Code::CHANGED, 1, sent.token(), &[], b""));
    harness.send_bytes(&response(non, Code::new(4, 3), 2, sent.token(), &[], b""));
    harness.send_bytes(&response(non, Code::new(4, 3), 2, sent.token(), &[], b""));
    harness.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 1);
    harness.ignore(100);
    assert_eq!(outcomes(&harness), [Err(Reason::words("4.03 Forbidden"))]);
}

#[test]
fn a_large_message_goes_in_blocks_of_the_size_that_the_server_wants() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let mut block = publish(&mut harness, id, 3_000);
    assert_eq!(harness.peer.offer(id, 16), SendOutcome::WouldBlock, "one after another");
    let mut whole = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let message = block.message();
        let found = message.options.get(number::BLOCK1).and_then(Block::read).unwrap();
        assert_eq!((found.offset(), message.kind), (whole.len(), Kind::Confirmable));
        whole.extend_from_slice(message.payload);
        sizes.push(message.payload.len());
        // From the second one on, 256 B.
        let taken = Block { exponent: found.exponent.min(4), number: found.offset() as u32 >> 8, ..found };
        let value = taken.value().to_be_bytes();
        let options = [(number::BLOCK1, &value[1..])];
        if !found.more {
            assert_count_eq!(harness.peer.record.acknowledged(), 0);
            harness.reply(&block, Code::CHANGED, &options, b"");
            break;
        }
        harness.reply(&block, Code::CONTINUE, &options, b"");
        // A copy of the response changes nothing.
        harness.reply(&block, Code::CONTINUE, &options, b"");
        block = harness.receive();
    }
    harness.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    assert_count_eq!((whole.len(), harness.peer.record.written()), (3_000, 1));
    assert_eq!(sizes, [1_024, 256, 256, 256, 256, 256, 256, 256, 184]);
    let body = &whole[24..];
    assert!(body.windows(2).all(|pair| usize::from(pair[1]) == (usize::from(pair[0]) + 1) % 251));
    assert_count_eq!(harness.peer.record.count(|event| *event == Event::Writable(id)), 1);
}

/// The client stands still after each response to a block; its kernel has received it.
#[test]
fn the_time_until_a_response_to_a_block_is_read_is_not_back_pressure() {
    const STOP: Duration = Duration::from_millis(30);
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let mut block = publish(&mut harness, id, 3_000);
    assert_eq!(harness.peer.offer(id, 16), SendOutcome::WouldBlock);
    for _ in 0..2 {
        let found = block.message().options.get(number::BLOCK1).and_then(Block::read).unwrap();
        harness.reply(&block, Code::CONTINUE, &[(number::BLOCK1, &[found.value() as u8])], b"");
        std::thread::sleep(STOP);
        block = harness.receive_other_than(&block);
    }
    harness.peer.wait("written", |record| record.written() == 1);
    let own_ns = &harness.peer.record.own_ns;
    // A busy kernel may deliver a datagram after the call that sent it has returned.
    assert!(u128::from(own_ns[0]) > STOP.as_nanos(), "{own_ns:?} ns of two stops");
    // What waited for the end of the message did so for as long.
    harness.reply(&block, Code::CHANGED, &[], b"");
    let replied_ns = clock::monotonic_ns();
    harness.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == 1);
    let free_since_ns = harness.peer.clients.take_free_since_ns(id).unwrap();
    assert!(u128::from(replied_ns - free_since_ns) > STOP.as_nanos(), "{replied_ns} and {free_since_ns} ns");
}

#[test]
fn a_large_message_refused_at_its_first_block_is_refused_at_every_level() {
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let mut harness = Harness::new();
        let id = harness.open(sender(qos));
        let block = publish(&mut harness, id, 3_000);
        assert_eq!(block.message().options.get(number::SIZE1), Some(&[0x0b, 0xb8][..]));
        harness.reply(&block, Code::REQUEST_ENTITY_TOO_LARGE, &[], b"");
        harness.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 1);
        assert_eq!(outcomes(&harness), [Err(Reason::words("4.13 Request Entity Too Large"))]);
        assert_count_eq!(harness.peer.record.written(), 1, "the server had a say in it");
        // The session continues.
        publish(&mut harness, id, 16);
    }
}

#[test]
fn a_message_without_a_response_is_unknown_and_a_silent_server_ends_the_session() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    let first = publish(&mut harness, id, 16);
    let second = publish(&mut harness, id, 16);
    // The server is alive, because it responds to the second one; after all retransmissions the first one is given up.
    let mut copies = 0;
    while harness.peer.record.unanswered() == 0 {
        harness.peer.linger(5);
        match harness.try_receive() {
            Some(received) if received.bytes == first.bytes => {
                copies += 1;
                if copies == 4 {
                    harness.reply(&second, Code::CHANGED, &[], b"");
                }
            }
            Some(received) => assert!(received.bytes == second.bytes || received.message().code == Code::EMPTY),
            None => {}
        }
        assert_count!(copies <= 4, "more than MAX_RETRANSMIT");
    }
    assert_count_eq!((copies, harness.peer.record.acknowledged(), harness.peer.record.causes(id)), (4, 1, vec![]));
    publish(&mut harness, id, 16);
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    assert_count_eq!((harness.peer.record.causes(id), harness.peer.record.unanswered()), (vec![Cause::Silent], 2));
}

#[test]
fn after_an_end_delivery_of_written_messages_is_unknown() {
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::AtLeastOnce));
    publish(&mut harness, id, 16);
    let block = publish(&mut harness, id, 3_000);
    assert!(block.message().payload.len() == 1_024);
    harness.peer.leave(id, Goodbye::Cut);
    let record = &harness.peer.record;
    let abandoned = record.count(|event| matches!(event, Event::Abandoned(..)));
    assert_count_eq!((record.unanswered(), abandoned, record.causes(id)), (1, 1, vec![Cause::Ours]));
}

/// A server that remembers identifiers as long as the standard has it takes such messages for repetitions.
#[test]
fn messages_whose_identifier_came_round_within_its_lifetime_are_reported_at_the_end() {
    const IDENTIFIERS: u64 = 1 << 16;
    const AGAIN: u64 = 3_000;
    let mut harness = Harness::new();
    let id = harness.open(sender(Qos::BestEffort));
    // The server reads none of them, and the client awaits no responses.
    for _ in 0..IDENTIFIERS + AGAIN {
        harness.peer.send(id, 16);
        // Each send looks through the events.
        harness.peer.record.events.clear();
    }
    assert_count_eq!(harness.peer.record.ids_reused, 0);
    harness.peer.leave(id, Goodbye::Cut);
    // Identifiers are judged in blocks of 1,024, and the ping had one.
    let reused = harness.peer.record.ids_reused;
    assert_count!((AGAIN - 1_024..=AGAIN + 10).contains(&reused), "{reused}");
}
