//! User names and passwords of a submission: what is seen when the system refuses them, and that results have neither the
//! password nor a path of the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::call::Events;
use crate::server::{Server, folder};

/// CONNACK of MQTT 5 with reason 0x86, bad user name or password.
const REFUSED: [u8; 5] = [0x20, 0x03, 0x00, 0x86, 0x00];

/// A broker that refuses every client; its port.
fn refusing_broker() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", pubmark_conformance::ports::free().port())).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut connect = [0; 256];
            // A client that has gone away needs no response.
            let _ = stream.read(&mut connect).and_then(|_| stream.write_all(&REFUSED));
        }
    });
    port
}

#[test]
fn a_log_in_that_the_system_refuses_is_the_reason_everywhere() {
    let place = folder();
    let server = Server::start(place.path(), &["--allow", "endpoints"]);
    let endpoint = format!("mqtt://127.0.0.1:{}", refusing_broker());
    let body = json!({
        "workload": "hello", "endpoint": endpoint, "protocol": "mqtt5", "duration": "1s", "warmup": "0s",
        "connection": {"user": "ann", "password": "geheim-5"},
    });
    let id = server.submit(&body.to_string());
    let failed = server.wait(&id, &["failed"]);
    let reason = format!("failed to connect to `{endpoint}`: not authorized: bad user name or password (0x86)");
    let chain: Vec<&str> =
        failed["error"]["chain"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
    assert_eq!(chain.join(": "), reason, "{failed}");
    assert!(failed["error"]["hint"].as_str().unwrap().contains("`connection.user`"), "{failed}");
    let end = Events::of(server.port, &server.token, &id).last().unwrap();
    assert_eq!((&end["state"], &end["error"]), (&Value::from("failed"), &Value::from(reason.as_str())), "{end}");
    assert_eq!(end["hint"], failed["error"]["hint"], "{end}");
    // The list and the page, which set code as code.
    let shown = reason.replacen('`', "<code>", 1).replacen('`', "</code>", 1);
    let list = server.get("/").body;
    assert!(list.contains(&shown), "{list}");
    let live = server.get(&format!("/runs/{id}/live")).body;
    let capital = shown.replacen('f', "F", 1);
    assert!(live.contains(&capital) && !live.contains("Charts appear"), "{live}");
    for text in [list, live, failed.to_string()] {
        assert!(!text.contains("geheim-5"), "{text}");
    }
}

#[test]
fn results_have_neither_the_password_nor_a_path_of_the_server() {
    let place = folder();
    let server = Server::start(place.path(), &["--allow", "endpoints"]);
    // A broker that accepts every user.
    let mut broker = Command::new(env!("CARGO_BIN_EXE_pubmark")).arg("broker").stdout(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(broker.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let endpoint = format!("mqtt://{}", line.strip_prefix("listening ").unwrap());
    let run = json!({
        "workload": "hello", "endpoint": endpoint, "duration": "1s", "warmup": "0s",
        "connection": {"user": "ann", "password": "geheim-6"},
    });
    let search = json!({
        "capacity": "hello", "endpoint": endpoint, "within": "2s", "duration": "1s", "warmup": "0s", "slo": "loss=0",
        "user": "ann", "password": "geheim-6",
    });
    for (body, file) in [(run, "run.yaml"), (search, "trials/01/run.yaml")] {
        let id = server.submit(&body.to_string());
        let ended = server.wait(&id, &["complete", "failed"]);
        let result = server.runs().join(ended["folders"][0].as_str().unwrap());
        let spec = std::fs::read_to_string(result.join(file)).unwrap();
        assert!(spec.contains("password: …") && !spec.contains("password_file"), "{spec}");
        for (path, text) in texts(&result) {
            assert!(!text.contains("geheim-6"), "{path}: {text}");
            assert!(!text.contains(".serve"), "{path}: {text}");
        }
    }
    broker.kill().unwrap();
    broker.wait().unwrap();
}

/// Files below a folder that are text.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
    found
}
