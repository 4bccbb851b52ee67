//! The hash of a schedule: 64 bits over every device's due times, configured sizes and planned disconnects and reconnects,
//! the steps of `transform`, and which messages make devices send less.
//!
//! The hash distinguishes schedules; it is not cryptographic. It does not include seed, topic, protocol and system: two
//! seeds that lead to the same schedule have the same hash. Of reactions it includes only bursts: which device triggers
//! which, how many messages, the time between them, and draws of their sizes and think times.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::arrival::Arrival;
use crate::fleet::{Device, Fleet, Link};
use crate::random::{self, mix};
use crate::schedule::{ChurnCursor, Cursor, Due, Rules, Timeline, Transition, identity_key};
use crate::states::State;
use crate::transform;
use crate::workload::{DeviceGroup, Workload};

/// Approximate maximum of messages and changes of connectivity that are hashed, about 20 seconds of work. Of a longer
/// schedule, the beginning and the length are hashed.
const MOST_HASHED: f64 = (1u64 << 30) as f64;

/// Number of messages between two checks whether the computation was cancelled.
const LOOK_EVERY: u32 = 1 << 16;

/// The hash of one device's schedule, computed incrementally. Messages and changes may be interleaved in any way, as long
/// as each kind is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceHash {
    dues: u64,
    changes: u64,
}

impl DeviceHash {
    /// The hash of a device without messages and changes.
    pub fn new(rules: &Rules, device: &Device, online_at_start: bool) -> DeviceHash {
        let identity = identity_key(rules.name_key, device);
        DeviceHash { dues: identity, changes: mix(identity ^ u64::from(online_at_start)) }
    }

    /// Adds the next message, sent or not.
    pub fn add_due(&mut self, due: &Due) {
        self.dues = mix(mix(self.dues ^ due.due_ns as u64).wrapping_add(u64::from(due.configured_bytes)));
    }

    /// Adds the next planned disconnect or reconnect.
    pub fn add_transition(&mut self, transition: &Transition) {
        self.changes = mix(mix(self.changes ^ transition.at_ns as u64).wrapping_add(u64::from(transition.online)));
    }

    /// The hash of what was added.
    pub fn value(&self) -> u64 {
        mix(self.dues ^ self.changes.rotate_left(32))
    }
}

/// Hash and message count of a whole schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The hash: 16 hexadecimal digits, or `none` if any group floods, because a flood has no schedule. Of a schedule of
    /// more than about a billion messages, only the beginning and its length are hashed.
    pub hash: String,
    /// Messages due in the measured window; `None` if any group floods, or if there are more than are hashed. Reactions are
    /// not included.
    pub offered: Option<u64>,
}

/// Computes the summary of a schedule.
pub fn summary(workload: &Workload, fleet: &Fleet, seed: u64, timeline: &Timeline) -> Summary {
    summary_unless(workload, fleet, seed, timeline, &AtomicBool::new(false)).expect("nobody gives it up")
}

/// As [`summary`], but returns `None` if another thread sets `stopped`.
pub fn summary_unless(
    workload: &Workload,
    fleet: &Fleet,
    seed: u64,
    timeline: &Timeline,
    stopped: &AtomicBool,
) -> Option<Summary> {
    summary_of_most(MOST_HASHED, workload, fleet, seed, timeline, stopped)
}

/// [`Summary::hash`] of a schedule.
pub fn hash(workload: &Workload, fleet: &Fleet, seed: u64, timeline: &Timeline) -> String {
    summary(workload, fleet, seed, timeline).hash
}

