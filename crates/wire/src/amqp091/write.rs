//! What a client writes, messages apart.

use super::method::Tune;
use super::{FRAME_END, code};

/// Longest short string, bytes.
const SHORT_BYTES: usize = 255;

/// Properties of the client.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// What the server's tools call the connection.
    pub connection_name: &'a str,
    /// The client's name.
    pub product: &'a str,
    /// Its version.
    pub version: &'a str,
    /// User name.
    pub user: &'a str,
    /// Password.
    pub password: &'a str,
}

/// A queue to be made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Declare<'a> {
    /// Its name; the server makes one up if it is empty.
    pub queue: &'a str,
    /// Only checks whether it exists.
    pub passive: bool,
    /// Survives the server.
    pub durable: bool,
    /// For this connection only, and gone with it.
    pub exclusive: bool,
    /// Gone with its last consumer.
    pub auto_delete: bool,
    /// Gone after N ms without a consumer (`x-expires`, RabbitMQ's).
    pub expires_ms: Option<u64>,
}

/// Appends a frame with a method; `arguments` appends those.
#[inline]
pub(super) fn method(channel: u16, class: u16, number: u16, out: &mut Vec<u8>, arguments: impl FnOnce(&mut Vec<u8>)) {
    out.push(1);
    out.extend_from_slice(&channel.to_be_bytes());
    sized(out, |out| {
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        arguments(out);
    });
    out.push(FRAME_END);
}

/// Appends what `content` does, with its length in four octets ahead.
pub(super) fn sized(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    content(out);
    let bytes = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&bytes.to_be_bytes());
}

/// Appends a short string, cut if it is too long: callers check the length where it matters.
pub(super) fn short_text(text: &str, out: &mut Vec<u8>) {
    let bytes = &text.as_bytes()[..text.len().min(SHORT_BYTES)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

fn long_text(text: &str, out: &mut Vec<u8>) {
    sized(out, |out| out.extend_from_slice(text.as_bytes()));
}

/// An entry of a table: a text (`S`).
pub(super) fn text_entry(name: &str, text: &str, out: &mut Vec<u8>) {
    short_text(name, out);
    out.push(b'S');
    long_text(text, out);
}

/// Appends `connection.start-ok`: PLAIN (RFC 4616), and the extensions that we understand.
pub fn encode_start_ok(login: &Login<'_>, out: &mut Vec<u8>) {
    const CAPABILITIES: [&str; 5] = [
        "authentication_failure_close",
        "basic.nack",
        "connection.blocked",
        "consumer_cancel_notify",
        "publisher_confirms",
    ];
    method(0, 10, 11, out, |out| {
        sized(out, |out| {
            text_entry("connection_name", login.connection_name, out);
            text_entry("product", login.product, out);
            text_entry("version", login.version, out);
            short_text("capabilities", out);
            out.push(b'F');
            sized(out, |out| {
                for capability in CAPABILITIES {
                    short_text(capability, out);
                    out.extend_from_slice(b"t\x01");
                }
            });
        });
        short_text("PLAIN", out);
        sized(out, |out| {
            for part in [login.user, login.password] {
                out.push(0);
                out.extend_from_slice(part.as_bytes());
            }
        });
        short_text("en_US", out);
    });
}

/// Appends `connection.tune-ok`.
pub fn encode_tune_ok(tune: Tune, out: &mut Vec<u8>) {
    method(0, 10, 31, out, |out| {
        out.extend_from_slice(&tune.channel_max.to_be_bytes());
        out.extend_from_slice(&tune.frame_max.to_be_bytes());
        out.extend_from_slice(&tune.heartbeat_s.to_be_bytes());
    });
}

/// Appends `connection.open`.
pub fn encode_open(virtual_host: &str, out: &mut Vec<u8>) {
    method(0, 10, 40, out, |out| {
        short_text(virtual_host, out);
        out.extend_from_slice(&[0, 0]);
    });
}

/// Appends `connection.close` without a complaint.
pub fn encode_close(out: &mut Vec<u8>) {
    method(0, 10, 50, out, |out| {
        out.extend_from_slice(&code::SUCCESS.to_be_bytes());
        short_text("goodbye", out);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Appends `channel.open`.
pub fn encode_channel_open(channel: u16, out: &mut Vec<u8>) {
    method(channel, 20, 10, out, |out| out.push(0));
}

/// Appends `channel.flow-ok`.
pub fn encode_flow_ok(channel: u16, active: bool, out: &mut Vec<u8>) {
    method(channel, 20, 21, out, |out| out.push(u8::from(active)));
}

/// Appends `channel.close-ok`.
pub fn encode_channel_close_ok(channel: u16, out: &mut Vec<u8>) {
    method(channel, 20, 41, out, |_| {});
}

/// Appends `queue.declare`.
pub fn encode_declare(channel: u16, declare: &Declare<'_>, out: &mut Vec<u8>) {
    let bit = |set: bool, place: u8| u8::from(set) << place;
    method(channel, 50, 10, out, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(declare.queue, out);
        let bits = bit(declare.passive, 0) | bit(declare.durable, 1) | bit(declare.exclusive, 2);
        out.push(bits | bit(declare.auto_delete, 3));
        sized(out, |out| {
            if let Some(expires_ms) = declare.expires_ms {
                short_text("x-expires", out);
                out.push(b'l');
                out.extend_from_slice(&expires_ms.to_be_bytes());
            }
        });
    });
}

/// Appends `queue.bind`.
pub fn encode_bind(channel: u16, queue: &str, exchange: &str, binding_key: &str, out: &mut Vec<u8>) {
    method(channel, 50, 20, out, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(queue, out);
        short_text(exchange, out);
        short_text(binding_key, out);
        // With a response; no arguments.
        out.extend_from_slice(&[0; 5]);
    });
}

/// Appends `queue.unbind`.
pub fn encode_unbind(channel: u16, queue: &str, exchange: &str, binding_key: &str, out: &mut Vec<u8>) {
    method(channel, 50, 50, out, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(queue, out);
        short_text(exchange, out);
        short_text(binding_key, out);
        // No arguments; it always has a response.
        out.extend_from_slice(&[0; 4]);
    });
}

/// Appends `queue.delete` with a response, whatever is in the queue; with `if_unused` only if it has no consumer.
pub fn encode_delete(channel: u16, queue: &str, if_unused: bool, out: &mut Vec<u8>) {
    method(channel, 50, 40, out, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(queue, out);
        out.push(u8::from(if_unused));
    });
}

/// Appends `basic.qos`: at most N messages on their way to each consumer made from here on.
pub fn encode_qos(channel: u16, prefetch: u16, out: &mut Vec<u8>) {
    method(channel, 60, 10, out, |out| {
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&prefetch.to_be_bytes());
        out.push(0);
    });
}

