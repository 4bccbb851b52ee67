//! Which groups of a workload are behind which link, and where their networks are.

use std::net::IpAddr;

use pubmark_engine::plan::Networks;
use pubmark_links::addresses;
use pubmark_model::link::Link;
use pubmark_model::workload::Workload;

/// Groups that are behind a link together: one group, or those that share their clients.
pub(super) struct Member<'a> {
    /// The clients' name, or the group's.
    pub name: &'a str,
    pub link: &'a Link,
}

/// Who is behind which link, and where each group is in that list.
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

    /// The network of each group, by its number; none of them can be entered yet.
    pub fn networks(&self) -> Networks {
        Networks { all: [].into(), devices: self.devices.clone(), subscribers: self.subscribers.clone() }
    }

    /// Is the member of this number the group, or the clients, called so?
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
        // Names of groups and of clients are one set.
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
    /// Of the core, and of each network.
    pub all: Vec<IpAddr>,
    /// Which of them is that of each device group.
    pub devices: Vec<u16>,
    /// And of each subscriber group.
    pub subscribers: Vec<u16>,
}

impl NetworkAddresses {
    /// That of all subscriber groups, if they have one in common.
    pub fn of_all_subscribers(&self) -> Option<u16> {
        let first = *self.subscribers.first()?;
        self.subscribers.iter().all(|place| *place == first).then_some(first)
    }

    /// That of a subscriber group.
    pub fn of_subscribers(&self, group: u16) -> IpAddr {
        let place = self.subscribers.get(usize::from(group)).copied().unwrap_or(0);
        self.all[usize::from(place)]
    }
}

/// Where groups will be; `None` where none is behind a link.
pub fn places(workload: &Workload) -> Option<NetworkAddresses> {
    let behind = Behind::of(workload);
    if behind.members.is_empty() {
        return None;
    }
    let groups = (0..behind.members.len()).map(|group| addresses::group_v4(group, 0));
    let numbered = |networks: &[Option<u16>]| networks.iter().map(|network| network.map_or(0, |own| own + 1)).collect();
    Some(NetworkAddresses {
        all: std::iter::once(addresses::CORE_V4).chain(groups).map(IpAddr::from).collect(),
        devices: numbered(&behind.devices),
        subscribers: numbered(&behind.subscribers),
    })
}
