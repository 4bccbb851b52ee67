//! Values of a test's own, with all the ways in which a peer may write them.

use proptest::prelude::*;
use pubmark_wire::amqp10::value::Value;

/// A value, and the width or form in which it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    Null,
    Boolean(bool, bool),
    Unsigned(u64, usize),
    Signed(i64, usize),
    Float(u32),
    Double(u64),
    Decimal(Vec<u8>),
    Character(u32),
    Timestamp(i64),
    Uuid([u8; 16]),
    Binary(Vec<u8>, bool),
    Text(String, bool),
    Symbol(String, bool),
    List(Vec<Model>, bool),
    Map(Vec<(Model, Model)>, bool),
    Array(Vec<u16>, Option<u64>, bool),
    Symbols(Vec<String>, bool),
    Described(Box<Model>, Box<Model>),
}

/// Any value, nested up to four deep.
pub fn any_value() -> impl Strategy<Value = Model> {
    let width = |widths: &'static [usize]| proptest::sample::select(widths);
    let leaf = prop_oneof![
        Just(Model::Null),
        any::<(bool, bool)>().prop_map(|(truth, long)| Model::Boolean(truth, long)),
        (any::<u64>(), width(&[1, 2, 3, 4, 8])).prop_map(|(number, width)| Model::Unsigned(number, width)),
        (any::<i64>(), width(&[1, 2, 3, 4, 8])).prop_map(|(number, width)| Model::Signed(number, width)),
        any::<u32>().prop_map(Model::Float),
        any::<u64>().prop_map(Model::Double),
        (any::<[u8; 16]>(), width(&[4, 8, 16])).prop_map(|(bytes, width)| Model::Decimal(bytes[..width].to_vec())),
        any::<u32>().prop_map(Model::Character),
        any::<i64>().prop_map(Model::Timestamp),
        any::<[u8; 16]>().prop_map(Model::Uuid),
        (proptest::collection::vec(any::<u8>(), 0..20), any::<bool>())
            .prop_map(|(bytes, long)| Model::Binary(bytes, long)),
        (".{0,10}", any::<bool>()).prop_map(|(text, long)| Model::Text(text, long)),
        ("[a-z:]{0,10}", any::<bool>()).prop_map(|(name, long)| Model::Symbol(name, long)),
        (proptest::collection::vec(any::<u16>(), 0..5), any::<Option<u64>>(), any::<bool>())
            .prop_map(|(numbers, descriptor, long)| Model::Array(numbers, descriptor, long)),
        (proptest::collection::vec("[a-z]{0,5}", 0..5), any::<bool>())
            .prop_map(|(names, long)| Model::Symbols(names, long)),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 0..5), any::<bool>())
                .prop_map(|(items, long)| Model::List(items, long)),
            (proptest::collection::vec((inner.clone(), inner.clone()), 0..3), any::<bool>())
                .prop_map(|(pairs, long)| Model::Map(pairs, long)),
            (inner.clone(), inner).prop_map(|(descriptor, value)| Model::Described(descriptor.into(), value.into())),
        ]
    })
}

