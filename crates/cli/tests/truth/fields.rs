//! Each field of the message accounting is made 1, and only that field: a lie about one message changes one message.
//!
//! The workload is four messages of one device at known times, received by one subscriber.

use pubmark_testing::assert_count_eq;

use crate::liar::{Liar, Truth};

/// A connection cut at message 2 is refused twice more ([`CUT_FOR_LONG`]): it is not up again for 350 ms, and is within 700 ms.
/// Message 3 falls into the middle of the first, message 4 well behind the second, so that a machine that stalls for a while changes
/// nothing.
fn run(script: &str, qos: u8, churn: &str) -> Truth {
    let workload = format!(
        "name: four
devices:
  - {{name: device, arrival: {{trace: [0s, 500ms, 675ms, 1800ms]}}, payload: 100B, topic: four/device, qos: {qos}{churn}}}
subscribers:
  - {{name: subscriber, filters: [four/device], qos: {qos}}}
"
    );
    let truth =
        Liar::start(script).run_workload(&workload, &["--duration", "2300ms", "--warmup", "0s", "--drain", "5s"]);
    truth.demand_agreement();
    truth
}

/// The device and the subscriber connect first; the third connection is the one that was cut.
const CUT_FOR_LONG: &str = "refuse-connect code=0x88 from=3 count=2\n";

const ALL: [(&str, u64); 4] = [("offered", 4), ("sent", 4), ("expected", 4), ("delivered", 4)];

/// The accounting without any fault except these changes.
fn with(changes: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
    let mut books: Vec<_> =
        ALL.into_iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name)).collect();
    books.extend_from_slice(changes);
    books
}

#[test]
fn one_message_is_offered_sent_expected_and_delivered() {
    let workload = "
name: one
devices:
  - {name: device, arrival: {trace: [500ms]}, payload: 100B, topic: one/device}
subscribers:
  - {name: subscriber, filters: [one/device]}
";
    let truth = Liar::start("").run_workload(workload, &["--duration", "1s", "--warmup", "0s"]);
    truth.demand_agreement();
    truth.demand_only(&[("offered", 1), ("sent", 1), ("expected", 1), ("delivered", 1)]);
}

#[test]
fn an_honest_broker_has_nothing_amiss_at_any_level() {
    for qos in 0..=2 {
        run("", qos, "").demand_only(&ALL);
    }
}

/// It left as planned and is not let in again: that is no loss of a connection, so what is due waits, to the deadline.
#[test]
fn one_is_unsent_as_a_device_that_left_is_refused_when_it_comes_back() {
    // Away from 600 to 700 ms, when message 3 is due, and never let in again; message 4 is due on the instant of its third leave.
    let churn = ", churn: {disconnect: 100% every 600ms, reconnect: 100% every 700ms, checks: together}";
    let truth = run("refuse-connect code=0x89 from=3\n", 1, churn);
    truth.demand_only(&with(&[
        ("sent", 2),
        ("expected", 2),
        ("delivered", 2),
        ("skipped_planned", 1),
        ("unsent", 1),
        ("prevented", 1),
    ]));
}

#[test]
fn one_is_lost() {
    run("drop message=3", 0, "").demand_only(&with(&[("delivered", 3), ("lost", 1)]));
}

#[test]
fn one_is_lost_although_it_was_acknowledged() {
    run("drop message=3", 1, "").demand_only(&with(&[("delivered", 3), ("lost", 1)]));
}

#[test]
fn one_is_duplicated() {
    run("duplicate message=2", 0, "").demand_only(&with(&[("duplicated", 1)]));
}

#[test]
fn one_is_out_of_order() {
    run("swap message=2", 0, "").demand_only(&with(&[("out_of_order", 1)]));
}

#[test]
fn one_is_late() {
    run("delay 2700ms message=4", 0, "").demand_only(&with(&[("late", 1)]));
}

#[test]
fn one_is_refused() {
    let books = with(&[("sent", 3), ("refused", 1), ("expected", 3), ("delivered", 3), ("prevented", 1)]);
    run("refuse code=0x97 deliver=no message=2", 1, "").demand_only(&books);
}

