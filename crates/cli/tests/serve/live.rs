//! `pubmark run --live`: who may open the page, and how the command ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::call::{self, Response};
use crate::server::folder;

/// Longest time that a run of so few seconds may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A run with a live view; killed when dropped.
struct Watched {
    child: Child,
    port: u16,
    token: String,
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pubmark(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run_for(duration: &str) -> [&str; 8] {
    ["run", "hello", "--system", "builtin", "--warmup", "0s", "--duration", duration]
}

impl Watched {
    fn start(folder: &Path, duration: &str) -> Watched {
        Watched::of(folder, &run_for(duration))
    }

    fn of(folder: &Path, words: &[&str]) -> Watched {
        let live = format!("--live={}", pubmark_conformance::ports::free().port());
        let mut child = pubmark(folder, &[words, &[&live]].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut urls = lines.filter_map(|line| Some(line.strip_prefix("live view at http://127.0.0.1:")?.to_owned()));
        let url = urls.next().expect("it says where");
        // The command continues to write: the other end must stay open.
        std::thread::spawn(move || urls.for_each(drop));
        let (port, token) = url.split_once("/runs/this#").unwrap();
        Watched { port: port.parse().unwrap(), token: token.to_owned(), child }
    }

    fn ask(&self, method: &str, path: &str, token: Option<&str>) -> Response {
        call::request(self.port, method, path, token, "")
    }

    /// Follows the run as a page does; the response has begun.
    fn follow(&self) -> TcpStream {
        let mut stream = call::connect(self.port);
        let (port, token) = (self.port, &self.token);
        let head = format!("host: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(format!("GET /runs/this/live HTTP/1.1\r\n{head}").as_bytes()).unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        stream
    }

    fn code(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < LIMIT, "the run does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn only_the_token_shows_and_stops_a_run() {
    let place = folder();
    let mut run = Watched::start(place.path(), "120s");
    for (method, path) in [
        ("GET", "/runs/this/live"),
        ("GET", "/runs/this/report"),
        ("DELETE", "/runs/this"),
        ("POST", "/runs/this/seen"),
    ] {
        assert_eq!(run.ask(method, path, None).status, 401, "{method} {path}");
        assert_eq!(run.ask(method, path, Some(&"0".repeat(64))).status, 401, "{method} {path}");
    }
    // A page of another site, and a name of another site that leads here.
    for (header, status) in [("origin: http://evil.example", 403), ("x: y\r\nhost: evil.example", 421)] {
        let host = if status == 421 { String::new() } else { format!("host: 127.0.0.1:{}\r\n", run.port) };
        let head = format!("{header}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n", run.token);
        let answer = call::raw(run.port, format!("DELETE /runs/this HTTP/1.1\r\n{host}{head}").as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    let token = run.token.clone();
    assert_eq!(run.ask("GET", "/runs/this/report", Some(&token)).status, 404, "it is not over");
    assert_eq!(run.ask("GET", "/runs", Some(&token)).status, 404);
    let mut lines = BufReader::new(run.follow()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("of the measured window")).expect("it measures");
    assert_eq!(run.ask("DELETE", "/runs/this", Some(&token)).status, 202);
    drop(lines);
    assert_eq!(run.code(), Some(130));
    assert!(place.path().join("runs/latest/record.json").is_file(), "what was measured is recorded");
}

#[test]
fn the_command_waits_until_each_page_has_the_report_and_no_longer() {
    let place = folder();
    let mut run = Watched::start(place.path(), "1s");
    let token = run.token.clone();
    // Two pages: one takes the report, the other one is closed with the run.
    let pages: Vec<TcpStream> = (0..2).map(|_| run.follow()).collect();
    let mut lines = BufReader::new(pages[0].try_clone().unwrap()).lines().map(Result::unwrap);
    let last = lines.find(|line| line.contains(r#""over":true"#)).expect("the end");
    assert!(last.contains(r#""ended":true"#), "{last}");
    let report = run.ask("GET", "/runs/this/report", Some(&token));
    assert!(report.status == 200 && report.body.contains("<!DOCTYPE html>"), "{}", report.head);
    assert!(run.child.try_wait().unwrap().is_none(), "it ended before its pages had the report");
    assert_eq!(run.ask("POST", "/runs/this/seen", Some(&token)).status, 204);
    // The second page never confirms the report: the wait has a limit.
    assert!(matches!(run.code(), Some(0 | 5)));
}

#[test]
fn a_run_that_nobody_watches_ends_at_once_and_one_for_other_machines_is_refused() {
    let place = folder();
    let mut run = Watched::start(place.path(), "1s");
    assert!(matches!(run.code(), Some(0 | 5)));
    let taken = pubmark_conformance::ports::listen();
    let port = taken.local_addr().unwrap().port();
    for (live, message) in [
        ("--live=0.0.0.0:7781".to_owned(), "`0.0.0.0:7781` can be reached from other machines"),
        (format!("--live={port}"), "choose another port"),
        ("--live=here".to_owned(), "no port"),
    ] {
        let refused = pubmark(place.path(), &[&run_for("1s")[..], &[&live]].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&refused.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(refused.status.code(), Some(2), "{live}: {text}");
        assert!(text.contains(message), "{live}: {text}");
    }
}

/// Follows a command to its end; every text that was shown, and the report.
fn watched_to_its_end(run: &mut Watched) -> (Vec<String>, String) {
    let token = run.token.clone();
    let lines = BufReader::new(run.follow()).lines().map(Result::unwrap);
    let mut shown = Vec::new();
    for line in lines.filter(|line| line.contains("data: {")) {
        shown.push(line.clone());
        if line.contains(r#""ended":true"#) {
            break;
        }
    }
    let report = run.ask("GET", "/runs/this/report", Some(&token));
    assert_eq!(report.status, 200, "{report:?}");
    assert_eq!(run.ask("POST", "/runs/this/seen", Some(&token)).status, 204);
    (shown, report.body)
}

#[test]
fn a_comparison_is_watched_run_after_run_at_one_address() {
    let place = folder();
    let metrics = pubmark_conformance::ports::free().port();
    let words = ["compare", "hello", "--systems", "builtin", "--protocol", "mqtt5", "--qos", "0,1", "--repeat", "1"];
    let lengths = ["--duration", "2s", "--warmup", "1s", "--wait", "0s", "--metrics", &metrics.to_string()];
    let mut run = Watched::of(place.path(), &[&words[..], &lengths].concat());
    let scraped = std::thread::spawn(move || {
        let mut labels = std::collections::BTreeSet::new();
        // Until the port is closed.
        while let Ok(mut stream) = TcpStream::connect(("127.0.0.1", metrics)) {
            let mut text = String::new();
            stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
            // The command may end meanwhile.
            let _ = stream.read_to_string(&mut text);
            let runs = text.lines().filter_map(|line| line.split_once("run=\"")?.1.split_once('"').map(|(run, _)| run));
            labels.extend(runs.map(|run| run.rsplit('/').next().unwrap().to_owned()));
            std::thread::sleep(Duration::from_millis(100));
        }
        labels
    });
    let (shown, report) = watched_to_its_end(&mut run);
    for part in ["run 1 of 2", "run 2 of 2", "left</p>", "of the measured window", "<svg"] {
        assert!(shown.iter().any(|text| text.contains(part)), "{part} in {} texts", shown.len());
    }
    assert!(report.contains("pubmark experiment") || report.contains("compare"), "the report is the experiment's");
    assert!(matches!(run.code(), Some(0 | 5)));
    let labels = scraped.join().unwrap();
    assert!(labels.contains("1") && labels.contains("2"), "each run has series of its own: {labels:?}");
    assert!(place.path().join("runs/latest/experiment.json").is_file());
}

#[test]
fn a_search_is_watched_trial_after_trial_and_stopped() {
    let place = folder();
    let words = ["capacity", "hello", "--duration", "1s", "--warmup", "0s", "--within", "1m"];
    let mut run = Watched::of(place.path(), &words);
    let mut lines = BufReader::new(run.follow()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("trial 2") && line.contains("msg/s")).expect("a second trial");
    assert_eq!(run.ask("DELETE", "/runs/this", Some(&run.token.clone())).status, 202);
    drop(lines);
    assert_eq!(run.code(), Some(130));
    assert!(place.path().join("runs/latest/capacity.json").is_file(), "what was found is recorded");
}

#[test]
fn records_side_by_side_have_nothing_to_watch() {
    let place = folder();
    let refused = pubmark(place.path(), &["compare", "one", "other", "--live"]).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("no system is named to run"), "{text}");
}
