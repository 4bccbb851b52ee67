//! Probes: how to test that a system works over a protocol for which pubmark has no adapter.

use serde::Deserialize;

use crate::condition::When;

/// How to publish and receive a message with the protocol's own commands.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A dialogue over separate connections, for text-based protocols.
    Dialogue(Vec<Line>),
    /// A program that exits with success after it has received the message that it published: its command line, with
    /// placeholders filled in.
    Command(Vec<String>),
}

/// One step of a dialogue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Name of the connection, which is opened when it is first used.
    pub on: String,
    /// When the step is executed.
    #[serde(default)]
    pub when: When,
    /// Text to send; placeholders are filled in. `{token}` is unique to this probe, 16 letters and digits.
    #[serde(default)]
    pub say: Option<String>,
    /// Text to wait for, after the text was sent; placeholders are filled in. What arrives before it is skipped.
    #[serde(default)]
    pub hear: Option<String>,
}
