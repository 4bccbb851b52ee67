//! Client identifiers and credentials with which the clients of a fleet connect.

use std::collections::HashMap;

use super::{Device, Fleet, Subscriber, fill};
use crate::identity::{ClientIdentity, GroupIdentity};
use crate::workload::Workload;

impl Fleet {
    /// Identity of a device in run number `run`.
    pub fn device_identity(&self, workload: &Workload, run: u32, device: &Device) -> ClientIdentity {
        let group = &workload.devices[usize::from(device.group)];
        let number = device.copy as usize * group.count as usize + device.index as usize;
        group.identity.of_client(number, |text| self.fill_for(text, workload, device), self.client_id(run, device))
    }

    /// Identity of a subscriber in run number `run`.
    pub fn subscriber_identity(&self, workload: &Workload, run: u32, subscriber: &Subscriber) -> ClientIdentity {
        let group = &workload.subscribers[usize::from(subscriber.group)];
        let number = subscriber.copy as usize * group.count as usize + subscriber.index as usize;
        let word = |name: &str| match name {
            "index" => Some(subscriber.index.to_string()),
            "copy" => Some(subscriber.copy.to_string()),
            "workload" => Some(workload.name.clone()),
            _ => None,
        };
        group.identity.of_client(number, |text| fill(text, word), self.subscriber_client_id(run, subscriber))
    }

    /// Checks that the clients can have the identities that the workload gives them. Fails if a file has too few rows, or
    /// if two clients have the same identifier, because the system would disconnect one of them.
    pub fn check_identities(&self, workload: &Workload) -> Result<(), String> {
        let copies = self.copies();
        let groups = workload.devices.iter().map(|group| (&group.name, &group.identity, group.count));
        let others = workload.subscribers.iter().map(|group| (&group.name, &group.identity, group.count));
        for ((name, identity, count), copies) in groups.zip(&copies.devices).chain(others.zip(&copies.subscribers)) {
            check_rows(name, identity, u64::from(count) * u64::from(*copies))?;
        }
        let mut seen: HashMap<String, &str> = HashMap::new();
        let given = |group: &GroupIdentity| group.is_of_each();
        for device in self.devices().iter().filter(|device| self.leads(device.publisher)) {
            let group = &workload.devices[usize::from(device.group)];
            if given(&group.identity) {
                add(&mut seen, self.device_identity(workload, 0, device), &group.name)?;
            }
        }
        for subscriber in self.subscribers() {
            let group = &workload.subscribers[usize::from(subscriber.group)];
            if given(&group.identity) {
                add(&mut seen, self.subscriber_identity(workload, 0, subscriber), &group.name)?;
            }
        }
        Ok(())
    }
}

fn check_rows(name: &str, identity: &GroupIdentity, needed: u64) -> Result<(), String> {
    match &identity.rows {
        Some(file) if (file.rows.len() as u64) < needed => Err(format!(
            "`{}` has {} rows and group `{name}` has {needed} clients: one row for each",
            file.name,
            file.rows.len()
        )),
        _ => Ok(()),
    }
}

fn add<'a>(seen: &mut HashMap<String, &'a str>, client: ClientIdentity, group: &'a str) -> Result<(), String> {
    if !client.is_given {
        return Ok(());
    }
    match seen.insert(client.client_id.clone(), group) {
        None => Ok(()),
        Some(first) if first == group => Err(format!(
            "two clients of group `{group}` have the client id `{}`, and a system ends one of them: `{{device}}` or `{{index}}` makes a difference",
            client.client_id
        )),
        Some(first) => Err(format!(
            "clients of groups `{first}` and `{group}` have the same client id `{}`, and a system ends one of them",
            client.client_id
        )),
    }
}
