//! What is written is read again.

use proptest::prelude::*;
use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::*;

use crate::packets::{bytes_of, packet_in, versioned};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn a_packet_round_trips((version, packet) in versioned()) {
        let bytes = bytes_of(version, &packet);
        let again = packet_in(version, &bytes).unwrap();
        prop_assert_eq!(again, packet);
        // A packet that was read can be written again, to the same bytes.
        prop_assert_eq!(bytes_of(version, &again), bytes);
    }

    #[test]
    fn a_packet_that_lacks_its_end_is_refused((version, packet) in versioned(), cut in 1usize..20) {
        let bytes = bytes_of(version, &packet);
        let whole = frame(&bytes, usize::MAX).unwrap().unwrap();
        let Some(retained) = whole.body.len().checked_sub(cut) else { return Ok(()) };
        let shorter = Frame { body: &whole.body[..retained], ..whole };
        // A shorter list of codes, a shorter payload or a missing reason is a packet too, but never the same one.
        if let Ok(other) = decode(version, &shorter) {
            prop_assert_ne!(other, packet);
        }
    }
}

#[test]
fn a_message_without_properties_has_the_bytes_of_the_standard() {
    let mut head = PublishHead {
        dup: false,
        qos: Qos::AtLeastOnce,
        retain: true,
        topic: "a/b",
        packet_id: Some(10),
        properties: Properties::NONE,
    };
    let mut out = Vec::new();
    encode_publish_head(Version::V311, &head, 2, &mut out).unwrap();
    assert_eq!(out, [0x33, 9, 0, 3, b'a', b'/', b'b', 0, 10]);
    out.clear();
    encode_publish_head(Version::V5, &head, 2, &mut out).unwrap();
    assert_eq!(out, [0x33, 10, 0, 3, b'a', b'/', b'b', 0, 10, 0]);
    out.clear();
    head.packet_id = None;
    assert_eq!(encode_publish_head(Version::V5, &head, 2, &mut out), Err(EncodeError::PacketId));
    assert!(out.is_empty());
}

#[test]
fn fields_that_cannot_be_encoded_are_refused_and_nothing_is_written() {
    let topic = "t".repeat(65_536);
    let head = PublishHead {
        dup: false,
        qos: Qos::BestEffort,
        retain: false,
        topic: &topic,
        packet_id: None,
        properties: Properties::NONE,
    };
    let mut out = Vec::new();
    let too_long = encode_publish_head(Version::V5, &head, 0, &mut out);
    assert_eq!(too_long, Err(EncodeError::FieldTooLong { bytes: 65_536 }));
    let head = PublishHead { topic: "t", ..head };
    let too_large = encode_publish_head(Version::V5, &head, 268_435_455, &mut out);
    assert_eq!(too_large, Err(EncodeError::TooLarge { bytes: 268_435_459 }));
    assert!(out.is_empty());
}
