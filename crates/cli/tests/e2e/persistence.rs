//! Sessions that survive their connections, and those that do not: messages that a broker stored arrive, messages that
//! no broker stored are distinguished from losses, and copies are counted.

use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, connections, count, names_cause};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::{Call, Place};
use crate::support::proxy::{Proxy, is_subscriber};
use crate::support::schema;

const DEVICES: u64 = 5;
const SUBSCRIBERS: u64 = 2;
/// Due in the three seconds of a run: 5 devices × 50/s × 3 s.
const OFFERED: u64 = 750;

/// Five devices and two subscribers that receive from all of them.
fn workload(qos: &str, session: &str, retain: bool) -> String {
    format!(
        "name: lasting
devices:
  - {{name: test/device, count: {DEVICES}, every: 20ms, payload: 100B, topic: \"lasting/{{device}}\", qos: {qos},
     session: {session}, retain: {retain}}}
subscribers:
  - {{name: listener, count: {SUBSCRIBERS}, filters: [\"lasting/#\"], qos: {qos}, session: {session}}}
"
    )
}

/// mosquitto, a proxy in front of it, and a run over the proxy that has measured for a second.
struct Bench {
    broker: Mosquitto,
    proxy: Proxy,
    place: Place,
    call: Call,
}

impl Bench {
    fn start(workload: &str, protocol: &str) -> Option<Bench> {
        let broker = Mosquitto::start("max_queued_messages 100000")?;
        let proxy = Proxy::to(broker.port);
        let place = Place::new();
        place.write("lasting.yaml", workload);
        let endpoint = proxy.endpoint();
        let load = ["run", "lasting.yaml", "--duration", "3s", "--warmup", "0s", "--json", "--quiet"];
        let options = ["--endpoint", &endpoint, "--protocol", protocol];
        let call = place.start_with_events(&[&load[..], &options].concat());
        place.wait_until_measured(1.0);
        Some(Bench { broker, proxy, place, call })
    }

    /// Waits for the run's end; returns its record, whose accounting adds up.
    fn record(self) -> Value {
        let called = self.call.wait();
        assert!(matches!(called.code(), 0 | 5), "{called:?}");
        let record = called.json();
        schema::assert_agrees(&record);
        assert_closed(&record);
        assert_eq!(record["run"]["status"], "complete");
        assert_count_eq!(count(&record, "offered"), OFFERED);
        assert_count_eq!(
            count(&record, "expected") + count(&record, "absent"),
            count(&record, "sent") * SUBSCRIBERS,
            "each sent message once for each subscription: {}",
            record["delivery"]
        );
        drop((self.broker, self.proxy, self.place));
        record
    }
}

/// Cuts every connection while the broker has unacknowledged messages.
fn cut_all_with_messages_in_flight(qos: &str, protocol: &str) -> Option<Value> {
    let bench = Bench::start(&workload(qos, "persistent", false), protocol)?;
    bench.broker.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(bench.proxy.cut(|_| true) as u64, DEVICES + SUBSCRIBERS);
    bench.broker.signal(libc::SIGCONT);
    let record = bench.record();
    assert_count_eq!(connections(&record, "dropped"), DEVICES + SUBSCRIBERS, "{}", record["connections"]);
    assert!(connections(&record, "retried") >= DEVICES + SUBSCRIBERS, "{}", record["connections"]);
    assert!(names_cause(&record, "dropped: "), "{}", record["connections"]);
    for name in ["lost", "unknown", "absent", "refused", "unsent", "foreign"] {
        assert_count_eq!(count(&record, name), 0, "{name} with sessions that last: {}", record["delivery"]);
    }
    let resent = record["connections"]["resent"].as_u64().unwrap();
    assert!(resent > 0, "300 ms of 250 messages/s were not answered");
    assert!(count(&record, "skipped_disconnected") > 0, "due while away: {}", record["delivery"]);
    Some(record)
}

#[test]
fn at_least_once_loses_nothing_over_a_cut_and_counts_copies() {
    for protocol in ["mqtt5", "mqtt311"] {
        let Some(record) = cut_all_with_messages_in_flight("1", protocol) else { return };
        let copies = count(&record, "duplicated");
        // One copy for each resent message that the broker already had, and for each delivery without an
        // acknowledgement.
        let most = record["connections"]["resent"].as_u64().unwrap() * SUBSCRIBERS + OFFERED;
        assert!((1..=most).contains(&copies), "{copies} copies: {}", record["delivery"]);
    }
}

#[test]
fn exactly_once_loses_nothing_over_a_cut_and_has_no_copies() {
    for protocol in ["mqtt5", "mqtt311"] {
        let Some(record) = cut_all_with_messages_in_flight("2", protocol) else { return };
        assert_count_eq!(count(&record, "duplicated"), 0, "{}", record["delivery"]);
    }
}

/// Cuts only the subscribers, and lets them reconnect half a second later.
fn cut_subscribers(workload: &str) -> Option<Value> {
    let bench = Bench::start(workload, "mqtt5")?;
    bench.proxy.close(true);
    assert_eq!(bench.proxy.cut(is_subscriber) as u64, SUBSCRIBERS);
    std::thread::sleep(Duration::from_millis(500));
    bench.proxy.close(false);
    let record = bench.record();
    assert_count_eq!(connections(&record, "dropped"), SUBSCRIBERS, "{}", record["connections"]);
    assert!(connections(&record, "retried") >= SUBSCRIBERS, "{}", record["connections"]);
    assert_count_eq!(count(&record, "sent"), OFFERED, "the devices were not cut: {}", record["delivery"]);
    Some(record)
}

#[test]
fn what_was_queued_for_a_lasting_session_arrives_after_the_reconnect() {
    let Some(record) = cut_subscribers(&workload("1", "persistent", false)) else { return };
    for name in ["lost", "unknown", "absent", "skipped_disconnected"] {
        assert_count_eq!(count(&record, name), 0, "{name}: {}", record["delivery"]);
    }
    assert_count_eq!(count(&record, "delivered"), OFFERED * SUBSCRIBERS, "{}", record["delivery"]);
    assert_count_eq!(record["connections"]["resent"], 0, "by us nothing");
}

#[test]
fn what_was_sent_into_the_absence_of_a_clean_session_stands_apart() {
    for qos in ["0", "1"] {
        let Some(record) = cut_subscribers(&workload(qos, "clean", false)) else { return };
        assert!(count(&record, "absent") > 0, "half a second of 250 messages/s: {}", record["delivery"]);
        assert_count_eq!(count(&record, "unknown"), 0, "the broker answered: {}", record["delivery"]);
        assert!(count(&record, "lost") < 50, "only what was on the wire is lost: {}", record["delivery"]);
        assert_count_eq!(count(&record, "retained_replay"), 0, "nothing is retained: {}", record["delivery"]);
    }
}

#[test]
fn a_clean_fleet_at_best_effort_that_is_cut_adds_up() {
    let Some(bench) = Bench::start(&workload("0", "clean", false), "mqtt311") else { return };
    assert_eq!(bench.proxy.cut(|_| true) as u64, DEVICES + SUBSCRIBERS);
    let record = bench.record();
    assert_count_eq!(connections(&record, "dropped"), DEVICES + SUBSCRIBERS, "{}", record["connections"]);
    assert!(count(&record, "skipped_disconnected") > 0, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "unknown"), 0, "nothing was promised: {}", record["delivery"]);
    assert_count_eq!(count(&record, "duplicated"), 0, "{}", record["delivery"]);
    assert_count_eq!(record["connections"]["resent"], 0);
}

#[test]
fn a_retained_message_is_replayed_once_a_topic_to_who_subscribes_again() {
    let Some(record) = cut_subscribers(&workload("1", "clean", true)) else { return };
    assert_count_eq!(count(&record, "retained_replay"), DEVICES * SUBSCRIBERS, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "foreign"), 0, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "duplicated"), 0, "a replay is no duplicate: {}", record["delivery"]);
}

