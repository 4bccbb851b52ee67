//! Credentials by which coordinator and nodes authenticate each other: a certificate authority of their own, and a
//! token.
//!
//! The key of the authority is discarded as soon as both certificates are signed, so nobody can issue further
//! certificates from a copied folder. To get others, a new folder is made.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore};

use crate::error::ClusterError;

/// Name in every coordinator's certificate, independent of its machine: nodes check this name, so that a folder works
/// on any machine.
pub const COORDINATOR: &str = "coordinator.pubmark";
/// Bytes of a token's random number.
const TOKEN_BYTES: usize = 32;
/// Largest file that is read, bytes.
const LARGEST: u64 = 64 << 10;

/// Folder with the coordinator's files.
pub const COORDINATOR_FOLDER: &str = "coordinator";
/// Folder with the files that every node has a copy of.
pub const NODE_FOLDER: &str = "node";

/// The authority's certificate.
const AUTHORITY: &str = "ca.pem";
/// The certificate of the folder's owner: the coordinator or a node.
const CERTIFICATE: &str = "certificate.pem";
/// The certificate's key.
const KEY: &str = "key.pem";
/// The shared token.
const TOKEN: &str = "token";

/// Credentials of one end.
#[derive(Clone)]
pub struct Credentials {
    /// Folder that they were read from, for messages.
    pub folder: PathBuf,
    /// The authority's certificate, PEM.
    pub authority: String,
    /// The certificate of this end, PEM.
    pub certificate: String,
    /// The certificate's key, PEM.
    pub key: String,
    /// The shared token.
    pub token: String,
}

impl std::fmt::Debug for Credentials {
    /// Prints no secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the credentials of a folder; `token` replaces the folder's token.
    ///
    /// # Errors
    /// A file is missing, too large, or not text.
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

/// Default validity of certificates, the maximum for certificates of web servers until 2020.
pub const VALID_DAYS: u32 = 825;
/// Longest validity of certificates, days.
pub const MOST_VALID_DAYS: u32 = 3_650;
const DAY: Duration = Duration::from_secs(86_400);

/// The end that credentials are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The coordinator.
    Coordinator,
    /// A node.
    Node,
}

impl Role {
    fn other(self) -> Role {
        match self {
            Role::Coordinator => Role::Node,
            Role::Node => Role::Coordinator,
        }
    }

    /// Name of the folder for this role.
    pub fn folder(self) -> &'static str {
        match self {
            Role::Coordinator => COORDINATOR_FOLDER,
            Role::Node => NODE_FOLDER,
        }
    }
}

impl Credentials {
    /// Checks whether the credentials are valid for this role today.
    ///
    /// # Errors
    /// The certificate is for the other role, is signed by another authority, is not valid yet, or has expired.
    pub fn check(&self, role: Role) -> Result<(), ClusterError> {
        let Err(error) = self.verify(role, UnixTime::now()) else { return Ok(()) };
        let why = match self.verify(role.other(), UnixTime::now()) {
            Ok(()) => {
                format!("these are the credentials of a {}, and this is a {}", role.other().folder(), role.folder())
            }
            Err(_) => in_words(&error),
        };
        Err(ClusterError::Credentials { path: self.folder.join(CERTIFICATE), why })
    }

    /// The role that the credentials are for; `None` if the certificate is for neither.
    pub fn role(&self) -> Option<Role> {
        let (since_s, until_s) = self.validity()?;
        let while_valid = UnixTime::since_unix_epoch(Duration::from_secs(since_s / 2 + until_s / 2));
        [Role::Coordinator, Role::Node].into_iter().find(|role| self.verify(*role, while_valid).is_ok())
    }

    /// Start and end of the certificate's validity, seconds since 1970; `None` if it cannot be read.
    pub fn validity(&self) -> Option<(u64, u64)> {
        // The validity is checked before anything that depends on the role.
        let at = |time| self.verify(Role::Node, UnixTime::since_unix_epoch(time)).err();
        match (at(Duration::ZERO)?, at(DAY * 365 * 5_000)?) {
            (
                CertificateError::NotValidYetContext { not_before, .. },
                CertificateError::ExpiredContext { not_after, .. },
            ) => Some((not_before.as_secs(), not_after.as_secs())),
            _ => None,
        }
    }

