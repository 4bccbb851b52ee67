//! A network of links: the core's namespace, one for each group, and the emulator between them.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use pubmark_model::link::{Conditions, Link};

use crate::Way;
use crate::addresses::{self, CORE_V4, CORE_V6, MOST_ADDRESSES, MOST_GROUPS, PREFIX_V4, PREFIX_V6};
use crate::error::LinkError;
use crate::namespace::Namespace;
use crate::netlink::{InterfaceCounters, Netlink, Route};
use crate::star::{Command, Observer, Setting, Snapshot, Star, Unobserved};
use crate::tun;

/// Smallest packet size that IPv6 allows (RFC 8200 §5).
const LEAST_MTU: usize = 1_280;
/// Largest: that of loopback.
const MOST_MTU: usize = 65_535;

/// What a network is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Each group's link, by the group's number.
    pub links: Vec<Link>,
    /// Chooses the draws of loss, jitter and the like.
    pub seed: u64,
    /// Addresses of each group, 1 to [`MOST_ADDRESSES`]: one serves about 28,000 connections to a port of the system.
    pub addresses: usize,
    /// Largest IP packet, bytes, 1,280 to 65,535.
    pub mtu: u32,
    /// Packets that an interface keeps for the emulator; beyond, the kernel drops them, though nobody asked for it.
    pub interface_queue_packets: u32,
    /// Bytes that all links together may hold in queues and on their way, bookkeeping included. What doesn't fit is
    /// dropped and counted as overflowed.
    pub most_held_bytes: u64,
    /// Ask for SCHED_FIFO for the emulator's thread. Without it, other work on the machine holds packets up.
    pub realtime: bool,
}

impl Settings {
    /// Usual settings for `links`.
    pub fn new(links: Vec<Link>, seed: u64) -> Settings {
        Settings {
            links,
            seed,
            addresses: 1,
            mtu: 1_500,
            // Measured: with the kernel's 500 there were drops at 1,000 connections, with 20,000 none even without
            // SCHED_FIFO.
            interface_queue_packets: 20_000,
            most_held_bytes: 256 << 20,
            realtime: true,
        }
    }
}

/// One end: a namespace with its interface.
#[derive(Debug)]
struct Side {
    namespace: Namespace,
    netlink: Mutex<Netlink>,
    interface: u32,
}

/// A running network. Dropped, it ends: the namespaces go with the last socket, thread or process in them.
#[derive(Debug)]
pub struct Network {
    core: Side,
    groups: Vec<Side>,
    star: Star,
    ipv6: bool,
    settings: Settings,
}

/// What is known at the end.
#[derive(Clone, Debug)]
pub struct Final {
    /// The emulator's counters.
    pub snapshot: Snapshot,
    /// The core's interface.
    pub core: InterfaceCounters,
    /// Each group's interface.
    pub groups: Vec<InterfaceCounters>,
}

impl Final {
    /// Packets that were lost though nobody asked for it: in the interfaces, in the emulator's memory, at the
    /// receivers' kernels. A run with any is invalid.
    pub fn unasked_drops(&self) -> u64 {
        let interfaces = self.groups.iter().chain([&self.core]);
        let dropped: u64 = interfaces.map(|counters| counters.sent_dropped + counters.received_dropped).sum();
        let links = self.snapshot.links.iter().flat_map(|link| [&link.up, &link.down]);
        let overflowed: u64 = links.map(|counters| counters.overflowed.packets).sum();
        dropped + overflowed + self.snapshot.strays.not_taken
    }
}

impl Network {
    /// Makes the namespaces and starts the emulator. The links' first steps hold until [`begin`](Self::begin).
    pub fn start(settings: Settings) -> Result<Network, LinkError> {
        Network::start_observed(settings, Unobserved)
    }

    /// The same, with somebody who sees every packet.
    pub fn start_observed<O: Observer>(settings: Settings, observer: O) -> Result<Network, LinkError> {
        check(&settings)?;
        let mut files = Vec::new();
        let (core, file, mut ipv6) = Side::core(&settings)?;
        files.push(file);
        let mut groups = Vec::new();
        for group in 0..settings.links.len() {
            let (side, file, has_ipv6) = Side::group(group, &settings)?;
            groups.push(side);
            files.push(file);
            ipv6 &= has_ipv6;
        }
        let setting = Setting {
            links: settings.links.clone(),
            seed: settings.seed,
            most_held_bytes: settings.most_held_bytes,
            realtime: settings.realtime,
        };
        let star = Star::start(files, setting, observer)?;
        Ok(Network { core, groups, star, ipv6, settings })
    }

    /// Where the system runs, and everything that is to reach it without a link.
    pub fn core(&self) -> &Namespace {
        &self.core.namespace
    }

    /// Where group `group` runs; `None` if there is no such group.
    pub fn group(&self, group: usize) -> Option<&Namespace> {
        self.groups.get(group).map(|side| &side.namespace)
    }

    /// Groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The links, by group, as they were asked for.
    pub fn links(&self) -> &[Link] {
        &self.settings.links
    }

    /// Addresses that a group's sockets may be bound to, IPv4.
    pub fn sources(&self, group: usize) -> Vec<Ipv4Addr> {
        (0..self.settings.addresses).map(|member| addresses::group_v4(group, member)).collect()
    }

