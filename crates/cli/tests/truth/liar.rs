//! The lying broker, a run against it, and the comparison of both.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pubmark_conformance::liar::LiarProcess;
use serde_json::Value;
use tempfile::TempDir;

/// A lying broker; ends with the test.
pub struct Liar {
    process: LiarProcess,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// Path of its journal.
    pub journal: PathBuf,
    scheme: &'static str,
    folder: TempDir,
    _turn: Turn,
}

/// A test that measures times holds this lock alone. Tests that only count messages share it.
static TURN: RwLock<()> = RwLock::new(());

/// A turn, which is released when it is dropped.
#[allow(dead_code, reason = "it is held, not used")]
enum Turn {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

// A test that failed does not poison the lock: it protects no data.
impl Turn {
    fn beside() -> Turn {
        Turn::Beside(TURN.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn alone() -> Turn {
        Turn::Alone(TURN.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Result of a run against the broker.
pub struct Truth {
    /// The record.
    pub record: Value,
    /// The run's folder.
    pub run: PathBuf,
    /// The complete journal.
    pub journal: PathBuf,
    _folder: TempDir,
}

/// The program under test.
fn pubmark() -> PathBuf {
    assert_cmd::cargo::cargo_bin("pubmark")
}

impl Liar {
    /// Starts a broker with a script, on a free port below the kernel's ephemeral range.
    pub fn start(script: &str) -> Liar {
        Liar::start_in(Turn::beside(), script, &[])
    }

    /// As [`Liar::start`], for clients that connect by WebSocket.
    pub fn start_websocket(script: &str) -> Liar {
        let liar = Liar::start_in(Turn::beside(), script, &["--transport", "websocket"]);
        Liar { scheme: "ws", ..liar }
    }

    /// As [`Liar::start`], for tests that judge times, with the options of encryption.
    pub fn start_alone(script: &str, options: &[&str]) -> Liar {
        Liar::start_in(Turn::alone(), script, options)
    }

    fn start_in(turn: Turn, script: &str, options: &[&str]) -> Liar {
        let folder = tempfile::tempdir().unwrap();
        let process = LiarProcess::start(&pubmark(), folder.path(), script, options);
        let scheme = if options.contains(&"--tls-key") { "mqtts" } else { "mqtt" };
        let (address, journal) = (process.address.clone(), process.journal.clone());
        Liar { process, address, journal, scheme, folder, _turn: turn }
    }

    /// As [`Liar::start_alone`] with encryption, and the option that makes pubmark trust the broker.
    pub fn start_encrypted_alone(script: &str) -> (Liar, [String; 2]) {
        Liar::start_encrypted_in(Turn::alone(), script)
    }

    /// As [`Liar::start_encrypted_alone`], for tests that judge no times.
    pub fn start_encrypted(script: &str) -> (Liar, [String; 2]) {
        Liar::start_encrypted_in(Turn::beside(), script)
    }

    fn start_encrypted_in(turn: Turn, script: &str) -> (Liar, [String; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let options = ["--tls-certificate", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        let liar = Liar::start_in(turn, script, &options);
        let trusted = liar.folder().join("trusted.pem");
        std::fs::copy(&certificate, &trusted).unwrap();
        (liar, ["--tls-ca".to_owned(), trusted.to_str().unwrap().to_owned()])
    }

    /// Its folder, for files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// pubmark's run against it, not yet started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(pubmark());
        let endpoint = format!("{}://{}", self.scheme, self.address);
        command.arg("run").args(arguments).args(["--endpoint", &endpoint, "--quiet", "--out"]);
        command.arg(self.folder().join("runs")).current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// Runs a workload that is given as text.
    pub fn run_workload(self, workload: &str, arguments: &[&str]) -> Truth {
        let path = self.folder().join("workload.yaml");
        std::fs::write(&path, workload).unwrap();
        self.run(&[&[path.to_str().unwrap()], arguments].concat())
    }

    /// Executes a run; then the journal is complete.
    pub fn run(self, arguments: &[&str]) -> Truth {
        let output = self.command(arguments).output().unwrap();
        self.truth(&output)
    }

    /// The result of a run that has ended.
    pub fn truth(mut self, output: &Output) -> Truth {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 5)), "{:?}\n{errors}", output.status);
        self.process.stop();
        let run = self.folder.path().join("runs/latest");
        let record = serde_json::from_slice(&std::fs::read(run.join("record.json")).unwrap()).unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Truth { record, run, journal: self.journal.clone(), _folder: folder }
    }
}

/// Executes the comparing script.
pub fn compare(journal: &Path, record: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth/compare.py");
    Command::new("python3").arg(script).arg(journal).arg(record).output().expect("python3 is installed")
}

impl Truth {
    /// Requires that journal and record agree.
    pub fn demand_agreement(&self) {
        let output = compare(&self.journal, &self.run.join("record.json"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A count of the message accounting.
    pub fn count(&self, field: &str) -> u64 {
        self.record["delivery"][field].as_u64().unwrap_or_else(|| panic!("no `{field}` in {}", self.record["delivery"]))
    }

    /// Requires these counts in the message accounting and 0 for all others.
    pub fn demand_only(&self, expected: &[(&str, u64)]) {
        let delivery = self.record["delivery"].as_object().unwrap();
        for (field, value) in delivery.iter().filter(|(_, value)| value.is_u64()) {
            let wanted = expected.iter().find(|(name, _)| name == field).map_or(0, |(_, count)| *count);
            assert_eq!(value.as_u64(), Some(wanted), "`{field}` in {}", self.record["delivery"]);
        }
    }

    /// A histogram of the run, ns.
    pub fn histogram(&self, name: &str) -> hdrhistogram::Histogram<u64> {
        let bytes = std::fs::read(self.run.join(format!("{name}.hdr"))).unwrap();
        hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }
}
