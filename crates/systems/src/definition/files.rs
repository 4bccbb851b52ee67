//! Configuration files of a definition.

use serde::Deserialize;

use crate::condition::When;

/// A file in a system's private directory. A container has the directory as a mount.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationFile {
    /// File name; it may have folders (`conf/config.xml`).
    pub name: String,
    /// When it is written.
    #[serde(default)]
    pub when: When,
    /// Can it be executed as a program?
    #[serde(default)]
    pub executable: bool,
    /// The parts of its text, in order.
    pub parts: Vec<TextPart>,
}

/// A part of a file's text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPart {
    /// When the part is included.
    #[serde(default)]
    pub when: When,
    /// The text; placeholders are filled in.
    pub text: String,
    /// Repeat the text for every other broker; `{other:name}`, `{other:host}` and `{other:port:LISTENER}` then have the
    /// values of that broker.
    #[serde(default)]
    pub for_each_other: bool,
    /// Separator between repetitions.
    #[serde(default)]
    pub between: String,
}
