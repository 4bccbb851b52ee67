//! Encodes what a client, or a peer in a test, sends.

use super::frame::{COMMAND, LONG, MORE};
use super::greeting::{MECHANISM_BYTES, Mechanism, SIGNATURE_FIRST, SIGNATURE_LAST, SIGNATURE_LAST_AT, VERSION};
use super::metadata::SocketType;

/// Longest user name or password that HELLO can carry, bytes.
pub const LONGEST_LOG_IN_BYTES: usize = u8::MAX as usize;
/// Bytes of a greeting behind its mechanism: not a server, and the filler.
const BEHIND_MECHANISM_BYTES: usize = 32;

/// The front of a greeting, up to the major version: enough for a peer to send all of its own.
pub fn encode_greeting_front(out: &mut Vec<u8>) {
    out.push(SIGNATURE_FIRST);
    out.resize(out.len() + SIGNATURE_LAST_AT - 1, 0);
    out.extend_from_slice(&[SIGNATURE_LAST, VERSION[0]]);
}

/// The rest of a greeting, of a side that is not the server of its mechanism.
pub fn encode_greeting_rest(mechanism: Mechanism, out: &mut Vec<u8>) {
    let name = mechanism.name();
    out.push(VERSION[1]);
    out.extend_from_slice(name.as_bytes());
    out.resize(out.len() + MECHANISM_BYTES - name.len() + BEHIND_MECHANISM_BYTES, 0);
}

/// Flags and size of a frame with a body of `body_bytes`.
pub fn append_frame_front(more: bool, body_bytes: usize, out: &mut Vec<u8>) {
    append_front(if more { MORE } else { 0 }, body_bytes, out);
}

fn append_front(flags: u8, body_bytes: usize, out: &mut Vec<u8>) {
    match u8::try_from(body_bytes) {
        Ok(size) => out.extend_from_slice(&[flags, size]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body_bytes as u64).to_be_bytes());
        }
    }
}

fn encode_command(name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
    let data_bytes: usize = data.iter().map(|part| part.len()).sum();
    append_front(COMMAND, 1 + name.len() + data_bytes, out);
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
    data.iter().for_each(|part| out.extend_from_slice(part));
}

fn encode_with_metadata(name: &str, kind: SocketType, out: &mut Vec<u8>) {
    let value = kind.name().as_bytes();
    let size = (value.len() as u32).to_be_bytes();
    encode_command(name, &[b"\x0bSocket-Type", &size, value], out);
}

/// READY of a socket.
pub fn encode_ready(kind: SocketType, out: &mut Vec<u8>) {
    encode_with_metadata("READY", kind, out);
}

/// INITIATE of a socket.
pub fn encode_initiate(kind: SocketType, out: &mut Vec<u8>) {
    encode_with_metadata("INITIATE", kind, out);
}

/// HELLO. User name and password have at most [`LONGEST_LOG_IN_BYTES`]; what is longer is cut.
pub fn encode_hello(user: &[u8], password: &[u8], out: &mut Vec<u8>) {
    let [user, password] = [user, password].map(|text| &text[..text.len().min(LONGEST_LOG_IN_BYTES)]);
    encode_command("HELLO", &[&[user.len() as u8], user, &[password.len() as u8], password], out);
}

/// WELCOME.
pub fn encode_welcome(out: &mut Vec<u8>) {
    encode_command("WELCOME", &[], out);
}

/// PING without a time limit after which the peer may disconnect.
pub fn encode_ping(context: &[u8], out: &mut Vec<u8>) {
    encode_command("PING", &[&[0, 0], context], out);
}

/// PONG.
pub fn encode_pong(context: &[u8], out: &mut Vec<u8>) {
    encode_command("PONG", &[context], out);
}

/// SUBSCRIBE, of ZMTP 3.1.
pub fn encode_subscribe(prefix: &[u8], out: &mut Vec<u8>) {
    encode_command("SUBSCRIBE", &[prefix], out);
}

/// CANCEL, of ZMTP 3.1.
pub fn encode_cancel(prefix: &[u8], out: &mut Vec<u8>) {
    encode_command("CANCEL", &[prefix], out);
}

/// A subscription as a message, or its end: the form of ZMTP 3.0 (23/ZMTP, "The Publish-Subscribe Pattern").
pub fn encode_subscription_message(subscribe: bool, prefix: &[u8], out: &mut Vec<u8>) {
    append_frame_front(false, 1 + prefix.len(), out);
    out.push(u8::from(subscribe));
    out.extend_from_slice(prefix);
}
