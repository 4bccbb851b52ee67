//! Devices that change their rate: by the time of day, from state to state.

use std::time::Duration;

use super::fixtures::{SECOND, due_times, group, periodic, timeline, workload};
use crate::arrival::{Arrival, Phase};
use crate::fleet::Fleet;
use crate::profile::Profile;
use crate::random::RandomTime;
use crate::reaction::{Burst, LONGEST_BURST};
use crate::schedule::{dump, hash};
use crate::states::{State, States};

const DAY: Duration = Duration::from_secs(24);
/// 1 at midnight, 3 at noon, and a step down to nothing from 18:00 to 21:00.
const CURVE: [(u32, f64); 6] = [(0, 1.0), (720, 3.0), (1_079, 1.0), (1_080, 0.0), (1_260, 0.0), (1_261, 1.0)];

pub(super) fn profiled(base: Arrival, day: Duration, start: u32, points: &[(u32, f64)]) -> Arrival {
    Arrival::Profiled { base: Box::new(base), profile: Profile::new(day, start, points) }
}

fn state(name: &str, interval: Option<Duration>, length: RandomTime, next: &[f64]) -> State {
    State { name: name.to_owned(), interval, length, next: next.to_vec() }
}

/// Silent, then active.
pub(super) fn two_states(interval: Duration, [silent, active]: [RandomTime; 2]) -> Arrival {
    let states = vec![state("silent", None, silent, &[0.0, 1.0]), state("active", Some(interval), active, &[1.0, 0.0])];
    Arrival::States(States::new(states).unwrap())
}

fn fixed(ms: u64) -> RandomTime {
    RandomTime::Fixed(Duration::from_millis(ms))
}

fn exponential(ms: u64) -> RandomTime {
    RandomTime::Exponential(Duration::from_millis(ms))
}

/// The curve as a reader of the documents draws it.
fn multiplier(run_ns: f64, start: u32) -> f64 {
    let minute = (run_ns / 24e9 * 1_440.0 + f64::from(start)).rem_euclid(1_440.0);
    let after = CURVE.iter().position(|(point, _)| f64::from(*point) > minute);
    let after_place = after.unwrap_or(CURVE.len());
    let (before, next) = (CURVE[after_place - 1], CURVE[after_place % CURVE.len()]);
    let end = if after.is_some() { f64::from(next.0) } else { 1_440.0 };
    before.1 + (next.1 - before.1) * (minute - f64::from(before.0)) / (end - f64::from(before.0))
}

#[test]
fn a_periodic_device_follows_its_curve_as_a_plain_sum_does() {
    let start = 300;
    let run = timeline(3, 60);
    let base = periodic(Duration::from_millis(700), Phase::Aligned);
    let found = &due_times(profiled(base, DAY, start, &CURVE), 1, 1, &run)[0];
    // Aligned: the first send is one interval after the start, counted in the time of the device.
    let (step_ns, mut passed_ns, mut next_ns, mut expected) = (20_000i64, 0.0, 700e6, Vec::new());
    let mut at_ns = -3 * SECOND;
    while at_ns < 60 * SECOND {
        passed_ns += multiplier(at_ns as f64 + step_ns as f64 / 2.0, start) * step_ns as f64;
        if passed_ns >= next_ns {
            expected.push(at_ns);
            next_ns += 700e6;
        }
        at_ns += step_ns;
    }
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1_000_000, "{found} is not {expected}");
    }
}

#[test]
fn counts_of_each_second_are_the_integral_of_the_curve() {
    let profile = Profile::new(DAY, 0, &CURVE);
    let base = Arrival::Poisson { rate_per_s: 5.0 };
    let all = due_times(profiled(base, DAY, 0, &CURVE), 400, 3, &timeline(0, 48));
    let mut seconds = [0.0; 48];
    all.iter().flatten().for_each(|due_ns| seconds[(due_ns / SECOND) as usize] += 1.0);
    let mut before = 0.0;
    for (second, count) in seconds.iter().enumerate() {
        let whole = Duration::from_secs(second as u64 + 1);
        let area = profile.mean_over(whole) * whole.as_secs_f64();
        let mean = 400.0 * 5.0 * (area - before);
        before = area;
        assert!((count - mean).abs() <= 5.0 * mean.sqrt() + 1.0, "second {second}: {count} is not {mean}");
    }
    assert_eq!(seconds[18..21], [0.0; 3], "nothing from 18:00 to 21:00");
}

#[test]
fn a_flat_curve_changes_nothing() {
    for base in [periodic(Duration::from_millis(333), Phase::Spread), Arrival::Poisson { rate_per_s: 3.0 }] {
        let plain = due_times(base.clone(), 20, 5, &timeline(2, 50));
        assert_eq!(due_times(profiled(base, DAY, 77, &[(0, 1.0)]), 20, 5, &timeline(2, 50)), plain);
    }
}

