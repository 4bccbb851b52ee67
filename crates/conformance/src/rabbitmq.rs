//! Debian's RabbitMQ with its plug-ins for MQTT and AMQP 1.0, and a private configuration. One node serves all listeners
//! because it starts slowly. All listeners require a log-in; where a test needs none, the endpoint includes the credentials.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_model::workload::Credentials;
use pubmark_protocol::endpoint::{Endpoint, Tls};
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::ports;
use crate::processes::find;
use crate::server::{LOGIN, Limits, Listener, Missing, SMALL_PACKET_BYTES, Server};

const START_TRIES: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(120);
const LOCALHOST: &str = "127.0.0.1";
/// Address on which nodes listen for each other.
const INTERFACE: &str = "-kernel inet_dist_use_interface {127,0,0,1}";

/// Where a node listens.
#[derive(Clone, Copy)]
struct Addresses {
    amqp: SocketAddr,
    amqps: SocketAddr,
    mqtt: SocketAddr,
    /// Ports for other nodes, and of the daemon that knows nodes by name.
    distribution: SocketAddr,
    names: SocketAddr,
}

impl Addresses {
    fn free() -> Addresses {
        let [amqp, amqps, mqtt, distribution, names] = std::array::from_fn(|_| ports::free());
        Addresses { amqp, amqps, mqtt, distribution, names }
    }
}

/// A running RabbitMQ; killed when dropped.
pub struct RabbitMq {
    node: Child,
    /// The daemon that knows nodes by name, which the node would otherwise start and leave behind.
    names: Child,
    addresses: Addresses,
    limits: Limits,
    certificates: Certificates,
    folder: TempDir,
    program: PathBuf,
    starts: u32,
}

/// Sends the process a signal when this thread ends: it must not outlive a test that is killed.
fn ends_with_us(command: &mut Command, signal: libc::c_int) {
    // SAFETY: between fork and exec only prctl is called, which is allowed there.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        });
    }
}

