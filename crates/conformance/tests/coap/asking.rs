//! A requester against a scripted responder.

use std::net::UdpSocket;
use std::time::Duration;

use pubmark_conformance::peer::RUN;
use pubmark_conformance::recorder::{Event, ReceivedReply};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, Goodbye, SendOutcome, SessionId};
use pubmark_protocol::events::{Cause, Reason, Token};
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::requests::requester;
use crate::script::{ClientMessage, Harness, response};

/// The reply to a request: its header repeats that of the request.
fn reply(request: &ClientMessage, bytes: usize) -> Vec<u8> {
    let asked = header::read(request.message().payload, 0).unwrap();
    let mut out = Vec::new();
    header::write_reply(&mut out, RUN, asked.publisher, asked.sequence, asked.due_ns);
    out.extend((0..bytes - header::FULL).map(|index| (index % 251) as u8));
    out
}

/// A requesting session, and its first request.
fn asked(qos: Qos, bytes: u32) -> (Harness, SessionId, ClientMessage) {
    let mut harness = Harness::new();
    let id = harness.open(requester("room/7/lamp", qos, 20_000));
    harness.peer.send(id, bytes);
    let request = harness.receive();
    (harness, id, request)
}

fn outcomes(harness: &Harness) -> Vec<Result<(), Reason>> {
    harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, _, outcome) => Some(outcome.clone()),
        _ => None,
    })
}

fn named(harness: &Harness) -> Vec<Option<u32>> {
    let name = |one: &ReceivedReply| one.request.map(|request| request.sequence);
    harness.peer.record.replies.iter().map(name).collect()
}

#[test]
fn a_request_is_a_fetch_of_its_topics_path_and_its_reply_the_response() {
    for (qos, kind) in [(Qos::BestEffort, Kind::NonConfirmable), (Qos::AtLeastOnce, Kind::Confirmable)] {
        let (mut harness, id, request) = asked(qos, 100);
        let message = request.message();
        assert_eq!((message.kind, message.code, message.payload.len()), (kind, Code::FETCH, 100));
        let path: Vec<&[u8]> = message.options.all(number::URI_PATH).collect();
        assert_eq!(path, [&b"room"[..], b"7", b"lamp"]);
        assert_eq!(message.options.get(number::CONTENT_FORMAT), Some(&[42][..]), "a body says what it is");
        let (own, message_id) =
            if kind == Kind::Confirmable { (Kind::Acknowledgement, request.id()) } else { (kind, 9) };
        let answer = response(own, Code::CONTENT, message_id, request.token(), &[], &reply(&request, 300));
        harness.send_bytes(&answer);
        harness.peer.wait("the answer", |record| record.replies.len() == 1);
        // The network or the responder duplicates it.
        harness.send_bytes(&answer);
        harness.ignore(50);
        let one = &harness.peer.record.replies[0];
        assert_eq!((one.session, one.payload_bytes, one.intact), (id, 300, true));
        assert_eq!(named(&harness), [Some(1)]);
        assert_eq!(outcomes(&harness).len(), usize::from(qos != Qos::BestEffort));
        assert_count_eq!((harness.peer.record.written(), harness.peer.record.foreign), (1, 0));
    }
}

#[test]
fn an_unacknowledged_request_is_retransmitted_and_an_acknowledged_one_is_awaited() {
    let (mut harness, _, request) = asked(Qos::AtLeastOnce, 100);
    for _ in 0..2 {
        assert_eq!(harness.receive().bytes, request.bytes, "the same bytes, the first write start included");
    }
    harness.send_empty(Kind::Acknowledgement, request.id());
    harness.ignore(20);
    harness.peer.linger(900);
    assert!(harness.try_receive().is_none(), "what is acknowledged is not sent again");
    assert_eq!(outcomes(&harness), [], "the answer is still to come, and may be a refusal");
    let separate = response(Kind::Confirmable, Code::CONTENT, 900, request.token(), &[], &reply(&request, 24));
    for _ in 0..2 {
        harness.send_bytes(&separate);
        assert!(harness.receive().is_empty(Kind::Acknowledgement, 900), "each copy is acknowledged");
    }
    assert_eq!((named(&harness), outcomes(&harness)), (vec![Some(1)], vec![Ok(())]));
    assert_count_eq!((harness.peer.record.written(), harness.peer.record.unanswered()), (1, 0));
}