#[test]
fn states_of_fixed_lengths_send_what_fits_into_them() {
    let arrival = two_states(Duration::from_millis(100), [fixed(1_000), fixed(2_000)]);
    let all = due_times(arrival, 50, 4, &timeline(0, 40));
    for times in &all {
        let mut stays: Vec<usize> = vec![1];
        for pair in times.windows(2) {
            let gap_ns = pair[1] - pair[0];
            match gap_ns {
                100_000_000 => *stays.last_mut().unwrap() += 1,
                _ => {
                    assert!((SECOND..SECOND + 200_000_000).contains(&gap_ns), "{gap_ns}");
                    stays.push(1);
                }
            }
        }
        // The window cuts the first and the last visit.
        let whole = &stays[1..stays.len() - 1];
        assert!(!whole.is_empty() && whole.iter().all(|messages| *messages == 20), "{stays:?}");
    }
    let starts: std::collections::BTreeSet<i64> = all.iter().map(|times| times[0]).collect();
    assert!(starts.len() > 45, "each device draws its own: {}", starts.len());
}

#[test]
fn states_keep_their_mean_rate_from_the_start() {
    let chances = States::new(vec![
        state("idle", Some(Duration::from_secs(1)), exponential(900), &[0.2, 0.8, 0.0]),
        state("active", Some(Duration::from_millis(20)), fixed(500), &[0.5, 0.0, 0.5]),
        state("silent", None, exponential(300), &[1.0, 0.0, 0.0]),
    ])
    .unwrap();
    for arrival in [
        two_states(Duration::from_millis(50), [exponential(2_000), fixed(1_000)]),
        two_states(Duration::from_millis(50), [fixed(400), exponential(70)]),
        Arrival::States(chances),
    ] {
        let rate = arrival.mean_rate_per_s().unwrap();
        let all = due_times(arrival.clone(), 3_000, 5, &timeline(0, 30));
        let total = all.iter().map(Vec::len).sum::<usize>() as f64;
        assert!((total / (3_000.0 * 30.0 * rate) - 1.0).abs() < 0.03, "{arrival:?}: {total} at {rate}/s");
        let first_second = all.iter().flatten().filter(|due_ns| **due_ns < SECOND).count() as f64;
        assert!(
            (first_second / (3_000.0 * rate) - 1.0).abs() < 0.08,
            "{arrival:?}: {first_second} in the first second"
        );
    }
}

fn hash_of(arrival: Arrival, seed: u64) -> String {
    let workload = workload(vec![group("g/h", 5, arrival)], Vec::new());
    hash(&workload, &Fleet::new(&workload, 1), seed, &timeline(2, 60))
}

#[test]
fn the_hash_covers_every_parameter_of_a_policy() {
    let base = || Arrival::Poisson { rate_per_s: 4.0 };
    let curve = |day: u64, start, noon| profiled(base(), Duration::from_secs(day), start, &[(0, 0.5), (720, noon)]);
    let machine = |interval_ms, length, chance| {
        let next = [1.0 - chance, chance];
        let states = vec![
            state("silent", None, fixed(700), &[0.0, 1.0]),
            state("active", Some(Duration::from_millis(interval_ms)), length, &next),
        ];
        Arrival::States(States::new(states).unwrap())
    };
    let all = [
        base(),
        curve(24, 0, 2.0),
        curve(25, 0, 2.0),
        curve(24, 1, 2.0),
        curve(24, 0, 2.1),
        profiled(base(), DAY, 0, &[(0, 0.5), (719, 2.0)]),
        profiled(periodic(Duration::from_millis(250), Phase::Spread), DAY, 0, &[(0, 0.5), (720, 2.0)]),
        machine(50, fixed(300), 0.0),
        machine(51, fixed(300), 0.0),
        machine(50, fixed(301), 0.0),
        machine(50, exponential(300), 0.0),
        machine(50, fixed(300), 0.5),
    ];
    let hashes: Vec<String> = all.iter().map(|arrival| hash_of(arrival.clone(), 1)).collect();
    for (place, hash) in hashes.iter().enumerate() {
        assert_eq!(*hash, hash_of(all[place].clone(), 1), "the same seed, the same schedule");
        assert_ne!(*hash, hash_of(all[place].clone(), 2), "{place}: another seed");
        assert!(!hashes[..place].contains(hash), "{place} is like one before");
    }
}

const HOUSE: &str = "name: house
devices:
  - {name: smoke, count: 3, every: 30s, payload: 60B, topic: 'alarm/{index}'}
  - {name: camera, count: 1, client: hall, rate: 10/s, payload: 2000B, arrival: {reaction_to: 'alarm/+', for: 2s}, topic: 'pictures/{index}'}
  - {name: note, count: 1, client: hall, payload: 40B, arrival: {reaction_to: 'alarm/+'}, topic: 'notes/{index}'}
subscribers:
  - {name: halls, count: 1, client: hall, filters: ['alarm/+']}
";

