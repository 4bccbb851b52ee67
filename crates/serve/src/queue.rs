//! Executes submissions one after the other, because measurements must not share a machine. Each is a child process, the
//! same program as on the command line, so that a run that crashes does not affect the server, and a run shares no thread
//! with it.

mod child;
pub mod machine;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(test)]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use pubmark_record::headline::Kind;
use pubmark_record::time::UtcTime;
use pubmark_runner::now;
use pubmark_runner::stream::StreamEvent;

use crate::library::holds_results;
use crate::problem::Problem;
use crate::store::{EVENTS_FILE, Entry, Failure, MESSAGES_FILE, State, Status, Store};
use crate::submission::keys::Keys;
use crate::tail::{Line, Tail};
use child::Running;
use machine::Machine;

/// Interval between two checks of a child process.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time from the request to end to the second request, which ends a child at once.
const ORDERLY: Duration = Duration::from_secs(30);
/// Maximum time from the second request to SIGKILL.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Maximum time from the end of a child to the end of what it started, before that is killed: a supervisor ends its system
/// in order.
const LEFT_BEHIND: Duration = if cfg!(test) { Duration::from_millis(200) } else { ORDERLY };
/// Exit code of an invalid run, and of a call that a lost node or relay ended early.
const INVALID: i32 = 5;
/// Exit code of a run whose results were not written, or not completely.
const NOT_WRITTEN: i32 = 7;
/// What the next submission waits for while another server executes a run.
const WAITS_FOR_OTHERS: &str = "the end of a run of another `pubmark serve` on this machine";
/// Number of last bytes of a child's messages that explain a failure without an error event.
const TAIL_BYTES: usize = 2_000;

/// The queue, shared by the thread that executes submissions and the threads that serve requests.
pub struct Queue {
    store: Arc<Store>,
    program: PathBuf,
    /// Notified when there may be work.
    wake: Condvar,
    idle: Mutex<()>,
    stop: AtomicBool,
    /// Locked while this server uses the machine for a measurement: for a run, or for a plan.
    ours: Mutex<()>,
    /// This server examines the machine for a request.
    examines: AtomicBool,
    /// The lock that all servers share.
    machine: Machine,
    /// Whether the next submission waits for the run of another server.
    waits_for_others: AtomicBool,
    /// Number of searches for the submission that waits.
    #[cfg(test)]
    searches: AtomicUsize,
}

/// The submission that waits for the run of another server on this machine, if there is one: the next one.
pub struct Waiting(Option<String>);

impl Waiting {
    /// What a submission waits for besides earlier submissions.
    pub fn reason(&self, entry: &Entry) -> Option<String> {
        let waits = self.0.as_ref() == Some(&entry.submitted.id);
        waits.then(|| WAITS_FOR_OTHERS.to_owned())
    }
}

/// Why the machine cannot be examined now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// This server or another executes a run.
    Run,
    /// This server examines it for another request.
    Examined,
}

impl Busy {
    /// The refusal of a request; beside a run with this message and hint.
    pub fn refusal(self, beside_a_run: &str, hint: &str) -> Problem {
        let (message, hint) = match self {
            Busy::Run => (beside_a_run, hint),
            Busy::Examined => ("this machine is being examined for another request", "try again when that has ended"),
        };
        Problem::new(StatusCode::CONFLICT, message).hint(hint)
    }
}

impl Queue {
    /// A queue for a store; `program` is the `pubmark` that executes runs on `machine`.
    pub fn new(store: Arc<Store>, program: PathBuf, machine: Machine) -> Queue {
        Queue {
            store,
            program,
            wake: Condvar::new(),
            idle: Mutex::new(()),
            stop: AtomicBool::new(false),
            ours: Mutex::new(()),
            examines: AtomicBool::new(false),
            machine,
            waits_for_others: AtomicBool::new(false),
            #[cfg(test)]
            searches: AtomicUsize::new(0),
        }
    }

    /// Wakes the executing thread because there is work.
    pub fn wake(&self) {
        self.wake.notify_all();
    }

    /// Requests a stop: the current run is stopped in an orderly way, the other submissions wait for the next start of the
    /// server.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Cancels a submission: a queued one does not start, a running one is requested to end.
    ///
    /// # Errors
    /// There is no such submission, or it is over.
    pub fn cancel(&self, id: &str) -> Result<Entry, Problem> {
        let changed = self.store.change(id, |status| {
            if status.state == State::Queued {
                status.state = State::Cancelled;
                status.ended_at = Some(time());
            }
        })?;
        let entry = changed.ok_or_else(|| Problem::not_found("submission", id))?;
        let entry = self.store.mark_cancelling(id).unwrap_or(entry);
        self.wake();
        Ok(entry)
    }

