//! pubmark's side: one supervisor, and its supervised process.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::SystemError;
use crate::process::{Stopped, run_to_end};
use crate::supervisor::messages::{Holdings, Report, Request, Work};
use crate::supervisor::{MARK, VERB, releasing};
use crate::tree;

/// Longest wait for a supervisor's report; most work of a supervisor is to start a program.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time from the end of the requests to the end of the supervisor: killing, clean-up commands, removal.
const CLEAN_UP_LIMIT: Duration = Duration::from_secs(60);
/// Longest run of one clean-up command if the supervisor has ended.
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(15);
/// Interval at which a condition that is waited for is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, after a request to stop, or because it was killed.
    Status(ExitStatus),
    /// With its supervisor, which was killed.
    WithSupervisor,
}

impl std::fmt::Display for End {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Status(status) => status.fmt(formatter),
            End::WithSupervisor => formatter.write_str("killed with the process that held it"),
        }
    }
}

/// A supervisor and its holdings. Dropping it removes everything at once.
#[derive(Debug)]
pub struct Supervised {
    program: PathBuf,
    supervisor: Child,
    /// `None` after everything was removed.
    requests: Option<ChildStdin>,
    reports: Receiver<Report>,
    mark: String,
    /// What pubmark removes itself if the supervisor was killed.
    holdings: Holdings,
    pid: u32,
    end: Option<End>,
    killed: bool,
}

impl Supervised {
    /// Starts a supervisor: `program` if given, otherwise the running program. It must accept the argument `supervisor`.
    pub fn begin(program: Option<&Path>) -> Result<Supervised, SystemError> {
        // The path is not used: if the program was built again, another program may be at the path.
        let program = program.map_or_else(|| PathBuf::from("/proc/self/exe"), Path::to_owned);
        let wrong = |reason: &str| SystemError::Supervisor { program: shown(&program), reason: reason.to_owned() };
        if std::env::var_os(MARK).is_some() {
            return Err(wrong("this process is itself held by a supervisor"));
        }
        let mark = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let mut supervisor = spawn(&program, &mark).map_err(|source| run_error(&shown(&program), source))?;
        let (Some(requests), Some(output)) = (supervisor.stdin.take(), supervisor.stdout.take()) else {
            return Err(wrong("its streams are not there"));
        };
        let reports = listen(output).map_err(|source| run_error(&shown(&program), source))?;
        let mut held = Supervised {
            program: program.clone(),
            supervisor,
            requests: Some(requests),
            reports,
            mark,
            holdings: Holdings::default(),
            pid: 0,
            end: None,
            killed: false,
        };
        match held.answer() {
            Ok(Report::Ready) => Ok(held),
            Ok(_) => Err(wrong("it did not say that it is ready")),
            // The program is not a supervisor: it must not continue to run.
            Err(error) => {
                let _ = held.supervisor.kill();
                Err(error)
            }
        }
    }

    /// Registers more holdings with the supervisor. This must be called before any of them is created.
    pub fn hold(&mut self, more: Holdings) -> Result<(), SystemError> {
        self.holdings.extend(more.clone());
        self.send_request(&Request::Hold(more))
    }

    /// Starts a program, after the previous one has ended, and returns its process id.
    pub fn start(&mut self, work: &Work) -> Result<u32, SystemError> {
        self.end = None;
        self.killed = false;
        self.send_request(&Request::Start(work.clone()))?;
        match self.answer()? {
            Report::Started { pid } => {
                self.pid = pid;
                Ok(pid)
            }
            Report::Failed { errno: Some(errno), program: true, .. } => {
                Err(run_error(&shown(&work.program), io::Error::from_raw_os_error(errno)))
            }
            Report::Failed { reason, errno, .. } => {
                let cause = errno.map(|errno| format!(": {}", io::Error::from_raw_os_error(errno)));
                Err(self.wrong(format!("{reason}{}", cause.unwrap_or_default())))
            }
            other => Err(self.wrong(format!("it answered {other:?}"))),
        }
    }

    /// Runs a command to its end with its output in `log`, and returns its status; after `within`, stops it and returns
    /// an error.
    pub fn run(&mut self, work: &Work, within: Duration) -> Result<ExitStatus, SystemError> {
        self.start(work)?;
        let deadline = Instant::now() + within;
        loop {
            match self.ended() {
                Some(End::Status(status)) => return Ok(status),
                Some(End::WithSupervisor) => return Err(self.wrong("it was killed".to_owned())),
                None if Instant::now() >= deadline => break,
                None => thread::sleep(POLL_INTERVAL),
            }
        }
        self.stop(Duration::ZERO);
        Err(SystemError::Command {
            command: format!("{} {}", shown(&work.program), work.arguments.join(" ")),
            outcome: format!("did not end within {} s", within.as_secs_f64()),
            output: work.log.as_deref().map(crate::running::log_tail).unwrap_or_default(),
        })
    }

