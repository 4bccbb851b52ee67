//! Clients that find each other without a broker: their endpoint is refused on several machines, and pairs that did not
//! find each other are not counted as losses.

use pubmark_conformance::ports;
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, count};
use crate::support::place::Place;
use crate::support::schema;

const WORKLOAD: &str = "\
name: pairs
devices:
  - {name: meter, count: 4, every: 50ms, payload: 100B, topic: 'pairs/{index}', qos: 0}
subscribers:
  - {name: reader, count: 3, filters: ['pairs/#'], qos: 0}
";
const TIMES: [&str; 4] = ["--duration", "1s", "--warmup", "1s"];

fn place() -> Place {
    let place = Place::new();
    place.write("pairs.yaml", WORKLOAD);
    place
}

fn check<'a>(record: &'a Value, code: &str) -> &'a Value {
    let checks = record["verdict"]["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["code"] == code).unwrap_or_else(|| panic!("no {code} in {checks:?}"))
}

#[test]
fn an_endpoint_on_several_machines_is_refused_before_anybody_waits() {
    let place = place();
    assert_eq!(place.call(&["cluster", "init"]).code(), 0);
    let dds = format!("dds://{}", ports::free());
    let run = ["run", "pairs.yaml", "--nodes", "2", "--endpoint", &dds];
    let deploy = ["deploy", "compose", "pairs.yaml", "--nodes", "2", "--", "--endpoint", &dds];
    for call in [&run[..], &deploy] {
        let called = place.call(call);
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(called.code(), 2, "{called:?}");
        for said in ["on 2 machines they would not find each other", "`--system NAME` in place of `--endpoint`"] {
            assert!(words.contains(said), "`{said}` is not in {words}");
        }
    }
    assert!(place.runs().is_empty(), "nothing was run");
}

#[test]
fn on_several_processes_of_this_machine_every_pair_meets() {
    let place = place();
    for system in ["dds", "zenoh-peers", "zeromq-peers"] {
        let record = place.record(&[&["pairs.yaml", "--system", system, "--local-nodes", "2"], &TIMES[..]].concat());
        assert_closed(&record);
        schema::assert_agrees(&record);
        let pairs = &record["delivery"]["pairs"];
        assert_count_eq!([&pairs["all"], &pairs["silent"], &pairs["unreached"]], [12, 0, 0], "{system}: {pairs}");
        assert_count_eq!([&pairs["probed"]["expected"], &pairs["probed"]["reached"]], [12, 12], "{system}: {pairs}");
        assert_eq!(check(&record, "V24")["status"], "valid", "{system}");
        assert_count_eq!(count(&record, "delivered"), count(&record, "expected"), "{system}");
    }
}

#[test]
fn pairs_that_never_met_make_a_run_invalid() {
    let place = place();
    // Writers and readers in two domains, whose ports are 250 apart (RTPS 2.5 §9.6.2).
    let call = ["pairs.yaml", "--endpoint", "dds://127.0.0.1:7400", "--subscribe-endpoint", "dds://127.0.0.1:7650"];
    let record = place.record(&[&call[..], &TIMES, &["--drain", "2s"]].concat());
    schema::assert_agrees(&record);
    let pairs = &record["delivery"]["pairs"];
    assert_count_eq!([&pairs["all"], &pairs["silent"], &pairs["unreached"]], [12, 12, 12], "{pairs}");
    assert!(pairs["probed"].is_null(), "one process sends no probes: {pairs}");
    let check = check(&record, "V24");
    assert_eq!(check["status"], "invalid", "{check}");
    assert!(check["text"].as_str().unwrap().starts_with("12 of 12 pairs of writer and reader never met"), "{check}");
}
