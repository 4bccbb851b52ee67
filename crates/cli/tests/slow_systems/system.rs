//! A slow system of a test: whether it is installed, how it is started and called, and what it leaves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use pubmark_conformance::certificates::Certificates;
use pubmark_model::workload::Credentials;
use pubmark_systems::programs::find_program;
use pubmark_systems::{Definition, Endpoint, RunningSystem, StartOptions, TlsFiles, probe};
use pubmark_testing::assert_count_eq;
use serde_json::Value;

/// Longest wait for an event of a running broker: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for a start; the definitions' own limits are shorter.
pub const START: Duration = Duration::from_secs(200);
/// Credentials of the tests that require some.
pub const LOGIN: (&str, &str) = ("ann", "open-sesame");

/// The definition, if its program is installed; otherwise prints what is skipped and why.
pub fn installed(name: &str) -> Option<Definition> {
    let definition = Definition::load(name).unwrap();
    let process = definition.back_ends.process.as_ref().unwrap();
    if find_program(&process.program, process).is_err() {
        pubmark_testing::skip(format_args!("{name} is not installed (`pubmark install {name}`)"));
        return None;
    }
    Some(definition)
}

/// Whether mosquitto's clients are installed; prints a message if not.
pub fn has_clients() -> bool {
    let here = Command::new("mosquitto_sub").arg("--help").output().is_ok();
    if !here {
        pubmark_testing::skip("mosquitto_sub is missing (`apt-get install mosquitto-clients`)");
    }
    here
}

/// Options of a start that the real binary supervises.
pub fn options(protocol: &str) -> StartOptions {
    StartOptions { supervisor: Some(binary()), ..StartOptions::new(protocol) }
}

/// The same, encrypting and asking for a log-in; the certificates are written to `folder`.
pub fn secured(protocol: &str, folder: &Path) -> StartOptions {
    let made = Certificates::make(folder, "slow");
    StartOptions {
        tls: Some(TlsFiles { authority: made.authority, certificate: made.server, key: made.key }),
        credentials: Some(Credentials { user: LOGIN.0.to_owned(), password: LOGIN.1.into() }),
        ..options(protocol)
    }
}

/// Starts it; over a protocol with a probe it is ready once the probe succeeds, otherwise once it listens.
pub fn start(definition: &Definition, options: &StartOptions) -> RunningSystem {
    let has_probe = definition.protocols[&options.protocol].probe.is_some();
    let mut ready = |endpoint: &Endpoint| match has_probe {
        true => probe::run(definition, &options.protocol, endpoint, PATIENCE),
        false => Ok(()),
    };
    pubmark_systems::start(definition, options, &mut ready)
        .unwrap_or_else(|error| panic!("{}: {error:?}", definition.name))
}

/// Stops it and checks that nothing remains.
pub fn stop(system: RunningSystem) {
    let folders: Vec<String> = system.endpoints().iter().flat_map(folders_of).collect();
    let ports: Vec<u16> = system.endpoints().iter().map(|endpoint| endpoint.address.port()).collect();
    system.stop();
    assert_gone(&folders);
    for port in ports {
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "port {port} is still taken");
    }
}

/// Its private folder and the one it shares with its brothers.
pub fn folders_of(endpoint: &Endpoint) -> Vec<String> {
    ["directory", "shared_directory"].iter().filter_map(|name| endpoint.values.get(name)).map(str::to_owned).collect()
}

/// Waits until no process names these folders in its command line or environment, and the folders are removed.
pub fn assert_gone(folders: &[String]) {
    assert!(!folders.is_empty());
    wait_for(PATIENCE, "the end of all processes", || folders.iter().all(|folder| processes_with(folder).is_empty()));
    for folder in folders {
        assert!(!Path::new(folder).exists(), "{folder} is left");
    }
}

/// Processes that have a text in their command line or environment, for people; not ourselves.
pub fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let holds = |pid: &String| {
        ["cmdline", "environ"].iter().any(|file| {
            let words = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            words.windows(text.len()).any(|part| part == text.as_bytes())
        })
    };
    all.filter(|pid| pid.parse::<u32>().is_ok() && *pid != own).filter(holds).map(describe).collect()
}

fn describe(pid: String) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{pid} {}", name.trim())
}

/// Waits until something holds; fails if it does not come within `limit`.
pub fn wait_for(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "{what} did not come within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The binary.
pub fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin("pubmark")
}

/// The binary with its arguments, in `folder`.
pub fn pubmark(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Executes a short run and returns its output.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    const SHORT: &[&str] =
        &["run", "fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];
    pubmark(folder, &[SHORT, arguments, &["--json", "--quiet"]].concat()).output().unwrap()
}

/// Executes a short run of 100 messages and returns its record, after checking that the accounting adds up and each
/// message was delivered once. On a busy machine the run may be invalid (exit code 5): the accounting adds up
/// nevertheless.
pub fn record_of(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{arguments:?}: {:?}\n{errors}", output.status);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (count, expected) in [("offered", 100), ("sent", 100), ("delivered", 100), ("lost", 0), ("duplicated", 0)] {
        assert_count_eq!(record["delivery"][count], expected, "{count} with {arguments:?}: {}", record["delivery"]);
    }
    record
}
