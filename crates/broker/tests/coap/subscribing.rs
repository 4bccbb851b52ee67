//! Subscriptions and their notifications.

use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::client::{Client, Heard, Running};

fn acknowledge(client: &Client, heard: &Heard) {
    client.say_empty(Kind::Acknowledgement, heard.message().message_id);
}

#[test]
fn an_observer_is_notified_in_the_requested_manner() {
    let running = Running::start(|_| {});
    let (mut says, mut hears) = (Client::of(&running), Client::of(&running));
    for (kind, filter) in [(Kind::Confirmable, "a/+/c"), (Kind::NonConfirmable, "a/#")] {
        let request = hears.request(kind, Code::GET, filter, &[(number::OBSERVE, &[])], b"");
        hears.say(&request);
        let granted = hears.hear();
        assert_eq!((granted.code(), granted.message().payload), (Code::CONTENT, &b""[..]));
        let before = granted.observe().unwrap();
        for (number, payload) in [(1, b"x"), (2, b"y")] {
            says.put("a/b/c", payload);
            let heard = hears.hear();
            let message = heard.message();
            assert_eq!((message.kind, message.code, message.token), (kind, Code::CONTENT, &b"tok"[..]));
            assert_eq!((message.payload, heard.observe()), (&payload[..], Some(before + number)));
            if kind == Kind::Confirmable {
                acknowledge(&hears, &heard);
            }
        }
        let left = hears.ask(Code::GET, filter, &[(number::OBSERVE, &[1])], b"");
        assert_eq!(left.observe(), None);
        says.put("a/b/c", b"z");
        hears.hears_nothing();
    }
    assert_eq!(running.end().subscribed, 2);
}

#[test]
fn the_next_notification_waits_for_the_acknowledgement_and_comes_in_order() {
    let running = Running::start(|settings| settings.maximum_queued_messages = 3);
    let (mut says, mut hears) = (Client::of(&running), Client::of(&running));
    hears.observe("a");
    for number in 0..6 {
        says.put("a", &[number]);
    }
    let first = hears.hear();
    let again = hears.hear();
    assert_eq!((first.0.clone(), first.message().payload), (again.0, &[0][..]), "repeated until it is acknowledged");
    acknowledge(&hears, &first);
    for expected in 1..4 {
        let heard = hears.hear();
        assert_eq!(heard.message().payload, [expected]);
        acknowledge(&hears, &heard);
    }
    hears.hears_nothing();
    let statistics = running.end();
    assert_count_eq!((statistics.notified, statistics.dropped_queued), (4, 2), "{statistics:?}");
}

#[test]
fn a_token_that_is_used_again_replaces_what_was_observed_with_it() {
    let running = Running::start(|_| {});
    let (mut says, mut hears) = (Client::of(&running), Client::of(&running));
    hears.observe("a");
    hears.observe("b");
    says.put("a", b"x");
    says.put("b", b"y");
    let heard = hears.hear();
    assert_eq!(heard.message().payload, b"y");
    acknowledge(&hears, &heard);
    hears.hears_nothing();
    assert_count_eq!(running.end().notified, 1);
}

#[test]
fn who_rejects_a_notification_observes_no_longer() {
    let running = Running::start(|_| {});
    let (mut says, mut hears) = (Client::of(&running), Client::of(&running));
    hears.observe("a");
    says.put("a", b"x");
    hears.say_empty(Kind::Reset, hears.hear().message().message_id);
    // When the broker responds to this request it has read the reset before it.
    hears.ask(Code::GET, "a", &[], b"");
    says.put("a", b"y");
    hears.hears_nothing();
    assert_eq!(running.end().observers_rejecting, 1);
}

#[test]
fn who_answers_nothing_observes_no_longer() {
    let running = Running::start(|settings| settings.times.acknowledge_ns = 20_000_000);
    let (mut says, mut hears) = (Client::of(&running), Client::of(&running));
    hears.observe("a");
    says.put("a", b"x");
    let copies: Vec<Heard> = (0..5).map(|_| hears.hear()).collect();
    assert_count!(copies.windows(2).all(|pair| pair[0].0 == pair[1].0), "the first and four repetitions");
    // The last wait is up to 32 × 30 ms.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    says.put("a", b"y");
    hears.hears_nothing();
    let statistics = running.end();
    assert_eq!((statistics.observers_silent, statistics.repeated), (1, 4));
}

#[test]
fn a_large_publication_is_fetched_as_it_was_whatever_comes_after_it() {
    let running = Running::start(|_| {});
    let (mut says, mut hears) = (Client::of(&running), Client::of(&running));
    hears.observe("+");
    let large: Vec<u8> = (0..2_500).map(|index| (index % 251) as u8).collect();
    for (number, part) in large.chunks(1_024).enumerate() {
        let value = [Block { number: number as u32, more: number < 2, exponent: 6 }.value() as u8];
        says.ask(Code::PUT, "a", &[(number::BLOCK1, &value)], part);
    }
    says.put("a", b"small");
    let first = hears.hear();
    let block = first.message().options.get(number::BLOCK2).and_then(Block::read).unwrap();
    assert_eq!((block.number, block.more, first.message().kind), (0, true, Kind::Confirmable));
    acknowledge(&hears, &first);
    hears.hears_nothing();
    let etag = first.message().options.get(number::ETAG);
    let second = hears.ask(Code::GET, "+", &[(number::BLOCK2, &[0x16])], b"");
    assert_eq!((second.message().payload, second.message().options.get(number::ETAG)), (&large[1_024..2_048], etag));
    // The last one comes in a message of its own, and is retransmitted until it is acknowledged.
    let request = hears.request(Kind::Confirmable, Code::GET, "+", &[(number::BLOCK2, &[0x26])], b"");
    hears.say(&request);
    assert_eq!(hears.hear().code(), Code::EMPTY);
    let last = hears.hear();
    assert_eq!((last.message().kind, last.message().payload), (Kind::Confirmable, &large[2_048..]));
    assert_eq!(hears.hear().0, last.0);
    acknowledge(&hears, &last);
    let next = hears.hear();
    assert_eq!(next.message().payload, b"small");
    acknowledge(&hears, &next);
    let statistics = running.end();
    assert_count_eq!((statistics.notified, statistics.dropped_unfetched), (2, 0));
}