fn summary_of_most(
    most: f64,
    workload: &Workload,
    fleet: &Fleet,
    seed: u64,
    timeline: &Timeline,
    stopped: &AtomicBool,
) -> Option<Summary> {
    let part = beginning(most, workload, fleet, timeline);
    let rules = Rules::all(workload, seed, &part);
    if rules.iter().any(Rules::is_flood) {
        return Some(Summary { hash: "none".to_owned(), offered: None });
    }
    let mut offered = 0;
    let mut of_device = |device: &Device| device_hash(&rules[usize::from(device.group)], device, &mut offered, stopped);
    let values: Vec<u64> = fleet.devices().iter().map(&mut of_device).collect::<Option<_>>()?;
    let folded = fold(workload, fleet, &rules, &values);
    if part == *timeline {
        return Some(Summary { hash: shown(folded), offered: Some(offered) });
    }
    let length = timeline.warmup_ns.to_le_bytes().into_iter().chain(timeline.duration_ns.to_le_bytes());
    Some(Summary { hash: shown(random::fold(folded, &length.collect::<Vec<u8>>())), offered: None })
}

/// The beginning of a timeline with about `most` messages and changes; for most schedules this is the whole timeline.
fn beginning(most: f64, workload: &Workload, fleet: &Fleet, timeline: &Timeline) -> Timeline {
    let draws = DrawCount::new(workload, fleet);
    let mut kept_ns = timeline.warmup_ns.saturating_add(timeline.duration_ns);
    let mut share = most / draws.within(timeline);
    if share.is_nan() || share >= 1.0 {
        return *timeline;
    }
    // The beginning of a trace or of a profile can have more messages than its share of the length.
    loop {
        kept_ns = (kept_ns as f64 * share) as u64;
        let part = first_of(timeline, kept_ns);
        share = most / draws.within(&part);
        if share >= 0.99 {
            return part;
        }
    }
}

/// The beginning of a timeline, of this length.
fn first_of(timeline: &Timeline, kept_ns: u64) -> Timeline {
    let warmup_ns = timeline.warmup_ns;
    match kept_ns.checked_sub(warmup_ns) {
        Some(duration_ns) => Timeline { warmup_ns, duration_ns },
        // The measured window is always hashed, from its beginning.
        None => Timeline { warmup_ns: 0, duration_ns: kept_ns },
    }
}

/// The number of draws of a fleet: messages, checks that strike, on and off periods.
struct DrawCount<'a> {
    /// Of processes whose mean rate is the same at all times.
    constant_per_s: f64,
    /// Groups with traces and profiles, with their numbers of devices.
    variable: Vec<(&'a Arrival, f64)>,
}

