//! Optional features of MQTT against mosquitto: wills, message expiry, topic aliases.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::mosquitto::Mosquitto;
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, Goodbye, SessionConfig, SessionOptions, Will};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_testing::assert_count_eq;

fn mosquitto() -> Option<(Mosquitto, Endpoint)> {
    match Mosquitto::start(Limits::Large) {
        Ok(server) => {
            let endpoint = server.endpoint(Listener::Plain).unwrap();
            Some((server, endpoint))
        }
        Err(Missing(reason)) => {
            pubmark_testing::skip(reason);
            None
        }
    }
}

fn with_will(client_id: &str, delay_s: u32) -> SessionConfig {
    let will = Will {
        publisher: 7,
        topic: "gone/7".into(),
        qos: Qos::AtLeastOnce,
        retain: false,
        payload_bytes: 100,
        delay_s,
    };
    let options = SessionOptions { will: Some(Box::new(will)), ..SessionOptions::default() };
    SessionConfig { options, ..session(client_id) }
}

fn a_will_follows_a_cut<C: Clients>() {
    let Some((_server, endpoint)) = mosquitto() else { return };
    let mut peer = Peer::<C>::open(endpoint);
    peer.join(subscriber("mourner", "gone/#", Qos::AtLeastOnce));
    for (goodbye, wills) in [(Goodbye::Graceful, 0), (Goodbye::Cut, 1), (Goodbye::Final, 1), (Goodbye::Cut, 2)] {
        let id = peer.join(with_will("mortal", 0));
        peer.leave(id, goodbye);
        peer.wait("the will", |record| record.wills == wills);
        peer.linger(50);
        assert_count_eq!((peer.record.wills, peer.record.foreign), (wills, 0), "after {goodbye:?}");
    }
}

#[test]
fn wills_of_both_versions() {
    a_will_follows_a_cut::<Mqtt5>();
    a_will_follows_a_cut::<Mqtt311>();
}

#[test]
fn a_device_that_comes_back_in_time_leaves_no_will() {
    let Some((_server, endpoint)) = mosquitto() else { return };
    let mut peer = Peer::<Mqtt5>::open(endpoint);
    peer.join(subscriber("mourner", "gone/#", Qos::AtLeastOnce));
    let id = peer.join(SessionConfig { persistent: true, ..with_will("mortal", 1) });
    peer.leave(id, Goodbye::Cut);
    peer.connect(id);
    // Longer than the delay: the will of the first connection is not published.
    peer.linger(2_500);
    assert_count_eq!(peer.record.wills, 0);
    peer.leave(id, Goodbye::Cut);
    peer.wait("the will of who stays away", |record| record.wills == 1);
}

#[test]
fn a_message_that_expired_is_not_delivered() {
    let Some((_server, endpoint)) = mosquitto() else { return };
    let mut peer = Peer::<Mqtt5>::open(endpoint);
    let receiver = peer.join(SessionConfig { persistent: true, ..subscriber("sleeper", "news", Qos::AtLeastOnce) });
    peer.leave(receiver, Goodbye::Graceful);
    let options = SessionOptions { message_expiry_s: Some(1), ..SessionOptions::default() };
    let hasty = peer.join(SessionConfig { options, ..publisher("hasty", "news", Qos::AtLeastOnce) });
    let patient = peer.join(publisher("patient", "news", Qos::AtLeastOnce));
    peer.send(hasty, 100);
    peer.send(patient, 100);
    peer.wait("both at the server", |record| record.acknowledged() == 2);
    // The wait is what is tested: longer than the expiry.
    peer.linger(2_500);
    peer.connect(receiver);
    peer.wait("what is left", |record| !record.arrived.is_empty());
    peer.linger(200);
    assert_count_eq!(peer.record.sequences(receiver), [2]);
}

#[test]
fn numbers_for_topics_change_nothing_but_bytes() {
    let Some((_server, endpoint)) = mosquitto() else { return };
    for qos in Qos::ALL {
        let mut peer = Peer::<Mqtt5>::open(endpoint.clone());
        let receiver = peer.join(subscriber("all", "long/#", qos));
        let options = SessionOptions { topic_alias: true, ..SessionOptions::default() };
        let config = publisher("numbered", "long/topic/of/a/device/in/a/hall/of/a/factory", qos);
        let sender = peer.join(SessionConfig { options, ..config });
        assert!(!peer.record.connects(sender)[0].topic_alias_refused);
        (0..100).for_each(|_| peer.send(sender, 100));
        peer.wait("all", |record| record.arrived.len() == 100);
        peer.leave(sender, Goodbye::Cut);
        peer.connect(sender);
        (0..100).for_each(|_| peer.send(sender, 100));
        peer.wait("all again", |record| record.arrived.len() >= 200);
        assert_count_eq!(peer.record.sequences(receiver), (1..=200).collect::<Vec<_>>());
    }
}
