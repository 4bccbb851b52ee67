//! The endpoint of each client, if a system has several brokers, or no broker and several nodes. This module affects
//! only where a device connects, not what it does.

use std::ops::Range;
use std::sync::Arc;

use pubmark_model::fleet::{Device, StreamSource, Subscriber};
use pubmark_protocol::endpoint::Endpoint;
use serde::{Deserialize, Serialize};

/// Largest number of independent brokers. Each of them has a part of every audience, and the parts are numbered with 32
/// bits.
const MOST_INDEPENDENT: usize = 256;

/// The brokers of a system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Endpoints {
    endpoints: Arc<[Endpoint]>,
    /// The brokers are independent: a subscriber has to connect to every one.
    independent: bool,
    assignment: Assignment,
}

/// How the endpoints are assigned to clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Assignment {
    /// In turn.
    InTurn,
    /// By the client's group and node, if networks decide.
    ByGroup {
        /// The endpoint of each device group, and of each subscriber group, on the first node; 0 without a network.
        groups: [Vec<u16>; 2],
        /// Number of endpoints that each node has beside the first one, which is the machine's.
        of_node: u16,
    },
    /// By the client's node.
    ByNode(Vec<u16>),
}

impl Endpoints {
    /// A system with one broker.
    pub fn one(endpoint: Endpoint) -> Endpoints {
        Endpoints { endpoints: [endpoint].into(), independent: false, assignment: Assignment::InTurn }
    }

    /// Several brokers: independent ones, or brokers that forward to each other. `None` if there is none, or more than
    /// can be numbered.
    pub fn several(endpoints: Vec<Endpoint>, independent: bool) -> Option<Endpoints> {
        let most = if independent { MOST_INDEPENDENT } else { usize::from(u16::MAX) };
        let fits = !endpoints.is_empty() && endpoints.len() <= most;
        fits.then(|| Endpoints {
            independent: independent && endpoints.len() > 1,
            endpoints: endpoints.into(),
            assignment: Assignment::InTurn,
        })
    }

    /// The endpoint of the machine, then one for each network: first those of the first node, `of_node` for each. `groups`
    /// has the index of the endpoint of each device group and of each subscriber group on the first node; 0 for a group
    /// without a network. `None` if a group's index is out of range.
    pub fn by_group(endpoints: Vec<Endpoint>, groups: [Vec<u16>; 2], of_node: u16) -> Option<Endpoints> {
        let fits = groups.iter().flatten().all(|place| *place <= of_node && usize::from(*place) < endpoints.len());
        fits.then(|| Endpoints {
            endpoints: endpoints.into(),
            independent: false,
            assignment: Assignment::ByGroup { groups, of_node },
        })
    }

    /// Endpoints that belong to nodes, with the index of the endpoint of each node. `None` if a node's index is out of
    /// range.
    pub fn by_node(endpoints: Vec<Endpoint>, nodes: Vec<u16>) -> Option<Endpoints> {
        let fits = nodes.iter().all(|place| usize::from(*place) < endpoints.len());
        fits.then(|| Endpoints {
            endpoints: endpoints.into(),
            independent: false,
            assignment: Assignment::ByNode(nodes),
        })
    }

    /// The same brokers through other endpoints: each endpoint is replaced.
    ///
    /// # Errors
    /// The first error that `replace` returns.
    pub fn replaced<E>(&self, replace: impl FnMut(&Endpoint) -> Result<Endpoint, E>) -> Result<Endpoints, E> {
        let endpoints = self.endpoints.iter().map(replace).collect::<Result<_, E>>()?;
        Ok(Endpoints { endpoints, ..self.clone() })
    }

