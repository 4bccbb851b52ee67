//! Every system that starts within a second, as installed here: each protocol, each level, TLS, credentials, several
//! brokers, large packets. Systems that run only in containers are tested if an endpoint is given.

use std::net::SocketAddr;
use std::path::Path;

use pubmark_conformance::certificates::Certificates;
use pubmark_model::workload::Credentials;
use pubmark_systems::definition::TestedBy;
use pubmark_systems::{Definition, StartOptions, TlsFiles, install, start};
use pubmark_testing::skip;
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::program::{assert_closed, call, record_of};

pub const FAST: [&str; 10] =
    ["builtin", "coap", "mosquitto", "mochi", "nats", "redis", "valkey", "rumqttd", "aedes", "zeromq"];
/// Systems that other tests of each change start: `brokerless_dds`, `zenoh` and the conformance suite.
pub const ELSEWHERE: [&str; 5] = ["coap-peers", "dds", "zenoh", "zenoh-peers", "zeromq-peers"];
/// The protocols of pubmark's clients.
pub const SPOKEN: [&str; 17] = [
    "mqtt5",
    "mqtt311",
    "nats",
    "jetstream",
    "redis",
    "redis-streams",
    "amqp091",
    "amqp10",
    "coap",
    "coap-peers",
    "zeromq",
    "zeromq-peers",
    "zenoh",
    "zenoh-block",
    "zenoh-peer",
    "zenoh-peer-block",
    "dds",
];
const SHORT: &[&str] =
    &["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

/// Whether it is pubmark itself: `{self}` would be this test.
fn is_own(name: &str) -> bool {
    ["builtin", "coap"].contains(&name)
}

/// Whether it is a system without a broker.
fn is_brokerless(name: &str) -> bool {
    ["coap-peers", "dds", "zenoh-peers", "zeromq-peers"].contains(&name)
}

/// The definition if its program is installed; prints a message if it is not.
pub fn here(name: &str) -> Option<Definition> {
    let definition = Definition::load(name).unwrap();
    if is_own(name) || is_brokerless(name) || install::found(&definition).is_some() {
        return Some(definition);
    }
    skip(format_args!("{name} is not installed (`pubmark install {name}`)"));
    None
}

fn count(record: &Value, name: &str) -> u64 {
    record["delivery"][name].as_u64().unwrap()
}

/// Checks that each message of a run was delivered once, at the requested level.
fn assert_all_delivered(record: &Value, what: &str) {
    assert_closed(record);
    assert_count_eq!(count(record, "offered"), 100, "{what}");
    assert_count_eq!(count(record, "delivered"), 100, "{what}: {}", record["delivery"]);
    assert_count_eq!(count(record, "duplicated"), 0, "{what}");
    assert_count_eq!(record["connections"]["granted_qos_lower"], 0, "{what}: a lower level was granted");
}

#[test]
fn the_proof_in_a_definition_agrees_with_its_tests() {
    for definition in Definition::embedded().unwrap() {
        let name = definition.name.as_str();
        let by = definition.tested.by;
        let is_here = FAST.contains(&name) || ELSEWHERE.contains(&name);
        // The slow ones and those of FAST that only the full suite installs.
        let is_full = ["aedes", "artemis", "hivemq", "rabbitmq", "rumqttd", "valkey"].contains(&name);
        let expected = match (is_full, is_here) {
            (true, _) => TestedBy::FullSuite,
            (false, true) => TestedBy::EachChange,
            (false, false) => TestedBy::Hand,
        };
        assert_eq!(by, expected, "{name}");
        assert!(by != TestedBy::Hand || definition.tested.note.is_some(), "{name}: which version, and how?");
    }
}

#[test]
fn each_level_that_a_system_grants_delivers_everything() {
    let folder = tempfile::tempdir().unwrap();
    for definition in FAST.into_iter().filter_map(here) {
        for protocol in SPOKEN.into_iter().filter(|protocol| definition.protocols.contains_key(*protocol)) {
            for qos in 0..=definition.protocols[protocol].highest_qos {
                let qos = qos.to_string();
                let options = ["--system", &definition.name, "--protocol", protocol, "--qos", &qos];
                let record = record_of(folder.path(), &[SHORT, &options].concat());
                assert_all_delivered(&record, &format!("{options:?}"));
                assert_eq!(record["system"]["name"], *definition.name);
                let version = record["system"]["version"].as_str().unwrap_or_default();
                assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{options:?}: {version}");
            }
        }
    }
}

#[test]
fn installing_an_installed_system_tries_all_its_protocols() {
    let folder = tempfile::tempdir().unwrap();
    for definition in FAST.into_iter().filter_map(here) {
        let output = call(folder.path(), &["install", &definition.name]);
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}{errors}");
        let protocols = definition.protocols.keys().cloned().collect::<Vec<_>>().join(", ");
        assert!(said.contains(&format!(" works over {protocols}: ")), "{said}");
    }
}

