//! MQTT over WebSocket against mosquitto, plain and encrypted: the whole suite again.

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::cases::run_all;
use pubmark_conformance::mosquitto::MosquittoOverWebSocket;
use pubmark_conformance::server::Listener;

#[test]
fn mqtt_5_plain() {
    run_all::<Mqtt5, MosquittoOverWebSocket>(Mqtt5::capabilities(), Listener::Plain);
}

#[test]
fn mqtt_5_encrypted() {
    run_all::<Mqtt5, MosquittoOverWebSocket>(Mqtt5::capabilities(), Listener::Encrypted);
}

#[test]
fn mqtt_311_plain() {
    run_all::<Mqtt311, MosquittoOverWebSocket>(Mqtt311::capabilities(), Listener::Plain);
}
