//! `pubmark deploy`: files by which an orchestrator places a run on several machines.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pubmark_deploy::{Applied, Cluster, Collected, Deployment, Kind, RESULTS, SystemContainer};
use pubmark_model::placement::keys;
use pubmark_runner::spec::TargetSpec;
use pubmark_runner::{RunSpec, brokerless, spoken, target};
use pubmark_systems::StartOptions;
use pubmark_systems::launch::{Rendered, rendered};
use pubmark_systems::limits::{self, Machine, ResourceLimits};

use crate::commands::run_arguments::Run;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::values::{Word, one_of, positive_duration};
use crate::{rendering, signals};

/// Longest wait for the end of a run that was applied, if nothing else is said.
const APPLY_LIMIT: Duration = Duration::from_secs(3600);

/// Write the files by which Compose or Kubernetes places a run
///
/// A coordinator, its nodes with certificates of their own, and the system in a container with limits. Nothing is started, unless
/// `--apply` lets `kubectl` do it.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Deploy {
    /// What reads the files
    #[arg(value_parser = one_of(KINDS))]
    pub kind: Kind,

    /// A built-in workload, the path of a workload file, or the run.yaml of a run
    pub workload: String,

    /// The system to run in a container; none if OPTIONS have `--endpoint`
    #[arg(long, value_name = "SYSTEM", default_value = "mosquitto")]
    pub system: String,

    /// Protocol of devices and subscribers
    #[arg(long, value_name = "PROTOCOL", default_value = "mqtt5")]
    pub protocol: String,

    /// Image of the system, in place of the one that its definition has
    #[arg(long, value_name = "IMAGE")]
    pub system_image: Option<String>,

    /// Configuration of the system
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    pub profile: String,

    /// What the system may use: `cpu=2,memory=1GB`
    #[arg(long, value_name = "LIMITS", value_parser = anywhere)]
    pub limit: Option<ResourceLimits>,

    /// What each node may use: `cpu=1,memory=512MB`
    #[arg(long, value_name = "LIMITS", value_parser = anywhere)]
    pub node_limit: Option<ResourceLimits>,

    /// What the coordinator of a Kubernetes deployment may use
    #[arg(long, value_name = "LIMITS", value_parser = anywhere, default_value = "cpu=1,memory=1GB")]
    pub coordinator_limit: ResourceLimits,

    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,

    /// Image of pubmark (docs/how-to/deploy-with-an-orchestrator.md says how to build one)
    #[arg(long, value_name = "IMAGE", default_value = concat!("pubmark:", env!("CARGO_PKG_VERSION")))]
    pub image: String,

    /// Name of the run. Objects of a cluster are called NAME-ID-…, with an id that is new each time
    #[arg(long, value_name = "NAME", default_value = "pubmark")]
    pub name: String,

    /// Folder to write into
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    pub out: PathBuf,

    /// Start no observer container, which measures CPU and memory of the system; for clusters that refuse `shareProcessNamespace`
    #[arg(long)]
    pub no_observer: bool,

    /// Namespace of the cluster; the one that `kubectl` is configured for, if none is given
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// With --apply: context of kubectl's configuration
    #[arg(long, value_name = "CONTEXT", requires = "apply")]
    pub context: Option<String>,

    /// Create the objects with `kubectl`, wait for the run's end, bring its results into the folder, and delete the objects
    #[arg(long)]
    pub apply: bool,

    /// With --apply: longest wait for the run's end [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, requires = "apply")]
    pub apply_limit: Option<Duration>,

    /// Options of `pubmark run`, such as `--qos 1 --duration 60s`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

/// What reads the files.
const KINDS: &[Word<Kind>] = &[
    ("compose", "`docker compose` or `podman-compose`: all on one machine", Kind::Compose),
    ("kubernetes", "`kubectl create`", Kind::Kubernetes),
];

/// The first given option of `pubmark run` that the deployment sets itself, or that concerns this terminal or machine.
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

/// Limits for a machine that is not this one.
fn anywhere(text: &str) -> Result<ResourceLimits, String> {
    let any = Machine { cores: u32::MAX, memory_bytes: None };
    limits::parse_for(text, any).map_err(|error| error.to_string())
}

