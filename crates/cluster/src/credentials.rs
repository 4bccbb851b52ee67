//! By what coordinator and nodes know each other: a certificate authority of their own, and a token.
//!
//! The authority's key is forgotten as soon as both certificates are signed, so nobody can add a node to a folder that was copied:
//! whoever wants others makes a new folder.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::ClusterError;

/// By what every coordinator's certificate is known, whatever its machine is called: nodes check this name, so that a folder works
/// wherever the coordinator runs.
pub const COORDINATOR: &str = "coordinator.pubmark";
/// Bytes of a token's random number.
const TOKEN_BYTES: usize = 32;
/// Largest file that is read, bytes.
const LARGEST: u64 = 64 << 10;

/// Folder of the coordinator's files.
pub const COORDINATOR_FOLDER: &str = "coordinator";
/// Folder of the files that every node has a copy of.
pub const NODE_FOLDER: &str = "node";

/// The authority's certificate.
const AUTHORITY: &str = "ca.pem";
/// The certificate of whoever has the folder.
const CERTIFICATE: &str = "certificate.pem";
/// Its key.
const KEY: &str = "key.pem";
/// The token.
const TOKEN: &str = "token";

/// What one end needs.
#[derive(Clone)]
pub struct Credentials {
    /// Where they are from, for messages.
    pub folder: PathBuf,
    /// The authority's certificate, PEM.
    pub authority: String,
    /// Its own, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
    /// What was agreed on besides.
    pub token: String,
}

impl std::fmt::Debug for Credentials {
    /// Without the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Of a folder, with another token than the folder's if one is given.
    ///
    /// # Errors
    /// A file is missing, too large, or no text.
    pub fn read(folder: &Path, token: Option<&str>) -> Result<Credentials, ClusterError> {
        let text = |name: &str| read(&folder.join(name));
        let token = token.map_or_else(|| text(TOKEN), |token| Ok(token.to_owned()))?;
        let token = token.trim().to_owned();
        if token.is_empty() {
            return Err(ClusterError::Credentials { path: folder.join(TOKEN), why: "it is empty".to_owned() });
        }
        let [authority, certificate, key] = [text(AUTHORITY)?, text(CERTIFICATE)?, text(KEY)?];
        let folder = folder.to_owned();
        Ok(Credentials { folder, authority, certificate, key, token })
    }
}

fn read(path: &Path) -> Result<String, ClusterError> {
    let failed = |source| ClusterError::File { verb: "read", path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > LARGEST {
        return Err(ClusterError::Credentials { path: path.to_owned(), why: "it is too large".to_owned() });
    }
    fs::read_to_string(path).map_err(failed)
}

/// Files by name, with their texts.
pub type Files = Vec<(&'static str, String)>;

/// Makes those of the coordinator and those of nodes.
///
/// # Errors
/// The system has no random numbers.
pub fn fresh() -> Result<[Files; 2], ClusterError> {
    let unusable = |why: String| ClusterError::Credentials { path: PathBuf::from("certificates"), why };
    let made = Made::new().map_err(|error| unusable(error.to_string()))?;
    let mut number = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut number).map_err(|_| unusable("the system has no random numbers".to_owned()))?;
    let token: String = number.iter().map(|byte| format!("{byte:02x}")).chain(["\n".to_owned()]).collect();
    Ok([made.coordinator, made.node].map(|[certificate, key]| {
        vec![(AUTHORITY, made.authority.clone()), (CERTIFICATE, certificate), (KEY, key), (TOKEN, token.clone())]
    }))
}

/// Makes a folder with one for the coordinator and one to copy to nodes. Overwrites nothing.
///
/// # Errors
/// The folder has such files already, or cannot be written.
pub fn make(folder: &Path) -> Result<(), ClusterError> {
    let names = [COORDINATOR_FOLDER, NODE_FOLDER];
    if let Some(name) = names.iter().find(|name| folder.join(name).exists()) {
        let why = format!("there is a `{name}` in it already, and nodes may have a copy");
        return Err(ClusterError::Credentials { path: folder.to_owned(), why });
    }
    for (name, files) in names.into_iter().zip(fresh()?) {
        let folder = folder.join(name);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| ClusterError::File { verb: "make", path: folder.clone(), source })?;
        files.iter().try_for_each(|(name, text)| write(folder.join(name), text))?;
    }
    Ok(())
}

/// Readable for its owner only.
fn write(path: PathBuf, text: &str) -> Result<(), ClusterError> {
    let open = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| ClusterError::File { verb: "write", path, source })
}

/// Certificates and keys, as PEM.
struct Made {
    authority: String,
    coordinator: [String; 2],
    node: [String; 2],
}

impl Made {
    fn new() -> Result<Made, rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "pubmark, for one cluster");
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let signed = |name: &str, usage: ExtendedKeyUsagePurpose| {
            let mut params = CertificateParams::new([name.to_owned()])?;
            params.distinguished_name.push(DnType::CommonName, name);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate()?;
            Ok::<_, rcgen::Error>([params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()])
        };
        Ok(Made {
            authority: authority_certificate.pem(),
            coordinator: signed(COORDINATOR, ExtendedKeyUsagePurpose::ServerAuth)?,
            node: signed("node.pubmark", ExtendedKeyUsagePurpose::ClientAuth)?,
        })
    }
}

/// Are two secrets the same? Takes as long whatever they have in common.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    // Tags under a key that nobody knows: how many bytes agree says nothing about the secrets.
    let Ok(key) = ring::hmac::Key::generate(ring::hmac::HMAC_SHA256, &SystemRandom::new()) else { return false };
    ring::hmac::verify(&key, other.as_bytes(), ring::hmac::sign(&key, one.as_bytes()).as_ref()).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_folder_is_made_once_and_for_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cluster");
        make(&folder).unwrap();
        for name in ["coordinator/key.pem", "coordinator/token", "node/key.pem", "node/ca.pem"] {
            assert_eq!(fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
        let again = make(&folder).unwrap_err().to_string();
        assert!(again.contains("already"), "{again}");
        let coordinator = Credentials::read(&folder.join(COORDINATOR_FOLDER), None).unwrap();
        let node = Credentials::read(&folder.join(NODE_FOLDER), Some(" other ")).unwrap();
        assert_eq!((coordinator.token.len(), node.token.as_str()), (2 * TOKEN_BYTES, "other"));
        assert_eq!(coordinator.authority, node.authority);
        assert!(!format!("{coordinator:?}").contains(&coordinator.token));
        fs::remove_file(folder.join("node/key.pem")).unwrap();
        let missing = Credentials::read(&folder.join(NODE_FOLDER), None).unwrap_err().to_string();
        assert!(missing.contains("key.pem"), "{missing}");
    }

    #[test]
    fn secrets_are_compared() {
        assert!(is_same("abc", "abc") && !is_same("abc", "abd") && !is_same("abc", "ab") && !is_same("", "a"));
    }
}