    /// Process id of the program that was started last; 0 before the first start.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Process id of the supervisor.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.id()
    }

    /// How the program ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<End> {
        while self.end.is_none() {
            match self.reports.try_recv() {
                Ok(report) => self.note(&report),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.take_over(),
            }
        }
        self.end
    }

    /// Requests the program to end, without waiting for it.
    pub fn request_end(&mut self, within: Duration) {
        if self.ended().is_none() {
            // A supervisor that accepts no request has ended, which the next check detects.
            let _ = self.send_request(&Request::Stop { within_ms: within.as_millis() as u64 });
        }
    }

    /// Requests the program to end, waits, and has it killed after `within`; returns how it ended.
    pub fn stop(&mut self, within: Duration) -> Stopped {
        match self.ended() {
            Some(End::Status(status)) => return Stopped::Before(status),
            Some(End::WithSupervisor) => return Stopped::Killed,
            None => self.request_end(within),
        }
        self.wait_for_end(within)
    }

    /// Kills the program at once (SIGKILL), and waits until it and all its descendants have ended.
    pub fn kill(&mut self) -> Stopped {
        match self.ended() {
            Some(End::Status(status)) => return Stopped::Before(status),
            Some(End::WithSupervisor) => return Stopped::Killed,
            // A supervisor that accepts no request has ended, which the wait detects.
            None => drop(self.send_request(&Request::Kill)),
        }
        self.wait_for_end(Duration::ZERO)
    }

    /// Pauses the program and all its descendants, or resumes them. Returns when the pause took effect or ended, ns of
    /// `CLOCK_MONOTONIC`; `None` if no process is left.
    ///
    /// # Errors
    /// The supervisor has ended or does not report in time.
    pub fn pause(&mut self, pause: bool) -> Result<Option<u64>, SystemError> {
        self.send_request(&Request::Pause { pause })?;
        loop {
            match self.answer()? {
                Report::Signalled { processes, at_ns } => return Ok((processes > 0).then_some(at_ns)),
                // The program ended meanwhile.
                other => self.note(&other),
            }
        }
    }

    /// Waits for the end of a program that was requested to stop; a supervisor that does not report in time is killed.
    pub fn wait_for_end(&mut self, within: Duration) -> Stopped {
        let deadline = Instant::now() + within + REPORT_TIMEOUT;
        while self.end.is_none() {
            match self.reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(report) => self.note(&report),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => self.take_over(),
            }
        }
        match self.end {
            Some(End::Status(status)) if !self.killed => Stopped::Asked(status),
            _ => Stopped::Killed,
        }
    }

    fn note(&mut self, report: &Report) {
        if let Report::Ended { status, killed } = report {
            self.end = Some(End::Status(ExitStatus::from_raw(*status)));
            self.killed = *killed;
        }
    }

    fn send_request(&mut self, request: &Request) -> Result<(), SystemError> {
        let sent = self.requests.as_mut().ok_or(io::Error::from(io::ErrorKind::BrokenPipe)).and_then(|requests| {
            let mut line = serde_json::to_vec(request)?;
            line.push(b'\n');
            requests.write_all(&line).and_then(|()| requests.flush())
        });
        sent.map_err(|error| self.wrong(format!("it takes no requests: {error}")))
    }

    fn answer(&mut self) -> Result<Report, SystemError> {
        self.reports.recv_timeout(REPORT_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => self.wrong(format!("it did not answer within {} s", REPORT_TIMEOUT.as_secs())),
            RecvTimeoutError::Disconnected => self.wrong("it ended, or is not a supervisor".to_owned()),
        })
    }

    fn wrong(&self, reason: String) -> SystemError {
        SystemError::Supervisor { program: shown(&self.program), reason }
    }

    /// The supervisor has ended, or must end: its program ended with it, and pubmark removes the rest.
    fn take_over(&mut self) {
        self.end = Some(End::WithSupervisor);
        self.requests = None;
        let _ = self.supervisor.kill();
        // Fails only if the status was read already.
        let _ = self.supervisor.wait();
        self.kill_remaining();
        for work in &self.holdings.clean_up {
            let mut command = Command::new(&work.program);
            command.args(&work.arguments).envs(work.environment.iter().cloned());
            // Most clean-up commands find nothing to do, and no one could act on a failure.
            let _ = run_to_end(command, CLEAN_UP_WITHIN);
        }
        releasing::remove(&self.holdings.cgroups, &self.holdings.directories);
    }

    /// Kills processes that have our environment variable or are in our control groups, until none is left.
    fn kill_remaining(&self) {
        let deadline = Instant::now() + CLEAN_UP_WITHIN;
        releasing::kill_members(&self.holdings.cgroups);
        loop {
            let mut left = tree::marked(MARK, &self.mark);
            left.extend(releasing::members(&self.holdings.cgroups));
            if left.is_empty() || Instant::now() >= deadline {
                return;
            }
            releasing::kill_all(&left);
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Removes everything at once, and waits until that is done.
    fn close(&mut self) {
        if self.requests.take().is_none() {
            return;
        }
        let deadline = Instant::now() + CLEAN_UP_LIMIT;
        loop {
            match self.supervisor.try_wait() {
                Ok(Some(status)) if status.success() => return,
                Ok(None) if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
                _ => return self.take_over(),
            }
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.close();
    }
}

/// Starts the supervisor in its own session, so that our terminal's Ctrl-C does not reach it.
fn spawn(program: &Path, mark: &str) -> io::Result<Child> {
    let mut command = Command::new(std::path::absolute(program)?);
    command.arg(VERB).env(MARK, mark).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // SAFETY: setsid is allowed between fork and exec, and nothing is allocated.
    unsafe {
        command.pre_exec(|| if libc::setsid() == -1 { Err(io::Error::last_os_error()) } else { Ok(()) });
    }
    command.spawn()
}

/// Reads reports in a separate thread; the channel ends with the supervisor, or with the first line that is not a
/// report.
fn listen(output: ChildStdout) -> io::Result<Receiver<Report>> {
    let (sender, reports) = mpsc::channel();
    thread::Builder::new().name("supervisor".to_owned()).stack_size(128 << 10).spawn(move || {
        for line in BufReader::new(output).lines() {
            let Some(report) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { return };
            if sender.send(report).is_err() {
                return;
            }
        }
    })?;
    Ok(reports)
}

fn shown(program: &Path) -> String {
    program.display().to_string()
}

fn run_error(program: &str, source: io::Error) -> SystemError {
    SystemError::Run { program: program.to_owned(), source }
}
