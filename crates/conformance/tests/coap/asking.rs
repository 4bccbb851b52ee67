//! A requester against a responder whose every datagram the test decides.

use std::net::UdpSocket;

use pubmark_conformance::peer::RUN;
use pubmark_conformance::recorder::{Event, Replied};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, Goodbye, SendOutcome, SessionId};
use pubmark_protocol::events::{Cause, Reason, Token};
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::requests::requester;
use crate::script::{Heard, Stage, response};

/// The answer to a request: its header repeats the request's.
fn reply(request: &Heard, bytes: usize) -> Vec<u8> {
    let asked = header::read(request.message().payload, 0).unwrap();
    let mut out = Vec::new();
    header::write_reply(&mut out, RUN, asked.publisher, asked.sequence, asked.due_ns);
    out.extend((0..bytes - header::FULL).map(|index| (index % 251) as u8));
    out
}

/// A session that asks, and its first request.
fn asked(qos: Qos, bytes: u32) -> (Stage, SessionId, Heard) {
    let mut stage = Stage::new();
    let id = stage.open(requester("room/7/lamp", qos, 20_000));
    stage.peer.send(id, bytes);
    let request = stage.hear();
    (stage, id, request)
}

fn outcomes(stage: &Stage) -> Vec<Result<(), Reason>> {
    stage.peer.record.all(|event| match event {
        Event::Acknowledged(_, _, outcome) => Some(outcome.clone()),
        _ => None,
    })
}

fn named(stage: &Stage) -> Vec<Option<u32>> {
    let name = |one: &Replied| one.request.map(|request| request.sequence);
    stage.peer.record.answers.iter().map(name).collect()
}

#[test]
fn a_request_is_a_fetch_of_its_topics_path_and_its_answer_the_response() {
    for (qos, kind) in [(Qos::BestEffort, Kind::NonConfirmable), (Qos::AtLeastOnce, Kind::Confirmable)] {
        let (mut stage, id, request) = asked(qos, 100);
        let message = request.message();
        assert_eq!((message.kind, message.code, message.payload.len()), (kind, Code::FETCH, 100));
        let path: Vec<&[u8]> = message.options.all(number::URI_PATH).collect();
        assert_eq!(path, [&b"room"[..], b"7", b"lamp"]);
        assert_eq!(message.options.get(number::CONTENT_FORMAT), Some(&[42][..]), "a body says what it is");
        let (own, message_id) =
            if kind == Kind::Confirmable { (Kind::Acknowledgement, request.id()) } else { (kind, 9) };
        let answer = response(own, Code::CONTENT, message_id, request.token(), &[], &reply(&request, 300));
        stage.say(&answer);
        stage.peer.wait("the answer", |record| record.answers.len() == 1);
        // The network doubles it, or the responder does.
        stage.say(&answer);
        stage.ignore(50);
        let one = &stage.peer.record.answers[0];
        assert_eq!((one.session, one.payload_bytes, one.intact), (id, 300, true));
        assert_eq!(named(&stage), [Some(1)]);
        assert_eq!(outcomes(&stage).len(), usize::from(qos != Qos::BestEffort));
        assert_count_eq!((stage.peer.record.written(), stage.peer.record.foreign), (1, 0));
    }
}

#[test]
fn what_is_not_answered_is_sent_again_and_what_is_acknowledged_is_waited_for() {
    let (mut stage, _, request) = asked(Qos::AtLeastOnce, 100);
    for _ in 0..2 {
        assert_eq!(stage.hear().bytes, request.bytes, "the same bytes, the first write start included");
    }
    stage.say_empty(Kind::Acknowledgement, request.id());
    stage.ignore(20);
    stage.peer.linger(900);
    assert!(stage.look().is_none(), "what is acknowledged is not sent again");
    assert_eq!(outcomes(&stage), [], "the answer is still to come, and may be a refusal");
    let separate = response(Kind::Confirmable, Code::CONTENT, 900, request.token(), &[], &reply(&request, 24));
    for _ in 0..2 {
        stage.say(&separate);
        assert!(stage.hear().is_empty(Kind::Acknowledgement, 900), "each copy is acknowledged");
    }
    assert_eq!((named(&stage), outcomes(&stage)), (vec![Some(1)], vec![Ok(())]));
    assert_count_eq!((stage.peer.record.written(), stage.peer.record.unanswered()), (1, 0));
}

