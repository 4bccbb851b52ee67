//! `pubmark deploy ssh`: nodes on hosts that `ssh` reaches, for one run that this machine leads.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::{Args, Subcommand};
use pubmark_cluster::credentials::{self, Files};
use pubmark_deploy::ssh::hosts::{self, Host};
use pubmark_deploy::ssh::program::Program;
use pubmark_deploy::ssh::session::Caller;
use pubmark_deploy::ssh::{Hosts, Settings};
use pubmark_runner::target::Wanted;
use pubmark_runner::{
    ErrorKind, Host as Machine, Joined, PreparedRun, RunError, RunEvent, RunObserver, check_node_labels,
};

use crate::commands::deploy::Deploy;
use crate::commands::run_arguments::Run;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Port of the coordinator, if nothing else is said.
const PORT: u16 = 7700;
/// Between two looks at whether a node has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Open files of a node besides one for each client.
const OTHER_FILES: u64 = 64;

/// Write the files by which Compose or Kubernetes places a run, or start its nodes by ssh
///
/// The files: a coordinator, its nodes with certificates of their own, and the system in a container with limits. Nothing is started,
/// unless `--apply` lets `kubectl` do it. `pubmark deploy ssh` needs no files, and starts the nodes on the hosts of a list.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, max_term_width = 80)]
pub struct Deployments {
    /// What starts nodes.
    #[command(subcommand)]
    pub by: Option<By>,

    #[command(flatten)]
    pub files: Option<Deploy>,
}

/// What starts nodes, without files.
#[derive(Debug, Subcommand)]
pub enum By {
    Ssh(Ssh),
}

/// Start nodes on hosts by ssh, make a run there, and leave nothing on the hosts
///
/// Checks all hosts, copies this program into a private folder on each, starts a node there, and leads the run on this machine, as
/// `pubmark run --nodes` does. Nodes and folders go with the connection, however it ends.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Ssh {
    /// Hosts, one a line: `[user@]host[:port] [key=value …]`, where `site=edge-1` is a label of the node; `#` begins a comment
    pub hosts: PathBuf,

    /// A built-in workload, the path of a workload file, or the run.yaml of a run
    pub workload: String,

    /// Configuration of `ssh`, in place of that of the user
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,

    /// Folder on hosts in which a private one is made [default: the host's $TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR")]
    pub host_folder: Option<String>,

    /// Program to copy, in place of this one: a build of the same version for the hosts' processor, static if they lack libraries
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,

    /// Address of this machine where nodes join [default: the one from which a host sees the connection come]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,

    /// Options of `pubmark run`, such as `--qos 1 --duration 60s`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

impl Deployments {
    /// Places the run.
    pub fn perform(self, printer: &Printer) -> Outcome {
        match (self.by, self.files) {
            (Some(By::Ssh(ssh)), _) => ssh.perform(printer),
            (None, Some(files)) => files.perform(printer),
            (None, None) => Err(Failure::usage("there is nothing to deploy")
                .hint("`pubmark deploy kubernetes smart-home`, or `pubmark deploy ssh hosts.txt smart-home`")),
        }
    }

    /// Is `--quiet` among the options?
    pub fn is_quiet(&self) -> bool {
        let quiet = |ssh: &Ssh| ssh.options.iter().any(|option| option == "--quiet" || option == "-q");
        matches!(&self.by, Some(By::Ssh(ssh)) if quiet(ssh))
    }
}

impl Ssh {
    fn perform(self, printer: &Printer) -> Outcome {
        let list = hosts::read(&self.hosts)?;
        let run = self.run(&list)?;
        let program = Program::read(self.program.as_deref())?;
        let mut reached = None;
        let outcome = run.perform_with(
            &mut |prepared, machine, observer| {
                let hosts = self.reach(&list, &program, prepared, machine, printer)?;
                let hosts = reached.insert(hosts);
                hosts.copy(&program, &machine.stop)?;
                join(hosts, prepared, machine, observer)
            },
            printer,
        );
        for uncertain in reached.map(Hosts::end).unwrap_or_default() {
            printer.warning(&uncertain);
        }
        outcome
    }

