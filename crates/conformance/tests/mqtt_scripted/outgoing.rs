//! Outgoing messages: acknowledged, refused, resent, blocked.

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::{Peer, publisher};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Break, Clients, Goodbye, SendOutcome, SessionConfig, SessionId, SessionOptions, Will};
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::mqtt::{AckKind, Packet, PacketType, Publish, Version};

use crate::script::{Script, packet};

fn publish_id(found: Packet<'_>) -> (u16, bool) {
    let Packet::Publish(Publish { head, .. }) = found else { unreachable!() };
    (head.packet_id.unwrap(), head.dup)
}

fn ack_id(found: Packet<'_>) -> (AckKind, u16, u8) {
    let Packet::Ack(ack) = found else { unreachable!() };
    (ack.kind, ack.packet_id, ack.reason)
}

fn ack(first_byte: u8, packet_id: u16, reason: Option<u8>) -> Vec<u8> {
    packet(first_byte, &packet_id.to_be_bytes().into_iter().chain(reason).collect::<Vec<_>>())
}

fn outcomes(events: &[Event]) -> Vec<(u32, Result<(), Option<u8>>)> {
    let outcome = |event: &Event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.clone().map_err(|reason| reason.code))),
        _ => None,
    };
    events.iter().filter_map(outcome).collect()
}

#[test]
fn a_refused_message_is_reported_with_its_code_and_frees_its_window() {
    for (qos, answer) in [(Qos::AtLeastOnce, 0x40), (Qos::ExactlyOnce, 0x50)] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
        let config = SessionConfig { in_flight_window: 1, ..publisher("refused", "topic", qos) };
        let id = script.accept(&mut peer, config, &[]);
        for (sequence, code) in [(1, 0x97), (2, 0x10), (3, 0x87)] {
            assert_eq!(peer.offer(id, 16), SendOutcome::Accepted, "{sequence}");
            assert_eq!(peer.offer(id, 16), SendOutcome::WouldBlock);
            peer.flush(id);
            let (packet_id, _) = script.expect(&mut peer, PacketType::Publish, publish_id);
            script.send_bytes(&ack(answer, packet_id, Some(code)));
            if qos == Qos::ExactlyOnce && code < 0x80 {
                let (_, released, _) = script.expect(&mut peer, PacketType::Pubrel, ack_id);
                script.send_bytes(&ack(0x70, released, None));
            }
            peer.wait("room", |record| record.count(|event| *event == Event::Writable(id)) == sequence);
        }
        assert_eq!(outcomes(&peer.record.events), [(1, Err(Some(0x97))), (2, Ok(())), (3, Err(Some(0x87)))]);
    }
}

#[test]
fn qos_2_is_acknowledged_by_pubrec_and_frees_its_place_with_pubcomp() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt311>(Version::V311);
    let config = SessionConfig { in_flight_window: 1, ..publisher("steps", "topic", Qos::ExactlyOnce) };
    let id = script.accept(&mut peer, config, &[]);
    assert_eq!(peer.offer(id, 16), SendOutcome::Accepted);
    peer.flush(id);
    let (packet_id, _) = script.expect(&mut peer, PacketType::Publish, publish_id);
    // A repeated PUBREC gets another PUBREL and is reported once.
    for _ in 0..2 {
        script.send_bytes(&ack(0x50, packet_id, None));
        let answer = script.expect(&mut peer, PacketType::Pubrel, ack_id);
        assert_eq!(answer, (AckKind::Pubrel, packet_id, 0));
    }
    assert_eq!(outcomes(&peer.record.events), [(1, Ok(()))]);
    assert_eq!(peer.offer(id, 16), SendOutcome::WouldBlock);
    script.send_bytes(&ack(0x70, packet_id, None));
    peer.wait("room", |record| record.count(|event| *event == Event::Writable(id)) == 1);
    assert_eq!(peer.offer(id, 16), SendOutcome::Accepted);
}

