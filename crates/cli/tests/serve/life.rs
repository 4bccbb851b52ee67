//! A run from submission to its results.

use pubmark_testing::assert_count_eq;
use serde_json::{Value, json};

use crate::call::{self, Events};
use crate::server::{LONG, SHORT, Server, folder};

#[test]
fn a_run_is_submitted_watched_and_read() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let body = r#"{"workload": "smart-home", "system": "builtin", "duration": "4s", "warmup": "1s"}"#;
    let submitted = server.post("/runs", body);
    let id = submitted.of(202)["id"].as_str().unwrap().to_owned();
    assert!(submitted.head.to_lowercase().contains(&format!("location: /runs/{id}")), "{submitted:?}");
    let events: Vec<Value> = Events::of(server.port, &server.token, &id).collect();
    let of_kind = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    assert_eq!(of_kind("begins").len(), 1, "{events:?}");
    let phases: Vec<&str> = of_kind("phase").iter().map(|event| event["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["subscribe", "connect", "warm-up", "measure", "drain", "collect"]);
    let measured = of_kind("progress").into_iter().filter(|event| event["phase"] == "measure");
    assert!((3..=6).contains(&measured.count()), "one a second: {events:?}");
    assert_eq!(events.last().unwrap()["state"], "complete", "{events:?}");

    let entry = server.wait(&id, &["complete"]);
    assert!(matches!(entry["exit_code"].as_i64(), Some(0 | 5)), "{entry}");
    let record = server.get(&format!("/runs/{id}/record")).of(200);
    let folder = entry["folders"][0].as_str().unwrap();
    let file = std::fs::read_to_string(server.runs().join(folder).join("record.json")).unwrap();
    assert_eq!(record, serde_json::from_str::<Value>(&file).unwrap());
    assert_eq!(record["workload"]["name"], "smart-home");
    assert_count_eq!(entry["headline"]["delivered"], record["delivery"]["delivered"]);
    let report = server.get(&format!("/runs/{id}/report"));
    assert!(report.body.starts_with("<!DOCTYPE html>") && report.body.contains("smart-home"), "{}", report.status);
    let table = server.get(&format!("/runs/{id}/table?table=series"));
    assert!(table.status == 200 && table.body.lines().count() > 3, "{table:?}");
    assert_eq!(server.get(&format!("/runs/{id}/notes")).status, 200);
    let none = server.get(&format!("/runs/{id}/messages")).of(404);
    assert!(none["hint"].as_str().unwrap().contains("message_log"), "{none}");
    // By the name of its folder, too.
    assert_eq!(server.entry(folder)["id"], id.as_str());
    let checked = server.post("/check", &json!({"run": id, "require": "p99<10s"}).to_string()).of(200);
    assert!(!checked["checks"].as_array().unwrap().is_empty(), "{checked}");
}

#[test]
fn one_that_is_cancelled_ends_in_order_and_keeps_its_record() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let [running, waiting] = [server.submit(LONG), server.submit(SHORT)];
    assert_eq!(server.entry(&waiting)["position"], 1);
    server.wait_for_load(&running);
    assert_eq!(server.get(&format!("/runs/{running}/record")).status, 409);
    assert_eq!(server.delete(&running).of(200)["state"], "cancelling");
    let entry = server.wait(&running, &["cancelled"]);
    let record = server.get(&format!("/runs/{running}/record")).of(200);
    assert_eq!(record["run"]["status"], "interrupted", "{entry}");
    assert!(record["delivery"]["delivered"].as_u64().unwrap() > 0);
    assert_eq!(server.delete(&running).status, 409, "it is over");
    server.wait(&waiting, &["complete"]);
}

#[test]
fn what_was_there_before_is_listed_filtered_sorted_and_in_pages() {
    let place = folder();
    let before = std::process::Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["run", "hello", "--duration", "1s", "--warmup", "0s", "--quiet"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(matches!(before.status.code(), Some(0 | 5)), "{before:?}");
    let server = Server::start(place.path(), &[]);
    let id = server.submit(r#"{"workload": "smart-home", "duration": "1s", "warmup": "0s"}"#);
    server.wait(&id, &["complete"]);
    let names = |query: &str| -> Vec<String> {
        let page = server.get(&format!("/runs{query}")).of(200);
        page["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(""), ["smart-home", "hello"]);
    assert_eq!(names("?sort=oldest"), ["hello", "smart-home"]);
    assert_eq!(names("?filter=workload=hello"), ["hello"]);
    assert_eq!(names("?state=queued"), [""; 0]);
    assert_eq!(names("?limit=1&offset=1"), ["hello"]);
    let folder = server.get("/runs?filter=workload=hello").of(200)["runs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/runs/{folder}/record")).of(200)["workload"]["name"], "hello");
    let ended: Vec<Value> = Events::of(server.port, &server.token, &folder).collect();
    assert_eq!(ended.len(), 1, "{ended:?}");
    for wrong in ["?limit=0", "?filter=sistem=x", "?sort=best", "?page=1", "?since=yesterday"] {
        assert_eq!(server.get(&format!("/runs{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn an_experiment_and_a_search_are_runs_like_others() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let experiment = "name: tiny\ntitle: Tiny\ndescription: Two levels.\nworkload: hello\nduration: 1s\nwarmup: 0s\n\
                      repeat: 1\naxes: {system: builtin, protocol: mqtt5, qos: [0, 1]}\n";
    let search = r#"{"capacity": "hello", "within": "3s", "duration": "1s", "warmup": "0s", "slo": "loss=0"}"#;
    let ids = [server.submit(experiment), server.submit(search)];
    for (id, kind) in ids.iter().zip(["experiment", "capacity"]) {
        let entry = server.wait(id, &["complete", "failed"]);
        assert_eq!((entry["kind"].as_str(), entry["state"].as_str()), (Some(kind), Some("complete")), "{entry}");
        assert_eq!(server.get(&format!("/runs/{id}/report")).status, 200);
        assert_eq!(server.get(&format!("/runs/{id}/table")).status, 200);
        assert!(server.get(&format!("/runs/{id}/record")).of(200)["schema_version"].is_u64());
    }
}

#[test]
fn built_in_names_are_listed() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    for path in ["/systems", "/workloads", "/experiments", "/protocols", "/links", "/doctor"] {
        let rows = server.get(path).of(200);
        assert!(rows.as_array().unwrap().iter().all(|row| row["name"].is_string()), "{path}");
        assert!(!rows.as_array().unwrap().is_empty(), "{path}");
    }
    assert_eq!(server.get("/nodes").of(200), json!({"run": null, "total": 0, "offset": 0, "nodes": []}));
    let description = call::request(server.port, "GET", "/openapi.json", None, "").of(200);
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"), "{}", description["openapi"]);
    assert!(description["paths"]["/runs/{id}"]["delete"].is_object());
    let metrics = &description["paths"]["/metrics"]["get"]["responses"]["200"]["content"];
    assert!(metrics["application/openmetrics-text"].is_object(), "{metrics}");
    assert!(description["paths"]["/runs/{id}/files/{name}"]["get"].is_object(), "{}", description["paths"]);
}
