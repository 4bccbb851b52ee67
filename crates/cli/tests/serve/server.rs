//! A server under test with a separate folder.

use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::call::{self, LIMIT, Response};

/// Time between two checks.
const LOOK: Duration = Duration::from_millis(50);

/// Number of ports to try.
const ATTEMPTS: usize = 5;

/// A run of two seconds.
pub const SHORT: &str = r#"{"workload": "hello", "system": "builtin", "duration": "1s", "warmup": "0s"}"#;
/// A run that lasts until it is ended.
pub const LONG: &str = r#"{"workload": "smart-home", "duration": "120s", "warmup": "0s"}"#;

/// A server; killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    pub token: String,
    runs: PathBuf,
}

/// The session of the servers of a folder: each has a machine of its own, so that tests do not wait for each other.
pub fn session(folder: &Path) -> PathBuf {
    let session = folder.join("session");
    std::fs::create_dir_all(&session).unwrap();
    session
}

/// A folder for a server.
pub fn folder() -> TempDir {
    TempDir::with_prefix("pubmark-serve-").unwrap()
}

impl Server {
    /// Starts a server with a folder.
    pub fn start(folder: &Path, options: &[&str]) -> Server {
        Server::listen(Ipv4Addr::LOCALHOST, folder, options)
    }

    /// Starts one that listens at an address.
    pub fn listen(host: Ipv4Addr, folder: &Path, options: &[&str]) -> Server {
        Server::start_in(host, folder, &session(folder), options)
    }

    /// Starts one on the machine of another one, whose session is given.
    pub fn start_beside(folder: &Path, session: &Path, options: &[&str]) -> Server {
        Server::start_in(Ipv4Addr::LOCALHOST, folder, session, options)
    }

    fn start_in(host: Ipv4Addr, folder: &Path, session: &Path, options: &[&str]) -> Server {
        // Another process may bind a port between the check and the start.
        let started = || Server::start_at(host, pubmark_conformance::ports::free().port(), folder, session, options);
        (0..ATTEMPTS).find_map(|_| started()).expect("a server that listens")
    }

    /// `None` if it ended before it listened.
    fn start_at(host: Ipv4Addr, port: u16, folder: &Path, session: &Path, options: &[&str]) -> Option<Server> {
        let runs = folder.join("runs");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
        command.args(["serve", "--listen", &format!("{host}:{port}"), "--runs"]).arg(&runs).args(options);
        command.current_dir(folder).env("XDG_RUNTIME_DIR", session);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(url) = lines.next() else {
            child.wait().unwrap();
            return None;
        };
        assert_eq!(url.unwrap().rsplit_once(':').unwrap().1, port.to_string());
        let token = std::fs::read_to_string(runs.join(".serve/token")).unwrap().trim().to_owned();
        let told = lines.next().unwrap().unwrap();
        assert!(told == format!("token {token}") || told.starts_with("the token is in "), "{told}");
        Some(Server { child, port, token, runs })
    }

    /// Closes its standard input, as happens when the program that started it ends.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for its end; returns the exit code.
    pub fn code(mut self) -> Option<i32> {
        wait_for("the server's end", || self.child.try_wait().unwrap()).code()
    }

    /// CPU time that it has taken; its runs are other processes.
    pub fn cpu(&self) -> Duration {
        // SAFETY: both arguments are valid, and the process has not been waited for.
        unsafe {
            let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
            assert_eq!(libc::clock_getcpuclockid(self.child.id() as libc::pid_t, &mut clock), 0);
            assert_eq!(libc::clock_gettime(clock, &mut time), 0);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        }
    }

    /// The folder of results.
    pub fn runs(&self) -> &Path {
        &self.runs
    }

    pub fn get(&self, path: &str) -> Response {
        call::request(self.port, "GET", path, Some(&self.token), "")
    }

    pub fn post(&self, path: &str, body: &str) -> Response {
        call::request(self.port, "POST", path, Some(&self.token), body)
    }

    /// Submits something and returns its id.
    pub fn submit(&self, body: &str) -> String {
        self.post("/runs", body).of(202)["id"].as_str().unwrap().to_owned()
    }

    pub fn delete(&self, id: &str) -> Response {
        call::request(self.port, "DELETE", &format!("/runs/{id}"), Some(&self.token), "")
    }

    pub fn entry(&self, id: &str) -> Value {
        self.get(&format!("/runs/{id}")).of(200)
    }

    /// Waits until a submission is in one of these states. Others may be before it, and each run of an experiment waits for a
    /// quiet machine.
    pub fn wait(&self, id: &str, states: &[&str]) -> Value {
        wait_within(3 * LIMIT, &format!("{id} to be {states:?}"), || {
            let entry = self.entry(id);
            states.contains(&entry["state"].as_str().unwrap()).then_some(entry)
        })
    }

    /// Waits until messages of a run are measured.
    pub fn wait_for_load(&self, id: &str) {
        wait_for("messages", || self.entry(id)["progress"]["delivered"].as_u64().filter(|delivered| *delivered > 0));
    }

    /// Ends it in order.
    pub fn stop(self) {
        self.signal(libc::SIGTERM);
        assert_eq!(self.code(), Some(130));
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn signal(&self, signal: libc::c_int) {
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process of the run under way, by the kernel's list of children.
    pub fn child(&self) -> Option<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).ok()?;
        let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
        children.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).next()?.parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something to be there.
pub fn wait_for<Value>(what: &str, look: impl FnMut() -> Option<Value>) -> Value {
    wait_within(LIMIT, what, look)
}

fn wait_within<Value>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<Value>) -> Value {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < limit, "waited for {what}");
        std::thread::sleep(LOOK);
    }
}
