//! The body of an AMQP frame.

use super::condition::Condition;
use super::connection::{Begin, Open, decode_error};
use super::delivery::{Disposition, Transfer};
use super::error::DecodeError;
use super::fields::code;
use super::link::{Attach, Detach, Flow};
use super::value::{Value, take};

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performative<'a> {
    /// A connection begins.
    Open(Open<'a>),
    /// A session begins.
    Begin(Begin),
    /// A link begins.
    Attach(Attach<'a>),
    /// Windows and credit.
    Flow(Flow),
    /// A message, or a part of one.
    Transfer(Transfer<'a>),
    /// State of deliveries.
    Disposition(Disposition<'a>),
    /// A link ends.
    Detach(Detach<'a>),
    /// The session ends.
    End(Option<Condition<'a>>),
    /// The connection ends.
    Close(Option<Condition<'a>>),
}

impl<'a> Performative<'a> {
    /// Reads the body of an AMQP frame, which is not empty.
    pub fn decode(mut body: &'a [u8]) -> Result<Performative<'a>, DecodeError> {
        let Value::Described(described) = take(&mut body)? else { return Err(DecodeError::NoPerformative) };
        Ok(match code(&described)? {
            0x14 => Performative::Transfer(Transfer::decode(&described, body)?),
            0x15 => Performative::Disposition(Disposition::decode(&described)?),
            0x13 => Performative::Flow(Flow::decode(&described)?),
            0x10 => Performative::Open(Open::decode(&described)?),
            0x11 => Performative::Begin(Begin::decode(&described)?),
            0x12 => Performative::Attach(Attach::decode(&described)?),
            0x16 => Performative::Detach(Detach::decode(&described)?),
            0x17 => Performative::End(decode_error("end", &described)?),
            0x18 => Performative::Close(decode_error("close", &described)?),
            other => return Err(DecodeError::Performative(other)),
        })
    }

    /// What the standard calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Performative::Open(_) => "open",
            Performative::Begin(_) => "begin",
            Performative::Attach(_) => "attach",
            Performative::Flow(_) => "flow",
            Performative::Transfer(_) => "transfer",
            Performative::Disposition(_) => "disposition",
            Performative::Detach(_) => "detach",
            Performative::End(_) => "end",
            Performative::Close(_) => "close",
        }
    }
}