/// Appends `basic.consume`; with `no_ack` messages are done with when they are sent. The server makes a name up for a consumer
/// without one.
pub fn encode_consume(channel: u16, queue: &str, consumer: &str, no_ack: bool, out: &mut Vec<u8>) {
    method(channel, 60, 20, out, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(queue, out);
        short_text(consumer, out);
        out.push(u8::from(no_ack) << 1);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Appends `basic.cancel` without a response.
pub fn encode_cancel(channel: u16, consumer: &str, out: &mut Vec<u8>) {
    method(channel, 60, 30, out, |out| {
        short_text(consumer, out);
        out.push(1);
    });
}

/// Appends `basic.ack` for a message, or for all up to it.
#[inline]
pub fn encode_ack(channel: u16, tag: u64, multiple: bool, out: &mut Vec<u8>) {
    method(channel, 60, 80, out, |out| {
        out.extend_from_slice(&tag.to_be_bytes());
        out.push(u8::from(multiple));
    });
}

/// Appends `confirm.select`: from here on the server confirms every message on the channel.
pub fn encode_select(channel: u16, out: &mut Vec<u8>) {
    method(channel, 85, 10, out, |out| out.push(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out);
        out
    }

    #[test]
    fn methods_are_those_of_the_specification() {
        assert_eq!(bytes(|out| encode_channel_open(1, out)), b"\x01\x00\x01\x00\x00\x00\x05\x00\x14\x00\x0a\x00\xce");
        let tune = Tune { channel_max: 2, frame_max: 131_072, heartbeat_s: 60 };
        let expected = b"\x01\x00\x00\x00\x00\x00\x0c\x00\x0a\x00\x1f\x00\x02\x00\x02\x00\x00\x00\x3c\xce";
        assert_eq!(bytes(|out| encode_tune_ok(tune, out)), expected);
        assert_eq!(
            bytes(|out| encode_open("/", out)),
            b"\x01\x00\x00\x00\x00\x00\x08\x00\x0a\x00\x28\x01/\x00\x00\xce"
        );
        let ack = b"\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x09\x01\xce";
        assert_eq!(bytes(|out| encode_ack(1, 9, true, out)), ack);
        let consume = b"\x01\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x14\x00\x00\x01q\x00\x02\x00\x00\x00\x00\xce";
        assert_eq!(bytes(|out| encode_consume(1, "q", "", true, out)), consume);
        let cancel = b"\x01\x00\x01\x00\x00\x00\x07\x00\x3c\x00\x1e\x01c\x01\xce";
        assert_eq!(bytes(|out| encode_cancel(1, "c", out)), cancel);
        let unbind = b"\x01\x00\x01\x00\x00\x00\x10\x00\x32\x00\x32\x00\x00\x01q\x01e\x01k\x00\x00\x00\x00\xce";
        assert_eq!(bytes(|out| encode_unbind(1, "q", "e", "k", out)), unbind);
        let kept = Declare { queue: "q", durable: true, expires_ms: Some(1), ..Declare::default() };
        let expected = b"\x01\x00\x01\x00\x00\x00\x20\x00\x32\x00\x0a\x00\x00\x01q\x02\x00\x00\x00\x13\x09x-expiresl\
            \x00\x00\x00\x00\x00\x00\x00\x01\xce";
        assert_eq!(bytes(|out| encode_declare(1, &kept, out)), expected);
    }

    #[test]
    fn a_log_in_has_nothing_but_user_and_password_between_zeros() {
        let login = Login { connection_name: "c", product: "p", version: "v", user: "me", password: "two words" };
        let encoded = bytes(|out| encode_start_ok(&login, out));
        assert!(
            encoded.windows(14).any(|part| part == b"\x00\x00\x00\x0d\x00me\x00two wo"),
            "{}",
            encoded.escape_ascii()
        );
        let announced = u32::from_be_bytes([encoded[3], encoded[4], encoded[5], encoded[6]]) as usize;
        assert_eq!((announced + 8, encoded.last()), (encoded.len(), Some(&FRAME_END)));
    }
}
