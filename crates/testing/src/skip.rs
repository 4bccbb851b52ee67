//! Reports a skipped test where skips are counted.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::panic::Location;
use std::path::{Path, PathBuf};

/// Environment variable with the file to which skips are appended. Without it, the file is `target/test-logs/skips`.
pub const SKIPS: &str = "PUBMARK_SKIPS";

/// Records that the running test, or a part of it, cannot run here. `reason` is one line: what is missing, and what to
/// type to install it. The caller returns afterwards.
///
/// The record goes to standard error, which the test harness does not capture here, and to the file of [`SKIPS`]: one
/// line with `test`, `reason` and `file:line`, separated by tabs. Any number of processes may do so at the same time.
///
/// # Panics
/// Panics if the file cannot be written: a skip that is not counted would be a test that passes silently.
#[track_caller]
pub fn skip(reason: impl Display) {
    let place = Location::caller();
    let file = std::env::var_os(SKIPS).map_or_else(default_file, PathBuf::from);
    let line = record(&file, &test_name(), &reason.to_string(), &format!("{}:{}", place.file(), place.line()));
    let line = line.unwrap_or_else(|error| panic!("failed to record a skip ({reason}) in {}: {error}", file.display()));
    let words = line.trim_end().rsplit_once('\t').map_or(line.trim_end(), |(words, _)| words);
    // If standard error is closed, the file still has the line.
    let _ = io::stderr().write_all(format!("skipped: {}\n", words.replace('\t', ": ")).as_bytes());
}

/// The default file in this workspace's target folder.
fn default_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-logs/skips")
}

/// The harness names threads after tests. A test without the harness, or code in another thread, gets the program's
/// name.
fn test_name() -> String {
    let thread = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
    thread.unwrap_or_else(|| {
        let program = std::env::current_exe().ok();
        let stem = program.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
        // Cargo appends a hash to the name of a test program.
        stem.map_or_else(|| "a test".to_owned(), |stem| stem.split('-').next().unwrap_or(&stem).to_owned())
    })
}

/// Appends the line and returns it.
fn record(file: &Path, test: &str, reason: &str, place: &str) -> io::Result<String> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{}\t{}\t{}\n", words(test), words(reason), words(place));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // One write at the file's end: lines of processes that skip at the same time do not mix.
    std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// Environment variable for the processes that a test of this file starts to record skips.
    const MANY: &str = "PUBMARK_TESTING_SKIPS_MANY";

    /// Path of a file that does not exist yet, in a folder that is removed when the first value is dropped.
    fn own_file() -> (TempDir, PathBuf) {
        let folder = TempDir::with_prefix("pubmark-testing-").unwrap();
        let file = folder.path().join("deeper/skips");
        (folder, file)
    }

    #[test]
    fn a_reason_of_several_lines_is_one_line() {
        let (_folder, file) = own_file();
        let line = record(&file, "a::test", "no\tprogram\n\nhere ", "file.rs:3").unwrap();
        assert_eq!(line, "a::test\tno program here\tfile.rs:3\n");
        record(&file, "b", "none", "file.rs:4").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{line}b\tnone\tfile.rs:4\n"));
    }

    #[test]
    fn a_skip_that_cannot_be_recorded_is_no_pass() {
        let (_folder, file) = own_file();
        std::fs::create_dir_all(&file).unwrap();
        assert!(record(&file, "a", "b", "c").is_err());
    }

    #[test]
    fn skips_of_many_processes_and_threads_are_all_there() {
        if std::env::var_os(MANY).is_some() {
            return std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope
                        .spawn(|| (0..50).for_each(|number| skip(format_args!("number {number} {}", "x".repeat(300)))));
                }
            });
        }
        let (_folder, file) = own_file();
        let test = "skip::tests::skips_of_many_processes_and_threads_are_all_there";
        let run = || {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", test]).env(MANY, "1").env(SKIPS, &file);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..4).map(|_| run()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let whole = |line: &&str| line.split('\t').count() == 3 && line.contains(&"x".repeat(300));
        assert_eq!((text.lines().count(), text.lines().filter(whole).count()), (800, 800));
        assert!(text.lines().all(|line| line.contains("crates/testing/src/skip.rs:")), "{}", &text[..500]);
    }
}
