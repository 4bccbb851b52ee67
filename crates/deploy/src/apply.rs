//! Lets `kubectl` place a run, waits for its end, brings its records here and takes everything away again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubmark_record::record::{Record, VerdictStatus};
use pubmark_runner::{ErrorKind, RunError, save};
use serde_json::Value;

/// Time between two looks at the coordinator's job.
const LOOK: Duration = Duration::from_secs(2);
/// Between two looks at whether somebody wants to stop.
const STEP: Duration = Duration::from_millis(100);
/// Longest wait for one answer of the cluster.
const ANSWER: &str = "--request-timeout=30s";
/// Looks in a row that may fail: an API server that is replaced is away for seconds.
const FAILURES: u32 = 15;
/// Lines of a log that are shown when there is no record in it.
const TAIL: usize = 12;

/// A run of a manifest.
pub struct Applied<'a> {
    /// The manifest.
    pub manifest: &'a Path,
    /// Name of the run.
    pub name: &'a str,
    /// Folder for the records.
    pub out: &'a Path,
    /// Longest wait for the coordinator's end.
    pub limit: Duration,
}

/// How the coordinator's job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// With code 0.
    Well,
    /// With another, which an invalid run does too.
    Badly,
}

/// What came of it.
pub struct Collected {
    /// The records, each with its folder.
    pub records: Vec<(Record, PathBuf)>,
    /// The coordinator ended with an error although no record of its is invalid.
    pub failed: bool,
    /// Why what was placed could not be taken away, if so.
    pub left: Option<RunError>,
}

impl Applied<'_> {
    /// Does it all; what was placed is taken away whatever happens. `placed` is called with the name of the coordinator's job.
    ///
    /// # Errors
    /// The cluster refuses, the run does not end in time, or its coordinator printed no record.
    pub fn perform(&self, placed: &mut dyn FnMut(&str), stop: &AtomicBool) -> Result<Collected, RunError> {
        let manifest = self.manifest.display().to_string();
        // Not `apply`: a run of the same name that is still there would stay as it is, and its record be taken for this one's.
        kubectl(&["create", "-f", &manifest])?;
        placed(&format!("job/{}-coordinator", self.name));
        let collected = self.collect(stop);
        let left = kubectl(&["delete", "--ignore-not-found", "--wait=false", "-f", &manifest]).err();
        match (collected, left) {
            (Ok(collected), left) => Ok(Collected { left, ..collected }),
            (Err(mut error), Some(left)) => {
                error.chain.push(format!("and what was placed is still there: {left}"));
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    fn collect(&self, stop: &AtomicBool) -> Result<Collected, RunError> {
        let ended = self.wait(stop)?;
        let job = format!("job/{}-coordinator", self.name);
        let log = kubectl(&["logs", &job])?;
        let records = records(&log).ok_or_else(|| {
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
            RunError::new(ErrorKind::System, format!("the coordinator printed no record, but:\n{tail}"))
                .hint("`kubectl describe` of the run's pods says what kept them from starting; a workload or system may be wrong")
        })?;
        let several = records.len() > 1;
        let folder =
            |number: usize| if several { self.out.join(format!("run-{number}")) } else { self.out.to_path_buf() };
        let records: Vec<(Record, PathBuf)> =
            (1..).zip(records).map(|(number, record)| (record, folder(number))).collect();
        records.iter().try_for_each(|(record, folder)| save::again(record, folder))?;
        let has_invalid = records.iter().any(|(record, _)| record.verdict.status == VerdictStatus::Invalid);
        Ok(Collected { records, failed: ended == Ended::Badly && !has_invalid, left: None })
    }

    fn wait(&self, stop: &AtomicBool) -> Result<Ended, RunError> {
        let began = Instant::now();
        let job = format!("{}-coordinator", self.name);
        let mut failures = 0;
        loop {
            match kubectl(&["get", "job", &job, "-o", "json"]) {
                Ok(text) => {
                    failures = 0;
                    if let Some(ended) = ended(&text) {
                        return Ok(ended);
                    }
                }
                Err(failure) => {
                    failures += 1;
                    if failures == FAILURES {
                        return Err(failure);
                    }
                }
            }
            let looked = Instant::now();
            while looked.elapsed() < LOOK {
                if stop.load(Relaxed) {
                    return Err(RunError::new(ErrorKind::Interrupted, "interrupted while the run went on"));
                }
                if began.elapsed() >= self.limit {
                    let limit = self.limit.as_secs();
                    return Err(RunError::new(ErrorKind::System, format!("{job} has not ended within {limit} s"))
                        .hint("`kubectl get pods` says who waits for what; `--apply-limit` waits longer"));
                }
                std::thread::sleep(STEP);
            }
        }
    }
}

/// Has the job of this description ended?
fn ended(job: &str) -> Option<Ended> {
    let job: Value = serde_json::from_str(job).ok()?;
    let conditions = job["status"]["conditions"].as_array()?;
    let holds = |kind: &str| conditions.iter().any(|known| known["type"] == kind && known["status"] == "True");
    match (holds("Complete"), holds("Failed")) {
        (true, _) => Some(Ended::Well),
        (_, true) => Some(Ended::Badly),
        _ => None,
    }
}

/// The records in what a coordinator printed: one, or a list of several repetitions, behind whatever it said before.
fn records(log: &str) -> Option<Vec<Record>> {
    let begin = log.lines().scan(0, |at, line| {
        let here = *at;
        *at += line.len() + 1;
        Some((here, line))
    });
    begin.filter(|(_, line)| line.starts_with(['{', '['])).find_map(|(at, _)| {
        let text = &log[at..];
        let one = serde_json::from_str::<Record>(text).map(|record| vec![record]);
        one.or_else(|_| serde_json::from_str(text)).ok()
    })
}

/// Calls `kubectl` and gives what it prints.
fn kubectl(words: &[&str]) -> Result<String, RunError> {
    let called = Command::new("kubectl").arg(ANSWER).args(words).output();
    let Output { status, stdout, stderr } = called.map_err(|error| {
        RunError::from_error(ErrorKind::System, &error)
            .during("failed to call `kubectl`")
            .hint("install it, or leave `--apply` out and hand the manifest to whoever has it")
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(RunError::new(ErrorKind::System, format!("`kubectl {}` failed: {}", words.join(" "), said.trim_end()))
        .hint("`kubectl cluster-info` says whether there is a cluster that you may use"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_ended_when_a_condition_holds() {
        let job = |kind: &str, status: &str| {
            format!("{{\"status\": {{\"conditions\": [{{\"type\": \"{kind}\", \"status\": \"{status}\"}}]}}}}")
        };
        assert_eq!(ended("{\"status\": {\"active\": 1}}"), None);
        assert_eq!(ended("no JSON"), None);
        assert_eq!(ended(&job("Suspended", "True")), None);
        assert_eq!(ended(&job("Complete", "False")), None);
        assert_eq!(ended(&job("Complete", "True")), Some(Ended::Well));
        assert_eq!(ended(&job("Failed", "True")), Some(Ended::Badly));
    }

    #[test]
    fn a_log_without_a_record_has_none() {
        assert!(records("").is_none());
        assert!(records("error: no nodes\n{\"half\": ").is_none());
        assert!(records("[1]\n").is_none());
    }
}
