//! Log-in of a client: a password, or a token that it signs when it connects.

use std::borrow::Cow;
use std::sync::Arc;

use pubmark_model::token::ClientToken;
use pubmark_model::workload::Credentials;

use crate::clock;
use crate::token::TokenSigner;

/// User name and password for one connection. It has no `Debug`, which would print the password.
#[derive(Clone)]
pub struct LogIn<'a> {
    /// User name; empty if there is only a token.
    pub user: &'a str,
    /// Password, or a token instead.
    pub password: Cow<'a, str>,
}

/// The tokens of one client.
#[derive(Clone, Debug)]
pub struct SessionToken {
    /// The claims.
    pub client: ClientToken,
    /// The key that signs them; `None` if the key cannot sign, which is refused before a run.
    pub signer: Option<Arc<TokenSigner>>,
}

impl<'a> From<&'a Credentials> for LogIn<'a> {
    fn from(credentials: &'a Credentials) -> LogIn<'a> {
        LogIn { user: &credentials.user, password: credentials.password.expose().into() }
    }
}

impl SessionToken {
    /// A token signed now. Without one, as on a machine without random numbers, it is empty and the system refuses it, which is counted.
    pub fn sign(&self) -> String {
        let now_ns = clock::realtime_ns();
        self.signer.as_ref().and_then(|signer| signer.sign(&self.client.claims, now_ns)).unwrap_or_default()
    }

    /// A log-in with a token signed now.
    pub(crate) fn log_in(&self) -> LogIn<'_> {
        LogIn { user: &self.client.user, password: self.sign().into() }
    }
}
