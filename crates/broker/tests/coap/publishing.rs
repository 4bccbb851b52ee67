//! Publications: accepted, refused, repeated.

use pubmark_testing::assert_count_eq;
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::client::{Client, Running};

#[test]
fn a_topic_is_made_changed_and_read() {
    let running = Running::start(|_| {});
    let mut client = Client::of(&running);
    assert_eq!(client.ask(Code::GET, "a/b", &[], b"").code(), Code::NOT_FOUND);
    assert_eq!((client.put("a/b", b"one"), client.put("a/b", b"two")), (Code::CREATED, Code::CHANGED));
    let read = client.ask(Code::GET, "a/b", &[], b"");
    assert_eq!((read.code(), read.message().payload, read.observe()), (Code::CONTENT, &b"two"[..], None));
    // `/.well-known/core` lists where topics are.
    let mut out = Vec::new();
    let mut writer = pubmark_wire::coap::Writer::new(Kind::Confirmable, Code::GET, 7, &[], &mut out);
    writer.option(number::URI_PATH, b".well-known");
    writer.option(number::URI_PATH, b"core");
    writer.end(b"");
    client.say(&out);
    assert_eq!(client.hear().message().payload, b"</ps>;rt=\"core.ps\"");
    assert_count_eq!(running.end().published, 2);
}

#[test]
fn stored_publications_take_limited_memory_and_a_topic_has_its_last_one_or_none() {
    let running = Running::start(|settings| settings.maximum_kept_bytes = 100);
    let mut client = Client::of(&running);
    assert_eq!((client.put("a", b"old"), client.put("b", &[7; 200])), (Code::CREATED, Code::CREATED));
    assert_eq!(client.put("a", b"new"), Code::CHANGED);
    assert_eq!(client.ask(Code::GET, "a", &[], b"").code(), Code::NOT_FOUND);
    assert_eq!((client.put("b", b"short"), client.put("a", b"new")), (Code::CHANGED, Code::CREATED));
    assert_eq!(client.ask(Code::GET, "a", &[], b"").message().payload, b"new");
    assert_count_eq!(running.end().not_kept, 1);
}

#[test]
fn what_cannot_be_taken_is_refused_with_its_code() {
    let running = Running::start(|settings| settings.maximum_payload_bytes = 2_000);
    let mut client = Client::of(&running);
    for (code, topic, options, expected) in [
        (Code::PUT, "a/+", &[][..], Code::BAD_REQUEST),
        (Code::PUT, "a/#", &[], Code::BAD_REQUEST),
        (Code::GET, "a", &[(number::OBSERVE, &[][..]), (number::BLOCK2, &[7])], Code::BAD_REQUEST),
        (Code::DELETE, "a", &[], Code::METHOD_NOT_ALLOWED),
        (Code::POST, "a", &[], Code::METHOD_NOT_ALLOWED),
        (Code::PUT, "a", &[(1, b"etag")], Code::BAD_OPTION),
        (Code::PUT, "a", &[(15, b"query")], Code::BAD_OPTION),
        (Code::PUT, "a", &[(35, b"coap://elsewhere")], Code::PROXYING_NOT_SUPPORTED),
        (Code::PUT, "a", &[(number::BLOCK1, &[0x1e])], Code::REQUEST_ENTITY_INCOMPLETE),
        (Code::PUT, "a", &[(number::BLOCK1, &[0x0f])], Code::BAD_REQUEST),
        (Code::PUT, "a", &[(number::BLOCK1, &[0x0e]), (number::SIZE1, &[0x0b, 0xb8])], Code::REQUEST_ENTITY_TOO_LARGE),
    ] {
        let heard = client.ask(code, topic, options, b"x");
        assert_eq!(heard.code(), expected, "{code} {topic} {options:02x?}");
    }
    let elective: &[(u16, &[u8])] = &[(12, &[42]), (14, &[60]), (2_048, b"unknown")];
    assert_eq!(client.ask(Code::PUT, "a", elective, b"x").code(), Code::CREATED, "elective options are ignored");
    let long = client.ask(Code::GET, &format!("{0}/{0}/#/{0}", "x".repeat(100)), &[(number::OBSERVE, &[])], b"");
    assert_eq!(long.code(), Code::BAD_REQUEST, "`#` is the last level or none");
    let statistics = running.end();
    assert_count_eq!((statistics.published, statistics.refused), (1, 12));
}

