//! How a system is started, and where it listens then.

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
    /// Its key.
    pub key: PathBuf,
}

/// How a system is started.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// Protocol that will be spoken; its listener's endpoint is the one given back.
    pub protocol: String,
    /// Another one that will be spoken besides; its endpoints are given apart.
    pub second_protocol: Option<String>,
    /// Address at which every broker listens: one of this machine, or of the network namespace of the thread that starts it.
    pub host: Ipv4Addr,
    /// Name of the profile.
    pub profile: String,
    /// Encrypt with these.
    pub tls: Option<TlsFiles>,
    /// Encrypt, where nothing is given for it with certificates that are made for this start.
    pub encrypt: bool,
    /// Clients will use WebSocket.
    pub websocket: bool,
    /// Ask clients for this log-in; `None` lets everybody in.
    pub credentials: Option<Credentials>,
    /// Folder that gets the system's log; `None` keeps it in the private directory, which goes away.
    pub directory: Option<PathBuf>,
    /// Set by the caller to give up while the system is starting.
    pub stop: Option<Arc<AtomicBool>>,
    /// Which back end; the first that the definition has, in the order of [`BackEndChoice`], if `None`.
    pub back_end: Option<BackEndChoice>,
    /// Image instead of the definition's.
    pub image: Option<String>,
    /// Brokers and how they know each other.
    pub topology: Topology,
    /// What each broker may use of the machine.
    pub limits: Option<ResourceLimits>,
    /// Cores that the system may run on; all if empty.
    pub pinned_cores: Vec<u32>,
    /// Largest packet that the workload needs, bytes: a lower default of the system is raised, with a deviation.
    pub packet_bytes: Option<u32>,
    /// The program that holds systems and lets none outlive us, and of which the built-in broker is a part: `pubmark` itself with its
    /// hidden verbs, or the test program. The running program if `None`.
    pub supervisor: Option<PathBuf>,
}

/// Which back end runs a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackEndChoice {
    /// A program of this machine.
    Process,
    /// A container.
    Container,
}

impl StartOptions {
    /// The default profile, plain, for everybody.
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
    /// Is the system to encrypt?
    pub fn encrypts(&self) -> bool {
        self.encrypt || self.tls.is_some()
    }

    /// Will a container engine run it?
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
    /// Where subscribers connect, if elsewhere.
    pub subscribers: Option<SocketAddr>,
    /// Authority to check its certificate with, if it encrypts.
    pub authority: Option<PathBuf>,
    /// Log-in that it asks for.
    pub credentials: Option<Credentials>,
    /// What placeholders stand for at this broker: what a probe is filled in with.
    pub values: Values,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}://{}", self.scheme, self.address)
    }
}
