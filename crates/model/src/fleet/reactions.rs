//! Which device reacts to which: the devices of reacting groups, found by following topics from the scheduled devices.
//!
//! A reacting device is a separate publisher for each `{trigger}` in its topic, and each of these exists twice: for
//! messages whose root, the scheduled message at the beginning of the chain, is due in the warm-up, and for the measured
//! ones. Each has its own sequence numbers, so that the accounting of the measured messages has no gaps where the window
//! begins.

use std::collections::{BTreeMap, HashMap};

use super::limits::{MOST_PUBLISHERS, MOST_REACTIONS, TooLarge};
use super::{Device, Fleet, Subscriber};
use crate::topic::TopicFilter;
use crate::workload::{DeviceGroup, Workload};

/// A message of one publisher triggers a message of another publisher, or makes it send less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Number of the triggering publisher.
    pub trigger: u32,
    /// Number of the publisher that sends less, or that reacts to messages with a measured root; then the next number is the
    /// same publisher for the warm-up.
    pub reacts: u32,
}

/// The reactions of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chains {
    /// Links in the order of the chains, from their beginnings.
    pub links: Vec<Link>,
    /// Publishers and those that send less after their messages, ascending.
    pub slowdowns: Vec<Link>,
    /// A group that reacts to itself through a chain of reactions, if there is one.
    pub cycle: Option<u16>,
    /// Set if there are more publishers or reactions than can be numbered; then `links` is empty and only scheduled
    /// publishers exist.
    pub too_large: Option<TooLarge>,
}

/// A device of a reacting group, before its triggers are known.
struct Instance {
    device: Device,
    /// Filters of the subscriber on the same client.
    heard: Vec<TopicFilter>,
    /// The device is a separate publisher for each triggering device.
    by_trigger: bool,
}

/// The instances, indexed by topic filter.
struct Instances {
    all: Vec<Instance>,
    /// Instances whose filter has no wildcard, by this filter.
    exact: HashMap<String, Vec<usize>>,
    /// Instances whose filter has wildcards.
    wild: Vec<(TopicFilter, usize)>,
}

impl Instances {
    /// `to` is the filter of a group for the messages that trigger its devices.
    fn new(
        fleet: &Fleet,
        workload: &Workload,
        devices: impl Iterator<Item = Device>,
        to: impl Fn(&DeviceGroup) -> Option<&TopicFilter>,
    ) -> Instances {
        let listeners: HashMap<(u32, &str, u32), &Subscriber> = fleet
            .subscribers
            .iter()
            .filter_map(|subscriber| {
                let client = workload.subscribers[usize::from(subscriber.group)].client.as_deref()?;
                Some(((subscriber.copy, client, subscriber.index), subscriber))
            })
            .collect();
        let mut instances = Instances { all: Vec::new(), exact: HashMap::new(), wild: Vec::new() };
        for device in devices {
            let group = &workload.devices[usize::from(device.group)];
            let (Some(to), Some(client)) = (to(group), group.client.as_deref()) else { continue };
            let Some(listener) = listeners.get(&(device.copy, client, device.index)) else { continue };
            let heard = fleet.filters(workload, listener).into_iter().map(TopicFilter).collect();
            let number = instances.all.len();
            let to = fleet.fill_for(&to.0, workload, &device);
            match to.contains(['+', '#']) {
                true => instances.wild.push((TopicFilter(to), number)),
                false => instances.exact.entry(to).or_default().push(number),
            }
            instances.all.push(Instance { device, heard, by_trigger: group.topic.0.contains("{trigger") });
        }
        instances
    }

    /// The instances that a message with this topic triggers.
    fn triggered_by(&self, topic: &str) -> Vec<&Instance> {
        let wild = self.wild.iter().filter(|(to, _)| to.matches(topic)).map(|(_, number)| number);
        let exact = self.exact.get(topic).into_iter().flatten();
        let hears = |instance: &&Instance| instance.heard.iter().any(|filter| filter.matches(topic));
        exact.chain(wild).map(|number| &self.all[*number]).filter(hears).collect()
    }
}

/// Order of publishers in a fleet.
fn place(device: &Device) -> (u32, u16, u32, u32) {
    (device.copy, device.group, device.index, device.trigger)
}

/// Adds the reacting publishers to a fleet of scheduled publishers, and renumbers all of them.
pub(super) fn resolve(fleet: &mut Fleet, workload: &Workload, reacting: impl Iterator<Item = Device>) {
    resolve_within(MOST_PUBLISHERS, fleet, workload, reacting);
}

fn resolve_within(
    most_publishers: u64,
    fleet: &mut Fleet,
    workload: &Workload,
    reacting: impl Iterator<Item = Device>,
) {
    let instances = Instances::new(fleet, workload, reacting, |group| Some(&group.reaction()?.to));
    let mut known: BTreeMap<(u32, u16, u32, u32), Device> =
        fleet.devices.iter().map(|device| (place(device), *device)).collect();
    let mut waiting: Vec<Device> = fleet.devices.clone();
    let mut links = Vec::new();
    while let Some(trigger) = waiting.pop() {
        // Each reacting device counts twice. Counting stops here because there may be more than memory can hold.
        let publishers = (2 * known.len() - fleet.devices.len()) as u64;
        if publishers > most_publishers || links.len() > MOST_REACTIONS {
            let reactors = publishers > most_publishers;
            fleet.chains.too_large = Some(if reactors { TooLarge::Reactors } else { TooLarge::Reactions });
            return;
        }
        for instance in instances.triggered_by(&fleet.topic(workload, &trigger)) {
            let number = if instance.by_trigger { trigger.index } else { 0 };
            let reacts = Device { trigger: number, ..instance.device };
            links.push((place(&trigger), place(&reacts)));
            if known.insert(place(&reacts), reacts).is_none() {
                waiting.push(reacts);
            }
        }
    }
    let mut numbers = HashMap::with_capacity(known.len());
    fleet.devices.clear();
    for (place, device) in known {
        let publisher = fleet.devices.len() as u32;
        numbers.insert(place, publisher);
        fleet.devices.push(Device { publisher, ..device });
        if workload.devices[usize::from(device.group)].reaction().is_some() {
            fleet.devices.push(Device { publisher: publisher + 1, warm_up: true, ..device });
        }
    }
    let links =
        links.into_iter().map(|(trigger, reacts)| Link { trigger: numbers[&trigger], reacts: numbers[&reacts] });
    fleet.chains = in_order(links.collect(), &fleet.devices);
}

