//! The opening handshake (RFC 6455 §4): our request, and the check of the server's response.

use data_encoding::BASE64;
use ring::digest;

use super::Fault;
use crate::endpoint::Upgrade;

/// Most bytes of a response.
const LONGEST_RESPONSE: usize = 16 * 1024;
/// Most bytes of a server's text that are stored.
const LONGEST_REASON: usize = 200;
/// Fixed by the standard (RFC 6455 §1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Prefix of every response; HTTP/1.1 is required (§4.1).
const FRONT: &[u8] = b"HTTP/1.1 ";

/// The server's response, as far as it has arrived.
#[derive(Debug)]
pub(super) struct HandshakeResponse {
    /// The required value of `Sec-WebSocket-Accept`.
    accept: String,
    subprotocol: String,
    bytes: Vec<u8>,
}

/// The request with a key of these bytes, and the expected response.
pub(super) fn begin(upgrade: &Upgrade, key: [u8; 16]) -> (Vec<u8>, HandshakeResponse) {
    let Upgrade { host, path, subprotocol } = upgrade;
    let key = BASE64.encode(&key);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
    );
    (
        request.into_bytes(),
        HandshakeResponse { accept: accept_key(&key), subprotocol: subprotocol.clone(), bytes: Vec::new() },
    )
}

/// The response to a key (§4.2.2), which shows that a server understood the request.
pub fn accept_key(key: &str) -> String {
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    BASE64.encode(digest.as_ref())
}

impl HandshakeResponse {
    /// Reads the server's next bytes. `Some(used)` when the response is complete and accepted: what follows the first `used`
    /// bytes belongs to frames.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let before = self.bytes.len();
        let room = LONGEST_RESPONSE - before;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let front = self.bytes.len().min(FRONT.len());
        if self.bytes[..front] != FRONT[..front] {
            return Err(Fault::Handshake("no answer of HTTP/1.1".to_owned()));
        }
        // The end may have begun with the bytes before.
        let from = before.saturating_sub(3);
        let Some(end) = self.bytes[from..].windows(4).position(|four| four == b"\r\n\r\n") else {
            let too_long = self.bytes.len() == LONGEST_RESPONSE;
            return if too_long { Err(Fault::Handshake("an answer without end".to_owned())) } else { Ok(None) };
        };
        let end = from + end + 4;
        self.check(&String::from_utf8_lossy(&self.bytes[..end]))?;
        Ok(Some(end - before))
    }

    /// Does a complete response match the request (§4.1)?
    fn check(&self, text: &str) -> Result<(), Fault> {
        let mut lines = text.split("\r\n");
        let status_line = lines.next().unwrap_or_default().get(FRONT.len()..).unwrap_or_default();
        let (status, reason) = status_line.split_once(' ').unwrap_or((status_line, ""));
        let status = status.parse::<u16>().ok().filter(|status| (100..1_000).contains(status));
        let status = status.ok_or_else(|| Fault::Handshake("an answer without a status".to_owned()))?;
        if status != 101 {
            return Err(Fault::Refused { status, reason: super::frames::printable(reason, LONGEST_REASON) });
        }
        let fields: Vec<(&str, &str)> =
            lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim())).collect();
        let values = |name: &str| -> Vec<&str> {
            fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value).collect()
        };
        let has_word = |name: &str, word: &str| {
            let words = values(name);
            words.iter().flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
        };
        let disagree = |what: &str| Err(Fault::Handshake(format!("an answer {what}")));
        if !has_word("Upgrade", "websocket") || !has_word("Connection", "Upgrade") {
            return disagree("that upgrades to something else");
        }
        if values("Sec-WebSocket-Accept") != [self.accept.as_str()] {
            return disagree("to another key than ours");
        }
        if !values("Sec-WebSocket-Extensions").is_empty() {
            return disagree("with extensions that nobody asked for");
        }
        match values("Sec-WebSocket-Protocol").as_slice() {
            [found] if *found == self.subprotocol => Ok(()),
            [] => disagree(&format!("without the subprotocol `{}`", self.subprotocol)),
            _ => disagree(&format!("with another subprotocol than `{}`", self.subprotocol)),
        }
    }
}