/// Runs against an endpoint, at the protocol's highest level, and returns exit code and record.
fn run_against(folder: &Path, url: &str, protocol: &str, qos: u8, further: &[&str]) -> Value {
    let qos = qos.to_string();
    let options = ["--endpoint", url, "--protocol", protocol, "--qos", &qos];
    record_of(folder, &[SHORT, &options, further].concat())
}

#[test]
fn tls_and_log_ins_work_where_they_are_offered() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path(), "fast");
    let authority = certificates.authority.display().to_string();
    for definition in FAST.into_iter().filter(|name| !is_own(name)).filter_map(here) {
        for protocol in SPOKEN.into_iter().filter(|protocol| definition.protocols.contains_key(*protocol)) {
            let login = Credentials { user: "ann".to_owned(), password: "open-sesame".into() };
            let asks = definition.asks_for_login(false);
            let options = StartOptions {
                tls: definition.encrypts(false).then(|| TlsFiles {
                    authority: certificates.authority.clone(),
                    certificate: certificates.server.clone(),
                    key: certificates.key.clone(),
                }),
                credentials: asks.then_some(login),
                supervisor: Some(assert_cmd::cargo::cargo_bin("pubmark")),
                ..StartOptions::new(protocol)
            };
            let what = format!("{} {protocol}", definition.name);
            // It listens; whether it does its work is seen by the run below.
            let running =
                start(&definition, &options, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{what}: {error}"));
            let place = running.endpoint();
            let scheme = place.scheme.as_str();
            // Valkey's wheel is built without TLS, and its definition says so.
            let encrypts = options.tls.is_some();
            assert_eq!(["mqtts", "tls", "rediss"].contains(&scheme), encrypts, "{what}: {scheme}");
            let authority: &[&str] = if encrypts { &["--tls-ca", &authority] } else { &[] };
            let url_of = |address: SocketAddr, password: &str| match asks {
                true => format!("{scheme}://ann:{password}@{address}"),
                false => format!("{scheme}://{address}"),
            };
            let url = |password: &str| url_of(place.address, password);
            let second = place.subscribers.map(|address| url_of(address, "open-sesame"));
            let further: Vec<&str> = second.iter().flat_map(|url| ["--subscribe-endpoint", url]).collect();
            let further = [authority, &further].concat();
            let qos = definition.protocols[protocol].highest_qos;
            let record = run_against(folder.path(), &url("open-sesame"), protocol, qos, &further);
            assert_all_delivered(&record, &what);
            if asks {
                let wrong = url("guessed");
                let qos = qos.to_string();
                let options = ["--endpoint", &wrong, "--protocol", protocol, "--qos", &qos, "--drain", "1s"];
                let options = [&options[..], &further].concat();
                let output = call(folder.path(), &[&["run"], SHORT, &options].concat());
                assert_eq!(output.status.code(), Some(6), "{what} lets a wrong password in: {output:?}");
            }
        }
    }
}

#[test]
fn three_nats_servers_act_as_one() {
    if here("nats").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["--system", "nats", "--topology", "3:cluster", "--qos", "2"];
    let record = record_of(folder.path(), &[SHORT, &options].concat());
    assert_all_delivered(&record, "three NATS servers");
    assert_eq!(record["system"]["topology"]["endpoints"].as_array().unwrap().len(), 3);
    assert!(
        record["settings"]["deviations"].to_string().contains("nats-cluster"),
        "{}",
        record["settings"]["deviations"]
    );
}

#[test]
fn a_limit_that_the_workload_exceeds_is_raised_and_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, payload) in [("nats", "2MB"), ("rumqttd", "100KB")] {
        let Some(definition) = here(name) else { continue };
        let load = ["pairs", "--set", "pairs=1", "--set", "rate=5/s", "--duration", "1s", "--warmup", "0s"];
        let options = ["--system", name, "--payload", payload];
        let record = record_of(folder.path(), &[&load[..], &options].concat());
        assert_closed(&record);
        assert_count!(
            count(&record, "offered") > 0 && count(&record, "delivered") == count(&record, "offered"),
            "{name}"
        );
        let deviation = format!("{name}-payload");
        assert!(
            record["settings"]["deviations"].to_string().contains(&deviation),
            "{name}: {}",
            record["settings"]["deviations"]
        );
        assert!(definition.limits.raised_to_at_most_bytes.is_some());
    }
}

