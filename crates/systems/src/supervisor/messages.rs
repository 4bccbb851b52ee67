//! Messages between pubmark and a supervisor: one JSON object per line, requests on the supervisor's standard input,
//! reports on its standard output. When the requests end, for whatever reason, the supervisor removes all its holdings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the supervisor removes at the end. It is registered before it is created, so that nothing unregistered can
/// remain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// Folders to remove with their contents.
    pub directories: Vec<PathBuf>,
    /// Folders of control groups: their processes are killed, then they are removed.
    pub cgroups: Vec<PathBuf>,
    /// Commands to run when all processes have ended; their failures are not errors.
    pub clean_up: Vec<Work>,
}

impl Holdings {
    /// Adds the holdings of `more`.
    pub fn extend(&mut self, more: Holdings) {
        self.directories.extend(more.directories);
        self.cgroups.extend(more.cgroups);
        self.clean_up.extend(more.clean_up);
    }
}

/// A program to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The program, by its path.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Environment variables added to those that the supervisor inherited from its parent.
    pub environment: Vec<(String, String)>,
    /// Working directory.
    pub directory: PathBuf,
    /// File for standard output and standard error; the output is discarded if `None`.
    pub log: Option<PathBuf>,
    /// Append to the log file instead of replacing it.
    #[serde(default)]
    pub appends: bool,
    /// Folders of the control groups that the process joins before it executes the program.
    pub cgroups: Vec<PathBuf>,
    /// Cores that the program may use; all if empty.
    pub cores: Vec<u32>,
}

/// Request to a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Hold these resources as well.
    Hold(Holdings),
    /// Run this program; only one runs at a time.
    Start(Work),
    /// Kill the program and all its descendants at once (SIGKILL).
    Kill,
    /// Pause the program and all its descendants (SIGSTOP), or resume them (SIGCONT).
    Pause {
        /// Pause if true, resume if false.
        pause: bool,
    },
    /// Ask the program to end, and kill it after this time.
    Stop {
        /// Longest time until the program ends, ms.
        within_ms: u64,
    },
}

/// What a supervisor reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The supervisor reads requests. This is the first report; it distinguishes a supervisor from any other program.
    Ready,
    /// The program runs.
    Started {
        /// The program's process id.
        pid: u32,
    },
    /// Processes were paused or resumed.
    Signalled {
        /// Number of processes.
        processes: u32,
        /// When the last of them was paused, or when the first was about to be resumed, ns of `CLOCK_MONOTONIC`: between the two
        /// none of them ran.
        at_ns: u64,
    },
    /// The program could not be started.
    Failed {
        /// What failed, and on what.
        reason: String,
        /// The kernel's error number, if the kernel refused.
        errno: Option<i32>,
        /// The program itself could not be executed; its preparation did not fail.
        program: bool,
    },
    /// The program has ended, and none of its processes is left.
    Ended {
        /// The status as `wait` returns it.
        status: i32,
        /// The program was killed because it did not end in time after a request to stop.
        killed: bool,
    },
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_whatever_its_texts_hold() {
        let work = Work { arguments: vec!["two\nlines \"quoted\"".to_owned()], ..Work::default() };
        let line = serde_json::to_string(&Request::Start(work.clone())).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), Request::Start(work));
    }
}
