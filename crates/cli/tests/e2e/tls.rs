//! TLS end to end, against a mosquitto that the run starts with encryption: handshakes and resumed sessions are in the
//! record, also after a restart of the system, and impossible options are refused.

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::bed::Bed;
use crate::support::books::{assert_closed, assert_delivered_once, connections};
use crate::support::bridge::Bridge;
use crate::support::cluster::{can_hide_files, stop};
use crate::support::mosquitto;
use crate::support::place::Place;
use crate::support::processes::with_files_in;
use crate::support::schema;

const SMALL: &[&str] =
    &["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];
/// Publishers and a subscriber.
const CONNECTIONS: u64 = 11;
const STARTED: &[&str] = &["--system", "mosquitto", "--protocol", "mqtt5", "--tls"];

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// Sum of a distribution, µs: the mean is of the exact times.
fn sum_us(summary: &Value) -> f64 {
    summary["mean_us"].as_f64().unwrap() * summary["count"].as_f64().unwrap()
}

/// Versions and algorithms with the number of connections that negotiated them.
fn agreed(tls: &Value) -> Vec<(&str, bool, u64)> {
    let rows = tls["agreed"].as_array().unwrap().iter();
    rows.map(|row| (row["version"].as_str().unwrap(), row["resumed"].as_bool().unwrap(), number(row, "count")))
        .collect()
}

#[test]
fn a_started_system_encrypts_and_the_record_says_what_that_took() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let record = place.record(&[SMALL, STARTED].concat());
    schema::assert_agrees(&record);
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_eq!(record["settings"]["tls"], true);
    assert!(record["system"]["endpoint"].as_str().unwrap().starts_with("mqtts://"), "{}", record["system"]);
    let tls = &record["connections"]["tls"];
    assert_count_eq!((number(tls, "full"), number(tls, "resumed")), (CONNECTIONS, 0), "{tls}");
    assert_eq!(tls["resumption"], true);
    assert_eq!(number(&tls["full_handshake"], "count"), CONNECTIONS);
    assert_eq!(number(&tls["opening"], "count"), CONNECTIONS);
    assert_eq!(agreed(tls), [("TLS 1.3", false, CONNECTIONS)]);
    // A connect consists of the TCP, TLS and MQTT handshakes.
    let (connect, parts) =
        (&record["connections"]["connect_time"], sum_us(&tls["full_handshake"]) + sum_us(&tls["opening"]));
    assert_count_eq!(number(connect, "count"), CONNECTIONS);
    assert!(parts > 0.0 && sum_us(connect) >= parts - 1.0, "{connect}: {tls}");
    let sides = record["connections"]["ramp_up"].as_array().unwrap();
    let accepted = |side: &Value| (side["side"].as_str().unwrap().to_owned(), number(side, "accepted"));
    assert_eq!(sides.iter().map(accepted).collect::<Vec<_>>(), [("subscribers".into(), 1), ("devices".into(), 10)]);
    let rate = sides[1]["per_s"].as_f64().unwrap();
    assert!((rate * sides[1]["seconds"].as_f64().unwrap() - 10.0).abs() < 1e-6 && rate <= 2_500.0, "{}", sides[1]);
    let named: Vec<&str> = record["settings"]["deviations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["name"].as_str().unwrap())
        .collect();
    assert!(named.contains(&"certificates-made") && named.contains(&"mosquitto-tls"), "{named:?}");
    assert_eq!(with_files_in(&place.temporary()), [] as [u32; 0], "a system was left");

    let plain = Place::new().record(&[SMALL, &STARTED[..4]].concat());
    assert_eq!((&plain["connections"]["tls"], &plain["settings"]["tls"]), (&Value::Null, &Value::Bool(false)));
}

/// All connections are cut at once and clients reconnect; returns their TLS figures.
fn broken(fault: &str, options: &[&str]) -> Value {
    let times = ["--duration", "4s", "--warmup", "1s", "--fault", fault];
    let record = Place::new().record(&[&SMALL[..5], &times, STARTED, options].concat());
    assert_closed(&record);
    let back = &record["conditions"]["faults"]["faults"][0]["connections"];
    assert_count_eq!([number(back, "lost"), number(back, "reconnected")], [CONNECTIONS; 2], "{back}");
    let peak = number(back, "peak_reconnects_per_s");
    assert!((1..=CONNECTIONS).contains(&peak), "{back}");
    assert_count_eq!(connections(&record, "established"), 2 * CONNECTIONS);
    record["connections"]["tls"].clone()
}

#[test]
fn a_reconnect_resumes_the_session_unless_clean_start_is_set() {
    if !mosquitto::is_installed() {
        return;
    }
    let tls = broken("reset:at=1s,share=100%", &[]);
    assert_count_eq!((number(&tls, "full"), number(&tls, "resumed")), (CONNECTIONS, CONNECTIONS), "{tls}");
    assert_eq!(number(&tls["resumed_handshake"], "count"), CONNECTIONS);
    assert_eq!(agreed(&tls).iter().map(|(_, _, count)| count).sum::<u64>(), 2 * CONNECTIONS);
    let tls = broken("reset:at=1s,share=100%", &["--tls-resumption", "off"]);
    assert_count_eq!((number(&tls, "full"), number(&tls, "resumed")), (2 * CONNECTIONS, 0), "{tls}");
    assert_eq!((&tls["resumption"], &tls["resumed_handshake"]), (&Value::Bool(false), &Value::Null));
}

#[test]
fn a_system_that_was_killed_knows_no_session_any_more() {
    if !mosquitto::is_installed() {
        return;
    }
    let tls = broken("kill:at=1s,for=500ms", &[]);
    assert_count_eq!((number(&tls, "full"), number(&tls, "resumed")), (2 * CONNECTIONS, 0), "{tls}");
}

#[test]
fn tls_is_an_axis_of_a_comparison_and_the_cost_of_each_side_is_among_its_figures() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let short = ["--duration", "1s", "--warmup", "0s", "--drain", "2s", "--wait", "0s", "--repeat", "3"];
    let call = ["compare", "fan-in", "--systems", "mosquitto", "--tls", "false,true", "--json", "--quiet"];
    let called = place.call(&[&call[..], &["--set", "publishers=10", "--set", "rate=10/s"], &short].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    let cells = record["cells"].as_array().unwrap();
    let ids: Vec<&str> = cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["mosquitto_tls-false", "mosquitto_tls-true"]);
    assert_eq!(cells[0]["schedule_hash"], cells[1]["schedule_hash"], "the same load");
    for (cell, has_tls) in cells.iter().zip([false, true]) {
        // On a busy machine it is possible that no run counts.
        if cell["runs"].as_array().unwrap().is_empty() {
            continue;
        }
        let figures = cell["figures"].as_array().unwrap();
        let mean = |name: &str| figures.iter().find(|figure| figure["figure"] == name).and_then(|f| f["mean"].as_f64());
        assert!(mean("publisher CPU").unwrap() > 0.0 && mean("subscriber CPU").unwrap() > 0.0, "{cell}");
        // Handshake times are not reported for runs that were late.
        let has_times = cell["runs"].as_array().unwrap().iter().any(|run| run["verdict"] != "invalid");
        assert_eq!(mean("TLS handshake mean").is_some(), has_tls && has_times, "{cell}");
    }
}

