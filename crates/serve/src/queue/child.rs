//! A child process: started so that it does not outlive the server, and ended with signals.
//!
//! A child holds the lock on a file in its submission's folder from before its program starts. The lock is released when
//! the last process that inherited it ends, even if the server ends earlier, so that the next server knows when the machine
//! is free. The lock of the machine ([`super::machine`]) is inherited in the same way.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::store::{EVENTS_FILE, MESSAGES_FILE};

/// Interval between two checks of an orphan.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time from a SIGKILL to the end of the process.
const KILLED: Duration = Duration::from_secs(5);
/// File in a submission's folder whose lock the child and its own children hold.
const LOCK_FILE: &str = "measures";

/// A running child.
pub struct Running {
    child: Child,
    /// Folder of its lock file.
    folder: PathBuf,
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
        Ok(Running { child, folder: folder.to_owned() })
    }

    /// Whether the child has ended. It stays a zombie until [`Running::finish`], so that neither its process number nor its
    /// process group can belong to others meanwhile.
    ///
    /// # Errors
    /// The child cannot be waited for.
    pub fn has_ended(&self) -> io::Result<bool> {
        // SAFETY: a `siginfo_t` of zeros is valid.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: waitid writes only to `found`, which outlives the call.
        if unsafe { libc::waitid(libc::P_PID, self.child.id(), &raw mut found, options) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: waitid has set the field, or left it 0 if the child has not ended.
        Ok(unsafe { found.si_pid() } != 0)
    }

    /// Waits for the child, which has ended, and ends what it started and left behind, after `limit` by force. Returns its
    /// exit code, `None` if a signal ended it; and the error if a process that it started still exists.
    pub fn finish(mut self, limit: Duration) -> (Option<i32>, io::Result<()>) {
        let rest = end_orphan(&self.folder, limit);
        // A process that closed the descriptors that it inherited is not found by the lock, but by its process group. While the
        // child is a zombie, no other group can have its number.
        if self.has_ended().unwrap_or(false) {
            // SAFETY: kill has no memory to be unsafe with.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
        }
        (self.child.wait().ok().and_then(|status| status.code()), rest)
    }

    /// Sends a signal. The child has not been waited for, so its process number cannot belong to another process.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: kill has no memory to be unsafe with.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }
}

/// Waits for the processes of the submission in `folder` that still hold its lock: descendants of a child that has ended, or
/// the child of a dead server, which the kernel has requested to end. After `limit` they are killed.
///
/// # Errors
/// Some of its processes still exist, or this cannot be determined.
pub fn end_orphan(folder: &Path, limit: Duration) -> io::Result<()> {
    let path = folder.join(LOCK_FILE);
    // A FIFO in its place does not block.
    let lock = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
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
            return Err(io::Error::other("processes of the run still exist, though they were killed"));
        }
        for process in holders(&lock)? {
            // SAFETY: kill has no memory to be unsafe with; only descendants of the child hold the lock.
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

/// Other processes of this user that hold the lock on a file, from `proc_pid_fd(5)` and `proc_pid_fdinfo(5)`. Who only has the file
/// open, such as a program that follows or copies it, is not among them.
fn holders(lock: &File) -> io::Result<Vec<libc::pid_t>> {
    let wanted = lock.metadata()?;
    let is_it =
        |path: &Path| fs::metadata(path).is_ok_and(|one| (one.dev(), one.ino()) == (wanted.dev(), wanted.ino()));
    let holds = |process: &libc::pid_t| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
        descriptors
            .is_ok_and(|all| all.flatten().any(|one| is_it(&one.path()) && is_locked(*process, &one.file_name())))
    };
    let processes = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let own = std::process::id() as libc::pid_t;
    Ok(processes.filter(|process| *process != own).filter(holds).collect())
}

/// Whether a lock was taken with this descriptor, or with the one that it is a copy of.
fn is_locked(process: libc::pid_t, descriptor: &OsStr) -> bool {
    let facts = fs::read_to_string(Path::new(&format!("/proc/{process}/fdinfo")).join(descriptor));
    facts.is_ok_and(|facts| facts.lines().any(|line| line.starts_with("lock:")))
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

    /// Waits for the end of a child and returns its exit code.
    fn exit_code(running: Running) -> Option<i32> {
        while !running.has_ended().unwrap() {
            std::thread::sleep(LOOK);
        }
        let (exit, rest) = running.finish(Duration::from_millis(200));
        rest.unwrap();
        exit
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
        let running = start("exec sleep 60", folder.path());
        running.signal(libc::SIGINT);
        let began = Instant::now();
        while !running.has_ended().unwrap() {
            if began.elapsed() > KILLED {
                running.signal(libc::SIGKILL);
                panic!("an interruption did not end it");
            }
            std::thread::sleep(LOOK);
        }
        assert_eq!(exit_code(running), None, "the signal ended it");
    }

    #[test]
    fn an_orphan_is_waited_for_and_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        end_orphan(folder.path(), Duration::ZERO).unwrap();
        let running = start("sleep 60 & sleep 60", folder.path());
        assert!(
            Running::start(Path::new("/bin/true"), &[], folder.path(), None, machine(folder.path())).is_err(),
            "one measures there already"
        );
        let lock = File::open(folder.path().join(LOCK_FILE)).unwrap();
        let mut reader = Command::new("sleep").arg("60").stdin(lock.try_clone().unwrap()).spawn().unwrap();
        end_orphan(folder.path(), Duration::ZERO).unwrap();
        assert_eq!(exit_code(running), None, "a signal ended it");
        assert_eq!(holders(&lock).unwrap(), [0; 0]);
        assert_eq!(reader.try_wait().unwrap(), None, "it only has the file open");
        reader.kill().unwrap();
        reader.wait().unwrap();
    }

    #[test]
    fn one_that_ends_in_time_is_not_killed() {
        let folder = tempfile::tempdir().unwrap();
        let running = start("sleep 0.3; exit 7", folder.path());
        end_orphan(folder.path(), Duration::from_secs(60)).unwrap();
        assert_eq!(exit_code(running), Some(7));
    }

    /// Whether a process exists and is no zombie.
    fn is_alive(process: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    }

    #[test]
    fn what_a_child_left_behind_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        // One leaves the process group of the child, the other one closes what it inherited.
        let closes =
            "import os, time; os.closerange(3, 256); open(\"closed\", \"w\").write(str(os.getpid())); time.sleep(60)";
        let text = format!(
            "cd {}; setsid sleep 60 & echo $! > left; python3 -c '{closes}' & until [ -s closed ]; do sleep 0.02; done",
            folder.path().display()
        );
        let running = start(&text, folder.path());
        assert_eq!(exit_code(running), Some(0));
        for file in ["left", "closed"] {
            let process = fs::read_to_string(folder.path().join(file)).unwrap();
            let began = Instant::now();
            while is_alive(process.trim()) {
                assert!(began.elapsed() < KILLED, "{file}: it goes on");
                std::thread::sleep(LOOK);
            }
        }
    }
}