    /// The run, on as many nodes as there are hosts.
    fn run(&self, hosts: &[Host]) -> Result<Run, Failure> {
        let words = std::iter::once(self.workload.clone()).chain(self.options.iter().cloned());
        let mut run = Run::read(&words.collect::<Vec<_>>())?;
        let own = [
            ("--nodes", run.join.nodes.is_some()),
            ("--local-nodes", run.spec()?.nodes.local_nodes.is_some()),
            ("--credentials", run.join.credentials.is_some()),
            ("--announce", run.join.announce),
        ];
        if let Some((option, _)) = own.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format!(
                "`{option}` is not for a run on hosts: each has one node, which this starts"
            ))
            .hint(format!("leave it out; `{}` says which hosts there are", self.hosts.display())));
        }
        if run.spec()?.nodes.observers.is_some() {
            return Err(Failure::usage("`--observers` waits for nodes that this does not start")
                .hint("`--node-exporter URL` for a system on another machine; or `pubmark run --nodes`, and start nodes by hand"));
        }
        if run.spec()?.target.node.is_some() {
            return Err(Failure::usage("`--system-node` waits for a node that this does not start")
                .hint("leave it out: the system runs on this machine; or `--endpoint` for one that runs on another"));
        }
        run.join.nodes = Some(hosts.len() as u16);
        let named: Vec<_> = hosts.iter().map(|host| (host.name.clone(), host.labels.clone())).collect();
        check_node_labels(&run.spec()?.load()?, &named)?;
        Ok(run)
    }

    /// Connects to the hosts, and lets the system listen where they reach it.
    fn reach(
        &self,
        list: &[Host],
        program: &Program,
        prepared: &mut PreparedRun,
        machine: &Machine,
        printer: &Printer,
    ) -> Result<Hosts, Failure> {
        let clients = prepared.fleet.devices().len() + prepared.fleet.subscribers().len();
        let settings = Settings {
            caller: Caller { config: self.ssh_config.clone() },
            folder: self.host_folder.clone(),
            address: self.address,
            files: clients.div_ceil(list.len()) as u64 + OTHER_FILES,
        };
        printer.note(&format!(
            "connecting to {}",
            if list.len() == 1 { "1 host".to_owned() } else { format!("{} hosts", list.len()) }
        ));
        let hosts = Hosts::reach(list.to_vec(), program, settings, &machine.stop)?;
        if let Wanted::Started { options, .. } = &mut prepared.wanted
            && prepared.spec.target.system_host.is_none()
        {
            options.host = match hosts.address() {
                Some(IpAddr::V4(address)) if UdpSocket::bind((address, 0)).is_ok() => address,
                Some(IpAddr::V4(address)) => {
                    return Err(Failure::usage(format!(
                        "{address} is no address of this machine, and the system is to listen there"
                    ))
                    .hint("`-- --system-host ADDRESS`, with one of this machine"));
                }
                Some(IpAddr::V6(_)) => {
                    return Err(Failure::usage(
                        "hosts join over IPv6, and a system that pubmark starts listens over IPv4",
                    )
                    .hint("`-- --endpoint URL` for one that runs already"));
                }
                None => {
                    return Err(Failure::usage("hosts see this machine at several addresses, and the system has one")
                        .hint("`-- --system-host ADDRESS`, with one that all hosts reach"));
                }
            };
        }
        printer.note(&format!("copying {:.0} MB to each", program.bytes as f64 / 1e6));
        Ok(hosts)
    }
}

/// Listens, starts the nodes, and waits until they have joined. The coordinator's key is on a disk only until it was read.
fn join(
    hosts: &mut Hosts,
    prepared: &mut PreparedRun,
    machine: &Machine,
    observer: &mut dyn RunObserver,
) -> Result<(), Failure> {
    let [coordinator, node] = credentials::fresh(credentials::VALID_DAYS)
        .map_err(|error| RunError::from_error(ErrorKind::Internal, &error))?;
    let any = if hosts.over_ipv6() { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    prepared.spec.nodes.listen.get_or_insert(SocketAddr::new(any, PORT));
    let folder = Keys::write(&coordinator)?;
    let nodes = pubmark_runner::spec::Nodes { credentials: Some(folder.0.clone()), ..prepared.spec.nodes.clone() };
    let is_joined: Arc<AtomicBool> = Arc::default();
    let watch = watch_ends(hosts.over(), Arc::clone(&machine.stop), Arc::clone(&is_joined));
    let mut starting = Starting { observer, hosts, folder: Some(folder), node, stop: &machine.stop, failed: None };
    let joined = Joined::of(&nodes, 0, &machine.stop, &mut starting);
    let failed = starting.failed.take();
    is_joined.store(true, Ordering::Relaxed);
    let has_ended = watch.join().unwrap_or_default();
    if let Some(error) = failed {
        return Err(error.into());
    }
    let joined = joined.map_err(|error| {
        let mut error = match has_ended {
            true => RunError::new(ErrorKind::Input, "a node ended before it had joined"),
            false => error,
        };
        error.chain.extend(hosts.last_words());
        error.hint("each host connects to this machine: is the port open (`--listen` behind `--` takes another), and the address the right one (`--address`)?")
    })?;
    joined.map_or(Ok(()), |joined| Ok(prepared.use_nodes(&Arc::new(joined))?))
}

/// Stops the wait for nodes when the connection to one is over; says whether that was so.
fn watch_ends(over: Vec<Arc<AtomicBool>>, stop: Arc<AtomicBool>, is_joined: Arc<AtomicBool>) -> JoinHandle<bool> {
    thread::spawn(move || {
        while !is_joined.load(Ordering::Relaxed) {
            if over.iter().any(|one| one.load(Ordering::Relaxed)) {
                stop.store(true, Ordering::Relaxed);
                return true;
            }
            thread::sleep(LOOK);
        }
        false
    })
}

/// Starts the nodes as soon as the coordinator listens.
struct Starting<'a> {
    observer: &'a mut dyn RunObserver,
    hosts: &'a mut Hosts,
    folder: Option<Keys>,
    node: Files,
    stop: &'a AtomicBool,
    failed: Option<RunError>,
}

impl RunObserver for Starting<'_> {
    fn event(&mut self, event: &RunEvent) {
        if let RunEvent::WaitsForNodes { address, .. } = event {
            self.folder = None;
            self.failed = self.hosts.start(address.port(), &self.node).err();
            // Nodes that were not started are not waited for.
            self.stop.fetch_or(self.failed.is_some(), Ordering::Relaxed);
        }
        self.observer.event(event);
    }
}

/// A folder with the coordinator's keys, which goes when this is dropped.
struct Keys(PathBuf);

impl Keys {
    fn write(files: &Files) -> Result<Keys, RunError> {
        let id = RandomState::new().build_hasher().finish();
        let folder = std::env::temp_dir().join(format!("pubmark-keys-{id:016x}"));
        let failed = |error: std::io::Error| {
            RunError::from_error(ErrorKind::Internal, &error)
                .during(format!("failed to write keys to `{}`", folder.display()))
        };
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let keys = Keys(folder.clone());
        for (name, text) in files {
            write(&folder.join(name), text).map_err(failed)?;
        }
        Ok(keys)
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Nothing can be done about a folder that cannot be removed; only its owner reads it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
