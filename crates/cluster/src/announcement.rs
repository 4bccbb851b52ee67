//! Announcement and search of a coordinator on a local network, by DNS-SD (RFC 6763) over multicast DNS (RFC 6762).
//!
//! Any host may respond there. A node considers only announcements with the authority of its own credentials, and
//! trusts them no more than an address that a user typed: the coordinator must still present its certificate.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mdns_sd::{Error, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::credentials::Credentials;

/// Service type: RFC 6763 §7.
const SERVICE: &str = "_pubmark._tcp.local.";
/// TXT property with the digest of the coordinator's authority.
const AUTHORITY: &str = "authority";
/// Bytes of the authority's digest in that property: enough to distinguish clusters, and not a secret.
const AUTHORITY_BYTES: usize = 8;
/// Longest wait for the announcement to be withdrawn.
const FAREWELL: Duration = Duration::from_millis(500);

/// The announcement of a coordinator, active until this is dropped.
pub struct Announcement {
    daemon: ServiceDaemon,
}

impl std::fmt::Debug for Announcement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announcement").finish_non_exhaustive()
    }
}

impl Announcement {
    /// Announces a coordinator that listens at this address; if that is the unspecified address, on all networks of
    /// this machine.
    ///
    /// # Errors
    /// The port of multicast DNS cannot be opened.
    pub fn begin(listens: SocketAddr, credentials: &Credentials) -> Result<Announcement, Error> {
        let authority = authority(credentials);
        // Several coordinators of one cluster may be on one network. If the name is in use nevertheless, the library
        // changes it.
        let mut random = [0; 4];
        SystemRandom::new().fill(&mut random).map_err(|_| Error::Msg("no random numbers".to_owned()))?;
        let name = format!("pubmark-{}", hexadecimal(&random));
        let host = format!("{name}.local.");
        let everywhere = listens.ip().is_unspecified();
        let address = if everywhere { String::new() } else { listens.ip().to_string() };
        let properties = [(AUTHORITY, authority.as_str())];
        let service = ServiceInfo::new(SERVICE, &name, &host, address, listens.port(), &properties[..])?;
        let daemon = ServiceDaemon::new()?;
        let announcement = Announcement { daemon };
        announcement.daemon.register(if everywhere { service.enable_addr_auto() } else { service })?;
        Ok(announcement)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        end(&self.daemon);
    }
}

/// Searches for a coordinator of this cluster, for `limit` at most. Returns its addresses, IPv4 first; none if there
/// was no response.
///
/// # Errors
/// The port of multicast DNS cannot be opened.
pub fn find(credentials: &Credentials, limit: Duration) -> Result<Vec<SocketAddr>, Error> {
    let until = Instant::now() + limit;
    let daemon = ServiceDaemon::new()?;
    let found = daemon.browse(SERVICE).map(|events| {
        let authority = authority(credentials);
        loop {
            match events.recv_deadline(until) {
                Ok(ServiceEvent::ServiceResolved(service)) if is_of(&service, &authority) => {
                    break addresses(&service);
                }
                Ok(_) => {}
                // The time is over, or the daemon has ended and sends nothing more.
                Err(_) => break vec![],
            }
        }
    });
    end(&daemon);
    found
}

fn is_of(service: &ResolvedService, authority: &str) -> bool {
    service.get_property_val_str(AUTHORITY) == Some(authority)
}

fn addresses(service: &ResolvedService) -> Vec<SocketAddr> {
    // An IPv6 link-local address needs the interface's index, which cannot be part of a server name in TLS.
    let is_of_use = |address: &IpAddr| match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    };
    let addresses: BTreeSet<IpAddr> = service.get_addresses().iter().map(|address| address.to_ip_addr()).collect();
    addresses.into_iter().filter(is_of_use).map(|address| SocketAddr::new(address, service.get_port())).collect()
}

/// Eight bytes of the authority's digest, in hexadecimal.
fn authority(credentials: &Credentials) -> String {
    let digest = digest(&SHA256, credentials.authority.trim().as_bytes());
    hexadecimal(&digest.as_ref()[..AUTHORITY_BYTES])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Stops the daemon, which withdraws its announcements.
fn end(daemon: &ServiceDaemon) {
    if let Ok(ended) = daemon.shutdown() {
        // A response is not needed: other hosts discard announcements that are not repeated.
        let _ = ended.recv_timeout(FAREWELL);
    }
}
