//! [`Requirements`]: what a system must do, as data. Groups that a run has, too, have the names and fields of `run.yaml`.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use pubmark_experiment::capacity;
use pubmark_model::secret::{MASK, masked_yaml, without_password};
use pubmark_record::threshold::Objectives;
use pubmark_runner::spec::file::{DocumentError, document};
use pubmark_runner::spec::{Connection, Generator, Load, Window, text};
use pubmark_runner::{ErrorKind, RunError, RunSpec, WorkloadSource, unbuilt};
use pubmark_systems::limits::ResourceLimits;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

/// Name of its file in the folder of a choice.
pub const REQUIREMENTS_FILE: &str = "requirements.yaml";
/// Largest file that is read, bytes: a workload's text may be in it.
const LARGEST_BYTES: usize = 8 << 20;
/// Largest growth of the load.
const MOST_GROWTH: f64 = 1_000.0;

/// What a system must do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "What a system must do.")]
pub struct Requirements {
    /// Which devices publish and who subscribes.
    pub workload: WorkloadSource,
    /// What of the workload is changed (scale, rate, links), and its schedule's seed.
    #[serde(default)]
    pub load: Load,
    /// How many times this load (messages per second) a system must carry with the same objectives: 1 to 1,000, with two decimals at most.
    #[serde(default = "no_growth")]
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub growth: f64,
    /// Limits that must hold, separated by commas, such as `p99<50ms,loss=0`; the workload's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objectives: Option<String>,
    /// Time within which all clients must be connected and subscribed again after the system was killed, such as `10s`.
    #[serde(default, with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub recovery: Option<Duration>,
    /// What each broker may use, such as `cpu=1,memory=512MB`; all of the machine if left out. Not for endpoints.
    #[serde(default, with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub resources: Option<ResourceLimits>,
    /// What a system must offer.
    #[serde(default)]
    pub needs: Needs,
    /// Systems and endpoints to choose from; all built-in definitions that may be ranked if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateSpec>,
    /// Time for all runs together; none begins that would end later.
    #[serde(default = "half_an_hour", with = "text::one")]
    #[schemars(with = "String")]
    pub within: Duration,
    /// Search how much more load the candidates that qualify carry, with the time that is left.
    #[serde(default = "yes")]
    pub headroom: bool,
    /// When messages are sent and measured in a run of the race. Runs of the screening measure a quarter of it.
    #[serde(default)]
    pub window: Window,
    /// Warm up for exactly `window.warmup`, even where the definition of a system asks for more.
    #[serde(default, skip_serializing_if = "is_no")]
    pub exact_warmup: bool,
    /// How pubmark makes the load on this machine.
    #[serde(default)]
    pub generator: Generator,
    /// Worker processes of this machine among which the load of every run is divided: 1 to 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 200))]
    pub local_nodes: Option<u16>,
    /// Machines that join with `pubmark node`, among which the load of every run is divided: 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub nodes: Option<u16>,
    /// Machines that join with `pubmark node --observe`, beside the system at the endpoint: 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub observers: Option<u16>,
    /// Address of this machine on which systems that pubmark starts listen; 127.0.0.1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_host: Option<Ipv4Addr>,
    /// Node that starts the systems: it joined with `pubmark node --start-systems`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_node: Option<String>,
    /// How clients connect to endpoints.
    #[serde(default)]
    pub connection: Connection,
}

/// What a system must offer, whether the workload uses it or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Needs {
    /// Delivery level, 0 to 2; every run is made at this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// It stores retained messages.
    pub retained: bool,
    /// It shares a subscription among several clients.
    pub shared_subscriptions: bool,
    /// It stores sessions beyond a connection.
    pub persistent_sessions: bool,
    /// It encrypts; every run is made with TLS.
    pub tls: bool,
    /// Protocol of all clients; the first that the system offers and that has what is needed, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// A candidate: a name, or settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a candidate is the name or the path of a system, a URL, or a map with `system` or `endpoint` and, \
                 if wanted, `label`, `protocol`, `profile`, `limit`"
)]
pub enum CandidateSpec {
    /// A built-in system, the path of a definition, or the URL of a system that runs already.
    Name(String),
    /// The same with settings.
    Settings(CandidateSettings),
}

