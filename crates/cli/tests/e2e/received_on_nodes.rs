//! What each node receives a second: mean, variance, least and most agree with each other, with the messages between the nodes,
//! and with the series of the run.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::support::bed::Bed;
use crate::support::books::{assert_closed, assert_delivered_once};
use crate::support::bridge::Bridge;
use crate::support::cluster::stop;
use crate::support::place::Place;

/// Random times, so that seconds differ. Of three readers one node has two.
const WORKLOAD: &str = "\
name: received
devices:
  - {name: meter, count: 8, rate: 20/s, arrival: poisson, payload: 100B, topic: 'received/{index}', qos: 1}
subscribers:
  - {name: reader, count: 3, filters: ['received/#'], qos: 1}
";
const SECONDS: f64 = 4.0;
/// Without a warm-up, everything that arrives is of the window.
const TIMES: [&str; 6] = ["--duration", "4s", "--warmup", "0s", "--seed", "3"];
/// Rounding of a mean.
const ROUNDING: f64 = 1e-6;

/// A sum over the rows of a table.
fn sum(rows: &Value, name: &str, is_in: impl Fn(&Value) -> bool) -> f64 {
    let rows = rows.as_array().unwrap().iter().filter(|row| is_in(row));
    rows.map(|row| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))).sum()
}

fn assert_figures_agree(record: &Value) {
    assert_closed(record);
    assert_delivered_once(record);
    let tables = &record["tables"];
    let is_in_window = |row: &Value| row["t_s"].as_f64().unwrap() < SECONDS - ROUNDING;
    let in_window = sum(&tables["series"], "delivered", is_in_window);
    let after_it = sum(&tables["series"], "delivered", |row| !is_in_window(row));
    let nodes = tables["nodes"].as_array().unwrap();
    assert_count_eq!(nodes.len(), 2, "{nodes:?}");
    let mut all = 0.0;
    for node in nodes {
        let figure = |name: &str| node["received"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {node}"));
        let [seconds, mean, variance] = ["seconds", "mean_per_s", "variance"].map(figure);
        let [least, most] = ["min_per_s", "max_per_s"].map(figure);
        assert_count_eq!(seconds, SECONDS, "{node}");
        assert_count!(least <= mean && mean <= most && least < most, "{node}");
        // Sums of squares with this least, most and mean: two values at the ends alone, and all values at the ends (Bhatia and
        // Davis, 2000).
        let squares = variance * (seconds - 1.0);
        assert_count!(squares >= (most - least).powi(2) / 2.0 - ROUNDING, "{node}");
        assert_count!(squares <= seconds * (most - mean) * (mean - least) + ROUNDING, "{node}");
        // What came after the window is in the messages between nodes alone.
        let received = mean * seconds;
        let delivered = sum(&tables["by_pair"], "delivered", |row| row["subscriber_node"] == node["name"]);
        assert_count!((-ROUNDING..=after_it + ROUNDING).contains(&(delivered - received)), "{delivered}: {node}");
        assert_count!(received > 0.0, "{node}");
        all += received;
    }
    assert_count!((all - in_window).abs() < ROUNDING, "{all} at nodes, {in_window} in the series: {nodes:?}");
}

#[test]
fn figures_of_processes_that_represent_nodes_agree() {
    let place = Place::new();
    place.write("received.yaml", WORKLOAD);
    let run = ["received.yaml", "--system", "builtin", "--local-nodes", "2"];
    assert_figures_agree(&place.record(&[&run[..], &TIMES].concat()));
}

#[test]
fn figures_of_two_machines_agree() {
    let Some(bed) = Bed::new(2) else { return };
    bed.cluster.place.write("received.yaml", WORKLOAD);
    let nodes = [0, 1].map(|machine| bed.node(machine, &bed.listen, &[]));
    let address = Bridge::address(0);
    let run = ["received.yaml", "--system", "builtin", "--system-host", &address, "--nodes", "2"];
    let called = bed.run(&[&run[..], &["--listen", &bed.listen], &TIMES].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert_figures_agree(&called.json());
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
}
