//! A network of links: the core's namespace, one for each group, and the emulator or the kernel's netem between them.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use pubmark_model::link::{Conditions, Link};

use crate::Direction;
use crate::addresses::{self, CORE_V4, CORE_V6, MOST_ADDRESSES, MOST_GROUPS, PREFIX_V4, PREFIX_V6};
use crate::error::LinkError;
use crate::namespace::Namespace;
use crate::netlink::{InterfaceCounters, Netlink, Route};
use crate::star::{Command, Observer, Snapshot, Star, ThreadSettings, Unobserved};
use crate::trunk::TrunkEnd;
use crate::wires::{self, End, Shape, Wire, Wires};
use crate::{netem, tun};

/// Smallest packet size that IPv6 allows (RFC 8200 §5).
const LEAST_MTU: usize = 1_280;
/// Largest: that of loopback.
const MOST_MTU: usize = 65_535;

/// The back end that forwards packets and applies the conditions of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackEnd {
    /// The emulator: the same everywhere, exact counters, draws by the seed, packets seen by an [`Observer`].
    #[default]
    UserSpace,
    /// The kernel's netem, where the kernel has it: no observer, no draws by the seed, fewer counters, no links between groups.
    KernelNetem,
}

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
    /// Most packets that an interface queues for the emulator; beyond, the kernel drops them, which no condition requires.
    pub interface_queue_packets: u32,
    /// Bytes that all links together may hold in queues and on their way, bookkeeping included. What doesn't fit is
    /// dropped and counted as overflowed.
    pub most_held_bytes: u64,
    /// Use SCHED_FIFO for the emulator's thread. Without it, other work on the machine delays packets.
    pub realtime: bool,
    /// What carries packets. Seed, bytes held, real-time priority and trunk are only for the emulator.
    pub back_end: BackEnd,
    /// To groups in networks of other processes: there is one group then, which has the trunk's number and an MTU of
    /// [`trunk::MTU`](crate::trunk::MTU) at most.
    pub trunk: Option<Arc<TrunkEnd>>,
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
            back_end: BackEnd::default(),
            trunk: None,
        }
    }

    /// Number of a group in the plan of addresses, by its place among the links.
    fn number(&self, group: usize) -> usize {
        self.trunk.as_ref().map_or(0, |trunk| trunk.own()) + group
    }
}

/// What is between the namespaces.
#[derive(Debug)]
enum Carrier {
    Star(Star),
    Wires(Wires),
}

/// One end: a namespace with its interface.
#[derive(Debug)]
struct Side {
    namespace: Namespace,
    netlink: Mutex<Netlink>,
    interfaces: Vec<u32>,
}

/// A running network. Dropped, it ends: the namespaces go with the last socket, thread or process in them.
#[derive(Debug)]
pub struct Network {
    core: Side,
    groups: Vec<Side>,
    carrier: Carrier,
    ipv6: bool,
    settings: Settings,
}

/// What is known at the end.
#[derive(Clone, Debug)]
pub struct Final {
    /// The links' counters.
    pub snapshot: Snapshot,
    /// The core's interfaces: one of the emulator, one for each group of the kernel's.
    pub core: Vec<InterfaceCounters>,
    /// Each group's interface.
    pub groups: Vec<InterfaceCounters>,
    /// Interfaces between them, none with the emulator.
    pub between: Vec<InterfaceCounters>,
}

impl Final {
    /// Packets that were lost though no condition requires it: in the interfaces, in the emulator's memory, at the receivers'
    /// kernels. A run with any is invalid. Those of the trunk are in its own counters.
    pub fn unexpected_drops(&self) -> u64 {
        let interfaces = self.groups.iter().chain(&self.core).chain(&self.between);
        let dropped: u64 = interfaces.map(InterfaceCounters::dropped).sum();
        let links = self.snapshot.links.iter().flat_map(|link| [&link.up, &link.down]);
        let overflowed: u64 = links.map(|counters| counters.overflowed.packets).sum();
        dropped + overflowed + self.snapshot.strays.undeliverable
    }
}

impl Network {
    /// Makes the namespaces and what is between them. The links' first steps hold until [`begin`](Self::begin).
    pub fn start(settings: Settings) -> Result<Network, LinkError> {
        Network::start_observed(settings, Unobserved)
    }

    /// The same, with an observer of every packet of the emulator; the kernel's netem shows none.
    pub fn start_observed<O: Observer>(settings: Settings, observer: O) -> Result<Network, LinkError> {
        check(&settings)?;
        match settings.back_end {
            BackEnd::UserSpace => Network::with_star(settings, observer),
            BackEnd::KernelNetem => Network::with_wires(settings),
        }
    }

    fn with_star<O: Observer>(settings: Settings, observer: O) -> Result<Network, LinkError> {
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
        let setting = ThreadSettings {
            links: settings.links.clone(),
            seed: settings.seed,
            most_held_bytes: settings.most_held_bytes,
            realtime: settings.realtime,
            trunk: settings.trunk.clone(),
        };
        let star = Star::start(files, setting, observer)?;
        Ok(Network { core, groups, carrier: Carrier::Star(star), ipv6, settings })
    }

