//! DDS has no server: a test gets a domain with no other participants.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use pubmark_protocol::endpoint::Endpoint;

use crate::server::{Limits, Listener, Missing, Server};

/// Port of domain 0, ports from one domain to the next (DDSI-RTPS 2.5 §9.6.2.3), and the first port of a domain's participants.
const FIRST_PORT: u16 = 7400;
const PORTS_PER_DOMAIN: u16 = 250;
const PARTICIPANTS_AT: u16 = 10;
/// The ports of this domain are below those that the kernel assigns to outgoing connections.
const LAST_DOMAIN: u16 = 100;

/// A domain for tests.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its number.
    pub number: u16,
    /// Settings of its endpoint.
    pub settings: Option<String>,
}

impl Domain {
    /// A domain without participants on this machine.
    pub fn free() -> Domain {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Test programs run at the same time: each starts its search at another number.
        let begin = (std::process::id() % u32::from(LAST_DOMAIN)) as u16;
        loop {
            let number = 1 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % LAST_DOMAIN;
            let port = FIRST_PORT + PORTS_PER_DOMAIN * number + PARTICIPANTS_AT;
            if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
                && UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
            {
                return Domain { number, settings: None };
            }
        }
    }

    /// The same domain with settings.
    pub fn with(&self, settings: &str) -> Domain {
        Domain { settings: Some(settings.to_owned()), ..self.clone() }
    }

    /// Its endpoint.
    pub fn at(&self) -> Endpoint {
        let port = FIRST_PORT + PORTS_PER_DOMAIN * self.number;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let settings = self.settings.as_deref().map(Into::into);
        Endpoint { shown: format!("dds://{address}"), address, tls: None, credentials: None, upgrade: None, settings }
    }
}

impl Server for Domain {
    fn start(limits: Limits) -> Result<Domain, Missing> {
        match limits {
            Limits::Large => Ok(Domain::free()),
            Limits::Small => Err(Missing("there is no server that could have a limit".to_owned())),
        }
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        match listener {
            Listener::Plain => Ok(self.at()),
            Listener::Encrypted => Err(Missing("DDS Security is not offered".to_owned())),
            Listener::Guarded => Err(Missing("there is no log-in".to_owned())),
        }
    }

    fn kill(&mut self) {}

    fn restart(&mut self) {}

    fn may_lose(&self) -> bool {
        true
    }

    fn discovers_late(&self) -> bool {
        true
    }

    fn pause(&self) -> bool {
        false
    }

    fn resume(&self) {}
}