#[test]
fn one_is_refused_and_delivered_all_the_same() {
    let books = with(&[
        ("sent", 3),
        ("refused", 1),
        ("expected", 3),
        ("delivered", 3),
        ("delivered_after_refusal", 1),
        ("prevented", 1),
    ]);
    run("refuse code=0x97 deliver=yes message=2", 1, "").demand_only(&books);
}

#[test]
fn one_is_skipped_because_the_connection_was_cut() {
    let script = format!("{CUT_FOR_LONG}cut-publisher when=after-ack forward=yes how=close message=2");
    let books = with(&[("sent", 3), ("skipped_disconnected", 1), ("expected", 3), ("delivered", 3), ("prevented", 1)]);
    run(&script, 0, "").demand_only(&books);
}

#[test]
fn one_is_unknown_because_its_acknowledgement_never_came() {
    let script = "cut-publisher when=before-ack forward=no how=close message=4";
    run(script, 1, "").demand_only(&with(&[("delivered", 3), ("unknown", 1)]));
}

#[test]
fn one_is_delivered_although_its_acknowledgement_never_came() {
    let script = "cut-publisher when=before-ack forward=yes how=close message=4";
    run(script, 1, "").demand_only(&ALL);
}

#[test]
fn one_falls_into_an_absence_of_the_subscriber() {
    let script = format!("{CUT_FOR_LONG}cut-subscriber how=close message=2");
    run(&script, 0, "").demand_only(&with(&[("expected", 3), ("delivered", 3), ("absent", 1)]));
}

#[test]
fn one_is_foreign() {
    run("foreign message=2", 0, "").demand_only(&with(&[("foreign", 1)]));
}

#[test]
fn one_was_never_sent() {
    let truth = run("forge message=2", 0, "");
    truth.demand_only(&with(&[("foreign", 1)]));
    assert_count_eq!(truth.record["latency"]["total"]["upper"]["count"], 4);
}

#[test]
fn one_is_a_retained_replay() {
    run("retained-copy message=2", 0, "").demand_only(&with(&[("retained_replay", 1)]));
}

#[test]
fn one_overlaps() {
    let workload = "
name: overlap
devices:
  - {name: device, arrival: {trace: [500ms]}, payload: 100B, topic: overlap/device}
subscribers:
  - {name: subscriber, filters: [overlap/device, overlap/+]}
";
    let truth = Liar::start("overlap").run_workload(workload, &["--duration", "1s", "--warmup", "0s"]);
    truth.demand_agreement();
    truth.demand_only(&[("offered", 1), ("sent", 1), ("expected", 1), ("delivered", 1), ("overlap", 1)]);
}

#[test]
fn one_is_skipped_as_planned() {
    // It leaves for good at 1.2 s, the only check in the run that can strike.
    let churn = ", churn: {disconnect: 100% every 1200ms, reconnect: 100% every 100s, checks: together}";
    run("", 0, churn).demand_only(&[
        ("offered", 4),
        ("sent", 3),
        ("skipped_planned", 1),
        ("expected", 3),
        ("delivered", 3),
    ]);
}

#[test]
fn one_is_never_sent_because_its_device_is_never_let_in() {
    let workload = "
name: two
devices:
  - {name: welcome, arrival: {trace: [500ms]}, payload: 100B, topic: two/welcome}
  - {name: refused, arrival: {trace: [600ms]}, payload: 100B, topic: two/refused,
     credentials: {user: stranger, password: wrong}}
subscribers:
  - {name: subscriber, filters: [two/+], credentials: {user: device, password: secret}}
";
    let workload =
        workload.replace("topic: two/welcome}", "topic: two/welcome, credentials: {user: device, password: secret}}");
    let arguments = ["--duration", "1s", "--warmup", "0s", "--drain", "1s"];
    let truth = Liar::start("login user=device password=secret").run_workload(&workload, &arguments);
    truth.demand_agreement();
    truth.demand_only(&[
        ("offered", 2),
        ("sent", 1),
        ("unsent", 1),
        ("expected", 1),
        ("delivered", 1),
        ("prevented", 1),
    ]);
    assert!(truth.record["connections"]["auth_failed"].as_u64().unwrap() > 0);
}

#[test]
fn a_lower_level_granted_is_counted() {
    let truth = run("grant qos=0", 1, "");
    truth.demand_only(&ALL);
    assert_count_eq!(truth.record["connections"]["granted_qos_lower"], 1);
}
