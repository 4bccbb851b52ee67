//! Writes the fields of packets. Lengths are known before the first byte is written, so nothing is moved.

use super::error::EncodeError;
use super::frame::MAXIMUM_REMAINING_LENGTH;

/// Bytes of a text or binary field with its length.
pub(crate) fn field_bytes(field: &[u8]) -> Result<usize, EncodeError> {
    if field.len() > usize::from(u16::MAX) {
        return Err(EncodeError::FieldTooLong { bytes: field.len() });
    }
    Ok(2 + field.len())
}

/// Bytes that a number takes as a variable byte integer; at most [`MAXIMUM_REMAINING_LENGTH`].
pub(crate) fn variable_bytes(number: usize) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

pub(crate) fn put_variable(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The first byte and the remaining length; capacity for the rest is reserved.
pub(crate) fn put_fixed_header(first_byte: u8, remaining: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if remaining > MAXIMUM_REMAINING_LENGTH {
        return Err(EncodeError::TooLarge { bytes: remaining });
    }
    out.push(first_byte);
    put_variable(remaining, out);
    Ok(())
}

/// A text or binary field, whose length [`field_bytes`] has checked.
pub(crate) fn put_field(field: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(field.len() as u16).to_be_bytes());
    out.extend_from_slice(field);
}

pub(crate) fn put_two(number: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes());
}
