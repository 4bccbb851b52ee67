//! Interfaces: up, addresses, routes, counters.

use std::ffi::CString;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::Netlink;
use super::message::{Message, find};
use crate::error::LinkError;

/// `IFLA_INET6_ADDR_GEN_MODE` (linux/if_link.h) and its value for "no address by itself".
const ADDRESS_GENERATION: u16 = 8;
const NO_ADDRESS: u8 = 1;

/// `IFLA_OPERSTATE` (linux/if_link.h) and its value for "passes packets" (IF_OPER_UP, RFC 2863 §3.1.14).
const OPERATIONAL_STATE: u16 = 16;
const OPERATIONAL: u8 = 6;

/// Where `rtmsg` has the type of a route.
const ROUTE_TYPE: usize = 7;

/// Longest wait for an interface that was set up or an address that was assigned, and the interval of the checks. The kernel does it
/// in the background: usually in less than a millisecond, under load in up to a second.
const LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Fixed parts of requests: `ifinfomsg`, `ifaddrmsg`, `rtmsg`.
pub(super) fn interface_part(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut part = [0; 16];
    part[4..8].copy_from_slice(&index.to_ne_bytes());
    part[8..12].copy_from_slice(&flags.to_ne_bytes());
    part[12..].copy_from_slice(&change.to_ne_bytes());
    part
}

