//! Message identifiers of a session (RFC 7252 §4.4).
//!
//! A server takes a message for a repetition, and does not publish it, if it had one with that identifier from that address and
//! port within EXCHANGE_LIFETIME. A device has an address of its own; the emulated ones share those of the machine, and a
//! session may get the port of one that has ended. So identifiers follow the clock, which comes round once in EXCHANGE_LIFETIME:
//! whoever gets a port, in this process or another one of the machine, goes on behind the session before. Where a session was
//! ahead of the clock, the process knows the port's last number.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use pubmark_protocol::clock;

/// Identifiers that a session draws between two readings of the clock.
const BLOCK: u64 = 1 << 10;
/// Blocks until identifiers come round.
const BLOCKS: usize = (1 << 16) / BLOCK as usize;

/// The first unused number of each port; identifiers are the lower 16 bits of numbers. Sessions at several addresses of the machine
/// share it, which leaves out identifiers that they could have used. Only touched pages of it are in memory.
static UNUSED: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];

/// The identifiers of a session, as long as it has its port.
#[derive(Debug, Default)]
pub struct MessageIds {
    port: u16,
    next: u64,
    lifetime_ns: u64,
    /// When each of the last blocks began, ns of `CLOCK_MONOTONIC`: at most [`BLOCKS`].
    begun_ns: VecDeque<u64>,
    /// The present block's identifiers were drawn less than a lifetime ago.
    is_early: bool,
    reused: u64,
}

impl MessageIds {
    /// Those of a session that gets a port at `now_ns` of `CLOCK_MONOTONIC`.
    pub fn begin(port: u16, now_ns: u64, exchange_lifetime_ns: u64) -> MessageIds {
        // 65,536 of them in each lifetime.
        let by_clock = u128::from(now_ns) * (1 << 16) / u128::from(exchange_lifetime_ns.max(1));
        let next = UNUSED[usize::from(port)].load(Ordering::Relaxed).max(by_clock as u64);
        let begun_ns = VecDeque::new();
        MessageIds { port, next, lifetime_ns: exchange_lifetime_ns, begun_ns, is_early: false, reused: 0 }
    }

    /// The next one. They come round after 65,536, which at more than 265 messages a second is sooner than the standard allows.
    pub fn draw(&mut self) -> u16 {
        self.next += 1;
        if self.next.is_multiple_of(BLOCK) {
            self.begin_block();
        }
        self.reused += u64::from(self.is_early);
        self.next as u16
    }

    fn begin_block(&mut self) {
        let now_ns = clock::monotonic_ns();
        let last_ns = if self.begun_ns.len() < BLOCKS { None } else { self.begun_ns.pop_front() };
        self.is_early = last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < self.lifetime_ns);
        self.begun_ns.push_back(now_ns);
    }

    /// Identifiers that this session drew again within their lifetime, since the last call; a block of them is judged by its first.
    pub fn take_reused(&mut self) -> u64 {
        std::mem::take(&mut self.reused)
    }
}

/// Must happen before the socket is closed: then another session may get the port.
impl Drop for MessageIds {
    fn drop(&mut self) {
        UNUSED[usize::from(self.port)].fetch_max(self.next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const LIFETIME_NS: u64 = 247_000_000_000;

    /// Numbers of a session, of which each is new within a lifetime.
    fn session(port: u16, at_ns: u64, count: usize, seen: &mut HashSet<u16>) {
        let mut ids = MessageIds::begin(port, at_ns, LIFETIME_NS);
        for _ in 0..count {
            assert!(seen.insert(ids.draw()), "a session at {at_ns} ns repeats an identifier");
        }
    }

    #[test]
    fn sessions_of_a_port_repeat_no_identifier_within_a_lifetime() {
        let mut seen = HashSet::new();
        // Ahead of the clock, behind it, at once, and close to the end of the lifetime.
        for (at_ns, count) in [(0, 20_000), (1, 3), (1, 5_000), (100_000_000_000, 10), (246_900_000_000, 20)] {
            session(1, at_ns, count, &mut seen);
        }
    }

    #[test]
    fn identifiers_that_come_round_within_their_lifetime_are_counted() {
        let reused = |lifetime_ns: u64, count: u64| {
            let mut ids = MessageIds::begin(5, 0, lifetime_ns);
            (0..count).for_each(|_| _ = ids.draw());
            (ids.take_reused(), ids.take_reused())
        };
        // All in a moment. Blocks begin at multiples of their length, where the session may not.
        let round = 1 << 16;
        assert_eq!(reused(LIFETIME_NS, round), (0, 0));
        let (found, again) = reused(LIFETIME_NS, 3 * round);
        assert!((2 * round - BLOCK..=2 * round).contains(&found) && again == 0, "{found}, {again}");
        assert_eq!(reused(1, 3 * round), (0, 0), "each has ended when it comes again");
    }

    #[test]
    fn a_session_of_another_process_goes_on_behind_the_last_one() {
        let lifetimes_ns = 1_000 * LIFETIME_NS + 12_345;
        let mut seen = HashSet::new();
        // Another port stands for a process that does not know this one's numbers; 100 messages in 0.4 s.
        session(2, lifetimes_ns, 100, &mut seen);
        session(3, lifetimes_ns + 400_000_000, 100, &mut seen);
        session(4, lifetimes_ns + 246_600_000_000, 100, &mut seen);
    }
}
