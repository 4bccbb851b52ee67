//! Invalid bytes, and every cut of valid bytes.

use proptest::prelude::*;
use pubmark_wire::coap::{
    Block, DecodeError, Kind, Writer, check_topic, decode, decode_topic, encode_empty, encode_path, peek, uint,
};

use crate::messages::{Parts, kind, parts};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_is_written_is_read_back(parts in parts()) {
        let bytes = parts.encode();
        let message = decode(&bytes).unwrap();
        prop_assert_eq!(format!("{:?}", Parts::of(&message)), format!("{parts:?}"));
        prop_assert_eq!(peek(&bytes), Some((parts.kind, parts.message_id)));
        for (number, _) in &parts.options {
            let first = parts.options.iter().find(|(other, _)| other == number).map(|(_, value)| value.as_slice());
            prop_assert_eq!(message.options.get(*number), first);
        }
    }

    #[test]
    fn a_cut_message_is_an_error_or_a_message_of_its_own(parts in parts()) {
        let bytes = parts.encode();
        for length in 0..bytes.len() {
            if let Ok(message) = decode(&bytes[..length]) {
                // A cut between options, or after the payload's first byte, cannot be detected.
                prop_assert!(parts.payload.starts_with(message.payload));
                let options = Parts::of(&message).options;
                prop_assert!(parts.options.starts_with(&options));
            }
        }
    }

    #[test]
    fn noise_is_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..100), version in any::<bool>()) {
        if version && let Some(first) = bytes.first_mut() {
            // Version 1 and a short token, so that the options are reached.
            *first = *first & 0x33 | 0x40;
        }
        let _ = peek(&bytes);
        if let Ok(message) = decode(&bytes) {
            for (_, value) in message.options {
                let _ = (Block::read(value), uint(value));
            }
            let again = Parts::of(&message).encode();
            prop_assert_eq!(format!("{:?}", Parts::of(&decode(&again).unwrap())), format!("{:?}", Parts::of(&message)));
            let mut topic = String::new();
            let _ = decode_topic(&message, &mut topic);
        }
    }

    #[test]
    fn a_topic_is_found_again_in_its_path(topic in "[a-z$+#é]{0,3}(/[a-z$+#. ]{0,3}){0,4}") {
        prop_assume!(check_topic(&topic).is_ok());
        let mut out = Vec::new();
        let mut writer = Writer::new(Kind::NonConfirmable, pubmark_wire::coap::Code::PUT, 1, &[], &mut out);
        encode_path(&mut writer, &topic);
        writer.end(b"x");
        let mut found = String::new();
        prop_assert!(decode_topic(&decode(&out).unwrap(), &mut found));
        prop_assert_eq!(found, topic);
    }

    #[test]
    fn an_empty_message_is_four_bytes(kind in kind(), message_id in any::<u16>()) {
        let mut out = Vec::new();
        encode_empty(kind, message_id, &mut out);
        prop_assert_eq!(out.len(), 4);
        prop_assert!(decode(&out).is_ok());
        out.push(0xff);
        prop_assert_eq!(decode(&out), Err(DecodeError::EmptyCarries));
    }
}

#[test]
fn each_format_error_is_reported() {
    for (bytes, expected) in [
        (&[0x40, 1, 0][..], DecodeError::Short(3)),
        (&[0x42, 1, 0, 0, 7], DecodeError::Short(5)),
        (&[0x80, 1, 0, 0], DecodeError::Version(2)),
        (&[0x49, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], DecodeError::Token(9)),
        (&[0x41, 0, 0, 0, 7], DecodeError::EmptyCarries),
        (&[0x40, 1, 0, 0, 0xff], DecodeError::PayloadMarker),
        (&[0x40, 1, 0, 0, 0xf0], DecodeError::Option),
        (&[0x40, 1, 0, 0, 0x0f], DecodeError::Option),
        (&[0x40, 1, 0, 0, 0xd0], DecodeError::Option),
        (&[0x40, 1, 0, 0, 0x0e, 0xff], DecodeError::Option),
        (&[0x40, 1, 0, 0, 0x12, 7], DecodeError::Option),
        (&[0x40, 1, 0, 0, 0xe0, 0xff, 0xff], DecodeError::OptionNumber),
        (&[0x40, 1, 0, 0, 0xe0, 0xfe, 0xf2, 0x10], DecodeError::OptionNumber),
    ] {
        assert_eq!(decode(bytes), Err(expected), "{bytes:02x?}");
    }
    let mut topic = String::new();
    for options in
        [&[0xb1, b'a'][..], &[0xb2, b'p', b's'], &[0xb2, b'p', b's', 0x01, 0xff], &[0xb2, b'p', b's', 0x01, b'/']]
    {
        let bytes = [&[0x40, 1, 0, 0][..], options].concat();
        assert!(!decode_topic(&decode(&bytes).unwrap(), &mut topic), "{options:02x?}");
    }
}
