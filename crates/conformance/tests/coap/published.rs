//! Publishing against a server that answers as it likes.

use pubmark_conformance::peer::{publisher, session};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SendOutcome};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::script::{Heard, Stage, response};

fn says(qos: Qos) -> pubmark_protocol::clients::SessionConfig {
    publisher("says", "a/b", qos)
}

fn outcomes(stage: &Stage) -> Vec<Result<(), Reason>> {
    stage.peer.record.all(|event| match event {
        Event::Acknowledged(_, _, outcome) => Some(outcome.clone()),
        _ => None,
    })
}

/// Publishes and gives the request.
fn publish(stage: &mut Stage, id: pubmark_protocol::clients::SessionId, bytes: u32) -> Heard {
    stage.peer.send(id, bytes);
    let heard = stage.hear();
    assert_eq!(heard.message().code, Code::PUT);
    heard
}

#[test]
fn nobody_is_open_before_the_server_has_answered() {
    let mut stage = Stage::new();
    let (id, ping) = stage.begin(session("opens"));
    stage.say_empty(Kind::Reset, ping.id().wrapping_add(1));
    let again = stage.hear();
    assert_eq!(again.bytes, ping.bytes, "the answer to another message is none");
    assert_eq!(stage.peer.record.connects(id), []);
    stage.say_empty(Kind::Reset, ping.id());
    stage.peer.wait("connected", |record| record.connects(id).len() == 1);
    for garbage in [&b"+OK\r\n"[..], b"\x16\x03\x01\x02\x00", &[0x40], &[], &[0x49, 1, 0, 0]] {
        let (id, _) = stage.begin(session("garbage"));
        stage.say(garbage);
        stage.peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(stage.peer.record.causes(id)[..], [Cause::Protocol(_)]));
    }
}

#[test]
fn a_message_without_an_answer_is_sent_again_byte_by_byte_and_counted_once() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    let first = publish(&mut stage, id, 100);
    assert_eq!((first.message().kind, first.message().payload.len()), (Kind::Confirmable, 100));
    for _ in 0..3 {
        assert_eq!(stage.hear().bytes, first.bytes);
    }
    assert_count_eq!(stage.peer.record.written(), 1);
    stage.reply(&first, Code::CHANGED, &[], b"");
    stage.reply(&first, Code::CHANGED, &[], b"");
    stage.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    stage.ignore(100);
    assert_eq!(outcomes(&stage), [Ok(())]);
}

#[test]
fn answers_to_something_else_are_not_taken() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    let sent = publish(&mut stage, id, 16);
    let mut other = sent.token().to_vec();
    other[2] ^= 1;
    let (code, ack) = (Code::CHANGED, Kind::Acknowledgement);
    stage.say(&response(ack, code, sent.id(), &other, &[], b""));
    stage.say(&response(ack, code, sent.id() ^ 1, sent.token(), &[], b""));
    stage.say(&response(Kind::NonConfirmable, code, 5, &[1, 2, 3, 4, 5, 6, 7, 8], &[], b""));
    assert!(stage.hear_other_than(&sent).is_empty(Kind::Reset, 5), "an unknown token is rejected");
    stage.say(&response(Kind::Confirmable, code, 6, &other, &[], b""));
    assert!(stage.hear_other_than(&sent).is_empty(Kind::Reset, 6));
    assert_eq!(outcomes(&stage), []);
    stage.reply(&sent, code, &[], b"");
    stage.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    assert_eq!(stage.peer.record.causes(id), []);
}

#[test]
fn an_answer_may_come_behind_its_acknowledgement() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    let sent = publish(&mut stage, id, 16);
    stage.say_empty(Kind::Acknowledgement, sent.id());
    stage.ignore(500);
    assert!(stage.look().is_none(), "what is acknowledged is not sent again");
    let separate = response(Kind::Confirmable, Code::CREATED, 900, sent.token(), &[], b"");
    for _ in 0..2 {
        stage.say(&separate);
        assert!(stage.hear().is_empty(Kind::Acknowledgement, 900), "each copy is acknowledged");
    }
    assert_eq!(outcomes(&stage), [Ok(())]);
}

#[test]
fn refusals_are_told_in_the_servers_words() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    let sent = publish(&mut stage, id, 16);
    stage.reply(&sent, Code::NOT_FOUND, &[], b"");
    let sent = publish(&mut stage, id, 16);
    stage.reply(&sent, Code::new(5, 0), &[], b"out of memory");
    let sent = publish(&mut stage, id, 16);
    stage.say_empty(Kind::Reset, sent.id());
    let sent = publish(&mut stage, id, 16);
    stage.reply(&sent, Code::CONTINUE, &[], b"");
    stage.peer.wait("all", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 4);
    let words =
        ["4.04 Not Found", "5.00 Internal Server Error: out of memory", "rejected with a reset", "2.31 Continue"];
    assert_eq!(outcomes(&stage), words.map(|words| Err(Reason::words(words))));
}