/// A candidate with settings. One of `system` and `endpoint` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CandidateSettings {
    /// What it is called in the report; its system or endpoint if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// System to start: a built-in definition or the path of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// URL of a system that runs already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Its protocol, in place of that of `needs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Configuration of a system that is started; `default` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What it may use, in place of `resources`.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub limit: Option<ResourceLimits>,
}

impl CandidateSpec {
    /// Its settings.
    pub fn settings(&self) -> CandidateSettings {
        match self {
            CandidateSpec::Settings(settings) => settings.clone(),
            CandidateSpec::Name(name) if name.contains("://") => {
                CandidateSettings { endpoint: Some(name.clone()), ..CandidateSettings::default() }
            }
            CandidateSpec::Name(name) => {
                CandidateSettings { system: Some(name.clone()), ..CandidateSettings::default() }
            }
        }
    }
}

/// The group that has a field, if one has.
pub fn group_of(field: &str) -> Option<&'static str> {
    let groups = [
        ("needs", schema_for!(Needs)),
        ("load", schema_for!(Load)),
        ("window", schema_for!(Window)),
        ("generator", schema_for!(Generator)),
        ("connection", schema_for!(Connection)),
    ];
    let has_field = |schema: &Schema| schema.get("properties").is_some_and(|fields| fields.get(field).is_some());
    groups.into_iter().find(|(_, schema)| has_field(schema)).map(|(name, _)| name)
}

fn yes() -> bool {
    true
}

/// Serde passes a reference.
fn is_no(switch: &bool) -> bool {
    !*switch
}

fn no_growth() -> f64 {
    1.0
}

fn half_an_hour() -> Duration {
    Duration::from_secs(30 * 60)
}

impl Requirements {
    /// Of a workload alone.
    pub fn new(workload: &str) -> Requirements {
        Requirements {
            workload: WorkloadSource::Named(workload.to_owned()),
            load: Load::default(),
            growth: no_growth(),
            objectives: None,
            recovery: None,
            resources: None,
            needs: Needs::default(),
            candidates: vec![],
            within: half_an_hour(),
            headroom: yes(),
            window: Window::default(),
            exact_warmup: false,
            generator: Generator::default(),
            local_nodes: None,
            nodes: None,
            observers: None,
            system_host: None,
            system_node: None,
            connection: Connection::default(),
        }
    }

