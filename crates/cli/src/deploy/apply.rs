//! Lets `kubectl` place a run, waits for its end, brings its records here and takes everything away again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::store;
use pubmark_runner::save;

use serde_json::Value;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;

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

impl Applied<'_> {
    /// Does it all; what was placed is taken away whatever happens.
    pub fn perform(&self, printer: &Printer, stop: &AtomicBool) -> Outcome {
        let manifest = self.manifest.display().to_string();
        kubectl(&["apply", "-f", &manifest])?;
        printer.note(&format!("placed; waiting for job/{}-coordinator", self.name));
        let outcome = self.collect(printer, stop);
        let removed = kubectl(&["delete", "--ignore-not-found", "--wait=false", "-f", &manifest]);
        match (outcome, removed) {
            (Err(failure), Err(left)) => {
                printer.failure(&left);
                Err(failure)
            }
            (outcome, removed) => removed.and(outcome),
        }
    }

    fn collect(&self, printer: &Printer, stop: &AtomicBool) -> Outcome {
        let ended = self.wait(stop)?;
        let job = format!("job/{}-coordinator", self.name);
        let log = kubectl(&["logs", &job])?;
        let records = records(&log).ok_or_else(|| {
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
            Failure::new(ExitCode::SystemFailed, format!("the coordinator printed no record, but:\n{tail}"))
                .hint("`kubectl describe` of the run's pods says what kept them from starting; a workload or system may be wrong")
        })?;
        let mut worst = ExitCode::Ok;
        let several = records.len() > 1;
        for (number, record) in (1..).zip(&records) {
            let folder = if several { self.out.join(format!("run-{number}")) } else { self.out.to_path_buf() };
            self.keep(record, &folder)?;
            printer.result(&rendering::summary(record, printer, Some(&folder)))?;
            if record.verdict.status == VerdictStatus::Invalid {
                worst = ExitCode::InvalidRun;
            }
        }
        match (worst, ended) {
            (ExitCode::Ok, Ended::Badly) => {
                Err(Failure::new(ExitCode::SystemFailed, "the coordinator ended with an error after its run"))
            }
            _ => Ok(worst),
        }
    }

    fn keep(&self, record: &Record, folder: &Path) -> Result<(), Failure> {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::from_error(ExitCode::Internal, &error).during(format!("failed to make `{}`", folder.display()))
        })?;
        let text = store::to_json(record).map_err(|error| save::no_folder(&error))?;
        let path: PathBuf = folder.join("record.json");
        rendering::write(&path, &text)?;
        rendering::write_exports(record, folder)
    }

    fn wait(&self, stop: &AtomicBool) -> Result<Ended, Failure> {
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
                    return Err(Failure::new(ExitCode::Interrupted, "interrupted while the run went on"));
                }
                if began.elapsed() >= self.limit {
                    let limit = self.limit.as_secs();
                    return Err(Failure::new(ExitCode::SystemFailed, format!("{job} has not ended within {limit} s"))
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
fn kubectl(words: &[&str]) -> Result<String, Failure> {
    let called = Command::new("kubectl").arg(ANSWER).args(words).output();
    let Output { status, stdout, stderr } = called.map_err(|error| {
        Failure::from_error(ExitCode::SystemFailed, &error)
            .during("failed to call `kubectl`")
            .hint("install it, or leave `--apply` out and hand the manifest to whoever has it")
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(Failure::new(ExitCode::SystemFailed, format!("`kubectl {}` failed: {}", words.join(" "), said.trim_end()))
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
