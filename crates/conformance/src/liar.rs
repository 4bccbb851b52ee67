//! The lying broker as a process of a test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ports;

/// Attempts to find a port that no other process takes in between.
const ATTEMPTS: u32 = 20;

/// A lying broker; it is killed when this is dropped.
pub struct LiarProcess {
    process: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// Where it writes its journal.
    pub journal: PathBuf,
}

/// The program beside `pubmark`; built if it is not there, so that a test can be run alone.
pub fn program(pubmark: &Path) -> PathBuf {
    let path = pubmark.with_file_name("pubmark-liar");
    if !path.exists() {
        let arguments = ["build", "--workspace", "--bin", "pubmark-liar"];
        assert!(Command::new(env!("CARGO")).args(arguments).status().unwrap().success());
    }
    path
}

impl LiarProcess {
    /// Starts one with a script, with script and journal in `folder`.
    pub fn start(pubmark: &Path, folder: &Path, script: &str, options: &[&str]) -> LiarProcess {
        let (program, script_path, journal) = (program(pubmark), folder.join("script"), folder.join("journal"));
        std::fs::write(&script_path, script).unwrap();
        for _ in 0..ATTEMPTS {
            let address = ports::free().to_string();
            let mut process = Command::new(&program)
                .args(["--listen", &address, "--journal"])
                .arg(&journal)
                .arg("--script")
                .arg(&script_path)
                .args(options)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if line == format!("listening {address}\n") {
                return LiarProcess { process, address, journal };
            }
            process.wait().unwrap();
        }
        panic!("other processes took {ATTEMPTS} free ports one after the other");
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    /// Ends it in order, so that the journal is complete.
    pub fn stop(&mut self) {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(self.pid(), libc::SIGTERM) };
        let status = self.process.wait().unwrap();
        assert!(status.success(), "the lying broker ended with {status}");
    }
}

impl Drop for LiarProcess {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
