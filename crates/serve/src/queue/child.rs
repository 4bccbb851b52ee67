//! A child process: started so that it does not outlive the server, and ended with signals.
//!
//! A child holds the lock on a file in its submission's folder from before its program starts. The lock is released when
//! the last process that inherited it ends, even if the server ends earlier, so that the next server knows when the machine
//! is free. The lock of the machine ([`super::machine`]) is inherited in the same way.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::store::{EVENTS_FILE, MESSAGES_FILE};

/// Interval between two checks of an orphan.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time from the SIGKILL of an orphan to its end.
const KILLED: Duration = Duration::from_secs(5);
/// File in a submission's folder whose lock the child and its own children hold.
const LOCK_FILE: &str = "measures";

/// A running child.
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts a child. Its events and messages are written to files in `folder`; the kernel signals it to end when the
    /// calling thread ends. Its working directory is `at`, or else the server's. The child and all its descendants hold the
    /// lock of the machine.
    pub fn start(
        program: &Path,
        words: &[OsString],
        folder: &Path,
        at: Option<&Path>,
        machine: File,
    ) -> io::Result<Running> {
        let file =
            |name: &str| OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(folder.join(name));
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(file(EVENTS_FILE)?).stderr(file(MESSAGES_FILE)?);
        if let Some(at) = at {
            command.current_dir(at);
        }
        // A Ctrl-C in the server's terminal must reach only the server.
        command.process_group(0);
        // Our descriptor is closed when this function returns; the inherited ones when the child and its descendants have
        // ended.
        let lock = file(LOCK_FILE)?;
        lock.try_lock()?;
        let (server, held) = (std::process::id(), [lock.as_raw_fd(), machine.as_raw_fd()]);
        // SAFETY: between fork and exec only signal, prctl, getppid and fcntl are called, which are async-signal-safe; the descriptors
        // are open until the child is another program.
        unsafe {
            command.pre_exec(move || {
                // A shell starts background jobs with these signals ignored (POSIX, XCU 2.11), and exec preserves that: a
                // server started in this way could not end a run.
                for signal in [libc::SIGINT, libc::SIGTERM] {
                    if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                        return Err(io::Error::last_os_error());
                    }
                }
                let is_kept = |held: libc::c_int| libc::fcntl(held, libc::F_SETFD, 0) != -1;
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) == -1 || !held.into_iter().all(is_kept) {
                    return Err(io::Error::last_os_error());
                }
                // The server may have died before prctl was called.
                if libc::getppid() as u32 != server {
                    return Err(io::Error::other("the server has ended"));
                }
                Ok(())
            });
        }
        let child = command.spawn()?;
        drop((lock, machine));
        Ok(Running { child })
    }

    /// Whether the child has ended, and its exit code: the inner `None` means that a signal ended it.
    pub fn ended(&mut self) -> io::Result<Option<Option<i32>>> {
        Ok(self.child.try_wait()?.map(|status| if status.signal().is_some() { None } else { status.code() }))
    }

    /// Sends a signal. The child has not been waited for, so its process number cannot belong to another process.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: kill has no memory to be unsafe with.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }
}

/// Waits for the child that a dead server may have started for the submission in `folder`. The kernel has requested it to
/// end; after `limit`, the child and its descendants are killed.
/// `limit` it is killed, and all that it started.
///
/// # Errors
/// Some of its processes still exist, or this cannot be determined.
pub fn end_orphan(folder: &Path, limit: Duration) -> io::Result<()> {
    let path = folder.join(LOCK_FILE);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if is_free_within(&lock, limit)? {
        return Ok(());
    }
    let killed = Instant::now();
    while !is_free_within(&lock, LOOK)? {
        if killed.elapsed() >= KILLED {
            return Err(io::Error::other("the run of a server before goes on, though its processes were killed"));
        }
        for process in holders(&lock)? {
            // SAFETY: as above; a process that has the file open is a descendant of the child.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
    Ok(())
}

fn is_free_within(lock: &File, limit: Duration) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() >= limit => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
        }
    }
}

/// Other processes that have a file open, from `proc_pid_fd(5)` for the processes of this user.
fn holders(lock: &File) -> io::Result<Vec<libc::pid_t>> {
    let wanted = lock.metadata()?;
    let is_it =
        |path: &Path| fs::metadata(path).is_ok_and(|one| (one.dev(), one.ino()) == (wanted.dev(), wanted.ino()));
    let holds = |process: &libc::pid_t| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
        descriptors.is_ok_and(|mut all| all.any(|one| one.is_ok_and(|one| is_it(&one.path()))))
    };
    let processes = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let own = std::process::id() as libc::pid_t;
    Ok(processes.filter(|process| *process != own).filter(holds).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A file that replaces the lock of the machine.
    fn machine(folder: &Path) -> File {
        File::create(folder.join("machine")).unwrap()
    }

    /// Starts a shell that executes this text.
    fn start(text: &str, folder: &Path) -> Running {
        Running::start(Path::new("/bin/sh"), &["-c".into(), text.into()], folder, None, machine(folder)).unwrap()
    }

    #[test]
    fn a_server_whose_shell_ignores_an_interruption_can_interrupt_its_runs() {
        const INSIDE: &str = "PUBMARK_SERVE_IGNORES_INTERRUPTIONS";
        if std::env::var_os(INSIDE).is_none() {
            let test = "queue::child::tests::a_server_whose_shell_ignores_an_interruption_can_interrupt_its_runs";
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", test]).env(INSIDE, "1");
            let ignore = || {
                // SAFETY: signal is async-signal-safe.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
                Ok(())
            };
            // SAFETY: as above.
            unsafe { command.pre_exec(ignore) };
            let output = command.output().unwrap();
            return assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        let folder = tempfile::tempdir().unwrap();
        let mut running = start("exec sleep 60", folder.path());
        running.signal(libc::SIGINT);
        let began = Instant::now();
        let ended = loop {
            if let Some(ended) = running.ended().unwrap() {
                break ended;
            }
            if began.elapsed() > KILLED {
                running.signal(libc::SIGKILL);
                panic!("an interruption did not end it");
            }
            std::thread::sleep(LOOK);
        };
        assert_eq!(ended, None, "the signal ended it");
    }

    #[test]
    fn an_orphan_is_waited_for_and_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        end_orphan(folder.path(), Duration::ZERO).unwrap();
        let mut running = start("sleep 60 & sleep 60", folder.path());
        assert!(
            Running::start(Path::new("/bin/true"), &[], folder.path(), None, machine(folder.path())).is_err(),
            "one measures there already"
        );
        end_orphan(folder.path(), Duration::ZERO).unwrap();
        while running.ended().unwrap().is_none() {
            std::thread::sleep(LOOK);
        }
        assert_eq!(running.ended().unwrap(), Some(None), "a signal ended it");
        let lock = File::open(folder.path().join(LOCK_FILE)).unwrap();
        assert_eq!(holders(&lock).unwrap(), [0; 0]);
    }

    #[test]
    fn one_that_ends_in_time_is_not_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut running = start("sleep 0.3; exit 7", folder.path());
        end_orphan(folder.path(), Duration::from_secs(60)).unwrap();
        while running.ended().unwrap().is_none() {
            std::thread::sleep(LOOK);
        }
        assert_eq!(running.ended().unwrap(), Some(Some(7)));
    }
}
