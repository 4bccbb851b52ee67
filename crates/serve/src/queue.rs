//! Carries submissions out, one after the other: measurements do not share a machine. Each is a child process, the same program as
//! on the command line, so that a run that crashes takes nothing with it and shares no thread with the server.

mod child;
pub mod machine;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use pubmark_record::headline::Kind;
use pubmark_record::time::UtcTime;
use pubmark_runner::now;
use pubmark_runner::stream::StreamEvent;

use crate::library::holds_results;
use crate::problem::Problem;
use crate::store::{EVENTS_FILE, Entry, Failure, MESSAGES_FILE, State, Status, Store};
use crate::tail::{Line, Tail};
use child::Running;
use machine::Machine;

/// Time between two looks at a child.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time from the request to end to the second one, which ends a child at once.
const ORDERLY: Duration = Duration::from_secs(30);
/// Longest time from the second request to the kill.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Exit code of a run whose results were not, or not all, written.
const NOT_WRITTEN: i32 = 7;
/// What the next submission waits for while another server measures.
const WAITS_FOR_OTHERS: &str = "the end of a run of another `pubmark serve` on this machine";
/// Last bytes of a child's messages that explain a failure without words.
const TAIL_BYTES: usize = 2_000;

/// The queue, shared by the thread that carries it out and those that answer.
pub struct Queue {
    store: Arc<Store>,
    program: PathBuf,
    /// Notified when there may be something to do.
    wake: Condvar,
    idle: Mutex<()>,
    stop: AtomicBool,
    /// Locked while the machine is measured with by this server: by a run, or for a plan.
    ours: Mutex<()>,
    /// The lock of all servers.
    machine: Machine,
    /// Does the next one wait for the run of another server?
    waits_for_others: AtomicBool,
}

impl Queue {
    /// A queue over a store; `program` is the `pubmark` that makes runs on `machine`.
    pub fn new(store: Arc<Store>, program: PathBuf, machine: Machine) -> Queue {
        Queue {
            store,
            program,
            wake: Condvar::new(),
            idle: Mutex::new(()),
            stop: AtomicBool::new(false),
            ours: Mutex::new(()),
            machine,
            waits_for_others: AtomicBool::new(false),
        }
    }

    /// There is something to do.
    pub fn wake(&self) {
        self.wake.notify_all();
    }

    /// Asks for an end: the run under way is stopped in order, the others wait for the next server.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Cancels a submission: one that waits will not begin, one that runs is asked to end.
    ///
    /// # Errors
    /// There is none, or it is over.
    pub fn cancel(&self, id: &str) -> Result<Entry, Problem> {
        let changed = self.store.change(id, |status| match status.state {
            State::Queued => {
                status.state = State::Cancelled;
                status.ended_at = Some(time());
            }
            State::Running => status.state = State::Cancelling,
            _ => {}
        })?;
        let entry = changed.ok_or_else(|| Problem::not_found("submission", id))?;
        self.wake();
        Ok(entry)
    }

    /// What a submission waits for besides those before it: the next one, for the run of another server on this machine.
    pub fn waits_for(&self, entry: &Entry) -> Option<String> {
        let is_next = || {
            let next = self.store.all().into_iter().find(|other| !other.status.state.is_over());
            next.is_some_and(|next| next.submitted.id == entry.submitted.id)
        };
        let waits = self.waits_for_others.load(Ordering::Relaxed) && entry.status.state == State::Queued && is_next();
        waits.then(|| WAITS_FOR_OTHERS.to_owned())
    }

    /// Does something that no run may go on beside; the next one waits for its end. `None` while a run goes on, of this server or another.
    pub fn between_runs<Value>(&self, work: impl FnOnce() -> Value) -> Option<Value> {
        let _held = match self.ours.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let _machine = self.machine.try_take().ok().flatten()?;
        Some(work())
    }

    /// Carries out what waits, until [`Queue::stop`]. First what a server before left under way is brought to an end.
    pub fn carry_out(&self) {
        self.end_orphans();
        while !self.is_stopping() {
            let next = self.store.all().into_iter().find(|entry| entry.status.state == State::Queued);
            match next {
                Some(entry) => self.carry_out_next(&entry),
                None => {
                    self.waits_for_others.store(false, Ordering::Relaxed);
                    self.rest();
                }
            }
        }
    }

    /// Carries one out as soon as no other server measures on this machine.
    fn carry_out_next(&self, entry: &Entry) {
        let machine = self.machine.try_take();
        self.waits_for_others.store(matches!(machine, Ok(None)), Ordering::Relaxed);
        match machine {
            Ok(Some(machine)) => self.carry_out_one(entry, machine),
            Ok(None) => self.rest(),
            Err(error) => self.never_began(&entry.submitted.id, &Problem::internal(&error).body.chain),
        }
    }

