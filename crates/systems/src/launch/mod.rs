//! Starting a system as a program of this machine.

mod command_line;
mod options;

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use pubmark_record::record::Deviation;

use crate::condition::{Neighbours, Situation, When};
pub use command_line::{CommandLine, ContainerOrder};
pub use options::{BackEndChoice, Endpoint, StartOptions, TlsFiles, TopologyChoice, TopologyMode};

use crate::definition::{Change, Definition, ProcessBackEnd};
use crate::error::SystemError;
use crate::ports;
use crate::private_directory::PrivateDirectory;
use crate::process::{Process, run_to_end};
pub use crate::programs::{find_program, read_version};
use crate::running::{RunningSystem, log_tail};
use crate::template::Values;
use crate::tree;

/// Starts tried when a port that was free a moment ago is taken.
const ATTEMPTS: u32 = 4;
/// Time between two looks at a system that is starting.
const LOOK: Duration = Duration::from_millis(3);
/// Longest wait for one TCP connect to the loopback address.
const CONNECT: Duration = Duration::from_millis(500);
/// Longest run of a command that tells a version or prepares a start.
const COMMAND: Duration = Duration::from_secs(20);
/// Words in the logs of programs that found their port taken.
const PORT_TAKEN: [&str; 3] = ["in use", "EADDRINUSE", "eaddrinuse"];

/// Starts a system and waits until it listens and `ready` agrees. `ready` makes a real publish → receive and is called
/// again after a failure until the definition's time is over. Everything is taken back on any failure.
pub fn start(
    definition: &Definition,
    options: &StartOptions,
    ready: &mut dyn FnMut(&Endpoint) -> Result<(), String>,
) -> Result<RunningSystem, SystemError> {
    let back_end = definition
        .back_ends
        .process
        .as_ref()
        .ok_or_else(|| SystemError::NoBackEnd { system: definition.name.clone(), reason: "its definition has no back end".to_owned() })?;
    let profile = definition.profile(&options.profile)?;
    definition.offer(&options.protocol)?;
    if options.credentials.is_some() && !definition.can_ask_for_login() {
        return Err(SystemError::NoLogin { system: definition.name.clone() });
    }
    let program = find_program(&back_end.program, back_end)?;
    let version = read_version(&program, back_end)?;
    let mut attempt = 1;
    loop {
        let mut launch = Launch::prepare(definition, options, back_end, &profile.text, &program)?;
        match launch.run(back_end, ready) {
            Ok(process) => {
                let changes = definition.deviations.iter().chain(&profile.deviations);
                return Ok(RunningSystem {
                    name: definition.name.clone(),
                    version,
                    builtin: back_end.program == "{self}",
                    profile: options.profile.clone(),
                    ranked: definition.ranked,
                    deviations: launch.deviations(changes),
                    endpoints: vec![launch.endpoint],
                    configuration: launch.configuration,
                    log: launch.log,
                    process,
                    stop_within: back_end.stop_within(),
                    _directory: launch.directory,
                });
            }
            Err(SystemError::Exited { log_tail, .. }) if attempt < ATTEMPTS && says_port_taken(&log_tail) => {
                attempt += 1
            }
            Err(error) => return Err(error),
        }
    }
}

fn says_port_taken(log: &str) -> bool {
    PORT_TAKEN.iter().any(|words| log.contains(words))
}

/// One attempt to start.
struct Launch<'a> {
    definition: &'a Definition,
    options: &'a StartOptions,
    directory: PrivateDirectory,
    values: Values,
    /// The first configuration file as written, the password left out.
    configuration: Option<String>,
    endpoint: Endpoint,
    program: PathBuf,
    log: PathBuf,
}

