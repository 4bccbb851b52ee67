//! A reply, and the mark: the data of its request that it needs, which is all that is stored of a request.

use std::net::SocketAddr;

use pubmark_protocol::clients::ShardConfig;
use pubmark_protocol::events::{Event, Token};
use pubmark_protocol::requests::{LONGEST_CORRELATION_BYTES, OutgoingReply, ReplyTo};
use pubmark_wire::coap::{BLOCK_BYTES, Block, Code, Kind, LONGEST_TOKEN_BYTES, Message, Writer, number};

use super::super::request::OCTET_STREAM;
use crate::payload;

/// The exponent of [`BLOCK_BYTES`].
const LARGEST_EXPONENT: u8 = 6;
/// Bytes ahead of token and tag in a mark.
const CORRELATION_HEAD_BYTES: usize = 8;
/// Bytes of a mark at most.
const CORRELATION_BYTES: usize = CORRELATION_HEAD_BYTES + 2 * LONGEST_TOKEN_BYTES;

/// Up to eight bytes: a token or a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShortBytes {
    bytes: [u8; LONGEST_TOKEN_BYTES],
    length: u8,
}

impl ShortBytes {
    /// The first eight of these bytes.
    pub fn of(bytes: &[u8]) -> ShortBytes {
        let mut short = ShortBytes::default();
        let length = bytes.len().min(LONGEST_TOKEN_BYTES);
        short.bytes[..length].copy_from_slice(&bytes[..length]);
        short.length = length as u8;
        short
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What a reply repeats of its request, or depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correlation {
    /// The request was confirmable, and so will be the reply.
    pub confirmable: bool,
    /// Size of the blocks that it is to come in.
    pub exponent: u8,
    /// Of the request, or of its last block.
    pub message_id: u16,
    /// The Block1 option of its last block, if it came in blocks.
    pub block: Option<u32>,
    /// The response has it too.
    pub token: ShortBytes,
    /// The first Request-Tag; empty without one.
    pub tag: ShortBytes,
}

impl Correlation {
    /// Of a request.
    pub fn of(message: &Message<'_>) -> Correlation {
        let asked = message.options.get(number::BLOCK2).and_then(Block::read);
        let block = message.options.get(number::BLOCK1).and_then(Block::read);
        Correlation {
            confirmable: message.kind == Kind::Confirmable,
            exponent: asked.map_or(LARGEST_EXPONENT, |block| block.exponent),
            message_id: message.message_id,
            block: block.map(Block::value),
            token: ShortBytes::of(message.token),
            tag: ShortBytes::of(message.options.get(number::REQUEST_TAG).unwrap_or(&[])),
        }
    }

    /// As bytes, of which N are used.
    pub fn to_bytes(self) -> ([u8; CORRELATION_BYTES], usize) {
        let mut bytes = [0; CORRELATION_BYTES];
        let [high, low] = self.message_id.to_be_bytes();
        let flags = u8::from(self.confirmable) << 4 | u8::from(self.block.is_some()) << 3 | self.exponent;
        bytes[..4].copy_from_slice(&[flags, high, low, self.token.length]);
        bytes[4..CORRELATION_HEAD_BYTES].copy_from_slice(&self.block.unwrap_or(0).to_be_bytes());
        let (token, tag) = (self.token.as_bytes(), self.tag.as_bytes());
        let end = CORRELATION_HEAD_BYTES + token.len();
        bytes[CORRELATION_HEAD_BYTES..end].copy_from_slice(token);
        bytes[end..end + tag.len()].copy_from_slice(tag);
        (bytes, end + tag.len())
    }

    /// Reads one; `None` if it is none of ours.
    pub fn read(bytes: &[u8]) -> Option<Correlation> {
        let (head, rest) = bytes.split_first_chunk::<CORRELATION_HEAD_BYTES>()?;
        let [flags, high, low, token_bytes, block @ ..] = *head;
        let (token, tag) = rest.split_at_checked(token_bytes.into())?;
        let exponent = flags & 7;
        let fits = token.len() <= LONGEST_TOKEN_BYTES && tag.len() <= LONGEST_TOKEN_BYTES && flags >> 5 == 0;
        (fits && exponent <= LARGEST_EXPONENT).then_some(Correlation {
            confirmable: flags & 16 != 0,
            exponent,
            message_id: u16::from_be_bytes([high, low]),
            block: (flags & 8 != 0).then_some(u32::from_be_bytes(block)),
            token: ShortBytes::of(token),
            tag: ShortBytes::of(tag),
        })
    }
}

const _: () = assert!(CORRELATION_BYTES <= LONGEST_CORRELATION_BYTES);

/// A reply: what is needed to encode it again, not its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The requester's address.
    pub to: SocketAddr,
    /// What it repeats.
    pub correlation: Correlation,
    answer: OutgoingReply<'static>,
    /// When it was first sent; its header has this time.
    pub write_start_ns: u64,
}

impl Reply {
    /// A reply that was handed over; `None` if its address or mark is not ours.
    pub fn read(answer: &OutgoingReply<'_>) -> Option<Reply> {
        let to = answer.to.address.parse().ok()?;
        let correlation = Correlation::read(answer.to.correlation)?;
        let OutgoingReply { qos, number, publisher, sequence, due_ns, timing, payload_bytes, .. } = *answer;
        let nowhere = ReplyTo { address: "", correlation: &[] };
        let answer = OutgoingReply { to: nowhere, qos, number, publisher, sequence, due_ns, timing, payload_bytes };
        Some(Reply { to, correlation, answer, write_start_ns: 0 })
    }

