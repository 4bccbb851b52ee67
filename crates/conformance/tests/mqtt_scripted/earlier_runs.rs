//! Sessions that an earlier run left under a client identifier: they are discarded, not continued.

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::publisher;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SendOutcome, SessionConfig, SessionOptions, Will};
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::mqtt::{Connect, Packet, PacketType, Version};

use crate::script::{Script, payload};

fn persistent() -> SessionConfig {
    SessionConfig { persistent: true, ..publisher("sn-1", "topic", Qos::ExactlyOnce) }
}

/// Of a CONNECT: does it start clean, does its session survive the connection (5.0), has it a will?
fn request(connect: Connect<'_>) -> [bool; 3] {
    let expires_s = connect.properties.session_expiry_s().unwrap_or(0);
    [connect.clean_start, expires_s > 0, connect.will.is_some()]
}

/// The first connection finds the session, the second one discards it and begins a new one.
#[test]
fn version_5_starts_clean_after_it_found_a_session() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = peer.clients.add_session(persistent());
    let found = script.connack(true, 0, &[]);
    assert_eq!(script.connect_with(&mut peer, id, &found, request), [false, true, false]);
    peer.wait("closed", |record| record.causes(id).len() == 1);
    assert!(matches!(&peer.record.causes(id)[..], [Cause::Dropped(cause)] if cause.contains("of an earlier run")));
    assert!(script.rest().is_empty(), "nothing follows CONNECT");
    assert_count!(peer.record.connects(id).is_empty());
    let welcome = script.connack(false, 0, &[]);
    assert_eq!(script.connect_with(&mut peer, id, &welcome, request), [true, true, false]);
    peer.wait("connected", |record| record.connects(id).len() == 1);
    // From now on it is its own, also where the server has lost it.
    for (present, connects) in [(true, 2), (false, 3), (true, 4)] {
        script.close();
        peer.wait("closed", |record| record.causes(id).len() == connects);
        let answer = script.connack(present, 0, &[]);
        assert_eq!(script.connect_with(&mut peer, id, &answer, request), [false, true, false]);
        peer.wait("connected", |record| record.connects(id).len() == connects);
        assert_eq!(peer.record.connects(id)[connects - 1].session_present, present);
    }
}

#[test]
fn a_server_that_continues_a_session_after_a_clean_start_is_left() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = peer.clients.add_session(persistent());
    for connections in 1..=2 {
        let answer = script.connack(true, 0, &[]);
        script.connect_client(&mut peer, id, &answer);
        peer.wait("closed", |record| record.causes(id).len() == connections);
    }
    let causes = peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Dropped(_), Cause::Protocol(_)]), "{causes:?}");
    assert_count!(peer.record.connects(id).is_empty());
}

/// The first connection of 3.1.1 finds the session, the second one discards it, the third one begins a new one.
#[test]
fn version_3_1_1_discards_a_session_on_a_connection_of_its_own() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt311>(Version::V311);
    let id = peer.clients.add_session(persistent());
    for (starts_clean, present, words) in [(false, true, "of an earlier run"), (true, false, "has discarded")] {
        let answer = script.connack(present, 0, &[]);
        let requested = script.connect_with(&mut peer, id, &answer, request);
        assert_eq!(requested, [starts_clean, false, false]);
        let before = usize::from(starts_clean);
        peer.wait("closed", |record| record.causes(id).len() > before);
        assert!(matches!(&peer.record.causes(id)[before], Cause::Dropped(cause) if cause.contains(words)));
        assert!(script.rest().is_empty(), "nothing follows CONNECT");
    }
    assert_count!(peer.record.connects(id).is_empty());
    let answer = script.connack(false, 0, &[]);
    assert_eq!(script.connect_with(&mut peer, id, &answer, request), [false; 3]);
    peer.wait("connected", |record| record.connects(id).len() == 1);
    assert_eq!(peer.offer(id, 16), SendOutcome::Accepted);
    peer.flush(id);
    script.expect(&mut peer, PacketType::Publish, |found| {
        let Packet::Publish(publish) = found else { unreachable!() };
        assert_eq!((publish.head.packet_id, publish.head.dup), (Some(1), false));
    });
    // It is its own now.
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 3);
    let answer = script.connack(true, 0, &[]);
    assert_eq!(script.connect_with(&mut peer, id, &answer, request), [false; 3]);
    script.expect(&mut peer, PacketType::Publish, |_| ());
    assert!(peer.record.connects(id)[1].session_present);
}

/// A connection that ends without a goodbye would publish it.
fn a_session_is_found_and_discarded_without_its_will<C: Clients>(version: Version) {
    let will = Will {
        publisher: 7,
        topic: "gone/7".into(),
        qos: Qos::AtLeastOnce,
        retain: false,
        payload_bytes: 100,
        delay_s: 0,
    };
    let options = SessionOptions { will: Some(Box::new(will)), ..SessionOptions::default() };
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let id = peer.clients.add_session(SessionConfig { options, ..persistent() });
    let expires = version == Version::V5;
    // A message for the session of the earlier run comes with the CONNACK.
    let found = [script.connack(true, 0, &[]), script.publish(0x30, None, &payload(1, 24))].concat();
    assert_eq!(script.connect_with(&mut peer, id, &found, request), [false, expires, true]);
    script.expect(&mut peer, PacketType::Disconnect, |_| ());
    script.close();
    peer.wait("closed", |record| record.causes(id).len() == 1);
    let welcome = script.connack(false, 0, &[]);
    if version == Version::V311 {
        assert_eq!(script.connect_with(&mut peer, id, &welcome, request), [true, false, false]);
        peer.wait("closed", |record| record.causes(id).len() == 2);
    }
    assert_eq!(script.connect_with(&mut peer, id, &welcome, request), [expires, expires, true]);
    peer.wait("connected", |record| record.connects(id).len() == 1);
    assert_count_eq!(peer.record.arrived.len(), 0);
}

#[test]
fn a_session_of_an_earlier_run_is_discarded_without_a_will() {
    a_session_is_found_and_discarded_without_its_will::<Mqtt5>(Version::V5);
    a_session_is_found_and_discarded_without_its_will::<Mqtt311>(Version::V311);
}
