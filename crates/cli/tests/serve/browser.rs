//! The pages in a real browser: a script that drives Debian's Chromium (`tests/browser/pages.py`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::results::{HARM, save, save_failed, save_other_kinds, save_three};
use crate::server::{Server, folder};

/// Time limit of the script, s; it needs about 130.
const LIMIT_S: &str = "400";

/// Folder of the script's libraries; prints a message if something is missing.
fn libraries() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let libraries = root.join("target/clients/browser");
    for (path, how) in [
        (libraries.join("bin/python3"), "Selenium is not installed (`.ci/install-clients browser`)"),
        (
            libraries.join("node_modules/axe-core/axe.min.js"),
            "axe-core is not installed (`.ci/install-clients browser`)",
        ),
        (PathBuf::from("/usr/bin/chromedriver"), "there is no chromedriver (`apt-get install chromium-driver`)"),
        (PathBuf::from("/usr/bin/chromium"), "there is no chromium (`apt-get install chromium`)"),
    ] {
        if !path.exists() {
            pubmark_testing::skip(how);
            return None;
        }
    }
    Some(libraries)
}

#[test]
fn pages_work_in_a_browser() {
    let Some(libraries) = libraries() else { return };
    let place = folder();
    let runs = place.path().join("runs");
    save_three(&runs);
    save_other_kinds(&runs);
    save_failed(&runs);
    save(&runs, HARM, |record| record.workload.schedule_hash = "a third".to_owned());
    let server = Server::start(place.path(), &["--allow", "endpoints"]);
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT_S]).arg(libraries.join("bin/python3"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/pages.py"));
    command.arg(format!("http://127.0.0.1:{}", server.port)).arg(server.runs().join(".serve/token"));
    command.arg(libraries.join("node_modules/axe-core/axe.min.js")).env("HOME", place.path());
    command.env("TMPDIR", place.path());
    let without = folder();
    let empty = Server::start(without.path(), &[]);
    command.arg(format!("http://127.0.0.1:{}", empty.port)).arg(empty.runs().join(".serve/token"));
    // Folder for pictures of all pages, if the variable is set.
    command.args(std::env::var_os("PUBMARK_PICTURES"));
    let done = command.output().unwrap();
    let [out, errors] = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(done.status.success(), "{}: {out}{errors}", done.status);
}

#[test]
fn a_run_is_watched_and_stopped_in_a_browser() {
    let Some(libraries) = libraries() else { return };
    let place = folder();
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT_S]).arg(libraries.join("bin/python3"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/live.py"));
    command.arg(env!("CARGO_BIN_EXE_pubmark")).arg(libraries.join("node_modules/axe-core/axe.min.js"));
    command.current_dir(place.path()).env("HOME", place.path()).env("TMPDIR", place.path());
    let done = command.output().unwrap();
    let [out, errors] = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(done.status.success(), "{}: {out}{errors}", done.status);
}
