//! Messages on links: transfer and disposition (part 2, §2.7).

use super::condition::State;
use super::error::DecodeError;
use super::fields::Fields;
use super::frame::{FrameKind, HEADER_BYTES, begin_frame, encode_frame, end_frame};
use super::link::Role;
use super::value::Described;
use super::writer::composite;

/// Bytes that a frame with a transfer of ours has at most before its payload.
pub const MOST_TRANSFER_BYTES: usize = HEADER_BYTES + 32;

/// A message, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer<'a> {
    /// Handle of the link at the sending side of this frame.
    pub handle: u32,
    /// Number of the delivery in its session; needed in its first transfer.
    pub delivery_id: Option<u32>,
    /// What the sender calls the delivery; needed in its first transfer.
    pub delivery_tag: Option<&'a [u8]>,
    /// The sender has forgotten it already.
    pub settled: Option<bool>,
    /// More of it follows.
    pub more: bool,
    /// It was begun by mistake; there is no message.
    pub aborted: bool,
    /// The part of the message.
    pub payload: &'a [u8],
}

/// Disposition: state of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disposition<'a> {
    /// Role of the sender of this frame: the deliveries' receiver or sender.
    pub role: Role,
    /// The first of them.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// The sender of this frame has settled them.
    pub settled: bool,
    /// Their state.
    pub state: Option<State<'a>>,
}

impl<'a> Transfer<'a> {
    pub(super) fn decode(described: &Described<'a>, payload: &'a [u8]) -> Result<Transfer<'a>, DecodeError> {
        let mut fields = Fields::of("transfer", described)?;
        let handle = fields.needed_uint("handle")?;
        let delivery_id = fields.uint("delivery-id")?;
        let delivery_tag = fields.binary("delivery-tag")?;
        fields.uint("message-format")?;
        let settled = fields.boolean("settled")?;
        let more = fields.boolean("more")?.unwrap_or(false);
        // When the receiver settles, the delivery's state, whether it is resumed.
        fields.skip(3)?;
        let aborted = fields.boolean("aborted")?.unwrap_or(false);
        Ok(Transfer { handle, delivery_id, delivery_tag, settled, more, aborted, payload })
    }

    /// Appends its frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        let start = begin_frame(FrameKind::Amqp, channel, out);
        self.encode_head(out);
        out.extend_from_slice(self.payload);
        end_frame(start, 0, out);
    }

    /// Appends its frame without its payload, of which there will be `payload_bytes`.
    #[inline]
    pub fn encode_front(&self, channel: u16, payload_bytes: usize, out: &mut Vec<u8>) {
        let start = begin_frame(FrameKind::Amqp, channel, out);
        self.encode_head(out);
        end_frame(start, payload_bytes, out);
    }

    fn encode_head(&self, out: &mut Vec<u8>) {
        composite(0x14, out, |fields| {
            fields.uint(self.handle);
            fields.optional_uint(self.delivery_id);
            match self.delivery_tag {
                Some(tag) => {
                    fields.binary(tag);
                    // The only format of messages there is.
                    fields.uint(0);
                }
                None => (0..2).for_each(|_| fields.null()),
            }
            fields.optional_boolean(self.settled);
            if self.more || self.aborted {
                fields.boolean(self.more);
            }
            if self.aborted {
                (0..3).for_each(|_| fields.null());
                fields.boolean(true);
            }
        });
    }
}

impl<'a> Disposition<'a> {
    pub(super) fn decode(described: &Described<'a>) -> Result<Disposition<'a>, DecodeError> {
        let mut fields = Fields::of("disposition", described)?;
        let role = Role::decode(fields.needed_boolean("role")?);
        let first = fields.needed_uint("first")?;
        let last = fields.uint("last")?.unwrap_or(first);
        let settled = fields.boolean("settled")?.unwrap_or(false);
        Ok(Disposition { role, first, last, settled, state: State::decode(fields.described("state")?)? })
    }

    /// Appends its frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        encode_frame(FrameKind::Amqp, channel, out, |out| {
            composite(0x15, out, |fields| {
                fields.boolean(self.role.receives());
                fields.uint(self.first);
                if self.last == self.first {
                    fields.null();
                } else {
                    fields.uint(self.last);
                }
                fields.boolean(self.settled);
                State::encode(self.state, fields);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_transfer_of_ours_has_a_larger_head_than_we_count_with() {
        let tag = [255; 4];
        let largest = Transfer {
            handle: u32::MAX,
            delivery_id: Some(u32::MAX),
            delivery_tag: Some(&tag),
            settled: Some(true),
            more: true,
            aborted: false,
            payload: &[],
        };
        let mut out = Vec::new();
        largest.encode(0, &mut out);
        assert!(out.len() <= MOST_TRANSFER_BYTES, "{}", out.len());
    }
}
