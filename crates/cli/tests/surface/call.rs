//! Calls the binary as by a user, in an empty folder, without a terminal.

use std::path::Path;

use assert_cmd::Command;

/// Output and exit code of a call, as one text.
pub fn call(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    call_in(folder.path(), arguments)
}

/// As [`call`], in a folder of the caller.
pub fn call_in(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::cargo_bin("pubmark")
        .unwrap()
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .timeout(std::time::Duration::from_secs(60))
        .output()
        .unwrap();
    let shown: Vec<String> = arguments
        .iter()
        .map(|word| if word.contains([' ', '*']) || word.is_empty() { format!("'{word}'") } else { (*word).to_owned() })
        .collect();
    let mut text = format!("$ pubmark {}\n", shown.join(" "));
    text.push_str(&String::from_utf8(output.stdout).unwrap());
    let errors = String::from_utf8(output.stderr).unwrap();
    if !errors.is_empty() {
        text.push_str("[standard error]\n");
        text.push_str(&errors);
    }
    text.push_str(&format!("[exit code {}]\n", output.status.code().unwrap()));
    text
}

/// Fails for a line wider than a terminal of 80 columns.
pub fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}
