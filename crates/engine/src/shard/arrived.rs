//! What had arrived by the end of the drain, in the queue behind a client library.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Event, Sink};

/// Passes on all events, but of the messages only those that had arrived by a time.
pub struct ArrivedBy<S> {
    sink: S,
    by_ns: u64,
    /// There is no time left to handle messages: they are only counted.
    only_counts: bool,
    /// Messages that had arrived by then.
    pub arrived: u64,
    /// Messages that arrived later.
    pub later: u64,
}

impl<S: Sink> ArrivedBy<S> {
    /// Without events.
    pub fn new(sink: S, by_ns: u64, only_counts: bool) -> ArrivedBy<S> {
        ArrivedBy { sink, by_ns, only_counts, arrived: 0, later: 0 }
    }
}

impl<S: Sink> Sink for ArrivedBy<S> {
    fn event(&mut self, session: SessionId, event: Event<'_>) {
        if let Event::Delivered(delivery) | Event::Requested { delivery, .. } | Event::Replied { delivery, .. } = &event
        {
            // A reader that is polled has no times of arrival: what it may have had by then counts.
            let is_later = delivery.absent_at_ns().unwrap_or(delivery.at_ns) > self.by_ns;
            *if is_later { &mut self.later } else { &mut self.arrived } += 1;
            if is_later || self.only_counts {
                return;
            }
        }
        self.sink.event(session, event);
    }

    fn is_at_work(&self, session: SessionId) -> bool {
        self.sink.is_at_work(session)
    }
}

#[cfg(test)]
mod tests {
    use pubmark_protocol::events::Delivery;

    use super::*;

    /// Numbers of events: deliveries, others.
    #[derive(Default)]
    struct Counts(u64, u64);

    impl Sink for Counts {
        fn event(&mut self, _: SessionId, event: Event<'_>) {
            *if matches!(event, Event::Delivered(_)) { &mut self.0 } else { &mut self.1 } += 1;
        }
    }

    /// Passes on what arrived at 9, 10 and 11 ns; the end was at 10 ns.
    fn passed_on(only_counts: bool) -> ArrivedBy<Counts> {
        let mut arrived = ArrivedBy::new(Counts::default(), 10, only_counts);
        for at_ns in [9, 10, 11] {
            arrived.event(SessionId(0), Event::Delivered(Delivery { at_ns, ..Delivery::default() }));
        }
        arrived.event(SessionId(0), Event::Writable);
        arrived
    }

    #[test]
    fn a_message_that_arrived_after_the_end_is_not_delivered() {
        let ArrivedBy { sink: Counts(deliveries, others), arrived, later, .. } = passed_on(false);
        assert_eq!((deliveries, others, arrived, later), (2, 1, 2, 1));
    }

    #[test]
    fn what_a_polled_reader_may_have_had_at_the_end_is_delivered() {
        let mut arrived = ArrivedBy::new(Counts::default(), 10, false);
        for empty_at_ns in [9, 10, 11] {
            let delivery = Delivery { at_ns: 12, empty_at_ns: Some(empty_at_ns), ..Delivery::default() };
            arrived.event(SessionId(0), Event::Delivered(delivery));
        }
        assert_eq!((arrived.sink.0, arrived.arrived, arrived.later), (2, 2, 1));
    }

    #[test]
    fn without_time_left_messages_are_only_counted() {
        let ArrivedBy { sink: Counts(deliveries, others), arrived, later, .. } = passed_on(true);
        assert_eq!((deliveries, others, arrived, later), (0, 1, 2, 1));
    }
}
