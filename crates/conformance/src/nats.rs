//! nats-server, with a private configuration.

use std::fmt::Write as _;
use std::process::Command;

use crate::processes::{Kind, ListenerSpec, Processes, find, installed};
use crate::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES};

/// A running nats-server.
pub type Nats = Processes<NatsServer>;

/// The kind.
pub enum NatsServer {}

impl Kind for NatsServer {
    const NAME: &'static str = "nats-server";
    const SCHEMES: [&'static str; 2] = ["nats", "tls"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let program = find("nats-server", &[installed("nats").join("bin")])
            .ok_or_else(|| Missing("nats-server is not installed (`pubmark install nats`)".to_owned()))?;
        let mut text = format!("listen: {}\n", place.address);
        // The largest payload of the suite is above the default of 1 MB.
        let most = if place.limits == Limits::Small { SMALL_PACKET_BYTES } else { 8 << 20 };
        writeln!(text, "max_payload: {most}").unwrap();
        // A restarted server must have empty storage, like the other servers of the suite.
        let store = place.folder.join("store");
        let _ = std::fs::remove_dir_all(&store);
        writeln!(text, "jetstream {{store_dir: {store:?}}}").unwrap();
        match place.listener {
            Listener::Plain => {}
            Listener::Encrypted => {
                let (certificate, key) = (&place.certificates.server, &place.certificates.key);
                writeln!(text, "tls {{cert_file: {certificate:?}, key_file: {key:?}}}").unwrap();
            }
            Listener::Guarded => {
                writeln!(text, "authorization {{user: {:?}, password: {:?}}}", LOGIN.0, LOGIN.1).unwrap();
            }
        }
        let mut command = Command::new(program);
        command.arg("-c").arg(place.write("nats.conf", text));
        Ok(command)
    }
}
