//! Values of AMQP's type system (part 1, §1.6), borrowed from the input.
//!
//! A value is delimited by its size; the content of a list, a map or an array is decoded only on demand. So nothing here
//! allocates, nothing is decoded twice, and the only nesting that has to be followed, that of described values, is limited.

use super::error::DecodeError;

/// Most described values nested in described values.
pub const DEEPEST: usize = 8;
/// Most elements of an array whose elements have no bytes.
pub const MOST_EMPTY_ELEMENTS: u32 = 4_096;

/// A value. Encodings of different width are the same kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A truth value.
    Boolean(bool),
    /// ubyte, ushort, uint, ulong.
    Unsigned(u64),
    /// byte, short, int, long.
    Signed(i64),
    /// IEEE 754 binary32.
    Float(f32),
    /// IEEE 754 binary64.
    Double(f64),
    /// decimal32, decimal64 or decimal128, as it is.
    Decimal(&'a [u8]),
    /// A Unicode character; any 32 bits.
    Character(u32),
    /// Milliseconds since 1970.
    Timestamp(i64),
    /// A UUID's 16 B.
    Uuid(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A name of a domain; ASCII.
    Symbol(&'a str),
    /// A list.
    List(Items<'a>),
    /// A map: key, value, key, value.
    Map(Items<'a>),
    /// Elements of one type.
    Array(Array<'a>),
    /// A value with a descriptor.
    Described(Described<'a>),
}

/// What is left of a list or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'a> {
    bytes: &'a [u8],
    left: u32,
}

/// What is left of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    /// The descriptor that all elements share, if they have one.
    descriptor: Option<&'a [u8]>,
    constructor: u8,
    bytes: &'a [u8],
    left: u32,
}

/// A value with a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    descriptor: &'a [u8],
    value: &'a [u8],
}

impl<'a> Described<'a> {
    /// The descriptor's value.
    pub fn descriptor(&self) -> Result<Value<'a>, DecodeError> {
        take(&mut { self.descriptor })
    }

    /// What is described.
    pub fn value(&self) -> Result<Value<'a>, DecodeError> {
        take(&mut { self.value })
    }
}

impl<'a> Items<'a> {
    /// The next element; `None` behind the last.
    pub fn take(&mut self) -> Result<Option<Value<'a>>, DecodeError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        take(&mut self.bytes).map(Some)
    }

    /// The same, with the bytes that it is encoded in.
    pub fn take_encoded(&mut self) -> Result<Option<(Value<'a>, &'a [u8])>, DecodeError> {
        let before = self.bytes;
        Ok(self.take()?.map(|value| (value, &before[..before.len() - self.bytes.len()])))
    }
}

impl<'a> Array<'a> {
    /// The next element, without the descriptor that all share; `None` behind the last.
    pub fn take(&mut self) -> Result<Option<Value<'a>>, DecodeError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let length = data_length(self.constructor, self.bytes)?;
        let (data, rest) = cut(self.bytes, length)?;
        self.bytes = rest;
        primitive(self.constructor, data).map(Some)
    }

    /// The descriptor that all elements share.
    pub fn descriptor(&self) -> Result<Option<Value<'a>>, DecodeError> {
        self.descriptor.map(|mut bytes| take(&mut bytes)).transpose()
    }
}

/// Takes the value at the front of `bytes`.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Result<Value<'a>, DecodeError> {
    let all = *bytes;
    let (&constructor, data) = all.split_first().ok_or(DecodeError::Truncated)?;
    if constructor == 0 {
        let descriptor_bytes = length(data, 1)?;
        let (descriptor, described) = cut(data, descriptor_bytes)?;
        let value_bytes = length(described, 1)?;
        let (value, rest) = cut(described, value_bytes)?;
        *bytes = rest;
        return Ok(Value::Described(Described { descriptor, value }));
    }
    let (data, rest) = cut(data, data_length(constructor, data)?)?;
    *bytes = rest;
    primitive(constructor, data)
}