    /// Reads a file; paths in it count from its folder.
    ///
    /// # Errors
    /// It cannot be read, or holds no requirements; with line and column.
    pub fn read(path: &Path) -> Result<Requirements, RunError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error)
                .during(format!("failed to read `{shown}`"))
                .hint("give a file of requirements (`pubmark schema requirements`), or `--workload smart-home` and what it must do")
        })?;
        if text.len() > LARGEST_BYTES {
            return Err(RunError::input(format!(
                "`{shown}` has {} bytes: at most {LARGEST_BYTES} are read",
                text.len()
            ))
            .hint("give a file of requirements"));
        }
        let mut requirements = Requirements::parse(&text)
            .map_err(|error| error.during(format!("failed to read `{shown}` as requirements")))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        requirements.count_paths_from(folder);
        Ok(requirements)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text holds no requirements; with line and column.
    pub fn parse(text: &str) -> Result<Requirements, RunError> {
        document(text).map_err(|error: DocumentError| {
            let misplaced = error.unknown_field().and_then(|field| Some((field, group_of(field)?)));
            let hint = match misplaced {
                Some((field, group)) => format!("`{field}` is a field of `{group}`: write `{group}: {{{field}: …}}`"),
                None => {
                    "`pubmark schema requirements` prints the schema; docs/how-to/choose-a-system.md has an example"
                        .to_owned()
                }
            };
            RunError::input(error.to_string()).hint(hint)
        })
    }

    /// The same for a folder of its own: the text of the workload in place of its path, other paths as absolute ones.
    #[must_use]
    pub fn self_contained(mut self) -> Requirements {
        let workload = self.spec().self_contained().workload;
        // Fails only without a working directory, where a relative path is as good as any.
        if let Ok(here) = std::env::current_dir() {
            self.count_paths_from(&here);
        }
        // Messages name it as it was written.
        self.workload = workload;
        self
    }

    fn count_paths_from(&mut self, folder: &Path) {
        let mut spec = self.spec();
        spec.count_paths_from(folder);
        (self.workload, self.connection) = (spec.workload, spec.connection);
        for candidate in &mut self.candidates {
            let mut settings = candidate.settings();
            let Some(system) = &mut settings.system else { continue };
            let mut spec = RunSpec::new("");
            spec.target.system = Some(system.clone());
            spec.count_paths_from(folder);
            *system = spec.target.system.unwrap_or_default();
            *candidate = match candidate {
                CandidateSpec::Name(_) => CandidateSpec::Name(system.clone()),
                CandidateSpec::Settings(_) => CandidateSpec::Settings(settings),
            };
        }
    }

    /// What the runs of all candidates have in common.
    pub fn spec(&self) -> RunSpec {
        let mut spec = RunSpec::new("");
        spec.workload = self.workload.clone();
        spec.load = self.load.clone();
        spec.load.qos = self.needs.qos.or(self.load.qos);
        spec.connection = self.connection.clone();
        spec.window = self.window.clone();
        spec.generator = self.generator.clone();
        let nodes = &mut spec.nodes;
        (nodes.nodes, nodes.local_nodes, nodes.observers) = (self.nodes, self.local_nodes, self.observers);
        (spec.target.system_host, spec.target.node) = (self.system_host, self.system_node.clone());
        spec.objectives.clone_from(&self.objectives);
        spec
    }

    /// The objectives that every run is held against.
    ///
    /// # Errors
    /// A field contradicts another or is out of range, or an objective cannot be read.
    pub fn check(&self, of_workload: &[String]) -> Result<Objectives, RunError> {
        self.check_fields()?;
        for candidate in &self.candidates {
            check_candidate(&candidate.settings())?;
        }
        let (text, place) = match &self.objectives {
            Some(text) => (text.clone(), "the objectives"),
            None if of_workload.is_empty() => {
                return Err(RunError::input("nothing is required of a system: there are no objectives")
                    .hint("`objectives: p99<100ms,loss=0` in the file, or `--slo 'p99<100ms,loss=0'`"));
            }
            None => (of_workload.join(","), "the objectives of the workload"),
        };
        capacity::objectives(place, &text)
    }

    fn check_fields(&self) -> Result<(), RunError> {
        if !(1.0..=MOST_GROWTH).contains(&self.growth) {
            return Err(RunError::input(format!("`growth` is {}: it takes 1 to {MOST_GROWTH}", self.growth))
                .hint("`growth: 3` requires that a system carries three times the load"));
        }
        // Reports print it so: what is required and what is printed must not differ.
        if (self.growth * 100.0 - (self.growth * 100.0).round()).abs() > 1e-6 {
            return Err(RunError::input(format!("`growth` is {}: it takes two decimals at most", self.growth))
                .hint("`growth: 1.25`; a search for headroom tells loads apart that differ by a tenth"));
        }
        if self.growth > 1.0 && !self.headroom {
            return Err(RunError::input("`growth` is required, and headroom is not to be searched")
                .hint("leave out `--no-headroom` (`headroom: false`), or `growth`"));
        }
        if !self.load.faults.is_empty() {
            return Err(RunError::input("`load` has faults, and objectives are judged without any")
                .hint("`recovery: 10s` kills the system in runs of its own"));
        }
        if self.recovery.is_some_and(|time| time.is_zero()) || self.within.is_zero() {
            return Err(RunError::input("`recovery` and `within` must be longer than zero")
                .hint("`recovery: 10s`, `within: 30m`"));
        }
        self.check_machines()?;
        let needs = &self.needs;
        if let Some(qos) = needs.qos.filter(|qos| *qos > 2) {
            return Err(
                RunError::input(format!("`qos` of `needs` is {qos}: it takes 0 to 2")).hint("`needs: {qos: 1}`")
            );
        }
        if let (Some(needed), Some(qos)) = (needs.qos, self.load.qos)
            && needed != qos
        {
            return Err(RunError::input(format!("`needs` requires QoS {needed}, and `load` has QoS {qos}"))
                .hint("leave `qos` of `load` out: every run is made at the level that is needed"));
        }
        needs.protocol.iter().try_for_each(|name| check_protocol(name))
    }

    /// Without passwords: for files that are shown and handed on. `secret_parameters` are those that the workload makes passwords of.
    #[must_use]
    pub fn without_secrets(&self, secret_parameters: &[String]) -> Requirements {
        let mut shown = self.clone();
        for (key, value) in &mut shown.load.set {
            let setting = format!("{key}={value}");
            if secret_parameters.contains(key) || masked_yaml(&setting) != setting {
                MASK.clone_into(value);
            }
        }
        if let WorkloadSource::Inline { text, passwords_left_out, .. } = &mut shown.workload {
            let masked = masked_yaml(text);
            *passwords_left_out |= masked != *text;
            *text = masked;
        }
        for candidate in &mut shown.candidates {
            match candidate {
                CandidateSpec::Name(name) if name.contains("://") => *name = without_password(name),
                CandidateSpec::Settings(CandidateSettings { endpoint: Some(url), .. }) => *url = without_password(url),
                _ => {}
            }
        }
        shown
    }

    /// The text of a file with its passwords, for a place that protects secrets.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn to_yaml_with_passwords(&self) -> Result<String, RunError> {
        let unwritten = |error: &(dyn std::error::Error + 'static)| RunError::from_error(ErrorKind::Internal, error);
        let mut value = serde_json::to_value(self).map_err(|error| unwritten(&error))?;
        // A password of its own type is never written.
        if let Some(password) = &self.connection.password {
            value["connection"]["password"] = password.expose().into();
        }
        serde_saphyr::to_string(&value).map_err(|error| unwritten(&error))
    }

    /// The text of a file, without passwords.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn to_yaml(&self, secret_parameters: &[String]) -> Result<String, RunError> {
        serde_saphyr::to_string(&self.without_secrets(secret_parameters))
            .map_err(|error| RunError::from_error(ErrorKind::Internal, &error))
    }
}