/// A system as a file, whose listener has no encrypted scheme.
const IN_THE_CLEAR: &str = "name: clear\ntitle: Clear\ndescription: a test's\nranked: true\nlisteners:\n  mqtt: {scheme: mqtt}\n\
    protocols:\n  mqtt5: {listener: mqtt, highest_qos: 2}\nback_ends:\n  process:\n    program: \"{self}\"\n    \
    install: nothing installs it\n    arguments:\n      - add: [broker, --listen, \"{host}:{port:mqtt}\"]\n\
    profiles:\n  default: {description: as it comes}\n";

#[test]
fn what_cannot_be_encrypted_is_refused_before_anything_starts() {
    let place = Place::new();
    place.write("clear.yaml", IN_THE_CLEAR);
    for (options, expected) in [
        (&["--system", "clear.yaml", "--tls"][..], "`clear` does not offer mqtt5 over TLS"),
        (&["--system", "dds", "--tls"], "`dds` has no broker to encrypt connections to"),
        (&["--system", "zenoh", "--tls"], "`zenoh` does not offer zenoh over TLS to pubmark's clients"),
        (&["--tls-resumption", "off"], "no connection of this run is encrypted"),
        (&["--endpoint", "mqtt://127.0.0.1:9", "--tls"], "an endpoint says it with its scheme, such as `mqtts://`"),
    ] {
        let called = place.call(&[&["run"], SMALL, options].concat());
        assert_eq!(called.code(), 2, "{options:?}: {called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{options:?}: {words}");
        assert!(place.runs().is_empty());
    }
    let call = ["compare", "hello", "--systems", "clear.yaml", "--tls", "false,true", "--dry-run"];
    let called = place.call(&call);
    assert_eq!(called.code(), 0, "{called:?}");
    let words = called.printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("✓ clear, no TLS") && words.contains("✗ clear, TLS"), "{words}");
    assert!(words.contains("does not offer mqtt5 over TLS"), "{words}");
}

#[test]
fn nodes_trust_the_certificate_that_was_made_for_the_run() {
    if !mosquitto::is_installed() || !can_hide_files() {
        return;
    }
    let Some(bed) = Bed::new(3) else { return };
    // The system's files are among the temporary ones of the first machine.
    let hidden = bed.cluster.place.temporary();
    let nodes = [1, 2].map(|machine| {
        let at = bed.bridge.program_at(machine, "unshare");
        bed.cluster.node_without(at, &hidden, &bed.listen, &format!("edge-{}", machine + 1))
    });
    let address = Bridge::address(0);
    let options = ["--nodes", "2", "--listen", &bed.listen, "--system-host", &address];
    let called = bed.run(&[SMALL, STARTED, &options].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    let tls = &record["connections"]["tls"];
    assert_count_eq!(number(tls, "full"), CONNECTIONS, "{tls}");
    assert!(record["system"]["endpoint"].as_str().unwrap().starts_with(&format!("mqtts://{address}")));
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
}
