//! Groups whose traffic can only be measured together: groups that share the connections of a client count as one.

use crate::workload::Workload;

/// The groups of a workload, with the groups of one client combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionGroups {
    /// For each: the name of the client, or of the group; devices first, in the workload's order.
    pub names: Vec<String>,
    /// For each device group, in the workload's order: its index in `names`.
    pub devices: Vec<u16>,
    /// For each subscriber group, in the workload's order: its index in `names`.
    pub subscribers: Vec<u16>,
    /// By index in `names`: whether one of the groups requires a separate process.
    pub isolated: Vec<bool>,
}

impl ConnectionGroups {
    /// The connection groups of a workload.
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

    /// Whether any of them has a separate process.
    pub fn has_isolated(&self) -> bool {
        self.isolated.contains(&true)
    }

    /// Process number of a device group that has a separate process: its index in `names`.
    pub fn process_of_devices(&self, group: u16) -> Option<u16> {
        self.process(self.devices.get(usize::from(group)))
    }

    /// Process number of a subscriber group that has a separate process.
    pub fn process_of_subscribers(&self, group: u16) -> Option<u16> {
        self.process(self.subscribers.get(usize::from(group)))
    }

    fn process(&self, place: Option<&u16>) -> Option<u16> {
        place.copied().filter(|place| self.isolated.get(usize::from(*place)) == Some(&true))
    }

    fn place(&mut self, name: &str, isolated: bool) -> u16 {
        // Groups and clients share one set of names.
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
        // One of the groups that share connections requires isolation, so all of them are isolated together.
        assert_eq!([0, 1].map(|group| groups.process_of_devices(group)), [None, Some(1)]);
        assert_eq!([0, 1, 2].map(|group| groups.process_of_subscribers(group)), [None, Some(1), None]);
    }
}
