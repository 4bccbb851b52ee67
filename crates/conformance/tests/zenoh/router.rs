//! The router, in a separate process.

use std::path::PathBuf;
use std::process::Command;

use pubmark_conformance::processes::{Kind, ListenerSpec, Processes, find, installed};
use pubmark_conformance::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES};

/// A running router, for senders of a kind.
pub type Router<K> = Processes<K>;
/// For senders that block if a queue is full.
pub type Blocking = RouterFor<false, false>;
/// For senders whose messages are dropped if a queue is full.
pub type Dropping = RouterFor<true, false>;
/// With a log-in.
pub type Guarded = RouterFor<false, true>;

/// The router that `pubmark install zenoh` installs: the same library in a Python process.
pub enum Installed {}

impl Kind for Installed {
    const NAME: &'static str = "installed-zenoh-router";
    const SCHEMES: [&'static str; 2] = ["zenoh", "zenoh"];
    const LISTENERS: &'static [Listener] = &[Listener::Plain];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let program = find("zenoh-router", &[installed("zenoh")])
            .ok_or_else(|| Missing("zenoh-router is not installed (`pubmark install zenoh`)".to_owned()))?;
        let mut command = Command::new(program);
        command.arg(configuration(place));
        Ok(command)
    }
}

/// The kind.
pub enum RouterFor<const DROPS: bool, const GUARDED: bool> {}

impl<const DROPS: bool, const GUARDED: bool> Kind for RouterFor<DROPS, GUARDED> {
    const NAME: &'static str = "zenoh-router";
    const SCHEMES: [&'static str; 2] = ["zenoh", "zenoh"];
    const LISTENERS: &'static [Listener] = if GUARDED { &[Listener::Guarded] } else { &[Listener::Plain] };
    const MAY_LOSE: bool = DROPS;

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zenoh-router"));
        command.arg(configuration(place));
        Ok(command)
    }
}

fn configuration(place: &ListenerSpec<'_>) -> PathBuf {
    let most = if place.limits == Limits::Small { SMALL_PACKET_BYTES } else { 8 << 20 };
    let logins = place.write("logins", format!("{}:{}\n", LOGIN.0, LOGIN.1));
    let auth = match place.listener {
        Listener::Guarded => format!("auth: {{usrpwd: {{user: 'x', password: 'x', dictionary_file: {logins:?}}}}},"),
        _ => String::new(),
    };
    // A shorter lease, so that a test need not wait for ten seconds until silence is detected.
    let text = format!(
        "{{mode: 'router', listen: {{endpoints: ['tcp/{}']}}, scouting: {{multicast: {{enabled: false}}}},
          transport: {{{auth} link: {{tx: {{lease: 2000}}, rx: {{max_message_size: {most}}}}}}}}}",
        place.address
    );
    place.write("router.json5", text)
}
