//! The handshake: the program's name and capabilities, and the run's configuration. JSON, because it is sent once and gains fields.

use serde::{Deserialize, Serialize};

use super::{LONGEST_HANDSHAKE, VERSION};

/// Longest name or version of a program that enters a record, letters; longer ones are cut.
const LONGEST_NAME: usize = 100;
/// Most protocols that a program may name.
const MOST_PROTOCOLS: usize = 32;

/// The first frame of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Versions of this protocol that it supports.
    pub versions: Vec<u32>,
    /// Name of the client library, such as `paho-mqtt`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The protocols it implements, each with its capabilities.
    pub protocols: Vec<Claims>,
    /// It stamps what it writes and what arrives with `CLOCK_MONOTONIC`.
    #[serde(default)]
    pub stamps: bool,
}

/// A program's capabilities in one protocol. What it does not list it cannot do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// pubmark's name of the protocol, such as `mqtt5`.
    pub name: String,
    /// Delivery levels.
    pub qos: Vec<u8>,
    /// Wildcards in filters.
    #[serde(default)]
    pub wildcards: bool,
    /// Retained messages.
    #[serde(default)]
    pub retain: bool,
    /// Shared subscriptions.
    #[serde(default)]
    pub shared_subscriptions: bool,
    /// TLS, with authorities of the user's.
    #[serde(default)]
    pub tls: bool,
}

/// Configuration of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Version of the protocol from here on.
    pub version: u32,
    /// Name of its clients' protocol.
    pub protocol: String,
    /// Where clients connect.
    pub endpoints: Vec<BeginEndpoint>,
    /// Seconds without a packet after which a client pings; 0 for never.
    pub keep_alive_s: u16,
    /// Largest payload that will be sent, and that may be delivered, bytes.
    pub maximum_payload_bytes: u32,
    /// Most messages that are handed over and not yet reported as written.
    pub credit: u32,
    /// Each `delivered` must have the whole payload, not the beginning of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_payloads: bool,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginEndpoint {
    /// IP address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Settings after the port, for protocols whose endpoints have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Encrypted, and how the server is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<BeginTls>,
}

/// How a server is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTls {
    /// Name that its certificate must carry.
    pub server_name: String,
    /// PEM file of the authorities that are trusted; without it any certificate is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
}

/// Why a hello is invalid.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// Not the expected JSON.
    #[error("its hello cannot be read: {0}")]
    Json(serde_json::Error),
    /// With other versions.
    #[error("it speaks versions {0:?} of the client protocol, pubmark speaks {VERSION}")]
    Version(Vec<u32>),
    /// A field with an invalid value.
    #[error("its hello says {0}")]
    Field(&'static str),
}

impl Hello {
    /// Decodes and validates a hello.
    ///
    /// # Errors
    /// It is invalid, or of other versions.
    pub fn read(json: &[u8]) -> Result<Hello, HelloError> {
        if json.len() > LONGEST_HANDSHAKE {
            return Err(HelloError::Field("more than 64 KiB"));
        }
        let hello: Hello = serde_json::from_slice(json).map_err(HelloError::Json)?;
        if !hello.versions.contains(&VERSION) {
            return Err(HelloError::Version(hello.versions.into_iter().take(8).collect()));
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().count() <= LONGEST_NAME && !name.chars().any(char::is_control)
        };
        if !is_name(&hello.name) || !is_name(&hello.version) {
            return Err(HelloError::Field("no `name` and `version` of 1 to 100 printable letters each"));
        }
        if hello.protocols.is_empty() || hello.protocols.len() > MOST_PROTOCOLS {
            return Err(HelloError::Field("no `protocols`, or more than 32"));
        }
        let has_levels = |claims: &Claims| !claims.qos.is_empty() && claims.qos.iter().all(|level| *level <= 2);
        if !hello.protocols.iter().all(|claims| is_name(&claims.name) && has_levels(claims)) {
            return Err(HelloError::Field("a protocol without a name, or whose `qos` is not of 0, 1 and 2"));
        }
        Ok(hello)
    }

    /// Name and version, as people read them.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// What it can do in a protocol.
    pub fn claims(&self, protocol: &str) -> Option<&Claims> {
        self.protocols.iter().find(|claims| claims.name == protocol)
    }
}
