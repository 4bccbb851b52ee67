//! Certificates for the duration of a test: an authority, and two certificates that it signed: the server's for `localhost` and
//! 127.0.0.1, and the client's.

use std::path::{Path, PathBuf};

use pubmark_protocol::endpoint::Identity;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// PEM files of an authority, a server and a client.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The server's certificate.
    pub server: PathBuf,
    /// The server's key.
    pub key: PathBuf,
    /// The client's certificate.
    pub client: PathBuf,
    /// The client's key.
    pub client_key: PathBuf,
}

impl Certificates {
    /// The client's certificate and key, in the form that an endpoint needs.
    pub fn identity(&self) -> Identity {
        Identity { certificate: self.client.clone(), key: self.client_key.clone() }
    }

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
        let client_key = KeyPair::generate().unwrap();
        let client =
            CertificateParams::new(["client.test".to_owned()]).unwrap().signed_by(&client_key, &issuer).unwrap();
        let write = |kind: &str, text: String| {
            let path = directory.join(format!("{name}-{kind}.pem"));
            std::fs::write(&path, text).unwrap();
            path
        };
        Certificates {
            authority: write("authority", authority_certificate.pem()),
            server: write("server", server.pem()),
            key: write("key", server_key.serialize_pem()),
            client: write("client", client.pem()),
            client_key: write("client-key", client_key.serialize_pem()),
        }
    }
}
