//! A group's wire: a namespace between the group's and the core's that forwards from one to the other, with netem on the way out
//! at either side.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pubmark_model::link::Conditions;

use crate::Direction;
use crate::addresses::{self, CORE_V4, CORE_V6};
use crate::direction::{Counters, Tally};
use crate::error::LinkError;
use crate::namespace::Namespace;
use crate::netem::{self, ETHERNET_HEADER};
use crate::netlink::{InterfaceCounters, Netlink, Route};

/// Length of the prefix of a group's addresses, and of the core's.
const PREFIX_V4: u8 = 24;
/// The same of IPv6.
const PREFIX_V6: u8 = 48;

/// Settings with which the kernel forwards.
const FORWARDING_V4: &str = "/proc/sys/net/ipv4/ip_forward";
const FORWARDING_V6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// An end of a wire: the owner of the interface, and the socket for requests about it.
pub struct End<'a> {
    /// The namespace.
    pub namespace: &'a Namespace,
    /// A socket to its configuration.
    pub netlink: &'a mut Netlink,
    /// Name of the interface there.
    pub interface: &'a str,
    /// Which addresses are reached through it.
    pub routes: &'a [Route],
}

/// What holds for all wires.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Queue of an interface, packets.
    pub queue_packets: u32,
    /// Is there IPv6?
    pub ipv6: bool,
}

/// A wire that carries packets. It ends with its namespace, when this is dropped.
#[derive(Debug)]
pub struct Wire {
    netlink: Mutex<Netlink>,
    /// Interface towards the group: what arrives there goes up, its queue is the down-link.
    group: u32,
    /// Interface towards the core, likewise the other way round.
    core: u32,
    /// Owns the interfaces.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is held, not used"))]
    namespace: Namespace,
}

impl Wire {
    /// Lays the wire of group `number` between the two ends, which have their addresses already or get them later; both interfaces
    /// pass packets and are routed when this returns, and nothing is emulated yet.
    pub fn lay(number: usize, group: End<'_>, core: End<'_>, shape: Shape) -> Result<Wire, LinkError> {
        let namespace = Namespace::create(&format!("wire {number}"))?;
        let (mut netlink, indices) = namespace.enter(|| {
            let mut netlink = Netlink::open()?;
            let group = pair(&mut netlink, "group", group, shape)?;
            let core = pair(&mut netlink, "core", core, shape)?;
            // After multicast is off: a router would join groups, and send packets for that.
            forward(shape.ipv6)?;
            Ok::<_, LinkError>((netlink, [group, core]))
        })??;
        let [group, core] = indices;
        let to_group = [addresses::group_v4(number, 0).into(), addresses::group_v6(number, 0).into()];
        for (index, destinations) in [(group, to_group), (core, [CORE_V4.into(), CORE_V6.into()])] {
            for route in destinations.map(network).into_iter().filter(|route| suits(route, shape)) {
                netlink.add_route(index, route)?;
            }
        }
        Ok(Wire { netlink: Mutex::new(netlink), group, core, namespace })
    }

    /// Emulates `conditions` in one direction from now on.
    pub fn apply(&self, direction: Direction, conditions: &Conditions) -> Result<(), LinkError> {
        let index = self.exit(direction);
        self.netlink().request(|| format!("set netem on interface {index}"), netem::request(index, conditions))
    }

    /// Counters of a direction. The kernel does not report why its queue dropped a packet, nor which packets it duplicated or
    /// reordered, nor how many bytes it lost: all losses are in `lost`, without bytes, and the others stay zero.
    pub fn counters(&self, direction: Direction) -> Result<Counters, LinkError> {
        let (entry, exit) = (self.exit(direction.opposite()), self.exit(direction));
        let mut netlink = self.netlink();
        let (arrived, queue, left) = (netlink.counters(entry)?, netlink.queue(exit)?, netlink.counters(exit)?);
        Ok(Counters {
            arrived: without_headers(arrived.received_packets, arrived.received_bytes),
            delivered: without_headers(left.sent_packets, left.sent_bytes),
            lost: Tally { packets: queue.dropped_packets, bytes: 0 },
            waiting: without_headers(queue.waiting_packets, queue.waiting_bytes),
            ..Counters::default()
        })
    }

