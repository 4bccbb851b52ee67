//! Messages of the server: acknowledged, repeated, in pieces, many in one read.

use std::time::Duration;

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::{Peer, session, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SessionId};
use pubmark_protocol::events::{Cause, Unread};
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{AckKind, Packet, PacketType, Version};

use crate::script::{NONE, Script, packet, payload};

fn subscribed<C: Clients>(version: Version) -> (Script, Peer<C>, SessionId) {
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let id = script.accept(&mut peer, subscriber("in", "topic", Qos::ExactlyOnce), &[]);
    let packet_id = script.expect(&mut peer, PacketType::Subscribe, |found| {
        let Packet::Subscribe(subscribe) = found else { unreachable!() };
        subscribe.packet_id
    });
    let mut suback = Vec::new();
    let answer = pubmark_wire::mqtt::Suback { packet_id, properties: NONE, codes: &[2] };
    pubmark_wire::mqtt::encode_suback(version, &answer, &mut suback).unwrap();
    script.send_bytes(&suback);
    (script, peer, id)
}

fn answer<C: Clients>(script: &mut Script, peer: &mut Peer<C>, kind: AckKind) -> (u16, u8) {
    script.expect(peer, kind.packet_type(), |found| {
        let Packet::Ack(ack) = found else { unreachable!() };
        (ack.packet_id, ack.reason)
    })
}

#[test]
fn qos_2_is_delivered_once_until_it_is_released() {
    let (mut script, mut peer, id) = subscribed::<Mqtt5>(Version::V5);
    for (first_byte, delivered) in [(0x34, 1), (0x3c, 1), (0x34, 1)] {
        script.send_bytes(&script.publish(first_byte, Some(5), &payload(1, 100)));
        assert_eq!(answer(&mut script, &mut peer, AckKind::Pubrec), (5, 0));
        assert_count_eq!(peer.record.arrived.len(), delivered);
    }
    script.send_bytes(&packet(0x62, &[0, 5]));
    assert_eq!(answer(&mut script, &mut peer, AckKind::Pubcomp), (5, 0));
    // Released twice: its identifier is no longer stored.
    script.send_bytes(&packet(0x62, &[0, 5]));
    assert_eq!(answer(&mut script, &mut peer, AckKind::Pubcomp), (5, 0x92));
    script.send_bytes(&script.publish(0x34, Some(5), &payload(2, 100)));
    assert_eq!(answer(&mut script, &mut peer, AckKind::Pubrec), (5, 0));
    assert_count_eq!(peer.record.sequences(id), [1, 2]);
}

#[test]
fn qos_1_repeated_is_delivered_again() {
    let (mut script, mut peer, id) = subscribed::<Mqtt311>(Version::V311);
    for first_byte in [0x32, 0x3a] {
        script.send_bytes(&script.publish(first_byte, Some(5), &payload(1, 100)));
        assert_eq!(answer(&mut script, &mut peer, AckKind::Puback), (5, 0));
    }
    assert_count_eq!(peer.record.sequences(id), [1, 1]);
}

#[test]
fn a_message_in_pieces_arrives_whole_with_the_time_of_its_last_piece() {
    for size in [16, 300, 70_000] {
        let (mut script, mut peer, _) = subscribed::<Mqtt5>(Version::V5);
        let bytes =
            [script.publish(0x30, None, &payload(1, size)), script.publish(0x31, None, &payload(2, 24))].concat();
        let pieces: Vec<&[u8]> = if size < 1_000 { bytes.chunks(1).collect() } else { bytes.chunks(9_999).collect() };
        for piece in &pieces[..pieces.len() - 1] {
            script.send_bytes(piece);
            peer.linger(1);
        }
        let before_ns = pubmark_protocol::clock::monotonic_ns();
        script.send_bytes(pieces[pieces.len() - 1]);
        peer.wait("both", |record| record.arrived.len() == 2);
        let [first, second] = &peer.record.arrived[..] else { unreachable!() };
        assert_eq!((first.payload_bytes, second.payload_bytes), (size, 24));
        assert!(first.intact && !first.retained && second.retained);
        assert!(second.at_ns > before_ns && second.empty_at_ns.unwrap() < before_ns);
        // The last piece of the small ones is a byte of the second message; that of the large ones has the end of the first, too.
        assert_eq!(second.kernel_ns.is_some(), size < 1_000);
    }
}

