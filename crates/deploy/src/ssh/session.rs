//! One connection of the installed `ssh` to a host, and its output.
//!
//! A session never outlives this process: the kernel sends `ssh` a signal. If `ssh` does not get it, its standard input
//! closes, which ends the process on the host.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pubmark_runner::{ErrorKind, RunError, workers};

use super::hosts::Host;
use super::on_host::MARK;

/// Longest line of a host that is read as one, bytes.
const LONGEST_LINE: u64 = 4 << 10;
/// Number of lines of standard error that a session stores, the last ones.
const STORED_LINES: usize = 12;
/// Number of those lines that an error message shows, the last ones.
const SHOWN_LINES: usize = 2;
/// Capacity of the queue of lines that pubmark has not read yet; no host prints this many lines.
const WAITING_LINES: usize = 64;
/// Interval at which the end of `ssh` is checked.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait for the remaining output after `ssh` has ended; a process that it started may keep its standard error open.
const SETTLE: Duration = Duration::from_millis(500);

/// Options of each connection. `ssh` checks host keys as configured, and never prompts. A broken connection is detected
/// after 15 s.
const OPTIONS: [&str; 9] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "RemoteCommand=none",
    "EscapeChar=none",
    // A control connection that exists is used. None is created that would outlast the session, and one that others use is
    // not closed.
    "ControlMaster=no",
];

/// How `ssh` is called.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Its configuration file; the user's, if none.
    pub config: Option<PathBuf>,
}

impl Caller {
    /// Starts a command on a host. Call it on a thread that lives as long as the session: when that thread ends, the kernel
    /// ends `ssh`.
    ///
    /// # Errors
    /// `ssh` is not installed or cannot be started.
    pub fn start(&self, host: &Host, command: &str, input: Stdio) -> Result<Session, RunError> {
        let mut words: Vec<OsString> = vec!["-T".into()];
        words.extend(self.config.iter().flat_map(|config| ["-F".into(), config.clone().into()]));
        words.extend(OPTIONS.iter().flat_map(|option| ["-o".into(), option.into()]));
        words.extend(host.user.iter().flat_map(|user| ["-l".into(), user.into()]));
        words.extend(host.port.iter().flat_map(|port| ["-p".into(), port.to_string().into()]));
        let mut ssh = Command::new("ssh");
        ssh.args(words).arg("--").arg(&host.address).arg(command);
        // Ctrl-C must reach pubmark only, which then ends its hosts in order.
        ssh.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        workers::end_with_parent(&mut ssh);
        let child = ssh.spawn().map_err(|error| {
            RunError::from_error(ErrorKind::NotInstalled, &error)
                .during("failed to call `ssh`")
                .hint("`apt-get install openssh-client`, or what your system calls it")
        })?;
        Ok(Session::of(child))
    }
}

/// A connection.
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    errors: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

impl Session {
    fn of(mut child: Child) -> Session {
        let (lines, output) = sync_channel(WAITING_LINES);
        let errors: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let over: Arc<AtomicBool> = Arc::default();
        let mut readers = vec![];
        if let Some(stream) = child.stdout.take() {
            // Lines without the prefix, such as a greeting, are ignored; so are lines that nobody reads.
            let ends = SetWhenDropped(Arc::clone(&over));
            readers.push(follow(stream, move |line| {
                let _until_the_end = &ends;
                if let Some(line) = line.strip_prefix(MARK) {
                    drop(lines.try_send(line.to_owned()));
                }
            }));
        }
        if let Some(stream) = child.stderr.take() {
            let stored = Arc::clone(&errors);
            readers.push(follow(stream, move |line| {
                let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
                if stored.len() == STORED_LINES {
                    stored.pop_front();
                }
                stored.push_back(line);
            }));
        }
        let input = child.stdin.take();
        Session { child, input, output, errors, readers, over }
    }

    /// Returns the next line that the host prints for pubmark, without its prefix.
    ///
    /// # Errors
    /// The host prints no line within `limit`, or its output has ended.
    pub fn line(&self, limit: Duration) -> Result<String, RecvTimeoutError> {
        self.output.recv_timeout(limit)
    }

    /// Writes to the standard input of the command.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, text: &str) -> std::io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(text.as_bytes()).and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes the standard input of the command, which makes it end.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// The exit status of `ssh`; `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        // An error would mean that other code has waited for this child, which is impossible.
        self.child.try_wait().ok().flatten()
    }

    /// Waits until `ssh` has ended, but not beyond `deadline`, and for the rest of its output.
    pub fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        while self.ended().is_none() && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        let status = self.ended()?;
        let settled = Instant::now() + SETTLE;
        while !self.readers.iter().all(JoinHandle::is_finished) && Instant::now() < settled {
            thread::sleep(LOOK);
        }
        Some(status)
    }

    /// The last lines that `ssh` and the host wrote to standard error, joined into one.
    pub fn last_output(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = errors.iter().skip(errors.len().saturating_sub(SHOWN_LINES));
        shown.map(String::as_str).collect::<Vec<_>>().join(" / ")
    }

    /// The last error that the node reported, or else the last line; `None` if there is no output.
    pub fn last_error(&self) -> Option<String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = errors.iter().rposition(|line| line.starts_with("error:"));
        let begin = begin.unwrap_or(errors.len().saturating_sub(1));
        let words: Vec<&str> = errors.iter().skip(begin).map(String::as_str).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// A flag that is set when the output of the host ends, which means that the connection has ended.
    pub fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.over)
    }
}

struct SetWhenDropped(Arc<AtomicBool>);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        // An error means that `ssh` has ended already. The host detects the end of its standard input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a stream line by line until its end, on a separate thread.
fn follow(stream: impl Read + Send + 'static, each: impl Fn(String) + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = vec![];
            match (&mut stream).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                // A read error of a pipe counts as its end.
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let line = String::from_utf8_lossy(&line);
                    if !line.trim().is_empty() {
                        each(line.trim().to_owned());
                    }
                }
            }
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn session(script: &str) -> Session {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Session::of(command.spawn().unwrap())
    }

    #[test]
    fn a_long_greeting_loses_no_line_for_us() {
        let mut session = session("seq 1000; echo pubmark-host folder /tmp/x; seq 1000; echo pubmark-host ready");
        session.wait_until(Instant::now() + Duration::from_secs(20));
        let lines: Vec<String> = std::iter::from_fn(|| session.line(Duration::ZERO).ok()).collect();
        assert_eq!(lines, ["folder /tmp/x", "ready"]);
        assert!(session.over().load(Relaxed));
    }

    #[test]
    fn the_last_error_is_shown_from_its_first_line_on() {
        let script =
            "echo waiting >&2; echo 'error: the node is' >&2; echo '  of another cluster' >&2; echo hint: x >&2";
        let mut session = session(script);
        session.wait_until(Instant::now() + Duration::from_secs(20));
        assert_eq!(session.last_error().unwrap(), "error: the node is of another cluster hint: x");
        assert_eq!(session.last_output(), "of another cluster / hint: x");
    }
}
