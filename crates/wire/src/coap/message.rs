//! One message (RFC 7252 §3): header, token, options, payload.

use super::code::Code;
use super::error::DecodeError;
use super::option::{Options, PAYLOAD_MARKER, read_option};

/// Bytes of a token at most.
pub const LONGEST_TOKEN_BYTES: usize = 8;
/// Bytes of the fixed header.
const HEADER_BYTES: usize = 4;
/// The only version there is, where it stands in the first byte.
pub(super) const VERSION_BITS: u8 = 1 << 6;

/// How the message layer treats a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Repeated until it is acknowledged.
    Confirmable,
    /// Sent once.
    NonConfirmable,
    /// Acknowledges, and may carry the response.
    Acknowledgement,
    /// The message with this identifier could not be processed.
    Reset,
}

impl Kind {
    fn of(bits: u8) -> Kind {
        match bits & 3 {
            0 => Kind::Confirmable,
            1 => Kind::NonConfirmable,
            2 => Kind::Acknowledgement,
            _ => Kind::Reset,
        }
    }

    pub(super) fn bits(self) -> u8 {
        match self {
            Kind::Confirmable => 0,
            Kind::NonConfirmable => 1,
            Kind::Acknowledgement => 2,
            Kind::Reset => 3,
        }
    }
}

/// A message, borrowed from its datagram; all of it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// How the message layer treats it.
    pub kind: Kind,
    /// Method of a request, or code of a response.
    pub code: Code,
    /// Matches it with its acknowledgement, and identifies a repetition.
    pub message_id: u16,
    /// Pairs a response with its request.
    pub token: &'a [u8],
    /// The options.
    pub options: Options<'a>,
    /// What is behind the options; empty for none.
    pub payload: &'a [u8],
}

/// Kind and message identifier of a datagram that has at least a header of version 1: what it takes to reject it.
pub fn peek(datagram: &[u8]) -> Option<(Kind, u16)> {
    match datagram {
        [first, _, high, low, ..] if first >> 6 == 1 => Some((Kind::of(first >> 4), u16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

/// Reads a whole datagram.
///
/// # Errors
/// Every format error of RFC 7252 §3 and §4.1. Unknown codes and options are no errors.
#[inline]
pub fn decode(datagram: &[u8]) -> Result<Message<'_>, DecodeError> {
    let short = DecodeError::Short(datagram.len());
    let (header, rest) = datagram.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
    let [first, code, high, low] = *header;
    if first >> 6 != 1 {
        return Err(DecodeError::Version(first >> 6));
    }
    let token_bytes = usize::from(first & 0x0f);
    if token_bytes > LONGEST_TOKEN_BYTES {
        return Err(DecodeError::Token(first & 0x0f));
    }
    let (token, rest) = rest.split_at_checked(token_bytes).ok_or(short)?;
    let code = Code(code);
    if code == Code::EMPTY && datagram.len() > HEADER_BYTES {
        return Err(DecodeError::EmptyCarries);
    }
    let (options, payload) = split_options(rest)?;
    let message_id = u16::from_be_bytes([high, low]);
    Ok(Message { kind: Kind::of(first >> 4), code, message_id, token, options: Options::checked(options), payload })
}

/// Checks every option; what is behind the payload marker is the payload.
fn split_options(bytes: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let (mut rest, mut number) = (bytes, 0u16);
    loop {
        match rest.split_first() {
            None => return Ok((bytes, &[])),
            Some((&PAYLOAD_MARKER, [])) => return Err(DecodeError::PayloadMarker),
            Some((&PAYLOAD_MARKER, payload)) => return Ok((&bytes[..bytes.len() - rest.len()], payload)),
            Some(_) => {
                let found = read_option(rest).ok_or(DecodeError::Option)?;
                let sum = u32::from(number) + found.delta;
                number = u16::try_from(sum).map_err(|_| DecodeError::OptionNumber)?;
                rest = found.rest;
            }
        }
    }
}
