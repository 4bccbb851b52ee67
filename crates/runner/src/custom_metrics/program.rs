//! A program of a metric. It receives the message log as NDJSON on its standard input and the paths of the files in its environment, and
//! prints its value. It runs in its own process group, which is killed when its time limit ends.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_model::metric::MetricProgram;
use pubmark_systems::tree;

use crate::message_log::MessageLog;

/// Environment variable with the path of the message log.
const LOG_VARIABLE: &str = "PUBMARK_MESSAGE_LOG";
/// Environment variable with the path of the record.
const RECORD_VARIABLE: &str = "PUBMARK_RECORD";
/// Most bytes of standard output that are read.
const MOST_PRINTED: usize = 4 << 20;
/// Most bytes of standard error that an error shows: the last ones.
const MOST_ERRORS: usize = 400;
/// Time between two checks of whether the program has exited or is to be stopped.
const LOOK: Duration = Duration::from_millis(10);
/// Longest wait for a pipe before the next check.
const PIPE_LOOK_MS: i32 = 50;
/// Longest time in which its output is read after its end. What it printed is in the pipes by then; a process that left its group may
/// hold them open and print for ever.
const READ_ON: Duration = Duration::from_secs(1);

/// Input of a program.
pub struct ProgramInput<'a> {
    /// The message log.
    pub log: &'a MessageLog,
    /// File of the message log.
    pub log_file: &'a Path,
    /// File of the record.
    pub record_file: &'a Path,
}

/// Result of a program.
pub struct ProgramOutcome {
    /// Duration of its run; `None` where it was not started.
    pub seconds: Option<f64>,
    /// Standard output of the program; the error is the reason why it is not usable.
    pub printed: Result<Vec<u8>, String>,
}

/// Why the wait for a program ended.
enum End {
    Exited,
    TimedOut,
    Stopped,
    TooMuch,
}

/// Runs the program of a metric. Every process that it started has ended when this returns, except for one that left its process group
/// and whose parent ended before the program.
pub fn run(metric: &MetricProgram, input: &ProgramInput<'_>, stop: &AtomicBool) -> ProgramOutcome {
    let mut child = match start(metric, input) {
        Ok(child) => child,
        Err(error) => {
            let why = format!("failed to start `{}`: {error}", metric.command[0]);
            return ProgramOutcome { seconds: None, printed: Err(why) };
        }
    };
    let began = Instant::now();
    let exchanged = exchange(&mut child, input.log, began + metric.within, stop);
    let seconds = Some(began.elapsed().as_secs_f64());
    let printed = match exchanged {
        Err(error) => Err(format!("failed to talk to it: {error}")),
        Ok(Exchange { end, status, printed, errors, fed }) => match (end, fed) {
            (End::Exited, Err(error)) if status.success() => Err(format!("the message log could not be read: {error}")),
            (End::Exited, _) if status.success() => Ok(printed),
            (End::Exited, _) => Err(format!("it ended with {}{}", status_words(status), error_excerpt(&errors))),
            (End::TimedOut, _) => {
                let within = metric.within.as_secs_f64();
                Err(format!("it was stopped: it took longer than {within} s{}", error_excerpt(&errors)))
            }
            (End::Stopped, _) => Err("it was stopped with the run".to_owned()),
            (End::TooMuch, _) => Err(format!("it was stopped: it printed more than {} MiB", MOST_PRINTED >> 20)),
        },
    };
    ProgramOutcome { seconds, printed }
}

fn start(metric: &MetricProgram, input: &ProgramInput<'_>) -> io::Result<Child> {
    let mut command = Command::new(&metric.command[0]);
    command.args(&metric.command[1..]).process_group(0);
    command.env(LOG_VARIABLE, std::path::absolute(input.log_file)?);
    command.env(RECORD_VARIABLE, std::path::absolute(input.record_file)?);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let parent = std::process::id();
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // The program ends when pubmark is killed.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid() as u32 != parent { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        });
    }
    command.spawn()
}

/// Data exchanged with a program.
struct Exchange {
    end: End,
    status: ExitStatus,
    printed: Vec<u8>,
    errors: Vec<u8>,
    /// Result of writing the log to the program. A program that closes its input has read enough.
    fed: io::Result<()>,
}

