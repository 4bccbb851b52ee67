//! Bytes that no server should send: they only end the connection.

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::subscriber;
use pubmark_model::qos::Qos;
use pubmark_model::random::Stream;
use pubmark_protocol::clients::{Clients, Goodbye};
use pubmark_protocol::events::Cause;
use pubmark_wire::mqtt::{PacketType, Version};

use crate::script::{Script, packet};

fn cause_of<C: Clients>(version: Version, bytes: &[u8]) -> Cause {
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let id = script.accept(&mut peer, subscriber("hostile", "topic", Qos::BestEffort), &[]);
    script.expect(&mut peer, PacketType::Subscribe, |_| ());
    script.send_bytes(bytes);
    peer.wait("closed", |record| !record.causes(id).is_empty());
    peer.record.causes(id).remove(0)
}

#[test]
fn a_packet_above_the_limit_is_named_with_its_size() {
    let announced = [0x30, 0xff, 0xff, 0xff, 0x7f];
    let cause = cause_of::<Mqtt5>(Version::V5, &announced);
    assert_eq!(cause, Cause::Protocol("packet of 268435460 B exceeds the limit of 8388608 B".to_owned()));
}

#[test]
fn bytes_that_are_no_packet_end_the_connection() {
    let cases = [
        vec![0x00],
        vec![0x30, 0xff, 0xff, 0xff, 0xff],
        packet(0x30, b"\0\x01"),
        packet(0x36, b"\0\x01a\0\x01x"),
        packet(0x30, b"\0\x02a#x"),
        packet(0x32, b"\0\x01a\0\0x"),
        packet(0x10, b"\0\x04MQTT\x04\x02\0\0\0\0"),
        packet(0x82, b"\0\x01\0\x01a\0"),
        packet(0xc0, b""),
        packet(0xd0, b"x"),
        packet(0x20, &[0, 0]),
        packet(0xf0, &[0x18, 0]),
    ];
    for bytes in cases {
        for cause in [cause_of::<Mqtt5>(Version::V5, &bytes), cause_of::<Mqtt311>(Version::V311, &bytes)] {
            assert!(matches!(cause, Cause::Protocol(_)), "{bytes:02x?}: {cause:?}");
        }
    }
}

/// Random bytes, and valid packets with random bytes in them: the client survives, and the session can connect again.
#[test]
fn random_bytes_never_do_more_than_end_the_connection() {
    let random = Stream::new(0x5eed, 1);
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = peer.clients.add_session(subscriber("random", "topic", Qos::BestEffort));
    let mut drawn = 0;
    let mut next = |below: u64| {
        drawn += 1;
        random.bits(drawn) % below
    };
    for round in 0..300 {
        let answer = script.connack(false, 0, &[]);
        script.connect_client(&mut peer, id, &answer);
        peer.wait("connected", |record| record.connects(id).len() > round);
        let mut bytes = match next(3) {
            0 => (0..next(200) + 1).map(|_| next(256) as u8).collect(),
            1 => packet((next(16) << 4) as u8, &(0..next(40)).map(|_| next(256) as u8).collect::<Vec<_>>()),
            _ => script.publish(0x34, Some(1), &crate::script::payload(1, 50)),
        };
        let place = next(bytes.len() as u64) as usize;
        bytes[place] ^= 1 << next(8);
        script.send_bytes(&bytes);
        script.close();
        peer.wait("closed", |record| record.causes(id).len() > round);
        peer.leave(id, Goodbye::Cut);
    }
}
