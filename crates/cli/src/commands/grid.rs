//! The axes of `pubmark compare`, and the experiment that is made from them.

use std::time::Duration;

use clap::{ArgGroup, Args};
use pubmark_experiment::experiment::comparison::{comparison, pins};
use pubmark_model::experiment::{Axes, Experiment, Generator, LARGEST_SEED, MOST_REPETITIONS, QuietMachine};
use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::topology::Topology;
use pubmark_runner::spec::{Netem, Reading};

use crate::commands::endpoint_options::EndpointOptions;
use crate::commands::setup::{NETEMS, READINGS, protocol_names};
use crate::exit_code::ExitCode;
use crate::failure::Failure;

use crate::values::{duration, one_of, payload_bytes, positive_duration, rate_factor, setting};

/// Values of the axis `link`.
#[derive(Clone, Debug)]
pub struct Links(Vec<LinkChoice>);

/// Parses links separated by commas; commas inside braces belong to a definition.
fn links(text: &str) -> Result<Links, String> {
    let mut depth = 0_i32;
    let outside = |letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth <= 0
    };
    text.split(outside).map(LinkChoice::parse).collect::<Result<_, _>>().map(Links)
}

const WHAT: &str = "What is compared; several values make several cells";
const LOAD: &str = "Load";

/// The axes, and the settings that all runs have in common.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("compared").args(["systems", "endpoint"]).multiple(true)))]
pub struct Grid {
    /// Systems to start and measure (`pubmark list systems`, or paths of definitions), such as `mosquitto,nats`
    #[arg(long, visible_alias = "system", value_name = "SYSTEMS", value_delimiter = ',', help_heading = WHAT)]
    pub systems: Vec<String>,

    /// A system that already runs, with its name in the report: `ours=mqtt://10.0.0.5:1883`; may be repeated. `--user`
    /// and certificates are for all of them; several log-ins are in an experiment's file (docs/how-to/compare-systems.md)
    #[arg(long, value_name = "LABEL=URL", help_heading = WHAT)]
    pub endpoint: Vec<String>,

