//! `pubmark deploy`: files with which an orchestrator runs a measurement on several machines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pubmark_deploy::scheduling::{MachineLabel, Toleration, machine_label};
use pubmark_deploy::{Applied, Cluster, Collected, Deployment, Kind, Order, Scheduling};
use pubmark_model::experiment;
use pubmark_runner::RunSpec;
use pubmark_systems::limits::{self, Machine, ResourceLimits};

use crate::commands::run_arguments::Run;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::values::{Word, one_of, positive_duration};
use crate::{rendering, signals};

/// Longest wait for the end of a run with `--wait`, unless its own deadline is later or `--apply-limit` is given.
const APPLY_LIMIT: Duration = Duration::from_secs(3600);

/// Write the files with which Compose or Kubernetes deploys a run
///
/// A coordinator, its nodes with separate certificates, and the system in a container with resource limits. Nothing is
/// started, unless `--apply` lets `kubectl` do it. `--apply --wait` also follows the run, collects its results and deletes
/// everything.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Deploy {
    /// Orchestrator that reads the files
    #[arg(value_parser = one_of(KINDS))]
    pub kind: Kind,

    /// A built-in workload, the path of a workload file, or the run.yaml of a run
    pub workload: String,

    /// The system to run in a container, or a system without a broker; none if OPTIONS have `--endpoint`
    #[arg(long, value_name = "SYSTEM", default_value = "mosquitto")]
    pub system: String,

    /// Protocol of devices and subscribers [default: that of OPTIONS or run.yaml; else mqtt5, or the system's first]
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<String>,

    /// Image of the system, in place of the one in its definition
    #[arg(long, value_name = "IMAGE")]
    pub system_image: Option<String>,

    /// Configuration of the system
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    pub profile: String,

    /// Resources that the system may use: `cpu=2,memory=1GB`
    #[arg(long, value_name = "LIMITS", value_parser = anywhere)]
    pub limit: Option<ResourceLimits>,

    /// Resources that each node may use: `cpu=1,memory=512MB`
    #[arg(long, value_name = "LIMITS", value_parser = anywhere)]
    pub node_limit: Option<ResourceLimits>,

    /// Resources that the coordinator of a Kubernetes deployment may use
    #[arg(long, value_name = "LIMITS", value_parser = anywhere, default_value = "cpu=1,memory=1GB")]
    pub coordinator_limit: ResourceLimits,

    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,

    /// Image of pubmark (docs/how-to/deploy-with-an-orchestrator.md shows how to build one)
    #[arg(long, value_name = "IMAGE", default_value = concat!("pubmark:", env!("CARGO_PKG_VERSION")))]
    pub image: String,

    /// Name of the run. Objects in the cluster are named NAME-ID-…, with a new id each time
    #[arg(long, value_name = "NAME", default_value = "pubmark")]
    pub name: String,

    /// Folder to write into
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    pub out: PathBuf,

    /// Start no observer container, which measures CPU and memory of the system; for clusters that refuse
    /// `shareProcessNamespace`, and for a Compose that ignores `pid`
    #[arg(long)]
    pub no_observer: bool,

    /// Namespace in the cluster [default: the one that `kubectl` is configured for]
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// With --apply: context of kubectl's configuration
    #[arg(long, value_name = "CONTEXT", requires = "apply")]
    pub context: Option<String>,

    /// Machines of the nodes and of the coordinator: a label that they have, `pool=load`; may be repeated, once for each
    /// label
    #[arg(long, value_name = "KEY=VALUE", value_parser = machine_label, hide_short_help = true)]
    pub node_selector: Vec<MachineLabel>,

    /// Machine of the system: a label that it has, `pool=broker`; may be repeated, once for each label
    #[arg(long, value_name = "KEY=VALUE", value_parser = machine_label, hide_short_help = true)]
    pub system_node_selector: Vec<MachineLabel>,

    /// Taint of machines on which the pods may run: `dedicated=load:NoSchedule`; may be repeated
    #[arg(long, value_name = "KEY=VALUE:EFFECT", value_parser = Toleration::parse, hide_short_help = true)]
    pub toleration: Vec<Toleration>,

    /// Require a machine for each node on which is neither the system nor another node, instead of separating them where
    /// the cluster can
    #[arg(long, hide_short_help = true)]
    pub spread: bool,

    /// Secret of the namespace with the log-in of the registry of the images
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub pull_secret: Option<String>,

    /// Create the objects with `kubectl`, and print the commands that follow the run, collect its results and delete the
    /// objects
    #[arg(long)]
    pub apply: bool,

    /// With --apply: follow the run until its end, copy its results into the folder, and delete the objects
    #[arg(long, requires = "apply")]
    pub wait: bool,

    /// With --wait: longest wait for the end of the run [default: 1h, or longer for a long run]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, requires = "wait")]
    pub apply_limit: Option<Duration>,

    /// Options of `pubmark run`, such as `--qos 1 --duration 60s`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

