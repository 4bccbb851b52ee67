//! Groups that are placed by the labels of nodes: where each client runs, how many messages are offered, the results by site, and refusals.

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::cluster::{Cluster, stop};
use crate::support::place::{Called, Place};
use crate::support::schema;

/// Cameras at the edge, meters everywhere, dashboards at each site, a store in the cloud.
const WORKLOAD: &str = "\
name: sites
devices:
  - {name: cameras, count: 6, every: 100ms, payload: 100B, topic: 'sites/cameras/{index}', qos: 0}
  - {name: meters, count: 4, every: 50ms, payload: 100B, topic: 'sites/meters/{index}', qos: 0}
subscribers:
  - {name: dashboards, count: 2, filters: ['sites/#'], qos: 0}
  - {name: store, count: 1, filters: ['sites/cameras/+'], qos: 0}
placement: {cameras: site=edge, dashboards: each site, store: site=cloud, default: split}
";
const TIMES: [&str; 6] = ["--duration", "2s", "--warmup", "1s", "--seed", "3"];
/// Three processes at two sites.
const LOCAL: [&str; 4] = ["--local-nodes", "3", "--node-label", "site=edge,cloud,edge"];

fn place() -> Place {
    let place = Place::new();
    place.write("sites.yaml", WORKLOAD);
    place
}

fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks a run of the workload on three nodes at two sites.
fn assert_placed(record: &Value, what: &str) {
    assert_closed(record);
    assert_delivered_once(record);
    schema::assert_agrees(record);
    // 6 cameras × 20 and 4 meters × 40; two dashboards at either site receive all, the store receives from cameras.
    assert_count_eq!((count(record, "offered"), count(record, "expected")), (280, 280 * 4 + 120), "{what}");
    let nodes = record["tables"]["nodes"].as_array().unwrap();
    let of = |node: &Value| {
        let number = |name: &str| node[name].as_u64().unwrap();
        (node["labels"]["site"].as_str().unwrap().to_owned(), number("devices"), number("subscribers"))
    };
    let found: Vec<_> = nodes.iter().map(of).collect();
    let expected = [("edge", 5, 1), ("cloud", 1, 3), ("edge", 4, 1)]
        .map(|(site, devices, there)| (site.to_owned(), devices, there));
    assert_count_eq!(found, expected, "{what}");
    let rows: Vec<_> = record["tables"]["by_label"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            assert_eq!(row["label"], "site", "{row}");
            assert!(row["latency"]["upper"]["p50_us"].as_f64() > Some(0.0), "{what}: {row}");
            assert_count_eq!(row["latency"]["upper"]["count"], row["delivered"], "{what}: {row}");
            let site = |name: &str| row[name].as_str().unwrap().to_owned();
            let number = |name: &str| row[name].as_u64().unwrap();
            (site("publisher_site"), site("subscriber_site"), number("expected"), number("delivered"), number("lost"))
        })
        .collect();
    let expected = [("cloud", "cloud", 80), ("cloud", "edge", 80), ("edge", "cloud", 600), ("edge", "edge", 480)]
        .map(|(from, to, messages)| (from.to_owned(), to.to_owned(), messages, messages, 0));
    assert_count_eq!(rows, expected, "{what}");
    for name in ["expected", "delivered", "lost"] {
        let sum: u64 =
            record["tables"]["by_label"].as_array().unwrap().iter().map(|row| row[name].as_u64().unwrap()).sum();
        assert_count_eq!(sum, count(record, name), "{what}: sum of {name} over sites");
    }
}

#[test]
fn groups_run_at_their_sites_with_and_without_a_broker_and_offer_the_same() {
    let place = place();
    let plain = place.record(&[&["sites.yaml", "--placement", "none"][..], &TIMES].concat());
    assert_count_eq!(count(&plain, "offered"), 280);
    assert!(plain["tables"]["by_label"].is_null(), "nothing is placed");
    for system in ["builtin", "zeromq-peers", "dds"] {
        let record = place.record(&[&["sites.yaml", "--system", system][..], &LOCAL, &TIMES].concat());
        assert_placed(&record, system);
        let hash = |record: &Value| record["workload"]["schedule_hash"].clone();
        assert_eq!(hash(&record), hash(&plain), "{system}: where a device runs changes nothing about what it sends");
    }
}

#[test]
fn machines_say_their_labels_when_they_join() {
    let cluster = Cluster::new();
    cluster.place.write("spread.yaml", WORKLOAD);
    let node = |name: &str, site: &str| cluster.node(name, &["--label", &format!("site={site}"), "--label", "rack=1"]);
    let nodes = [node("a", "edge"), node("b", "cloud"), node("c", "edge")];
    let called = cluster.run(3, &[&TIMES[..], &["--json", "--quiet"]].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert_placed(&called.json(), "three machines");
    // Only these two have joined: the error names the missing label, and the existing ones.
    let [a, b, c] = nodes;
    let (_, _) = (stop(b), stop(c));
    let d = node("d", "edge");
    let called = cluster.run(2, &["--duration", "1s"]).wait();
    let said = words(&called);
    assert_eq!(called.code(), 2, "{called:?}");
    let missing = "`store` is to run on nodes with the label `site=cloud`, and none has it: there are `rack=1` (a and 1 more), `site=edge` (a and 1 more)";
    assert!(said.contains(missing) && said.contains("hint: `pubmark node --label site=cloud`"), "{said}");
    for node in [a, d] {
        assert_eq!(stop(node).code(), 0);
    }
}

#[test]
fn reports_show_the_traffic_between_sites() {
    let place = place();
    let called = place.call(&[&["run", "sites.yaml", "--verbose"][..], &LOCAL, &TIMES].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let printed = called.printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "local 1: site=edge",
        "sites site cloud → cloud: delivered 80 of 80, lost 0; p50 ",
        "site edge → cloud: delivered 600 of 600",
    ] {
        assert!(printed.contains(words), "`{words}` is not in {printed}");
    }
    let (folder, _) = place.runs().remove(0);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let csv = read("csv/by_label.csv");
    assert_count_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.contains("\nsite,edge,cloud,600,600,0,"), "{csv}");
    assert!(read("csv/by_node.csv").lines().nth(1).unwrap().ends_with(",site=edge"), "{}", read("csv/by_node.csv"));
    let page = read("report.html");
    for words in ["Latency from site to site", "From site to site", "site=cloud"] {
        assert!(page.contains(words), "`{words}` is not in the page");
    }
    // The stored specification repeats the run.
    let again = place.record(&[folder.join("run.yaml").to_str().unwrap()]);
    assert_placed(&again, "run.yaml");
}