fn check_candidate(settings: &CandidateSettings) -> Result<(), RunError> {
    let hint = "`candidates: [mosquitto, {system: nats, profile: tuned}, mqtt://127.0.0.1:1883]`";
    let place = match (&settings.system, &settings.endpoint) {
        (Some(_), None) => return settings.protocol.iter().try_for_each(|name| check_protocol(name)),
        (None, Some(url)) => without_password(url),
        (Some(system), Some(_)) => {
            return Err(RunError::input(format!("candidate `{system}` has a system and an endpoint")).hint(hint));
        }
        (None, None) => return Err(RunError::input("a candidate names neither a system nor an endpoint").hint(hint)),
    };
    if settings.profile.is_some() || settings.limit.is_some() {
        return Err(RunError::input(format!(
            "candidate `{place}` runs already: `profile` and `limit` are for a system that pubmark starts"
        ))
        .hint("leave them out, or name a `system`"));
    }
    settings.protocol.iter().try_for_each(|name| check_protocol(name))
}

fn check_protocol(name: &str) -> Result<(), RunError> {
    pubmark_protocols::find(name).map(|_| ()).ok_or_else(|| unbuilt::no_protocol(name))
}

/// The JSON Schema of requirements, indented, ending with a line feed.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schema_for!(Requirements)).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::spec::Nodes;

    use super::*;

    const WHOLE: &str = "\
workload: smart-home
load: {scale: 10, links: [lte]}
growth: 3
objectives: p99<100ms,loss=0
recovery: 10s
resources: cpu=1,memory=512MB
needs: {qos: 1, retained: true, shared_subscriptions: true, tls: true, protocol: mqtt5}
candidates: [mosquitto, {system: nats, profile: tuned, label: other}, mqtts://127.0.0.1:8883]
within: 20m
window: {duration: 10s}
";

    #[test]
    fn what_is_written_is_read_again() {
        let read = Requirements::parse(WHOLE).unwrap();
        read.check(&[]).unwrap();
        assert_eq!((read.growth, read.recovery, read.needs.qos), (3.0, Some(Duration::from_secs(10)), Some(1)));
        assert_eq!(read.spec().load.qos, Some(1), "runs are made at the level that is needed");
        assert_eq!(read.candidates[2].settings().endpoint.as_deref(), Some("mqtts://127.0.0.1:8883"));
        let text = read.to_yaml(&[]).unwrap();
        assert_eq!(Requirements::parse(&text).unwrap(), read, "{text}");
    }

    #[test]
    fn every_run_has_its_load_among_the_processes_or_machines_that_are_asked_for() {
        let read = Requirements::parse("workload: hello\nlocal_nodes: 3").unwrap();
        assert_eq!((read.spec().nodes.local_nodes, read.spec().nodes.nodes), (Some(3), None));
        let read = Requirements::parse("workload: hello\nnodes: 2\nsystem_node: far").unwrap().spec();
        assert_eq!((read.nodes.nodes, read.target.node.as_deref()), (Some(2), Some("far")));
        assert_eq!(Requirements::new("hello").spec().nodes, Nodes::default());
        assert!(!Requirements::new("hello").to_yaml(&[]).unwrap().contains("nodes:"), "older versions read it");
    }

    #[test]
    fn wrong_inputs_are_named_with_what_to_write_instead() {
        for (text, words) in [
            ("workload: hello\nobjectivs: loss=0", "line 2"),
            ("load: {scale: 1}", "workload"),
            ("workload: hello\nwithin: soon", "soon"),
            ("workload: hello\nresources: cpus=1", "cpus=1"),
            ("workload: hello\nneeds: {qos: 1, retain: true}", "retain"),
            ("workload: hello\ncandidates: [{sytem: nats}]", "a candidate is"),
            ("workload: hello\nload: {faults: ['kill:at=1s']}\nobjectives: loss=0", "faults"),
            ("workload: hello\nobjectives: p98<1s", "no figure `p98`"),
            ("workload: hello\nobjectives: loss=0\ngrowth: 0.5", "`growth` is 0.5"),
            ("workload: hello\nobjectives: loss=0\ngrowth: 1.125", "`growth` is 1.125"),
            ("workload: hello\nobjectives: loss=0\nneeds: {protocol: mqtt6}", "mqtt6"),
            ("workload: hello\nobjectives: loss=0\nneeds: {qos: 1}\nload: {qos: 2}", "requires QoS 1"),
            (
                "workload: hello\nobjectives: loss=0\ncandidates: [{system: a, endpoint: 'b://c'}]",
                "a system and an endpoint",
            ),
            ("workload: hello\nobjectives: loss=0\ncandidates: [{label: x}]", "neither a system nor an endpoint"),
            ("workload: hello\nobjectives: loss=0\ncandidates: [{endpoint: 'mqtt://h', limit: cpu=1}]", "runs already"),
            ("workload: hello\nobjectives: loss=0\nrecovery: 0s", "longer than zero"),
            ("workload: hello\nobjectives: loss=0\ngrowth: 2\nheadroom: false", "headroom is not to be searched"),
            ("workload: hello\nobjectives: loss=0\nnodes: 2\nlocal_nodes: 2", "exclude each other"),
            ("workload: hello\nobjectives: loss=0\nnodes: 0", "`nodes` is 0"),
            ("workload: hello", "nothing is required"),
        ] {
            let error = Requirements::parse(text).and_then(|read| read.check(&[])).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(error.hint.is_some(), "{text}");
        }
    }

    #[test]
    fn a_setting_in_another_form_or_group_is_named_with_the_right_one() {
        for (text, words, hint) in [
            ("workload: hello\nset: [interval=10ms]", "unknown field `set`", "write `load: {set: …}`"),
            ("workload: hello\nqos: 1", "unknown field `qos`", "write `needs: {qos: …}`"),
            ("workload: hello\nretained: true", "unknown field `retained`", "write `needs: {retained: …}`"),
            (
                "workload: hello\nload: {set: {interval: 10ms}}",
                "expected a list, each entry a text `KEY=VALUE`",
                "schema",
            ),
            ("workload: hello\nload: {set: [{interval: 10ms}]}", "expected a text `KEY=VALUE`", "schema"),
            ("workload: hello\nload: {set: [interval]}", "a setting is written KEY=VALUE", "schema"),
            (
                "workload: hello\nload: {links: {sensors: lte}}",
                "expected a list, each entry a text as on the command line",
                "schema",
            ),
        ] {
            let error = Requirements::parse(text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(error.to_string().contains("line 2"), "{text}: {error}");
            assert!(error.hint.as_ref().unwrap().contains(hint), "{text}: {:?}", error.hint);
        }
    }

    #[test]
    fn a_number_is_a_text_where_one_is_expected() {
        let error = Requirements::parse("workload: hello\nwithin: 20").unwrap_err().to_string();
        assert!(error.contains("20"), "{error}");
        let read = Requirements::parse("workload: hello\nload: {links: ['none'], set: ['scale=3']}").unwrap();
        assert_eq!(read.load.set, [("scale".to_owned(), "3".to_owned())]);
    }

    #[test]
    fn no_password_is_written() {
        let mut requirements = Requirements::new("hello");
        requirements.candidates = vec![CandidateSpec::Name("mqtt://ann:planted@host:1".to_owned())];
        requirements.load.set = vec![("devices.0.credentials.password".to_owned(), "planted".to_owned())];
        let text = requirements.to_yaml(&[]).unwrap();
        assert!(!text.contains("planted") && text.contains(MASK), "{text}");
        requirements.connection.password = Some(pubmark_model::secret::Secret::from("planted"));
        assert!(!requirements.to_yaml(&[]).unwrap().contains("planted"));
        let whole = requirements.to_yaml_with_passwords().unwrap();
        assert_eq!(Requirements::parse(&whole).unwrap(), requirements, "{whole}");
    }

    #[test]
    fn paths_count_from_the_folder_of_the_file_and_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.yaml");
        std::fs::write(&file, "workload: ./w.yaml\ncandidates: [mosquitto, ./s.yaml]\n").unwrap();
        let read = Requirements::read(&file).unwrap();
        assert_eq!(read.candidates[0], CandidateSpec::Name("mosquitto".to_owned()));
        let path = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(read.candidates[1], CandidateSpec::Name(path("./s.yaml")));
        assert_eq!(read.workload, WorkloadSource::Named(path("./w.yaml")));
        std::fs::write(folder.path().join("w.yaml"), "name: w").unwrap();
        let whole = read.self_contained();
        assert!(matches!(&whole.workload, WorkloadSource::Inline { text, .. } if text == "name: w"), "{whole:?}");
        let mut relative = Requirements::new("hello");
        relative.candidates = vec![CandidateSpec::Name("./s.yaml".to_owned())];
        let CandidateSpec::Name(system) = &relative.self_contained().candidates[0] else { panic!("a name stays one") };
        assert!(Path::new(system).is_absolute(), "{system}");
    }
}