/// Finds the publishers whose messages make others send less. The publishers have their numbers already.
pub(super) fn resolve_slowdowns(fleet: &mut Fleet, workload: &Workload) {
    if fleet.chains.too_large.is_some() {
        return;
    }
    let devices = fleet.devices.iter().copied();
    let instances = Instances::new(fleet, workload, devices, |group| Some(&group.slowdown.as_ref()?.on));
    let mut links = Vec::new();
    for trigger in &fleet.devices {
        let slowed = instances.triggered_by(&fleet.topic(workload, trigger));
        links.extend(slowed.iter().map(|slowed| Link { trigger: trigger.publisher, reacts: slowed.device.publisher }));
        if links.len() > MOST_REACTIONS {
            fleet.chains.too_large = Some(TooLarge::Reactions);
            return;
        }
    }
    links.sort_unstable();
    fleet.chains.slowdowns = links;
}

/// Orders links so that a publisher triggers only after all that trigger it (Kahn's algorithm).
fn in_order(mut links: Vec<Link>, devices: &[Device]) -> Chains {
    links.sort_unstable();
    let of = |publisher: u32| {
        let from = links.partition_point(|link| link.trigger < publisher);
        let length = links[from..].partition_point(|link| link.trigger == publisher);
        &links[from..from + length]
    };
    let mut open = vec![0_u32; devices.len()];
    links.iter().for_each(|link| open[link.reacts as usize] += 1);
    let mut ready: Vec<u32> = (0..devices.len() as u32).filter(|publisher| open[*publisher as usize] == 0).collect();
    let mut ordered = Vec::with_capacity(links.len());
    while let Some(publisher) = ready.pop() {
        for link in of(publisher) {
            ordered.push(*link);
            open[link.reacts as usize] -= 1;
            if open[link.reacts as usize] == 0 {
                ready.push(link.reacts);
            }
        }
    }
    let cycle = open.iter().position(|open| *open > 0).map(|publisher| devices[publisher].group);
    Chains { links: ordered, cycle, ..Chains::default() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, parse};

    fn fleet(text: &str) -> (Workload, Fleet) {
        let workload = parse("test.yaml", text, &LoadOptions::default()).unwrap();
        let fleet = Fleet::new(&workload, 1);
        (workload, fleet)
    }

    #[test]
    fn reactions_above_the_limit_are_not_counted_out() {
        let text = "name: all
devices:
  - {name: sensor, count: 10, every: 1h, payload: 16B, topic: 'in/{index}'}
  - {name: reply, count: 5, payload: 32B, topic: 'out/{index}/{trigger}', client: hub, arrival: {reaction_to: 'in/+'}}
subscribers:
  - {name: hub, count: 5, client: hub, filters: ['in/+']}
";
        let (workload, whole) = fleet(text);
        assert_eq!(whole.devices().len(), 10 + 2 * 5 * 10);
        for (most, found) in [(110, None), (109, Some(TooLarge::Reactors))] {
            let scheduled = whole.devices().iter().filter(|device| device.group == 0).copied().collect();
            let mut again = Fleet { devices: scheduled, chains: Chains::default(), ..whole.clone() };
            let device = |index| Device { group: 1, index, ..Device::default() };
            resolve_within(most, &mut again, &workload, (0..5).map(device));
            assert_eq!(again.chains.too_large, found, "{most}");
        }
    }

    #[test]
    fn a_reaction_is_a_publisher_for_each_trigger_and_twice() {
        let (workload, fleet) = fleet(
            "name: chain
devices:
  - {name: shop, count: 4, every: 1s, payload: 100B, topic: 'centre/{index%centre}/order/{index}'}
  - name: confirmation
    count: 2
    client: centre
    payload: 100B
    arrival: {reaction_to: 'centre/{index}/order/+'}
    topic: 'shop/{trigger}/confirmation'
  - name: note
    count: 2
    client: centre
    payload: 100B
    arrival: {reaction_to: 'centre/{index}/order/+'}
    topic: 'centre/{index}/note'
subscribers:
  - {name: centres, count: 2, client: centre, filters: ['centre/{index}/order/+']}
",
        );
        let reacting: Vec<_> = fleet.devices().iter().filter(|device| device.group > 0 && !device.warm_up).collect();
        let topics: Vec<_> = reacting.iter().map(|device| fleet.topic(&workload, device)).collect();
        let expected = ["shop/0", "shop/2", "shop/1", "shop/3"].map(|shop| format!("{shop}/confirmation"));
        assert_eq!(topics[..4], expected);
        assert_eq!(topics[4..], ["centre/0/note", "centre/1/note"]);
        // Each order triggers a confirmation and a note.
        assert_eq!(fleet.links().len(), 8);
        for device in reacting {
            let twin = fleet.devices()[device.publisher as usize + 1];
            assert_eq!(twin, Device { publisher: device.publisher + 1, warm_up: true, ..*device });
        }
    }
}
