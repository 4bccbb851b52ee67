//! Files of results: with the names that a record lists, including those of an experiment's runs and a search's trials,
//! and with no other path.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::server::{Server, folder};

/// Two runs of a second.
const EXPERIMENT: &str = "name: tiny\ntitle: Tiny\ndescription: Two levels.\nworkload: hello\nduration: 1s\nwarmup: 0s\nrepeat: 1\n\
                          axes: {system: builtin, protocol: mqtt5, qos: [0, 1]}\n";
/// A search whose workload is a text.
fn search() -> String {
    let text = "name: own\ndevices: [{name: d, every: 100ms, payload: 20B}]\nsubscribers: [{name: s, filters: '#'}]\n";
    json!({
        "capacity": {"file_name": "own.yaml", "text": text},
        "within": "3s", "duration": "1s", "warmup": "0s", "slo": "loss=0", "seed": 7, "links": ["none"], "tls": true,
    })
    .to_string()
}

fn names(server: &Server, id: &str, query: &str) -> Vec<String> {
    let found = server.get(&format!("/runs/{id}/files{query}")).of(200);
    found["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_file_that_a_report_names_can_be_had_and_no_other() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let run = server.submit(r#"{"workload": "hello", "duration": "1s", "warmup": "0s", "message_log": "csv"}"#);
    let [experiment, capacity] = [server.submit(EXPERIMENT), server.submit(&search())];
    for (id, report, first) in [
        (&run, "report.html", "record.json"),
        (&experiment, "experiment.html", "experiment.json"),
        (&capacity, "capacity.html", "capacity.json"),
    ] {
        let entry = server.wait(id, &["complete", "failed"]);
        assert_eq!(entry["state"], "complete", "{entry}");
        let files = names(&server, id, "");
        assert!([report, first].iter().all(|name| files.iter().any(|file| file == name)), "{files:?}");
        for file in &files {
            let sent = server.get(&format!("/runs/{id}/files/{file}"));
            assert!(sent.status == 200 && !sent.body.is_empty(), "{file}: {} {}", sent.status, sent.head);
        }
        // Every link of the report is one of them.
        let page = server.get(&format!("/runs/{id}/files/{report}")).body;
        assert_eq!(page, server.get(&format!("/runs/{id}/report")).body);
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| !link.starts_with('#')) {
            // The folder of a run that does not count: the page makes it the report in it.
            let file = if link.ends_with('/') { format!("{link}report.html") } else { link.to_owned() };
            assert!(files.contains(&file), "{link} is not among {files:?}");
        }
        commands_are_a_readers(&server, id);
    }
    reports_of_runs_are_there(&server, &experiment);
    reports_of_runs_are_there(&server, &capacity);
    tables_have_names(&server, &experiment, &capacity);
    no_other_path_leads_anywhere(&server, &run, &experiment);
}

/// Records, reports and specifications do not name files of the server: a reader of an export does not have them.
fn commands_are_a_readers(server: &Server, id: &str) {
    let record = server.get(&format!("/runs/{id}/record")).of(200);
    let command = if record["command"].is_array() { &record["command"] } else { &record["run"]["command"] };
    let command: Vec<&str> = command.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let begins: &[&str] = match record["schema_version"].is_u64().then(|| record.get("cells").or(record.get("trials")))
    {
        Some(None) => &["pubmark", "run", "run.yaml"],
        _ if record["cells"].is_array() => &["pubmark", "experiment", "experiment.yaml"],
        _ => &["pubmark", "capacity", "workload.yaml"],
    };
    assert!(command.starts_with(begins), "{command:?}");
    for file in names(server, id, "").iter().filter(|file| file.ends_with(".json") || file.ends_with(".html")) {
        let text = server.get(&format!("/runs/{id}/files/{file}")).body;
        assert!(!text.contains(".serve"), "{file} names a file of the server");
    }
}

