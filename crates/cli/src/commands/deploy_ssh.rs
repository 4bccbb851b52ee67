//! `pubmark deploy ssh`: nodes on hosts that are reached with `ssh`, for one run that this machine leads.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pubmark_deploy::ssh::Hosts;
use pubmark_deploy::ssh::hosted_nodes::HostedNodes;
use pubmark_deploy::ssh::hosts::{self, Host};
use pubmark_deploy::ssh::program::Program;
use pubmark_deploy::ssh::session::Caller;
use pubmark_runner::check_node_labels;

use crate::commands::deploy::{Deploy, refuse_experiment};
use crate::commands::run_arguments::Run;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Write the files with which Compose or Kubernetes deploys a run, or start its nodes with ssh
///
/// The files: a coordinator, its nodes with separate certificates, and the system in a container with resource limits.
/// Nothing is started, unless `--apply` lets `kubectl` do it. `--apply --wait` also follows the run, collects its results
/// and deletes everything. `pubmark deploy ssh` needs no files, and starts the nodes on the hosts of a list.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, max_term_width = 80)]
pub struct Deployments {
    /// The way to start the nodes, if not with an orchestrator.
    #[command(subcommand)]
    pub by: Option<By>,

    #[command(flatten)]
    pub files: Option<Deploy>,
}

/// Ways to start nodes without an orchestrator.
#[derive(Debug, Subcommand)]
pub enum By {
    Ssh(Ssh),
}

/// Start nodes on hosts with ssh, run a workload there, and leave nothing on the hosts
///
/// Checks all hosts, copies this program into a private folder on each, starts a node there, and leads the run on this
/// machine, as `pubmark run --nodes` does. Nodes and folders are removed when the connection ends, for whatever reason.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Ssh {
    /// File with hosts, one a line: `[user@]host[:port] [key=value …]`, where `site=edge-1` is a label of the node; `#`
    /// begins a comment
    pub hosts: PathBuf,

    /// A built-in workload, the path of a workload file, or the run.yaml of a run
    pub workload: String,

    /// Configuration of `ssh`, in place of the user's
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,

    /// Folder on the hosts in which a private one is created [default: the host's $TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR")]
    pub host_folder: Option<String>,

    /// Program to copy, instead of this one: a build of the same version for the hosts' processor, static if they lack
    /// libraries
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,

    /// Address of this machine where nodes join [default: the source address that a host sees]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,

    /// Options of `pubmark run`, such as `--qos 1 --duration 60s`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

impl Deployments {
    /// Starts the nodes and runs.
    pub fn perform(self, printer: &Printer) -> Outcome {
        match (self.by, self.files) {
            (Some(By::Ssh(ssh)), _) => ssh.perform(printer),
            (None, Some(files)) => files.perform(printer),
            (None, None) => Err(Failure::usage("there is nothing to deploy")
                .hint("`pubmark deploy kubernetes smart-home`, or `pubmark deploy ssh hosts.txt smart-home`")),
        }
    }

    /// Whether `--quiet` is among the options.
    pub fn is_quiet(&self) -> bool {
        let quiet = |ssh: &Ssh| ssh.options.iter().any(|option| option == "--quiet" || option == "-q");
        matches!(&self.by, Some(By::Ssh(ssh)) if quiet(ssh))
    }
}

impl Ssh {
    fn perform(self, printer: &Printer) -> Outcome {
        refuse_experiment(&self.workload)?;
        let hosts = hosts::read(&self.hosts)?;
        let run = self.run(&hosts)?;
        let nodes = HostedNodes {
            hosts,
            program: Program::read(self.program.as_deref())?,
            caller: Caller { config: self.ssh_config },
            folder: self.host_folder,
            address: self.address,
            system_host: run.spec()?.target.node,
        };
        let note = |text: &str| printer.note(text);
        let mut reached = None;
        let outcome = run.perform_with(
            &mut |prepared, machine, observer| nodes.gather(&mut reached, prepared, machine, observer, &note),
            printer,
        );
        for uncertain in reached.map(Hosts::end).unwrap_or_default() {
            printer.warning(&uncertain);
        }
        outcome
    }

    /// The hosts whose nodes send and receive: all but the one that starts the system.
    fn hosts_of_clients<'a>(&self, hosts: &'a [Host], system_host: Option<&str>) -> Result<Vec<&'a Host>, Failure> {
        let clients: Vec<&Host> = hosts.iter().filter(|host| Some(host.name.as_str()) != system_host).collect();
        let names = hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
        match system_host {
            Some(name) if clients.len() == hosts.len() => {
                Err(Failure::usage(format!("`--system-node {name}` is no host of `{}`", self.hosts.display()))
                    .hint(format!("one of: {names}")))
            }
            Some(name) if clients.is_empty() => Err(Failure::usage(format!(
                "`{name}` starts the system, and `{}` has no other host that sends and receives",
                self.hosts.display()
            ))
            .hint("add a host; or leave `--system-node` out: the system then runs on this machine")),
            _ => Ok(clients),
        }
    }

    /// The run, with as many nodes as there are hosts that send and receive.
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
        let system_host = run.spec()?.target.node;
        let clients = self.hosts_of_clients(hosts, system_host.as_deref())?;
        run.join.nodes = Some(clients.len() as u16);
        let named: Vec<_> = clients.iter().map(|host| (host.name.clone(), host.labels.clone())).collect();
        check_node_labels(&run.spec()?.load()?, &named)?;
        Ok(run)
    }
}
