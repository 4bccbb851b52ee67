//! `rumqttc`'s codecs as the oracle: they read what we write, and we read what they write, with the same meaning.

use proptest::prelude::*;
use pubmark_wire::mqtt::*;
use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::v5;

use crate::packets::{ack, bytes_of, connect, packet_in, publish, subscribe, unsubscribe};

fn through_v4(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut stream = bytes.iter().copied().collect();
    let packet = v4::Packet::read(&mut stream, usize::MAX).map_err(|error| format!("{error:?}"))?;
    let mut out = Default::default();
    packet.write(&mut out, usize::MAX).map_err(|error| format!("{error:?}"))?;
    Ok(out.to_vec())
}

fn through_v5(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut stream = bytes.iter().copied().collect();
    let packet = v5::Packet::read(&mut stream, None).map_err(|error| format!("{error:?}"))?;
    let mut out = Default::default();
    packet.write(&mut out, None).map_err(|error| format!("{error:?}"))?;
    Ok(out.to_vec())
}

/// A packet as text with its properties in alphabetical order: the library writes them in an order of its own.
fn meaning(packet: &Packet<'_>) -> String {
    fn sorted(properties: &Properties<'_>) -> Vec<String> {
        let mut list: Vec<String> = properties.iter().map(|property| format!("{property:?}")).collect();
        list.sort();
        list
    }
    match packet {
        Packet::Connect(connect) => {
            let will =
                connect.will.map(|will| (Will { properties: Properties::NONE, ..will }, sorted(&will.properties)));
            let bare = Connect { properties: Properties::NONE, will: None, ..*connect };
            format!("{bare:?} {:?} {will:?}", sorted(&connect.properties))
        }
        Packet::Publish(publish) => {
            let head = PublishHead { properties: Properties::NONE, ..publish.head };
            format!("{head:?} {:?} {:?}", sorted(&publish.head.properties), publish.payload)
        }
        Packet::Ack(ack) => {
            format!("{:?} {:?}", Ack { properties: Properties::NONE, ..*ack }, sorted(&ack.properties))
        }
        other => format!("{other:?}"),
    }
}

/// The types of packets that carry most of a run.
fn exchanged(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let packets =
        prop_oneof![connect(version), publish(version), ack(version), subscribe(version), unsubscribe(version)];
    packets.prop_map(with_full_login)
}

/// The library takes an empty user name for none, and knows a password only as text beside a user name that is not empty.
fn with_full_login(packet: Packet<'static>) -> Packet<'static> {
    match packet {
        Packet::Connect(connect) if connect.user.is_some() => {
            Packet::Connect(Connect { user: Some("user"), password: Some(b"password"), ..connect })
        }
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn version_3_1_1_means_the_same(packet in exchanged(Version::V311)) {
        let theirs = through_v4(&bytes_of(Version::V311, &packet)).map_err(TestCaseError::fail)?;
        prop_assert_eq!(meaning(&packet_in(Version::V311, &theirs).unwrap()), meaning(&packet));
    }

    #[test]
    fn version_5_means_the_same(packet in exchanged(Version::V5)) {
        let theirs = through_v5(&bytes_of(Version::V5, &packet)).map_err(TestCaseError::fail)?;
        prop_assert_eq!(meaning(&packet_in(Version::V5, &theirs).unwrap()), meaning(&packet));
    }
}
