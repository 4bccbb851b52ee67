//! AMQP 0-9-1 against RabbitMQ, plain and encrypted, and together with its plug-ins: topics of MQTT, virtual
//! hosts of both AMQPs. It starts slowly: `make test-all`.

#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use pubmark_adapters::amqp10::Amqp10Clients;
use pubmark_adapters::amqp091::Amqp091Clients;
use pubmark_adapters::mqtt::Mqtt311;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::rabbitmq::RabbitMq;
use pubmark_conformance::server::{Limits, Listener, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, Goodbye, SessionConfig, SessionOptions};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};

#[test]
#[ignore = "slow: make test-all"]
fn amqp091_plain() {
    run_all::<Amqp091Clients, RabbitMq>(Amqp091Clients::capabilities(), Listener::Plain);
}

#[test]
#[ignore = "slow: make test-all"]
fn amqp091_encrypted() {
    run_all::<Amqp091Clients, RabbitMq>(Amqp091Clients::capabilities(), Listener::Encrypted);
}

/// Sends to three topics; returns what arrives with a filter for two of them.
fn across<P: Clients, S: Clients>(mut sender: Peer<P>, mut receiver: Peer<S>, name: &str) -> Vec<u32> {
    let hearer = receiver.join(subscriber(&format!("{name}-in"), "across/+/x/#", Qos::AtLeastOnce));
    for (index, topic) in ["across/a/x", "across/a/y", "across/b/x/deep//er"].into_iter().enumerate() {
        let sayer = sender.join(publisher(&format!("{name}-out-{index}"), topic, Qos::AtLeastOnce));
        sender.send(sayer, 100);
        sender.wait("acknowledged", |record| record.acknowledged() == index + 1);
    }
    receiver.wait("both", |record| record.arrived.len() >= 2);
    receiver.linger(50);
    assert_count!(receiver.record.arrived.iter().all(|one| one.intact && one.payload_bytes == 100));
    receiver.record.sequences(hearer)
}

#[test]
#[ignore = "slow: make test-all"]
fn topics_of_mqtt_are_routing_keys_of_amqp() {
    let Some(server) = started() else { return };
    let amqp = || Peer::<Amqp091Clients>::open(server.endpoint(Listener::Plain).unwrap());
    let mqtt = || Peer::<Mqtt311>::open(server.mqtt());
    assert_eq!(across(mqtt(), amqp(), "to-amqp"), [1, 3]);
    assert_eq!(across(amqp(), mqtt(), "to-mqtt"), [1, 3]);
}

/// The server, or `None` after the reason was printed.
fn started() -> Option<RabbitMq> {
    RabbitMq::start(Limits::Large).inspect_err(|missing| pubmark_testing::skip(&missing.0)).ok()
}

/// The server's endpoint with a virtual host.
fn hosted(server: &RabbitMq, settings: &str) -> Endpoint {
    Endpoint { settings: Some(settings.into()), ..server.endpoint(Listener::Plain).unwrap() }
}

fn chooses_a_virtual_host<C: Clients>(server: &RabbitMq) {
    let mut here = Peer::<C>::open(hosted(server, "/a%2Fb"));
    let mut elsewhere = Peer::<C>::open(server.endpoint(Listener::Plain).unwrap());
    let receiver = here.join(subscriber("hears", "hosted", Qos::AtLeastOnce));
    elsewhere.join(subscriber("deaf", "hosted", Qos::AtLeastOnce));
    let sender = here.join(publisher("says", "hosted", Qos::AtLeastOnce));
    here.send(sender, 100);
    here.wait("the message", |record| record.sequences(receiver) == [1]);
    elsewhere.linger(100);
    assert_count_eq!(elsewhere.record.arrived, []);
    let cause = Peer::<C>::open(hosted(server, "/none")).fail_to_connect(session("lost"));
    // Over AMQP 1.0 the server reports the missing permission, but not for what.
    let (Cause::Refused(reason) | Cause::NotAuthorized(reason)) = &cause else { panic!("{cause:?}") };
    assert!(reason.text.contains("none"), "{cause:?}");
}

#[test]
#[ignore = "slow: make test-all"]
fn a_virtual_host_is_chosen_by_the_endpoint_and_a_wrong_one_is_reported() {
    let Some(server) = started() else { return };
    server.add_virtual_host("a/b");
    chooses_a_virtual_host::<Amqp091Clients>(&server);
    chooses_a_virtual_host::<Amqp10Clients>(&server);
}

#[test]
#[ignore = "slow: make test-all"]
fn messages_for_an_absent_persistent_group_wait_and_its_last_member_deletes_its_queue() {
    let Some(server) = started() else { return };
    let mut peer = Peer::<Amqp091Clients>::open(server.endpoint(Listener::Plain).unwrap());
    let options = SessionOptions { shared: Some("kept".into()), ..SessionOptions::default() };
    let member = |name: &str| SessionConfig {
        options: options.clone(),
        persistent: true,
        ..subscriber(name, "kept/#", Qos::AtLeastOnce)
    };
    let members = [peer.join(member("one")), peer.join(member("two"))];
    let sender = peer.join(publisher("says", "kept/a", Qos::AtLeastOnce));
    members.iter().for_each(|member| peer.leave(*member, Goodbye::Graceful));
    (0..10).for_each(|_| peer.send(sender, 100));
    peer.wait("acknowledged", |record| record.acknowledged() == 10);
    peer.connect(members[0]);
    assert!(peer.record.connects(members[0])[1].session_present);
    peer.wait("what was missed", |record| record.sequences(members[0]).len() == 10);
    peer.connect(members[1]);
    // The remaining session retains the queue and its consumer.
    peer.leave(members[1], Goodbye::Final);
    (0..10).for_each(|_| peer.send(sender, 100));
    // Messages in flight to the session that left arrive after later ones.
    peer.wait("the rest", |record| record.sequences(members[0]).len() == 20);
    let mut all = peer.record.sequences(members[0]);
    all.sort_unstable();
    assert_eq!(all, (1..=20).collect::<Vec<_>>());
    peer.leave(members[0], Goodbye::Final);
    // The server closes a connection before it has executed all its commands, so the queue may outlive its last member
    // for a moment. A session that still finds it leaves for good like those before. A new one would not look for it.
    let begin = Instant::now();
    let mut finds_it = || {
        peer.connect(members[0]);
        let present = peer.record.connects(members[0]).last().is_some_and(|connected| connected.session_present);
        peer.leave(members[0], Goodbye::Final);
        present
    };
    while finds_it() {
        assert!(begin.elapsed() < Duration::from_secs(10), "the queue is still there");
    }
}
