//! The real mosquitto: started, connected to, measured, stopped.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::process::{Command, Stdio};

use common::{becomes_true, is_alive, mosquitto_is_installed, mqtt_connect, options};
use pubmark_model::workload::Credentials;
use pubmark_systems::process::Stopped;
use pubmark_systems::{Definition, Endpoint, RunningSystem, StartOptions, TlsFiles, start};

fn accepts(endpoint: &Endpoint) -> Result<(), String> {
    match mqtt_connect(endpoint, None)? {
        0 => Ok(()),
        code => Err(format!("connect refused with code {code}")),
    }
}

fn mosquitto(change: impl FnOnce(&mut StartOptions)) -> RunningSystem {
    let mut options = options("mqtt5");
    change(&mut options);
    start(&Definition::load("mosquitto").unwrap(), &options, &mut accepts).unwrap()
}

#[test]
fn the_default_profile_starts_responds_and_stops() {
    if !mosquitto_is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = mosquitto(|options| options.directory = Some(folder.path().to_owned()));
    let (pid, info) = (running.pid(), running.info());
    assert_eq!((info.name.as_str(), info.back_end.as_str(), info.ranked), ("mosquitto", "process", true));
    assert!(info.version.as_ref().is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())), "{info:?}");
    assert_eq!(info.endpoint, format!("mqtt://127.0.0.1:{}", running.endpoint().address.port()));
    let configuration = info.configuration.unwrap();
    assert!(configuration.contains("allow_anonymous true\n") && !configuration.contains("nodelay"), "{configuration}");
    let names: Vec<&str> = running.deviations().iter().map(|deviation| deviation.name.as_str()).collect();
    assert_eq!(names, ["mosquitto-listener", "mosquitto-anonymous", "mosquitto-persistence", "mosquitto-user"]);
    assert!(matches!(running.stop(), Stopped::Asked(_)));
    assert!(!is_alive(pid));
    let log = std::fs::read_to_string(folder.path().join("mosquitto.log")).unwrap();
    assert!(log.contains("terminating"), "{log}");
}

#[test]
fn the_tuned_profile_names_what_it_changes() {
    if !mosquitto_is_installed() {
        return;
    }
    let running = mosquitto(|options| options.profile = "tuned".to_owned());
    let configuration = running.info().configuration.unwrap();
    assert!(configuration.ends_with("set_tcp_nodelay true\nmax_queued_messages 1000000\n"), "{configuration}");
    let details: Vec<&str> = running.deviations().iter().map(|deviation| deviation.detail.as_str()).collect();
    assert!(details.iter().any(|detail| detail.starts_with("set_tcp_nodelay true: without it")), "{details:?}");
}

#[test]
fn a_password_is_required_and_not_recorded() {
    if !mosquitto_is_installed() {
        return;
    }
    let login = Credentials { user: "sensor".to_owned(), password: "s3cret words".into() };
    let mut options = options("mqtt311");
    options.credentials = Some(login.clone());
    let running = start(&Definition::load("mosquitto").unwrap(), &options, &mut |endpoint| match mqtt_connect(
        endpoint,
        Some((&login.user, login.password.expose())),
    )? {
        0 => Ok(()),
        code => Err(format!("connect refused with code {code}")),
    })
    .unwrap();
    // MQTT 3.1.1 §3.2.2.3: 4 is a bad user name or password, 5 not authorized.
    assert_eq!(mqtt_connect(running.endpoint(), None), Ok(5));
    assert_eq!(mqtt_connect(running.endpoint(), Some(("sensor", "wrong"))), Ok(5));
    assert!(!format!("{:?} {:?}", running.info(), running.deviations()).contains("s3cret"));
}

#[test]
fn a_tls_listener_uses_the_files_given() {
    if !mosquitto_is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let certificate = write("server.crt", made.cert.pem());
    let key = write("server.key", made.signing_key.serialize_pem());
    let mut options = options("mqtt5");
    options.tls = Some(TlsFiles { authority: certificate.clone(), certificate: certificate.clone(), key });
    // The response to a TLS ClientHello (RFC 8446 §4.1.2) is a TLS record; a CONNECT without encryption gets no
    // CONNACK.
    let running = start(&Definition::load("mosquitto").unwrap(), &options, &mut |endpoint| {
        mqtt_connect(endpoint, None).map_or(Ok(()), |code| Err(format!("answered in plain text with {code}")))
    })
    .unwrap();
    assert_eq!(running.endpoint().scheme, "mqtts");
    assert_eq!(running.endpoint().authority.as_ref(), Some(&certificate));
    assert!(running.deviations().iter().any(|deviation| deviation.name == "mosquitto-tls"));
    assert!(speaks_tls(running.endpoint(), &certificate), "{}", running.log_tail());
}

/// Does a TLS connection with this authority succeed? Records a skip if `openssl` is not installed.
fn speaks_tls(endpoint: &Endpoint, authority: &std::path::Path) -> bool {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &endpoint.address.to_string(), "-verify_return_error", "-CAfile"])
        .arg(authority)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).contains("Verify return code: 0 (ok)"),
        Err(error) => {
            pubmark_testing::skip(format_args!("no openssl to check the handshake with ({error})"));
            true
        }
    }
}

#[test]
fn two_run_side_by_side() {
    if !mosquitto_is_installed() {
        return;
    }
    let (one, other) = (mosquitto(|_| {}), mosquitto(|_| {}));
    assert_ne!(one.endpoint().address, other.endpoint().address);
    assert_eq!((mqtt_connect(one.endpoint(), None), mqtt_connect(other.endpoint(), None)), (Ok(0), Ok(0)));
}

/// Runs this test in a separate process, which starts mosquitto and is killed with SIGKILL.
#[test]
fn nothing_runs_on_when_its_owner_is_killed() {
    if !mosquitto_is_installed() {
        return;
    }
    if let Ok(note) = std::env::var("PUBMARK_TEST_NOTE") {
        // Started in a thread that ends: the broker must outlive the thread, but not the process.
        let running = std::thread::spawn(|| mosquitto(|_| {})).join().unwrap();
        assert_eq!(mqtt_connect(running.endpoint(), None), Ok(0));
        std::fs::write(format!("{note}-early"), running.pid().to_string()).unwrap();
        std::fs::rename(format!("{note}-early"), note).unwrap();
        // The process is killed here.
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["nothing_runs_on_when_its_owner_is_killed", "--exact"])
        .env("PUBMARK_TEST_NOTE", &note)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(becomes_true(|| note.exists()), "the owner never started mosquitto");
    let broker: u32 = std::fs::read_to_string(&note).unwrap().parse().unwrap();
    assert!(is_alive(broker));
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(becomes_true(|| !is_alive(broker)), "mosquitto {broker} runs on");

    // Its supervisor removes its directories too.
    let left = || std::fs::read_dir(folder.path()).unwrap().flatten().filter(|e| e.path().is_dir()).count();
    assert!(becomes_true(|| left() == 0), "{} directories are left", left());
}
