//! Both versions of MQTT against the built-in broker, plain and encrypted.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::cases::run_all;
use pubmark_conformance::certificates::Certificates;
use pubmark_conformance::ports;
use pubmark_conformance::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES, Server};
use pubmark_protocol::endpoint::{Endpoint, Tls};
use tempfile::TempDir;

const LISTENERS: [Listener; 3] = [Listener::Plain, Listener::Encrypted, Listener::Guarded];

/// One broker process for each listener; killed when dropped.
struct Builtin {
    processes: Vec<Child>,
    addresses: Vec<SocketAddr>,
    certificates: Certificates,
    limits: Limits,
    _directory: TempDir,
}

impl Builtin {
    fn launch(&mut self) {
        self.processes = LISTENERS.iter().map(|listener| self.spawn(*listener)).collect();
    }

    /// Starts a process and waits until it says that it listens.
    fn spawn(&self, listener: Listener) -> Child {
        let address = self.addresses[listener as usize].to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_builtin-broker"));
        command.args(["--listen", &address]);
        match listener {
            Listener::Plain => {}
            Listener::Encrypted => {
                command.arg("--tls-certificate").arg(&self.certificates.server);
                command.arg("--tls-key").arg(&self.certificates.key);
            }
            Listener::Guarded => {
                command.args(["--user", LOGIN.0, "--password", LOGIN.1]);
            }
        }
        if self.limits == Limits::Small {
            command.args(["--maximum-packet-bytes", &SMALL_PACKET_BYTES.to_string()]);
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), format!("listening {address}"));
        process
    }

    fn signal(&self, signal: libc::c_int) {
        for process in &self.processes {
            // SAFETY: our children, not waited for, so the numbers are still their own.
            unsafe { libc::kill(process.id() as libc::pid_t, signal) };
        }
    }
}

impl Server for Builtin {
    fn start(limits: Limits) -> Result<Builtin, Missing> {
        let directory = TempDir::with_prefix("pubmark-builtin-").unwrap();
        let certificates = Certificates::make(directory.path(), "broker");
        let addresses = LISTENERS.iter().map(|_| ports::free()).collect();
        let mut server = Builtin { processes: Vec::new(), addresses, certificates, limits, _directory: directory };
        server.launch();
        Ok(server)
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        let address = self.addresses[listener as usize];
        let tls = (listener == Listener::Encrypted).then(|| Tls {
            server_name: "localhost".to_owned(),
            authorities: Some(self.certificates.authority.clone()),
        });
        Ok(Endpoint { shown: address.to_string(), address, tls, credentials: None })
    }

    fn kill(&mut self) {
        for mut process in self.processes.drain(..) {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn restart(&mut self) {
        self.launch();
    }

    fn pause(&self) -> bool {
        self.signal(libc::SIGSTOP);
        true
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }
}

impl Drop for Builtin {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn mqtt_5_plain() {
    run_all::<Mqtt5, Builtin>(Mqtt5::capabilities(), Listener::Plain);
}

#[test]
fn mqtt_5_encrypted() {
    run_all::<Mqtt5, Builtin>(Mqtt5::capabilities(), Listener::Encrypted);
}

#[test]
fn mqtt_311_plain() {
    run_all::<Mqtt311, Builtin>(Mqtt311::capabilities(), Listener::Plain);
}

#[test]
fn mqtt_311_encrypted() {
    run_all::<Mqtt311, Builtin>(Mqtt311::capabilities(), Listener::Encrypted);
}
