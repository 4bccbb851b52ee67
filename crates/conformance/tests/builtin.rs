//! Both versions of MQTT against the built-in broker, plain and encrypted.

use std::process::Command;

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::cases::run_all_but;
use pubmark_conformance::processes::{Kind, ListenerSpec, Processes};
use pubmark_conformance::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES};

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
