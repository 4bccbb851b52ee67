//! The folder in which a block's commands are executed, with the files that a reader would have.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::pages::{Block, Page, root};

/// Longest duration of a command; an annotation shortens a longer one.
const LIMIT: Duration = Duration::from_secs(60);
/// Number of lines of output that are shown for a command that failed.
const SHOWN: usize = 12;

/// A folder that is removed at the end.
pub struct Place {
    folder: tempfile::TempDir,
}

/// Result of a command.
pub struct Outcome {
    /// Exit code; none if it was stopped or did not end in time.
    pub code: Option<i32>,
    /// The end of its output.
    pub said: String,
}

impl Place {
    /// A folder with the files that the page shows and the runs that it names.
    pub fn for_block(page: &Page, block: &Block, earlier: &Earlier) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        for name in ["Makefile", "metrics"] {
            symlink(root().join(name), here.join(name)).unwrap();
        }
        fs::create_dir_all(here.join("target/demo")).unwrap();
        symlink(program(), here.join("target/demo/pubmark")).unwrap();
        for (name, text) in &page.files {
            fs::write(here.join(name), text).unwrap();
        }
        let speaks_of = |word: &str| block.commands.iter().any(|command| command.text.contains(word));
        if speaks_of("ca.pem") {
            let authority = rcgen::generate_simple_self_signed(vec!["broker.example".to_owned()]).unwrap();
            fs::write(here.join("ca.pem"), authority.cert.pem()).unwrap();
        }
        if speaks_of("runs/") || speaks_of("baseline") {
            earlier.put_into(here);
        }
        Place { folder }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Executes a line in the shell; stops it, and its children, at the time limit.
    pub fn execute(&self, line: &str) -> Outcome {
        // Reserved names (RFC 2606) are replaced by this machine.
        let line = line.replace("broker.example", "127.0.0.1").replace("router.example", "127.0.0.1");
        let output = tempfile::NamedTempFile::new().unwrap();
        let streams = || Stdio::from(File::options().append(true).open(output.path()).unwrap());
        let mut child = Command::new("sh")
            .args(["-c", &line])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .stdin(Stdio::null())
            .stdout(streams())
            .stderr(streams())
            .process_group(0)
            .spawn()
            .unwrap();
        let deadline = Instant::now() + LIMIT;
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if Instant::now() > deadline {
                // SAFETY: sends a signal to the process group that was created for this command.
                unsafe { libc::kill(-(child.id() as i32), libc::SIGTERM) };
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        File::open(output.path()).unwrap().read_to_string(&mut said).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(SHOWN)..].iter().map(|line| format!("  | {line}\n")).collect();
        Outcome { code, said: end }
    }
}

/// The program under test.
pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_pubmark"))
}

/// The search path: the program's folder before those of this machine.
fn search_path() -> String {
    let own = program().parent().unwrap().display().to_string();
    format!("{own}:{}", std::env::var("PATH").unwrap_or_default())
}

/// Checks the syntax of a shell script.
pub fn check_script(script: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, script).unwrap();
    let output = Command::new("sh").arg("-n").arg(&file).output().unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Runs and an experiment of an earlier day: short ones, made once, when a block first uses them; removed at the end.
#[derive(Default)]
pub struct Earlier(OnceLock<tempfile::TempDir>);

impl Earlier {
    /// Copies them into a folder under the names that documents use.
    fn put_into(&self, here: &Path) {
        let made = self.0.get_or_init(Earlier::make);
        let newest = |kind: &str| fs::canonicalize(made.path().join(kind).join("latest")).unwrap();
        let runs = here.join("runs");
        fs::create_dir_all(&runs).unwrap();
        for name in ["before", "20260301-090507-smart-home", "20260301-091012-smart-home"] {
            copy(&newest("run"), &runs.join(name));
        }
        copy(&newest("run"), &here.join("baseline"));
        copy(&newest("experiment"), &runs.join("20260301-090507-brokers"));
        symlink("20260301-091012-smart-home", runs.join("latest")).unwrap();
    }

    fn make() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let pubmark = |words: &[&str]| {
            let output = Command::new(program()).args(words).current_dir(folder.path()).output().unwrap();
            // A verdict on so short a run is not reliable.
            assert!(
                matches!(output.status.code(), Some(0 | 5)),
                "{words:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        pubmark(&["run", "smart-home", "--rate", "10", "--duration", "1s", "--warmup", "0s", "--out", "run"]);
        let options = ["--repeat", "1", "--duration", "1s", "--warmup", "0s", "--wait", "0s", "--out", "experiment"];
        pubmark(&[&["compare", "hello", "--systems", "builtin"], &options[..]].concat());
        folder
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "{} is not copied", from.display());
}