#[test]
fn a_system_whose_protocol_no_client_speaks_yet_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let definition = "name: own\ntitle: Own\ndescription: A broker of one's own.\nhomepage: https://example.org\nranked: false\nlisteners:\n  stomp: {scheme: stomp}\n\
                      protocols:\n  stomp: {listener: stomp, highest_qos: 0}\nback_ends:\n  brokerless: {how: not at all}\n\
                      profiles:\n  default: {description: the default}\n  tuned: {description: the same}\n";
    std::fs::write(folder.path().join("own.yaml"), definition).unwrap();
    let output = call(folder.path(), &[&["run"], SHORT, &["--system", "own.yaml"]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    let words = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!("which pubmark's clients do not speak yet: they speak {}", SPOKEN.join(", "));
    assert!(words.contains(&expected), "{errors}");
}

#[test]
fn endpoints_of_subscribers_receive_from_every_device_and_nothing_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let record = record_of(folder.path(), &[SHORT, &["--system", "zeromq-peers", "--qos", "0"]].concat());
    assert_all_delivered(&record, "zeromq-peers");
    assert_count_eq!(
        (&record["system"]["back_end"], &record["connections"]["dropped"]),
        (&"brokerless".into(), &0.into())
    );
    assert_count_eq!(record["delivery"]["filtered"], serde_json::json!({"withheld": 0, "discarded": 0}));
    let options = ["fan-out", "--set", "subscribers=5", "--system", "zeromq-peers", "--qos", "0"];
    let record = record_of(folder.path(), &[&options[..], &["--duration", "1s", "--warmup", "0s"]].concat());
    assert_closed(&record);
    assert_count!(count(&record, "delivered") > 0 && count(&record, "delivered") == 5 * count(&record, "offered"));
    let output = call(
        folder.path(),
        &[&["run"], SHORT, &["--system", "zeromq-peers", "--limit", "1cpu", "--qos", "0"]].concat(),
    );
    assert_eq!(output.status.code(), Some(2), "a limit of nothing: {output:?}");
    let output =
        call(folder.path(), &[&["run"], SHORT, &["--endpoint", "zmq://127.0.0.1:5556", "--qos", "0"]].concat());
    assert_eq!(output.status.code(), Some(2), "one port of two: {output:?}");
}

#[test]
fn what_clients_filter_is_counted_and_the_books_close() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alike.yaml");
    // One that is delivered, one that begins with the same letter (sent, and discarded by the subscriber), and one without a
    // subscriber (withheld).
    let group = |name: &str, topic: &str| {
        format!("  - {{name: {name}, count: 2, every: 100ms, payload: 50, qos: 0, topic: \"{topic}/{{device}}\"}}\n")
    };
    let devices = [group("heard", "a"), group("alike", "ab"), group("unheard", "c")].concat();
    let subscribers = "  - {name: hears, count: 1, qos: 0, filters: [\"a/#\"]}\n";
    std::fs::write(&file, format!("name: alike\ndevices:\n{devices}subscribers:\n{subscribers}")).unwrap();
    for system in ["zeromq", "zeromq-peers"] {
        if system == "zeromq" && here(system).is_none() {
            continue;
        }
        let options = ["--system", system, "--duration", "1s", "--warmup", "0s"];
        let record = record_of(folder.path(), &[&[file.to_str().unwrap()], &options[..]].concat());
        assert_closed(&record);
        let counts = ["offered", "sent", "expected", "delivered", "lost", "foreign"].map(|name| count(&record, name));
        assert_count_eq!(counts, [60, 60, 20, 20, 0, 0], "{system}");
        assert_count_eq!(
            record["delivery"]["filtered"],
            serde_json::json!({"withheld": 20, "discarded": 20}),
            "{system}"
        );
    }
}

#[test]
fn systems_in_containers_are_measured_where_an_endpoint_is_given() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["emqx", "nanomq", "vernemq"] {
        let variable = format!("PUBMARK_TEST_{}", name.to_uppercase());
        let Ok(url) = std::env::var(&variable) else {
            skip(format_args!("no endpoint of {name}: set {variable} to its URL"));
            continue;
        };
        let definition = Definition::load(name).unwrap();
        for protocol in SPOKEN.into_iter().filter(|protocol| definition.protocols.contains_key(*protocol)) {
            for qos in 0..=definition.protocols[protocol].highest_qos {
                let record = run_against(folder.path(), &url, protocol, qos, &[]);
                assert_all_delivered(&record, &format!("{name} {protocol} QoS {qos}"));
            }
        }
    }
}
