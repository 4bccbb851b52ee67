//! NATS and JetStream against nats-server, plain and encrypted.

use pubmark_adapters::jetstream::JetStreamClients;
use pubmark_adapters::nats::NatsClients;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::nats::Nats;
use pubmark_conformance::server::Listener;

#[test]
fn nats_plain() {
    run_all::<NatsClients, Nats>(NatsClients::capabilities(), Listener::Plain);
}

#[test]
fn nats_encrypted() {
    run_all::<NatsClients, Nats>(NatsClients::capabilities(), Listener::Encrypted);
}

#[test]
fn jetstream_plain() {
    run_all::<JetStreamClients, Nats>(JetStreamClients::capabilities(), Listener::Plain);
}

#[test]
fn jetstream_encrypted() {
    run_all::<JetStreamClients, Nats>(JetStreamClients::capabilities(), Listener::Encrypted);
}