impl Model {
    /// Appends its encoding, in the width that it names.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Model::Null => out.push(0x40),
            Model::Boolean(truth, true) => out.extend_from_slice(&[0x56, u8::from(*truth)]),
            Model::Boolean(truth, false) => out.push(if *truth { 0x41 } else { 0x42 }),
            Model::Unsigned(number, width) => numbers([0x50, 0x60, 0x52, 0x70, 0x80], *width, *number, out),
            Model::Signed(number, width) => numbers([0x51, 0x61, 0x54, 0x71, 0x81], *width, *number as u64, out),
            Model::Float(bits) => fixed(0x72, &bits.to_be_bytes(), out),
            Model::Double(bits) => fixed(0x82, &bits.to_be_bytes(), out),
            Model::Decimal(bytes) => fixed([0x74, 0x84, 0x94][bytes.len() / 8], bytes, out),
            Model::Character(bits) => fixed(0x73, &bits.to_be_bytes(), out),
            Model::Timestamp(ms) => fixed(0x83, &ms.to_be_bytes(), out),
            Model::Uuid(bytes) => fixed(0x98, bytes, out),
            Model::Binary(bytes, long) => sized(0xa0, *long, bytes, out),
            Model::Text(text, long) => sized(0xa1, *long, text.as_bytes(), out),
            Model::Symbol(name, long) => sized(0xa3, *long, name.as_bytes(), out),
            Model::List(items, false) if items.is_empty() => out.push(0x45),
            Model::List(items, long) => {
                let mut bytes = vec![];
                items.iter().for_each(|item| item.encode(&mut bytes));
                counted(0xc0, *long, items.len(), &bytes, out);
            }
            Model::Map(pairs, long) => {
                let mut bytes = vec![];
                for (key, value) in pairs {
                    key.encode(&mut bytes);
                    value.encode(&mut bytes);
                }
                counted(0xc1, *long, 2 * pairs.len(), &bytes, out);
            }
            Model::Array(numbers, descriptor, long) => {
                let mut bytes = vec![];
                if let Some(descriptor) = descriptor {
                    bytes.push(0);
                    Model::Unsigned(*descriptor, 8).encode(&mut bytes);
                }
                bytes.push(0x60);
                numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
                counted(0xe0, *long, numbers.len(), &bytes, out);
            }
            Model::Symbols(names, long) => {
                let mut bytes = vec![0xa3];
                for name in names {
                    bytes.push(name.len() as u8);
                    bytes.extend_from_slice(name.as_bytes());
                }
                counted(0xe0, *long, names.len(), &bytes, out);
            }
            Model::Described(descriptor, value) => {
                out.push(0);
                descriptor.encode(out);
                value.encode(out);
            }
        }
    }

    /// Is this what was read?
    pub fn is(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Model::Null, Value::Null) => true,
            (Model::Boolean(truth, _), Value::Boolean(read)) => *truth == read,
            (Model::Unsigned(number, width), Value::Unsigned(read)) => retained(*number, *width) == read,
            (Model::Signed(number, width), Value::Signed(read)) => {
                let bits = 64 - 8 * bytes_of(*width);
                (number << bits) >> bits == read
            }
            (Model::Float(bits), Value::Float(read)) => *bits == read.to_bits() || read.is_nan(),
            (Model::Double(bits), Value::Double(read)) => *bits == read.to_bits() || read.is_nan(),
            (Model::Decimal(bytes), Value::Decimal(read)) => bytes == read,
            (Model::Character(bits), Value::Character(read)) => *bits == read,
            (Model::Timestamp(ms), Value::Timestamp(read)) => *ms == read,
            (Model::Uuid(bytes), Value::Uuid(read)) => bytes == read,
            (Model::Binary(bytes, _), Value::Binary(read)) => bytes == read,
            (Model::Text(text, _), Value::Text(read)) => text == read,
            (Model::Symbol(name, _), Value::Symbol(read)) => name == read,
            (Model::List(items, _), Value::List(mut read)) => {
                items.iter().all(|item| item.is(read.take().unwrap().unwrap())) && read.take() == Ok(None)
            }
            (Model::Map(pairs, _), Value::Map(mut read)) => {
                let mut next = |model: &Model| model.is(read.take().unwrap().unwrap());
                pairs.iter().all(|(key, value)| next(key) && next(value)) && read.take() == Ok(None)
            }
            (Model::Array(numbers, descriptor, _), Value::Array(mut read)) => {
                read.descriptor() == Ok(descriptor.map(Value::Unsigned))
                    && numbers.iter().all(|number| read.take() == Ok(Some(Value::Unsigned(u64::from(*number)))))
                    && read.take() == Ok(None)
            }
            (Model::Symbols(names, _), Value::Array(mut read)) => {
                names.iter().all(|name| read.take() == Ok(Some(Value::Symbol(name)))) && read.take() == Ok(None)
            }
            (Model::Described(descriptor, value), Value::Described(read)) => {
                descriptor.is(read.descriptor().unwrap()) && value.is(read.value().unwrap())
            }
            _ => false,
        }
    }
}

/// Widths are 1, 2, 4 and 8 B; 3 stands for the short form of 4.
fn bytes_of(width: usize) -> usize {
    if width == 3 { 1 } else { width }
}

fn retained(number: u64, width: usize) -> u64 {
    let bits = 64 - 8 * bytes_of(width);
    (number << bits) >> bits
}

fn numbers(codes: [u8; 5], width: usize, number: u64, out: &mut Vec<u8>) {
    let code = codes[[1, 2, 3, 4, 8].iter().position(|known| *known == width).unwrap()];
    fixed(code, &number.to_be_bytes()[8 - bytes_of(width)..], out);
}

fn fixed(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(code);
    out.extend_from_slice(bytes);
}

fn sized(short: u8, long: bool, bytes: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(bytes.len()) {
        Ok(length) if !long => out.extend_from_slice(&[short, length]),
        _ => {
            out.push(short + 0x10);
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

fn counted(short: u8, long: bool, count: usize, bytes: &[u8], out: &mut Vec<u8>) {
    match (u8::try_from(bytes.len() + 1), u8::try_from(count)) {
        (Ok(size), Ok(count)) if !long => out.extend_from_slice(&[short, size, count]),
        _ => {
            out.push(short + 0x10);
            out.extend_from_slice(&(bytes.len() as u32 + 4).to_be_bytes());
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}
