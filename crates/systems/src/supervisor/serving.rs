//! The supervisor's side: it executes requests, and removes everything that it holds when the requests end.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::supervisor::NAME;
use crate::supervisor::messages::{Holdings, Report, Request, Work};
use crate::supervisor::starting::NotStarted;
use crate::supervisor::{releasing, starting};
use crate::tree;

/// Longest time to kill all that is left: only a process stuck in the kernel takes longer.
const KILL_WITHIN: Duration = Duration::from_secs(10);
/// Longest run of one clean-up command.
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(15);
/// Interval at which killed processes are checked.
const LOOK: Duration = Duration::from_millis(2);
/// Signals that a terminal or a service manager sends to all it knows; the supervisor ends after its owner, not before.
const OUTLIVED: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

enum Event {
    Asked(Box<Request>),
    /// A child has ended and waits to be looked at.
    Child,
    /// The requests have ended.
    Closed,
}

/// Serves until the requests end, and then removes everything that the supervisor holds.
pub fn serve() -> io::Result<()> {
    let events = listen()?;
    let mut supervisor = Supervisor::new(events.looked);
    report(&Report::Ready);
    loop {
        match supervisor.next(&events.queue) {
            Some(Event::Asked(request)) => supervisor.answer(*request),
            Some(Event::Child) => supervisor.look_at_children(),
            // It did not end in time.
            None => supervisor.kill_program(),
            Some(Event::Closed) => break,
        }
    }
    supervisor.take_back();
    Ok(())
}

struct Events {
    queue: Receiver<Event>,
    /// Told when ended children have been looked at, or there is a new one.
    looked: Sender<()>,
}

fn listen() -> io::Result<Events> {
    become_root_of_tree()?;
    let (sender, queue) = mpsc::channel();
    let (looked, go_on) = mpsc::channel();
    let requests = sender.clone();
    thread::Builder::new().stack_size(256 << 10).spawn(move || read_requests(&requests))?;
    thread::Builder::new().stack_size(64 << 10).spawn(move || watch_children(&sender, &go_on))?;
    Ok(Events { queue, looked })
}

/// Processes that lose their parent become our children, whatever session they made for themselves.
fn become_root_of_tree() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: plain calls with valid arguments; the handler does nothing. A handler, not SIG_IGN: programs started from
    // here begin with the default action (execve(2)).
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
        // What cannot be read or understood can no longer be served: the same as the end.
        let Some(request) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        if events.send(Event::Asked(Box::new(request))).is_err() {
            return;
        }
    }
    // The receiver lives until it has heard this.
    let _ = events.send(Event::Closed);
}

/// Says that a child has ended, and leaves taking its status to the main thread: until then its id is not given away.
fn watch_children(events: &Sender<Event>, go_on: &Receiver<()>) {
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
        // After the look at it; or, without any child, when there is one.
        if go_on.recv().is_err() {
            return;
        }
    }
}

struct Supervisor {
    holdings: Holdings,
    looked: Sender<()>,
    /// The program that runs.
    program: Option<u32>,
    /// When it is killed.
    stop_at: Option<Instant>,
    killed: bool,
    /// Anything was ever started, so that there is something to clean up.
    used: bool,
}

impl Supervisor {
    fn new(looked: Sender<()>) -> Supervisor {
        Supervisor { holdings: Holdings::default(), looked, program: None, stop_at: None, killed: false, used: false }
    }

    /// The next event; `None` if the program's time to end is over before.
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
                self.go_on();
            }
            Err(NotStarted { reason, errno, program }) => report(&Report::Failed { reason, errno, program }),
        }
    }

    fn request_end(&mut self, within: Duration) {
        // One that has ended meanwhile was reported already.
        if let Some(pid) = self.program {
            // SAFETY: plain system call; its status was not taken, so the group is still this program's.
            unsafe { libc::kill(-(pid as libc::pid_t), libc::SIGTERM) };
            self.stop_at = Some(Instant::now() + within);
        }
    }

    /// Signals all descendants, until a check finds no new process: a program may start others meanwhile.
    fn signal(&self, signal: libc::c_int) {
        let deadline = Instant::now() + KILL_WITHIN;
        let mut told = BTreeSet::new();
        loop {
            let mut all = tree::below(std::process::id());
            all.extend(releasing::members(&self.holdings.cgroups));
            let fresh: Vec<u32> = all.into_iter().filter(|pid| told.insert(*pid)).collect();
            if fresh.is_empty() || Instant::now() >= deadline {
                report(&Report::Signalled { processes: told.len() as u32 });
                return;
            }
            releasing::signal_all(&fresh, signal);
        }
    }

    fn kill_program(&mut self) {
        self.killed = true;
        let status = self.kill_everything();
        self.note_end(status);
    }

    fn look_at_children(&mut self) {
        if let Some(status) = self.take_statuses() {
            // What it left behind goes with it.
            self.kill_everything();
            self.note_end(Some(status));
        }
        self.go_on();
    }

    fn note_end(&mut self, status: Option<i32>) {
        self.stop_at = None;
        if let Some(status) = status {
            report(&Report::Ended { status, killed: self.killed });
        }
    }

    /// Takes the status of every child that has ended; gives the program's, if it is among them.
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

    /// Kills all that came from here, and gives the program's status if it was among them.
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
            thread::sleep(LOOK);
        }
    }

    fn take_back(&mut self) {
        self.kill_everything();
        if self.used {
            for work in std::mem::take(&mut self.holdings.clean_up) {
                self.run(&work, CLEAN_UP_WITHIN);
            }
        }
        releasing::remove(&self.holdings.cgroups, &self.holdings.directories);
    }

    /// Runs a command to its end; kills it and all it started after that time.
    fn run(&mut self, work: &Work, within: Duration) {
        // There is no process to report a failure to; most clean-up commands find nothing to do.
        let Ok(pid) = starting::start(work) else { return };
        self.program = Some(pid);
        let deadline = Instant::now() + within;
        while self.take_statuses().is_none() && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        self.kill_everything();
        self.program = None;
    }

    fn go_on(&self) {
        // The thread that watches runs as long as this process.
        let _ = self.looked.send(());
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
