//! The latency breakdown: sightings of messages by the link emulator, compared with their deliveries.

use std::collections::HashMap;
use std::time::Duration;

use pubmark_engine::outcome::{FollowedDeliveries, FollowedDelivery};
use pubmark_engine::plan::{FOLLOWED_LIMIT, Networks, RunPlan};
use pubmark_links::Direction;
use pubmark_links::watch::{Sighting, WatchResult, WatchSpec};
use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Precision;
use pubmark_model::fleet::Fleet;
use pubmark_model::payload::SizeDistribution;
use pubmark_model::workload::{DeviceGroup, Workload};
use pubmark_protocol::header;
use pubmark_protocol::sampling::Sampling;
use pubmark_record::distribution;
use pubmark_record::latency_breakdown::{BreakdownParts, BreakdownRow, LatencyBreakdown};

/// Messages that are followed per second, at most on average.
const FOLLOWED_PER_S: f64 = 5_000.0;
/// Assumed rate of a device that sends as fast as it can, messages per second.
const FLOOD_PER_S: f64 = 100_000.0;
/// Most sightings that are stored: 48 B each.
const MOST_SIGHTINGS: usize = 800_000;
/// The parts of a message's latency add up to the whole within this time.
const AGREEMENT_NS: u64 = 50_000;

/// Selects which messages to follow, so that memory is bounded; a function of the workload and the lengths of warm-up and window.
pub fn sampling(workload: &Workload, fleet: &Fleet, warmup: Duration, window: Duration) -> Sampling {
    let duration_s = window.as_secs_f64();
    let rate = |group: u16| {
        let arrival = &workload.devices[usize::from(group)].arrival;
        arrival.mean_rate_within(warmup, window).unwrap_or(FLOOD_PER_S)
    };
    let published: f64 = fleet.devices().iter().map(|device| rate(device.group)).sum();
    // Each subscriber receives each message at most once. This is an upper bound.
    let heard = published * (1 + fleet.subscribers().len()) as f64;
    let per_run = heard * duration_s / FOLLOWED_LIMIT as f64;
    let every = (heard / FOLLOWED_PER_S).max(per_run).max(1.0);
    Sampling::one_in(every.ceil() as u64)
}

/// The messages that the emulator searches for.
pub fn watch_spec(plan: &RunPlan, sampling: Sampling) -> WatchSpec {
    let size = |group: u16| match &plan.workload.devices[usize::from(group)] {
        // Small payloads may be raised to the size of the header; `transform` steps change the size.
        DeviceGroup { size: SizeDistribution::Fixed(bytes), transform, .. }
            if *bytes as usize >= header::REACTION && transform.is_empty() =>
        {
            *bytes
        }
        _ => 0,
    };
    WatchSpec {
        run: plan.run_id,
        sampling,
        payload_bytes: plan.fleet.devices().iter().map(|device| size(device.group)).collect(),
        duration_ns: plan.timeline.duration_ns,
        most: MOST_SIGHTINGS,
    }
}

/// A message on a link, one direction.
type Key = (u32, u32, u16, Direction);

/// Sightings by message and link, the first of each connection, in the order in which they left the link.
fn by_message(sightings: &[Sighting]) -> HashMap<Key, Vec<&Sighting>> {
    let mut all: HashMap<Key, Vec<&Sighting>> = HashMap::with_capacity(sightings.len());
    for sighting in sightings {
        let key = (sighting.publisher, sighting.sequence, sighting.group, sighting.direction);
        let known = all.entry(key).or_default();
        // A TCP retransmission: the first copy is already in the list.
        if known.iter().all(|other| other.port != sighting.port) {
            known.push(sighting);
        }
    }
    all
}

/// Times of one class of messages.
struct Class {
    name: String,
    row: BreakdownRow,
    parts: [Bounds; 7],
}

impl Class {
    fn new(name: String) -> Class {
        let empty = || Bounds::new(Precision::Breakdown);
        Class { name, row: BreakdownRow::default(), parts: std::array::from_fn(|_| empty()) }
    }

    /// Enters a message: its parts in order, and the total; and how much of it may be delay of the generator: before
    /// the write, while the system held it back or a relay held it, and in the socket.
    fn enter(&mut self, parts: [Option<i64>; 6], whole_ns: i64, [lag_ns, held_ns, late_ns]: [u64; 3]) {
        self.row.complete += 1;
        let sum: i64 = parts.iter().flatten().map(|part| (*part).max(0)).sum();
        self.row.consistent += u64::from(sum.abs_diff(whole_ns) <= AGREEMENT_NS);
        let all_ns = lag_ns.saturating_add(held_ns).saturating_add(late_ns);
        let widths = [lag_ns, 0, held_ns, 0, late_ns, all_ns, all_ns];
        let all = self.parts.iter_mut().zip(parts.into_iter().chain([Some(whole_ns)])).zip(widths);
        for ((times, part), width_ns) in all {
            if let Some(part) = part {
                times.record(part, width_ns);
            }
        }
    }

