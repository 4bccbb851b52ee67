//! Who watches does not disturb: latencies with twenty open pages lie where those without lie.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::call::connect;
use crate::server::{Server, folder};

/// Pages that are open at once.
const PAGES: usize = 20;
/// A run of some thousand messages.
const RUN: &str = r#"{"workload": "smart-home", "duration": "6s", "warmup": "1s", "scale": 10}"#;

/// Median of a run, as its bounds, µs.
fn median(server: &Server, id: &str) -> [f64; 2] {
    let entry = server.wait(id, &["complete"]);
    let latency = &entry["headline"]["latency"];
    let bound = |side: &str| latency[side]["p50_us"].as_f64().unwrap_or_else(|| panic!("no median: {entry}"));
    [bound("lower"), bound("upper")]
}

#[test]
fn twenty_open_pages_do_not_change_the_latency() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let alone = median(&server, &server.submit(RUN));
    let id = server.submit(RUN);
    let drawn = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (0..PAGES)
        .map(|_| {
            let (port, token, id, drawn) = (server.port, server.token.clone(), id.clone(), Arc::clone(&drawn));
            std::thread::spawn(move || {
                let mut stream = connect(port);
                let head = format!(
                    "GET /runs/{id}/live HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
                );
                std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                drawn.fetch_add(text.matches("event: view").count() as u64, Ordering::Relaxed);
                text
            })
        })
        .collect();
    let watched = median(&server, &id);
    for reader in readers {
        let text = reader.join().unwrap();
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["over"], true, "{last}");
        assert!(text.contains("<svg"), "nothing was drawn");
    }
    let drawn = drawn.load(Ordering::Relaxed) / PAGES as u64;
    assert!(drawn >= 5, "a page was drawn {drawn} times");
    assert!(
        watched[0] <= alone[1] && alone[0] <= watched[1],
        "p50 between {alone:?} µs without pages, {watched:?} µs with them"
    );
}
