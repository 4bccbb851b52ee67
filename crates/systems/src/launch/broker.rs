//! One broker of a start: its supervisor, its folder and files, its control group, its command line.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use pubmark_record::record::SystemEnd;

use crate::affinity;
use crate::cgroup::control::{self, Cgroup, CgroupLimits};
use crate::cgroup::layout::{Layout, Version};
use crate::condition::{Situation, When};
use crate::container::Engine;
use crate::definition::{ConfigurationFile, PrepareCommand, ProcessBackEnd};
use crate::error::SystemError;
use crate::launch::plan::{BackEnd, Plan};
use crate::launch::values::{self, Folders, Ports};
use crate::launch::{CommandLine, ContainerOrder, Endpoint, TlsFiles};
use crate::private_directory::{self, PrivateDirectory};
use crate::programs::{SELF, find_program};
use crate::running::log_tail;
use crate::supervisor::messages::{Holdings, Work};
use crate::supervisor::supervised::Supervised;
use crate::template::Values;

/// Longest run of a command that prepares a start: a Java program on a busy machine takes seconds.
const PREPARE_WITHIN: Duration = Duration::from_secs(60);
/// Text that replaces a password.
const MASK: &str = "********";
/// How to run pubmark so that limits can be enforced.
const REMEDY: &str = "run pubmark as root, or by `systemd-run --user --scope -p Delegate=yes pubmark …`";

/// A broker that is starting or runs. Dropping it kills the broker and removes everything that it used.
#[derive(Debug)]
pub(crate) struct Broker {
    // Dropped in this order: the supervisor removes the container and the folder first.
    pub(crate) held: Supervised,
    directory: PrivateDirectory,
    pub(crate) endpoint: Endpoint,
    /// Endpoint for the second protocol, if there is one.
    pub(crate) second_endpoint: Option<Endpoint>,
    pub(crate) log: PathBuf,
    /// The first configuration file as written, with the password masked.
    pub(crate) configuration: Option<String>,
    pub(crate) cgroup: Option<Cgroup>,
    /// The broker's container.
    pub(crate) container: Option<Contained>,
    /// How the broker ended; `None` while it runs.
    pub(crate) end: Option<SystemEnd>,
    values: Values,
    situation: Situation,
    /// Cores that the broker may use; all if empty.
    pub(crate) cores: Vec<u32>,
    /// How its program was started, so that it can be started again.
    pub(crate) work: Option<Work>,
}

/// The container of a broker.
#[derive(Debug)]
pub(crate) struct Contained {
    /// The container's name.
    pub(crate) name: String,
    /// The engine that runs it.
    pub(crate) engine: Engine,
    /// The container is paused, and would not receive a request to end.
    pub(crate) is_paused: bool,
}

impl Drop for Contained {
    fn drop(&mut self) {
        // The supervisor, which is dropped earlier, has removed the container.
        self.engine.wait_for_monitor(&self.name);
    }
}

/// What all brokers of a start share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The shared folder; the first supervisor removes it.
    pub(super) directory: PrivateDirectory,
    /// Certificates of the brokers.
    pub(super) tls: Option<TlsFiles>,
}

/// Starts a supervisor and creates the folder that it removes at the end.
pub(super) fn begin(plan: &Plan) -> Result<(Supervised, PrivateDirectory), SystemError> {
    let mut held = Supervised::begin(plan.options.supervisor.as_deref())?;
    let path = private_directory::planned(&private_directory::folder()?);
    held.hold(Holdings { directories: vec![path.clone()], ..Holdings::default() })?;
    Ok((held, PrivateDirectory::create(&path)?))
}

