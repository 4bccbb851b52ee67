//! The toy protocol of docs/how-to/add-a-protocol.md against its server.

mod dialect;

use std::process::Command;

use dialect::Line;
use pubmark_adapters::connection::{Dialect, StreamClients};
use pubmark_conformance::cases::run_all;
use pubmark_conformance::processes::{Kind, ListenerSpec, Processes};
use pubmark_conformance::server::{Limits, Listener, Missing, SMALL_PACKET_BYTES};

enum LineServer {}

impl Kind for LineServer {
    const NAME: &'static str = "toy-line-server";
    const SCHEMES: [&'static str; 2] = ["line", "lines"];
    const LISTENERS: &'static [Listener] = &[Listener::Plain];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toy-line-server"));
        command.arg(place.address.to_string());
        if place.limits == Limits::Small {
            command.arg(SMALL_PACKET_BYTES.to_string());
        }
        Ok(command)
    }
}

#[test]
fn line_plain() {
    run_all::<StreamClients<Line>, Processes<LineServer>>(Line::CAPABILITIES, Listener::Plain);
}
