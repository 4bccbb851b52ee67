//! How long the relay holds what it carries.

use pubmark_protocol::clock;
use pubmark_protocol::receive::WallOffset;

use super::Carried;
use crate::lateness::SharedLateness;

/// Counters of one direction.
#[derive(Debug)]
pub struct RelayCounters {
    pub bytes: u64,
    pub reads: u64,
    pub dropped: u64,
    added: SharedLateness,
    /// They are those of the system under test: what the relay delays of anything else is no delay of a message.
    is_system: bool,
}

impl RelayCounters {
    pub fn new(is_system: bool) -> RelayCounters {
        RelayCounters { bytes: 0, reads: 0, dropped: 0, added: SharedLateness::new(), is_system }
    }

    pub fn counts(&self) -> Carried {
        Carried { bytes: self.bytes, reads: self.reads, added: self.added.read(), dropped: self.dropped }
    }
}

/// The relay's loop runs in turns: it polls, waits if nothing is ready, then forwards everything. Bytes that are there at the
/// first poll arrived after the poll before. If it waited, they arrived after this turn's poll, and the first one woke it: the
/// kernel's earliest timestamp has that time; what such a turn does not find, or leaves, arrived later.
#[derive(Debug)]
pub struct Turn {
    wall: WallOffset,
    /// What this turn did not find came later, ns: its look, or what woke it.
    found_ns: u64,
    /// What this turn finds did not come before, ns; nor, once it has ended, what it left.
    since_ns: u64,
    /// When the loop woke up, if it waited, ns.
    woke_ns: Option<u64>,
    /// The earliest receipt that the kernel stamped, ns.
    earliest_ns: Option<u64>,
    /// Something of the system's was handed on.
    wrote: bool,
    longest_ns: u64,
}

impl Turn {
    pub fn new() -> Turn {
        let polled_ns = clock::monotonic_ns();
        Turn {
            wall: WallOffset::default(),
            found_ns: polled_ns,
            since_ns: polled_ns,
            woke_ns: None,
            earliest_ns: None,
            wrote: false,
            longest_ns: 0,
        }
    }

    /// A turn begins. `polled_ns` is before its poll, and `waited` is whether nothing was ready then; `has_more`
    /// whether the turn before may have left bytes, which may have come as early as those that it carried. A poll that finds nothing
    /// shows that it left none.
    pub fn begin(&mut self, polled_ns: u64, waited: bool, has_more: bool) {
        let before_ns = std::mem::replace(&mut self.found_ns, polled_ns);
        self.since_ns = match (waited, has_more) {
            (true, _) => polled_ns,
            (false, true) => self.since_ns,
            (false, false) => before_ns,
        };
        self.woke_ns = waited.then(clock::monotonic_ns);
        (self.earliest_ns, self.wrote) = (None, false);
    }

    /// Something was handed on that these counters are about.
    pub fn wrote(&mut self, counters: &RelayCounters) {
        self.wrote |= counters.is_system;
    }

    /// A read found bytes, the last of which the kernel received at `stamp_realtime_ns`, and they were forwarded; without the
    /// timestamp if it is unknown, or if the other side would have blocked.
    pub fn carried(&mut self, counters: &mut RelayCounters, stamp_realtime_ns: Option<u64>) {
        self.wrote(counters);
        let Some(stamp) = stamp_realtime_ns else { return };
        let now_ns = clock::monotonic_ns();
        let received_ns = self.wall.to_monotonic_ns(stamp, now_ns);
        counters.added.record(now_ns.saturating_sub(received_ns));
        self.earliest_ns = Some(self.earliest_ns.map_or(received_ns, |earliest| earliest.min(received_ns)));
    }

    /// Everything that the turn carries is carried.
    pub fn end(&mut self) {
        // Without a timestamp, the delay of the wake-up is unknown.
        let first_ns = self.woke_ns.map(|woke| self.earliest_ns.map_or(woke, |first| first.clamp(self.since_ns, woke)));
        if let Some(first_ns) = first_ns {
            // The wait before it is no hold: neither of what comes with the next turn nor of what this one left.
            (self.found_ns, self.since_ns) = (first_ns, first_ns);
        }
        if self.wrote {
            let held_ns = clock::monotonic_ns().saturating_sub(self.since_ns);
            self.longest_ns = self.longest_ns.max(held_ns);
        }
    }

    /// The longest delay of bytes, ns, since the last call.
    pub fn take_longest_ns(&mut self) -> u64 {
        std::mem::take(&mut self.longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_the_systems_are_not_held() {
        let (mut system, mut own) = (RelayCounters::new(true), RelayCounters::new(false));
        let mut turn = Turn::new();
        turn.begin(clock::monotonic_ns(), false, false);
        turn.carried(&mut own, None);
        turn.end();
        assert_eq!(turn.take_longest_ns(), 0);
        turn.begin(clock::monotonic_ns(), false, false);
        turn.carried(&mut own, None);
        turn.carried(&mut system, None);
        turn.end();
        assert!(turn.take_longest_ns() > 0);
    }

    #[test]
    fn time_without_anything_to_carry_is_no_hold_although_the_turn_before_may_have_left_something() {
        let mut system = RelayCounters::new(true);
        let mut turn = Turn::new();
        // The turn before finds what may have come since the machine started, and reads as much as one read does.
        turn.begin(0, false, false);
        turn.begin(0, false, false);
        turn.end();
        let polled_ns = clock::monotonic_ns();
        turn.begin(polled_ns, true, true);
        turn.carried(&mut system, None);
        turn.end();
        let held_ns = turn.take_longest_ns();
        let passed_ns = clock::monotonic_ns() - polled_ns;
        assert!(held_ns <= passed_ns, "{held_ns} ns in {passed_ns} ns");
    }

    #[test]
    fn time_without_anything_to_carry_is_no_hold_of_what_the_turn_that_ended_it_left() {
        let mut system = RelayCounters::new(true);
        let mut turn = Turn::new();
        // Nothing came since the machine started; then more than the turn reads.
        let polled_ns = clock::monotonic_ns();
        turn.begin(0, true, false);
        let woken_ns = clock::monotonic_ns();
        turn.carried(&mut system, None);
        turn.end();
        turn.take_longest_ns();
        turn.begin(clock::monotonic_ns(), false, true);
        turn.carried(&mut system, None);
        let carried_ns = clock::monotonic_ns();
        turn.end();
        let held_ns = turn.take_longest_ns();
        let passed_ns = clock::monotonic_ns() - polled_ns;
        assert!(held_ns <= passed_ns, "{held_ns} ns in {passed_ns} ns");
        // What was left has waited since the wake-up.
        assert!(held_ns >= carried_ns - woken_ns, "{held_ns} ns of {} ns", carried_ns - woken_ns);
    }

    #[test]
    fn what_a_turn_left_came_no_later_than_what_it_found() {
        let mut system = RelayCounters::new(true);
        let mut turn = Turn::new();
        // The second turn finds what may have come since the machine started, and leaves something; so does the next one.
        turn.begin(0, false, false);
        turn.end();
        turn.begin(clock::monotonic_ns(), false, false);
        turn.end();
        for _ in 0..2 {
            let polled_ns = clock::monotonic_ns();
            turn.begin(polled_ns, false, true);
            turn.carried(&mut system, None);
            turn.end();
            assert!(turn.take_longest_ns() >= polled_ns);
        }
    }
}
