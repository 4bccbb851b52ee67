//! Debian's mosquitto, with a private configuration.

use std::fmt::Write as _;
use std::process::Command;

use crate::processes::{Kind, ListenerSpec, Processes, find};
use crate::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES};

/// A running mosquitto.
pub type Mosquitto = Processes<MosquittoBroker>;

/// A running mosquitto whose listeners use WebSocket.
pub type MosquittoOverWebSocket = Processes<WebSocketBroker>;

/// The kind.
pub enum WebSocketBroker {}

impl Kind for WebSocketBroker {
    const NAME: &'static str = "mosquitto";
    const SCHEMES: [&'static str; 2] = ["ws", "wss"];
    const WEBSOCKET: Option<&'static str> = Some("mqtt");

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        // mosquitto 2.0.11 exits when all its listeners are for WebSocket, so it gets a further one that is unused.
        let unused = place.folder.join("unused");
        command(place, "protocol websockets\n", &format!("listener 0 {}\n", unused.display()))
    }
}

/// The kind.
pub enum MosquittoBroker {}

impl Kind for MosquittoBroker {
    const NAME: &'static str = "mosquitto";
    const SCHEMES: [&'static str; 2] = ["mqtt", "mqtts"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        command(place, "", "")
    }
}

/// The command for one listener; `settings` stand behind its port, `further` behind all.
fn command(place: &ListenerSpec<'_>, settings: &str, further: &str) -> Result<Command, Missing> {
    let missing = |name: &str| Missing(format!("{name} is not installed (`apt-get install mosquitto`)"));
    let program = find("mosquitto", &[]).ok_or_else(|| missing("mosquitto"))?;
    let mut text = String::from("set_tcp_nodelay true\nmax_queued_messages 1000000\npersistence false\n");
    text.push_str("log_dest stderr\nlog_type error\n");
    // Started as root, it would change to a user that cannot read the test's files.
    // SAFETY: only returns a number, touches no memory.
    if unsafe { libc::geteuid() } == 0 {
        text.push_str("user root\n");
    }
    if place.limits == Limits::Small {
        writeln!(text, "max_packet_size {SMALL_PACKET_BYTES}").unwrap();
    }
    writeln!(text, "listener {} 127.0.0.1", place.address.port()).unwrap();
    text.push_str(settings);
    writeln!(text, "allow_anonymous {}", place.listener != Listener::Guarded).unwrap();
    match place.listener {
        Listener::Plain => {}
        Listener::Encrypted => {
            writeln!(text, "certfile {}", place.certificates.server.display()).unwrap();
            writeln!(text, "keyfile {}", place.certificates.key.display()).unwrap();
        }
        Listener::Guarded => {
            let passwd = find("mosquitto_passwd", &[]).ok_or_else(|| missing("mosquitto_passwd"))?;
            let file = place.folder.join("passwords");
            let made = Command::new(&passwd).arg("-b").arg("-c").arg(&file).args([LOGIN.0, LOGIN.1]).output();
            assert!(made.unwrap().status.success(), "mosquitto_passwd failed");
            writeln!(text, "password_file {}", file.display()).unwrap();
        }
    }
    text.push_str(further);
    let mut command = Command::new(program);
    command.arg("-c").arg(place.write("mosquitto.conf", text));
    Ok(command)
}
