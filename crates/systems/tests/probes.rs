//! Probes against real servers, and against servers that do not respond as expected.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use pubmark_model::workload::Credentials;
use pubmark_systems::{Definition, Endpoint, RunningSystem, StartOptions, TlsFiles, install, probe, start};

const WITHIN: Duration = Duration::from_secs(5);

/// The definition, if its program is installed; otherwise records a skip.
fn here(name: &str) -> Option<Definition> {
    let definition = Definition::load(name).unwrap();
    if install::found(&definition).is_some() {
        return Some(definition);
    }
    pubmark_testing::skip(format_args!("{name} is not installed (`pubmark install {name}`)"));
    None
}

/// Options with the supervisor that is built for tests.
fn options(protocol: &str) -> StartOptions {
    StartOptions {
        supervisor: Some(PathBuf::from(env!("CARGO_BIN_EXE_pubmark-supervisor"))),
        ..StartOptions::new(protocol)
    }
}

fn begin(definition: &Definition, options: &StartOptions) -> RunningSystem {
    let protocol = options.protocol.clone();
    start(definition, options, &mut |endpoint| probe::run(definition, &protocol, endpoint, WITHIN)).unwrap()
}

#[test]
fn every_probe_of_the_fast_systems_makes_its_round_trip_with_and_without_a_login() {
    for name in ["redis", "valkey", "nats"] {
        let Some(definition) = here(name) else { continue };
        let probed = definition.protocols.iter().filter(|(_, offer)| offer.probe.is_some());
        let protocols: Vec<&String> = probed.map(|(protocol, _)| protocol).collect();
        assert_eq!(protocols.len(), 2, "{name}");
        for protocol in protocols {
            drop(begin(&definition, &options(protocol)));
            let login = Credentials { user: "ann".to_owned(), password: "sesame".into() };
            let running = begin(&definition, &StartOptions { credentials: Some(login), ..options(protocol) });
            // Without the log-in the same probe is refused.
            let open = Endpoint { credentials: None, ..running.endpoint().clone() };
            let refused = probe::run(&definition, protocol, &open, Duration::from_secs(2));
            assert!(refused.is_err(), "{name} lets everybody in over {protocol}");
        }
    }
}

#[test]
fn redis_encrypts() {
    let Some(definition) = here("redis") else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let certificate = write("server.crt", made.cert.pem());
    let key = write("server.key", made.signing_key.serialize_pem());
    let tls = TlsFiles { authority: certificate.clone(), certificate: certificate.clone(), key };
    let ping = |endpoint: &Endpoint| {
        let output = Command::new("redis-cli")
            .args(["--tls", "--cacert", &certificate.display().to_string(), "-h", "127.0.0.1"])
            .args(["-p", &endpoint.address.port().to_string(), "PING"])
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if said == "PONG" { Ok(()) } else { Err(said) }
    };
    let running =
        start(&definition, &StartOptions { tls: Some(tls), ..options("redis") }, &mut |endpoint| ping(endpoint))
            .unwrap();
    assert_eq!(running.endpoint().scheme, "rediss");
    let error = probe::run(&definition, "redis", running.endpoint(), WITHIN).unwrap_err();
    assert_eq!(error, "the probe of `redis` for redis does not encrypt");
}

/// A definition with one protocol and this probe.
fn probed(probe: &str) -> Definition {
    let text = format!(
        "name: mine\ntitle: mine\ndescription: mine\nranked: false\nlisteners: {{door: {{scheme: x}}}}\n\
         protocols: {{words: {{listener: door, highest_qos: 0, probe: {probe}}}}}\n\
         profiles: {{default: {{description: as it is}}}}\n"
    );
    Definition::parse(&text, "mine.yaml").unwrap()
}

fn endpoint(listener: &TcpListener) -> Endpoint {
    let address = listener.local_addr().unwrap();
    Endpoint {
        scheme: "x".to_owned(),
        address,
        subscribers: None,
        settings: None,
        authority: None,
        credentials: None,
        values: Default::default(),
    }
}

#[test]
fn a_probe_without_a_response_ends_at_its_deadline() {
    let definition = probed("{dialogue: [{on: one, say: hello, hear: welcome}]}");
    let listener = common::listen();
    let begun = Instant::now();
    // The connection succeeds because of the listen backlog; no program ever responds.
    let error = probe::run(&definition, "words", &endpoint(&listener), Duration::from_millis(300)).unwrap_err();
    assert_eq!(error, "one: the time was over before \"welcome\" came; heard nothing");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn unexpected_text_is_shown() {
    let definition = probed("{dialogue: [{on: one, hear: welcome}]}");
    let listener = common::listen();
    let place = endpoint(&listener);
    let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"go away\r\n").unwrap());
    let error = probe::run(&definition, "words", &place, WITHIN).unwrap_err();
    assert_eq!(error, "one: the connection was closed before \"welcome\" came; heard \"go away\\r\\n\"");
    server.join().unwrap();
}

#[test]
fn bytes_before_the_expected_text_are_skipped_and_those_after_it_stay() {
    let definition = probed("{dialogue: [{on: one, hear: beta}, {on: one, hear: gamma}, {on: one, hear: alpha}]}");
    let listener = common::listen();
    let place = endpoint(&listener);
    let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"alpha beta gamma").unwrap());
    let error = probe::run(&definition, "words", &place, WITHIN).unwrap_err();
    assert!(error.contains("before \"alpha\" came; heard nothing"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_command_is_judged_by_its_end_and_bounded_in_time() {
    let listener = common::listen();
    let place = endpoint(&listener);
    let port = place.address.port();
    let good = probed(&format!("{{command: [sh, -c, 'test {{port:door}} -eq {port}']}}"));
    assert_eq!(probe::run(&good, "words", &place, WITHIN), Ok(()));
    let bad = probed("{command: [sh, -c, 'echo no luck; exit 3']}");
    let error = probe::run(&bad, "words", &place, WITHIN).unwrap_err();
    assert_eq!(error, "`sh` failed (exit status: 3); it printed \"no luck\\n\"");
    let begun = Instant::now();
    let slow = probed("{command: [sleep, '100']}");
    let error = probe::run(&slow, "words", &place, Duration::from_millis(300)).unwrap_err();
    assert!(error.contains("did not end within 0.3 s"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_protocol_without_a_probe_is_named() {
    let definition = Definition::load("builtin").unwrap();
    let error = probe::run(&definition, "mqtt5", &endpoint(&common::listen()), WITHIN).unwrap_err();
    assert_eq!(error, "the definition of `builtin` has no probe for mqtt5");
}
