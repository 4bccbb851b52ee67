//! MQTT over WebSocket against mosquitto, plain and encrypted: the suite again.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::cases::run_all_but;
use pubmark_conformance::mosquitto::MosquittoOverWebSocket;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::Clients;
use pubmark_testing::assert_count;

/// mosquitto 2.0.11 reads 4 KB of a WebSocket at a time and polls again up to 100 ms later, so that a lidar scan takes
/// half a minute. Sizes around those of frames are tried below, and by script.
const LEFT_OUT: [(&str, &str); 4] = [
    ("every size arrives whole at every level", "mosquitto takes half a minute for 1.2 MB over WebSocket"),
    ("many clients hear many, and leave no socket", "mosquitto takes up to 100 ms for each step of a WebSocket"),
    ("answers name their requests", "mosquitto takes up to 100 ms for each step of a WebSocket"),
    ("the in-flight window is kept", "mosquitto takes up to 100 ms for each step of a WebSocket"),
];

/// In MQTT 5 the limit is in CONNACK and our clients respect it; in 3.1.1 only the server enforces it.
const NOT_LIMITED: (&str, &str) =
    ("a packet too large is refused", "mosquitto 2.0.11 takes packets of any size over WebSocket");

fn suite<C: Clients + 'static>(capabilities: Capabilities, listener: Listener, further: Option<(&str, &str)>) {
    let left_out: Vec<_> = LEFT_OUT.into_iter().chain(further).collect();
    run_all_but::<C, MosquittoOverWebSocket>(capabilities, listener, &left_out);
}

#[test]
fn mqtt_5_plain() {
    suite::<Mqtt5>(Mqtt5::capabilities(), Listener::Plain, None);
}

#[test]
fn mqtt_5_encrypted() {
    suite::<Mqtt5>(Mqtt5::capabilities(), Listener::Encrypted, None);
}

#[test]
fn mqtt_311_plain() {
    suite::<Mqtt311>(Mqtt311::capabilities(), Listener::Plain, Some(NOT_LIMITED));
}

/// Sizes around that of a frame and around the limits of its length encodings.
#[test]
fn sizes_around_those_of_frames_arrive_whole() {
    const SIZES: [u32; 7] = [16, 100, 126, 1_000, 16_300, 16_400, 40_000];
    let server = match MosquittoOverWebSocket::start(Limits::Large) {
        Ok(server) => server,
        Err(Missing(reason)) => return pubmark_testing::skip(reason),
    };
    for listener in [Listener::Plain, Listener::Encrypted] {
        let mut peer = Peer::<Mqtt5>::open(server.endpoint(listener).unwrap());
        peer.join(subscriber("sizes-in", "sizes", Qos::AtLeastOnce));
        let sender = peer.join(publisher("sizes-out", "sizes", Qos::AtLeastOnce));
        SIZES.iter().for_each(|size| peer.send(sender, *size));
        peer.wait("all sizes", |record| record.arrived.len() == SIZES.len());
        let sizes: Vec<u32> = peer.record.arrived.iter().map(|one| one.payload_bytes as u32).collect();
        assert_eq!(sizes, SIZES);
        assert_count!(peer.record.arrived.iter().all(|one| one.intact));
    }
}