#[test]
fn replies_that_name_no_request_are_counted_and_settle_nothing() {
    let (mut harness, id, request) = asked(Qos::AtLeastOnce, 100);
    let payload = reply(&request, 24);
    let other = [0xe0, 1, 2, 3];
    harness.send_bytes(&response(Kind::NonConfirmable, Code::CONTENT, 5, &other, &[], &payload));
    assert!(harness.receive_other_than(&request).is_empty(Kind::Reset, 5), "an unknown token is rejected");
    // The right token in the acknowledgement of another message.
    harness.send_bytes(&response(
        Kind::Acknowledgement,
        Code::CONTENT,
        request.id() ^ 1,
        request.token(),
        &[],
        &payload,
    ));
    // A reset and an acknowledgement of nothing.
    harness.send_empty(Kind::Reset, request.id() ^ 2);
    harness.send_empty(Kind::Acknowledgement, request.id() ^ 2);
    harness.peer.wait("both", |record| record.replies.len() == 2);
    assert_eq!((named(&harness), outcomes(&harness)), (vec![None, None], vec![]));
    harness.send_bytes(&response(Kind::NonConfirmable, Code::CONTENT, 6, &other, &[], b"no header of ours"));
    harness.peer.wait("counted", |record| record.foreign == 1);
    // The token names a request with another number: the engine knows which ones exist.
    let later = [request.token()[0], 99];
    harness.send_bytes(&response(Kind::NonConfirmable, Code::CONTENT, 7, &later, &[], &payload));
    harness.peer.wait("the third", |record| record.replies.len() == 3);
    assert_eq!(named(&harness)[2], Some(99));
    // Datagrams of other senders do not reach the socket, whatever their content.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let answer = response(Kind::Acknowledgement, Code::CONTENT, request.id(), request.token(), &[], &payload);
    stranger.send_to(&answer, harness.client()).unwrap();
    harness.ignore(50);
    assert_count_eq!((harness.peer.record.replies.len(), outcomes(&harness).len()), (3, 0));
    harness.send_bytes(&answer);
    harness.peer.wait("the answer", |record| record.replies.len() == 4);
    assert_eq!((named(&harness)[3], harness.peer.record.causes(id)), (Some(1), vec![]));
}

#[test]
fn a_request_that_was_given_up_is_not_sent_again_and_its_answer_is_still_known() {
    for acknowledges in [false, true] {
        let mut harness = Harness::new();
        let id = harness.open(requester("slow", Qos::AtLeastOnce, 300));
        harness.peer.send(id, 100);
        let request = harness.receive();
        if acknowledges {
            harness.send_empty(Kind::Acknowledgement, request.id());
        }
        let grants = |event: &Event| matches!(event, Event::Unacknowledged(..) | Event::Acknowledged(..));
        harness.peer.wait("given up", |record| record.count(grants) == 1);
        let expected = if acknowledges { (vec![Ok(())], 0) } else { (vec![], 1) };
        assert_count_eq!((outcomes(&harness), harness.peer.record.unanswered()), expected);
        harness.ignore(1_500);
        assert!(harness.try_receive().is_none());
        let separate = response(Kind::Confirmable, Code::CONTENT, 3, request.token(), &[], &reply(&request, 24));
        harness.send_bytes(&separate);
        assert!(harness.receive().is_empty(Kind::Acknowledgement, 3));
        assert_eq!(named(&harness), [Some(1)]);
        // A refusal this late changes nothing, and is counted.
        harness.send_bytes(&response(Kind::NonConfirmable, Code::NOT_FOUND, 4, request.token(), &[], b""));
        harness.peer.wait("counted", |record| record.foreign == 1);
        assert_eq!(harness.peer.record.causes(id), []);
    }
}

#[test]
fn refusals_are_reported_with_the_responders_text() {
    let mut harness = Harness::new();
    let id = harness.open(requester("a", Qos::AtLeastOnce, 20_000));
    let ask = |harness: &mut Harness| {
        harness.peer.send(id, 24);
        harness.receive()
    };
    let request = ask(&mut harness);
    harness.reply(&request, Code::NOT_FOUND, &[], b"");
    let request = ask(&mut harness);
    harness.send_empty(Kind::Acknowledgement, request.id());
    harness.send_bytes(&response(Kind::NonConfirmable, Code::SERVICE_UNAVAILABLE, 1, request.token(), &[], b"later"));
    let request = ask(&mut harness);
    harness.send_empty(Kind::Reset, request.id());
    let request = ask(&mut harness);
    harness.reply(&request, Code::CONTINUE, &[], b"");
    harness.peer.wait("all", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 4);
    let words = ["4.04 Not Found", "5.03 Service Unavailable: later", "rejected with a reset", "2.31 Continue"];
    assert_eq!(outcomes(&harness), words.map(|words| Err(Reason::words(words))));
    let id = harness.open(requester("a", Qos::BestEffort, 20_000));
    harness.peer.send(id, 24);
    let request = harness.receive();
    harness.send_bytes(&response(Kind::NonConfirmable, Code::NOT_FOUND, 1, request.token(), &[], b""));
    harness.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 5);
    assert_count_eq!(harness.peer.record.replies, []);
}

