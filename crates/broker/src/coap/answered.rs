//! Message identifiers of a client's publications and the response codes that they got (RFC 7252 §4.2): a repeated one gets the
//! same response and is not published a second time.

use std::collections::{HashMap, VecDeque};

use pubmark_wire::coap::Code;

/// Identifiers stored for a client. A client that increments its identifiers wraps around after 65,536; that must not match the
/// identifiers of the last round.
const KEPT: usize = 16_384;

/// The identifiers of one client.
#[derive(Debug, Default)]
pub(super) struct Answered {
    codes: HashMap<u16, Code>,
    /// In the order of arrival, with the time until which they are stored.
    order: VecDeque<(u16, u64)>,
}

impl Answered {
    /// The response code that was sent for this identifier.
    pub(super) fn find(&mut self, message_id: u16, now_ns: u64) -> Option<Code> {
        self.forget(now_ns);
        self.codes.get(&message_id).copied()
    }

    /// Stores a response code until `until_ns`.
    pub(super) fn note(&mut self, message_id: u16, code: Code, until_ns: u64) {
        if self.order.len() >= KEPT
            && let Some((oldest, _)) = self.order.pop_front()
        {
            self.codes.remove(&oldest);
        }
        self.order.push_back((message_id, until_ns));
        self.codes.insert(message_id, code);
    }

    /// Drops entries older than their lifetime; true if nothing is left.
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
