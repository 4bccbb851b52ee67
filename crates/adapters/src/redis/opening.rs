//! From TCP to a log-in: HELLO. What publish/subscribe and streams have in common.

use pubmark_protocol::events::{Cause, Reason};
use pubmark_wire::front::Front;
use pubmark_wire::resp::{Reply, encode_command, next};

use crate::connection::{Link, Shared};

/// Largest bulk string (`proto-max-bulk-len`, 512 MB unless set otherwise).
pub const LARGEST_PAYLOAD_BYTES: u32 = 512 << 20;
/// Longest time that the server waits for new entries before it responds with none, if no keep-alive requires less.
const WAIT_MS: u64 = 5_000;
/// User of a server whose log-in is a password alone.
const DEFAULT_USER: &str = "default";

/// Requests RESP3, logs in, sets the client's name; the response is a map.
pub fn send_hello(link: &mut Link, shared: &mut Shared) {
    let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
    let log_in = link.config.log_in(&shared.config);
    if let Some(credentials) = &log_in {
        let user = if credentials.user.is_empty() { DEFAULT_USER } else { credentials.user };
        words.extend([&b"AUTH"[..], user.as_bytes(), credentials.password.as_bytes()]);
    }
    // The name that CLIENT LIST shows; it may have no blanks.
    let name: String = link.config.client_id.chars().map(|c| if c.is_ascii_graphic() { c } else { '-' }).collect();
    words.extend([&b"SETNAME"[..], name.as_bytes()]);
    link.outbox.append(&mut shared.pool, |out| encode_command(&words, out));
}

/// Time that the server waits for new entries before it responds with none, ms. It does not respond to a ping while it waits,
/// so it is less than the keep-alive.
pub fn wait_ms(shared: &Shared) -> u64 {
    match shared.config.connections.keep_alive_s {
        0 => WAIT_MS,
        keep_alive_s => WAIT_MS.min(u64::from(keep_alive_s) * 1_000 / 2),
    }
}

/// The value at the front of some bytes.
pub fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Reply<'_>>, Cause> {
    next(bytes, most_bytes).map_err(|error| Cause::Protocol(error.to_string()))
}

/// Is it an error after which the server closes the connection? It responds to no command.
pub fn ends_connection(words: &str) -> bool {
    words.starts_with("ERR Protocol error")
}

/// The cause for an error as the response to HELLO.
pub fn refusal(words: &str) -> Cause {
    let reason = Reason::words(words.to_owned());
    match words.split(' ').next() {
        Some("WRONGPASS" | "NOAUTH" | "NOPERM") => Cause::NotAuthorized(reason),
        _ => Cause::Refused(reason),
    }
}
