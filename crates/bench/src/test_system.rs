//! Systems to measure against.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use pubmark_protocol::endpoint::Endpoint;
use pubmark_systems::{Definition, RunningSystem, StartOptions, TlsFiles, ports};
use tempfile::TempDir;

/// A system under test, stopped when dropped; or the discovery address of clients without a broker.
pub struct TestSystem {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Address of subscribers, if it is another one.
    pub subscribers: Option<SocketAddr>,
    /// PEM file of its authority, if connections are encrypted.
    pub authority: Option<PathBuf>,
    _system: Option<RunningSystem>,
    _directory: TempDir,
}

impl TestSystem {
    /// A mosquitto.
    pub fn mosquitto(tls: bool) -> Result<TestSystem, String> {
        TestSystem::start("mosquitto", "mqtt5", tls)
    }

    /// A system with its tuned profile.
    pub fn start(system: &str, protocol: &str, tls: bool) -> Result<TestSystem, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let files = if tls { Some(certificates(directory.path())?) } else { None };
        let authority = files.as_ref().map(|files| files.authority.clone());
        let definition = Definition::load(system).map_err(|error| error.to_string())?;
        if let Some(brokerless) = &definition.back_ends.brokerless {
            // Nothing is started: clients discover each other at a free port of this machine.
            let port = match &brokerless.ports {
                Some(places) => ports::free_discovery_port(places),
                None => ports::free(1).map(|ports| ports[0]),
            };
            let address = (Ipv4Addr::LOCALHOST, port.map_err(|error| error.to_string())?).into();
            return Ok(TestSystem { address, subscribers: None, authority, _system: None, _directory: directory });
        }
        let options = StartOptions { profile: "tuned".to_owned(), tls: files, ..StartOptions::new(protocol) };
        let spoken = pubmark_protocols::find(protocol).ok_or_else(|| format!("no protocol `{protocol}`"))?;
        let mut ready = |found: &pubmark_systems::Endpoint| match tls {
            // The first connect reports errors in more detail.
            true => Ok(()),
            false => {
                let at = |address| plain(found, address);
                spoken.round_trip(&at(found.address), &at(found.subscribers.unwrap_or(found.address)))
            }
        };
        let system = pubmark_systems::start(&definition, &options, &mut ready).map_err(|error| error.to_string())?;
        let (address, subscribers) = (system.endpoint().address, system.endpoint().subscribers);
        Ok(TestSystem { address, subscribers, authority, _system: Some(system), _directory: directory })
    }
}

/// Address for unencrypted connections.
fn plain(found: &pubmark_systems::Endpoint, address: SocketAddr) -> Endpoint {
    let credentials = found.credentials.clone();
    Endpoint { shown: address.to_string(), address, tls: None, credentials, upgrade: None, settings: None }
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
