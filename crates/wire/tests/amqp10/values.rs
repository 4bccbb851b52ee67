//! Values.

use proptest::prelude::*;
use pubmark_wire::amqp10::DecodeError;
use pubmark_wire::amqp10::value::{DEEPEST, Value, take};

use super::model::{Model, any_value};

/// Looks at everything in a value; returns how many values it is made of.
fn walk(value: Value<'_>, depth: usize) -> Result<usize, DecodeError> {
    // No frame requires more depth than its own fields.
    if depth == 40 {
        return Ok(1);
    }
    let mut count = 1;
    match value {
        Value::List(mut items) | Value::Map(mut items) => {
            while let Some(item) = items.take()? {
                count += walk(item, depth + 1)?;
            }
        }
        Value::Array(mut array) => {
            array.descriptor()?;
            while let Some(item) = array.take()? {
                count += walk(item, depth + 1)?;
            }
        }
        Value::Described(described) => {
            count += walk(described.descriptor()?, depth + 1)? + walk(described.value()?, depth + 1)?;
        }
        _ => {}
    }
    Ok(count)
}

/// How deep described values are in described values.
fn described_depth(model: &Model) -> usize {
    match model {
        Model::Described(descriptor, value) => 1 + described_depth(descriptor).max(described_depth(value)),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_written_frame_is_read_back(model in any_value()) {
        prop_assume!(described_depth(&model) <= DEEPEST);
        let mut bytes = vec![];
        model.encode(&mut bytes);
        let whole = bytes.len();
        bytes.extend_from_slice(b"behind");
        let mut rest = &bytes[..];
        let value = take(&mut rest).unwrap();
        prop_assert_eq!(rest, b"behind");
        prop_assert!(model.is(value), "{:?} is not {:?}", value, model);
        // No front of it is a value, and none makes the reader go wrong.
        for length in 0..whole {
            prop_assert!(take(&mut &bytes[..length]).and_then(|value| walk(value, 0)).is_err() || length == whole);
        }
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut rest = &bytes[..];
        while let Ok(value) = take(&mut rest) {
            // What is there is made of no more values than it has bytes, but for elements that take none.
            let _ = walk(value, 0);
        }
        prop_assert!(rest.len() <= bytes.len());
    }

    #[test]
    fn no_change_of_a_byte_breaks_the_reader(model in any_value(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = vec![];
        model.encode(&mut bytes);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = take(&mut &bytes[..]) {
            let _ = walk(value, 0);
        }
    }
}

#[test]
fn depth_is_the_readers_choice_and_no_recursion() {
    // Lists in lists, a hundred deep: each is cut out by its size.
    let mut bytes = vec![0x45];
    for _ in 0..100 {
        let inner = bytes;
        bytes = vec![0xd0];
        bytes.extend_from_slice(&(inner.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(&1u32.to_be_bytes());
        bytes.extend_from_slice(&inner);
    }
    assert_eq!(take(&mut &bytes[..]).and_then(|value| walk(value, 0)), Ok(41));
}