#[test]
fn a_large_request_goes_in_blocks_and_what_follows_waits_for_the_last() {
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let (mut harness, id, mut block) = asked(qos, 3_000);
        harness.peer.send(id, 24);
        let (mut whole, first) = (Vec::new(), block.message().options.get(number::REQUEST_TAG).unwrap().to_vec());
        loop {
            let message = block.message();
            let found = message.options.get(number::BLOCK1).and_then(Block::read).unwrap();
            assert_eq!((found.offset(), message.kind, message.code), (whole.len(), Kind::Confirmable, Code::FETCH));
            assert_eq!(message.options.get(number::REQUEST_TAG), Some(&first[..]), "one request, one tag");
            whole.extend_from_slice(message.payload);
            if !found.more {
                break;
            }
            assert_count_eq!(harness.peer.record.written(), 0);
            // From the second one on, 512 B; each response arrives twice.
            let value = Block::at(found.offset(), true, 5).value() as u8;
            for _ in 0..2 {
                harness.reply(&block, Code::CONTINUE, &[(number::BLOCK1, &[value])], b"");
            }
            block = harness.receive_other_than(&block);
        }
        assert_eq!(whole.len(), 3_000);
        harness.peer.wait("both written", |record| record.written() == 2);
        let next = harness.receive_other_than(&block);
        assert_eq!(next.message().payload.len(), 24);
        harness.send_empty(Kind::Acknowledgement, block.id());
        let first = ClientMessage { bytes: response(Kind::Confirmable, Code::FETCH, 0, block.token(), &[], &whole) };
        harness.send_bytes(&response(Kind::Confirmable, Code::CONTENT, 1, block.token(), &[], &reply(&first, 24)));
        harness.peer.wait("the answer", |record| record.replies.len() == 1);
        assert_eq!(named(&harness), [Some(1)]);
        assert_eq!(outcomes(&harness).len(), usize::from(qos != Qos::BestEffort));
    }
}

/// The requester stands still after the first response; the second is read at once.
#[test]
fn the_time_until_a_response_to_a_block_is_read_is_no_back_pressure_of_the_requests_behind_it() {
    const STOP: Duration = Duration::from_millis(60);
    let (mut harness, id, mut block) = asked(Qos::AtLeastOnce, 3_000);
    harness.peer.send(id, 24);
    for stop in [STOP, Duration::ZERO] {
        let found = block.message().options.get(number::BLOCK1).and_then(Block::read).unwrap();
        harness.reply(&block, Code::CONTINUE, &[(number::BLOCK1, &[found.value() as u8])], b"");
        std::thread::sleep(stop);
        block = harness.receive_other_than(&block);
        // All that arrived is handled, so that the rest of the wait is the system's.
        harness.peer.linger(5);
    }
    harness.peer.wait("both written", |record| record.written() == 2);
    let own_ns = &harness.peer.record.own_ns;
    let least_ns = STOP.as_nanos() / 2;
    assert!(own_ns.iter().all(|own_ns| u128::from(*own_ns) > least_ns), "{own_ns:?} ns with a stop of {STOP:?}");
}

#[test]
fn a_large_request_refused_in_the_middle_is_reported_as_written_and_refused() {
    let (mut harness, _, block) = asked(Qos::AtLeastOnce, 3_000);
    harness.reply(&block, Code::REQUEST_ENTITY_TOO_LARGE, &[], b"");
    harness.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 1);
    assert_eq!(outcomes(&harness), [Err(Reason::words("4.13 Request Entity Too Large"))]);
    assert_count_eq!(harness.peer.record.written(), 1);
}

