//! `pubmark node`: this machine sends and receives for a run that another machine leads.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use pubmark_cluster::Credentials;
use pubmark_cluster::credentials::Role;
use pubmark_cluster::node::{self, CoordinatorAddress, Happening, NodeCounts, NodeKind, NodeSettings};
use pubmark_model::placement;
use pubmark_runner as runner;
use pubmark_runner::node_machine::{own_address, read_machine, unable};
use pubmark_runner::workers;
use pubmark_systems::awake::Awake;
use pubmark_systems::{descriptors, environment};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::metrics::{Metrics, Scraped};
use crate::printer::Printer;

use crate::signals;

/// Value of `--join` in place of an address, for a coordinator that is found by multicast DNS.
const ANNOUNCED: &str = "mdns";

/// Let this machine publish and subscribe in runs of a coordinator on another machine
#[derive(Debug, Args)]
pub struct Node {
    /// Address where `pubmark run --nodes` listens; if a name has several addresses, each is tried. `mdns`: the address
    /// that `pubmark run --announce` announces on a local network
    #[arg(long, value_name = "HOST:PORT", value_parser = whereabouts)]
    pub join: CoordinatorAddress,

    /// The node's folder that `pubmark cluster init` created
    #[arg(long, value_name = "DIR", default_value = "cluster/node")]
    pub credentials: PathBuf,

    /// Token, instead of the one in the folder
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,

    /// Name of this node in records [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Address of this machine at which clients on other nodes reach its clients, for systems without a broker
    /// [default: the address from which it joins]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,

    /// Label of this node, by which a workload places groups: `site=edge-1`; may be repeated, once for each label
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,

    /// Send nothing: measure the resource usage of this machine, and of the processes with this name or number, for
    /// `pubmark run --observers`. `pod:` stands for the other containers of a pod that share their processes with this
    /// one
    #[arg(long, value_name = "PROCESS", num_args = 0..=1, default_missing_value = "")]
    pub observe: Option<String>,

    /// Send nothing: start systems here for a run (`pubmark run --system-node NAME`), and measure their resource usage.
    /// Only built-in systems, with the rights of this process
    #[arg(long, conflicts_with = "observe")]
    pub start_systems: bool,

    /// Prevent CPU idle states on this machine while a run uses it: messages are sent several times closer to their
    /// due times, above all in virtual machines
    #[arg(long)]
    pub awake: bool,

    /// End when the coordinator does, instead of waiting for the next one
    #[arg(long)]
    pub once: bool,

    #[command(flatten)]
    pub metrics: Metrics,

    /// Add an error to this node's clock: offset in nanoseconds, and drift in parts per million (positive is too fast);
    /// for tests
    #[arg(long, value_name = "NS,PPM", allow_hyphen_values = true, value_parser = clock_error, hide = true)]
    pub clock_error: Option<(i64, f64)>,

    /// Print nothing
    #[arg(long, short)]
    pub quiet: bool,
}

/// Parses an address such as `edge-1.example:7700`, or [`ANNOUNCED`].
fn whereabouts(text: &str) -> Result<CoordinatorAddress, String> {
    if text == ANNOUNCED {
        return Ok(CoordinatorAddress::Announced);
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(CoordinatorAddress::At(text.to_owned()))
        }
        _ => Err(format!("no host and port: try `{}:7700`, or `{ANNOUNCED}`", text.trim_end_matches(':'))),
    }
}

/// Offset in nanoseconds and drift in parts per million, such as `1000000,-40`.
fn clock_error(text: &str) -> Result<(i64, f64), String> {
    let (offset, drift) = text.split_once(',').ok_or("two numbers with a comma between them")?;
    let drift: f64 = drift.parse().map_err(|_| format!("`{drift}` is no number"))?;
    let offset = offset.parse().map_err(|_| format!("`{offset}` is no number of nanoseconds"))?;
    if drift.abs() <= 150.0 { Ok((offset, drift)) } else { Err("no clock is 150 parts in a million wrong".to_owned()) }
}

impl Node {
    /// Serves until it is stopped by a signal.
    pub fn perform(self, printer: &Printer) -> Outcome {
        if self.awake {
            Awake::is_allowed().map_err(|error| {
                Failure::from_error(ExitCode::Usage, &error)
                    .during("CPU idle states of this machine cannot be prevented (--awake)")
                    .hint(format!("{}; or leave out `--awake`", error.hint()))
            })?;
        }
        let mut scraped = self.metrics.bind()?;
        let stop = signals::watch()?;
        scraped.as_mut().map_or(Ok(()), |scraped: &mut Scraped| scraped.start(printer))?;
        let settings = self.settings()?;
        // Each connection of a device needs a file descriptor; if there are too few, the worker reports it when it runs
        // out.
        descriptors::raise().map_err(|error| {
            Failure::from_error(ExitCode::Internal, &error).during("failed to raise the limit of open files")
        })?;
        let launch = |control, memory| {
            let mut command = workers::command(None, control, memory)?;
            command.args(self.observe.iter().flat_map(|process| ["--observe", process]));
            command.args(self.start_systems.then_some("--start-system"));
            command.args(self.awake.then_some("--awake"));
            workers::end_with_parent(&mut command);
            command.spawn()
        };
        let shows = |counts: &NodeCounts| {
            scraped.as_ref().inspect(|scraped| scraped.show_node(&settings.name, counts));
        };
        let mut seen = |happening: &Happening| match happening {
            Happening::Counts(counts) => shows(counts),
            other => printer.note(&self.words(other)),
        };
        match node::attend(&settings, &launch, &stop, &mut seen) {
            Ok(()) => Ok(ExitCode::Ok),
            Err(error) => Err(unable(&error, &self.join).into()),
        }
    }

    fn settings(&self) -> Result<NodeSettings, Failure> {
        let address = self.address.map(own_address).transpose()?;
        let labels = placement::labels(&self.label).map_err(|why| {
            Failure::usage(format!("{why} (--label)")).hint("`--label site=edge-1`, once for each key")
        })?;
        let machine = environment::read();
        let [no_links, no_kernel_netem] = runner::linked::missing();
        let credentials = Credentials::read(&self.credentials, self.token.as_deref())
            .and_then(|credentials| credentials.check(Role::Node).map(|()| credentials))
            .map_err(|error| runner::unusable(&error, &self.credentials))?;
        Ok(NodeSettings {
            join: self.join.clone(),
            credentials,
            name: self.name.clone().unwrap_or_else(environment::host_name),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: environment::host_name(),
            kernel: machine.kernel,
            cores: machine.cores,
            memory_bytes: machine.memory_bytes,
            awake: self.awake,
            kind: match (self.start_systems, &self.observe) {
                (true, _) => NodeKind::SystemHost,
                (false, Some(_)) => NodeKind::Observer,
                (false, None) => NodeKind::Clients,
            },
            address,
            labels,
            no_links,
            no_kernel_netem,
            machine: read_machine,
            counts: self.metrics.is_wanted(),
            once: self.once,
            clock_error: self.clock_error,
        })
    }

    fn words(&self, happening: &Happening) -> String {
        match happening {
            Happening::Waits(why) => format!("waiting for a coordinator: {why}"),
            Happening::Joined(address) => format!("joined {address}"),
            Happening::Began => "a run begins".to_owned(),
            Happening::Ended => "the run has ended".to_owned(),
            Happening::Counts(counts) => format!("delivered {}", counts.totals.delivered),
            Happening::Left(why) => format!("left: {why}"),
        }
    }
}
