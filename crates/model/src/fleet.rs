//! The fleet as a list: every device and subscriber of a workload, their names, and which subscriber receives from which
//! publisher.
//!
//! A device is the same device (same schedule, same topic) on every node: its identity is (copy, group, index). Its
//! `publisher` number is only its position in this fleet. Start with [`Fleet::new`].

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

mod identities;
mod limits;
mod on_nodes;
mod reactions;

pub use limits::{ClientCounts, MOST_PUBLICATIONS, MOST_PUBLISHERS, TooLarge};
pub use on_nodes::{ConnectionCounts, ConnectionsOnNodes, SecondConnection};
pub use reactions::Link;

use crate::placement::{Copies, GroupNodes, NodeLabels};
use crate::topic::TopicFilter;
use crate::workload::{DeviceGroup, Workload};

/// One emulated publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// Number in the fleet, dense from 0; part of every header.
    pub publisher: u32,
    /// Index into [`Workload::devices`].
    pub group: u16,
    /// Copy of the workload that the device belongs to, from 0.
    pub copy: u32,
    /// Number within its group and copy, from 0.
    pub index: u32,
    /// For a reaction: `index` of the device that triggers it, if the topic contains `{trigger}`; otherwise 0.
    pub trigger: u32,
    /// For a reaction: this publisher sends the reactions to messages of the warm-up.
    pub warm_up: bool,
}

impl Device {
    /// `{device}` in topics and bodies: `copy-index`, unique in its group.
    pub fn name(&self) -> String {
        format!("{}-{}", self.copy, self.index)
    }

    /// Length of the device's name in bytes.
    pub fn name_bytes(&self) -> u8 {
        let digits = |number: u32| number.checked_ilog10().unwrap_or(0) as u8 + 1;
        digits(self.copy) + 1 + digits(self.index)
    }
}

/// One subscriber with its own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subscriber {
    /// Number in the fleet, dense from 0.
    pub number: u32,
    /// Index into [`Workload::subscribers`].
    pub group: u16,
    /// Copy of the workload that the subscriber belongs to, from 0.
    pub copy: u32,
    /// Number within its group and copy, from 0.
    pub index: u32,
}

/// A publisher whose messages a subscriber receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSource {
    /// The publisher's number.
    pub publisher: u32,
    /// How many of the subscriber's filters match its topic, at least 1. A system may send a copy for each.
    pub filters: u16,
}

/// All devices and subscribers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    devices: Vec<Device>,
    subscribers: Vec<Subscriber>,
    chains: reactions::Chains,
    copies: Copies,
}

impl Fleet {
    /// Lists `copies` copies of the workload by copy, group and index. Subscribers exist once in each copy if the workload
    /// places them on every node, otherwise once in total.
    pub fn new(workload: &Workload, copies: u32) -> Fleet {
        Fleet::of_copies(workload, &Copies::of_all(&workload.placements(), copies))
    }

    /// The fleet of a run on these nodes: the workload's placement says how many copies of each group there are.
    pub fn on_nodes(workload: &Workload, nodes: NodeLabels<'_>) -> Fleet {
        Fleet::of_copies(workload, &GroupNodes::of(&workload.placements(), nodes).copies())
    }

    /// Number of copies of each group.
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// The fleet with this number of copies of each group.
    pub fn of_copies(workload: &Workload, copies: &Copies) -> Fleet {
        // By copy, group, index.
        let places = |copies: &[u32], counts: Vec<u32>| {
            let groups: Vec<(u32, u32)> = copies.iter().copied().zip(counts).collect();
            let most = copies.iter().copied().max().unwrap_or(0);
            (0..most).flat_map(move |copy| {
                let there: Vec<(u16, u32)> = (0..)
                    .zip(&groups)
                    .filter(|(_, (copies, _))| copy < *copies)
                    .map(|(group, (_, count))| (group, *count))
                    .collect();
                there.into_iter().flat_map(move |(group, count)| (0..count).map(move |index| (copy, group, index)))
            })
        };
        let device_counts: Vec<u32> = workload.devices.iter().map(|group| group.count).collect();
        let subscriber_counts = workload.subscribers.iter().map(|group| group.count).collect();
        let device = |(copy, group, index)| Device { group, copy, index, ..Device::default() };
        let all = || places(&copies.devices, device_counts.clone()).map(device);
        let reacts = |device: &Device| workload.devices[usize::from(device.group)].reaction().is_some();
        let scheduled = (0..).zip(all().filter(|device| !reacts(device)));
        let mut fleet = Fleet {
            devices: scheduled.map(|(publisher, device)| Device { publisher, ..device }).collect(),
            subscribers: (0..)
                .zip(places(&copies.subscribers, subscriber_counts))
                .map(|(number, (copy, group, index))| Subscriber { number, group, copy, index })
                .collect(),
            chains: reactions::Chains::default(),
            copies: copies.clone(),
        };
        if workload.has_reactions() {
            reactions::resolve(&mut fleet, workload, all().filter(reacts));
        }
        if workload.has_slowdowns() {
            reactions::resolve_slowdowns(&mut fleet, workload);
        }
        fleet
    }

