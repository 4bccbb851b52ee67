//! The performatives of connections and sessions: open, begin, end, close (part 2, §2.7).

use super::condition::Condition;
use super::error::DecodeError;
use super::fields::Fields;
use super::frame::{FrameKind, encode_frame};
use super::value::{Described, Items, Value};
use super::writer::composite;

/// Capability of a container that takes messages to any address on a link whose target has none ("Using the AMQP Anonymous
/// Terminus for Message Routing", version 1.0, OASIS 2018).
const ANONYMOUS_RELAY: &str = "ANONYMOUS-RELAY";

/// Who a container is, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// Its name.
    pub container_id: &'a str,
    /// Whom it wants to talk to.
    pub hostname: Option<&'a str>,
    /// Largest frame that it takes, bytes.
    pub max_frame_bytes: u32,
    /// Highest channel that it takes.
    pub channel_max: u16,
    /// It gives up after this long a silence, ms; 0 is none.
    pub idle_time_out_ms: Option<u32>,
    /// It takes messages to any address on a link whose target has none.
    pub anonymous_relay: bool,
    /// Product and version, as far as its properties name them.
    pub product: Option<&'a str>,
    /// Version of the product.
    pub version: Option<&'a str>,
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Channel of the peer's session that this begin responds to.
    pub remote_channel: Option<u16>,
    /// Number of the first transfer.
    pub next_outgoing_id: u32,
    /// Transfers that are accepted.
    pub incoming_window: u32,
    /// Transfers that may be sent.
    pub outgoing_window: u32,
    /// Highest handle that is accepted.
    pub handle_max: u32,
}

impl<'a> Open<'a> {
    pub(super) fn decode(described: &Described<'a>) -> Result<Open<'a>, DecodeError> {
        let mut fields = Fields::of("open", described)?;
        let container_id = fields.needed_text("container-id")?;
        let hostname = fields.text("hostname")?;
        let max_frame_bytes = fields.uint("max-frame-size")?.unwrap_or(u32::MAX);
        let channel_max = fields.ushort("channel-max")?.unwrap_or(u16::MAX);
        let idle_time_out_ms = fields.uint("idle-time-out")?;
        // Locales.
        fields.skip(2)?;
        let anonymous_relay = fields.has_name("offered-capabilities", ANONYMOUS_RELAY)?;
        // Desired capabilities.
        fields.skip(1)?;
        let properties = fields.map("properties")?;
        let product = properties.map(|pairs| text_of(pairs, "product")).transpose()?.flatten();
        let version = properties.map(|pairs| text_of(pairs, "version")).transpose()?.flatten();
        Ok(Open {
            container_id,
            hostname,
            max_frame_bytes,
            channel_max,
            idle_time_out_ms,
            anonymous_relay,
            product,
            version,
        })
    }

    /// Appends its frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_frame(FrameKind::Amqp, 0, out, |out| {
            composite(0x10, out, |fields| {
                fields.text(self.container_id);
                fields.optional_text(self.hostname);
                fields.uint(self.max_frame_bytes);
                fields.ushort(self.channel_max);
                fields.optional_uint(self.idle_time_out_ms);
                (0..2).for_each(|_| fields.null());
                if self.anonymous_relay {
                    fields.symbols(&[ANONYMOUS_RELAY]);
                } else {
                    fields.null();
                }
                fields.null();
                let named = [("product", self.product), ("version", self.version)];
                let pairs: Vec<_> = named.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
                if !pairs.is_empty() {
                    fields.properties(&pairs);
                }
            });
        });
    }
}

/// The text that a map has for a name; none if it has something else there.
fn text_of<'a>(mut pairs: Items<'a>, name: &str) -> Result<Option<&'a str>, DecodeError> {
    while let (Some(key), Some(value)) = (pairs.take()?, pairs.take()?) {
        if let (Value::Symbol(key) | Value::Text(key), Value::Text(value) | Value::Symbol(value)) = (key, value)
            && key == name
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

impl Begin {
    pub(super) fn decode(described: &Described<'_>) -> Result<Begin, DecodeError> {
        let mut fields = Fields::of("begin", described)?;
        Ok(Begin {
            remote_channel: fields.ushort("remote-channel")?,
            next_outgoing_id: fields.needed_uint("next-outgoing-id")?,
            incoming_window: fields.needed_uint("incoming-window")?,
            outgoing_window: fields.needed_uint("outgoing-window")?,
            handle_max: fields.uint("handle-max")?.unwrap_or(u32::MAX),
        })
    }

    /// Appends its frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        encode_frame(FrameKind::Amqp, channel, out, |out| {
            composite(0x11, out, |fields| {
                match self.remote_channel {
                    Some(channel) => fields.ushort(channel),
                    None => fields.null(),
                }
                fields.uint(self.next_outgoing_id);
                fields.uint(self.incoming_window);
                fields.uint(self.outgoing_window);
                fields.uint(self.handle_max);
            });
        });
    }
}

/// Reads the error of an end or a close.
pub(super) fn decode_error<'a>(
    performative: &'static str,
    described: &Described<'a>,
) -> Result<Option<Condition<'a>>, DecodeError> {
    Condition::decode(Fields::of(performative, described)?.described("error")?)
}

/// Appends the frame of an end.
pub fn encode_end(channel: u16, error: Option<Condition<'_>>, out: &mut Vec<u8>) {
    encode_frame(FrameKind::Amqp, channel, out, |out| {
        composite(0x17, out, |fields| Condition::encode(error, fields));
    });
}

/// Appends the frame of a close.
pub fn encode_close(error: Option<Condition<'_>>, out: &mut Vec<u8>) {
    encode_frame(FrameKind::Amqp, 0, out, |out| composite(0x18, out, |fields| Condition::encode(error, fields)));
}
