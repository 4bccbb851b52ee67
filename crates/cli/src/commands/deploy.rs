//! `pubmark deploy`: files by which an orchestrator places a run on several machines.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pubmark_cluster::credentials;
use pubmark_model::builtin;
use pubmark_runner::{RunSpec, brokerless, command_line, log_in, spoken, target};
use pubmark_systems::StartOptions;
use pubmark_systems::launch::rendered;
use pubmark_systems::limits::{self, Machine, ResourceLimits};

use crate::commands::run_arguments::Run;
use crate::deploy::apply::Applied;
use crate::deploy::{CREDENTIALS, Deployment, Kind, Workload};
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::values::positive_duration;
use crate::{rendering, signals};

/// Longest wait for the end of a run that was applied, if nothing else is said.
const APPLY_LIMIT: Duration = Duration::from_secs(3600);

/// Write the files by which Compose, Kubernetes or Helm places a run
///
/// A coordinator, its nodes with certificates of their own, and the system in a container with limits. Nothing is started, unless
/// `--apply` lets `kubectl` do it.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Deploy {
    /// What reads the files
    #[arg(value_enum)]
    pub kind: Kind,

    /// A built-in workload, or the path of a workload file
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

    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,

    /// Image of pubmark (docs/guide/many-machines.md says how to build one)
    #[arg(long, value_name = "IMAGE", default_value = concat!("pubmark:", env!("CARGO_PKG_VERSION")))]
    pub image: String,

    /// Name of the run: what its objects are called
    #[arg(long, value_name = "NAME", default_value = "pubmark")]
    pub name: String,

    /// Folder to write into
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    pub out: PathBuf,

    /// Apply the manifest with `kubectl`, wait for the run's end, collect its records into the folder, and delete what was applied
    #[arg(long)]
    pub apply: bool,

    /// With --apply: longest wait for the run's end [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, requires = "apply")]
    pub apply_limit: Option<Duration>,

    /// Options of `pubmark run`, such as `--qos 1 --duration 60s`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

/// Options of a run that say what the password is.
const PASSWORD_OPTIONS: [&str; 3] = ["--password", "--password-env", "--password-file"];
/// File of the coordinator's secrets that holds the password.
const PASSWORD_FILE: &str = "password";

/// Limits for a machine that is not this one.
fn anywhere(text: &str) -> Result<ResourceLimits, String> {
    let any = Machine { cores: u32::MAX, memory_bytes: None };
    limits::parse_for(text, any).map_err(|error| error.to_string())
}

impl Deploy {
    /// Writes the files and says what to type next.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let spec = self.check()?;
        let deployment = self.deployment(&spec)?;
        let files = deployment.files(self.kind);
        if let Some((name, _)) = files.iter().find(|(name, _)| self.out.join(name).exists()) {
            return Err(Failure::usage(format!("`{}` is there already", self.out.join(name).display()))
                .hint("`--out` names another folder; certificates are made anew each time"));
        }
        self.make_folder()?;
        for (name, text) in &files {
            // What Compose mounts is read by a container's user, so there the folder keeps others out.
            let mode = if self.kind == Kind::Compose && name.contains('/') { 0o644 } else { 0o600 };
            rendering::write_with_mode(&self.out.join(name), text, mode)?;
        }
        if self.apply {
            let stop = signals::watch()?;
            let manifest = self.out.join(&files[0].0);
            let limit = self.apply_limit.unwrap_or(APPLY_LIMIT);
            return Applied { manifest: &manifest, name: &self.name, out: &self.out, limit }.perform(printer, &stop);
        }
        printer.result(&self.next(&files))?;
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

