//! Identifiers of the server's last messages (RFC 7252 §4.2): one that comes again is a repetition.

/// Identifiers kept: repetitions of what we acknowledged come soon after, and the sequence numbers of notifications tell
/// those that come later.
const KEPT: usize = 16;

/// A short memory of message identifiers, each with the second in which it came.
#[derive(Debug)]
pub struct Recent {
    entries: [(u16, u32); KEPT],
    next: u8,
}

impl Recent {
    /// Nothing came yet.
    pub fn new() -> Recent {
        Recent { entries: [(0, 0); KEPT], next: 0 }
    }

    /// Notes an identifier; true if it came before, within `lifetime_ns`.
    pub fn is_repetition(&mut self, message_id: u16, at_ns: u64, lifetime_ns: u64) -> bool {
        // From 1 on, so that 0 is an empty place.
        let second = (at_ns / 1_000_000_000 + 1) as u32;
        let lifetime = (lifetime_ns / 1_000_000_000) as u32;
        let same = |(id, at): &(u16, u32)| *at != 0 && *id == message_id && second.saturating_sub(*at) <= lifetime;
        if self.entries.iter().any(same) {
            return true;
        }
        self.entries[usize::from(self.next)] = (message_id, second);
        self.next = (self.next + 1) % KEPT as u8;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_known_for_its_lifetime_and_among_the_last() {
        let (mut recent, lifetime_ns) = (Recent::new(), 247_000_000_000);
        assert!(!recent.is_repetition(0, 0, lifetime_ns));
        assert!(recent.is_repetition(0, 247_000_000_000, lifetime_ns));
        assert!(!recent.is_repetition(0, 248_000_000_000, lifetime_ns), "used again after its lifetime");
        for id in 1..=KEPT as u16 {
            assert!(!recent.is_repetition(id, 250_000_000_000, lifetime_ns));
        }
        assert!(!recent.is_repetition(0, 250_000_000_000, lifetime_ns), "too many came since");
    }
}