    fn row(self) -> BreakdownRow {
        let [device, network_up, system, network_down, subscriber, rest, whole] =
            self.parts.map(|times| distribution::bounds(&times));
        BreakdownRow {
            class: self.name,
            parts: BreakdownParts { device, network_up, system, network_down, subscriber, rest, whole },
            ..self.row
        }
    }
}

/// The parts of a message's latency that the sightings give.
fn parts(arrived: &FollowedDelivery, up: Option<&Sighting>, down: Option<&Sighting>) -> [Option<i64>; 6] {
    let span = |from_ns: u64, to_ns: u64| Some(to_ns as i64 - from_ns as i64);
    let FollowedDelivery { due_ns, at_ns, .. } = *arrived;
    let (device, network_up) = up.map_or((None, None), |up| (span(due_ns, up.in_ns), span(up.in_ns, up.out_ns)));
    let (network_down, subscriber) =
        down.map_or((None, None), |down| (span(down.in_ns, down.out_ns), span(down.out_ns, at_ns)));
    let (system, rest) = match (up, down) {
        (Some(up), Some(down)) => (span(up.out_ns, down.in_ns), None),
        (Some(up), None) => (None, span(up.out_ns, at_ns)),
        (None, Some(down)) => (None, span(due_ns, down.in_ns)),
        (None, None) => (None, None),
    };
    [device, network_up, system, network_down, subscriber, rest]
}

/// The latency breakdown by device group. Between the links, a relay of pubmark held each message for up to `relay_ns`.
pub fn figures(
    workload: &Workload,
    fleet: &Fleet,
    networks: &Networks,
    sampling: Sampling,
    followed: &FollowedDeliveries,
    seen: &WatchResult,
    relay_ns: u64,
) -> LatencyBreakdown {
    let mut known = by_message(&seen.sightings);
    let mut arrivals: Vec<&FollowedDelivery> = followed.arrived.iter().collect();
    // The first subscriber to receive a message is the first to which the link delivered it: this distinguishes the connections of a group.
    arrivals.sort_unstable_by_key(|arrived| arrived.at_ns);
    // Messages of a group to subscribers behind links and to others are separate classes, as their parts differ.
    let mut classes: Vec<[Option<Class>; 2]> = workload.devices.iter().map(|_| [None, None]).collect();
    for arrived in arrivals {
        let group = fleet.devices()[arrived.publisher as usize].group;
        let network = networks.of_devices(group);
        if network.is_none() && arrived.network.is_none() {
            continue;
        }
        let side = usize::from(arrived.network.is_none());
        let class = classes[usize::from(group)][side].get_or_insert_with(|| Class::new(String::new()));
        class.row.followed += 1;
        let key = |network: u16, direction: Direction| (arrived.publisher, arrived.sequence, network, direction);
        let up = network.map(|network| known.get(&key(network, Direction::Up)).and_then(|all| all.first().copied()));
        let down = arrived.network.map(|network| {
            let all = known.get_mut(&key(network, Direction::Down)).filter(|all| !all.is_empty())?;
            Some(all.remove(0))
        });
        let is_whole = |seen: &Option<Option<&Sighting>>| {
            seen.is_none_or(|seen| seen.is_some_and(|seen| seen.bytes >= arrived.payload_bytes))
        };
        if is_whole(&up) && is_whole(&down) {
            let whole_ns = arrived.at_ns as i64 - arrived.due_ns as i64;
            let ours = [arrived.lag_ns, arrived.held_ns.saturating_add(relay_ns), arrived.late_ns];
            class.enter(parts(arrived, up.flatten(), down.flatten()), whole_ns, ours);
        }
    }
    let mut rows = vec![];
    for (group, sides) in workload.devices.iter().zip(classes) {
        let are_both = sides.iter().all(Option::is_some);
        for (side, class) in sides.into_iter().enumerate() {
            let Some(mut class) = class else { continue };
            let to = if side == 0 { "to subscribers behind links" } else { "to subscribers beside the system" };
            class.name = if are_both { format!("{}, {to}", group.name) } else { group.name.clone() };
            rows.push(class.row());
        }
    }
    LatencyBreakdown { one_in: sampling.every(), dropped: followed.dropped + seen.dropped, rows }
}