#[test]
fn an_acknowledgement_of_nothing_ends_the_connection() {
    for answer in [ack(0x40, 9, None), ack(0x40, 2, None), ack(0x50, 1, None), ack(0x70, 1, None)] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt311>(Version::V311);
        let id = script.accept(&mut peer, publisher("nothing", "topic", Qos::AtLeastOnce), &[]);
        assert_eq!(peer.offer(id, 16), SendOutcome::Accepted);
        peer.flush(id);
        script.expect(&mut peer, PacketType::Publish, publish_id);
        script.send_bytes(&answer);
        peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(peer.record.causes(id)[..], [Cause::Protocol(_)]));
        assert_count_eq!((peer.record.acknowledged(), peer.record.unanswered()), (0, 1));
    }
}

#[test]
fn retransmissions_preserve_order_flags_and_the_window() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let config = SessionConfig { persistent: true, ..publisher("again", "topic", Qos::ExactlyOnce) };
    let id = script.accept(&mut peer, config, &[]);
    for _ in 0..4 {
        assert_eq!(peer.offer(id, 100), SendOutcome::Accepted);
    }
    peer.flush(id);
    let ids: Vec<u16> = (0..4).map(|_| script.expect(&mut peer, PacketType::Publish, publish_id).0).collect();
    // The second is received, not released; then the connection ends.
    script.send_bytes(&ack(0x50, ids[1], None));
    script.expect(&mut peer, PacketType::Pubrel, ack_id);
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 1);
    // Reconnected with a window of three.
    let answer = script.connack(true, 0, &[0x21, 0, 3]);
    script.connect_client(&mut peer, id, &answer);
    assert_eq!(script.expect(&mut peer, PacketType::Publish, publish_id), (ids[0], true));
    assert_eq!(script.expect(&mut peer, PacketType::Pubrel, ack_id), (AckKind::Pubrel, ids[1], 0));
    assert_eq!(script.expect(&mut peer, PacketType::Publish, publish_id), (ids[2], true));
    peer.linger(20);
    script.read();
    assert!(script.received().is_empty(), "the fourth waits for room");
    script.send_bytes(&ack(0x70, ids[1], None));
    assert_eq!(script.expect(&mut peer, PacketType::Publish, publish_id), (ids[3], true));
    let resent = peer.record.all(|event| match event {
        Event::Resent(_, token) => Some(token.sequence),
        _ => None,
    });
    assert_count_eq!(resent, [1, 3, 4]);
    assert_count_eq!(peer.record.written(), 4);
    // The next connection finds no session.
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 2);
    assert_count_eq!(peer.record.unanswered(), 0);
    let answer = script.connack(false, 0, &[]);
    script.connect_client(&mut peer, id, &answer);
    peer.wait("connected", |record| record.connects(id).len() == 3);
    assert_count_eq!(peer.record.unanswered(), 3);
    assert_eq!(outcomes(&peer.record.events), [(2, Ok(()))]);
}

/// Offers messages until neither the socket nor the outbox accepts more; returns their number.
fn fill<C: Clients>(peer: &mut Peer<C>, id: SessionId) -> u32 {
    let mut handed = 0;
    loop {
        let before = handed;
        while peer.offer(id, 1_000) == SendOutcome::Accepted {
            handed += 1;
        }
        if handed == before {
            return handed;
        }
        peer.flush(id);
        peer.linger(10);
    }
}