/// Orchestrators that read the files.
const KINDS: &[Word<Kind>] = &[
    ("compose", "`docker compose` or `podman-compose`: all on one machine", Kind::Compose),
    ("kubernetes", "`kubectl create`", Kind::Kubernetes),
];

/// The first given option of `pubmark run` that the deployment itself sets, or that concerns this terminal or machine.
fn set_by_deployment(run: &Run) -> Option<&'static str> {
    let (setup, join) = (&run.setup, &run.join);
    let given = [
        ("--dry-run", run.dry_run),
        ("--dump-schedule", run.dump_schedule.is_some()),
        ("--out", run.out != Path::new("runs")),
        ("--json", run.json),
        ("--events", run.events.events.is_some()),
        ("--metrics` or `--live", run.watching.is_wanted()),
        ("--listen", join.listen.is_some()),
        ("--announce", join.announce),
        ("--credentials", join.credentials.is_some()),
        ("--join-limit", join.join_limit.is_some()),
        ("--observers", run.join.observers.is_some()),
        ("--system", setup.system.is_some() && setup.endpoint.is_none()),
        ("--profile", setup.profile.is_some()),
        ("--back-end", setup.back_end.is_some()),
        ("--system-host", setup.system_host.is_some()),
        ("--system-node", setup.system_node.is_some()),
        ("--image", setup.image.is_some()),
        ("--limit", setup.limit.is_some()),
        ("--tls", setup.tls && setup.endpoint.is_none()),
        ("--topology", setup.topology.is_some() && setup.endpoint.is_none()),
        ("--transport", setup.transport.is_some() && setup.endpoint.is_none()),
        ("--strict-defaults", setup.strict_defaults && setup.endpoint.is_none()),
    ];
    given.into_iter().find_map(|(option, given)| given.then_some(option))
}

/// Parses resource limits of another machine, which are not compared with this one.
fn anywhere(text: &str) -> Result<ResourceLimits, String> {
    let any = Machine { cores: u32::MAX, memory_bytes: None };
    limits::parse_for(text, any).map_err(|error| error.to_string())
}

/// Refuses the name of an experiment: a deployment is one run.
pub fn refuse_experiment(name: &str) -> Result<(), Failure> {
    match experiment::names().contains(&name) {
        true => Err(Failure::usage(format!("`{name}` is an experiment, and `pubmark deploy` deploys one run"))
            .hint(format!(
                "start `pubmark node` on each machine, then `pubmark experiment {name} --nodes N`; with Slurm, `sbatch pubmark.sbatch experiment {name}`"
            ))),
        false => Ok(()),
    }
}