#[test]
fn answers_that_name_no_request_are_counted_and_answer_nothing() {
    let (mut stage, id, request) = asked(Qos::AtLeastOnce, 100);
    let payload = reply(&request, 24);
    let other = [0xe0, 1, 2, 3];
    stage.say(&response(Kind::NonConfirmable, Code::CONTENT, 5, &other, &[], &payload));
    assert!(stage.hear_other_than(&request).is_empty(Kind::Reset, 5), "an unknown token is rejected");
    // The right token in the acknowledgement of another message.
    stage.say(&response(Kind::Acknowledgement, Code::CONTENT, request.id() ^ 1, request.token(), &[], &payload));
    // A reset and an acknowledgement of nothing.
    stage.say_empty(Kind::Reset, request.id() ^ 2);
    stage.say_empty(Kind::Acknowledgement, request.id() ^ 2);
    stage.peer.wait("both", |record| record.answers.len() == 2);
    assert_eq!((named(&stage), outcomes(&stage)), (vec![None, None], vec![]));
    stage.say(&response(Kind::NonConfirmable, Code::CONTENT, 6, &other, &[], b"no header of ours"));
    stage.peer.wait("counted", |record| record.foreign == 1);
    // A request of another number, which the token names: the engine knows which there were.
    let later = [request.token()[0], 99];
    stage.say(&response(Kind::NonConfirmable, Code::CONTENT, 7, &later, &[], &payload));
    stage.peer.wait("the third", |record| record.answers.len() == 3);
    assert_eq!(named(&stage)[2], Some(99));
    // Somebody else's datagrams do not get as far as the socket, whatever is in them.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let answer = response(Kind::Acknowledgement, Code::CONTENT, request.id(), request.token(), &[], &payload);
    stranger.send_to(&answer, stage.client()).unwrap();
    stage.ignore(50);
    assert_count_eq!((stage.peer.record.answers.len(), outcomes(&stage).len()), (3, 0));
    stage.say(&answer);
    stage.peer.wait("the answer", |record| record.answers.len() == 4);
    assert_eq!((named(&stage)[3], stage.peer.record.causes(id)), (Some(1), vec![]));
}

#[test]
fn a_request_that_was_given_up_is_not_sent_again_and_its_answer_is_still_known() {
    for acknowledges in [false, true] {
        let mut stage = Stage::new();
        let id = stage.open(requester("slow", Qos::AtLeastOnce, 300));
        stage.peer.send(id, 100);
        let request = stage.hear();
        if acknowledges {
            stage.say_empty(Kind::Acknowledgement, request.id());
        }
        let told = |event: &Event| matches!(event, Event::Unacknowledged(..) | Event::Acknowledged(..));
        stage.peer.wait("given up", |record| record.count(told) == 1);
        let expected = if acknowledges { (vec![Ok(())], 0) } else { (vec![], 1) };
        assert_count_eq!((outcomes(&stage), stage.peer.record.unanswered()), expected);
        stage.ignore(1_500);
        assert!(stage.look().is_none());
        let separate = response(Kind::Confirmable, Code::CONTENT, 3, request.token(), &[], &reply(&request, 24));
        stage.say(&separate);
        assert!(stage.hear().is_empty(Kind::Acknowledgement, 3));
        assert_eq!(named(&stage), [Some(1)]);
        // A refusal that late changes nothing, and is counted.
        stage.say(&response(Kind::NonConfirmable, Code::NOT_FOUND, 4, request.token(), &[], b""));
        stage.peer.wait("counted", |record| record.foreign == 1);
        assert_eq!(stage.peer.record.causes(id), []);
    }
}