#[cfg(test)]
mod tests {
    use pubmark_metrics::distribution::Distribution;
    use pubmark_model::load::{LoadOptions, parse};
    use pubmark_record::latency::LatencyBounds;

    use super::*;

    const DELIVERY: FollowedDelivery = FollowedDelivery {
        publisher: 0,
        sequence: 1,
        payload_bytes: 100,
        network: Some(1),
        due_ns: 1_000,
        at_ns: 50_000,
        lag_ns: 0,
        held_ns: 0,
        late_ns: 0,
    };
    const UP: Sighting = Sighting {
        publisher: 0,
        sequence: 1,
        group: 0,
        direction: Direction::Up,
        port: 9,
        bytes: 100,
        in_ns: 2_000,
        out_ns: 10_000,
    };

    #[test]
    fn parts_that_exist_add_up_to_the_latency() {
        let down = Sighting { group: 1, direction: Direction::Down, in_ns: 30_000, out_ns: 45_000, ..UP };
        for (up, down, expected) in [
            (Some(&UP), Some(&down), [Some(1_000), Some(8_000), Some(20_000), Some(15_000), Some(5_000), None]),
            (Some(&UP), None, [Some(1_000), Some(8_000), None, None, None, Some(40_000)]),
            (None, Some(&down), [None, None, None, Some(15_000), Some(5_000), Some(29_000)]),
        ] {
            let found = parts(&DELIVERY, up, down);
            assert_eq!(found, expected);
            assert_eq!(found.iter().flatten().sum::<i64>(), 49_000);
        }
    }

    #[test]
    fn stamps_out_of_order_do_not_agree() {
        let mut class = Class::new(String::new());
        class.enter([Some(1_000), Some(2_000), None, None, None, None], 3_000, [0; 3]);
        class.enter([Some(400_000), Some(-300_000), None, None, None, None], 100_000, [0; 3]);
        assert_eq!((class.row.complete, class.row.consistent), (2, 1));
    }

    #[test]
    fn what_the_system_held_back_widens_its_part_and_the_whole() {
        let mut class = Class::new(String::new());
        let parts = [Some(10_000), Some(20_000), Some(30_000), Some(20_000), Some(10_000), None];
        class.enter(parts, 90_000, [1_000, 5_000, 2_000]);
        // The means are exact; the buckets of a histogram are not.
        let mean_us = |times: &Distribution| times.mean_ns().map(|mean_ns| (mean_ns / 1e3).round() as i64);
        let widths = class.parts.each_ref().map(|times| Some(mean_us(&times.upper)? - mean_us(&times.lower)?));
        assert_eq!(widths, [Some(1), Some(0), Some(5), Some(0), Some(2), None, Some(8)]);
    }

    #[test]
    fn what_a_relay_may_have_held_is_not_the_system_s() {
        let text = "name: all
devices:
  - {name: sensor, count: 1, every: 1s, payload: 100B, topic: 'in/{index}'}
subscribers:
  - {name: dashboard, count: 1, filters: ['in/+']}
";
        let workload = parse("test.yaml", text, &LoadOptions::default()).unwrap();
        let fleet = Fleet::new(&workload, 1);
        let networks = Networks { devices: vec![Some(0)], subscribers: vec![Some(1)], ..Networks::none() };
        let followed = FollowedDeliveries { arrived: vec![DELIVERY], dropped: 0 };
        let down = Sighting { group: 1, direction: Direction::Down, in_ns: 30_000, out_ns: 45_000, ..UP };
        let seen = WatchResult { sightings: vec![UP, down], dropped: 0 };
        let of = |relay_ns: u64| {
            figures(&workload, &fleet, &networks, Sampling::one_in(1), &followed, &seen, relay_ns).rows.remove(0).parts
        };
        let ends = |part: Option<LatencyBounds>| {
            let part = part.unwrap();
            [part.lower.unwrap().mean, part.upper.mean].map(|us| us.round())
        };
        assert_eq!(ends(of(0).system), [20.0, 20.0]);
        assert_eq!((ends(of(5_000).system), ends(of(5_000).whole)), ([15.0, 20.0], [44.0, 49.0]));
        assert_eq!(ends(of(5_000).network_down), [15.0, 15.0]);
        assert_eq!(ends(of(u64::MAX).system), [0.0, 20.0], "unknown");
    }

    #[test]
    fn repetitions_on_a_connection_are_one_sighting() {
        let again = Sighting { out_ns: 99_000, ..UP };
        let other = Sighting { port: 10, ..UP };
        let all = [UP, again, other];
        let known = by_message(&all);
        assert_eq!(known[&(0, 1, 0, Direction::Up)], [&UP, &other]);
    }
}
