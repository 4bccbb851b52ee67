//! A folder in which the binary is called as a user would, with a folder for temporary files of its own, and a turn: few
//! tests load the machine at a time.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Tests that may have runs under way at once.
const TURNS: usize = 4;
/// Longest call: far above what any test needs, so that a call that hangs fails instead.
const LIMIT: Duration = Duration::from_secs(60);
/// Time between two looks at a call under way.
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

/// What a call printed and answered, and how long it took.
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
    /// The exit code; fails for an end by a signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// The printed JSON document, which must be all that was printed.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.printed).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A folder of its own.
pub struct Place {
    folder: TempDir,
    _turn: Turn,
}

impl Place {
    /// Waits for a turn and makes the folder.
    pub fn new() -> Place {
        let turn = Turn::take();
        let folder = TempDir::with_prefix("pubmark-e2e-").unwrap();
        std::fs::create_dir(folder.path().join("temporary")).unwrap();
        Place { folder, _turn: turn }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder for temporary files that calls get.
    pub fn temporary(&self) -> PathBuf {
        self.path().join("temporary")
    }

    /// Puts a file there.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    /// Starts the binary.
    pub fn start(&self, arguments: &[&str]) -> Call {
        self.start_by(Command::new(PUBMARK), arguments)
    }

    /// Starts the binary by a command that ends with it.
    pub fn start_by(&self, mut command: Command, arguments: &[&str]) -> Call {
        command.args(arguments).current_dir(self.path()).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Call::new(command.spawn().unwrap())
    }

    /// Calls the binary to its end.
    pub fn call(&self, arguments: &[&str]) -> Called {
        let began = Instant::now();
        let mut called = self.start(arguments).wait();
        called.took = began.elapsed();
        called
    }

    /// Does a run to its end and gives its record. The run may be invalid (exit code 5), nothing else.
    pub fn record(&self, arguments: &[&str]) -> Value {
        let called = self.call(&[&["run"], arguments, &["--json", "--quiet"]].concat());
        assert!(matches!(called.code(), 0 | 5), "{arguments:?}: {called:?}");
        assert!(called.errors.is_empty(), "{arguments:?} is not quiet: {}", called.errors);
        called.json()
    }

    /// The record that a call with `--json` printed whose clients reached nobody: nothing of it is on the disk.
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

    /// The record of the one run in `runs`.
    pub fn only_record(&self) -> Value {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "runs: {:?}", runs.iter().map(|run| &run.0).collect::<Vec<_>>());
        runs.remove(0).1
    }
}

/// A call under way; killed if the test gives it up.
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
        super::processes::signal(self.pid(), signal);
    }

    /// Has it written these words to its errors?
    pub fn has_said(&self, words: &str) -> bool {
        let [_, errors] = self.readers.as_ref().unwrap();
        String::from_utf8_lossy(&errors.bytes.lock().unwrap()).contains(words)
    }

    /// Has it ended?
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
            // It may have ended already, which is what is wanted.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Takes what a program writes while it runs, so that it never waits.
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

    /// All that was written, when the program has ended.
    fn end(self) -> String {
        self.thread.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.bytes.lock().unwrap())).unwrap()
    }
}
