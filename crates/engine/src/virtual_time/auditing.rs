//! A broker that changes the due times that messages carry.

use std::time::Duration;

use pubmark_record::delivery::DueTimeAudit;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{Ended, ONE_TO_ONE, Simulation};

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
