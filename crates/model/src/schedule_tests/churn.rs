//! When devices are planned offline.

use std::time::Duration;

use super::fixtures::{SECOND, churn, dues, group, periodic, timeline};
use crate::arrival::Phase;
use crate::churn::{CheckPhase, Churn};
use crate::fleet::Device;
use crate::random::Stream;
use crate::schedule::{ChurnCursor, Rules, Timeline, Transition, purpose};

/// Churn of PSMark's 52 device types, which is the same within a domain (`.device` files at commit 0779e24): domain,
/// seconds between checks of both kinds, chance to disconnect, chance to reconnect, types.
///
/// The last column is the devices to simulate: with random phases a device's own availability spreads by
/// a·d / √12 (0.048 in the city, 0.014 at home), because the two checks keep their distance for ever.
const PSMARK: [(&str, f64, f64, f64, usize, u32); 4] = [
    ("smart_city", 5.0, 0.2, 0.5, 19, 2_500),
    ("smart_factory", 1.0, 0.05, 0.8, 10, 400),
    ("smart_healthcare", 5.0, 0.1, 0.8, 1, 1_000),
    ("smart_home", 1.0, 0.05, 0.8, 22, 400),
];

fn rules_of(name: &str, churn: Churn, timeline: &Timeline) -> Rules {
    let mut group = group(name, 1, periodic(Duration::from_secs(1), Phase::Aligned));
    group.churn = Some(churn);
    Rules::new(&group, 42, timeline)
}

fn device(index: u32) -> Device {
    Device { publisher: index, group: 0, copy: 0, index, ..Device::default() }
}

fn transitions(rules: &Rules, device: &Device) -> (bool, Vec<Transition>) {
    let mut cursor = ChurnCursor::new(rules, device);
    (cursor.online_at_start(), std::iter::from_fn(|| cursor.take(rules)).collect())
}

/// Time online of a device.
fn online_ns(rules: &Rules, device: &Device, timeline: &Timeline) -> i64 {
    let (mut online, transitions) = transitions(rules, device);
    let (mut since, mut total) = (timeline.start_ns(), 0);
    for transition in &transitions {
        assert_ne!(transition.online, online, "a change changes something");
        assert!((since..timeline.end_ns()).contains(&transition.at_ns));
        total += if online { transition.at_ns - since } else { 0 };
        (online, since) = (transition.online, transition.at_ns);
    }
    total + if online { timeline.end_ns() - since } else { 0 }
}

fn availability(name: &str, churn: Churn, devices: u32, timeline: &Timeline) -> f64 {
    let rules = rules_of(name, churn, timeline);
    let total: i64 = (0..devices).map(|index| online_ns(&rules, &device(index), timeline)).sum();
    total as f64 / (f64::from(devices) * (timeline.end_ns() - timeline.start_ns()) as f64)
}

#[test]
fn availability_per_psmark_type_meets_the_closed_forms() {
    let half_hour = timeline(0, 1_800);
    for (domain, check_s, leave, back, types, devices) in PSMARK {
        for kind in 0..types {
            for phase in [CheckPhase::Together, CheckPhase::Random] {
                let churn = churn(phase, [check_s; 2], [leave, back]);
                let found = availability(&format!("{domain}/{kind}"), churn, devices, &half_hour);
                let expected = churn.availability();
                assert!((found / expected - 1.0).abs() < 0.005, "{domain} {phase:?}: {found:.4}, not {expected:.4}");
            }
        }
    }
}

#[test]
fn availability_of_unequal_periods_is_that_of_the_schedule() {
    for (check_s, chance) in [
        ([1.0, 10.0], [0.2, 0.5]),
        ([10.0, 1.0], [0.2, 0.5]),
        ([3.0, 7.0], [0.3, 0.6]),
        ([2.0, 4.0], [1.0, 1.0]),
        ([5.0, 0.7], [0.9, 0.1]),
    ] {
        // With random phases devices differ from each other; together, all begin online, which counts less in a long run.
        for (phase, devices, length_s) in [(CheckPhase::Together, 1_000, 7_200), (CheckPhase::Random, 4_000, 1_000)] {
            let churn = churn(phase, check_s, chance);
            let found = availability("g/h", churn, devices, &timeline(0, length_s));
            let expected = churn.availability();
            assert!((found - expected).abs() < 0.012, "{check_s:?} {phase:?}: {found:.4}, not {expected:.4}");
        }
    }
    // Nearly equal periods meet at all distances in the long run, as random phases do.
    let random = churn(CheckPhase::Random, [1.0; 2], [0.2, 0.5]).availability();
    for (phase, back_s) in
        [(CheckPhase::Together, 1.000_5), (CheckPhase::Together, 1.000_000_1), (CheckPhase::Random, 1.000_5)]
    {
        let nearly = churn(phase, [1.0, back_s], [0.2, 0.5]).availability();
        assert!((nearly - random).abs() < 1e-3, "{phase:?}, {back_s} s: {nearly:.4}, not {random:.4}");
        for rare in [1e-5, 1e-20] {
            let found = churn(phase, [1.0, 1.5], [rare; 2]).availability();
            assert!((found - 0.4).abs() < 1e-3, "{phase:?}, {rare}: {found}");
        }
    }
}