    /// The submission that waits for another server. All submissions are searched for it, so a list does this once.
    pub fn waiting(&self) -> Waiting {
        #[cfg(test)]
        self.searches.fetch_add(1, Ordering::Relaxed);
        if !self.waits_for_others.load(Ordering::Relaxed) {
            return Waiting(None);
        }
        let next = self.store.all().into_iter().find(|entry| !entry.status.state.is_over());
        Waiting(next.filter(|next| next.status.state == State::Queued).map(|next| next.submitted.id))
    }

    /// What one submission waits for besides earlier submissions.
    pub fn waits_for(&self, entry: &Entry) -> Option<String> {
        self.waiting().reason(entry)
    }

    /// Does work that must not overlap with a run; the next run waits for its end.
    ///
    /// # Errors
    /// This server or another uses the machine.
    pub fn between_runs<Value>(&self, work: impl FnOnce() -> Value) -> Result<Value, Busy> {
        let of_ours = || if self.examines.load(Ordering::Relaxed) { Busy::Examined } else { Busy::Run };
        let _held = self.try_ours().ok_or_else(of_ours)?;
        let _machine = self.machine.try_take().ok().flatten().ok_or(Busy::Run)?;
        self.examines.store(true, Ordering::Relaxed);
        let value = work();
        self.examines.store(false, Ordering::Relaxed);
        Ok(value)
    }

    /// The lock of this server; `None` while it uses the machine.
    fn try_ours(&self) -> Option<MutexGuard<'_, ()>> {
        match self.ours.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Executes queued submissions until [`Queue::stop`]. First ends the submissions that a previous server left running.
    pub fn carry_out(&self) {
        self.end_orphans();
        while !self.is_stopping() {
            let is_queued = |entry: &Entry| entry.status.state == State::Queued;
            let queued: Vec<Entry> = self.store.all().into_iter().filter(is_queued).collect();
            if queued.is_empty() {
                self.waits_for_others.store(false, Ordering::Relaxed);
            }
            // A submission whose start cannot be recorded waits, without delaying those behind it.
            if !queued.iter().any(|entry| self.carry_out_next(entry)) {
                self.rest();
            }
        }
    }

    /// Executes a submission, or waits for what else uses this machine. `false` if its start cannot be recorded: then the one
    /// behind it may begin.
    fn carry_out_next(&self, entry: &Entry) -> bool {
        // While this server examines the machine, it has the lock of all servers, and no other one is waited for.
        let Some(held) = self.try_ours() else {
            self.waits_for_others.store(false, Ordering::Relaxed);
            self.rest();
            return true;
        };
        // Work that panicked has ended, too.
        self.examines.store(false, Ordering::Relaxed);
        let machine = self.machine.try_take();
        self.waits_for_others.store(matches!(machine, Ok(None)), Ordering::Relaxed);
        match machine {
            Ok(Some(machine)) => return self.carry_out_one(entry, machine),
            Ok(None) => {
                drop(held);
                self.rest();
            }
            Err(error) => {
                drop(held);
                self.never_began(&entry.submitted.id, &Problem::internal(&error).body.chain);
            }
        }
        true
    }

