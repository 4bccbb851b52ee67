//! A payload that arrives in blocks (RFC 7959 §2.5), one after another.

use pubmark_wire::coap::{Block, Code};

/// The blocks of a payload that have arrived.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) topic: Box<str>,
    pub(super) bytes: Vec<u8>,
    /// Time at which it is given up.
    pub(super) until_ns: u64,
}

/// Result of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockOutcome {
    /// More blocks must follow.
    More,
    /// The payload is complete.
    Whole,
    /// It is refused.
    Refused(Code),
}

impl Upload {
    /// Adds a block; payloads have at most `most_bytes`.
    pub(super) fn take(&mut self, block: Block, payload: &[u8], most_bytes: usize) -> BlockOutcome {
        if block.number == 0 {
            self.bytes.clear();
        }
        if block.offset() != self.bytes.len() {
            return BlockOutcome::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        let fits = if block.more { payload.len() == block.bytes() } else { payload.len() <= block.bytes() };
        if !fits || payload.is_empty() {
            return BlockOutcome::Refused(Code::BAD_REQUEST);
        }
        if self.bytes.len() + payload.len() > most_bytes {
            return BlockOutcome::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        self.bytes.extend_from_slice(payload);
        if block.more { BlockOutcome::More } else { BlockOutcome::Whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_in_order_and_up_to_a_limit() {
        let mut upload = Upload { topic: "a".into(), bytes: vec![], until_ns: 0 };
        let block = |number, more| Block { number, more, exponent: 0 };
        assert_eq!(upload.take(block(0, true), &[1; 16], 40), BlockOutcome::More);
        assert_eq!(upload.take(block(2, true), &[1; 16], 40), BlockOutcome::Refused(Code::REQUEST_ENTITY_INCOMPLETE));
        assert_eq!(upload.take(block(1, true), &[1; 15], 40), BlockOutcome::Refused(Code::BAD_REQUEST));
        assert_eq!(upload.take(block(1, true), &[1; 16], 40), BlockOutcome::More);
        assert_eq!(upload.take(block(2, false), &[1; 9], 40), BlockOutcome::Refused(Code::REQUEST_ENTITY_TOO_LARGE));
        assert_eq!(upload.take(block(2, false), &[1; 8], 40), BlockOutcome::Whole);
        assert_eq!(upload.take(block(0, false), &[2], 40), BlockOutcome::Whole, "it begins anew");
        assert_eq!(upload.bytes, [2]);
    }
}
