//! A system that refuses a message after it accepted it, or a request after it delivered the reply.

use std::time::Duration;

use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;

use super::{Ended, Simulation};

const REQUESTS: &str = "
name: virtual
devices: []
subscribers: []
requesters:
  - {name: asks, rate: 100/s, payload: 100B, topic: 'q/{device}', qos: 1, timeout: 500ms}
responders:
  - {name: answers, filters: ['q/+'], qos: 1}
";

/// Requests of which the even ones are refused after 0.1 ms, and all are replied to after this time.
fn refused_and_answered(replied_after_ns: u64) -> Ended {
    let simulation = Simulation::new(REQUESTS, Duration::from_secs(2));
    {
        let mut broker = simulation.broker.borrow_mut();
        let refusal = Reason::code(0x97, "quota exceeded");
        broker.acknowledges =
            Box::new(move |sequence| Some(if sequence % 2 == 0 { Err(refusal.clone()) } else { Ok(()) }));
        broker.replies = Box::new(move |_| Some(replied_after_ns));
    }
    simulation.run()
}

#[test]
fn a_request_with_a_reply_before_its_refusal_was_not_refused() {
    let ended = refused_and_answered(50_000);
    let delivery = &ended.outcome.books.delivery;
    let requests = ended.outcome.requests.as_ref().map(|requests| &requests.figures.outcomes);
    let answered = requests.map(|books| (books.sent, books.answered, books.late, books.timed_out));
    assert_count_eq!(delivery.refused, 0);
    assert_count_eq!(answered, Some((200, 200, 0, 0)));
}

#[test]
fn a_reply_to_a_refused_request_does_not_change_the_refusal() {
    let ended = refused_and_answered(150_000);
    let delivery = &ended.outcome.books.delivery;
    let requests = ended.outcome.requests.as_ref().map(|requests| &requests.figures.outcomes);
    let answered = requests.map(|books| (books.sent, books.answered, books.late, books.timed_out));
    assert_count_eq!((delivery.offered, delivery.refused, delivery.sent), (200, 100, 100));
    assert_count_eq!(answered, Some((100, 100, 0, 0)));
}

#[test]
fn refused_messages_move_from_sent_to_refused_and_are_not_expected() {
    let workload = "
name: virtual
devices:
  - {name: device, count: 4, arrival: periodic, every: 10ms, payload: 100B, topic: 'v/{device}', qos: 1}
subscribers:
  - {name: subscriber, filters: ['v/#'], qos: 1}
";
    let simulation = Simulation::new(workload, Duration::from_secs(1));
    let refusal = Reason::code(0x97, "quota exceeded");
    simulation.broker.borrow_mut().acknowledges =
        Box::new(move |sequence| Some(if sequence % 4 == 0 { Err(refusal.clone()) } else { Ok(()) }));
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!((delivery.offered, delivery.sent, delivery.refused), (400, 300, 100));
    assert_count_eq!((delivery.expected, delivery.delivered, delivery.lost), (300, 300, 0));
    assert_count_eq!(delivery.prevented, 100);
}

#[test]
fn a_refused_message_prevents_a_delivery_to_each_of_its_subscribers() {
    let workload = "
name: virtual
devices:
  - {name: heard, arrival: periodic, every: 10ms, payload: 100B, topic: 'v/a', qos: 1}
  - {name: alone, arrival: periodic, every: 10ms, payload: 100B, topic: 'w/b', qos: 1}
subscribers:
  - {name: subscriber, count: 2, filters: ['v/#'], qos: 1}
";
    let simulation = Simulation::new(workload, Duration::from_secs(1));
    let refusal = Reason::code(0x97, "quota exceeded");
    simulation.broker.borrow_mut().acknowledges = Box::new(move |_| Some(Err(refusal.clone())));
    let ended = simulation.run();
    let books = &ended.outcome.books;
    assert_count_eq!((books.delivery.refused, books.delivery.expected, books.delivery.prevented), (200, 0, 200));
    assert_count_eq!([books.groups[0].delivery.prevented, books.groups[1].delivery.prevented], [200, 0]);
}