    /// Names that an orchestrator takes (RFC 1123), and options that a run takes, which are given.
    fn check(&self) -> Result<RunSpec, Failure> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let name = &self.name;
        if name.len() > 40 || !name.chars().all(fits) || !name.starts_with(edge) || !name.ends_with(edge) {
            return Err(Failure::usage(format!("`{name}` cannot be the name of a deployment"))
                .hint("up to 40 small letters, digits and `-`, for instance `--name home-qos1`"));
        }
        if self.apply && self.kind != Kind::Kubernetes {
            return Err(Failure::usage("`--apply` hands a manifest to `kubectl`, and this makes none")
                .hint("`pubmark deploy kubernetes … --apply`; for the others, what is printed without `--apply`"));
        }
        let words = std::iter::once("workload".to_owned()).chain(self.options.iter().cloned());
        let spec = Run::read(&words.collect::<Vec<_>>())?.spec()?;
        if spec.nodes.nodes.is_some() || spec.nodes.local_nodes.is_some() {
            return Err(Failure::usage("the number of nodes stands before `--`").hint("`--nodes 5 -- --qos 1`"));
        }
        if spec.target.endpoint.is_some() {
            brokerless::refuse_machines(self.nodes, spoken::of(&spec)?)?;
        }
        Ok(spec)
    }

    /// OPTIONS without the password, which goes to the coordinator in a file of its secrets: what a container is started with is
    /// shown to everybody who may look at it.
    fn options(&self) -> Result<Vec<String>, Failure> {
        let mut options = Vec::new();
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or_default();
            match PASSWORD_OPTIONS.contains(&name) {
                true if !word.contains('=') => drop(words.next()),
                true => {}
                false => options.push(word.clone()),
            }
        }
        if command_line::shown(options.clone(), &[]) != options {
            return Err(Failure::usage(
                "OPTIONS hold a password, which would stand in the files for everybody to read",
            )
            .hint("`--user NAME --password-env VARIABLE` hands it to the coordinator as a secret"));
        }
        Ok(options)
    }

    fn deployment(&self, spec: &RunSpec) -> Result<Deployment, Failure> {
        let has_endpoint = self.options.iter().any(|word| word == "--endpoint" || word.starts_with("--endpoint="));
        let mut options = self.options()?;
        let mut credentials = credentials::fresh(credentials::VALID_DAYS)
            .map_err(|error| Failure::from_error(ExitCode::Internal, &error))?;
        let log_in = log_in::of(&spec.connection)?.filter(|_| options.len() != self.options.len());
        if let Some(log_in) = log_in {
            credentials[0].push((PASSWORD_FILE, format!("{}\n", log_in.password.expose())));
            options.extend(["--password-file".to_owned(), format!("{CREDENTIALS}/{PASSWORD_FILE}")]);
        }
        let system = if has_endpoint {
            None
        } else {
            options.extend([
                "--system".to_owned(),
                self.system.clone(),
                "--protocol".to_owned(),
                self.protocol.clone(),
            ]);
            let definition = target::definition(&self.system)?;
            let start = StartOptions {
                profile: self.profile.clone(),
                image: self.system_image.clone(),
                ..StartOptions::new(&self.protocol)
            };
            let rendered = rendered(&definition, &start).map_err(|error| {
                Failure::from_error(ExitCode::Usage, &error)
                    .hint("`pubmark list systems` says which run in a container; or `-- --endpoint URL`")
            })?;
            Some(rendered)
        };
        let workload = match builtin::find(&self.workload) {
            Some(found) => Workload::BuiltIn(found.name.to_owned()),
            None => Workload::File(self.file()?),
        };
        Ok(Deployment {
            name: self.name.clone(),
            workload,
            system,
            system_limits: self.limit.clone().filter(|limits| !limits.is_empty()),
            node_limits: self.node_limit.clone().filter(|limits| !limits.is_empty()),
            image: self.image.clone(),
            nodes: self.nodes,
            options,
            credentials,
        })
    }

    /// The text of a workload's file, which must be one.
    fn file(&self) -> Result<String, Failure> {
        RunSpec::new(&self.workload).load()?;
        std::fs::read_to_string(&self.workload).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error).during(format!("failed to read `{}`", self.workload))
        })
    }

    fn next(&self, files: &[(String, String)]) -> String {
        let mut text: String =
            files.iter().map(|(name, _)| format!("wrote {}\n", self.out.join(name).display())).collect();
        let (out, name) = (self.out.display(), &self.name);
        text.push_str(&match self.kind {
            Kind::Compose => format!(
                "\nnext  docker compose --project-directory {out} up --abort-on-container-exit\n      \
                 docker compose --project-directory {out} logs --no-log-prefix coordinator > record.json\n"
            ),
            Kind::Kubernetes => format!(
                "\nnext  kubectl apply -f {out}/pubmark.yaml\n      \
                 kubectl wait --for=condition=complete --timeout=30m job/{name}-coordinator\n      \
                 kubectl logs job/{name}-coordinator > record.json && pubmark report record.json\n      \
                 kubectl delete -f {out}/pubmark.yaml\n"
            ),
            Kind::Helm => format!(
                "\nnext  helm install {name} {out}\n      \
                 kubectl wait --for=condition=complete --timeout=30m job/{name}-coordinator\n      \
                 kubectl logs job/{name}-coordinator > record.json && pubmark report record.json\n      \
                 helm uninstall {name}\n"
            ),
        });
        text
    }
}
