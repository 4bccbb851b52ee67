//! A client program that reports writes in another order than that of the messages.

use std::time::Duration;

use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;

use super::{ONE_TO_ONE, Simulation};

/// The message whose write is reported after the refusal of the next one. It is never acknowledged.
const LATE: u32 = 5;

#[test]
fn a_message_that_is_written_and_refused_before_an_earlier_write_is_counted() {
    let simulation = Simulation::new(ONE_TO_ONE, Duration::from_secs(1));
    {
        let mut broker = simulation.broker.borrow_mut();
        broker.reports_written_after = Box::new(|sequence| if sequence == LATE { 15_000_000 } else { 0 });
        broker.acknowledges = Box::new(|sequence| match sequence {
            LATE => None,
            _ if sequence == LATE + 1 => Some(Err(Reason::words("full"))),
            _ => Some(Ok(())),
        });
    }
    let ended = simulation.run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    assert_count_eq!((delivery.offered, delivery.refused, delivery.sent), (broker.published, 1, broker.published - 1));
    assert_count_eq!((delivery.expected, delivery.delivered), (delivery.sent, delivery.sent));
    assert_count_eq!((delivery.lost, delivery.unknown, delivery.unsent), (0, 0, 0));
}
