//! The end of the drain while deliveries arrive that nobody expects.

use std::time::Duration;

use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;

use super::Simulation;

#[test]
fn deliveries_of_refused_messages_do_not_stand_for_those_that_are_still_missing() {
    let workload = "
name: virtual
devices:
  - {name: device, arrival: periodic, every: 10ms, payload: 100B, topic: 'v/{device}', qos: 1}
subscribers:
  - {name: subscriber, count: 2, filters: ['v/#'], qos: 1}
";
    let simulation = Simulation::new(workload, Duration::from_secs(1));
    {
        let mut broker = simulation.broker.borrow_mut();
        let refusal = Reason::code(0x97, "quota exceeded");
        broker.acknowledges =
            Box::new(move |sequence| Some(if sequence % 2 == 0 { Err(refusal.clone()) } else { Ok(()) }));
        broker.delivers_refused = true;
        // One subscriber receives everything at once, the other one after a second.
        broker.copy_delays = Box::new(|_, _, (_, session)| vec![if session.0 == 0 { 100_000 } else { 1_000_000_000 }]);
    }
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert!(delivery.refused > 40, "{delivery:?}");
    assert_count_eq!((delivery.lost, delivery.delivered), (0, 2 * delivery.sent));
    assert_count_eq!(delivery.delivered_after_refusal, 2 * delivery.refused);
}
