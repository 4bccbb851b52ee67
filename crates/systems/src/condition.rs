//! When a part of a definition applies.

use serde::Deserialize;

/// When a part of a definition applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Always.
    #[default]
    Always,
    /// The listeners encrypt.
    Tls,
    /// The listeners do not encrypt.
    Plain,
    /// Clients log in.
    Password,
    /// Clients do not log in.
    Anonymous,
}

impl When {
    /// Does the part apply to a start with or without encryption and log-in?
    pub fn applies(self, tls: bool, password: bool) -> bool {
        match self {
            When::Always => true,
            When::Tls => tls,
            When::Plain => !tls,
            When::Password => password,
            When::Anonymous => !password,
        }
    }
}
