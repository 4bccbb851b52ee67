//! Certificates for one start: a new authority, and a server certificate that it signed. Nothing else trusts them, and
//! both are deleted with the system.

use std::net::Ipv4Addr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::broker::write_private;
use crate::error::SystemError;
use crate::launch::TlsFiles;

/// Kind of the certificates, for the record.
pub(super) const KIND: &str = "ECDSA P-256 with SHA-256, signed by an authority of the same kind";

/// Creates both in `folder`, for a system at `host`.
pub(super) fn make(folder: &Path, host: Ipv4Addr) -> Result<TlsFiles, SystemError> {
    let made = Issued::new(host).map_err(|error| SystemError::Certificates { reason: error.to_string() })?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        write_private(&path, text, false).map(|()| path)
    };
    Ok(TlsFiles {
        authority: write("authority.pem", &made.authority)?,
        certificate: write("certificate.pem", &made.certificate)?,
        key: write("key.pem", &made.key)?,
    })
}

/// All parts as PEM. The authority's key is discarded at once.
struct Issued {
    authority: String,
    certificate: String,
    key: String,
}

impl Issued {
    fn new(host: Ipv4Addr) -> Result<Issued, rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "pubmark, for one run");
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let mut server = CertificateParams::new([host.to_string(), "localhost".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, host.to_string());
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &issuer)?;
        Ok(Issued { authority: authority_certificate.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
