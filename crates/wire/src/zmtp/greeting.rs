//! The first 64 bytes of each side: version and mechanism (37/ZMTP, "Formal Grammar").

use super::error::DecodeError;
use super::frame::Item;
use crate::front::Front;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 64;
/// First byte of a greeting, and of no frame.
pub(super) const SIGNATURE_FIRST: u8 = 0xff;
/// Last byte of the signature.
pub(super) const SIGNATURE_LAST: u8 = 0x7f;
/// Where the signature ends.
pub(super) const SIGNATURE_LAST_AT: usize = 9;
const MAJOR_AT: usize = 10;
const MINOR_AT: usize = 11;
const MECHANISM_AT: usize = 12;
/// Bytes of a mechanism's name, filled up with zeros.
pub(super) const MECHANISM_BYTES: usize = 20;
const AS_SERVER_AT: usize = MECHANISM_AT + MECHANISM_BYTES;
/// Version that we support.
pub(super) const VERSION: [u8; 2] = [3, 1];

/// How peers know each other. Both sides must name the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Not at all.
    Null,
    /// By user name and password in the clear.
    Plain,
    /// Another one: CURVE, GSSAPI.
    Other,
}

impl Mechanism {
    /// Its name; of another one, what it is called in general.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Null => "NULL",
            Mechanism::Plain => "PLAIN",
            Mechanism::Other => "another",
        }
    }
}

/// A peer's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Minor version; the major is 3 or higher, and a higher one talks to us as 3.1.
    pub minor: u8,
    /// Mechanism that it wants.
    pub mechanism: Mechanism,
    /// It is the server of its mechanism.
    pub as_server: bool,
}

/// The greeting at the front of bytes that begin with 0xFF. An error is returned with the byte that shows it, as peers of old
/// versions never send 64.
pub(super) fn next(bytes: &[u8]) -> Result<Front<Item<'_>>, DecodeError> {
    if bytes.get(SIGNATURE_LAST_AT).is_some_and(|byte| *byte != SIGNATURE_LAST) {
        return Err(DecodeError::Signature);
    }
    let major = bytes.get(MAJOR_AT).copied();
    if let Some(major) = major.filter(|major| *major < VERSION[0]) {
        return Err(DecodeError::Version { major });
    }
    let (Some(major), Some(greeting)) = (major, bytes.get(..GREETING_BYTES)) else {
        return Ok(Front::Partial(Some(GREETING_BYTES)));
    };
    let item = Item::Greeting(Greeting {
        minor: if major > VERSION[0] { VERSION[1] } else { greeting[MINOR_AT] },
        mechanism: mechanism(&greeting[MECHANISM_AT..AS_SERVER_AT])?,
        as_server: greeting[AS_SERVER_AT] != 0,
    });
    Ok(Front::Whole { packet: item, bytes: GREETING_BYTES })
}

fn mechanism(field: &[u8]) -> Result<Mechanism, DecodeError> {
    let length = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let (name, filler) = field.split_at(length);
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_.+".contains(byte);
    if name.is_empty() || !name.iter().all(is_letter) || filler.iter().any(|byte| *byte != 0) {
        return Err(DecodeError::Mechanism);
    }
    Ok(match name {
        b"NULL" => Mechanism::Null,
        b"PLAIN" => Mechanism::Plain,
        _ => Mechanism::Other,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::zmtp::{encode_greeting_front, encode_greeting_rest, next};

    fn greeting(mechanism: Mechanism) -> Vec<u8> {
        let mut out = Vec::new();
        encode_greeting_front(&mut out);
        encode_greeting_rest(mechanism, &mut out);
        out
    }

    #[test]
    fn what_is_written_is_read() {
        for mechanism in [Mechanism::Null, Mechanism::Plain] {
            let bytes = greeting(mechanism);
            let item = Item::Greeting(Greeting { minor: 1, mechanism, as_server: false });
            assert_eq!(next(&bytes, 1_000), Ok(Front::Whole { packet: item, bytes: GREETING_BYTES }));
            for length in 1..GREETING_BYTES {
                assert_eq!(next(&bytes[..length], 1_000), Ok(Front::Partial(Some(GREETING_BYTES))), "{length}");
            }
        }
    }

    #[test]
    fn the_padding_is_ignored_and_a_higher_version_falls_back_to_ours() {
        let mut bytes = greeting(Mechanism::Null);
        bytes[1..9].copy_from_slice(b"whatever");
        (bytes[MAJOR_AT], bytes[MINOR_AT], bytes[AS_SERVER_AT]) = (4, 0, 1);
        let item = Item::Greeting(Greeting { minor: 1, mechanism: Mechanism::Null, as_server: true });
        assert_eq!(next(&bytes, 1_000), Ok(Front::Whole { packet: item, bytes: GREETING_BYTES }));
        bytes[MAJOR_AT] = 3;
        let item = Item::Greeting(Greeting { minor: 0, mechanism: Mechanism::Null, as_server: true });
        assert_eq!(next(&bytes, 1_000), Ok(Front::Whole { packet: item, bytes: GREETING_BYTES }));
        bytes[MECHANISM_AT..MECHANISM_AT + 5].copy_from_slice(b"CURVE");
        let Ok(Front::Whole { packet: Item::Greeting(found), .. }) = next(&bytes, 1_000) else { panic!("no greeting") };
        assert_eq!(found.mechanism, Mechanism::Other);
    }

    #[test]
    fn a_greeting_of_another_version_is_reported_with_its_first_wrong_byte() {
        let bytes = greeting(Mechanism::Null);
        // ZMTP 2.0: signature, revision 1, socket type, an empty identity. ZMTP 1.0 with a long identity has no signature.
        for (major, length) in [(0, 11), (1, 14), (2, 64)] {
            let mut old = bytes.clone();
            old[MAJOR_AT] = major;
            assert_eq!(next(&old[..length], 1_000), Err(DecodeError::Version { major }));
        }
        let mut long = bytes.clone();
        long[SIGNATURE_LAST_AT] = 0;
        assert_eq!(next(&long[..10], 1_000), Err(DecodeError::Signature));
        for wrong in [&b"\0ULL"[..], b"null", b"NU L", b"NULL\0X"] {
            let mut named = bytes.clone();
            named[MECHANISM_AT..MECHANISM_AT + wrong.len()].copy_from_slice(wrong);
            assert_eq!(next(&named, 1_000), Err(DecodeError::Mechanism), "{}", wrong.escape_ascii());
        }
    }
}
