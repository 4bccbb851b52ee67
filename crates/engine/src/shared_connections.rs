//! Devices that share a connection: those of one client. A device without a client has a separate connection.

use std::collections::{HashMap, HashSet};

use pubmark_model::fleet::{Device, Fleet, Subscriber};
use pubmark_model::workload::Workload;

/// A client: number of the workload's copy, name, number of the client.
type Client<'a> = (u32, &'a str, u32);

/// The shared connections of a fleet.
pub struct SharedConnections<'a> {
    workload: &'a Workload,
    devices: &'a [Device],
    /// Devices of each client, as indices in `devices`.
    by_client: HashMap<Client<'a>, Vec<usize>>,
    /// Clients that also receive.
    receiving: HashSet<Client<'a>>,
}

impl<'a> SharedConnections<'a> {
    /// The shared connections of a fleet.
    pub fn new(workload: &'a Workload, fleet: &'a Fleet) -> SharedConnections<'a> {
        let mut by_client: HashMap<Client<'a>, Vec<usize>> = HashMap::new();
        for (place, device) in fleet.devices().iter().enumerate() {
            if let Some(client) = client_of_device(workload, device) {
                by_client.entry(client).or_default().push(place);
            }
        }
        let receiving =
            fleet.subscribers().iter().filter_map(|subscriber| client_of_subscriber(workload, subscriber)).collect();
        SharedConnections { workload, devices: fleet.devices(), by_client, receiving }
    }

    /// Devices by connection, for connections that only send, in the order of their first devices.
    pub fn sending(&self) -> impl Iterator<Item = Vec<Device>> + '_ {
        self.devices.iter().enumerate().filter_map(|(place, device)| {
            let Some(client) = client_of_device(self.workload, device) else { return Some(vec![*device]) };
            let members = &self.by_client[&client];
            let leads = members.first() == Some(&place) && !self.receiving.contains(&client);
            leads.then(|| members.iter().map(|place| self.devices[*place]).collect())
        })
    }

    /// Devices on the connection of a subscriber.
    pub fn beside(&self, subscriber: &Subscriber) -> Vec<Device> {
        let members = client_of_subscriber(self.workload, subscriber).and_then(|client| self.by_client.get(&client));
        members.map(|members| members.iter().map(|place| self.devices[*place]).collect()).unwrap_or_default()
    }
}

fn client_of_device<'a>(workload: &'a Workload, device: &Device) -> Option<Client<'a>> {
    let client = workload.devices[usize::from(device.group)].client.as_deref()?;
    Some((device.copy, client, device.index))
}

fn client_of_subscriber<'a>(workload: &'a Workload, subscriber: &Subscriber) -> Option<Client<'a>> {
    let client = workload.subscribers[usize::from(subscriber.group)].client.as_deref()?;
    Some((subscriber.copy, client, subscriber.index))
}