/// Looks until something is so that the kernel does in the background.
fn wait_until(what: impl Fn() -> String, mut is_so: impl FnMut() -> Result<bool, LinkError>) -> Result<(), LinkError> {
    let began = Instant::now();
    while !is_so()? {
        if began.elapsed() > LIMIT {
            return Err(LinkError::refused(what(), std::io::ErrorKind::TimedOut.into()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Which addresses are reached through an interface.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// First address.
    pub destination: IpAddr,
    /// Length of the prefix; 0 is the default route.
    pub prefix: u8,
}

/// What an interface counted, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Handed to the code that reads the interface: what the namespace sent.
    pub sent_packets: u64,
    /// The same in bytes.
    pub sent_bytes: u64,
    /// What the namespace received.
    pub received_packets: u64,
    /// The same in bytes.
    pub received_bytes: u64,
    /// Packets that the namespace sent and that were not read in time: a loss that no condition requires.
    pub sent_dropped: u64,
    /// Packets written to the interface that the namespace did not take.
    pub received_dropped: u64,
}

impl InterfaceCounters {
    /// Packets that were lost at the interface.
    pub fn dropped(&self) -> u64 {
        self.sent_dropped + self.received_dropped
    }

    /// From `rtnl_link_stats64` (linux/if_link.h): rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors,
    /// rx_dropped, tx_dropped, …
    fn from_statistics(bytes: &[u8]) -> Option<InterfaceCounters> {
        let number = |index: usize| -> Option<u64> {
            Some(u64::from_ne_bytes(bytes.get(index * 8..index * 8 + 8)?.try_into().ok()?))
        };
        Some(InterfaceCounters {
            received_packets: number(0)?,
            sent_packets: number(1)?,
            received_bytes: number(2)?,
            sent_bytes: number(3)?,
            received_dropped: number(6)?,
            sent_dropped: number(7)?,
        })
    }
}

impl Netlink {
    /// Index of the interface `name` in the calling thread's namespace, which must be the socket's.
    pub fn index(name: &str) -> Result<u32, LinkError> {
        let what = || format!("find the interface `{name}`");
        let text = CString::new(name).map_err(|error| LinkError::refused(what(), error.into()))?;
        // SAFETY: the text is live and ends with a zero byte.
        match unsafe { libc::if_nametoindex(text.as_ptr()) } {
            0 => Err(LinkError::last(what())),
            index => Ok(index),
        }
    }

    /// Sets packet size and queue length of an interface and prevents IPv6 from assigning an address automatically, which would
    /// cause router solicitations.
    pub fn prepare(&mut self, index: u32, mtu: u32, queue_packets: u32) -> Result<(), LinkError> {
        let message = Message::new(libc::RTM_NEWLINK, 0, &interface_part(index, 0, 0))
            .number(libc::IFLA_MTU, mtu)
            .number(libc::IFLA_TXQLEN, queue_packets);
        self.request(|| format!("set MTU {mtu} and queue {queue_packets} of interface {index}"), message)?;
        let message = Message::new(libc::RTM_NEWLINK, 0, &interface_part(index, 0, 0)).nested(
            libc::IFLA_AF_SPEC,
            true,
            &[],
            |inside| {
                inside.nested(libc::AF_INET6 as u16, true, &[], |inside| {
                    inside.attribute(ADDRESS_GENERATION, &[NO_ADDRESS])
                })
            },
        );
        // Without IPv6 there is nothing to prevent.
        match self.request(String::new, message) {
            Err(LinkError::Refused { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sets an interface up.
    pub fn up(&mut self, index: u32) -> Result<(), LinkError> {
        let up = libc::IFF_UP as u32;
        self.request(
            || format!("take interface {index} up"),
            Message::new(libc::RTM_NEWLINK, 0, &interface_part(index, up, up)),
        )
    }

    /// Waits until an interface that was set up passes packets: one of a pair has its queue attached only after the kernel has
    /// noticed the other end, and silently drops what is sent before that.
    pub fn wait_until_operational(&mut self, index: u32) -> Result<(), LinkError> {
        let what = || format!("see interface {index} pass packets within {LIMIT:?}");
        wait_until(what, || {
            let answer = self.query(what, Message::new(libc::RTM_GETLINK, 0, &interface_part(index, 0, 0)))?;
            let state = answer.get(16..).and_then(|attributes| find(attributes, OPERATIONAL_STATE));
            Ok(state == Some(&[OPERATIONAL]))
        })
    }

    /// Gives an interface an address, in use at once: duplicate address detection (RFC 4862 §5.4) would take seconds.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> Result<(), LinkError> {
        let mut part = [family(address), prefix, 0, 0, 0, 0, 0, 0];
        if address.is_ipv6() {
            part[2] = libc::IFA_F_NODAD as u8;
        }
        part[4..].copy_from_slice(&index.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(libc::RTM_NEWADDR, flags, &part)
            .attribute(libc::IFA_LOCAL, &octets(address))
            .attribute(libc::IFA_ADDRESS, &octets(address));
        self.request(|| format!("give interface {index} the address {address}/{prefix}"), message)?;
        if address.is_ipv6() { self.wait_until_local(address) } else { Ok(()) }
    }

    /// Waits until packets to the interface's address are received. The kernel adds the route for it in the background, also without
    /// duplicate address detection (`addrconf_dad_work`); until then an address can be bound, and what is sent to it is
    /// dropped.
    fn wait_until_local(&mut self, address: IpAddr) -> Result<(), LinkError> {
        let what = || format!("see the address {address} in use within {LIMIT:?}");
        let mut part = [0; 12];
        part[0] = family(address);
        part[1] = 128;
        wait_until(what, || {
            let message = Message::new(libc::RTM_GETROUTE, 0, &part).attribute(libc::RTA_DST, &octets(address));
            match self.query(what, message) {
                Ok(route) => Ok(route.get(ROUTE_TYPE) == Some(&libc::RTN_LOCAL)),
                Err(LinkError::Refused { source, .. }) if source.raw_os_error() == Some(libc::ENETUNREACH) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Adds a route through an interface.
    pub fn add_route(&mut self, index: u32, route: Route) -> Result<(), LinkError> {
        let Route { destination, prefix } = route;
        let mut part = [0; 12];
        part[0] = family(destination);
        part[1] = prefix;
        part[4] = libc::RT_TABLE_MAIN;
        part[5] = libc::RTPROT_BOOT;
        part[6] = if destination.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        part[7] = libc::RTN_UNICAST;
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &part);
        if prefix > 0 {
            message = message.attribute(libc::RTA_DST, &octets(destination));
        }
        let message = message.number(libc::RTA_OIF, index);
        self.request(|| format!("route {destination}/{prefix} through interface {index}"), message)
    }

    /// What an interface counted so far.
    pub fn counters(&mut self, index: u32) -> Result<InterfaceCounters, LinkError> {
        let what = || format!("read the counters of interface {index}");
        let answer = self.query(what, Message::new(libc::RTM_GETLINK, 0, &interface_part(index, 0, 0)))?;
        answer
            .get(16..)
            .and_then(|attributes| find(attributes, libc::IFLA_STATS64))
            .and_then(InterfaceCounters::from_statistics)
            .ok_or_else(|| LinkError::refused(what(), std::io::ErrorKind::InvalidData.into()))
    }
}