fn exchange(child: &mut Child, log: &MessageLog, deadline: Instant, stop: &AtomicBool) -> io::Result<Exchange> {
    let (input, output, errors) = match pipes(child) {
        Ok(pipes) => pipes,
        Err(error) => {
            kill_group(child);
            child.wait()?;
            return Err(error);
        }
    };
    let (over, full) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let feeding = scope.spawn(|| feed(log, PollingWriter { pipe: input, over: &over }));
        let output = scope.spawn(|| {
            collect(output, &over, |printed| {
                if printed.len() > MOST_PRINTED {
                    full.store(true, Ordering::Relaxed);
                }
            })
        });
        let errors = scope.spawn(|| {
            collect(errors, &over, |printed| {
                let excess = printed.len().saturating_sub(MOST_ERRORS);
                printed.drain(..excess);
            })
        });
        let end = wait(child, deadline, stop, &full);
        // Processes that it started are killed with it, also those that left its group, as long as it is their ancestor. Pipes that
        // another process holds open are not waited for.
        let below = if matches!(end, Ok(End::Exited)) { vec![] } else { tree::below(child.id()) };
        kill_group(child);
        below.into_iter().for_each(kill);
        let status = child.wait();
        over.store(true, Ordering::Relaxed);
        let panicked = || io::Error::other("a thread panicked");
        let fed = feeding.join().map_err(|_| panicked())?;
        let printed = output.join().map_err(|_| panicked())??;
        let errors = errors.join().map_err(|_| panicked())??;
        Ok(Exchange { end: end?, status: status?, printed, errors, fed })
    })
}

/// Its standard input, output and error, none of which blocks.
fn pipes(child: &mut Child) -> io::Result<(ChildStdin, ChildStdout, ChildStderr)> {
    let missing = || io::Error::other("a pipe is missing");
    let input = child.stdin.take().ok_or_else(missing)?;
    let output = child.stdout.take().ok_or_else(missing)?;
    let errors = child.stderr.take().ok_or_else(missing)?;
    for pipe in [input.as_raw_fd(), output.as_raw_fd(), errors.as_raw_fd()] {
        without_blocking(pipe)?;
    }
    Ok((input, output, errors))
}

/// Waits for the end of the program without reaping it: until it is reaped, its process number is not reused, and the group can be killed
/// by that number.
fn wait(child: &Child, deadline: Instant, stop: &AtomicBool, full: &AtomicBool) -> io::Result<End> {
    loop {
        if full.load(Ordering::Relaxed) {
            return Ok(End::TooMuch);
        }
        if has_exited(child)? {
            return Ok(End::Exited);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(End::Stopped);
        }
        if Instant::now() >= deadline {
            return Ok(End::TimedOut);
        }
        thread::sleep(LOOK);
    }
}

fn has_exited(child: &Child) -> io::Result<bool> {
    // SAFETY: all zeros is a valid value; `waitid` fills it in.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a plain call with a valid buffer to write to.
    match unsafe { libc::waitid(libc::P_PID, child.id(), &mut found, options) } {
        // SAFETY: after a successful call it is the number of the child, or 0.
        0 => Ok(unsafe { found.si_pid() } != 0),
        _ => Err(io::Error::last_os_error()),
    }
}

fn kill_group(child: &Child) {
    // SAFETY: plain call. It fails for a group without members.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
}

fn kill(process: u32) {
    // SAFETY: plain call. It fails for a process that has ended since its number was read.
    unsafe { libc::kill(process as i32, libc::SIGKILL) };
}

fn without_blocking(pipe: i32) -> io::Result<()> {
    // SAFETY: plain calls on an open descriptor.
    let done = unsafe { libc::fcntl(pipe, libc::F_SETFL, libc::fcntl(pipe, libc::F_GETFL) | libc::O_NONBLOCK) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits a short time for a pipe, and returns whether it is ready or closed.
fn is_ready(pipe: i32, events: i16) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: pipe, events, revents: 0 };
    // SAFETY: the pointer and the count describe one descriptor.
    match unsafe { libc::poll(&mut poll, 1, PIPE_LOOK_MS) } {
        -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(false),
        -1 => Err(io::Error::last_os_error()),
        found => Ok(found > 0),
    }
}

