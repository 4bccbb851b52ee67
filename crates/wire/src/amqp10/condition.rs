//! Errors of a peer (part 2, §2.8.14), and outcomes of deliveries (part 3, §3.4).

use super::error::DecodeError;
use super::fields::{Fields, code};
use super::value::Described;
use super::writer::FieldWriter;

/// An error of the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// Its name, for instance `amqp:not-found`.
    pub name: &'a str,
    /// Its description.
    pub description: Option<&'a str>,
}

impl std::fmt::Display for Condition<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)?;
        self.description.map_or(Ok(()), |description| write!(formatter, ": {description}"))
    }
}

impl<'a> Condition<'a> {
    /// Reads an `error` field.
    pub(super) fn decode(described: Option<Described<'a>>) -> Result<Option<Condition<'a>>, DecodeError> {
        let Some(described) = described else { return Ok(None) };
        match code(&described)? {
            0x1d => {}
            other => return Err(DecodeError::Performative(other)),
        }
        let mut fields = Fields::of("error", &described)?;
        let name = fields.needed_text("condition")?;
        Ok(Some(Condition { name, description: fields.text("description")? }))
    }

    pub(super) fn encode(condition: Option<Condition<'_>>, fields: &mut FieldWriter<'_>) {
        let Some(condition) = condition else { return fields.null() };
        fields.composite(0x1d, |fields| {
            fields.symbol(condition.name);
            fields.optional_text(condition.description);
        });
    }
}

/// State of a delivery at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// Some of it came.
    Received,
    /// It is the receiver's now.
    Accepted,
    /// It is unusable.
    Rejected(Option<Condition<'a>>),
    /// It was not and will not be looked at.
    Released,
    /// The same, or something was tried with it.
    Modified {
        /// Trying it failed.
        failed: bool,
        /// It is not to come here again.
        undeliverable_here: bool,
    },
    /// A state that the messaging part does not have.
    Other(u64),
}

impl<'a> State<'a> {
    pub(super) fn decode(described: Option<Described<'a>>) -> Result<Option<State<'a>>, DecodeError> {
        let Some(described) = described else { return Ok(None) };
        Ok(Some(match code(&described)? {
            0x23 => State::Received,
            0x24 => State::Accepted,
            0x25 => {
                let mut fields = Fields::of("rejected", &described)?;
                State::Rejected(Condition::decode(fields.described("error")?)?)
            }
            0x26 => State::Released,
            0x27 => {
                let mut fields = Fields::of("modified", &described)?;
                let failed = fields.boolean("delivery-failed")?.unwrap_or(false);
                State::Modified { failed, undeliverable_here: fields.boolean("undeliverable-here")?.unwrap_or(false) }
            }
            other => State::Other(other),
        }))
    }

    pub(super) fn encode(state: Option<State<'_>>, fields: &mut FieldWriter<'_>) {
        match state {
            None | Some(State::Other(_)) => fields.null(),
            Some(State::Received) => fields.composite(0x23, |fields| {
                fields.uint(0);
                fields.ulong(0);
            }),
            Some(State::Accepted) => fields.composite(0x24, |_| {}),
            Some(State::Rejected(condition)) => {
                fields.composite(0x25, |fields| Condition::encode(condition, fields));
            }
            Some(State::Released) => fields.composite(0x26, |_| {}),
            Some(State::Modified { failed, undeliverable_here }) => fields.composite(0x27, |fields| {
                fields.boolean(failed);
                fields.boolean(undeliverable_here);
            }),
        }
    }
}
