//! Events of a run over several connections: `Last-Event-ID`.

use std::io::Write as _;

use serde_json::Value;

use crate::call::{self, request};
use crate::server::{SHORT, Server, folder};

/// Events of a stream that ended, each with its id; of a stream that was cut, the last complete ones.
fn events(body: &str) -> Vec<(Option<String>, Value)> {
    let whole = body.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start().to_owned())
    };
    let blocks = whole.split("\n\n").filter(|event| event.contains("data:"));
    blocks.map(|event| (field(event, "id:"), serde_json::from_str(&field(event, "data:").unwrap()).unwrap())).collect()
}

/// All events after an id, until the end.
fn behind(server: &Server, id: &str, newest: &str) -> Vec<(Option<String>, Value)> {
    let (port, token) = (server.port, &server.token);
    let head = format!(
        "GET /runs/{id}/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\
         last-event-id: {newest}\r\nconnection: close\r\n\r\n"
    );
    let response = call::parsed(&call::raw(port, head.as_bytes()));
    assert_eq!(response.status, 200, "{newest}: {response:?}");
    events(&response.body)
}

/// Events until the test closes the connection during the run.
fn until_dropped(server: &Server, id: &str) -> Vec<(Option<String>, Value)> {
    let mut stream = call::connect(server.port);
    let (port, token) = (server.port, &server.token);
    let head =
        format!("GET /runs/{id}/events HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    let mut piece = [0; 512];
    // In the middle of an event, most likely.
    while !text.contains("event: progress") {
        let read = std::io::Read::read(&mut stream, &mut piece).unwrap();
        assert!(read > 0, "the run ended before: {text}");
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    drop(stream);
    events(text.split_once("\r\n\r\n").unwrap().1)
}

#[test]
fn a_client_that_comes_back_gets_each_event_once() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let id = server.submit(r#"{"workload": "smart-home", "duration": "3s", "warmup": "1s"}"#);
    let mut got = until_dropped(&server, &id);
    let newest = got.last().unwrap().0.clone().expect("an id");
    got.extend(behind(&server, &id, &newest));
    let all = events(&request(server.port, "GET", &format!("/runs/{id}/events"), Some(&server.token), "").body);
    assert_eq!(got, all, "each event once");
    assert_eq!(got.last().unwrap().1["event"], "end");
    assert!(got.iter().all(|(_, event)| event["event"] != "current"), "nothing was left out");
    let ids: Vec<u64> = all.iter().filter_map(|(id, _)| id.as_ref()?.parse().ok()).collect();
    assert!(ids.len() + 1 == all.len() && ids.is_sorted_by(|one, other| one < other), "{ids:?}");
}

#[test]
fn a_client_whose_newest_event_is_unknown_or_too_old_is_given_the_current_state() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let id = server.submit(SHORT);
    server.wait(&id, &["complete"]);
    let all = events(&server.get(&format!("/runs/{id}/events")).body);
    let first = all[0].0.clone().unwrap();
    for unknown in ["7", "x", "-1", "99999999999999999999999999", &"9".repeat(4_000)] {
        let found = behind(&server, &id, unknown);
        let kinds: Vec<&Value> = found.iter().map(|(_, event)| &event["event"]).collect();
        assert_eq!(kinds, ["current", "end"], "{unknown}: {found:?}");
        assert_eq!((&found[0].1["missed"], &found[0].1["state"]), (&Value::from(true), &Value::from("complete")));
        // From there it goes on.
        let id_of_current = found[0].0.clone().unwrap();
        assert_eq!(behind(&server, &id, &id_of_current).len(), 1);
    }
    assert_eq!(behind(&server, &id, &first), all[1..], "it is known");
    // As if the run had lasted for hours.
    let file = server.runs().join(".serve/queue").join(&id).join("events.jsonl");
    let note = format!("{}\n", serde_json::json!({"event": "note", "t_s": 9.0, "text": "x".repeat(1_000)}));
    std::fs::OpenOptions::new().append(true).open(file).unwrap().write_all(note.repeat(5_000).as_bytes()).unwrap();
    let found = behind(&server, &id, &first);
    assert_eq!(found[0].1["event"], "current", "{:?}", found[0]);
    assert_eq!(found[0].1["missed"], true);
    assert_eq!(found.len(), 2, "what was missed is not sent");
}

#[test]
fn a_file_that_cannot_be_read_yet_does_not_block_other_requests() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let id = server.submit(SHORT);
    server.wait(&id, &["complete"]);
    // Simulates a disk that does not respond: opening a pipe blocks until another process writes to it.
    let file = server.runs().join(".serve/queue").join(&id).join("events.jsonl");
    std::fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success(), "{made}");
    let readers: Vec<_> = ["events", "live"]
        .map(|what| {
            let mut stream = call::connect(server.port);
            let (port, token) = (server.port, &server.token);
            let head = format!("host: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n");
            stream.write_all(format!("GET /runs/{id}/{what} HTTP/1.1\r\n{head}").as_bytes()).unwrap();
            stream
        })
        .into();
    // Both requests wait for the pipe now or soon; other requests get a response nevertheless.
    for path in ["/openapi.json", "/runs", "/systems", "/nodes", "/openapi.json"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    drop(readers);
}
