//! How a system is started, and where it listens afterwards.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_model::topology::Topology;
use pubmark_model::workload::Credentials;

use crate::definition::{DEFAULT_PROFILE, Definition};
use crate::limits::ResourceLimits;
use crate::template::Values;

/// Certificates for a system that encrypts, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority that signed the certificate.
    pub authority: PathBuf,
    /// The system's certificate.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
}

/// How a system is started.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// Protocol that clients will use; the endpoint of its listener is returned.
    pub protocol: String,
    /// A second protocol that clients will use; its endpoints are returned separately.
    pub second_protocol: Option<String>,
    /// Address at which every broker listens: one of this machine, or of the network namespace of the thread that starts it.
    pub host: Ipv4Addr,
    /// Name of the profile.
    pub profile: String,
    /// Encrypt with these certificates.
    pub tls: Option<TlsFiles>,
    /// Encrypt; without `tls`, with certificates that are made for this start.
    pub encrypt: bool,
    /// Clients will use WebSocket.
    pub websocket: bool,
    /// Require this log-in from clients; `None` admits all clients.
    pub credentials: Option<Credentials>,
    /// Folder for the system's log. `None` puts the log in the private directory, which is deleted at the end.
    pub directory: Option<PathBuf>,
    /// The caller sets it to cancel the start.
    pub stop: Option<Arc<AtomicBool>>,
    /// The back end; `None` selects the first that the definition has, in the order of [`BackEndChoice`].
    pub back_end: Option<BackEndChoice>,
    /// Image to use instead of the definition's.
    pub image: Option<String>,
    /// Number of brokers and how they are connected.
    pub topology: Topology,
    /// Resource limits of each broker.
    pub limits: Option<ResourceLimits>,
    /// Cores that the system may run on; all if empty.
    pub pinned_cores: Vec<u32>,
    /// Largest packet that the workload needs, bytes. If the system's default is lower, it is raised, and this is
    /// recorded as a deviation.
    pub packet_bytes: Option<u32>,
    /// The program that supervises systems so that none outlives pubmark, and that has the built-in broker: `pubmark`
    /// itself with its hidden verbs, or the test program. `None` means the running program.
    pub supervisor: Option<PathBuf>,
}

/// The back end that runs a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackEndChoice {
    /// A program on this machine.
    Process,
    /// A container.
    Container,
}

impl StartOptions {
    /// The default profile, without encryption and without a log-in.
    pub fn new(protocol: &str) -> StartOptions {
        StartOptions {
            protocol: protocol.to_owned(),
            second_protocol: None,
            host: Ipv4Addr::LOCALHOST,
            profile: DEFAULT_PROFILE.to_owned(),
            tls: None,
            encrypt: false,
            websocket: false,
            credentials: None,
            directory: None,
            stop: None,
            back_end: None,
            image: None,
            topology: Topology::default(),
            limits: None,
            pinned_cores: vec![],
            packet_bytes: None,
            supervisor: None,
        }
    }
}

impl StartOptions {
    /// Will the system encrypt?
    pub fn encrypts(&self) -> bool {
        self.encrypt || self.tls.is_some()
    }

    /// Will a container engine run the system?
    pub fn runs_in_container(&self, definition: &Definition) -> bool {
        match self.back_end {
            Some(choice) => choice == BackEndChoice::Container,
            None => self.image.is_some() || definition.back_ends.process.is_none(),
        }
    }
}

/// Where a started system listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, for instance `mqtt`.
    pub scheme: String,
    /// Address.
    pub address: SocketAddr,
    /// Where subscribers connect, if not at `address`.
    pub subscribers: Option<SocketAddr>,
    /// Settings of the profile for its protocol, as they follow the port.
    pub settings: Option<String>,
    /// Authority for checking the system's certificate, if the system encrypts.
    pub authority: Option<PathBuf>,
    /// Log-in that the system requires.
    pub credentials: Option<Credentials>,
    /// Values of the placeholders at this broker, used to fill in probes.
    pub values: Values,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}://{}{}", self.scheme, self.address, self.settings.as_deref().unwrap_or_default())
    }
}
