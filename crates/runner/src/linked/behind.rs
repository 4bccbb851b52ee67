//! Which groups of a workload are behind which link, and where their networks are.

use std::net::IpAddr;

use pubmark_engine::plan::Networks;
use pubmark_links::addresses;
use pubmark_model::link::Link;
use pubmark_model::workload::Workload;

/// Groups that share one link: a single group, or the groups that share their clients.
pub(super) struct Member<'a> {
    /// Name of the clients, or of the group.
    pub name: &'a str,
    pub link: &'a Link,
}

/// The members behind links, and the position of each group in that list.
pub(super) struct Behind<'a> {
    pub members: Vec<Member<'a>>,
    devices: Vec<Option<u16>>,
    subscribers: Vec<Option<u16>>,
}

impl<'a> Behind<'a> {
    pub fn of(workload: &'a Workload) -> Behind<'a> {
        let mut behind = Behind { members: vec![], devices: vec![], subscribers: vec![] };
        for group in &workload.devices {
            let place = behind.place(workload, &group.name, group.client.as_deref(), group.link.as_deref());
            behind.devices.push(place);
        }
        for group in &workload.subscribers {
            let place = behind.place(workload, &group.name, group.client.as_deref(), group.link.as_deref());
            behind.subscribers.push(place);
        }
        behind
    }

    /// The network of each group, by the group's number; none of them can be entered yet.
    pub fn networks(&self) -> Networks {
        Networks { all: [].into(), devices: self.devices.clone(), subscribers: self.subscribers.clone() }
    }

    /// Whether the member with this number is the group, or the clients, with this name.
    pub fn is_of(&self, workload: &Workload, number: usize, name: &str) -> bool {
        let devices = workload.devices.iter().map(|group| &group.name).zip(&self.devices);
        let mut groups = devices.chain(workload.subscribers.iter().map(|group| &group.name).zip(&self.subscribers));
        self.members[number].name == name
            || groups.any(|(group, place)| group == name && *place == u16::try_from(number).ok())
    }

    fn place(
        &mut self,
        workload: &'a Workload,
        group: &'a str,
        client: Option<&'a str>,
        link: Option<&str>,
    ) -> Option<u16> {
        let link = workload.links.iter().find(|known| Some(known.name.as_str()) == link)?;
        let name = client.unwrap_or(group);
        // Groups and clients share one set of names.
        let known = self.members.iter().position(|member| member.name == name);
        let place = known.unwrap_or_else(|| {
            self.members.push(Member { name, link });
            self.members.len() - 1
        });
        u16::try_from(place).ok()
    }
}

/// Addresses of a workload's networks.
pub struct NetworkAddresses {
    /// Addresses of the core, and of each network: first those of the first node.
    pub all: Vec<IpAddr>,
    /// Index into `all` for each device group of the first node.
    pub devices: Vec<u16>,
    /// Index into `all` for each subscriber group of the first node.
    pub subscribers: Vec<u16>,
    /// Number of networks of each node.
    pub of_node: u16,
}

impl NetworkAddresses {
    /// The index that all subscriber groups have in common, if there is one.
    pub fn of_all_subscribers(&self) -> Option<u16> {
        let first = *self.subscribers.first()?;
        self.subscribers.iter().all(|place| *place == first).then_some(first)
    }

    /// Address of a subscriber group.
    pub fn of_subscribers(&self, group: u16) -> IpAddr {
        let place = self.subscribers.get(usize::from(group)).copied().unwrap_or(0);
        self.all[usize::from(place)]
    }
}

/// Addresses that groups will have on this many nodes of this machine; `None` if no group is behind a link.
pub fn places(workload: &Workload, nodes: u16) -> Option<NetworkAddresses> {
    let behind = Behind::of(workload);
    if behind.members.is_empty() {
        return None;
    }
    let groups = (0..behind.members.len() * usize::from(nodes)).map(|group| addresses::group_v4(group, 0));
    let numbered = |networks: &[Option<u16>]| networks.iter().map(|network| network.map_or(0, |own| own + 1)).collect();
    Some(NetworkAddresses {
        all: std::iter::once(addresses::CORE_V4).chain(groups).map(IpAddr::from).collect(),
        devices: numbered(&behind.devices),
        subscribers: numbered(&behind.subscribers),
        of_node: u16::try_from(behind.members.len()).ok()?,
    })
}
