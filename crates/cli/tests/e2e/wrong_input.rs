//! Wrong input of users: each error names the value, the position, the reason and what to do, soon, with code 2 (or 6
//! for failures of the system), and nothing is started or stored.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use pubmark_conformance::ports;

use crate::support::place::{Called, Place};

/// Longest time until the error is printed.
const SOON: Duration = Duration::from_secs(5);

/// A workload file around one device group.
fn around(device: &str) -> String {
    format!("name: mine\ndevices:\n  - {device}\nsubscribers:\n  - {{filters: [\"a/#\"]}}\n")
}

/// Checks the error for wrong input: the code, its words (without line breaks), a hint, an empty standard output.
fn assert_told(called: &Called, code: i32, words: &[&str]) {
    assert_eq!(called.code(), code, "{called:?}");
    assert!(called.took < SOON, "{:?} for an answer", called.took);
    assert!(called.printed.is_empty(), "standard output is for results: {called:?}");
    let text = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("error"), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in\n{}", called.errors);
    }
    let has_next_step = ["hint:", "help:", "try '--help'"].iter().any(|words| text.contains(words));
    assert!(has_next_step, "no hint in\n{}", called.errors);
}

#[test]
fn mistakes_in_a_workload_file_are_shown_at_their_place() {
    let place = Place::new();
    let good = "name: d/t, every: 1s, payload: 100B, topic: \"a/b\"";
    for (device, words) in [
        (format!("{{{good}, evry: 5s}}"), ["evry", "every"]),
        ("{name: d/t, every: 5 parsec, payload: 100B, topic: \"a/b\"}".to_owned(), ["5 parsec", "ms"]),
        (format!("{{{good}, churn: {{disconnect: 150% every 1s, reconnect: 80% every 1s}}}}"), ["150%", "100"]),
        (
            "{type: smart-home/toaster, every: 1s, payload: 100B, topic: \"a/b\"}".to_owned(),
            ["smart-home/toaster", "type"],
        ),
        (format!("{{{good}, qos: 3}}"), ["3", "0"]),
        (format!("{{{good}, count: -5}}"), ["-5", "count"]),
        (format!("{{{good}, count: 99999999999999999999}}"), ["out of range", "count: 99999999999999999999"]),
        ("{name: d/t, every: 0s, payload: 100B, topic: \"a/b\"}".to_owned(), ["0s", "every"]),
        ("{name: d/t, every: 1s, payload: 100XB, topic: \"a/b\"}".to_owned(), ["100XB", "payload"]),
        ("{name: d/t, every: 1s, payload: 100B, topic: \"a/#\"}".to_owned(), ["a/#", "topic"]),
        ("{name: d/t, every: 1s, topic: \"a/b\"}".to_owned(), ["payload", "d/t"]),
        ("{name: d/t, every: 1s, payload: 900MB, topic: \"a/b\"}".to_owned(), ["900MB", "payload"]),
    ] {
        place.write("mine.yaml", around(&device));
        let called = place.call(&["run", "mine.yaml", "--duration", "1s"]);
        assert_told(&called, 2, &words);
        assert!(called.errors.contains("mine.yaml:3"), "no line for {device}:\n{}", called.errors);
        assert!(called.errors.contains("`--") || called.errors.contains('^'), "nothing underlined:\n{}", called.errors);
        assert!(!place.path().join("runs").exists(), "a folder was made for {device}");
    }
}

#[test]
fn a_fleet_that_no_machine_can_hold_is_refused_before_anything_starts() {
    let place = Place::new();
    for count in ["1400000", "4000000000"] {
        let device = format!("{{name: d/t, count: {count}, every: 1s, payload: 100B, topic: \"a/{{device}}\"}}");
        place.write("mine.yaml", around(&device));
        let called = place.call(&["run", "mine.yaml", "--duration", "1s"]);
        assert_told(&called, 2, &["4"]);
    }
}

#[test]
fn files_that_are_no_workloads() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("folder.yaml")).unwrap();
    place.write("empty.yaml", "");
    place.write("binary.yaml", [0u8, 159, 146, 150, 0, 255, 1, 2, 3]);
    place.write("list.yaml", "- 1\n- 2\n");
    place.write("open.yaml", "name: [\n");
    place.write("deep.yaml", "[".repeat(100_000));
    place.write("tabs.yaml", "name: x\ndevices:\n\t- {name: a}\n");

    for name in ["folder", "empty", "binary", "list", "open", "deep", "tabs", "absent"] {
        let file = format!("{name}.yaml");
        for verb in [&["run", &file][..], &["run", &file, "--dry-run"]] {
            let called = place.call(verb);
            assert_told(&called, 2, &[&file]);
        }
    }
}