fn of_house(change: (&str, &str)) -> (String, String) {
    assert!(HOUSE.contains(change.0), "{change:?}");
    let text = HOUSE.replace(change.0, change.1);
    let workload = crate::load::parse("house.yaml", &text, &crate::load::LoadOptions::default()).unwrap();
    let (fleet, run) = (Fleet::new(&workload, 1), timeline(2, 60));
    let mut out = vec![];
    dump(&workload, &fleet, 1, &run, &mut out).unwrap();
    (hash(&workload, &fleet, 1, &run), String::from_utf8(out).unwrap())
}

#[test]
fn the_hash_and_the_dump_cover_bursts() {
    let (plain, dumped) = of_house(("name: house", "name: house"));
    let line = "# camera reacts to alarm/+: 20 messages, one every 100000000 ns, the first after 0 ns; no due times";
    assert!(dumped.lines().any(|other| other == line), "{dumped}");
    let changes = [
        ("for: 2s", "for: 3s"),
        ("rate: 10/s", "rate: 11/s"),
        ("for: 2s", "for: 2s, think: 5ms"),
        ("for: 2s", "for: 2s, think: exponential 5ms"),
        ("payload: 2000B", "payload: 2001B"),
        ("payload: 2000B", "payload: {min: 1000B, max: 3000B}"),
        ("reaction_to: 'alarm/+', for", "reaction_to: 'alarm/1', for"),
        ("name: camera, count: 1", "name: kamera, count: 1"),
        (", for: 2s", ""),
    ];
    let mut hashes = vec![plain];
    for change in changes {
        let change = match change.0 {
            // A rate is for bursts alone.
            ", for: 2s" => (
                "rate: 10/s, payload: 2000B, arrival: {reaction_to: 'alarm/+', for: 2s}",
                "payload: 2000B, arrival: {reaction_to: 'alarm/+'}",
            ),
            _ => change,
        };
        let (hash, _) = of_house(change);
        assert!(!hashes.contains(&hash), "{change:?}");
        hashes.push(hash);
    }
    assert_eq!(of_house(("pictures/{index}", "images/{index}")).0, hashes[0], "topics are not hashed");
    // A reaction of one message is not part of the hash, so the hash stays the same.
    assert_eq!(of_house(("payload: 40B", "payload: 50B")).0, hashes[0]);
}

const METERS: &str = "name: meters
devices:
  - {name: boss, count: 2, every: 10s, payload: 60B, topic: 'busy/{index}'}
  - {name: meter, count: 4, client: meter, rate: 5/s, payload: 80B, when: {receives: 'busy/+', rate: 1/s, for: 3s}}
subscribers:
  - {name: meters, count: 4, client: meter, filters: ['busy/+']}
";

#[test]
fn the_hash_and_the_dump_cover_slowdowns_and_due_times_stay_the_same() {
    let of = |change: (&str, &str)| {
        assert!(METERS.contains(change.0), "{change:?}");
        let text = METERS.replace(change.0, change.1);
        let workload = crate::load::parse("meters.yaml", &text, &crate::load::LoadOptions::default()).unwrap();
        let (fleet, run) = (Fleet::new(&workload, 1), timeline(2, 60));
        let mut out = vec![];
        dump(&workload, &fleet, 1, &run, &mut out).unwrap();
        (hash(&workload, &fleet, 1, &run), String::from_utf8(out).unwrap(), fleet.slowdowns().len())
    };
    let (plain, dumped, links) = of(("name: meters", "name: meters"));
    assert_eq!(links, 8, "two send to four");
    let line = "# meter sends at most one every 1000000000 ns for 3000000000 ns after it received busy/+; due times without that";
    assert!(dumped.lines().any(|other| other == line), "{dumped}");
    let mut hashes = vec![plain];
    for change in [
        (", when: {receives: 'busy/+', rate: 1/s, for: 3s}", ""),
        ("rate: 1/s", "rate: 0/s"),
        ("rate: 1/s", "every: 2s"),
        ("for: 3s", "for: 4s"),
        ("receives: 'busy/+'", "receives: 'busy/1'"),
    ] {
        let (hash, other, _) = of(change);
        assert!(!hashes.contains(&hash), "{change:?}");
        hashes.push(hash);
        let due =
            |dumped: &str| dumped.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(due(&other), due(&dumped), "{change:?}");
    }
}

#[test]
fn a_burst_has_a_message_at_its_start_and_none_at_its_end() {
    let second = Duration::from_secs(1);
    let messages = |length, interval| Burst::of_length(length, interval).map(|burst| burst.messages);
    assert_eq!(messages(second, second / 10), Some(10));
    assert_eq!(messages(second, second * 2), Some(1));
    assert_eq!(messages(second + Duration::from_nanos(1), second / 10), Some(11));
    assert_eq!(messages(second, second / LONGEST_BURST), Some(LONGEST_BURST));
    assert_eq!(messages(second, second / (LONGEST_BURST * 2)), None);
}