    /// Is the certificate signed by the authority for that role, and valid at that time?
    fn verify(&self, role: Role, at: UnixTime) -> Result<(), CertificateError> {
        let unreadable = |_| CertificateError::BadEncoding;
        let one = CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(unreadable)?;
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(self.authority.as_bytes()) {
            roots.add(authority.map_err(unreadable)?).map_err(|_| CertificateError::BadEncoding)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(roots);
        let verified = match role {
            Role::Node => WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|_| CertificateError::BadEncoding)?
                .verify_client_cert(&one, &[], at)
                .map(|_| ()),
            Role::Coordinator => {
                let name = ServerName::try_from(COORDINATOR).map_err(|_| CertificateError::NotValidForName)?;
                WebPkiServerVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|_| CertificateError::BadEncoding)?
                    .verify_server_cert(&one, &[], &name, &[], at)
                    .map(|_| ())
            }
        };
        verified.map_err(|error| match error {
            rustls::Error::InvalidCertificate(error) => error,
            _ => CertificateError::BadEncoding,
        })
    }
}

/// What is wrong with a certificate, as a clause about its owner.
pub(crate) fn in_words(error: &CertificateError) -> String {
    let seconds = |from: UnixTime, to: UnixTime| to.as_secs().saturating_sub(from.as_secs());
    match error {
        CertificateError::ExpiredContext { time, not_after } => {
            format!(
                "its certificate expired {} days ago, by the clock of this machine",
                seconds(*not_after, *time) / DAY.as_secs()
            )
        }
        CertificateError::Expired => "its certificate has expired, by the clock of this machine".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => {
            format!(
                "its certificate begins to be valid in {} days, by the clock of this machine",
                seconds(*time, *not_before).div_ceil(DAY.as_secs())
            )
        }
        CertificateError::NotValidYet => "its certificate is not valid yet, by the clock of this machine".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is for the other end: the coordinator's folder is not for nodes".to_owned()
        }
        // Authorities of all clusters have the same name, so only the signature distinguishes them.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is of another authority than this cluster's".to_owned()
        }
        other => format!("its certificate is of no use: {other:?}"),
    }
}

/// Names and contents of files.
pub type Files = Vec<(&'static str, String)>;

/// Creates the files of the coordinator and those of nodes, valid from one day ago (clocks differ) for `days` days.
///
/// # Errors
/// The system provides no random numbers.
pub fn fresh(days: u32) -> Result<[Files; 2], ClusterError> {
    let unusable = |why: String| ClusterError::Credentials { path: PathBuf::from("certificates"), why };
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(DAY);
    let until = since + DAY * (days.clamp(1, MOST_VALID_DAYS) + 1);
    let made = Issued::new((since, until), (since, until)).map_err(|error| unusable(error.to_string()))?;
    let mut number = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut number).map_err(|_| unusable("the system has no random numbers".to_owned()))?;
    let token: String = number.iter().map(|byte| format!("{byte:02x}")).chain(["\n".to_owned()]).collect();
    Ok([made.coordinator, made.node].map(|[certificate, key]| {
        vec![(AUTHORITY, made.authority.clone()), (CERTIFICATE, certificate), (KEY, key), (TOKEN, token.clone())]
    }))
}

/// Creates, in `folder`, one folder for the coordinator and one to copy to nodes, valid for `days` days. Overwrites
/// nothing.
///
/// # Errors
/// The folder has such folders already, or cannot be written.
pub fn make(folder: &Path, days: u32) -> Result<(), ClusterError> {
    let names = [COORDINATOR_FOLDER, NODE_FOLDER];
    if let Some(name) = names.iter().find(|name| folder.join(name).exists()) {
        let why = format!("there is a `{name}` in it already, and nodes may have a copy");
        return Err(ClusterError::Credentials { path: folder.to_owned(), why });
    }
    for (name, files) in names.into_iter().zip(fresh(days)?) {
        let folder = folder.join(name);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| ClusterError::File { verb: "make", path: folder.clone(), source })?;
        files.iter().try_for_each(|(name, text)| write(folder.join(name), text))?;
    }
    Ok(())
}

/// Writes a file that only its owner can read.
fn write(path: PathBuf, text: &str) -> Result<(), ClusterError> {
    let open = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| ClusterError::File { verb: "write", path, source })
}

/// Certificates and keys, as PEM.
struct Issued {
    authority: String,
    coordinator: [String; 2],
    node: [String; 2],
}

