//! Commands that end by themselves, and their output. They are killed when this process ends. Brokers have a
//! [`crate::supervisor`] instead.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::SystemError;
use crate::tree;

/// Interval at which a process that is waited for is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Longest wait for the remaining output of a program that has ended.
const SETTLE: Duration = Duration::from_millis(500);
/// Bytes of a command's output that are read.
const MOST_OUTPUT: usize = 1 << 20;
/// Bytes of output that are read at once.
const PIECE: usize = 8 << 10;

/// A running program with its own session. Dropping it kills all its processes.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    status: Option<ExitStatus>,
    /// The kernel kills the program when the *thread* that started it ends. That thread waits on this channel.
    _starter: Sender<()>,
}

/// How a broker was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It had ended before the request.
    Before(ExitStatus),
    /// It ended after a request to stop.
    Asked(ExitStatus),
    /// It had to be killed.
    Killed,
}

impl Process {
    /// Starts a program in its own session, so that our terminal's Ctrl-C does not reach it. The kernel kills it when
    /// this process ends, for any reason.
    pub(crate) fn start(mut command: Command) -> io::Result<Process> {
        let ours = std::process::id() as libc::pid_t;
        // SAFETY: between fork and exec only calls that POSIX allows there are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                if libc::setsid() == -1 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                    return Err(io::Error::last_os_error());
                }
                // A shell that starts us in the background has us ignore the signal, and a program inherits that.
                if libc::signal(libc::SIGINT, libc::SIG_DFL) == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
                // This process may have ended before the call above.
                if libc::getppid() == ours { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
            });
        }
        let (starter, until_dropped) = mpsc::channel::<()>();
        let (started, result) = mpsc::sync_channel(1);
        thread::Builder::new().name("command".to_owned()).stack_size(64 << 10).spawn(move || {
            // The receiver waits for the result, so sending cannot fail.
            let _ = started.send(command.spawn());
            // Returns an error as soon as the sender is dropped, which is what this waits for.
            let _ = until_dropped.recv();
        })?;
        let child = result.recv().map_err(|_| io::Error::other("the thread that starts programs ended"))??;
        Ok(Process { child, status: None, _starter: starter })
    }

    /// The program's process id, which is also the id of its session and group.
    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The program's exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() && self.is_waiting_to_be_reaped() {
            self.reap();
        }
        self.status
    }

    /// Interrupts the program and its group, as Ctrl-C in their terminal would; they may still run afterwards.
    pub(crate) fn interrupt(&self) {
        if self.status.is_none() {
            self.signal_group(libc::SIGINT);
        }
    }

    fn kill(&mut self) {
        if self.status.is_none() {
            self.signal_group(libc::SIGKILL);
            self.reap();
        }
    }

    /// Kills the processes that the program left and reads its exit status. Until then its id cannot be used for
    /// another process.
    fn reap(&mut self) {
        let pid = self.pid();
        self.signal_group(libc::SIGKILL);
        for member in tree::session(pid).into_iter().filter(|member| *member != pid) {
            // SAFETY: plain system call; the id was just read, and a process that ended since makes it fail.
            unsafe { libc::kill(member as libc::pid_t, libc::SIGKILL) };
        }
        // Fails only if the status was read already, which `status` excludes.
        self.status = self.child.wait().ok();
    }

    fn signal_group(&self, signal: libc::c_int) {
        // SAFETY: plain system call; not reaped yet, so the group is still this program's.
        unsafe { libc::kill(-(self.pid() as libc::pid_t), signal) };
    }

    /// Has the program ended, without its status having been read?
    fn is_waiting_to_be_reaped(&self) -> bool {
        // SAFETY: an all-zero siginfo is valid, and the call fills it.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid(), &mut info, flags) == 0 && info.si_pid() != 0
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command that ends by itself, and returns its status and the output of both streams; kills it at the deadline.
/// Returns within half a second after that, whatever processes it left.
pub fn run_to_end(mut command: Command, within: Duration) -> Result<(ExitStatus, String), SystemError> {
    let shown = format!("{command:?}");
    let (reader, writer) = io::pipe().map_err(|source| SystemError::Run { program: shown.clone(), source })?;
    let streams = writer.try_clone().map_err(|source| SystemError::Run { program: shown.clone(), source })?;
    command.stdin(Stdio::null()).stdout(streams).stderr(writer);
    let mut process = Process::start(command).map_err(|source| SystemError::Run { program: shown.clone(), source })?;
    // Our copies of the pipe's writing end were closed with the command, so the reader gets the end of the pipe when
    // all other copies are closed: those of the program, and of every process that inherited one.
    let output = Output::of(reader, MOST_OUTPUT);
    let deadline = Instant::now() + within;
    let status = loop {
        match process.ended() {
            Some(status) => break Some(status),
            None if Instant::now() >= deadline => break None,
            None => thread::sleep(POLL_INTERVAL),
        }
    };
    drop(process);
    let output = output.settled();
    match status {
        Some(status) => Ok((status, output)),
        None => Err(SystemError::Command {
            command: shown,
            outcome: format!("did not end within {} s", within.as_secs_f64()),
            output,
        }),
    }
}

/// A stream that a program writes, read on a separate thread while the program runs: a full pipe would make it wait.
#[derive(Debug)]
pub struct Output(Receiver<Vec<u8>>);

impl Output {
    /// Begins to read a stream, until its end or `most` bytes; after them a program that writes gets a broken pipe.
    pub fn of(mut stream: impl Read + Send + 'static, most: usize) -> Output {
        let (send, pieces) = mpsc::channel();
        thread::spawn(move || {
            let mut piece = [0; PIECE];
            let mut left = most;
            while left > 0 {
                let end = left.min(PIECE);
                match stream.read(&mut piece[..end]) {
                    Ok(count) if count > 0 && send.send(piece[..count].to_vec()).is_ok() => left -= count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // If reading fails, the text before the failure is still useful.
                    _ => return,
                }
            }
        });
        Output(pieces)
    }

    /// What the stream had until its end. Call it after the end of the program. A process that the program left may keep the
    /// stream open: after half a second, what has arrived is all.
    pub fn settled(&self) -> String {
        let until = Instant::now() + SETTLE;
        let next = || self.0.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
        let bytes: Vec<u8> = std::iter::from_fn(next).flatten().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Runs a shell that starts a process with a session of its own, prints its number, and does one thing more. The process
    /// holds the output of the shell open until this function kills it.
    fn run_with_daemon(then: &str, within: Duration) -> Result<(ExitStatus, String), SystemError> {
        // The sixth field is the session (proc_pid_stat(5)).
        let text =
            format!("setsid sleep 30 & until [ \"$(cut -d' ' -f6 /proc/$!/stat)\" = $! ]; do :; done; echo $!; {then}");
        let mut command = Command::new("sh");
        command.args(["-c", &text]);
        let began = Instant::now();
        let result = run_to_end(command, within);
        let took = began.elapsed();
        let output = match &result {
            Ok((_, output)) | Err(SystemError::Command { output, .. }) => output,
            Err(error) => panic!("{error}"),
        };
        let daemon: libc::pid_t = output.lines().next().unwrap().parse().unwrap();
        // SAFETY: plain system call; the process sleeps, or no process has this number any more.
        let was_there = unsafe { libc::kill(daemon, libc::SIGKILL) } == 0;
        assert!(took < Duration::from_secs(20), "the end of the pipe was waited for: {took:?}");
        assert!(was_there, "nothing held the pipe open");
        result
    }

    #[test]
    fn a_process_that_left_and_holds_the_output_is_not_waited_for() {
        let (status, output) = run_with_daemon("echo ready", Duration::from_secs(10)).unwrap();
        assert!(status.success() && output.ends_with("\nready\n"), "{output}");
        let error = run_with_daemon("echo ready; sleep 60", Duration::from_secs(5)).unwrap_err();
        let has_output = matches!(&error, SystemError::Command { output, .. } if output.ends_with("\nready\n"));
        assert!(has_output, "what was printed before is lost: {error}");
    }
}
