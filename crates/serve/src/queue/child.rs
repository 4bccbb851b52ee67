//! A child process: started so that it does not outlive the server, ended with signals.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::store::{EVENTS_FILE, MESSAGES_FILE};

/// Time between two looks at an orphan.
const LOOK: Duration = Duration::from_millis(50);

/// A child under way.
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts it. Its events and messages go to files in `folder`; it is asked to end when the thread that calls this ends.
    pub fn start(program: &Path, words: &[OsString], folder: &Path) -> io::Result<Running> {
        let file =
            |name: &str| OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(folder.join(name));
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(file(EVENTS_FILE)?).stderr(file(MESSAGES_FILE)?);
        // A Ctrl-C in the server's terminal is for the server.
        command.process_group(0);
        let server = std::process::id();
        // SAFETY: between fork and exec only prctl and getppid are called, which are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) == -1 {
                    return Err(io::Error::last_os_error());
                }
                // The server may have died before the request was made.
                if libc::getppid() as u32 != server {
                    return Err(io::Error::other("the server has ended"));
                }
                Ok(())
            });
        }
        Ok(Running { child: command.spawn()? })
    }

    /// Number and start of the process.
    pub fn identity(&self) -> Option<(u32, u64)> {
        let pid = self.child.id();
        Some((pid, start_ticks(pid)?))
    }

    /// Has it ended? With what: `None` in it for a signal.
    pub fn ended(&mut self) -> io::Result<Option<Option<i32>>> {
        Ok(self.child.try_wait()?.map(|status| if status.signal().is_some() { None } else { status.code() }))
    }

    /// Sends a signal. It has not been waited for, so that its number is still its own.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: kill has no memory to be unsafe with.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }
}

/// Waits for the child of a server that died, which the kernel has asked to end; after `limit` it is killed.
pub fn end_orphan((pid, start): (u32, u64), limit: Duration) {
    let began = Instant::now();
    while start_ticks(pid) == Some(start) {
        if began.elapsed() >= limit {
            // SAFETY: as above; the process is the one that was started, by its start.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// When a process began, in ticks of the kernel; `None` if there is none, or it has ended and nobody waited for it yet.
/// `proc_pid_stat(5)`: the 3rd and 22nd field, counted behind the name, which may have spaces.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut running = Running::start(Path::new("/bin/sleep"), &["60".into()], folder.path()).unwrap();
        let identity = running.identity().unwrap();
        assert_eq!(start_ticks(identity.0), Some(identity.1));
        // Another one of that number is not touched.
        end_orphan((identity.0, identity.1 + 1), Duration::ZERO);
        assert_eq!(running.ended().unwrap(), None);
        end_orphan(identity, Duration::ZERO);
        while running.ended().unwrap().is_none() {
            std::thread::sleep(LOOK);
        }
        assert_eq!(running.ended().unwrap(), Some(None), "a signal ended it");
    }
}