    /// The same of IPv6; none where the kernel has none.
    pub fn sources_v6(&self, group: usize) -> Vec<Ipv6Addr> {
        let count = if self.ipv6 { self.settings.addresses } else { 0 };
        (0..count).map(|member| addresses::group_v6(group, member)).collect()
    }

    /// Do the namespaces have IPv6?
    pub fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// The steps of all links count from `origin_ns` (`CLOCK_MONOTONIC`): the start of the measured window.
    pub fn begin(&self, origin_ns: u64) -> Result<(), LinkError> {
        self.star.command(Command::Start(origin_ns))
    }

    /// Other conditions for one direction, from now until the link's next step.
    pub fn set(&self, group: usize, way: Way, conditions: Conditions) -> Result<(), LinkError> {
        self.known(group)?;
        self.star.command(Command::Set(group, way, conditions))
    }

    /// Cuts a group off, or lets it back: a fault, whatever its link's conditions are.
    pub fn cut(&self, group: usize, cut: bool) -> Result<(), LinkError> {
        self.known(group)?;
        self.star.command(Command::Cut(group, cut))
    }

    /// The emulator's counters now; nothing stops for it.
    pub fn snapshot(&self) -> Snapshot {
        self.star.snapshot()
    }

    /// Is the emulator at work? If not, [`stop`](Self::stop) says why, and no packet gets anywhere.
    pub fn is_running(&self) -> bool {
        self.star.is_running()
    }

    /// Ends the emulator and reads the last counters. Packets on a link then are not delivered.
    pub fn stop(mut self) -> Result<Final, LinkError> {
        // The interfaces live as long as their descriptors: their counters are read first.
        let files = self.star.end()?;
        let core = self.core.counters()?;
        let groups = self.groups.iter().map(Side::counters).collect::<Result<_, _>>()?;
        drop(files);
        Ok(Final { snapshot: self.star.snapshot(), core, groups })
    }

    fn known(&self, group: usize) -> Result<(), LinkError> {
        // Counted from 1, so that a network without groups has a range as well.
        LinkError::within("number of a group", group + 1, 1, self.groups.len()).map(drop)
    }
}

fn check(settings: &Settings) -> Result<(), LinkError> {
    LinkError::within("groups with links", settings.links.len(), 0, MOST_GROUPS)?;
    LinkError::within("addresses of a group", settings.addresses, 1, MOST_ADDRESSES)?;
    LinkError::within("bytes of a packet (MTU)", settings.mtu as usize, LEAST_MTU, MOST_MTU).map(drop)
}

impl Side {
    fn core(settings: &Settings) -> Result<(Side, File, bool), LinkError> {
        let addresses = [(CORE_V4.into(), PREFIX_V4), (CORE_V6.into(), PREFIX_V6)];
        Side::make("core", "hub0", &addresses, &[], settings)
    }

    fn group(group: usize, settings: &Settings) -> Result<(Side, File, bool), LinkError> {
        let name = &settings.links[group].name;
        let members = 0..settings.addresses;
        let addresses: Vec<(IpAddr, u8)> = members
            .flat_map(|member| {
                [(addresses::group_v4(group, member).into(), 32), (addresses::group_v6(group, member).into(), 128)]
            })
            .collect();
        let everything = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        Side::make(&format!("link {name}"), "wan0", &addresses, &everything, settings)
    }

    /// A namespace with loopback and an interface that has `addresses` and the default routes `defaults`. The last
    /// value tells whether it has IPv6.
    fn make(
        name: &str,
        interface: &str,
        addresses: &[(IpAddr, u8)],
        defaults: &[IpAddr],
        settings: &Settings,
    ) -> Result<(Side, File, bool), LinkError> {
        let namespace = Namespace::create(name)?;
        let (file, netlink, index, ipv6) = namespace.enter(|| {
            let file = tun::open(interface)?;
            let mut netlink = Netlink::open()?;
            let index = Netlink::index(interface)?;
            netlink.up(Netlink::index("lo")?)?;
            netlink.prepare(index, settings.mtu, settings.interface_queue_packets)?;
            netlink.up(index)?;
            let mut ipv6 = true;
            for (address, prefix) in addresses {
                let result = netlink.add_address(index, *address, *prefix);
                ipv6 &= is_there(address, result)?;
            }
            let multicast = Route { destination: Ipv4Addr::new(224, 0, 0, 0).into(), prefix: 4 };
            netlink.add_route(index, multicast)?;
            for destination in defaults.iter().filter(|destination| destination.is_ipv4() || ipv6) {
                netlink.add_route(index, Route { destination: *destination, prefix: 0 })?;
            }
            Ok::<_, LinkError>((file, netlink, index, ipv6))
        })??;
        Ok((Side { namespace, netlink: Mutex::new(netlink), interface: index }, file, ipv6))
    }

    fn counters(&self) -> Result<InterfaceCounters, LinkError> {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        netlink.counters(self.interface)
    }
}

/// Was an address given? IPv6 may be switched off on a machine: links then do without.
fn is_there(address: &IpAddr, result: Result<(), LinkError>) -> Result<bool, LinkError> {
    match result {
        Ok(()) => Ok(true),
        Err(LinkError::Refused { source, .. })
            if address.is_ipv6()
                && matches!(source.raw_os_error(), Some(libc::EACCES | libc::EAFNOSUPPORT | libc::EOPNOTSUPP)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