    fn rest(&self) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The timeout is needed: a notification between the check and the wait would be missed.
        drop(self.wake.wait_timeout(idle, Duration::from_millis(200)));
    }

    /// Ends children of a server that died. The kernel has already requested them to end; results that they recorded are
    /// added to their submissions.
    fn end_orphans(&self) {
        let under_way = |entry: &Entry| matches!(entry.status.state, State::Running | State::Cancelling);
        for entry in self.store.all().into_iter().filter(under_way) {
            // A child that cannot be ended would disturb the next measurement, so nothing starts meanwhile.
            while let Err(error) = child::end_orphan(&self.store.folder(&entry.submitted.id), ORDERLY) {
                self.note_rest(&entry.submitted.id, "failed to end the run of a server that was killed", &error);
                if self.is_stopping() {
                    return;
                }
                self.rest();
            }
            self.close(&entry.submitted.id, None, State::Interrupted);
        }
    }

    /// Reports why nothing starts, unless the run has a failure of its own; if that cannot be written, it is written after the next
    /// check.
    fn note_rest(&self, id: &str, what: &str, error: &io::Error) {
        let chain = vec![what.to_owned(), error.to_string()];
        let hint = Some("end its processes, or restart the machine".to_owned());
        let _ = self.store.change(id, |status| {
            status.error.get_or_insert(Failure { chain, hint });
        });
    }

    /// Whether its start could be recorded. The caller has the lock of this server.
    fn carry_out_one(&self, entry: &Entry, machine: File) -> bool {
        let id = &entry.submitted.id;
        let begun = self.store.change(id, |status| {
            if status.state == State::Queued {
                status.state = State::Running;
                status.started_at = Some(time());
            }
        });
        let entry = match begun {
            Ok(Some(entry)) if entry.status.state == State::Running => entry,
            // Cancelled in the meantime.
            Ok(_) => return true,
            // On a full disk no run starts unless its start is recorded: it waits for space.
            Err(_) => return false,
        };
        let folder = self.store.folder(id);
        let words = words(&entry, &folder, self.store.runs());
        let at = in_its_folder(&entry).then_some(folder.as_path());
        let running = match Running::start(&self.program, &words, &folder, at, machine) {
            Ok(running) => running,
            Err(error) => {
                let chain = [format!("failed to start `{}`", self.program.display()), error.to_string()];
                self.never_began(id, &chain);
                return true;
            }
        };
        self.wait(id, &running);
        // What is requested from now on did not end the run.
        let asked = self.store.get(id).map(|entry| entry.status.state) == Some(State::Cancelling);
        let is_stopping = self.is_stopping();
        let (exit, rest) = running.finish(LEFT_BEHIND);
        let state = match exit {
            _ if asked => State::Cancelled,
            _ if is_stopping => State::Interrupted,
            // Exit codes of a run that was executed: its record has the details.
            Some(0 | 3 | 4 | INVALID | NOT_WRITTEN | 8) => State::Complete,
            Some(130) => State::Interrupted,
            _ => State::Failed,
        };
        self.close(id, exit, state);
        if let Err(error) = rest {
            self.note_rest(id, "failed to end what the run had started", &error);
        }
        true
    }

    /// Waits for the end of a child, and requests it if the submission is cancelled or the server stops.
    fn wait(&self, id: &str, running: &Running) {
        let mut asked: Option<(Instant, u32)> = None;
        let mut events = Tail::of(self.store.folder(id).join(EVENTS_FILE));
        let mut noted = Noted::default();
        loop {
            noted.read(&mut events);
            noted.write(&self.store, id);
            // If waiting is no longer possible, the process has ended.
            if running.has_ended().unwrap_or(true) {
                return;
            }
            let is_cancelled = self.store.get(id).is_some_and(|entry| entry.status.state == State::Cancelling);
            if is_cancelled || self.is_stopping() {
                asked = Some(ask(running, asked));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn never_began(&self, id: &str, chain: &[String]) {
        self.finish(id, |status| {
            status.state = State::Failed;
            status.error = Some(Failure { chain: chain.to_vec(), hint: None });
        });
    }

    /// Records how a submission ended, from the events of its child.
    fn close(&self, id: &str, exit: Option<i32>, state: State) {
        let folder = self.store.folder(id);
        let found = Reported::read(&folder.join(EVENTS_FILE));
        let kind = self.store.get(id).map(|entry| entry.submitted.kind);
        let is_there = |name: &String| self.store.runs().join(name).is_dir();
        let folders: Vec<String> = found.folders.into_iter().filter(is_there).collect();
        // Its results were not written, or not completely: without a record it has no outcome.
        let has_record = folders.iter().any(|name| holds_results(&self.store.runs().join(name)));
        // Nor is a run complete whose further repetitions were not made.
        let is_short = state == State::Complete && kind == Some(Kind::Run) && !found.is_last;
        // Nor is a call that failed before it had reported the end of what it began.
        let is_cut = state == State::Complete && found.failure.is_some() && (is_short || !found.has_ended);
        let state = match state {
            _ if exit == Some(NOT_WRITTEN) && (!has_record || is_short) => State::Failed,
            _ if exit == Some(INVALID) && is_cut => State::Failed,
            // It completed before it received the request to end.
            State::Cancelled | State::Interrupted if found.is_complete && has_record => State::Complete,
            state => state,
        };
        let error = found.failure.or_else(|| (state == State::Failed).then(|| unexplained(&folder, exit)));
        let error = error.map(|failure| match kind {
            Some(kind) => Keys::of(kind).tell_failure(failure),
            None => failure,
        });
        self.finish(id, |status| {
            status.state = state;
            status.exit_code = exit;
            status.folders = folders.clone();
            status.error = error.clone();
        });
    }

    /// Writes the final status; repeats this while the disk is full.
    fn finish(&self, id: &str, change: impl Fn(&mut Status)) {
        let ended = time();
        while self
            .store
            .change(id, |status| {
                change(status);
                status.ended_at = Some(ended.clone());
            })
            .is_err()
        {
            if self.is_stopping() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Folders that a running child created and that are not yet in the status. They are added to it, because nobody may delete
/// them during the run.
#[derive(Default)]
struct Noted {
    folders: Vec<String>,
}

impl Noted {
    /// Reads which folders the child created. Events that cannot be read now are read later, at the latest when the child
    /// has ended.
    fn read(&mut self, events: &mut Tail) {
        let begun = |line: Line| match serde_json::from_str(&line.text) {
            Ok(StreamEvent::Begins(begins)) => folder_name(&begins.folder),
            _ => None,
        };
        self.folders.extend(events.lines().unwrap_or_default().into_iter().filter_map(begun));
    }

    /// Writes the folders to the status; if the disk is full, the next call tries again.
    fn write(&mut self, store: &Store, id: &str) {
        if self.folders.is_empty() {
            return;
        }
        let written = store.change(id, |status| {
            status.folders.extend(self.folders.iter().cloned());
        });
        if written.is_ok() {
            self.folders.clear();
        }
    }
}

/// Requests a child to end: once, again after a time, and then with SIGKILL.
fn ask(running: &Running, asked: Option<(Instant, u32)>) -> (Instant, u32) {
    match asked {
        None => running.signal(libc::SIGINT),
        Some((since, 1)) if since.elapsed() >= ORDERLY => running.signal(libc::SIGTERM),
        Some((since, 2)) if since.elapsed() >= AT_ONCE => running.signal(libc::SIGKILL),
        Some(still) => return still,
    }
    (Instant::now(), asked.map_or(1, |(_, times)| times + 1))
}

/// Whether the child's working directory is the submission's folder. The record of a search contains the workload name as
/// given, and only the name of the file is useful to a reader.
fn in_its_folder(entry: &Entry) -> bool {
    entry.submitted.kind == Kind::Capacity && entry.submitted.file.is_some()
}

/// The arguments after the program's name.
fn words(entry: &Entry, folder: &Path, runs: &Path) -> Vec<std::ffi::OsString> {
    let submitted = &entry.submitted;
    let mut words = vec![submitted.verb.clone().into()];
    words.extend(submitted.file.as_ref().map(|file| match in_its_folder(entry) {
        true => file.into(),
        false => folder.join(file).into_os_string(),
    }));
    words.extend(submitted.options.iter().map(Into::into));
    words.extend(["--out".into(), runs.as_os_str().to_owned()]);
    words.extend(["--events", "-"].map(Into::into));
    // A command that a reader of the record can type: the actual arguments contain files of the server.
    if !submitted.command.is_empty() {
        let command = serde_json::to_string(&submitted.command).expect("words are plain JSON");
        words.push(format!("--recorded-command={command}").into());
    }
    words
}

/// What a child's events report: folders, failures and completion.
#[derive(Default)]
struct Reported {
    folders: Vec<String>,
    failure: Option<Failure>,
    /// Whether the repetition that began last is the last one.
    is_last: bool,
    /// Whether what began last has ended.
    has_ended: bool,
    /// Whether the child completed and left nothing out.
    is_complete: bool,
}

impl Reported {
    /// Reads the events in pieces: an experiment of several days writes more than should be in memory.
    fn read(path: &Path) -> Reported {
        let mut reported = Reported::default();
        // The last line of a child that was killed may be truncated: it is ignored.
        let read = Tail::of(path.to_owned()).each_event(|event| reported.add(event));
        if let Err(error) = read {
            let chain = vec!["failed to read the events of the run".to_owned(), error.to_string()];
            reported.failure = Some(Failure { chain, hint: None });
        }
        reported
    }

    fn add(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Begins(begins) => {
                self.folders.extend(folder_name(&begins.folder));
                self.is_last = begins.repetition >= begins.repetitions;
                self.has_ended = false;
            }
            StreamEvent::Ends(ends) => {
                self.has_ended = true;
                self.is_complete = self.is_last && ends.status == "complete";
            }
            StreamEvent::Failed(failed) => {
                self.failure = Some(Failure { chain: failed.chain, hint: failed.hint });
                self.is_complete = false;
            }
            _ => {}
        }
    }
}

/// Name of a results folder.
fn folder_name(path: &str) -> Option<String> {
    Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The failure of a child that reported no reason.
fn unexplained(folder: &Path, exit: Option<i32>) -> Failure {
    let how = match exit {
        Some(code) => format!("the process ended with {code}"),
        None => "a signal ended the process".to_owned(),
    };
    let messages = std::fs::read(folder.join(MESSAGES_FILE)).unwrap_or_default();
    let tail = String::from_utf8_lossy(&messages[messages.len().saturating_sub(TAIL_BYTES)..]).trim().to_owned();
    let chain = [how, tail].into_iter().filter(|words| !words.is_empty()).collect();
    Failure { chain, hint: None }
}

fn time() -> String {
    UtcTime::from_system_time(now()).rfc3339()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