impl Deploy {
    /// Writes the files and says what to type next.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let deployment = self.deployment()?;
        let files = deployment.files();
        if let Some((name, _)) = files.iter().find(|(name, _)| self.out.join(name).exists()) {
            return Err(Failure::usage(format!("`{}` is there already", self.out.join(name).display()))
                .hint("`--out` names another folder; certificates are made anew each time"));
        }
        self.make_folder()?;
        for (name, text) in &files {
            // What Compose mounts is read by a container's user, so there the folder keeps others out.
            let mode = if self.kind == Kind::Compose && name.contains('/') { 0o644 } else { 0o600 };
            write_with_mode(&self.out.join(name), text, mode)?;
        }
        if self.apply {
            return self.apply(&deployment, &self.out.join(&files[0].0), printer);
        }
        printer.result(&self.next(&deployment, &files))?;
        Ok(ExitCode::Ok)
    }

    /// A folder into which nobody else sees. One that is there stays as it is, and is refused if others could read keys in it.
    fn make_folder(&self) -> Result<(), Failure> {
        let shown = self.out.display();
        let failed = |error: std::io::Error| {
            Failure::from_error(ExitCode::Usage, &error).during(format!("failed to make `{shown}`"))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.out).map_err(failed)?;
        let mode = std::fs::metadata(&self.out).map_err(failed)?.permissions().mode();
        if self.kind == Kind::Compose && mode & 0o077 != 0 {
            return Err(Failure::usage(format!(
                "others can look into `{shown}`, and private keys are to be written there"
            ))
            .hint(format!("`chmod 700 {shown}`, or `--out` with a folder that is not there yet")));
        }
        Ok(())
    }

    /// The run, with options that a run takes and a name that an orchestrator takes (RFC 1123).
    fn spec(&self) -> Result<RunSpec, Failure> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let name = &self.name;
        if name.len() > 40 || !name.chars().all(fits) || !name.starts_with(edge) || !name.ends_with(edge) {
            return Err(Failure::usage(format!("`{name}` cannot be the name of a deployment"))
                .hint("up to 40 small letters, digits and `-`, for instance `--name home-qos1`"));
        }
        if (self.namespace.is_some() || self.context.is_some() || self.no_observer) && self.kind != Kind::Kubernetes {
            return Err(Failure::usage(
                "`--namespace`, `--context` and `--no-observer` are of a cluster, and Compose has none",
            )
            .hint("`pubmark deploy kubernetes …`"));
        }
        if self.apply && self.kind != Kind::Kubernetes {
            return Err(Failure::usage("`--apply` hands a manifest to `kubectl`, and this makes none")
                .hint("`pubmark deploy kubernetes … --apply`; for the others, what is printed without `--apply`"));
        }
        let words = std::iter::once(self.workload.clone()).chain(self.options.iter().cloned());
        let run = Run::read(&words.collect::<Vec<_>>())?;
        let mut spec = run.spec()?;
        if spec.target.placed.take().is_some() {
            // The run.yaml of a deployment names a system and an observer that no longer exist.
            spec.target.endpoint = None;
            spec.nodes.observers = None;
        }
        if let Some(option) = set_by_deployment(&run) {
            return Err(Failure::usage(format!(
                "`{option}` cannot be used for a run in containers: the deployment sets it, or it is for a local run"
            ))
            .hint("leave it out; options of the deployment stand before `--`"));
        }
        if run.join.nodes.is_some() || spec.nodes.local_nodes.is_some() {
            return Err(Failure::usage("the number of nodes stands before `--`").hint("`--nodes 5 -- --qos 1`"));
        }
        let workload = spec.load()?;
        if self.kind == Kind::Kubernetes && !(spec.nodes.node_labels.is_empty() && keys(&workload).is_empty()) {
            return Err(Failure::usage("nodes of one Kubernetes Job are alike, and groups are placed by labels of nodes")
                .hint("`deploy compose -- --node-label site=edge-1,cloud`; or start the nodes with `pubmark node --label`; or `-- --placement none`"));
        }
        if spec.target.endpoint.is_some() {
            brokerless::refuse_endpoint(self.nodes, spoken::of(&spec, &workload)?)?;
        } else {
            // What a run.yaml says of a system that pubmark starts, this call says of the one that is placed.
            let TargetSpec { profile, image, limit, back_end, system_host, .. } = TargetSpec::default();
            let system = Some(self.system.clone());
            spec.target = TargetSpec { system, profile, image, limit, back_end, system_host, ..spec.target };
            spec.protocols.protocol = Some(self.protocol.clone());
        }
        Ok(spec)
    }

    fn deployment(&self) -> Result<Deployment, Failure> {
        let spec = self.spec()?;
        let system = if spec.target.endpoint.is_some() { None } else { Some(self.container()?) };
        let mut deployment = Deployment::new(self.kind, &self.name, &self.image, self.nodes, &spec, system)?;
        deployment.namespace = self.namespace.clone();
        deployment.coordinator_limits = Some(self.coordinator_limit.clone()).filter(|limits| !limits.is_empty());
        deployment.node_limits = self.node_limit.clone().filter(|limits| !limits.is_empty());
        Ok(deployment)
    }

    fn container(&self) -> Result<SystemContainer, Failure> {
        Ok(SystemContainer {
            rendered: self.rendered()?,
            profile: self.profile.clone(),
            limits: self.limit.clone().filter(|limits| !limits.is_empty()),
            observed: !self.no_observer,
        })
    }

    /// The system as a container.
    fn rendered(&self) -> Result<Rendered, Failure> {
        let definition = target::definition(&self.system)?;
        let start = StartOptions {
            profile: self.profile.clone(),
            image: self.system_image.clone(),
            ..StartOptions::new(&self.protocol)
        };
        rendered(&definition, &start).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error)
                .hint("`pubmark list systems NAME` says whether one runs in a container; or `-- --endpoint URL`")
        })
    }

    /// Creates the objects of the manifest, and shows what came of it.
    fn apply(&self, deployment: &Deployment, manifest: &Path, printer: &Printer) -> Outcome {
        let stop = signals::watch()?;
        let limit = self.apply_limit.unwrap_or(APPLY_LIMIT);
        let cluster = Cluster { context: self.context.clone(), namespace: self.namespace.clone() };
        let applied = Applied { deployment, manifest, cluster: &cluster, out: &self.out, limit };
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

    fn next(&self, deployment: &Deployment, files: &[(String, String)]) -> String {
        let mut text: String =
            files.iter().map(|(name, _)| format!("wrote {}\n", self.out.join(name).display())).collect();
        let out = self.out.display();
        text.push_str(&match self.kind {
            Kind::Compose => format!(
                "\nnext  docker compose --project-directory {out} up --abort-on-container-exit\n      \
                 docker compose --project-directory {out} logs --no-log-prefix coordinator > record.json\n"
            ),
            Kind::Kubernetes => {
                let kubectl = match &self.namespace {
                    Some(namespace) => format!("kubectl --namespace {namespace}"),
                    None => "kubectl".to_owned(),
                };
                let job = format!("job/{}", deployment.part("coordinator"));
                let pod = format!(
                    "app.kubernetes.io/instance={},app.kubernetes.io/component=coordinator",
                    deployment.instance
                );
                format!(
                    "\nnext  {kubectl} create -f {out}/pubmark.yaml\n      \
                     {kubectl} wait --for=create --timeout=1m pod -l {pod} && \
                     {kubectl} wait --for=condition=Ready --timeout=10m pod -l {pod}\n      \
                     {kubectl} exec {job} -- pubmark pod send --results {RESULTS} > results.tar\n      \
                     {kubectl} exec {job} -- pubmark pod release --results {RESULTS}\n      \
                     {kubectl} delete -f {out}/pubmark.yaml\n"
                )
            }
        });
        text
    }
}

/// Writes a new file with these rights, whatever the process's own mask of them; nobody else can open it before it has them.
fn write_with_mode(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        Failure::from_error(ExitCode::Usage, error).during(format!("failed to write `{}`", path.display()))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))
    });
    written.map_err(|error| failed(&error))
}
