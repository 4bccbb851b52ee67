//! The definition of a system in a YAML file. The files in `systems/` are the reference of this format.

mod back_ends;
mod files;
mod probe;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use pubmark_model::file_name;
use pubmark_record::record::PaperVersion;
use serde::Deserialize;

pub use back_ends::{
    ArgumentPart, BackEnds, BrokerlessBackEnd, ContainerBackEnd, DiscoveryAddress, DiscoveryPorts, PrepareCommand,
    ProcessBackEnd, VersionCommand,
};
pub use files::{ConfigurationFile, TextPart};
pub use probe::{Line, Probe};

use crate::condition::{Condition, When};
use crate::error::SystemError;

/// File name (without `.yaml`) and text of every definition in `systems/`.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/systems.rs"));
/// Profile that every system has.
pub const DEFAULT_PROFILE: &str = "default";
/// Profile for benchmarks: without misleading defaults.
pub const TUNED_PROFILE: &str = "tuned";

/// A system under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Name on the command line and in records.
    pub name: String,
    /// Name as its vendor writes it.
    pub title: String,
    /// One sentence for `pubmark list systems`.
    pub description: String,
    /// The system's home page.
    #[serde(default)]
    pub homepage: Option<String>,
    /// Can it be ranked against others? The built-in broker cannot.
    pub ranked: bool,
    /// How well pubmark's use of the system is tested.
    #[serde(default)]
    pub tested: Tested,
    /// Versions that published measurements used.
    #[serde(default)]
    pub papers: Vec<PaperVersion>,
    /// Ports, by name.
    pub listeners: BTreeMap<String, Listener>,
    /// What the system offers, by names of pubmark's protocols.
    pub protocols: BTreeMap<String, Offer>,
    /// Client programs by name, each with its command: `--client NAME` runs it.
    #[serde(default)]
    pub clients: BTreeMap<String, String>,
    /// Limits of what the system accepts.
    #[serde(default)]
    pub limits: Limits,
    /// Time under load after which its speed no longer rises, seconds, above 0 and at most 600; none for a system that is as fast
    /// at once.
    #[serde(default)]
    pub warm_up_s: Option<f64>,
    /// Ways to run the system.
    #[serde(default)]
    pub back_ends: BackEnds,
    /// Files that are written into its private directory before the start. Records contain the first one.
    #[serde(default)]
    pub files: Vec<ConfigurationFile>,
    /// How several of its brokers can work together; independent ones (`shard`) are always possible.
    #[serde(default)]
    pub topology: Topology,
    /// Deviations of every profile.
    #[serde(default)]
    pub deviations: Vec<Change>,
    /// Profiles by name; `default` always exists.
    pub profiles: BTreeMap<String, Profile>,
}

/// How well it is tested that pubmark starts a system, loads it and counts its messages correctly.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    /// The kind of test.
    pub by: TestedBy,
    /// Version and method of a manual test, or what prevents any test; one phrase.
    #[serde(default)]
    pub note: Option<String>,
}

/// Kind of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestedBy {
    /// The tests of each change (`make test`).
    EachChange,
    /// The tests of a release (`make test-all`).
    FullSuite,
    /// A manual test.
    Hand,
    /// No test so far.
    #[default]
    Nothing,
}

impl TestedBy {
    /// Text for a table.
    pub fn words(self) -> &'static str {
        match self {
            TestedBy::EachChange => "each change",
            TestedBy::FullSuite => "full suite",
            TestedBy::Hand => "by hand",
            TestedBy::Nothing => "never",
        }
    }
}

/// How several brokers of a system can work together.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Over bridges: which messages are forwarded where, one phrase.
    #[serde(default)]
    pub bridge: Option<String>,
    /// As a cluster: what the brokers share, one phrase.
    #[serde(default)]
    pub cluster: Option<String>,
}

/// One port of a system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// Scheme of its endpoint; any word for a port between brokers.
    pub scheme: String,
    /// Scheme with encryption; `None` if the listener cannot encrypt.
    #[serde(default)]
    pub tls_scheme: Option<String>,
    /// A UDP port. It cannot be checked whether a program listens there, so it is ready when a message has been
    /// delivered through it.
    #[serde(default)]
    pub datagrams: bool,
}

