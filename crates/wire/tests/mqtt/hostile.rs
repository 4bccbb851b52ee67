//! Bytes that no honest peer sends: nothing panics, and what the standards forbid is refused.

use proptest::collection::vec;
use proptest::prelude::*;
use pubmark_wire::mqtt::*;

use crate::packets::{bytes_of, packet_in, versioned};

/// Reads as a connection would until the bytes end or are refused; a packet that is accepted can be written and read again.
fn read_all(version: Version, mut bytes: &[u8]) {
    while let Ok(Some(frame)) = frame(bytes, 1 << 20) {
        if let Ok(packet) = decode(version, &frame) {
            let version_spoken = if let Packet::Connect(connect) = &packet { connect.version } else { version };
            let again = bytes_of(version_spoken, &packet);
            assert_eq!(packet_in(version_spoken, &again), Ok(packet));
        }
        bytes = &bytes[frame.total_bytes..];
    }
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V311), Just(Version::V5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_bytes_are_survived(version in version(), bytes in vec(any::<u8>(), 0..200)) {
        read_all(version, &bytes);
    }

    #[test]
    fn any_body_is_survived(version in version(), first in 0x10u8..=0xff, body in vec(any::<u8>(), 0..120)) {
        let mut bytes = vec![first, body.len() as u8];
        bytes.extend_from_slice(&body);
        read_all(version, &bytes);
    }

    #[test]
    fn damaged_packets_are_survived(
        (version, packet) in versioned(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = bytes_of(version, &packet);
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        read_all(version, &bytes);
    }
}

fn refusal(version: Version, bytes: &[u8]) -> DecodeError {
    packet_in(version, bytes).expect_err("bytes that the standard forbids")
}

#[test]
fn packets_that_the_standard_forbids_are_refused() {
    use PacketType::{Connect, Puback, Publish, Pubrel, Subscribe};
    use Version::{V5, V311};
    let cases: &[(Version, &[u8], DecodeError)] = &[
        (V311, &[0x36, 5, 0, 1, b'a', 0, 1], DecodeError::Flags { packet: Publish, flags: 6 }),
        (V311, &[0x38, 3, 0, 1, b'a'], DecodeError::Flags { packet: Publish, flags: 8 }),
        (V311, &[0x60, 2, 0, 1], DecodeError::Flags { packet: Pubrel, flags: 0 }),
        (V311, &[0x30, 3, 0, 1, b'+'], DecodeError::Topic { packet: Publish, field: "topic" }),
        (V311, &[0x30, 2, 0, 0], DecodeError::Topic { packet: Publish, field: "topic" }),
        (V5, &[0x30, 3, 0, 0, 0], DecodeError::Topic { packet: Publish, field: "topic" }),
        (V311, &[0x30, 3, 0, 1, 0], DecodeError::Text { packet: Publish, field: "topic" }),
        (V311, &[0x30, 3, 0, 1, 0xff], DecodeError::Text { packet: Publish, field: "topic" }),
        (V311, &[0x30, 3, 0, 9, b'a'], DecodeError::Truncated { packet: Publish, field: "topic" }),
        (V311, &[0x32, 5, 0, 1, b'a', 0, 0], DecodeError::ZeroPacketId { packet: Publish }),
        (V311, &[0x40, 3, 0, 1, 0], DecodeError::Surplus { packet: Puback, surplus_bytes: 1 }),
        (V5, &[0x40, 3, 0, 1, 0x92], DecodeError::Value { packet: Puback, field: "reason code", value: 0x92 }),
        (
            V5,
            &[0x30, 10, 0, 1, b'a', 6, 0x23, 0, 1, 0x23, 0, 1],
            DecodeError::PropertyTwice { packet: Publish, identifier: 0x23 },
        ),
        (
            V5,
            &[0x30, 7, 0, 1, b'a', 3, 0x23, 0, 0],
            DecodeError::Value { packet: Publish, field: "topic alias", value: 0 },
        ),
        (V5, &[0x30, 7, 0, 1, b'a', 3, 0x21, 0, 9], DecodeError::PropertyPlace { packet: Publish, identifier: 0x21 }),
        (V5, &[0x30, 6, 0, 1, b'a', 9, 0x23, 0], DecodeError::Truncated { packet: Publish, field: "properties" }),
        (V311, &[0x82, 2, 0, 1], DecodeError::Missing { packet: Subscribe, field: "a topic filter" }),
        (V311, &[0x82, 7, 0, 1, 0, 2, b'#', b'a', 0], DecodeError::Filter { packet: Subscribe }),
        (
            V311,
            &[0x82, 6, 0, 1, 0, 1, b'a', 4],
            DecodeError::Value { packet: Subscribe, field: "subscription options", value: 4 },
        ),
        (
            V5,
            &[0x82, 7, 0, 1, 0, 0, 1, b'a', 3],
            DecodeError::Value { packet: Subscribe, field: "subscription options", value: 3 },
        ),
        (V311, &[0x10, 12, 0, 4, b'M', b'Q', b'T', b'T', 6, 2, 0, 0, 0, 0], DecodeError::ProtocolLevel { level: 6 }),
        (V311, &[0x10, 12, 0, 4, b'M', b'Q', b'T', b'X', 4, 2, 0, 0, 0, 0], DecodeError::ProtocolName),
        (
            V311,
            &[0x10, 12, 0, 4, b'M', b'Q', b'T', b'T', 4, 3, 0, 0, 0, 0],
            DecodeError::Value { packet: Connect, field: "connect flags", value: 3 },
        ),
        (V311, &[0xf0, 0], DecodeError::NotInVersion { packet: PacketType::Auth }),
    ];
    for (version, bytes, expected) in cases {
        assert_eq!(&refusal(*version, bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn a_topic_may_be_left_out_where_an_alias_stands() {
    let bytes = [0x30, 6, 0, 0, 3, 0x23, 0, 7];
    let Ok(Packet::Publish(publish)) = packet_in(Version::V5, &bytes) else { panic!("a PUBLISH") };
    assert_eq!((publish.head.topic, publish.head.properties.topic_alias()), ("", Some(7)));
}