#[test]
fn what_an_earlier_run_left_retained_is_foreign_to_the_next() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    place.write("lasting.yaml", workload("0", "clean", true));
    let endpoint = broker.endpoint();
    let load = ["lasting.yaml", "--duration", "1s", "--warmup", "0s", "--endpoint", &endpoint];
    for foreign in [0, DEVICES * SUBSCRIBERS] {
        let record = place.record(&load);
        assert_closed(&record);
        assert_count_eq!(count(&record, "delivered"), OFFERED / 3 * SUBSCRIBERS);
        assert_count_eq!(count(&record, "foreign"), foreign, "{}", record["delivery"]);
        assert_count_eq!(count(&record, "retained_replay"), 0, "{}", record["delivery"]);
        assert_count_eq!(count(&record, "duplicated"), 0, "{}", record["delivery"]);
    }
}

#[test]
fn a_broker_that_stands_still_for_a_second_loses_nothing_and_the_second_shows() {
    let Some(bench) = Bench::start(&workload("1", "clean", false), "mqtt5") else { return };
    bench.broker.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(1));
    bench.broker.signal(libc::SIGCONT);
    let record = bench.record();
    assert_count_eq!(count(&record, "delivered"), OFFERED * SUBSCRIBERS, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "duplicated"), 0, "{}", record["delivery"]);
    assert_count_eq!(connections(&record, "dropped"), 0, "{}", record["connections"]);
    // Each device was due within 20 ms of the stop.
    let largest_us = record["latency"]["total"]["upper"]["max_us"].as_f64().unwrap();
    assert!(largest_us >= 950_000.0, "a second's stop shows as {largest_us} µs");
}

#[test]
fn a_broker_without_memory_that_is_killed_loses_lasting_sessions_and_the_books_close() {
    let Some(mut bench) = Bench::start(&workload("1", "persistent", false), "mqtt5") else { return };
    bench.broker.kill();
    std::thread::sleep(Duration::from_millis(300));
    assert!(bench.broker.restart(), "the port was taken meanwhile");
    let record = bench.record();
    assert_count_eq!(connections(&record, "dropped"), DEVICES + SUBSCRIBERS, "{}", record["connections"]);
    assert_count_eq!(count(&record, "absent"), 0, "a lasting session was promised: {}", record["delivery"]);
    assert!(count(&record, "skipped_disconnected") > 0, "{}", record["delivery"]);
}
