//! The suite against our own broker.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_conformance::cases::run_all;
use pubmark_conformance::processes::{Kind, ListenerSpec, Processes};
use pubmark_conformance::server::{Limits, Listener, Missing, SMALL_PACKET_BYTES};

type Builtin = Processes<CoapBroker>;

enum CoapBroker {}

/// Does a server respond to a ping?
pub fn replies(address: SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let requests = socket.connect(address).and_then(|()| socket.send(&[0x40, 0, 0x12, 0x34]));
    requests.and_then(|_| socket.recv(&mut [0; 16])).is_ok()
}

impl Kind for CoapBroker {
    const NAME: &'static str = "coap-broker";
    const SCHEMES: [&'static str; 2] = ["coap", "coap"];
    const LISTENERS: &'static [Listener] = &[Listener::Plain];
    const MAY_LOSE: bool = true;

    fn listens(address: SocketAddr) -> bool {
        replies(address)
    }

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_builtin-broker"));
        command.args(["--protocol", "coap", "--listen", &place.address.to_string()]);
        if place.limits == Limits::Small {
            // The suite counts packets, the broker payloads.
            command.args(["--maximum-payload-bytes", &(SMALL_PACKET_BYTES - 1).to_string()]);
        }
        Ok(command)
    }
}

#[test]
fn coap_plain() {
    run_all::<CoapClients, Builtin>(CoapClients::<Standard>::capabilities(), Listener::Plain);
}
