//! Our identity in TLS: a certificate with its key, for servers that request one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, Error, InconsistentKeys, SignatureScheme};

use pubmark_model::identity::ClientPem;

use crate::clients::OpenError;
use crate::endpoint::Identity;

/// Prefix of the error if a server requires a client certificate and none was configured.
pub const CERTIFICATE_REQUESTED: &str = "the server asks for a client certificate and was given none";
/// Prefix of the error if a server rejected the client certificate.
pub const CERTIFICATE_REJECTED: &str = "the server did not take our client certificate";

/// Responds to servers that request a certificate, and records that one did: in TLS 1.2 the alert for a missing one is the same
/// as for other failures (RFC 5246 §7.4.6).
#[derive(Debug, Default)]
pub(crate) struct ClientCertificate {
    own: Option<Arc<CertifiedKey>>,
    requested: AtomicBool,
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.requested.store(true, Relaxed);
        self.own.clone()
    }

    fn has_certs(&self) -> bool {
        self.own.is_some()
    }
}

impl ClientCertificate {
    /// Reads certificate and key. Fails on files that cannot be read, on swapped files, and on a key that does not match the
    /// certificate.
    pub(crate) fn load(identity: Option<&Identity>, provider: &CryptoProvider) -> Result<ClientCertificate, OpenError> {
        let Some(identity) = identity else { return Ok(ClientCertificate::default()) };
        let chain = certificates(&identity.certificate)?;
        let key = private_key(&identity.key)?;
        let own = CertifiedKey::from_der(chain, key, provider).map_err(|error| OpenError::Identity {
            certificate: shown(&identity.certificate),
            key: shown(&identity.key),
            reason: match error {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    "it belongs to another certificate".to_owned()
                }
                error => error.to_string(),
            },
        })?;
        Ok(ClientCertificate { own: Some(Arc::new(own)), requested: AtomicBool::new(false) })
    }

    /// The certificate of one device, from PEM. The error is the reason, which contains nothing of the key.
    pub(crate) fn of_device(pem: &ClientPem, provider: &CryptoProvider) -> Result<ClientCertificate, String> {
        let chain: Result<Vec<CertificateDer<'static>>, pem::Error> =
            CertificateDer::pem_slice_iter(pem.certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| format!("the certificate cannot be read: {}", words(error)))?;
        if chain.is_empty() {
            return Err("no certificate in its file".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(pem.key.expose().as_bytes()).map_err(|error| match error {
            pem::Error::NoItemsFound if pem.key.expose().contains("ENCRYPTED") => "the key is encrypted".to_owned(),
            pem::Error::NoItemsFound => "no private key in its file".to_owned(),
            _ => "the key cannot be read".to_owned(),
        })?;
        let own = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                "the key belongs to another certificate".to_owned()
            }
            error => error.to_string(),
        })?;
        Ok(ClientCertificate { own: Some(Arc::new(own)), requested: AtomicBool::new(false) })
    }

    /// Did a server request a certificate when none was configured?
    pub(crate) fn was_missing(&self) -> bool {
        self.own.is_none() && self.requested.load(Relaxed)
    }

    /// The text of a TLS error; alerts about our certificate are explained.
    pub(crate) fn explain(&self, error: &Error) -> String {
        let Error::AlertReceived(alert) = error else { return error.to_string() };
        if !self.requested.load(Relaxed) || !is_about_certificates(*alert) {
            return error.to_string();
        }
        let start = if self.own.is_none() { CERTIFICATE_REQUESTED } else { CERTIFICATE_REJECTED };
        format!("{start} ({error})")
    }
}

/// Why a certificate and its key cannot be used, if so.
///
/// # Errors
/// The reason; nothing of the key is in it.
pub fn check(pem: &ClientPem) -> Result<(), String> {
    ClientCertificate::of_device(pem, &rustls::crypto::ring::default_provider()).map(drop)
}

/// Alerts that servers send for a certificate that is missing or not accepted (RFC 8446 §6.2, RFC 5246 §7.2.2).
fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::HandshakeFailure
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
            | AlertDescription::CertificateRequired
    )
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// What is wrong with a PEM file, as text for people.
fn words(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// The certificates of a PEM file, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let unusable = |reason: String| OpenError::Certificates { path: shown(path), reason };
    let found: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(|error| unusable(words(error)))?;
    match found.is_empty() {
        true if holds(path, "PRIVATE KEY") => Err(unusable("it holds a private key and no certificate".to_owned())),
        true => Err(unusable("no certificate in it".to_owned())),
        false => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, OpenError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        let shown = shown(path);
        // Both forms: PKCS #8 (RFC 5958) and the header of older files (RFC 1421 §4.6.1.1).
        let reason = if holds(path, "ENCRYPTED") {
            format!("it is encrypted; `openssl pkey -in {shown} -out PLAIN` writes it in the clear")
        } else if matches!(error, pem::Error::NoItemsFound) && holds(path, "BEGIN CERTIFICATE") {
            "it holds a certificate and no private key".to_owned()
        } else if matches!(error, pem::Error::NoItemsFound) {
            "no private key in it".to_owned()
        } else {
            words(error)
        };
        OpenError::Key { path: shown, reason }
    })
}

/// Does a file contain a text? For an error message: false for a file that cannot be read.
fn holds(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|found| found.contains(text))
}
