//! AMQP 1.0 against RabbitMQ and Artemis, plain and encrypted. They start slowly: `make test-all`.

use pubmark_adapters::amqp10::Amqp10Clients;
use pubmark_conformance::artemis::Artemis;
use pubmark_conformance::cases::{run_all, run_all_but};
use pubmark_conformance::rabbitmq::RabbitMq;
use pubmark_conformance::server::Listener;

/// Cases that RabbitMQ does not support over AMQP 1.0.
const NOT_SHARED: &[(&str, &str)] = &[(
    "each message goes to one member of a shared group",
    "RabbitMQ 3.10 makes a queue for each subscription to a topic, and binds none that has a name",
)];

#[test]
#[ignore = "slow: make test-all"]
fn artemis_plain() {
    run_all::<Amqp10Clients, Artemis>(Amqp10Clients::capabilities(), Listener::Plain);
}

#[test]
#[ignore = "slow: make test-all"]
fn artemis_encrypted() {
    run_all::<Amqp10Clients, Artemis>(Amqp10Clients::capabilities(), Listener::Encrypted);
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_plain() {
    run_all_but::<Amqp10Clients, RabbitMq>(Amqp10Clients::capabilities(), Listener::Plain, NOT_SHARED);
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_encrypted() {
    run_all_but::<Amqp10Clients, RabbitMq>(Amqp10Clients::capabilities(), Listener::Encrypted, NOT_SHARED);
}
