//! The process of a client program: its socket, what it prints, its end. No wait without a deadline, and no process behind it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_model::secret;
use pubmark_protocol::client_program::{MARK, ToProgram};
use pubmark_protocol::clock;

/// How long a program may take to exit after the goodbye.
const EXIT_WITHIN: Duration = Duration::from_secs(2);
/// How long the exit status of a program that closed its socket is waited for.
const STATUS_WITHIN: Duration = Duration::from_millis(500);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Bytes of its standard error that stay in memory: the last ones.
const MOST_PRINTED: usize = 4_096;
/// Letters of it that a reason shows.
const MOST_SHOWN: usize = 300;
/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Capacity of a buffer that stays allocated when it is empty, bytes.
const RETAINED_BYTES: usize = 4 << 20;

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    socket: UnixStream,
    errors: ChildStderr,
    /// The end of what it printed.
    printed: Vec<u8>,
    /// What waits for the socket, from `written` on.
    pub out: Vec<u8>,
    /// Bytes of `out` that the socket has.
    written: usize,
    /// Time until which the socket was known to be full, ns of the shard's clock; `None` if something was written since.
    full_until_ns: Option<u64>,
    /// How long writes that a full socket had stopped waited for pubmark, at most, ns.
    late_so_far_ns: u64,
    /// What was read and not handled.
    pub input: Vec<u8>,
}

/// Whether a read found something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// Bytes; there may be more.
    Bytes,
    /// Nothing now.
    Nothing,
    /// It has closed its end.
    End,
}

impl Running {
    /// Starts a program.
    pub fn start(words: &[String]) -> io::Result<Running> {
        let (name, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(name);
        command.args(arguments).env(MARK, "1").process_group(0).stderr(Stdio::piped());
        command.stdin(OwnedFd::from(theirs.try_clone()?)).stdout(OwnedFd::from(theirs));
        end_with_parent(&mut command);
        let mut child = command.spawn()?;
        let errors = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let running = Running {
            child,
            socket,
            errors,
            printed: vec![],
            out: vec![],
            written: 0,
            full_until_ns: None,
            late_so_far_ns: 0,
            input: vec![],
        };
        running.socket.set_nonblocking(true)?;
        set_nonblocking(running.errors.as_fd())?;
        Ok(running)
    }

    /// Its socket, to be waited for.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What it prints on, to be waited for.
    pub fn errors(&self) -> BorrowedFd<'_> {
        self.errors.as_fd()
    }

