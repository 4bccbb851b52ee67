//! Files for orchestrators: what is in them, and what is refused.

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::place::{Called, Place};

fn deploy(place: &Place, words: &[&str]) -> Called {
    place.call(&[&["deploy"][..], words].concat())
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The documents of a file, read by a YAML library that is not ours.
fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

#[test]
fn kubernetes_gets_all_that_a_run_needs() {
    let place = Place::new();
    let words =
        ["kubernetes", "smart-home", "--nodes", "5", "--limit", "cpu=0.5,memory=256MB", "--node-limit", "cpu=1"];
    let called = deploy(&place, &[&words[..], &["--", "--qos", "1", "--duration", "10s"]].concat());
    assert!(called.code() == 0 && called.printed.contains("kubectl create -f deploy/pubmark.yaml"), "{called:?}");
    let objects = documents(&read(&place, "deploy/pubmark.yaml"));
    let of = |kind: &str, name: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let nodes = &of("Job", "pubmark-node")["spec"];
    assert_eq!((&nodes["completions"], &nodes["completionMode"]), (&5.into(), &"Indexed".into()));
    let container = &nodes["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], container["resources"]["requests"]);
    assert_eq!(container["resources"]["limits"]["cpu"], "1000m");
    assert_eq!(container["securityContext"]["runAsNonRoot"], true);
    assert!(nodes["template"]["spec"]["affinity"]["podAntiAffinity"].is_object());
    let coordinator = &of("Job", "pubmark-coordinator")["spec"]["template"]["spec"]["containers"][0];
    let words = [&coordinator["args"][0], &coordinator["args"][1]];
    assert_eq!(words, ["run", "/pubmark/credentials/run.yaml"]);
    let spec: Value =
        serde_saphyr::from_str(of("Secret", "pubmark-coordinator")["stringData"]["run.yaml"].as_str().unwrap())
            .unwrap();
    assert_eq!((&spec["workload"], &spec["nodes"]["nodes"]), (&"smart-home".into(), &5.into()));
    assert_eq!(spec["target"]["endpoint"], "mqtt://system:1883");
    assert_eq!((&spec["load"]["qos"], &spec["window"]["duration"]), (&1.into(), &"10s".into()));
    let system = &of("Deployment", "pubmark-system")["spec"]["template"]["spec"]["containers"][0];
    assert!(system["image"].as_str().unwrap().contains("eclipse-mosquitto:2"), "{system}");
    assert_eq!(system["resources"]["limits"]["memory"], "256000000");
    assert!(of("ConfigMap", "pubmark-system")["data"]["mosquitto.conf"].as_str().unwrap().contains("listener 1883"));
    assert!(of("Service", "coordinator")["spec"]["clusterIP"] == "None");
    for side in ["pubmark-coordinator", "pubmark-node"] {
        assert!(of("Secret", side)["stringData"]["key.pem"].as_str().unwrap().contains("PRIVATE KEY"));
    }
    // A user without a password has none in the container either.
    let called = deploy(&place, &["compose", "smart-home", "--out", "user", "--", "--user", "ann"]);
    assert_eq!(called.code(), 0, "{called:?}");
    let spec = read(&place, "user/coordinator/run.yaml");
    assert!(spec.contains("user: ann") && !spec.contains("password"), "{spec}");
    // What was written is not overwritten: nodes may run with its certificates.
    let again = deploy(&place, &["kubernetes", "smart-home"]);
    assert!(again.code() == 2 && again.errors.contains("is there already"), "{again:?}");
}

const PLACED: &str = "name: placed
devices: [{name: cameras, every: 1s, payload: 30B, topic: c}]
subscribers: [{name: screens, filters: [c]}]
placement: {cameras: site=edge, screens: each site}
";

#[test]
fn compose_has_a_service_for_the_nodes_of_each_site() {
    let place = Place::new();
    place.write("placed.yaml", PLACED);
    let call = ["compose", "placed.yaml", "--nodes", "3", "--", "--node-label"];
    let called = deploy(&place, &[&call[..], &["site=edge,cloud"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let compose: Value = serde_saphyr::from_str(&read(&place, "deploy/compose.yaml")).unwrap();
    let service = |name: &str| {
        let service = &compose["services"][name];
        let words: Vec<&str> = service["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        (words[words.len() - 2..].join(" "), service["deploy"]["replicas"].as_u64())
    };
    assert_eq!(service("node-1"), ("--label site=edge".to_owned(), Some(2)));
    assert_eq!(service("node-2"), ("--label site=cloud".to_owned(), Some(1)));
    assert!(compose["services"]["node"].is_null(), "{compose}");
    let spec = read(&place, "deploy/coordinator/run.yaml");
    assert!(!spec.contains("node_labels") && spec.contains("each site"), "{spec}");
    for (words, said) in [
        (&["compose", "placed.yaml", "--out", "b"][..], "no node has a label"),
        (
            &["compose", "placed.yaml", "--out", "b", "--", "--node-label", "site=edge,b,c"],
            "has 3 values, and the run has 2 nodes",
        ),
        (&["kubernetes", "placed.yaml", "--out", "b"], "nodes of one Kubernetes Job are alike"),
    ] {
        let called = deploy(&place, words);
        let errors = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(called.code() == 2 && errors.contains(said), "{words:?}: {called:?}");
    }
}

/// Reads an object into the types of the Kubernetes API and back: what those do not know, or take for something else, is missing then.
fn known<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) {
    let read: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
    let again = serde_json::to_value(read).unwrap();
    assert_eq!(again["metadata"], object["metadata"]);
    for part in ["spec", "data", "stringData", "type"] {
        assert_eq!(without_defaults(&again[part]), without_defaults(&object[part]), "{part} of {}", object["kind"]);
    }
}

/// Empty and missing mean the same to Kubernetes.
fn without_defaults(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(|fields| fields.is_empty())
            || value.as_array().is_some_and(Vec::is_empty)
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| (name.clone(), without_defaults(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_defaults).collect()),
        other => other.clone(),
    }
}

#[test]
fn every_object_is_one_that_kubernetes_knows() {
    use k8s_openapi::api::{
        apps::v1::Deployment, batch::v1::Job, core::v1::ConfigMap, core::v1::Secret, core::v1::Service,
    };
    let place = Place::new();
    place.write(
        "own.yaml",
        "{name: own, devices: [{name: a, every: 1s, payload: 10B, topic: a}], subscribers: [{name: b, filters: [a]}]}",
    );
    for (system, protocol) in
        [("mosquitto", "mqtt5"), ("nats", "nats"), ("rabbitmq", "amqp091"), ("emqx", "mqtt311"), ("redis", "redis")]
    {
        let words =
            ["kubernetes", "own.yaml", "--system", system, "--protocol", protocol, "--out", system, "--limit", "cpu=1"];
        let called = deploy(&place, &words);
        assert_eq!(called.code(), 0, "{called:?}");
        let objects = documents(&read(&place, &format!("{system}/pubmark.yaml")));
        for object in &objects {
            match object["kind"].as_str().unwrap() {
                "ConfigMap" => known::<ConfigMap>(object),
                "Secret" => known::<Secret>(object),
                "Service" => known::<Service>(object),
                "Deployment" => known::<Deployment>(object),
                "Job" => known::<Job>(object),
                other => panic!("a {other} was not expected"),
            }
        }
        assert_eq!(objects.len(), 8, "{system}");
    }
}

#[test]
fn compose_mounts_what_lies_beside_it() {
    let place = Place::new();
    place.write(
        "own.yaml",
        "{name: own, devices: [{name: a, every: 1s, payload: 10B, topic: a}], subscribers: [{name: b, filters: [a]}]}",
    );
    let called = deploy(
        &place,
        &["compose", "own.yaml", "--system", "nats", "--protocol", "nats", "--nodes", "3", "--out", "c"],
    );
    assert_eq!(called.code(), 0, "{called:?}");
    let file = &documents(&read(&place, "c/compose.yaml"))[0];
    assert_eq!(file["services"]["node"]["deploy"]["replicas"], 3);
    let command = file["services"]["coordinator"]["command"].to_string();
    assert!(command.contains("/pubmark/credentials/run.yaml"), "{command}");
    for service in ["coordinator", "node", "system"] {
        for volume in file["services"][service]["volumes"].as_array().unwrap() {
            let here = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(here == "./system" || place.path().join("c").join(here).is_dir(), "{volume}");
        }
    }
    let spec = read(&place, "c/coordinator/run.yaml");
    for wanted in ["name: own", "endpoint: nats://system:4222", "nodes: 3", "listen: 0.0.0.0:7700"] {
        assert!(spec.contains(wanted), "`{wanted}` is not in {spec}");
    }
}

#[test]
fn what_cannot_be_placed_is_said() {
    let place = Place::new();
    for (words, said) in [
        (&["kubernetes", "smart-home", "--system", "dds", "--protocol", "dds"][..], "no container"),
        (&["kubernetes", "smart-hom"], "there is no workload `smart-hom`"),
        (&["kubernetes", "smart-home", "--name", "Mein Lauf"], "cannot be the name"),
        (&["kubernetes", "smart-home", "--", "--nodes", "3"], "before `--`"),
        (&["kubernetes", "smart-home", "--", "--qos", "7"], "--qos"),
        (&["kubernetes", "smart-home", "--limit", "cpu=lots"], "lots"),
        (
            &["kubernetes", "smart-home", "--", "--endpoint", "mqtts://broker", "--tls-ca", "ca.pem"],
            "names a file of this machine",
        ),
        (&["kubernetes", "smart-home", "--", "--tls"], "`--tls` is for a system that pubmark starts"),
    ] {
        let called = deploy(&place, words);
        assert!(called.code() == 2 && called.errors.contains(said), "{words:?}: {called:?}");
        assert!(!place.path().join("deploy").exists(), "{words:?}");
    }
}

/// Plays a cluster: writes down what it is asked, has a job that ends at the second look, and a log with a record.
const KUBECTL: &str = r#"#!/bin/sh
printf '%s\n' "$*" >>"$PLACE/asked"
case "$*" in
*" get job "*)
    if [ -e "$PLACE/looked" ]; then
        printf '{"status": {"conditions": [{"type": "%s", "status": "True"}]}}' "$ENDS"
    else
        : >"$PLACE/looked"
        printf '{"status": {"active": 1}}'
    fi ;;
*" logs "*) cat "$PLACE/log" ;;
esac
"#;

fn apply(place: &Place, ends: &str, log: &str) -> Called {
    use std::os::unix::fs::PermissionsExt as _;
    place.write("log", log);
    // Left by a call before.
    let _ = std::fs::remove_file(place.path().join("looked"));
    let folder = place.path().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("kubectl"), KUBECTL).unwrap();
    std::fs::set_permissions(folder.join("kubectl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(crate::support::place::PUBMARK);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("PLACE", place.path()).env("ENDS", ends);
    place.start_by(command, &["deploy", "kubernetes", "smart-home", "--out", ends, "--apply"]).wait()
}

#[test]
fn a_run_is_applied_collected_and_taken_away() {
    let place = Place::new();
    let record = place.record(&["smart-home", "--duration", "1s", "--warmup", "0s"]);
    let log = serde_json::to_string_pretty(&record).unwrap();
    let called = apply(&place, "Complete", &format!("warning: before the record\n{log}"));
    let is_invalid = record["verdict"]["status"] == "invalid";
    assert_eq!(called.code(), if is_invalid { 5 } else { 0 }, "{called:?}");
    assert!(called.printed.contains("smart-home"), "{called:?}");
    let kept: Value = serde_json::from_str(&read(&place, "Complete/record.json")).unwrap();
    assert_count_eq!(kept["delivery"], record["delivery"]);
    assert!(read(&place, "Complete/report.html").contains("<html"));
    let asked = read(&place, "asked");
    let asked: Vec<&str> = asked.lines().collect();
    for (line, wanted) in asked.iter().zip([
        " create -f ",
        " get job pubmark-coordinator -o json",
        " get job pubmark-coordinator",
        " logs job/pubmark-coordinator",
        " delete --ignore-not-found",
    ]) {
        assert!(line.contains(wanted), "`{wanted}` is not in `{line}`");
    }
    assert_count_eq!(asked.len(), 5, "{asked:?}");
    let failed = apply(&place, "Failed", "error: there is no such workload\n");
    assert!(failed.code() == 6 && failed.errors.contains("there is no such workload"), "{failed:?}");
    assert!(read(&place, "asked").lines().last().unwrap().contains(" delete "), "what was applied is taken away");
    let compose = place.call(&["deploy", "compose", "smart-home", "--apply"]);
    assert!(compose.code() == 2 && compose.errors.contains("--apply"), "{compose:?}");
}
