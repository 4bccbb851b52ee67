//! The results of requests (RFC 7252 §4.5): a request whose message is repeated is not reported again, and gets the same
//! response.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use pubmark_wire::coap::Code;

use super::reply::{Reply, ShortBytes};

/// Most requests stored, some 25 MB. The standard stores each for 247 s; at more than 530 a second the oldest are dropped
/// sooner. A copy that arrives later still is reported to the engine, which replies to first copies only.
const MOST_STORED: usize = 131_072;

/// Who sent a message, and its identifier.
pub type Key = (SocketAddr, u16);

/// Result of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestState {
    /// It is worked on; its acknowledgement has gone ahead or not.
    Waits {
        /// It has.
        acknowledged: bool,
    },
    /// Refused or, for a block, accepted with this code and Block1 option.
    Reason(Code, Option<u32>),
    /// The reply was sent in its acknowledgement.
    Replied(Reply),
    /// The reply was sent in a message of its own, which has retransmissions of its own.
    RepliedSeparately,
}

#[derive(Debug)]
struct Entry {
    /// Identifiers come round: a message with this one and another token is another message.
    token: ShortBytes,
    until_ns: u64,
    state: RequestState,
}

/// The memory of a responder.
#[derive(Debug, Default)]
pub struct RequestCache {
    entries: HashMap<Key, Entry>,
    /// In order of arrival, with the time until which they are stored.
    order: VecDeque<(Key, u64)>,
}

impl RequestCache {
    /// The result of a message with this identifier and token, if it arrived before.
    pub fn find(&self, key: Key, token: ShortBytes, now_ns: u64) -> Option<RequestState> {
        let entry = self.entries.get(&key)?;
        (entry.token == token && entry.until_ns >= now_ns).then_some(entry.state)
    }

    /// Notes a new one until `until_ns`.
    pub fn note(&mut self, key: Key, token: ShortBytes, state: RequestState, (now_ns, until_ns): (u64, u64)) {
        while let Some((oldest, oldest_until_ns)) = self.order.front().copied()
            && (self.order.len() >= MOST_STORED || oldest_until_ns < now_ns)
        {
            self.order.pop_front();
            // It may have been replaced by another one with its identifier.
            if self.entries.get(&oldest).is_some_and(|entry| entry.until_ns == oldest_until_ns) {
                self.entries.remove(&oldest);
            }
        }
        self.order.push_back((key, until_ns));
        self.entries.insert(key, Entry { token, until_ns, state });
    }

    /// Changes the result of a stored request, if it is still stored.
    pub fn change(&mut self, key: Key, token: ShortBytes, state: RequestState) {
        if let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.token == token) {
            entry.state = state;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = RequestCache::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(message_id: u16) -> Key {
        (SocketAddr::from(([127, 0, 0, 1], 9)), message_id)
    }

    #[test]
    fn a_message_is_known_by_sender_identifier_and_token_for_its_lifetime() {
        let (mut cache, token) = (RequestCache::default(), ShortBytes::of(b"t"));
        cache.note(key(7), token, RequestState::Waits { acknowledged: false }, (0, 100));
        assert!(matches!(cache.find(key(7), token, 100), Some(RequestState::Waits { acknowledged: false })));
        cache.change(key(7), token, RequestState::RepliedSeparately);
        assert!(matches!(cache.find(key(7), token, 100), Some(RequestState::RepliedSeparately)));
        let stranger = (SocketAddr::from(([127, 0, 0, 2], 9)), 7);
        assert!(cache.find(key(7), token, 101).is_none() && cache.find(stranger, token, 1).is_none());
        assert!(cache.find(key(7), ShortBytes::of(b"u"), 1).is_none(), "the identifier came round");
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_and_a_replaced_one_keeps_its_place() {
        let (mut cache, token) = (RequestCache::default(), ShortBytes::of(b"t"));
        let state = RequestState::RepliedSeparately;
        cache.note(key(1), token, state, (0, 50));
        cache.note(key(1), ShortBytes::of(b"u"), state, (10, 500));
        cache.note(key(2), token, state, (60, 500));
        assert!(cache.find(key(1), ShortBytes::of(b"u"), 60).is_some(), "what replaced it has a time of its own");
        for port in 0..3u16 {
            for message_id in 0..=u16::MAX {
                let from = SocketAddr::from(([127, 0, 0, 3], port));
                cache.note((from, message_id), token, state, (60, 1_000));
            }
        }
        assert_eq!((cache.order.len(), cache.entries.len()), (MOST_STORED, MOST_STORED));
        assert!(cache.find(key(2), token, 60).is_none());
    }
}
