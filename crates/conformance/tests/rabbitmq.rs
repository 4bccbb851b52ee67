//! AMQP 0-9-1 against RabbitMQ, plain and encrypted, and together with its MQTT plug-in. It starts slowly: `make test-all`.

#![allow(clippy::unwrap_used)]

use pubmark_adapters::amqp091::Amqp091Clients;
use pubmark_adapters::mqtt::Mqtt311;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::rabbitmq::RabbitMq;
use pubmark_conformance::server::{Limits, Listener, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Clients;

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
fn across<P: Clients, S: Clients>(mut says: Peer<P>, mut hears: Peer<S>, name: &str) -> Vec<u32> {
    let hearer = hears.join(subscriber(&format!("{name}-in"), "across/+/x/#", Qos::AtLeastOnce));
    for (index, topic) in ["across/a/x", "across/a/y", "across/b/x/deep//er"].into_iter().enumerate() {
        let sayer = says.join(publisher(&format!("{name}-out-{index}"), topic, Qos::AtLeastOnce));
        says.send(sayer, 100);
        says.wait("acknowledged", |record| record.acknowledged() == index + 1);
    }
    hears.wait("both", |record| record.arrived.len() >= 2);
    hears.linger(50);
    assert!(hears.record.arrived.iter().all(|one| one.intact && one.payload_bytes == 100));
    hears.record.sequences(hearer)
}

#[test]
#[ignore = "slow: make test-all"]
fn topics_of_mqtt_are_routing_keys_of_amqp() {
    let server = match RabbitMq::start(Limits::Large) {
        Ok(server) => server,
        Err(missing) => return eprintln!("skipped: {}", missing.0),
    };
    let amqp = || Peer::<Amqp091Clients>::open(server.endpoint(Listener::Plain).unwrap());
    let mqtt = || Peer::<Mqtt311>::open(server.mqtt());
    assert_eq!(across(mqtt(), amqp(), "to-amqp"), [1, 3]);
    assert_eq!(across(amqp(), mqtt(), "to-mqtt"), [1, 3]);
}
