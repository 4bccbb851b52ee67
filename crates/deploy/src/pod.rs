//! The process in the coordinator's pod: it waits until the system is ready, executes the run, and waits until the results
//! were collected. Every wait has a limit.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubmark_runner::{ErrorKind, RunError};

use crate::archive::{self, EXIT_CODE, RUNS};
use crate::transfer::{Reported, Wait};

/// Interval at which a condition is checked.
const STEP: Duration = Duration::from_millis(100);
/// Time between two attempts to connect to the system.
const AGAIN: Duration = Duration::from_millis(500);
/// Timeout of one attempt to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Longest wait for a collector after a signal; it is shorter than the time after which the cluster kills the pod
/// ([`crate::kubernetes`]).
const COLLECT_AFTER_SIGNAL: Duration = Duration::from_secs(30);
/// What the log of a pod says at its end, if nobody collected its results.
pub(crate) const UNCOLLECTED: &str = "no coordinator collected the results";
/// File that exists once the results were collected.
const COLLECTED: &str = "collected";

/// A run in a pod.
pub struct PodRun {
    /// Folder of the results in the pod.
    pub folder: PathBuf,
    /// File with the specification of the run.
    pub spec: PathBuf,
    /// Host and port of a system that may not be ready yet.
    pub system: Option<String>,
    /// The system receives datagrams: it counts as ready as soon as its name resolves.
    pub datagrams: bool,
    /// Longest wait for the system.
    pub system_limit: Duration,
    /// Longest wait for the collection of the results, from the end of the run or from the last bytes that were sent.
    pub collect_limit: Duration,
}

impl PodRun {
    /// Waits for the system, executes the run, waits for a collector, and returns the exit code of the run. `note` receives
    /// progress messages.
    ///
    /// # Errors
    /// The system was not ready in time, the run could not be started, or its exit code could not be written.
    pub fn perform(&self, note: &dyn Fn(&str), stop: &AtomicBool) -> Result<i32, RunError> {
        if let Some(system) = &self.system {
            self.wait_for(system, note, stop)?;
        }
        let code = self.run(stop)?;
        // Without a record there is nothing to collect: the pod ends, and its log has the reason.
        if fs::read_dir(self.folder.join(RUNS)).is_ok_and(|mut runs| runs.next().is_some()) {
            self.end(code)?;
            note("the results wait to be collected");
            self.wait_for_collector(note, stop, &mut Instant::now);
        }
        Ok(code)
    }

    fn wait_for(&self, system: &str, note: &dyn Fn(&str), stop: &AtomicBool) -> Result<(), RunError> {
        let began = Instant::now();
        let mut known = String::new();
        while let Err(reason) = reach(system, self.datagrams) {
            let reason = reason.to_string();
            if reason != known {
                note(&format!("waiting for the system at {system}: {reason}"));
                known = reason;
            }
            if stop.load(Relaxed) {
                return Err(RunError::new(ErrorKind::Interrupted, "interrupted while waiting for the system"));
            }
            if began.elapsed() >= self.system_limit {
                let limit = self.system_limit.as_secs();
                let message = format!("the system at `{system}` took no connection within {limit} s: {known}");
                return Err(RunError::new(ErrorKind::System, message)
                    .hint("`kubectl logs` and `kubectl describe` of the system's pod say what it lacks"));
            }
            std::thread::sleep(AGAIN);
        }
        Ok(())
    }

