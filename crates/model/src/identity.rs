//! Who clients are to a system: client identifiers, log-ins, certificates. The same for a whole group, or a row of a file for
//! each client.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::workload::Credentials;

/// Who the clients of a group are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupIdentity {
    /// Client identifiers, with placeholders; pubmark's own if `None`.
    pub client_id: Option<String>,
    /// Log-in, if the system asks for one; with placeholders in the user name.
    pub credentials: Option<Credentials>,
    /// A row for each client, in place of both.
    pub rows: Option<IdentityFile>,
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
    /// Log-in.
    pub credentials: Option<Credentials>,
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
    /// Log-in.
    pub credentials: Option<Credentials>,
    /// What it shows in TLS; what the run gives for all if `None`.
    pub certificate: Option<Arc<ClientPem>>,
}

impl GroupIdentity {
    /// Are its clients told apart by more than pubmark's own identifiers?
    pub fn is_of_each(&self) -> bool {
        self.client_id.is_some() || self.rows.is_some()
    }

    /// Does any of its clients show a certificate of its own?
    pub fn has_certificates(&self) -> bool {
        self.rows.as_ref().is_some_and(|file| file.rows.iter().any(|row| row.certificate.is_some()))
    }

    /// The client with this number in its group, all copies counted: `fill` fills in placeholders, `own` is pubmark's
    /// identifier.
    pub(crate) fn of_client(&self, number: usize, fill: impl Fn(&str) -> String, own: String) -> ClientIdentity {
        if let Some(row) = self.rows.as_ref().and_then(|file| file.rows.get(number)) {
            return ClientIdentity {
                is_given: row.client_id.is_some(),
                client_id: row.client_id.clone().unwrap_or(own),
                credentials: row.credentials.clone(),
                certificate: row.certificate.clone(),
            };
        }
        let log_in = |given: &Credentials| Credentials { user: fill(&given.user), password: given.password.clone() };
        ClientIdentity {
            is_given: self.client_id.is_some(),
            client_id: self.client_id.as_deref().map_or(own, &fill),
            credentials: self.credentials.as_ref().map(log_in),
            certificate: None,
        }
    }
}
