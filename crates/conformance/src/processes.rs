//! Servers that run one process for each listener. The kinds differ in their command line.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_protocol::endpoint::{Endpoint, Tls, Upgrade};
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::ports;
use crate::server::{Limits, Listener, Missing, Server};

const START_TRIES: usize = 5;
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Address, folder and limits of one listener's process.
pub struct ListenerSpec<'a> {
    /// Its kind of listener.
    pub listener: Listener,
    /// Address to listen on.
    pub address: SocketAddr,
    /// Another free port, for kinds with [`Kind::SUBSCRIBERS_APART`].
    pub subscribers: SocketAddr,
    /// What it accepts.
    pub limits: Limits,
    /// A folder of its own.
    pub folder: &'a Path,
    /// Its certificate, for an encrypted listener.
    pub certificates: &'a Certificates,
}

impl ListenerSpec<'_> {
    /// Writes a file to the folder.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// A kind of server.
pub trait Kind {
    /// Its name, for messages.
    const NAME: &'static str;
    /// Scheme of its endpoints, plain and encrypted.
    const SCHEMES: [&'static str; 2];
    /// The listeners that it can have.
    const LISTENERS: &'static [Listener] = &Listener::ALL;
    /// Subscribers connect to a port of their own.
    const SUBSCRIBERS_APART: bool = false;
    /// Messages at best effort may be lost though nothing is wrong: they are datagrams.
    const MAY_LOSE: bool = false;

    /// Does a server listen there?
    fn listens(address: SocketAddr) -> bool {
        TcpStream::connect(address).is_ok()
    }

    /// The WebSocket subprotocol of its listeners, if they use WebSocket.
    const WEBSOCKET: Option<&'static str> = None;

    /// The command that serves one listener.
    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing>;
}

/// A process of a server.
struct Process {
    listener: Listener,
    address: SocketAddr,
    subscribers: SocketAddr,
    folder: TempDir,
    child: Child,
}

/// A running server of a kind; killed when dropped.
pub struct Processes<K> {
    processes: Vec<Process>,
    certificates: Certificates,
    limits: Limits,
    folder: TempDir,
    kind: std::marker::PhantomData<K>,
}

/// A program in `PATH`, or in the folders outside of it that Debian and pubmark use.
pub fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin".into(), "/usr/local/sbin".into()];
    let all = folders.iter().cloned().chain(std::env::split_paths(&path)).chain(usual);
    all.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Where `pubmark install` puts the programs of a system.
pub fn installed(system: &str) -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".local/share");
    data.unwrap_or_else(home).join("pubmark/programs").join(system)
}

impl<K> Processes<K> {
    /// The server's certificates, and a client's of the same authority.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }
}

impl<K: Kind> Processes<K> {
    fn spawn(&self, place: &ListenerSpec<'_>) -> Result<Child, Missing> {
        let log = std::fs::File::create(place.folder.join("log")).unwrap();
        let mut command = K::command(place)?;
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // SAFETY: between fork and exec only prctl is called, which is allowed there.
        unsafe {
            command.pre_exec(|| {
                // It must not outlive a test that is killed.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        Ok(command.spawn().unwrap())
    }

    /// Starts the process of a listener; tries other ports where another process was faster.
    fn start_one(&self, listener: Listener) -> Result<Process, Missing> {
        for _ in 0..START_TRIES {
            let folder = TempDir::with_prefix_in(K::NAME, self.folder.path()).unwrap();
            let [address, subscribers] = [ports::free(), ports::free()];
            let place = ListenerSpec {
                listener,
                address,
                subscribers,
                limits: self.limits,
                folder: folder.path(),
                certificates: &self.certificates,
            };
            let child = self.spawn(&place)?;
            let mut process = Process { listener, address, subscribers, folder, child };
            if process.listens(K::listens) {
                return Ok(process);
            }
            let log = std::fs::read_to_string(process.folder.path().join("log")).unwrap_or_default();
            eprintln!("{} did not start, trying another port: {log}", K::NAME);
        }
        panic!("{} did not start in {START_TRIES} tries", K::NAME);
    }

    fn signal(&self, signal: libc::c_int) {
        for process in &self.processes {
            // SAFETY: our children, not waited for, so the numbers are still their own.
            unsafe { libc::kill(process.child.id() as libc::pid_t, signal) };
        }
    }
}

impl Process {
    /// Waits until it accepts connections; false if it exits before that.
    fn listens(&mut self, listens: fn(SocketAddr) -> bool) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if listens(self.address) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{} does not listen after {START_TIMEOUT:?}", self.address);
    }
}

impl<K: Kind> Server for Processes<K> {
    fn start(limits: Limits) -> Result<Processes<K>, Missing> {
        let folder = TempDir::with_prefix("pubmark-conformance-").unwrap();
        let certificates = Certificates::make(folder.path(), "server");
        let kind = std::marker::PhantomData;
        let mut server = Processes { processes: vec![], certificates, limits, folder, kind };
        for listener in K::LISTENERS {
            let process = server.start_one(*listener)?;
            server.processes.push(process);
        }
        Ok(server)
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        let process = self.processes.iter().find(|process| process.listener == listener);
        let Some(Process { address, .. }) = process else {
            return Err(Missing(format!("{} has no such listener", K::NAME)));
        };
        let address = *address;
        let tls = (listener == Listener::Encrypted).then(|| Tls {
            server_name: "localhost".to_owned(),
            authorities: Some(self.certificates.authority.clone()),
            identity: None,
        });
        let scheme = K::SCHEMES[usize::from(tls.is_some())];
        let upgrade = K::WEBSOCKET.map(|subprotocol| Upgrade {
            host: address.to_string(),
            path: "/mqtt".to_owned(),
            subprotocol: subprotocol.to_owned(),
        });
        Ok(Endpoint {
            shown: format!("{scheme}://{address}"),
            address,
            tls,
            credentials: None,
            upgrade,
            settings: None,
        })
    }

    fn subscribers_endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        let endpoint = self.endpoint(listener)?;
        let process = self.processes.iter().find(|process| process.listener == listener);
        let Some(process) = process.filter(|_| K::SUBSCRIBERS_APART) else { return Ok(endpoint) };
        let address = process.subscribers;
        Ok(Endpoint { shown: format!("{}://{address}", K::SCHEMES[0]), address, ..endpoint })
    }

    fn kill(&mut self) {
        for process in &mut self.processes {
            // It may have exited already, which is fine.
            let _ = process.child.kill();
            process.child.wait().unwrap();
        }
    }

    fn restart(&mut self) {
        for index in 0..self.processes.len() {
            let process = &self.processes[index];
            let Process { listener, address, subscribers, ref folder, .. } = *process;
            let (limits, folder, certificates) = (self.limits, folder.path(), &self.certificates);
            let place = ListenerSpec { listener, address, subscribers, limits, folder, certificates };
            let child = self.spawn(&place).expect("it was there before");
            self.processes[index].child = child;
            assert!(self.processes[index].listens(K::listens), "{} did not start again", K::NAME);
        }
    }

    fn may_lose(&self) -> bool {
        K::MAY_LOSE
    }

    fn pause(&self) -> bool {
        self.signal(libc::SIGSTOP);
        true
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }
}

impl<K> Drop for Processes<K> {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}
