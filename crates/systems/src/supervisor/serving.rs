//! The supervisor's side: it executes requests, and removes all its holdings when the requests end.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;
use crate::supervisor::NAME;
use crate::supervisor::messages::{Holdings, Report, Request, Work};
use crate::supervisor::starting::StartFailure;
use crate::supervisor::{releasing, starting};
use crate::tree;

/// Longest time to kill all remaining processes: only a process that is stuck in the kernel takes longer.
const KILL_WITHIN: Duration = Duration::from_secs(10);
/// Longest run of one clean-up command.
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(15);
/// Interval at which killed processes are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Signals that a terminal or a service manager sends to all processes. The supervisor ignores them, because it must
/// end after its owner.
const OUTLIVED: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

enum Event {
    Asked(Box<Request>),
    /// A child has ended, and its status has not been read yet.
    Child,
    /// The requests have ended.
    Closed,
}

/// Serves until the requests end, and then removes all holdings of the supervisor.
pub fn serve() -> io::Result<()> {
    let events = listen()?;
    let mut supervisor = Supervisor::new(events.checked);
    report(&Report::Ready);
    loop {
        match supervisor.next(&events.queue) {
            Some(Event::Asked(request)) => supervisor.answer(*request),
            Some(Event::Child) => supervisor.check_children(),
            // The program did not end in time.
            None => supervisor.kill_program(),
            Some(Event::Closed) => break,
        }
    }
    supervisor.clean_up_now();
    Ok(())
}

struct Events {
    queue: Receiver<Event>,
    /// Notifies the thread that watches children: the ended ones were processed, or there is a new one.
    checked: Sender<()>,
}

fn listen() -> io::Result<Events> {
    become_root_of_tree()?;
    let (sender, queue) = mpsc::channel();
    let (checked, resume) = mpsc::channel();
    let requests = sender.clone();
    thread::Builder::new().stack_size(256 << 10).spawn(move || read_requests(&requests))?;
    thread::Builder::new().stack_size(64 << 10).spawn(move || watch_children(&sender, &resume))?;
    Ok(Events { queue, checked })
}

/// Makes this process the parent of orphaned descendants, even if they have their own session.
fn become_root_of_tree() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: plain calls with valid arguments; the handler does nothing. A handler is used instead of SIG_IGN, because
    // it is reset in programs that are started from here (execve(2)).
    unsafe {
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) == -1 {
            return Err(io::Error::last_os_error());
        }
        for signal in OUTLIVED {
            libc::signal(signal, nothing as *const () as libc::sighandler_t);
        }
    }
    Ok(())
}

fn read_requests(events: &Sender<Event>) {
    for line in io::stdin().lock().lines() {
        // A request that cannot be read or parsed is handled like the end of the requests.
        let Some(request) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        if events.send(Event::Asked(Box::new(request))).is_err() {
            return;
        }
    }
    // The receiver exists until it has received this.
    let _ = events.send(Event::Closed);
}

/// Reports that a child has ended. The main thread reads its status: until then its id cannot be used for another
/// process.
fn watch_children(events: &Sender<Event>, resume: &Receiver<()>) {
    loop {
        // SAFETY: an all-zero siginfo is valid, and the call fills it.
        let found = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if found == 0 {
            if events.send(Event::Child).is_err() {
                return;
            }
        } else if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
            continue;
        }
        // Continues after the ended children were processed; if there was no child, when there is one.
        if resume.recv().is_err() {
            return;
        }
    }
}

struct Supervisor {
    holdings: Holdings,
    checked: Sender<()>,
    /// Process id of the running program.
    program: Option<u32>,
    /// Time at which the program is killed.
    stop_at: Option<Instant>,
    killed: bool,
    /// A program was started at some time, so there may be something to clean up.
    used: bool,
}

impl Supervisor {
    fn new(checked: Sender<()>) -> Supervisor {
        Supervisor { holdings: Holdings::default(), checked, program: None, stop_at: None, killed: false, used: false }
    }

