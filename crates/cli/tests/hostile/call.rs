//! One call of the binary: killed if it does not end, its memory measured.

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest duration of a call: a connect limit, a drain and a busy machine together, and far less than a hang.
const LIMIT: Duration = Duration::from_secs(90);
/// Time between two checks.
const LOOK: Duration = Duration::from_millis(10);

/// Result of a call.
pub struct Called {
    /// Exit code; `None` if it was killed, by us or by a fault.
    pub code: Option<i32>,
    /// Standard output.
    pub printed: String,
    /// Standard error.
    pub errors: String,
    /// Largest resident set, bytes.
    pub memory_bytes: u64,
    /// It did not end and was killed.
    pub hung: bool,
    /// Where it was called.
    _folder: TempDir,
}

impl Called {
    /// The record that was printed, if there is one.
    pub fn record(&self) -> Option<Value> {
        serde_json::from_str(&self.printed).ok()
    }
}

/// Calls the binary in a folder of its own.
pub fn call(arguments: &[&str]) -> Called {
    call_in(TempDir::with_prefix("pubmark-hostile-").unwrap(), arguments)
}

/// Calls the binary in this folder.
#[allow(clippy::zombie_processes, reason = "`wait` waits for it by wait4(2), which tells its memory as well")]
pub fn call_in(folder: TempDir, arguments: &[&str]) -> Called {
    let temporary = folder.path().join("temporary");
    // It may exist from an earlier call.
    let _ = std::fs::create_dir(&temporary);
    let mut child = Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(arguments)
        .current_dir(folder.path())
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let [printed, errors] = [reader(streams.0), reader(streams.1)];
    let (status, memory_bytes, hung) = wait(&child);
    let text = |thread: std::thread::JoinHandle<Vec<u8>>| String::from_utf8_lossy(&thread.join().unwrap()).into_owned();
    Called { code: status.code(), printed: text(printed), errors: text(errors), memory_bytes, hung, _folder: folder }
}

fn reader(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Waits for the end; returns status, largest resident set, and whether it had to be killed.
fn wait(child: &Child) -> (ExitStatus, u64, bool) {
    let pid = child.id() as libc::pid_t;
    let began = Instant::now();
    let mut hung = false;
    loop {
        let mut status = 0;
        // SAFETY: a structure of integers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both are valid for the time of the call, and the child is ours and not waited for elsewhere.
        match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
            0 if began.elapsed() > LIMIT && !hung => {
                hung = true;
                // SAFETY: a plain system call about a child process that was not waited for.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            0 => std::thread::sleep(LOOK),
            found => {
                assert_eq!(found, pid, "{}", std::io::Error::last_os_error());
                return (ExitStatus::from_raw(status), usage.ru_maxrss as u64 * 1_024, hung);
            }
        }
    }
}
