//! Options (RFC 7252 §3.1): numbers as differences, lengths in three forms, values that are bytes or numbers.

/// Separates options from the payload.
pub(super) const PAYLOAD_MARKER: u8 = 0xff;
/// A nibble with the meaning: one byte follows, plus 13.
const ONE_BYTE: u8 = 13;
/// A nibble with the meaning: two bytes follow, plus 269.
const TWO_BYTES: u8 = 14;
const ONE_BYTE_FROM: u32 = 13;
const TWO_BYTES_FROM: u32 = 269;

/// The registry's numbers (RFC 7252 §12.2, RFC 7641, RFC 7959, RFC 7967, RFC 9175).
pub mod number {
    /// The server's name.
    pub const URI_HOST: u16 = 3;
    /// Distinguishes representations.
    pub const ETAG: u16 = 4;
    /// Observing.
    pub const OBSERVE: u16 = 6;
    /// The server's port.
    pub const URI_PORT: u16 = 7;
    /// One segment of the path.
    pub const URI_PATH: u16 = 11;
    /// What the payload is.
    pub const CONTENT_FORMAT: u16 = 12;
    /// How long a representation is good for.
    pub const MAX_AGE: u16 = 14;
    /// What a client takes.
    pub const ACCEPT: u16 = 17;
    /// A block of a response.
    pub const BLOCK2: u16 = 23;
    /// A block of a request.
    pub const BLOCK1: u16 = 27;
    /// Bytes of a whole response.
    pub const SIZE2: u16 = 28;
    /// For a proxy.
    pub const PROXY_URI: u16 = 35;
    /// For a proxy.
    pub const PROXY_SCHEME: u16 = 39;
    /// Bytes of a whole request.
    pub const SIZE1: u16 = 60;
    /// Which responses the client does without.
    pub const NO_RESPONSE: u16 = 258;
    /// Distinguishes bodies whose blocks are sent at the same time.
    pub const REQUEST_TAG: u16 = 292;

    /// Must a receiver that does not know it refuse the message (RFC 7252 §5.4.1)?
    pub const fn is_critical(number: u16) -> bool {
        number & 1 == 1
    }
}

/// One option, cut out.
pub(super) struct RawOption<'a> {
    /// Its number less that of the one before.
    pub(super) delta: u32,
    /// Its value.
    pub(super) value: &'a [u8],
    /// What is behind it.
    pub(super) rest: &'a [u8],
}

/// The option at the front of `bytes`; `None` if it is none, or runs beyond them.
pub(super) fn read_option(bytes: &[u8]) -> Option<RawOption<'_>> {
    let (&first, rest) = bytes.split_first()?;
    let (delta, rest) = extended(first >> 4, rest)?;
    let (length, rest) = extended(first & 0x0f, rest)?;
    let (value, rest) = rest.split_at_checked(length as usize)?;
    Some(RawOption { delta, value, rest })
}

/// The number that a nibble and the bytes behind it stand for; `None` for the reserved nibble.
fn extended(nibble: u8, rest: &[u8]) -> Option<(u32, &[u8])> {
    match nibble {
        0..ONE_BYTE => Some((u32::from(nibble), rest)),
        ONE_BYTE => rest.split_first().map(|(byte, rest)| (u32::from(*byte) + ONE_BYTE_FROM, rest)),
        TWO_BYTES => rest
            .split_first_chunk::<2>()
            .map(|(bytes, rest)| (u32::from(u16::from_be_bytes(*bytes)) + TWO_BYTES_FROM, rest)),
        _ => None,
    }
}

/// Appends an option's head and returns nothing; the value follows.
pub(super) fn write_head(delta: u32, length: usize, out: &mut Vec<u8>) {
    let (delta_nibble, length_nibble) = (nibble_of(delta), nibble_of(length as u32));
    out.push(delta_nibble << 4 | length_nibble);
    append_extended(delta, out);
    append_extended(length as u32, out);
}

fn nibble_of(value: u32) -> u8 {
    match value {
        0..ONE_BYTE_FROM => value as u8,
        ONE_BYTE_FROM..TWO_BYTES_FROM => ONE_BYTE,
        _ => TWO_BYTES,
    }
}

fn append_extended(value: u32, out: &mut Vec<u8>) {
    match value {
        0..ONE_BYTE_FROM => {}
        ONE_BYTE_FROM..TWO_BYTES_FROM => out.push((value - ONE_BYTE_FROM) as u8),
        _ => out.extend_from_slice(&((value - TWO_BYTES_FROM) as u16).to_be_bytes()),
    }
}

/// The options of a message, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    bytes: &'a [u8],
    number: u16,
}

impl<'a> Options<'a> {
    /// Options that were checked.
    pub(super) fn checked(bytes: &'a [u8]) -> Options<'a> {
        Options { bytes, number: 0 }
    }

    /// The first value of an option.
    pub fn get(self, number: u16) -> Option<&'a [u8]> {
        let mut upto = self.take_while(|(found, _)| *found <= number);
        upto.find(|(found, _)| *found == number).map(|(_, value)| value)
    }

    /// All values of an option that may be repeated.
    pub fn all(self, number: u16) -> impl Iterator<Item = &'a [u8]> {
        self.filter(move |(found, _)| *found == number).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let found = read_option(self.bytes)?;
        self.number = self.number.wrapping_add(found.delta as u16);
        self.bytes = found.rest;
        Some((self.number, found.value))
    }
}

/// A value that is a number (RFC 7252 §3.2): at most four bytes, zeros in front allowed. `None` for a longer one.
pub fn uint(value: &[u8]) -> Option<u32> {
    if value.len() > 4 {
        return None;
    }
    Some(value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}
