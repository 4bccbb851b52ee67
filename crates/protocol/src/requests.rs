//! Requests and their replies, between adapters and engine.
//!
//! A request is a message of a publication whose session expects replies ([`crate::clients::SessionOptions::reply_topic`]). How
//! it carries the address for its reply, and how a reply names its request, depends on the protocol; an adapter passes on both
//! and never reads a payload.

use std::fmt::Write;

use pubmark_model::qos::Qos;
use pubmark_model::template::BodyDraw;

use crate::clients::Outgoing;
use crate::events::Token;
use crate::header::FULL;
use crate::timing::Timing;

/// [`Token::publication`] of a reply in events; its sequence is [`OutgoingReply::number`].
pub const REPLY: u16 = u16::MAX;

/// Longest address of a reply that is stored, bytes: ours are shorter, and a foreign request must not fill the memory.
pub const LONGEST_ADDRESS_BYTES: usize = 256;
/// Longest correlation of a request that is stored, bytes.
pub const LONGEST_CORRELATION_BYTES: usize = 64;

/// Address and correlation for the reply to a request, as its protocol has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo<'a> {
    /// A topic, a subject, the name of a queue.
    pub address: &'a str,
    /// The correlation that the reply repeats, so that the requester knows its request; empty if the address identifies it.
    pub correlation: &'a [u8],
}

impl ReplyTo<'_> {
    /// Is it short enough to be stored until the reply is sent?
    pub fn is_short(&self) -> bool {
        !self.address.is_empty()
            && self.address.len() <= LONGEST_ADDRESS_BYTES
            && self.correlation.len() <= LONGEST_CORRELATION_BYTES
    }
}

/// A reply to send. Its payload's header repeats that of the request ([`crate::header::write_reply`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingReply<'a> {
    /// Address and correlation.
    pub to: ReplyTo<'a>,
    /// Delivery level.
    pub qos: Qos,
    /// Its name in events, with [`REPLY`] instead of a publication.
    pub number: u32,
    /// The requester's number in the fleet.
    pub publisher: u32,
    /// The request's sequence number.
    pub sequence: u32,
    /// When the request was due, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// When the request arrived and the reply was handed over: the header has the time that the reply took from the arrival on.
    /// Its lag is that of request and reply together.
    pub timing: Timing,
    /// Whole payload, header included; at least [`crate::header::FULL`].
    pub payload_bytes: u32,
}

impl OutgoingReply<'_> {
    /// Its name in events.
    pub fn token(&self) -> Token {
        Token { publication: REPLY, sequence: self.number }
    }

    /// The reply as a message without a publication, for code that stores messages in flight. The times of its header count
    /// from the request's arrival.
    pub fn message(&self) -> Outgoing {
        Outgoing {
            publication: REPLY,
            sequence: self.number,
            timing: self.timing,
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes: self.payload_bytes.max(FULL as u32),
        }
    }
}

/// Bytes of a request's correlation.
pub const CORRELATION_BYTES: usize = 6;

/// The correlation of a request that pubmark sent: its name within its session.
pub fn correlation(request: Token) -> [u8; CORRELATION_BYTES] {
    let mut correlation = [0; CORRELATION_BYTES];
    correlation[..2].copy_from_slice(&request.publication.to_le_bytes());
    correlation[2..].copy_from_slice(&request.sequence.to_le_bytes());
    correlation
}

/// The request that a correlation names, if it is one of ours.
pub fn correlated(correlation: &[u8]) -> Option<Token> {
    let correlation: [u8; CORRELATION_BYTES] = correlation.try_into().ok()?;
    let [p0, p1, s0, s1, s2, s3] = correlation;
    Some(Token { publication: u16::from_le_bytes([p0, p1]), sequence: u32::from_le_bytes([s0, s1, s2, s3]) })
}

/// Writes the correlation of a request that pubmark sent as text into `text`, for protocols with correlations as text.
pub fn correlation_as_text(request: Token, text: &mut String) {
    write!(text, "{}-{}", request.publication, request.sequence).expect("a string takes all");
}

/// The request that a correlation as text names, if it is one of ours.
pub fn correlated_by_text(text: &str) -> Option<Token> {
    let (publication, sequence) = text.split_once('-')?;
    Some(Token { publication: publication.parse().ok()?, sequence: sequence.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_names_its_request_and_nothing_else_does() {
        let request = Token { publication: 3, sequence: 0x0102_0304 };
        assert_eq!(correlated(&correlation(request)), Some(request));
        assert_eq!((correlated(&[]), correlated(&[0; 5]), correlated(&[0; 7])), (None, None, None));
    }

    #[test]
    fn a_text_correlation_names_its_request_and_nothing_else_does() {
        let request = Token { publication: 2, sequence: 4_000_000_000 };
        let mut text = String::new();
        correlation_as_text(request, &mut text);
        assert_eq!((text.as_str(), correlated_by_text(&text)), ("2-4000000000", Some(request)));
        for other in ["", "2", "2-", "-1", "2-4294967296", "65536-1", "x-1", "2-1 "] {
            assert_eq!(correlated_by_text(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_stored_is_refused() {
        let long = "a".repeat(LONGEST_ADDRESS_BYTES + 1);
        let to = |address, correlation| ReplyTo { address, correlation };
        assert!(to("a", &[1][..]).is_short() && to(&long[1..], &[0; LONGEST_CORRELATION_BYTES]).is_short());
        assert!(!to("", &[]).is_short() && !to(&long, &[]).is_short());
        assert!(!to("a", &[0; LONGEST_CORRELATION_BYTES + 1]).is_short());
    }
}
