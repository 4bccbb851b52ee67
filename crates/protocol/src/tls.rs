//! Set-up of TLS connections: authorities from a PEM file, or any certificate if the user configured that; and a certificate of
//! our own for servers that request one.

use std::path::Path;
use std::sync::Arc;

use pubmark_model::identity::ClientPem;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::client_certificate::{self, ClientCertificate};
use crate::clients::OpenError;
use crate::endpoint::Tls;
use crate::tickets::Tickets;

/// What all TLS connections of a shard share, without session state.
#[derive(Clone, Debug)]
pub struct TlsSetup {
    /// Resumes nothing.
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    own: Arc<ClientCertificate>,
}

/// TLS state of a device between connections: its ticket, in a configuration of its own. `None` before the first.
#[derive(Clone, Debug, Default)]
pub struct DeviceTls(Option<Arc<ClientConfig>>);

/// Result of a TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agreed {
    /// An earlier session was resumed, without certificates.
    pub resumed: bool,
    /// Version, as `TLSv1_3`.
    pub version: &'static str,
    /// Cipher suite, as rustls calls it.
    pub suite: &'static str,
    /// Group of the key exchange; `None` if there was none, as in a resumed session of TLS 1.2.
    pub group: Option<&'static str>,
}

impl TlsSetup {
    /// Reads the authorities and our own certificate. Fails on files that cannot be read or used, and on a bad server name.
    pub fn new(tls: &Tls) -> Result<TlsSetup, OpenError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("the built-in cipher suites", &error))?;
        let own = Arc::new(ClientCertificate::load(tls.identity.as_ref(), &provider)?);
        let builder = match &tls.authorities {
            Some(path) => builder.with_root_certificates(authorities(path)?),
            None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
        };
        let mut config = builder.with_client_cert_resolver(Arc::<ClientCertificate>::clone(&own));
        config.resumption = Resumption::disabled();
        let server_name = ServerName::try_from(tls.server_name.clone())
            .map_err(|error| unusable(&format!("server name {}", tls.server_name), &error))?;
        Ok(TlsSetup { config: Arc::new(config), server_name, own })
    }

    /// The same for a device with a certificate of its own; the error is the reason if that cannot be used.
    pub fn of_device(&self, pem: &ClientPem) -> Result<TlsSetup, String> {
        let own = Arc::new(ClientCertificate::of_device(pem, self.config.crypto_provider())?);
        let mut config = (*self.config).clone();
        config.client_auth_cert_resolver = Arc::<ClientCertificate>::clone(&own);
        Ok(TlsSetup { config: Arc::new(config), server_name: self.server_name.clone(), own })
    }

    /// The text of a connection's error; errors about our certificate are explained.
    pub fn explain(&self, error: &rustls::Error) -> String {
        self.own.explain(error)
    }

    /// Did a server request a client certificate when none was configured?
    pub fn lacks_certificate(&self) -> bool {
        self.own.was_missing()
    }

    /// A connection before its first message. With a device's state, it resumes that device's last session, if there is one and
    /// the server still has it; otherwise it resumes none.
    pub fn connection(&self, device: Option<&mut DeviceTls>) -> Result<ClientConnection, rustls::Error> {
        let config = match device {
            None => Arc::clone(&self.config),
            Some(device) => Arc::clone(device.0.get_or_insert_with(|| {
                let mut own = (*self.config).clone();
                own.resumption = Resumption::store(Arc::new(Tickets::default()));
                Arc::new(own)
            })),
        };
        ClientConnection::new(config, self.server_name.clone())
    }
}

fn unusable(path: &str, reason: &dyn std::fmt::Display) -> OpenError {
    OpenError::Certificates { path: path.to_owned(), reason: reason.to_string() }
}

fn authorities(path: &Path) -> Result<RootCertStore, OpenError> {
    let mut store = RootCertStore::empty();
    for certificate in client_certificate::certificates(path)? {
        store.add(certificate).map_err(|error| unusable(&path.display().to_string(), &error))?;
    }
    Ok(store)
}

/// Accepts any certificate, but still checks that the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_missing_or_empty_file_of_authorities_is_named() {
        for path in ["/nonexistent/authorities.pem", "/dev/null"] {
            let tls = Tls { server_name: "localhost".into(), authorities: Some(PathBuf::from(path)), identity: None };
            let error = TlsSetup::new(&tls).unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
        }
    }

    #[test]
    fn addresses_and_names_are_server_names_and_spaces_are_not() {
        for (name, good) in [("localhost", true), ("127.0.0.1", true), ("::1", true), ("a b", false)] {
            let tls = Tls { server_name: name.into(), authorities: None, identity: None };
            assert_eq!(TlsSetup::new(&tls).is_ok(), good, "{name}");
        }
    }
}
