//! What pubmark and a supervisor say to each other: one JSON object a line, requests on the supervisor's standard input, reports on
//! its standard output. The end of the requests, however it comes, is the order to take everything back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is taken back at the end. Named before it is made, so that nothing can be left that nobody knows of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// Folders to remove with all they hold.
    pub directories: Vec<PathBuf>,
    /// Folders of control groups: their processes are killed, then they are removed.
    pub cgroups: Vec<PathBuf>,
    /// Commands to run once all processes are gone; their failures are no errors.
    pub clean_up: Vec<Work>,
}

impl Holdings {
    /// Adds others.
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
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables besides the supervisor's own, which are those of who started it.
    pub environment: Vec<(String, String)>,
    /// Folder it runs in.
    pub directory: PathBuf,
    /// File that takes both its output streams, made anew; what it says is lost if `None`.
    pub log: Option<PathBuf>,
    /// Keep what the file holds already, and write behind it.
    #[serde(default)]
    pub appends: bool,
    /// Folders of the control groups that it joins before its first instruction.
    pub cgroups: Vec<PathBuf>,
    /// Cores that it is kept to; all if empty.
    pub cores: Vec<u32>,
}

/// What a supervisor is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Answer for these too.
    Hold(Holdings),
    /// Run this; one program at a time.
    Start(Work),
    /// Kill the program and all that came from it, without asking.
    Kill,
    /// Stop the program and all that came from it where they stand (SIGSTOP), or let them go on (SIGCONT).
    Pause {
        /// Stop them.
        pause: bool,
    },
    /// Ask the program to end, and kill it after this time.
    Stop {
        /// Longest time to its end, ms.
        within_ms: u64,
    },
}

/// What a supervisor reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// It listens. The first report, by which a supervisor is told from any other program.
    Ready,
    /// The program runs.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// So many processes were told to stop where they stand, or to go on.
    Signalled {
        /// Processes.
        processes: u32,
    },
    /// The program could not be started.
    Failed {
        /// What failed, and on what.
        reason: String,
        /// The kernel's error number, where it was the kernel that refused.
        errno: Option<i32>,
        /// The program itself could not be executed, and nothing around it failed.
        program: bool,
    },
    /// The program has ended, and nothing of it is left.
    Ended {
        /// Its status as `wait` gives it.
        status: i32,
        /// It was killed because it did not end in time when asked to.
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