    fn with_wires(settings: Settings) -> Result<Network, LinkError> {
        netem::refuse(&settings.links)?;
        let (mut core, ipv6) = Side::bare("core", &[(CORE_V4.into(), 32), (CORE_V6.into(), 128)])?;
        let shape = Shape { mtu: settings.mtu, queue_packets: settings.interface_queue_packets, ipv6 };
        let (mut groups, mut laid) = (Vec::new(), Vec::new());
        for group in 0..settings.links.len() {
            let (mut side, _) =
                Side::bare(&format!("link {}", settings.links[group].name), &group_addresses(group, &settings))?;
            let everything = everything().map(|destination| Route { destination, prefix: 0 });
            let to_group = [addresses::group_v4(group, 0).into(), addresses::group_v6(group, 0).into()];
            let to_group = to_group.map(wires::route_to);
            let hub = format!("hub{group}");
            let wire = Wire::lay(group, side.end("wan0", &everything), core.end(&hub, &to_group), shape);
            laid.push(wire.map_err(wires::unknown)?);
            side.interfaces.push(side.namespace.enter(|| Netlink::index("wan0"))??);
            core.interfaces.push(core.namespace.enter(|| Netlink::index(&hub))??);
            groups.push(side);
        }
        let wires = Wires::start(laid, &settings.links)?;
        Ok(Network { core, groups, carrier: Carrier::Wires(wires), ipv6, settings })
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

    /// The links, by group, as configured.
    pub fn links(&self) -> &[Link] {
        &self.settings.links
    }

    /// What carries packets.
    pub fn back_end(&self) -> BackEnd {
        self.settings.back_end
    }

    /// Largest IP packet, bytes.
    pub fn mtu(&self) -> u32 {
        self.settings.mtu
    }

    /// First address of a group, IPv4.
    pub fn address(&self, group: usize) -> IpAddr {
        addresses::group_v4(self.settings.number(group), 0).into()
    }

    /// Addresses that a group's sockets may be bound to, IPv4.
    pub fn sources(&self, group: usize) -> Vec<Ipv4Addr> {
        let number = self.settings.number(group);
        (0..self.settings.addresses).map(|member| addresses::group_v4(number, member)).collect()
    }

    /// The same of IPv6; none where the kernel has none.
    pub fn sources_v6(&self, group: usize) -> Vec<Ipv6Addr> {
        let count = if self.ipv6 { self.settings.addresses } else { 0 };
        let number = self.settings.number(group);
        (0..count).map(|member| addresses::group_v6(number, member)).collect()
    }

    /// Do the namespaces have IPv6?
    pub fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// The steps of all links count from `origin_ns` (ns of the clock that this process follows): the start of the measured window.
    pub fn begin(&self, origin_ns: u64) -> Result<(), LinkError> {
        self.command(Command::Start(origin_ns))
    }

    /// Other conditions for one direction, from now until the link's next step.
    pub fn set(&self, group: usize, direction: Direction, conditions: Conditions) -> Result<(), LinkError> {
        self.check_group(group)?;
        self.command(Command::Set(group, direction, conditions))
    }

    /// Cuts a group off, or lets it back: a fault, whatever its link's conditions are.
    pub fn cut(&self, group: usize, cut: bool) -> Result<(), LinkError> {
        self.check_group(group)?;
        self.command(Command::Cut(group, cut))
    }

    /// The links' counters now; nothing stops for it.
    pub fn snapshot(&self) -> Snapshot {
        match &self.carrier {
            Carrier::Star(star) => star.snapshot(),
            Carrier::Wires(wires) => wires.snapshot(),
        }
    }

    /// Packets that are on one direction of a group's link now; none of a group that there is not.
    pub fn waiting(&self, group: usize, direction: Direction) -> u64 {
        match &self.carrier {
            Carrier::Star(star) => {
                star.snapshot().links.get(group).map_or(0, |link| link.of(direction).waiting.packets)
            }
            Carrier::Wires(wires) if group < self.groups.len() => wires.waiting(group, direction),
            Carrier::Wires(_) => 0,
        }
    }

    /// Is it running? If not, [`stop`](Self::stop) returns why, and packets are not forwarded.
    pub fn is_running(&self) -> bool {
        match &self.carrier {
            Carrier::Star(star) => star.is_running(),
            Carrier::Wires(wires) => wires.is_running(),
        }
    }

    /// Ends the emulation and reads the last counters. Packets on a link then are not delivered.
    pub fn stop(mut self) -> Result<Final, LinkError> {
        // The interfaces live as long as their descriptors: their counters are read first.
        let (files, between) = match &mut self.carrier {
            Carrier::Star(star) => (star.end()?, Vec::new()),
            Carrier::Wires(wires) => {
                wires.end()?;
                (Vec::new(), wires.interfaces()?)
            }
        };
        let core = self.core.counters()?;
        let groups: Result<Vec<_>, _> = self.groups.iter().map(Side::counters).collect();
        let groups = groups?.into_iter().flatten().collect();
        drop(files);
        Ok(Final { snapshot: self.snapshot(), core, groups, between })
    }

    fn command(&self, command: Command) -> Result<(), LinkError> {
        match &self.carrier {
            Carrier::Star(star) => star.command(command),
            Carrier::Wires(wires) => wires.command(command),
        }
    }

    fn check_group(&self, group: usize) -> Result<(), LinkError> {
        // Counted from 1, so that a network without groups has a range as well.
        LinkError::within("number of a group", group + 1, 1, self.groups.len()).map(drop)
    }
}

fn check(settings: &Settings) -> Result<(), LinkError> {
    LinkError::within("groups with links", settings.links.len(), 0, MOST_GROUPS)?;
    LinkError::within("addresses of a group", settings.addresses, 1, MOST_ADDRESSES)?;
    let most_mtu = if settings.trunk.is_some() { crate::trunk::MTU as usize } else { MOST_MTU };
    LinkError::within("bytes of a packet (MTU)", settings.mtu as usize, LEAST_MTU, most_mtu)?;
    let Some(trunk) = &settings.trunk else { return Ok(()) };
    LinkError::within("groups with links beside a trunk", settings.links.len(), 1, 1)?;
    LinkError::within("number of a group", trunk.own() + 1, 1, MOST_GROUPS)?;
    match settings.back_end {
        BackEnd::UserSpace => Ok(()),
        BackEnd::KernelNetem => Err(LinkError::NotByKernel {
            link: settings.links[0].name.clone(),
            why: "it does not lead to groups in networks of other processes",
        }),
    }
}

impl Side {
    fn core(settings: &Settings) -> Result<(Side, File, bool), LinkError> {
        let addresses = [(CORE_V4.into(), PREFIX_V4), (CORE_V6.into(), PREFIX_V6)];
        Side::make("core", "hub0", &addresses, &[], settings)
    }

