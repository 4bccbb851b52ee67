//! A folder in which the binary is called as by a user, with a separate folder for temporary files, and a turn: few
//! tests load the machine at the same time.

use std::io::{ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::books::assert_closed;
use super::processes::{self, wait_for};

/// Number of tests that may load the machine at the same time.
const TURNS: usize = 4;
/// Longest duration of a call: far above what any test needs, so that a call that hangs fails.
const LIMIT: Duration = Duration::from_secs(60);
/// File for the events of a call, in its folder.
pub const EVENTS: &str = "events";
/// Time between two checks of a running call.
const LOOK: Duration = Duration::from_millis(5);

/// The binary under test.
pub const PUBMARK: &str = env!("CARGO_BIN_EXE_pubmark");

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

fn taken() -> MutexGuard<'static, usize> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a test load the machine until it is dropped.
struct Turn;

impl Turn {
    fn take() -> Turn {
        let mut count = GIVEN_BACK.wait_while(taken(), |count| *count >= TURNS).unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *taken() -= 1;
        GIVEN_BACK.notify_one();
    }
}

/// Output and exit status of a call, and its duration.
#[derive(Debug)]
pub struct Called {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub printed: String,
    /// Standard error.
    pub errors: String,
    /// From its start, or from the moment the caller waits for it.
    pub took: Duration,
}

impl Called {
    /// The exit code; panics if the call was ended by a signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// The printed JSON document, which must be the complete output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.printed).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A separate folder.
pub struct Place {
    folder: TempDir,
    _turn: Turn,
}

impl Place {
    /// Waits for a turn and creates the folder.
    pub fn new() -> Place {
        let turn = Turn::take();
        let folder = TempDir::with_prefix("pubmark-e2e-").unwrap();
        std::fs::create_dir(folder.path().join("temporary")).unwrap();
        Place { folder, _turn: turn }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder for temporary files of calls.
    pub fn temporary(&self) -> PathBuf {
        self.path().join("temporary")
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    /// Starts the binary.
    pub fn start(&self, arguments: &[&str]) -> Call {
        self.start_by(Command::new(PUBMARK), arguments)
    }

    /// Starts the binary with a file for its events ([`Place::events`]).
    pub fn start_with_events(&self, arguments: &[&str]) -> Call {
        // The events of an earlier call say nothing about this one.
        let _ = std::fs::remove_file(self.path().join(EVENTS));
        self.start(&[arguments, &["--events", EVENTS]].concat())
    }

    /// The events so far of the call that writes them to [`EVENTS`].
    pub fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join(EVENTS)).unwrap_or_default();
        // The last line may not be complete.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for an event of such a call.
    pub fn wait_for_event(&self, what: &str, is_it: impl Fn(&Value) -> bool) {
        wait_for(what, LIMIT, || self.events().iter().any(&is_it));
    }

    /// Waits until such a call has measured for this long.
    pub fn wait_until_measured(&self, seconds: f64) {
        let is_it = |event: &Value| event["phase"] == "measure" && event["elapsed_s"].as_f64() >= Some(seconds);
        self.wait_for_event("the measured window", is_it);
    }

    /// Starts the binary with a command that the binary's path completes.
    pub fn start_by(&self, mut command: Command, arguments: &[&str]) -> Call {
        command.args(arguments).current_dir(self.path()).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Call::new(command.spawn().unwrap())
    }

    /// Calls the binary and waits for its end.
    pub fn call(&self, arguments: &[&str]) -> Called {
        let began = Instant::now();
        let mut called = self.start(arguments).wait();
        called.took = began.elapsed();
        called
    }

    /// Executes a run and returns its record. The run may be invalid (exit code 5); any other failure panics.
    pub fn record(&self, arguments: &[&str]) -> Value {
        let called = self.call(&[&["run"], arguments, &["--json", "--quiet"]].concat());
        assert!(matches!(called.code(), 0 | 5), "{arguments:?}: {called:?}");
        assert!(called.errors.is_empty(), "{arguments:?} is not quiet: {}", called.errors);
        called.json()
    }

    /// As [`Place::record`], up to four times more while the run itself says that other programs had the processors (V28), or that a
    /// fault came or ended late (V20): such a run does not show what the test examines. Standard error names each repetition.
    /// No count is repeated: this function also checks the accounting of a run that it discards.
    pub fn record_with_processors(&self, arguments: &[&str]) -> Value {
        for _ in 0..4 {
            let record = self.record(arguments);
            let reasons = record["verdict"]["reasons"].as_array().expect("reasons");
            let Some(reason) = reasons.iter().find(|reason| is_of_the_machine(reason)) else { return record };
            assert_closed(&record);
            // If standard error is closed, nobody reads it.
            let told = format!("repeated: {arguments:?}: {reason}\n");
            let _ = std::io::stderr().write_all(told.as_bytes());
        }
        self.record(arguments)
    }

    /// The record that a call with `--json` printed whose clients could not connect: it is not stored on disk.
    pub fn record_of_nobody(&self, called: &Called) -> Value {
        assert!(self.runs().is_empty(), "a run that never connected left a folder: {:?}", self.runs());
        assert!(std::fs::symlink_metadata(self.path().join("runs/latest")).is_err(), "it became the latest");
        called.json()
    }

    /// The run folders in `runs`, oldest first, each with its record.
    pub fn runs(&self) -> Vec<(PathBuf, Value)> {
        let Ok(entries) = std::fs::read_dir(self.path().join("runs")) else { return Vec::new() };
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| !path.is_symlink()).collect();
        folders.sort();
        let read = |folder: PathBuf| {
            let text = std::fs::read_to_string(folder.join("record.json"))
                .unwrap_or_else(|error| panic!("{} has no record: {error}", folder.display()));
            (folder, serde_json::from_str(&text).unwrap())
        };
        folders.into_iter().map(read).collect()
    }

    /// The record of the only run in `runs`.
    pub fn only_record(&self) -> Value {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "runs: {:?}", runs.iter().map(|run| &run.0).collect::<Vec<_>>());
        runs.remove(0).1
    }
}

/// Whether a reason of a verdict is one that a busy machine gives.
fn is_of_the_machine(reason: &Value) -> bool {
    let is_late = || reason["text"].as_str().is_some_and(|text| text.trim_end().ends_with(" s late"));
    reason["code"] == "V28" || (reason["code"] == "V20" && is_late())
}

/// A running call; it is killed if the test drops it.
pub struct Call {
    child: Child,
    readers: Option<[Reader; 2]>,
}

impl Call {
    fn new(mut child: Child) -> Call {
        let readers = [Reader::new(child.stdout.take().unwrap()), Reader::new(child.stderr.take().unwrap())];
        Call { child, readers: Some(readers) }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        processes::signal(self.pid(), signal);
    }

    /// Whether it has written these words to standard error.
    pub fn has_said(&self, words: &str) -> bool {
        let [_, errors] = self.readers.as_ref().unwrap();
        String::from_utf8_lossy(&errors.bytes.lock().unwrap()).contains(words)
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Called {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < LIMIT, "the call did not end within {LIMIT:?}");
            std::thread::sleep(LOOK);
        };
        let took = began.elapsed();
        let [printed, errors] = self.readers.take().unwrap().map(Reader::end);
        assert!(!errors.contains("panicked"), "a panic reached the user: {errors}");
        Called { status, printed, errors, took }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.readers.is_some() {
            // It may have ended already, which is the goal.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Reads the output of a program while it runs, so that the program never blocks.
struct Reader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: std::thread::JoinHandle<()>,
}

impl Reader {
    fn new(mut stream: impl Read + Send + 'static) -> Reader {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let taken = bytes.clone();
        let thread = std::thread::spawn(move || {
            let mut piece = [0; 16 * 1024];
            loop {
                match stream.read(&mut piece) {
                    Ok(0) => break,
                    Ok(length) => taken.lock().unwrap().extend_from_slice(&piece[..length]),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}"),
                }
            }
        });
        Reader { bytes, thread }
    }

    /// The complete output, after the program has ended.
    fn end(self) -> String {
        self.thread.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.bytes.lock().unwrap())).unwrap()
    }
}
