//! Identifiers of the last messages (RFC 7252 §4.2), to detect repetitions.

/// Identifiers of a server's that are stored: repetitions of what we acknowledged arrive soon after, and later ones are
/// recognised by the sequence numbers of notifications.
const MOST_STORED: u16 = 16;
/// Message identifiers of a responder that are remembered: a response whose acknowledgement was lost is sent again after two to
/// three seconds, behind many others.
pub const RESPONDER_IDS: u16 = 256;

/// A short memory of message identifiers, each with the second in which it came.
#[derive(Debug)]
pub struct RecentIds {
    entries: Vec<(u16, u32)>,
    capacity: u16,
    next: u16,
}

impl RecentIds {
    /// Nothing came yet.
    pub fn new() -> RecentIds {
        RecentIds::with_capacity(MOST_STORED)
    }

    /// The same with capacity for N identifiers, at least one; memory is allocated as they arrive.
    pub fn with_capacity(capacity: u16) -> RecentIds {
        RecentIds { entries: Vec::new(), capacity, next: 0 }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (self.entries, self.next) = (Vec::new(), 0);
    }

    /// Notes an identifier; true if it came before, within `lifetime_ns`.
    pub fn is_repetition(&mut self, message_id: u16, at_ns: u64, lifetime_ns: u64) -> bool {
        let second = (at_ns / 1_000_000_000) as u32;
        let lifetime = (lifetime_ns / 1_000_000_000) as u32;
        let same = |(id, at): &(u16, u32)| *id == message_id && second.saturating_sub(*at) <= lifetime;
        if self.entries.iter().any(same) {
            return true;
        }
        match self.entries.get_mut(usize::from(self.next)) {
            Some(oldest) => *oldest = (message_id, second),
            None => self.entries.push((message_id, second)),
        }
        self.next = (self.next + 1) % self.capacity;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_known_for_its_lifetime_and_among_the_last() {
        for capacity in [MOST_STORED, 64] {
            let (mut recent, lifetime_ns) = (RecentIds::with_capacity(capacity), 247_000_000_000);
            assert!(!recent.is_repetition(0, 0, lifetime_ns));
            assert!(recent.is_repetition(0, 247_000_000_000, lifetime_ns));
            assert!(!recent.is_repetition(0, 248_000_000_000, lifetime_ns), "used again after its lifetime");
            for id in 1..=capacity {
                assert!(!recent.is_repetition(id, 250_000_000_000, lifetime_ns));
            }
            assert!(!recent.is_repetition(0, 250_000_000_000, lifetime_ns), "too many came since");
            recent.clear();
            assert!(!recent.is_repetition(capacity, 250_000_000_000, lifetime_ns));
        }
    }
}