    fn rest(&self) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // It wakes by itself as well: a call between the look and the wait would be missed.
        drop(self.wake.wait_timeout(idle, Duration::from_millis(200)));
    }

    /// The kernel asked children of a server that died to end; what they recorded is theirs.
    fn end_orphans(&self) {
        let under_way = |entry: &Entry| matches!(entry.status.state, State::Running | State::Cancelling);
        for entry in self.store.all().into_iter().filter(under_way) {
            // One that cannot be ended disturbs what is measured beside it: nothing begins meanwhile.
            while let Err(error) = child::end_orphan(&self.store.folder(&entry.submitted.id), ORDERLY) {
                self.note_orphan(&entry.submitted.id, &error);
                if self.is_stopping() {
                    return;
                }
                self.rest();
            }
            self.close(&entry.submitted.id, None, State::Interrupted);
        }
    }

    /// Says why nothing begins; if that cannot be written, with the next look.
    fn note_orphan(&self, id: &str, error: &io::Error) {
        let chain = vec!["failed to end the run of a server that was killed".to_owned(), error.to_string()];
        let hint = Some("end its processes, or restart the machine".to_owned());
        let _ = self.store.change(id, |status| status.error = Some(Failure { chain, hint }));
    }

    fn carry_out_one(&self, entry: &Entry, machine: File) {
        let _held = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        let id = &entry.submitted.id;
        let begun = self.store.change(id, |status| {
            if status.state == State::Queued {
                status.state = State::Running;
                status.started_at = Some(time());
            }
        });
        let entry = match begun {
            Ok(Some(entry)) if entry.status.state == State::Running => entry,
            // Cancelled meanwhile.
            Ok(_) => return,
            // On a disk that is full nothing is begun whose beginning is not written: it waits for space.
            Err(_) => return self.rest(),
        };
        let folder = self.store.folder(id);
        let words = words(&entry, &folder, self.store.runs());
        let at = in_its_folder(&entry).then_some(folder.as_path());
        let mut running = match Running::start(&self.program, &words, &folder, at, machine) {
            Ok(running) => running,
            Err(error) => {
                let chain = [format!("failed to start `{}`", self.program.display()), error.to_string()];
                return self.never_began(id, &chain);
            }
        };
        let exit = self.wait(id, &mut running);
        let asked = self.store.get(id).map(|entry| entry.status.state) == Some(State::Cancelling);
        let state = match exit {
            _ if asked => State::Cancelled,
            _ if self.is_stopping() => State::Interrupted,
            // Codes of a run that was made: its record says the rest.
            Some(0 | 3 | 4 | 5 | NOT_WRITTEN | 8) => State::Complete,
            Some(130) => State::Interrupted,
            _ => State::Failed,
        };
        self.close(id, exit, state);
    }

    /// Waits for the end of a child, and asks for it where that is wanted. `None` if a signal ended it.
    fn wait(&self, id: &str, running: &mut Running) -> Option<i32> {
        let mut asked: Option<(Instant, u32)> = None;
        let mut events = Tail::of(self.store.folder(id).join(EVENTS_FILE));
        let mut noted = Noted::default();
        loop {
            noted.read(&mut events);
            noted.write(&self.store, id);
            match running.ended() {
                Ok(None) => {}
                Ok(Some(exit)) => return exit,
                // It is no child of ours any more: it has ended.
                Err(_) => return None,
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

    /// Writes how a submission ended, by what its child wrote.
    fn close(&self, id: &str, exit: Option<i32>, state: State) {
        let folder = self.store.folder(id);
        let found = Reported::read(&folder.join(EVENTS_FILE));
        let error =
            (state == State::Failed).then(|| found.failure.clone().unwrap_or_else(|| unexplained(&folder, exit)));
        let error = error.or(found.failure);
        let is_there = |name: &String| self.store.runs().join(name).is_dir();
        let folders: Vec<String> = found.folders.into_iter().filter(is_there).collect();
        // Its results were not written, or not all: without a record it came to no outcome.
        let has_record = folders.iter().any(|name| holds_results(&self.store.runs().join(name)));
        let state = match state {
            _ if exit == Some(NOT_WRITTEN) && !has_record => State::Failed,
            // It was over before the request to end reached it.
            State::Cancelled | State::Interrupted if found.is_complete && has_record => State::Complete,
            state => state,
        };
        self.finish(id, |status| {
            status.state = state;
            status.exit_code = exit;
            status.folders = folders.clone();
            status.error = error.clone();
        });
    }

    /// Writes it, again and again while the disk is full.
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

/// Folders that a child under way began and that are not written yet. They are: nobody may delete them meanwhile.
#[derive(Default)]
struct Noted {
    folders: Vec<String>,
}

impl Noted {
    /// Reads which it began. Events that cannot be read now are read later, at the latest when it has ended.
    fn read(&mut self, events: &mut Tail) {
        let begun = |line: Line| match serde_json::from_str(&line.text) {
            Ok(StreamEvent::Begins(begins)) => folder_name(&begins.folder),
            _ => None,
        };
        self.folders.extend(events.lines().unwrap_or_default().into_iter().filter_map(begun));
    }

    /// Writes it; on a disk that is full again with the next call.
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

/// Asks a child to end: once, again after a while, and then the kernel.
fn ask(running: &Running, asked: Option<(Instant, u32)>) -> (Instant, u32) {
    match asked {
        None => running.signal(libc::SIGINT),
        Some((since, 1)) if since.elapsed() >= ORDERLY => running.signal(libc::SIGTERM),
        Some((since, 2)) if since.elapsed() >= AT_ONCE => running.signal(libc::SIGKILL),
        Some(still) => return still,
    }
    (Instant::now(), asked.map_or(1, |(_, times)| times + 1))
}

/// Is the child's working directory the submission's folder? The record of a search names its workload as it was given: the name of the
/// file alone is what a reader can use.
fn in_its_folder(entry: &Entry) -> bool {
    entry.submitted.kind == Kind::Capacity && entry.submitted.file.is_some()
}

/// The words behind the program's name.
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
    // What a reader of the record can type: these words lead to files of the server.
    if !submitted.command.is_empty() {
        let command = serde_json::to_string(&submitted.command).expect("words are plain JSON");
        words.push(format!("--recorded-command={command}").into());
    }
    words
}

/// What a child wrote of folders, failures and its end.
#[derive(Default)]
struct Reported {
    folders: Vec<String>,
    failure: Option<Failure>,
    /// Is the repetition that began last the last one?
    is_last: bool,
    /// Did it come to its end, with nothing left out?
    is_complete: bool,
}

impl Reported {
    /// Reads it piece by piece: an experiment of days writes more than memory should hold.
    fn read(path: &Path) -> Reported {
        let mut reported = Reported::default();
        // The last line of a child that was killed may be cut: it counts for nothing.
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
            }
            StreamEvent::Ends(ends) => self.is_complete = self.is_last && ends.status == "complete",
            StreamEvent::Failed(failed) => {
                self.failure = Some(Failure { chain: failed.chain, hint: failed.hint });
                self.is_complete = false;
            }
            _ => {}
        }
    }
}

/// Name of a folder of results.
fn folder_name(path: &str) -> Option<String> {
    Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The end of a child that did not say why.
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
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;
    use pubmark_runner::Host;

    use super::*;
    use crate::allow::Allow;
    use crate::submission::Submission;

    /// A machine of its own.
    fn machine(place: &Path) -> Machine {
        let folder = place.join("session");
        std::fs::create_dir_all(&folder).unwrap();
        Machine::with_session(folder)
    }

    fn queue(place: &Path, store: &Arc<Store>, program: PathBuf) -> Queue {
        Queue::new(Arc::clone(store), program, machine(place))
    }

    #[test]
    fn a_run_of_another_server_is_waited_for_and_that_is_said() {
        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
        let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
        let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
        let queue = queue(place.path(), &store, program(place.path(), "exit 0"));
        let state = || store.get(&id).unwrap().status.state;
        let other = machine(place.path()).try_take().unwrap().unwrap();
        queue.carry_out_next(&store.get(&id).unwrap());
        assert!(queue.waits_for(&store.get(&id).unwrap()).is_some());
        assert!(queue.between_runs(|| ()).is_none(), "nor is the machine measured beside it");
        drop(other);
        queue.carry_out_next(&store.get(&id).unwrap());
        assert!(state().is_over() && !queue.waits_for_others.load(Ordering::Relaxed));
        assert!(queue.between_runs(|| ()).is_some());
    }

    /// How a submission ends whose program writes these events and ends with this code.
    fn ends(events: &str, code: i32, has_record: bool) -> State {
        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
        let program = program(place.path(), &format!("printf '%s\\n' '{events}'\nexit {code}"));
        let folder = RunFolder::at(&store.runs().join("one")).unwrap();
        if has_record {
            folder.write_record(&sample::record()).unwrap();
        }
        let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
        let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
        let queue = queue(place.path(), &store, program);
        let entry = store.get(&id).unwrap();
        queue.carry_out_next(&entry);
        let ended = store.get(&id).unwrap().status;
        assert_eq!(ended.folders, ["one"], "{ended:?}");
        // A submission that is over is not begun again.
        queue.carry_out_next(&entry);
        assert_eq!(store.get(&id).unwrap().status, ended);
        ended.state
    }

    /// How a submission ends that is cancelled when its program has written these events.
    fn ends_cancelled(events: &str, then: &str) -> State {
        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
        // The signal comes when the last event is written, so that all of them are read.
        let text = format!("trap '{then}' INT\nprintf '%s\\n' '{events}'\nwhile :; do sleep 0.02; done");
        let program = program(place.path(), &text);
        RunFolder::at(&store.runs().join("one")).unwrap().write_record(&sample::record()).unwrap();
        let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
        let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
        let queue = queue(place.path(), &store, program);
        let entry = store.get(&id).unwrap();
        std::thread::scope(|scope| {
            let carried = scope.spawn(|| queue.carry_out_next(&entry));
            while store.get(&id).unwrap().status.folders.is_empty() {
                assert!(!carried.is_finished(), "it ended before it was cancelled");
                std::thread::sleep(LOOK);
            }
            queue.cancel(&id).unwrap();
        });
        store.get(&id).unwrap().status.state
    }

    /// Writes a program that is called like `pubmark`.
    fn program(place: &Path, text: &str) -> PathBuf {
        let program = place.join("program");
        std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn a_run_whose_server_was_killed_before_it_noted_anything_ends_before_the_next_one_begins() {
        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
        let log = place.path().join("log");
        // The first one takes a second to end when it is asked to; the kernel asks when the thread that started it is gone.
        let written = |words: &str| format!("echo {words} >> {}", log.display());
        let text = format!(
            "{}\nif [ ! -e {2} ]; then\n  trap 'sleep 1; {1}; exit 130' TERM\n  touch {2}\n  while :; do sleep 0.02; done\nfi\n{1}",
            written("begins"),
            written("ends"),
            place.path().join("orphan").display()
        );
        let program = program(place.path(), &text);
        let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
        let add = || store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
        let ids = [add(), add()];
        store.change(&ids[0], |status| status.state = State::Running).unwrap();
        std::thread::scope(|scope| {
            let started = || {
                let machine = machine(place.path()).try_take().unwrap().unwrap();
                Running::start(&program, &[], &store.folder(&ids[0]), None, machine).unwrap();
                while !place.path().join("orphan").exists() {
                    std::thread::sleep(LOOK);
                }
            };
            scope.spawn(started);
        });
        let queue = queue(place.path(), &store, program);
        std::thread::scope(|scope| {
            scope.spawn(|| queue.carry_out());
            while !ids.iter().all(|id| store.get(id).unwrap().status.state.is_over()) {
                std::thread::sleep(LOOK);
            }
            queue.stop();
        });
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "begins\nends\nbegins\nends\n");
        assert_eq!(store.get(&ids[0]).unwrap().status.state, State::Interrupted);
    }

    #[test]
    fn one_that_was_over_before_it_could_be_cancelled_is_complete() {
        let begins = |repetitions: u32| {
            format!(
                r#"{{"event":"begins","t_s":0.0,"stream_version":1,"folder":"one","name":"hello","repetition":1,"repetitions":{repetitions},"warmup_s":0.0,"duration_s":1.0}}"#
            )
        };
        let ended = |status: &str| {
            format!(r#"{{"event":"ends","t_s":1.0,"folder":"one","status":"{status}","verdict":"valid"}}"#)
        };
        let whole = format!("{}\n{}", begins(1), ended("complete"));
        assert_eq!(ends_cancelled(&whole, "exit 0"), State::Complete);
        for (what, events) in [
            ("it has not ended", begins(1)),
            ("it was interrupted", format!("{}\n{}", begins(1), ended("interrupted"))),
            ("a repetition is missing", format!("{}\n{}", begins(2), ended("complete"))),
        ] {
            assert_eq!(ends_cancelled(&events, "exit 0"), State::Cancelled, "{what}");
        }
    }

    #[test]
    fn a_run_whose_results_were_not_written_came_to_an_outcome_only_with_a_record() {
        let begins = r#"{"event":"begins","t_s":0.0,"stream_version":1,"folder":"one","name":"hello","repetition":1,"repetitions":1,"warmup_s":0.0,"duration_s":1.0}"#;
        assert_eq!(ends(begins, NOT_WRITTEN, true), State::Complete);
        assert_eq!(ends(begins, NOT_WRITTEN, false), State::Failed);
        assert_eq!(ends(begins, 0, true), State::Complete);
    }
}
