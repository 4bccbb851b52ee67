//! A system that runs.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pubmark_record::record::{Deviation, SystemInfo};

use crate::cgroup::CostPlace;
use crate::launch::Endpoint;
use crate::private_directory::PrivateDirectory;
use crate::process::{Process, Stopped};

/// Most of a log's end that is shown, bytes and lines.
const TAIL_BYTES: u64 = 4_096;
const TAIL_LINES: usize = 12;

/// A started system. Dropping it stops it: SIGTERM, a wait, SIGKILL for all that is left. The kernel kills it if we are
/// killed.
#[derive(Debug)]
pub struct RunningSystem {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) builtin: bool,
    pub(crate) profile: String,
    pub(crate) ranked: bool,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) configuration: Option<String>,
    pub(crate) deviations: Vec<Deviation>,
    pub(crate) log: PathBuf,
    // Dropped in this order: the process before the directory it works in.
    pub(crate) process: Process,
    pub(crate) stop_within: Duration,
    pub(crate) _directory: PrivateDirectory,
}

impl RunningSystem {
    /// Where its brokers listen, at least one.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Where the first broker listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoints[0]
    }

    /// Where each broker's cost can be read.
    pub fn cost_places(&self) -> Vec<CostPlace> {
        vec![CostPlace { pid: self.pid(), cgroup: None }]
    }

    /// Id of the first broker's first process, the root of its tree.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What the record says of it.
    pub fn info(&self) -> SystemInfo {
        SystemInfo {
            name: self.name.clone(),
            version: self.version.clone(),
            back_end: if self.builtin { "builtin" } else { "process" }.to_owned(),
            profile: Some(self.profile.clone()),
            endpoint: self.endpoint().to_string(),
            ranked: self.ranked,
            configuration: self.configuration.clone(),
            ..SystemInfo::default()
        }
    }

    /// Its settings that are not its defaults.
    pub fn deviations(&self) -> &[Deviation] {
        &self.deviations
    }

    /// How it ended, if it did by itself.
    pub fn ended(&mut self) -> Option<String> {
        self.process.ended().map(|status| status.to_string())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        log_tail(&self.log)
    }

    /// Stops it and says how that went.
    pub fn stop(mut self) -> Stopped {
        self.process.stop(self.stop_within)
    }
}

impl Drop for RunningSystem {
    fn drop(&mut self) {
        self.process.stop(self.stop_within);
    }
}

/// The last lines of a log; empty if there is none.
pub(crate) fn log_tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut end = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut end)?;
        Ok(end)
    };
    // A log that cannot be read is shown as one that says nothing.
    let end = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
