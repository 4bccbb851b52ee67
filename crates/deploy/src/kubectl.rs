//! Calls of `kubectl`. Each runs in a separate process group, so that Ctrl-C ends pubmark's work but not the call that
//! cleans up. Every other call ends with pubmark, however that ends.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_runner::{ErrorKind, RunError, workers};
use pubmark_systems::process::Output;
use serde_json::Value;

/// Timeout of one request to the cluster.
const ANSWER: &str = "--request-timeout=30s";
/// Longest duration of a call that does not last as long as a run. It may make several requests, and a program that logs in
/// to the cluster knows no timeout.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Interval at which the end of a call is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What ends a call before its own end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds<'a> {
    /// Set by an interruption. A call that cleans up has none: neither an interruption nor the end of pubmark ends it.
    pub stop: Option<&'a AtomicBool>,
    /// Latest end, besides the longest duration of any call.
    pub deadline: Option<Instant>,
}

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

    /// `kubectl` with these options, to be shown as the beginning of a command.
    pub fn kubectl(&self) -> String {
        std::iter::once("kubectl".to_owned()).chain(self.options()).collect::<Vec<_>>().join(" ")
    }

    fn hint(&self) -> String {
        format!("`{} cluster-info` says whether there is a cluster that you may use", self.kubectl())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(self.options()).args(words).stdin(Stdio::null()).process_group(0);
        command
    }

    /// Calls `kubectl` and returns its standard output.
    ///
    /// # Errors
    /// The call fails, or does not end within its bounds: then it is killed.
    pub fn call(&self, words: &[&str], bounds: Bounds<'_>) -> Result<String, RunError> {
        let call = words.join(" ");
        let mut command = self.command(&[&[ANSWER], words].concat());
        if bounds.stop.is_some() {
            workers::end_with_parent(&mut command);
        }
        let mut running = Running::start(command).map_err(|error| not_called(&error))?;
        let status = running.wait(&call, bounds, || self.hint())?;
        let [output, errors] = [&running.output, &running.errors].map(Output::settled);
        if status.success() {
            return Ok(output);
        }
        Err(RunError::new(ErrorKind::System, format!("`kubectl {call}` failed: {}", errors.trim_end()))
            .hint(self.hint()))
    }

    /// Calls `kubectl` and parses its standard output as JSON.
    ///
    /// # Errors
    /// As [`Cluster::call`], or the output is no JSON.
    pub fn json(&self, words: &[&str], bounds: Bounds<'_>) -> Result<Value, RunError> {
        let text = self.call(&[words, &["-o", "json"]].concat(), bounds)?;
        serde_json::from_str(&text)
            .map_err(|error| RunError::from_error(ErrorKind::System, &error).during("`kubectl` printed no JSON"))
    }

    /// Starts a call that may last as long as a run; its standard output is written to a file. The kernel ends it with the
    /// calling thread.
    pub fn start(&self, words: &[&str], out: File, errors: Stdio) -> Result<Child, RunError> {
        let mut command = self.command(words);
        command.stdout(out).stderr(errors);
        workers::end_with_parent(&mut command);
        command.spawn().map_err(|error| not_called(&error))
    }

    /// Prints the log of a pod to standard error from now on. The kernel ends it with the calling thread.
    pub fn follow(&self, pod: &str) -> Result<Child, RunError> {
        let mut command = self.command(&["logs", "--follow", pod]);
        command.stdout(io::stderr()).stderr(Stdio::null());
        workers::end_with_parent(&mut command);
        command.spawn().map_err(|error| not_called(&error))
    }
}

/// A call whose output is read while it runs: a full pipe would make it wait for us. Dropping it kills its processes.
struct Running {
    child: Child,
    output: Output,
    errors: Output,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Running> {
        // Closed with the command, so that the pipes end with the call.
        let (output, writer) = io::pipe()?;
        let (errors, error_writer) = io::pipe()?;
        let child = command.stdout(writer).stderr(error_writer).spawn()?;
        Ok(Running { child, output: Output::of(output, usize::MAX), errors: Output::of(errors, usize::MAX) })
    }

    /// Waits for the end of the call, but not beyond its bounds.
    fn wait(&mut self, call: &str, bounds: Bounds<'_>, hint: impl FnOnce() -> String) -> Result<ExitStatus, RunError> {
        let began = Instant::now();
        let left = bounds.deadline.map(|deadline| deadline.saturating_duration_since(began));
        let limit = left.map_or(CALL_LIMIT, |left| left.min(CALL_LIMIT));
        let failed =
            |error: io::Error| RunError::from_error(ErrorKind::Internal, &error).during("failed to wait for `kubectl`");
        loop {
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                return Ok(status);
            }
            if bounds.stop.is_some_and(|stop| stop.load(Relaxed)) {
                return Err(RunError::new(ErrorKind::Interrupted, format!("interrupted during `kubectl {call}`")));
            }
            if began.elapsed() >= limit {
                let message = format!("`kubectl {call}` did not end within {:.0} s", limit.as_secs_f64());
                return Err(RunError::new(ErrorKind::System, message).hint(hint()));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: a plain system call; the child leads its group and has not been waited for, so the group is its own.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
        }
        // An error means that it was waited for before.
        let _ = self.child.wait();
    }
}

fn not_called(error: &io::Error) -> RunError {
    RunError::from_error(ErrorKind::System, error)
        .during("failed to call `kubectl`")
        .hint("install it, or leave `--apply` out and give the manifest to a person who has it")
}