impl Broker {
    /// Writes the broker's files and runs the commands that prepare its start.
    pub(super) fn prepare(
        plan: &Plan,
        number: usize,
        (held, directory): (Supervised, PrivateDirectory),
        shared: &Shared,
        ports: &[Ports],
    ) -> Result<Broker, SystemError> {
        let folders = folders(plan, directory.path(), shared)?;
        let values = values::values(plan, number, ports, &folders)?;
        let tls = shared.tls.as_ref();
        let listens = |protocol: &str, offer| values::endpoint(plan, (protocol, offer), &ports[number], &values, tls);
        let endpoint = listens(&plan.options.protocol, plan.offer)?;
        let second_endpoint = match &plan.options.second_protocol {
            Some(protocol) => Some(listens(protocol, plan.definition.offer(protocol)?)?),
            None => None,
        };
        // The supervisor has another working directory.
        let log_folder = std::path::absolute(plan.options.directory.as_deref().unwrap_or(directory.path()));
        let log_folder = log_folder.map_err(|source| SystemError::File {
            action: "find",
            path: plan.options.directory.clone().unwrap_or_default(),
            source,
        })?;
        let name = &plan.definition.name;
        let log =
            if plan.brokers() == 1 { format!("{name}.log") } else { format!("{}.log", values::name_of(plan, number)) };
        let mut broker = Broker {
            held,
            endpoint,
            second_endpoint,
            log: log_folder.join(log),
            configuration: None,
            cgroup: None,
            container: None,
            end: None,
            situation: plan.situation(number),
            cores: cores(plan, number),
            work: None,
            values,
            directory,
        };
        broker.write_files(plan, number, ports)?;
        if let BackEnd::Process { found, .. } = &plan.back_end {
            broker.run_preparations(plan, found)?;
        }
        Ok(broker)
    }