    /// Protocols [default: the first that all systems offer]
    #[arg(long, value_name = "PROTOCOLS", value_delimiter = ',', requires = "compared",
          value_parser = protocol_names(), hide_possible_values = true, help_heading = WHAT)]
    pub protocol: Vec<String>,

    /// Profiles of the systems: `default,tuned`
    #[arg(long, value_name = "PROFILES", value_delimiter = ',', requires = "compared", help_heading = WHAT)]
    pub profile: Vec<String>,

    /// Delivery levels of all devices and subscribers: `0,2`
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', requires = "compared",
          value_parser = clap::value_parser!(u8).range(0..=2), help_heading = WHAT)]
    pub qos: Vec<u8>,

    /// Several brokers as one system: `1,3:bridge,5:shard`
    #[arg(long, value_name = "N:MODE", value_delimiter = ',', requires = "compared", value_parser = Topology::parse,
          help_heading = WHAT, hide_short_help = true)]
    pub topology: Vec<Topology>,

    /// Resources that each broker may use: `none cpu=0.5,memory=256MB`, separated by spaces
    #[arg(long, value_name = "LIMITS", num_args = 1.., requires = "compared", help_heading = WHAT)]
    pub limit: Vec<String>,

    /// Multipliers of the number of devices: `1,10`
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', requires = "compared",
          value_parser = clap::value_parser!(u32).range(1..), help_heading = WHAT)]
    pub scale: Vec<u32>,

    /// Multipliers of every device's rate: `0.5,1,2`
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', requires = "compared", value_parser = rate_factor,
          help_heading = WHAT)]
    pub rate: Vec<f64>,

    /// Numbers of worker processes among which the load is divided, as among that many machines: `1,5`
    #[arg(long, value_name = "NODES", value_delimiter = ',', requires = "compared",
          value_parser = clap::value_parser!(u16).range(1..=200), conflicts_with = "nodes", help_heading = WHAT, hide_short_help = true)]
    pub local_nodes: Vec<u16>,

    /// Sizes of every payload: `16,1KB`
    #[arg(long, value_name = "SIZES", value_delimiter = ',', requires = "compared", value_parser = payload,
          help_heading = WHAT, hide_short_help = true)]
    pub payload: Vec<String>,

    /// Emulated networks of all groups, or of one (`pubmark list links`): `none,lte,sensors=lte`
    #[arg(long, value_name = "LINKS", requires = "compared", value_parser = links, help_heading = WHAT)]
    pub link: Vec<Links>,

    /// Inject a fault, in place of the workload's; may be repeated, once for each cell: `--fault none --fault
    /// kill:at=5s,for=1s`
    #[arg(long, value_name = "KIND:KEY=VALUE,…", requires = "compared", value_parser = FaultChoice::parse, help_heading = WHAT)]
    pub fault: Vec<FaultChoice>,

    /// Connections with and without TLS: `false,true`
    #[arg(long, value_name = "SWITCHES", value_delimiter = ',', requires = "compared",
          help_heading = WHAT, hide_short_help = true)]
    pub tls: Vec<bool>,

    /// Clients: `pubmark` for its own, a client library, a client program by name (`paho`), or the command of one with
    /// a label: `'mine=python3 my/client.py'`, separated by spaces
    #[arg(long, visible_alias = "client", value_name = "CLIENTS", num_args = 1.., requires = "compared", help_heading = WHAT,
          hide_short_help = true)]
    pub clients: Vec<String>,

    /// Values of a setting of the workload: `rate=1/s,10/s`; may be repeated, once for each setting
    #[arg(long, value_name = "KEY=VALUES", requires = "compared", value_parser = varied, help_heading = WHAT)]
    pub vary: Vec<(String, Vec<String>)>,

    /// Change a value of the workload in all runs: a parameter, or a dotted path into its file
    #[arg(long, value_name = "KEY=VALUE", requires = "compared", value_parser = setting, help_heading = LOAD)]
    pub set: Vec<(String, String)>,

    /// Reading of a published workload
    #[arg(long, value_parser = one_of(READINGS), default_value = "corrected", requires = "compared",
          help_heading = LOAD, hide_short_help = true)]
    pub variant: Reading,

    /// Seed of the schedule and of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "compared",
          value_parser = clap::value_parser!(u64).range(..=LARGEST_SEED), help_heading = LOAD, hide_short_help = true)]
    pub seed: u64,

    /// Repetitions of each combination
    #[arg(long, value_name = "N", default_value_t = 5, requires = "compared",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPETITIONS)), help_heading = LOAD)]
    pub repeat: u32,

    /// Length of each measured window
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive_duration,
          default_value = "60s", requires = "compared", help_heading = LOAD)]
    pub duration: Duration,

    /// Load before the window that is not measured [default: 5s, or the longest that the systems' definitions ask for]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, requires = "compared",
          help_heading = LOAD, hide_short_help = true)]
    pub warmup: Option<Duration>,

    /// Longest wait for late messages after the window
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "10s",
          requires = "compared", help_heading = LOAD, hide_short_help = true)]
    pub drain: Duration,

    /// Longest wait for a quiet machine before each run; after it the run starts anyway, and is marked
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "30s",
          requires = "compared", help_heading = LOAD, hide_short_help = true)]
    pub wait: Duration,

    /// Threads for publishers, and as many for subscribers
    #[arg(long, value_name = "N", default_value_t = 1, requires = "compared",
          value_parser = clap::value_parser!(u16).range(1..=256), help_heading = LOAD, hide_short_help = true)]
    pub shards: u16,

    /// Run the generator's threads under SCHED_FIFO, where the machine allows it
    #[arg(long, requires = "compared", help_heading = LOAD)]
    pub realtime: bool,

    /// Prevent CPU idle states on this machine, where that is allowed
    #[arg(long, requires = "compared", help_heading = LOAD, hide_short_help = true)]
    pub awake: bool,

    /// Emulator of links: pubmark itself in user space, or the kernel's netem, if the kernel has it
    #[arg(long, value_parser = one_of(NETEMS), default_value = "user", requires = "compared", help_heading = LOAD, hide_short_help = true)]
    pub netem: Netem,

    /// Keep the systems' limits unchanged, even if the workload's messages are too large for them
    #[arg(long, requires = "compared", help_heading = LOAD, hide_short_help = true)]
    pub strict_defaults: bool,

    /// Cores for one side: `system=0`, `generator=1-3`; may be repeated, once for each side
    #[arg(long, value_name = "SIDE=CORES", num_args = 1..=2, requires = "compared",
          help_heading = LOAD, hide_short_help = true)]
    pub pin: Vec<String>,

    #[command(flatten)]
    pub at_endpoints: EndpointOptions,
}

impl Grid {
    /// The experiment, with its names checked.
    pub fn experiment(&self, workload: &str) -> Result<Experiment, Failure> {
        self.check_log_in()?;
        let compared = comparison(workload, &self.systems, &self.endpoint, self.axes())?;
        let mut experiment = Experiment {
            variant: self.variant.into(),
            set: self.set.clone(),
            seed: self.seed,
            order_seed: self.seed,
            warmup: self.warmup.unwrap_or(compared.warmup),
            exact_warmup: self.warmup.is_some(),
            duration: self.duration,
            drain: self.drain,
            repeat: self.repeat,
            quiet_machine: QuietMachine { within: self.wait, ..QuietMachine::default() },
            generator: Generator {
                shards: self.shards,
                realtime: self.realtime,
                awake: self.awake,
                kernel_netem: self.netem == Netem::Kernel,
            },
            strict_defaults: self.strict_defaults,
            ..compared
        };
        let endpoints = experiment.axes.system.iter_mut().filter_map(|choice| choice.endpoint.as_mut());
        endpoints.for_each(|endpoint| self.at_endpoints.apply(endpoint));
        let experiment = Experiment { pin: pins(&self.pin)?, ..experiment };
        experiment.check_values().map_err(|error| Failure::from_error(ExitCode::Usage, &error).hint(error.hint()))?;
        Ok(experiment)
    }

