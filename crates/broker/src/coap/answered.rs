//! Message identifiers of a client's publications and how they were answered (RFC 7252 §4.2): one that comes again is
//! answered the same way and not published twice.

use std::collections::{HashMap, VecDeque};

use pubmark_wire::coap::Code;

/// Identifiers kept for a client. Those of a client that counts its messages up come round after 65,536, which must not
/// meet the memory of the last round.
const KEPT: usize = 16_384;

/// The memory of one client.
#[derive(Debug, Default)]
pub(super) struct Answered {
    codes: HashMap<u16, Code>,
    /// In the order of coming, with the time until which they are kept.
    order: VecDeque<(u16, u64)>,
}

impl Answered {
    /// How a message with this identifier was answered.
    pub(super) fn find(&mut self, message_id: u16, now_ns: u64) -> Option<Code> {
        self.forget(now_ns);
        self.codes.get(&message_id).copied()
    }

    /// Notes an answer until `until_ns`.
    pub(super) fn note(&mut self, message_id: u16, code: Code, until_ns: u64) {
        if self.order.len() >= KEPT
            && let Some((oldest, _)) = self.order.pop_front()
        {
            self.codes.remove(&oldest);
        }
        self.order.push_back((message_id, until_ns));
        self.codes.insert(message_id, code);
    }

    /// Drops what is older than its lifetime; true if nothing is left.
    pub(super) fn forget(&mut self, now_ns: u64) -> bool {
        while let Some((oldest, _)) = self.order.front().copied().filter(|(_, until_ns)| *until_ns < now_ns) {
            self.order.pop_front();
            self.codes.remove(&oldest);
        }
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_for_its_lifetime_and_among_the_last() {
        let mut answered = Answered::default();
        answered.note(7, Code::CREATED, 100);
        assert_eq!((answered.find(7, 100), answered.find(8, 100)), (Some(Code::CREATED), None));
        assert_eq!(answered.find(7, 101), None);
        for id in 0..=KEPT as u16 {
            answered.note(id, Code::CHANGED, 1_000);
        }
        assert_eq!((answered.find(0, 500), answered.find(1, 500)), (None, Some(Code::CHANGED)));
        assert!(!answered.forget(1_000) && answered.forget(1_001));
    }
}