#[test]
fn arguments_that_cannot_be_meant() {
    let place = Place::new();
    for (arguments, words) in [
        (&["smart-home", "--endpoint", "mqtt://"][..], ["names no host", "mqtt://localhost"]),
        (&["smart-home", "--endpoint", "mqtt://:1883"], ["host", "mqtt://localhost"]),
        (&["smart-home", "--endpoint", "mqtt://no-such-host.invalid"], ["no-such-host.invalid", "address"]),
        (&["smart-home", "--system", "rabbitmq9"], ["rabbitmq9", "mosquitto"]),
        (&["smart-home", "--system", "./absent.yaml"], ["absent.yaml", "No such file"]),
        (&["smart-home", "--shards", "0"], ["0", "--shards"]),
        (&["smart-home", "--duration", "0s"], ["0s", "--duration"]),
        (&["smart-home", "--duration", "-5s"], ["-5s", ""]),
        (&["smart-home", "--duration", "99999999999999999h"], ["99999999999999999h", "--duration"]),
        (&["smart-home", "--scale", "0"], ["0", "--scale"]),
        (&["smart-home", "--scale", "4294967295"], ["smart-home", ""]),
        (&["smart-home", "--repeat", "0"], ["0", "--repeat"]),
        (&["smart-home", "--qos", "7"], ["7", "--qos"]),
        (&["smart-home", "--seed", "x"], ["x", "--seed"]),
        (&["pairs", "--set", "pairs=-1"], ["-1", "count"]),
        (&["pairs", "--set", "nothing.at.all=1"], ["nothing", ""]),
        (&["smart-home", "--endpoint", "mqtts://localhost", "--tls-ca", "absent.pem"], ["absent.pem", ""]),
        (&["smart-home", "--tls-insecure"], ["--endpoint", ""]),
    ] {
        let called = place.call(&[&["run"], arguments].concat());
        assert_told(&called, 2, &words);
    }
}

#[test]
fn authorities_that_are_no_certificates() {
    let place = Place::new();
    place.write("text.pem", "no certificate");
    place.write("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for file in ["text.pem", "broken.pem"] {
        let endpoint = format!("mqtts://{}", ports::free());
        let called = place.call(&["run", "hello", "--endpoint", &endpoint, "--tls-ca", file, "--duration", "1s"]);
        assert_told(&called, 2, &[file]);
        assert!(place.runs().is_empty(), "a run that never began has a folder");
    }
}

#[test]
fn a_folder_for_runs_that_cannot_be_written() {
    let place = Place::new();
    place.write("file", "not a folder");
    let short = ["run", "hello", "--duration", "500ms", "--warmup", "0s", "--out"];
    let called = place.call(&[&short[..], &["file/runs"]].concat());
    assert_told(&called, 2, &["file/runs"]);
    // root can write in every folder except those where no user can.
    let called = place.call(&[&short[..], &["/proc/runs"]].concat());
    assert_told(&called, 2, &["/proc/runs"]);
    // SAFETY: reads a number, touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        let locked = place.path().join("locked");
        std::fs::create_dir(&locked).unwrap();
        std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
        let called = place.call(&[&short[..], &["locked/runs"]].concat());
        assert_told(&called, 2, &["locked/runs", "ermission denied"]);
    }
}

#[test]
fn a_port_that_is_in_use() {
    let place = Place::new();
    let taken = ports::listen();
    let address = taken.local_addr().unwrap().to_string();
    let called = place.call(&["broker", "--listen", &address]);
    assert_told(&called, 6, &[&address, "in use"]);
}

#[test]
fn a_file_that_the_broker_cannot_use() {
    let place = Place::new();
    place.write("short", "0123456789");
    place.write("no.pem", "no certificate");
    for (options, told) in [
        (&["--tokens", "none"][..], &["secret of tokens", "none", "openssl rand"][..]),
        (&["--tokens", "short"], &["too short for HS256", "32 B", "openssl rand"]),
        (&["--tls", "no.pem", "no.pem"], &["no.pem", "PEM files"]),
        (&["--listen", "somewhere"], &["somewhere", "--listen"]),
    ] {
        let called = place.call(&[&["broker"][..], options].concat());
        assert_told(&called, 2, told);
    }
}

#[test]
fn an_endpoint_that_speaks_something_else() {
    let place = Place::new();
    let listener = ports::listen();
    let endpoint = format!("mqtt://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            // The request is read first: closing with unread bytes would reset the connection. The client may have
            // disconnected already.
            let _ = client.read(&mut [0; 1_024]);
            let _ = client.write_all(
                b"HTTP/1.1 400 Bad Request\r\nServer: something else\r\nContent-Type: text/plain; charset=utf-8\r\n\
                  Content-Length: 5\r\nConnection: close\r\n\r\nwhat?",
            );
        }
    });
    let called = place.call(&["run", "hello", "--duration", "1s", "--warmup", "0s", "--endpoint", &endpoint]);
    assert_eq!(called.code(), 6, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    let place_of = endpoint.trim_start_matches("mqtt://");
    let said =
        format!("error: `{place_of}` does not speak MQTT 5.0: it answered `HTTP/1.1 400 Bad Request` hint: check");
    assert!(words.starts_with(&said), "{called:?}");
    assert!(called.printed.is_empty() && place.runs().is_empty(), "{called:?}");
    // The folder of the earlier run remains the latest.
    std::os::unix::fs::symlink("before", place.path().join("runs/latest")).unwrap();
    let called = place.call(&["run", "hello", "--duration", "1s", "--warmup", "0s", "--json", "--endpoint", &endpoint]);
    assert_eq!(std::fs::read_link(place.path().join("runs/latest")).unwrap(), std::path::Path::new("before"));
    let causes = called.json()["connections"]["causes"].to_string();
    assert!(causes.contains("protocol error"), "{causes}");
}

#[test]
fn runs_to_compare_and_report_that_are_none() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("empty")).unwrap();
    place.write("record.json", [0u8, 255, 254, 1]);
    place.write("cut.json", "{\"schema_version\": 1, \"run\": \"a");
    for arguments in [
        &["report", "absent"][..],
        &["report", "empty"],
        &["report", "record.json"],
        &["report", "cut.json"],
        &["compare", "empty", "absent"],
        &["compare", "cut.json", "record.json"],
    ] {
        let called = place.call(arguments);
        assert_told(&called, 2, &[]);
    }
}
