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
}

impl ConnectionGroups {
    /// Those of a workload.
    pub fn of(workload: &Workload) -> ConnectionGroups {
        let mut groups = ConnectionGroups::default();
        for group in &workload.devices {
            let place = groups.place(group.client.as_deref().unwrap_or(&group.name));
            groups.devices.push(place);
        }
        for group in &workload.subscribers {
            let place = groups.place(group.client.as_deref().unwrap_or(&group.name));
            groups.subscribers.push(place);
        }
        groups
    }

    fn place(&mut self, name: &str) -> u16 {
        // Names of groups and of clients are one set.
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
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
                    - {name: hub, filters: [\"#\"]}\n  - {name: screen, client: house, filters: [\"#\"]}\n";
        let workload = parse("shared.yaml", text, &LoadOptions::default()).unwrap();
        let groups = ConnectionGroups::of(&workload);
        assert_eq!(groups.names, ["a/b", "house", "hub"]);
        assert_eq!((groups.devices, groups.subscribers), (vec![0, 1], vec![2, 1]));
    }
}
