//! How to test that a system works where pubmark has no adapter for its protocol.

use serde::Deserialize;

use crate::condition::When;

/// A publish → receive in words of the protocol.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// Over connections of its own, for protocols whose words are text.
    Dialogue(Vec<Line>),
    /// A program that ends with success once it received what it published: the words of its command line,
    /// placeholders filled in.
    Command(Vec<String>),
}

/// One step of a dialogue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Name of the connection, made when it is first named.
    pub on: String,
    /// When it is done.
    #[serde(default)]
    pub when: When,
    /// What is written to it, placeholders filled in; `{token}` is a word of this probe alone, 16 letters and digits.
    #[serde(default)]
    pub say: Option<String>,
    /// Then read from it until this was heard, placeholders filled in. What came before is skipped.
    #[serde(default)]
    pub hear: Option<String>,
}