#[test]
fn closed_forms_are_those_of_the_paper_and_its_correction() {
    let forms = |leave, back| {
        [CheckPhase::Together, CheckPhase::Random].map(|phase| churn(phase, [1.0; 2], [leave, back]).availability())
    };
    for (leave, back, together, random) in
        [(0.2, 0.5, 0.833, 0.750), (0.05, 0.8, 0.988, 0.963), (0.1, 0.8, 0.976, 0.927)]
    {
        let found = forms(leave, back).map(|share| (share * 1_000.0).round() / 1_000.0);
        assert_eq!(found, [together, random]);
    }
}

#[test]
fn random_checks_start_in_the_stationary_state_given_their_phases() {
    // Equal periods: after a reconnect check online with a = r / (d + r − d·r), after a disconnect check with a·(1 − d).
    let (leave, back) = (0.2, 0.5);
    let after_return = back / (leave + back - leave * back);
    let churn = churn(CheckPhase::Random, [5.0; 2], [leave, back]);
    let rules = rules_of("g/h", churn, &timeline(0, 60));
    let (mut leave_next, mut return_next) = ([0u32; 2], [0u32; 2]);
    for index in 0..40_000 {
        let device = device(index);
        let phases = Stream::new(rules.device_key(&device), purpose::CHECK_PHASE);
        let count = if phases.unit(0) < phases.unit(1) { &mut leave_next } else { &mut return_next };
        count[usize::from(ChurnCursor::new(&rules, &device).online_at_start())] += 1;
    }
    let share = |[offline, online]: [u32; 2]| f64::from(online) / f64::from(offline + online);
    assert!((share(leave_next) - after_return).abs() < 0.015, "{}", share(leave_next));
    assert!((share(return_next) - after_return * (1.0 - leave)).abs() < 0.015, "{}", share(return_next));
}

#[test]
fn availability_holds_from_the_first_instant_for_unequal_periods_too() {
    let churn = churn(CheckPhase::Random, [3.0, 7.0], [0.3, 0.6]);
    let long_run = availability("g/h", churn, 4_000, &timeline(0, 2_000));
    let rules = rules_of("g/h", churn, &timeline(10, 60));
    for at_s in [-10, -8, -3, 0, 20] {
        let online = (0..40_000)
            .filter(|index| {
                let (at_start, transitions) = transitions(&rules, &device(*index));
                transitions.iter().rfind(|change| change.at_ns <= at_s * SECOND).map_or(at_start, |last| last.online)
            })
            .count() as f64
            / 40_000.0;
        assert!((online - long_run).abs() < 0.012, "at {at_s} s {online:.4}, in the long run {long_run:.4}");
    }
}

#[test]
fn together_a_device_publishes_then_leaves_then_comes_back_on_one_tick() {
    // Every check strikes: each second the device disconnects and reconnects at once, and it is online for every message.
    let rules = rules_of("g/h", churn(CheckPhase::Together, [1.0; 2], [1.0; 2]), &timeline(1, 2));
    let (online_at_start, changes) = transitions(&rules, &device(0));
    let change = |at_s: i64, online| Transition { at_ns: at_s * SECOND, online };
    assert!(online_at_start);
    assert_eq!(changes, [change(0, false), change(0, true), change(1, false), change(1, true)]);
    assert!(dues(&rules, &device(0)).iter().all(|due| due.planned_online));

    // Reconnect checks only every 3 s: the message at the time of the disconnect is still sent, that at the time of the
    // reconnect is not.
    let rules = rules_of("g/h", churn(CheckPhase::Together, [1.0, 3.0], [1.0; 2]), &timeline(0, 6));
    let planned: Vec<bool> = dues(&rules, &device(0)).iter().map(|due| due.planned_online).collect();
    assert_eq!(planned, [true, false, false, true, false]);
    assert_eq!(transitions(&rules, &device(0)).1, [change(1, false), change(3, true), change(4, false)]);
}

#[test]
fn dues_follow_the_planned_changes() {
    for phase in [CheckPhase::Together, CheckPhase::Random] {
        let rules = rules_of("g/h", churn(phase, [0.5, 1.0], [0.4, 0.5]), &timeline(3, 100));
        for index in 0..50 {
            let (at_start, changes) = transitions(&rules, &device(index));
            for due in dues(&rules, &device(index)) {
                let last = changes.iter().rfind(|change| change.at_ns < due.due_ns);
                assert_eq!(due.planned_online, last.map_or(at_start, |change| change.online), "{due:?}");
            }
        }
    }
}

#[test]
fn checks_that_are_off_or_certain_have_their_plain_meaning() {
    let run = timeline(1, 100);
    for phase in [CheckPhase::Together, CheckPhase::Random] {
        let outcome = |check_s, chance| transitions(&rules_of("g/h", churn(phase, check_s, chance), &run), &device(3));
        assert_eq!(outcome([1.0; 2], [0.0, 0.5]), (true, vec![]), "never leaves");
        assert_eq!(outcome([0.0, 1.0], [0.5, 0.5]), (true, vec![]), "leaving is switched off");
        assert_eq!(outcome([1.0; 2], [1e-12, 0.5]).1, vec![], "leaves once in 30,000 years");
    }
    let rules = rules_of("g/h", churn(CheckPhase::Together, [1.0, 0.0], [1.0, 1.0]), &run);
    assert_eq!(transitions(&rules, &device(3)), (true, vec![Transition { at_ns: 0, online: false }]));
    let rules = rules_of("g/h", churn(CheckPhase::Random, [1.0, 0.0], [0.5, 1.0]), &run);
    assert_eq!(transitions(&rules, &device(3)), (false, vec![]), "in the long run it is gone");
}
