//! redis-server, with a private configuration.

use std::process::Command;

use crate::processes::{Kind, ListenerSpec, Processes, find};
use crate::server::{LOGIN, Limits, Listener, Missing};

/// A running redis-server.
pub type Redis = Processes<RedisServer>;

/// The kind.
pub enum RedisServer {}

impl Kind for RedisServer {
    const NAME: &'static str = "redis-server";
    const SCHEMES: [&'static str; 2] = ["redis", "rediss"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        if place.limits == Limits::Small {
            return Err(Missing("redis-server takes no less than 1 MB (proto-max-bulk-len)".to_owned()));
        }
        let missing = || Missing("redis-server is not installed (`apt-get install redis-server`)".to_owned());
        let program = find("redis-server", &[]).ok_or_else(missing)?;
        let port = place.address.port();
        let folder = place.folder.display();
        let mut text = format!("bind 127.0.0.1\nsave \"\"\nappendonly no\ndir {folder}\n");
        // A subscriber that is slow on purpose must not be disconnected.
        text.push_str("client-output-buffer-limit pubsub 0 0 0\n");
        text.push_str(&match place.listener {
            Listener::Plain => format!("port {port}\n"),
            Listener::Encrypted => {
                let (certificate, key) = (place.certificates.server.display(), place.certificates.key.display());
                format!(
                    "port 0\ntls-port {port}\ntls-cert-file {certificate}\ntls-key-file {key}\ntls-auth-clients no\n"
                )
            }
            Listener::Guarded => {
                format!("port {port}\nuser default off\nuser {} on \">{}\" ~* &* +@all\n", LOGIN.0, LOGIN.1)
            }
        });
        let mut command = Command::new(program);
        command.arg(place.write("redis.conf", text));
        Ok(command)
    }
}
