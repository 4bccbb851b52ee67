//! `/metrics` of `pubmark serve` and `pubmark run --metrics`, as scraped; the dashboard.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use pubmark_serve::metrics::{Kind, METRICS};
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::call::{self, Response};
use crate::server::{SHORT, Server, folder};

/// The value of the only series of this name.
fn value(text: &str, name: &str) -> Option<f64> {
    let is_its = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    text.lines().find(is_its).map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[test]
fn a_server_answers_only_with_the_token_and_serves_the_last_values() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    assert_eq!(call::request(server.port, "GET", "/metrics", None, "").status, 401);
    let before = server.get("/metrics");
    assert!(before.head.to_lowercase().contains("content-type: application/openmetrics-text"), "{}", before.head);
    assert_eq!(value(&before.body, "pubmark_queue_length"), Some(0.0), "{}", before.body);
    assert!(!before.body.contains("messaging_client"), "no run, no values: {}", before.body);
    let id = server.submit(SHORT);
    server.wait(&id, &["complete"]);
    let record = server.get(&format!("/runs/{id}/record")).of(200);
    for _ in 0..2 {
        let text = server.get("/metrics").body;
        for (name, field) in [
            ("pubmark_offered_messages_total", "offered"),
            ("messaging_client_sent_messages_total", "sent"),
            ("messaging_client_consumed_messages_total", "delivered"),
            ("pubmark_lost_messages_total", "lost"),
            ("pubmark_unknown_messages_total", "unknown"),
        ] {
            assert_count_eq!(value(&text, name), record["delivery"][field].as_f64(), "{name} in {text}");
        }
        let count = value(&text, "pubmark_delivery_latency_seconds_count");
        assert_count_eq!(count, record["delivery"]["delivered"].as_f64(), "{text}");
        assert!(text.contains("pubmark_submissions{state=\"complete\"} 1"), "{text}");
        let folder = server.entry(&id)["folders"][0].as_str().unwrap().to_owned();
        assert!(text.contains(&format!("run=\"{folder}\",workload=\"hello\",system=\"builtin\"")), "{text}");
    }
}

#[test]
fn a_run_is_scraped_while_it_goes_on_and_no_longer() {
    let place = folder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
    let free = pubmark_conformance::ports::free().port().to_string();
    command.args(["run", "smart-home", "--duration", "3s", "--warmup", "1s", "--metrics", &free]);
    command.current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = &mut BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| line.unwrap().split("http://127.0.0.1:").nth(1).map(str::to_owned)).unwrap();
    let port: u16 = address.strip_suffix("/metrics").unwrap().parse().unwrap();
    assert_eq!(get(port, "/").unwrap().status, 404);
    assert_eq!(call::request(port, "POST", "/metrics", None, "").status, 405);
    // A domain name of another site that leads here.
    let rebound = call::raw(port, b"GET /metrics HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert!(rebound.starts_with("HTTP/1.1 421 "), "{rebound}");
    let huge = format!("GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    assert!(!call::raw(port, huge.as_bytes()).contains(" 200 "), "a head without a bound");
    let names = [
        "pubmark_offered_messages_total",
        "messaging_client_sent_messages_total",
        "messaging_client_consumed_messages_total",
    ];
    let (mut latest, mut scrapes) = ([0.0; 3], 0);
    while let Some(response) = get(port, "/metrics") {
        for (latest, name) in latest.iter_mut().zip(names) {
            let Some(now) = value(&response.body, name) else { continue };
            assert!(now >= *latest, "{name} went from {latest} to {now}");
            *latest = now;
        }
        let count = value(&response.body, "pubmark_delivery_latency_seconds_count");
        let last = r#"le="+Inf""#;
        let infinite = response
            .body
            .lines()
            .find(|line| line.starts_with("pubmark_delivery_latency_seconds_bucket") && line.contains(last));
        let infinite = infinite.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        assert_eq!(count, infinite, "one moment: {}", response.body);
        scrapes += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 5)));
    assert!(scrapes > 20 && latest.iter().all(|latest| *latest > 0.0), "{scrapes} scrapes, {latest:?}");
    let record: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("runs/latest/record.json")).unwrap()).unwrap();
    for (latest, field) in latest.iter().zip(["offered", "sent", "delivered"]) {
        assert!(*latest <= record["delivery"][field].as_f64().unwrap(), "{field}: {latest}");
    }
}

/// A response; `None` if the port is closed, or the connection ends first.
fn get(port: u16, path: &str) -> Option<Response> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(call::LIMIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).ok()?;
    (!text.is_empty()).then(|| call::parsed(&text))
}

#[test]
fn a_port_that_is_taken_is_one_error_before_the_run() {
    let place = folder();
    let taken = pubmark_conformance::ports::listen();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["run", "hello", "--metrics", &port])
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("failed to listen on `127.0.0.1:{port}`")) && text.contains("hint:"), "{text}");
    assert!(!place.path().join("runs").exists(), "nothing was begun");
}

#[test]
fn the_dashboard_queries_only_exposed_metrics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/grafana/pubmark.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut known: Vec<String> = METRICS.iter().map(|metric| metric.queried()).collect();
    for metric in METRICS.iter().filter(|metric| metric.kind == Kind::Histogram) {
        known.extend(["bucket", "count", "sum"].map(|part| format!("{}_{part}", metric.name)));
    }
    let panels = dashboard["panels"].as_array().unwrap();
    let queries = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut queries: Vec<&str> = queries.map(|target| target["expr"].as_str().unwrap()).collect();
    queries.extend(
        dashboard["templating"]["list"].as_array().unwrap().iter().filter_map(|list| list["query"]["query"].as_str()),
    );
    let mut found = 0;
    for query in &queries {
        let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names: Vec<&str> =
            words.filter(|word| word.starts_with("pubmark_") || word.starts_with("messaging_")).collect();
        assert!(!names.is_empty(), "no metric in {query}");
        for name in names {
            assert!(known.iter().any(|known| known == name), "{name} in {query} is not exposed");
            found += 1;
        }
    }
    assert!(found >= 16, "{found} metrics in {queries:?}");
}
