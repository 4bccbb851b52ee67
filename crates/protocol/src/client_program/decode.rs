//! Bytes to frames. Any input is a frame, too few bytes, or an error; lengths are checked before anything is stored.

use super::encode::kind;
use super::frames::{End, FromProgram, How, ToProgram};
use super::{LENGTH_BYTES, SHORTEST_PART};

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Longer than it may be.
    #[error("a frame of {length} bytes, where {most} are allowed{}", printed(*length))]
    TooLong {
        /// The value of its length field.
        length: usize,
        /// The largest value allowed.
        most: usize,
    },
    /// Without a kind.
    #[error("a frame of no bytes")]
    Empty,
    /// Of an unknown kind.
    #[error("a frame of kind 0x{0:02x}, which there is not")]
    Kind(u8),
    /// Shorter than its fields.
    #[error("a frame of kind 0x{0:02x} that ends within a field")]
    Short(u8),
    /// With bytes after its last field.
    #[error("a frame of kind 0x{0:02x} with bytes behind its last field")]
    Long(u8),
    /// A text that is not UTF-8.
    #[error("a frame of kind 0x{0:02x} with a text that is no UTF-8")]
    Text(u8),
    /// A number without a meaning.
    #[error("a frame of kind 0x{kind:02x} with {value} for `{field}`")]
    Value {
        /// Kind of the frame.
        kind: u8,
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: u32,
    },
}

/// Remark on a length whose bytes are a text: the program printed something where frames are expected.
fn printed(length: usize) -> String {
    let bytes = u32::try_from(length).unwrap_or(0).to_le_bytes();
    match std::str::from_utf8(&bytes).ok().filter(|text| text.chars().all(|letter| (' '..='~').contains(&letter))) {
        Some(text) => format!(": it begins with the text `{text}`, and standard output is for frames, not for print"),
        None => String::new(),
    }
}

/// The first frame of some bytes, not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: u8,
    /// Its fields.
    pub body: &'a [u8],
    /// Its size in bytes, length field included.
    pub bytes: usize,
}

/// The first frame of `bytes`; `None` if it is not whole yet. `most` is how many bytes may follow a length.
///
/// # Errors
/// It is empty, or longer than that.
pub fn next_frame(bytes: &[u8], most: usize) -> Result<Option<Frame<'_>>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    match length {
        0 => return Err(Malformed::Empty),
        length if length > most => return Err(Malformed::TooLong { length, most }),
        _ => {}
    }
    Ok(rest.get(..length).map(|frame| Frame { kind: frame[0], body: &frame[1..], bytes: LENGTH_BYTES + length }))
}

/// Reads fields one after another.
struct Fields<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk::<BYTES>().ok_or(Malformed::Short(self.kind))?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(self.value(field, value)),
        }
    }

    fn value(&self, field: &'static str, value: u8) -> Malformed {
        Malformed::Value { kind: self.kind, field, value: value.into() }
    }

    fn utf8(&self, bytes: &'a [u8]) -> Result<&'a str, Malformed> {
        std::str::from_utf8(bytes).map_err(|_| Malformed::Text(self.kind))
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = usize::from(self.u16()?);
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short(self.kind))?;
        self.rest = rest;
        self.utf8(bytes)
    }

    /// All that is left, as bytes.
    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// All that is left, as a text.
    fn text_to_end(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.all();
        self.utf8(bytes)
    }

    fn end<T>(&self, frame: T) -> Result<T, Malformed> {
        if self.rest.is_empty() { Ok(frame) } else { Err(Malformed::Long(self.kind)) }
    }
}

impl<'a> Frame<'a> {
    /// Decodes a frame from a program.
    ///
    /// # Errors
    /// It is not one.
    pub fn from_program(&self) -> Result<FromProgram<'a>, Malformed> {
        let mut fields = Fields { kind: self.kind, rest: self.body };
        let frame = match self.kind {
            kind::HELLO => FromProgram::Hello(fields.all()),
            kind::PONG => FromProgram::Pong { number: fields.u64()?, stamp_ns: fields.u64()? },
            kind::GOODBYE_OF_PROGRAM => FromProgram::Goodbye,
            kind::CONNECTED..=kind::REVOKED => fields.of_session()?,
            unknown => return Err(Malformed::Kind(unknown)),
        };
        fields.end(frame)
    }

    /// Decodes a frame to a program.
    ///
    /// # Errors
    /// It is not one.
    pub fn to_program(&self) -> Result<ToProgram<'a>, Malformed> {
        let mut fields = Fields { kind: self.kind, rest: self.body };
        let frame = match self.kind {
            kind::BEGIN => ToProgram::Begin(fields.all()),
            kind::PING => ToProgram::Ping { number: fields.u64()? },
            kind::GOODBYE => ToProgram::Goodbye,
            kind::TOPIC => ToProgram::Topic {
                client: fields.u32()?,
                publication: fields.u16()?,
                qos: fields.u8()?,
                retain: fields.flag("retain")?,
                topic: fields.text()?,
                device_type: fields.text()?,
            },
            kind::CONNECT..=kind::DISCONNECT => fields.for_session()?,
            unknown => return Err(Malformed::Kind(unknown)),
        };
        fields.end(frame)
    }
}