    /// The next event; `None` if the program's time to end is over before it.
    fn next(&self, events: &Receiver<Event>) -> Option<Event> {
        let Some(stop_at) = self.stop_at else { return Some(events.recv().unwrap_or(Event::Closed)) };
        match events.recv_timeout(stop_at.saturating_duration_since(Instant::now())) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Closed),
        }
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Hold(more) => self.holdings.extend(more),
            Request::Start(work) => self.start(&work),
            Request::Kill => {
                if self.program.is_some() {
                    self.kill_program();
                }
            }
            Request::Pause { pause } => self.signal(if pause { libc::SIGSTOP } else { libc::SIGCONT }),
            Request::Stop { within_ms } => self.request_end(Duration::from_millis(within_ms)),
        }
    }

    fn start(&mut self, work: &Work) {
        if self.program.is_some() {
            report(&Report::Failed {
                reason: "another program is supervised already".to_owned(),
                errno: None,
                program: false,
            });
            return;
        }
        self.used = true;
        self.killed = false;
        match starting::start(work) {
            Ok(pid) => {
                self.program = Some(pid);
                report(&Report::Started { pid });
                self.resume();
            }
            Err(StartFailure { reason, errno, program }) => report(&Report::Failed { reason, errno, program }),
        }
    }

    fn request_end(&mut self, within: Duration) {
        // A program that has ended meanwhile was reported already.
        if let Some(pid) = self.program {
            // SAFETY: plain system call; the program's status was not read, so the group is still its group.
            unsafe { libc::kill(-(pid as libc::pid_t), libc::SIGTERM) };
            self.stop_at = Some(Instant::now() + within);
        }
    }

    /// Signals all descendants, until a check finds no new process: a program may start others meanwhile.
    fn signal(&self, signal: libc::c_int) {
        let deadline = Instant::now() + KILL_WITHIN;
        let mut signalled = BTreeSet::new();
        let began_ns = clock::monotonic_ns();
        // All processes that the last check finds were signalled by then; the check itself takes long on a busy machine.
        let mut signalled_at_ns = began_ns;
        loop {
            let mut all = tree::below(std::process::id());
            all.extend(releasing::members(&self.holdings.cgroups));
            let fresh: Vec<u32> = all.into_iter().filter(|pid| signalled.insert(*pid)).collect();
            if fresh.is_empty() || Instant::now() >= deadline {
                let at_ns = if signal == libc::SIGCONT { began_ns } else { signalled_at_ns };
                report(&Report::Signalled { processes: signalled.len() as u32, at_ns });
                return;
            }
            releasing::signal_all(&fresh, signal);
            signalled_at_ns = clock::monotonic_ns();
        }
    }

    fn kill_program(&mut self) {
        self.killed = true;
        let status = self.kill_everything();
        self.note_end(status);
    }

    fn check_children(&mut self) {
        if let Some(status) = self.take_statuses() {
            // The processes that the program left are killed, too.
            self.kill_everything();
            self.note_end(Some(status));
        }
        self.resume();
    }

    fn note_end(&mut self, status: Option<i32>) {
        self.stop_at = None;
        if let Some(status) = status {
            report(&Report::Ended { status, killed: self.killed });
        }
    }

    /// Reads the status of every child that has ended; returns the program's status if it has ended.
    fn take_statuses(&mut self) -> Option<i32> {
        let mut found = None;
        loop {
            let mut status = 0;
            // SAFETY: the status is written to valid memory.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
            if pid <= 0 {
                return found;
            }
            if self.program == Some(pid as u32) {
                self.program = None;
                found = Some(status);
            }
        }
    }

    /// Kills all descendants, and returns the program's status if it was among them.
    fn kill_everything(&mut self) -> Option<i32> {
        let deadline = Instant::now() + KILL_WITHIN;
        releasing::kill_members(&self.holdings.cgroups);
        let mut found = None;
        loop {
            found = found.or(self.take_statuses());
            let mut left = tree::below(std::process::id());
            left.extend(releasing::members(&self.holdings.cgroups));
            if left.is_empty() || Instant::now() >= deadline {
                return found;
            }
            releasing::kill_all(&left);
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn clean_up_now(&mut self) {
        self.kill_everything();
        if self.used {
            for work in std::mem::take(&mut self.holdings.clean_up) {
                self.run(&work, CLEAN_UP_WITHIN);
            }
        }
        releasing::remove(&self.holdings.cgroups, &self.holdings.directories);
    }

    /// Runs a command to its end; after `within`, kills it and all processes that it started.
    fn run(&mut self, work: &Work, within: Duration) {
        // There is no process to report a failure to; most clean-up commands find nothing to do.
        let Ok(pid) = starting::start(work) else { return };
        self.program = Some(pid);
        let deadline = Instant::now() + within;
        while self.take_statuses().is_none() && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        self.kill_everything();
        self.program = None;
    }

    fn resume(&self) {
        // The thread that watches children runs as long as this process.
        let _ = self.checked.send(());
    }
}

/// Sends a report to the parent process. If the parent has ended, the requests end too, and that is handled there.
fn report(report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
