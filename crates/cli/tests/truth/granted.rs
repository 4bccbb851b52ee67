//! Nothing is expected of a subscription that the broker refused, and each filter of a subscription has a separate
//! result.

use pubmark_testing::assert_count_eq;

use crate::liar::{Liar, Truth};

/// Four messages, two of each topic; what subscribes is added.
fn run(script: &str, subscribers: &str) -> Truth {
    let workload = format!(
        "name: granted
devices:
  - {{name: a, arrival: {{trace: [300ms, 600ms]}}, payload: 100B, topic: granted/a}}
  - {{name: b, arrival: {{trace: [400ms, 700ms]}}, payload: 100B, topic: granted/b}}
subscribers:
{subscribers}"
    );
    let truth = Liar::start(script).run_workload(&workload, &["--duration", "1s", "--warmup", "0s"]);
    truth.demand_agreement();
    truth
}

fn reason(truth: &Truth, code: &str) -> String {
    let reasons = truth.record["verdict"]["reasons"].as_array().unwrap();
    let found = reasons.iter().find(|reason| reason["code"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {reasons:?}"))["text"].as_str().unwrap().to_owned()
}

#[test]
fn nothing_is_expected_where_every_subscription_was_refused() {
    let subscriber = "  - {name: subscriber, filters: [granted/a, granted/b]}\n";
    let truth = run("refuse-subscribe code=0x87", subscriber);
    truth.demand_only(&[("offered", 4), ("sent", 4), ("absent", 4)]);
    assert_eq!(truth.record["verdict"]["status"], "invalid");
    let text = reason(&truth, "V23");
    assert!(text.starts_with("2 subscriptions were refused") && text.contains("not authorized"), "{text}");
}

#[test]
fn each_filter_of_a_subscription_has_its_own_answer() {
    for refused in ["granted/a", "granted/b"] {
        let subscriber = "  - {name: subscriber, filters: [granted/a, granted/b]}\n";
        let truth = run(&format!("refuse-subscribe code=0x87 topic={refused}"), subscriber);
        truth.demand_only(&[("offered", 4), ("sent", 4), ("expected", 2), ("delivered", 2), ("absent", 2)]);
        assert!(reason(&truth, "V23").starts_with("1 subscription was refused"));
    }
}

#[test]
fn a_refused_filter_takes_nothing_from_a_message_that_another_one_matches() {
    let subscriber = "  - {name: subscriber, filters: [granted/+, granted/b]}\n";
    let truth = run("refuse-subscribe code=0x87 topic=granted/b", subscriber);
    truth.demand_only(&[("offered", 4), ("sent", 4), ("expected", 4), ("delivered", 4)]);
}

#[test]
fn a_message_that_is_lost_on_a_granted_filter_is_lost() {
    let subscriber = "  - {name: subscriber, filters: [granted/a, granted/b]}\n";
    let truth = run("refuse-subscribe code=0x87 topic=granted/a\ndrop topic=granted/b count=1", subscriber);
    truth.demand_only(&[("offered", 4), ("sent", 4), ("expected", 2), ("delivered", 1), ("lost", 1), ("absent", 2)]);
}

#[test]
fn of_two_subscribers_the_refused_one_expects_nothing() {
    let subscribers = "  - {name: one, filters: [granted/a]}\n  - {name: other, filters: [granted/+]}\n";
    let truth = run("refuse-subscribe code=0x87 topic=granted/a", subscribers);
    truth.demand_only(&[("offered", 4), ("sent", 4), ("expected", 4), ("delivered", 4), ("absent", 2)]);
    assert_count_eq!(truth.record["connections"]["subscriptions_refused"], 1);
}