/// What a system offers over a protocol.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Name of the listener.
    pub listener: String,
    /// Name of the listener for the protocol over WebSocket, if there is one; parts with `when: websocket` set it up.
    #[serde(default)]
    pub websocket_listener: Option<String>,
    /// Name of the listener where subscribers connect, if it is not the publishers'.
    #[serde(default)]
    pub subscribe_listener: Option<String>,
    /// Highest QoS level that is granted, 0 to 2, in terms of MQTT.
    pub highest_qos: u8,
    /// Supports retained messages.
    #[serde(default)]
    pub retain: bool,
    /// Supports persistent sessions.
    #[serde(default)]
    pub persistent_sessions: bool,
    /// Supports shared subscriptions.
    #[serde(default)]
    pub shared_subscriptions: bool,
    /// Supports subscriptions that are filtered by the content of messages.
    #[serde(default)]
    pub content_filters: bool,
    /// Log-in that every client needs, `user:password`.
    #[serde(default)]
    pub fixed_login: Option<String>,
    /// What users should know before they choose it, one sentence.
    #[serde(default)]
    pub note: Option<String>,
    /// How to publish and receive a message, if pubmark has no adapter for the protocol.
    #[serde(default)]
    pub probe: Option<Probe>,
}

/// Limits of what a system accepts, with the settings used here.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Largest packet that it accepts by default, bytes.
    #[serde(default)]
    pub maximum_packet_bytes: Option<u32>,
    /// The largest packet size that it can be configured to accept, bytes, if it can. Parts with `when: raised` do so
    /// with `{packet_bytes}`.
    #[serde(default)]
    pub raised_to_at_most_bytes: Option<u32>,
}

/// A setting that differs from the system's default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Short stable name.
    pub name: String,
    /// When the setting is changed.
    #[serde(default)]
    pub when: When,
    /// The setting; placeholders are filled in.
    pub setting: String,
    /// The reason for the change.
    pub reason: String,
}

/// A named set of settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// One phrase for lists.
    pub description: String,
    /// Value of the placeholder `{profile}` in files.
    #[serde(default)]
    pub text: String,
    /// Most client sessions of one broker, if a setting limits them; pubmark refuses a run with more before it.
    #[serde(default)]
    pub sessions: Option<u32>,
    /// Environment variables in addition to the back end's.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Arguments that follow the back end's.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What the endpoints of a protocol have after their port, by protocol: settings of what its clients create in the system. None
    /// for a system without a broker, whose endpoints have `text` there.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Deviations of this profile.
    #[serde(default)]
    pub deviations: Vec<Change>,
}

impl Definition {
    /// All embedded definitions, ordered by name.
    pub fn embedded() -> Result<Vec<Definition>, SystemError> {
        EMBEDDED.iter().map(|(name, text)| Definition::parse(text, &format!("systems/{name}.yaml"))).collect()
    }

