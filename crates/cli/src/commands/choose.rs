//! `pubmark choose`: which systems meet requirements, and what they cost.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pubmark_choose::candidate;
use pubmark_choose::folder::ChoiceFolder;
use pubmark_choose::requirements::{CandidateSettings, CandidateSpec};
use pubmark_choose::{Race, Requirements, links, machines};
use pubmark_experiment::Machines;
use pubmark_model::link::choice::LinkChoice;
use pubmark_preflight::dry_run;
use pubmark_record::objectives::Undecided;
use pubmark_record::record::Status;
use pubmark_report::numbers::counted;
use pubmark_runner::save;
use pubmark_runner::stream::EventStream;
use pubmark_runner::{Host, WorkloadSource};
use pubmark_systems::limits::ResourceLimits;

use crate::commands::machines::MachineOptions;
use crate::commands::setup::{protocol_names, replace, replace_some};
use crate::events::Events;
use crate::exit_code::ExitCode;
use crate::experiments::Watcher;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::signals;
use crate::values::{UNDECIDED, duration, limits, one_of, payload_bytes, positive_duration, rate_factor, setting};

const REQUIRED: &str = "What is required";
const WHO: &str = "Candidates";
const RUNS: &str = "Runs";

/// Choose a system: which ones meet the requirements, with how much headroom, at what cost.
///
/// Excludes candidates that lack a required capability, makes short runs, then races the rest in blocks until each
/// objective holds or is missed by more than the noise; kills the qualified ones, where recovery is required; searches
/// for their headroom. Options replace values of the file. The same
/// call again continues where an interrupted one stopped. Ends with 0 if a candidate qualifies, 3 if none does, 8 if
/// that is undecided.
#[derive(Clone, Debug, Args)]
#[command(max_term_width = 80)]
pub struct Choose {
    /// A file of requirements (docs/how-to/choose-a-system.md, `pubmark schema requirements`)
    #[arg(value_name = "REQUIREMENTS")]
    pub file: Option<PathBuf>,

    /// A built-in workload (`pubmark list workloads`) or the path of a workload file
    #[arg(long, value_name = "WORKLOAD", help_heading = REQUIRED)]
    pub workload: Option<String>,

    /// Multiply the number of devices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = REQUIRED)]
    pub scale: Option<u32>,

    /// Multiply the rate of every device
    #[arg(long, value_name = "FACTOR", value_parser = rate_factor, help_heading = REQUIRED)]
    pub rate: Option<f64>,

    /// How many times this load a system must carry, such as `3x`
    #[arg(long, value_name = "FACTOR", value_parser = rate_factor, help_heading = REQUIRED)]
    pub growth: Option<f64>,

    /// Objectives that must hold, separated by commas: `p99<100ms,loss=0`
    #[arg(long, value_name = "OBJECTIVES", help_heading = REQUIRED)]
    pub slo: Option<String>,

