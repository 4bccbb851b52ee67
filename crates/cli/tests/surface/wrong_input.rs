//! The error after wrong input: the value, why it cannot be used, what to type instead, and code 2.

use std::fs;

use crate::call::{assert_fits, call, call_in};

/// Name of the snapshot and what is typed.
const WRONG: &[(&str, &[&str])] = &[
    ("no-such-verb", &["runn", "smart-home"]),
    ("no-such-workload", &["run", "smart-hme", "--dry-run"]),
    ("an-experiment-as-workload", &["run", "psmark-low", "--dry-run"]),
    ("no-such-system", &["run", "smart-home", "--system", "mosquito"]),
    ("an-endpoint-as-system", &["run", "smart-home", "--system", "endpoint"]),
    ("no-such-protocol", &["run", "smart-home", "--protocol", "mqtt6"]),
    ("no-such-level", &["run", "smart-home", "--qos", "3"]),
    ("no-unit", &["run", "smart-home", "--duration", "60"]),
    ("wrong-unit", &["run", "smart-home", "--duration", "60parsec"]),
    ("zero-duration", &["run", "smart-home", "--duration", "0s"]),
    ("limit-and-endpoint", &["run", "smart-home", "--limit", "cpu=1", "--endpoint", "mqtt://localhost"]),
    ("no-such-limit", &["run", "smart-home", "--limit", "cpus=1"]),
    ("limit-without-value", &["run", "smart-home", "--limit", "memory=much"]),
    ("no-such-topology", &["run", "smart-home", "--topology", "3:star"]),
    ("topology-not-offered", &["run", "hello", "--system", "mosquitto", "--topology", "3:cluster"]),
    ("no-such-side", &["run", "smart-home", "--pin", "broker=0"]),
    ("rate-of-a-flood", &["run", "pairs", "--set", "arrival=flood", "--rate", "2", "--dry-run"]),
    ("capacity-of-a-flood", &["capacity", "pairs", "--set", "arrival=flood"]),
    ("no-such-objective", &["capacity", "pairs", "--slo", "p98<50ms"]),
    ("objective-without-unit", &["capacity", "pairs", "--slo", "p99<50"]),
    ("level-not-offered", &["run", "hello", "--system", "rabbitmq", "--qos", "2"]),
    ("protocol-not-spoken", &["run", "hello", "--system", "redis", "--protocol", "redis"]),
    ("endpoint-without-scheme", &["run", "smart-home", "--endpoint", "localhost:1883"]),
    ("endpoint-of-another-protocol", &["run", "smart-home", "--endpoint", "stomp://localhost"]),
    ("endpoint-with-a-wrong-port", &["run", "smart-home", "--endpoint", "mqtt://localhost:99999"]),
    (
        "password-without-variable",
        &["run", "hello", "--endpoint", "mqtt://127.0.0.1", "--user", "ann", "--password-env", "UNSET"],
    ),
    ("setting-without-value", &["run", "pairs", "--set", "rate"]),
    ("no-such-setting", &["run", "pairs", "--set", "rat=5/s", "--dry-run"]),
    ("setting-with-a-wrong-value", &["run", "pairs", "--set", "rate=fast", "--dry-run"]),
    ("no-such-link", &["run", "pairs", "--link", "edge-typcal", "--dry-run"]),
    ("no-such-group-for-a-link", &["run", "pairs", "--link", "senders=lte", "--dry-run"]),
    ("link-without-name", &["run", "pairs", "--link", "sender="]),
    ("link-to-an-endpoint-without-a-broker", &["run", "pairs", "--link", "lte", "--endpoint", "dds://127.0.0.1"]),
    ("nodes-without-dry-run", &["run", "smart-home", "--nodes", "5"]),
    ("no-such-code", &["explain", "V99"]),
    ("no-such-run", &["report", "runs/yesterday"]),
    ("no-such-run-for-a-table", &["table", "runs/yesterday"]),
    ("no-such-format-of-a-table", &["table", "runs/yesterday", "--format", "xlsx"]),
    ("one-run-to-compare", &["compare", "runs/a"]),
    ("no-such-experiment", &["experiment", "broker"]),
    ("no-such-axis", &["experiment", "edge-testbed", "--only", "sistem=mosquitto"]),
    ("no-such-value-of-an-axis", &["experiment", "edge-testbed", "--only", "payload=1KB"]),
    ("axis-without-value", &["experiment", "edge-testbed", "--only", "payload"]),
    ("no-experiment", &["experiment"]),
    ("no-experiment-to-resume", &["experiment", "--resume", "runs/yesterday"]),
    ("compare-without-systems", &["compare", "smart-home"]),
    ("compare-no-such-system", &["compare", "hello", "--systems", "builtin,mosquito"]),
    ("compare-by-one-name-of-the-option", &["compare", "hello", "--system", "builtin,mosquito"]),
    ("compare-no-such-workload", &["compare", "helo", "--systems", "builtin"]),
    ("compare-no-such-limit", &["compare", "hello", "--systems", "builtin", "--limit", "none", "cpus=1"]),
    ("compare-no-such-topology", &["compare", "hello", "--systems", "builtin", "--topology", "3"]),
    ("compare-value-twice", &["compare", "hello", "--systems", "builtin", "--qos", "1,1"]),
    ("compare-runs-with-options", &["compare", "runs/a", "runs/b", "--repeat", "3"]),
    ("choose-nothing", &["choose"]),
    ("choose-no-such-file", &["choose", "requirments.yaml"]),
    ("choose-no-such-workload", &["choose", "--workload", "smart-hme", "--slo", "loss=0"]),
    ("choose-without-objectives", &["choose", "--workload", "hello"]),
    ("choose-no-such-objective", &["choose", "--workload", "hello", "--slo", "p98<1s"]),
    ("choose-no-such-system", &["choose", "--workload", "hello", "--slo", "loss=0", "--systems", "mosquito"]),
    (
        "choose-no-such-candidate",
        &["choose", "--workload", "hello", "--slo", "loss=0", "--systems", "builtin", "--require", "x"],
    ),
    (
        "choose-growth-without-headroom",
        &["choose", "--workload", "hello", "--slo", "loss=0", "--growth", "2", "--no-headroom"],
    ),
    ("choose-growth-too-fine", &["choose", "--workload", "hello", "--slo", "loss=0", "--growth", "1.125"]),
    ("choose-no-such-protocol", &["choose", "--workload", "hello", "--slo", "loss=0", "--protocol", "mqtt6"]),
    ("choose-on-nodes", &["choose", "--workload", "hello", "--slo", "loss=0", "--listen", "127.0.0.1:7701"]),
    ("choose-no-such-limit", &["choose", "--workload", "hello", "--slo", "loss=0", "--limit", "cpus=1"]),
    (
        "choose-endpoint-without-scheme",
        &["choose", "--workload", "hello", "--slo", "loss=0", "--endpoint", "localhost"],
    ),
    ("choose-budget-without-unit", &["choose", "--workload", "hello", "--slo", "loss=0", "--within", "30"]),
    ("no-such-schema", &["schema", "worklod"]),
];

