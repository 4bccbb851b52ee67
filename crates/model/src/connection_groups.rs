//! Groups whose traffic can only be told together: those that share the connections of a client are one.

use crate::workload::Workload;

/// A workload's groups, those of one client taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionGroups {
    /// Of each: the client's name, or the group's; devices first, in the workload's order.
    pub names: Vec<String>,
    /// Of each device group, by its place in the workload: its place in `names`.
    pub devices: Vec<u16>,
    /// Of each subscriber group, likewise.
    pub subscribers: Vec<u16>,
    /// By place in `names`: a group of it asks for a process of its own.
    pub isolated: Vec<bool>,
}

impl ConnectionGroups {
    /// Those of a workload.
    pub fn of(workload: &Workload) -> ConnectionGroups {
        let mut groups = ConnectionGroups::default();
        for group in &workload.devices {
            let place = groups.place(group.client.as_deref().unwrap_or(&group.name), group.isolate);
            groups.devices.push(place);
        }
        for group in &workload.subscribers {
            let place = groups.place(group.client.as_deref().unwrap_or(&group.name), group.isolate);
            groups.subscribers.push(place);
        }
        groups
    }

    /// Does any of them have a process of its own?
    pub fn has_isolated(&self) -> bool {
        self.isolated.contains(&true)
    }

    /// Number of the process of a device group, where it has one of its own: its place in `names`.
    pub fn process_of_devices(&self, group: u16) -> Option<u16> {
        self.process(self.devices.get(usize::from(group)))
    }

    /// The same of a subscriber group.
    pub fn process_of_subscribers(&self, group: u16) -> Option<u16> {
        self.process(self.subscribers.get(usize::from(group)))
    }

    fn process(&self, place: Option<&u16>) -> Option<u16> {
        place.copied().filter(|place| self.isolated.get(usize::from(*place)) == Some(&true))
    }

    fn place(&mut self, name: &str, isolated: bool) -> u16 {
        // Names of groups and of clients are one set.
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.isolated.push(false);
            self.names.len() - 1
        });
        self.isolated[place] |= isolated;
        u16::try_from(place).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, parse};

    #[test]
    fn groups_of_a_client_are_one() {
        let text = "name: shared\ndevices:\n  - {name: a/b, every: 1s, payload: 20B}\n  \
                    - {name: c/d, every: 1s, payload: 20B, client: house}\nsubscribers:\n  \
                    - {name: hub, filters: [\"#\"]}\n  - {name: screen, client: house, isolate: process, filters: [\"#\"]}\n";
        let workload = parse("shared.yaml", text, &LoadOptions::default()).unwrap();
        let groups = ConnectionGroups::of(&workload);
        assert_eq!(groups.names, ["a/b", "house", "hub"]);
        assert_eq!((&*groups.devices, &*groups.subscribers), (&[0, 1][..], &[2, 1][..]));
        // One of those that share connections asks, and they go together.
        assert_eq!([0, 1].map(|group| groups.process_of_devices(group)), [None, Some(1)]);
        assert_eq!([0, 1, 2].map(|group| groups.process_of_subscribers(group)), [None, Some(1), None]);
    }
}
