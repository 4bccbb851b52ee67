//! Requests and their answers, as adapters and engine speak of them.
//!
//! A request is a message of a publication whose session asks for answers ([`crate::clients::SessionOptions::answers_to`]). How
//! it says where its answer shall go, and how an answer says which request it belongs to, is the protocol's matter; an
//! adapter hands both on and never looks into a payload.

use std::fmt::Write;

use pubmark_model::qos::Qos;

use crate::clients::Outgoing;
use crate::events::Token;
use crate::header::FULL;

/// [`Token::publication`] of an answer in events; its sequence is [`Answer::number`].
pub const ANSWER: u16 = u16::MAX;

/// Longest address of an answer that is kept, bytes: ours are shorter, and a stranger's request must not fill our memory.
pub const LONGEST_ADDRESS_BYTES: usize = 256;
/// Longest mark of a request that is kept, bytes.
pub const LONGEST_MARK_BYTES: usize = 64;

/// Where the answer to a request shall go, in the words of its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo<'a> {
    /// A topic, a subject, the name of a queue.
    pub address: &'a str,
    /// What the answer repeats, so that the requester knows its request; empty where the address says it.
    pub mark: &'a [u8],
}

impl ReplyTo<'_> {
    /// Can it be kept until the answer is sent?
    pub fn is_short(&self) -> bool {
        !self.address.is_empty() && self.address.len() <= LONGEST_ADDRESS_BYTES && self.mark.len() <= LONGEST_MARK_BYTES
    }
}

/// An answer to send. Its payload's header repeats what the request's says ([`crate::header::write_reply`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Where to.
    pub to: ReplyTo<'a>,
    /// Delivery level.
    pub qos: Qos,
    /// Its name in events, with [`ANSWER`] in place of a publication.
    pub number: u32,
    /// The requester's number in the fleet.
    pub publisher: u32,
    /// The request's sequence number.
    pub sequence: u32,
    /// When the request was due, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// When the request arrived, same clock: the header says how long the answer took from there.
    pub received_ns: u64,
    /// Whole payload, header included; at least [`crate::header::FULL`].
    pub payload_bytes: u32,
}

impl Answer<'_> {
    /// Its name in events.
    pub fn token(&self) -> Token {
        Token { publication: ANSWER, sequence: self.number }
    }

    /// It as a message of no publication, for those who keep messages in flight. The times of its header count from the
    /// request's arrival.
    pub fn message(&self) -> Outgoing {
        Outgoing {
            publication: ANSWER,
            sequence: self.number,
            due_ns: self.received_ns,
            root_ns: None,
            payload_bytes: self.payload_bytes.max(FULL as u32),
        }
    }
}

/// Bytes of a request's mark.
pub const MARK_BYTES: usize = 6;

/// The mark of a request of ours: its name within its session.
pub fn mark(request: Token) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark[..2].copy_from_slice(&request.publication.to_le_bytes());
    mark[2..].copy_from_slice(&request.sequence.to_le_bytes());
    mark
}

/// The request that a mark names, if it is one of ours.
pub fn marked(mark: &[u8]) -> Option<Token> {
    let mark: [u8; MARK_BYTES] = mark.try_into().ok()?;
    let [p0, p1, s0, s1, s2, s3] = mark;
    Some(Token { publication: u16::from_le_bytes([p0, p1]), sequence: u32::from_le_bytes([s0, s1, s2, s3]) })
}

/// Puts the mark of a request of ours as text into `text`, for protocols whose marks are one.
pub fn mark_as_text(request: Token, text: &mut String) {
    write!(text, "{}-{}", request.publication, request.sequence).expect("a string takes all");
}

/// The request that a mark of text names, if it is one of ours.
pub fn marked_by_text(text: &str) -> Option<Token> {
    let (publication, sequence) = text.split_once('-')?;
    Some(Token { publication: publication.parse().ok()?, sequence: sequence.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_request_and_nothing_else_does() {
        let request = Token { publication: 3, sequence: 0x0102_0304 };
        assert_eq!(marked(&mark(request)), Some(request));
        assert_eq!((marked(&[]), marked(&[0; 5]), marked(&[0; 7])), (None, None, None));
    }

    #[test]
    fn a_mark_of_text_names_its_request_and_nothing_else_does() {
        let request = Token { publication: 2, sequence: 4_000_000_000 };
        let mut text = String::new();
        mark_as_text(request, &mut text);
        assert_eq!((text.as_str(), marked_by_text(&text)), ("2-4000000000", Some(request)));
        for other in ["", "2", "2-", "-1", "2-4294967296", "65536-1", "x-1", "2-1 "] {
            assert_eq!(marked_by_text(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_kept_is_known() {
        let long = "a".repeat(LONGEST_ADDRESS_BYTES + 1);
        let to = |address, mark| ReplyTo { address, mark };
        assert!(to("a", &[1][..]).is_short() && to(&long[1..], &[0; LONGEST_MARK_BYTES]).is_short());
        assert!(!to("", &[]).is_short() && !to(&long, &[]).is_short());
        assert!(!to("a", &[0; LONGEST_MARK_BYTES + 1]).is_short());
    }
}
