//! Apache Artemis as `pubmark install artemis` installs it, with an instance of its own. One broker serves all listeners
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
use crate::processes::{find, installed};
use crate::server::{LOGIN, Limits, Listener, Missing, Server};

const START_TRIES: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Release that `pubmark install artemis` installs.
const RELEASE: &str = "apache-artemis-2.56.0";

/// Where a broker listens.
#[derive(Clone, Copy)]
struct Addresses {
    amqp: SocketAddr,
    amqps: SocketAddr,
    /// Unused, but the configuration requires them.
    mqtt: SocketAddr,
    stomp: SocketAddr,
}

/// A running Artemis; killed when dropped.
pub struct Artemis {
    broker: Child,
    addresses: Addresses,
    certificates: Certificates,
    folder: TempDir,
    program: PathBuf,
}

impl Artemis {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Makes the instance, with one account.
    fn create(&self) {
        let mut command = Command::new(&self.program);
        command.env_remove("JAVA_ARGS").arg("create").arg(self.folder.path().join("instance"));
        command.args(["--silent", "--name", "conformance", "--host", "127.0.0.1", "--require-login"]);
        command.args(["--user", LOGIN.0, "--password", LOGIN.1, "--role", "amq"]);
        command.args(["--no-web", "--no-autotune", "--no-hornetq-acceptor"]);
        let made = command.output().unwrap();
        assert!(made.status.success(), "artemis create failed: {}", String::from_utf8_lossy(&made.stderr));
    }

    /// What differs from what `create` writes. The listener for all protocols is the encrypted one.
    fn properties(&self) -> String {
        let Addresses { amqp, amqps, mqtt, stomp } = self.addresses;
        let mut text = String::from("persistenceEnabled=false\n");
        for (acceptor, address) in [("amqp", amqp), ("artemis", amqps), ("mqtt", mqtt), ("stomp", stomp)] {
            writeln!(text, "acceptorConfigurations.{acceptor}.params.port={}", address.port()).unwrap();
        }
        let files = &self.certificates;
        let store = format!("source.cert={}\nsource.key={}\n", files.server.display(), files.key.display());
        let store = self.write("server.pemcfg", &store);
        for (key, value) in
            [("sslEnabled", "true"), ("keyStoreType", "PEMCFG"), ("keyStorePath", &store.display().to_string())]
        {
            writeln!(text, "acceptorConfigurations.artemis.params.{key}={value}").unwrap();
        }
        text
    }

    /// Starts the broker with empty storage.
    fn spawn(&mut self) {
        let instance = self.folder.path().join("instance");
        let instance = instance.display();
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let properties = self.write("broker.properties", &self.properties());
        let mut command = Command::new(&self.program);
        command.arg("run").arg("--properties").arg(properties);
        command.env("JAVA_ARGS", "-Xms64M -Xmx512M").env(
            "JAVA_ARGS_APPEND",
            format!(
                "-Dlog4j2.disableJmx=true --add-opens java.base/jdk.internal.misc=ALL-UNNAMED \
                 -Dartemis.instance={instance} -Dartemis.instance.etc={instance}/etc -Ddata.dir={instance}/data \
                 -Djava.io.tmpdir={instance}/tmp -Djava.security.auth.login.config={instance}/etc/login.config"
            ),
        );
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // The program is a script: what it starts is signalled with it.
        command.process_group(0);
        // SAFETY: between fork and exec only prctl is called, which is allowed there.
        unsafe {
            command.pre_exec(|| {
                // It must not outlive a test that is killed.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        self.broker = command.spawn().unwrap();
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the group of our child, which was not waited for, so the number is still its own.
        unsafe { libc::kill(-(self.broker.id() as libc::pid_t), signal) };
    }

    /// Waits until it accepts connections; false if it exits before that.
    fn listens(&mut self) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if self.broker.try_wait().unwrap().is_some() {
                return false;
            }
            let all = [self.addresses.amqp, self.addresses.amqps];
            if all.iter().all(|address| TcpStream::connect(address).is_ok()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("Artemis does not listen after {START_TIMEOUT:?}: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Server for Artemis {
    fn start(limits: Limits) -> Result<Artemis, Missing> {
        if limits == Limits::Small {
            return Err(Missing("Artemis takes messages of any size over AMQP".to_owned()));
        }
        let missing = || Missing("Artemis is not installed (`pubmark install artemis`)".to_owned());
        let program = installed("artemis").join(RELEASE).join("bin/artemis");
        let program = program.is_file().then_some(program).ok_or_else(missing)?;
        find("java", &[])
            .ok_or_else(|| Missing("Java is not installed (`apt-get install default-jdk-headless`)".into()))?;
        for _ in 0..START_TRIES {
            let folder = TempDir::with_prefix("pubmark-conformance-").unwrap();
            let certificates = Certificates::make(folder.path(), "server");
            let [amqp, amqps, mqtt, stomp] = std::array::from_fn(|_| ports::free());
            let addresses = Addresses { amqp, amqps, mqtt, stomp };
            let mut broker = Command::new("true").spawn().unwrap();
            broker.wait().unwrap();
            let mut server = Artemis { broker, addresses, certificates, folder, program: program.clone() };
            server.create();
            server.spawn();
            if server.listens() {
                return Ok(server);
            }
            eprintln!("Artemis did not start, trying other ports: {}", server.log());
        }
        panic!("Artemis did not start in {START_TRIES} tries");
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        let is_encrypted = listener == Listener::Encrypted;
        let authorities = Some(self.certificates.authority.clone());
        let tls = is_encrypted.then(|| Tls { server_name: "localhost".to_owned(), authorities, identity: None });
        let (scheme, address) =
            if is_encrypted { ("amqps", self.addresses.amqps) } else { ("amqp", self.addresses.amqp) };
        let known = || Credentials { user: LOGIN.0.to_owned(), password: LOGIN.1.into() };
        let credentials = (listener != Listener::Guarded).then(known);
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
        self.broker.wait().unwrap();
    }

    fn restart(&mut self) {
        self.spawn();
        assert!(self.listens(), "Artemis did not start again: {}", self.log());
    }

    fn pause(&self) -> bool {
        self.signal(libc::SIGSTOP);
        true
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }
}

impl Drop for Artemis {
    fn drop(&mut self) {
        if let Ok(None) = self.broker.try_wait() {
            self.signal(libc::SIGKILL);
            let _ = self.broker.wait();
        }
    }
}
