//! Who clients are to a system: client identifiers, log-ins, certificates. The same for a whole group, or a row of a file for
//! each client.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::token::{self, ClientToken, TokenRules};
use crate::workload::Credentials;

/// Who the clients of a group are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupIdentity {
    /// Client identifiers, with placeholders; pubmark's own if `None`.
    pub client_id: Option<String>,
    /// Log-in with a password, if the system asks for one; with placeholders in the user name.
    pub credentials: Option<Credentials>,
    /// Log-in with a token, in place of a password.
    pub token: Option<GroupToken>,
    /// A row for each client, in place of client identifier and log-in; with `token`, in place of its user name.
    pub rows: Option<IdentityFile>,
}

/// The tokens of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupToken {
    /// User name beside the token, with placeholders; none if `None`.
    pub user: Option<String>,
    /// What is in them, and how they are signed.
    pub rules: Arc<TokenRules>,
}

/// The rows of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentityFile {
    /// The file, as the workload names it.
    pub name: String,
    /// Client after client: first those of the first copy of the workload.
    pub rows: Arc<[IdentityRow]>,
}

/// Who one client is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentityRow {
    /// Line in the file, from 1.
    pub line: u32,
    /// Client identifier; pubmark's own if `None`.
    pub client_id: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// Password, or a token that is sent as it is.
    pub password: Option<Secret>,
    /// Seed of an NKey.
    pub nkey: Option<Secret>,
    /// What it shows in TLS.
    pub certificate: Option<Arc<ClientPem>>,
}

/// A certificate with its key, both as PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientPem {
    /// The certificate, with its chain behind it.
    pub certificate: String,
    /// Its key, not encrypted.
    pub key: Secret,
}

/// Who a client of a run is, placeholders filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientIdentity {
    /// Client identifier.
    pub client_id: String,
    /// It was given, and is not pubmark's own.
    pub is_given: bool,
    /// Log-in with a password.
    pub credentials: Option<Credentials>,
    /// Log-in with tokens that it signs by its group's rules.
    pub token: Option<ClientToken>,
    /// Seed of an NKey that signs its log-ins; what stands in place of a password is then the user's token of NATS.
    pub nkey: Option<Secret>,
    /// What it shows in TLS; what the run gives for all if `None`.
    pub certificate: Option<Arc<ClientPem>>,
}

impl GroupIdentity {
    /// Are its clients told apart by more than pubmark's own identifiers?
    pub fn is_of_each(&self) -> bool {
        self.client_id.is_some() || self.rows.is_some() || self.token.is_some()
    }

    /// Does any of its clients log in, with a password or a token?
    pub fn logs_in(&self) -> bool {
        let has_password = |file: &IdentityFile| file.rows.iter().any(|row| row.password.is_some());
        self.credentials.is_some() || self.token.is_some() || self.rows.as_ref().is_some_and(has_password)
    }

    /// Does any of its clients log in with an NKey?
    pub fn has_nkeys(&self) -> bool {
        self.rows.as_ref().is_some_and(|file| file.rows.iter().any(|row| row.nkey.is_some()))
    }

    /// Do its clients renew their tokens on open connections?
    pub fn reauthenticates(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.rules.reauthentication.is_some())
    }

    /// Does any of its clients show a certificate of its own?
    pub fn has_certificates(&self) -> bool {
        self.rows.as_ref().is_some_and(|file| file.rows.iter().any(|row| row.certificate.is_some()))
    }

    /// The client with this number in its group, all copies counted: `fill` fills in placeholders, `own` is pubmark's
    /// identifier.
    pub(crate) fn of_client(&self, number: usize, fill: impl Fn(&str) -> String, own: String) -> ClientIdentity {
        let row = self.rows.as_ref().and_then(|file| file.rows.get(number));
        let given_id = match row {
            Some(row) => row.client_id.clone(),
            None => self.client_id.as_deref().map(&fill),
        };
        let is_given = given_id.is_some();
        let client_id = given_id.unwrap_or(own);
        let credentials = match row {
            Some(row) => row
                .password
                .as_ref()
                .map(|password| Credentials { user: row.user.clone().unwrap_or_default(), password: password.clone() }),
            None => self
                .credentials
                .as_ref()
                .map(|given| Credentials { user: fill(&given.user), password: given.password.clone() }),
        };
        let token = self.token.as_ref().map(|given| {
            let user = match row {
                Some(row) => row.user.clone().unwrap_or_default(),
                None => given.user.as_deref().map(&fill).unwrap_or_default(),
            };
            let of_client = |text: &str| fill(text).replace("{user}", &user).replace("{client_id}", &client_id);
            let reauthentication = given.rules.reauthentication.clone();
            ClientToken { claims: token::filled(&given.rules.claims, &of_client), user, reauthentication }
        });
        let (nkey, certificate) = row.map_or((None, None), |row| (row.nkey.clone(), row.certificate.clone()));
        ClientIdentity { client_id, is_given, credentials, token, nkey, certificate }
    }
}
