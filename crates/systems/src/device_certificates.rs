//! Certificates for devices: a new authority, a certificate and a key for each device, and the file that a workload
//! refers to.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use crate::error::SystemError;
use crate::launch::write_private;

/// The authority's certificate, which the system must trust.
pub const AUTHORITY: &str = "ca.pem";
/// The authority's key, which signs further certificates.
pub const AUTHORITY_KEY: &str = "ca.key";
/// The file with a row for each device.
pub const ROWS: &str = "devices.csv";
/// Folder of certificates and keys.
const DEVICES: &str = "devices";
/// Most devices: each takes about 100 µs and needs two files.
pub const MOST_DEVICES: u32 = 100_000;
/// Most days for which certificates can be valid.
pub const MOST_VALID_DAYS: u32 = 3_650;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Which certificates to create.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Devices, 1 to [`MOST_DEVICES`].
    pub count: u32,
    /// Prefix of the devices' names. A name is the prefix and a number, from 0; it is the common name of the
    /// certificate.
    pub prefix: &'a str,
    /// Days for which the certificates are valid, starting one day ago, because clocks differ.
    pub days: u32,
}

/// Reads a prefix of the devices' names.
///
/// # Errors
/// It is too long, or has other letters than a common name of a certificate should have.
pub fn prefix(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    match text.len() <= 40 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("up to 40 letters, digits, `-` and `_`".to_owned()),
    }
}

/// Creates all files in `folder`, which must not exist. Only its owner can read it.
///
/// # Errors
/// The folder exists or cannot be written.
pub fn make(folder: &Path, order: Order<'_>) -> Result<(), SystemError> {
    create(folder)?;
    fill(folder, order).inspect_err(|_| {
        // The folder did not exist, so all its content is ours. The original error is returned.
        let _ = fs::remove_dir_all(folder);
    })
}

fn fill(folder: &Path, order: Order<'_>) -> Result<(), SystemError> {
    create(&folder.join(DEVICES))?;
    let unmade = |error: rcgen::Error| SystemError::Certificates { reason: error.to_string() };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let validity = (now.saturating_sub(DAY), now + DAY * order.days);
    let (authority, key, issuer) = authority(validity).map_err(unmade)?;
    write_private(&folder.join(AUTHORITY), &authority, false)?;
    write_private(&folder.join(AUTHORITY_KEY), &key, false)?;
    let mut rows = "client_id,certificate,key\n".to_owned();
    for number in 0..order.count {
        let name = format!("{}{number}", order.prefix);
        let [certificate, key] = signed(&name, validity, &issuer).map_err(unmade)?;
        let files = [format!("{DEVICES}/{name}.pem"), format!("{DEVICES}/{name}.key")];
        write_private(&folder.join(&files[0]), &certificate, false)?;
        write_private(&folder.join(&files[1]), &key, false)?;
        writeln!(rows, "{name},{},{}", files[0], files[1]).expect("a string takes all");
    }
    write_private(&folder.join(ROWS), &rows, false)
}

fn create(folder: &Path) -> Result<(), SystemError> {
    let created = fs::DirBuilder::new().mode(0o700).create(folder);
    created.map_err(|source| SystemError::File { action: "create the folder", path: folder.to_owned(), source })
}

type Validity = (Duration, Duration);

fn params(name: &str, (since, until): Validity) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    (params.not_before, params.not_after) = (epoch + since, epoch + until);
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// The authority's certificate and key as PEM, and the issuer that signs with them.
fn authority(validity: Validity) -> Result<(String, String, Issuer<'static, KeyPair>), rcgen::Error> {
    let mut params = params("pubmark, for emulated devices", validity)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok((certificate, key.serialize_pem(), Issuer::new(params, key)))
}

/// Certificate and key of a device as PEM.
fn signed(name: &str, validity: Validity, issuer: &Issuer<'_, KeyPair>) -> Result<[String; 2], rcgen::Error> {
    let mut params = params(name, validity)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    Ok([params.signed_by(&key, issuer)?.pem(), key.serialize_pem()])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_device_has_a_certificate_a_key_and_a_row_that_its_owner_alone_can_read() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("certificates");
        make(&folder, Order { count: 3, prefix: "pump-", days: 30 }).unwrap();
        let rows = fs::read_to_string(folder.join(ROWS)).unwrap();
        let rows: Vec<&str> = rows.lines().collect();
        assert_eq!(rows[0], "client_id,certificate,key");
        assert_eq!(rows[3], "pump-2,devices/pump-2.pem,devices/pump-2.key");
        assert_eq!(rows.len(), 4);
        for name in [AUTHORITY, AUTHORITY_KEY, ROWS, "devices/pump-0.pem", "devices/pump-2.key"] {
            assert_eq!(fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let key = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_ne!(key("devices/pump-0.key"), key("devices/pump-1.key"));
        let again = make(&folder, Order { count: 3, prefix: "pump-", days: 30 }).unwrap_err();
        assert!(again.to_string().contains("create the folder"), "{again}");
    }
}