impl<'a> DrawCount<'a> {
    fn new(workload: &'a Workload, fleet: &Fleet) -> DrawCount<'a> {
        let groups = &workload.devices;
        let per_s: Vec<f64> = groups.iter().map(constant_draws_per_s).collect();
        let mut devices = vec![0.0; groups.len()];
        fleet.devices().iter().for_each(|device| devices[usize::from(device.group)] += 1.0);
        let of_groups = groups.iter().map(|group| &group.arrival).zip(devices);
        DrawCount {
            constant_per_s: fleet.devices().iter().map(|device| per_s[usize::from(device.group)]).sum(),
            variable: of_groups
                .filter(|(arrival, _)| matches!(arrival, Arrival::Trace { .. } | Arrival::Profiled { .. }))
                .collect(),
        }
    }

    /// Of this beginning of the timeline.
    fn within(&self, part: &Timeline) -> f64 {
        let [warmup, window] = [part.warmup_ns, part.duration_ns].map(Duration::from_nanos);
        let length = warmup.saturating_add(window);
        let of_group = |(arrival, devices): &(&Arrival, f64)| {
            let messages = match arrival {
                Arrival::Profiled { base, profile } => {
                    base.mean_rate_per_s().unwrap_or(0.0) * profile.passed(warmup, window).as_secs_f64()
                }
                arrival => arrival.trace_messages(length).unwrap_or(0) as f64,
            };
            messages * devices
        };
        self.constant_per_s * length.as_secs_f64() + self.variable.iter().map(of_group).sum::<f64>()
    }
}

/// Draws per second of a device; without the messages of a trace or profile.
fn constant_draws_per_s(group: &DeviceGroup) -> f64 {
    let strikes = group.churn.map_or(0.0, |churn| {
        let of = |chance: f64, period: Duration| if period.is_zero() { 0.0 } else { chance / period.as_secs_f64() };
        of(churn.disconnect_chance, churn.disconnect_check) + of(churn.reconnect_chance, churn.reconnect_check)
    });
    let periods = match &group.arrival {
        Arrival::OnOff { mean_on, mean_off, .. } => 2.0 / (*mean_on + *mean_off).as_secs_f64().max(1e-9),
        Arrival::States(states) => {
            let length_s = |(state, share): (&State, &f64)| share / state.length.mean().as_secs_f64().max(1e-9);
            states.all().iter().zip(states.shares()).map(length_s).sum()
        }
        _ => 0.0,
    };
    let messages = match &group.arrival {
        Arrival::Trace { .. } | Arrival::Profiled { .. } => 0.0,
        arrival => arrival.mean_rate_per_s().unwrap_or(0.0),
    };
    messages + strikes + periods
}

/// Combines the [`DeviceHash::value`]s, indexed by publisher number, to the result of [`hash`]; `none` if any group floods.
/// `rules` are those of all groups.
pub fn combine(workload: &Workload, fleet: &Fleet, rules: &[Rules], values: &[u64]) -> String {
    if rules.iter().any(Rules::is_flood) {
        return "none".to_owned();
    }
    shown(fold(workload, fleet, rules, values))
}

fn fold(workload: &Workload, fleet: &Fleet, rules: &[Rules], values: &[u64]) -> u64 {
    let scheduled = in_identity_order(workload, fleet)
        .into_iter()
        .fold(of_steps(workload), |key, device| random::fold(key, &values[device.publisher as usize].to_le_bytes()));
    let mut policies = bursts(fleet, rules);
    policies.extend(slowdowns(workload, fleet, rules));
    // Sorted, so that the hash does not depend on the order of the fleet.
    policies.sort_unstable();
    policies.into_iter().fold(scheduled, |key, burst| random::fold(key, &burst.to_le_bytes()))
}

/// Number of draws that are hashed for each group with bursts.
const BURST_DRAWS: u32 = 64;

/// A hash of each group whose reactions are bursts. Reactions of one message are not hashed, because this would change the
/// hash of every existing schedule with reactions.
fn bursts(fleet: &Fleet, rules: &[Rules]) -> Vec<u64> {
    let of_burst = rules.iter().map(|rules| {
        let numbers = rules.burst_draws(BURST_DRAWS)?;
        Some(numbers.into_iter().fold(rules.name_key, |key, number| random::fold(key, &number.to_le_bytes())))
    });
    with_links(of_burst.collect(), fleet, fleet.links(), rules)
}

/// A hash of each group whose devices send less after a message.
fn slowdowns(workload: &Workload, fleet: &Fleet, rules: &[Rules]) -> Vec<u64> {
    let of_slowdown = workload.devices.iter().zip(rules).map(|(group, rules)| {
        let slowdown = group.slowdown.as_ref()?;
        let numbers = [slowdown.interval.unwrap_or(Duration::MAX), slowdown.length].map(|time| time.as_nanos());
        let named = random::fold(rules.name_key, b"slowdown");
        Some(numbers.into_iter().fold(named, |key, number| random::fold(key, &number.to_le_bytes())))
    });
    with_links(of_slowdown.collect(), fleet, fleet.slowdowns(), rules)
}

/// Adds the links to the hashes of the groups that they lead to.
fn with_links(mut of_groups: Vec<Option<u64>>, fleet: &Fleet, links: &[Link], rules: &[Rules]) -> Vec<u64> {
    if of_groups.iter().all(Option::is_none) {
        return vec![];
    }
    let identity = |device: &Device| identity_key(rules[usize::from(device.group)].name_key, device);
    for link in links {
        let [trigger, reacts] = [link.trigger, link.reacts].map(|number| &fleet.devices()[number as usize]);
        if let Some(hash) = &mut of_groups[usize::from(reacts.group)] {
            // Added with a commutative operation, because links have no order.
            *hash = hash.wrapping_add(mix(identity(reacts) ^ identity(trigger).rotate_left(32)));
        }
    }
    of_groups.into_iter().flatten().collect()
}

/// Hash of the transform steps of the groups, by group name: 0 if no group has steps.
fn of_steps(workload: &Workload) -> u64 {
    let mut groups: Vec<&DeviceGroup> = workload.devices.iter().filter(|group| !group.transform.is_empty()).collect();
    groups.sort_by_key(|group| &group.name);
    groups.into_iter().fold(0, |key, group| {
        let named = random::fold(key, group.name.as_bytes());
        random::fold(named, transform::words(&group.transform).as_bytes())
    })
}

fn shown(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Scheduled devices by (copy, group name, index), an order that does not depend on the order of the fleet.
pub(super) fn in_identity_order(workload: &Workload, fleet: &Fleet) -> Vec<Device> {
    // Reacting devices have no schedule.
    let scheduled = |device: &&Device| workload.devices[usize::from(device.group)].reaction().is_none();
    let mut devices: Vec<Device> = fleet.devices().iter().filter(scheduled).copied().collect();
    devices.sort_by_key(|device| (device.copy, &workload.devices[usize::from(device.group)].name, device.index));
    devices
}

/// Hash of a device's schedule; adds its messages in the measured window to `offered`. `None` if it was cancelled.
fn device_hash(rules: &Rules, device: &Device, offered: &mut u64, stopped: &AtomicBool) -> Option<u64> {
    let mut churn = ChurnCursor::new(rules, device);
    let mut hash = DeviceHash::new(rules, device, churn.online_at_start());
    let mut cursor = Cursor::new(rules, device);
    let mut taken = 0u32;
    let mut is_wanted = || {
        taken = taken.wrapping_add(1);
        !taken.is_multiple_of(LOOK_EVERY) || !stopped.load(Relaxed)
    };
    while let Some(due) = cursor.take(rules) {
        hash.add_due(&due);
        *offered += u64::from(due.due_ns >= 0 && rules.think.is_none());
        is_wanted().then_some(())?;
    }
    while let Some(transition) = churn.take(rules) {
        hash.add_transition(&transition);
        is_wanted().then_some(())?;
    }
    (!stopped.load(Relaxed)).then(|| hash.value())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, load};

    const MINUTE: Timeline = Timeline { warmup_ns: 5_000_000_000, duration_ns: 60_000_000_000 };

    fn hashed(most: f64, seed: u64, timeline: &Timeline) -> String {
        let workload = load("smart-city", &LoadOptions::default()).unwrap();
        let fleet = Fleet::new(&workload, 1);
        summary_of_most(most, &workload, &fleet, seed, timeline, &AtomicBool::new(false)).unwrap().hash
    }

    #[test]
    fn a_long_schedule_is_hashed_by_its_beginning_and_its_length() {
        let whole = hashed(MOST_HASHED, 1, &MINUTE);
        let longer = Timeline { duration_ns: 61_000_000_000, ..MINUTE };
        for most in [10.0, 1_000.0] {
            let part = hashed(most, 1, &MINUTE);
            assert_eq!(part, hashed(most, 1, &MINUTE));
            assert_ne!(part, whole);
            assert_ne!(part, hashed(most, 1, &longer), "the length counts");
        }
        assert_ne!(hashed(1_000.0, 1, &MINUTE), hashed(1_000.0, 2, &MINUTE), "the beginning counts");
    }

    /// Without the bound, a week of 20,000 messages per second took minutes.
    #[test]
    fn the_work_is_bounded_whatever_the_length() {
        let workload = load("fan-in", &LoadOptions { scale: 20, ..LoadOptions::default() }).unwrap();
        let fleet = Fleet::new(&workload, 1);
        let week = Timeline { warmup_ns: 5_000_000_000, duration_ns: 168 * 3_600_000_000_000 };
        let part = beginning(1e6, &workload, &fleet, &week);
        let devices = fleet.devices().len() as f64;
        let messages = devices * 10.0 * (part.warmup_ns + part.duration_ns) as f64 / 1e9;
        assert!((0.9e6..1.1e6).contains(&messages), "{messages} of {devices} devices");
        assert_eq!(beginning(MOST_HASHED, &workload, &fleet, &MINUTE), MINUTE);
    }

    /// Without the bound, a trace of a million times and a thousand devices was hashed completely, because it has no rate.
    #[test]
    fn a_trace_that_is_not_repeated_and_a_steep_profile_are_bounded_as_well() {
        let draws = |lines: &str| {
            let text =
                format!("name: t\ndevices: [{{name: d, count: 1000, payload: 80B, {lines}}}]\nsubscribers: []\n");
            let workload = crate::load::parse("t.yaml", &text, &LoadOptions::default()).unwrap();
            let fleet = Fleet::new(&workload, 1);
            let part = beginning(20_000.0, &workload, &fleet, &MINUTE);
            let rules = Rules::all(&workload, 1, &part);
            let of = |device: &Device| {
                let mut cursor = Cursor::new(&rules[0], device);
                std::iter::from_fn(|| cursor.take_time(&rules[0])).count()
            };
            fleet.devices().iter().map(of).sum::<usize>()
        };
        let early: Vec<String> = (0..100).map(|number| format!("{number}ms")).collect();
        let even: Vec<String> = (0..100).map(|number| format!("{}ms", number * 600)).collect();
        for times in [early, even] {
            let messages = draws(&format!("arrival: {{trace: [{}]}}", times.join(", ")));
            assert!((10_000..=21_000).contains(&messages), "{messages}");
        }
        let steep = draws("rate: 10/s, profile: {day: 60s, curve: {'00:00': 100, '01:00': 0, '23:59': 0}}");
        assert!((10_000..=30_000).contains(&steep), "{steep}");
        // A minute of this day is a second; before the window begins at 00:10, devices send 1,000 times as much.
        let curve = "{'00:00': 100, '00:09': 100, '00:10': 0.1, '23:59': 0.1}";
        let before = draws(&format!("rate: 10/s, profile: {{day: 1440s, start: '00:10', curve: {curve}}}"));
        assert!(before <= 30_000, "{before}");
    }

    #[test]
    fn a_given_up_run_ends() {
        let workload = load("smart-city", &LoadOptions::default()).unwrap();
        let fleet = Fleet::new(&workload, 1);
        assert_eq!(summary_unless(&workload, &fleet, 1, &MINUTE, &AtomicBool::new(true)), None);
    }

    /// Records of other versions are compared by these values: changing one of them makes their schedules appear different.
    #[test]
    fn the_hashes_of_built_in_workloads_stay_what_they_are() {
        for (name, known) in KNOWN {
            let workload = load(name, &LoadOptions::default()).unwrap();
            assert_eq!(hash(&workload, &Fleet::new(&workload, 1), 1, &MINUTE), known, "{name}");
        }
    }

    const KNOWN: [(&str, &str); 11] = [
        ("hello", "9729869ed25a4744"),
        ("smart-home", "469e4f7bd2a9c458"),
        ("smart-city", "a1184e1cddb63deb"),
        ("smart-factory", "33df21a47136d694"),
        ("smart-healthcare", "35fadf63970f22c4"),
        ("pairs", "2fe0cbb15b446b84"),
        ("fan-in", "a8ffa558a8c3e402"),
        ("fan-out", "d230cb3de2f9c1f2"),
        ("payload-sweep", "dfd8b0da6cfe2262"),
        ("supermarket", "30fe4a41f9af815e"),
        ("request-reply", "18c3b5c49ff4339f"),
    ];
}