    /// Its name in events.
    pub fn token(&self) -> Token {
        self.answer.token()
    }

    /// The report that it was written completely at this time.
    pub fn written(&self, written_ns: u64) -> Event<'static> {
        let write_start_ns = self.write_start_ns;
        let own_ns = self.answer.timing.since_submitted_ns(write_start_ns);
        Event::Written { token: self.token(), write_start_ns, written_ns, own_ns }
    }

    /// Whole payload.
    pub fn payload_bytes(&self) -> usize {
        payload::reply_bytes(&self.answer)
    }

    /// Does it go in blocks?
    pub fn is_in_blocks(&self) -> bool {
        self.payload_bytes() > BLOCK_BYTES.min(16 << self.correlation.exponent)
    }

    /// Appends the message that carries it, or the block of it that begins at `offset`; `token` is that of the request
    /// for it.
    pub fn encode(
        &self,
        config: &ShardConfig,
        (kind, message_id, token): (Kind, u16, &[u8]),
        (offset, exponent): (usize, u8),
        out: &mut Vec<u8>,
    ) {
        let whole = self.payload_bytes();
        let end = if self.is_in_blocks() { whole.min(offset + (16 << exponent)) } else { whole };
        let mut writer = Writer::new(kind, Code::CONTENT, message_id, token, out);
        if self.is_in_blocks() {
            // Distinguishes the blocks of this reply from those of another (RFC 7959 §2.4).
            writer.option(number::ETAG, &self.answer.number.to_be_bytes());
        }
        writer.uint(number::CONTENT_FORMAT, OCTET_STREAM);
        if self.is_in_blocks() {
            writer.uint(number::BLOCK2, Block::at(offset, end < whole, exponent).value());
        }
        if let Some(block) = self.correlation.block.filter(|_| offset == 0) {
            writer.uint(number::BLOCK1, block);
        }
        if self.is_in_blocks() && offset == 0 {
            writer.uint(number::SIZE2, whole as u32);
        }
        payload::append_answer_part(config, &self.answer, self.write_start_ns, offset..end, writer.payload());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_round_trips_and_other_bytes_are_refused() {
        for (confirmable, block, token, tag) in
            [(true, None, "", ""), (false, Some(0x00ff_fff6), "12345678", "abcdefgh"), (true, Some(0), "1", "")]
        {
            let [token, tag] = [token, tag].map(|text| ShortBytes::of(text.as_bytes()));
            let correlation = Correlation { confirmable, exponent: 6, message_id: 0x1234, block, token, tag };
            let (bytes, length) = correlation.to_bytes();
            assert_eq!(Correlation::read(&bytes[..length]), Some(correlation));
            for cut in 0..CORRELATION_HEAD_BYTES + token.as_bytes().len() {
                assert_eq!(Correlation::read(&bytes[..cut]), None, "{cut}");
            }
        }
        for other in [[0xff; 8], [7, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 9, 0, 0, 0, 0]] {
            assert_eq!(Correlation::read(&other), None);
        }
        assert_eq!(Correlation::read(&[0; CORRELATION_HEAD_BYTES + 9]), None, "a tag too long");
    }
}
