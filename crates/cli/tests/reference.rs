//! docs/reference agrees with the code.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use assert_cmd::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

#[test]
fn the_reference_has_not_drifted() {
    Command::cargo_bin("pubmark").unwrap().args(["reference", "--check", FOLDER]).assert().success();
}

#[test]
fn a_changed_page_is_noticed_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |check: bool| {
        let mut command = Command::cargo_bin("pubmark").unwrap();
        command.arg("reference").arg(folder.path());
        if check {
            command.arg("--check");
        }
        command.assert()
    };
    write(false).success();
    write(true).success();
    let page = folder.path().join("exit-codes.md");
    std::fs::write(&page, std::fs::read_to_string(&page).unwrap().replace("done", "finished")).unwrap();
    let output = write(true).code(2).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("exit-codes.md") && !message.contains("cli.md"), "{message}");
}