    /// Packets that wait or are in flight in a direction.
    pub fn waiting(&self, direction: Direction) -> Result<u64, LinkError> {
        Ok(self.netlink().queue(self.exit(direction))?.waiting_packets)
    }

    /// What both interfaces counted.
    pub fn interfaces(&self) -> Result<[InterfaceCounters; 2], LinkError> {
        let mut netlink = self.netlink();
        Ok([netlink.counters(self.group)?, netlink.counters(self.core)?])
    }

    /// Does `work` in the wire's namespace, with its socket.
    #[cfg(test)]
    pub fn within<T>(&self, work: impl FnOnce(&mut Netlink) -> Result<T, LinkError>) -> Result<T, LinkError> {
        self.namespace.enter(|| work(&mut self.netlink()))?
    }

    /// Where packets of a direction leave.
    fn exit(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Up => self.core,
            Direction::Down => self.group,
        }
    }

    fn netlink(&self) -> MutexGuard<'_, Netlink> {
        self.netlink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of IP from those of Ethernet.
fn without_headers(packets: u64, bytes: u64) -> Tally {
    Tally { packets, bytes: bytes.saturating_sub(packets * ETHERNET_HEADER) }
}

/// Makes interface `name` here and the end's interface there, both up; returns this one's index.
fn pair(netlink: &mut Netlink, name: &str, end: End<'_>, shape: Shape) -> Result<u32, LinkError> {
    netlink.add_pair(name, end.interface, end.namespace.descriptor())?;
    let index = Netlink::index(name)?;
    let there = end.namespace.enter(|| Netlink::index(end.interface))??;
    for (netlink, index) in [(&mut *netlink, index), (&mut *end.netlink, there)] {
        netlink.as_wire(index)?;
        netlink.prepare(index, shape.mtu, shape.queue_packets)?;
        netlink.up(index)?;
    }
    netlink.wait_until_operational(index)?;
    end.netlink.wait_until_operational(there)?;
    for route in end.routes.iter().filter(|route| suits(route, shape)) {
        end.netlink.add_route(there, *route)?;
    }
    Ok(index)
}

fn suits(route: &Route, shape: Shape) -> bool {
    shape.ipv6 || route.destination.is_ipv4()
}

/// The network of a group or of the core: the route to it.
pub fn network(address: IpAddr) -> Route {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            Route { destination: Ipv4Addr::new(a, b, c, 0).into(), prefix: PREFIX_V4 }
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            Route { destination: Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into(), prefix: PREFIX_V6 }
        }
    }
}

/// Makes the calling thread's namespace pass packets on. Only to be called in a wire's.
fn forward(ipv6: bool) -> Result<(), LinkError> {
    let files: &[&str] = if ipv6 { &[FORWARDING_V4, FORWARDING_V6] } else { &[FORWARDING_V4] };
    for file in files {
        std::fs::write(file, "1").map_err(|error| LinkError::refused(format!("write `{file}` of a wire"), error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::{MOST_GROUPS, group_v4, group_v6};

    #[test]
    fn the_network_of_a_group_holds_its_addresses_and_no_others() {
        let route = network(group_v4(MOST_GROUPS - 1, 7).into());
        assert_eq!((route.destination, route.prefix), (IpAddr::from([198, 19, 255, 0]), 24));
        let route = network(group_v6(9, 7).into());
        assert_eq!((route.destination, route.prefix), ("fd00:18:a::".parse().unwrap(), 48));
        assert_eq!(network(CORE_V4.into()).destination, IpAddr::from([198, 18, 0, 0]));
    }

    #[test]
    fn ethernet_headers_do_not_count() {
        assert_eq!(without_headers(3, 342), Tally { packets: 3, bytes: 300 });
        assert_eq!(without_headers(0, 0), Tally::default());
    }
}