#[test]
fn refusals_are_told_in_the_responders_words() {
    let mut stage = Stage::new();
    let id = stage.open(requester("a", Qos::AtLeastOnce, 20_000));
    let ask = |stage: &mut Stage| {
        stage.peer.send(id, 24);
        stage.hear()
    };
    let request = ask(&mut stage);
    stage.reply(&request, Code::NOT_FOUND, &[], b"");
    let request = ask(&mut stage);
    stage.say_empty(Kind::Acknowledgement, request.id());
    stage.say(&response(Kind::NonConfirmable, Code::SERVICE_UNAVAILABLE, 1, request.token(), &[], b"later"));
    let request = ask(&mut stage);
    stage.say_empty(Kind::Reset, request.id());
    let request = ask(&mut stage);
    stage.reply(&request, Code::CONTINUE, &[], b"");
    stage.peer.wait("all", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 4);
    let words = ["4.04 Not Found", "5.03 Service Unavailable: later", "rejected with a reset", "2.31 Continue"];
    assert_eq!(outcomes(&stage), words.map(|words| Err(Reason::words(words))));
    let id = stage.open(requester("a", Qos::BestEffort, 20_000));
    stage.peer.send(id, 24);
    let request = stage.hear();
    stage.say(&response(Kind::NonConfirmable, Code::NOT_FOUND, 1, request.token(), &[], b""));
    stage.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 5);
    assert_count_eq!(stage.peer.record.answers, []);
}

#[test]
fn a_large_request_goes_in_blocks_and_what_follows_waits_for_the_last() {
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let (mut stage, id, mut block) = asked(qos, 3_000);
        stage.peer.send(id, 24);
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
            assert_count_eq!(stage.peer.record.written(), 0);
            // From the second one on, 512 B; each answer comes twice.
            let value = Block::at(found.offset(), true, 5).value() as u8;
            for _ in 0..2 {
                stage.reply(&block, Code::CONTINUE, &[(number::BLOCK1, &[value])], b"");
            }
            block = stage.hear_other_than(&block);
        }
        assert_eq!(whole.len(), 3_000);
        stage.peer.wait("both written", |record| record.written() == 2);
        let next = stage.hear_other_than(&block);
        assert_eq!(next.message().payload.len(), 24);
        stage.say_empty(Kind::Acknowledgement, block.id());
        let first = Heard { bytes: response(Kind::Confirmable, Code::FETCH, 0, block.token(), &[], &whole) };
        stage.say(&response(Kind::Confirmable, Code::CONTENT, 1, block.token(), &[], &reply(&first, 24)));
        stage.peer.wait("the answer", |record| record.answers.len() == 1);
        assert_eq!(named(&stage), [Some(1)]);
        assert_eq!(outcomes(&stage).len(), usize::from(qos != Qos::BestEffort));
    }
}

#[test]
fn a_large_request_that_is_refused_in_the_middle_is_told_as_written_and_refused() {
    let (mut stage, _, block) = asked(Qos::AtLeastOnce, 3_000);
    stage.reply(&block, Code::REQUEST_ENTITY_TOO_LARGE, &[], b"");
    stage.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 1);
    assert_eq!(outcomes(&stage), [Err(Reason::words("4.13 Request Entity Too Large"))]);
    assert_count_eq!(stage.peer.record.written(), 1);
}