/// Writes to a pipe until its reader has closed it, or the program is over.
struct PollingWriter<'a, P> {
    pipe: P,
    over: &'a AtomicBool,
}

impl<P: Write + AsRawFd> Write for PollingWriter<'_, P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while !self.over.load(Ordering::Relaxed) {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    is_ready(self.pipe.as_raw_fd(), libc::POLLOUT)?;
                }
                other => return other,
            }
        }
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the log to a program that reads it.
fn feed(log: &MessageLog, input: impl Write + Send) -> io::Result<()> {
    match log.write_ndjson(input) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Reads everything that the pipe delivers, for [`READ_ON`] at most once the program is over. `bound` is called after each read and
/// limits the size of the buffer.
fn collect(mut pipe: impl Read + AsRawFd, over: &AtomicBool, bound: impl Fn(&mut Vec<u8>)) -> io::Result<Vec<u8>> {
    let mut found = vec![];
    let mut piece = [0; 16 * 1024];
    let mut end = None;
    loop {
        let is_over = over.load(Ordering::Relaxed);
        if is_over && Instant::now() >= *end.get_or_insert_with(|| Instant::now() + READ_ON) {
            return Ok(found);
        }
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(found),
            Ok(_) if found.len() > 2 * MOST_PRINTED => {}
            Ok(bytes) => {
                found.extend_from_slice(&piece[..bytes]);
                bound(&mut found);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What the program printed was in the pipe before it was over.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_over => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                is_ready(pipe.as_raw_fd(), libc::POLLIN)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// `exit status 3`, `signal 9`.
fn status_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

/// The end of what it wrote to standard error, on one line.
fn error_excerpt(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
    if line.is_empty() { String::new() } else { format!("; it printed: {line}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LOG_NAME: &str = "messages.ndjson";

    /// Runs a command of the shell with a limit of a second; returns its outcome and how long it took.
    fn run_for_a_second(command: &str, folder: &Path) -> (Result<Vec<u8>, String>, Duration) {
        let metric = MetricProgram {
            name: "a".to_owned(),
            command: ["sh", "-c", command].map(str::to_owned).to_vec(),
            unit: String::new(),
            within: Duration::from_secs(1),
        };
        let log = MessageLog::without_rows();
        let (log_file, record_file) = (folder.join(LOG_NAME), folder.join("record.json"));
        let input = ProgramInput { log: &log, log_file: &log_file, record_file: &record_file };
        let began = Instant::now();
        let outcome = run(&metric, &input, &AtomicBool::new(false));
        (outcome.printed, began.elapsed())
    }

    /// Processes that a program of this folder has left behind.
    fn left(folder: &Path) -> Vec<u32> {
        tree::marked(LOG_VARIABLE, &folder.join(LOG_NAME).display().to_string())
    }

    #[test]
    fn a_process_that_left_the_group_and_prints_for_ever_does_not_hold_up_a_run() {
        for (command, why) in [
            ("setsid yes & sleep 100", Some("it printed more than 4 MiB")),
            ("(setsid yes &); sleep 100", Some("it printed more than 4 MiB")),
            ("(setsid sh -c 'while sleep 0.01; do echo; done' &); sleep 100", Some("it took longer than 1 s")),
            ("setsid sh -c 'while sleep 0.01; do echo; done' & echo 7", None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (printed, took) = run_for_a_second(command, folder.path());
            left(folder.path()).into_iter().for_each(kill);
            assert!(took < Duration::from_secs(3), "{command}: {took:?}");
            match why {
                Some(why) => assert!(printed.as_ref().is_err_and(|text| text.contains(why)), "{command}: {printed:?}"),
                None => assert!(printed.is_ok(), "{command}: {printed:?}"),
            }
        }
    }

    #[test]
    fn a_program_that_is_stopped_takes_along_those_below_it_that_left_the_group() {
        let folder = tempfile::tempdir().unwrap();
        let (printed, _) = run_for_a_second("setsid sleep 100 & sleep 100", folder.path());
        assert!(printed.as_ref().is_err_and(|text| text.contains("it took longer than 1 s")), "{printed:?}");
        // A killed process takes a moment to end.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !left(folder.path()).is_empty() {
            assert!(Instant::now() < deadline, "left: {:?}", left(folder.path()));
            thread::sleep(LOOK);
        }
    }
}
