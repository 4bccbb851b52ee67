//! Debian's mosquitto with the test's settings, on one port that it uses again after restarts.

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pubmark_conformance::ports;
use tempfile::TempDir;

use super::processes::{self, wait_for};

const START: Duration = Duration::from_secs(10);
/// Number of ports to try if another process binds one that was free before.
const TRIES: usize = 4;

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether mosquitto is installed; prints a message if not.
pub fn is_installed() -> bool {
    let here = find("mosquitto").is_some();
    if !here {
        pubmark_testing::skip("mosquitto is not installed (`apt-get install mosquitto`)");
    }
    here
}

/// A running mosquitto; killed when dropped.
pub struct Mosquitto {
    process: Option<Child>,
    folder: TempDir,
    /// Port on 127.0.0.1.
    pub port: u16,
}

impl Mosquitto {
    /// Starts it with these settings after its listener's; anonymous clients are allowed. `None`, with a message, if it
    /// is not installed.
    pub fn start(settings: &str) -> Option<Mosquitto> {
        Mosquitto::start_with(|_| format!("allow_anonymous true\n{settings}\n"))
    }

    /// Starts it with settings that name files: `settings` receives the folder for these files.
    pub fn start_with(settings: impl Fn(&Path) -> String) -> Option<Mosquitto> {
        if !is_installed() {
            return None;
        }
        for _ in 0..TRIES {
            let folder = TempDir::with_prefix("pubmark-e2e-mosquitto-").unwrap();
            let port = ports::free().port();
            let text = format!(
                "listener {port} 127.0.0.1\npersistence false\nset_tcp_nodelay true\nlog_dest stderr\nlog_type error\n{}{}",
                user_setting(),
                settings(folder.path())
            );
            std::fs::write(folder.path().join("mosquitto.conf"), text).unwrap();
            let mut broker = Mosquitto { process: None, folder, port };
            if broker.restart() {
                return Some(broker);
            }
        }
        panic!("mosquitto did not start in {TRIES} tries");
    }

    /// Its endpoint without encryption.
    pub fn endpoint(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    /// Starts it again on its port; false if it ends instead of listening.
    pub fn restart(&mut self) -> bool {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(find("mosquitto").unwrap());
        command.arg("-c").arg(self.folder.path().join("mosquitto.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // SAFETY: between fork and exec only prctl is called, which is allowed there.
        unsafe {
            command.pre_exec(|| {
                // It must not survive a test that is killed.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut process = command.spawn().unwrap();
        let mut ended = false;
        wait_for("mosquitto", START, || {
            ended = process.try_wait().unwrap().is_some();
            ended || TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
        self.process = Some(process);
        !ended
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// CPU time that it has used, seconds, rounded up to the next tick.
    pub fn cpu_seconds(&self) -> f64 {
        processes::cpu_ticks(self.pid()) as f64 / 100.0 + 0.02
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended already, which is the goal.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Pauses it, or resumes it.
    pub fn signal(&self, signal: libc::c_int) {
        processes::signal(self.process.as_ref().unwrap().id(), signal);
    }
}

/// As root, mosquitto would change to a user who cannot read the test's files.
fn user_setting() -> &'static str {
    // SAFETY: reads a number, touches no memory.
    if unsafe { libc::geteuid() } == 0 { "user root\n" } else { "" }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Adds a user to a password file, which is made if it is not there.
pub fn set_password(file: &Path, user: &str, password: &str) {
    if !file.exists() {
        return write_passwords(file, user, password);
    }
    let program = find("mosquitto_passwd").unwrap();
    let made = Command::new(program).arg("-b").arg(file).args([user, password]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Makes a password file with one user.
pub fn write_passwords(file: &Path, user: &str, password: &str) {
    let program = find("mosquitto_passwd").unwrap();
    let made = Command::new(program).args(["-b", "-c"]).arg(file).args([user, password]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}