#[test]
fn at_best_effort_only_refusals_are_heard() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::BestEffort));
    let sent = publish(&mut stage, id, 16);
    let message = sent.message();
    assert_eq!((message.kind, message.options.get(number::NO_RESPONSE)), (Kind::NonConfirmable, Some(&[2][..])));
    let non = Kind::NonConfirmable;
    stage.say(&response(non, Code::CHANGED, 1, sent.token(), &[], b""));
    stage.say(&response(non, Code::new(4, 3), 2, sent.token(), &[], b""));
    stage.say(&response(non, Code::new(4, 3), 2, sent.token(), &[], b""));
    stage.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 1);
    stage.ignore(100);
    assert_eq!(outcomes(&stage), [Err(Reason::words("4.03 Forbidden"))]);
}

#[test]
fn a_large_message_goes_in_blocks_of_the_size_that_the_server_wants() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    let mut block = publish(&mut stage, id, 3_000);
    assert_eq!(stage.peer.offer(id, 16), SendOutcome::WouldBlock, "one after another");
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
            assert_count_eq!(stage.peer.record.acknowledged(), 0);
            stage.reply(&block, Code::CHANGED, &options, b"");
            break;
        }
        stage.reply(&block, Code::CONTINUE, &options, b"");
        // A copy of the answer changes nothing.
        stage.reply(&block, Code::CONTINUE, &options, b"");
        block = stage.hear();
    }
    stage.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    assert_count_eq!((whole.len(), stage.peer.record.written()), (3_000, 1));
    assert_eq!(sizes, [1_024, 256, 256, 256, 256, 256, 256, 256, 184]);
    let body = &whole[24..];
    assert!(body.windows(2).all(|pair| usize::from(pair[1]) == (usize::from(pair[0]) + 1) % 251));
    assert_eq!(stage.peer.record.count(|event| *event == Event::Writable(id)), 1);
}

#[test]
fn a_large_message_refused_at_its_first_block_is_refused_at_every_level() {
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let mut stage = Stage::new();
        let id = stage.open(says(qos));
        let block = publish(&mut stage, id, 3_000);
        assert_eq!(block.message().options.get(number::SIZE1), Some(&[0x0b, 0xb8][..]));
        stage.reply(&block, Code::REQUEST_ENTITY_TOO_LARGE, &[], b"");
        stage.peer.wait("refused", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 1);
        assert_eq!(outcomes(&stage), [Err(Reason::words("4.13 Request Entity Too Large"))]);
        assert_count_eq!(stage.peer.record.written(), 1, "the server had a say in it");
        // The session goes on.
        publish(&mut stage, id, 16);
    }
}

#[test]
fn what_is_never_answered_is_unknown_and_a_silent_server_ends_the_session() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    let first = publish(&mut stage, id, 16);
    let second = publish(&mut stage, id, 16);
    // The server lives: it answers the second one, after all repetitions of the first it is known that it never will that.
    let mut copies = 0;
    while stage.peer.record.unanswered() == 0 {
        stage.peer.linger(5);
        match stage.look() {
            Some(heard) if heard.bytes == first.bytes => {
                copies += 1;
                if copies == 4 {
                    stage.reply(&second, Code::CHANGED, &[], b"");
                }
            }
            Some(heard) => assert!(heard.bytes == second.bytes || heard.message().code == Code::EMPTY),
            None => {}
        }
        assert_count!(copies <= 4, "more than MAX_RETRANSMIT");
    }
    assert_eq!((copies, stage.peer.record.acknowledged(), stage.peer.record.causes(id)), (4, 1, vec![]));
    publish(&mut stage, id, 16);
    stage.peer.wait("closed", |record| !record.causes(id).is_empty());
    assert_eq!((stage.peer.record.causes(id), stage.peer.record.unanswered()), (vec![Cause::Silent], 2));
}

#[test]
fn an_end_leaves_what_was_written_unknown() {
    let mut stage = Stage::new();
    let id = stage.open(says(Qos::AtLeastOnce));
    publish(&mut stage, id, 16);
    let block = publish(&mut stage, id, 3_000);
    assert!(block.message().payload.len() == 1_024);
    stage.peer.leave(id, Goodbye::Cut);
    let record = &stage.peer.record;
    let abandoned = record.count(|event| matches!(event, Event::Abandoned(..)));
    assert_eq!((record.unanswered(), abandoned, record.causes(id)), (1, 1, vec![Cause::Ours]));
}
