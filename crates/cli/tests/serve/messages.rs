//! `GET /runs/{id}/messages`: the message log as it is stored.

use std::fs;
use std::os::unix::fs::symlink;

use crate::call;
use crate::results::{EXPERIMENT, ONE, save, save_other_kinds};
use crate::server::{Server, folder};

#[test]
fn a_message_log_is_sent_as_it_is_stored() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    for (form, media_type) in
        [("csv", "text/csv"), ("ndjson", "application/x-ndjson"), ("parquet", "application/vnd.apache.parquet")]
    {
        let id = server.submit(&format!(
            r#"{{"workload": "smart-home", "duration": "2s", "warmup": "0s", "message_log": "{form}"}}"#
        ));
        let folder = server.wait(&id, &["complete"])["folders"][0].as_str().unwrap().to_owned();
        let stored = fs::read(server.runs().join(&folder).join(format!("messages.{form}"))).unwrap();
        assert!(!stored.is_empty());
        for name in [&id, &folder] {
            let path = format!("/runs/{name}/messages");
            assert!(call::bytes(server.port, &path, &server.token) == stored, "{form}: other bytes");
        }
        let head = call::request(server.port, "HEAD", &format!("/runs/{id}/messages"), Some(&server.token), "").head;
        let head = head.to_lowercase();
        for part in [
            format!("content-type: {media_type}"),
            format!("content-length: {}", stored.len()),
            format!("filename=\"{folder}-messages.{form}\""),
        ] {
            assert!(head.contains(&part), "{part}: {head}");
        }
        let without = call::request(server.port, "GET", &format!("/runs/{id}/messages"), None, "");
        assert_eq!(without.status, 401);
    }
}

#[test]
fn what_has_no_log_says_what_to_do_and_a_link_leads_nowhere() {
    let place = folder();
    let runs = place.path().join("runs");
    save(&runs, ONE, |_| ());
    save_other_kinds(&runs);
    let server = Server::start(place.path(), &[]);
    for (name, hint) in [(ONE, "make the run again with `message_log"), (EXPERIMENT, "only a single run")] {
        let none = server.get(&format!("/runs/{name}/messages")).of(404);
        assert!(none["error"].as_str().unwrap().contains("has no message log"), "{none}");
        assert!(none["hint"].as_str().unwrap().contains(hint), "{none}");
    }
    symlink("/etc/passwd", runs.join(ONE).join("messages.csv")).unwrap();
    let linked = server.get(&format!("/runs/{ONE}/messages"));
    assert!(linked.status == 500 && !linked.body.contains("root:"), "{linked:?}");
}