#[test]
fn a_dry_run_says_who_runs_where() {
    let place = place();
    let called = place.call(&[&["run", "sites.yaml", "--dry-run"][..], &LOCAL].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let printed = called.printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "cameras 6 devices over the nodes with site=edge: local 1, local 3 (3 each)",
        "meters 4 devices over all nodes (1 or 2 each)",
        "dashboards 2 subscribers at each site: cloud (local 2), edge (local 1, local 3)",
        "store 1 subscriber over the nodes with site=cloud: local 2",
    ] {
        assert!(printed.contains(words), "`{words}` is not in {printed}");
    }
    let called = place.call(&["run", "sites.yaml", "--dry-run", "--nodes", "5"]);
    let printed = called.printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        called.code() == 0 && printed.contains("cameras 6 devices over the nodes with site=edge meters"),
        "{called:?}"
    );
}

#[test]
fn what_cannot_be_placed_is_refused_before_anything_starts() {
    let place = place();
    assert_eq!(place.call(&["cluster", "init"]).code(), 0);
    for (options, said) in [
        (&[][..], "`store` is to run on nodes with the label `site=cloud`, and the run has no nodes"),
        (
            &["--local-nodes", "1", "--node-label", "site=edge"],
            "with 2 values of `site`, of which a node has one, and the run has 1 node",
        ),
        (&["--nodes", "1"], "and the run has 1 node hint: `--nodes 2`, or more"),
        (
            &["--local-nodes", "2", "--node-label", "site=edge,hut"],
            "and none has it: there are `site=edge` (local 1), `site=hut` (local 2)",
        ),
        (&["--local-nodes", "2"], "and none has it: no node has a label"),
        (&["--node-label", "site=edge,cloud"], "`--node-label` is for the worker processes of `--local-nodes`"),
        (
            &["--nodes", "2", "--node-label", "site=edge,cloud"],
            "`--node-label` is for the worker processes of `--local-nodes`",
        ),
        (&["--placement", "camera=split"], "there is no group `camera` to place hint: did you mean `cameras`?"),
        (&["--placement", "cameras=each site"], "and only subscribers can"),
        (&["--placement", "site=edge"], "`edge` is no placement"),
        (&["--placement", "cameras"], "a placement is written GROUP=PLACEMENT"),
        (&["--local-nodes", "2", "--node-label", "site"], "is no label"),
    ] {
        let called = place.call(&[&["run", "sites.yaml", "--duration", "1s"], options].concat());
        let found = words(&called);
        assert!(called.code() == 2 && found.contains(said), "{options:?}: `{said}` is not in {found}");
    }
    for (placement, said) in [
        ("{camera: site=edge}", ["there is no group `camera` to place", "did you mean `cameras`?"]),
        ("{cameras: nowhere}", ["`nowhere` is no placement", "`each site`"]),
        ("{cameras: each site}", ["would be there once for each `site`", "site=VALUE"]),
        ("{store: 'site=a b'}", ["`site=a b` is no label", "KEY=VALUE"]),
        ("[cameras]", ["mapping", "wrong.yaml"]),
    ] {
        let text = WORKLOAD.lines().filter(|line| !line.starts_with("placement")).collect::<Vec<_>>().join("\n");
        place.write("wrong.yaml", format!("{text}\nplacement: {placement}\n"));
        let called = place.call(&["run", "wrong.yaml", "--duration", "1s"]);
        let found = words(&called);
        assert!(called.code() == 2 && said.iter().all(|said| found.contains(said)), "{placement}: {found}");
        assert!(found.contains("wrong.yaml:8"), "no line for {placement}: {found}");
    }
    assert!(place.runs().is_empty(), "nothing was run");
    for (label, said) in [("a b", "`a b` is no label"), ("site=\u{1b}[2J", "is no label"), ("=x", "`=x` is no label")] {
        let called = place.call(&["node", "--join", "127.0.0.1:9", "--label", label]);
        assert!(called.code() == 2 && words(&called).contains(said) && !called.errors.contains('\u{1b}'), "{called:?}");
    }
    let many: Vec<String> = (0..17).flat_map(|number| ["--label".to_owned(), format!("k{number}=v")]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let called = place.call(&[&["node", "--join", "127.0.0.1:9"], &many[..]].concat());
    assert!(called.code() == 2 && words(&called).contains("17 labels are more than the 16"), "{called:?}");
}
