//! Systems to measure against.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pubmark_systems::{Definition, RunningSystem, StartOptions, TlsFiles};
use tempfile::TempDir;

/// A system of our own, stopped when dropped.
pub struct Bed {
    /// Where it listens.
    pub address: SocketAddr,
    /// PEM file of its authority, if it encrypts.
    pub authority: Option<PathBuf>,
    _system: RunningSystem,
    _directory: TempDir,
}

impl Bed {
    /// A mosquitto.
    pub fn mosquitto(tls: bool) -> Result<Bed, String> {
        Bed::start("mosquitto", "mqtt5", tls)
    }

    /// A system with its tuned profile.
    pub fn start(system: &str, protocol: &str, tls: bool) -> Result<Bed, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let files = if tls { Some(certificates(directory.path())?) } else { None };
        let authority = files.as_ref().map(|files| files.authority.clone());
        let definition = Definition::load(system).map_err(|error| error.to_string())?;
        let options = StartOptions { profile: "tuned".to_owned(), tls: files, ..StartOptions::new(protocol) };
        // What a start asks itself, that the port is open and the system's own, is enough here: the first connect shows more.
        let mut ready = |_: &pubmark_systems::Endpoint| Ok(());
        let system = pubmark_systems::start(&definition, &options, &mut ready).map_err(|error| error.to_string())?;
        let address = system.endpoint().address;
        Ok(Bed { address, authority, _system: system, _directory: directory })
    }
}

/// A certificate for loopback and the authority that signed it (itself).
fn certificates(directory: &Path) -> Result<TlsFiles, String> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| format!("failed to write `{}`: {error}", path.display()))?;
        Ok::<_, String>(path)
    };
    let certificate = write("server.crt", made.cert.pem())?;
    Ok(TlsFiles {
        authority: certificate.clone(),
        certificate,
        key: write("server.key", made.signing_key.serialize_pem())?,
    })
}