    /// Writes queued bytes, as far as the pipe accepts them.
    pub fn write(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let at_ns = clock::monotonic_ns();
            match self.socket.write(&self.out[self.written..]) {
                Ok(bytes) => {
                    self.written += bytes;
                    let full_until_ns = self.full_until_ns.take().unwrap_or(at_ns);
                    self.late_so_far_ns += at_ns.saturating_sub(full_until_ns);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.full_until_ns = Some(at_ns);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.out.shrink_to(RETAINED_BYTES);
            self.written = 0;
        } else if self.written > RETAINED_BYTES {
            self.out.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }

    /// The socket, if it was full at the last attempt to write, was so until this time.
    pub fn note_full(&mut self, until_ns: u64) {
        if let Some(full_until_ns) = &mut self.full_until_ns {
            *full_until_ns = until_ns.max(*full_until_ns);
        }
    }

    /// How long writes that a full socket had stopped waited for pubmark so far, at most, ns.
    pub fn late_ns(&self) -> u64 {
        self.late_so_far_ns
    }

    /// The same if nothing is written any more from `now_ns` on.
    pub fn late_by_ns(&self, now_ns: u64) -> u64 {
        let waits_ns = self.full_until_ns.map_or(0, |full_until_ns| now_ns.saturating_sub(full_until_ns));
        self.late_so_far_ns.saturating_add(waits_ns)
    }

    /// Reads once, to the end of `input`.
    pub fn read(&mut self) -> io::Result<ReadOutcome> {
        let before = self.input.len();
        self.input.resize(before + READ_BYTES, 0);
        let read = self.socket.read(&mut self.input[before..]);
        self.input.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Ok(ReadOutcome::End),
            Ok(_) => Ok(ReadOutcome::Bytes),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(ReadOutcome::Nothing)
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(ReadOutcome::End),
            Err(error) => Err(error),
        }
    }

    /// Reads its standard error; the last bytes stay in memory.
    pub fn read_errors(&mut self) {
        let mut piece = [0; 4_096];
        // A read error is treated like the end of the pipe.
        while let Ok(bytes @ 1..) = self.errors.read(&mut piece) {
            self.printed.extend_from_slice(&piece[..bytes]);
            let extra = self.printed.len().saturating_sub(MOST_PRINTED);
            self.printed.drain(..extra);
        }
    }

    /// How it ended, for a program that has closed its socket.
    pub fn how_it_ended(&mut self) -> String {
        let deadline = Instant::now() + STATUS_WITHIN;
        while !self.has_exited() && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.read_errors();
        if self.has_exited() {
            self.kill();
            self.child.wait().map_or_else(|error| error.to_string(), |status| format!("ended with {status}"))
        } else {
            "closed its standard output".to_owned()
        }
    }

    /// What it printed last, as a part of a sentence, without these secrets: the line that names the error, or the last one.
    pub fn error_output(&self, secrets: &[&str]) -> String {
        let text = secret::without(&String::from_utf8_lossy(&self.printed), secrets);
        let text = error_line(&text).replace(char::is_control, " ");
        let text = text.trim();
        let skipped = text.chars().count().saturating_sub(MOST_SHOWN);
        let shown: String = text.chars().skip(skipped).collect();
        match (shown.is_empty(), skipped) {
            (true, _) => String::new(),
            (false, 0) => format!("; it printed: {shown}"),
            (false, _) => format!("; it printed: …{shown}"),
        }
    }

    /// Has it exited? Its number stays its own until it is waited for.
    fn has_exited(&mut self) -> bool {
        // SAFETY: an all-zero siginfo_t is a valid one.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `found` is live memory of the size that the kernel writes.
        let result = unsafe { libc::waitid(libc::P_PID, self.child.id(), &mut found, flags) };
        // A failure means that it was waited for already. SAFETY: the kernel filled it, or it is zero.
        result != 0 || unsafe { found.si_pid() } != 0
    }

    /// Ends it and what it started.
    pub fn kill(&mut self) {
        // SAFETY: numbers alone. The group exists at least until its leader was waited for.
        unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
    }
}

impl Drop for Running {
    /// Sends the goodbye, and waits for the exit for a limited time.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            ToProgram::Goodbye.encode(&mut self.out);
            let deadline = Instant::now() + EXIT_WITHIN;
            while !self.has_exited() && Instant::now() < deadline {
                // Its output is not read any more, and must not block it.
                let was_written = self.write().is_ok() && self.out.is_empty();
                self.input.clear();
                let ended = matches!(self.read(), Ok(ReadOutcome::End) | Err(_));
                self.read_errors();
                if was_written || ended {
                    // It also learns of it by the end of its input.
                    let _ = self.socket.shutdown(std::net::Shutdown::Write);
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            self.kill();
            // It has exited or was killed: this does not wait.
            let _ = self.child.wait();
        }
    }
}

/// Of what a program printed, the line that says what is wrong: the last one that begins with the name of an error, such as the end of
/// a Python traceback or the head of a Node.js one; the last line that is not empty, otherwise.
fn error_line(text: &str) -> &str {
    let names_error = |line: &&str| {
        let name = line.split([':', ' ']).next().unwrap_or_default();
        line.contains(':') && (name.ends_with("Error") || name.ends_with("Exception"))
    };
    let lines = || text.lines().rev().filter(|line| !line.trim().is_empty());
    lines().find(names_error).or_else(|| lines().next()).unwrap_or_default()
}

fn set_nonblocking(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain system calls on a descriptor that is open.
    let set = unsafe {
        let flags = libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL);
        flags >= 0 && libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) >= 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the kernel end the child with the thread that starts it: a pubmark that is killed leaves no program behind.
fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: plain system calls with numbers.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            if u32::try_from(libc::getppid()) != Ok(parent) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made that are async-signal-safe; nothing is allocated.
    unsafe { command.pre_exec(ask) };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_time_from_a_full_socket_to_the_next_write_that_it_accepts_is_pubmarks() {
        const STOP: Duration = Duration::from_millis(10);
        let mut program = Running::start(&["cat".to_owned()]).unwrap();
        program.out = vec![0; 8 << 20];
        program.write().unwrap();
        assert_eq!((program.full_until_ns.is_some(), program.late_ns()), (true, 0));
        let deadline = Instant::now() + Duration::from_secs(20);
        while program.late_ns() == 0 {
            assert!(Instant::now() < deadline, "it reads nothing");
            // Makes room for what it repeats, so that it goes on reading.
            program.read().unwrap();
            program.input.clear();
            std::thread::sleep(STOP);
            program.write().unwrap();
        }
        assert!(u128::from(program.late_ns()) >= STOP.as_nanos(), "{} ns", program.late_ns());
        let late_ns = program.late_ns();
        program.full_until_ns = Some(1_000);
        program.note_full(4_000);
        assert_eq!(program.late_by_ns(4_300) - late_ns, 300, "full until 4,000");
        program.kill();
    }

    #[test]
    fn of_a_traceback_the_line_with_the_error_is_shown() {
        let python = "Traceback (most recent call last):\n  File \"c.py\", line 1, in <module>\nModuleNotFoundError: No module named 'paho'\n";
        let node =
            "node:internal:1\n  throw err;\n\nError: Cannot find module 'mqtt'\n    at load (a:1)\n\nNode.js v20.1\n";
        for (text, line) in [
            (python, "ModuleNotFoundError: No module named 'paho'"),
            (node, "Error: Cannot find module 'mqtt'"),
            ("python3: can't open file 'x.py'\n\n", "python3: can't open file 'x.py'"),
            ("one\ntwo", "two"),
            ("", ""),
        ] {
            assert_eq!(error_line(text), line);
        }
    }
}
