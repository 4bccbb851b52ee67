//! Measured limits of client libraries. A library that is given more loses messages itself, and the loss would be attributed to the system;
//! a workload above a limit is therefore refused before the run.

use std::collections::BTreeMap;

use pubmark_model::arrival::Arrival;
use pubmark_model::fleet::{Device, Fleet};
use pubmark_model::workload::{DeviceGroup, Workload};

use pubmark_protocols::{PROTOCOLS, Protocol, ProtocolPair};

/// The first property of a workload that exceeds a limit of a client library, in a sentence with an alternative.
pub fn too_much(workload: &Workload, protocol_pair: ProtocolPair) -> Option<String> {
    [protocol_pair.publish, protocol_pair.subscribe].into_iter().find_map(|protocol| {
        let most_per_s = protocol.capabilities.features.maximum_messages_per_s?;
        too_large(workload, protocol).or_else(|| too_fast(workload, protocol, most_per_s))
    })
}

/// The same for the deliveries of a fleet: each message counts once for each subscriber that receives it.
pub fn too_many_deliveries(workload: &Workload, fleet: &Fleet, protocol_pair: ProtocolPair) -> Option<String> {
    let most_per_s = protocol_pair.subscribe.capabilities.features.maximum_messages_per_s?;
    let rate = |device: &Device| workload.devices.get(usize::from(device.group)).map_or(0.0, each_per_s);
    let rates: BTreeMap<u32, f64> = fleet.devices().iter().map(|device| (device.publisher, rate(device))).collect();
    let heard = fleet.streams(workload);
    let per_s: f64 = heard.iter().flat_map(|heard| heard.iter()).filter_map(|one| rates.get(&one.publisher)).sum();
    (per_s > f64::from(most_per_s)).then(|| {
        let (named, instead) = (library(protocol_pair.subscribe), instead(protocol_pair.subscribe));
        format!("{per_s:.0} deliveries a second are more than the {most_per_s} that {named} carries{instead}")
    })
}

fn too_large(workload: &Workload, protocol: &Protocol) -> Option<String> {
    let most = protocol.capabilities.maximum_payload_bytes;
    let group = workload.devices.iter().find(|group| group.largest_payload_bytes() > most)?;
    let (name, bytes) = (&group.name, group.largest_payload_bytes());
    let named = library(protocol);
    Some(format!(
        "device group `{name}` sends up to {bytes} B, more than the {most} B that {named} carries{}",
        instead(protocol)
    ))
}

fn too_fast(workload: &Workload, protocol: &Protocol, most_per_s: u32) -> Option<String> {
    let named = library(protocol);
    if let Some(group) = workload.devices.iter().find(|group| matches!(group.arrival, Arrival::Flood)) {
        let name = &group.name;
        return Some(format!(
            "device group `{name}` sends as fast as it can, {named} carries {most_per_s} messages a second{}",
            instead(protocol)
        ));
    }
    let per_s: f64 = workload.devices.iter().map(|group| each_per_s(group) * f64::from(group.count)).sum();
    (per_s > f64::from(most_per_s)).then(|| {
        format!("{per_s:.0} messages a second are more than the {most_per_s} that {named} carries{}", instead(protocol))
    })
}

/// Messages per second of one device at the peak of its day; 0 where its sends are triggered by other events.
fn each_per_s(group: &DeviceGroup) -> f64 {
    group.arrival.peak_rate_per_s().unwrap_or(0.0)
}

/// Name of the client library; the protocol's own name where it has only one.
pub fn library(protocol: &Protocol) -> &'static str {
    protocol.client.map_or(protocol.capabilities.name, |client| client.name)
}

/// Names another client library of the protocol without such limits; the text is the end of a sentence.
pub fn instead(protocol: &Protocol) -> String {
    let carries_more = |other: &&Protocol| {
        other.capabilities.name == protocol.capabilities.name
            && other.capabilities.features.maximum_messages_per_s.is_none()
    };
    let other = PROTOCOLS.iter().find(carries_more).and_then(|other| other.client);
    match other.filter(|_| protocol.client.is_some()) {
        Some(client) => format!("; `--client {}` carries more", client.name),
        None => String::new(),
    }
}
