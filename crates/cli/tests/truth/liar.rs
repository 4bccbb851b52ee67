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
    /// Where it writes its journal.
    pub journal: PathBuf,
    scheme: &'static str,
    folder: TempDir,
    _turn: Turn,
}

/// What is timed here must not wait for another test of ours; what only counts may run beside others.
static TURN: RwLock<()> = RwLock::new(());

/// A turn, given back when it is dropped.
#[allow(dead_code, reason = "it is held, not used")]
enum Turn {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

// A test that failed has left its turn in order: there is nothing in it to be broken.
impl Turn {
    fn beside() -> Turn {
        Turn::Beside(TURN.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn alone() -> Turn {
        Turn::Alone(TURN.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What came of a run against it.
pub struct Truth {
    /// The record.
    pub record: Value,
    /// The run's folder.
    pub run: PathBuf,
    /// The journal, closed.
    pub journal: PathBuf,
    _folder: TempDir,
}

/// The program under test.
fn pubmark() -> PathBuf {
    assert_cmd::cargo::cargo_bin("pubmark")
}

impl Liar {
    /// Starts one with a script, on a free port below those that the kernel gives away.
    pub fn start(script: &str) -> Liar {
        Liar::start_in(Turn::beside(), script, &[])
    }

    /// The same where times are judged, with the options of encryption.
    pub fn start_alone(script: &str, options: &[&str]) -> Liar {
        Liar::start_in(Turn::alone(), script, options)
    }

    fn start_in(turn: Turn, script: &str, options: &[&str]) -> Liar {
        let folder = tempfile::tempdir().unwrap();
        let process = LiarProcess::start(&pubmark(), folder.path(), script, options);
        let scheme = if options.is_empty() { "mqtt" } else { "mqtts" };
        let (address, journal) = (process.address.clone(), process.journal.clone());
        Liar { process, address, journal, scheme, folder, _turn: turn }
    }

    /// The same with encryption, and the option that makes pubmark trust it.
    pub fn start_encrypted_alone(script: &str) -> (Liar, [String; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let options = ["--tls-certificate", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        let liar = Liar::start_alone(script, &options);
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

    /// A run of a workload written here.
    pub fn run_workload(self, workload: &str, arguments: &[&str]) -> Truth {
        let path = self.folder().join("workload.yaml");
        std::fs::write(&path, workload).unwrap();
        self.run(&[&[path.to_str().unwrap()], arguments].concat())
    }

    /// A run to its end; then the journal is closed.
    pub fn run(self, arguments: &[&str]) -> Truth {
        let output = self.command(arguments).output().unwrap();
        self.truth(&output)
    }

    /// What came of a run that has ended.
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

/// Runs the comparing script.
pub fn compare(journal: &Path, record: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth/compare.py");
    Command::new("python3").arg(script).arg(journal).arg(record).output().expect("python3 is installed")
}

impl Truth {
    /// Demands that journal and record agree.
    pub fn demand_agreement(&self) {
        let output = compare(&self.journal, &self.run.join("record.json"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A figure of the books.
    pub fn count(&self, field: &str) -> u64 {
        self.record["delivery"][field].as_u64().unwrap_or_else(|| panic!("no `{field}` in {}", self.record["delivery"]))
    }

    /// Demands these figures of the books and 0 for all others.
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