fn reports_of_runs_are_there(server: &Server, id: &str) {
    let files = names(server, id, "");
    let report =
        files.iter().find(|file| file.contains('/') && file.ends_with("/report.html")).expect("a run's report");
    let inner = report.trim_end_matches("/report.html");
    let page = server.get(&format!("/runs/{id}/files/{report}"));
    assert!(page.body.starts_with("<!DOCTYPE html>") && page.head.contains("text/html"), "{}", page.head);
    let its = names(server, id, &format!("?within={inner}"));
    assert!(its.iter().any(|file| *file == format!("{inner}/csv/series.csv")), "{its:?}");
    for file in its {
        assert_eq!(server.get(&format!("/runs/{id}/files/{file}")).status, 200, "{file}");
    }
    assert_eq!(server.get(&format!("/runs/{id}/files?within=..")).status, 404);
}

fn tables_have_names(server: &Server, experiment: &str, capacity: &str) {
    let head = |id: &str, table: &str| {
        let table = server.get(&format!("/runs/{id}/table{table}"));
        assert_eq!(table.status, 200, "{table:?}");
        table.body.lines().next().unwrap().to_owned()
    };
    assert_eq!(head(experiment, ""), head(experiment, "?table=cells"));
    assert_ne!(head(experiment, "?table=runs"), head(experiment, "?table=cells"));
    assert_eq!(head(capacity, ""), head(capacity, "?table=trials"));
    for (id, name, hint) in
        [(experiment, "series", "the tables are cells, runs"), (capacity, "cells", "the table is trials")]
    {
        let refused = server.get(&format!("/runs/{id}/table?table={name}")).of(404);
        assert_eq!(refused["hint"], hint, "{refused}");
    }
}

fn no_other_path_leads_anywhere(server: &Server, run: &str, experiment: &str) {
    let secret = server.token.clone();
    let of = |id: &str| server.runs().join(server.entry(id)["folders"][0].as_str().unwrap());
    let at = of(run);
    // A file that no record names; a link in place of a named file; a name that leads out of the folder.
    fs::write(at.join("private"), &secret).unwrap();
    fs::remove_file(at.join("run.yaml")).unwrap();
    symlink(server.runs().join(".serve/token"), at.join("run.yaml")).unwrap();
    let mut record: Value = serde_json::from_slice(&fs::read(at.join("record.json")).unwrap()).unwrap();
    record["run"]["files"]["token"] = json!("../.serve/token");
    record["run"]["files"]["away"] = json!("away/token");
    symlink(server.runs().join(".serve"), at.join("away")).unwrap();
    fs::write(at.join("record.json"), record.to_string()).unwrap();
    let inner = names(server, experiment, "").into_iter().find(|file| file.ends_with("/record.json")).unwrap();
    let inner = inner.trim_end_matches("/record.json").to_owned();
    for (id, path) in [
        (run, "private"),
        (run, "run.yaml"),
        (run, "away/token"),
        (run, "../.serve/token"),
        (run, "..%2f.serve%2ftoken"),
        (run, "%2e%2e/.serve/token"),
        (run, "csv/../../.serve/token"),
        (run, "csv/%2e%2e/%2e%2e/.serve/token"),
        (run, "%2fetc%2fpasswd"),
        (run, "/etc/passwd"),
        (run, "record.json%00.html"),
        (run, "csv/nothing.csv"),
        (run, "csv/..%2frecord.csv"),
        (run, ""),
        (run, "."),
        (experiment, "runs"),
        (experiment, &format!("{inner}/")),
        (experiment, &format!("{inner}/../experiment.json")),
        (experiment, &format!("{inner}%2f..%2f..%2f..%2f.serve%2ftoken")),
        (experiment, &format!("{inner}/nothing")),
        (experiment, "journal.jsonl"),
        ("..", "passwd"),
        (".serve", "token"),
    ] {
        let response = server.get(&format!("/runs/{id}/files/{path}"));
        assert!(matches!(response.status, 400 | 404 | 409), "{path}: {response:?}");
        assert!(!response.body.contains(&secret) && !response.body.contains("root:"), "{path}: {response:?}");
    }
    assert!(!names(server, run, "").iter().any(|name| name.contains("token") || name == "run.yaml"));
    let long = format!("/runs/{run}/files/{}", "a/".repeat(4_000));
    assert!(matches!(server.get(&long).status, 404 | 414 | 431));
}
