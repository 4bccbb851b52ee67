//! Operations of a server.

use serde::Deserialize;

use super::error::DecodeError;

/// A line of the server's, with the payload after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// What the server is: JSON, see [`Info::read`]. The first line, and again when something changed.
    Info(&'a [u8]),
    /// A message for one of our subscriptions (`MSG`, `HMSG`).
    Message(Message<'a>),
    /// Keep-alive request of the server.
    Ping,
    /// Response to ours.
    Pong,
    /// Accepted (`+OK`); only in verbose mode.
    Ok,
    /// Refuses (`-ERR`); the words without their quotes.
    Error(&'a str),
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Where it was published.
    pub subject: &'a str,
    /// Our number of the subscription.
    pub subscription: u64,
    /// Subject for the reply.
    pub reply: Option<&'a str>,
    /// Its headers with their version line and the empty line at the end; empty without headers.
    pub headers: &'a [u8],
    /// What was published.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The value of one of its headers; `None` if it has none of this name, empty if it has several.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        let value = |line: &'a [u8]| line.strip_prefix(name.as_bytes())?.strip_prefix(b":").map(<[u8]>::trim_ascii);
        let mut values = self.headers.split(|byte| *byte == b'\n').skip(1).filter_map(value);
        let first = values.next()?;
        Some(if values.next().is_some() { &[] } else { first })
    }
}

/// Information about the server, as far as a client needs it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Info {
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Largest payload that it takes, bytes.
    pub max_payload: u32,
    /// It takes connections with TLS only.
    #[serde(default)]
    pub tls_required: bool,
    /// It takes connections with TLS, too.
    #[serde(default)]
    pub tls_available: bool,
    /// It requires a log-in.
    #[serde(default)]
    pub auth_required: bool,
    /// It carries headers.
    #[serde(default)]
    pub headers: bool,
    /// What a client with an NKey signs.
    #[serde(default)]
    pub nonce: Option<String>,
}

impl Info {
    /// Reads the JSON of an INFO line.
    pub fn read(json: &[u8]) -> Result<Info, DecodeError> {
        serde_json::from_slice(json).map_err(|error| DecodeError::Info(error.to_string()))
    }
}
