//! Certificates for the length of a test: an authority, a server certificate of its own for `localhost` and 127.0.0.1.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// PEM files of an authority and a server.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The server's certificate.
    pub server: PathBuf,
    /// The server's key.
    pub key: PathBuf,
}

impl Certificates {
    /// Makes them in `directory`; file names begin with `name`.
    pub fn make(directory: &Path, name: &str) -> Certificates {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, format!("{name} test authority"));
        let authority_certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let server_key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let server = CertificateParams::new(names).unwrap().signed_by(&server_key, &issuer).unwrap();
        let write = |kind: &str, text: String| {
            let path = directory.join(format!("{name}-{kind}.pem"));
            std::fs::write(&path, text).unwrap();
            path
        };
        Certificates {
            authority: write("authority", authority_certificate.pem()),
            server: write("server", server.pem()),
            key: write("key", server_key.serialize_pem()),
        }
    }
}
