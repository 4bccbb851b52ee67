//! Real records of schema 1, written by pubmark 0.1.0 (series and curves shortened), are read with every figure at its
//! new path.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::figures::{FIGURES, figure};
use pubmark_record::record::{BackEndKind, FaultKind, Record, SentMeans, Side, Variant};
use pubmark_record::{links::LinkBackEnd, schema1, store};
use pubmark_testing::assert_count_eq;
use serde_json::Value;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema1").join(name)
}

fn old(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn read(name: &str) -> Record {
    store::load(&path(name)).unwrap()
}

const RUNS: [&str; 3] = ["smart-home.json", "linked.json", "nodes.json"];

/// Every number in a value, including those in rows and points.
fn numbers(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(elements) => elements.iter().for_each(|element| numbers(element, into)),
        Value::Object(fields) => fields.values().for_each(|field| numbers(field, into)),
        _ => {}
    }
}

#[test]
fn no_number_is_lost_and_none_is_made_up() {
    for name in RUNS {
        let (mut before, mut after) = (vec![], vec![]);
        numbers(&old(name), &mut before);
        // Serialising the record again shows what was read: a field with another name would be missing.
        let mut again = serde_json::to_value(read(name)).unwrap();
        again["schema_version"] = Value::from(1);
        numbers(&again, &mut after);
        for number in &before {
            let place = after.iter().position(|other| other == number);
            assert!(place.is_some(), "{name}: {number} is lost");
            after.swap_remove(place.unwrap());
        }
        // Counts that the writer did not have yet.
        assert!(after.len() <= 1 + 2 * 20 && after.iter().all(|number| number == "0"), "{name}: {after:?}");
    }
}

#[test]
fn the_conversion_leaves_no_key_of_the_first_schema_at_the_top() {
    let groups: BTreeSet<String> = match serde_json::to_value(read("smart-home.json")).unwrap() {
        Value::Object(groups) => groups.keys().cloned().collect(),
        _ => BTreeSet::new(),
    };
    assert!(groups.len() <= 16, "{groups:?}");
    for name in RUNS {
        let converted = schema1::converted(schema1::RUN, old(name));
        let left: Vec<&String> = converted.as_object().unwrap().keys().filter(|key| !groups.contains(*key)).collect();
        // Empty objects whose content was moved.
        assert_eq!(left, ["generator", "resources"], "{name}");
    }
}

#[test]
fn figures_are_those_that_the_old_record_has() {
    let (record, old) = (read("smart-home.json"), old("smart-home.json"));
    let of = |name: &str| figure(name).unwrap().value(&record);
    assert_eq!(of("latency p50"), old["latency_us"]["p50"].as_f64());
    assert_eq!(of("latency max"), old["latency_us"]["max"].as_f64());
    assert_eq!(of("system CPU"), old["resources"]["system"]["cores"].as_f64());
    assert_eq!(of("publisher CPU"), old["generator"]["shards"][0]["cores"].as_f64());
    assert_eq!(of("subscriber CPU"), old["generator"]["shards"][1]["cores"].as_f64());
    assert_count_eq!(of("delivered"), Some(1.0));
    assert_eq!(record.run.name, old["run"].as_str().unwrap());
    assert_eq!(record.protocol.to_string(), "mqtt5");
    assert_eq!(record.protocol.sent_means, SentMeans::Wire);
    assert_eq!((record.system.back_end, record.workload.variant), (BackEndKind::Builtin, Variant::Corrected));
    let series = &record.tables.series[3].latency.upper;
    assert_eq!(series.p50_us, old["series"][3]["p50_us"].as_f64());
    assert_eq!(record.verdict.checks[0].text, old["verdict"]["checks"][0]["finding"].as_str().unwrap());
    assert_eq!(record.verdict.checks[0].value, None);
    assert!(!record.verdict.warnings.is_empty(), "warnings were computed on showing");
}

#[test]
fn links_faults_and_the_breakdown_are_found() {
    let (record, old) = (read("linked.json"), old("linked.json"));
    let links = record.conditions.links.as_ref().unwrap();
    assert_eq!(links.back_end, LinkBackEnd::UserSpace);
    assert_eq!(links.lateness.as_ref().unwrap().p99, old["links"]["lateness_us"]["p99"].as_f64());
    let fault = &record.conditions.faults.as_ref().unwrap().faults[0];
    assert_count_eq!((fault.kind, fault.connections.lost), (FaultKind::Reset, 10));
    let parts = &record.latency.breakdown.as_ref().unwrap().rows[0].parts;
    let whole = &old["residence"]["rows"][0]["parts"]["whole_us"];
    assert_eq!(parts.whole.as_ref().unwrap().upper.max, whole["max"].as_f64().unwrap());
    assert_eq!(parts.whole.as_ref().unwrap().lower, None);
}

#[test]
fn nodes_requests_and_tls_are_found() {
    let (record, old) = (read("nodes.json"), old("nodes.json"));
    assert_eq!(record.tables.nodes.len(), 2);
    assert_eq!(record.tables.by_pair.len(), old["by_pair"].as_array().unwrap().len());
    let round_trip = &record.requests.as_ref().unwrap().round_trip;
    assert_eq!(round_trip.as_ref().unwrap().upper.mean, old["requests"]["round_trip_us"]["mean"].as_f64().unwrap());
    let tls = record.connections.tls.as_ref().unwrap();
    assert_eq!(tls.full_handshake.as_ref().unwrap().mean, old["tls"]["full_us"]["mean"].as_f64().unwrap());
    let sides: Vec<Side> = record.cost.threads.iter().map(|thread| thread.side).collect();
    assert_eq!(sides, [Side::Devices, Side::Devices, Side::Subscribers, Side::Subscribers]);
}

#[test]
fn experiments_and_searches_are_read() {
    let record: ExperimentRecord = store::load_as(&path("experiment.json")).unwrap();
    assert_eq!(record.schema_version, 2);
    assert!(
        record
            .cells
            .iter()
            .flat_map(|cell| &cell.figures)
            .all(|figure| FIGURES.iter().any(|known| known.name == figure.figure))
    );
    let search: CapacityRecord = store::load_as(&path("capacity.json")).unwrap();
    let old = old("capacity.json");
    assert_eq!(search.trials[0].latency.upper.max_us, old["trials"][0]["max_us"].as_f64());
    assert!(search.trials[0].latency.upper.max_us.is_some());
}
