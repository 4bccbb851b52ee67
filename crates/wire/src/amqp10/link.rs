//! The performatives of links: attach, flow, detach (part 2, §2.7), and where links begin and end (part 3, §3.5).

use super::condition::Condition;
use super::error::DecodeError;
use super::fields::{Fields, code};
use super::frame::{FrameKind, encode_frame};
use super::value::{Described, Value};
use super::writer::{FieldWriter, composite};

/// Which end of a link somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Messages come from here.
    Sender,
    /// Messages go here.
    Receiver,
}

impl Role {
    pub(super) fn decode(receives: bool) -> Role {
        if receives { Role::Receiver } else { Role::Sender }
    }

    pub(super) fn receives(self) -> bool {
        self == Role::Receiver
    }
}

/// When a sender settles (part 2, §2.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderSettles {
    /// When the receiver has sent the outcome of a delivery.
    Unsettled,
    /// Before sending: there is no outcome.
    Settled,
    /// As it likes.
    Mixed,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminus<'a> {
    /// Where it is.
    pub address: Option<&'a str>,
    /// The peer must create a node for it, whose address is then in its attach (part 3, §3.5.3).
    pub dynamic: bool,
    /// Capabilities requested or offered; those of a peer's terminus are not read.
    pub capabilities: &'a [&'a str],
    /// Of a source: only messages for which this selector of JMS holds ("AMQP Capabilities Registry: Filters",
    /// `apache.org:selector-filter:string`). In a peer's response, the one that it applies.
    pub selector: Option<&'a str>,
}

impl<'a> Terminus<'a> {
    /// A node that is there, or whose address is of no concern.
    pub const fn at(address: Option<&'a str>) -> Terminus<'a> {
        Terminus { address, dynamic: false, capabilities: &[], selector: None }
    }
}

/// A link begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its handle at the sending side of this frame.
    pub handle: u32,
    /// Which end that side is.
    pub role: Role,
    /// When its sender settles.
    pub sender_settles: SenderSettles,
    /// Where messages come from. A peer that has none refuses the link, or the address is not of its concern.
    pub source: Option<Terminus<'a>>,
    /// Where messages go.
    pub target: Option<Terminus<'a>>,
    /// Deliveries of the sender's so far.
    pub initial_delivery_count: Option<u32>,
    /// Largest message accepted, bytes; none or 0 for any.
    pub max_message_bytes: Option<u64>,
}

/// Windows and credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the next transfer expected; none before the peer's begin was seen.
    pub next_incoming_id: Option<u32>,
    /// Transfers that are accepted from there on.
    pub incoming_window: u32,
    /// Number of the next transfer sent.
    pub next_outgoing_id: u32,
    /// Transfers that may be sent.
    pub outgoing_window: u32,
    /// The link that the rest is about; the session alone if none.
    pub handle: Option<u32>,
    /// Deliveries of the sender's as far as they are known; none before its attach was seen.
    pub delivery_count: Option<u32>,
    /// Deliveries that may be sent from there on.
    pub link_credit: Option<u32>,
    /// The sender is to use up its credit.
    pub drain: bool,
    /// The peer must respond with a flow of its own.
    pub echo: bool,
}

/// A link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detach<'a> {
    /// Its handle at the sending side of this frame.
    pub handle: u32,
    /// For good.
    pub closed: bool,
    /// Why.
    pub error: Option<Condition<'a>>,
}

/// Name and descriptor of selectors of JMS.
const SELECTOR: &str = "apache.org:selector-filter:string";
const SELECTOR_CODE: u64 = 0x0000_468c_0000_0004;

/// The selector among the filters of a source (part 3, §3.5.8), whatever it is called there.
fn selector_among<'a>(fields: &mut Fields<'a>) -> Result<Option<&'a str>, DecodeError> {
    let Some(mut filters) = fields.map("filter")? else { return Ok(None) };
    while let Some(_name) = filters.take()? {
        let Some(Value::Described(filter)) = filters.take()? else { continue };
        if matches!(filter.descriptor()?, Value::Unsigned(SELECTOR_CODE) | Value::Symbol(SELECTOR)) {
            return Ok(match filter.value()? {
                Value::Text(selector) => Some(selector),
                _ => None,
            });
        }
    }
    Ok(None)
}