    fn group(group: usize, settings: &Settings) -> Result<(Side, File, bool), LinkError> {
        let name = &settings.links[group].name;
        Side::make(&format!("link {name}"), "wan0", &group_addresses(group, settings), &everything(), settings)
    }

    /// A namespace with `addresses` on its loopback, where they are valid for every interface, and no other interface yet. The
    /// last value is whether it has IPv6.
    fn bare(name: &str, addresses: &[(IpAddr, u8)]) -> Result<(Side, bool), LinkError> {
        let namespace = Namespace::create(name)?;
        let (netlink, ipv6) = namespace.enter(|| {
            let mut netlink = Netlink::open()?;
            let loopback = Netlink::index("lo")?;
            netlink.up(loopback)?;
            let ipv6 = add_addresses(&mut netlink, loopback, addresses)?;
            Ok::<_, LinkError>((netlink, ipv6))
        })??;
        Ok((Side { namespace, netlink: Mutex::new(netlink), interfaces: Vec::new() }, ipv6))
    }

    /// An end for a wire.
    fn end<'a>(&'a mut self, interface: &'a str, routes: &'a [Route]) -> End<'a> {
        let netlink = self.netlink.get_mut().unwrap_or_else(PoisonError::into_inner);
        End { namespace: &self.namespace, netlink, interface, routes }
    }

    /// A namespace with loopback and an interface that has `addresses` and the default routes `defaults`. The last value is
    /// whether it has IPv6.
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
            let ipv6 = add_addresses(&mut netlink, index, addresses)?;
            let multicast = Route { destination: Ipv4Addr::new(224, 0, 0, 0).into(), prefix: 4 };
            netlink.add_route(index, multicast)?;
            for destination in defaults.iter().filter(|destination| destination.is_ipv4() || ipv6) {
                netlink.add_route(index, Route { destination: *destination, prefix: 0 })?;
            }
            Ok::<_, LinkError>((file, netlink, index, ipv6))
        })??;
        Ok((Side { namespace, netlink: Mutex::new(netlink), interfaces: vec![index] }, file, ipv6))
    }

    fn counters(&self) -> Result<Vec<InterfaceCounters>, LinkError> {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        self.interfaces.iter().map(|interface| netlink.counters(*interface)).collect()
    }
}

/// Addresses of a group's members.
fn group_addresses(group: usize, settings: &Settings) -> Vec<(IpAddr, u8)> {
    let number = settings.number(group);
    let of =
        |member| [(addresses::group_v4(number, member).into(), 32), (addresses::group_v6(number, member).into(), 128)];
    (0..settings.addresses).flat_map(of).collect()
}

/// Destinations of the default routes.
fn everything() -> [IpAddr; 2] {
    [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
}

/// Assigns addresses to an interface; returns whether there is IPv6.
fn add_addresses(netlink: &mut Netlink, index: u32, addresses: &[(IpAddr, u8)]) -> Result<bool, LinkError> {
    let mut ipv6 = true;
    for (address, prefix) in addresses {
        let result = netlink.add_address(index, *address, *prefix);
        ipv6 &= is_there(address, result)?;
    }
    Ok(ipv6)
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