/// Bytes of the value at the front of `bytes`, constructor included.
fn length(bytes: &[u8], depth: usize) -> Result<usize, DecodeError> {
    let (&constructor, data) = bytes.split_first().ok_or(DecodeError::Truncated)?;
    if constructor != 0 {
        return Ok(1 + data_length(constructor, data)?);
    }
    if depth == DEEPEST {
        return Err(DecodeError::TooDeep(DEEPEST));
    }
    let descriptor_bytes = length(data, depth + 1)?;
    let (_, described) = cut(data, descriptor_bytes)?;
    Ok(1 + descriptor_bytes + length(described, depth + 1)?)
}

/// Bytes after a constructor; its upper half has the encoding of the size (part 1, §1.2).
fn data_length(constructor: u8, data: &[u8]) -> Result<usize, DecodeError> {
    let small = || data.first().map(|&size| 1 + usize::from(size)).ok_or(DecodeError::Truncated);
    let large = || {
        let size = data.first_chunk::<4>().ok_or(DecodeError::Truncated)?;
        (u32::from_be_bytes(*size) as usize).checked_add(4).ok_or(DecodeError::Truncated)
    };
    match constructor >> 4 {
        0x4 => Ok(0),
        0x5 => Ok(1),
        0x6 => Ok(2),
        0x7 => Ok(4),
        0x8 => Ok(8),
        0x9 => Ok(16),
        0xa | 0xc | 0xe => small(),
        0xb | 0xd | 0xf => large(),
        _ => Err(DecodeError::Constructor(constructor)),
    }
}

fn cut(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), DecodeError> {
    bytes.split_at_checked(at).ok_or(DecodeError::Truncated)
}

/// An unsigned number of up to 8 B.
fn number(data: &[u8]) -> u64 {
    data.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The same with a sign.
fn signed(data: &[u8]) -> i64 {
    let unused_bits = 64 - 8 * data.len().clamp(1, 8) as u32;
    (number(data) << unused_bits) as i64 >> unused_bits
}

/// What stands behind a constructor; `data` is exactly that, sizes included.
fn primitive(constructor: u8, data: &[u8]) -> Result<Value<'_>, DecodeError> {
    Ok(match constructor {
        0x40 => Value::Null,
        0x41 => Value::Boolean(true),
        0x42 => Value::Boolean(false),
        0x56 => Value::Boolean(number(data) != 0),
        0x43 | 0x44 => Value::Unsigned(0),
        0x50 | 0x52 | 0x53 | 0x60 | 0x70 | 0x80 => Value::Unsigned(number(data)),
        0x51 | 0x54 | 0x55 | 0x61 | 0x71 | 0x81 => Value::Signed(signed(data)),
        0x72 => Value::Float(f32::from_bits(number(data) as u32)),
        0x73 => Value::Character(number(data) as u32),
        0x74 | 0x84 | 0x94 => Value::Decimal(data),
        0x82 => Value::Double(f64::from_bits(number(data))),
        0x83 => Value::Timestamp(signed(data)),
        0x98 => Value::Uuid(data),
        0xa0 => Value::Binary(behind(data, 1)?),
        0xb0 => Value::Binary(behind(data, 4)?),
        0xa1 => Value::Text(text(behind(data, 1)?)?),
        0xb1 => Value::Text(text(behind(data, 4)?)?),
        0xa3 => Value::Symbol(text(behind(data, 1)?)?),
        0xb3 => Value::Symbol(text(behind(data, 4)?)?),
        0x45 => Value::List(Items { bytes: &[], left: 0 }),
        0xc0 => Value::List(items(data, 1)?),
        0xd0 => Value::List(items(data, 4)?),
        0xc1 => Value::Map(pairs(items(data, 1)?)?),
        0xd1 => Value::Map(pairs(items(data, 4)?)?),
        0xe0 => Value::Array(array(data, 1)?),
        0xf0 => Value::Array(array(data, 4)?),
        other => return Err(DecodeError::Constructor(other)),
    })
}

fn behind(data: &[u8], size_bytes: usize) -> Result<&[u8], DecodeError> {
    data.get(size_bytes..).ok_or(DecodeError::Truncated)
}

fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::Text)
}

/// Size and count have the same width, and the size counts the count in.
fn count(data: &[u8], width: usize) -> Result<(u32, &[u8]), DecodeError> {
    let (count, bytes) = cut(behind(data, width)?, width)?;
    Ok((number(count) as u32, bytes))
}

fn items(data: &[u8], width: usize) -> Result<Items<'_>, DecodeError> {
    let (left, bytes) = count(data, width)?;
    // Each takes a byte at least.
    if left as usize > bytes.len() {
        return Err(DecodeError::Elements { elements: left, bytes: bytes.len() });
    }
    Ok(Items { bytes, left })
}

fn pairs(items: Items<'_>) -> Result<Items<'_>, DecodeError> {
    if items.left % 2 == 1 {
        return Err(DecodeError::Elements { elements: items.left, bytes: items.bytes.len() });
    }
    Ok(items)
}

fn array(data: &[u8], width: usize) -> Result<Array<'_>, DecodeError> {
    let (left, bytes) = count(data, width)?;
    let (mut descriptor, mut rest) = (None, bytes);
    if bytes.first() == Some(&0) {
        let described = behind(bytes, 1)?;
        let (found, remainder) = cut(described, length(described, 1)?)?;
        (descriptor, rest) = (Some(found), remainder);
    }
    // An array without elements may end before the constructor that none of them needs.
    let Some((&constructor, bytes)) = rest.split_first() else {
        return match left {
            0 => Ok(Array { descriptor, constructor: 0x40, bytes: &[], left }),
            _ => Err(DecodeError::Truncated),
        };
    };
    if constructor == 0 {
        return Err(DecodeError::TooDeep(DEEPEST));
    }
    let most = if constructor >> 4 == 0x4 { MOST_EMPTY_ELEMENTS as usize } else { bytes.len() };
    if left as usize > most {
        return Err(DecodeError::Elements { elements: left, bytes: bytes.len() });
    }
    Ok(Array { descriptor, constructor, bytes, left })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> Value<'_> {
        let mut rest = bytes;
        let value = take(&mut rest).unwrap();
        assert_eq!(rest, [0u8; 0]);
        value
    }

    #[test]
    fn every_constructor_of_the_standard_is_read() {
        assert_eq!(one(&[0x40]), Value::Null);
        for (bytes, truth) in [(&[0x41][..], true), (&[0x42], false), (&[0x56, 1], true), (&[0x56, 0], false)] {
            assert_eq!(one(bytes), Value::Boolean(truth));
        }
        for bytes in [&[0x50, 9][..], &[0x60, 0, 9], &[0x70, 0, 0, 0, 9], &[0x52, 9], &[0x53, 9]] {
            assert_eq!(one(bytes), Value::Unsigned(9));
        }
        assert_eq!(one(&[0x80, 255, 255, 255, 255, 255, 255, 255, 255]), Value::Unsigned(u64::MAX));
        assert_eq!((one(&[0x43]), one(&[0x44])), (Value::Unsigned(0), Value::Unsigned(0)));
        for bytes in
            [&[0x51, 0xfe][..], &[0x61, 0xff, 0xfe], &[0x71, 255, 255, 255, 0xfe], &[0x54, 0xfe], &[0x55, 0xfe]]
        {
            assert_eq!(one(bytes), Value::Signed(-2));
        }
        assert_eq!(one(&[0x81, 255, 255, 255, 255, 255, 255, 255, 0xfe]), Value::Signed(-2));
        assert_eq!(one(&[0x72, 0x3f, 0x80, 0, 0]), Value::Float(1.0));
        assert_eq!(one(&[0x82, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]), Value::Double(1.0));
        assert_eq!(one(&[0x73, 0, 0, 0, 0x41]), Value::Character(0x41));
        assert_eq!(one(&[0x83, 255, 255, 255, 255, 255, 255, 255, 255]), Value::Timestamp(-1));
        for (code, width) in [(0x74, 4), (0x84, 8), (0x94, 16)] {
            assert_eq!(one(&[&[code][..], &vec![7; width]].concat()), Value::Decimal(&vec![7; width]));
        }
        assert_eq!(one(&[&[0x98][..], &[7; 16]].concat()), Value::Uuid(&[7; 16]));
        assert_eq!((one(b"\xa0\x02ab"), one(b"\xb0\0\0\0\x02ab")), (Value::Binary(b"ab"), Value::Binary(b"ab")));
        assert_eq!((one(b"\xa1\x02ab"), one(b"\xb1\0\0\0\x02ab")), (Value::Text("ab"), Value::Text("ab")));
        assert_eq!((one(b"\xa3\x02ab"), one(b"\xb3\0\0\0\x02ab")), (Value::Symbol("ab"), Value::Symbol("ab")));
    }

    #[test]
    fn compounds_give_their_elements_one_by_one() {
        for bytes in [&[0xc0, 3, 2, 0x41, 0x40][..], &[0xd0, 0, 0, 0, 6, 0, 0, 0, 2, 0x41, 0x40]] {
            let Value::List(mut items) = one(bytes) else { panic!("no list") };
            let taken = [items.take(), items.take(), items.take()];
            assert_eq!(taken, [Ok(Some(Value::Boolean(true))), Ok(Some(Value::Null)), Ok(None)]);
        }
        assert_eq!(one(&[0x45]), Value::List(Items { bytes: &[], left: 0 }));
        let Value::Map(mut pairs) = one(b"\xc1\x05\x02\xa3\x01k\x41") else { panic!("no map") };
        assert_eq!((pairs.take(), pairs.take()), (Ok(Some(Value::Symbol("k"))), Ok(Some(Value::Boolean(true)))));
        let Value::Array(mut names) = one(b"\xe0\x06\x02\xa3\x01a\x01b") else { panic!("no array") };
        let taken = [names.take(), names.take(), names.take()];
        assert_eq!(taken, [Ok(Some(Value::Symbol("a"))), Ok(Some(Value::Symbol("b"))), Ok(None)]);
        let Value::Array(mut described) = one(&[0xe0, 7, 2, 0, 0x53, 9, 0x50, 1, 2]) else { panic!("no array") };
        assert_eq!(described.descriptor(), Ok(Some(Value::Unsigned(9))));
        assert_eq!((described.take(), described.take()), (Ok(Some(Value::Unsigned(1))), Ok(Some(Value::Unsigned(2)))));
    }

    #[test]
    fn a_described_value_has_both_halves_and_a_bound() {
        let Value::Described(described) = one(&[0, 0x53, 0x24, 0x45]) else { panic!("not described") };
        assert_eq!(described.descriptor(), Ok(Value::Unsigned(0x24)));
        assert_eq!(described.value(), Ok(Value::List(Items { bytes: &[], left: 0 })));
        assert_eq!(take(&mut &[0; 10_000][..]), Err(DecodeError::TooDeep(DEEPEST)));
    }

    #[test]
    fn impossible_sizes_are_refused_before_the_content_is_read() {
        for (bytes, error) in [
            (&[0xd0, 0, 0, 0, 5, 255, 255, 255, 255, 0x40][..], DecodeError::Elements { elements: u32::MAX, bytes: 1 }),
            (&[0xf0, 0, 0, 0, 5, 255, 255, 255, 255, 0x40], DecodeError::Elements { elements: u32::MAX, bytes: 0 }),
            (&[0xc1, 2, 1, 0x40], DecodeError::Elements { elements: 1, bytes: 1 }),
            (&[0xb0, 255, 255, 255, 255, 1], DecodeError::Truncated),
            (&[0xa1, 1, 0xff], DecodeError::Text),
            (&[0x30], DecodeError::Constructor(0x30)),
            (&[0x4f], DecodeError::Constructor(0x4f)),
            (&[0xc0, 0], DecodeError::Truncated),
            (&[], DecodeError::Truncated),
        ] {
            assert_eq!(take(&mut { bytes }), Err(error), "{bytes:?}");
        }
    }
}