impl<'a> Fields<'a> {
    fn of_session(&mut self) -> Result<FromProgram<'a>, Malformed> {
        let (client, connection) = (self.u32()?, self.u32()?);
        Ok(match self.kind {
            kind::CONNECTED => FromProgram::Connected {
                client,
                connection,
                receive_maximum: self.u16()?,
                maximum_packet_bytes: self.u32()?,
            },
            kind::CLOSED => {
                let number = self.u8()?;
                let end = End::of(number).ok_or_else(|| self.value("end", number))?;
                FromProgram::Closed { client, connection, end, code: self.u8()?, reason: self.text_to_end()? }
            }
            kind::GRANTED => {
                let (subscription, qos) = (self.u16()?, self.u8()?);
                if (3..128).contains(&qos) {
                    return Err(self.value("qos", qos));
                }
                FromProgram::Granted { client, connection, subscription, qos, reason: self.text_to_end()? }
            }
            kind::WRITTEN => FromProgram::Written {
                client,
                connection,
                publication: self.u16()?,
                sequence: self.u32()?,
                stamp_ns: self.u64()?,
            },
            kind::ABANDONED => {
                FromProgram::Abandoned { client, connection, publication: self.u16()?, sequence: self.u32()? }
            }
            kind::ACKNOWLEDGED => FromProgram::Acknowledged {
                client,
                connection,
                publication: self.u16()?,
                sequence: self.u32()?,
                code: self.u8()?,
                reason: self.text_to_end()?,
            },
            kind::DELIVERED => self.delivered(client, connection)?,
            kind::REVOKED => {
                let (subscription, code) = (self.u16()?, self.u8()?);
                if (1..128).contains(&code) {
                    return Err(self.value("code", code));
                }
                FromProgram::Revoked { client, connection, subscription, code, reason: self.text_to_end()? }
            }
            unknown => return Err(Malformed::Kind(unknown)),
        })
    }

    fn delivered(&mut self, client: u32, connection: u32) -> Result<FromProgram<'a>, Malformed> {
        let (retained, stamp_ns, payload_bytes) = (self.flag("retained")?, self.u64()?, self.u32()?);
        let payload = self.all();
        let whole = payload_bytes as usize;
        if payload.len() > whole {
            return Err(Malformed::Long(self.kind));
        }
        if payload.len() < whole.min(SHORTEST_PART) {
            return Err(Malformed::Short(self.kind));
        }
        Ok(FromProgram::Delivered { client, connection, retained, stamp_ns, payload_bytes, payload })
    }

    fn for_session(&mut self) -> Result<ToProgram<'a>, Malformed> {
        let (client, connection) = (self.u32()?, self.u32()?);
        Ok(match self.kind {
            kind::CONNECT => {
                let (endpoint, window, has_login) = (self.u16()?, self.u16()?, self.flag("login")?);
                let (client_id, user, password) = (self.text()?, self.text()?, self.text()?);
                let login = has_login.then_some((user, password));
                ToProgram::Connect { client, connection, endpoint, window, client_id, login }
            }
            kind::SUBSCRIBE => ToProgram::Subscribe {
                client,
                connection,
                subscription: self.u16()?,
                qos: self.u8()?,
                filter: self.text()?,
                shared: self.text()?,
            },
            kind::PUBLISH => ToProgram::Publish {
                client,
                connection,
                publication: self.u16()?,
                sequence: self.u32()?,
                due_ns: self.u64()?,
                ready_ns: self.u64()?,
                payload: self.all(),
            },
            kind::DISCONNECT => {
                let number = self.u8()?;
                let how = How::of(number).ok_or_else(|| self.value("how", number))?;
                ToProgram::Disconnect { client, connection, how }
            }
            unknown => return Err(Malformed::Kind(unknown)),
        })
    }
}
