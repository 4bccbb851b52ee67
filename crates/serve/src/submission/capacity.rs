//! A capacity search.

use std::time::Duration;

use pubmark_experiment::capacity::objectives;
use pubmark_experiment::capacity::planning::{self, Outline, Range};
use pubmark_experiment::capacity::trial::{Trials, WARMUP};
use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::secret::Secret;
use pubmark_record::capacity::Knob;
use pubmark_record::headline::Kind;
use pubmark_runner::spec::Window;
use pubmark_runner::spec::text::{self, Text as _};
use pubmark_runner::{CheckedRun, Host, RunError, RunSpec, WorkloadSource, target};
use pubmark_systems::limits::ResourceLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rows, Submission, What, loaded, refused};
use crate::allow::Allow;
use crate::problem::Problem;

// Default objectives of `pubmark capacity`; its help states the same.
const OBJECTIVES: &str = "p99<50ms,loss=0";
const WITHIN: Duration = Duration::from_secs(600);
const DRAIN: Duration = Duration::from_secs(2);
const PRECISION_PERCENT: f64 = 3.0;
/// Smallest factor of a workload that the command accepts.
const LEAST_FACTOR: f64 = 1.0 / LARGEST_RATE_FACTOR;

/// A search for the highest load that a system carries within objectives, as `pubmark capacity` executes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacitySubmission {
    /// A built-in workload, or `file_name` and `text` of one.
    pub capacity: WorkloadSource,
    /// System to start, `builtin` if left out.
    #[serde(default)]
    pub system: Option<String>,
    /// URL of a system that already runs. A password in it would be visible in the list of processes and is refused: use
    /// `password`.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Configuration of a system that pubmark starts: `default` or `tuned`.
    #[serde(default)]
    pub profile: Option<String>,
    /// Resource limits of each broker: `cpu=0.5,memory=256MB`.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub limit: Option<ResourceLimits>,
    /// Protocol of the clients.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Objectives that must hold, `p99<50ms,loss=0` if left out.
    #[serde(default)]
    pub slo: Option<String>,
    /// What the search varies.
    #[serde(default)]
    pub vary: Option<Vary>,
    /// QoS of all devices and subscribers.
    #[serde(default)]
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// Links that replace those of the workload, in order: `lte`, `sensors=lte`, `none`.
    #[serde(default, with = "text::list")]
    #[schemars(with = "Vec<String>")]
    pub links: Vec<LinkChoice>,
    /// Faults of each trial that replace those of the workload: `kill:at=1s,for=1s`, `none`.
    #[serde(default, with = "text::list")]
    #[schemars(with = "Vec<String>")]
    pub faults: Vec<FaultChoice>,
    /// Seed of the schedule, 1 if left out.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Encrypt connections to a system that pubmark starts.
    #[serde(default)]
    pub tls: bool,
    /// User name of all clients that have none in the workload.
    #[serde(default)]
    pub user: Option<String>,
    /// Password of these clients.
    #[serde(default)]
    pub password: Option<Secret>,
    /// Start no further trial after this time.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub within: Option<Duration>,
    /// Length of each trial's window.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// Length of the warm-up before each window.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub warmup: Option<Duration>,
    /// Largest factor of the workload to try.
    #[serde(default)]
    pub most: Option<f64>,
}

/// What a search varies.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Vary {
    /// Messages per second.
    Rate,
    /// Number of devices.
    Scale,
}

impl CapacitySubmission {
    /// Loads the workload, checks permissions and names, and validates the first trial.
    pub(super) fn judged(self, allow: &Allow, host: &Host) -> Result<Submission, Problem> {
        let (_, first) = self.rows(allow, host)?;
        let system = self.system.clone().unwrap_or_else(|| match self.endpoint {
            Some(_) => "endpoint".to_owned(),
            None => "builtin".to_owned(),
        });
        let options = self.options();
        let text = match self.capacity {
            WorkloadSource::Inline { text, .. } => Some(text),
            WorkloadSource::Named(_) => None,
        };
        let what = What::Capacity { text, options, password: self.password };
        let (name, notes) = (first.workload.name.clone(), first.notes().to_vec());
        Ok(Submission { kind: Kind::Capacity, name, systems: vec![system], what, notes })
    }