impl Issued {
    /// Creates certificates of the coordinator and of nodes, each valid between two times since 1970.
    fn new(of_coordinator: (Duration, Duration), of_nodes: (Duration, Duration)) -> Result<Issued, rcgen::Error> {
        let valid = |params: &mut CertificateParams, (since, until)| {
            let epoch = rcgen::date_time_ymd(1970, 1, 1);
            (params.not_before, params.not_after) = (epoch + since, epoch + until);
        };
        let mut authority = CertificateParams::new(Vec::new())?;
        valid(&mut authority, of_coordinator);
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "pubmark, for one cluster");
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let signed = |name: &str, usage: ExtendedKeyUsagePurpose, times| {
            let mut params = CertificateParams::new([name.to_owned()])?;
            valid(&mut params, times);
            params.distinguished_name.push(DnType::CommonName, name);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate()?;
            Ok::<_, rcgen::Error>([params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()])
        };
        Ok(Issued {
            authority: authority_certificate.pem(),
            coordinator: signed(COORDINATOR, ExtendedKeyUsagePurpose::ServerAuth, of_coordinator)?,
            node: signed("node.pubmark", ExtendedKeyUsagePurpose::ClientAuth, of_nodes)?,
        })
    }
}

/// Are two secrets equal? The duration does not depend on how much of them agrees.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    // Tags under a random key: how many of their bytes agree reveals nothing about the secrets.
    let Ok(key) = ring::hmac::Key::generate(ring::hmac::HMAC_SHA256, &SystemRandom::new()) else { return false };
    ring::hmac::verify(&key, other.as_bytes(), ring::hmac::sign(&key, one.as_bytes()).as_ref()).is_ok()
}

/// Credentials of the coordinator and of nodes, each valid between two times since 1970.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn ends_valid(of_coordinator: (Duration, Duration), of_nodes: (Duration, Duration)) -> [Credentials; 2] {
    let Issued { authority, coordinator, node } = Issued::new(of_coordinator, of_nodes).unwrap();
    [coordinator, node].map(|[certificate, key]| Credentials {
        folder: PathBuf::from("folder"),
        authority: authority.clone(),
        certificate,
        key,
        token: "token".to_owned(),
    })
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
        make(&folder, VALID_DAYS).unwrap();
        for name in ["coordinator/key.pem", "coordinator/token", "node/key.pem", "node/ca.pem"] {
            assert_eq!(fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
        let again = make(&folder, VALID_DAYS).unwrap_err().to_string();
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

    fn ends(since: Duration, until: Duration) -> [Credentials; 2] {
        ends_valid((since, until), (since, until))
    }

    #[test]
    fn certificates_are_valid_from_yesterday_for_the_requested_time() {
        let home = tempfile::tempdir().unwrap();
        let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        make(home.path(), 30).unwrap();
        for role in [Role::Coordinator, Role::Node] {
            let credentials = Credentials::read(&home.path().join(role.folder()), None).unwrap();
            credentials.check(role).unwrap();
            assert_eq!(credentials.role(), Some(role));
            let (since_s, until_s) = credentials.validity().unwrap();
            assert!((now_s - since_s).abs_diff(DAY.as_secs()) < 60, "{since_s} {now_s}");
            assert!((until_s - now_s).abs_diff(30 * DAY.as_secs()) < 60, "{until_s} {now_s}");
        }
    }

    #[test]
    fn credentials_that_cannot_be_this_ends_are_named() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let why = |credentials: &Credentials, role| credentials.check(role).unwrap_err().to_string();
        let [coordinator, node] = ends(now - DAY, now + DAY);
        assert!(why(&coordinator, Role::Node).contains("the credentials of a coordinator, and this is a node"));
        assert!(why(&node, Role::Coordinator).contains("the credentials of a node, and this is a coordinator"));
        let [coordinator, node] = ends(now - DAY * 9, now - DAY * 3);
        for (credentials, role) in [(&coordinator, Role::Coordinator), (&node, Role::Node)] {
            let why = why(credentials, role);
            assert!(why.contains("its certificate expired 3 days ago"), "{why}");
        }
        let [_, early] = ends(now + DAY, now + DAY * 3);
        assert!(why(&early, Role::Node).contains("begins to be valid in 1 days"), "{}", why(&early, Role::Node));
        let [other, _] = ends(now - DAY, now + DAY);
        let mixed = Credentials { authority: other.authority, ..ends(now - DAY, now + DAY)[1].clone() };
        assert!(why(&mixed, Role::Node).contains("another authority"), "{}", why(&mixed, Role::Node));
    }

    #[test]
    fn secrets_are_compared() {
        assert!(is_same("abc", "abc") && !is_same("abc", "abd") && !is_same("abc", "ab") && !is_same("", "a"));
    }
}
