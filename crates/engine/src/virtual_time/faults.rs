//! Runs with faults: connections that the engine breaks, and what is lost with a session.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pubmark_protocol::events::Cause;
use pubmark_record::faults::LevelBooks;
use pubmark_testing::{assert_count, assert_count_eq};

use super::broker::Broker;
use super::{ONE_TO_ONE, Simulation, plan, window_ns};
use crate::faults::log::SessionChange;
use crate::faults::{BreakConnections, FaultOutcome, PlannedFault, Span, figures};
use crate::plan::RunPlan;

const MS: i64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A run of a workload with one fault.
fn with_fault(workload: &str, duration: Duration, fault: PlannedFault) -> Simulation {
    Simulation::of_plan(RunPlan { faults: [fault].into(), ..plan(workload, duration) }, |_| {})
}

fn reset_of_all(at_ns: u64, length_ns: u64) -> PlannedFault {
    let connections = Some(BreakConnections { silent: false, share: 1.0, group: None });
    PlannedFault { at_ns, length_ns: Some(length_ns), connections }
}

fn faults(simulation: Simulation, begin_ns: i64) -> FaultOutcome {
    simulation.run_begun_at(begin_ns).outcome.faults.expect("a run with faults")
}

#[test]
fn a_shard_that_is_late_holds_clients_off_until_the_planned_end() {
    // The shards reach the fault 3.5 s late, half a second before its end.
    let simulation = with_fault(ONE_TO_ONE, Duration::from_secs(12), reset_of_all(S, 4 * S));
    let found = faults(simulation, 4_500 * MS);
    let broken_ns = found.notes.broken_at_ns[0].map_or(0, |(first_ns, _)| first_ns - window_ns());
    assert!((4_500_000_000..4_600_000_000).contains(&broken_ns), "{broken_ns}");
    let events = found.notes.events.iter().filter(|event| event.change == SessionChange::Reconnected);
    let back_ns: Vec<u64> = events.map(|event| event.at_ns - window_ns()).collect();
    assert_count_eq!(back_ns.len(), 2, "{back_ns:?}");
    // With the next attempt after the end; 4 s from the break would be 8.5 s.
    assert!(back_ns.iter().all(|ns| (5 * S..8 * S).contains(ns)), "{back_ns:?}");
}

#[test]
fn only_open_connections_are_ones_that_a_fault_breaks() {
    let workload = ONE_TO_ONE.replace("{name: device,", "{name: device, count: 3,");
    let simulation = with_fault(&workload, Duration::from_secs(3), reset_of_all(S, S / 10));
    simulation.broker.borrow_mut().accepts = Box::new(|name: &str| match name.ends_with("p1") {
        true => Err(Cause::Unreachable("not this one".to_owned())),
        false => Ok(()),
    });
    let found = faults(simulation, super::IN_TIME_NS);
    assert_count_eq!(found.chosen, [3], "two devices and the subscriber");
    let lost = found.notes.events.iter().filter(|event| event.change == SessionChange::Lost).count();
    assert_count_eq!(lost, 3);
}

/// The messages of QoS 1 after the fault, of a run in which the system loses every tenth message that it acknowledged.
fn forgetful(act: impl FnOnce(&mut Broker) + 'static) -> LevelBooks {
    let fault = PlannedFault { at_ns: S, length_ns: None, connections: None };
    let simulation = with_fault(ONE_TO_ONE, Duration::from_secs(3), fault);
    simulation.broker.borrow_mut().copy_delays =
        Box::new(|_, sequence, _| if sequence % 10 == 0 { vec![] } else { vec![100_000] });
    simulation.at(1_500 * MS + 12_345, act);
    faults(simulation, super::IN_TIME_NS).books[1][1]
}

#[test]
fn messages_are_lost_with_a_session_only_if_its_connection_ended() {
    let untouched = forgetful(|_| {});
    assert!(untouched.lost > 15, "of 200");
    assert_count_eq!(untouched.lost_with_session, 0, "no connection ended");
    let device = forgetful(|broker| broker.cut("p0"));
    assert!(device.lost > 0);
    assert_count_eq!(device.lost_with_session, 0, "the system had acknowledged what it lost");
    let subscriber = forgetful(|broker| broker.cut("s0"));
    assert_count!(subscriber.lost > 10 && subscriber.lost_with_session <= 1, "{subscriber:?}");
}

