//! TLS for the server, with a certificate of the user or a self-made one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Whether connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsChoice {
    /// No encryption.
    Off,
    /// With a certificate that is created at the first start, stored in the server's folder, and created again when its
    /// host names change.
    OwnMade,
    /// With the certificate and key in these files (PEM).
    Files {
        /// The certificate, followed by its chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

/// The certificate or the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("failed to read `{}`", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: pem::Error,
    },
    /// The created certificate or key cannot be written.
    #[error("failed to write `{}`", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// A certificate cannot be created for the host names.
    #[error("failed to make a certificate")]
    Make(#[from] rcgen::Error),
    /// Certificate and key do not match, or cannot be used.
    #[error("failed to use the certificate and its key")]
    Unfit(#[from] rustls::Error),
}

/// Acceptor of encrypted connections.
pub struct Tls {
    /// The acceptor.
    pub acceptor: TlsAcceptor,
    /// SHA-256 fingerprint of a certificate that was created here.
    pub fingerprint: Option<String>,
    /// File of that certificate.
    pub file: Option<PathBuf>,
}

/// Reads or creates the certificate and key of the choice.
///
/// # Errors
/// See [`TlsError`].
pub fn acceptor(choice: &TlsChoice, names: &[String], address: IpAddr, folder: &Path) -> Result<Option<Tls>, TlsError> {
    let (certificate, key, is_ours) = match choice {
        TlsChoice::Off => return Ok(None),
        TlsChoice::Files { certificate, key } => (certificate.clone(), key.clone(), false),
        TlsChoice::OwnMade => {
            let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
            let wanted = own_names(names, address);
            let names_file = folder.join("certificate-names.txt");
            let is_for =
                fs::read_to_string(&names_file).is_ok_and(|text| text.lines().eq(wanted.iter().map(String::as_str)));
            if !is_for || !certificate.is_file() || !key.is_file() {
                make(wanted.clone(), &certificate, &key)?;
                write(&names_file, &(wanted.join("\n") + "\n"), 0o600)?;
            }
            (certificate, key, true)
        }
    };
    let unread = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { path, source }
    };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(&certificate).and_then(Iterator::collect).map_err(unread(&certificate))?;
    let read = PrivateKeyDer::from_pem_file(&key).map_err(unread(&key))?;
    let digest = chain.first().map(|first| ring::digest::digest(&ring::digest::SHA256, first));
    let hex = digest.map(|digest| digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, read)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok(Some(Tls { acceptor, fingerprint: hex.filter(|_| is_ours), file: is_ours.then_some(certificate) }))
}

/// Names in a certificate that is created here: these names, the address and loopback.
fn own_names(names: &[String], address: IpAddr) -> Vec<String> {
    let own = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.to_string()];
    own.into_iter().chain(names.iter().cloned()).collect()
}

fn make(names: Vec<String>, certificate: &Path, key: &Path) -> Result<(), TlsError> {
    let made = rcgen::generate_simple_self_signed(names)?;
    write(key, &made.signing_key.serialize_pem(), 0o600)?;
    write(certificate, &made.cert.pem(), 0o644)
}

/// Replaces a file; the new one has this mode from its creation.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let write = || {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| TlsError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_certificate_is_made_again_when_its_names_change_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let made = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let tls =
                acceptor(&TlsChoice::OwnMade, &names, Ipv4Addr::LOCALHOST.into(), folder.path()).unwrap().unwrap();
            tls.fingerprint.unwrap()
        };
        let first = made(&[]);
        assert_eq!(made(&[]), first);
        let named = made(&["lab.example"]);
        assert_ne!(named, first);
        assert_eq!(made(&["lab.example"]), named);
    }
}