    /// The lines of the dry run, and the first trial.
    pub(super) fn rows(&self, allow: &Allow, host: &Host) -> Result<(Rows, CheckedRun), Problem> {
        let mut spec = self.spec();
        // No definition is read before its permission is checked.
        allow.run(&spec).map_err(refused)?;
        if self.warmup.is_none() {
            spec.window.warmup = target::warm_up(&spec, WARMUP)?;
        }
        let spec = spec.self_contained();
        loaded(&spec)?;
        if self.endpoint.as_deref().is_some_and(|url| url.contains('@')) {
            return Err(Problem::from(RunError::input("the endpoint of a search may not hold a password")).hint(
                "others on the machine would see it in the list of processes: give it as `password`, with `user`",
            ));
        }
        let within = self.within.unwrap_or(WITHIN);
        if within.is_zero() || self.duration.is_some_and(|duration| duration.is_zero()) {
            return Err(RunError::input("`within` and `duration` must be longer than zero").into());
        }
        if let Some(most) = self.most.filter(|most| !(LEAST_FACTOR..=LARGEST_RATE_FACTOR).contains(most)) {
            return Err(
                RunError::input(format!("`most` is {LEAST_FACTOR} to {LARGEST_RATE_FACTOR}, not {most}")).into()
            );
        }
        let text = self.slo.as_deref().unwrap_or(OBJECTIVES);
        let objectives = objectives("`slo`", text)?;
        let knob = match self.vary {
            Some(Vary::Scale) => Knob::Scale,
            Some(Vary::Rate) | None => Knob::Rate,
        };
        let trials = Trials { spec, knob, objectives: &objectives, duration: self.duration, host };
        let range = Range { first: None, most: self.most, precision_percent: PRECISION_PERCENT };
        let bounds = range.bounds(&trials.spec, knob)?;
        let first = planning::first_trial(&trials, &bounds)?;
        first.check_limits()?;
        let rows = Outline { objectives: text, within, bounds: &bounds, knob, first: &first }.rows();
        Ok((rows, first))
    }

    /// The specification of a trial at factor 1; without `warmup` the system may need more.
    fn spec(&self) -> RunSpec {
        let mut spec = RunSpec { workload: self.capacity.clone(), ..RunSpec::new("") };
        spec.target.system = self.system.clone();
        spec.target.endpoint = self.endpoint.clone();
        spec.protocols.protocol = self.protocol.clone();
        spec.load.qos = self.qos;
        spec.load.links.clone_from(&self.links);
        spec.load.faults.clone_from(&self.faults);
        spec.load.seed = self.seed.unwrap_or(spec.load.seed);
        spec.target.profile = self.profile.clone().unwrap_or(spec.target.profile);
        spec.target.limit.clone_from(&self.limit);
        spec.connection.tls = self.tls;
        spec.connection.user.clone_from(&self.user);
        spec.connection.password.clone_from(&self.password);
        spec.window = Window { warmup: self.warmup.unwrap_or(WARMUP), drain: DRAIN, ..Window::default() };
        spec
    }

    /// Options after the workload, without the password.
    fn options(&self) -> Vec<String> {
        let vary = self.vary.map(|vary| match vary {
            Vary::Rate => "rate".to_owned(),
            Vary::Scale => "scale".to_owned(),
        });
        let time = |time: Option<Duration>| time.map(|time| time.write());
        // The path of a definition is relative to the server's folder, but with a text the child has another working
        // directory.
        let system = self.system.clone().map(|system| match (&self.capacity, system.contains('/')) {
            (WorkloadSource::Inline { .. }, true) => {
                std::path::absolute(&system).map_or(system, |path| path.display().to_string())
            }
            _ => system,
        });
        let options = [
            ("system", system),
            ("endpoint", self.endpoint.clone()),
            ("protocol", self.protocol.clone()),
            ("profile", self.profile.clone()),
            ("limit", self.limit.as_ref().map(|limit| limit.write())),
            ("user", self.user.clone()),
            ("seed", self.seed.map(|seed| seed.to_string())),
            ("slo", self.slo.clone()),
            ("vary", vary),
            ("qos", self.qos.map(|qos| qos.to_string())),
            ("within", time(self.within)),
            ("duration", time(self.duration)),
            ("warmup", time(self.warmup)),
            ("most", self.most.map(|most| most.to_string())),
        ];
        let mut words = match &self.capacity {
            WorkloadSource::Named(name) => vec![name.clone()],
            WorkloadSource::Inline { .. } => vec![],
        };
        words.extend(options.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?))));
        words.extend(self.links.iter().map(|link| format!("--link={}", link.write())));
        words.extend(self.faults.iter().map(|fault| format!("--fault={}", fault.write())));
        words.extend(self.tls.then(|| "--tls".to_owned()));
        words
    }
}