#[test]
fn a_large_answer_is_fetched_block_by_block_while_other_requests_go_on() {
    let (mut harness, id, request) = asked(Qos::AtLeastOnce, 24);
    let body = reply(&request, 2_500);
    let value = |index: usize| [Block { number: index as u32, more: index < 2, exponent: 6 }.value() as u8];
    let part = |index: usize| &body[index * 1_024..body.len().min((index + 1) * 1_024)];
    harness.reply(&request, Code::CONTENT, &[(number::ETAG, b"x"), (number::BLOCK2, &value(0))], part(0));
    let second = harness.receive();
    harness.peer.send(id, 24);
    let other = harness.receive_other_than(&second);
    harness.reply(&other, Code::CONTENT, &[], &reply(&other, 24));
    harness.peer.wait("the second answer", |record| record.replies.len() == 1);
    for index in [1, 2] {
        let asks = if index == 1 { second.clone() } else { harness.receive_other_than(&second) };
        let message = asks.message();
        let wanted = message.options.get(number::BLOCK2).and_then(Block::read).unwrap();
        assert_eq!((message.code, wanted.number, message.payload), (Code::FETCH, index as u32, &b""[..]));
        let tag = request.message().options.get(number::REQUEST_TAG).unwrap().to_vec();
        assert_eq!(message.options.get(number::REQUEST_TAG), Some(&tag[..]));
        let options = [(number::ETAG, &b"x"[..]), (number::BLOCK2, &value(index)[..])];
        harness.reply(&asks, Code::CONTENT, &options, part(index));
        harness.reply(&asks, Code::CONTENT, &options, part(index));
    }
    harness.peer.wait("the first answer", |record| record.replies.len() == 2);
    harness.ignore(30);
    assert_eq!(named(&harness), [Some(2), Some(1)]);
    assert!(harness.peer.record.replies[1].intact && harness.peer.record.replies[1].payload_bytes == 2_500);
}

#[test]
fn blocks_that_do_not_belong_together_are_no_reply() {
    let (mut harness, id, request) = asked(Qos::AtLeastOnce, 24);
    let body = reply(&request, 2_000);
    let more = [Block { number: 0, more: true, exponent: 6 }.value() as u8];
    let last = [Block { number: 1, more: false, exponent: 6 }.value() as u8];
    harness.reply(&request, Code::CONTENT, &[(number::ETAG, b"x"), (number::BLOCK2, &more)], &body[..1_024]);
    let asks = harness.receive();
    harness.reply(&asks, Code::CONTENT, &[(number::ETAG, b"y"), (number::BLOCK2, &last)], &body[1_024..]);
    harness.ignore(50);
    assert_eq!((named(&harness), harness.peer.record.causes(id)), (vec![], vec![]));
}

#[test]
fn a_lost_responder_ends_the_session_with_the_known_reason() {
    // Its port is closed, which the kernel reports.
    let (mut harness, id, request) = asked(Qos::AtLeastOnce, 24);
    harness.peer.send(id, 24);
    harness.receive_other_than(&request);
    harness.send_empty(Kind::Acknowledgement, request.id());
    harness.peer.linger(20);
    harness.vanish();
    harness.peer.wait("told", |record| record.causes(id).len() == 1);
    assert!(matches!(&harness.peer.record.causes(id)[0], Cause::Dropped(words) if words.contains("refused")));
    assert_count_eq!((outcomes(&harness), harness.peer.record.unanswered()), (vec![Ok(())], 1));
    assert_eq!(harness.peer.offer(id, 24), SendOutcome::WouldBlock);
    // It exists and does not respond.
    let (mut harness, id, _) = asked(Qos::AtLeastOnce, 24);
    harness.peer.wait("told", |record| record.causes(id).len() == 1);
    assert_count_eq!((harness.peer.record.causes(id), harness.peer.record.unanswered()), (vec![Cause::Silent], 1));
}

#[test]
fn messages_unwritten_at_the_end_of_a_session_are_reported() {
    let (mut harness, id, _) = asked(Qos::AtLeastOnce, 3_000);
    harness.peer.send(id, 24);
    harness.peer.leave(id, Goodbye::Graceful);
    let abandoned = harness.peer.record.all(|event| match event {
        Event::Abandoned(_, token) => Some(*token),
        _ => None,
    });
    assert_count_eq!(abandoned, [1, 2].map(|sequence| Token { publication: 0, sequence }));
    assert_count_eq!((harness.peer.record.written(), harness.peer.clients.unsent_bytes()), (0, 0));
}