#[test]
fn wrong_input_is_named_and_mended() {
    for (name, arguments) in WRONG {
        let text = call(arguments);
        assert!(text.ends_with("[exit code 2]\n"), "{name}: {text}");
        assert!(text.lines().nth(1) == Some("[standard error]"), "{name} prints nothing to standard output: {text}");
        assert_fits(&text);
        insta::assert_snapshot!(format!("wrong-{name}"), text);
    }
}

#[test]
fn a_mistake_in_a_workload_file_is_underlined() {
    let folder = tempfile::tempdir().unwrap();
    let file = "name: mine\n\ndevices:\n  - {name: d/t, every: 5 sec, payload: 100B, topic: \"a/b\"}\n\nsubscribers:\n  - {filters: [\"a/#\"]}\n";
    fs::write(folder.path().join("mine.yaml"), file).unwrap();
    let text = call_in(folder.path(), &["run", "mine.yaml", "--dry-run"]);
    assert!(text.ends_with("[exit code 2]\n"), "{text}");
    assert_fits(&text);
    insta::assert_snapshot!("wrong-workload-file", text);
}

#[test]
fn a_mistake_in_an_experiment_file_is_underlined() {
    let folder = tempfile::tempdir().unwrap();
    let axes = [
        ("system", "{system: [builtin, mosquito]}"),
        ("axis", "{system: builtin, qoss: [0]}"),
        ("level", "{system: builtin, qos: [0, 3]}"),
        ("limit", "{system: builtin, limit: [none, cpu=0.5,memory=256MB, cpus=1]}"),
        ("label", "{system: [builtin, builtin]}"),
        ("both", "{system: [{system: builtin, limit: cpu=1}], limit: [none]}"),
    ];
    for (name, axes) in axes {
        let file = format!("name: mine\nworkload: hello\nrepeat: 3\naxes: {axes}\n");
        fs::write(folder.path().join("mine.yaml"), file).unwrap();
        let text = call_in(folder.path(), &["experiment", "mine.yaml", "--dry-run"]);
        assert!(text.ends_with("[exit code 2]\n"), "{name}: {text}");
        assert_fits(&text);
        insta::assert_snapshot!(format!("wrong-experiment-{name}"), text);
    }
}

#[test]
fn a_file_that_is_no_record_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("empty", ""), ("list", "[1]"), ("future", "{\"schema_version\": 99}")] {
        fs::write(folder.path().join("record.json"), content).unwrap();
        let text = call_in(folder.path(), &["report", "record.json"]);
        assert!(text.ends_with("[exit code 2]\n"), "{text}");
        insta::assert_snapshot!(format!("wrong-record-{name}"), text);
    }
}