    /// Time within which all clients have reconnected after the system was killed: `10s`
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = REQUIRED)]
    pub recovery: Option<Duration>,

    /// Resources that each broker may use: `cpu=1,memory=512MB`
    #[arg(long, value_name = "LIMITS", value_parser = limits, help_heading = REQUIRED)]
    pub limit: Option<ResourceLimits>,

    /// Emulated network of all groups, or of one: `lte`, `sensors=lte`; may be repeated
    #[arg(long, value_name = "LINK|GROUP=LINK", value_parser = LinkChoice::parse, help_heading = REQUIRED)]
    pub link: Vec<LinkChoice>,

    /// Required delivery level
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2), help_heading = REQUIRED)]
    pub qos: Option<u8>,

    /// Require retained messages
    #[arg(long, help_heading = REQUIRED)]
    pub retained: bool,

    /// Require shared subscriptions
    #[arg(long, help_heading = REQUIRED)]
    pub shared_subscriptions: bool,

    /// Require sessions that survive a connection
    #[arg(long, help_heading = REQUIRED, hide_short_help = true)]
    pub persistent_sessions: bool,

    /// Require encryption
    #[arg(long, help_heading = REQUIRED)]
    pub tls: bool,

    /// Required protocol [default: the system's first one that has the other required capabilities]
    #[arg(long, value_parser = protocol_names(), hide_possible_values = true, help_heading = REQUIRED)]
    pub protocol: Option<String>,

    /// Size of every payload, instead of the workload's
    #[arg(long, value_name = "SIZE", value_parser = payload_bytes, help_heading = REQUIRED, hide_short_help = true)]
    pub payload: Option<u32>,

    /// Change a value of the workload: a parameter, or a dotted path into its file
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = REQUIRED, hide_short_help = true)]
    pub set: Vec<(String, String)>,

    /// Seed of the schedule and of the order of runs [default: 1]
    #[arg(long, value_name = "N", help_heading = RUNS, hide_short_help = true)]
    pub seed: Option<u64>,

    /// Systems to start, names or paths of definitions: `mosquitto,nats` [default: all that can be started here and may
    /// be ranked]
    #[arg(long, value_name = "SYSTEMS", value_delimiter = ',', help_heading = WHO)]
    pub systems: Vec<String>,

    /// A system that already runs, such as `mqtts://user@broker.example:8883`; may be repeated
    // Not split at commas: a URL may contain commas.
    #[arg(long, value_name = "URL", help_heading = WHO)]
    pub endpoint: Vec<String>,

    /// Time for all runs together [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = RUNS)]
    pub within: Option<Duration>,

    /// Length of the measured window of a run; short runs have a quarter of it [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = RUNS)]
    pub duration: Option<Duration>,

    /// Load before each window that is not measured [default: 5s, or what the definition of a candidate asks for]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = RUNS, hide_short_help = true)]
    pub warmup: Option<Duration>,

    /// Longest wait for late messages after each window [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = RUNS, hide_short_help = true)]
    pub drain: Option<Duration>,

    /// Run the generator's threads under SCHED_FIFO, where the machine allows it
    #[arg(long, help_heading = RUNS, hide_short_help = true)]
    pub realtime: bool,

    /// Prevent CPU idle states on this machine, where that is allowed
    #[arg(long, help_heading = RUNS, hide_short_help = true)]
    pub awake: bool,

    /// Divide the load of every run among N worker processes of this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=200), help_heading = RUNS, hide_short_help = true,
          conflicts_with = "nodes")]
    pub local_nodes: Option<u16>,

    /// Do not search for the headroom of the candidates
    #[arg(long, help_heading = RUNS)]
    pub no_headroom: bool,

    /// Candidate that has to qualify: the exit code is about this candidate alone
    #[arg(long, value_name = "NAME", help_heading = "Result")]
    pub require: Option<String>,

    /// End with 0 (`pass`) or 3 (`fail`) if the result is undecided
    #[arg(long, value_name = "pass|fail", value_parser = one_of(UNDECIDED), help_heading = "Result", hide_short_help = true)]
    pub undecided: Option<Undecided>,

    /// Print the excluded candidates, the planned runs and their duration; start nothing
    #[arg(long, conflicts_with = "json", help_heading = "Result")]
    pub dry_run: bool,

    /// Start again, even if an interrupted call could be continued
    #[arg(long, help_heading = RUNS)]
    pub fresh: bool,

    #[command(flatten)]
    pub machines: MachineOptions,

    /// Folder in which the folder of the choice is created
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output", hide_short_help = true)]
    pub out: PathBuf,

    /// Print only the record of the choice, as JSON, to standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    #[command(flatten)]
    pub events: Events,

    /// No progress and no notes on standard error
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl Choose {
    /// Chooses, and shows the result.
    pub fn perform(self: Box<Self>, printer: &Printer) -> Outcome {
        self.events.during(self.json, None, printer, |stream| self.choose(stream, printer))
    }

    fn choose(&self, stream: &EventStream, printer: &Printer) -> Outcome {
        // Every run has the same workload, even if its file is changed meanwhile.
        let requirements = self.requirements()?.self_contained();
        let workload = requirements.spec().load()?;
        let objectives = requirements.check(&workload.objectives)?;
        let machines = requirements.machines(Machines::from(&self.machines));
        machines.check(false)?;
        let host = self.events.host();
        // Before any thread is started: only a process with a single thread can create a user namespace (unshare(2)).
        let host = if self.dry_run { host } else { links::claim(&requirements, &workload, host)? };
        let host = Host { stop: signals::watch()?, scratch: self.out.clone(), ..host };
        let mut candidates = candidate::all(&requirements, &host)?;
        candidate::too_cold(&candidates).iter().for_each(|note| printer.note(note));
        if let Some(label) = &self.require {
            candidate::check_required(&candidates, label)?;
        }
        let earlier = match self.fresh {
            true => None,
            false => ChoiceFolder::interrupted(&self.out, &requirements, &candidates)?,
        };
        if self.dry_run {
            let earlier = earlier.as_ref().map(|earlier| (earlier.folder.path(), earlier.runs()));
            printer.result(&dry_run::choose::text(&requirements, &objectives, &candidates, earlier))?;
            return Ok(ExitCode::Ok);
        }
        let mut watcher = Watcher { printer, stream };
        let joined = machines::join(&mut candidates, &machines, &host.stop, &mut watcher)?;
        let folder = match earlier {
            Some(earlier) => goes_on(earlier, stream, printer),
            None => ChoiceFolder::create(&self.out, &workload.name, &requirements, &candidates, &host)?,
        };
        let run_folder = folder.folder.clone();
        stream.begins(run_folder.path(), &workload.name);
        let race = Race {
            requirements: &requirements,
            objectives: &objectives,
            candidates: &candidates,
            host: &host,
            joined: joined.as_ref(),
        };
        let (choice, unwritten) = race.perform(folder, &mut watcher)?;
        let unwritten = unwritten.or_else(|| run_folder.mark_latest().err().map(|error| save::unwritten(&error)));
        stream.ends(run_folder.path(), choice.status);
        self.events.show(self.json, (&choice, run_folder.path()), pubmark_choose::summary, printer)?;
        if choice.status == Status::Interrupted {
            printer.note("interrupted; the same call continues with the runs already made");
        }
        let conclusion = choice.conclusion(self.require.as_deref(), self.undecided);
        unwritten.map_or_else(|| Ok(conclusion.into()), |error| Err(error.into()))
    }

    /// The requirements of the file, with the options in place of its values.
    fn requirements(&self) -> Result<Requirements, Failure> {
        let mut requirements = match (&self.file, &self.workload) {
            (Some(file), _) => Requirements::read(file)?,
            (None, Some(workload)) => Requirements::new(workload),
            (None, None) => {
                return Err(Failure::usage("neither a file of requirements nor a workload is given")
                    .hint("`pubmark choose requirements.yaml`, or `pubmark choose --workload smart-home --slo 'p99<100ms,loss=0'`"));
            }
        };
        if let Some(workload) = &self.workload {
            requirements.workload = WorkloadSource::Named(workload.clone());
        }
        let load = &mut requirements.load;
        replace(&mut load.scale, self.scale);
        replace(&mut load.rate, self.rate);
        replace_some(&mut load.payload, self.payload);
        replace(&mut load.seed, self.seed);
        load.set.extend(self.set.iter().cloned());
        if !self.link.is_empty() {
            load.links.clone_from(&self.link);
        }
        replace(&mut requirements.growth, self.growth);
        replace_some(&mut requirements.objectives, self.slo.clone());
        replace_some(&mut requirements.recovery, self.recovery);
        replace_some(&mut requirements.resources, self.limit.clone());
        replace(&mut requirements.within, self.within);
        requirements.headroom &= !self.no_headroom;
        self.replace_needs(&mut requirements);
        let window = &mut requirements.window;
        replace(&mut window.duration, self.duration);
        replace(&mut window.warmup, self.warmup);
        requirements.exact_warmup |= self.warmup.is_some();
        replace(&mut window.drain, self.drain);
        requirements.generator.realtime |= self.realtime;
        requirements.generator.awake |= self.awake;
        replace_some(&mut requirements.local_nodes, self.local_nodes);
        let MachineOptions { join, system_host, system_node } = &self.machines;
        replace_some(&mut requirements.nodes, join.nodes);
        replace_some(&mut requirements.observers, join.observers);
        replace_some(&mut requirements.system_host, *system_host);
        replace_some(&mut requirements.system_node, system_node.clone());
        let systems = self.systems.iter().map(|name| CandidateSpec::Name(name.clone()));
        let endpoints = self.endpoint.iter().map(|url| {
            CandidateSpec::Settings(CandidateSettings { endpoint: Some(url.clone()), ..CandidateSettings::default() })
        });
        let named: Vec<CandidateSpec> = systems.chain(endpoints).collect();
        if !named.is_empty() {
            requirements.candidates = named;
        }
        Ok(requirements)
    }

    fn replace_needs(&self, requirements: &mut Requirements) {
        let needs = &mut requirements.needs;
        replace_some(&mut needs.qos, self.qos);
        replace_some(&mut needs.protocol, self.protocol.clone());
        needs.retained |= self.retained;
        needs.shared_subscriptions |= self.shared_subscriptions;
        needs.persistent_sessions |= self.persistent_sessions;
        needs.tls |= self.tls;
    }
}

/// Reports that an interrupted choice is continued.
fn goes_on(earlier: ChoiceFolder, stream: &EventStream, printer: &Printer) -> ChoiceFolder {
    let runs = counted(earlier.runs() as u64, "run", "runs");
    let text = format!(
        "continues `{}`, started {}: {runs} made (`--fresh` starts again)",
        earlier.folder.path().display(),
        earlier.started_at()
    );
    printer.note(&text);
    stream.note(text);
    earlier
}
