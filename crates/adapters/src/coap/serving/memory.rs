//! The results of requests (RFC 7252 §4.5): a request whose message is repeated is not reported again, and gets the same
//! response.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use pubmark_wire::coap::Code;

use super::reply::{Reply, Short};

/// Most requests stored, some 25 MB. The standard stores each for 247 s; at more than 530 a second the oldest are dropped
/// sooner. A copy that arrives later still is reported to the engine, which replies to first copies only.
const KEPT: usize = 131_072;

/// Who sent a message, and its identifier.
pub type Key = (SocketAddr, u16);

/// Result of a request.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It is worked on; its acknowledgement has gone ahead or not.
    Waits {
        /// It has.
        acknowledged: bool,
    },
    /// Refused or, for a block, accepted with this code and Block1 option.
    Reason(Code, Option<u32>),
    /// The reply was sent in its acknowledgement.
    Answered(Reply),
    /// The reply was sent in a message of its own, which has retransmissions of its own.
    AnsweredApart,
}

#[derive(Debug)]
struct Entry {
    /// Identifiers come round: a message with this one and another token is another message.
    token: Short,
    until_ns: u64,
    fate: Fate,
}

/// The memory of a responder.
#[derive(Debug, Default)]
pub struct Memory {
    entries: HashMap<Key, Entry>,
    /// In order of arrival, with the time until which they are stored.
    order: VecDeque<(Key, u64)>,
}

impl Memory {
    /// The result of a message with this identifier and token, if it arrived before.
    pub fn find(&self, key: Key, token: Short, now_ns: u64) -> Option<Fate> {
        let entry = self.entries.get(&key)?;
        (entry.token == token && entry.until_ns >= now_ns).then_some(entry.fate)
    }

    /// Notes a new one until `until_ns`.
    pub fn note(&mut self, key: Key, token: Short, fate: Fate, (now_ns, until_ns): (u64, u64)) {
        while let Some((oldest, oldest_until_ns)) = self.order.front().copied()
            && (self.order.len() >= KEPT || oldest_until_ns < now_ns)
        {
            self.order.pop_front();
            // It may have been replaced by another one with its identifier.
            if self.entries.get(&oldest).is_some_and(|entry| entry.until_ns == oldest_until_ns) {
                self.entries.remove(&oldest);
            }
        }
        self.order.push_back((key, until_ns));
        self.entries.insert(key, Entry { token, until_ns, fate });
    }

    /// Changes the result of a stored request, if it is still stored.
    pub fn change(&mut self, key: Key, token: Short, fate: Fate) {
        if let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.token == token) {
            entry.fate = fate;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Memory::default();
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
        let (mut memory, token) = (Memory::default(), Short::of(b"t"));
        memory.note(key(7), token, Fate::Waits { acknowledged: false }, (0, 100));
        assert!(matches!(memory.find(key(7), token, 100), Some(Fate::Waits { acknowledged: false })));
        memory.change(key(7), token, Fate::AnsweredApart);
        assert!(matches!(memory.find(key(7), token, 100), Some(Fate::AnsweredApart)));
        let stranger = (SocketAddr::from(([127, 0, 0, 2], 9)), 7);
        assert!(memory.find(key(7), token, 101).is_none() && memory.find(stranger, token, 1).is_none());
        assert!(memory.find(key(7), Short::of(b"u"), 1).is_none(), "the identifier came round");
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_and_a_replaced_one_keeps_its_place() {
        let (mut memory, token) = (Memory::default(), Short::of(b"t"));
        let fate = Fate::AnsweredApart;
        memory.note(key(1), token, fate, (0, 50));
        memory.note(key(1), Short::of(b"u"), fate, (10, 500));
        memory.note(key(2), token, fate, (60, 500));
        assert!(memory.find(key(1), Short::of(b"u"), 60).is_some(), "what replaced it has a time of its own");
        for port in 0..3u16 {
            for message_id in 0..=u16::MAX {
                let from = SocketAddr::from(([127, 0, 0, 3], port));
                memory.note((from, message_id), token, fate, (60, 1_000));
            }
        }
        assert_eq!((memory.order.len(), memory.entries.len()), (KEPT, KEPT));
        assert!(memory.find(key(2), token, 60).is_none());
    }
}
