//! Groups on shared connections, reactions, and the supermarket against ComBench's counts.

use std::time::Duration;

use pubmark_model::load::{self, LoadOptions, ProblemKind};
use pubmark_model::plan::{Plan, PlanOptions};

use super::{read, refused};

/// Rates that ComBench's model predicts and that its runs measured (`data/specjms_scaling_check.csv`).
const SCALES: &str = include_str!("../../data/specjms_scaling_check.csv");

#[test]
fn the_supermarket_sends_and_delivers_what_combench_published() {
    let mut lines = SCALES.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    for line in lines {
        let row: Vec<&str> = line.split(',').collect();
        let figure =
            |name: &str| -> f64 { row[columns.iter().position(|column| *column == name).unwrap()].parse().unwrap() };
        let options = LoadOptions { scale: figure("scaling_factor") as u32, ..LoadOptions::default() };
        let workload = load::load("supermarket", &options).unwrap();
        let plan = Plan::new(&workload, &PlanOptions::default());
        assert_eq!(plan.connections, figure("clients_total") as u64, "{line}");
        let near = |rate: f64, name: &str| assert!((rate - figure(name)).abs() < 0.06, "{name}: {rate} in {line}");
        near(plan.incoming.unwrap().messages_per_s, "model_published_msg_s");
        near(plan.outgoing.unwrap().messages_per_s, "model_delivered_msg_s");
    }
}

const WHOLE: &str = "name: test
defaults: {payload: 100B}
devices:
  - {name: root, every: 1s, topic: 'a/{index}'}
  - {name: answer, count: 2, client: c, arrival: {reaction_to: 'a/+'}, topic: 'b/{trigger}'}
subscribers:
  - {name: listener, count: 2, client: c, filters: ['a/+']}
";

#[test]
fn shared_connections_and_reactions_are_checked() {
    use ProblemKind::*;
    read(WHOLE).unwrap();
    for (from, to, kind, says) in [
        ("count: 2, client: c, filters", "client: c, filters", Conflict, "has 2 clients here and 1 there"),
        ("client: c, arrival", "arrival", MissingKey, "has no subscription of its own"),
        ("filters: ['a/+']", "filters: ['z/+']", Conflict, "nothing triggers `answer`"),
        ("'a/{index}'", "'a/{trigger}'", UnknownPlaceholder, "`{index}`"),
        ("'a/{index}'", "'a/{index%lissener}'", UnknownName, "did you mean `listener`"),
        ("reaction_to: 'a/+'", "reaction_to: 'a/+', on: 5s", Conflict, "`on` belongs to on and off periods"),
        ("reaction_to: 'a/+'", "reaction_to: 'a/+', think: 5", BadUnit, ""),
        (
            "client: c, arrival",
            "client: c, every: 1s, arrival",
            Conflict,
            "a reaction without `for` has a pace of its own",
        ),
        (
            "client: c, arrival",
            "client: c, churn: {disconnect: 5% every 1s, reconnect: 80% every 1s}, arrival",
            Conflict,
            "leave `client` out, or churn",
        ),
        ("client: c, filters", "client: c, shared: s, filters", Conflict, "shared group"),
        ("client: c, filters", "client: c, session: persistent, filters", Conflict, "same `session`"),
        ("count: 2, client: c, arrival", "count: 0, client: c, arrival", ImpossibleValue, "between 1 and"),
        ("count: 2, client: c, arrival", "count: 1e30, client: c, arrival", ImpossibleValue, "too many members"),
        ("count: 2, client: c, arrival", "count: much, client: c, arrival", WrongKind, "is a number, not `much`"),
    ] {
        let text = WHOLE.replace(from, to);
        assert_ne!(text, WHOLE, "{from}");
        let diagnostic = refused(&text);
        let message = format!("{diagnostic} {diagnostic:?}");
        assert_eq!(diagnostic.kind(), kind, "{to}: {message}");
        assert!(message.contains(says), "{to}: {message}");
    }
    let circle = refused(&WHOLE.replace("'b/{trigger}'", "'a/{trigger}'"));
    assert!(circle.to_string().contains("reacts to its own reactions"), "{circle}");
}

const SLOWED: &str = "name: test
defaults: {payload: 100B}
devices:
  - {name: boss, every: 1s, topic: 'a/{index}'}
  - {name: meter, count: 2, client: c, rate: 5/s, when: {receives: 'a/+', rate: 1/s, for: 3s}, topic: 'b/{index}'}
subscribers:
  - {name: meters, count: 2, client: c, filters: ['a/+']}
";

#[test]
fn lower_rates_after_a_message_are_checked() {
    use ProblemKind::*;
    let workload = read(SLOWED).unwrap();
    let slowdown = workload.devices[1].slowdown.as_ref().unwrap();
    assert_eq!((slowdown.interval, slowdown.length), (Some(Duration::from_secs(1)), Duration::from_secs(3)));
    for (from, to, kind, says) in [
        ("client: c, rate", "rate", MissingKey, "`meter` has `when` and no subscription of its own"),
        ("filters: ['a/+']", "filters: ['z/+']", Conflict, "nothing slows `meter` down"),
        ("receives: 'a/+'", "receives: 'q'", Conflict, "no device sends to `q` what `c` subscribes to"),
        ("receives: 'a/+'", "receives: 'a/#/b'", BadFilter, "a/#/b"),
        ("receives: 'a/+'", "receives: 'a/{index%metre}'", UnknownName, "did you mean `meter`"),
        ("'a/+', rate: 1/s", "'a/+', rate: 5/s", ImpossibleValue, "is not below the rate"),
        ("'a/+', rate: 1/s", "'a/+', rate: 9/s", ImpossibleValue, "add a group with the same `client`"),
        ("'a/+', rate: 1/s", "'a/+', rate: -1/s", BadUnit, "-1/s"),
        ("'a/+', rate: 1/s", "'a/+', every: 100ms", ImpossibleValue, "is not below the rate"),
        ("'a/+', rate: 1/s", "'a/+', rate: 1/s, every: 1s", Conflict, "say the same thing twice"),
        ("'a/+', rate: 1/s", "'a/+'", MissingKey, "`when` has no rate"),
        (", for: 3s", "", MissingKey, "for"),
        ("for: 3s", "for: 0s", ImpossibleValue, "cannot be zero"),
        ("for: 3s", "for: 3s, until: 4s", UnknownKey, "until"),
        ("rate: 5/s, when", "arrival: flood, when", Conflict, "no rate to lower"),
    ] {
        let text = SLOWED.replace(from, to);
        assert_ne!(text, SLOWED, "{from}");
        let diagnostic = refused(&text);
        let message = format!("{diagnostic} {diagnostic:?}");
        assert_eq!(diagnostic.kind(), kind, "{to}: {message}");
        assert!(message.contains(says), "{to}: {message}");
    }
    let silent = read(&SLOWED.replace("'a/+', rate: 1/s", "'a/+', rate: 0/s")).unwrap();
    assert_eq!(silent.devices[1].slowdown.as_ref().unwrap().interval, None);
    for pace in
        ["arrival: poisson, rate: 5/s", "arrival: {trace: [1s, 2s]}", "every: 1s, profile: {curve: {'00:00': 5}}"]
    {
        read(&SLOWED.replace("rate: 5/s", pace)).unwrap_or_else(|error| panic!("{pace}: {error:?}"));
    }
}
