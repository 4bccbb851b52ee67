//! AMQP 1.0 against RabbitMQ and Artemis, plain and encrypted. They start slowly: `make test-all`.

use pubmark_adapters::amqp10::Amqp10Clients;
use pubmark_conformance::artemis::Artemis;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::rabbitmq::RabbitMq;
use pubmark_conformance::server::Listener;

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
    run_all::<Amqp10Clients, RabbitMq>(Amqp10Clients::capabilities(), Listener::Plain);
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_encrypted() {
    run_all::<Amqp10Clients, RabbitMq>(Amqp10Clients::capabilities(), Listener::Encrypted);
}