fn start_names(address: SocketAddr) -> Result<Child, Missing> {
    let missing = || Missing("epmd is not installed (`apt-get install erlang-base`)".to_owned());
    let mut command = Command::new(find("epmd", &[]).ok_or_else(missing)?);
    command.args(["-address", LOCALHOST, "-port", &address.port().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ends_with_us(&mut command, libc::SIGKILL);
    Ok(command.spawn().unwrap())
}

impl RabbitMq {
    /// Where its MQTT plug-in listens.
    pub fn mqtt(&self) -> Endpoint {
        let address = self.addresses.mqtt;
        Endpoint {
            shown: format!("mqtt://{address}"),
            address,
            tls: None,
            credentials: login(),
            upgrade: None,
            settings: None,
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn configuration(&self) -> String {
        let Addresses { amqp, amqps, mqtt, .. } = self.addresses;
        let files = &self.certificates;
        let mut text = format!("listeners.tcp.1 = {amqp}\nlisteners.ssl.1 = {amqps}\nmqtt.listeners.tcp.1 = {mqtt}\n");
        for (key, file) in [("cacertfile", &files.authority), ("certfile", &files.server), ("keyfile", &files.key)] {
            writeln!(text, "ssl_options.{key} = {}", file.display()).unwrap();
        }
        writeln!(text, "default_user = {}\ndefault_pass = {}", LOGIN.0, LOGIN.1).unwrap();
        if self.limits == Limits::Small {
            // A message of exactly the limit would be accepted.
            writeln!(text, "max_message_size = {}", SMALL_PACKET_BYTES - 1).unwrap();
        }
        text
    }

    /// Makes a virtual host that the only account may use.
    pub fn add_virtual_host(&self, name: &str) {
        let port = ports::free().port().to_string();
        for arguments in [&["add_vhost", name][..], &["set_permissions", "-p", name, LOGIN.0, ".*", ".*", ".*"]] {
            let mut command = Command::new(self.program.with_file_name("rabbitmqctl"));
            command.envs(self.environment()).args(arguments).stdin(Stdio::null());
            // The program that calls the node listens, too.
            command.env("RABBITMQ_CTL_DIST_PORT_MIN", &port).env("RABBITMQ_CTL_DIST_PORT_MAX", &port);
            command.env("RABBITMQ_CTL_ERL_ARGS", INTERFACE);
            let called = command.output().unwrap();
            assert!(called.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&called.stderr));
        }
    }

    fn environment(&self) -> [(&'static str, String); 13] {
        let place = self.folder.path().display().to_string();
        [
            ("HOME", place.clone()),
            ("ERL_EPMD_ADDRESS", LOCALHOST.to_owned()),
            ("ERL_EPMD_PORT", self.addresses.names.port().to_string()),
            // Replaces the machine's own file.
            ("RABBITMQ_CONF_ENV_FILE", self.write("rabbitmq-env.conf", "").display().to_string()),
            ("RABBITMQ_CONFIG_FILE", self.write("rabbitmq.conf", &self.configuration()).display().to_string()),
            (
                "RABBITMQ_ENABLED_PLUGINS_FILE",
                self.write("plugins", "[rabbitmq_mqtt,rabbitmq_amqp1_0].\n").display().to_string(),
            ),
            ("RABBITMQ_NODENAME", "pubmark@localhost".to_owned()),
            ("RABBITMQ_DIST_PORT", self.addresses.distribution.port().to_string()),
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", INTERFACE.to_owned()),
            ("RABBITMQ_MNESIA_BASE", format!("{place}/mnesia-{}", self.starts)),
            ("RABBITMQ_LOG_BASE", format!("{place}/logs")),
            ("RABBITMQ_LOGS", "-".to_owned()),
            ("RABBITMQ_PID_FILE", format!("{place}/pid")),
        ]
    }

    /// Starts the node with empty storage.
    fn spawn(&mut self) {
        self.starts += 1;
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.envs(self.environment()).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // The program is a script: what it starts is signalled with it.
        command.process_group(0);
        ends_with_us(&mut command, libc::SIGTERM);
        self.node = command.spawn().unwrap();
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the group of our child, which was not waited for, so the number is still its own.
        unsafe { libc::kill(-(self.node.id() as libc::pid_t), signal) };
    }

    /// How many of its addresses accept connections.
    fn listening(&self) -> usize {
        let all = [self.addresses.amqp, self.addresses.amqps, self.addresses.mqtt];
        all.iter().filter(|address| TcpStream::connect(address).is_ok()).count()
    }

    /// Waits until it listens on all addresses; false if it exits before that.
    fn listens(&mut self) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if self.node.try_wait().unwrap().is_some() {
                return false;
            }
            if self.listening() == 3 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("RabbitMQ does not listen after {START_TIMEOUT:?}: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn login() -> Option<Credentials> {
    Some(Credentials { user: LOGIN.0.to_owned(), password: LOGIN.1.into() })
}

impl Server for RabbitMq {
    fn start(limits: Limits) -> Result<RabbitMq, Missing> {
        let missing = || Missing("RabbitMQ is not installed (`apt-get install rabbitmq-server`)".to_owned());
        // Not the one in `PATH`: it changes to another user.
        let program = find("rabbitmq-server", &["/usr/lib/rabbitmq/bin".into()]).ok_or_else(missing)?;
        for _ in 0..START_TRIES {
            let folder = TempDir::with_prefix("pubmark-conformance-").unwrap();
            let certificates = Certificates::make(folder.path(), "server");
            let addresses = Addresses::free();
            let mut server = RabbitMq {
                node: Command::new("true").spawn().unwrap(),
                names: start_names(addresses.names)?,
                addresses,
                limits,
                certificates,
                folder,
                program: program.clone(),
                starts: 0,
            };
            server.node.wait().unwrap();
            server.spawn();
            if server.listens() {
                return Ok(server);
            }
            eprintln!("RabbitMQ did not start, trying other ports: {}", server.log());
        }
        panic!("RabbitMQ did not start in {START_TRIES} tries");
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        let is_encrypted = listener == Listener::Encrypted;
        let authorities = Some(self.certificates.authority.clone());
        let tls = is_encrypted.then(|| Tls { server_name: "localhost".to_owned(), authorities, identity: None });
        let (scheme, address) =
            if is_encrypted { ("amqps", self.addresses.amqps) } else { ("amqp", self.addresses.amqp) };
        let credentials = if listener == Listener::Guarded { None } else { login() };
        Ok(Endpoint {
            shown: format!("{scheme}://{address}"),
            address,
            tls,
            credentials,
            upgrade: None,
            settings: None,
        })
    }

    fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        self.node.wait().unwrap();
        // The script exits at once; the node that it started takes a moment, in which the next start would mistake it for its own.
        let deadline = Instant::now() + START_TIMEOUT;
        while self.listening() > 0 {
            assert!(Instant::now() < deadline, "RabbitMQ was killed and still listens");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn restart(&mut self) {
        self.spawn();
        assert!(self.listens(), "RabbitMQ did not start again: {}", self.log());
    }

    fn pause(&self) -> bool {
        self.signal(libc::SIGSTOP);
        true
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        if let Ok(None) = self.node.try_wait() {
            self.signal(libc::SIGKILL);
            let _ = self.node.wait();
        }
        let _ = self.names.kill();
        let _ = self.names.wait();
    }
}