impl Deploy {
    /// Writes the files and prints the next commands.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let order = self.order();
        order.check_name()?;
        let deployment = order.deployment(self.spec()?)?;
        let files = deployment.write(&self.out)?;
        if self.apply {
            return self.apply(&deployment, &files[0], printer);
        }
        let written: String = files.iter().map(|file| format!("wrote {}\n", file.display())).collect();
        printer.result(&(written + &deployment.next(&self.out)))?;
        Ok(ExitCode::Ok)
    }

    /// The first given option that only a cluster understands.
    fn for_a_cluster(&self) -> Option<&'static str> {
        let given = [
            ("--namespace", self.namespace.is_some()),
            ("--context", self.context.is_some()),
            ("--node-selector", !self.node_selector.is_empty()),
            ("--system-node-selector", !self.system_node_selector.is_empty()),
            ("--toleration", !self.toleration.is_empty()),
            ("--spread", self.spread),
            ("--pull-secret", self.pull_secret.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// The specification of the run, if the options of the run and of the deployment are compatible.
    fn spec(&self) -> Result<RunSpec, Failure> {
        if let Some(option) = self.for_a_cluster().filter(|_| self.kind != Kind::Kubernetes) {
            return Err(Failure::usage(format!("`{option}` is for a cluster, and Compose has none"))
                .hint("`pubmark deploy kubernetes …`"));
        }
        if self.apply && self.kind != Kind::Kubernetes {
            return Err(Failure::usage("`--apply` hands a manifest to `kubectl`, and this makes none")
                .hint("`pubmark deploy kubernetes … --apply`; for the others, what is printed without `--apply`"));
        }
        refuse_experiment(&self.workload)?;
        let words = std::iter::once(self.workload.clone()).chain(self.options.iter().cloned());
        let run = Run::read(&words.collect::<Vec<_>>())?;
        let spec = run.spec()?;
        if let Some(option) = set_by_deployment(&run) {
            return Err(Failure::usage(format!(
                "`{option}` cannot be used for a run in containers: the deployment sets it, or it is for a local run"
            ))
            .hint("leave it out; options of the deployment stand before `--`"));
        }
        if self.protocol.is_some() && run.setup.protocol.is_some() {
            return Err(
                Failure::usage("`--protocol` is given twice, before and after `--`").hint("leave one of them out")
            );
        }
        if run.join.nodes.is_some() || spec.nodes.local_nodes.is_some() {
            return Err(Failure::usage("the number of nodes stands before `--`").hint("`--nodes 5 -- --qos 1`"));
        }
        Ok(spec)
    }

    fn order(&self) -> Order {
        Order {
            kind: self.kind,
            name: self.name.clone(),
            image: self.image.clone(),
            nodes: self.nodes,
            system: self.system.clone(),
            protocol: self.protocol.clone(),
            system_image: self.system_image.clone(),
            profile: self.profile.clone(),
            observed: !self.no_observer,
            system_limits: self.limit.clone(),
            node_limits: self.node_limit.clone(),
            coordinator_limits: Some(self.coordinator_limit.clone()),
            namespace: self.namespace.clone(),
            scheduling: Scheduling {
                node_selector: self.node_selector.clone(),
                system_node_selector: self.system_node_selector.clone(),
                tolerations: self.toleration.clone(),
                is_spread: self.spread,
                pull_secret: self.pull_secret.clone(),
            },
        }
    }

    /// Creates the objects of the manifest; with `--wait`, also collects the results and deletes the objects.
    fn apply(&self, deployment: &Deployment, manifest: &Path, printer: &Printer) -> Outcome {
        let stop = signals::watch()?;
        let limit = self.apply_limit.unwrap_or_else(|| APPLY_LIMIT.max(deployment.deadline()));
        let cluster = Cluster { context: self.context.clone(), namespace: self.namespace.clone() };
        let applied = Applied { deployment, manifest, cluster: &cluster, out: &self.out, limit };
        if !self.wait {
            applied.create(&stop)?;
            printer.result(&deployment.next_of_created(&self.out, &cluster))?;
            return Ok(ExitCode::Ok);
        }
        let mut note = |text: &str| printer.note(text);
        let Collected { records, exit_code, left } = applied.perform(&mut note, &stop)?;
        for (record, folder) in &records {
            printer.result(&rendering::summary(record, printer, Some(folder), false))?;
        }
        if let Some(left) = left {
            return Err(left.into());
        }
        ExitCode::of(exit_code).ok_or_else(|| {
            Failure::new(ExitCode::SystemFailed, format!("the run in the coordinator's pod ended with {exit_code}"))
                .hint("137 means that the container ran out of memory: `--coordinator-limit memory=2GB` gives it more")
        })
    }
}
