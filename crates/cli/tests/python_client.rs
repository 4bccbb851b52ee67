//! The Python client of `pubmark serve`, and the examples for continuous integration: their own tests, executed against this program by
//! pytest in the virtual environment that `.ci/install-clients python` makes.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::Path;
use std::process::Command;

/// Longest duration of the tests of a folder, seconds: they need about two minutes.
const LIMIT_S: &str = "900";

/// Executes the tests of a folder of the repository.
fn pytest(folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let python = root.join("target/clients/python/bin/python3");
    if !python.exists() {
        return pubmark_testing::skip("the Python client's packages are not installed (`.ci/install-clients python`)");
    }
    // Pytest does not remove the files that its tests wrote.
    let temporary = tempfile::TempDir::with_prefix("py-").unwrap();
    let session = tempfile::TempDir::with_prefix("pubmark-python-").unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after=10", LIMIT_S])
        .arg(python)
        .args(["-m", "pytest", "-q", "--tb=short", "-c", "sdk/python/pyproject.toml", folder])
        .arg(format!("--basetemp={}", temporary.path().join("b").display()))
        .env("TMPDIR", temporary.path())
        .current_dir(root)
        .env("PUBMARK", env!("CARGO_BIN_EXE_pubmark"))
        // A separate session: servers of other tests are not waited for.
        .env("XDG_RUNTIME_DIR", session.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" passed"), "no test was executed: {text}");
    assert!(!text.contains(" skipped"), "a test did not say where it is counted that it cannot run: {text}");
}

#[test]
fn the_python_client_passes_its_tests() {
    pytest("sdk/python/tests");
}

#[test]
fn the_examples_for_continuous_integration_do_what_they_say() {
    pytest("contrib/ci");
}