/// Every submitted message is either written or abandoned, in order, and never both.
fn a_server_that_does_not_read<C: Clients>(version: Version, persistent: bool) {
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let config = publisher("stuck", "topic", Qos::AtLeastOnce);
    let config = SessionConfig { persistent, in_flight_window: 60_000, ..config };
    let id = script.accept(&mut peer, config, &[]);
    let handed = fill(&mut peer, id);
    assert!(peer.clients.unsent_bytes() > 100_000);
    peer.leave(id, Goodbye::Cut);
    assert_eq!(peer.clients.unsent_bytes(), 0);
    let fates = peer.record.all(|event| match event {
        Event::Written(_, token, ..) => Some((token.sequence, true)),
        Event::Abandoned(_, token) => Some((token.sequence, false)),
        _ => None,
    });
    assert_count_eq!(fates.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), (1..=handed).collect::<Vec<_>>());
    assert!(fates.is_sorted_by_key(|(_, written)| !written), "what is abandoned comes last");
    let abandoned = fates.iter().filter(|(_, written)| !written).count();
    assert!(abandoned > 0 && abandoned < 200, "{abandoned} of {handed}");
    let written = fates.len() - abandoned;
    assert_count_eq!(peer.record.unanswered(), if persistent { 0 } else { written });
    peer.clients.finish(&mut peer.record);
    assert_count_eq!(peer.record.unanswered(), written);
}

#[test]
fn unsent_messages_are_abandoned_at_the_end() {
    a_server_that_does_not_read::<Mqtt5>(Version::V5, false);
    a_server_that_does_not_read::<Mqtt311>(Version::V311, true);
}

#[test]
fn what_a_connection_carried_before_it_was_cut_stays_counted() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt311>(Version::V311);
    let id = script.accept(&mut peer, publisher("cut", "topic", Qos::BestEffort), &[]);
    (0..100).for_each(|_| peer.send(id, 100));
    peer.wait_sent();
    let before = peer.clients.traffic(id).unwrap();
    assert_count!(before.sent.ip_bytes > 10_000 && before.received.packets > 0, "{before:?}");
    for how in [Break::Silence, Break::GiveUp] {
        peer.clients.break_connection(id, how, &mut peer.record);
        // Its address is known from now on, also when it was abandoned.
        assert_count_eq!(peer.clients.silenced().len(), 1, "{how:?}");
    }
    assert_count_eq!(peer.record.causes(id).len(), 1);
    let after = peer.clients.traffic(id).unwrap();
    for (before, after) in [(before.sent, after.sent), (before.received, after.received)] {
        assert_count!(
            after.packets >= before.packets && after.ip_bytes >= before.ip_bytes,
            "{after:?}, not {before:?}"
        );
    }
}

fn with_will(client_id: &str) -> SessionConfig {
    let will = Will {
        publisher: 7,
        topic: "gone/7".into(),
        qos: Qos::BestEffort,
        retain: false,
        payload_bytes: 100,
        delay_s: 0,
    };
    let options = SessionOptions { will: Some(Box::new(will)), ..SessionOptions::default() };
    SessionConfig { options, ..publisher(client_id, "topic", Qos::BestEffort) }
}

#[test]
fn a_goodbye_that_the_socket_does_not_accept_leaves_a_will() {
    for (goodbye, is_full, left) in [
        (Goodbye::Graceful, false, 0),
        (Goodbye::Graceful, true, 1),
        (Goodbye::Final, true, 1),
        (Goodbye::Cut, false, 1),
    ] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
        let id = script.accept(&mut peer, with_will("mortal"), &[]);
        if is_full {
            fill(&mut peer, id);
        }
        peer.leave(id, goodbye);
        assert_eq!(peer.record.causes(id), [Cause::Ours]);
        assert_count_eq!(peer.record.wills_left, left, "{goodbye:?}, {is_full}");
    }
}

#[test]
fn a_connection_without_an_answer_may_leave_a_will_and_a_refused_one_does_not() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = peer.clients.add_session(with_will("mortal"));
    let refusal = script.connack(false, 0x87, &[]);
    script.connect_client(&mut peer, id, &refusal);
    peer.wait("closed", |record| record.causes(id).len() == 1);
    assert_count_eq!(peer.record.wills_left, 0);
    script.connect_client(&mut peer, id, &[]);
    peer.leave(id, Goodbye::Graceful);
    assert_count_eq!(peer.record.wills_left, 1);
}
