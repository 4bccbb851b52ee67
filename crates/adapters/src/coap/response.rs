//! What a response says: done, refused and why, and which request it acknowledges.

use pubmark_protocol::events::Reason;
use pubmark_wire::coap::{Code, Kind, Message};

/// Outcome of a publication by its response; a refusal is named as the standard writes it.
pub(super) fn outcome(message: &Message<'_>) -> Result<(), Reason> {
    let done = message.code.is_success() && message.code != Code::CONTINUE;
    if done { Ok(()) } else { Err(reason(message.code, message.payload)) }
}

/// A server's refusal in words: the code, and its diagnostic message (RFC 7252 §5.5.2) if it sent one.
pub(super) fn reason(code: Code, diagnostic: &[u8]) -> Reason {
    const MOST_SHOWN: usize = 200;
    match std::str::from_utf8(&diagnostic[..diagnostic.len().min(MOST_SHOWN)]) {
        Ok(words) if !words.is_empty() => Reason::words(format!("{code}: {words}")),
        _ => Reason::words(code.to_string()),
    }
}

/// The identifier that a response carries as an acknowledgement.
pub(super) fn acknowledges(message: &Message<'_>) -> Option<u16> {
    (message.kind == Kind::Acknowledgement).then_some(message.message_id)
}
