//! Devices that share a connection: the *crew* of a client. A device without a client is a crew of its own.

use std::collections::{HashMap, HashSet};

use pubmark_model::fleet::{Device, Fleet, Subscriber};
use pubmark_model::workload::Workload;

/// A client: copy of the workload, name, number.
type Client<'a> = (u32, &'a str, u32);

/// The crews of a fleet.
pub struct Crews<'a> {
    workload: &'a Workload,
    devices: &'a [Device],
    /// Devices of each client, as places in `devices`.
    crews: HashMap<Client<'a>, Vec<usize>>,
    /// Clients that listen too.
    listening: HashSet<Client<'a>>,
}

impl<'a> Crews<'a> {
    /// The crews of a fleet.
    pub fn new(workload: &'a Workload, fleet: &'a Fleet) -> Crews<'a> {
        let mut crews: HashMap<Client<'a>, Vec<usize>> = HashMap::new();
        for (place, device) in fleet.devices().iter().enumerate() {
            if let Some(client) = client_of_device(workload, device) {
                crews.entry(client).or_default().push(place);
            }
        }
        let listening =
            fleet.subscribers().iter().filter_map(|subscriber| client_of_subscriber(workload, subscriber)).collect();
        Crews { workload, devices: fleet.devices(), crews, listening }
    }

    /// Crews that only send, in the order of their first devices.
    pub fn sending(&self) -> impl Iterator<Item = Vec<Device>> + '_ {
        self.devices.iter().enumerate().filter_map(|(place, device)| {
            let Some(client) = client_of_device(self.workload, device) else { return Some(vec![*device]) };
            let crew = &self.crews[&client];
            let leads = crew.first() == Some(&place) && !self.listening.contains(&client);
            leads.then(|| crew.iter().map(|place| self.devices[*place]).collect())
        })
    }

    /// Devices on the connection of a subscriber.
    pub fn beside(&self, subscriber: &Subscriber) -> Vec<Device> {
        let crew = client_of_subscriber(self.workload, subscriber).and_then(|client| self.crews.get(&client));
        crew.map(|crew| crew.iter().map(|place| self.devices[*place]).collect()).unwrap_or_default()
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