/// Outcomes that a source offers.
const OUTCOMES: &[&str] = &["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];

impl<'a> Terminus<'a> {
    fn decode(described: Option<Described<'a>>) -> Result<Option<Terminus<'a>>, DecodeError> {
        let Some(described) = described else { return Ok(None) };
        let code = code(&described)?;
        let is_source = code == 0x28;
        let mut fields = match code {
            0x28 => Fields::of("source", &described)?,
            0x29 => Fields::of("target", &described)?,
            other => return Err(DecodeError::Performative(other)),
        };
        let address = fields.text("address")?;
        // Durability, expiry policy, time-out.
        fields.skip(3)?;
        let dynamic = fields.boolean("dynamic")?.unwrap_or(false);
        let mut selector = None;
        if is_source {
            // Properties of a dynamic node, distribution mode.
            fields.skip(2)?;
            selector = selector_among(&mut fields)?;
        }
        Ok(Some(Terminus { address, dynamic, capabilities: &[], selector }))
    }

    /// The fields that source and target begin with.
    fn encode_front(&self, fields: &mut FieldWriter<'_>) {
        fields.optional_text(self.address);
        // Durability, expiry policy, time-out.
        (0..3).for_each(|_| fields.null());
        fields.optional_boolean(self.dynamic.then_some(true));
        // Properties requested for a dynamic node.
        fields.null();
    }

    fn encode_capabilities(&self, fields: &mut FieldWriter<'_>) {
        if self.capabilities.is_empty() {
            fields.null();
        } else {
            fields.symbols(self.capabilities);
        }
    }

    fn encode_source(terminus: Option<Terminus<'_>>, fields: &mut FieldWriter<'_>) {
        let Some(terminus) = terminus else { return fields.null() };
        fields.composite(0x28, |fields| {
            terminus.encode_front(fields);
            // Distribution mode.
            fields.null();
            match terminus.selector {
                Some(selector) => fields.filter(SELECTOR, SELECTOR_CODE, selector),
                None => fields.null(),
            }
            // Default outcome.
            fields.null();
            fields.symbols(OUTCOMES);
            terminus.encode_capabilities(fields);
        });
    }

    fn encode_target(terminus: Option<Terminus<'_>>, fields: &mut FieldWriter<'_>) {
        let Some(terminus) = terminus else { return fields.null() };
        fields.composite(0x29, |fields| {
            terminus.encode_front(fields);
            terminus.encode_capabilities(fields);
        });
    }
}

impl<'a> Attach<'a> {
    pub(super) fn decode(described: &Described<'a>) -> Result<Attach<'a>, DecodeError> {
        let mut fields = Fields::of("attach", described)?;
        let name = fields.needed_text("name")?;
        let handle = fields.needed_uint("handle")?;
        let role = Role::decode(fields.needed_boolean("role")?);
        let sender_settles = match fields.ubyte("snd-settle-mode")? {
            Some(0) => SenderSettles::Unsettled,
            Some(1) => SenderSettles::Settled,
            Some(2) | None => SenderSettles::Mixed,
            Some(_) => return Err(DecodeError::Field { performative: "attach", field: "snd-settle-mode" }),
        };
        // When the receiver settles.
        fields.skip(1)?;
        let source = Terminus::decode(fields.described("source")?)?;
        let target = Terminus::decode(fields.described("target")?)?;
        // Unsettled deliveries of an earlier link.
        fields.skip(2)?;
        let initial_delivery_count = fields.uint("initial-delivery-count")?;
        let max_message_bytes = fields.ulong("max-message-size")?;
        Ok(Attach { name, handle, role, sender_settles, source, target, initial_delivery_count, max_message_bytes })
    }

    /// Appends its frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        encode_frame(FrameKind::Amqp, channel, out, |out| {
            composite(0x12, out, |fields| {
                fields.text(self.name);
                fields.uint(self.handle);
                fields.boolean(self.role.receives());
                fields.ubyte(match self.sender_settles {
                    SenderSettles::Unsettled => 0,
                    SenderSettles::Settled => 1,
                    SenderSettles::Mixed => 2,
                });
                // The receiver settles first.
                fields.ubyte(0);
                Terminus::encode_source(self.source, fields);
                Terminus::encode_target(self.target, fields);
                fields.null();
                fields.null();
                fields.optional_uint(self.initial_delivery_count);
                match self.max_message_bytes {
                    Some(bytes) => fields.ulong(bytes),
                    None => fields.null(),
                }
            });
        });
    }
}

impl Flow {
    pub(super) fn decode(described: &Described<'_>) -> Result<Flow, DecodeError> {
        let mut fields = Fields::of("flow", described)?;
        let next_incoming_id = fields.uint("next-incoming-id")?;
        let incoming_window = fields.needed_uint("incoming-window")?;
        let next_outgoing_id = fields.needed_uint("next-outgoing-id")?;
        let outgoing_window = fields.needed_uint("outgoing-window")?;
        let handle = fields.uint("handle")?;
        let delivery_count = fields.uint("delivery-count")?;
        let link_credit = fields.uint("link-credit")?;
        // Messages that wait.
        fields.skip(1)?;
        Ok(Flow {
            next_incoming_id,
            incoming_window,
            next_outgoing_id,
            outgoing_window,
            handle,
            delivery_count,
            link_credit,
            drain: fields.boolean("drain")?.unwrap_or(false),
            echo: fields.boolean("echo")?.unwrap_or(false),
        })
    }

    /// Appends its frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        encode_frame(FrameKind::Amqp, channel, out, |out| {
            composite(0x13, out, |fields| {
                fields.optional_uint(self.next_incoming_id);
                fields.uint(self.incoming_window);
                fields.uint(self.next_outgoing_id);
                fields.uint(self.outgoing_window);
                fields.optional_uint(self.handle);
                fields.optional_uint(self.delivery_count);
                fields.optional_uint(self.link_credit);
                fields.null();
                if self.drain || self.echo {
                    fields.boolean(self.drain);
                    fields.boolean(self.echo);
                }
            });
        });
    }
}

impl<'a> Detach<'a> {
    pub(super) fn decode(described: &Described<'a>) -> Result<Detach<'a>, DecodeError> {
        let mut fields = Fields::of("detach", described)?;
        let handle = fields.needed_uint("handle")?;
        let closed = fields.boolean("closed")?.unwrap_or(false);
        Ok(Detach { handle, closed, error: Condition::decode(fields.described("error")?)? })
    }

    /// Appends its frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        encode_frame(FrameKind::Amqp, channel, out, |out| {
            composite(0x16, out, |fields| {
                fields.uint(self.handle);
                fields.boolean(self.closed);
                Condition::encode(self.error, fields);
            });
        });
    }
}