    /// Serialises all endpoints, including credentials, for another process.
    ///
    /// # Errors
    /// An endpoint cannot be serialised.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        postcard::to_allocvec(self).map_err(|error| error.to_string())
    }

    /// Reads what [`Endpoints::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are something else, or have no endpoint for a client.
    pub fn from_bytes(bytes: &[u8]) -> Result<Endpoints, String> {
        let read: Endpoints = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
        let last = read.endpoints.len();
        let places = match &read.assignment {
            Assignment::InTurn => vec![],
            Assignment::ByGroup { groups, .. } => groups.concat(),
            Assignment::ByNode(nodes) => nodes.clone(),
        };
        let most = if read.independent { MOST_INDEPENDENT } else { usize::from(u16::MAX) };
        match last == 0 || last > most || places.iter().any(|place| usize::from(*place) >= last) {
            true => Err("it has no endpoint for a client".to_owned()),
            false => Ok(read),
        }
    }

    /// The first endpoint, for display.
    pub fn shown(&self) -> &str {
        self.endpoints.first().map_or("", |endpoint| &endpoint.shown)
    }

    /// All endpoints.
    pub fn endpoints(&self) -> &Arc<[Endpoint]> {
        &self.endpoints
    }

    /// Are the endpoints reached over the loopback interface, which loses no packets?
    pub fn are_on_this_machine(&self) -> bool {
        self.endpoints.iter().all(|endpoint| endpoint.address.ip().is_loopback())
    }

    /// Does any connection encrypt?
    pub fn are_encrypted(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.tls.is_some())
    }

    /// Do clients have a certificate for their authentication?
    pub fn have_identity(&self) -> bool {
        self.endpoints.iter().filter_map(|endpoint| endpoint.tls.as_ref()).any(|tls| tls.identity.is_some())
    }

    /// Broker of a device. Devices are assigned one by one, so that each broker gets its share of every group.
    pub fn of_device(&self, device: &Device, node: u16) -> u16 {
        self.of_client(0, device.group, node).unwrap_or_else(|| self.assigned_to(device.publisher))
    }

    /// Broker of a client of this group on this node; `None` if brokers are assigned in turn. `side` is the index of
    /// the side; 0 for devices.
    fn of_client(&self, side: usize, group: u16, node: u16) -> Option<u16> {
        match &self.assignment {
            Assignment::InTurn => None,
            Assignment::ByGroup { groups, of_node } => {
                let place = *groups[side].get(usize::from(group))?;
                let more = if place == 0 { 0 } else { node.checked_mul(*of_node)? };
                place.checked_add(more).filter(|place| usize::from(*place) < self.endpoints.len())
            }
            Assignment::ByNode(nodes) => nodes.get(usize::from(node)).copied(),
        }
    }

    /// Brokers that a subscriber on this node connects to: all independent ones, otherwise one.
    pub fn of_subscriber(&self, subscriber: &Subscriber, node: u16) -> Range<u16> {
        if self.independent {
            return 0..self.endpoints.len() as u16;
        }
        let place = self.of_client(1, subscriber.group, node).unwrap_or_else(|| self.assigned_to(subscriber.number));
        place..place + 1
    }

    /// Number of sessions that a subscriber needs.
    pub fn sessions_per_subscriber(&self) -> usize {
        if self.independent { self.endpoints.len() } else { 1 }
    }

    /// Number in the message accounting of the part of an audience that connects to the `nth` of its brokers. There are
    /// at most 2²⁴ audiences with `MOST_INDEPENDENT` parts each, so the number fits into 32 bits.
    pub fn number_of_part(&self, audience: u32, nth: u32) -> u32 {
        let parts = if self.independent { self.endpoints.len() as u32 } else { 1 };
        audience * parts + nth
    }

    /// The part of a subscriber's streams that arrives through one of its brokers.
    pub fn sources_at(&self, place: u16, sources: &Arc<[StreamSource]>) -> Arc<[StreamSource]> {
        if !self.independent {
            return Arc::clone(sources);
        }
        sources.iter().filter(|entry| self.assigned_to(entry.publisher) == place).copied().collect()
    }

    fn assigned_to(&self, number: u32) -> u16 {
        (number % self.endpoints.len() as u32) as u16
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn endpoint(port: u16) -> Endpoint {
        Endpoint {
            shown: String::new(),
            address: ([127, 0, 0, 1], port).into(),
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        }
    }

    fn device(publisher: u32) -> Device {
        Device { publisher, group: 0, copy: 0, index: publisher, ..Device::default() }
    }

    fn subscriber(number: u32) -> Subscriber {
        Subscriber { number, group: 0, copy: 0, index: number }
    }

    #[test]
    fn each_message_reaches_a_subscriber_over_exactly_one_of_independent_brokers() {
        let endpoints = Endpoints::several(vec![endpoint(1), endpoint(2), endpoint(3)], true).unwrap();
        let sources: Arc<[StreamSource]> = (0..10).map(|publisher| StreamSource { publisher, filters: 1 }).collect();
        let mut found: Vec<u32> = vec![];
        for place in endpoints.of_subscriber(&subscriber(4), 0) {
            for entry in endpoints.sources_at(place, &sources).iter() {
                assert_eq!(endpoints.of_device(&device(entry.publisher), 0), place);
                found.push(entry.publisher);
            }
        }
        found.sort_unstable();
        assert_eq!(found, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn brokers_that_know_each_other_need_one_session() {
        let endpoints = Endpoints::several(vec![endpoint(1), endpoint(2)], false).unwrap();
        assert_eq!((endpoints.of_subscriber(&subscriber(3), 0), endpoints.sessions_per_subscriber()), (1..2, 1));
        let sources: Arc<[StreamSource]> = [StreamSource { publisher: 0, filters: 1 }].into();
        assert!(Arc::ptr_eq(&endpoints.sources_at(1, &sources), &sources));
        assert!(Endpoints::several(vec![], true).is_none());
    }

    #[test]
    fn with_endpoints_by_network_a_group_has_that_of_its_network() {
        let endpoints = Endpoints::by_group(vec![endpoint(1), endpoint(2)], [vec![1], vec![0]], 1).unwrap();
        assert!((0..3).all(|number| endpoints.of_device(&device(number), 0) == 1));
        assert_eq!(endpoints.of_subscriber(&subscriber(1), 0), 0..1);
        assert!(Endpoints::by_group(vec![endpoint(1)], [vec![1], vec![]], 1).is_none());
    }

    #[test]
    fn with_endpoints_by_node_a_client_has_that_of_its_node() {
        // Node 1 has no subscriber, so no client subscribes there.
        let endpoints = Endpoints::by_node(vec![endpoint(1), endpoint(2)], vec![0, 0, 1]).unwrap();
        assert_eq!([0, 1, 2].map(|node| endpoints.of_device(&device(7), node)), [0, 0, 1]);
        assert_eq!(endpoints.of_subscriber(&subscriber(0), 2), 1..2);
        assert!(Endpoints::by_node(vec![endpoint(1)], vec![0, 1]).is_none());
    }
}
