//! Configuration files, as a definition writes them.

use serde::Deserialize;

use crate::condition::When;

/// A file in a system's private directory. In a container it is read through a mount.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationFile {
    /// Its name, folders allowed (`conf/config.xml`).
    pub name: String,
    /// When it is written.
    #[serde(default)]
    pub when: When,
    /// May it be run as a program?
    #[serde(default)]
    pub executable: bool,
    /// Its text, part after part.
    pub parts: Vec<TextPart>,
}

/// Some text of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPart {
    /// When it is there.
    #[serde(default)]
    pub when: When,
    /// The text, placeholders filled in.
    pub text: String,
    /// Repeat it for every other broker; `{other:name}`, `{other:host}`, `{other:port:LISTENER}` are its own then.
    #[serde(default)]
    pub for_each_other: bool,
    /// What stands between repetitions.
    #[serde(default)]
    pub between: String,
}