#[test]
fn a_session_takes_with_it_only_what_was_in_transit_when_it_ended() {
    let fault = PlannedFault { at_ns: S, length_ns: None, connections: None };
    let simulation = with_fault(ONE_TO_ONE, Duration::from_secs(3), fault);
    let is_stuck = Rc::new(Cell::new(false));
    let (stuck_from, stuck_until) = (Rc::clone(&is_stuck), Rc::clone(&is_stuck));
    // Every tenth message is lost all the time, and each of the last 100 ms before the session ends.
    simulation.broker.borrow_mut().copy_delays =
        Box::new(move |_, sequence, _| if is_stuck.get() || sequence % 10 == 0 { vec![] } else { vec![100_000] });
    simulation.at(1_400 * MS + 12_345, move |_| stuck_from.set(true));
    simulation.at(1_500 * MS + 12_345, move |broker| {
        stuck_until.set(false);
        broker.cut("s0");
    });
    let found = faults(simulation, super::IN_TIME_NS).books[1][1];
    assert_count!((10..=11).contains(&found.lost_with_session), "10 ms apart, and one may be a tenth: {found:?}");
    assert_count!(found.lost > found.lost_with_session + 10, "some were lost before, and some afterwards: {found:?}");
}

#[test]
fn a_shared_group_whose_member_s_session_ended_may_have_lost_anything_with_it() {
    let workload = ONE_TO_ONE.replace("filters: ['v/#'],", "filters: ['v/#'], count: 2, shared: workers,");
    let of = |cut: &'static str| {
        let fault = PlannedFault { at_ns: S, length_ns: None, connections: None };
        let simulation = with_fault(&workload, Duration::from_secs(3), fault);
        // The script has no shared subscriptions: each member receives every message, and of every tenth neither does.
        simulation.broker.borrow_mut().copy_delays =
            Box::new(|_, sequence, _| if sequence % 10 == 0 { vec![] } else { vec![100_000] });
        simulation.at(1_500 * MS + 12_345, move |broker| broker.cut(cut));
        faults(simulation, super::IN_TIME_NS).books[1][1]
    };
    let device = of("p0");
    assert!(device.lost > 0, "{device:?}");
    assert_count_eq!(device.lost_with_session, 0, "its own connection ended, and no member's");
    let member = of("s0");
    assert!(member.lost > 10, "{member:?}");
    assert_count_eq!(member.lost_with_session, member.lost, "which of them were in transit to it is not known");
}

/// Devices that return as planned while the broker refuses them leave without having been connected, and some leave while they
/// connect.
#[test]
fn as_many_sessions_are_connected_at_a_fault_as_the_shards_have_whatever_happened_before() {
    let churn = "qos: 1, churn: {disconnect: 60% every 1s, reconnect: 60% every 1s}}\nsubscribers";
    let devices = ONE_TO_ONE.replace("{name: device,", "{name: device, count: 20,");
    let workload = devices.replace("qos: 1}\nsubscribers", churn);
    let second_ns = 10 * S + S / 2 + 12_345;
    let planned = [S, second_ns].map(|at_ns| PlannedFault { at_ns, length_ns: None, connections: None });
    let changed = RunPlan { faults: planned.into(), ..plan(&workload, Duration::from_secs(12)) };
    let simulation = Simulation::of_plan(changed, |_| {});
    let is_down = Rc::new(Cell::new(false));
    let (down_from, down_until) = (Rc::clone(&is_down), Rc::clone(&is_down));
    {
        let mut broker = simulation.broker.borrow_mut();
        broker.accepts_after_ns = 700_000_000;
        broker.accepts = Box::new(move |_: &str| match is_down.get() {
            true => Err(Cause::Unreachable("it is down".to_owned())),
            false => Ok(()),
        });
    }
    simulation.at(2_000 * MS + 12_345, move |_| down_from.set(true));
    simulation.at(5_000 * MS + 12_345, move |_| down_until.set(false));
    let online = Rc::new(Cell::new(0));
    let (seen, progress) = (Rc::clone(&online), Arc::clone(&simulation.progress));
    simulation.at(second_ns as i64, move |_| seen.set(progress.totals().online));
    let found = faults(simulation, super::IN_TIME_NS);
    let span = |done_ns, until_ns| Span { done_ns, ended_ns: done_ns, until_ns };
    let spans = [span(S, second_ns), span(second_ns, 12 * S)];
    let effects = figures(&found, &spans, window_ns());
    assert_count!((2..21).contains(&online.get()), "some of 20 devices are away: {}", online.get());
    assert_count_eq!(effects[1].connections.connected, online.get());
}