#[test]
fn a_publication_that_comes_twice_is_answered_twice_and_published_once() {
    let running = Running::start(|_| {});
    let (mut client, mut observer) = (Client::of(&running), Client::of(&running));
    observer.observe("a");
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        let request = client.request(kind, Code::PUT, "a", &[], b"x");
        client.say(&request);
        client.say(&request);
        let (first, second) = (client.hear(), client.hear());
        assert_eq!(first.code(), second.code());
        let heard = observer.hear();
        assert_eq!(heard.message().payload, b"x");
        observer.say_empty(Kind::Acknowledgement, heard.message().message_id);
        observer.hears_nothing();
    }
    let statistics = running.end();
    assert_count_eq!((statistics.published, statistics.repeated_requests, statistics.notified), (2, 2, 2));
}

#[test]
fn answers_that_the_client_does_without_are_not_sent() {
    let running = Running::start(|_| {});
    let mut client = Client::of(&running);
    let silent = [(number::NO_RESPONSE, &[2][..])];
    let request = client.request(Kind::NonConfirmable, Code::PUT, "a", &silent, b"x");
    client.say(&request);
    client.hears_nothing();
    let request = client.request(Kind::NonConfirmable, Code::PUT, "a/+", &silent, b"x");
    client.say(&request);
    assert_eq!(client.hear().code(), Code::BAD_REQUEST, "a refusal is of interest");
    let acknowledged = client.request(Kind::Confirmable, Code::PUT, "a", &silent, b"x");
    client.say(&acknowledged);
    assert_eq!((client.hear().code(), running.end().published), (Code::EMPTY, 2));
}

#[test]
fn blocks_become_one_payload_and_are_bounded() {
    let running = Running::start(|settings| settings.maximum_payload_bytes = 40);
    let mut client = Client::of(&running);
    let mut send = |number: u32, more: bool, payload: &[u8]| {
        let value = [Block { number, more, exponent: 0 }.value() as u8];
        let heard = client.ask(Code::PUT, "big", &[(number::BLOCK1, &value)], payload);
        let told = heard.message().options.get(number::BLOCK1).and_then(Block::read).unwrap();
        (heard.code(), told.number, told.more)
    };
    assert_eq!(send(0, true, &[1; 16]), (Code::CONTINUE, 0, true));
    assert_eq!(send(1, true, &[2; 16]), (Code::CONTINUE, 1, true));
    assert_eq!(send(2, false, &[3; 8]), (Code::CREATED, 2, false));
    assert_eq!(send(0, true, &[1; 16]), (Code::CONTINUE, 0, true));
    assert_eq!(send(1, true, &[2; 16]), (Code::CONTINUE, 1, true));
    assert_eq!(send(2, false, &[3; 9]), (Code::REQUEST_ENTITY_TOO_LARGE, 2, false));
    assert_eq!(send(2, false, &[3; 8]), (Code::REQUEST_ENTITY_INCOMPLETE, 2, false), "what was refused is forgotten");
    let read = client.ask(Code::GET, "big", &[], b"");
    assert_eq!(read.message().payload, [&[1; 16][..], &[2; 16], &[3; 8]].concat());
    assert_count_eq!(running.end().published, 1);
}

#[test]
fn garbage_is_counted_and_a_ping_is_answered() {
    let running = Running::start(|_| {});
    let client = Client::of(&running);
    for garbage in [&[][..], &[1, 2, 3], b"\x16\x03\x01\x02\x00", &[0x50, 1, 0, 0, 0xff], &[0x59; 40]] {
        client.say(garbage);
    }
    client.hears_nothing();
    client.say(&[0x40, 1, 0, 7, 0xff]);
    let heard = client.hear();
    assert_eq!((heard.message().kind, heard.message().message_id), (Kind::Reset, 7), "it waits for an answer");
    client.say(&[0x40, 0, 0, 9]);
    let heard = client.hear();
    assert_eq!((heard.message().kind, heard.message().message_id), (Kind::Reset, 9));
    assert!(running.end().malformed >= 5);
}