    /// Refuses a log-in without an endpoint that it is for.
    pub fn check_log_in(&self) -> Result<(), Failure> {
        match self.at_endpoints.is_given() && self.endpoint.is_empty() {
            true => {
                Err(Failure::usage("a log-in or a certificate is for a system that runs already, and none is named")
                    .hint("`--endpoint 'ours=mqtt://broker.example:1883'`; or leave it out"))
            }
            false => Ok(()),
        }
    }

    /// Whether a system or an endpoint is given to compare.
    pub fn is_given(&self) -> bool {
        !self.systems.is_empty() || !self.endpoint.is_empty()
    }

    fn axes(&self) -> Axes {
        Axes {
            protocol: self.protocol.clone(),
            profile: self.profile.clone(),
            qos: self.qos.clone(),
            topology: self.topology.clone(),
            limit: self.limit.clone(),
            scale: self.scale.clone(),
            rate: self.rate.clone(),
            nodes: self.local_nodes.clone(),
            payload: self.payload.clone(),
            link: self.link.iter().flat_map(|links| links.0.clone()).collect(),
            fault: self.fault.clone(),
            tls: self.tls.clone(),
            client: self.clients.clone(),
            set: self.vary.clone(),
            ..Axes::default()
        }
    }
}

fn payload(text: &str) -> Result<String, String> {
    payload_bytes(text).map(|_| text.to_owned())
}

fn varied(text: &str) -> Result<(String, Vec<String>), String> {
    let (key, values) = setting(text).map_err(|_| "values are written KEY=ONE,OTHER, for instance `rate=1/s,10/s`")?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    match values.iter().all(|value| !value.is_empty()) {
        true => Ok((key, values)),
        false => Err("a value is empty; values are written KEY=ONE,OTHER".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::commands::compare::Compare;

    /// The experiment that `pubmark compare hello` makes with these options.
    fn compared(options: &[&str]) -> Result<Experiment, Failure> {
        let command = Compare::augment_args(clap::Command::new("pubmark compare").no_binary_name(true));
        let matches = command.try_get_matches_from([&["hello"][..], options].concat()).expect("known options");
        Compare::from_arg_matches(&matches).expect("a comparison").grid.experiment("hello")
    }

    #[test]
    fn a_log_in_is_that_of_all_endpoints() {
        let log_in = ["--user", "ann", "--password-env", "WORD", "--tls-ca", "ca.pem"];
        let two =
            ["--systems", "builtin", "--endpoint", "ours=mqtts://a.example", "--endpoint", "theirs=mqtts://b.example"];
        let experiment = compared(&[&two[..], &log_in].concat()).expect("a comparison");
        let endpoints: Vec<_> = experiment.axes.system.iter().filter_map(|choice| choice.endpoint.as_ref()).collect();
        assert_eq!(endpoints.len(), 2);
        for endpoint in endpoints {
            let (user, variable) = (endpoint.user.as_deref(), endpoint.password_env.as_deref());
            assert_eq!((user, variable, endpoint.tls_ca.as_deref()), (Some("ann"), Some("WORD"), Some("ca.pem")));
        }
        let failure = compared(&["--systems", "builtin", "--user", "ann"]).expect_err("no endpoint");
        assert!(failure.chain[0].contains("none is named"), "{failure:?}");
    }

    #[test]
    fn the_warm_up_is_that_of_experiments_or_the_users() {
        let warm_up = |options: &[&str]| {
            let experiment = compared(options).expect("a comparison");
            (experiment.warmup.as_secs(), experiment.exact_warmup)
        };
        assert_eq!(warm_up(&["--systems", "builtin,artemis"]), (5, false));
        assert_eq!(warm_up(&["--systems", "builtin,artemis", "--warmup", "2s"]), (2, true));
    }

    #[test]
    fn several_values_are_read_from_one_word() {
        assert_eq!(varied("every=1s, 10s"), Ok(("every".to_owned(), vec!["1s".to_owned(), "10s".to_owned()])));
        for wrong in ["every", "=1s", "every=1s,,2s", "every="] {
            assert!(varied(wrong).is_err(), "{wrong}");
        }
    }
}
