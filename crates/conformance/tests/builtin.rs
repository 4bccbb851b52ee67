//! Both versions of MQTT against the built-in broker, plain and encrypted.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::cases::run_all_but;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::processes::{Kind, ListenerSpec, Processes};
use pubmark_conformance::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SessionConfig};
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{
    Connect, PacketType, Properties, Property, Publish, PublishHead, Version, encode_connect, encode_publish, frame,
};

type Builtin = Processes<BuiltinBroker>;

enum BuiltinBroker {}

impl Kind for BuiltinBroker {
    const NAME: &'static str = "builtin-broker";
    const SCHEMES: [&'static str; 2] = ["mqtt", "mqtts"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_builtin-broker"));
        command.args(["--listen", &place.address.to_string()]);
        match place.listener {
            Listener::Plain => {}
            Listener::Encrypted => {
                command.arg("--tls-certificate").arg(&place.certificates.server);
                command.arg("--tls-key").arg(&place.certificates.key);
            }
            Listener::Guarded => {
                command.args(["--user", LOGIN.0, "--password", LOGIN.1]);
            }
        }
        if place.limits == Limits::Small {
            command.args(["--maximum-packet-bytes", &SMALL_PACKET_BYTES.to_string()]);
        }
        Ok(command)
    }
}

const LEFT_OUT: [(&str, &str); 1] =
    [("each message goes to one member of a shared group", "the built-in broker refuses `$share/…`")];

#[test]
fn mqtt_5_plain() {
    run_all_but::<Mqtt5, Builtin>(Mqtt5::capabilities(), Listener::Plain, &LEFT_OUT);
}

#[test]
fn mqtt_5_encrypted() {
    run_all_but::<Mqtt5, Builtin>(Mqtt5::capabilities(), Listener::Encrypted, &LEFT_OUT);
}

#[test]
fn mqtt_311_plain() {
    run_all_but::<Mqtt311, Builtin>(Mqtt311::capabilities(), Listener::Plain, &LEFT_OUT);
}

#[test]
fn mqtt_311_encrypted() {
    run_all_but::<Mqtt311, Builtin>(Mqtt311::capabilities(), Listener::Encrypted, &LEFT_OUT);
}

/// A client of an earlier run: its persistent session has a message at QoS 2 that was received and is not released.
fn leave_session(address: SocketAddr, version: Version, client_id: &str) {
    let expiry = [Property::SessionExpiryInterval(60)];
    let connect = Connect {
        version,
        clean_start: false,
        keep_alive_s: 0,
        client_id,
        will: None,
        user: None,
        password: None,
        properties: if version == Version::V5 { Properties::new(&expiry) } else { Properties::NONE },
    };
    let head = PublishHead {
        dup: false,
        qos: Qos::ExactlyOnce,
        retain: false,
        topic: "earlier",
        packet_id: Some(1),
        properties: Properties::NONE,
    };
    let mut packets = Vec::new();
    encode_connect(&connect, &mut packets).unwrap();
    encode_publish(version, &Publish { head, payload: b"of an earlier run" }, &mut packets).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(&packets).unwrap();
    let (mut received, mut chunk) = (Vec::<u8>::new(), [0; 1_024]);
    loop {
        while let Some(found) = frame(&received, usize::MAX).unwrap() {
            if found.packet_type() == Some(PacketType::Pubrec) {
                return;
            }
            let bytes = found.total_bytes;
            received.drain(..bytes);
        }
        let bytes = socket.read(&mut chunk).unwrap();
        assert!(bytes > 0, "the connection ended before PUBREC");
        received.extend_from_slice(&chunk[..bytes]);
    }
}

/// The broker would take identifier 1 for that of the earlier run's message, acknowledge the new one and not publish it.
fn a_session_of_an_earlier_run_is_not_continued<C: Clients>(version: Version) {
    let server = Builtin::start(Limits::Large).unwrap();
    let endpoint = server.endpoint(Listener::Plain).unwrap();
    leave_session(endpoint.address, version, "sn-1");
    let mut peer = Peer::<C>::open(endpoint);
    let receiver = peer.join(subscriber("receives", "kept/#", Qos::ExactlyOnce));
    let config = SessionConfig { persistent: true, ..publisher("sn-1", "kept/a", Qos::ExactlyOnce) };
    let sender = peer.clients.add_session(config);
    // One connection finds the session; in 3.1.1 another one discards it.
    let failures = if version == Version::V5 { 1 } else { 2 };
    for ended in 0..=failures {
        peer.clients.connect(sender, &mut peer.record);
        peer.wait("connected or ended", |record| {
            record.causes(sender).len() > ended || !record.connects(sender).is_empty()
        });
    }
    assert_count_eq!(peer.record.causes(sender).len(), failures);
    assert!(!peer.record.connects(sender)[0].session_present);
    peer.send(sender, 100);
    peer.wait("acknowledged", |record| record.acknowledged() == 1);
    peer.wait("its arrival", |record| !record.arrived.is_empty());
    assert_count_eq!(peer.record.sequences(receiver), [1]);
}

#[test]
fn mqtt_5_does_not_continue_a_session_of_an_earlier_run() {
    a_session_of_an_earlier_run_is_not_continued::<Mqtt5>(Version::V5);
}

#[test]
fn mqtt_311_does_not_continue_a_session_of_an_earlier_run() {
    a_session_of_an_earlier_run_is_not_continued::<Mqtt311>(Version::V311);
}