impl<'a> Launch<'a> {
    fn prepare(
        definition: &'a Definition,
        options: &'a StartOptions,
        back_end: &ProcessBackEnd,
        profile_text: &str,
        program: &Path,
    ) -> Result<Launch<'a>, SystemError> {
        let directory = PrivateDirectory::new()?;
        let ports = ports::free(definition.listeners.len())?;
        let port_of = definition.listeners.keys().cloned().zip(ports);
        let mut values = Values::default();
        let mut endpoint = None;
        let offer = definition.offer(&options.protocol)?;
        for (listener, port) in port_of {
            values.set(&format!("port:{listener}"), port.to_string());
            if listener == offer.listener {
                endpoint = Some(endpoint_of(definition, options, &listener, port)?);
            }
        }
        let endpoint = endpoint.ok_or_else(|| SystemError::NoBackEnd { system: definition.name.clone(), reason: "its definition has no back end".to_owned() })?;
        values.set("host", "127.0.0.1");
        values.set("self", program.display().to_string());
        values.set("directory", directory.path().display().to_string());
        values.set("user", own_user_name());
        if let Some(tls) = &options.tls {
            values.set("authority", absolute(&tls.authority)?);
            values.set("certificate", absolute(&tls.certificate)?);
            values.set("key", absolute(&tls.key)?);
        }
        if let Some(login) = &options.credentials {
            values.set("login_user", &login.user);
            values.set("login_password", &login.password);
        }
        values.set("profile", values.fill(profile_text));
        let log_folder = options.directory.as_deref().unwrap_or(directory.path());
        let log = log_folder.join(format!("{}.log", definition.name));
        let program = program.to_owned();
        let mut launch = Launch { definition, options, directory, values, configuration: None, endpoint, program, log };
        launch.write_files()?;
        launch.run_preparations(back_end)?;
        Ok(launch)
    }

    fn applies(&self, when: &When) -> bool {
        when.applies(&Situation {
            tls: self.options.tls.is_some(),
            password: self.options.credentials.is_some(),
            container: false,
            neighbours: Neighbours::None,
            first: true,
            raised: false,
        })
    }

    fn write_files(&mut self) -> Result<(), SystemError> {
        let mut shown = self.values.clone();
        shown.set("login_password", "********");
        let mut configuration = None;
        for file in self.definition.files.iter().filter(|file| self.applies(&file.when)) {
            let template: String =
                file.parts.iter().filter(|part| self.applies(&part.when)).map(|part| part.text.as_str()).collect();
            let path = self.directory.path().join(&file.name);
            write_private(&path, self.values.fill(&template).as_bytes())?;
            configuration.get_or_insert_with(|| shown.fill(&template));
        }
        self.configuration = configuration;
        Ok(())
    }

    fn run_preparations(&self, back_end: &ProcessBackEnd) -> Result<(), SystemError> {
        for prepare in back_end.prepare.iter().filter(|prepare| self.applies(&prepare.when)) {
            let mut command = Command::new(find_program(&prepare.program, back_end)?);
            command.args(prepare.arguments.iter().map(|argument| self.values.fill(argument)));
            let shown = format!("{command:?}");
            let (status, output) = run_to_end(command, COMMAND)?;
            if !status.success() {
                return Err(SystemError::Command { command: shown, outcome: format!("failed ({status})"), output });
            }
        }
        Ok(())
    }

    /// Starts the program and waits until it is ready.
    fn run(
        &mut self,
        back_end: &ProcessBackEnd,
        ready: &mut dyn FnMut(&Endpoint) -> Result<(), String>,
    ) -> Result<Process, SystemError> {
        let failed = |source| SystemError::File { action: "write", path: self.log.clone(), source };
        let log = fs::File::create(&self.log).map_err(failed)?;
        let second = log.try_clone().map_err(failed)?;
        let mut command = Command::new(&self.program);
        for part in back_end.arguments.iter().filter(|part| self.applies(&part.when)) {
            command.args(part.add.iter().map(|argument| self.values.fill(argument)));
        }
        command.envs(back_end.environment.iter().map(|(name, value)| (name, self.values.fill(value))));
        command.current_dir(self.directory.path());
        command.stdin(std::process::Stdio::null()).stdout(log).stderr(second);
        let mut process = Process::start(command)
            .map_err(|source| SystemError::Run { program: self.program.display().to_string(), source })?;
        self.wait_until_ready(&mut process, back_end.ready_within(), ready)?;
        Ok(process)
    }

    fn wait_until_ready(
        &self,
        process: &mut Process,
        within: Duration,
        ready: &mut dyn FnMut(&Endpoint) -> Result<(), String>,
    ) -> Result<(), SystemError> {
        let system = || self.definition.name.clone();
        let deadline = Instant::now() + within;
        loop {
            if self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(SystemError::Interrupted { system: system() });
            }
            let outcome = self.look(process.pid(), ready);
            // Looked at last: a program that has ended cannot be ready, whoever answered on its port.
            if let Some(status) = process.ended() {
                return Err(SystemError::Exited {
                    system: system(),
                    status: status.to_string(),
                    log_tail: log_tail(&self.log),
                });
            }
            let Err(reason) = outcome else { return Ok(()) };
            if Instant::now() >= deadline {
                let log_tail = log_tail(&self.log);
                return Err(SystemError::NotReady {
                    system: system(),
                    seconds: within.as_secs_f64(),
                    reason,
                    log_tail,
                });
            }
            thread::sleep(LOOK);
        }
    }

    /// Does the system listen, is it really the one that does, and does it do its work?
    fn look(&self, pid: u32, ready: &mut dyn FnMut(&Endpoint) -> Result<(), String>) -> Result<(), String> {
        let address = self.endpoint.address;
        TcpStream::connect_timeout(&address, CONNECT)
            .map_err(|error| format!("no connection to {address}: {error}"))?;
        if tree::listens(pid, address.port()) == Some(false) {
            return Err(format!("another program listens on {address}"));
        }
        ready(&self.endpoint)
    }

    fn deviations<'b>(&self, changes: impl Iterator<Item = &'b Change>) -> Vec<Deviation> {
        changes
            .filter(|change| self.applies(&change.when))
            .map(|change| Deviation {
                name: change.name.clone(),
                detail: format!("{}: {}", self.values.fill(&change.setting), change.reason),
            })
            .collect()
    }
}

fn endpoint_of(
    definition: &Definition,
    options: &StartOptions,
    listener: &str,
    port: u16,
) -> Result<Endpoint, SystemError> {
    let schemes = &definition.listeners[listener];
    let scheme = match &options.tls {
        None => schemes.scheme.clone(),
        Some(_) => schemes.tls_scheme.clone().ok_or_else(|| SystemError::NoTls {
            system: definition.name.clone(),
            protocol: options.protocol.clone(),
        })?,
    };
    Ok(Endpoint {
        scheme,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        authority: options.tls.as_ref().map(|tls| tls.authority.clone()),
        credentials: options.credentials.clone(),
        values: Values::default(),
    })
}

fn write_private(path: &Path, text: &[u8]) -> Result<(), SystemError> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text))
        .map_err(|source| SystemError::File { action: "write", path: path.to_owned(), source })
}

fn absolute(path: &Path) -> Result<String, SystemError> {
    let found =
        path.canonicalize().map_err(|source| SystemError::File { action: "find", path: path.to_owned(), source })?;
    Ok(found.display().to_string())
}

/// Name of the user we run as; its number where the machine has no name for it.
fn own_user_name() -> String {
    // SAFETY: the call has no arguments and cannot fail.
    let uid = unsafe { libc::geteuid() }.to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&uid.as_str()))
        .map_or(uid.clone(), |fields| fields[0].to_owned())
}
