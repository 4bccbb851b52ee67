//! A broker that changes the due times that messages carry.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::schedule::Timeline;
use pubmark_record::delivery::DueTimeAudit;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{Ended, ONE_TO_ONE, Simulation};
use crate::plan::RunPlan;
use crate::progress::Progress;
use crate::{setup, shares};

const MS: u64 = 1_000_000;

/// A run whose broker moves due times later by this, ns.
fn moved(workload: &str, moved_ns: u64, prepare: impl FnOnce(&Simulation)) -> (Ended, DueTimeAudit) {
    let simulation = Simulation::new(workload, Duration::from_secs(1));
    simulation.broker.borrow_mut().moves_due_ns = moved_ns;
    prepare(&simulation);
    let ended = simulation.run();
    let audit = ended.outcome.books.due_times;
    (ended, audit)
}

#[test]
fn every_due_time_that_an_honest_broker_delivers_is_that_of_the_schedule() {
    for bytes in ["100B", "16B"] {
        let (_, audit) = moved(&ONE_TO_ONE.replace("100B", bytes), 0, |_| {});
        assert_count_eq!((audit.audited, audit.wrong), (100, 0), "{bytes}");
        assert_eq!(audit.example, None);
    }
}

#[test]
fn a_due_time_that_is_moved_within_the_window_is_found() {
    // The other due time may be that of another message: the device sends every 10 ms.
    for moved_ns in [MS, 10 * MS] {
        let (ended, audit) = moved(ONE_TO_ONE, moved_ns, |_| {});
        // The last message is moved out of the window, and then it is no sample.
        let samples = ended.outcome.times.latency.upper.count();
        assert_count!((99..=100).contains(&samples), "{samples}");
        assert_count_eq!((audit.audited, audit.wrong), (samples, samples));
        let example = audit.example.expect("one is wrong");
        assert_eq!(example.claimed_ns - example.scheduled_ns, moved_ns as i64);
    }
}

#[test]
fn messages_that_a_lost_connection_left_out_raise_no_alarm_and_hide_no_other_due_time() {
    // The device connects again after 50 to 100 ms.
    let cut = |simulation: &Simulation| simulation.at(500_000_000, |broker| broker.cut("p0"));
    let (ended, audit) = moved(ONE_TO_ONE, 0, cut);
    assert_count!(ended.outcome.books.delivery.skipped_disconnected > 0, "{:?}", ended.outcome.books.delivery);
    assert_count!(audit.audited > 50, "{audit:?}");
    assert_count_eq!(audit.wrong, 0);
    let (_, audit) = moved(ONE_TO_ONE, MS, cut);
    assert_count!(audit.audited > 50, "{audit:?}");
    assert_count_eq!(audit.wrong, audit.audited);
}

/// A key from the seed would let a system move only the due times of messages that no one compares.
#[test]
fn a_system_that_knows_the_seed_does_not_know_the_sample() {
    let plan = super::plan(ONE_TO_ONE, Duration::from_secs(1));
    let sampled = || {
        let progress = Arc::new(Progress::new(shares::shares(&plan).len()).expect("memory for counters"));
        let mut sample = setup::shards(&plan, &progress, |_| true).pop().expect("a plan has shards").due_times;
        (1..=10_000).for_each(|sequence| sample.note(0, sequence, 0));
        sample.into_claims()
    };
    assert_ne!(sampled(), sampled());
}

/// Schedules of all kinds, with a warm-up, planned disconnects, and one device whose connection is lost.
#[test]
fn every_kind_of_schedule_is_computed_again_as_the_devices_followed_it() {
    let states = "arrival: {states: [{name: idle, rate: 0/s, for: exponential 300ms}, \
                  {name: busy, rate: 40/s, for: 200ms}]}";
    for arrival in [
        &["every: 50ms", "jitter: 20ms"][..],
        &["every: 50ms", "phase: aligned"],
        &["every: 50ms", "arrival: poisson"],
        &["every: 20ms", "arrival: {on: 500ms, off: 500ms}"],
        &["every: 50ms", "profile: {day: 8s, curve: {'00:00': 0.5, '12:00': 1.5}}"],
        &[states],
        &["arrival: {trace: [0s, 10ms, 10ms, 300ms], repeat: 500ms}"],
    ] {
        for bytes in ["16B", "{mean: 100B, sd: 30%}"] {
            let workload = format!(
                "
name: virtual
devices:
  - name: device
    count: 10
    topic: 'v/{{device}}'
    qos: 1
    churn: {{disconnect: 30% every 1s, reconnect: 60% every 1s}}
    payload: {bytes}
    {}
subscribers:
  - {{name: subscriber, filters: ['v/#'], qos: 1}}
",
                arrival.join("\n    ")
            );
            let plan = super::plan(&workload, Duration::from_secs(5));
            let plan = RunPlan { timeline: Timeline { warmup_ns: 400_000_000, ..plan.timeline }, ..plan };
            let simulation = Simulation::of_plan(plan, |_| {});
            simulation.at(2_000_000_000, |broker| broker.cut("p0"));
            let audit = simulation.run().outcome.books.due_times;
            assert_count!(audit.audited > 50, "{arrival:?}, {bytes}: {audit:?}");
            assert_count_eq!(audit.wrong, 0, "{arrival:?}, {bytes}: {audit:?}");
        }
    }
}
