//! A subscription of a client: its queue, and its message in flight.

use std::collections::VecDeque;
use std::rc::Rc;

use pubmark_wire::coap::{BLOCK_BYTES, Exchange, LONGEST_TOKEN_BYTES, observe_value};

use crate::net::Key;

/// A message that was published.
#[derive(Debug)]
pub(super) struct Publication {
    pub(super) payload: Box<[u8]>,
    /// Counts publications; the ETag of its blocks.
    pub(super) number: u32,
}

impl Publication {
    /// Is it sent in blocks?
    pub(super) fn has_blocks(&self) -> bool {
        self.payload.len() > BLOCK_BYTES
    }
}

/// A token of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    bytes: [u8; LONGEST_TOKEN_BYTES],
    length: u8,
}

impl Token {
    pub(super) fn new(token: &[u8]) -> Token {
        let mut bytes = [0; LONGEST_TOKEN_BYTES];
        let length = token.len().min(LONGEST_TOKEN_BYTES);
        bytes[..length].copy_from_slice(&token[..length]);
        Token { bytes, length: length as u8 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What is in flight and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A notification, with its sequence number.
    Notification(u32),
    /// The last block of one, as the response to the request with this token.
    LastBlock(Token),
}

/// A confirmable message in flight. There is at most one: the notifications after it wait, so that they stay in order (and
/// NSTART is 1, RFC 7252 §4.7).
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) message_id: u16,
    pub(super) exchange: Exchange,
    pub(super) what: Awaited,
    pub(super) publication: Rc<Publication>,
}

/// A notification whose blocks the client fetches; the next ones wait until it has all of them.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) publication: Rc<Publication>,
    /// Time at which it is given up.
    pub(super) until_ns: u64,
}

/// A subscription.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) peer: Key,
    pub(super) filter: Box<str>,
    pub(super) token: Token,
    pub(super) confirmable: bool,
    sequence: u32,
    pub(super) queue: VecDeque<Rc<Publication>>,
    pub(super) queued_bytes: usize,
    pub(super) outstanding: Option<Outstanding>,
    pub(super) fetched: Option<Fetched>,
    /// Identifier of the last notification.
    pub(super) last_message_id: Option<u16>,
    /// Next time of its timer, 0 for never.
    pub(super) timer_ns: u64,
}

impl Observer {
    pub(super) fn new(peer: Key, filter: &str, token: Token, confirmable: bool) -> Observer {
        Observer {
            peer,
            filter: filter.into(),
            token,
            confirmable,
            sequence: 1,
            queue: VecDeque::new(),
            queued_bytes: 0,
            outstanding: None,
            fetched: None,
            last_message_id: None,
            timer_ns: 0,
        }
    }

    /// Can the next notification be sent?
    pub(super) fn is_free(&self) -> bool {
        self.outstanding.is_none() && self.fetched.is_none()
    }

    /// The number of the last notification, or of the response to the subscription.
    pub(super) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// The number of the next notification.
    pub(super) fn next_sequence(&mut self) -> u32 {
        self.sequence = observe_value(self.sequence + 1);
        self.sequence
    }

    /// Next time at which it must be checked.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let repeat = self.outstanding.as_ref().map(|outstanding| outstanding.exchange.due_ns());
        repeat.into_iter().chain(self.fetched.as_ref().map(|fetched| fetched.until_ns)).min()
    }
}
