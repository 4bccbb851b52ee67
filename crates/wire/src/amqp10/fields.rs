//! The fields of a described list, in order.

use super::error::DecodeError;
use super::value::{Described, Items, Value};

/// The fields of a performative that were not read yet. Those after its last are null.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    performative: &'static str,
    items: Items<'a>,
}

/// The number of a descriptor. Symbols, which stand for the same numbers, are known by the standard's list.
pub fn code(described: &Described<'_>) -> Result<u64, DecodeError> {
    match described.descriptor()? {
        Value::Unsigned(code) => Ok(code),
        Value::Symbol(name) => {
            NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code).ok_or(DecodeError::NoPerformative)
        }
        _ => Err(DecodeError::NoPerformative),
    }
}

/// Descriptors by name (parts 2, 3 and 5).
const NAMES: &[(&str, u64)] = &[
    ("amqp:open:list", 0x10),
    ("amqp:begin:list", 0x11),
    ("amqp:attach:list", 0x12),
    ("amqp:flow:list", 0x13),
    ("amqp:transfer:list", 0x14),
    ("amqp:disposition:list", 0x15),
    ("amqp:detach:list", 0x16),
    ("amqp:end:list", 0x17),
    ("amqp:close:list", 0x18),
    ("amqp:error:list", 0x1d),
    ("amqp:received:list", 0x23),
    ("amqp:accepted:list", 0x24),
    ("amqp:rejected:list", 0x25),
    ("amqp:released:list", 0x26),
    ("amqp:modified:list", 0x27),
    ("amqp:source:list", 0x28),
    ("amqp:target:list", 0x29),
    ("amqp:coordinator:list", 0x30),
    ("amqp:sasl-mechanisms:list", 0x40),
    ("amqp:sasl-init:list", 0x41),
    ("amqp:sasl-challenge:list", 0x42),
    ("amqp:sasl-response:list", 0x43),
    ("amqp:sasl-outcome:list", 0x44),
    ("amqp:header:list", 0x70),
    ("amqp:delivery-annotations:map", 0x71),
    ("amqp:message-annotations:map", 0x72),
    ("amqp:properties:list", 0x73),
    ("amqp:application-properties:map", 0x74),
    ("amqp:data:binary", 0x75),
    ("amqp:amqp-sequence:list", 0x76),
    ("amqp:amqp-value:*", 0x77),
    ("amqp:footer:map", 0x78),
];

impl<'a> Fields<'a> {
    /// The fields of a described list.
    pub fn of(performative: &'static str, described: &Described<'a>) -> Result<Fields<'a>, DecodeError> {
        match described.value()? {
            Value::List(items) => Ok(Fields { performative, items }),
            _ => Err(DecodeError::NoPerformative),
        }
    }

    fn wrong(&self, field: &'static str) -> DecodeError {
        DecodeError::Field { performative: self.performative, field }
    }

    /// The next field; null if there is none.
    pub fn value(&mut self) -> Result<Value<'a>, DecodeError> {
        Ok(self.items.take()?.unwrap_or(Value::Null))
    }

    /// Leaves fields out.
    pub fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        (0..count).try_for_each(|_| self.value().map(|_| ()))
    }

    fn number<N: TryFrom<u64>>(&mut self, field: &'static str) -> Result<Option<N>, DecodeError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Unsigned(number) => N::try_from(number).map(Some).map_err(|_| self.wrong(field)),
            _ => Err(self.wrong(field)),
        }
    }

    /// A number of 8 bits.
    pub fn ubyte(&mut self, field: &'static str) -> Result<Option<u8>, DecodeError> {
        self.number(field)
    }

    /// A number of 16 bits.
    pub fn ushort(&mut self, field: &'static str) -> Result<Option<u16>, DecodeError> {
        self.number(field)
    }

    /// A number of 32 bits.
    pub fn uint(&mut self, field: &'static str) -> Result<Option<u32>, DecodeError> {
        self.number(field)
    }

    /// A number of 32 bits that must be there.
    pub fn needed_uint(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.number(field)?.ok_or_else(|| self.wrong(field))
    }

    /// A number of 64 bits.
    pub fn ulong(&mut self, field: &'static str) -> Result<Option<u64>, DecodeError> {
        self.number(field)
    }

    /// A truth value.
    pub fn boolean(&mut self, field: &'static str) -> Result<Option<bool>, DecodeError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Boolean(truth) => Ok(Some(truth)),
            _ => Err(self.wrong(field)),
        }
    }

    /// A truth value that must be there.
    pub fn needed_boolean(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.boolean(field)?.ok_or_else(|| self.wrong(field))
    }

    /// Bytes.
    pub fn binary(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Binary(bytes) => Ok(Some(bytes)),
            _ => Err(self.wrong(field)),
        }
    }

    /// Text, or a symbol.
    pub fn text(&mut self, field: &'static str) -> Result<Option<&'a str>, DecodeError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Text(text) | Value::Symbol(text) => Ok(Some(text)),
            _ => Err(self.wrong(field)),
        }
    }

    /// Text that must be there.
    pub fn needed_text(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        self.text(field)?.ok_or_else(|| self.wrong(field))
    }

    /// A described value.
    pub fn described(&mut self, field: &'static str) -> Result<Option<Described<'a>>, DecodeError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Described(described) => Ok(Some(described)),
            _ => Err(self.wrong(field)),
        }
    }

    /// A map; none is an empty one.
    pub fn map(&mut self, field: &'static str) -> Result<Option<Items<'a>>, DecodeError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Map(pairs) => Ok(Some(pairs)),
            _ => Err(self.wrong(field)),
        }
    }

    /// Is a name among those of a field that may have several (part 1, §1.4, `multiple`)?
    pub fn has_name(&mut self, field: &'static str, name: &str) -> Result<bool, DecodeError> {
        match self.value()? {
            Value::Null => Ok(false),
            Value::Symbol(only) => Ok(only == name),
            Value::Array(mut names) => {
                while let Some(one) = names.take()? {
                    if one == Value::Symbol(name) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Err(self.wrong(field)),
        }
    }

    /// A message's identifier as it is encoded: a number, a UUID, bytes or text (part 3, §3.2.11). Empty if there is none.
    pub fn identifier(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.items.take_encoded()? {
            None | Some((Value::Null, _)) => Ok(&[]),
            Some((Value::Unsigned(_) | Value::Uuid(_) | Value::Binary(_) | Value::Text(_), encoded)) => Ok(encoded),
            Some(_) => Err(self.wrong(field)),
        }
    }
}
