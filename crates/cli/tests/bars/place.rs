//! A folder in which the binary is called, one bar at a time, and the number of repetitions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

/// One bar at a time has the machine: two bars would disturb each other's measurements.
static TURN: Mutex<()> = Mutex::new(());

/// A separate folder, with exclusive use of the machine.
pub struct Place {
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    /// Waits for exclusive use of the machine.
    pub fn new() -> Place {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = TempDir::with_prefix("pubmark-bars-").unwrap();
        std::fs::create_dir(folder.path().join("temporary")).unwrap();
        Place { folder, _turn: turn }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that calls use for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.path().join("temporary")
    }

    /// Writes a file into the folder.
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

    /// Calls the binary, waits for its end and returns the JSON document that it printed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output: Output = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}: {text} {}", output.status, String::from_utf8_lossy(&output.stderr))
        })
    }
}

/// Number of repetitions: `few` in `make test`, as many as the bar requires in `make bars` (`PUBMARK_BARS=full`).
pub fn times(few: u32, full: u32) -> u32 {
    if std::env::var_os("PUBMARK_BARS").is_some_and(|value| value == "full") { full } else { few }
}

/// Whether this is the full bar.
pub fn is_full() -> bool {
    times(0, 1) == 1
}

/// Cells of an experiment with fewer runs that count than a judgement needs, with the reasons.
pub fn unjudged(experiment: &Value) -> Vec<String> {
    let cells = experiment["cells"].as_array().unwrap().iter();
    let whole =
        |cell: &Value| cell["runs"].as_array().unwrap().iter().filter(|run| run["verdict"] != "invalid").count();
    let few = cells.filter(|cell| whole(cell) < FEWEST_RUNS);
    few.map(|cell| format!("{}: {}", cell["label"], cell["failures"][0]["text"])).collect()
}

/// Least number of runs of a cell that a judgement needs.
const FEWEST_RUNS: usize = 3;

/// Load average over the last minute, for the table.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("—").to_owned()
}
