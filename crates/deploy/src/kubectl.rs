//! Calls of `kubectl`. Each runs in a separate process group, so that Ctrl-C ends pubmark's work but not the call that
//! cleans up.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};

use pubmark_runner::{ErrorKind, RunError};
use serde_json::Value;

/// Timeout of one request to the cluster.
const ANSWER: &str = "--request-timeout=30s";

/// The cluster and namespace that `kubectl` uses. Values that are not set come from the configuration of `kubectl`.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Context in the configuration of `kubectl`.
    pub context: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
}

impl Cluster {
    /// Options that every call needs.
    pub fn options(&self) -> Vec<String> {
        let given = [("--context", &self.context), ("--namespace", &self.namespace)];
        let given = given.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value.clone()?]));
        given.flatten().collect()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(self.options()).args(words).stdin(Stdio::null()).process_group(0);
        command
    }

    /// Calls `kubectl` and returns its standard output.
    pub fn call(&self, words: &[&str]) -> Result<String, RunError> {
        let words = [&[ANSWER], words].concat();
        let Output { status, stdout, stderr } = self.command(&words).output().map_err(|error| not_called(&error))?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        let reason = String::from_utf8_lossy(&stderr);
        let call = words[1..].join(" ");
        Err(RunError::new(ErrorKind::System, format!("`kubectl {call}` failed: {}", reason.trim_end()))
            .hint("`kubectl cluster-info` says whether there is a cluster that you may use"))
    }

    /// Calls `kubectl` and parses its standard output as JSON.
    pub fn json(&self, words: &[&str]) -> Result<Value, RunError> {
        let text = self.call(&[words, &["-o", "json"]].concat())?;
        serde_json::from_str(&text)
            .map_err(|error| RunError::from_error(ErrorKind::System, &error).during("`kubectl` printed no JSON"))
    }

    /// Starts a call that may last as long as a run; its standard output is written to a file.
    pub fn start(&self, words: &[&str], out: File, errors: Stdio) -> Result<Child, RunError> {
        let mut command = self.command(words);
        command.stdout(out).stderr(errors).spawn().map_err(|error| not_called(&error))
    }

    /// Prints the log of a pod to standard error from now on.
    pub fn follow(&self, pod: &str) -> Result<Child, RunError> {
        let mut command = self.command(&["logs", "--follow", pod]);
        command.stdout(io::stderr()).stderr(Stdio::null()).spawn().map_err(|error| not_called(&error))
    }
}

fn not_called(error: &io::Error) -> RunError {
    RunError::from_error(ErrorKind::System, error)
        .during("failed to call `kubectl`")
        .hint("install it, or leave `--apply` out and give the manifest to a person who has it")
}