#[test]
fn a_large_answer_is_fetched_block_by_block_while_other_requests_go_on() {
    let (mut stage, id, request) = asked(Qos::AtLeastOnce, 24);
    let body = reply(&request, 2_500);
    let value = |index: usize| [Block { number: index as u32, more: index < 2, exponent: 6 }.value() as u8];
    let part = |index: usize| &body[index * 1_024..body.len().min((index + 1) * 1_024)];
    stage.reply(&request, Code::CONTENT, &[(number::ETAG, b"x"), (number::BLOCK2, &value(0))], part(0));
    let second = stage.hear();
    stage.peer.send(id, 24);
    let other = stage.hear_other_than(&second);
    stage.reply(&other, Code::CONTENT, &[], &reply(&other, 24));
    stage.peer.wait("the second answer", |record| record.answers.len() == 1);
    for index in [1, 2] {
        let asks = if index == 1 { second.clone() } else { stage.hear_other_than(&second) };
        let message = asks.message();
        let wanted = message.options.get(number::BLOCK2).and_then(Block::read).unwrap();
        assert_eq!((message.code, wanted.number, message.payload), (Code::FETCH, index as u32, &b""[..]));
        let tag = request.message().options.get(number::REQUEST_TAG).unwrap().to_vec();
        assert_eq!(message.options.get(number::REQUEST_TAG), Some(&tag[..]));
        let options = [(number::ETAG, &b"x"[..]), (number::BLOCK2, &value(index)[..])];
        stage.reply(&asks, Code::CONTENT, &options, part(index));
        stage.reply(&asks, Code::CONTENT, &options, part(index));
    }
    stage.peer.wait("the first answer", |record| record.answers.len() == 2);
    stage.ignore(30);
    assert_eq!(named(&stage), [Some(2), Some(1)]);
    assert!(stage.peer.record.answers[1].intact && stage.peer.record.answers[1].payload_bytes == 2_500);
}

#[test]
fn blocks_that_do_not_belong_together_are_no_answer() {
    let (mut stage, id, request) = asked(Qos::AtLeastOnce, 24);
    let body = reply(&request, 2_000);
    let more = [Block { number: 0, more: true, exponent: 6 }.value() as u8];
    let last = [Block { number: 1, more: false, exponent: 6 }.value() as u8];
    stage.reply(&request, Code::CONTENT, &[(number::ETAG, b"x"), (number::BLOCK2, &more)], &body[..1_024]);
    let asks = stage.hear();
    stage.reply(&asks, Code::CONTENT, &[(number::ETAG, b"y"), (number::BLOCK2, &last)], &body[1_024..]);
    stage.ignore(50);
    assert_eq!((named(&stage), stage.peer.record.causes(id)), (vec![], vec![]));
}

#[test]
fn a_responder_that_vanishes_ends_the_session_with_what_is_known() {
    // Its port is closed: the kernel says so.
    let (mut stage, id, request) = asked(Qos::AtLeastOnce, 24);
    stage.peer.send(id, 24);
    stage.hear_other_than(&request);
    stage.say_empty(Kind::Acknowledgement, request.id());
    stage.peer.linger(20);
    stage.vanish();
    stage.peer.wait("told", |record| record.causes(id).len() == 1);
    assert!(matches!(&stage.peer.record.causes(id)[0], Cause::Dropped(words) if words.contains("refused")));
    assert_count_eq!((outcomes(&stage), stage.peer.record.unanswered()), (vec![Ok(())], 1));
    assert_eq!(stage.peer.offer(id, 24), SendOutcome::WouldBlock);
    // It is there and says nothing.
    let (mut stage, id, _) = asked(Qos::AtLeastOnce, 24);
    stage.peer.wait("told", |record| record.causes(id).len() == 1);
    assert_eq!((stage.peer.record.causes(id), stage.peer.record.unanswered()), (vec![Cause::Silent], 1));
}

#[test]
fn what_was_not_written_when_a_session_ends_is_told() {
    let (mut stage, id, _) = asked(Qos::AtLeastOnce, 3_000);
    stage.peer.send(id, 24);
    stage.peer.leave(id, Goodbye::Graceful);
    let abandoned = stage.peer.record.all(|event| match event {
        Event::Abandoned(_, token) => Some(*token),
        _ => None,
    });
    assert_count_eq!(abandoned, [1, 2].map(|sequence| Token { publication: 0, sequence }));
    assert_count_eq!((stage.peer.record.written(), stage.peer.clients.unsent_bytes()), (0, 0));
}
