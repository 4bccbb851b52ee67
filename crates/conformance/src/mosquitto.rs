//! Debian's mosquitto in a process of its own, with a private configuration.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_protocol::endpoint::{Endpoint, Tls};
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::ports;
use crate::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES, Server};

const START_TRIES: usize = 5;
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running mosquitto; killed when dropped.
pub struct Mosquitto {
    process: Child,
    program: PathBuf,
    directory: TempDir,
    certificates: Certificates,
    addresses: [SocketAddr; 3],
}

/// The program, which Debian keeps outside the users' path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

impl Mosquitto {
    fn write_settings(&self, limits: Limits) {
        let folder = self.directory.path().display();
        let [plain, encrypted, guarded] = self.addresses.map(|address| address.port());
        let mut text = String::from("per_listener_settings true\nset_tcp_nodelay true\nmax_queued_messages 1000000\n");
        text.push_str("log_dest stderr\nlog_type error\n");
        // Started as root it would change to a user who cannot read the test's files.
        // SAFETY: asks for a number, touches no memory.
        if unsafe { libc::geteuid() } == 0 {
            text.push_str("user root\n");
        }
        if limits == Limits::Small {
            writeln!(text, "max_packet_size {SMALL_PACKET_BYTES}").unwrap();
        }
        writeln!(text, "listener {plain} 127.0.0.1\nallow_anonymous true\npersistence false").unwrap();
        writeln!(text, "listener {encrypted} 127.0.0.1\nallow_anonymous true").unwrap();
        writeln!(text, "certfile {}", self.certificates.server.display()).unwrap();
        writeln!(text, "keyfile {}", self.certificates.key.display()).unwrap();
        writeln!(text, "listener {guarded} 127.0.0.1\nallow_anonymous false\npassword_file {folder}/passwords")
            .unwrap();
        std::fs::write(self.directory.path().join("mosquitto.conf"), text).unwrap();
    }

    /// Starts the process; false if it ends before it listens (a port was taken in between).
    fn launch(&mut self) -> bool {
        self.process = spawn(&self.program, &self.directory);
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            if self.addresses.iter().all(|address| TcpStream::connect(address).is_ok()) {
                return true;
            }
            std::thread::yield_now();
        }
        panic!("mosquitto did not listen within {START_TIMEOUT:?}");
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is our child and has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.process.id() as libc::pid_t, signal) };
    }
}

fn spawn(program: &PathBuf, directory: &TempDir) -> Child {
    let log = std::fs::File::create(directory.path().join("mosquitto.log")).unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(directory.path().join("mosquitto.conf"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // SAFETY: between fork and exec only prctl is called, which is allowed there.
    unsafe {
        command.pre_exec(|| {
            // It must not outlive a test that is killed.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command.spawn().unwrap()
}

impl Server for Mosquitto {
    fn start(limits: Limits) -> Result<Mosquitto, Missing> {
        let missing = |name: &str| Missing(format!("{name} is not installed (`apt-get install mosquitto`)"));
        let program = find("mosquitto").ok_or_else(|| missing("mosquitto"))?;
        let passwd = find("mosquitto_passwd").ok_or_else(|| missing("mosquitto_passwd"))?;
        for _ in 0..START_TRIES {
            let directory = TempDir::with_prefix("pubmark-mosquitto-").unwrap();
            let certificates = Certificates::make(directory.path(), "broker");
            let passwords = directory.path().join("passwords");
            let made = Command::new(&passwd).arg("-b").arg("-c").arg(&passwords).args([LOGIN.0, LOGIN.1]).output();
            assert!(made.unwrap().status.success(), "mosquitto_passwd failed");
            let addresses = [ports::free(), ports::free(), ports::free()];
            // A process that ends at once stands in until the settings are written.
            let process = Command::new("true").spawn().unwrap();
            let mut server = Mosquitto { process, program: program.clone(), directory, certificates, addresses };
            server.process.wait().unwrap();
            server.write_settings(limits);
            if server.launch() {
                return Ok(server);
            }
            let log = std::fs::read_to_string(server.directory.path().join("mosquitto.log")).unwrap_or_default();
            eprintln!("mosquitto did not start, trying other ports: {log}");
        }
        panic!("mosquitto did not start in {START_TRIES} tries");
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        let address = self.addresses[listener as usize];
        let tls = (listener == Listener::Encrypted).then(|| Tls {
            server_name: "localhost".to_owned(),
            authorities: Some(self.certificates.authority.clone()),
        });
        let scheme = if tls.is_some() { "mqtts" } else { "mqtt" };
        Ok(Endpoint { shown: format!("{scheme}://{address}"), address, tls, credentials: None })
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn restart(&mut self) {
        assert!(self.launch(), "mosquitto did not start again");
    }

    fn pause(&self) -> bool {
        self.signal(libc::SIGSTOP);
        true
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // It may be gone already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