#[test]
fn a_message_has_the_kernels_stamp_if_it_is_alone_in_its_read() {
    const COUNT: u16 = 50;
    let (mut script, mut peer, id) = subscribed::<Mqtt5>(Version::V5);
    peer.linger(20);
    let mut bytes = Vec::new();
    for number in 1..=COUNT {
        bytes.extend(script.publish(0x32, Some(number), &payload(number.into(), 100)));
    }
    script.send_bytes(&bytes);
    peer.wait("all", |record| record.arrived.len() == usize::from(COUNT));
    assert!(peer.record.arrived.iter().all(|one| one.kernel_ns.is_none()));
    assert!(peer.record.arrived.windows(2).all(|pair| pair[0].at_ns == pair[1].at_ns));
    // Their acknowledgements were sent in one write.
    script.read();
    assert_count_eq!(script.received().len(), 4 * usize::from(COUNT));
    assert_count_eq!(peer.record.sequences(id).len(), usize::from(COUNT));
    let alone = script.publish(0x30, None, &payload(u32::from(COUNT) + 1, 100));
    script.send_bytes(&alone);
    peer.wait("one more", |record| record.arrived.len() > usize::from(COUNT));
    assert!(peer.record.arrived[usize::from(COUNT)].kernel_ns.is_some());
}

/// A server sends no more messages than its in-flight window: a late read delays each round of them.
#[test]
fn a_late_read_counts_in_every_round_of_the_in_flight_window() {
    const LATE: Duration = Duration::from_millis(40);
    const WINDOW: u16 = 20;
    let (mut script, mut peer, id) = subscribed::<Mqtt311>(Version::V311);
    peer.linger(20);
    for round in 0..3 {
        let numbers = round * WINDOW + 1..=(round + 1) * WINDOW;
        let publish = |number: u16| script.publish(0x32, Some(number), &payload(number.into(), 24));
        let batch: Vec<u8> = numbers.clone().flat_map(publish).collect();
        script.send_bytes(&batch);
        if round == 0 {
            std::thread::sleep(LATE);
        }
        for number in numbers {
            assert_eq!(answer(&mut script, &mut peer, AckKind::Puback), (number, 0));
        }
    }
    assert_count_eq!(peer.record.sequences(id).len(), 3 * usize::from(WINDOW));
    for message in &peer.record.arrived[2 * usize::from(WINDOW)..] {
        let unread_ns = Unread::all_between_ns(&message.unread, 0, u64::MAX);
        assert!(unread_ns > LATE.as_nanos() as u64 / 2, "{unread_ns} ns: {:?}", message.unread);
        assert_eq!(Unread::all_between_ns(&message.unread, message.at_ns, u64::MAX), 0, "sent after it");
    }
}

#[test]
fn one_busy_session_does_not_starve_another() {
    let (mut busy, mut peer, first) = subscribed::<Mqtt5>(Version::V5);
    let mut quiet = busy.another();
    let second = quiet.accept(&mut peer, session("quiet"), &[]);
    // As much as the sockets hold, while the client does not read.
    let message = busy.publish(0x30, None, &payload(1, 1_000));
    let stored = busy.send_while_accepted(&message.repeat(10_000));
    if stored < 2_000_000 {
        return pubmark_testing::skip(format_args!("sockets here hold {stored} B, too few to keep a reader busy"));
    }
    quiet.send_bytes(&quiet.publish(0x30, None, &payload(2, 100)));
    peer.wait("the quiet one's", |record| !record.sequences(second).is_empty());
    let before = peer.record.sequences(first).len();
    assert!(before < stored / message.len(), "all {before} of the busy one's came first");
    peer.wait("the busy one's", |record| record.sequences(first).len() == stored / message.len());
}

/// Linux still returns what had arrived before a reset, and a busy subscriber has messages in the adapter as well. Only writing
/// is over.
#[test]
fn what_arrived_before_a_reset_is_delivered_although_acknowledgements_fail() {
    const COUNT: u16 = 10;
    let (mut script, mut peer, id) = subscribed::<Mqtt5>(Version::V5);
    peer.record.works = Some(id);
    // The first half is read with the first message, the second half stays in the kernel.
    for numbers in [1..=COUNT / 2, COUNT / 2 + 1..=COUNT] {
        let publish = |number: u16| script.publish(0x32, Some(number), &payload(number.into(), 100));
        let bytes: Vec<u8> = numbers.flat_map(publish).collect();
        script.send_bytes(&bytes);
        peer.wait("the first message", |record| record.arrived.len() == 1);
    }
    script.reset();
    peer.process_each(id, COUNT.into());
    peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Dropped(_)]), "{causes:?}");
    assert_count_eq!(peer.record.sequences(id), (1..=u32::from(COUNT)).collect::<Vec<_>>());
}

#[test]
fn the_servers_disconnect_is_reported_with_its_code() {
    for (code, too_large) in [(0x95, true), (0x8b, false)] {
        let (mut script, mut peer, id) = subscribed::<Mqtt5>(Version::V5);
        script.send_bytes(&packet(0xe0, &[code, 0]));
        script.close();
        peer.wait("closed", |record| !record.causes(id).is_empty());
        let causes = peer.record.causes(id);
        let grants = matches!(&causes[..], [Cause::Server { reason, too_large: large }]
            if reason.code == Some(code) && *large == too_large);
        assert!(grants, "{causes:?}");
    }
}
