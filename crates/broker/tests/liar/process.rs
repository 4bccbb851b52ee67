//! The lying broker's program.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::Version;

use crate::client::{Client, head};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pubmark-liar"))
}

#[test]
fn the_program_says_where_it_listens_and_ends_its_journal_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let (script, journal) = (folder.path().join("script"), folder.path().join("journal"));
    std::fs::write(&script, "drop every=2\n").unwrap();
    let mut process = program()
        .args(["--listen", "127.0.0.1:0", "--script"])
        .arg(&script)
        .arg("--journal")
        .arg(&journal)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening ").unwrap().parse().unwrap();
    let mut client = Client::simple(address, Version::V5, "c");
    client.publish(head("t", Qos::BestEffort, None), b"x");
    client.expect_silence();
    // SAFETY: a signal to a child of ours that has not been waited for.
    unsafe { libc::kill(process.id() as libc::pid_t, libc::SIGTERM) };
    assert!(process.wait().unwrap().success());
    let text = std::fs::read_to_string(&journal).unwrap();
    let last: Vec<&str> = text.lines().last().unwrap().split(' ').collect();
    assert_eq!(last[2..16].join(" "), "end 1 0 0 1 0 0 0 0 0 0 0 0 1");
}

/// Processor time that a process has used so far, in ticks of 10 ms (proc(5)).
fn processor_ticks(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn without_descriptors_it_waits_and_does_not_spin() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Command::new("sh")
        .args(["-c", "ulimit -n 16; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_pubmark-liar")])
        .args(["--listen", "127.0.0.1:0", "--journal"])
        .arg(folder.path().join("journal"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address: SocketAddr = line.trim().strip_prefix("listening ").unwrap().parse().unwrap();
    let waiting: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(address).unwrap()).collect();
    let before = processor_ticks(process.id());
    std::thread::sleep(Duration::from_millis(1_000));
    let used = processor_ticks(process.id()) - before;
    drop(waiting);
    // Those that left make room.
    Client::simple(address, Version::V5, "c").expect_silence();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(used < 20, "{used} of 100 ticks");
}

#[test]
fn wrong_options_and_scripts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (script, journal) = (folder.path().join("script"), folder.path().join("journal"));
    std::fs::write(&script, "drop\nlose every=2\n").unwrap();
    let output = program().arg("--script").arg(&script).arg("--journal").arg(&journal).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("line 2: `lose` is no lie known here"), "{text}");
    let output = program().arg("--listen").arg("127.0.0.1:0").output().unwrap();
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("option `--journal` is unknown, lacks its value, or is missing")
    );
}

#[test]
fn the_comparing_program_passes_its_own_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth");
    let output = Command::new("python3").args(["-B", "test_compare.py"]).current_dir(folder).output();
    let Ok(output) = output else {
        pubmark_testing::skip("python3 is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