    /// Names of the embedded definitions.
    pub fn names() -> Vec<&'static str> {
        EMBEDDED.iter().map(|(name, _)| *name).collect()
    }

    /// The embedded definition of that name, or the one in a file if `name_or_path` has a `/` or ends in `.yaml`.
    pub fn load(name_or_path: &str) -> Result<Definition, SystemError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".yaml") {
            let text = std::fs::read_to_string(name_or_path).map_err(|source| SystemError::File {
                action: "read",
                path: Path::new(name_or_path).into(),
                source,
            })?;
            return Definition::parse(&text, name_or_path);
        }
        match EMBEDDED.iter().find(|(name, _)| *name == name_or_path) {
            Some((name, text)) => Definition::parse(text, &format!("systems/{name}.yaml")),
            None => Err(SystemError::Unknown { name: name_or_path.to_owned(), known: Definition::names().join(", ") }),
        }
    }

    /// Parses and checks a definition; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Definition, SystemError> {
        let wrong = |reason: String| SystemError::Definition { origin: origin.to_owned(), reason };
        let definition: Definition = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        let profiles = self.profiles.keys().map(|name| ("profile", name));
        let listeners = self.listeners.keys().map(|name| ("listener", name));
        for (what, name) in [("system", &self.name)].into_iter().chain(profiles).chain(listeners) {
            if !file_name::is_one(name) {
                // The name is used for the system's log, control group and container.
                return Err(format!("`{name}` cannot be the name of a {what}: {}", file_name::RULE));
            }
        }
        if !self.profiles.contains_key(DEFAULT_PROFILE) {
            return Err(format!("profile `{DEFAULT_PROFILE}` is missing"));
        }
        for (name, offer) in &self.protocols {
            let further = [&offer.websocket_listener, &offer.subscribe_listener].into_iter().flatten();
            for listener in further.chain([&offer.listener]) {
                if !self.listeners.contains_key(listener) {
                    return Err(format!("protocol `{name}` names listener `{listener}`, which is not defined"));
                }
            }
            if offer.highest_qos > 2 {
                return Err(format!("protocol `{name}` has highest_qos {}, at most 2 is known", offer.highest_qos));
            }
        }
        let ends = &self.back_ends;
        let has_broker = ends.brokerless.is_none() || ends.process.is_some() || ends.container.is_some();
        for (name, profile) in &self.profiles {
            if let Some(other) = profile.settings.keys().find(|protocol| !self.protocols.contains_key(*protocol)) {
                return Err(format!("profile `{name}` has settings for `{other}`, which is none of its protocols"));
            }
            if !has_broker && !profile.settings.is_empty() {
                return Err(format!(
                    "profile `{name}` has `settings`, and a system without a broker has those of its endpoints in `text`"
                ));
            }
        }
        let process = ends.process.iter().map(|found| (found.ready_within_s, found.stop_within_s));
        let container = ends.container.iter().map(|found| (found.ready_within_s, found.stop_within_s));
        for (ready, stop) in process.chain(container) {
            for (field, seconds) in [("ready_within_s", ready), ("stop_within_s", stop)] {
                if !(seconds > 0.0 && seconds <= 600.0) {
                    return Err(format!("{field} is {seconds}, expected above 0 and at most 600"));
                }
            }
        }
        if let Some(seconds) = self.warm_up_s.filter(|seconds| !(*seconds > 0.0 && *seconds <= 600.0)) {
            return Err(format!("warm_up_s is {seconds}, expected above 0 and at most 600"));
        }
        if let Some(file) = self.files.iter().find(|file| !stays_inside(&file.name)) {
            return Err(format!("file name `{}` leaves the private directory", file.name));
        }
        crate::template::check(self)
    }

    /// Shortest warm-up after which its figures are those of a warm system; zero for a system that needs none.
    pub fn warm_up(&self) -> Duration {
        self.warm_up_s.map(Duration::from_secs_f64).unwrap_or_default()
    }

    /// Can a back end be configured to require a log-in?
    pub fn can_ask_for_login(&self) -> bool {
        self.asks_for_login(false) || self.asks_for_login(true)
    }

    /// Can the system be configured to require a log-in, as a program or in a container? It can if the definition has a
    /// part for it.
    pub fn asks_for_login(&self, container: bool) -> bool {
        self.has_part_for(Condition::Password, container)
    }

    /// Can the system be configured to encrypt, as a program or in a container? It can if the definition has a part for
    /// it.
    pub fn encrypts(&self, container: bool) -> bool {
        self.has_part_for(Condition::Tls, container)
    }

    /// Can the system be configured to encrypt this protocol, over WebSocket or not, as a program or in a container?
    pub fn encrypts_protocol(&self, offer: &Offer, websocket: bool, container: bool) -> bool {
        let listener = if websocket { offer.websocket_listener.as_ref() } else { Some(&offer.listener) };
        let found = listener.and_then(|listener| self.listeners.get(listener));
        found.is_some_and(|listener| listener.tls_scheme.is_some()) && self.encrypts(container)
    }

    /// Does this back end have an argument or a text with this condition?
    fn has_part_for(&self, condition: Condition, container: bool) -> bool {
        let process = self.back_ends.process.iter().flat_map(|process| &process.arguments);
        let in_container = self.back_ends.container.iter().flat_map(|found| &found.arguments);
        let own: Vec<&When> = match container {
            false => process.map(|part| &part.when).collect(),
            true => in_container.map(|part| &part.when).collect(),
        };
        let elsewhere = if container { Condition::Process } else { Condition::Container };
        let files = self.files.iter().filter(|file| !file.when.needs(elsewhere));
        let texts = files.flat_map(|file| file.parts.iter().map(|part| &part.when).chain([&file.when]));
        own.into_iter().chain(texts).any(|when| when.needs(condition) && !when.needs(elsewhere))
    }

    /// The profile of that name.
    pub fn profile(&self, name: &str) -> Result<&Profile, SystemError> {
        self.profiles.get(name).ok_or_else(|| SystemError::Profile {
            system: self.name.clone(),
            profile: name.to_owned(),
            known: self.profiles.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// The profile of that name, for clients of these protocols.
    ///
    /// # Errors
    /// There is none, or it has settings for clients of other protocols only.
    pub fn profile_for<'a>(
        &self,
        name: &str,
        protocols: impl IntoIterator<Item = &'a str>,
    ) -> Result<&Profile, SystemError> {
        let profile = self.profile(name)?;
        let has_some = protocols.into_iter().any(|protocol| profile.settings.contains_key(protocol));
        if has_some || profile.settings.is_empty() {
            return Ok(profile);
        }
        Err(SystemError::ProfileOfOthers {
            system: self.name.clone(),
            profile: name.to_owned(),
            protocols: profile.settings.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// What the system offers over a protocol.
    pub fn offer(&self, protocol: &str) -> Result<&Offer, SystemError> {
        self.protocols.get(protocol).ok_or_else(|| SystemError::Protocol {
            system: self.name.clone(),
            protocol: protocol.to_owned(),
            known: self.protocols.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

/// Is the file inside the folder that it is written to?
fn stays_inside(name: &str) -> bool {
    use std::path::Component;
    !name.is_empty()
        && !name.contains('\0')
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}
