//! Confirmable messages (RFC 7252 §4.2): when one is sent again, and when it is given up.

/// The message layer's times (RFC 7252 §4.8). Everything else follows from these three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// ACK_TIMEOUT, ns: first wait for an acknowledgement, stretched by up to a half at random.
    pub acknowledge_ns: u64,
    /// MAX_RETRANSMIT: repetitions at most.
    pub repetitions: u8,
    /// MAX_LATENCY, ns: longest time that a datagram may be in flight.
    pub latency_ns: u64,
}

impl Times {
    /// The values of RFC 7252 §4.8.
    pub const STANDARD: Times = Times { acknowledge_ns: 2_000_000_000, repetitions: 4, latency_ns: 100_000_000_000 };

    /// MAX_TRANSMIT_SPAN, ns: from the first transmission to the last repetition, 45 s.
    pub const fn transmit_span_ns(self) -> u64 {
        self.acknowledge_ns * ((1 << self.repetitions) - 1) / 2 * 3
    }

    /// EXCHANGE_LIFETIME, ns: as long as a message identifier of a confirmable message is not used again, 247 s.
    pub const fn exchange_lifetime_ns(self) -> u64 {
        self.transmit_span_ns() + 2 * self.latency_ns + self.acknowledge_ns
    }

    /// NON_LIFETIME, ns: the same for messages sent once, 145 s.
    pub const fn once_lifetime_ns(self) -> u64 {
        self.transmit_span_ns() + self.latency_ns
    }
}

/// What is to be done about a message at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet.
    Wait,
    /// Send it again, with the same identifier.
    Repeat,
    /// There was no response.
    GiveUp,
}

/// A confirmable message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    due_ns: u64,
    timeout_ns: u64,
    repeated: u8,
    acknowledged: bool,
}

impl Exchange {
    /// First sent at `now_ns`; `random` is any number, of which the upper half is used.
    pub fn start(times: &Times, now_ns: u64, random: u64) -> Exchange {
        let stretch = (u128::from(times.acknowledge_ns / 2) * u128::from(random >> 32)) >> 32;
        let timeout_ns = times.acknowledge_ns + stretch as u64;
        Exchange { due_ns: now_ns + timeout_ns, timeout_ns, repeated: 0, acknowledged: false }
    }

    /// Time of the next change in [`Exchange::step`].
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// An acknowledgement without the response came: it is not sent again, and the response has the lifetime of an
    /// exchange to come (RFC 7252 §5.2.2 names no time).
    pub fn acknowledge(&mut self, times: &Times, now_ns: u64) {
        if !self.acknowledged {
            self.acknowledged = true;
            self.due_ns = now_ns + times.exchange_lifetime_ns();
        }
    }

    /// What is to be done now; a repetition is counted as done.
    pub fn step(&mut self, times: &Times, now_ns: u64) -> Step {
        if now_ns < self.due_ns {
            Step::Wait
        } else if self.acknowledged || self.repeated >= times.repetitions {
            Step::GiveUp
        } else {
            self.repeated += 1;
            self.timeout_ns *= 2;
            self.due_ns = now_ns + self.timeout_ns;
            Step::Repeat
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times::STANDARD;

    #[test]
    fn the_times_are_those_of_the_standard() {
        assert_eq!(TIMES.transmit_span_ns(), 45_000_000_000);
        assert_eq!(TIMES.exchange_lifetime_ns(), 247_000_000_000);
        assert_eq!(TIMES.once_lifetime_ns(), 145_000_000_000);
    }

    #[test]
    fn a_message_is_repeated_four_times_at_doubled_distances() {
        for (random, first_ns) in [(0, 2_000_000_000), (u64::MAX, 2_999_999_999)] {
            let mut exchange = Exchange::start(&TIMES, 0, random);
            let mut now_ns = 0;
            for wait in 0..4 {
                let due_ns = exchange.due_ns();
                assert_eq!(due_ns - now_ns, first_ns << wait);
                assert_eq!(exchange.step(&TIMES, due_ns - 1), Step::Wait);
                assert_eq!(exchange.step(&TIMES, due_ns), Step::Repeat);
                now_ns = due_ns;
            }
            assert_eq!(exchange.due_ns() - now_ns, first_ns << 4);
            assert_eq!(exchange.step(&TIMES, exchange.due_ns()), Step::GiveUp);
        }
    }

    #[test]
    fn an_acknowledged_one_is_not_repeated_and_not_waited_for_without_end() {
        let mut exchange = Exchange::start(&TIMES, 0, 0);
        exchange.acknowledge(&TIMES, 1);
        exchange.acknowledge(&TIMES, 1_000);
        assert_eq!(exchange.step(&TIMES, 200_000_000_000), Step::Wait);
        assert_eq!(exchange.step(&TIMES, 247_000_000_001), Step::GiveUp);
    }
}
