//! `coap-lite`'s codec as the oracle: it reads what we write, and we read what it writes, with the same meaning.

use coap_lite::{CoapOption, MessageClass, MessageType, Packet};
use proptest::prelude::*;
use pubmark_wire::coap::{Kind, decode};

use crate::messages::{Parts, parts};

fn type_of(kind: Kind) -> MessageType {
    match kind {
        Kind::Confirmable => MessageType::Confirmable,
        Kind::NonConfirmable => MessageType::NonConfirmable,
        Kind::Acknowledgement => MessageType::Acknowledgement,
        Kind::Reset => MessageType::Reset,
    }
}

fn packet_of(parts: &Parts) -> Packet {
    let mut packet = Packet::new();
    packet.header.set_type(type_of(parts.kind));
    packet.header.code = MessageClass::from(parts.code.0);
    packet.header.message_id = parts.message_id;
    packet.set_token(parts.token.clone());
    for (number, value) in &parts.options {
        packet.add_option(CoapOption::from(*number), value.clone());
    }
    packet.payload = parts.payload.clone();
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_oracle_reads_our_packets(parts in parts()) {
        let packet = Packet::from_bytes(&parts.encode()).unwrap();
        prop_assert_eq!(packet.header.get_type(), type_of(parts.kind));
        prop_assert_eq!((u8::from(packet.header.code), packet.header.message_id), (parts.code.0, parts.message_id));
        prop_assert_eq!((packet.get_token(), &packet.payload), (parts.token.as_slice(), &parts.payload));
        let mut options = Vec::new();
        for (number, values) in packet.options() {
            options.extend(values.iter().map(|value| (*number, value.clone())));
        }
        prop_assert_eq!(options, parts.options);
    }

    #[test]
    fn we_read_the_oracles_packets(parts in parts()) {
        let bytes = packet_of(&parts).to_bytes_unlimited().unwrap();
        prop_assert_eq!(format!("{:?}", Parts::of(&decode(&bytes).unwrap())), format!("{parts:?}"));
    }
}
