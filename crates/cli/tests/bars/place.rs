//! A folder to call the binary in, one bar at a time, and how often.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

/// The machine is one bar's alone: two at a time would measure each other.
static TURN: Mutex<()> = Mutex::new(());

/// A folder of its own, with the machine.
pub struct Place {
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    /// Waits for the machine.
    pub fn new() -> Place {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = TempDir::with_prefix("pubmark-bars-").unwrap();
        std::fs::create_dir(folder.path().join("temporary")).unwrap();
        Place { folder, _turn: turn }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that calls use for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.path().join("temporary")
    }

    /// Puts a file there.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The binary with these arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
        command.args(arguments).current_dir(self.path()).env("TMPDIR", self.temporary()).stdin(Stdio::null());
        command
    }

    /// Calls the binary to its end and gives the JSON document that it printed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output: Output = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}: {text} {}", output.status, String::from_utf8_lossy(&output.stderr))
        })
    }
}

/// How often: few times in `make test`, as often as the bar says in `make bars` (`PUBMARK_BARS=full`).
pub fn times(few: u32, full: u32) -> u32 {
    if std::env::var_os("PUBMARK_BARS").is_some_and(|value| value == "full") { full } else { few }
}

/// Is this the full bar?
pub fn is_full() -> bool {
    times(0, 1) == 1
}

/// Cells of an experiment with fewer runs that count than a judgement needs, and why.
pub fn unjudged(experiment: &Value) -> Vec<String> {
    let cells = experiment["cells"].as_array().unwrap().iter();
    let whole =
        |cell: &Value| cell["runs"].as_array().unwrap().iter().filter(|run| run["verdict"] != "invalid").count();
    let few = cells.filter(|cell| whole(cell) < FEWEST_RUNS);
    few.map(|cell| format!("{}: {}", cell["label"], cell["failures"][0]["text"])).collect()
}

/// Runs of a cell that a judgement needs.
const FEWEST_RUNS: usize = 3;

/// Load average over the last minute, for the table.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("—").to_owned()
}