    pub(super) fn applies(&self, when: &When) -> bool {
        when.applies(&self.situation)
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    fn write_files(&mut self, plan: &Plan, number: usize, ports: &[Ports]) -> Result<(), SystemError> {
        let situation = self.situation;
        for file in plan.definition.files.iter().filter(|file| file.when.applies(&situation)) {
            let path = self.directory.path().join(&file.name);
            if let Some(folder) = path.parent() {
                make_folder(folder)?;
            }
            let text = self.text_of(file, plan, number, ports, &self.values);
            write_private(&path, &text, file.executable)?;
            if self.configuration.is_none() {
                let mut masked = self.values.clone();
                masked.set("login_password", MASK);
                self.configuration = Some(self.text_of(file, plan, number, ports, &masked));
            }
        }
        Ok(())
    }

    fn text_of(
        &self,
        file: &ConfigurationFile,
        plan: &Plan,
        number: usize,
        ports: &[Ports],
        values: &Values,
    ) -> String {
        let mut text = String::new();
        for part in file.parts.iter().filter(|part| self.applies(&part.when)) {
            if part.for_each_other {
                let others = (0..plan.brokers()).filter(|other| *other != number);
                let texts = others.map(|other| values::with_other(plan, values, other, ports).fill(&part.text));
                text.push_str(&texts.collect::<Vec<_>>().join(&part.between));
            } else {
                text.push_str(&values.fill(&part.text));
            }
        }
        text
    }

    fn run_preparations(&mut self, plan: &Plan, back_end: &ProcessBackEnd) -> Result<(), SystemError> {
        let prepare: Vec<&PrepareCommand> = back_end.prepare.iter().filter(|it| self.applies(&it.when)).collect();
        for command in prepare {
            let work = self.work_of(plan, back_end, command)?;
            let status = self.held.run(&work, PREPARE_WITHIN)?;
            if !status.success() {
                return Err(SystemError::Command {
                    command: format!("{} {}", work.program.display(), command.arguments.join(" ")),
                    outcome: format!("failed ({status})"),
                    output: work.log.as_deref().map(log_tail).unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    /// Runs a command beside the broker and returns its status and output.
    pub(super) fn run_work(&mut self, work: Work, within: Duration) -> Result<(ExitStatus, String), SystemError> {
        let log = self.directory.path().join("pubmark-answer");
        let work = Work { log: Some(log.clone()), directory: self.directory.path().to_owned(), ..work };
        let status = self.held.run(&work, within)?;
        let output = fs::read(&log).map_err(|source| SystemError::File { action: "read", path: log, source })?;
        Ok((status, String::from_utf8_lossy(&output).into_owned()))
    }

    fn work_of(&self, plan: &Plan, back_end: &ProcessBackEnd, command: &PrepareCommand) -> Result<Work, SystemError> {
        Ok(Work {
            program: find_program(&command.program, back_end)?,
            arguments: command.arguments.iter().map(|argument| self.values.fill(argument)).collect(),
            environment: self.environment(&back_end.environment, plan),
            directory: self.directory.path().to_owned(),
            log: Some(self.directory.path().join("pubmark-command")),
            ..Work::default()
        })
    }

    fn environment(&self, of_back_end: &BTreeMap<String, String>, plan: &Plan) -> Vec<(String, String)> {
        let all = of_back_end.iter().chain(&plan.profile.environment);
        all.map(|(name, value)| (name.clone(), self.values.fill(value))).collect()
    }

    /// Lets the supervisor remove a container that this process is about to create, if this process is killed meanwhile.
    pub(super) fn hold_container(&mut self, removal: &[String]) -> Result<(), SystemError> {
        let clean_up = bare_work(removal, Path::new("/")).into_iter().collect();
        self.held.hold(Holdings { clean_up, ..Holdings::default() })
    }

    /// Starts the broker's program.
    pub(super) fn start(&mut self, plan: &Plan, shared: &Path) -> Result<(), SystemError> {
        let line = self.command_line(plan, shared)?;
        let folder = self.directory.path().to_owned();
        let mut clean_up: Vec<Work> = line.clean_up.iter().filter_map(|words| bare_work(words, &folder)).collect();
        if let BackEnd::Process { found, .. } = &plan.back_end {
            for command in found.clean_up.iter().filter(|command| self.applies(&command.when)) {
                clean_up.push(Work { log: None, ..self.work_of(plan, found, command)? });
            }
        }
        for work in &mut clean_up {
            // The folder may have been removed by then.
            work.directory = PathBuf::from("/");
        }
        self.held.hold(Holdings { clean_up, ..Holdings::default() })?;
        if !line.limits_held_by_container {
            self.make_cgroup(plan)?;
        }
        let keep = !line.limits_held_by_container;
        if let (BackEnd::Container { engine, .. }, Some(name)) = (&plan.back_end, line.container) {
            self.container = Some(Contained { name, engine: engine.as_ref().clone(), is_paused: false });
        }
        let work = Work {
            program: line.program,
            arguments: line.arguments,
            environment: line.environment,
            directory: folder,
            log: Some(self.log.clone()),
            appends: false,
            cgroups: self.cgroup.as_ref().map(Cgroup::folders).unwrap_or_default(),
            cores: if keep { self.cores.clone() } else { vec![] },
        };
        self.held.start(&work)?;
        self.work = Some(work);
        Ok(())
    }

    fn command_line(&self, plan: &Plan, shared: &Path) -> Result<CommandLine, SystemError> {
        let parts = match &plan.back_end {
            BackEnd::Process { found, .. } => &found.arguments,
            BackEnd::Container { found, .. } => &found.arguments,
        };
        let of_parts = parts.iter().filter(|part| self.applies(&part.when)).flat_map(|part| &part.add);
        let all = of_parts.chain(&plan.profile.arguments);
        let arguments: Vec<String> = all.map(|argument| self.values.fill(argument)).collect();
        match &plan.back_end {
            BackEnd::Process { found, program } => Ok(CommandLine {
                program: program.clone(),
                arguments,
                environment: self.environment(&found.environment, plan),
                ..CommandLine::default()
            }),
            BackEnd::Container { found, image, engine } => engine.command_line(&ContainerOrder {
                back_end: found,
                image,
                mounts: vec![
                    (self.directory.path().to_owned(), found.directory.clone()),
                    (shared.to_owned(), shared_in_container(&found.directory)),
                ],
                arguments,
                environment: self.environment(&found.environment, plan),
                limits: plan.limits,
                cores: self.cores.clone(),
                name: group_name(self.held.supervisor_pid()),
            }),
        }
    }

    /// Creates the broker's control group: for limits, and, if we have permission, for counting.
    fn make_cgroup(&mut self, plan: &Plan) -> Result<(), SystemError> {
        let wanted = CgroupLimits {
            cpu: plan.limits.and_then(|limits| limits.cpu),
            memory_bytes: plan.limits.and_then(|limits| limits.memory_bytes),
            cores: self.cores.clone(),
        };
        let is_limited = wanted.cpu.is_some() || wanted.memory_bytes.is_some();
        match self.make_cgroup_for(&wanted) {
            Ok(cgroup) => self.cgroup = cgroup,
            Err(reason) if is_limited => {
                let requested = plan.limits.map(|limits| limits.requested.clone()).unwrap_or_default();
                return Err(SystemError::Limit { requested, reason, remedy: REMEDY });
            }
            // The group is optional: the process tree can be measured instead, and affinity restricts cores.
            Err(_) => {}
        }
        Ok(())
    }

    fn make_cgroup_for(&mut self, wanted: &CgroupLimits) -> Result<Option<Cgroup>, String> {
        let layout = Layout::read().map_err(|error| format!("failed to read where control groups are: {error}"))?;
        control::remove_abandoned(&layout);
        if layout.version() == Version::None && wanted.cpu.is_none() && wanted.memory_bytes.is_none() {
            return Ok(None);
        }
        let name = group_name(self.held.supervisor_pid());
        let group = control::Plan::new(&layout, &name, wanted).map_err(|error| error.to_string())?;
        let holdings = Holdings { cgroups: group.folders(), ..Holdings::default() };
        self.held.hold(holdings).map_err(|error| error.to_string())?;
        let cgroup = group.make().map_err(|error| error.to_string())?;
        Ok((!cgroup.folders().is_empty()).then_some(cgroup))
    }
}

/// A name for this broker's container.
pub(super) fn name_for_container(broker: &Broker) -> String {
    group_name(broker.held.supervisor_pid())
}

/// A unique name. It contains the supervisor's process id, by which abandoned groups are recognised.
fn group_name(supervisor: u32) -> String {
    let random = private_directory::planned(Path::new("")).to_string_lossy().chars().rev().take(8).collect::<String>();
    format!("{}{supervisor}-{random}", control::PREFIX)
}

/// Cores of a broker: all pinned ones. If the number of cores is limited, each broker gets that many of the pinned ones,
/// or of all, in turn.
fn cores(plan: &Plan, number: usize) -> Vec<u32> {
    let pinned = &plan.options.pinned_cores;
    let Some(count) = plan.limits.and_then(|limits| limits.cores) else { return pinned.clone() };
    let from = if pinned.is_empty() { affinity::own_cores() } else { pinned.clone() };
    let count = (count as usize).min(from.len());
    let mut chosen: Vec<u32> = from.iter().cycle().skip(number * count).take(count).copied().collect();
    chosen.sort_unstable();
    chosen
}

/// Folders as paths that the broker's program can use. Certificates are put where a container can read them.
fn folders(plan: &Plan, own: &Path, shared: &Shared) -> Result<Folders, SystemError> {
    let tls = shared.tls.as_ref().map(values::absolute).transpose()?;
    let BackEnd::Container { found, .. } = &plan.back_end else {
        let shared = shared.directory.path().display().to_string();
        return Ok(Folders { own: own.display().to_string(), shared, tls });
    };
    let inside = Path::new(&found.directory);
    let copy = |from: &Path, name: &str| -> Result<PathBuf, SystemError> {
        let to = own.join(name);
        fs::copy(from, &to).map_err(|source| SystemError::File { action: "write", path: to, source })?;
        Ok(inside.join(name))
    };
    let tls = tls.map(|tls| -> Result<TlsFiles, SystemError> {
        Ok(TlsFiles {
            authority: copy(&tls.authority, "authority.pem")?,
            certificate: copy(&tls.certificate, "certificate.pem")?,
            key: copy(&tls.key, "key.pem")?,
        })
    });
    Ok(Folders { own: found.directory.clone(), shared: shared_in_container(&found.directory), tls: tls.transpose()? })
}

fn shared_in_container(directory: &str) -> String {
    format!("{}-shared", directory.trim_end_matches('/'))
}

/// The words of a command line as work for the supervisor; `None` if there is no program.
fn bare_work(words: &[String], folder: &Path) -> Option<Work> {
    let (program, arguments) = words.split_first()?;
    Some(Work {
        program: PathBuf::from(program),
        arguments: arguments.to_vec(),
        directory: folder.to_owned(),
        ..Work::default()
    })
}

fn make_folder(folder: &Path) -> Result<(), SystemError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|source| SystemError::File {
        action: "create",
        path: folder.to_owned(),
        source,
    })
}

pub(crate) fn write_private(path: &Path, text: &str, executable: bool) -> Result<(), SystemError> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(if executable { 0o700 } else { 0o600 })
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| SystemError::File { action: "write", path: path.to_owned(), source })
}

/// Is the system's program the running program itself?
pub(super) fn is_builtin(plan: &Plan) -> bool {
    matches!(&plan.back_end, BackEnd::Process { found, .. } if found.program == SELF)
}
