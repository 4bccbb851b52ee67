//! Coarse deadlines for many connections at little cost: keep-alive, time limits. Nothing that is measured goes through it.

/// Length of a tick, unless another one is requested.
const TICK_NS: u64 = 250_000_000;
const SLOTS: u64 = 64;

/// Deadlines in ticks, of 250 ms as a rule; one entry is four bytes. A deadline beyond the wheel expires early, to be set again.
#[derive(Debug)]
pub struct Wheel {
    slots: Vec<Vec<u32>>,
    tick_ns: u64,
    /// The next tick to be handled.
    tick: u64,
    /// The next expiry.
    next_ns: Option<u64>,
}

impl Wheel {
    /// An empty wheel at `now_ns`.
    pub fn new(now_ns: u64) -> Wheel {
        Wheel::with_tick(now_ns, TICK_NS)
    }

    /// An empty wheel with ticks of this length; they must not be 0.
    pub fn with_tick(now_ns: u64, tick_ns: u64) -> Wheel {
        Wheel { slots: vec![Vec::new(); SLOTS as usize], tick_ns, tick: now_ns / tick_ns + 1, next_ns: None }
    }

    /// Sets `key` to expire at `at_ns` or up to a tick later; returns when it will expire, which for a time beyond the wheel
    /// (64 ticks, 16 s) is earlier than requested.
    pub fn set(&mut self, key: u32, at_ns: u64) -> u64 {
        let tick = at_ns.div_ceil(self.tick_ns).clamp(self.tick, self.tick + SLOTS - 1);
        self.slots[(tick % SLOTS) as usize].push(key);
        let tick_end_ns = tick * self.tick_ns;
        self.next_ns = Some(self.next_ns.map_or(tick_end_ns, |next| next.min(tick_end_ns)));
        tick_end_ns
    }

    /// The next expiry.
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Moves all keys whose time has come by `now_ns` to `due`.
    pub fn advance(&mut self, now_ns: u64, due: &mut Vec<u32>) {
        let last = now_ns / self.tick_ns;
        for tick in (self.tick..=last).take(SLOTS as usize) {
            due.append(&mut self.slots[(tick % SLOTS) as usize]);
        }
        self.tick = self.tick.max(last + 1);
        self.next_ns = (self.tick..self.tick + SLOTS)
            .find(|tick| !self.slots[(tick % SLOTS) as usize].is_empty())
            .map(|tick| tick * self.tick_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_at_their_time_and_far_ones_early() {
        let mut wheel = Wheel::new(0);
        assert_eq!(wheel.next_ns(), None);
        assert_eq!(wheel.set(1, 300_000_000), 500_000_000);
        assert_eq!(wheel.set(2, 100_000_000_000), 64 * TICK_NS);
        assert_eq!(wheel.next_ns(), Some(500_000_000));
        let mut due = Vec::new();
        wheel.advance(499_999_999, &mut due);
        assert!(due.is_empty());
        wheel.advance(500_000_000, &mut due);
        assert_eq!(due, [1]);
        assert_eq!(wheel.next_ns(), Some(64 * TICK_NS));
        wheel.advance(3_600_000_000_000, &mut due);
        assert_eq!((due, wheel.next_ns()), (vec![1, 2], None));
    }
}