    /// Executes the run in a separate process, and forwards a signal of this process to it.
    fn run(&self, stop: &AtomicBool) -> Result<i32, RunError> {
        let failed =
            |error: &io::Error| RunError::from_error(ErrorKind::Internal, error).during("failed to start the run");
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut command = Command::new(program);
        // The collector prints the summary, not this process.
        command.arg("run").arg(&self.spec).arg("--out").arg(self.folder.join(RUNS)).stdout(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let mut is_signalled = false;
        loop {
            match child.try_wait() {
                Ok(None) => {}
                // The process was killed by a signal, for instance at its memory limit: 137 is the exit code of a shell for
                // SIGKILL.
                Ok(Some(status)) => return Ok(status.code().unwrap_or(137)),
                Err(error) => return Err(failed(&error)),
            }
            if stop.load(Relaxed) && !is_signalled {
                is_signalled = true;
                terminate(&child);
            }
            std::thread::sleep(STEP);
        }
    }

    /// Writes the exit code of the run to a file, for [`send`].
    fn end(&self, code: i32) -> Result<(), RunError> {
        let written = self.folder.join(format!("{EXIT_CODE}.new"));
        fs::write(&written, code.to_string()).and_then(|()| fs::rename(&written, self.folder.join(EXIT_CODE))).map_err(
            |error| RunError::from_error(ErrorKind::NotWritten, &error).during("failed to write the exit code"),
        )
    }

    /// Waits as long as results are sent. The deadline of the pod's Job ends this wait, too.
    fn wait_for_collector(&self, note: &dyn Fn(&str), stop: &AtomicBool, clock: &mut dyn FnMut() -> Instant) {
        let mut wait = Wait::new(&self.folder, self.collect_limit, clock());
        let mut killed_at: Option<Instant> = None;
        while !self.folder.join(COLLECTED).exists() {
            let now = clock();
            if stop.load(Relaxed) {
                killed_at.get_or_insert(now + COLLECT_AFTER_SIGNAL);
            }
            if wait.is_over(now) || killed_at.is_some_and(|at| now >= at) {
                note(UNCOLLECTED);
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Checks whether the system is ready: resolves its name, and connects to it unless it receives datagrams.
fn reach(system: &str, datagrams: bool) -> io::Result<()> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in system.to_socket_addrs()? {
        if datagrams {
            return Ok(());
        }
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(_) => return Ok(()),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn terminate(child: &Child) {
    // SAFETY: a plain system call; the child has not been waited for, so its process ID cannot have been reused.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
}

/// Waits until the run of this pod has ended, and writes its results to `out` as an archive. The pod waits as long as bytes are
/// written.
///
/// # Errors
/// The run has not ended within `limit`, or `out` cannot be written.
pub fn send(folder: &Path, limit: Duration, out: impl Write) -> Result<(), RunError> {
    let began = Instant::now();
    while !folder.join(EXIT_CODE).exists() {
        if began.elapsed() >= limit {
            return Err(RunError::new(
                ErrorKind::System,
                format!("the run has not ended within {} s", limit.as_secs()),
            ));
        }
        std::thread::sleep(STEP);
    }
    archive::pack(folder, Reported::new(out, folder))
        .map_err(|error| RunError::from_error(ErrorKind::NotWritten, &error).during("failed to send the results"))
}

/// Marks the results as collected, so that the pod may end.
///
/// # Errors
/// The file cannot be written.
pub fn release(folder: &Path) -> Result<(), RunError> {
    File::create(folder.join(COLLECTED)).map(drop).map_err(|error| {
        RunError::from_error(ErrorKind::NotWritten, &error).during("failed to say that the results were collected")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::archive::tests::Folder;
    use std::net::TcpListener;
    use std::sync::Mutex;

    fn waiting(limit: Duration) -> PodRun {
        PodRun {
            folder: PathBuf::new(),
            spec: PathBuf::new(),
            system: None,
            datagrams: false,
            system_limit: limit,
            collect_limit: Duration::ZERO,
        }
    }

    /// Waits for a collector in a folder, by a clock that goes on by half of the limit each time, after `step` was called with
    /// the number of the time. Returns what was noted.
    fn noted(folder: &Folder, mut step: impl FnMut(u32)) -> Vec<String> {
        let limit = Duration::from_secs(600);
        let run = PodRun { folder: folder.0.clone(), collect_limit: limit, ..waiting(Duration::ZERO) };
        let (notes, began, mut times) = (Mutex::new(vec![]), Instant::now(), 0);
        let note = |text: &str| notes.lock().unwrap().push(text.to_owned());
        run.wait_for_collector(&note, &AtomicBool::new(false), &mut || {
            times += 1;
            step(times);
            began + limit / 2 * times
        });
        notes.into_inner().unwrap()
    }

    #[test]
    fn a_pod_does_not_end_while_its_results_are_sent() {
        let folder = Folder::new();
        assert_eq!(noted(&folder, |_| {}), [UNCOLLECTED]);
        let mut out = Reported::new(io::sink(), &folder.0);
        let send_on = |time| match time {
            6 => release(&folder.0).unwrap(),
            _ => out.write_all(&vec![0_u8; 2_000_000]).unwrap(),
        };
        assert_eq!(noted(&folder, send_on), Vec::<String>::new());
    }

    /// A writer that takes a microsecond for each byte, by its own clock, and fails if the pod has ended meanwhile.
    struct Slow {
        wait: Wait,
        now: Instant,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.now += Duration::from_micros(bytes.len() as u64);
            if self.wait.is_over(self.now) { Err(io::Error::other("the pod has ended")) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn results_report_their_progress_while_they_are_sent() {
        let folder = Folder::new();
        folder.write("runs/1-a/messages.parquet", &"x".repeat(4_000_000));
        folder.write(EXIT_CODE, "0");
        let now = Instant::now();
        let wait = Wait::new(&folder.0, Duration::from_millis(1_500), now);
        send(&folder.0, Duration::ZERO, Slow { wait, now }).unwrap();
    }

    #[test]
    fn a_system_that_comes_later_is_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let notes = Mutex::new(vec![]);
        let comes = std::thread::spawn({
            let address = address.clone();
            move || {
                std::thread::sleep(Duration::from_millis(700));
                TcpListener::bind(address).unwrap()
            }
        });
        let note = |text: &str| notes.lock().unwrap().push(text.to_owned());
        waiting(Duration::from_secs(20)).wait_for(&address, &note, &AtomicBool::new(false)).unwrap();
        drop(comes.join().unwrap());
        let notes = notes.into_inner().unwrap();
        assert!(notes.len() == 1 && notes[0].contains("refused"), "{notes:?}");
    }

    #[test]
    fn a_system_that_never_comes_ends_the_wait_with_the_reason() {
        let stop = AtomicBool::new(false);
        let error = waiting(Duration::ZERO).wait_for("127.0.0.1:1", &|_| {}, &stop).unwrap_err();
        assert!(error.kind == ErrorKind::System && error.to_string().contains("refused"), "{error}");
        let stop = AtomicBool::new(true);
        let error = waiting(Duration::from_secs(20)).wait_for("127.0.0.1:1", &|_| {}, &stop).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Interrupted);
    }
}