    /// Pairs of triggering and reacting publisher, in the order of the chains from their beginnings.
    pub fn links(&self) -> &[Link] {
        &self.chains.links
    }

    /// Pairs of a publisher and one that sends less after its messages, ascending.
    pub fn slowdowns(&self) -> &[Link] {
        &self.chains.slowdowns
    }

    /// A group that reacts to itself through a chain of reactions; a validated workload has none.
    pub(crate) fn cycle(&self) -> Option<u16> {
        self.chains.cycle
    }

    /// Number of emulated devices: a device that is several publishers because it reacts counts once.
    pub fn device_count(&self) -> usize {
        (0..self.devices.len() as u32).filter(|publisher| self.leads(*publisher)).count()
    }

    /// Is it the first publisher of its device?
    pub fn leads(&self, publisher: u32) -> bool {
        let identity = |place: usize| {
            let device = &self.devices[place];
            (device.copy, device.group, device.index)
        };
        let place = publisher as usize;
        place == 0 || identity(place - 1) != identity(place)
    }

    /// The text with the placeholders of a device replaced.
    fn fill_for(&self, template: &str, workload: &Workload, device: &Device) -> String {
        let group = &workload.devices[usize::from(device.group)];
        fill(template, |name| device_word(name, workload, group, device))
    }

    /// Every publisher; a device's `publisher` is its index here.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Every subscriber; a subscriber's `number` is its index here.
    pub fn subscribers(&self) -> &[Subscriber] {
        &self.subscribers
    }

    /// Topic of a device: the template of its group with these placeholders replaced: `{workload}`, `{group}`, `{domain}`
    /// and `{type}` (the two halves of the group's name; a name without `/` is the type, and the workload is its domain),
    /// `{qos}` (0 to 2), `{copy}`, `{index}`, `{trigger}` and `{device}` (`copy-index`, unique in its group).
    /// `{index%NAME}` is the index modulo the number of devices, subscribers or clients with the name NAME.
    pub fn topic(&self, workload: &Workload, device: &Device) -> String {
        self.fill_for(&workload.devices[usize::from(device.group)].topic.0, workload, device)
    }

    /// Topic of a device's will, with the same placeholders as its topic; `None` if it has no will.
    pub fn will_topic(&self, workload: &Workload, device: &Device) -> Option<String> {
        let group = &workload.devices[usize::from(device.group)];
        let will = group.will.as_ref()?;
        Some(self.fill_for(&will.topic.0, workload, device))
    }

    /// Filters of a subscriber with `{index}`, `{copy}` and `{workload}` replaced, without repetitions (a system has one
    /// subscription for each filter).
    pub fn filters(&self, workload: &Workload, subscriber: &Subscriber) -> Vec<String> {
        let group = &workload.subscribers[usize::from(subscriber.group)];
        let mut filters: Vec<String> = Vec::with_capacity(group.filters.len());
        for filter in &group.filters {
            let filled = fill(&filter.0, |name| match name {
                "index" => Some(subscriber.index.to_string()),
                "copy" => Some(subscriber.copy.to_string()),
                "workload" => Some(workload.name.clone()),
                other => modulo(other, workload, subscriber.index, 0),
            });
            if !filters.contains(&filled) {
                filters.push(filled);
            }
        }
        filters
    }

    /// Client identifier of a device in run number `run`: at most 19 letters and digits, which every MQTT server must
    /// accept (MQTT 5.0 §3.1.3.1).
    pub fn client_id(&self, run: u32, device: &Device) -> String {
        format!("pm{:06x}p{}", run & 0x00ff_ffff, device.publisher)
    }

    /// Client identifier of a subscriber in run number `run`, in the same format.
    pub fn subscriber_client_id(&self, run: u32, subscriber: &Subscriber) -> String {
        format!("pm{:06x}s{}", run & 0x00ff_ffff, subscriber.number)
    }

    /// Sources of each subscriber by subscriber number, publishers ascending. Subscribers with the same filters share a
    /// list.
    pub fn streams(&self, workload: &Workload) -> Vec<Arc<[StreamSource]>> {
        let topics = Topics::new(self, workload);
        let mut known: HashMap<Vec<String>, Arc<[StreamSource]>> = HashMap::new();
        self.subscribers
            .iter()
            .map(|subscriber| {
                let mut filters = self.filters(workload, subscriber);
                filters.sort_unstable();
                known.entry(filters).or_insert_with_key(|filters| topics.sources_of(filters)).clone()
            })
            .collect()
    }

