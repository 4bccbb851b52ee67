//! Certificates and keys that cannot be used, and servers that require a client certificate: errors with hints.

use std::path::PathBuf;

use pubmark_protocol::client_certificate::{CERTIFICATE_REJECTED, CERTIFICATE_REQUESTED};
use pubmark_protocol::clients::OpenError;

use crate::error::{ErrorKind, RunError};

/// Where distributions store the certificates that a machine trusts: Debian, Fedora, Alpine.
const OF_MACHINE: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The file of certificate authorities that this machine trusts, for checking an endpoint.
///
/// # Errors
/// No such file exists.
pub fn of_machine(endpoint: &str) -> Result<PathBuf, RunError> {
    OF_MACHINE.iter().map(PathBuf::from).find(|path| path.is_file()).ok_or_else(|| {
        RunError::input(format!("found no authorities on this machine to check `{endpoint}` with"))
            .hint("`--tls-ca FILE` with the authority's certificate, or `--tls-insecure` to accept any")
    })
}

/// Error for a file that the user named and that cannot be used.
pub fn unusable(error: &OpenError) -> RunError {
    let failure = RunError::from_error(ErrorKind::Input, error);
    match hint(error) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Hint for a file that cannot be used; `None` if the error is not about a file.
pub fn hint(error: &OpenError) -> Option<&'static str> {
    match error {
        OpenError::System { .. } | OpenError::Library(_) | OpenError::Program { .. } => None,
        OpenError::Certificates { .. } => {
            Some("`--tls-ca` and `--tls-cert` take certificates as PEM (`-----BEGIN CERTIFICATE-----`)")
        }
        OpenError::Key { .. } => {
            Some("`--tls-key` takes the key of `--tls-cert` as PEM (`-----BEGIN PRIVATE KEY-----`), not encrypted")
        }
        OpenError::Identity { .. } => Some("give `--tls-cert` and `--tls-key` the two files that were made together"),
    }
}

/// Hint for a connection that ended with this cause; `None` if the cause is not a client certificate.
pub fn hint_for_cause(words: &str) -> Option<&'static str> {
    if words.contains(CERTIFICATE_REQUESTED) {
        Some("`--tls-cert FILE --tls-key FILE` with a certificate that the server's authority has signed")
    } else if words.contains(CERTIFICATE_REJECTED) {
        Some("a certificate for `--tls-cert` that the server's authority has signed and that is valid today")
    } else {
        None
    }
}
