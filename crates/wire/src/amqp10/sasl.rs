//! The log-in (part 5, §5.3), and its mechanisms PLAIN (RFC 4616) and ANONYMOUS (RFC 4505).

use super::error::DecodeError;
use super::fields::{Fields, code};
use super::frame::{FrameKind, encode_frame};
use super::value::{Described, Value, take};
use super::writer::composite;

/// Mechanisms of a server that are read.
const MOST_MECHANISMS: usize = 64;

/// A server's frames during the log-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslFrame<'a> {
    /// The mechanisms it has.
    Mechanisms(Vec<&'a str>),
    /// A challenge.
    Challenge,
    /// It is done: a code of [`outcome_name`].
    Outcome(u8),
}

impl<'a> SaslFrame<'a> {
    /// Reads the body of a SASL frame.
    pub fn decode(mut body: &'a [u8]) -> Result<SaslFrame<'a>, DecodeError> {
        let Value::Described(described) = take(&mut body)? else { return Err(DecodeError::NoPerformative) };
        match code(&described)? {
            0x40 => Ok(SaslFrame::Mechanisms(mechanisms(&described)?)),
            0x42 => Ok(SaslFrame::Challenge),
            0x44 => {
                let wrong = DecodeError::Field { performative: "sasl-outcome", field: "code" };
                Fields::of("sasl-outcome", &described)?.ubyte("code")?.map(SaslFrame::Outcome).ok_or(wrong)
            }
            other => Err(DecodeError::Performative(other)),
        }
    }
}

/// One symbol, or an array of them.
fn mechanisms<'a>(described: &Described<'a>) -> Result<Vec<&'a str>, DecodeError> {
    let wrong = DecodeError::Field { performative: "sasl-mechanisms", field: "sasl-server-mechanisms" };
    let mut names = vec![];
    match Fields::of("sasl-mechanisms", described)?.value()? {
        Value::Symbol(name) => names.push(name),
        Value::Array(mut array) => {
            while let Some(value) = array.take()? {
                let Value::Symbol(name) = value else { return Err(wrong) };
                if names.len() == MOST_MECHANISMS {
                    return Err(wrong);
                }
                names.push(name);
            }
        }
        _ => return Err(wrong),
    }
    Ok(names)
}

/// Appends the frame that begins a log-in without a name.
pub fn encode_anonymous(hostname: &str, out: &mut Vec<u8>) {
    encode_init("ANONYMOUS", b"", hostname, out);
}

/// Appends the frame that begins a log-in with a name and a password.
pub fn encode_plain(user: &str, password: &str, hostname: &str, out: &mut Vec<u8>) {
    let response = [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat();
    encode_init("PLAIN", &response, hostname, out);
}

fn encode_init(mechanism: &str, response: &[u8], hostname: &str, out: &mut Vec<u8>) {
    encode_frame(FrameKind::Sasl, 0, out, |out| {
        composite(0x41, out, |fields| {
            fields.symbol(mechanism);
            fields.binary(response);
            fields.text(hostname);
        });
    });
}

/// The name of a code of sasl-outcome (part 5, §5.3.3.6).
pub fn outcome_name(code: u8) -> &'static str {
    match code {
        0 => "ok",
        1 => "authentication failed",
        2 => "system error",
        3 => "permanent system error",
        4 => "transient system error",
        _ => "unknown outcome",
    }
}