    /// Audience of each subscriber by subscriber number: the subscriber alone or, with a shared subscription, all members
    /// of the shared group. An audience receives a message once. Audiences are numbered densely from 0, in the order of
    /// their first subscribers.
    pub fn audiences(&self, workload: &Workload) -> Vec<u32> {
        let mut shared: HashMap<(u16, Vec<String>), u32> = HashMap::new();
        let mut next = 0;
        let mut fresh = || {
            next += 1;
            next - 1
        };
        let audience = |subscriber: &Subscriber| match workload.subscribers[usize::from(subscriber.group)].shared {
            None => fresh(),
            // Members differ in their filters only where these name the copy of the workload.
            Some(_) => *shared.entry((subscriber.group, self.filters(workload, subscriber))).or_insert_with(&mut fresh),
        };
        self.subscribers.iter().map(audience).collect()
    }

    /// Number of different topics that devices publish to.
    pub fn topic_count(&self, workload: &Workload) -> usize {
        Topics::new(self, workload).entries.len()
    }
}

/// The value of a placeholder of a topic template.
fn device_word(name: &str, workload: &Workload, group: &DeviceGroup, device: &Device) -> Option<String> {
    let halves = group.name.split_once('/');
    match name {
        "workload" => Some(workload.name.clone()),
        "group" => Some(group.name.clone()),
        "domain" => Some(halves.map_or(workload.name.as_str(), |(domain, _)| domain).to_owned()),
        "type" => Some(halves.map_or(group.name.as_str(), |(_, kind)| kind).to_owned()),
        "qos" => Some(group.qos.level().to_string()),
        "device" => Some(device.name()),
        "copy" => Some(device.copy.to_string()),
        "index" => Some(device.index.to_string()),
        "trigger" => Some(device.trigger.to_string()),
        other => modulo(other, workload, device.index, device.trigger),
    }
}

/// `index%NAME` and `trigger%NAME`: the number modulo the count of NAME.
fn modulo(word: &str, workload: &Workload, index: u32, trigger: u32) -> Option<String> {
    let (number, name) = word.split_once('%')?;
    let number = match number {
        "index" => index,
        "trigger" => trigger,
        _ => return None,
    };
    number.checked_rem(workload.count_of(name)?).map(|rest| rest.to_string())
}

/// Replaces each `{name}` for which `word` returns a value; everything else stays unchanged.
fn fill(template: &str, word: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let filled = rest.find('}').and_then(|close| word(&rest[1..close]).map(|value| (close, value)));
        match filled {
            Some((close, value)) => {
                out.push_str(&value);
                rest = &rest[close + 1..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The fleet's topics in byte order, so that only topics with the same beginning are compared with a filter.
struct Topics {
    entries: Vec<(String, Vec<u32>)>,
}

impl Topics {
    fn new(fleet: &Fleet, workload: &Workload) -> Topics {
        let mut publishers: HashMap<String, Vec<u32>> = HashMap::new();
        for device in &fleet.devices {
            publishers.entry(fleet.topic(workload, device)).or_default().push(device.publisher);
        }
        let mut entries: Vec<_> = publishers.into_iter().collect();
        entries.sort_unstable();
        Topics { entries }
    }

    fn sources_of(&self, filters: &[String]) -> Arc<[StreamSource]> {
        let mut publishers: Vec<u32> = Vec::new();
        for filter in filters {
            let matching = TopicFilter(filter.clone());
            for (topic, of_topic) in &self.entries[self.candidates(filter)] {
                if matching.matches(topic) {
                    publishers.extend(of_topic);
                }
            }
        }
        publishers.sort_unstable();
        publishers
            .chunk_by(|a, b| a == b)
            .map(|same| StreamSource { publisher: same[0], filters: u16::try_from(same.len()).unwrap_or(u16::MAX) })
            .collect()
    }

    /// The topics that start with the filter's levels before its first wildcard; `a/#` also matches `a`, so the last `/` is
    /// not required.
    fn candidates(&self, filter: &str) -> Range<usize> {
        let literal = match filter.find(['+', '#']) {
            Some(wildcard) => filter[..wildcard].trim_end_matches('/'),
            None => filter,
        };
        let from = self.entries.partition_point(|(topic, _)| topic.as_str() < literal);
        let length = self.entries[from..].partition_point(|(topic, _)| topic.starts_with(literal));
        from..from + length
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
